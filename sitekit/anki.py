r"""Flash cards: one Anki deck a language, made of the built pages.

    python -m sitekit.anki     (after `mkdocs build`, into site/downloads/ and site/en/downloads/)

A theory question asks for its answer, a section for its formulas, a row of the table of shapes for its
shapes, a common mistake for why it is one. Every word of a card stands on the page of its day, which the
card links to. A note is known by language, day and what it asks, so that a deck imported again changes the
answers of the cards that are there and keeps how well they are known.

Formulas are TeX between ``\(`` and ``\)``, which Anki draws itself; nothing is loaded from anywhere.
"""

from __future__ import annotations

import copy
import hashlib
import html
import itertools
import re
import sqlite3
import tempfile
import time
import xml.etree.ElementTree as etree
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import genanki

from sitekit.built import FOLDERS, SITE, BuiltError, Day, plain, read_days
from sitekit.pages import SITES

# Never to be changed: Anki knows the kind of note and the decks by them.
MODEL_ID = 1607392319
DECK_IDS = {"zh": 1736423507, "en": 1736423508}
NAMES = {"zh": "手撕大模型", "en": "LLM by Hand"}
KINDS = {
    "zh": {"question": "八股", "formula": "写出公式", "shape": "写出形状", "trap": "错在哪里"},
    "en": {
        "question": "Question",
        "formula": "Write the formulas",
        "shape": "Write the shapes",
        "trap": "What is wrong",
    },
}
NUMBER = re.compile(r"^\d+[.、]\s*")  # of a question, which is no part of it
FIELDS = ("Front", "Back", "Kind", "Day", "Link")
FRONT = '<div class="kind">{{Day}} · {{Kind}}</div>\n<div class="front">{{Front}}</div>'
BACK = '{{FrontSide}}\n<hr id="answer">\n{{Back}}\n<p class="day"><a href="{{Link}}">{{Day}}</a></p>'
STYLE = """\
.card { max-width: 42em; margin: 1em auto; padding: 0 .8em; font: 17px/1.65 system-ui, sans-serif;
  color: #1c2026; background: #fff; text-align: left; overflow-wrap: break-word; }
.kind, .day { color: #565d68; font-size: 80%; }
.front { font-size: 110%; font-weight: 600; }
code, pre { font: 88%/1.5 ui-monospace, Menlo, Consolas, monospace; background: #8882; border-radius: .2em; }
code { padding: .1em .25em; }
pre { padding: .6em; overflow-x: auto; }
pre code { padding: 0; font-size: 100%; background: none; }
.filename { font-size: 75%; color: #565d68; }
table { border-collapse: collapse; font-size: 90%; }
th, td { padding: .3em .6em; border: 1px solid #8886; text-align: left; }
dt { margin-top: .6em; color: #565d68; font-size: 85%; }
dd { margin: 0; }
details { margin: .8em 0; padding-left: .8em; border-left: .2em solid #8886; }
summary { font-weight: 600; cursor: pointer; }
svg { max-width: 100%; height: auto; }
.k, .kn, .ow { color: #2759b0; } .s1, .s2, .sd, .sa { color: #14713f; } .c1 { color: #59636e; }
.mi, .mf { color: #b0351b; } .nf, .nc { color: #7b3fa8; }
.nightMode.card { color: #dfe3e9; background: #14171d; }
.nightMode .kind, .nightMode .day, .nightMode dt, .nightMode .filename, .nightMode .c1 { color: #a9b1bd; }
.nightMode a { color: #8cbcff; }
.nightMode .k, .nightMode .kn, .nightMode .ow { color: #8ab8ff; }
.nightMode .mi, .nightMode .mf { color: #f0a17e; }
.nightMode .s1, .nightMode .s2, .nightMode .sd, .nightMode .sa { color: #86d6a4; }
.nightMode .nf, .nightMode .nc { color: #cfa9ff; }
"""


class CardError(ValueError):
    """Cards that cannot be made of a page; the message names the page and says why."""


