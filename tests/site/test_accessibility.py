"""Every kind of page in a real browser: axe finds nothing, no other host is asked, nothing sticks out."""

from __future__ import annotations

from typing import Any

import pytest

from sitekit.built import FOLDERS
from sitekit.pages import SITES
from tests.site.repository import DAYS, KINDS

PAGES = [FOLDERS[language] + page for language in SITES for page in KINDS]
# A day takes long: one stands for its kind in both languages, each of the others is read in one.
PAGES += [f"{FOLDERS[language]}days/{DAYS[0]}/" for language in SITES]
PAGES += [f"{FOLDERS[list(SITES)[number % 2]]}days/{day}/" for number, day in enumerate(DAYS[1:])]
WIDTHS = (360, 1280)
SCHEMES = {"light": "default", "dark": "slate"}
# Formulas are all drawn alike, and so is code, whose every colour test_reading.py looks at: a few are enough,
# where axe takes a minute for the 20,000 elements of a day.
FEW = """() => {
  for (const box of document.querySelectorAll("details")) box.open = true;
  for (const kind of [".formula", "pre"])
    for (const one of [...document.querySelectorAll(`article ${kind}`)].slice(6)) one.remove();
}"""
PROBLEMS = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
    `${id}: ${html.slice(0, 200)}\\n    ${failureSummary.replaceAll("\\n", "\\n    ")}`));
}"""
TOO_WIDE = """() => {
  const most = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= most) return [];
  return [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > most)
    .slice(0, 3).map((one) => one.outerHTML.slice(0, 200));
}"""
# As the switch in the header does.
SCHEME = "scheme => document.body.setAttribute('data-md-color-scheme', scheme)"
AT_ONCE = "*, ::before, ::after { transition: none !important; animation: none !important }"


def axe() -> str:
    """Return the source of axe."""
    reason = "axe is needed: it is in the group `test`"
    return pytest.importorskip("axe_playwright_python.base", reason=reason).AXE_SCRIPT


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible_and_keeps_to_itself(reader: Any, address: str, path: str) -> None:
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(request.url))
    reader.goto(path, wait_until="networkidle")
    reader.add_style_tag(content=AT_ONCE)
    for figure in reader.locator("figure[data-play]").all():
        figure.scroll_into_view_if_needed()
        figure.locator("+ section.play").wait_for()
    reader.evaluate(FEW)
    reader.evaluate(axe())
    problems = []
    for scheme, name in SCHEMES.items():
        reader.emulate_media(color_scheme=scheme)
        reader.evaluate(SCHEME, name)
        for width in WIDTHS:
            reader.set_viewport_size({"width": width, "height": 800})
            place = f"{path or 'front page'}, {scheme}, {width} px: "
            problems += [f"{place}{problem}" for problem in reader.evaluate(PROBLEMS)]
            problems += [f"{place}sticks out: {one}" for one in reader.evaluate(TOO_WIDE)]
    problems += [f"asks another host: {url}" for url in asked if not url.startswith((address, "data:"))]
    assert not problems, "\n".join(problems)
    assert reader.context.cookies() == []
