"""Runs one published block in this process, as if it were the only program there is, and says where it failed.

torch is imported once for all blocks. Each block, with those that it continues, gets a fresh `__main__` module, an empty
working directory and a random seed; whatever it changes (environment, defaults, seeds, patched modules) is put back.
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
from typing import Any, NoReturn

from tests.site.ledger import Block, Origin

LIMIT = 1_000_000  # characters of output
FUTURE = {name: getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}


class BlockError(Exception):
    """A block that ended otherwise than by running to its end, or by an error that it may show on purpose."""

    def __init__(self, message: str, at: Origin | None = None) -> None:
        super().__init__(message)
        self.at = at


class Timeout(BaseException):
    """Ends an endless loop; no `except Exception` in the block catches it."""


def run(block: Block, root: Path, seconds: float) -> str:
    """Run a block after those that it continues.

    Args:
        block: what to run.
        root: the root of the repository, to which origins are relative.
        seconds: how long it may take.

    Returns:
        What it printed; the blocks before it print for themselves.

    Raises:
        BlockError: it exits with an error, does not end, prints without end, or leaves a thread running.
        Exception: whatever it raises.
    """
    output = ""
    with _alone(block, root) as module, _limited(seconds):
        threads = set(threading.enumerate())
        for part in block.chain():
            written = _Limited()
            with contextlib.redirect_stdout(written):
                try:
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
                finally:
                    output = written.getvalue()
        left = [
            thread.name for thread in threading.enumerate() if thread not in threads and not thread.daemon
        ]
        if left:
            raise BlockError(f"left a thread running: {', '.join(left)}")
    return output


class _Limited(io.StringIO):
    """Standard output that does not grow without end."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > LIMIT:
            raise BlockError(f"printed more than {LIMIT} characters")
        return super().write(text)


def _run_statements(block: Block, root: Path, module: types.ModuleType) -> None:
    """Run each statement compiled under the file and line it came from; one stitched from several files has a name of its own."""
    text = "\n".join(block.lines) + "\n"
    virtual = _virtual(block)
    linecache.cache[virtual] = (len(text), None, text.splitlines(keepends=True), virtual)
    flags = 0
    for statement in compile(text, virtual, "exec", ast.PyCF_ONLY_AST, dont_inherit=True).body:
        first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))])
        origins = [line.origin for line in block.lines[first - 1 : statement.end_lineno]]
        name, shift = virtual, 0
        if all(origin == (origins[0].path, origins[0].line + i) for i, origin in enumerate(origins)):
            name, shift = str(root / origins[0].path), origins[0].line - first
        ast.increment_lineno(statement, shift)
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                flags |= FUTURE.get(alias.name, 0)
        code = compile(ast.Module([statement], []), name, "exec", flags, dont_inherit=True)
        exec(code, vars(module))


def _run_console(block: Block, root: Path, module: types.ModuleType) -> None:
    """Run a console session: every prompt, each result compared by doctest's rules."""
    text = "\n".join(block.lines) + "\n"
    test = doctest.DocTestParser().get_doctest(text, {}, _virtual(block), str(root / block.opening.path), 0)
    if not test.examples:
        raise BlockError("a console session without a prompt (>>>)")
    test.globs = vars(module)
    runner = doctest.DebugRunner(verbose=False)
    try:
        runner.run(test, clear_globs=False)
    except doctest.DocTestFailure as failure:
        at = block.lines[failure.example.lineno].origin
        raise BlockError(
            f"expected {failure.example.want.strip()!r}, got {failure.got.strip()!r}", at
        ) from None
    except doctest.UnexpectedException as failure:
        at, error = block.lines[failure.example.lineno].origin, failure.exc_info[1]
        raise BlockError(f"{type(error).__name__}: {error}", at) from error


def _virtual(block: Block) -> str:
    return f"<block at {block.opening}>"


