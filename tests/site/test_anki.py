"""Flash cards hold what the pages hold, draw without a network, and stay the same when built again."""

from __future__ import annotations

import re
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from sitekit import anki, built
from sitekit.built import BuiltError, Day, read_days, read_page
from sitekit.pages import SITES

PAGE = """<!doctype html><html><head><link rel="canonical" href="https://example.org/days/a/"></head><body>
<article class="md-content__inner md-typeset">
<h1 id="top">A &amp; B<a class="headerlink" href="#top">#</a></h1>
<p>In front <a href="../b/#x">of all</a>.</p>
<h2 id="principle">The principle<a class="headerlink" href="#principle">#</a></h2>
<p>Leads to</p>
<div class="formula"><span class="katex"><math><annotation encoding="application/x-tex">a &lt; b
</annotation></math><span aria-hidden="true"><span>drawn</span></span></span></div>
<h2 id="shapes">Shapes</h2>
<table><thead><tr><th>name</th><th>step</th><th>shape</th></tr></thead><tbody>
<tr><td><code>f</code></td><td>in</td><td>(B, L)</td></tr>
<tr><td></td><td>out</td><td></td></tr></tbody></table>
<h2 id="mistakes">Mistakes</h2>
<table><thead><tr><th>what</th><th>why</th></tr></thead>
<tbody><tr><td>no scale</td><td>it grows</td></tr></tbody></table>
<ol><li><strong>Bold.</strong> The rest.</li></ol>
<h2 id="questions">Questions</h2>
<details class="question"><summary>1. Why <span class="formula"><span class="katex"><math>
<annotation encoding="application/x-tex">x</annotation></math></span>\u2060</span>?</summary><p>Because.</p>
<details class="note"><summary>More?</summary>
<pre><code><span class="kn">import</span> x</code></pre></details>
</details>
</article></body></html>"""
Rows = list[tuple[Any, ...]]


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Day]:
    """The small page above as a day, after a change."""

    def read(old: str = "", new: str = "", slug: str = "a") -> Day:
        assert old in PAGE
        path = tmp_path / "index.html"
        path.write_text(PAGE.replace(old, new, 1) if old else PAGE, encoding="utf-8")
        url, article = read_page(path)
        return Day(slug, "A & B", url.replace("/a/", f"/{slug}/"), article)

    return read


def rows(package: Path, query: str, folder: Path) -> Rows:
    """Return what a query finds in the collection of a package."""
    with zipfile.ZipFile(package) as archive:
        path = archive.extract("collection.anki2", folder)
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def test_the_cards_of_a_page(page: Callable[..., Day]) -> None:
    def short(html: str) -> str:
        return " ".join(html.split())

    found = [(card.kind, card.key, short(card.front), short(card.back)) for card in anki.cards(page())]
    assert found == [
        (
            "question",
            "Why $x$?",
            r"Why <span>\(x\)</span>?",
            '<p>Because.</p> <details class="note"><summary>More?</summary> <pre><code>'
            '<span class="kn">import</span> x</code></pre></details>',
        ),
        ("formula", "principle", "The principle", r"<p>Leads to</p> <div>\[a &lt; b \]</div>"),
        ("shape", "f · in", "<code>f</code> · in", "<dl><dt>shape</dt><dd>(B, L)</dd></dl>"),
        ("shape", "f · out", "<code>f</code> · out", "<dl></dl>"),
        ("trap", "no scale", "no scale", "<dl><dt>why</dt><dd>it grows</dd></dl>"),
        ("trap", "Bold.", "Bold.", "<strong>Bold.</strong> The rest."),
    ]


def test_links_go_to_the_published_pages(page: Callable[..., Day]) -> None:
    day = page("Leads to", '<a href="../b/#x">there</a> <a href="#shapes">here</a>')
    back = next(card.back for card in anki.cards(day) if card.kind == "formula")
    assert 'href="https://example.org/days/b/#x"' in back
    assert 'href="https://example.org/days/a/#shapes"' in back


def test_two_cards_that_ask_the_same_are_refused(page: Callable[..., Day]) -> None:
    day = page("<td>out</td>", "<td>in</td>")
    with pytest.raises(anki.CardError, match=r"days/a/#shapes: two cards of the kind shape ask 'f · in'"):
        list(anki.cards(day))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("<article", "<section", "no <article>"), ("</ol>", "</ul>", "</ul> inside of <ol>")],
)
def test_a_page_that_is_none_is_refused(page: Callable[..., Day], old: str, new: str, message: str) -> None:
    with pytest.raises(BuiltError, match=re.escape(message)):
        page(old, new)


