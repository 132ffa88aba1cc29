"""The formulas of a page: where they stand, which are counts, and what they come to.

`$…$`, `$$…$$` and formulas in running text, 4E² + 2nE, are read alike.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from practice.values import fill

LETTER = "[BLSHKDETVnkd]"
CODE = re.compile(r"^\s*(`{3,}|~{3,}).*?^\s*\1\s*$|<!--.*?-->|(`+)(?!`)[^\n]*?(?<!`)\2(?!`)", re.M | re.S)
POWERS = str.maketrans({"²": "^2", "³": "^3"})
TERM = rf"\d+(?!TB|KB)(?:(?:{LETTER}[²³]?){{2,}}|{LETTER}[²³])"
MATH = re.compile(
    r"(?<!\\)\$\$(?P<block>.+?)\$\$|(?<!\\)\$(?!\s)(?P<inline>(?:\\.|[^\\$\n])+?)(?<!\s)\$"
    rf"|(?<![\w/.\-])(?P<bare>{TERM}(?: [+−] {TERM})*)(?!\w)",
    re.S,
)
BESIDES = re.compile(  # orders, shapes, words, differentials, exponents, labels, indexed symbols, commands
    r"(?:O|\\Theta)\((?:[^()]|\([^()]*\))*\)|\((?:[^(),]|\([^()]*\))*,(?:[^()]|\([^()]*\))*\)|\\text\{[^{}]*\}"
    r"|\\mathrm\{\w+\}[A-Z]?|(?:e|\\mathbb\{R\})\^\{[^{}]*\}|\}_\{(?:[^{}]|\{[^{}]*\})*\}"
    r"|[A-Za-z](?:_\w|_\{[^{}]*\}|\^[A-Z]|\^\\top)+|\\(?!cdot|times)[A-Za-z]+"
)
PRODUCT = re.compile(
    rf"(?:{LETTER}(?:\^\{{?\d+\}}?)?|(?<!\^)\d)[·(]*{LETTER}|{LETTER}·*\(|(?<![\d.])\d+·\(?\d+(?![\d.])"
)
TOKEN = re.compile(
    r"(?P<space>\s+|\\[,;:!])|(?P<number>\d+(?:\.\d+)?)|(?P<times>\\cdot|\\times)|(?P<mark>[-+/^()])"
    r"|(?P<name>\\text\{(?P<word>\w+)[^{}]*\}|[A-Z]_\{\\text\{(?P<index>\w+)\}\}|[A-Za-z](?![_{]))"
    r"|(?P<other>\\?\w+|.)"
)


class Formula(NamedTuple):
    """A formula of a page; its place is the section's anchor and, in a table, the column."""

    line: int
    place: str
    latex: str


def formulas(text: str, slug: str) -> list[Formula]:
    """Return the formulas of a page, numbers filled in, whole numbers without their commas."""
    text = CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    text = "\n".join(fill(line, slug) for line in text.split("\n"))
    found: list[Formula] = []
    for match in MATH.finditer(text):
        anchor = (re.findall(r"^#+ .*\{\s*#([\w-]+)\s*\}$", text[: match.start()], re.M) or [""])[-1]
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        place = f"{anchor}:{before.count('|') - 1}" if before.startswith("|") else anchor
        latex, line = str(match[match.lastgroup or 0]), text.count("\n", 0, match.start()) + 1
        for part in re.split(r",[^\S\n]*\\q+uad|\\\\", latex):
            one = re.sub(r"\{,\}|(?<=\d),(?=\d{3})", "", " ".join(part.translate(POWERS).split()))
            one = re.sub(r"\\text\{(\d+)\}", r"\1", one)
            found.append(Formula(line + part[: len(part) - len(part.lstrip())].count("\n"), place, one))
            line += part.count("\n")
    return found


def is_count(latex: str) -> bool:
    """Return whether dimensions or whole numbers are multiplied."""
    bare = re.sub(r"\\cdot|\\times", "·", BESIDES.sub("#", latex))
    return bool(PRODUCT.search(re.sub(r"\\[,;:!]|\s", "", bare)))


def value(latex: str, dims: dict[str, int]) -> Fraction:
    """Return what an expression comes to; juxtaposed factors and / bind from left to right."""
    plain = re.sub(r"\\underbrace\{([^{}]*)\}_\{(?:[^{}]|\{[^{}]*\})*\}", r"(\1)", latex)
    plain = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", re.sub(r"\^\{(\d+)\}", r"^\1", plain))
    python, after_factor = "", False
    for token in TOKEN.finditer(plain):
        kind, text = token.lastgroup, token[0]
        name = token["word"] or token["index"] or text
        if kind == "other" or (kind == "name" and name not in dims):
            raise ValueError(f"{text} in ${latex}$ has no meaning here")
        if kind == "space":
            continue
        if after_factor and (kind in ("number", "name") or text == "("):
            python += "*"
        after_factor = kind in ("number", "name") or text == ")"
        whole = {"number": f"F('{text}')", "name": f"F({dims.get(name)})", "times": "*"}
        python += whole.get(kind or "", text.replace("^", "**"))
    try:
        return eval(python, {"F": Fraction})
    except SyntaxError as error:
        raise ValueError(f"${latex}$ is no expression") from error


def sides(latex: str) -> list[str]:
    """Return what stands between the signs of equality, without the name of the count on the left."""
    parts = [part.strip() for part in latex.split("=")]
    return parts[1:] if len(parts) > 1 and re.fullmatch(r"(?:N_\{)?\\text\{\w+\}\}?", parts[0]) else parts
