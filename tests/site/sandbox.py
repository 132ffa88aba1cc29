"""Runs each published block in a process of its own, forked from one that has imported torch once for all.

So nothing leaks from one block to the next, whatever it is, and a block that exits, crashes, hangs in C or
floods ends alone. `Pool.submit` hands blocks to workers; each forks, watches, and tells the `Result`. Where
the system cannot fork, a fresh interpreter takes each block: slower, and otherwise the same.
"""

from __future__ import annotations
import __future__

import ast
import atexit
import contextlib
import doctest
import faulthandler
import importlib
import linecache
import os
import pickle
import queue
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import types
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from tests.site.blocks import Block, Origin

# the frameworks of macOS do not survive a fork; a test asks for the other way too
FORK = hasattr(os, "fork") and sys.platform != "darwin" and "BLOCKS_WITHOUT_FORK" not in os.environ
LIMIT = 1_000_000  # bytes of output
HOME = Path(__file__).resolve().parents[2]


@dataclass
class Job:
    """A block to run, after those that it continues."""

    block: Block
    root: Path
    seconds: float = 120.0
    path: tuple[str, ...] = ()  # comes first on sys.path
    warnings: Any = "error"  # what a warning does
    seed: int | None = None  # of the world around the block; another one each time if None
    threads: int = 1  # of torch


@dataclass
class Result:
    """How a block ended. Without `error` it ran to its end."""

    printed: str = ""
    error: str = ""  # "ValueError: …"
    kinds: list[str] = field(default_factory=list)  # the error's class and those it derives from
    places: list[Origin] = field(
        default_factory=list
    )  # the published line that failed, then those on the way
    files: list[str] = field(default_factory=list)  # modules of the repository that were loaded
    seconds: float = 0.0


class BlockError(Exception):
    """A block that ended neither by running to its end nor by an error of its own."""

    def __init__(self, message: str, at: Origin | None = None) -> None:
        super().__init__(message)
        self.at = at


# --- in pytest's process ------------------------------------------------------------------------------------


