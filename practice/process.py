r"""The judge as its users call it: one warm process for as many answers as come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from practice.catalogue import HOME


class Judge:
    r"""Hands answers to `practice.worker`; a context manager.

        with Judge() as judge:
            report = judge(exercise.name, text, path)

    Raises:
        RuntimeError: If the worker cannot start, with what it says.
    """

    def __init__(self) -> None:
        self.worker: subprocess.Popen[str] | None = None

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
        path = os.pathsep.join([str(HOME.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.worker = subprocess.Popen(
            [sys.executable, "-m", "practice.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": path, "PYTHONUTF8": "1"},
        )
        self._next()

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
        while True:
            message = self._next()
            if "report" in message:
                return message["report"]
            tell(message["done"], message["total"])

    def close(self) -> None:
        r"""End the worker."""
        if self.worker is None:
            return
        self.worker.kill()
        self.worker.communicate()
        self.worker = None

    def _next(self) -> dict[str, Any]:
        assert self.worker is not None
        assert self.worker.stdout is not None
        line = self.worker.stdout.readline()
        if not line:
            _, said = self.worker.communicate()
            self.worker = None
            raise RuntimeError(
                "the judge could not start: " + (said.strip().splitlines() or ["no reason"])[-1]
            )
        return json.loads(line)
