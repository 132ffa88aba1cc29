r"""Runs in a process of its own: an answer takes the reference's place, and the reference's tests judge it.

Nothing of the answer runs anywhere else. What comes out is a report of plain data; `verdict` words it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import io
import linecache
import os
import re
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import pytest
import torch
from hypothesis import Phase, settings
from hypothesis.configuration import set_hypothesis_home_dir
from torch import nn
from torch.overrides import TorchFunctionMode

from practice import probes
from practice.adapt import adapted, unmatched
from practice.catalogue import ROOT, Exercise
from practice.source import empty, reference, untouched, wrong_answer

CATEGORIES = ("shape", "value", "gradient", "dtype", "error", "memory")
SECONDS = float(os.environ.get("PRACTICE_SECONDS", "10"))  # of one test, and of importing the answer
PRINTED = 2_000  # characters that are kept
GUARDED = (  # modules that the verdict rests on
    *("builtins", "math", "torch", "torch.nn", "torch.nn.functional", "torch.testing", "torch.autograd"),
    *(
        "torch.testing._comparison",
        "pytest",
        "_pytest.python_api",
        "_pytest.raises",
        "_pytest.runner",
        "hypothesis",
    ),
)
Report = dict[str, Any]
ORIGINALS: dict[
    tuple[str, str], Any
] = {}  # llmcore's own, by module and name, before any answer took their place


class TimeUp(BaseException):
    r"""A test, or the import of the answer, took too long; no `except Exception` holds it up."""


class Forbidden(BaseException):
    r"""The answer calls what would be the answer."""


class Outside(BaseException):
    r"""The answer reaches for files, processes or the network."""


def judge(exercise: Exercise, text: str, path: str, tell: Callable[[int, int], None], first: bool) -> Report:
    r"""Judge an answer.

    Args:
        exercise: What was to be written.
        text: The answer, a Python file.
        path: Where its author has it, for messages.
        tell: Is called with the number of tests done and of all.
        first: Stop at the first test that fails.

    Returns:
        The report: `verdict` is `passed` or what was wrong first, and the rest says where and how.
    """
    try:
        missing = untouched(text, exercise.symbols)
    except ValueError as error:  # a NUL byte
        return {"verdict": "import", "error": str(error)}
    except SyntaxError as error:
        return {"verdict": "import", "line": error.lineno, "error": f"SyntaxError: {error.msg}"}
    if len(missing) == len(exercise.symbols) and empty(text, exercise.symbols):
        return {"verdict": "not attempted", "missing": missing}
    if named := forbidden_names(text, exercise):
        return {"verdict": "forbidden", "line": named[0][1], "name": named[0][0]}
    before = snapshot()
    state = torch_state()
    set_hypothesis_home_dir(Path.cwd() / "hypothesis")
    guard_system()
    printed = Printed()
    sys.stdout = sys.stderr = printed  # type: ignore[assignment]
    report: Report = {}
    try:
        answer = place(exercise, text, path)
        if answer.missing:
            return {"verdict": "import", "missing": answer.missing,
                    "error": f"NameError: {', '.join(answer.missing)} not defined"}  # fmt: skip
        with time_limit(SECONDS):
            report |= examine(exercise, answer, path, tell, first)
    except TimeUp:
        report |= {"verdict": "time", "error": f"{SECONDS:g} s", **where(sys.exc_info()[1], path)}
    except Forbidden as error:
        report |= {"verdict": "forbidden", "name": str(error), **where(error, path)}
    except Outside as error:
        report |= {"verdict": "tampered", "changed": str(error), **where(error, path)}
    except MemoryError as error:
        report |= {"verdict": "limit", "error": repr(error), **where(error, path)}
    except Exception as error:
        report |= {"verdict": "import", "error": said(error), **where(error, path)}
    except BaseException as error:  # SystemExit, KeyboardInterrupt, what ends a test run
        report |= {"verdict": "exit", "error": repr(error), **where(error, path)}
    report["printed"] = printed.kept
    report["printed_characters"] = printed.count
    if missing:
        report["missing"] = missing
    if changed := (state_changes(state) or changes(before, exercise)):
        report |= {"verdict": "tampered", "changed": changed}
    return report


# the answer in its place


class Placed(NamedTuple):
    r"""The answer's definitions as the tests see them, and the names of those that it lacks."""

    definitions: list[Any]
    missing: list[str]