def preloaded(root: Path) -> list[str]:
    """Return the modules that pytest's settings of the repository say all blocks find imported."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["pytest"]["ini_options"]["published_preload"]


class Pool:
    """Workers that run blocks; `preload` are the modules that all blocks find imported."""

    def __init__(self, root: Path, preload: list[str], workers: int | None = None) -> None:
        self.root, self.workers = root, workers or os.cpu_count() or 1
        self.threads = ThreadPoolExecutor(self.workers)
        self.free: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self.command = [
            sys.executable,
            "-P",
            "-c",
            "from tests.site.sandbox import main; main()",
            *preload,
            "--",
        ]
        self.environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HOME), *sys.path])}
        if FORK:
            pairs = [socket.socketpair() for _ in range(self.workers)]
            fds = [theirs.fileno() for _, theirs in pairs]
            command = [*self.command, *map(str, fds)]
            self.parent = subprocess.Popen(command, cwd=root, env=self.environment, pass_fds=fds)
            for ours, theirs in pairs:
                theirs.close()
                self.free.put(Connection(ours.detach()))

    def submit(self, block: Block, **options: Any) -> Future[Result]:
        """Run a block as soon as a worker is free; the options are fields of `Job`."""
        options.setdefault("threads", max(1, (os.cpu_count() or 1) // self.workers))
        return self.threads.submit(self._run, Job(block, self.root, **options))

    def _run(self, job: Job) -> Result:
        if not FORK:
            return _watch(job, self._start)
        connection = self.free.get()
        try:
            connection.send(job)
            return connection.recv()
        except (EOFError, OSError) as error:
            return Result(error=f"the sandbox has ended: {error!r}", places=[job.block.opening])
        finally:
            self.free.put(connection)

    def _start(self, job: Job, folder: Path) -> tuple[Callable[[], int | None], Callable[[int], None]]:
        (folder / "job").write_bytes(pickle.dumps(job))
        process = subprocess.Popen([*self.command, str(folder)], cwd=self.root, env=self.environment)
        return process.poll, process.send_signal

    def close(self) -> None:
        """Drop what still waits, and end the workers."""
        self.threads.shutdown(cancel_futures=True)
        while not self.free.empty():
            self.free.get().close()
        if FORK:
            self.parent.wait()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# --- in the parent of all blocks, and in the workers --------------------------------------------------------


def main() -> None:
    """Import what all blocks find imported; then fork a worker a connection, or run one folder's job."""
    cut = sys.argv.index("--")
    for name in sys.argv[1:cut]:
        importlib.import_module(name)
    if not FORK:
        folder = Path(sys.argv[-1])
        _child(pickle.loads((folder / "job").read_bytes()), folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fds = [int(fd) for fd in sys.argv[cut + 1 :]]
    for mine in fds:
        if os.fork() == 0:
            for other in fds:
                if other != mine:
                    os.close(other)
            _serve(Connection(mine))
            os._exit(0)
    for fd in fds:
        os.close(fd)
    for _ in fds:
        os.wait()


def _serve(connection: Connection) -> None:
    """Run one job after the other until nobody asks any more."""
    with contextlib.suppress(EOFError):
        while True:
            connection.send(_watch(connection.recv(), _fork))


def _fork(job: Job, folder: Path) -> tuple[Callable[[], int | None], Callable[[int], None]]:
    pid = os.fork()
    if pid == 0:
        end = os._exit
        try:
            os.setpgid(0, 0)
            _child(job, folder)
        finally:  # whatever the block did to its process, it does not become a second worker
            end(1)

    def poll() -> int | None:
        done, status = os.waitpid(pid, os.WNOHANG)
        if not done:
            return None
        with contextlib.suppress(ProcessLookupError):  # what it started and left behind
            os.killpg(pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(status)

    return poll, lambda number: os.kill(pid, number)


def _watch(job: Job, start: Callable[[Job, Path], Any]) -> Result:
    """Start a job, wait for its end, and put one to it where there is none."""
    began, said, pause = time.perf_counter(), "", 0.001
    folder = Path(tempfile.mkdtemp())
    out, trace = folder / "out", folder / "trace"
    for file in (out, trace):
        file.touch()
    (folder / "at").write_text("\n".join(map(str, job.block.opening)), encoding="utf-8")
    try:
        poll, kill = start(job, folder)
        while (status := poll()) is None:
            time.sleep(pause)
            pause = min(pause * 1.2, 0.01)
            if not said and out.stat().st_size > LIMIT:
                said = f"prints more than {LIMIT} bytes"
                kill(signal.SIGABRT)  # faulthandler then says where it was
            elif time.perf_counter() - began > job.seconds + 5:
                said = f"Timeout: still running after {job.seconds:g} s"
                kill(signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
        if (folder / "result").exists() and not said:
            result: Result = pickle.loads((folder / "result").read_bytes())
        else:
            text = trace.read_text(encoding="utf-8", errors="replace")
            if "Timeout (" in text:
                said = f"Timeout: still running after {job.seconds:g} s"
            frames = re.findall(r'File "(.*)", line (\d+) in', text) or [
                (folder / "at").read_text("utf-8").split("\n")
            ]
            places = _places(job, [(name, int(number)) for name, number in reversed(frames)])
            result = Result(error=said or f"ended its process, exit status {status}", places=places)
        result.printed = out.read_text(encoding="utf-8", errors="replace")[:LIMIT]
        result.seconds = time.perf_counter() - began
        return result
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- in the process of one block ----------------------------------------------------------------------------


def _child(job: Job, folder: Path) -> NoReturn:
    """Run the job as if it were the only program there is, write its result, and end the process."""
    me, really_exit, died = os.getpid(), os._exit, list[BaseException]()
    trace, names = _redirect(folder), sys.modules["builtins"].__dict__
    known = dict(names)  # a block may break even these
    faulthandler.enable(trace)
    faulthandler.dump_traceback_later(job.seconds, exit=True, file=trace)

    def no_exit(code: int = 0) -> NoReturn:
        if os.getpid() != me:  # a process that the block has started
            really_exit(code)
        died.append(BlockError(f"os._exit({code})"))
        raise died[-1]

    result = Result()
    try:
        module = _world(job, folder)
        setattr(os, "_exit", no_exit)  # noqa: B010
        threading.excepthook = lambda args: died.append(args.exc_value or BlockError("a thread died"))
        sys.unraisablehook = lambda args: died.append(_seen_from_here(args.exc_value))
        for part in job.block.chain():
            sys.stdout.flush()
            os.ftruncate(1, 0)  # what earlier blocks print is not this one's output
            try:
                if part.console:
                    _run_console(part, job.root, module)
                else:
                    _run_statements(part, job.root, module, folder / "at")
            except SystemExit as end:
                if end.code not in (None, 0):
                    raise
            except Exception:
                if part is job.block or not any("xfail" in mark for mark in part.marks):
                    raise
        names.update(known)
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        if died:
            raise died[0]
    except BaseException as error:
        names.update(known)
        kinds = [kind.__name__ for kind in type(error).__mro__]
        try:
            said = error.msg if isinstance(error, SyntaxError) else str(error)
        except Exception:
            said = "(an error that cannot be printed)"
        text = said if isinstance(error, BlockError) else f"{kinds[0]}: {said}".rstrip(": ")
        path, line = (folder / "at").read_text(encoding="utf-8").split("\n")
        result = Result(error=text, kinds=kinds, places=_places(job, [(path, int(line)), *_frames(error)]))
    with contextlib.suppress(Exception):  # the block may have closed it
        sys.stdout.flush()
    if os.getpid() == me:
        loaded = {Path(file) for each in [*sys.modules.values()] if (file := getattr(each, "__file__", None))}
        result.files = sorted(f.relative_to(job.root).as_posix() for f in loaded if _ours(f, job.root))
        (folder / "part").write_bytes(pickle.dumps(result))
        (folder / "part").rename(folder / "result")
    really_exit(0)


def _redirect(folder: Path) -> Any:
    """Send what is printed, by Python or below it, to files; there is no input. Returns standard error."""
    for number, name in ((1, "out"), (2, "trace")):
        target = os.open(folder / name, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        os.dup2(target, number)
        os.close(target)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", newline="\n", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
    return sys.stderr


def _world(job: Job, folder: Path) -> types.ModuleType:
    """Give the block an empty folder, a `__main__`, random seeds, and nothing else of anybody's."""
    here = folder / "cwd"
    here.mkdir()
    os.chdir(here)
    atexit._clear()
    warnings.resetwarnings()
    warnings.simplefilter(job.warnings)
    if FORK:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[:] = [*job.path, str(job.root), *(entry for entry in sys.path if entry != str(HOME))]
    seed = int.from_bytes(os.urandom(4), "big") if job.seed is None else job.seed
    random.seed(seed)
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if numpy:
        numpy.random.seed(seed)
    if torch:
        torch.manual_seed(seed)
        torch.set_num_threads(job.threads)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__file__ = str(
        job.root / (job.block.lines[0].origin if job.block.lines else job.block.opening).path
    )
    sys.argv = [module.__file__]
    return module


def _run_statements(block: Block, root: Path, module: types.ModuleType, at: Path) -> None:
    """Run each statement under its own file and line, or under a name of the block's where it mixes files."""
    text, virtual, flags = "\n".join(block.lines) + "\n", _virtual(block), 0
    linecache.cache[virtual] = (len(text), None, [f"{line}\n" for line in block.lines], virtual)
    compile(text, virtual, "exec", dont_inherit=True)  # what is wrong with the block as a whole
    codes: list[tuple[Origin, types.CodeType]] = []
    for index, statement in enumerate(ast.parse(text, virtual).body):
        if index and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # alone it would be taken for the documentation of the module
        first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))])
        origins = [line.origin for line in block.lines[first - 1 : statement.end_lineno]]
        name, (path, line) = virtual, origins[0]
        if origins == [(path, line + i) for i in range(len(origins))]:
            name = str(root / path)
            ast.increment_lineno(statement, line - first)
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:
                flags |= getattr(__future__, alias.name).compiler_flag
        code = compile(ast.Module([statement], []), name, "exec", flags, dont_inherit=True)
        codes.append(
            (origins[statement.lineno - line if name != virtual else statement.lineno - first], code)
        )
    run, note = exec, at.write_text
    for origin, code in codes:
        note(f"{origin.path}\n{origin.line}", encoding="utf-8")  # for an end that leaves no traceback
        run(code, vars(module))


