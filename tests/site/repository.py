"""The repository as the tests of the site use it: its days, the kinds of its pages, a copy, a small one."""

from __future__ import annotations

import shutil
from pathlib import Path

from markdown import Markdown

from sitekit.pages import ROOT

DAYS = sorted(path.stem for path in ROOT.glob("docs/zh/days/*.md"))
KINDS = [
    "",
    "plan/",
    "practice/",
    "quiz/",
    "questions/",
    "papers/",
    "tags/",
    "glossary/",
    "verified/",
    "site/",
]
KINDS += ["api/masks/", "404.html"]
COPIED = ("docs", "snippets", "llmcore", "overrides", "practice", "sitekit", "tests", "benchmarks")
COPIED += ("mkdocs.base.yml", "mkdocs.yml", "mkdocs.en.yml")


def copy_repository(root: Path) -> None:
    """Copy what the site is built from."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / name, root / name)


def write_files(root: Path, files: dict[str, str]) -> Path:
    """Write files by their names below a folder; return the folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def convert(root: Path, name: str, *extensions: str) -> str:
    """Convert a page without its front matter, as Zensical would, which names the page by its context."""
    md = Markdown(extensions=list(extensions))
    config = {"root_dir": str(root), "docs_dir": str(Path(name).parent)}
    page = type("Page", (), {"path": Path(name).name})()
    context = type("Context", (), {"config": config, "page": page})()
    context.run = lambda lines: lines  # type: ignore[attr-defined]
    md.preprocessors.register(context, "rendering_context", -1)  # type: ignore[arg-type]
    return md.convert((root / name).read_text(encoding="utf-8").split("\n---\n", 1)[-1])
