"""What a visit of a page fetches, in bytes as a host sends them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

COMPRESSED = {".css", ".html", ".js", ".json", ".svg", ".xml"}  # by any host; pictures and fonts already are
WORKER = r"workers/search\."  # what the theme fetches last, but for the index
INDEX = r"search_index\.json"


def visit(page: Any, folder: Path, address: str, last: str = WORKER) -> dict[str, int]:
    """Open a page that was not opened before; return what was fetched, in bytes by address.

    Args:
        page: of Playwright, in a fresh profile.
        folder: of the built site, which lies at the root of its host.
        address: of the page.
        last: a pattern of the address that is fetched last.
    """
    names: list[str] = []
    page.on("response", lambda response: names.append(response.url))
    with page.expect_response(re.compile(last)):
        page.goto(address, wait_until="networkidle")
    _settle(page, names)
    return _sizes(names, folder)


def search(page: Any, folder: Path, before: dict[str, int]) -> dict[str, int]:
    """Enter the search field of a visited page; return all that was fetched by then, in bytes by address."""
    names: list[str] = []
    page.on("response", lambda response: names.append(response.url))
    with page.expect_response(re.compile(INDEX)):
        page.locator("input[name=query]").focus()
    _settle(page, names)
    return before | _sizes(names, folder)


def _settle(page: Any, names: list[str]) -> None:
    """Wait until nothing more has come for two seconds: fonts, for one, come once a formula is drawn."""
    count = -1
    while count != len(names):
        count = len(names)
        page.wait_for_timeout(2000)


def _sizes(names: list[str], folder: Path) -> dict[str, int]:
    sizes = {}
    for url in (name.split("?")[0] for name in names):
        file = folder / re.sub(r"^https?://[^/]*/", "", url)
        file = file / "index.html" if file.is_dir() else file
        data = file.read_bytes()
        sizes[url] = len(gzip.compress(data, 9) if file.suffix in COMPRESSED else data)
    return sizes
