"""Runs one published block in this process as if it were the only program there is, and says where it failed.

torch is imported once for all. Each block, after those that it continues, gets a fresh `__main__`, an empty
working directory and random seeds; what it changes (environment, defaults, patched modules) is put back.
"""

from __future__ import annotations
import __future__

import _thread
import ast
import builtins
import contextlib
import doctest
import io
import linecache
import os
import random
import signal
import sys
import tempfile
import threading
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tests.site.ledger import Block, Origin

LIMIT = 1_000_000  # characters of output


class BlockError(Exception):
    """A block that ended neither by running to its end nor by an error of its own."""

    def __init__(self, message: str, at: Origin | None = None) -> None:
        super().__init__(message)
        self.at = at


class Timeout(BaseException):
    """Ends an endless loop; no `except Exception` catches it."""


class Limited(io.StringIO):
    """Standard output with an end."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > LIMIT:
            raise BlockError(f"prints more than {LIMIT} characters")
        return super().write(text)


class Outcome(NamedTuple):
    """What a block printed, and the error that ended it."""

    printed: str
    error: Exception | None = None


def run(block: Block, root: Path, seconds: float) -> Outcome:
    """Run a block after those that it continues; what they print is not its output.

    Args:
        block: what to run.
        root: the root of the repository, to which origins are relative.
        seconds: how long it may take.

    Returns:
        Its output and its error: a `BlockError` where it exits with an error, does not end, prints too much,
        waits for input or leaves a thread running, else whatever it raised.
    """
    output = Limited()
    try:
        with _alone(block, root) as module, _limited(seconds):
            threads = set(threading.enumerate())
            for part in block.chain():
                output = Limited()
                try:
                    with contextlib.redirect_stdout(output):
                        (_run_console if part.console else _run_statements)(part, root, module)
                except SystemExit as end:
                    if end.code not in (None, 0):
                        raise BlockError(f"SystemExit: {end.code}") from end
                except Exception:
                    if part is block or not any("xfail" in mark for mark in part.marks):
                        raise
                except (Timeout, KeyboardInterrupt):
                    raise
                except BaseException as end:
                    raise BlockError(f"{type(end).__name__}: {end}") from end
            left = [thread.name for thread in set(threading.enumerate()) - threads if not thread.daemon]
            if left:
                raise BlockError(f"leaves a thread running: {', '.join(sorted(left))}")
    except Exception as error:
        return Outcome(output.getvalue(), error)
    return Outcome(output.getvalue())


def _run_statements(block: Block, root: Path, module: types.ModuleType) -> None:
    """Compile each statement under its own file and line, or a name of the block's where it mixes files."""
    text, virtual, flags = "\n".join(block.lines) + "\n", _virtual(block), 0
    linecache.cache[virtual] = (len(text), None, text.splitlines(keepends=True), virtual)
    for statement in ast.parse(text, virtual).body:
        first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))])
        origins = [line.origin for line in block.lines[first - 1 : statement.end_lineno]]
        name, (path, line) = virtual, origins[0]
        if origins == [(path, line + i) for i in range(len(origins))]:
            name = str(root / path)
            ast.increment_lineno(statement, line - first)
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                flags |= getattr(__future__, alias.name).compiler_flag
        exec(compile(ast.Module([statement], []), name, "exec", flags, dont_inherit=True), vars(module))


def _run_console(block: Block, root: Path, module: types.ModuleType) -> None:
    """Run a console session, each result compared by doctest's rules."""
    text = "\n".join(block.lines) + "\n"
    test = doctest.DocTestParser().get_doctest(text, {}, _virtual(block), str(root / block.opening.path), 0)
    if not test.examples:
        raise BlockError("a console session without a prompt (>>>)")
    test.globs = vars(module)
    try:
        doctest.DebugRunner(verbose=False).run(test, clear_globs=False)
    except doctest.DocTestFailure as failure:
        at, want, got = block.lines[failure.example.lineno].origin, failure.example.want, failure.got
        raise BlockError(f"output: expected {want.strip()!r}, got {got.strip()!r}", at) from None
    except doctest.UnexpectedException as failure:
        at, error = block.lines[failure.example.lineno].origin, failure.exc_info[1]
        raise BlockError(f"{type(error).__name__}: {error}", at) from error


def _virtual(block: Block) -> str:
    return f"<block at {block.opening}>"


