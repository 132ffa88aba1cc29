"""Draws the figures of the pages: labels, boxes, arrows, cells, line charts; one inline SVG per language.

A figure is drawn in its own units, 500 wide: one unit is one CSS pixel on a wide screen, and the default text
size of 17 is still 11 pixels on a phone of 360. Lines and text are `currentColor`, so they follow the page
from light to dark; the three accents are CSS variables whose fallbacks have a contrast of 3 : 1 on white and
on slate. Meaning never hangs on a colour alone. What is written is a `str`, or a pair (Chinese, English).
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

Words = str | tuple[str, str]
Point = tuple[float, float]

LANGUAGES = ("zh", "en")
PLAYS = Path(__file__).resolve().parents[1] / "overrides" / "assets" / "javascripts" / "figures"
WIDTH = 500
TEXT = 17
INKS = {
    "ink": "currentColor",
    "blue": "var(--fig-blue, #0072b2)",
    "orange": "var(--fig-orange, #d55e00)",
    "green": "var(--fig-green, #009e73)",
}


def number(value: float) -> str:
    """A coordinate as it is written: at most one decimal, and no negative zero."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def steady(value: float, step: float, slack: float = 1e-3) -> float:
    """Rounds a measured value to a multiple of `step`; refuses one that another machine may round elsewhere.

    Raises:
        ValueError: if `value` lies within `slack` steps of the edge between two multiples.
    """
    steps = value / step
    if abs(steps - math.floor(steps) - 0.5) < slack:
        raise ValueError(
            f"{value=} lies on the edge between two multiples of {step=}; change the seed or the size"
        )
    return round(steps) * step


def decimals(value: float, digits: int, slack: float = 1e-3) -> str:
    """A measured value with `digits` decimals and a true minus sign; see `steady` for what it refuses."""
    return f"{steady(value, 10.0**-digits, slack) + 0.0:.{digits}f}".replace("-", "−")


def plays() -> list[str]:
    """The figures that a reader can play with, by the name of their module."""
    return sorted(path.stem for path in PLAYS.glob("*.js"))


def width_of(text: str, size: float) -> float:
    """The width of `text`, estimated on the wide side, since every device has a font of its own."""

    def ems(char: str) -> float:
        if unicodedata.east_asian_width(char) in "WF":
            return 1.0
        if char in "mwMW—%":
            return 0.9
        if char in "ijltfrI.,:;|!'()[] /·":
            return 0.36
        return 0.7 if char.isupper() or char in "=+−<>≤≥÷√Σ" else 0.58

    return size * sum(map(ems, text))


def _corners(points: Sequence[Point]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)


