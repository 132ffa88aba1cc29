"""The days as a feed (RSS), one a language, for readers who want to hear of a new one.

    python -m sitekit.feed     (after `mkdocs build`, into site/feed.xml and site/en/feed.xml)

A day is new on the ``date`` of its front matter, the same in both languages: CI checks out no history that
could tell. Made after the build, as Zensical renders no template but its own.
"""

from __future__ import annotations

import datetime
import email.utils
import xml.etree.ElementTree as etree
from pathlib import Path
from typing import Any, NamedTuple

from sitekit.built import FOLDERS, SITE, address, nav_pages, settings
from sitekit.pages import ROOT, SITES, FrontMatterError, front_matter

ATOM = "http://www.w3.org/2005/Atom"


class FeedError(ValueError):
    """A day that cannot be announced; the message names its page and says why."""


class Entry(NamedTuple):
    """A day in the feed."""

    date: datetime.date
    title: str
    text: str
    url: str


def read_entry(path: Path, url: str) -> Entry:
    """Return what the feed says of a day.

    Args:
        path: its page.
        url: where it is published.

    Raises:
        FeedError: the front matter lacks a title, a description or a date.
    """
    meta = front_matter(path.read_text(encoding="utf-8-sig"))
    date, title, text = (meta.get(key) for key in ("date", "title", "description"))
    if type(date) is not datetime.date:
        raise FeedError(f"{path}:1: a day states in its front matter when it was new, as date: 2026-11-30")
    if not (title and text):
        raise FeedError(f"{path}:1: a day states a title and a description in its front matter")
    return Entry(date, str(title), str(text), url)


def entries(config: Any) -> list[Entry]:
    """Return the days of one language, newest first; of one date, the later in the nav first.

    Raises:
        FeedError: a day states no date, title or description.
    """
    days = [page for page in nav_pages(config.nav) if page.startswith("days/")]
    found = [read_entry(Path(config.docs_dir) / page, config.site_url + address(page)) for page in days]
    return sorted(reversed(found), key=lambda entry: entry.date, reverse=True)


def feed(config: Any) -> bytes:
    """Return the feed of one language.

    Args:
        config: MkDocs' configuration of the language.

    Raises:
        FeedError: a day states no date, title or description.
    """
    etree.register_namespace("atom", ATOM)
    rss = etree.Element("rss", version="2.0")
    channel = etree.SubElement(rss, "channel")
    own = {"href": f"{config.site_url}feed.xml", "rel": "self", "type": "application/rss+xml"}
    _add(channel, title=config.site_name, link=config.site_url, description=config.site_description)
    _add(channel, language=config.extra["lang"])
    etree.SubElement(channel, f"{{{ATOM}}}link", own)
    for entry in entries(config):
        midnight = datetime.datetime.combine(entry.date, datetime.time(), datetime.UTC)
        item = etree.SubElement(channel, "item")
        _add(item, title=entry.title, link=entry.url, description=entry.text, guid=entry.url)
        _add(item, pubDate=email.utils.format_datetime(midnight))
    etree.indent(rss)
    return etree.tostring(rss, encoding="utf-8", xml_declaration=True)


def _add(parent: etree.Element, **texts: str) -> None:
    for name, text in texts.items():
        etree.SubElement(parent, name).text = text


def main() -> None:
    """Write the feeds into the built site."""
    for language in SITES:
        path = SITE / FOLDERS[language] / "feed.xml"
        path.write_bytes(feed(settings(language)))
        print(path.relative_to(ROOT).as_posix())


if __name__ == "__main__":
    try:
        main()
    except (FeedError, FrontMatterError) as error:
        raise SystemExit(f"feed: {error}") from error