class Card(NamedTuple):
    """One note; with day and language, ``key`` is what Anki knows it by."""

    kind: str
    key: str
    front: str
    back: str
    anchor: str  # of the section of the page that has both sides


def cards(day: Day) -> Iterator[Card]:
    """Yield the cards of a day.

    Raises:
        CardError: two cards of a kind ask for the same.
    """
    seen: set[tuple[str, str]] = set()
    for card in itertools.chain(_questions(day), _formulas(day), _shapes(day), _traps(day)):
        if (card.kind, card.key) in seen:
            raise CardError(f"{day.url}#{card.anchor}: two cards of the kind {card.kind} ask {card.key!r}")
        seen.add((card.kind, card.key))
        yield card


def _chapter(day: Day, anchor: str) -> Iterator[etree.Element]:
    """Yield what stands in one chapter of a page, its sections included."""
    inside = False
    for element in day.article:
        if element.tag in ("h1", "h2"):
            inside = element.get("id") == anchor
        elif inside:
            yield element


def _questions(day: Day) -> Iterator[Card]:
    """A question asks for its answer; the follow-ups stay folded below it, as on the page."""
    for element in _chapter(day, "questions"):
        if element.tag == "details" and "question" in element.get("class", "").split():
            summary, *answer = element
            key, front = (NUMBER.sub("", text) for text in (plain(summary), _inner(summary, day)))
            yield Card("question", key, front, _html(answer, day), "questions")


def _formulas(day: Day) -> Iterator[Card]:
    """A section asks for its formulas; with each comes the paragraph that leads to it."""
    heading, answer, before = etree.Element("h1"), list[etree.Element](), None
    for element in [*day.article, etree.Element("h1")]:
        if element.tag in ("h1", "h2", "h3", "h4"):
            if answer:
                anchor = heading.get("id", "")
                yield Card("formula", anchor, _inner(heading, day), _html(answer, day), anchor)
            heading, answer = element, []
        elif element.tag == "formula":
            answer += [before, element] if before is not None and before.tag == "p" else [element]
        before = element


def _shapes(day: Day) -> Iterator[Card]:
    """A row of a table of shapes asks for its shapes; rows that share a first cell are told by the second."""
    for table in _chapter(day, "shapes"):
        rows = list(_rows(table))
        first = [plain(cells[0]) for _, cells in rows]
        names = 1 if len(set(first)) == len(first) else 2
        for head, cells in rows:
            key = " · ".join(plain(cell) for cell in cells[:names])
            front = " · ".join(_inner(cell, day) for cell in cells[:names])
            yield Card("shape", key, front, _list(head[names:], cells[names:], day), "shapes")


def _traps(day: Day) -> Iterator[Card]:
    """A mistake asks why it is one: a row of a table, or what starts an item of a list in bold type."""
    for element in _chapter(day, "mistakes"):
        for head, (name, *rest) in _rows(element):
            yield Card("trap", plain(name), _inner(name, day), _list(head[1:], rest, day), "mistakes")
        for item in element.findall("li") if element.tag == "ol" else ():
            name = item.find(".//strong")
            if name is not None:
                yield Card("trap", plain(name), _inner(name, day), _inner(item, day), "mistakes")


def _rows(table: etree.Element) -> Iterator[tuple[list[etree.Element], list[etree.Element]]]:
    """Yield the headings and the cells of each row; an empty first cell is that of the row above."""
    head = table.findall("./thead/tr/th")
    above = None
    for row in table.findall("./tbody/tr"):
        first, *rest = row.findall("td")
        above = first if above is None or plain(first) else above
        yield head, [above, *rest]


def _list(head: list[etree.Element], cells: list[etree.Element], day: Day) -> str:
    """Return the cells of a row below their headings, empty ones left out."""
    pairs = ((name, cell) for name, cell in zip(head, cells, strict=True) if plain(cell))
    items = (f"<dt>{_inner(name, day)}</dt><dd>{_inner(cell, day)}</dd>" for name, cell in pairs)
    return f"<dl>{''.join(items)}</dl>"


