"""One language as it was last built, for the live server: a saved page is shown without building the others.

MkDocs builds everything on every save. Here what the last whole build made stays in memory, and the pages
that a saved file touches are rendered again, with those that gather from the days (the indexes, the quiz) and
the search index; then every link to an anchor is checked. What can change any page takes a whole build: a
template, a configuration, llmcore (its API pages are made of all of it), a page that comes or goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2
from mkdocs.commands.build import _build_page, _populate_page, build
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import BasePlugin
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

GATHERS = re.compile(r"^\[\[\w+\]\]\s*$", re.MULTILINE)
DOCUMENTS = re.compile(r"^::: ", re.MULTILINE)
EMBEDDED = ("snippets/", "docs/figures/", "benchmarks/", "tests/")


class Kept(BasePlugin):
    """Keeps what a whole build has made of the files, the nav and the templates."""

    files: Files
    nav: Navigation
    env: jinja2.Environment

    def on_env(self, env: jinja2.Environment, *, config: MkDocsConfig, files: Files) -> None:
        """Keep the templates and the files, all pages of which are rendered by now."""
        self.env, self.files = env, files

    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> None:
        """Keep the nav."""
        self.nav = nav


class Site:
    """One language, built into a folder.

    Args:
        config: of the language; its ``site_dir`` is the folder. It is used up: another build needs another.
        root: of the repository, from which embedded files are named.

    Raises:
        BuildError, Abort: the site does not build, as MkDocs has said.
    """

    def __init__(self, config: MkDocsConfig, root: Path) -> None:
        self.config, self.root = config, root
        self.kept = Kept()
        self.pending: set[str] = set()  # saved, and not shown yet as a page did not build
        config.plugins["sitekit.incremental"] = self.kept
        config.plugins.on_startup(command="serve", dirty=False)
        build(config)

    def refresh(self, changed: Iterable[str]) -> list[str] | None:
        """Render again what saved files touch; return the pages, or None where only a whole build will do.

        Args:
            changed: absolute paths.

        Raises:
            BuildError, Abort: a page does not build; what was served of it stays.
        """
        self.pending |= set(changed)
        pages = self._touched(self.pending)
        if pages is None:
            return None
        if any("/days/" in f"/{page.file.src_uri}" for page in pages):
            pages += [page for page in self._pages() if page not in pages and self._gathers(page)]
        config, files = self.config, self.kept.files
        for page in pages:
            _populate_page(page, config, files)
        if references := config.plugins.get("autorefs"):
            references.on_env(self.kept.env, config=config, files=Files([page.file for page in pages]))
        searches: list[Any] = [
            plugin for plugin in config.plugins.values() if hasattr(plugin, "search_index")
        ]
        urls = {page.url for page in pages}
        for search in searches:
            index = search.search_index
            index.entries = [one for one in index.entries if one["location"].split("#")[0] not in urls]
        for page in pages:
            _build_page(page, config, files.documentation_pages(), self.kept.nav, self.kept.env)
        for search in searches:
            search.on_post_build(config=config)
        for page in self._pages() if pages else ():
            page.validate_anchor_links(files=files, log_level=config.validation.links.anchors)
        self.pending.clear()
        return [page.file.src_uri for page in pages]

    def _pages(self) -> list[Page]:
        return [file.page for file in self.kept.files.documentation_pages() if file.page]

    def _touched(self, changed: Iterable[str]) -> list[Page] | None:
        """Return the pages that show a saved file, None where that cannot be told."""
        found: list[Page] = []
        sources = [(page, Path(page.file.abs_src_path or "")) for page in self._pages()]
        if not all(source.is_file() for _, source in sources):
            return None
        for path in map(Path, changed):
            name = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else ""
            showing = [page for page, source in sources if source == path]
            if name.startswith(EMBEDDED):  # a snippet also fills the numbers of its day
                day = f"days/{path.parent.name}.md" if name.startswith("snippets/") else ""
                showing = [one for one, _ in sources if one.file.src_uri == day or name in _source(one)]
            elif not showing and (path.is_file() or not name.startswith("docs/")):
                return None  # in docs, what is gone and was no page is what an editor saved first
            found += [page for page in showing if page not in found]
        return None if any(DOCUMENTS.search(_source(page)) for page in found) else found

    @staticmethod
    def _gathers(page: Page) -> bool:
        """Say whether a page shows what stands on the days: an index, or by a template of its own."""
        if page.file.src_uri.startswith("days/"):  # what stands between brackets there is its own
            return False
        return "template" in page.meta or bool(GATHERS.search(_source(page)))


def _source(page: Page) -> str:
    return Path(page.file.abs_src_path or "").read_text(encoding="utf-8-sig")
