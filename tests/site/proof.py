"""The proof that no block was missed: a parser of its own reads every built page.

A Python block on a page is a numbered fence, or a definition that mkdocstrings took from the source it
documents, or text that stands somewhere in the page or in that source (raw HTML, examples). Anything else is
a problem, so a fault of the recorder cannot make a block vanish.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from tests.site.blocks import Block, Fence, Line, Origin, Output, Page, Problem

if TYPE_CHECKING:
    from tests.site.ledger import Recorder

NUMBER = "data-published"  # the attribute that carries a fence's number into the HTML
CONSOLE = {"pycon", "pycon3", "python-console"}
PYTHON = {"python", "python3", "py", "py3", "ipython", "ipython3"} | CONSOLE
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
WITHIN = "pytest-codeblocks:expected-output-within "


@dataclass
class Shown:
    """A `<pre>` as a reader of the HTML finds it."""

    language: str
    made: str  # by mkdocstrings: "doc-signature", "mkdocstrings-source" or ""
    number: str | None = None
    text: str = ""


class HtmlReader(HTMLParser):
    """Reads a built page: its blocks of code and its words, without comments, scripts and line numbers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, list[str]]] = []
        self.inside = Counter[str]()  # how many of each tag are open
        self.numbers = 0  # how many of these hold line numbers
        self.blocks: list[Shown] = []
        self.words: list[str] = []
        self.prose: list[str] = []  # words outside of code
        self.quoted: list[str] = []  # what stands three quotes deep: Markdown reads `>>>` so
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        attributes = dict(attrs)
        self.open.append((tag, (attributes.get("class") or "").split()))
        self._count(*self.open[-1], 1)
        if tag not in ("pre", "code") or self.numbers:
            return
        names = [name for _, names in reversed(self.open) for name in names]
        found = (re.fullmatch(r"(?:language|lang|highlight|brush)-(\w.*)", name) for name in names)
        language = next((match[1].lower() for match in found if match), "")
        if tag == "pre":
            made = {"doc-signature", "mkdocstrings-source"}.intersection(names)
            self.blocks.append(Shown(language, "".join(made)))
        elif self.inside["pre"]:
            self.blocks[-1].language, self.blocks[-1].number = language, attributes.get(NUMBER)

    def handle_endtag(self, tag: str) -> None:
        ends = self.inside[tag] > 0
        while ends:
            closed, names = self.open.pop()
            self._count(closed, names, -1)
            ends = closed != tag

    def handle_data(self, data: str) -> None:
        if self.inside["pre"] and not self.numbers:
            self.blocks[-1].text += data
        if not self.inside["script"] and not self.inside["style"]:
            self.words.append(data)
            if not self.inside["pre"] and not self.inside["code"]:
                self.prose.append(data)
                if self.inside["blockquote"] == 3 and data.strip():
                    self.quoted.append(f">>> {data.splitlines()[0].strip()}")

    def _count(self, tag: str, names: list[str], step: int) -> None:
        self.inside[tag] += step
        self.numbers += step * ("linenos" in names or "linenodiv" in names)


def account(recorder: Recorder, reader: HtmlReader) -> None:
    """Give the recorder's page the blocks that a reader finds on it, and its problems."""
    page, fences = recorder.page, list[Fence]()
    page.text = " ".join("".join(reader.words).split())
    sources = recorder.documented()
    used: set[Origin] = set()
    for shown in reader.blocks:
        if shown.number is not None:
            fences.append(fence := recorder.fences[int(shown.number)])
            if shown.language in PYTHON:  # a custom fence shows Python under a name of its own
                fence.language = shown.language
            same = plain(fence.lines) == plain(shown.text.split("\n"))
            if not same and (fence.language in PYTHON or fence.markers):  # else it may show anything
                page.problems.append(Problem(fence.opening, "the built page shows another text"))
        elif shown.language in PYTHON:
            _unnumbered(recorder, shown, sources, used)
        elif re.match(r"\s*(?:`{3,}|~{3,})", shown.text):
            _misread(recorder, shown.text.strip().split("\n")[0], "this fence is shown as text")
    texts = [line for have in sources.values() for line in have]
    quoted = [text for text in reader.quoted if any(text in line for line in [*texts, *page.prose])]
    for example in [*quoted, *re.findall(r">>> ?\S.*", "".join(reader.prose))]:
        _misread(recorder, example.strip(), "this console session is shown as prose", sources)
    _thread(recorder, fences)


def _misread(
    recorder: Recorder, line: str, message: str, sources: dict[str, list[str]] | None = None
) -> None:
    """Note something that Markdown did not take for code, at the first line that has it."""
    page = recorder.page
    texts = {page.source: (recorder.root / page.source).read_text("utf-8").split("\n"), **(sources or {})}
    places = (
        Origin(source, n) for source, have in texts.items() for n, text in enumerate(have, 1) if line in text
    )
    page.problems.append(Problem(next(places, Origin(page.source, 1)), f"{message}: {line}"))


