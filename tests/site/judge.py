"""What a run says of a page: whether a block did what its reader sees, and what an update would write."""

from __future__ import annotations

import difflib
import linecache
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.site.blocks import Block, Line, Problem
from tests.site.sandbox import Result

WHOLE = sys.maxsize  # the end of an edit that replaces a whole file
FLOAT = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


class Failure(Exception):
    """What is wrong, where; the first problem is the one that the summary names."""

    def __init__(self, problems: list[Problem], *details: str) -> None:
        super().__init__("\n".join([*(f"{origin}: {message}" for origin, message in problems), *details]))
        self.problems = problems


def mark(text: Line) -> pytest.MarkDecorator:
    """Return the mark that a comment above a block names; who skips says why, who fails says how.

    Raises:
        ValueError: it is not a mark for pages, or says too little.
    """
    try:
        found: pytest.MarkDecorator = eval(text, {"pytest": pytest, "sys": sys})
        name, said = found.name, found.kwargs
    except Exception as error:
        raise ValueError(f"{text}: {error}") from error
    if name not in ("skip", "skipif", "xfail"):
        raise ValueError(f"{text}: not a mark for pages")
    if not str(said.get("reason", "")).strip():
        raise ValueError(f"{text}: the reason is missing (reason=…)")
    if name == "xfail" and "raises" not in said:
        raise ValueError(f"{text}: the type of the error is missing (raises=…)")
    return found


def raises(block: Block) -> set[str]:
    """Return the names of the errors with which a page says that a block ends."""
    kinds = [mark(text).kwargs["raises"] for text in block.marks if text.startswith("pytest.mark.xfail")]
    return {kind.__name__ for each in kinds for kind in (each if isinstance(each, tuple) else (each,))}


def judge(block: Block, result: Result, root: Path, house: bool) -> Failure | None:
    """Hold what a block did against what its page shows.

    Args:
        block: a published block.
        result: how it ended.
        root: the root of the repository.
        house: for pages of our own: what is printed, and the message of an error, must be shown.
    """
    named = raises(block)
    printed, output = result.printed, block.output
    if result.error and not named.intersection(result.kinds):
        first, *others = result.places
        lines = {at: linecache.getline(str(root / at.path), at.line).strip() for at in result.places}
        through = [f"    through {at}: {lines[at]}" for at in others]
        seen = f"    in the block that readers see at {block.opening}"
        return Failure([Problem(first, result.error)], f"    {lines[first]}", *through, seen)
    if named and not result.error:
        return Failure(
            [Problem(block.opening, f"runs to its end, but is said to raise {' or '.join(named)}")]
        )
    if result.error:
        printed += result.error
        if output is None and house:
            return Failure([Problem(block.opening, f"the page does not show its error: {result.error}")])
    if output is None:
        if printed.strip() and not result.error and not block.console and house:
            first_line = printed.strip().split("\n")[0]
            return Failure([Problem(block.opening, f"prints what the page does not show: {first_line}")])
        return None
    made, shown = visible(printed), visible("\n".join(output.lines))
    index = difference(made, shown, output.within)
    if index is None:
        return None
    got = made[index] if index < len(made) else "nothing more"
    lines = difflib.unified_diff(shown, made, "shown", "printed", lineterm="")
    problem = Problem(output.origin(index), f"output: the block prints {got}")
    return Failure([problem], f"    printed by the block at {block.opening}", *lines)


def visible(text: str) -> list[str]:
    """Return the lines of an output as they are compared: blanks at line ends do not count."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def difference(made: list[str], shown: list[str], within: float = 0.0) -> int | None:
    """Return the index of the first line that differs; numbers may, by `within`, where a page says so."""
    for index, (new, old) in enumerate(zip(made, shown, strict=False)):
        if new == old:
            continue
        numbers = zip(FLOAT.findall(new), FLOAT.findall(old), strict=False)
        same_words = within and FLOAT.sub("#", new) == FLOAT.sub("#", old)
        if not same_words or any(abs(float(a) - float(b)) > within for a, b in numbers):
            return index
    return None if len(made) == len(shown) else min(len(made), len(shown))


@cache
def one_character_changes(text: str, within: float) -> tuple[int, int]:
    """Return how many changes of an output there are, a character replaced or left out, and how many show."""
    shown, changes, caught = visible(text), 0, 0
    for index, line in enumerate(shown):
        for at, old in enumerate(line):
            other = str((int(old) + 1) % 10) if old in "0123456789" else "#"
            for new in (line[:at] + other + line[at + 1 :], line[:at] + line[at + 1 :]):
                changed = visible("\n".join([*shown[:index], new, *shown[index + 1 :]]))
                changes += 1
                caught += difference(shown, changed, within) is not None
    return changes, caught


class Edits:
    """What `--update-outputs` is to write, by file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[Path, dict[tuple[int, int], list[str]]] = {}

    def output(self, block: Block, printed: str) -> None:
        """Replace the output that a page shows under a block."""
        output = block.output
        assert output is not None
        first, lines = output.origin(0), visible(printed)
        place = (first.line, WHOLE if output.file else output.closing.line)
        if self.files.setdefault(self.root / first.path, {}).setdefault(place, lines) != lines:
            raise Failure([Problem(first, "printed differently on two pages; the first is written")])

    def write(self) -> list[str]:
        """Write, from the end of each file to its start so that line numbers hold; return the difference."""
        shown: list[str] = []
        for path, edits in self.files.items():
            with path.open(encoding="utf-8", newline="") as file:
                before = file.read().splitlines(keepends=True)
            after = list(before)
            newline = "\r\n" if before and before[0].endswith("\r\n") else "\n"
            for (first, end), lines in sorted(edits.items(), reverse=True):
                fence = "" if end == WHOLE else before[first - 2]
                indent = fence[: len(fence) - len(fence.lstrip("> \t"))]
                after[first - 1 : end - 1] = [(indent + line).rstrip() + newline for line in lines]
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(after)
            name = path.relative_to(self.root).as_posix()
            shown += [line.rstrip() for line in difflib.unified_diff(before, after, name, name)]
        return shown
