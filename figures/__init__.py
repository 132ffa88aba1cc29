"""The figures of the pages: one module a day, one function a figure, every number computed by llmcore.

A module `figures/<slug>.py` (`_` for `-`) has a tuple `FIGURES` of functions; each takes the language and
returns a `sitekit.svg.Figure`. The function `kv_bytes` of `figures/attention_variants.py` is drawn into
`docs/figures/attention-variants/kv-bytes.zh.svg` and `….en.svg`. `python -m figures` draws them all.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from sitekit.svg import LANGUAGES

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("docs", "figures")


def slugs() -> list[str]:
    """The days that have figures, by the name of their page."""
    modules = Path(__file__).parent.glob("[!_]*.py")
    return sorted(module.stem.replace("_", "-") for module in modules)


def draw(slug: str) -> Iterator[tuple[Path, str]]:
    """Draws every figure of a day: the path of its file from the root of the repository, and its content."""
    module = importlib.import_module(f"figures.{slug.replace('-', '_')}")
    for function in module.FIGURES:
        name = function.__name__.replace("_", "-")
        for lang in LANGUAGES:
            yield FOLDER / slug / f"{name}.{lang}.svg", function(lang).html(name)


def stale(drawn: dict[Path, str], root: Path = ROOT) -> list[str]:
    """Says what is wrong with the files under `root`, one line a file; empty when all are as drawn."""
    problems = []
    for path, text in drawn.items():
        if not (root / path).is_file():
            problems.append(f"{path.as_posix()}:1: missing")
            continue
        lines = zip_longest((root / path).read_text(encoding="utf-8").split("\n"), text.split("\n"))
        if different := [number for number, (there, now) in enumerate(lines, 1) if there != now]:
            problems.append(f"{path.as_posix()}:{different[0]}: differs from what is drawn now")
    for file in sorted((root / FOLDER).rglob("*")):
        path = file.relative_to(root)
        if file.is_file() and path not in drawn:
            problems.append(f"{path.as_posix()}:1: no function draws it")
    return problems
