r"""Small faults of llmcore, one at a time, and how many of them the tests notice.

    python -m tests.drift.mutants                       all tests of tests/llmcore
    python -m tests.drift.mutants --blocks              the blocks of the published pages alone
    python -m tests.drift.mutants --module attention    the faults of one file
    python -m tests.drift.mutants --sample 100          every so many of them

A parent imports once what the tests import; each fault gets a fork of it that runs the tests on a copy of the
tree. The tests of the file's own module come first, the others only where those pass. Verdicts are kept in
`--scratch` as they come, so that a run which was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import hashlib
import importlib
import math
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.drift.mutations import Mutant, mutants
from tests.drift.noise import published
from tests.site.blocks import Block, Line, Origin
from tests.site.judge import judge as judge_block
from tests.site.sandbox import Pool, Result, preloaded

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
WORKERS = 2
SECONDS = 300  # of processor time; all tests take 40
COPIED = "llmcore", "tests/llmcore", "benchmarks"
OURS = {"llmcore", "tests", "benchmarks", "conftest"}  # packages of which each fork imports its own copy


def equivalents() -> dict[str, str]:
    r"""Return the reason for each fault that changes nothing; in the file it stands below the faults."""
    reasons, waiting = dict[str, str](), list[str]()
    for line in EQUIVALENT.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            reasons |= dict.fromkeys(waiting, line.strip())
            waiting = []
        elif line and not line.startswith("#"):
            waiting.append(line)
    if waiting:
        raise SystemExit(f"{EQUIVALENT.name}: no reason below {waiting[0]}")
    return reasons


def copy(folder: Path) -> None:
    r"""Copy what the tests need to a folder."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "pyproject.toml").write_text("".join(x for x in settings if not x.startswith("published_")))


