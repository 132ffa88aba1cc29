"""What several test files of the site share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sitekit.built import FOLDERS
from sitekit.chromium import NO_CHROMIUM, find_chromium
from sitekit.pages import ROOT, SITES

ADDRESS = "https://example.org/"


@pytest.fixture(scope="session")
def built_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both languages, built once as `make build` does, for an address of their own; not to be changed."""
    site = tmp_path_factory.mktemp("site")
    env = os.environ | {"SITE_URL": ADDRESS, "SITE_URL_EN": f"{ADDRESS}en/", "NO_MKDOCS_2_WARNING": "1"}
    for language, config in SITES.items():
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", config, "-d"]
        done = subprocess.run([*command, str(site / FOLDERS[language])], cwd=ROOT, env=env, check=False)
        assert not done.returncode, f"{config} does not build"
    return site


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """An installed Chromium or Chrome under Playwright; skipped where there is none, with how to get one."""
    path = find_chromium()
    if path is None:
        pytest.skip(NO_CHROMIUM)
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