def where(error: BaseException, block: Block, root: Path) -> list[tuple[Origin, str]]:
    """Return the lines of the repository that led to an error, the published one that failed first."""
    lines = {_virtual(part): part.lines for part in block.chain()}
    published = {line.origin for part in block.chain() for line in part.lines}

    def origin(file: str, number: int) -> Origin | None:
        if file in lines:
            shown = lines[file]
            return shown[min(number, len(shown)) - 1].origin if shown else block.opening
        path = Path(file)
        outside = "site-packages" in path.parts or path.is_relative_to(Path(__file__).parent)
        return (
            Origin(path.relative_to(root).as_posix(), number)
            if path.is_relative_to(root) and not outside
            else None
        )

    frames: list[Origin] = []
    if isinstance(error, SyntaxError) and error.filename in lines:
        frames = [found for found in [origin(error.filename, error.lineno or 1)] if found]
    cause: BaseException | None = error
    while cause is not None and not frames:
        if at := getattr(cause, "at", None):
            frames = [at]
        trace = cause.__traceback__
        while trace is not None:
            found = origin(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
            frames += [found] if found else []
            trace = trace.tb_next
        cause = cause.__cause__
    shown = [frame for frame in frames if frame in published]
    first = shown[-1] if shown else block.opening
    return [(place, _line(place, root)) for place in dict.fromkeys([first, *reversed(frames)])]


def _line(origin: Origin, root: Path) -> str:
    return linecache.getline(str(root / origin.path), origin.line).strip()


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Stop what does not end: by an alarm where there is one, else by an interrupt."""
    expired = threading.Event()

    def stop(*_: object) -> NoReturn:
        raise Timeout

    def interrupt() -> None:
        expired.set()
        _thread.interrupt_main()

    alarm = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    if alarm:
        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    else:
        timer.start()
    try:
        yield
    except Timeout as end:
        raise BlockError(f"Timeout: still running after {seconds:g} s") from end
    except KeyboardInterrupt as end:
        if expired.is_set():
            raise BlockError(f"Timeout: still running after {seconds:g} s") from end
        raise
    finally:
        timer.cancel()
        if alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _alone(block: Block, root: Path) -> Iterator[types.ModuleType]:
    """Give a block a world of its own and put the old one back."""
    module = types.ModuleType("__main__")
    module.__file__ = str(root / (block.lines[0].origin if block.lines else block.opening).path)
    watched = _patchable(root)
    kept = [(vars(each), dict(vars(each))) for each in watched]
    environment, path, argv, modules = dict(os.environ), list(sys.path), sys.argv, sys.modules["__main__"]
    randomness, stdin = random.getstate(), sys.stdin

    def no_exit(code: int = 0) -> NoReturn:
        raise BlockError(f"os._exit({code})")

    def no_input(prompt: object = "") -> NoReturn:
        raise BlockError("waits for input()")

    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        warnings.catch_warnings(),
        _torch_state(),
    ):
        with contextlib.chdir(folder):
            sys.argv, sys.modules["__main__"], sys.stdin = [module.__file__], module, io.StringIO()
            builtins.input, os._exit = no_input, no_exit  # type: ignore[assignment]
            random.seed()
            try:
                yield module
            finally:
                for names, old in kept:
                    names.update(old)
                os.environ.clear()
                os.environ.update(environment)
                sys.path[:], sys.argv, sys.modules["__main__"], sys.stdin = path, argv, modules, stdin
                random.setstate(randomness)


def _patchable(root: Path) -> list[types.ModuleType]:
    """Return the modules whose names a block might replace: the repository's own and those that it uses most."""
    names = {"builtins", "os", "random", "math", "time", "torch", "torch.nn", "torch.nn.functional"}
    ours = {path.stem for path in root.iterdir()} - {"tests", "conftest"}
    return [
        module for name, module in list(sys.modules.items()) if name in names or name.split(".")[0] in ours
    ]


@contextlib.contextmanager
def _torch_state() -> Iterator[None]:
    """Keep what torch and numpy hold for the whole process; the ambient seed is another one for each block."""
    torch: Any = sys.modules.get("torch")
    numpy: Any = sys.modules.get("numpy")
    if torch is None:
        yield
        return
    seed, threads, dtype = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
    deterministic, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    precision, printing = torch.get_float32_matmul_precision(), dict(vars(torch._tensor_str.PRINT_OPTS))
    drawn = numpy and (numpy.random.get_state(), numpy.get_printoptions())
    torch.seed()
    if numpy:
        numpy.random.seed()
    try:
        with (
            torch.autograd.set_grad_enabled(torch.is_grad_enabled()),
            torch.autograd.set_detect_anomaly(False),
        ):
            yield
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.set_float32_matmul_precision(precision)
        vars(torch._tensor_str.PRINT_OPTS).update(printing)
        torch.set_rng_state(seed)
        if numpy and drawn:
            numpy.random.set_state(drawn[0])
            numpy.set_printoptions(**drawn[1])
