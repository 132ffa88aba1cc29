"""What a page says of itself to others: its description, its image, and the feed of the days."""

from __future__ import annotations

import datetime
import html
import re
import shutil
import struct
import unicodedata
import xml.etree.ElementTree as etree
import zlib
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from sitekit import cards
from sitekit.built import FOLDERS, address, nav_pages, settings
from sitekit.chromium import NO_CHROMIUM, ChromiumError, find_chromium
from sitekit.feed import FeedError, entries, feed, read_entry
from sitekit.indexes import day_paths
from sitekit.new_day import page as new_page
from sitekit.pages import ROOT, SITES
from sitekit.tags import front_matter

META = re.compile(r'<meta (?:name|property)="([^"]+)" content="([^"]*)">')
LOCALES = {"zh": ("zh_CN", "en_US"), "en": ("en_US", "zh_CN")}
# Returns the colours of four places and a digest of the words; the edges of the logo come out a shade apart.
PIXELS = """async (bytes) => {
  const image = await createImageBitmap(new Blob([new Uint8Array(bytes)], {type: "image/png"}));
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const places = [[0, 0], [image.width - 1, 0], [0, image.height - 1], [600, 2]];
  const all = canvas.getImageData(0, 0, 780, image.height).data;
  return [places.map(([x, y]) => [...canvas.getImageData(x, y, 1, 1).data].join()),
    all.reduce((sum, value) => (sum * 31 + value) % 4294967291, 7)];
}"""
needs_chromium = pytest.mark.skipif(find_chromium() is None, reason=NO_CHROMIUM)


