"""Each day says what it is about, how hard and how often asked; the page of tags lists all days by it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sitekit.indexes import day_paths
from sitekit.new_day import page
from sitekit.pages import SITES, PageError
from sitekit.tags import KINDS, Tag, list_tags, read_tags
from tests.site.repository import convert as convert_page
from tests.site.repository import write_files

FRONT = "---\ntitle: A day\ntopics: [attention, losses]\ndifficulty: 2\nfrequency: 3\n---\n\n# A { #top }\n"


def convert(root: Path, name: str) -> str:
    """Convert a page with the extension."""
    return convert_page(root, name, "attr_list", "sitekit.tags")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository of one day and a page of tags, in English."""
    files = {
        "docs/en/days/a.md": FRONT,
        "docs/en/tags.md": "# Tags\n\n[[tags]]\n",
        "mkdocs.en.yml": "nav:\n  - A: days/a.md\n",
    }
    return write_files(tmp_path, files)


def test_a_day_shows_its_tags_below_the_title(small: Path) -> None:
    html = convert(small, "docs/en/days/a.md")
    line = re.search(
        r'<h1 id="top">A</h1>\s*<p class="tags" data-search-exclude="">(.*?)</p>', html, re.DOTALL
    )
    assert line
    assert re.sub("<[^>]*>", "", line[1]) == (
        "Topic Attention Loss functions · Difficulty Intermediate · Frequency Almost always"
    )
    assert re.findall('href="(.*?)"', line[1]) == [
        "../tags.md#topics-attention",
        "../tags.md#topics-losses",
        "../tags.md#difficulty-2",
        "../tags.md#frequency-3",
    ]


def test_the_page_of_tags_lists_the_days(small: Path) -> None:
    html = convert(small, "docs/en/tags.md")
    assert re.findall('<h3 id="(.*?)"', html) == [
        "topics-attention",
        "topics-losses",
        "difficulty-2",
        "frequency-3",
    ]
    assert html.count('<a href="days/a.md">A day</a>') == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[attention, losses]", "[attention, love]", "a.md:1: topics: love is none of attention"),
        ("difficulty: 2", "difficulty: 9", "a.md:1: difficulty: 9 is none of 1, 2, 3"),
        ("frequency: 3\n", "", "a.md:1: a day states its frequency in the front matter: 3, 2, 1"),
    ],
)
def test_other_tags_are_refused(small: Path, old: str, new: str, message: str) -> None:
    (small / "docs/en/days/a.md").write_text(FRONT.replace(old, new), encoding="utf-8")
    with pytest.raises(PageError, match=message):
        convert(small, "docs/en/days/a.md")


def test_a_new_day_has_tags() -> None:
    assert read_tags(page("rope", "zh")) == [
        Tag("topics", "attention"),
        Tag("difficulty", "2"),
        Tag("frequency", "1"),
    ]
    assert read_tags("# A\n") == []


def test_both_languages_say_the_same_of_a_day() -> None:
    said = [
        {path.stem: read_tags(path.read_text(encoding="utf-8")) for path in day_paths(language)}
        for language in SITES
    ]
    assert said[0] == said[1]
    without = [name for name, tags in said[0].items() if {tag.kind for tag in tags} != set(KINDS)]
    assert not without, f"docs/zh/days: {without} state no topics, difficulty and frequency"


@pytest.mark.parametrize("language", SITES)
def test_the_built_page_leads_to_every_day(built_site: Path, language: str) -> None:
    folder = built_site if language == "zh" else built_site / language
    html = (folder / "tags" / "index.html").read_text(encoding="utf-8")
    article = html[html.index("<article") : html.index("</article>")]
    lines = "\n".join(list_tags(day_paths(language), language))
    for path in day_paths(language):
        tags = read_tags(path.read_text(encoding="utf-8"))
        assert (
            article.count(f'href="../days/{path.stem}/"') == len(tags) == lines.count(f"(days/{path.name})")
        )
        day = (folder / "days" / path.stem / "index.html").read_text(encoding="utf-8")
        for tag in tags:
            assert f'href="../../tags/#{tag.anchor}"' in day
            assert f'id="{tag.anchor}"' in article
