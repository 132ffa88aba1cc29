"""Every page leads to its source and to where a mistake is reported, with the place one was reading."""

from __future__ import annotations

import html
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from sitekit.built import FOLDERS, address, nav_pages, settings
from sitekit.pages import ROOT, SITES
from tests.site.conftest import REPOSITORY

EDIT = re.compile(r'<a rel="edit" href="([^"]+)"')
REPORT = re.compile(r'<a data-report="[^"]*" href="([^"]+)"')
FIRST = {"zh": "页面：", "en": "Page: "}


def asked(url: str) -> tuple[str, list[str]]:
    """Return title and lines of the report that a link begins."""
    parts = urlsplit(html.unescape(url))
    assert parts._replace(query="").geturl() == f"{REPOSITORY}/issues/new"
    query = parse_qs(parts.query, strict_parsing=True)
    assert set(query) == {"title", "body"}
    return query["title"][0], query["body"][0].split("\n")


@pytest.mark.parametrize("language", SITES)
def test_every_page_leads_to_its_source_and_names_itself(
    built_site: Path, address: str, language: str
) -> None:
    for name in nav_pages(settings(language).nav):
        where = "" if name == "index.md" else name.removesuffix(".md") + "/"
        text = (built_site / FOLDERS[language] / where / "index.html").read_text(encoding="utf-8")
        files = [link.removeprefix(f"{REPOSITORY}/edit/main/") for link in EDIT.findall(text)]
        module = [f"llmcore/{Path(name).stem}.py"] if name.startswith("api/") else []
        assert files == [f"docs/{language}/{name}", *module]
        assert all((ROOT / file).is_file() for file in files)
        [link] = REPORT.findall(text)
        title, lines = asked(link)
        assert title.endswith(name.removesuffix(".md"))
        assert lines[0] == f"{FIRST[language]}{address}{FOLDERS[language]}{where}"
        assert lines[1].endswith("中文" if language == "zh" else "English")


def report(language: str, repository: str, verified: Any = None) -> str:
    """Return the line at the foot of a page in a folder, as another configuration would write it."""
    config = settings(language)
    config.extra |= {"repository": repository, "verified": verified}
    page = SimpleNamespace(url="days/dpo.html")
    return config.theme.get_env().get_template("partials/report.html").render(config=config, page=page)


@pytest.mark.parametrize("language", SITES)
def test_a_published_page_names_its_commit_and_the_address_it_is_published_at(language: str) -> None:
    [link] = REPORT.findall(report(language, REPOSITORY, {"commit": "0123456789abcdef"}))
    _, lines = asked(link)
    assert lines[0] == FIRST[language] + settings(language).site_url + address("days/dpo.md")
    assert lines[2].endswith("0123456789abcdef")


@pytest.mark.parametrize("language", SITES)
def test_a_build_that_knows_no_repository_links_to_none(language: str) -> None:
    assert "<a" not in report(language, "")
    published = (ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")
    assert "REPOSITORY_URL: ${{ github.server_url }}/${{ github.repository }}" in published
    base = (ROOT / "mkdocs.base.yml").read_text(encoding="utf-8")
    assert 'repository: !ENV [REPOSITORY_URL, ""]' in base


@pytest.mark.parametrize("language", SITES)
def test_a_report_names_the_place_one_is_reading(reader: Any, address: str, language: str) -> None:
    page, hosts = f"{address}{FOLDERS[language]}days/dpo/", set()
    reader.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    reader.set_viewport_size({"width": 360, "height": 740})
    reader.goto(page)
    links = reader.locator("a[data-report]")
    assert links.count() == 2
    for place in ("gradient", "questions", "q-beta"):  # the theme comes back to a box once it is open
        reader.evaluate("place => { location.hash = place; }", place)
        reader.wait_for_function(
            "place => document.querySelector('a[data-report]').href.includes('%23' + place)",
            arg=place,
            timeout=20_000,
        )
        for link in links.evaluate_all("list => list.map(node => node.href)"):
            assert asked(link)[1][0] == f"{FIRST[language]}{page}#{place}"
    assert links.first.is_visible()
    assert hosts == {urlsplit(address).netloc}


def test_without_scripts_a_report_names_the_page(chromium: Any, address: str) -> None:
    context = chromium.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    page.goto("en/days/dpo/")
    [link] = page.locator("a[data-report]").all()
    assert asked(link.get_attribute("href"))[1][0] == f"Page: {address}en/days/dpo/"
    context.close()
