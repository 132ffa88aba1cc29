r"""Time and memory of llmcore beside the calls one would pick instead: `python -m benchmarks`."""

import os

os.environ.setdefault(
    "KINETO_LOG_LEVEL", "99"
)  # torch's profiler, which counts the memory, is otherwise talkative
