"""The site in a folder: every link finds its file, search works from a disk, no other host is asked."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from sitekit import offline
from sitekit.pages import ROOT

COPIED = re.compile(r"<template\b.*?</template>", re.DOTALL)  # of other pages, whose links lead from there
LINK = re.compile(r'<(\w+)\b[^>]*?\b(?:href|src)="([^"]+)"')


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built, packed and unpacked."""
    built, place = tmp_path_factory.mktemp("offline"), tmp_path_factory.mktemp("unpacked")
    offline.build(built)
    offline.pack(built, place / "site.zip")
    with zipfile.ZipFile(place / "site.zip") as archive:
        archive.extractall(place)
    return place / offline.NAME


def test_every_link_finds_its_file(folder: Path) -> None:
    pages = sorted(folder.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        for tag, link in LINK.findall(COPIED.sub("", page.read_text(encoding="utf-8"))):
            parts = urlsplit(link)
            if parts.scheme or link.startswith("#"):
                assert tag in ("a", "link"), f"{page}: {link}"
            elif not (tag == "a" and parts.path.startswith("/")):
                target = page.parent / unquote(parts.path)
                assert target.is_file(), f"{page}: {link}"


def test_nothing_is_left_of_the_build(folder: Path) -> None:
    assert not list(ROOT.glob("mkdocs*.offline.yml"))
    assert not list(folder.rglob("*.map"))
    assert not (folder / "404.html").exists()


def test_the_vendored_shim_is_the_one_that_pages_load(folder: Path) -> None:
    assert (ROOT / "overrides" / offline.SHIM).read_bytes() == (folder / offline.SHIM).read_bytes()
    for page, above in (("index.html", ""), ("en/days/dpo.html", "../")):
        assert f'<script src="{above}{offline.SHIM}"' in (folder / page).read_text(encoding="utf-8")
    index = (folder / "en/search/search_index.js").read_text(encoding="utf-8")
    assert json.loads(index.removeprefix("var __index = "))["docs"]


def test_a_ledger_is_stated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []

    def run(command: list[str], **_: Any) -> None:
        seen.append((ROOT / command[command.index("-f") + 1]).read_text(encoding="utf-8"))
        search = Path(command[-1]) / "search"
        search.mkdir(parents=True)
        (search / "search_index.json").write_text("{}", encoding="utf-8")

    monkeypatch.setattr(subprocess, "run", run)
    page = {"blocks": 1, "run": 1, "skipped": 0, "outputs": 1}
    pages = {f"docs/{language}/index.md": page for language in ("zh", "en")}
    offline.build(tmp_path, {"date": "d", "commit": "c0ffee", "versions": {}, "pages": pages})
    assert len(seen) == 2
    assert all(offline.SHIM in text for text in seen)
    assert all('"commit": "c0ffee"' in text and "use_directory_urls: false" in text for text in seen)


@pytest.mark.parametrize(("page", "words"), [("days/dpo.html", "归一化"), ("en/plan.html", "bottom-right")])
def test_search_works_from_a_disk(folder: Path, chromium: Any, page: str, words: str) -> None:
    tab = chromium.new_page()
    asked: list[str] = []
    failed: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: failed.append(str(error)))
    tab.on("console", lambda message: failed.append(message.text) if message.type == "error" else None)
    tab.goto((folder / page).as_uri())
    tab.fill(".md-search__input", words)
    tab.wait_for_selector(".md-search-result__link", timeout=60_000)
    tab.click(".md-search-result__link")
    tab.wait_for_url(lambda url: "?h=" in url)
    assert tab.inner_text("h1")
    assert not [url for url in asked if not url.startswith(("file:", "data:"))]
    assert not failed
    tab.close()
