"""The plan on paper: one document, its links lead within it, nothing is cut off, nothing is dark."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pypdf
import pytest

from sitekit import pdf
from sitekit.built import FOLDERS, nav_pages, settings
from sitekit.chromium import NO_CHROMIUM
from sitekit.pages import SITES

WIDE = """() => [...document.querySelectorAll("pre, pre > code, table, div.formula, figure")]
  .filter((box) => box.getBoundingClientRect().right > document.body.clientWidth + 2
    || (box.tagName != "FIGURE" && box.scrollWidth > box.clientWidth + 3))
  .map((box) => `${box.tagName} ${box.scrollWidth} > ${box.clientWidth}: ${box.textContent.slice(0, 80)}`)"""
SHADES = """() => [document.body, ...document.querySelectorAll("pre > code, th")]
  .map((box) => getComputedStyle(box).backgroundColor)"""


@pytest.fixture(scope="module")
def site(built_site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the built site into which documents may be written."""
    return Path(shutil.copytree(built_site, tmp_path_factory.mktemp("pdf") / "site"))


@pytest.mark.parametrize("language", SITES)
def test_the_document_holds_the_plan_and_its_links_lead_within_it(language: str, built_site: Path) -> None:
    text = pdf.document(language, built_site)
    ids = re.findall(r'<[^<>]*? id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    inside = set(re.findall(r'href="#([^"]+)"', text))
    assert inside <= set(ids), sorted(inside - set(ids))
    days = [page for page in nav_pages(settings(language).nav) if page.startswith("days/")]
    keys = [key for key in ids if "--" not in key]
    assert keys == ["plan", "practice", *(pdf._key(page) for page in days), "glossary", "verified"]
    assert "days-dpo--questions" in inside
    for link in re.findall(r'href="([^"#][^"]*)"', text.split("<body")[1]):
        assert re.match(r"https?://|mailto:", link), link
        assert not re.search(r"//[^/]+/(en/)?(days|plan|practice|glossary|verified)/", link), link
    assert "downloads" not in text.split("<body")[1]
    assert "<details " in text
    assert text.count("<details ") == text.count("<details open ")


def test_a_site_that_is_not_built_is_refused(tmp_path: Path) -> None:
    with pytest.raises(pdf.PdfError, match="`make build` builds the site"):
        pdf.document("en", tmp_path)


def test_without_a_chromium_it_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sitekit.chromium.find_chromium", lambda: None)
    with pytest.raises(pdf.PdfError, match=re.escape(NO_CHROMIUM)):
        pdf.print_document("<p>", tmp_path, tmp_path / "a.pdf")


@pytest.mark.parametrize("language", SITES)
def test_nothing_is_cut_off_or_dark(language: str, site: Path, chromium: Any) -> None:
    page = site / FOLDERS[language] / "document.html"
    page.write_text(pdf.document(language, site), encoding="utf-8")
    context = chromium.new_context(color_scheme="dark", viewport={"width": 800, "height": 1000})
    tab = context.new_page()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.emulate_media(media="print", color_scheme="dark")
    tab.goto(page.as_uri(), timeout=120_000)
    assert not tab.evaluate(WIDE)
    for colour in set(tab.evaluate(SHADES)):
        assert min(int(part) for part in re.findall(r"\d+", colour)) > 225, colour
    assert not [url for url in asked if not url.startswith(("file:", "data:"))]
    context.close()
    page.unlink()


def test_the_contents_name_the_pages(site: Path, chromium: Any) -> None:
    count = pdf.write("en", site)
    path = pdf.pdf_path("en", site)
    reader = pypdf.PdfReader(path)
    numbers = pdf.page_numbers(path)
    assert len(reader.pages) == count > 50
    assert reader.outline
    assert numbers["plan"] < numbers["days-self-attention"] < numbers["days-dpo"] < numbers["glossary"]
    contents = " ".join(reader.pages[1].extract_text().split())
    assert f"Study plan {numbers['plan']} " in contents
    title = "Self-attention · scaled dot-product attention"
    assert f"{title} {numbers['days-self-attention']} " in contents
    title = reader.pages[numbers["days-dpo"] - 1].extract_text()
    assert "direct preference optimisation" in title
    assert not (site / "en" / "document.html").exists()
