r"""The exercises: one TOML file each in `exercises/`, read and checked here.

day = "attention-variants"          the page it belongs to
module = "grouped_query"            of llmcore; its judge is tests/llmcore/test_grouped_query.py
symbols = ["GroupedQueryAttention"] what is to be written
parts = []                          private names that belong to the answer and stay out of the stub
forbidden = ["scaled_dot_product_attention"]   calls and imports that would be the answer
level = 3                           1 to 4
minutes = 12
asked = 3                           how often interviewers ask for it, 1 to 3
judged = []                         "memory" where it is the point; elsewhere it is a remark
title = {en = "…", zh = "…"}
hints = [{en = "…", zh = "…"}, …]   from a nudge to the recipe

[[wrong]]                           a mistake that people make
name = "tiled"
title = {en = "…", zh = "…"}
why = {en = "…", zh = "…"}
change = [["as it is in llmcore", "as it is written by mistake"]]   or code = '''a whole definition'''
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent
# In a wheel, what the exercises need of the repository lies below `_repository`.
ROOT = HOME / "_repository" if (HOME / "_repository").is_dir() else HOME.parent
LANGUAGES = ("en", "zh")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

Text = dict[str, str]  # a language to its words


class CatalogueError(ValueError):
    r"""An exercise that is not described as it must be; the message names the file and the rule."""


@dataclass(frozen=True)
class Wrong:
    r"""A mistake that people make: how it is written, and why it is one."""

    name: str
    title: Text
    why: Text
    change: tuple[tuple[str, str], ...] = ()
    code: str = ""


@dataclass(frozen=True, eq=False)
class Exercise:
    r"""What is to be written, with all that is known about it."""

    name: str
    day: str
    module: str
    symbols: tuple[str, ...]
    title: Text
    level: int
    minutes: int
    asked: int
    hints: tuple[Text, ...]
    wrong: tuple[Wrong, ...]
    parts: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()

    @property
    def source(self) -> Path:
        r"""The module of the reference: llmcore is always beside this package."""
        return HOME.parent / "llmcore" / f"{self.module}.py"

    @property
    def tests(self) -> Path:
        r"""The tests that judge it."""
        return ROOT / "tests" / "llmcore" / f"test_{self.module}.py"


def read_all() -> dict[str, Exercise]:
    r"""Read every exercise; return them by their names, in the order of the days, the easier ones first.

    Raises:
        CatalogueError: If a file breaks a rule.
    """
    found = [read(path) for path in sorted((HOME / "exercises").glob("*.toml"))]
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")  # the order of the days is there alone
    days = re.findall(r"days/([\w-]+)\.md", nav)
    for each in found:
        if each.day not in days:
            raise CatalogueError(f"{each.name}.toml: day={each.day!r} is none of {', '.join(days)}")
    found.sort(key=lambda each: (days.index(each.day), each.level, each.name))
    return {each.name: each for each in found}


@cache
def exercises() -> dict[str, Exercise]:
    r"""Return what `read_all` returns, read once."""
    return read_all()


def find(name: str) -> Exercise:
    r"""Return an exercise by its name, or by that of a definition it asks for.

    Raises:
        KeyError: If there is none; the message names those that come close.
    """
    known = exercises()
    if name in known:
        return known[name]
    for each in known.values():
        if name in each.symbols or name.replace("_", "-").lower() == each.name:
            return each
    import difflib

    close = difflib.get_close_matches(name, list(known), 3, 0.5)
    raise KeyError(f"{name}" + (f" ({', '.join(close)}?)" if close else ""))


def read(path: Path) -> Exercise:
    r"""Read one file.

    Raises:
        CatalogueError: If it is no TOML, lacks a field, has one that is not known, or a value breaks a rule.
    """

    def refuse(rule: str) -> CatalogueError:
        return CatalogueError(f"{path.name}: {rule}")

    def text(value: Any, what: str) -> Text:
        if not isinstance(value, dict) or sorted(value) != sorted(LANGUAGES) or not all(value.values()):
            raise refuse(f"{what} must have words in {' and '.join(LANGUAGES)}, got {value!r}")
        return value

    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise refuse(str(error)) from error
    needed = {"day", "module", "symbols", "level", "minutes", "asked", "title", "hints", "wrong"}
    allowed = needed | {"parts", "forbidden", "judged"}
    if missing := needed - set(data):
        raise refuse(f"{sorted(missing)} missing")
    if unknown := set(data) - allowed:
        raise refuse(f"{sorted(unknown)} not known")
    for field, limit in (("level", 4), ("asked", 3), ("minutes", 60)):
        if data[field] not in range(1, limit + 1):
            raise refuse(f"{field}={data[field]!r} must be 1 to {limit}")
    if len(data["hints"]) < 3:
        raise refuse(f"{len(data['hints'])} hints, at least 3 are needed, from a nudge to the recipe")
    wrong, seen = [], set()
    for each in data["wrong"]:
        name = each.get("name", "")
        if not NAME.fullmatch(name) or name in seen:
            raise refuse(f"a wrong variant needs a name of its own in lower-case words, got {name!r}")
        seen.add(name)
        if unknown := set(each) - {"name", "title", "why", "change", "code"}:
            raise refuse(f"wrong variant {name}: {sorted(unknown)} not known")
        if any(each.get("title") == other.title for other in wrong):
            raise refuse(f"two wrong variants are titled {each['title']!r}")
        if bool(each.get("change")) == bool(each.get("code")):
            raise refuse(f"wrong variant {name} needs either a change or code")
        change = tuple((old, new) for old, new in each.get("change", ()))
        title, why = (text(each.get(key), f"{key} of {name}") for key in ("title", "why"))
        wrong.append(Wrong(name, title, why, change, each.get("code", "")))
    return Exercise(
        name=path.stem,
        day=data["day"],
        module=data["module"],
        symbols=tuple(data["symbols"]),
        title=text(data["title"], "title"),
        level=data["level"],
        minutes=data["minutes"],
        asked=data["asked"],
        hints=tuple(text(hint, "a hint") for hint in data["hints"]),
        wrong=tuple(wrong),
        **{key: tuple(data.get(key, ())) for key in ("parts", "forbidden", "judged")},
    )
