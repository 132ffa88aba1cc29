r"""A process that has imported torch and the judge, and forks for each answer.

    python -m practice.worker MODULE      reads jobs as lines of JSON, writes lines of JSON

MODULE is the one of llmcore whose tests will judge, `*` for any.

An answer may loop, crash, leave, flood or ask for all memory: its fork ends alone and the verdict says how.
Where the system cannot fork, this process judges one answer itself and ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import secrets
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from practice.catalogue import ROOT, find
from practice.process import WALL, ended

try:
    import resource
except ImportError:  # Windows, where the caller's clock is the only limit
    resource = None

FORK = hasattr(os, "fork") and sys.platform != "darwin" and "PRACTICE_WITHOUT_FORK" not in os.environ
CPU = 40
MEMORY = 2 * 2**30  # bytes beside what the judge itself has


def preload(module: str) -> None:
    r"""Import what judging needs, so that no fork has to."""
    sys.path.insert(0, str(ROOT))  # some tests measure with benchmarks.measure
    import torch

    import practice.inside

    importlib.import_module("hypothesis.strategies")
    for test in sorted((ROOT / "tests" / "llmcore").glob(f"test_{module}.py")):
        for name in re.findall(
            r"^(?:from|import) (\w[\w.]*)", test.read_text(encoding="utf-8"), re.MULTILINE
        ):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    torch.set_num_threads(1)
    assert practice.inside
    gc.collect()
    gc.freeze()


def main() -> None:
    r"""Serve jobs until the input ends."""
    preload(sys.argv[1])
    from practice.inside import known_looks

    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def send(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=out)

    send({"ready": True})
    judged: set[str] = set()
    for line in sys.stdin:
        job = json.loads(line)
        if FORK and job["exercise"] in judged:  # from the second answer on, what is known is known here
            known_looks(find(job["exercise"]))
        judged.add(job["exercise"])
        send({"report": (_forked if FORK else _judge)(job, send)})
        if not FORK:  # neither what the answer left behind nor its guard matters any more
            out.flush()
            os._exit(0)


def _judge(job: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    r"""Judge in this process; `send` is told of the progress."""
    from practice.inside import judge

    def tell(done: int, total: int) -> None:
        send({"done": done, "total": total})

    return judge(find(job["exercise"]), job["text"], job["path"], tell, job["first"])


def _forked(job: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    r"""Judge in a fork, and say how it ended where it does not say so itself."""
    reading, writing = os.pipe()
    token = secrets.token_hex(8)
    child = os.fork()
    if child == 0:
        os.close(reading)
        _child(job, writing, token)
    os.close(writing)
    deadline, pending, report = time.monotonic() + WALL, b"", None
    timed_out = False
    while report is None:
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(reading, 65536) if ready else b""
        if not ready:
            timed_out = True
        if not chunk:
            break
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            if line.startswith(token.encode()):
                message = json.loads(line[len(token) :])
                if "verdict" in message or "broken" in message:
                    report = message
                else:
                    send(message)
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if report is not None:
        return report
    return ended(os.waitstatus_to_exitcode(status), timed_out)


def _child(job: dict[str, Any], writing: int, token: str) -> None:
    r"""Judge; never returns."""

    def send(message: dict[str, Any]) -> None:
        data = f"{token}{json.dumps(message)}\n".encode()
        while data:
            data = data[os.write(writing, data) :]

    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        folder = Path.cwd() / str(os.getpid())
        folder.mkdir()
        os.chdir(folder)
        _limit()
        sys.dont_write_bytecode = True
        send(_judge(job, send))
    except Exception:  # a fault of ours: the answer's own are in the report
        send({"broken": traceback.format_exc()})
    finally:
        os._exit(0)


def _limit() -> None:
    r"""Bound processor time, memory and files; what the judge itself has is on top."""
    if resource is None:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 * 2**20, 16 * 2**20))
    status = Path("/proc/self/status")
    if status.is_file():
        has = int(re.search(r"VmData:\s+(\d+)", status.read_text())[1]) * 1024  # type: ignore[index]
        resource.setrlimit(resource.RLIMIT_DATA, (has + MEMORY, has + MEMORY))


if __name__ == "__main__":
    main()
