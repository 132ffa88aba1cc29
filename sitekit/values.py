r"""Numbers of a sentence, filled in from what was computed.

In the prose, the tables and the formulas of ``days/<slug>.md``

    {{kv_bytes "Llama 3 8B" 3}}

becomes the third number after the words ``Llama 3 8B`` in ``snippets/<slug>/kv_bytes.out``, the recorded
output of a program that every test run compares with what it prints. ``"first > second"`` looks for
``second`` below the line of ``first``; ``{{kv_bytes.py "batch =" 1}}`` takes an input from the program;
a path with a slash starts at the root of the repository. A format may follow, ``{{counts "total" 1 ,d}}``:
Python's, for thousands and for fewer digits. A number that nobody computed says whose it is:
``{{67 given "measured by 2305.13245, table 1"}}``.
"""

from __future__ import annotations

import contextlib

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from practice.values import ValueFormError, fill
from sitekit.pages import line_number, page_lines, page_path, refuse


def page_text(md: Markdown) -> str:
    """Return the page's source with its forms filled in where that can be done, line for line."""
    slug, lines = _slug(md), page_lines(md)
    for index, line in enumerate(lines):
        with contextlib.suppress(ValueFormError):
            lines[index] = fill(line, slug)
    return "\n".join(lines)


def _slug(md: Markdown) -> str:
    path = page_path(md)
    return path.stem if path else ""


class ValuePreprocessor(Preprocessor):
    """Fills the forms of a page in when its blocks of code are already set aside."""

    md: Markdown

    def run(self, lines: list[str]) -> list[str]:
        """Fill every form in."""
        slug = _slug(self.md)
        filled: list[str] = []
        for line in lines:
            try:
                filled.append(fill(line, slug))
            except ValueFormError as error:
                refuse(self.md, line_number(self.md, line), str(error))
                filled.append(line)
        return filled


class ValueExtension(Extension):
    """The Markdown extension ``sitekit.values``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after fences (25) and before raw HTML (20)."""
        md.preprocessors.register(ValuePreprocessor(md), "values", 22)


def makeExtension(**kwargs: object) -> ValueExtension:
    """Return the extension (called by Markdown)."""
    return ValueExtension(**kwargs)
