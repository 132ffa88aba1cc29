"""A real browser over the real pages of both languages, for tests of what a reader can do there.

Playwright drives an installed Chromium or Chrome. Where there is none, these tests are reported as skipped.
"""

from __future__ import annotations

import functools
import http.server
import logging
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sitekit.pages import ROOT, SITES

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
GET_ONE = "a browser is needed: install Chromium or Chrome, or run `python -m playwright install chromium`"


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built sites; without the API pages, which take most of the time."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    root = tmp_path_factory.mktemp("published")
    logging.getLogger("jieba").setLevel(logging.ERROR)
    for lang, name in SITES.items():
        folder = root if lang == "zh" else root / lang
        config = load_config(str(ROOT / name), site_dir=str(folder), exclude_docs="api/")
        config.nav = [entry for entry in config.nav or [] if "API" not in entry]
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    return root


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture(scope="session")
def address(published: Path) -> Iterator[str]:
    """Where the built sites are served, with a slash at the end; English lies under `en/`."""
    handler = functools.partial(Quiet, directory=str(published))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser that is already installed, or the one that Playwright has installed."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is needed: it is in the group `test`")
    with api.sync_playwright() as playwright:
        installed = next(filter(None, map(shutil.which, NAMES)), None)
        path = installed or playwright.chromium.executable_path
        if not Path(path).exists():
            pytest.skip(GET_ONE)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def reader(chromium: Any, address: str) -> Iterator[Any]:
    """A page of a fresh profile, opened by paths such as `en/plan/`; an error on the console fails."""
    context = chromium.new_context(base_url=address, accept_downloads=True)
    page, said = context.new_page(), []
    page.on("console", lambda message: message.type == "error" and said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    assert not said, said
