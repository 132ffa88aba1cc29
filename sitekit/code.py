"""Says of each block of code how many lines it has, so that a browser need not lay out what is out of sight.

Half of the elements of a day are words of its code, and each costs layout when the page is opened. The style
sheet skips blocks out of sight (``content-visibility``), which is only smooth where their height is known.
"""

from __future__ import annotations

import re

from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

BLOCK = re.compile(r"(<pre\b[^>]*>(?:<span></span>)?)<code>(.*?)(?=</code></pre>)", re.DOTALL)


def count_lines(html: str) -> str:
    """Return HTML in which each block of code has its number of lines as ``--lines``."""

    def counted(block: re.Match[str]) -> str:
        return f'{block[1]}<code style="--lines:{block[2].rstrip().count(chr(10)) + 1}">{block[2]}'

    return BLOCK.sub(counted, html)


class CodeLines(Postprocessor):
    """Counts when all of the page has been written."""

    def run(self, text: str) -> str:
        """Count the lines of every block."""
        return count_lines(text)


class CodeExtension(Extension):
    """The Markdown extension ``sitekit.code``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after raw HTML has come back (30)."""
        md.postprocessors.register(CodeLines(md), "code-lines", 3)


def makeExtension(**kwargs: object) -> CodeExtension:
    """Return the extension (called by Markdown)."""
    return CodeExtension(**kwargs)
