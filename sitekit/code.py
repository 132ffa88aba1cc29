"""Code in fewer elements: what Pygments marks apart and the style sheet colours alike is marked once.

Half of the elements of a day were words and signs of its code, and a browser lays out each by itself. The
page shows the same characters in the same colours.
"""

from __future__ import annotations

import re

from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

# Kinds of tokens by colour: the first is that of plain code. Kinds that are not listed stay as they are.
ALIKE = (
    "n w kc",
    "o ow p c c1 ch cm cs sd na nv vc vg vi",
    "s s1 s2 sb sc si ss cpf l",
    "m mb mf mh mi mo il",
    "k kd kn kp kr kt nd ni nl nt",
    "bp nb no",
    "nc ne nf nn",
    "cp se sh sr sx",
)
COLOUR = {kind: number for number, kinds in enumerate(ALIKE) for kind in kinds.split()}
BLOCK = re.compile(r"(?<=<code>)[^<]*<span class=.*?(?=</code></pre>)", re.DOTALL)
RUN = re.compile(r'(?:[^<]|<span class="\w+">[^<]*</span>)+')
TOKEN = re.compile(r'<span class="(\w+)">([^<]*)</span>|([^<]+)')


def merge_tokens(html: str) -> str:
    """Return HTML whose blocks of code have one span for neighbours of one colour, none for plain words."""
    return BLOCK.sub(lambda block: RUN.sub(lambda run: _merge(run[0]), block[0]), html)


def _merge(run: str) -> str:
    merged: list[tuple[str, str]] = []  # kind and text
    for kind, text, bare in TOKEN.findall(run):
        if bare or COLOUR.get(kind) == 0:
            kind, text = "", bare or text
        if merged and (not text.strip() or _colour(kind) == _colour(merged[-1][0])):
            merged[-1] = (merged[-1][0], merged[-1][1] + text)  # a blank has the colour of what is before it
        else:
            merged.append((kind, text))
    return "".join(_mark(kind, text) for kind, text in merged)


def _colour(kind: str) -> int | str:
    return COLOUR.get(kind, kind)


def _mark(kind: str, text: str) -> str:
    inked = text.rstrip()
    return f'<span class="{kind}">{inked}</span>{text[len(inked) :]}' if kind and inked else text


class MergedTokens(Postprocessor):
    """Merges when all of the page has been written."""

    def run(self, text: str) -> str:
        """Merge the tokens of every block."""
        return merge_tokens(text)


class CodeExtension(Extension):
    """The Markdown extension ``sitekit.code``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after raw HTML has come back (30)."""
        md.postprocessors.register(MergedTokens(md), "merged-tokens", 3)


def makeExtension(**kwargs: object) -> CodeExtension:
    """Return the extension (called by Markdown)."""
    return CodeExtension(**kwargs)
