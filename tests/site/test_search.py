"""What readers type finds the page that answers it first, in a real browser; the index comes late."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from markdown import Markdown

from sitekit.pages import ROOT, SITES
from tests.site.repository import DAYS
from tests.site.visits import visit

QUERIES = ROOT / "tests" / "site" / "queries"
MOST = 283_000  # bytes of a first visit of a day, with what a host can compress compressed
FOUND = """() => [...document.querySelectorAll(".md-search-result__item")].slice(0, 3).map(
  item => [...item.querySelectorAll(":scope > a, :scope > details > a")].map(link => link.href))"""
READY = "() => !/初始|Init/.test(document.querySelector('.md-search-result__meta').textContent)"
NONE = {"zh": "没有找到符合条件的结果", "en": "No matching documents"}


class Query(NamedTuple):
    """A line of a list: what is typed, and what must come first."""

    line: int
    text: str
    page: str  # "" is the front page
    section: str  # "" is any


def read(language: str) -> list[Query]:
    """Return the list of a language."""
    lines = enumerate((QUERIES / f"{language}.txt").read_text(encoding="utf-8").split("\n"), 1)
    found = []
    for number, line in lines:
        if line.strip() and not line.startswith("# "):
            text, place = line.split(" = ")
            page, _, section = place.partition("#")
            found.append(Query(number, text, page.removesuffix("."), section))
    return found


def ask(page: Any, query: str, language: str) -> list[list[str]]:
    """Type a query and return the first results: the address of a page, then those of its best sections."""
    field = page.locator("input[name=query]")
    field.fill("")
    page.wait_for_function("() => !document.querySelector('.md-search-result__item')")
    field.focus()
    page.keyboard.insert_text(query)  # as it is pasted, or comes from an input method: no key is pressed
    page.wait_for_function(
        """none => document.querySelector(".md-search-result__item")
        || document.querySelector(".md-search-result__meta").textContent.includes(none)""",
        arg=NONE[language],
    )
    return page.evaluate(FOUND)


def relative(href: str, base: str) -> str:
    """Return an address of a result as the lists write it."""
    return re.sub(r"\?h=[^#]*", "", href.removeprefix(base))


@pytest.mark.parametrize("language", SITES)
def test_the_page_that_answers_comes_first(reader: Any, address: str, language: str) -> None:
    base = address + ("en/" if language == "en" else "")
    reader.goto(base + "plan/")
    reader.locator("input[name=query]").focus()
    reader.wait_for_function(READY)
    wrong = []
    for query in read(language):
        results = [[relative(href, base) for href in item] for item in ask(reader, query.text, language)]
        first = results[0] if results else [None]
        sections = first[1:2] if query.section else []
        if first[0] != query.page or sections != [f"{query.page}#{query.section}"] * bool(query.section):
            wrong.append(
                f"{language}.txt:{query.line}: {query.text}: {results}, not {query.page}#{query.section}"
            )
    assert not wrong, "\n".join(wrong)


def test_the_lists_are_long_and_name_what_exists() -> None:
    for language in SITES:
        queries = read(language)
        assert len({query.text for query in queries}) == len(queries) >= 60
        for query in queries:
            source = ROOT / "docs" / language / f"{query.page.rstrip('/') or 'index'}.md"
            assert source.is_file(), query
            if query.section:
                assert f"{{ #{query.section}" in source.read_text(encoding="utf-8"), query


def test_a_chinese_word_at_the_end_counts(reader: Any, address: str) -> None:
    """Without the script, 函数 is lost here, and all that has 配 is found."""
    reader.goto("plan/")
    reader.locator("input[name=query]").focus()
    reader.wait_for_function(READY)
    (first, *_), *_ = ask(reader, "配分函数", "zh")
    assert relative(first, address) == "days/dpo/"
    (first, *_), *_ = ask(reader, "配分函", "zh")  # half typed
    assert relative(first, address) == "days/dpo/"
    shown = {relative(page, address) for page, *_ in ask(reader, "归", "zh")}  # 归一, 归一化, 归约 … begin so
    assert len(shown) > 1


@pytest.mark.parametrize("day", DAYS)
def test_a_first_visit_is_light(reader: Any, built_site: Path, address: str, day: str) -> None:
    sizes = visit(reader, built_site, f"{address}days/{day}/")
    fonts = {Path(url).name for url in sizes if url.endswith(".woff2")}
    assert "KaTeX_Main-Regular.woff2" in fonts
    assert not fonts & {"KaTeX_AMS-Regular.woff2"}, "one letter of blackboard bold needs no whole font"
    assert not [url for url in sizes if "search_index" in url]
    assert 0 < sum(sizes.values()) <= MOST, sizes


def test_the_index_is_fetched_when_somebody_is_about_to_search(reader: Any) -> None:
    reader.goto("days/self-attention/", wait_until="networkidle")
    with reader.expect_response("**/search_index.json"):
        reader.locator("input[name=query]").focus()


def test_a_page_that_a_search_led_to_has_the_words_marked(reader: Any) -> None:
    with reader.expect_response("**/search_index.json"):
        reader.goto("days/self-attention/?h=softmax")
    assert reader.locator("article mark").first.text_content().lower() == "softmax"


@pytest.mark.parametrize("language", SITES)
def test_the_index_leaves_out_what_is_shown_twice(built_site: Path, language: str) -> None:
    folder = built_site if language == "zh" else built_site / language
    docs = json.loads((folder / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    (mask,) = (doc for doc in docs if doc["location"] == "api/masks/#llmcore.masks.causal_mask")
    assert "raise ValueError" not in mask["text"]
    assert "True" in mask["text"]
    assert not [doc for doc in docs if doc["location"].endswith("#references")]
    boosts = {doc["location"].split("#")[0]: doc.get("boost", 1) for doc in docs}
    api = {name for name in boosts if name.startswith("api/")}
    assert len(api) == len(list((ROOT / "docs" / language / "api").glob("*.md")))
    assert max(boosts[name] for name in api) < min(boosts[name] for name in set(boosts) - api)


def test_short_words_are_found_in_compounds(built_site: Path) -> None:
    words = (ROOT / "sitekit" / "search_words.txt").read_text(encoding="utf-8").split()
    assert {"手撕", "掩码", "词元"} <= set(words)
    assert [word for word in words if len(word) > 4] == []
    docs = json.loads((built_site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    text = "".join(doc["title"] + doc["text"] for doc in docs)
    assert "\u200b因果\u200b掩码\u200b" in text
    assert "手撕\u200b" in text


def test_references_are_marked_where_they_stand() -> None:
    md = Markdown(extensions=["attr_list", "sitekit.search"])
    html = md.convert("## A { #a }\n\n## B { #references }\n")
    assert 'id="references"' in html
    assert html.count("data-search-exclude") == 1
    assert html.index("data-search-exclude") > html.index(">A<")
