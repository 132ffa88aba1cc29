"""The indexes of questions and papers have what the days have, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sitekit.indexes import list_papers, list_questions, read_day, read_days
from sitekit.pages import ROOT, SITES, PageError
from tests.site.repository import convert as convert_page
from tests.site.repository import write_files

DAY = """---
title: A day
---

# A { #top }

Text of [1706.03762](https://arxiv.org/abs/1706.03762).

## Section { #section }

```text
??? question no-question "In a fence"
```

As arXiv:2205.14135 says.

## Questions { #questions }

??? question why-heads "1. Why $H$ heads, {{run "heads =" 1}} of them?"

    One [2305.13245](https://arxiv.org/abs/2305.13245v2).

## References { #references }

- [GQA](https://arxiv.org/abs/2305.13245): groups; Dao, [D](https://arxiv.org/abs/2205.14135): blocks.
- Vaswani et al., [1706.03762](https://arxiv.org/abs/1706.03762): heads.
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository of one day and one page of indexes, in English."""
    files = {
        "docs/en/days/a.md": DAY,
        "docs/en/index.md": "[[questions]]\n\n[[papers]]\n",
        "snippets/a/run.out": "heads = 8\n",
        "mkdocs.en.yml": "nav:\n  - A: days/a.md\n  - B: days/gone.md\n",
    }
    return write_files(tmp_path, files)


def convert(root: Path, name: str = "docs/en/index.md") -> str:
    """Convert a page with the extension."""
    return convert_page(root, name, "tables", "attr_list", "sitekit.indexes")


def test_a_page_is_read(small: Path) -> None:
    day = read_day(small / "docs/en/days/a.md", small)
    assert day.title == "A day"
    assert day.questions == [("why-heads", "Why $H$ heads, 8 of them?")]
    assert [(one.paper, one.anchor, one.place) for one in day.citations if not one.text] == [
        ("1706.03762", "", ""),
        ("2205.14135", "section", "Section"),
        ("2305.13245", "q-why-heads", "Questions"),
    ]


def test_the_indexes_link_to_the_places(small: Path) -> None:
    html = convert(small)
    assert '<h2 id="a">A day</h2>' in html
    assert '<a href="days/a.md#q-why-heads">Why $H$ heads, 8 of them?</a>' in html
    rows = re.findall(r"<tr>\s*<td>(.*?)</td>\s*<td>(.*?)</td>", html, re.DOTALL)
    assert [re.sub("<[^>]*>", "", said) for said, _ in rows] == [
        "Vaswani et al., 1706.03762: heads",
        "Dao, D: blocks",
        "GQA: groups",
    ]
    assert rows[1][1] == 'A day: <a href="days/a.md#section">Section</a>'
    assert rows[0][1] == 'A day: <a href="days/a.md">A day</a>'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- Vaswani", "- Nobody, 1:\n\nVaswani of arXiv:1706.03763 ", ""),
        ("As arXiv:2205.14135", "As arXiv:2205.14136", "docs/en/days/a.md:15: 2205.14136 is not among"),
        ('{{run "heads =" 1}}', '{{run "legs =" 1}}', "docs/en/days/a.md:19: .*run.out"),
    ],
)
def test_what_cannot_be_listed_is_refused(small: Path, old: str, new: str, message: str) -> None:
    page = small / "docs/en/days/a.md"
    assert old in DAY
    page.write_text(DAY.replace(old, new), encoding="utf-8")
    if not message:
        assert "1706.03763" in convert(small)
        return
    with pytest.raises(PageError, match=message):
        convert(small)


def test_an_index_has_its_place(small: Path) -> None:
    (small / "docs/en/days/b.md").write_text("[[papers]]\n", encoding="utf-8")
    with pytest.raises(PageError, match=r"1: \[\[papers\]\] stands on a page directly under docs/"):
        convert(small, "docs/en/days/b.md")


@pytest.mark.parametrize("language", SITES)
def test_every_question_and_every_paper_is_there(language: str) -> None:
    """Counted with other means than the index: the words of the sources."""
    days = read_days(language)
    pages = sorted((ROOT / "docs" / language / "days").glob("*.md"))
    assert sorted(day.path for day in days) == pages
    questions, papers = "\n".join(list_questions(days)), "\n".join(list_papers(days, language))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        names = re.findall(r"^\?\?\?\+? question (\S+) ", text, re.MULTILINE)
        assert len(names) == text.count("??? question")
        for name in names:
            assert questions.count(f"(days/{page.stem}.md#q-{name})") == 1, name
        cited = set(re.findall(r"arxiv\.org/\w+/(\d+\.\d+)", text))
        assert cited
        for paper in cited:
            assert f"https://arxiv.org/abs/{paper})" in papers, paper
    assert len(re.findall(r"^1\. ", questions, re.MULTILINE)) == sum(len(day.questions) for day in days)
    assert [day.slug for day in days] == re.findall(r"\{ #([\w-]+) \}", questions)


@pytest.mark.parametrize("language", SITES)
def test_the_built_indexes_lead_to_what_is_there(built_site: Path, language: str) -> None:
    folder = built_site if language == "zh" else built_site / language
    for name, least in ("questions", 60), ("papers", 40):
        html = (folder / name / "index.html").read_text(encoding="utf-8")
        article = html[html.index("<article") : html.index("</article>")]
        links = re.findall(r'href="\.\./days/([\w-]+)/#([\w-]+)"', article)
        assert len(links) >= least
        for slug, anchor in links:
            assert f'id="{anchor}"' in (folder / "days" / slug / "index.html").read_text(encoding="utf-8")
