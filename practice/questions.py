r"""The theory questions of the days, as their pages have them: never a second copy.

??? question why-heads "Why several heads?"

    the answer

    ??? note "Follow-up: …"
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from practice.catalogue import ROOT
from practice.values import fill

OPENING = re.compile(
    r'^(?P<space> *)\?{3}\+? (?P<kind>question|note|abstract)(?: (?P<name>[\w-]+))? "(?P<title>.*)"\s*$'
)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\([^)]+\)")
NUMBERED = re.compile(r"^\d+[.、]\s*")


@dataclass(frozen=True)
class Question:
    r"""A question, its answer in a few sentences, and what an interviewer asks next, with its answer."""

    day: str
    name: str
    asked: int
    text: str
    answer: str
    deeper: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        r"""What a reader's progress knows it by."""
        return f"{self.day}/{self.name}"


@cache
def questions(language: str) -> tuple[Question, ...]:
    r"""Return every question of a language, in the order of the pages.

    Raises:
        ValueError: If a page has a question without a name.
    """
    found = []
    for page in sorted((ROOT / "docs" / language / "days").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        asked = re.search(r"^frequency: (\d)", text, re.MULTILINE)
        lines = [fill(line, page.stem) for line in text.splitlines()]
        found += _of_page(page.stem, int(asked[1]) if asked else 1, lines)
    return tuple(found)


def _of_page(day: str, asked: int, lines: list[str]) -> list[Question]:
    found, index = [], 0
    while index < len(lines):
        opening = OPENING.match(lines[index])
        index += 1
        if opening is None or opening["kind"] != "question":
            continue
        if opening["name"] is None:
            raise ValueError(f"{day}.md:{index}: a question without a name")
        depth = len(opening["space"])
        block = []
        while index < len(lines) and (not lines[index].strip() or _indent(lines[index]) > depth):
            block.append(lines[index])
            index += 1
        parts = _parts(block)
        title = NUMBERED.sub("", _plain(opening["title"]))
        found.append(Question(day, opening["name"], asked, title, parts[0][1], tuple(parts[1:])))
    return found


def _parts(block: list[str]) -> list[tuple[str, str]]:
    r"""Return the answer, under no title, and what is folded in it, each under its own."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in block:
        opening = OPENING.match(line)
        if opening is not None:
            parts.append((_plain(opening["title"]), []))
        else:
            parts[-1][1].append(line)
    return [(title, _plain(textwrap.dedent("\n".join(lines)).strip())) for title, lines in parts]


def _plain(text: str) -> str:
    return LINK.sub(r"\1", text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def draw(language: str, count: int, chance: random.Random, without: Collection[str] = ()) -> list[Question]:
    r"""Draw questions, those more often that are asked more often; none twice.

    Args:
        language: Whose words.
        count: How many; fewer if there are not as many.
        chance: The source of randomness.
        without: Keys that are left out.
    """
    left = [question for question in questions(language) if question.key not in without]
    drawn = []
    while left and len(drawn) < count:
        (chosen,) = chance.choices(left, [question.asked**2 for question in left])
        left.remove(chosen)
        drawn.append(chosen)
    return drawn