def place(exercise: Exercise, text: str, path: str) -> Placed:
    r"""Run the answer's file and put its definitions where the tests will import them from."""
    home = importlib.import_module(f"llmcore.{exercise.module}")
    originals = {
        name: ORIGINALS.setdefault((exercise.module, name), getattr(home, name)) for name in exercise.symbols
    }
    for name in exercise.symbols:  # whoever imports the answer from llmcore gets none
        setattr(home, name, StandIn(name))
    module = types.ModuleType(f"answer_{exercise.name.replace('-', '_')}")
    module.__file__ = str(Path("answer.py").absolute())  # a copy: the author's own file is never opened
    Path(module.__file__).write_text(text, encoding="utf-8")
    sys.modules[module.__name__] = module
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    with time_limit(SECONDS):
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
    definitions, missing = [], []
    for name in exercise.symbols:
        theirs = vars(module).get(name)
        if isinstance(theirs, StandIn):
            raise Forbidden(f"llmcore's own {name}")
        if theirs is None or not callable(theirs):
            missing.append(name)
            continue
        ours = originals[name]
        if _is_module(ours) and _is_module(theirs):
            theirs = adapted(theirs, ours)
        definitions.append(theirs)
        setattr(home, name, theirs)
    return Placed(definitions, missing)


def _is_module(definition: Any) -> TypeGuard[type[nn.Module]]:
    return isinstance(definition, type) and issubclass(definition, nn.Module)


class StandIn:
    r"""Stands in llmcore for what is to be written, and says so when it is called."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise Forbidden(f"llmcore's own {self.name}")

    def __mro_entries__(self, bases: Any) -> Any:
        raise Forbidden(f"llmcore's own {self.name}")


def forbidden_names(text: str, exercise: Exercise) -> list[tuple[str, int]]:
    r"""Return the forbidden names that a file uses, with their lines; what it defines itself is its own."""
    found = []
    tree = ast.parse(text)
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names = [node.id] if node.id not in own else []
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if node.module == f"llmcore.{exercise.module}":
                found += [(n, node.lineno) for n in names if n in (*exercise.symbols, *exercise.parts)]
        found += [(name, getattr(node, "lineno", 1)) for name in names if name in exercise.forbidden]
    return sorted(found, key=lambda each: each[1])


class Watch(TorchFunctionMode):
    r"""Refuses the forbidden functions of torch, however the answer comes by them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in self.names:
            raise Forbidden(name)
        return func(*args, **(kwargs or {}))


# the examination


def examine(
    exercise: Exercise, answer: Placed, path: str, tell: Callable[[int, int], None], first: bool
) -> Report:
    r"""Look at the probes, run the tests, say which known mistake it is."""
    with Watch(exercise.forbidden):
        seen = probes.look(exercise, answer.definitions)
    report = run_tests(exercise, path, tell, first)
    if report["verdict"] != "passed":
        report["diagnosis"] = known_mistakes(exercise, seen)
    return report


def known_mistakes(exercise: Exercise, seen: dict[str, probes.Outcome]) -> list[str]:
    r"""Return which of the exercise's wrong variants explain what was seen."""
    return probes.diagnose(seen, *known_looks(exercise))


@functools.cache
def known_looks(exercise: Exercise) -> tuple[dict[str, probes.Outcome], dict[str, dict[str, probes.Outcome]]]:
    r"""Return what the reference does, and what each of the known mistakes."""
    with (
        contextlib.redirect_stdout(Printed()),
        contextlib.redirect_stderr(Printed()),
    ):  # not the answer's words
        right = looks_of(exercise, reference(exercise))
        return right, {each.name: looks_of(exercise, wrong_answer(exercise, each)) for each in exercise.wrong}


def looks_of(exercise: Exercise, text: str) -> dict[str, probes.Outcome]:
    r"""Return what an answer of ours does; it is not put into any place."""
    home = importlib.import_module(f"llmcore.{exercise.module}")
    placed = {name: getattr(home, name) for name in exercise.symbols}
    try:
        answer = place(exercise, text, f"<{exercise.name}>")
        return probes.look(exercise, answer.definitions)
    finally:
        for name, definition in placed.items():
            setattr(home, name, definition)


