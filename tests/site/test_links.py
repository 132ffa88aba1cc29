"""Every address on the built site leads somewhere: pages, files, headings, and anchors in raw HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from sitekit.built import FOLDERS, settings
from sitekit.pages import SITES
from tests.site.repository import DAYS, KINDS

LINKS = {"href", "src", "data-src", "poster", "data-twin", "action"}
CSS = re.compile(r"url\(\s*[\"']?([^\"')]+)")
OTHERS = {"http", "https", "mailto"}


class Link(NamedTuple):
    """An address where it stands."""

    line: int
    url: str
    seen_from: str = ""  # in a part of another page that is carried along: the address of that page


class Links(HTMLParser):
    """Collects the addresses and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[Link] = []
        self.anchors: list[str] = []
        self.names: set[str] = set()
        self.carried = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what this element says; a template of the quiz holds a part of the page at data-href."""
        if tag == "template":
            self.carried = dict(attrs).get("data-href") or ""
        for name, value in attrs:
            value = value or ""
            if name == "id":
                self.anchors += [] if self.carried else [value]
            elif name == "name" and tag == "a":
                self.names.add(value)
            elif name in LINKS and not (name == "action" and not value):
                self.links.append(Link(self.getpos()[0], value, self.carried))
            elif name == "srcset":
                parts = value.split(",")
                self.links += [
                    Link(self.getpos()[0], part.split()[0], self.carried) for part in parts if part.split()
                ]

    def handle_endtag(self, tag: str) -> None:
        """A part that is carried along ends."""
        if tag == "template":
            self.carried = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what this element says, which has no end."""
        self.handle_starttag(tag, attrs)


def link_problems(site: Path, base: str) -> list[str]:
    """Return what leads nowhere in a built site, a line each with file and line.

    Args:
        site: the folder.
        base: where it is published, with a slash at the end.
    """
    pages = {path: Links(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        where = path.relative_to(site).as_posix()
        here = base + where.removesuffix("index.html")
        problems += [
            f"{where}: the id {one} is there twice"
            for one in sorted({one for one in page.anchors if page.anchors.count(one) > 1})
        ]
        for line, url, seen_from in page.links:
            if problem := broken(url, urljoin(here, seen_from), base, site, pages):
                problems.append(f"{where}:{line}: {url}: {problem}")
    for path in sorted(site.rglob("*.css")):
        where = path.relative_to(site).as_posix()
        for url in CSS.findall(path.read_text(encoding="utf-8")):
            if not url.startswith("data:") and (problem := broken(url, base + where, base, site, pages)):
                problems.append(f"{where}: {url}: {problem}")
    return problems


def broken(url: str, here: str, base: str, site: Path, pages: dict[Path, Links]) -> str:
    """Return why an address leads nowhere, "" if it does lead somewhere or to another host."""
    if not url.strip() and url != "":
        return "is blank"
    try:
        full = urlsplit(urljoin(here, url))
    except ValueError as error:
        return str(error)
    if full.scheme in {"data", "javascript"}:
        return "" if full.scheme == "data" else "is a script"
    if full.scheme not in OTHERS:
        return f"is no address that a page may have ({full.scheme}:)"
    plain = full._replace(query="", fragment="").geturl()
    if not plain.startswith(base):
        return "lies outside of the site" if plain.startswith(base.split("/", 3)[0] + "//127.") else ""
    target = site / unquote(plain.removeprefix(base))
    if target.is_dir():
        if not plain.endswith("/"):
            return "is a folder, and has no / at its end"
        target /= "index.html"
    if not target.is_file():
        return "no such file"
    fragment = unquote(full.fragment)
    if fragment and target in pages:
        page = pages[target]
        if fragment not in page.anchors and fragment not in page.names and fragment != "top":
            return "no such anchor"
    return ""


def test_every_link_leads_somewhere(built_site: Path, address: str) -> None:
    problems = link_problems(built_site, address)
    assert not problems, f"{len(problems)}\n" + "\n".join(problems[:40])


def test_what_leads_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    lines = [
        '<h1 id="one">A</h1><a name="old"></a><a href="#one">1</a><a href="#old">2</a><a href="#two">3</a>',
        '<a href="../a/">4</a><a href="../a">5</a><a href="../b/">6</a><img src="x.png">',
        '<a href="https://example.org/x#y">7</a><a href="javascript:1">8</a><a href="#%6fne">9</a>',
        '<p id="twice"></p><p id="twice"></p><a href="http://h/s/#top">10</a><a href="http://h/s/c">11</a>',
        '<template data-href="../"><p id="no"></p><a href="a/#one">12</a><a href="a/#no">13</a></template>',
    ]
    (tmp_path / "a" / "index.html").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "index.html").write_text("<p>", encoding="utf-8")
    (tmp_path / "a.css").write_text("a{background:url('a/index.html')}b{background:url(no.png)}")
    assert link_problems(tmp_path, "http://h/s/") == [
        "a/index.html: the id twice is there twice",
        "a/index.html:1: #two: no such anchor",
        "a/index.html:2: ../a: is a folder, and has no / at its end",
        "a/index.html:2: ../b/: no such file",
        "a/index.html:2: x.png: no such file",
        "a/index.html:3: javascript:1: is a script",
        "a/index.html:4: http://h/s/c: no such file",
        "a/index.html:5: a/#no: no such anchor",
        "a.css: no.png: no such file",
    ]


@pytest.mark.parametrize("language", SITES)
def test_the_language_switch_leads_to_the_same_page_on_every_kind(
    reader: Any, address: str, language: str
) -> None:
    """Opened by address, then by a link of the page, which changes the page without loading it anew."""
    other = next(one for one in SITES if one != language)
    own, twin = address + FOLDERS[language], address + FOLDERS[other]
    for path in [*KINDS, f"days/{DAYS[0]}/"]:
        if path != "404.html":  # any address may be missing: its switch leads to the other front page
            reader.goto(own + path)
            reader.locator("a.twin").click()
            reader.wait_for_url(twin + path)
            assert reader.locator("html").get_attribute("lang") == settings(other).theme["language"]
    reader.goto(own + "plan/")
    reader.locator(f"article a[href*='days/{DAYS[0]}']").first.click()
    reader.wait_for_url(f"{own}days/{DAYS[0]}/**")
    reader.wait_for_function(
        "path => document.querySelector('a.twin').href.includes(path)", arg=f"days/{DAYS[0]}/"
    )
    reader.locator("a.twin").click()
    reader.wait_for_url(f"{twin}days/{DAYS[0]}/**")
