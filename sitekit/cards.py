"""The image that a link to a page shows elsewhere: its title, drawn here, one a page.

    python -m sitekit.cards           (after `mkdocs build`, into assets/cards/ of each language)
    python -m sitekit.cards --site    (overrides/assets/images/card.zh.png and card.en.png, the site's own)

The templates name the site's image, which is kept, as it must be there without a Chromium. Where one is
installed it draws each page's own, and the page then names that.
"""

from __future__ import annotations

import html
import re
import struct
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sitekit.built import FOLDERS, SITE, address, nav_pages, settings
from sitekit.chromium import ChromiumError, find_chromium, run_chromium
from sitekit.pages import ROOT, SITES

WIDTH, HEIGHT = 1200, 630  # as the templates say
MOST = 16  # in one picture; Chromium has an end
PNG = b"\x89PNG\r\n\x1a\n"
GROUND = {2: b"\x1d\x35\x57", 6: b"\x1d\x35\x57\xff"}  # by the kind of PNG: without and with transparency
OPTIONS = ("--force-device-scale-factor=1", "--force-color-profile=srgb", "--hide-scrollbars")
TITLE = re.compile(r'<meta property="og:title" content="([^"]*)">')
IMAGE = re.compile(r'(<meta property="og:image" content=")[^"]*')
LOGO = ROOT / "overrides" / "assets" / "images" / "logo.svg"
STYLE = """
* { box-sizing: border-box; margin: 0; }
article { position: relative; width: 1200px; height: 630px; padding: 64px 72px; overflow: hidden; color: #fff;
  background: #1d3557; font-family: -apple-system, "Segoe UI", "PingFang SC", "Microsoft YaHei",
  "Noto Sans CJK SC", "WenQuanYi Micro Hei", "DejaVu Sans", sans-serif; }
svg { position: absolute; top: 125px; right: 30px; width: 380px; }
p { font-size: 36px; }
h1 { position: absolute; bottom: 72px; width: 700px; padding-bottom: 40px; border-bottom: 10px solid #e4573d;
  font-size: 72px; line-height: 1.25; text-wrap: balance; overflow-wrap: anywhere; }
"""


class Card(NamedTuple):
    """What an image says."""

    site: str
    title: str


def draw(cards: Sequence[Card], lang: str) -> list[bytes]:
    """Return the cards as PNG: pictures of one page, cut at its even ground.

    Args:
        cards: what they say.
        lang: the language of all.

    Raises:
        ChromiumError: there is none, or it draws nothing.
    """
    drawn: list[bytes] = []
    for start in range(0, len(cards), MOST):
        some = cards[start : start + MOST]
        with tempfile.TemporaryDirectory() as folder:
            source, picture = Path(folder) / "cards.html", Path(folder) / "cards.png"
            source.write_text(_page(some, lang), encoding="utf-8")
            size = f"--window-size={WIDTH},{HEIGHT * len(some)}"
            run_chromium(source, picture, size, *OPTIONS, f"--screenshot={picture}")
            drawn += _cut(picture.read_bytes(), len(some))
    return drawn


def _page(cards: Sequence[Card], lang: str) -> str:
    logo = LOGO.read_text(encoding="utf-8")
    shown = []
    for card in cards:
        site, title = map(html.escape, card)
        shown.append(f"{logo}<p>{site if site != title else ''}</p><h1>{title}</h1>")
    articles = "".join(f"<article>{each}</article>" for each in shown)
    return f'<!doctype html><html lang="{lang}"><meta charset="utf-8"><style>{STYLE}</style>{articles}'


def _cut(png: bytes, count: int) -> list[bytes]:
    """Cut a picture into ``count`` of one height, each packed tighter than Chromium cares to.

    A row is stored as what differs from the row above. Only the first row of each loses that, and is ground.
    """
    place, data, header = len(PNG), bytearray(), b""
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        chunk = png[place + 8 : place + 8 + length]
        header = chunk if kind == b"IHDR" else header
        data += chunk if kind == b"IDAT" else b""
        place += length + 12
    width, height, depth, colours, *_, interlaced = struct.unpack(">IIBBBBB", header)
    if (width, height, depth, interlaced) != (WIDTH, HEIGHT * count, 8, 0) or colours not in GROUND:
        raise ChromiumError(f"Chromium took a picture of {width} x {height}, not {WIDTH} x {HEIGHT * count}")
    ground = b"\0" + GROUND[colours] * WIDTH
    rows, size = zlib.decompress(data), len(ground) * HEIGHT
    parts = (ground + rows[at + len(ground) : at + size] for at in range(0, size * count, size))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, colours, 0, 0, 0)
    ends = _chunk(b"IHDR", header), _chunk(b"IEND", b"")
    return [PNG + ends[0] + _chunk(b"IDAT", zlib.compress(part, 9)) + ends[1] for part in parts]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def draw_pages(language: str, site: Path = SITE) -> int:
    """Draw the card of every page of one language, and name it there; return how many.

    Args:
        language: "zh" or "en".
        site: the built site.

    Raises:
        ChromiumError: there is none, or it draws nothing.
    """
    config = settings(language)
    root = site / FOLDERS[language]
    pages = [root / address(page) / "index.html" for page in nav_pages(config.nav)]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    titles = [html.unescape(TITLE.findall(text)[0]) for text in texts]
    cards = [Card(config.site_name, each) for each in titles]
    for page, text, png in zip(pages, texts, draw(cards, config.extra["lang"]), strict=True):
        name = "-".join(page.parent.relative_to(root).parts) or "index"
        path = root / "assets" / "cards" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)
        named = IMAGE.sub(rf"\g<1>{config.site_url}assets/cards/{path.name}", text)
        page.write_text(named, encoding="utf-8", newline="\n")
    return len(pages)


def main() -> None:
    """Draw the cards of the built site, or the two that are kept."""
    if find_chromium() is None:
        print("cards: no Chromium, every page names the site's image")
        return
    for language in SITES:
        if sys.argv[1:] == ["--site"]:
            config = settings(language)
            card = Card("", config.site_name)
            path = ROOT / "overrides" / "assets" / "images" / f"card.{language}.png"
            path.write_bytes(draw([card], config.extra["lang"])[0])
        else:
            print(f"site/{FOLDERS[language]}assets/cards: {draw_pages(language)} images")


if __name__ == "__main__":
    try:
        main()
    except ChromiumError as error:  # a site without its cards is a whole site
        print(f"cards: {error}; every page that has none names the site's image", file=sys.stderr)