class Figure:
    """A drawing in one language; `html` gives what the page embeds.

    Args:
        lang: "zh" or "en"; chooses from every pair of texts.
        height: of the drawing, in its units.
        title: what the picture is; the short text alternative.
        desc: what it shows, to somebody who cannot see it.
        caption: stands under it, in sight; `backticks` become code.
        width: of the drawing. Wider than 500, text of the default size is too small on a phone.
        play: the module of overrides/assets/javascripts/figures/ that lets the reader move things below it.
        values: what that module is given, as JSON.

    Raises:
        ValueError: if the language is unknown, or no module has the name `play`.
    """

    def __init__(
        self,
        lang: str,
        *,
        height: float,
        title: Words,
        desc: Words,
        caption: Words,
        width: float = WIDTH,
        play: str = "",
        values: Any = None,
    ) -> None:
        if lang not in LANGUAGES:
            raise ValueError(f"{lang=} must be one of {LANGUAGES}")
        if play and play not in (names := plays()):
            raise ValueError(f"{play=} must be one of {names}")
        self.play, self.values = play, values
        self.lang, self.width, self.height = lang, width, height
        self.title, self.desc, self.caption = self.say(title), self.say(desc), self.say(caption)
        self.lines: list[str] = []
        self.written: list[tuple[float, float, float, float, str]] = []

    def say(self, words: Words) -> str:
        """The text in the language of this figure."""
        return words if isinstance(words, str) else words[LANGUAGES.index(self.lang)]

    def text(
        self,
        x: float,
        y: float,
        words: Words,
        *,
        anchor: str = "middle",
        size: float = TEXT,
        bold: bool = False,
        faint: bool = False,
    ) -> None:
        """Writes one line at half height `y`; `anchor` says what of it is at `x`: start, middle or end.

        Raises:
            ValueError: if it would leave the drawing or touch another text.
        """
        said = self.say(words)
        width = width_of(said, size)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        place = (left, y - size * 0.42, left + width, y + size * 0.42, said)
        if left < 0 or place[2] > self.width or place[1] < 0 or place[3] > self.height:
            raise ValueError(f"{said!r} at {(x, y)} leaves the drawing of {self.width} × {self.height}")
        for other in self.written:
            if left < other[2] and other[0] < place[2] and place[1] < other[3] and other[1] < place[3]:
                raise ValueError(f"{said!r} at {(x, y)} touches {other[4]!r}")
        self.written.append(place)
        self.lines.append(
            f'<text x="{number(x)}" y="{number(y + size * 0.35)}"'
            + (f' text-anchor="{anchor}"' if anchor != "middle" else "")
            + (f' font-size="{number(size)}"' if size != TEXT else "")
            + (' font-weight="700"' if bold else "")
            + (' fill-opacity="0.7"' if faint else "")
            + f">{escape(said, quote=False)}</text>"
        )

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str | None = None,
        heat: float = 0.16,
        stroke: str | None = "ink",
        dashed: bool = False,
        round: float = 0,
        thick: float = 1.3,
    ) -> None:
        """Draws a rectangle; `fill` names an ink that is laid on with the opacity `heat`, from 0 to 1."""
        self.lines.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
            + (f' rx="{number(round)}"' if round else "")
            + (f' fill="{INKS[fill]}" fill-opacity="{heat:.2f}"' if fill else ' fill="none"')
            + (f' stroke="{INKS[stroke]}" stroke-width="{number(thick)}"' if stroke else "")
            + (' stroke-dasharray="5 4"' if stroke and dashed else "")
            + "/>"
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *rows: Words,
        fill: str | None = None,
        heat: float = 0.16,
        dashed: bool = False,
        bold: bool = False,
    ) -> None:
        """Draws a box round lines of text; the box is around the point (`x`, `y`).

        Raises:
            ValueError: if a line is wider than the box.
        """
        for row in rows:
            if width_of(self.say(row), TEXT) > width:
                raise ValueError(f"{self.say(row)!r} is wider than its box of {width}")
        stroke = fill or "ink"
        left, top = x - width / 2, y - height / 2
        self.rect(
            left, top, width, height, fill=fill, heat=heat, stroke=stroke, dashed=dashed, round=6, thick=1.6
        )
        for index, row in enumerate(rows):
            self.text(x, y + (index - (len(rows) - 1) / 2) * 22, row, bold=bold and index == 0)

    def line(
        self, *points: Point, ink: str = "ink", thick: float = 1.6, dash: str = "", heat: float = 1
    ) -> None:
        """Draws a line through the points; `dash` is a pattern of SVG, such as "6 4"."""
        self.lines.append(
            f'<polyline points="{_corners(points)}" fill="none"'
            f' stroke="{INKS[ink]}" stroke-width="{number(thick)}" stroke-linejoin="round"'
            + (f' stroke-dasharray="{dash}"' if dash else "")
            + (f' stroke-opacity="{heat:.2f}"' if heat < 1 else "")
            + "/>"
        )

    def arrow(self, *points: Point, ink: str = "ink", thick: float = 1.6, dash: str = "") -> None:
        """Draws a line through the points that ends in an arrow-head."""
        (x1, y1), (x2, y2) = points[-2:]
        length = math.hypot(x2 - x1, y2 - y1)
        along, across = ((x2 - x1) / length, (y2 - y1) / length), (-(y2 - y1) / length, (x2 - x1) / length)
        neck = (x2 - 8 * along[0], y2 - 8 * along[1])
        self.line(*points[:-1], neck, ink=ink, thick=thick, dash=dash)
        corners = [(x2, y2)] + [
            (neck[0] + side * across[0], neck[1] + side * across[1]) for side in (4.5, -4.5)
        ]
        self.lines.append(f'<polygon points="{_corners(corners)}" fill="{INKS[ink]}"/>')

    def mark(self, x: float, y: float, shape: str, ink: str = "ink") -> None:
        """Draws a point of a chart: "circle", "square", "triangle" or "cross"."""
        at, fill = f"{number(x)}", f'fill="{INKS[ink]}"'
        if shape == "circle":
            self.lines.append(f'<circle cx="{at}" cy="{number(y)}" r="4.5" {fill}/>')
        elif shape == "square":
            self.rect(x - 4, y - 4, 8, 8, fill=ink, heat=1, stroke=None)
        elif shape == "triangle":
            corners = ((x, y - 5.5), (x + 5, y + 4), (x - 5, y + 4))
            self.lines.append(f'<polygon points="{_corners(corners)}" {fill}/>')
        elif shape == "cross":
            self.line((x - 4.5, y - 4.5), (x + 4.5, y + 4.5), ink=ink, thick=2.4)
            self.line((x - 4.5, y + 4.5), (x + 4.5, y - 4.5), ink=ink, thick=2.4)
        else:
            raise ValueError(f"{shape=} must be circle, square, triangle or cross")

    def cells(
        self,
        x: float,
        y: float,
        rows: Sequence[Sequence[Words]],
        *,
        cell: tuple[float, float],
        paint: Callable[[int, int], tuple[str, float] | None] = lambda row, column: None,
        left: Sequence[Words] = (),
        top: Sequence[Words] = (),
    ) -> None:
        """Draws a matrix with its upper left corner at (`x`, `y`): a heat-map, a mask, a row of numbers.

        Args:
            x: left edge.
            y: upper edge.
            rows: the text of each cell, "" for none.
            cell: width and height of one.
            paint: gives ink and opacity of the cell in this row and column, or None to leave it empty.
            left: a label for each row.
            top: a label for each column.
        """
        wide, high = cell
        for r, row in enumerate(rows):
            for c, words in enumerate(row):
                ink, heat = paint(r, c) or (None, 0)
                self.rect(x + c * wide, y + r * high, wide, high, fill=ink, heat=heat, thick=0.8)
                if words:
                    self.text(x + (c + 0.5) * wide, y + (r + 0.5) * high, words)
        for r, words in enumerate(left):
            self.text(x - 8, y + (r + 0.5) * high, words, anchor="end")
        for c, words in enumerate(top):
            self.text(x + (c + 0.5) * wide, y - 13, words)

    def html(self, name: str) -> str:
        """The whole `<figure>` under its `name`, as one block of raw HTML without an empty line."""
        key, size = f"fig-{name}", f'width="{number(self.width)}" height="{number(self.height)}"'
        caption = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(self.caption, quote=False))
        play = f' data-play="{self.play}"' if self.play else ""
        if self.values is not None:
            play += f" data-values='{escape(json.dumps(self.values, separators=(',', ':')))}'"
        head = [
            f'<figure class="fig" id="{key}"{play}>',
            f'<svg viewBox="0 0 {number(self.width)} {number(self.height)}" {size}'
            f' style="max-width:100%;height:auto" font-size="{TEXT}" text-anchor="middle" fill="currentColor"'
            f' role="img" aria-labelledby="{key}-title {key}-desc" data-search-exclude="">',
            f'<title id="{key}-title">{escape(self.title, quote=False)}</title>',
            f'<desc id="{key}-desc">{escape(self.desc, quote=False)}</desc>',
        ]
        return (
            "\n".join([*head, *self.lines, "</svg>", f"<figcaption>{caption}</figcaption>", "</figure>"])
            + "\n"
        )


