"""Reading a long page: on a phone, in the dark, on paper; where one is in it, and how long it takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sitekit.built import FOLDERS
from sitekit.formulas import CLOSE, OPEN
from sitekit.pages import SITES
from sitekit.reading import minutes
from tests.site.repository import DAYS

GO = "place => { location.hash = place; }"


@pytest.mark.parametrize("width", [360, 1300])
@pytest.mark.parametrize("language", SITES)
def test_the_heading_of_the_section_stays_in_sight(reader: Any, language: str, width: int) -> None:
    reader.set_viewport_size({"width": width, "height": 740})
    reader.goto(f"{FOLDERS[language]}days/dpo/")
    here = reader.locator(".here")
    assert not here.is_visible()
    reader.evaluate(GO, "gradient")
    here.wait_for()
    heading = reader.locator("#derivation").evaluate("node => node.firstChild.textContent.trim()")
    assert here.locator("a").first.inner_text() == heading
    header = reader.locator(".md-header").bounding_box()
    box = here.bounding_box()
    assert abs(box["y"] - header["height"]) < 1
    assert box["width"] <= width
    target = reader.locator("#gradient").bounding_box()
    assert target["y"] >= box["y"] + box["height"] - 1, "a link leads below the line"
    reader.evaluate(GO, "questions")  # the next heading is there itself
    here.wait_for(state="hidden")
    reader.mouse.wheel(0, 400)
    reader.wait_for_function("() => document.querySelector('.here a').hash == '#questions'")
    here.wait_for()
    here.locator("a").first.click()
    here.wait_for(state="hidden")
    assert reader.evaluate("location.hash") == "#questions"


def test_the_contents_keep_their_place(reader: Any) -> None:
    """A box that opens makes the theme measure where the headings are; one that sticks would be elsewhere."""
    reader.set_viewport_size({"width": 1300, "height": 740})
    reader.goto("en/days/dpo/")
    reader.evaluate(GO, "questions")
    reader.wait_for_timeout(500)
    reader.evaluate("document.getElementById('q-beta').open = true")
    reader.evaluate("scrollBy(0, 40)")
    reader.wait_for_timeout(500)
    active = reader.locator(".md-nav--secondary .md-nav__link--active")
    assert set(active.evaluate_all("list => list.map(node => node.hash)")) == {"#questions"}
    assert reader.evaluate("location.hash") == "#questions"


def test_on_another_page_it_is_that_pages_heading(reader: Any) -> None:
    reader.goto("en/days/dpo/")
    reader.evaluate(GO, "gradient")
    reader.locator(".here").wait_for()
    reader.locator(".md-nav--primary a[href$='glossary/']").first.click()
    reader.wait_for_function("() => location.pathname.endsWith('/glossary/')")
    reader.wait_for_function("() => document.querySelectorAll('.here').length == 1")
    reader.evaluate(GO, "sizes")
    reader.evaluate("scrollBy(0, 200)")
    reader.wait_for_function("() => document.querySelector('.here a').textContent.trim() == 'Sizes'")


def test_the_rule_of_the_reading_time() -> None:
    def formula(count: int, kind: str) -> str:
        return f'<span>{OPEN}<span class="{kind}">x</span>{CLOSE}</span>' * count

    assert minutes("") == 0
    assert minutes("<p>字</p>" * 350 * 4 + "<!-- not seen -->") == 5
    assert minutes("<p>字</p>" * 350 * 5 + "<p>one</p>" * 10) == 10
    assert minutes("<p>one's <b>own</b></p>" * 100 * 20) == 20
    assert minutes("<pre><code>" + "a b c d\n\n" * 40 * 15 + "</code></pre>") == 15
    assert minutes(formula(30, "katex-display")) == 10
    assert minutes(formula(30 * 25, "katex")) == 25
    assert minutes("<svg><text>one</text></svg>" * 9000) == 0


@pytest.mark.parametrize(
    ("language", "words"), [("zh", "阅读 约 (.*) 分钟"), ("en", "Reading about (.*) minutes")]
)
def test_a_day_says_how_long_it_takes_to_read(built_site: Path, language: str, words: str) -> None:
    found = []
    for day in DAYS:
        text = (built_site / FOLDERS[language] / "days" / day / "index.html").read_text(encoding="utf-8")
        [line] = re.findall(r'<p class="tags"[^>]*>(.*?)</p>', text, re.DOTALL)
        match = re.search(f" · {words}$", line)
        assert match, line
        found.append(int(match[1]))
    assert all(60 <= time <= 120 and time % 5 == 0 for time in found), found
    plan = (built_site / FOLDERS[language] / "plan" / "index.html").read_text(encoding="utf-8")
    assert not re.search(words.replace(".*", "[0-9]+"), plan)


# What a reader of code sees: colours in words as numbers of 0 to 255, text and the ground below it.
COLOURS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const ground = (node) => {
    canvas.fillStyle = "#fff";
    canvas.fillRect(0, 0, 1, 1);
    const above = [];
    for (; node; node = node.parentElement) above.unshift(getComputedStyle(node).backgroundColor);
    for (canvas.fillStyle of above) canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const shades = {};
  for (const node of document.querySelectorAll("code, pre span[class], .doc span[class], .filename")) {
    const own = [...node.childNodes].some((child) => child.nodeType == 3 && child.textContent.trim());
    const key = node.className + getComputedStyle(node).color;
    if (!own || key in shades) continue;
    const below = ground(node);
    canvas.fillStyle = getComputedStyle(node).color;
    canvas.fillRect(0, 0, 1, 1);
    shades[key] = [node.className || "code", [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3), below];
  }
  return Object.values(shades);
}"""