def width(text: str) -> int:
    """Return how much room a text takes in a list of results, where a Chinese character counts twice."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def heads(site: Path, language: str) -> dict[str, dict[str, str]]:
    """Return what the head of each page says, by the address of the page below its site."""
    found = {}
    for name in nav_pages(settings(language).nav):
        text = (site / FOLDERS[language] / address(name) / "index.html").read_text(encoding="utf-8")
        pairs = META.findall(text[: text.index("</head>")])
        assert len(pairs) == len(dict(pairs)), f"{name}: something is said twice"
        found[address(name)] = {key: html.unescape(value) for key, value in pairs}
    return found


@pytest.mark.parametrize("language", SITES)
def test_every_page_is_described_and_none_like_another(built_site: Path, language: str) -> None:
    said = {name: head.get("description", "") for name, head in heads(built_site, language).items()}
    wrong = [f"{name}: {width(text)}: {text}" for name, text in said.items() if not 50 <= width(text) <= 160]
    assert not wrong, "\n".join(wrong)
    assert len(set(said.values())) == len(said) > 20


@pytest.mark.parametrize("language", SITES)
def test_a_link_to_a_page_shows_what_it_is(built_site: Path, address: str, language: str) -> None:
    base = address + FOLDERS[language]
    own, other = LOCALES[language]
    titles = set()
    for name, head in heads(built_site, language).items():
        assert head["og:description"] == head["description"]
        assert head["og:url"] == base + name
        assert head["og:image"] == f"{base}assets/images/card.{language}.png"
        assert (built_site / head["og:image"].removeprefix(address)).is_file()
        assert (head["og:image:width"], head["og:image:height"]) == (str(cards.WIDTH), str(cards.HEIGHT))
        assert head["og:image:alt"] == head["og:title"] != ""
        assert head["og:type"] == ("article" if name.startswith("days/") else "website")
        assert (head["og:locale"], head["og:locale:alternate"]) == (own, other)
        assert head["twitter:card"] == "summary_large_image"
        titles.add(head["og:title"])
    assert len(titles) > 20


def size(png: bytes) -> tuple[int, int]:
    """Return width and height of a PNG whose every part is whole."""
    assert png.startswith(cards.PNG)
    place, kinds = len(cards.PNG), []
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        body = png[place + 4 : place + 8 + length]
        assert struct.unpack_from(">I", png, place + 8 + length) == (zlib.crc32(body),)
        kinds.append(kind)
        place += length + 12
    assert kinds == [b"IHDR", b"IDAT", b"IEND"]
    return struct.unpack_from(">II", png, 16)


@pytest.mark.parametrize("language", SITES)
def test_the_image_of_the_site_is_there(language: str) -> None:
    png = (ROOT / "overrides" / "assets" / "images" / f"card.{language}.png").read_bytes()
    assert size(png) == (cards.WIDTH, cards.HEIGHT)
    assert len(png) < 40_000


@needs_chromium
def test_each_page_gets_an_image_of_its_own(
    built_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["index.html", "days/dpo/index.html", "api/heads/index.html"]
    for name in names:
        (tmp_path / "en" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built_site / "en" / name, tmp_path / "en" / name)
    monkeypatch.setattr(cards, "nav_pages", lambda nav: ["index.md", "days/dpo.md", "api/heads.md"])
    monkeypatch.setattr(cards, "MOST", 2)
    assert cards.draw_pages("en", tmp_path) == len(names)
    pngs = set()
    for name, card in zip(names, ("index", "days-dpo", "api-heads"), strict=True):
        text = (tmp_path / "en" / name).read_text(encoding="utf-8")
        url = settings("en").site_url + f"assets/cards/{card}.png"
        assert re.findall('og:image" content="([^"]*)"', text) == [url]
        png = (tmp_path / "en" / "assets" / "cards" / f"{card}.png").read_bytes()
        assert size(png) == (cards.WIDTH, cards.HEIGHT)
        assert 5_000 < len(png) < 60_000
        pngs.add(png)
    assert len(pngs) == len(names)


@needs_chromium
def test_an_image_is_cut_where_the_next_begins(chromium: Any) -> None:
    """What a browser makes of each is what it shows when it is drawn alone."""
    first, second = cards.Card("A", "first"), cards.Card("A", "第二")
    page = chromium.new_page()
    seen = [page.evaluate(PIXELS, list(png)) for png in cards.draw([first, second], "en")]
    [alone] = (page.evaluate(PIXELS, list(png)) for png in cards.draw([second], "en"))
    page.close()
    assert seen[1] == alone != seen[0]
    for colours, _ in seen:
        assert colours == ["29,53,87,255"] * 4


def test_a_picture_of_another_size_is_refused() -> None:
    header = struct.pack(">IIBBBBB", 800, 600, 8, 2, 0, 0, 0)
    with pytest.raises(ChromiumError, match="800 x 600, not 1200 x 1260"):
        cards._cut(cards.PNG + cards._chunk(b"IHDR", header), 2)


def test_without_a_chromium_nothing_is_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cards, "find_chromium", lambda: None)
    cards.main()
    assert "every page names the site's image" in capsys.readouterr().out


@pytest.mark.parametrize("language", SITES)
def test_the_feed_announces_every_day(built_site: Path, address: str, language: str) -> None:
    config = settings(language)
    rss = etree.fromstring(feed(config))
    assert (rss.tag, rss.get("version")) == ("rss", "2.0")
    channel = rss[0]
    assert channel.findtext("link") == config.site_url
    assert channel.findtext("language") == config.extra["lang"]
    assert channel.findtext("title") == config.site_name
    assert channel.findtext("description")
    own = channel.find("{http://www.w3.org/2005/Atom}link")
    assert own is not None
    assert (own.get("rel"), own.get("href")) == ("self", f"{config.site_url}feed.xml")
    items = channel.findall("item")
    links = [item.findtext("link", "") for item in items]
    days = [f"{config.site_url}days/{path.stem}/" for path in day_paths(language)]
    assert sorted(links) == sorted(days)
    dates = [parsedate_to_datetime(item.findtext("pubDate", "")) for item in items]
    assert dates == sorted(dates, reverse=True)
    for item, link in zip(items, links, strict=True):
        assert item.findtext("guid") == link
        assert item.findtext("title")
        assert item.findtext("description")
    for name in ("index.html", "days/dpo/index.html", "api/masks/index.html"):
        text = (built_site / FOLDERS[language] / name).read_text(encoding="utf-8")
        [link] = re.findall('<link rel="alternate " type="application/rss[+]xml" [^>]*href="([^"]+)"', text)
        assert link == f"{address}{FOLDERS[language]}feed.xml"


def test_a_newer_day_comes_first_and_of_one_date_the_later_in_the_nav(tmp_path: Path) -> None:
    dates = {"a": "2031-02-03", "b": "2031-02-04", "c": "2031-02-03"}
    (tmp_path / "days").mkdir()
    for name, date in dates.items():
        text = f"---\ntitle: {name}\ndescription: words\ndate: {date}\n---\n# A\n"
        (tmp_path / "days" / f"{name}.md").write_text(text, encoding="utf-8")
    nav = ["index.md", {"Days": [{name: f"days/{name}.md"} for name in dates]}]
    config = type("Config", (), {"nav": nav, "docs_dir": str(tmp_path), "site_url": "https://a.org/"})
    assert [entry.url for entry in entries(config)] == [f"https://a.org/days/{name}/" for name in "bca"]


@pytest.mark.parametrize(
    ("front", "message"),
    [
        ("title: A\ndescription: B\n", "a.md:1: a day states in its front matter when it was new"),
        ("title: A\ndescription: B\ndate: soon\n", "when it was new, as date: 2026-11-30"),
        ("title: A\ndate: 2031-02-03\n", "a.md:1: a day states a title and a description"),
    ],
)
def test_a_day_that_cannot_be_announced_is_refused(tmp_path: Path, front: str, message: str) -> None:
    (tmp_path / "a.md").write_text(f"---\n{front}---\n# A\n", encoding="utf-8")
    with pytest.raises(FeedError, match=message):
        read_entry(tmp_path / "a.md", "https://a.org/")


def test_both_languages_say_when_a_day_was_new() -> None:
    dates = [
        {
            path.stem: front_matter(path.read_text(encoding="utf-8")).get("date")
            for path in day_paths(language)
        }
        for language in SITES
    ]
    assert dates[0] == dates[1]
    assert all(type(date) is datetime.date for date in dates[0].values()), dates[0]
    assert front_matter(new_page("rope", "zh"))["date"] == datetime.date.today()