def test_a_page_that_was_not_built_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuiltError, match=r"`make build` builds the site"):
        read_page(tmp_path / "index.html")


def test_a_block_ends_the_paragraph_it_stands_in(page: Callable[..., Day]) -> None:
    day = page(
        "<p>In front", "<p><figure><svg><path d='M0'/></svg></p><figcaption>c</figcaption></figure><p>In"
    )
    assert [element.tag for element in day.article][:4] == ["h1", "p", "figure", "p"]


def test_a_deck_imported_again_changes_its_notes_and_no_others(
    page: Callable[..., Day], tmp_path: Path
) -> None:
    query = "select guid, mod, flds from notes order by id"
    first, second = tmp_path / "1.apkg", tmp_path / "2.apkg"
    anki.write_deck("en", [page()], first, now=1000)
    anki.write_deck("en", [page("Because.", "Because of this.")], second, now=2000)
    one, two = rows(first, query, tmp_path), rows(second, query, tmp_path)
    assert [guid for guid, *_ in one] == [guid for guid, *_ in two]
    assert len({guid for guid, *_ in one}) == len(one) == 6
    assert {mod for _, mod, _ in one} == {1000}
    assert {mod for _, mod, _ in two} == {2000}
    assert sum(before != after for (*_, before), (*_, after) in zip(one, two, strict=True)) == 1


def test_a_note_keeps_its_place_when_another_comes_before_it(
    page: Callable[..., Day], tmp_path: Path
) -> None:
    more = '<details class="question"><summary>1. New?</summary><p>Yes.</p></details>'
    first, second = tmp_path / "1.apkg", tmp_path / "2.apkg"
    anki.write_deck("en", [page()], first)
    anki.write_deck(
        "en",
        [page('<details class="question"><summary>1.', f'{more}<details class="question"><summary>2.')],
        second,
    )
    one, two = (dict(rows(path, "select guid, sfld from notes", tmp_path)) for path in (first, second))
    assert one.items() < two.items()
    assert len(two) == 7


def test_languages_and_days_are_told_apart(page: Callable[..., Day], tmp_path: Path) -> None:
    guids: set[str] = set()
    for language, slug in (("zh", "a"), ("en", "a"), ("en", "b")):
        path = tmp_path / f"{language}-{slug}.apkg"
        anki.write_deck(language, [page(slug=slug)], path)
        guids |= {guid for (guid,) in rows(path, "select guid from notes", tmp_path)}
    assert len(guids) == 18
    assert len({anki.deck_id(language, slug) for language in SITES for slug in "abc"}) == 6


def test_what_anki_knows_the_decks_by_never_changes() -> None:
    assert (anki.MODEL_ID, anki.DECK_IDS) == (1607392319, {"zh": 1736423507, "en": 1736423508})
    assert anki.deck_id("en", "dpo") == 4311163920


@pytest.mark.parametrize("language", SITES)
def test_the_decks_of_the_site(language: str, built_site: Path, address: str, tmp_path: Path) -> None:
    days = read_days(language, built_site)
    path = tmp_path / "deck.apkg"
    count = anki.write_deck(language, days, path)
    notes = rows(path, "select tags, flds from notes", tmp_path)
    assert len(notes) == count > 100
    for day in days:
        kinds = {tags.split()[0] for tags, _ in notes if day.slug in tags.split()}
        assert kinds == {"question", "formula", "shape", "trap"}, day.slug
        asked = [
            summary
            for summary in day.article.iter("details")
            if "question" in summary.get("class", "").split()
        ]
        assert sum(tags.split() == ["question", day.slug] for tags, _ in notes) == len(asked)
    pages = "".join(squeezed(built.plain(day.article)) for day in days)
    for _, fields in notes:
        front, back, *_, link = fields.split("\x1f")
        assert front.strip()
        assert link.startswith((f"{address}days/", f"{address}en/days/"))
        html = f"{front}<p>{back}"
        assert not re.search(r"katex|<script|<img|<link|<iframe|src=|url\(|\u2060|{{", html), html
        assert html.count(r"\(") == html.count(r"\)"), html
        for text in re.split(r"</?(?:p|div|dl|dt|dd|pre|summary|details|td|th|li)\b| · ", html):
            assert squeezed(unescape(re.sub(r"^[^<>]*>|<[^>]+>", "", text))) in pages, text


def squeezed(text: str) -> str:
    """Return words without what differs between a page and a card: blanks, and the signs around formulas."""
    return re.sub(r"\\[()\[\]]|\s|\$|·", "", text)