def _run_console(block: Block, root: Path, module: types.ModuleType) -> None:
    """Run a console session, each result compared by doctest's rules."""
    text = "\n".join(block.lines) + "\n"
    try:
        test = doctest.DocTestParser().get_doctest(
            text, {}, _virtual(block), str(root / block.opening.path), 0
        )
    except ValueError as error:
        number = re.search(r"line (\d+) of", str(error))
        raise BlockError(
            f"ValueError: {error}", block.lines[int(number[1]) - 1].origin if number else None
        ) from None
    if not test.examples:
        raise BlockError("a console session without a prompt (>>>)")
    for example in test.examples:
        if doctest.SKIP in example.options:
            raise BlockError("a doctest directive skips this line", block.lines[example.lineno].origin)
    test.globs = vars(module)
    try:
        exact = doctest.DONT_ACCEPT_TRUE_FOR_1
        doctest.DebugRunner(verbose=False, optionflags=exact).run(test, clear_globs=False)
    except doctest.DocTestFailure as failure:
        at, want, got = block.lines[failure.example.lineno].origin, failure.example.want, failure.got
        raise BlockError(f"output: expected {want.strip()!r}, got {got.strip()!r}", at) from None
    except doctest.UnexpectedException as failure:
        at, error = block.lines[failure.example.lineno].origin, failure.exc_info[1]
        raise BlockError(f"{type(error).__name__}: {error}", at) from error


