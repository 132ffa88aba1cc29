"""The Chinese and the English page of a name are one page: same structure, code, figures, formulas, links.

What stands on its own (headings, fences, figures, tables, notes, display formulas) must come in the same
order. What stands inside a sentence (formulas, links) must be the same between two of these, in any order,
as the two languages order their words differently.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

from practice.values import FORM

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})(?P<info>.*)")
HEADING = re.compile(r"(?P<level>#{1,6})\s.*?(?P<id>\{\s*#[\w-]+\s*\})?\s*$")
NOTE = re.compile(r"(?P<indent>\s*)(?P<kind>!!!|\?\?\?\+?|===)\s*(?P<type>(?:[\w-]+ *)*)")
EMBED = re.compile(r"\s*--8<--\s+(?P<path>.*)")
COMMENT = re.compile(r"\s*<!--(?P<text>.*?)(\(.*)?-->\s*")
FORMULA = re.compile(r"(?<!\\)\$(?!\s)((?:\\.|[^\\$])+?)(?<!\s)\$")
LINK = re.compile(r"\]\(([^)\s]+)[^)]*\)|\[(\^[\w-]+)\]")
BAR = re.compile(r"(?<!\\)[|]")
WORDS = re.compile(r"\\(?:text|textbf|mbox)\{[^}]*\}|[\u3000-\u9fff\uff00-\uffef]+")  # in a formula


class Item(NamedTuple):
    """A part of a page that both languages share."""

    line: int
    text: str


def parts(path: Path) -> tuple[list[Item], list[list[Item]]]:
    """Return the blocks of a page in order, and the formulas and links in the sentences after each."""
    blocks: list[Item] = [Item(1, "the start")]
    inline: list[list[Item]] = [[]]
    for item, inside in _items(path.read_text(encoding="utf-8").split("\n"), path.parent.as_posix()):
        if inside:
            inline[-1].append(item)
        else:
            blocks.append(item)
            inline.append([])
    return blocks, inline


def _items(lines: list[str], folder: str) -> Iterator[tuple[Item, bool]]:
    """Yield each shared part, and whether it stands inside a sentence."""
    fence = info = formula = ""
    skip = lines.index("---", 1) + 1 if lines[0] == "---" else 0  # front matter
    for number, line in list(enumerate(lines, 1))[skip:]:
        match = FENCE.fullmatch(line)
        if fence:
            if match and match["fence"].startswith(fence) and not match["info"].strip():
                fence = ""
            elif EMBED.match(line) or not info.startswith("text"):  # text may be words, code may not
                same = re.sub(r"\.(?:zh|en)\.txt", ".txt", line.strip())  # what a program says in each
                yield Item(number, f"line of code {same!r}"), False
        elif match:
            fence, info = match["fence"], match["info"].strip()
            shown = re.sub(r'title="(?!snippets/|llmcore/)[^"]*"', "", info).strip()  # a title may be words
            yield Item(number, f"fence {shown!r}"), False
        elif line.strip() == "$$" or formula:
            formula += line.strip()
            if line.strip() == "$$" and formula != "$$":
                yield Item(number, f"formula {WORDS.sub('', formula)!r}"), False
                formula = ""
        elif match := HEADING.fullmatch(line):
            yield Item(number, f"heading {match['level']} {match['id']}"), False
            yield from ((item, True) for item in _inside(number, line))
        elif match := NOTE.match(line):
            yield Item(number, f"note {len(match['indent'])} {match['kind']} {match['type'].strip()}"), False
            yield from ((item, True) for item in _inside(number, line))
        elif match := EMBED.match(line):
            yield Item(number, f"embed {re.sub(r'[.](zh|en)[.]svg', '.svg', match['path'])}"), False
        elif match := COMMENT.fullmatch(line):
            yield Item(number, f"comment {match['text'].strip()}"), False
        elif line.startswith("::: "):
            yield Item(number, line), False
        else:
            if line.lstrip().startswith("|"):
                yield Item(number, f"table row of {len(BAR.findall(line))} bars"), False
            yield from ((item, True) for item in _inside(number, line))


def _inside(number: int, line: str) -> Iterator[Item]:
    """Yield the formulas and the links of a line."""
    for match in FORM.finditer(line):
        if not match["given"]:
            yield Item(number, f"value {match[0]}")
    bare = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", FORM.sub("#", line))
    for match in FORMULA.finditer(bare):
        yield Item(number, f"formula {WORDS.sub('', match[1])!r}")
    for match in LINK.finditer(FORMULA.sub("", bare)):
        yield Item(number, f"link {match[1] or match[2]}")


def differences(root: Path) -> list[str]:
    """Return the first difference of each pair of pages, with both places."""
    found: list[str] = []
    pages = {
        path.relative_to(root / "docs" / lang)
        for lang in ("zh", "en")
        for path in root.glob(f"docs/{lang}/**/*.md")
    }
    for page in sorted(pages):
        twins = [root / "docs" / lang / page for lang in ("zh", "en")]
        names = [path.relative_to(root).as_posix() for path in twins]
        if missing := [name for name, path in zip(names, twins, strict=True) if not path.is_file()]:
            (alone,) = set(names) - set(missing)
            found.append(f"{alone}:1: {missing[0]} is missing")
            continue
        difference = _difference(parts(twins[0]), parts(twins[1]))
        if difference:
            (here, there) = difference
            found.append(f"{names[0]}:{here.line} has {here.text}, {names[1]}:{there.line} has {there.text}")
    return found


def _difference(
    one: tuple[list[Item], list[list[Item]]], two: tuple[list[Item], list[list[Item]]]
) -> tuple[Item, Item] | None:
    ends = Item(one[0][-1].line, "nothing more"), Item(two[0][-1].line, "nothing more")
    before: tuple[Item, Item] | None = None
    for index, pair in enumerate([*zip_longest(one[0], two[0]), ends]):
        here, there = pair[0] or ends[0], pair[1] or ends[1]
        if here.text != there.text:
            return here, there
        # a block that is missing comes first, as the sentences after it seem to be those before it
        if before:
            left, right = one[1][index - 1], two[1][index - 1]
            counts = Counter(item.text for item in left), Counter(item.text for item in right)
            only_left, only_right = counts[0] - counts[1], counts[1] - counts[0]
            if only_left or only_right:
                nothing = [Item(item.line, "nothing like it") for item in before]
                first = next((item for item in left if item.text in only_left), nothing[0])
                return first, next((item for item in right if item.text in only_right), nothing[1])
        before = here, there
    return None


def test_the_two_languages_are_twins() -> None:
    problems = differences(ROOT)
    assert not problems, "\n".join(problems)


PAGE = """---
title: A
---

