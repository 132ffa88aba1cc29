"""The whole plan as one PDF a language: cover, contents, the plan, practising, every day, the glossary.

    python -m sitekit.pdf     (after `make build`, into site/downloads/ and site/en/downloads/)

The built pages are put into one document, folded answers open, their links to each other made links within
it, and an installed Chromium prints it: twice, as the contents can name pages only once there are pages.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urljoin

import pypdf

from sitekit.built import FOLDERS, SITE, address, nav_pages, settings
from sitekit.chromium import ChromiumError, run_chromium
from sitekit.downloads import offer
from sitekit.pages import SITES

# Of these some are about the site, the API is the docstrings' home, the others are of use in a browser alone.
LEFT_OUT = re.compile(r"(index|site|quiz|questions|papers|tags)\.md|api/.*")
WORDS = {
    "zh": {"contents": "目录", "from": "由网站的页面生成："},
    "en": {"contents": "Contents", "from": "Made of the pages of the site: "},
}
ATTRIBUTE = re.compile(r'(<[^<>]*?\s)(id|href|aria-labelledby)="([^"]*)"')
HEADING = re.compile(r'<h([12])\b[^>]*?id="([^"]+)"[^>]*>(.*?)</h\1>', re.DOTALL)
TAKEN_OUT = re.compile(
    r'<aside class="downloads".*?</aside>|<p class="report".*?</p>'
    r'|<a class="headerlink".*?</a>|<a class="md-content__button.*?</a>',
    re.DOTALL,
)
STYLE = """
@page { size: A4; margin: 18mm 16mm 20mm; }
@page { @bottom-center { content: counter(page); font: 9pt sans-serif; color: #565d68; } }
@page :first { @bottom-center { content: ""; } }
html { font-size: 120%; }
body { width: 178mm; min-height: 0; margin: 0; background: #fff; display: block; }
.md-typeset { font-size: 10pt; line-height: 1.55; }
article, .contents { break-before: page; }
.cover { padding-top: 70mm; text-align: center; }
.cover h1 { font-size: 32pt; }
.contents p { display: flex; gap: 1em; margin: .3em 0; break-inside: avoid; }
.contents p span { margin-left: auto; }
.contents p a { color: inherit; text-decoration: none !important; }
.contents .page { margin-top: 1em; font-weight: 650; }
.contents .part { padding-left: 1.5em; font-size: 9pt; }
.md-typeset pre > code { white-space: pre-wrap !important; overflow-wrap: anywhere; }
.md-typeset pre > code { font-size: 7pt; overflow: visible; }
.md-typeset pre, .md-typeset .highlight { overflow: visible; }
.md-typeset table:not([class]) { display: table; width: 100%; font-size: 8pt; overflow: visible; }
.md-typeset table:not([class]) :is(th, td) { min-width: 0; padding: .4em .5em; white-space: normal; }
.md-typeset table:not([class]) td code { white-space: normal; overflow-wrap: anywhere; }
.md-typeset details, .md-typeset .admonition { break-inside: auto; font-size: 9pt; }
.md-typeset summary { break-after: avoid; }
.md-typeset summary::after { display: none; }
.md-typeset figure { text-align: center; break-inside: avoid; }
.md-typeset figure svg { max-height: 170mm; }
.md-typeset tr { break-inside: avoid; }
"""


class PdfError(RuntimeError):
    """A document that was not printed; the message says why, and what to do."""


class _Part(NamedTuple):
    """One page of the site as a part of the document."""

    key: str
    title: str
    article: str
    chapters: list[tuple[str, str]]  # anchor and title


def document(language: str, site: Path = SITE, pages: dict[str, int] | None = None) -> str:
    """Return the whole plan as one page of HTML, to lie beside the front page of its language.

    Args:
        language: "zh" or "en".
        site: the built site.
        pages: on which page of paper each anchor of the contents stands, once that is known.

    Raises:
        PdfError: the site is not built.
    """
    config = settings(language)
    root = site / FOLDERS[language]
    wanted = [page for page in nav_pages(config.nav) if not LEFT_OUT.fullmatch(page)]
    parts = [_part(page, wanted, root, config) for page in wanted]
    front = (root / "index.html").read_text(encoding="utf-8")
    styles = "\n".join(re.findall(r'<link rel="stylesheet" href="[^"]*">', front))
    words, numbers = WORDS[language], pages or {}
    contents = "\n".join(
        f'<p class="{kind}"><a href="#{anchor}">{title}</a><span>{numbers.get(anchor, "")}</span></p>'
        for part in parts
        for kind, items in (("page", [(part.key, part.title)]), ("part", part.chapters))
        for anchor, title in items
    )
    name, url = html.escape(config.site_name), html.escape(config.site_url)
    articles = "\n".join(f'<article class="md-typeset">{part.article}</article>' for part in parts)
    return f"""<!doctype html>
<html lang="{config.extra["lang"]}"><head><meta charset="utf-8"><title>{name}</title>
{styles}
<style>{STYLE}</style></head>
<body dir="ltr" data-md-color-scheme="default" data-md-color-primary="custom" data-md-color-accent="custom">
<section class="cover md-typeset"><h1>{name}</h1><p>{html.escape(config.site_description)}</p>
<p>{words["from"]}<a href="{url}">{url}</a></p><p>{html.escape(config.copyright)}</p></section>
<section class="contents md-typeset"><h2>{words["contents"]}</h2>
{contents}
</section>
{articles}
</body></html>
"""


def _key(page: str) -> str:
    return page.removesuffix(".md").replace("/", "-")


def _part(page: str, wanted: list[str], root: Path, config: Any) -> _Part:
    """Read one page; its anchors get the name of the page before them, its links follow."""
    path = root / address(page) / "index.html"
    if not path.is_file():
        raise PdfError(f"{path} is not there; `make build` builds the site")
    text = path.read_text(encoding="utf-8")
    body = text[text.index(">", text.index("<article")) + 1 : text.rindex("</article>")]
    body = TAKEN_OUT.sub("", body).replace("<details ", "<details open ")
    key, url = _key(page), urljoin(config.site_url, address(page))
    inside = {urljoin(config.site_url, address(other)): _key(other) for other in wanted}

    def moved(match: re.Match[str]) -> str:
        before, name, value = match.groups()
        if name == "href":
            target, anchor = urldefrag(urljoin(url, html.unescape(value)))
            if target in inside:
                value = f"#{inside[target]}" + (f"--{anchor}" if anchor else "")
            else:
                value = html.escape(urljoin(url, html.unescape(value)))
        else:
            value = " ".join(f"{key}--{each}" for each in value.split())
        return f'{before}{name}="{value}"'

    body = ATTRIBUTE.sub(moved, body)
    found = [(level, anchor, _label(inner)) for level, anchor, inner in HEADING.findall(body)]
    title = next((label for level, _, label in found if level == "1"), page)
    chapters = [(anchor, label) for level, anchor, label in found if level == "2"]
    return _Part(key, title, f'<a id="{key}"></a>{body}', chapters)


def _label(inner: str) -> str:
    """Return a heading for the contents: without tags, drawn formulas only once."""
    once = re.sub(r'<span class="katex-mathml">.*?</math></span>', "", inner, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", "", once)


def print_document(text: str, folder: Path, path: Path) -> None:
    """Print HTML that lies in a folder of the built site.

    Raises:
        PdfError: there is no Chromium, or it did not print.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    page = folder / "document.html"
    page.write_text(text, encoding="utf-8")
    options = ["--no-pdf-header-footer", "--generate-pdf-document-outline", "--virtual-time-budget=20000"]
    try:
        run_chromium(page, path, *options, f"--print-to-pdf={path.resolve()}")
    except ChromiumError as error:
        raise PdfError(str(error)) from error
    finally:
        page.unlink()


def page_numbers(path: Path) -> dict[str, int]:
    """Return the page on which each place that a link leads to stands, counted from 1."""
    reader = pypdf.PdfReader(path)
    found: dict[str, int] = {}
    for name, place in reader.named_destinations.items():
        number = reader.get_destination_page_number(place)
        if number is not None:
            found[name.removeprefix("/")] = number + 1
    return found


def pdf_path(language: str, site: Path = SITE) -> Path:
    """Return where the document of a language lies in the built site."""
    return site / FOLDERS[language] / "downloads" / f"llm-by-hand.{language}.pdf"


def write(language: str, site: Path = SITE) -> int:
    """Print the document of one language into the built site, and return how many pages it has.

    Raises:
        PdfError: the site is not built, or nothing prints it.
    """
    folder, path = site / FOLDERS[language], pdf_path(language, site)
    numbers: dict[str, int] = {}
    for _ in range(2):
        print_document(document(language, site, numbers), folder, path)
        numbers = page_numbers(path)
    return len(pypdf.PdfReader(path).pages)


def main() -> None:
    """Print both languages."""
    for language in SITES:
        pages = write(language)
        print(f"{pdf_path(language).relative_to(SITE.parent).as_posix()}: {pages} pages")
    offer()


if __name__ == "__main__":
    try:
        main()
    except PdfError as error:
        raise SystemExit(f"pdf: {error}") from error
