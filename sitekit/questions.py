"""A theory question has a name, by which links, searches and the reader's own progress find it.

    ??? question why-heads "Why several heads?"

folds as any other and has the address ``#q-why-heads``, the same in both languages. A question without
a name, with two, or with that of another question of the page is refused, by page and line.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor

from sitekit.pages import page_lines, refuse

OPENING = re.compile(r"\s*\?{3}\+? ?question\b")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class QuestionTreeprocessor(Treeprocessor):
    """Makes the second word of a folded question its id."""

    md: Markdown

    def run(self, root: etree.Element) -> None:
        """Name every question of the page."""
        lines = [number for number, line in enumerate(page_lines(self.md), 1) if OPENING.match(line)]
        found = [node for node in root.iter("details") if node.get("class", "").split()[:1] == ["question"]]
        seen: set[str] = set()
        for index, node in enumerate(found):
            line = lines[index] if len(lines) == len(found) else None
            names = node.get("class", "").split()[1:]
            if len(names) != 1 or not NAME.fullmatch(names[0]):
                refuse(
                    self.md,
                    line,
                    f"a question needs one name of lower-case words joined by hyphens, not {names}: "
                    '??? question why-heads "…"',
                )
                continue
            if names[0] in seen:
                refuse(self.md, line, f"two questions of this page are named {names[0]}")
            seen.add(names[0])
            node.set("class", "question")
            node.set("id", f"q-{names[0]}")


class QuestionExtension(Extension):
    """The Markdown extension ``sitekit.questions``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after inline markup (20), and before MkDocs notes to which anchors links may lead (5)."""
        md.treeprocessors.register(QuestionTreeprocessor(md), "questions", 7)


def makeExtension(**kwargs: object) -> QuestionExtension:
    """Return the extension (called by Markdown)."""
    return QuestionExtension(**kwargs)
