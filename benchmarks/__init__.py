r"""Time and memory of llmcore beside the calls one would pick instead: `python -m benchmarks`."""
