"""The figures: as drawn now, embedded where they belong, readable in both schemes and by a screen reader."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import markdown
import pytest

from figures import FOLDER, ROOT, draw, slugs, stale
from sitekit.svg import INKS, LANGUAGES, TEXT, Axes, Figure, decimals, number, steady

PHONE = 328  # CSS pixels left for a figure on a phone of 360
EMBED = re.compile(rf'^--8<-- "({FOLDER.as_posix()}/[^"]+)"$')
HAN = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def drawn() -> dict[Path, str]:
    return {path: text for slug in slugs() for path, text in draw(slug)}


def misplaced(docs: Path, figures: set[str]) -> list[str]:
    """What is wrong with the embedding of figures under `docs`, one line each; empty if nothing."""
    embeds = [
        (page.relative_to(docs).as_posix(), number, match[1])
        for page in sorted(docs.rglob("*.md"))
        for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1)
        if (match := EMBED.match(line))
    ]
    problems = [
        f"docs/{page}:{number}: embeds {figure}, which nothing draws"
        for page, number, figure in embeds
        if figure not in figures
    ]
    for figure in sorted(figures):
        slug, file = figure.split("/")[-2:]
        home = f"{file.split('.')[1]}/days/{slug}.md"
        found = [page for page, _, other in embeds if other == figure]
        if found != [home]:
            problems.append(f"{figure}:1: embedded by {found or 'no page'}, belongs once in {home}")
    return problems


def faults(text: str, lang: str) -> Iterator[str]:
    """What a page could not bear in the text of one figure."""
    if re.search(r"\n\s*\n", text.rstrip("\n")) or not text.startswith("<figure "):
        yield "is not one block of raw HTML without an empty line"
    figure = ET.fromstring(text)
    svg, caption = figure.find("svg"), figure.find("figcaption")
    if [child.tag for child in figure] != ["svg", "figcaption"] or svg is None or caption is None:
        yield "is not <figure> of <svg> and <figcaption>"
        return
    names = {child.tag: child for child in svg if child.tag in ("title", "desc")}
    spoken = ["".join(element.itertext()).strip() for element in (*names.values(), caption)]
    if len(spoken) != 3 or not all(spoken):
        yield "lacks a title, a description or a caption"
    if svg.get("role") != "img" or (svg.get("aria-labelledby") or "").split() != [
        names[tag].get("id") for tag in ("title", "desc") if tag in names
    ]:
        yield "does not name its title and description to a screen reader"
    if any(bool(HAN.search(part)) != (lang == "zh") for part in spoken):
        yield f"does not speak {lang}"
    if lang == "en" and HAN.search(text):
        yield "has Chinese in the English drawing"
    colours = {element.get(name) for element in svg.iter() for name in ("fill", "stroke", "color")}
    if strange := colours - {None, "none", *INKS.values()}:
        yield f"has colours that do not follow the page: {strange}"
    if extra := re.findall(r"<style|<script|https?:|href|url\(|\bon\w+=|\$", text):
        yield f"holds what no figure needs: {extra}"
    scale = min(1.0, PHONE / float((svg.get("viewBox") or "0 0 1 1").split()[2]))
    for element in svg.iter("text"):
        size = float(element.get("font-size", TEXT)) * scale
        if size < 11:
            yield f"has text of {size:.1f} px on a phone: {element.text}"


def test_files_are_as_drawn_now(drawn: dict[Path, str]) -> None:
    problems = stale(drawn)
    assert not problems, "\n".join([*problems, "run `python -m figures`"])


def test_stale_missing_and_orphaned_files_are_reported(drawn: dict[Path, str], tmp_path: Path) -> None:
    for path, text in drawn.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert stale(drawn, tmp_path) == []
    changed, missing, *_ = drawn
    (tmp_path / changed).write_text(
        drawn[changed].replace("\n", "!\n", 2).replace("!", "", 1), encoding="utf-8"
    )
    (tmp_path / missing).unlink()
    shutil.copy(tmp_path / changed, tmp_path / FOLDER / "left-over.svg")
    assert sorted(stale(drawn, tmp_path)) == sorted(
        [
            f"{changed.as_posix()}:2: differs from what is drawn now",
            f"{missing.as_posix()}:1: missing",
            f"{FOLDER.as_posix()}/left-over.svg:1: no function draws it",
        ]
    )


def test_every_figure_stands_once_on_its_page(drawn: dict[Path, str]) -> None:
    problems = misplaced(ROOT / "docs", {path.as_posix() for path in drawn})
    assert not problems, "\n".join(problems)


def test_misplaced_figures_are_reported(tmp_path: Path) -> None:
    mine, other = "docs/figures/rope/turn.zh.svg", "docs/figures/rope/turn.en.svg"
    zh, en = tmp_path / "zh" / "days" / "rope.md", tmp_path / "en" / "days" / "rope.md"
    for page, figure in ((zh, mine), (en, other)):
        page.parent.mkdir(parents=True)
        page.write_text(f'text\n\n--8<-- "{figure}"\n\ntext\n', encoding="utf-8")
    assert misplaced(tmp_path, {mine, other}) == []
    en.write_text(f'--8<-- "{mine}"\n', encoding="utf-8")
    assert misplaced(tmp_path, {mine, other}) == [
        f"{other}:1: embedded by no page, belongs once in en/days/rope.md",
        f"{mine}:1: embedded by ['en/days/rope.md', 'zh/days/rope.md'], belongs once in zh/days/rope.md",
    ]
    assert misplaced(tmp_path, set())[0] == f"docs/en/days/rope.md:1: embeds {mine}, which nothing draws"


def test_figures_hold_what_a_page_can_bear(drawn: dict[Path, str]) -> None:
    problems = [
        f"{path.as_posix()}:1: {fault}"
        for path, text in drawn.items()
        for fault in faults(text, path.name.split(".")[1])
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("\n", "\n\n", "is not one block of raw HTML without an empty line"),
        ("<title ", "<g ", "lacks a title, a description or a caption"),
        (' role="img"', "", "does not name its title and description to a screen reader"),
        ("shapes", "形状", "does not speak en"),
        ("query", "查询", "has Chinese in the English drawing"),
        ('stroke="currentColor"', 'stroke="#123456"', "has colours that do not follow the page: {'#123456'}"),
        ("<title ", '<image href="x"/><title ', "holds what no figure needs: ['href']"),
        ("<text ", '<text font-size="16" ', "has text of 10.5 px on a phone: query"),
    ],
)
def test_a_broken_figure_is_reported(drawn: dict[Path, str], old: str, new: str, fault: str) -> None:
    text = drawn[FOLDER / "self-attention" / "shapes.en.svg"]
    assert list(faults(text, "en")) == []
    broken = text.replace(old, new)
    broken = broken.replace("</title>", "</g>") if new == "<g " else broken
    assert fault in list(faults(broken, "en"))


def test_ids_are_unique_on_a_page(drawn: dict[Path, str]) -> None:
    for slug in slugs():
        for lang in LANGUAGES:
            page = "".join(text for path, text in drawn.items() if path.match(f"{slug}/*.{lang}.svg"))
            ids = re.findall(r'\bid="([^"]+)"', page)
            assert ids
            assert len(ids) == len(set(ids))


def test_markdown_leaves_a_figure_as_it_is(drawn: dict[Path, str]) -> None:
    for path, text in drawn.items():
        page = markdown.markdown(f"before\n\n{text}\nafter\n", extensions=["md_in_html", "attr_list"])
        assert page == f"<p>before</p>\n{text}\n<p>after</p>", path


def test_accents_are_seen_on_white_and_on_slate() -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for ink in set(INKS) - {"ink"}:
        (colour,) = re.findall(r"#\w{6}", INKS[ink])
        for ground in ("#ffffff", "#1e2129"):
            low, high = sorted((luminance(colour), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= 3, (ink, ground)


def blank(lang: str = "en") -> Figure:
    return Figure(lang, height=100, title=("题", "title"), desc=("述", "desc"), caption=("注 `a<b`", "`a<b`"))


def test_a_figure_speaks_the_language_asked_for() -> None:
    figure = blank("zh")
    figure.text(50, 50, ("甲", "A"))
    assert ">甲</text>" in figure.html("x")
    assert "<figcaption>注 <code>a&lt;b</code></figcaption>" in figure.html("x")
    with pytest.raises(ValueError, match="lang='fr' must be one of"):
        blank("fr")


def test_text_that_leaves_touches_or_bursts_is_refused() -> None:
    figure = blank()
    figure.text(250, 50, "middle")
    with pytest.raises(ValueError, match=r"'close' at .* touches 'middle'"):
        figure.text(260, 60, "close")
    with pytest.raises(ValueError, match="leaves the drawing of 500 × 100"):
        figure.text(490, 20, "too far")
    with pytest.raises(ValueError, match="'much too wide' is wider than its box of 40"):
        figure.box(50, 80, 40, 20, "much too wide")
    with pytest.raises(ValueError, match="shape='star' must be"):
        figure.mark(1, 1, "star")


def test_numbers_are_written_short_and_refused_on_the_edge() -> None:
    assert [number(value) for value in (3.0, 2.96, 2.04, -0.01)] == ["3", "3", "2", "0"]
    assert steady(2.7, 0.5) == 2.5
    assert [decimals(-0.126, 2), decimals(-0.001, 2), decimals(41.3, 0)] == ["−0.13", "0.00", "41"]
    for edge in (2.75, 2.7500001, 2.7499999):
        with pytest.raises(ValueError, match=r"lies on the edge between two multiples of step=0\.5"):
            steady(edge, 0.5)


def test_axes_put_values_where_they_belong() -> None:
    axes = Axes(blank(), 10, 20, 80, 60, x=(1, 16), y=(0, 3), log="x")
    assert axes.place(1, 0) == (10, 80)
    assert axes.place(4, 1) == (50, 60)
    assert axes.place(16, 3) == (90, 20)