def _inner(element: etree.Element, day: Day) -> str:
    """Write out what an element holds."""
    whole = etree.Element("div")
    whole.text = element.text
    whole.extend(element)
    return _html([whole], day).removeprefix("<div>").removesuffix("</div>").strip()


def _html(elements: Iterable[etree.Element], day: Day) -> str:
    """Write elements out for Anki: formulas as TeX, links to the published pages, no ids."""
    pieces: list[str] = []
    for element in map(copy.deepcopy, elements):
        element.tail = None
        for node in element.iter():
            if node.tag == "formula":
                if node.get("display"):
                    node.tag, node.text = "div", f"\\[{node.text}\\]"
                else:
                    node.tag, node.text = "span", f"\\({node.text}\\)"
                node.attrib.clear()
            elif node.tag == "a" and "href" in node.attrib:
                node.set("href", urljoin(day.url, node.get("href", "")))
            node.attrib.pop("id", None)
        pieces.append(etree.tostring(element, encoding="unicode", method="html"))
    return "\n".join(pieces)


class _Note(genanki.Note):
    """A note that is known by what it asks, not by all it says."""

    def __init__(self, language: str, day: Day, card: Card) -> None:
        super().__init__(
            model=_model(),
            fields=[
                card.front,
                card.back,
                KINDS[language][card.kind],
                html.escape(day.title),
                f"{day.url}#{card.anchor}",
            ],
            tags=[card.kind, day.slug],
            guid=genanki.guid_for(language, day.slug, card.kind, card.key),
        )


def _model() -> genanki.Model:
    return genanki.Model(
        MODEL_ID,
        "LLM by Hand",
        fields=[{"name": name} for name in FIELDS],
        templates=[{"name": "Card", "qfmt": FRONT, "afmt": BACK}],
        css=STYLE,
    )


def deck_id(language: str, slug: str) -> int:
    """Return the number by which Anki knows the deck of a day, the same on every machine and for ever."""
    digest = hashlib.sha256(f"{language}/{slug}".encode()).digest()
    return DECK_IDS[language] + 1 + int.from_bytes(digest[:4], "big")


def write_deck(language: str, days: Iterable[Day], path: Path, now: float | None = None) -> int:
    """Write the deck of one language, a deck in it for each day, and return how many notes it has.

    Args:
        language: "zh" or "en".
        days: in the order in which they are studied.
        path: the .apkg file.
        now: seconds since 1970; a deck written later changes the notes of one that was imported before.

    Raises:
        CardError: two cards ask for the same.
    """
    decks = [genanki.Deck(DECK_IDS[language], NAMES[language])]
    for day in days:
        deck = genanki.Deck(deck_id(language, day.slug), f"{NAMES[language]}::{day.title.replace('::', ':')}")
        for card in cards(day):
            deck.add_note(_Note(language, day, card))
        decks += [deck] if deck.notes else []
    path.parent.mkdir(parents=True, exist_ok=True)
    now = time.time() if now is None else now
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        collection = Path(folder) / "collection.anki2"
        with closing(sqlite3.connect(collection)) as database:
            genanki.Package(decks).write_to_db(database.cursor(), now, itertools.count(int(now * 1000)))
            database.commit()
        package.write(collection, collection.name)
        package.writestr("media", "{}")
    return sum(len(deck.notes) for deck in decks)


def deck_path(language: str, site: Path = SITE) -> Path:
    """Return where the deck of a language lies in the built site."""
    return site / FOLDERS[language] / "downloads" / f"llm-by-hand.{language}.apkg"


def main() -> None:
    """Write the decks of both languages into the built site."""
    for language in SITES:
        path = deck_path(language)
        count = write_deck(language, read_days(language), path)
        print(f"{path.relative_to(SITE.parent)}: {count} cards")


if __name__ == "__main__":
    try:
        main()
    except (BuiltError, CardError) as error:
        raise SystemExit(f"anki: {error}") from error