class Axes:
    """A pair of axes on a figure: turns values into places, and draws the frame, the ticks and the curves.

    Args:
        figure: what to draw on.
        left, top, width, height: the area inside the axes, in the units of the figure.
        x: lowest and highest value across.
        y: lowest and highest value upwards.
        log: which of "x" and "y" are logarithmic: "", "x", "y" or "xy".
    """

    def __init__(
        self,
        figure: Figure,
        left: float,
        top: float,
        width: float,
        height: float,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        log: str = "",
    ) -> None:
        self.figure, self.left, self.top, self.width, self.height = figure, left, top, width, height
        self.x, self.y, self.log = x, y, log
        figure.line((left, top), (left, top + height), (left + width, top + height), thick=1.2)

    def place(self, x: float, y: float, slack: float = 0) -> Point:
        """Where the point (`x`, `y`) lies in the drawing, to half a unit."""

        def share(value: float, low: float, high: float, log: bool) -> float:
            if log:
                value, low, high = math.log2(value), math.log2(low), math.log2(high)
            return (value - low) / (high - low)

        across = self.left + self.width * share(x, *self.x, "x" in self.log)
        down = self.top + self.height * (1 - share(y, *self.y, "y" in self.log))
        return steady(across, 0.5, 0), steady(down, 0.5, slack)

    def ticks(self, x: Sequence[tuple[float, Words]], y: Sequence[tuple[float, Words]]) -> None:
        """Writes the values along both axes, with a faint line across for each of `y`."""
        for value, words in x:
            at, floor = self.place(value, self.y[0])
            self.figure.line((at, floor), (at, floor + 5), thick=1.2)
            self.figure.text(at, floor + 17, words)
        for value, words in y:
            wall, at = self.place(self.x[0], value)
            self.figure.line((wall, at), (wall + self.width, at), thick=0.8, heat=0.22)
            self.figure.text(wall - 8, at, words, anchor="end")

    def names(self, x: Words, y: Words) -> None:
        """Writes what is measured: `x` under the axis, `y` above it."""
        self.figure.text(self.left + self.width / 2, self.top + self.height + 40, x)
        self.figure.text(self.left, self.top - 18, y, anchor="start", bold=True)

    def curve(
        self,
        points: Sequence[Point],
        ink: str,
        *,
        dash: str = "",
        mark: str = "",
        slack: float = 1e-3,
        thick: float = 2.4,
    ) -> list[Point]:
        """Draws measured points as a line, each with a `mark` of its shape; gives their places."""
        places = [self.place(x, y, slack) for x, y in points]
        self.figure.line(*places, ink=ink, thick=thick, dash=dash)
        for x, y in places if mark else ():
            self.figure.mark(x, y, mark, ink)
        return places
