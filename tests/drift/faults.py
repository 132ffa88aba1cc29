r"""Plants faults in the real pages, snippets and llmcore; the ordinary tests must name the place of each.

    python -m tests.drift.faults                    all of them
    python -m tests.drift.faults --kind formula     the kinds with this word in their name
    python -m tests.drift.faults --sample 40        about so many
    python -m tests.drift.faults --list             only say what would be planted

Everything happens in copies. The faults are drawn from the files as they are, so that there are more when the
site grows. Those that cannot hide each other stand in one copy at a time; one that is not reported at its
place there gets a copy to itself, which decides.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

from tests.drift.mutants import judge_all
from tests.drift.mutations import Mutant
from tests.drift.plants import KINDS, TESTS
from tests.drift.tree import Fault, Tree

ROOT = Path(__file__).resolve().parents[2]
UNSEEN = Path(__file__).with_name("unseen.txt")  # what changes nothing that is shown, and why
WORKERS = 2
OPTIONS = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--assert=plain", "--block-workers", "1"]
SUITES = "numbers", "structure", "twins", "counts", "figures"
EVERYTHING = ["docs", *(f"tests/site/test_{name}.py" for name in SUITES)]
PLACE = re.compile(r"(?:E +)?(?:[\w.]+(?:Error|Failure): )?([\w./-]+\.\w+:\d+)\b(?:.*, (docs/\S+:\d+) has)?")
IN_PLACE, MISSED = "in place", "missed"


def draw(tree: Tree, word: str, sample: int) -> list[Fault]:
    """Draw the faults of the kinds with a word in their name; each file has dice of its own."""
    drawn: list[Fault] = []
    for name, kind in KINDS.items():
        for file in tree.files:
            if word in name and re.fullmatch(kind.files, file):
                found = list({(fault.line, fault.new): fault for fault in kind.find(tree, file)}.values())
                chosen = random.Random(f"{name} {file}").sample(found, min(kind.number, len(found)))
                drawn += [fault._replace(kind=name) for fault in chosen]
    return drawn[:: max(1, len(drawn) // sample)] if sample else drawn


def rounds(faults: list[Fault]) -> list[list[Fault]]:
    """Divide faults into rounds: the same tests look for all of one, and none can hide another."""
    made: dict[tuple[str, int], list[Fault]] = {}
    before = Counter[tuple[str, str]]()
    for fault in faults:
        tests = KINDS[fault.kind].tests
        made.setdefault((tests, before[tests, fault.apart]), []).append(fault)
        before[tests, fault.apart] += 1
    return list(made.values())


def shown(tree: Tree, fault: Fault, place: bool = True) -> str:
    """Return what is planted, in a line."""
    line = tree.lines(fault.file)[fault.line - 1].strip() if fault.line else "the file"
    new = fault.new.strip() or "nothing"
    same = next((at for at, (a, b) in enumerate(zip(line, new, strict=False)) if a != b), len(line))
    part = slice(max(0, same - 20), same + 40)
    return f"{fault.kind}: {fault.file}:{f'{fault.line}:' * place} {line[part]!r} -> {new[part]!r}"


class Copies:
    """Copies of the project, in which faults are planted and taken out again."""

    def __init__(self, tree: Tree, folder: Path) -> None:
        self.tree = tree
        self.free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(WORKERS):
            for name, content in tree.files.items():
                path = folder / str(number) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self.free.put(folder / str(number))

    def run(self, faults: list[Fault], tests: list[str]) -> tuple[int, set[str]]:
        """Return how tests end that are run with some faults, and the places that they name."""
        root, texts = self.free.get(), self.tree.planted(faults)
        try:
            for file, text in texts.items():
                (root / file).unlink()
                if text:
                    (root / file).write_text("\n".join(text), encoding="utf-8")
            done = subprocess.run(
                [sys.executable, *OPTIONS, *tests],
                cwd=root,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        finally:
            for file in texts:
                (root / file).write_bytes(self.tree.files[file])
            self.free.put(root)
        named = filter(None, map(PLACE.match, done.stdout.splitlines()))
        return done.returncode, {place for match in named for place in match.groups() if place}


def by_site(tree: Tree, faults: list[Fault], unseen: list[Fault]) -> dict[int, str]:
    """Return the verdict on each fault that the tests of the site look for; unseen ones get no copy alone."""
    verdicts = {id(fault): MISSED for fault in faults}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        copies = Copies(tree, Path(folder))

        def run(planted: list[Fault]) -> tuple[int, set[str]]:
            return copies.run(planted, TESTS[KINDS[planted[0].kind].tests])

        clean = pool.submit(copies.run, [], EVERYTHING)
        planted = rounds(faults)
        named = {
            id(fault): places
            for each, (_, places) in zip(planted, pool.map(run, planted), strict=True)
            for fault in each
        }
        fails, known = clean.result()
        if fails:
            print(f"without any fault, the tests fail: {', '.join(sorted(known))}", flush=True)
        alone = [f for f in faults if f not in unseen and not f.places & (named[id(f)] - known)]
        for fault, (status, places) in zip(alone, pool.map(run, [[fault] for fault in alone]), strict=True):
            named[id(fault)] = places
            if status and (places - known or not fails):
                verdicts[id(fault)] = f"elsewhere, {', '.join(sorted(places - known))}"
        for fault in faults:
            if fault.places & (named[id(fault)] - known):
                verdicts[id(fault)] = IN_PLACE
    return verdicts


def by_modules(tree: Tree, faults: list[Fault]) -> dict[int, str]:
    """Return the verdict on each fault of llmcore: its place are the tests of its own module."""
    todo: list[Mutant] = []
    for number, fault in enumerate(faults):
        text = "\n".join(tree.planted([fault])[fault.file])
        todo.append(Mutant(tree.root / fault.file, "", fault.line, "", fault.new, number, text))
    verdicts: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "verdicts"

        def note(mutant: Mutant, test: str) -> None:  # in a fork
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{mutant.number}\t{test}\n")

        judge_all(todo, note)
        for number, test in (line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()):
            fault = faults[int(number)]
            at_home = f"tests/llmcore/{test.split('::')[0]}" in fault.places
            verdicts[id(fault)] = IN_PLACE if at_home else f"elsewhere, {test}" if test else MISSED
    return verdicts


def main() -> None:
    """Plant what is asked for; print each fault that is not reported at its place, and the numbers."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--kind", default="", help="a word of the names of the kinds")
    options.add_argument("--sample", type=int, default=0, help="about so many faults")
    options.add_argument("--list", action="store_true", help="only say what would be planted")
    asked = options.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    tree, known = Tree(ROOT), UNSEEN.read_text(encoding="utf-8").splitlines()
    faults = draw(tree, asked.kind, asked.sample)
    unseen = [fault for fault in faults if shown(tree, fault, place=False) in known]
    if asked.list:
        print(*(shown(tree, fault) for fault in faults), f"{len(faults)} faults", sep="\n")
        return
    modules = [fault for fault in faults if not TESTS[KINDS[fault.kind].tests]]
    verdicts = by_site(tree, [fault for fault in faults if fault not in modules], unseen)
    verdicts |= by_modules(tree, modules) if modules else {}
    for fault in unseen:
        if verdicts.pop(id(fault)) != MISSED:
            print(f"not unseen: {shown(tree, fault)}")
    faults = [fault for fault in faults if fault not in unseen]
    for kind, group in groupby(faults, lambda fault: fault.kind):
        each = list(group)
        right = [fault for fault in each if verdicts[id(fault)] == IN_PLACE]
        print(f"    {kind}: {len(right)} of {len(each)}")
        for fault in each:
            if fault not in right:
                print(f"{verdicts[id(fault)]}: {shown(tree, fault)}")
    ends = Counter(verdicts.values())
    caught = f"caught {len(faults) - ends[MISSED]}, at the right place {ends[IN_PLACE]}"
    planted = f"planted {len(verdicts) + len(unseen)} of {len(KINDS)} kinds"
    besides = f"{len(unseen)} change no result, and are not caught"
    print(f"faults on the real site: {planted}, {caught}; {besides}")
    sys.exit(ends[IN_PLACE] < len(faults))


if __name__ == "__main__":
    main()
