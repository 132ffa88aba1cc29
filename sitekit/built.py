"""Reads the days back from the built pages, for what is made of them besides the site: cards, a document.

What a reader sees is the source: embeds, numbers and links are those of the page. Only the formulas go back
to their TeX, which KaTeX keeps beside what it draws; here each is one element ``formula``, whose attribute
``display`` says whether it stands alone.
"""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as etree
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.config import load_config

from sitekit.pages import ROOT, SITES

SITE = ROOT / "site"
FOLDERS = {"zh": "", "en": "en/"}  # where the site of a language lies below SITE
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
BLOCKS = {
    *("article", "aside", "blockquote", "details", "div", "dl", "figure", "footer", "header", "hr", "ol"),
    *("nav", "p", "pre", "section", "table", "ul", *(f"h{level}" for level in range(1, 7))),
}
CANONICAL = re.compile(r'<link rel="canonical" href="([^"]+)"')
FORMULA = re.compile(r'<(span|div) class="formula">')
SPAN = re.compile(r"<(/?)(?:span|div)\b")
TEX = re.compile(r'<annotation encoding="application/x-tex">(.*?)</annotation>', re.DOTALL)


class BuiltError(ValueError):
    """A built page that cannot be read; the message names it and says why."""


class Day(NamedTuple):
    """A day as its reader gets it."""

    slug: str
    title: str
    url: str  # where the page is published
    article: etree.Element


def settings(language: str) -> Any:
    """Return MkDocs' configuration of one language."""
    with warnings.catch_warnings(action="ignore"):
        return load_config(str(ROOT / SITES[language]))


def nav_pages(nav: Any) -> Iterator[str]:
    """Yield the pages of a nav in order, as paths below the folder of the language."""
    for entry in nav if isinstance(nav, list) else nav.values():
        if isinstance(entry, str):
            yield entry
        else:
            yield from nav_pages(entry)


def address(page: str) -> str:
    """Return the address of a page below its site: ``days/dpo.md`` is at ``days/dpo/``."""
    name = page.removesuffix(".md")
    return "" if name == "index" else name.removesuffix("/index") + "/"


def read_days(language: str, site: Path = SITE) -> list[Day]:
    """Return the days of one language in the order of its nav.

    Raises:
        BuiltError: a page was not built, or holds no article, or its tags do not match.
    """
    found: list[Day] = []
    for page in nav_pages(settings(language).nav):
        if page.startswith("days/"):
            url, article = read_page(site / FOLDERS[language] / address(page) / "index.html")
            heading = article.find(".//h1")
            title = plain(heading) if heading is not None else page
            found.append(Day(Path(page).stem, title, url, article))
    return found


def read_page(path: Path) -> tuple[str, etree.Element]:
    """Return where a built page is published, and its article without the links beside its headings.

    Raises:
        BuiltError: the page was not built, holds no article, or its tags do not match.
    """
    if not path.is_file():
        raise BuiltError(f"{path}: no such page; `make build` builds the site")
    text = path.read_text(encoding="utf-8")
    start, end = text.find("<article"), text.rfind("</article>")
    if start < 0 or end < 0:
        raise BuiltError(f"{path}:1: no <article>")
    reader = _Reader(path)
    reader.feed(change_formulas(text[start:end], _with_tex) + "</article>")
    reader.close()
    url = CANONICAL.search(text)
    return url[1] if url else "", reader.builder.close()


def change_formulas(html: str, change: Callable[[str, bool], str]) -> str:
    """Return HTML in which ``change`` has replaced each drawn formula, told whether it stands alone."""
    pieces: list[str] = []
    end = 0
    for start in FORMULA.finditer(html):
        if start.start() < end:
            continue
        pieces.append(html[end : start.start()])
        depth = 0
        for tag in SPAN.finditer(html, start.start()):
            depth += -1 if tag[1] else 1
            if not depth:
                end = html.index(">", tag.end()) + 1
                break
        pieces.append(change(html[start.start() : end], start[1] == "div"))
    return "".join([*pieces, html[end:]])


def _with_tex(formula: str, display: bool) -> str:
    """Return the TeX of a drawn formula in ``<formula>``; most of a page is formulas."""
    tex = TEX.search(formula)
    return f'<formula display="{"1" if display else ""}">{tex[1] if tex else ""}</formula>'


class _Reader(HTMLParser):
    """Builds the tree of an article."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.path = path
        self.builder = etree.TreeBuilder()
        self.open: list[str] = []
        self.in_link = False  # in a link beside a heading, which is left out

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        values = {name: value or "" for name, value in attrs}
        if "headerlink" in values.get("class", "").split():
            self.in_link = True
            return
        if self.open[-1:] == ["p"] and tag in BLOCKS:  # as browsers do
            self.builder.end(self.open.pop())
        self.builder.start(tag, values)
        if tag in VOID:
            self.builder.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add an element that has no end, as those of figures."""
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        self.builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the element that is open, which must be this one."""
        if self.in_link:
            self.in_link = False
        elif self.open[-1:] == [tag]:
            self.builder.end(self.open.pop())
        elif tag != "p":  # a paragraph may have been closed by a block
            raise BuiltError(f"{self.path}: </{tag}> inside of <{self.open[-1]}>")

    def handle_data(self, data: str) -> None:
        """Keep text."""
        if not self.in_link:
            self.builder.data(data)


def plain(element: etree.Element) -> str:
    """Return the words of an element in one line, formulas as TeX between dollars."""

    def words(node: etree.Element) -> str:
        text = (node.text or "") + "".join(words(child) + (child.tail or "") for child in node)
        return f"${text}$" if node.tag == "formula" else text

    return " ".join(words(element).split())