def plain(lines: Iterable[str]) -> str:
    """Return a text as it is compared: blanks at line ends and blank lines around it do not count."""
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _thread(recorder: Recorder, fences: list[Fence]) -> None:
    """Turn the fences of a page into blocks: each gets its marks, the block that it continues, its output."""
    page, previous = recorder.page, None
    for fence in fences:
        markers = dict(fence.markers)
        marks = [Line(text, line.origin) for text, line in markers.items() if text.startswith("pytest.mark.")]
        continues = markers.pop("pytest-codeblocks:cont", None)
        expected, within = markers.pop("pytest-codeblocks:expected-output", None), 0.0
        for text, line in markers.items():
            if text.startswith(WITHIN) and re.fullmatch(r"[\d.]+(e-\d+)?", text.removeprefix(WITHIN)):
                expected, within = line, float(text.removeprefix(WITHIN))
            elif text == "pytest-codeblocks:skip":
                recorder.problem(line, 'a skip without a reason: <!--pytest.mark.skip(reason="…")--> has one')
            elif not text.startswith("pytest.mark."):
                recorder.problem(line, f"unknown marker: {text}")
        if fence.language in PYTHON:
            if continues and previous is None:
                recorder.problem(continues, "there is no block above to continue")
            if expected:
                recorder.problem(expected, "output marked as Python: nothing would run it")
            before = previous if continues else None
            previous = Block(fence.lines, fence.opening, fence.language in CONSOLE, marks, before)
            page.blocks.append(previous)
            if previous.may_skip() and not previous.console:
                _parse(recorder, previous)
            continue
        for line in [*marks, *([continues] if continues else [])]:
            recorder.problem(line, "this marker belongs directly above a Python block")
        if expected and (previous is None or previous.output is not None):
            recorder.problem(expected, "there is no block above that still lacks its output")
        elif expected and previous is not None:
            shown = plain(fence.lines).split("\n")
            previous.output = Output(shown, fence.opening, fence.closing, fence.embeds, within)


def _parse(recorder: Recorder, block: Block) -> None:
    """Note that a block which does not run does not even parse."""
    try:
        compile("\n".join(block.lines), "<block>", "exec", dont_inherit=True)
    except SyntaxError as error:
        at = block.lines[min(error.lineno or 1, len(block.lines)) - 1] if block.lines else ""
        recorder.problem(at, f"SyntaxError: {error.msg}")


def _unnumbered(recorder: Recorder, shown: Shown, sources: dict[str, list[str]], used: set[Origin]) -> None:
    """Account for a Python block that is no fence of the page."""
    page, wanted = recorder.page, plain(shown.text.split("\n")).split("\n")
    places = dict(sources)
    if shown.made and places:
        # mkdocstrings shows the source: a definition line for line, a signature in a spelling of its own
        lines = {line.strip() for have in places.values() for line in have}
        name = re.split(r"[\s(:=]", wanted[0].removeprefix("class "))[0].split(".")[-1]
        defined = any(re.match(rf"(?:(?:async )?def |class )?{re.escape(name)}\b", line) for line in lines)
        if defined if shown.made == "doc-signature" else all(line.strip() in lines for line in wanted):
            page.definitions += 1
            return
    elif page.source:
        whole = re.sub(r"</?\w[^<>]*>", "", (recorder.root / page.source).read_text(encoding="utf-8"))
        places[page.source] = [html.unescape(line) for line in whole.split("\n")]
    for source, have in places.items():
        # a line of a docstring is the whole line, one of raw HTML may have tags beside it
        same = str.__contains__ if source == page.source else str.__eq__
        for start in range(len(have) - len(wanted) + 1):
            at = Origin(source, start + 1)
            if at not in used and all(same(have[start + i].strip(), w.strip()) for i, w in enumerate(wanted)):
                used.add(at)
                lines = [Line(line, Origin(source, start + i)) for i, line in enumerate(wanted, 1)]
                page.blocks.append(Block(lines, at, shown.language in CONSOLE))
                return
    page.lost += 1
    message = f"shown as Python, but neither in the page nor in the source it documents: {wanted[0]}"
    recorder.problem("", message)


def locate(messages: list[str], pages: list[Page], root: Path) -> None:
    """Give each warning of the build to the page and the line that it names."""
    for message in messages:
        quoted = re.findall(r"'([^']+)'", message)
        page = next((page for name in quoted for page in pages if page.source.endswith(f"/{name}")), pages[0])
        words = [name for name in quoted if not page.source.endswith(f"/{name}")]
        lines = [*enumerate((root / page.source).read_text(encoding="utf-8").split("\n"), 1)]
        found = (number for word in words for number, line in lines if word in line)
        page.problems.append(Problem(Origin(page.source, next(found, 1)), message))