def light(colour: list[int]) -> float:
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    parts = (part / 255 for part in colour)
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_token_of_code_can_be_read(chromium: Any, address: str, scheme: str) -> None:
    context = chromium.new_context(base_url=address, color_scheme=scheme)
    page, seen, weak = context.new_page(), set(), []
    for path in (*(f"en/days/{day}/" for day in DAYS), "en/api/attention/", "verified/"):
        page.goto(path, timeout=120_000)
        for name, text, below in page.evaluate(COLOURS):
            one, two = sorted((light(text), light(below)))
            seen.add(name)
            if (two + 0.05) / (one + 0.05) < 4.5:
                weak.append(f"{path} {name}: {text} on {below}: {(two + 0.05) / (one + 0.05):.2f}")
    context.close()
    assert {"k", "kn", "nf", "nc", "s2", "c1", "mi", "mf", "o", "p", "code"} <= seen
    assert not weak, "\n".join(weak)


# What reaches out of the page sideways, unless it stands in a box that scrolls by itself.
OUTSIDE = """() => {
  const width = document.documentElement.clientWidth;
  const boxed = (node) => {
    for (; node && node.tagName != "ARTICLE"; node = node.parentElement)
      if (/auto|scroll|hidden/.test(getComputedStyle(node).overflowX)) return true;
    return false;
  };
  return [...document.querySelectorAll("article *")]
    .filter((node) => node.getBoundingClientRect().right > width + 1 && !boxed(node))
    .map((node) => `${node.tagName}.${node.className} ${node.textContent.slice(0, 60)}`)
    .concat(document.documentElement.scrollWidth > width ? ["the page"] : []);
}"""


@pytest.mark.parametrize("language", SITES)
def test_no_page_is_wider_than_a_phone(chromium: Any, address: str, language: str) -> None:
    context = chromium.new_context(base_url=address, viewport={"width": 360, "height": 740})
    page, wide = context.new_page(), []
    names = (
        "",
        "plan/",
        "glossary/",
        "papers/",
        "questions/",
        "tags/",
        "quiz/",
        "verified/",
        "api/attention/",
    )
    for name in (*names, *(f"days/{day}/" for day in DAYS)):
        page.goto(FOLDERS[language] + name, timeout=120_000)
        page.evaluate("for (const node of document.querySelectorAll('details')) node.open = true")
        wide += [f"{name}: {what}" for what in page.evaluate(OUTSIDE)]
    context.close()
    assert not wide, "\n".join(wide)