def run_tests(exercise: Exercise, path: str, tell: Callable[[int, int], None], first: bool) -> Report:
    r"""Run those tests of the module that use the definitions, in the order of the categories."""
    plugin = Plugin(exercise, path, tell, first)
    settings = Path("pytest.ini").absolute()  # none of the repository's own
    settings.write_text("[pytest]\n", encoding="utf-8")
    off = "terminal", "cacheprovider", "warnings", "faulthandler", "tmpdir"
    options = ["--import-mode=importlib", "-s", *(f"-pno:{name}" for name in off)]
    places = {"-c": settings, "--rootdir": ROOT, "--confcutdir": exercise.tests.parent}
    options += [str(each) for pair in places.items() for each in pair]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    status = pytest.main([*options, str(exercise.tests)], plugins=[plugin])
    report = plugin.report()
    ran = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED
    if status not in ran or plugin.broken:
        report |= {"verdict": "import", "error": plugin.broken or f"pytest ended with {status!r}"}
    return report


class Plugin:
    r"""Chooses the tests, puts them in order, stops where a category fails, keeps what failed and how."""

    def __init__(self, exercise: Exercise, path: str, tell: Callable[[int, int], None], first: bool) -> None:
        self.exercise, self.path, self.tell, self.first = exercise, path, tell, first
        self.passed: dict[str, int] = dict.fromkeys(CATEGORIES, 0)
        self.failed: list[Report] = []
        self.remarks: list[Report] = []
        self.total = self.done = 0
        self.broken = ""

    def pytest_configure(self, config: pytest.Config) -> None:
        r"""Spare what nobody reads: a long report, and the smallest example that fails."""
        config.option.tbstyle = "native"
        settings.register_profile("judge", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("judge")

    def report(self) -> Report:
        r"""Return the verdict of the tests."""
        failed = sorted(self.failed, key=lambda each: CATEGORIES.index(each["category"]))
        verdict = failed[0]["verdict"] if failed else "passed"
        left = self.total - self.done
        return {
            "verdict": verdict,
            "passed": self.passed,
            "failed": failed,
            "remarks": self.remarks,
            "left": left,
        }

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        yield
        users = tests_of(self.exercise)
        chosen = [
            item
            for item in items
            if item.name.split("[")[0] in users and item.get_closest_marker("stronger") is None
        ]
        chosen.sort(key=lambda item: CATEGORIES.index(category(item)))
        items[:] = chosen
        self.total = len(chosen)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.broken = str(report.longrepr).strip().splitlines()[-1]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        last = self.failed[-1]["category"] if self.failed else None
        if last is not None and (category(item) != last or self.first or len(self.failed) >= 5):
            item.session.shouldstop = "enough"
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        state = torch_state()
        kind = category(item)
        rearm(SECONDS)
        outcome = yield
        rearm(SECONDS)
        self.done += 1
        self.tell(self.done, self.total)
        error = outcome.excinfo[1] if outcome.excinfo else None  # type: ignore[attr-defined]
        changed = state_changes(state)
        if error is None and not changed:
            self.passed[kind] += 1
            return
        found = describe(error, kind, item, self.path)
        if changed:
            found |= {"verdict": "tampered", "changed": changed}
        if kind == "memory" and "memory" not in self.exercise.judged:
            self.remarks.append(found)
        else:
            self.failed.append(found)
        if error is not None and not isinstance(error, Exception | pytest.fail.Exception):
            item.session.shouldstop = "enough"


def tests_of(exercise: Exercise) -> set[str]:
    r"""Return the tests that use the definitions, by themselves or through helpers of the file."""
    tree = ast.parse(exercise.tests.read_text(encoding="utf-8"))
    uses: dict[str, set[str]] = {}
    for node in tree.body:
        names = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            uses[node.name] = names | {arg.arg for arg in ast.walk(node) if isinstance(arg, ast.arg)}
        elif isinstance(node, ast.Assign):
            uses |= {t.id: names for t in node.targets if isinstance(t, ast.Name)}
    wanted = set(exercise.symbols)
    while more := {name for name, names in uses.items() if names & wanted} - wanted:
        wanted |= more
    return {name for name in wanted if name.startswith("test_")}


def category(item: pytest.Item) -> str:
    r"""Return what a test is about, by its marks, what it asks for and its name."""
    name = item.name.lower()
    fixtures = getattr(item, "fixturenames", ())
    if item.get_closest_marker("memory") or "largest_tensor" in fixtures:
        return "memory"
    if "refuses" in fixtures or "refuse" in name or "raises" in name or "must_be" in name:
        return "error"
    if "as_close" in fixtures or re.search(
        r"float16|overflow|nan|infinit|finite|dtype(s|_)|extreme|huge|far_|low_precision|rounded|thousandth",
        name,
    ):
        return "dtype"
    if "grad" in name:
        return "gradient"
    return "shape" if re.search(r"shape", name.split("[")[0]) else "value"


def describe(error: BaseException | None, kind: str, item: pytest.Item, path: str) -> Report:
    r"""Say what a failed test found."""
    line = item.location[1]
    found: Report = {
        "category": kind,
        "verdict": kind,
        "test": f"{Path(item.location[0]).name}:{(line or 0) + 1}",
        "name": item.name,
    }
    if error is None:
        return found
    if type(error).__name__ == "Difference":
        found |= error.facts  # type: ignore[attr-defined]
        found["category"] = found["verdict"] = verdict_of(found, kind)
        return found
    place = where(error, path)
    if isinstance(error, TimeUp):
        return found | {"verdict": "time", "error": f"{SECONDS:g} s"} | place
    if isinstance(error, SystemExit):
        return found | {"verdict": "exit", "error": repr(error)} | place
    if isinstance(error, Forbidden):
        return found | {"verdict": "forbidden", "name": str(error)} | place
    if (
        isinstance(error, MemoryError)
        or "can't allocate memory" in str(error)
        or "not enough memory" in str(error)
    ):
        return found | {"verdict": "limit", "error": said(error)} | place
    if isinstance(error, Outside):
        return found | {"verdict": "tampered", "changed": str(error)} | place
    if re.search(r"does not require grad|not have been used in the graph", str(error)):
        return found | {"category": "gradient", "verdict": "gradient", "message": "no gradient"}
    if unmatched and re.search(r"loading state_dict|_proj(?:_|\.)(?:weight|bias)", str(error)):
        theirs, ours = unmatched[-1]
        lists = [
            ", ".join(f"{name} {list(shape)}" for name, shape in each.items()) for each in (theirs, ours)
        ]
        return found | {"verdict": "parameters", "theirs": lists[0], "ours": lists[1]}
    if isinstance(error, AssertionError | pytest.fail.Exception) or not place:
        return found | {"message": said(error)}
    return (
        found
        | {"verdict": "error" if kind == "error" else "raised", "error": said(error), "raised": True}
        | place
    )


def verdict_of(found: Report, kind: str) -> str:
    r"""Return the category of a difference: what differs counts more than what the test is about."""
    if found["kind"] == "shape":
        return "shape"
    if found["kind"] == "dtype":
        return "dtype"
    return "gradient" if found["part"].startswith("gradient") and kind == "value" else kind


def said(error: BaseException) -> str:
    r"""Return the error as Python prints it, one line of it or a few."""
    lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return "\n".join(lines[:6])


def where(error: BaseException | None, path: str) -> Report:
    r"""Return the last line of the answer that an error came through."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    own = [frame for frame in frames if frame.filename == path]
    return {"line": own[-1].lineno, "code": (own[-1].line or "").strip()} if own else {}


# what an answer must leave alone


class Printed(io.TextIOBase):
    r"""Keeps the beginning of what is printed, and counts the rest."""

    def __init__(self) -> None:
        self.kept, self.count = "", 0

    def write(self, text: str) -> int:
        self.count += len(text)
        self.kept += text[: max(0, PRINTED - len(self.kept))]
        return len(text)


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    r"""Raise TimeUp when it takes longer."""

    def ring(*_: Any) -> None:
        raise TimeUp

    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, ring)
    rearm(seconds)
    try:
        yield
    finally:
        rearm(0)


def rearm(seconds: float) -> None:
    r"""Let the time limit count from now; 0 stops it."""
    if hasattr(signal, "SIGALRM"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
# What Python tells an audit hook of; the answer works on tensors alone.
CALLS = ("fork", "forkpty", "exec", "posix_spawn", "system", "kill", "killpg")
CHANGES = ("remove", "rename", "rmdir", "mkdir", "truncate", "chmod", "chown", "link", "symlink")
PROCESSES = {*(f"os.{name}" for name in CALLS), "subprocess.Popen", "socket.connect", "socket.bind"}
FILES = {*(f"os.{name}" for name in CHANGES), "shutil.rmtree", "shutil.move"}


def guard_system() -> None:
    r"""Let this process write into its own folder alone, start no other and speak to nobody, from now on."""
    folder = f"{Path.cwd()}{os.sep}"

    def outside(name: Any) -> bool:
        return not os.path.abspath(os.fsdecode(name)).startswith(folder)  # noqa: PTH100 (no link is followed)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        is_path = bool(args) and isinstance(args[0], str | bytes | os.PathLike)
        if event in PROCESSES or (event in FILES and is_path and outside(args[0])):
            raise Outside(f"{event}({', '.join(map(str, args))!s:.60})")
        if event == "open" and is_path and args[2] & WRITING and outside(args[0]) and args[0] != os.devnull:
            raise Outside(f"open({os.fsdecode(args[0])!r}, {args[1]!r})")

    sys.addaudithook(hook)


def guarded() -> dict[str, Any]:
    r"""Return what the verdict rests on: modules and classes, by name."""
    homes: dict[str, Any] = {name: sys.modules[name] for name in GUARDED if name in sys.modules}
    homes |= {name: module for name, module in sys.modules.items() if name.startswith("llmcore.")}
    classes = torch.Tensor, torch.Generator, nn.Module, nn.Linear
    return homes | {f"{each.__module__}.{each.__name__}": each for each in classes}


def snapshot() -> dict[tuple[str, str], Any]:
    r"""Return their functions and classes."""
    return {
        (home, name): value
        for home, owner in guarded().items()
        for name, value in [*vars(owner).items(), *_inherited(owner)]
        if callable(value)
    }


def _inherited(owner: Any) -> list[tuple[str, Any]]:
    r"""Return what a class has from those above it; for a module, nothing."""
    names = set(dir(owner)) - set(vars(owner)) if isinstance(owner, type) else ()
    return [(name, inspect.getattr_static(owner, name, None)) for name in names]


def changes(before: dict[tuple[str, str], Any], exercise: Exercise) -> str:
    r"""Return the first of them that is another now; the places of the answer are left out."""
    homes = guarded()
    for (home, name), value in before.items():
        if home == f"llmcore.{exercise.module}" and name in exercise.symbols:
            continue
        if home not in homes or inspect.getattr_static(homes[home], name, None) is not value:
            return f"{home}.{name}"
    return ""


def torch_state() -> dict[str, Any]:
    r"""Return torch's settings for the whole process."""
    return {
        "torch.get_default_dtype()": torch.get_default_dtype(),
        "torch.is_grad_enabled()": torch.is_grad_enabled(),
        "torch.is_inference_mode_enabled()": torch.is_inference_mode_enabled(),
        "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled(),
        "torch.get_num_threads()": torch.get_num_threads(),
        "torch.is_autocast_enabled('cpu')": torch.is_autocast_enabled("cpu"),
        "torch.get_default_device()": torch.get_default_device(),
    }


def state_changes(before: dict[str, Any]) -> str:
    r"""Return the first setting that is another one now, and bring all back."""
    after = torch_state()
    different = [name for name, value in before.items() if after[name] != value]
    if not different:
        return ""
    torch.set_default_dtype(before["torch.get_default_dtype()"])
    torch.set_grad_enabled(before["torch.is_grad_enabled()"])
    torch.use_deterministic_algorithms(before["torch.are_deterministic_algorithms_enabled()"])
    torch.set_num_threads(before["torch.get_num_threads()"])
    return f"{different[0]}: {before[different[0]]} → {after[different[0]]}"