def forked(work: Callable[[], int], log: Path) -> int:
    r"""Do something in a fork of this process; return its exit status, negative where a signal ended it."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    status = 99
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(10 * SECONDS)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        status = work()
        sys.stdout.flush()
    finally:
        os._exit(status)


def run_tests(folder: Path, *tests: str) -> int:
    r"""Run tests of a copy in this process, which must not have imported any before."""
    os.chdir(folder)
    sys.path[:] = [str(folder), *(path for path in sys.path if Path(path or ".").resolve() != ROOT)]
    for name in [name for name in sys.modules if name.split(".")[0] in OURS]:
        del sys.modules[name]
    options = "-x -q --tb=line --no-header -p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning"
    return int(pytest.main([*options.split(), *tests]))


def warm(folder: Path) -> None:
    r"""See all tests pass on a copy, and import here what they imported on their way."""
    log = folder / "log.txt"

    def all_tests() -> int:
        known = set(sys.modules)
        status = run_tests(folder, "tests/llmcore")
        (folder / "modules.txt").write_text("\n".join(name for name in sys.modules if name not in known))
        return status

    if forked(all_tests, log):
        raise SystemExit(f"without any fault:\n{log.read_text()}")
    for name in (folder / "modules.txt").read_text().splitlines():
        if name.split(".")[0] not in OURS and name not in sys.modules:
            with contextlib.suppress(ImportError):  # some are made at run time
                importlib.import_module(name)
    shutil.rmtree(folder / "llmcore/__pycache__", ignore_errors=True)
    gc.collect()
    gc.freeze()  # what is imported stays: pytest's collections need not look at it in each fork


@functools.cache
def tests_of(path: Path) -> list[str]:
    r"""Return the tests that import a module, or one that imports it; first those named after it."""

    def imported(file: Path) -> set[str]:
        return set(re.findall(r"^from llmcore\.(\w+) import", file.read_text(encoding="utf-8"), re.MULTILINE))

    users, size = {path.stem}, 0
    while len(users) > size:
        size = len(users)
        users |= {each.stem for each in path.parent.glob("*.py") if imported(each) & users}
    tests = {test.name: imported(test) for test in sorted((ROOT / "tests/llmcore").glob("test_*.py"))}
    chosen = [name for name, modules in tests.items() if modules & users or name == "test_shape_comments.py"]
    own = f"test_{path.name}"
    return [f"tests/llmcore/{name}" for name in sorted(chosen, key=lambda name: name != own)]


def judge(mutant: Mutant, folder: Path) -> str:
    r"""Return the test that fails on a fault, or nothing."""
    path, log = folder / "llmcore" / mutant.path.name, folder / "log.txt"
    own, *others = tests_of(mutant.path)
    path.write_text(mutant.text, encoding="utf-8")
    try:
        for tests in ([own], others):
            if forked(lambda tests=tests: run_tests(folder, *tests), log):
                failed = re.search(r"^(?:FAILED|ERROR) tests/llmcore/(\S+)", log.read_text(), re.MULTILINE)
                return failed[1] if failed else "no end"
        return ""
    finally:
        shutil.copy(mutant.path, path)


def judge_all(todo: list[Mutant], note: Callable[[Mutant, str], None]) -> None:
    r"""Run the tests on all faults, in `WORKERS` forks of a parent that has imported what they need."""
    with tempfile.TemporaryDirectory() as home:
        first = Path(home) / "0"
        copy(first)
        warm(first)
        sys.dont_write_bytecode = True  # of files that change twice in a second
        workers = []
        for index in range(WORKERS):
            folder = Path(home) / str(index)
            if index:
                shutil.copytree(first, folder)
            workers.append(os.fork())
            if not workers[-1]:
                try:
                    for mutant in todo[index::WORKERS]:
                        note(mutant, judge(mutant, folder))
                finally:
                    os._exit(0)
        for worker in workers:
            os.waitpid(worker, 0)


def faulty(block: Block, mutant: Mutant) -> Block:
    r"""Return a block as its page would show it from the faulty file, after those that it continues."""
    shown = mutant.path.relative_to(ROOT).as_posix()
    before, after = (text.split("\n") for text in (mutant.path.read_text(encoding="utf-8"), mutant.text))
    after += [""] * (len(before) - len(after))  # a statement that is left out at the end of the file
    lines = list(block.lines)
    for index, line in enumerate(lines):
        path, number = line.origin
        if path == shown and before[number - 1] != after[number - 1] and before[number - 1].endswith(line):
            indent = before[number - 1].removesuffix(line)
            lines[index] = Line(after[number - 1].removeprefix(indent), line.origin)
    return replace(block, lines=lines, before=block.before and faulty(block.before, mutant))


def judge_by_blocks(todo: list[Mutant], note: Callable[[Mutant, str], None]) -> None:
    r"""Run on each fault the published blocks that show or load its file, those that show its place first."""
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    with Pool(ROOT, preloaded(ROOT), WORKERS) as pool, tempfile.TemporaryDirectory() as home:
        plain = [(block, pool.submit(block, seconds=SECONDS).result()) for block in published()]
        if wrong := [failure for each in plain if (failure := judge_block(*each, ROOT, True))]:
            raise SystemExit(f"without any fault:\n{wrong[0]}")
        package = Path(home) / "llmcore"
        shutil.copytree(ROOT / "llmcore", package, ignore=shutil.ignore_patterns("__pycache__"))
        for mutant in todo:
            name = mutant.path.relative_to(ROOT).as_posix()

            def distance(each: tuple[Block, Result], name: str = name, at: int = mutant.line) -> float:
                origins = [line.origin for part in each[0].chain() for line in part.lines]
                if Origin(name, at) in origins:
                    return 0.0
                touched = name in each[1].files or any(path == name for path, _ in origins)
                return each[1].seconds if touched else math.inf

            (package / mutant.path.name).write_text(mutant.text, encoding="utf-8")
            near = [block for block, _ in sorted((x for x in plain if distance(x) < math.inf), key=distance)]
            runs = [pool.submit(faulty(block, mutant), seconds=60, path=(home,)) for block in near]
            verdict = ""
            for block, run in zip(near, runs, strict=True):
                if not verdict and judge_block(block, run.result(), ROOT, True):
                    verdict = str(block.opening)
                elif verdict and not run.cancel():
                    run.result()
            note(mutant, verdict)
            shutil.copy(mutant.path, package)


def read(scratch: Path) -> dict[str, str]:
    r"""Return the verdicts that are known."""
    lines = scratch.read_text(encoding="utf-8").splitlines() if scratch.exists() else []
    return {key: verdict for verdict, key in (line.split("\t") for line in lines)}


def main() -> None:
    r"""Judge the faults asked for; print the survivors and the number."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--blocks", action="store_true", help="by the published blocks alone")
    options.add_argument("--module", help="the faults of one file")
    options.add_argument("--sample", type=int, help="about so many faults")
    options.add_argument("--scratch", type=Path, help="where verdicts are kept")
    asked = options.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    every = [mutant for path in sorted((ROOT / "llmcore").glob("*.py")) for mutant in mutants(path)]
    reasons = equivalents()
    if wrong := set(reasons) - {mutant.key for mutant in every}:
        raise SystemExit(f"{EQUIVALENT.name}: no such fault: {min(wrong)}")
    todo = [mutant for mutant in every if asked.module in (None, mutant.path.stem)]
    todo = todo[:: max(1, len(todo) // asked.sample)] if asked.sample else todo
    judges = sorted(ROOT.glob("docs/*/days/*.md" if asked.blocks else "tests/llmcore/*.py"))
    texts = [*(mutant.text for mutant in every), *(path.read_text(encoding="utf-8") for path in judges)]
    digest = hashlib.sha256("".join(texts).encode()).hexdigest()[:16]
    scratch = asked.scratch or Path(tempfile.gettempdir()) / f"mutants-{digest}.txt"

    def note(mutant: Mutant, verdict: str) -> None:
        with scratch.open("a", encoding="utf-8") as file:
            file.write(f"{verdict}\t{mutant.key}\n")

    known = read(scratch)
    left = [mutant for mutant in todo if mutant.key not in known]
    if left:
        (judge_by_blocks if asked.blocks else judge_all)(left, note)
    known = read(scratch)
    verdicts = {mutant: known[mutant.key] for mutant in todo}
    killed, wrong = sum(map(bool, verdicts.values())), 0
    for mutant, verdict in verdicts.items():
        if not asked.blocks and bool(verdict) == (mutant.key in reasons):
            wrong += 1
            said = f"not equivalent, {verdict} fails" if verdict else "survived"
            print(f"{said}: llmcore/{mutant.path.name}:{mutant.line} {mutant.key}")
    share = f"{killed} of {len(todo)} ({100 * killed / len(todo):.1f} %)"
    if asked.blocks:
        print(f"mutants killed by published blocks alone: {share}, of {len(every)} that there are")
    else:
        print(f"mutants killed by all tests: {share}, {sum(x.key in reasons for x in todo)} equivalent")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