PRINTED = """() => [...document.querySelectorAll(
  ".md-header, .md-sidebar, footer, .md-top, .md-code__button, .headerlink, .downloads, .here, "
  + ".report, .study-bar, .study-board, button, form, .md-search")]
  .filter((node) => node.checkVisibility() && node.getBoundingClientRect().height)
  .map((node) => node.tagName + "." + node.className)"""
CUT = """() => [...document.querySelectorAll("pre, pre > code, article table, div.formula, figure")]
  .filter((box) => box.getBoundingClientRect().right > document.body.clientWidth + 2
    || (box.scrollWidth > box.clientWidth + 3 && box.tagName != "FIGURE" && box.clientWidth))
  .map((box) => `${box.tagName} ${box.scrollWidth} > ${box.clientWidth}: ${box.textContent.slice(0, 60)}`)"""


@pytest.mark.parametrize(
    "path", ["days/dpo/", "en/days/attention-variants/", "en/days/self-attention/", "en/plan/"]
)
def test_a_printed_page_is_all_there_and_nothing_but_the_page(chromium: Any, address: str, path: str) -> None:
    context = chromium.new_context(
        base_url=address, color_scheme="dark", viewport={"width": 700, "height": 1000}
    )
    page = context.new_page()
    page.goto(path, timeout=120_000)
    page.evaluate("location.hash = 'shapes'")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(PRINTED) == []
    assert page.evaluate(CUT) == []
    for selector in ("body", "article", "article pre > code", "article th"):
        if page.locator(selector).count():
            colour = page.locator(selector).first.evaluate("node => getComputedStyle(node).backgroundColor")
            shades = [float(part) for part in re.findall(r"[\d.]+", colour)]
            assert min(shades[:3]) > 225 or shades[3:] == [0], f"{selector}: {colour}"
    text = page.locator("article > p:not([class])").first.evaluate("node => getComputedStyle(node).color")
    assert max(int(part) for part in re.findall(r"\d+", text)) < 90
    hidden = "list => list.filter(node => !node.lastElementChild.getBoundingClientRect().height).length"
    assert page.locator("article > details").evaluate_all(hidden) == 0
    context.close()


@pytest.mark.parametrize("language", SITES)
def test_the_name_of_a_row_stays_while_one_looks_along_it(reader: Any, language: str) -> None:
    reader.set_viewport_size({"width": 360, "height": 740})
    reader.goto(f"{FOLDERS[language]}days/attention-variants/")
    table = reader.locator("#shapes ~ * table").first
    box = table.locator("xpath=ancestor::*[contains(@class, 'md-typeset__scrollwrap')]")
    assert box.evaluate("node => { node.scrollLeft = 1e4; return node.scrollLeft; }") > 20, (
        "nothing to scroll"
    )
    first, last = (table.locator(f"tbody tr:first-child td:{which}-child") for which in ("first", "last"))
    assert first.bounding_box()["x"] >= 0
    assert last.bounding_box()["x"] + last.bounding_box()["width"] <= 360
    assert last.bounding_box()["x"] >= first.bounding_box()["x"] + first.bounding_box()["width"]


@pytest.mark.parametrize(
    ("path", "heading"), [("nothing/here/", "没有这个页面"), ("en/no/", "Page not found")]
)
def test_what_is_missing_is_said_in_the_language_that_was_asked_for(
    chromium: Any, address: str, built_site: Path, path: str, heading: str
) -> None:
    body = (built_site / "404.html").read_text(encoding="utf-8")  # a host has but one
    context = chromium.new_context(base_url=address)
    page = context.new_page()
    page.route("**/" + path, lambda route: route.fulfill(status=404, body=body, content_type="text/html"))
    page.goto(path, timeout=120_000)
    page.locator(f"h1:text-is('{heading}')").wait_for()
    page.wait_for_function("path => location.pathname + location.hash == path", arg=f"/{path}")
    links = page.locator("article a").evaluate_all("list => list.map(node => node.href)")
    assert {address, f"{address}en/", f"{address}en/../"} & set(links)
    for link in links:
        assert page.request.get(link).ok, link
    context.close()