def _seen_from_here(error: BaseException | None) -> BaseException:
    """Return an error that nobody can catch, with the statements during which it came in its traceback."""
    error = error or BlockError("an error nobody saw")
    trace, frame = error.__traceback__, sys._getframe(2)
    while frame is not None:
        trace = types.TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return error.with_traceback(trace)


def _virtual(block: Block) -> str:
    return f"<block at {block.opening}>"


def _ours(path: Path, root: Path) -> bool:
    return (
        path.is_relative_to(root)
        and "site-packages" not in path.parts
        and path.parent != Path(__file__).parent
    )


def _frames(error: BaseException) -> list[tuple[str, int]]:
    """Return the places in files that an error went through, the innermost last."""
    frames: list[tuple[str, int]] = []
    if isinstance(error, BlockError) and error.at:
        frames = [(error.at.path, error.at.line)]
    elif isinstance(error, SyntaxError) and error.filename:
        frames = [(error.filename, error.lineno or 1)]
    trace = error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return frames


def _places(job: Job, frames: list[tuple[str, int]]) -> list[Origin]:
    """Return the published line that failed, then the lines of the repository that led there."""
    virtual = {_virtual(part): [line.origin for line in part.lines] for part in job.block.chain()}
    published = {origin for origins in virtual.values() for origin in origins}
    found: list[Origin] = []
    for name, number in frames:
        if name in virtual:
            found += virtual[name][number - 1 :][:1] or virtual[name][-1:]
        elif not Path(name).is_absolute():
            found += [Origin(name, number)] if Origin(name, number) in published else []
        elif _ours(Path(name), job.root):
            found.append(Origin(Path(name).relative_to(job.root).as_posix(), number))
    first = next((origin for origin in reversed(found) if origin in published), job.block.opening)
    return list(dict.fromkeys([first, *found]))
