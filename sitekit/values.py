r"""Numbers of a sentence, filled in from what was computed.

In the prose, the tables and the formulas of ``days/<slug>.md``

    {{kv_bytes "Llama 3 8B" 3}}

becomes the third number after the words ``Llama 3 8B`` in ``snippets/<slug>/kv_bytes.out``, the recorded
output of a program that every test run compares with what it prints. ``"first > second"`` looks for
``second`` below the line of ``first``; ``{{kv_bytes.py "batch =" 1}}`` takes an input from the program;
a path with a slash starts at the root of the repository. A format may follow, ``{{counts "total" 1 ,d}}``:
Python's, for thousands and for fewer digits. A number that nobody computed says whose it is:
``{{67 given "measured by 2305.13245, table 1"}}``.
"""

from __future__ import annotations

import contextlib
import re
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from sitekit.pages import ROOT, line_number, page_lines, page_path, refuse

FORM = re.compile(
    r'\{\{(?:(?P<given>[^\s{}"]+) given "(?P<reason>[^"]+)"'
    r'|(?P<file>[\w./-]+) "(?P<label>[^"]+)"(?: (?P<nth>\d+))?(?: (?P<format>,?(?:\.\d+)?[deFf]))?)\}\}'
)
ALMOST = re.compile(r'\{\{[^\s{}"]+ (?:given )?["“][^}]*\}\}')
NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![^\s([{,=:×/'\x22])[-+−])?(?:\d{1,3}(?:,\d{3})+(?![,\d])|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?!\d)"
)


class ValueFormError(ValueError):
    """A form that names no number; the message says why."""


def look_up(text: str, label: str, nth: int = 1) -> str:
    """Return the number that a form names.

    Args:
        text: an output, or the source of a program.
        label: words that one line alone has; before ``>`` stand words of a line above it.
        nth: which of the numbers after the label, from 1.

    Raises:
        ValueFormError: no line, or more than one, has the label.
        ValueFormError: the line has fewer numbers after it.
    """
    lines = text.split("\n")
    *above, last = label.split(" > ")
    for words in above:
        found = [index for index, line in enumerate(lines) if words in line]
        if len(found) != 1:
            raise ValueFormError(f"{len(found)} lines have {words!r}, not one")
        lines = lines[found[0] + 1 :]
    rests = [line.split(last, 1)[1] for line in lines if last in line]
    if len(rests) != 1 and not (above and rests):
        raise ValueFormError(f"{len(rests)} lines have {last!r}, not one")
    numbers = NUMBER.findall(rests[0])
    if not 1 <= nth <= len(numbers):
        raise ValueFormError(f"the line of {last!r} has {len(numbers)} numbers after it, no number {nth}")
    return numbers[nth - 1]


def reformat(number: str, spec: str) -> str:
    """Return a printed number with fewer digits, or with its thousands set apart.

    Raises:
        ValueFormError: it has fewer digits than that, or stands on the edge between two roundings.
    """
    value = Decimal(number.replace(",", "").replace("−", "-"))
    places = re.search(r"\.(\d+)", spec)
    digits = int(places[1]) if places else 0
    if spec[-1] in "fFd":
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and -exponent < digits:
            raise ValueFormError(f"{number} has fewer than {digits} digits after the point")
        step = Decimal(1).scaleb(-digits)
        if value.quantize(step, ROUND_HALF_UP) != value.quantize(step, ROUND_HALF_DOWN):
            raise ValueFormError(f"{number} cannot be rounded again to {digits} digits: print it so")
        value = value.quantize(step)
    return format(int(value) if spec[-1] == "d" else value, spec)


def fill(line: str, slug: str, root: Path = ROOT) -> str:
    """Return a line of a page with its forms filled in.

    Raises:
        ValueFormError: a form is malformed or names no number.
    """

    def value(match: re.Match[str]) -> str:
        if match["given"]:
            return match["given"]
        file = match["file"] + ("" if Path(match["file"]).suffix else ".out")
        path = root / file if "/" in file else root / "snippets" / slug / file
        try:
            if not path.is_file():
                raise ValueFormError("no such file")
            number = look_up(path.read_text(encoding="utf-8"), match["label"], int(match["nth"] or 1))
            number = reformat(number, match["format"]) if match["format"] else number
            return re.sub(r"^-", "−", number)
        except ValueFormError as error:
            raise ValueFormError(f"{match[0]}: {path.relative_to(root).as_posix()}: {error}") from error

    filled = FORM.sub(value, line)
    if wrong := ALMOST.search(filled):
        raise ValueFormError(
            f'{wrong[0]}: a number is {{{{file "label" nth format}}}} or {{{{5 given "why"}}}}'
        )
    return filled


def page_text(md: Markdown) -> str:
    """Return the page's source with its forms filled in where that can be done, line for line."""
    slug, lines = _slug(md), page_lines(md)
    for index, line in enumerate(lines):
        with contextlib.suppress(ValueFormError):
            lines[index] = fill(line, slug)
    return "\n".join(lines)


def _slug(md: Markdown) -> str:
    path = page_path(md)
    return path.stem if path else ""


class ValuePreprocessor(Preprocessor):
    """Fills the forms of a page in when its blocks of code are already set aside."""

    md: Markdown

    def run(self, lines: list[str]) -> list[str]:
        """Fill every form in."""
        slug = _slug(self.md)
        filled: list[str] = []
        for line in lines:
            try:
                filled.append(fill(line, slug))
            except ValueFormError as error:
                refuse(self.md, line_number(self.md, line), str(error))
                filled.append(line)
        return filled


class ValueExtension(Extension):
    """The Markdown extension ``sitekit.values``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after fences (25) and before raw HTML (20)."""
        md.preprocessors.register(ValuePreprocessor(md), "values", 22)


def makeExtension(**kwargs: object) -> ValueExtension:
    """Return the extension (called by Markdown)."""
    return ValueExtension(**kwargs)
