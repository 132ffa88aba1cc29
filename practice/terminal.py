r"""Rich output where there is a terminal and `rich`, the same words plain elsewhere."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from practice.words import say

CODE = re.compile(r"`([^`]+)`")


def _console() -> Any:
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(highlight=False)


def line(text: str = "", style: str = "") -> None:
    r"""Print a line; what stands between backquotes looks like code."""
    console = _console()
    if console is None:
        print(CODE.sub(r"\1", text) if text else "")
        return
    from rich.text import Text

    shown = Text(style=style)
    for index, part in enumerate(CODE.split(text)):
        shown.append(part, style="bold cyan" if index % 2 else "")
    console.print(shown, soft_wrap=True)


def markdown(text: str) -> None:
    r"""Print a page's own words."""
    console = _console()
    if console is None:
        print(text)
        return
    from rich.markdown import Markdown

    console.print(Markdown(text))


def code(text: str, *, numbers: bool = False, title: str = "") -> None:
    r"""Print Python code."""
    console = _console()
    if console is None:
        if title:
            print(f"--- {title}")
        lines = text.rstrip("\n").split("\n")
        width = len(str(len(lines)))
        for number, each in enumerate(lines, 1):
            print(f"{number:{width}}  {each}" if numbers else each)
        return
    from rich.panel import Panel
    from rich.syntax import Syntax

    shown = Syntax(
        text.rstrip("\n"), "python", line_numbers=numbers, theme="ansi_dark", background_color="default"
    )
    console.print(Panel(shown, title=title, title_align="left") if title else shown)


def beside(left: tuple[str, str], right: tuple[str, str]) -> None:
    r"""Print two pieces of code side by side where there is room, one after the other elsewhere."""
    console = _console()
    if console is None or console.width < 160:
        for title, text in (left, right):
            code(text, title=title)
        return
    from rich.columns import Columns
    from rich.panel import Panel
    from rich.syntax import Syntax

    half = console.width // 2 - 1
    look = {"theme": "ansi_dark", "background_color": "default", "word_wrap": True}
    panels = [
        Panel(Syntax(text.rstrip("\n"), "python", **look), title=title, width=half)
        for title, text in (left, right)
    ]
    console.print(Columns(panels, padding=0))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    r"""Print a table."""
    rows = [list(row) for row in rows]
    console = _console()
    if console is not None:
        from rich.table import Table

        shown = Table(*head, box=None, pad_edge=False)
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
        return
    widths = [max(map(_width, column)) for column in zip(head, *rows, strict=True)]
    for row in [list(head), *rows]:
        print(
            "  ".join(
                cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
        )


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


class Bar:
    r"""How far something is, on the error stream of a terminal; nothing elsewhere."""

    def __init__(self, words: str) -> None:
        self.words, self.shown = words, sys.stderr.isatty()
        self(0, 0)

    def __call__(self, done: int, total: int) -> None:
        if self.shown:
            width = 24
            filled = width * done // total if total else 0
            count = f"{done}/{total}" if total else ""
            print(
                f"\r{self.words} {'█' * filled}{'·' * (width - filled)} {count} ",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def clear(self) -> None:
        if self.shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


class Closed(Exception):
    r"""The input has ended: nobody is there to answer."""


def ask(question: str, choices: Sequence[str] = ()) -> str:
    r"""Ask for a line; of `choices`, one of them.

    Raises:
        Closed: If there is no more input.
    """
    while True:
        try:
            answer = input(question + " ").strip()
        except EOFError:
            print()
            raise Closed from None
        if not choices or answer.lower() in choices:
            return answer.lower() if choices else answer
        shown = ", ".join(choice or say("Enter", "回车") for choice in choices)
        print(say(f"one of: {shown}", f"请输入其中之一：{shown}"))