def where(error: BaseException, block: Block, root: Path) -> list[Origin]:
    """Return the lines that led to an error, first the published one that failed."""
    virtual = {_virtual(part): [line.origin for line in part.lines] for part in block.chain()}
    published = {origin for origins in virtual.values() for origin in origins}

    def origin(file: str, number: int) -> list[Origin]:
        if file in virtual:
            return virtual[file][number - 1 :][:1] or virtual[file][-1:]
        path = Path(file)
        inside = path.is_relative_to(root) and not path.is_relative_to(Path(__file__).parent)
        inside = inside and "site-packages" not in path.parts
        return [Origin(path.relative_to(root).as_posix(), number)] if inside else []

    frames: list[Origin] = []
    cause: BaseException | None = error
    while cause is not None and not frames:
        if isinstance(cause, BlockError) and cause.at:
            frames = [cause.at]
        elif isinstance(cause, SyntaxError) and cause.filename in virtual:
            frames = origin(cause.filename, cause.lineno or 1)
        trace = cause.__traceback__
        while trace is not None:
            frames += origin(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
            trace = trace.tb_next
        cause = cause.__cause__
    first = next((frame for frame in reversed(frames) if frame in published), block.opening)
    return list(dict.fromkeys([first, *frames]))


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Stop what does not end: by an alarm where the system has one, else by an interrupt."""
    expired, before = threading.Event(), None

    def stop(*_: object) -> NoReturn:
        raise Timeout

    def interrupt() -> None:
        expired.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    alarm = hasattr(signal, "setitimer")
    if alarm:
        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    else:
        timer.start()
    try:
        yield
    except (Timeout, KeyboardInterrupt) as end:
        if isinstance(end, Timeout) or expired.is_set():
            raise BlockError(f"Timeout: still running after {seconds:g} s") from end
        raise
    finally:
        timer.cancel()
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _alone(block: Block, root: Path) -> Iterator[types.ModuleType]:
    """Give a block a world of its own, and put the old one back."""
    module = types.ModuleType("__main__")
    module.__file__ = str(root / (block.lines[0].origin if block.lines else block.opening).path)
    ours = {path.stem for path in root.iterdir()} - {"tests", "conftest"}
    theirs = {"builtins", "os", "sys", "random", "math", "time", "torch", "torch.nn", "torch.nn.functional"}
    found = [each for name, each in sys.modules.items() if name in theirs or name.split(".")[0] in ours]
    modules = [(vars(each), dict(vars(each))) for each in found]  # a name that the block replaces comes back
    known = set(sys.modules)
    environment, path, main, seed = (
        dict(os.environ),
        list(sys.path),
        sys.modules["__main__"],
        random.getstate(),
    )

    def no_exit(code: int = 0) -> NoReturn:
        raise BlockError(f"os._exit({code})")

    def no_input(*_: object) -> NoReturn:
        raise BlockError("waits for input()")

    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        contextlib.chdir(folder),
        warnings.catch_warnings(),
        _torch_state(),
    ):
        sys.argv, sys.modules["__main__"], sys.stdin = [module.__file__], module, io.StringIO()
        setattr(builtins, "input", no_input)  # noqa: B010 (neither may end or halt the run)
        setattr(os, "_exit", no_exit)  # noqa: B010
        random.seed()
        try:
            yield module
        finally:
            for names, old in modules:
                names.update(old)
            for name in set(sys.modules) - known:
                if name.split(".")[0] in ours:
                    del sys.modules[name]
            os.environ.clear()
            os.environ.update(environment)
            sys.path[:], sys.modules["__main__"] = path, main
            random.setstate(seed)


@contextlib.contextmanager
def _torch_state() -> Iterator[None]:
    """Keep what torch holds for the whole process; the ambient seed is another one for each block."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    options, threads = torch._tensor_str.PRINT_OPTS, torch.get_num_threads()
    printing, dtype, seed = dict(vars(options)), torch.get_default_dtype(), torch.get_rng_state()
    exact, lenient = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    precision = torch.get_float32_matmul_precision()
    torch.seed()
    try:
        with torch.set_grad_enabled(True), torch.autograd.set_detect_anomaly(False):
            yield
    finally:
        vars(options).update(printing)
        torch.set_default_device(None)
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
        torch.use_deterministic_algorithms(exact, warn_only=lenient)
        torch.set_rng_state(seed)
