"""The pages take their exercises and their common mistakes from the catalogue."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from practice.catalogue import exercises
from sitekit.exercises import right_answers
from sitekit.pages import PageError
from tests.site.repository import DAYS, convert, write_files

LANGUAGES = ("zh", "en")
EXTENSIONS = ("tables", "attr_list", "pymdownx.details", "sitekit.exercises")


def page(root: Path, name: str, text: str) -> str:
    """Convert a page of a repository that has no other."""
    return convert(write_files(root, {name: text}), name, *EXTENSIONS)


def words(html: str) -> str:
    return unescape(re.sub("<[^>]*>", "", html))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("day", DAYS)
def test_a_day_lists_its_exercises_and_their_mistakes(day: str, language: str, tmp_path: Path) -> None:
    html = page(tmp_path, f"docs/{language}/days/{day}.md", "# A\n\n[[exercises]]\n\n[[mistakes]]\n")
    chosen = [each for each in exercises().values() if each.day == day]
    assert chosen
    rows = re.findall(r"<tr>\s*<td><code>(.*?)</code></td>(.*?)</tr>", html, re.DOTALL)
    assert [name for name, _ in rows] == [each.name for each in chosen]
    for (_, row), each in zip(rows, chosen, strict=True):
        assert each.title[language] in words(row)
        assert all(f"<code>{symbol}</code>" in row for symbol in each.symbols)
        assert f">{len(each.wrong)}<" in row
    folded = re.findall(r"<details.*?</details>", html, re.DOTALL)
    assert len(folded) == len(chosen)
    for block, each in zip(folded, chosen, strict=True):
        assert len(re.findall("<li>", block)) == len(each.wrong)
        text = " ".join(words(block).split())
        for wrong in each.wrong:
            title = re.sub("[`*]", "", wrong.title[language])
            assert " ".join(title.split()) in re.sub("[`*]", "", text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_on_practising_counts_what_there_is(language: str, tmp_path: Path) -> None:
    html = page(tmp_path, f"docs/{language}/practice.md", "# A\n\n[[counts]]\n\n[[exercises]]\n")
    numbers = [int(number) for number in re.findall(r"\d+", words(re.search("<p>(.*?)</p>", html)[1]))]  # type: ignore[index]
    known = exercises().values()
    assert numbers == [len(known), sum(len(each.wrong) for each in known), right_answers()]
    assert re.findall(r"<td><code>(.*?)</code></td>", html) == [each.name for each in known]
    assert len(re.findall(r'href="days/[\w-]+\.md#exercise"', html)) == len(known)


def test_a_day_without_exercises_says_so(tmp_path: Path) -> None:
    with pytest.raises(PageError, match=r"rope\.md:3: no exercise has day = 'rope'"):
        page(tmp_path, "docs/en/days/rope.md", "# A\n\n[[exercises]]\n")