# A { #a }

Text $x$ and [link](b.md#c), $y$.

<!--pytest-codeblocks:cont-->
```python title="snippets/a.py"
x = 1
```

$$
y = 2 \\\\text{WORDS}
$$

| a | b |
|---|---|

??? question why "Q"

    !!! note

        --8<-- "docs/figures/a/b.LANG.svg"
"""


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    """A small pair of twins."""
    for lang, text, words in (
        ("zh", "字 $y$、[链](b.md#c) 与 $x$。", "因为"),
        ("en", "Text $x$ and [link](b.md#c), $y$.", "as"),
    ):
        (tmp_path / "docs" / lang).mkdir(parents=True)
        page = (
            PAGE.replace("Text $x$ and [link](b.md#c), $y$.", text)
            .replace("WORDS", words)
            .replace("LANG", lang)
        )
        (tmp_path / "docs" / lang / "a.md").write_text(page, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("{ #a }", "{ #b }", 5),
        ("# A", "## A", 5),
        ("$x$", "$z$", 7),
        ("b.md#c", "b.md#d", 7),
        ("blocks:cont", "blocks:expected-output", 9),
        ("snippets/a.py", "snippets/b.py", 10),
        ("x = 1", "x = 2", 11),
        ("y = 2", "y = 3", 16),
        ("| a | b |", "| a |", 18),
        ("question", "note", 21),
        ("question why", "question how", 21),
        ("    !!!", "!!!", 23),
        ("a/b.en.svg", "a/c.en.svg", 25),
        ('```python title="snippets/a.py"\nx = 1\n```\n', "\n$x$\n", 15),
    ],
)
def test_a_difference_is_found_where_it_is(twins: Path, old: str, new: str, line: int) -> None:
    assert differences(twins) == []
    page = twins / "docs/en/a.md"
    text = page.read_text(encoding="utf-8")
    assert old in text
    changed = text.replace(old, new, 1)
    page.write_text(changed, encoding="utf-8")
    (found,) = differences(twins)
    assert f"docs/en/a.md:{line} " in found


def test_a_page_without_its_twin_is_found(twins: Path) -> None:
    shutil.copy(twins / "docs/zh/a.md", twins / "docs/zh/b.md")
    assert differences(twins) == ["docs/zh/b.md:1: docs/en/b.md is missing"]
