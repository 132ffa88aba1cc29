r"""Numbers of a page's sentence, looked up in what was computed: `sitekit.values` says what a form means.

The standard library only, since a reader without the site's tools meets such sentences too.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path

from practice.catalogue import ROOT

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
