"""Blocks of code in fewer elements: the same characters in the same colours."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from markdown import Markdown

from sitekit.code import ALIKE, merge_tokens
from sitekit.pages import ROOT
from tests.site.repository import DAYS

NAMES = ["color", "backgroundColor", "fontWeight", "fontStyle", "textDecorationLine", "display"]
LOOK = """([kinds, names]) => {
  const code = document.querySelector("article .highlight code");
  return kinds.map(kind => {
    const span = document.createElement("span");
    span.className = kind;
    code.append(span);
    const look = getComputedStyle(span);
    const said = names.map(name => look[name]);
    span.remove();
    return said.join(" ");
  });
}"""


def highlight(source: str, *more: str) -> str:
    """Return a block of Python as the site's Markdown writes it, with the given extensions besides."""
    extensions = ["pymdownx.superfences", "pymdownx.highlight", *more]
    return Markdown(extensions=extensions).convert(f"```python\n{source}\n```\n")


def inked(text: str) -> list[tuple[str, str]]:
    """Return every character that is seen with the kind of token it belongs to, "" outside of any."""
    found = []
    for kind, marked, bare in re.findall(r'<span class="(\w+)">([^<]*)</span>|((?<=>)[^<]+(?=<))', text):
        found += [(kind, one) for one in html.unescape(marked or bare) if not one.isspace()]
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "llmcore").glob("*.py")), ids=lambda path: path.name)
def test_the_same_characters_are_shown_in_the_same_colours(path: Any) -> None:
    source = path.read_text(encoding="utf-8").strip()
    before, after = highlight(source), highlight(source, "sitekit.code")
    assert re.sub("<[^>]*>", "", before) == re.sub("<[^>]*>", "", after)
    colour = {kind: number for number, kinds in enumerate(ALIKE) for kind in kinds.split()} | {"": 0}
    shown = [[(colour.get(kind, kind), one) for kind, one in inked(text)] for text in (before, after)]
    assert shown[0] == shown[1]
    assert after.count("<span") < 0.7 * before.count("<span")


def test_only_what_stands_in_a_block_is_merged() -> None:
    span = '<span class="p">(</span><span class="o">*</span> <span class="n">x</span>'
    assert (
        merge_tokens(f"<pre><code>{span}</code></pre>")
        == '<pre><code><span class="p">(*</span> x</code></pre>'
    )
    assert merge_tokens(f"<p><code>{span}</code> {span}</p>") == f"<p><code>{span}</code> {span}</p>"
    linked = '<span class="n"><a href="#x">x</a></span><span class="p">[</span><span class="p">]</span>'
    assert '<a href="#x">x</a></span><span class="p">[]</span>' in merge_tokens(
        f'<pre><code><span class="k">def</span> {linked}</code></pre>'
    )


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_what_is_merged_looks_alike(reader: Any, scheme: str) -> None:
    reader.goto(f"days/{DAYS[0]}/")
    reader.add_style_tag(content="* { transition: none !important }")
    reader.evaluate("scheme => document.body.setAttribute('data-md-color-scheme', scheme)", scheme)
    looks = [set(reader.evaluate(LOOK, [kinds.split(), NAMES])) for kinds in ALIKE]
    assert [len(look) for look in looks] == [1] * len(ALIKE)
    assert reader.evaluate(LOOK, [[""], NAMES]) == [*looks[0]], "plain code"
