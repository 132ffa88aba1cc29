"""How long a day takes to read, added to the line below its title while the site is built.

The rule, for one pass over all that the page says, folded answers included, lists of mistakes not: a minute
for 350 Chinese characters, 200 English words, 40 lines of code or output, 3 formulas that stand alone, or 30
in a line; rounded up to five minutes. Redoing a derivation or writing the code again comes on top.
"""

from __future__ import annotations

import html
import math
import re

from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

from sitekit.formulas import CLOSE, OPEN
from sitekit.pages import SITES, page_path

LINE = re.compile(r'(<p class="tags"[^>]*>.*?)</p>', re.DOTALL)
FORMULA = re.compile(re.escape(OPEN) + r"(.*?)" + re.escape(CLOSE), re.DOTALL)
LOOKED_UP = re.compile(r'<details class="bug".*?</details>', re.DOTALL)  # lists of mistakes
CODE = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
UNSEEN = re.compile(r"<svg\b.*?</svg>|<!--.*?-->|<[^>]+>", re.DOTALL)
CHINESE = re.compile(r"[\u3400-\u9fff]")
WORD = re.compile(r"[A-Za-z0-9][\w'’-]*", re.ASCII)
WORDS = {"zh": "阅读 约 {} 分钟", "en": "Reading about {} minutes"}
A_MINUTE = {"Chinese": 350, "words": 200, "lines": 40, "displayed": 3, "inline": 30}


def minutes(text: str) -> int:
    """Return how many minutes a page takes, in fives.

    Args:
        text: the page as HTML, each formula as ``sitekit.formulas`` leaves it.
    """
    text = LOOKED_UP.sub(" ", text)
    formulas = FORMULA.findall(text)
    text = FORMULA.sub(" ", text)
    count = {"displayed": sum("katex-display" in formula for formula in formulas)}
    count["inline"] = len(formulas) - count["displayed"]
    count["lines"] = sum(
        bool(line.strip()) for code in CODE.findall(text) for line in UNSEEN.sub("", code).split("\n")
    )
    prose = html.unescape(UNSEEN.sub(" ", CODE.sub(" ", text)))
    count["Chinese"] = len(CHINESE.findall(prose))
    count["words"] = len(WORD.findall(prose))
    return 5 * math.ceil(sum(count[name] / pace for name, pace in A_MINUTE.items()) / 5)


class ReadingTime(Postprocessor):
    """Adds the time when all of the page has been written."""

    md: Markdown

    def run(self, text: str) -> str:
        """Add it to the line of tags, which days have."""
        path = page_path(self.md)
        language = path.parent.parent.name if path and path.parent.name == "days" else ""
        if language not in SITES:
            return text
        return LINE.sub(
            lambda line: f"{line[1]} · {WORDS[language].format(minutes(text))}</p>", text, count=1
        )


class ReadingExtension(Extension):
    """The Markdown extension ``sitekit.reading``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after raw HTML has come back (30)."""
        md.postprocessors.register(ReadingTime(md), "reading", 4)


def makeExtension(**kwargs: object) -> ReadingExtension:
    """Return the extension (called by Markdown)."""
    return ReadingExtension(**kwargs)
