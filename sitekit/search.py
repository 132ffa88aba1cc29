"""What the search leaves out: sources on API pages, which the days show again, and the lists of references.

The theme's ``data-search-exclude`` says so to its index; nothing is taken from the page.
"""

from __future__ import annotations

import xml.etree.ElementTree as etree

from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor
from markdown.treeprocessors import Treeprocessor

MARK = "data-search-exclude"
SOURCE = '<details class="mkdocstrings-source">'  # as mkdocstrings writes it
LEFT_OUT = "references"  # the heading id of a day


class SourceBoxes(Postprocessor):
    """Marks the sources on API pages when mkdocstrings has written them."""

    def run(self, text: str) -> str:
        """Mark every box."""
        return text.replace(SOURCE, f"{SOURCE[:-1]} {MARK}>")


class References(Treeprocessor):
    """Marks the section of references."""

    def run(self, root: etree.Element) -> None:
        """Mark its heading, which the index takes with all that follows."""
        for heading in root.iter("h2"):
            if heading.get("id") == LEFT_OUT:
                heading.set(MARK, "")


class SearchExtension(Extension):
    """The Markdown extension ``sitekit.search``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after attr_list (8), which gives the ids, and after raw HTML has come back (30)."""
        md.treeprocessors.register(References(md), "search-references", 6)
        md.postprocessors.register(SourceBoxes(md), "search-sources", 5)


def makeExtension(**kwargs: object) -> SearchExtension:
    """Return the extension (called by Markdown)."""
    return SearchExtension(**kwargs)
