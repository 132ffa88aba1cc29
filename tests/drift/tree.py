r"""The files of the project as they were at one moment, and what a fault is."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"\s*```.*")
EMBED = re.compile(r'\s*--8<-- "([^":]+):?([^"]*)"')


class Fault(NamedTuple):
    """A fault: its place, what stands there instead, where it must be reported, what it shares with none."""

    file: str
    line: int  # 0: the file is gone
    new: str
    places: set[str]
    apart: str  # of two faults with the same, one could hide the other
    also: tuple[tuple[str, int, str], ...] = ()  # further edits
    kind: str = ""


class Tree:
    """The files that git knows or would add, all read at once."""

    def __init__(self, root: Path) -> None:
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", check=True)
        names = sorted(name for name in done.stdout.split("\0") if (root / name).is_file())
        self.root, self.files = root, {name: (root / name).read_bytes() for name in names}
        self.lines, self.parsed = cache(self._lines), cache(self._parsed)

    def _lines(self, file: str) -> list[str]:
        return self.files[file].decode().split("\n")

    def _parsed(self, file: str) -> ast.Module:
        return ast.parse(self.files[file].decode())

    def first(self, file: str, start: str) -> int:
        """Return the number of the first line that starts so."""
        return next(number for number, line in enumerate(self.lines(file), 1) if line.startswith(start))

    def planted(self, faults: Iterable[Fault]) -> dict[str, list[str]]:
        """Return the lines of the files that some faults change; a file that is gone has none."""
        texts: dict[str, list[str]] = {}
        for fault in faults:
            for file, number, new in [(fault.file, fault.line, fault.new), *fault.also]:
                text = texts.setdefault(file, list(self.lines(file)))
                if number:
                    text[number - 1] = new
                else:
                    text.clear()
        return texts

    def fences(self, page: str) -> list[tuple[int, int]]:
        """Return the first and the last line of each block of code of a page."""
        found = [number for number, line in enumerate(self.lines(page), 1) if FENCE.fullmatch(line)]
        return list(zip(found[::2], found[1::2], strict=True))

    def embeds(self, page: str) -> Iterator[tuple[int, str, re.Match[str]]]:
        """Yield the lines of a page that embed a file."""
        for number, line in enumerate(self.lines(page), 1):
            if match := EMBED.fullmatch(line):
                yield number, line, match

    def prose(self, page: str) -> Iterator[tuple[int, str, str]]:
        """Yield the lines of a page outside of code and front matter, and what names the section of each."""
        code = {number for first, last in self.fences(page) for number in range(first, last + 1)}
        lines, section = self.lines(page), page
        start = lines.index("---", 1) + 1 if lines[0] == "---" else 0
        for number, line in list(enumerate(lines, 1))[start:]:
            if number not in code:
                section = f"{page}:{number}" if line.startswith("#") else section
                yield number, line, section


def within(file: str, first: int, last: int) -> set[str]:
    """Return the lines of a file from one to another."""
    return {f"{file}:{number}" for number in range(first, last + 1)}


def twin(page: str) -> str:
    """Return the name of a page in the other language."""
    return page.replace("/zh/", "/en/") if "/zh/" in page else page.replace("/en/", "/zh/")


def spliced(
    lines: list[str], node: ast.expr | ast.arg | ast.keyword, new: str, length: int | None = None
) -> str:
    """Return the line of a node, with something else in the place of it, or of its first so many bytes."""
    raw, start = lines[node.lineno - 1].encode(), node.col_offset
    end = start + length if length else node.end_col_offset
    return (raw[:start] + new.encode() + raw[end:]).decode()
