"""A page links to a download where there is one, and says how to make it where there is none."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from sitekit.built import FOLDERS
from sitekit.downloads import LINK, offer
from sitekit.pages import SITES

NAMED = re.compile(r'<(?:span|a( href="[^"]*")) data-download="([^"]+)"')


def test_a_link_has_a_target_while_the_file_is_there(tmp_path: Path) -> None:
    page = tmp_path / "days" / "a" / "index.html"
    page.parent.mkdir(parents=True)
    bare = '<p><span data-download="../../downloads/a.x" download>A</span> <a href="/b">b</a></p>'
    linked = '<a href="../../downloads/a.x" data-download="../../downloads/a.x" download>A</a>'
    page.write_text(bare, encoding="utf-8")
    assert offer(tmp_path) == {}
    assert page.read_text(encoding="utf-8") == bare

    file = tmp_path / "downloads" / "a.x"
    file.parent.mkdir()
    file.touch()
    for _ in range(2):
        assert offer(tmp_path) == {"downloads/a.x": 1}
        assert page.read_text(encoding="utf-8") == f'<p>{linked} <a href="/b">b</a></p>'
    file.unlink()
    assert offer(tmp_path) == {}
    assert page.read_text(encoding="utf-8") == bare


def test_a_site_that_is_not_built_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="`make build` builds it"):
        offer(tmp_path / "site")


@pytest.mark.parametrize("language", SITES)
def test_the_pages_name_the_downloads(language: str, built_site: Path) -> None:
    root = built_site / FOLDERS[language]
    days = [f"days/{page.name}/index.html" for page in (root / "days").iterdir()]
    assert len(days) >= 3
    for name in ["index.html", "plan/index.html", *days]:
        page = root / name
        links = NAMED.findall(page.read_text(encoding="utf-8"))
        assert not any(href for href, _ in links), f"{name}: a link to what is not there"
        files = {os.path.relpath(page.parent / target, root).replace(os.sep, "/") for _, target in links}
        above = "../" if FOLDERS[language] else ""
        wanted = {f"downloads/llm-by-hand.{language}.apkg", f"{above}downloads/llm-by-hand.zip"}
        wanted |= {f"downloads/llm-by-hand.{language}.pdf"}
        wanted |= {f"downloads/{page.parent.name}.{language}.ipynb" if name in days else "feed.xml"}
        assert files == wanted, name
    for page in root.glob("api/**/*.html"):
        assert "data-download" not in page.read_text(encoding="utf-8")


def test_every_link_of_the_site_finds_its_file(built_site: Path, tmp_path: Path) -> None:
    page = tmp_path / "days" / "dpo" / "index.html"
    page.parent.mkdir(parents=True)
    shutil.copyfile(built_site / "days" / "dpo" / "index.html", page)
    targets = [target for _, target, *_ in LINK.findall(page.read_text(encoding="utf-8"))]
    for target in targets:
        file = (page.parent / target).resolve()
        file.parent.mkdir(exist_ok=True)
        file.touch()
    assert sum(offer(tmp_path).values()) == len(targets) > 0
    assert all(href for href, _ in NAMED.findall(page.read_text(encoding="utf-8")))
