r"""The judge as its users call it: one warm process for as many answers as come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from practice.catalogue import HOME

WALL = 120.0  # seconds of one answer, whatever it does


class Judge:
    r"""Hands answers to `practice.worker`; a context manager.

        with Judge() as judge:
            report = judge(exercise.name, text, path)

    Args:
        module: Of llmcore, where all answers will be to exercises of this one: it starts sooner.

    Raises:
        RuntimeError: If the worker cannot start, with what it says.
    """

    def __init__(self, module: str = "*") -> None:
        self.module = module
        self.worker: subprocess.Popen[str] | None = None
        self.folder: tempfile.TemporaryDirectory[str] | None = None  # where answers run, emptied at the end

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        r"""Start the worker, if it does not run yet; importing torch takes it some seconds."""
        if self.worker is not None and self.worker.poll() is None:
            return
        self.close()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        path = os.pathsep.join([str(HOME.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.worker = subprocess.Popen(
            [sys.executable, "-m", "practice.worker", self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=self.folder.name,
            env=os.environ | {"PYTHONPATH": path, "PYTHONUTF8": "1"},
        )
        if self._next() is None:
            said = self.worker.communicate()[1].strip().splitlines() or ["no reason given"]
            self.close()
            raise RuntimeError(f"the judge could not start: {said[-1]}")

    def __call__(
        self,
        exercise: str,
        text: str,
        path: str | Path,
        *,
        first: bool = False,
        tell: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, Any]:
        r"""Judge an answer.

        Args:
            exercise: Its exercise's name.
            text: The answer, a Python file.
            path: Where its author has it, for messages; it is not opened.
            first: Stop at the first test that fails.
            tell: Is called with how many tests are done, of how many.

        Returns:
            What `practice.inside.judge` returns.
        """
        self.start()
        assert self.worker is not None
        assert self.worker.stdin is not None
        job = {"exercise": exercise, "text": text, "path": str(path), "first": first}
        self.worker.stdin.write(json.dumps(job) + "\n")
        self.worker.stdin.flush()
        late: list[bool] = []
        worker = self.worker

        def end() -> None:
            late.append(True)
            worker.kill()

        overdue = threading.Timer(WALL + 30, end)  # a worker that forks keeps the time itself
        overdue.start()
        try:
            while (message := self._next()) is not None:
                if "report" in message:
                    if "broken" in message["report"]:
                        raise RuntimeError(
                            f"the judge has a fault of its own:\n{message['report']['broken']}"
                        )
                    return message["report"]
                tell(message["done"], message["total"])
        finally:
            overdue.cancel()
        code = self.worker.wait()
        return ended(code, bool(late))

    def close(self) -> None:
        r"""End the worker."""
        if self.worker is not None:
            self.worker.kill()
            self.worker.communicate()
            self.worker = None
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None

    def _next(self) -> dict[str, Any] | None:
        r"""Return the next message of the worker, None where it has ended."""
        assert self.worker is not None
        assert self.worker.stdout is not None
        line = self.worker.stdout.readline()
        return json.loads(line) if line else None


def ended(code: int, late: bool) -> dict[str, Any]:
    r"""Return the report on an answer that ended its process.

    Args:
        code: The exit code, negative where a signal ended it.
        late: It was ended as it took too long.
    """
    if late or code == -getattr(signal, "SIGXCPU", 0):
        return {"verdict": "time", "error": f"{WALL:g} s"}
    if code < 0:
        return {"verdict": "crash", "error": signal.Signals(-code).name}
    return {"verdict": "exit", "error": f"os._exit({code})"}
