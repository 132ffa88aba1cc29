"""Which page is being rendered, so that an error can say ``docs/zh/days/dpo.md:123``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from markdown import Markdown
from mkdocs.exceptions import BuildError

ROOT = Path(__file__).resolve().parent.parent
SITES = {"zh": "mkdocs.yml", "en": "mkdocs.en.yml"}  # language -> its configuration

watch: Callable[[int | None, str], None] | None = None  # told of problems instead of ending the build


class PageError(BuildError):  # MkDocs prints a BuildError as one line
    """Something that must not be published; the message starts with the page and, if known, the line."""


class FrontMatterError(ValueError):
    """Front matter that cannot be read, or says what it must not; the message says what, ``line`` where."""

    line = 1


def front_matter(text: str) -> dict[str, Any]:
    """Return the front matter of a page, empty if it has none.

    Raises:
        FrontMatterError: it is no YAML, or no table of names and values.
    """
    if not text.startswith("---\n") or "\n---\n" not in text:
        return {}
    try:
        found = yaml.safe_load(text[4 : text.index("\n---\n", 3) + 1]) or {}
    except yaml.YAMLError as error:
        refused = FrontMatterError(f"front matter: {getattr(error, 'problem', error)}")
        mark = getattr(error, "problem_mark", None)
        refused.line = mark.line + 2 if mark else 1
        raise refused from None
    if not isinstance(found, dict):
        raise FrontMatterError(f"front matter: {found!r} is no table of names and values")
    return found


def page_path(md: Markdown) -> Path | None:
    """Return the file that ``md`` is converting, or None when neither MkDocs nor Zensical has said so."""
    if "relpath" in md.treeprocessors:  # MkDocs: the processor that resolves links knows its page
        source = getattr(getattr(md.treeprocessors["relpath"], "file", None), "abs_src_path", None)
        return Path(source) if source else None
    if "rendering_context" in md.preprocessors:  # Zensical
        context = md.preprocessors["rendering_context"]
        config = getattr(context, "config", {})
        page = getattr(getattr(context, "page", None), "path", None)
        return Path(config.get("root_dir", "."), config.get("docs_dir", "docs"), page) if page else None
    return None


def page_name(md: Markdown) -> str:
    """Return the page's path from the repository root, or ``<page>`` when it is not known."""
    path = page_path(md)
    if path is None:
        return "<page>"
    try:
        return path.resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return path.as_posix()


def page_lines(md: Markdown) -> list[str]:
    """Return the page's own source lines, front matter included; none when the page is not known."""
    path = page_path(md)
    if path is None or not path.is_file():
        return []
    return path.read_text(encoding="utf-8-sig").split("\n")


def line_number(md: Markdown, line: str, near: int = 0) -> int | None:
    """Return the number of the page's line with this text, None when there is none.

    Where several have it, it is the one at ``near``, or else the first.
    """
    texts = enumerate(page_lines(md), 1)
    found = [number for number, text in texts if text.rstrip("\r") == str(line).rstrip("\r")]
    return near if near in found else found[0] if found else None


def refuse(md: Markdown, number: int | None, message: str) -> None:
    """Stop the build with ``page:number: message``; who watches it may note the problem and read on.

    Raises:
        PageError: nobody watches.
    """
    if watch is not None:
        watch(number, message)
        return
    raise PageError(f"{page_name(md)}{f':{number}' if number else ''}: {message}")
