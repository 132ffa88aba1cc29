"""What is known of a published page: its blocks, where each line came from, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Origin(NamedTuple):
    """A line of a file, its path written from the root of the repository."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


BlockKey = tuple[tuple[str, Origin], ...]


class Line(str):
    """A line of text that remembers where it came from."""

    origin: Origin

    def __new__(cls, text: str, origin: Origin) -> Line:
        line = super().__new__(cls, text)
        line.origin = origin
        return line

    def __reduce__(self) -> tuple[type[Line], tuple[str, Origin]]:
        return Line, (str(self), self.origin)

    def __add__(self, rest: str) -> Line:
        return Line(str(self) + rest, self.origin)

    def __radd__(self, indent: str) -> Line:
        return Line(indent + str(self), self.origin)

    def replace(self, *arguments: Any) -> Line:
        return Line(super().replace(*arguments), self.origin)


class Problem(NamedTuple):
    """What an author must mend, and where."""

    origin: Origin
    message: str


@dataclass
class Fence:
    """A fence that Markdown rendered, with the markers directly above it (text -> line)."""

    language: str
    lines: list[Line]
    opening: Origin
    closing: Origin
    markers: dict[str, Line]
    embeds: str = ""  # the file that it shows whole and alone, if it does


@dataclass
class Output:
    """The output that a page shows under a block; numbers in it may differ by `within`."""

    lines: list[str]
    opening: Origin
    closing: Origin
    file: str
    within: float = 0.0

    def origin(self, index: int) -> Origin:
        """Return where the line of this index stands, or would stand."""
        if self.file:
            return Origin(self.file, index + 1)
        return Origin(self.opening.path, min(self.opening.line + 1 + index, self.closing.line))


@dataclass
class Block:
    """A Python block that a reader sees."""

    lines: list[Line]
    opening: Origin
    console: bool = False
    marks: list[Line] = field(default_factory=list)
    before: Block | None = None
    output: Output | None = None

    def chain(self) -> list[Block]:
        """Return the block after those that it continues and that run."""
        before = self.before.chain() if self.before else []
        return [*(part for part in before if not part.skipped()), self]

    def skipped(self) -> bool:
        """Tell whether the page shows the block without running it."""
        return any(text.startswith("pytest.mark.skip(") for text in self.marks)

    def may_skip(self) -> bool:
        """Tell whether the page shows the block without running it, here or on other machines."""
        return any(text.startswith("pytest.mark.skip") for text in self.marks)

    def key(self) -> BlockKey:
        """Return what makes a block the same block as one on another page: its lines and their files."""
        return tuple((str(line), line.origin) for part in self.chain() for line in part.lines)


@dataclass
class Page:
    """A page as its reader gets it: `text` are its words, `prose` the lines of its source outside fences."""

    source: str
    blocks: list[Block] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    definitions: int = 0  # blocks that mkdocstrings took from the source it documents
    lost: int = 0  # blocks that stand in no source, and so cannot be run
    prose: list[Line] = field(default_factory=list)
    text: str = ""


@dataclass
class Site:
    """One language of the site; `failure` says why it has no pages."""

    config: str
    pages: list[Page] = field(default_factory=list)
    failure: str = ""
    at: Origin | None = None


def runnable(pages: Iterable[Page]) -> dict[BlockKey, Block]:
    """Return the blocks of some pages that run; the same lines of the same files on two pages are one."""
    return {block.key(): block for page in pages for block in page.blocks if not block.may_skip()}
