"""What several test files of the site share: the built site of both languages, and a real browser over it.

Playwright drives an installed Chromium, Chrome or Edge; where there is none, such tests say that they skip.
"""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sitekit.built import FOLDERS, settings
from sitekit.chromium import NO_CHROMIUM, find_chromium
from sitekit.feed import feed
from sitekit.pages import ROOT, SITES

CAUGHT: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
REPOSITORY = "https://example.org/our/site"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Both languages, built once as `make build` does, and their address; English lies under `en/`.

    They are built for the address at which they are served: elsewhere instant navigation stays away.
    """
    site = tmp_path_factory.mktemp("site")
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        env = os.environ | {"SITE_URL": address, "SITE_URL_EN": f"{address}en/", "REPOSITORY_URL": REPOSITORY}
        env["NO_MKDOCS_2_WARNING"] = "1"
        for language, config in SITES.items():
            # Not quietly: MkDocs would not count its warnings, and --strict would let them pass.
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d"]
            done = subprocess.run(
                [*command, str(site / FOLDERS[language])], cwd=ROOT, env=env, check=False, **CAUGHT
            )
            assert not done.returncode, f"{config} does not build\n{done.stdout}"
            with mock.patch.dict(os.environ, env):
                (site / FOLDERS[language] / "feed.xml").write_bytes(feed(settings(language)))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield site, address
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def built_site(served: tuple[Path, str]) -> Path:
    """The folder of the built site; not to be changed."""
    return served[0]


@pytest.fixture(scope="session")
def address(served: tuple[Path, str]) -> str:
    """Where the built site is served, with a slash at the end."""
    return served[1]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """An installed browser; skipped where there is none, with how to get one."""
    path = find_chromium()
    if path is None:
        pytest.skip(NO_CHROMIUM)
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is needed: it is in the group `test`"
    )
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def reader(chromium: Any, address: str) -> Iterator[Any]:
    """A page of a fresh profile, opened by paths such as `en/plan/`; an error on the console fails."""
    context = chromium.new_context(base_url=address, accept_downloads=True)
    context.set_default_timeout(120_000)  # a busy machine is no failure
    page, said = context.new_page(), []
    page.on("console", lambda message: message.type == "error" and said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    assert not said, said
