r"""Formulas, rendered by KaTeX while the site is built: ``$…$`` in a line, ``$$…$$`` as a block of its own.

What counts as a formula is decided by ``pymdownx.arithmatex``; only the output differs. A reader needs no
JavaScript, and a formula that KaTeX does not accept fails the build with page and line, as does a ``$`` that
belongs to no formula (``\$`` is a dollar).

Every formula leaves here inside ``<script type="text/katex">``, which the template ``partials/content.html``
takes off again. In between, the parser of the search index jumps over it in one step instead of walking
hundreds of spans (benchmarks/site.py measures what that saves).
"""

from __future__ import annotations

import atexit
import json
import re
import unicodedata
import xml.etree.ElementTree as etree
from functools import cache
from queue import SimpleQueue
from threading import Lock, Thread

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor
from markdown.util import HTML_PLACEHOLDER_RE, AtomicString
from py_mini_racer import JSEvalException, MiniRacer
from pymdownx import util
from pymdownx.arithmatex import (
    RE_DOLLAR_BLOCK,
    RE_SMART_DOLLAR_INLINE,
    BlockArithmatexProcessor,
    InlineArithmatexPattern,
)

from sitekit.pages import ROOT, page_lines, refuse
from sitekit.values import page_text

KATEX = ROOT / "overrides" / "assets" / "vendor" / "katex" / "katex.min.js"
SUBSCRIPTS = str.maketrans("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
# A formula is a box, and browsers break lines beside it: a word joiner keeps brackets and full stops with it.
JOINER, OPENING, CLOSING = "\u2060", "（《「“‘([", "，。；：！？、）》」”’,.;:!?)]"
OPEN, CLOSE = '<script type="text/katex">', "</script >"
SETUP = """
const refuse = (context) => { throw new Error(context.command + " is not allowed"); };
const render = (tex, display) => {
  try {
    return JSON.stringify({html: katex.renderToString(tex, {
      displayMode: display, throwOnError: true, strict: "error", trust: refuse, output: "htmlAndMathml"})});
  } catch (error) {
    return JSON.stringify({error: error.rawMessage || error.message, position: error.position ?? null});
  }
};
"""


class FormulaError(ValueError):
    """A formula that KaTeX refuses; ``position`` is the offset in it, None when KaTeX does not say."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class Engine:
    """KaTeX in V8, started once per process (about 0.1 s).

    It lives and ends in a thread of its own: V8 may be freed only by the thread that started it or by
    its children, and who renders a page is not always the main thread (under Zensical it never is).
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[str | None] = SimpleQueue()
        self._answered: SimpleQueue[object] = SimpleQueue()
        self._lock = Lock()
        self._thread = Thread(target=self._work, name="katex", daemon=True)
        self._thread.start()
        atexit.register(self._stop)
        self.eval(KATEX.read_text(encoding="utf-8"))
        self.eval(SETUP)

    def _work(self) -> None:
        try:
            with MiniRacer() as engine:
                while (program := self._asked.get()) is not None:
                    try:
                        self._answered.put(engine.eval(program))
                    except JSEvalException as error:
                        self._answered.put(error)
        except Exception as error:
            self._answered.put(error)

    def _stop(self) -> None:
        self._asked.put(None)
        self._thread.join()

    def eval(self, program: str) -> str:
        """Return what a JavaScript expression evaluates to."""
        with self._lock:
            self._asked.put(program)
            answer = self._answered.get()
        if isinstance(answer, Exception):
            raise FormulaError(str(answer))
        return str(answer)


@cache
def engine() -> Engine:
    """Return V8 with KaTeX in it; a second one in the same process, in another thread, would crash it."""
    return Engine()


@cache
def render(tex: str, *, display: bool = False) -> str:
    """Return the HTML and MathML of one formula.

    Args:
        tex: the formula without its dollars.
        display: True for a formula that stands alone.

    Raises:
        FormulaError: KaTeX does not accept it.
    """
    answer = json.loads(engine().eval(f"render({json.dumps(tex)}, {json.dumps(display)})"))
    if "error" in answer:
        raise FormulaError(answer["error"], answer["position"])
    return answer["html"]


def as_text(tex: str) -> str | None:
    r"""Return a short formula as plain text (``\sqrt{d_k}`` is √dₖ), or None when TeX would be left in it."""
    text = re.sub(r"\\sqrt\s*(?:\{(\w|\w_\w)\}|(\w))", lambda match: "√" + (match[1] or match[2]), tex)
    text = re.sub(r"\\d?frac\{([^{}\\]+)\}\{([^{}\\]+)\}", r"\1/\2", text)
    text = re.sub(r"\\(?:text|mathrm|mathbf|operatorname)\{([^{}]*)\}", r"\1", text)
    for name, sign in {
        "top": "ᵀ",
        "cdot": "·",
        "times": "×",
        "log": "log ",
        "infty": "∞",
        "pi": "π",
        "neq": "≠",
    }.items():
        text = re.sub(rf"\\{name}(?![A-Za-z])", sign, text)
    text = re.sub(r"\\([a-z]+)(?![A-Za-z])", lambda match: _greek(match[1]) or match[0], text)
    text = re.sub(r"\^\{?([0-9])\}?", lambda match: "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(match[1])], text)
    text = re.sub(
        r"_\{?([0-9aehijklmnoprstuvx])\}?(?!\w)", lambda match: match[1].translate(SUBSCRIPTS), text
    )
    text = re.sub(r"[{}^]|\\[,;!: ]", "", text)
    return None if "\\" in text else " ".join(text.split())


def _greek(name: str) -> str | None:
    try:
        return unicodedata.lookup(f"GREEK SMALL LETTER {name.upper()}")
    except KeyError:
        return None


def _fail(md: Markdown, tex: str, message: str, position: int | None) -> None:
    """Raise for one formula, naming the line of the page where it stands."""
    source = page_text(md)
    start = source.find(f"${tex}$")
    start = start + 1 if start >= 0 else source.find(tex.strip())
    number = None
    if start >= 0:
        number = source.count("\n", 0, start + min(position or 0, len(tex.rstrip()))) + 1
    refuse(md, number, f"KaTeX: {message}, in {tex.strip()!r}")


class _Formula(str):
    """Stashed HTML of one formula, which still knows its source."""

    tex: str


def _stash(md: Markdown, tex: str, *, display: bool, before: str = "", after: str = "") -> str:
    """Render one formula and return the placeholder that stands for it until the page is written.

    ``before`` and ``after`` are the characters beside a formula in a line.
    """
    try:
        html = render(tex, display=display)
    except FormulaError as error:
        _fail(md, tex, str(error), error.position)
        html = ""
    if before and before in OPENING:
        html = JOINER + html
    if after and after in CLOSING:
        html += JOINER
    tag = "div" if display else "span"
    formula = _Formula(f'<{tag} class="formula">{OPEN}{html}{CLOSE}</{tag}>')
    formula.tex = tex
    return md.htmlStash.store(formula)


class InlineFormula(InlineArithmatexPattern):
    """``$…$`` in a line of text."""

    def __init__(self, md: Markdown) -> None:
        super().__init__(f"(?:{RE_SMART_DOLLAR_INLINE})", {"generic": True, "tex_inline_wrap": ["", ""]})
        self.md = md

    def handleMatch(self, m: re.Match[str], data: str):
        """Return the rendered formula, or the escaped backslashes that arithmatex found instead of one."""
        found, start, end = super().handleMatch(m, data)
        if isinstance(found, etree.Element):
            before, after = data[max(start - 1, 0) : start], data[end : end + 1]
            return _stash(self.md, found.text or "", display=False, before=before, after=after), start, end
        return found, start, end


class BlockFormula(BlockArithmatexProcessor):
    """``$$…$$`` as a paragraph of its own."""

    def __init__(self, md: Markdown) -> None:
        super().__init__(rf"(?s)^(?:{RE_DOLLAR_BLOCK})[ ]*$", {"generic": True}, md)
        self.md = md

    def generic_output(self, parent: etree.Element, math: str) -> None:
        """Put the rendered formula in place of the block."""
        paragraph = etree.SubElement(parent, "p")
        paragraph.text = AtomicString(_stash(self.md, math, display=True))


class FormulaChecks(Treeprocessor):
    """Labels headings that hold formulas, and refuses dollars that belong to none."""

    def run(self, root: etree.Element) -> None:
        """Walk the tree after inline patterns and attribute lists, before the table of contents is made."""
        for element in root.iter():
            if isinstance(element.tag, str) and re.fullmatch(r"h[1-6]", element.tag):
                self._label(element)
        self._check_dollars(root)

    def _label(self, heading: etree.Element) -> None:
        """Give the table of contents plain text; without it, it would list every span of KaTeX."""
        text = "".join(heading.itertext())
        stashed = [self.md.htmlStash.rawHtmlBlocks[int(m[1])] for m in HTML_PLACEHOLDER_RE.finditer(text)]
        formulas = [block.tex for block in stashed if isinstance(block, _Formula)]
        if not formulas or "data-toc-label" in heading.attrib:
            return
        plain = iter([as_text(tex) for tex in formulas])
        label = HTML_PLACEHOLDER_RE.sub(lambda match: next(plain, None) or "\\", text)
        if "\\" in label:
            tex = formulas[0]
            _fail(
                self.md,
                tex,
                'a heading with this formula needs { data-toc-label="…" }, its text without TeX',
                None,
            )
        heading.attrib["data-toc-label"] = label

    def _check_dollars(self, element: etree.Element) -> None:
        for text in (
            element.text if element.tag not in ("code", "pre") else None,
            *(child.tail for child in element),
        ):
            if text and "$" in text and not isinstance(text, AtomicString):
                line = next(
                    line for line in HTML_PLACEHOLDER_RE.sub("…", text).split("\n") if "$" in line
                ).strip()
                number = next((n for n, source in enumerate(page_lines(self.md), 1) if line in source), None)
                refuse(
                    self.md,
                    number,
                    f"a $ that belongs to no formula in {line!r}: no blank in $…$, no empty line in "
                    "$$…$$, an empty line around it; a dollar sign is written \\$",
                )
        if element.tag not in ("code", "pre"):
            for child in element:
                self._check_dollars(child)


class FormulaExtension(Extension):
    """The Markdown extension ``sitekit.formulas``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register where arithmatex would, and the checks between attr_list (8) and toc (5)."""
        util.escape_chars(md, ["$"])
        md.inlinePatterns.register(InlineFormula(md), "formula-inline", 189.9)
        md.parser.blockprocessors.register(BlockFormula(md), "formula-block", 79.9)
        md.treeprocessors.register(FormulaChecks(md), "formula-checks", 6)


def makeExtension(**kwargs: object) -> FormulaExtension:
    """Return the extension (called by Markdown)."""
    return FormulaExtension(**kwargs)
