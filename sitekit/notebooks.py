"""Notebooks: each day as an .ipynb that runs from a plain Jupyter in which llmcore is installed.

    python -m sitekit.notebooks     (after `mkdocs build`, into site/downloads/ and site/en/downloads/)

A notebook is its page: prose and code cells in the order of the page, embeds expanded, numbers filled in, the
outputs that the page shows under the cells that print them. Every Python block is a cell. They share one
namespace, as the cells of a notebook do; a test runs them in order and compares what they print, so that a
block that would disturb a later one is found.

What Markdown in Jupyter does not know becomes HTML (notes, questions), an image (figures), or a link to the
published page (links to other pages).
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

import jupytext
import nbformat
from markdown import Markdown

from practice.values import fill
from sitekit.built import FOLDERS, SITE, address, nav_pages, settings
from sitekit.pages import ROOT, SITES

FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<info>.*)")
NOTE = re.compile(r'(?P<indent> *)(?P<kind>!!!|\?\?\?\+?) (?P<type>[\w-]+)(?: [\w-]+)*(?: "(?P<title>.*)")?')
COMMENT = re.compile(r"\s*<!--(?P<text>.*?)-->\s*")
HEADING = re.compile(r"(#{1,6} .*?)\s*\{[^{}]*#[\w-]+[^{}]*\}\s*")
LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)\s]+)(?=\))")
TITLE = re.compile(r'title="([^"]*)"')
OUTPUT = "pytest-codeblocks:expected-output"
INTRODUCTION = {
    "zh": "本笔记本由 [{title}]({url}) 一页生成，文字、代码与输出都是那一页的。它只需要 `llmcore`："
    "运行 `python -m pip install {source}`{where}，然后启动 Jupyter。",
    "en": "This notebook is made of the page [{title}]({url}): its words, its code, its outputs. It needs "
    "`llmcore` alone: run `python -m pip install {source}`{where}, then start Jupyter.",
}
SPLIT = "<!-- a new cell -->"
WHERE = {"zh": "（在项目的目录里）", "en": " in a checkout of the project"}
SETUP = "# Once:  %pip install {source}\nimport llmcore"


class NotebookError(ValueError):
    """A page that cannot become a notebook; the message starts with the page and says why."""


class _Output(NamedTuple):
    """What a page shows under a code cell, and whether the cell ends in an error."""

    text: str
    fails: bool


def notebook(language: str, page: str, config: Any = None) -> Any:
    """Return the notebook of one day.

    Args:
        language: "zh" or "en".
        page: its path below docs/<language>/, ``days/dpo.md``.
        config: MkDocs' configuration of the language, read where it is not given.

    Raises:
        NotebookError: an output of the page stands under no block, or a fence does not end.
        ValueFormError: a number of the page cannot be filled in.
    """
    config = config or settings(language)
    lines = _expanded(ROOT / "docs" / language / page, config)
    writer = _Writer(page, urljoin(config.site_url, address(page)))
    text = "\n".join(_cells(writer.write(lines)))
    made: Any = jupytext.reads(text, fmt={"extension": ".md", "split_at_heading": True})
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    if len(code) != len(writer.outputs):
        raise NotebookError(f"docs/{language}/{page}: {len(writer.outputs)} blocks, {len(code)} cells")
    for cell, output in zip(code, writer.outputs, strict=True):
        if output is not None and output.text:
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=output.text)]
        cell.metadata = nbformat.from_dict({"tags": ["raises-exception"]} if output and output.fails else {})
    title = next(cell for cell in made.cells if cell.source.startswith("# "))
    repository = config.extra.get("repository")
    source = f"git+{repository}" if repository else "."
    words = INTRODUCTION[language].format(
        title=title.source.split("\n")[0].removeprefix("# "),
        url=writer.url,
        source=source,
        where="" if repository else WHERE[language],
    )
    cells = [nbformat.v4.new_markdown_cell(words), nbformat.v4.new_code_cell(SETUP.format(source=source))]
    cells += [cell for cell in made.cells if cell.source.strip()]
    for number, cell in enumerate(cells):
        cell.source = cell.source.strip("\n")
        cell.id = f"cell-{number}"  # the same whenever it is built
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def _expanded(path: Path, config: Any) -> list[str]:
    """Return the lines of a page without its front matter, with what it embeds."""
    text = path.read_text(encoding="utf-8")
    if text.startswith("---\n"):
        text = text.split("\n---\n", 1)[1]
    options = {
        "sitekit.definitions": {"base_path": str(ROOT)},
        "pymdownx.snippets": config.mdx_configs["pymdownx.snippets"] | {"base_path": [str(ROOT)]},
    }
    md = Markdown(extensions=list(options), extension_configs=options)
    lines = text.split("\n")
    for name in ("definition", "snippet"):
        lines = md.preprocessors[name].run(lines)
    return lines


def _cells(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with one blank line where there were several, which would end a cell; two for ``SPLIT``."""
    code, before = False, ""
    for line in lines:
        code = (code or line.startswith("```")) and not (code and line == "```")
        if line == SPLIT:
            yield from ("", "")
        elif code or line.strip() or before.strip():
            yield line
        before = line if line != SPLIT else ""


class _Writer:
    """Writes the Markdown of a page as Jupyter reads it; ``outputs`` are those of its code cells."""

    def __init__(self, page: str, url: str) -> None:
        self.page, self.url = page, url
        self.slug = Path(page).stem
        self.outputs: list[_Output | None] = []
        self.expected = self.fails = self.skipped = False
        self.depth = 0  # of the note that is being written

    def write(self, lines: list[str]) -> Iterator[str]:
        """Yield the lines of a page, or of what a note of it holds."""
        index = 0
        while index < len(lines):
            line = lines[index]
            if fence := FENCE.fullmatch(line):
                end = self._end(lines, index, fence)
                yield from self._fence(
                    fence, [text.removeprefix(fence["indent"]) for text in lines[index + 1 : end]]
                )
                index = end + 1
            elif note := NOTE.fullmatch(line):
                end = index + 1
                inner = " " * (len(note["indent"]) + 4)
                while end < len(lines) and (lines[end].startswith(inner) or not lines[end].strip()):
                    end += 1
                self.depth += 1
                yield from self._note(note, [text.removeprefix(inner) for text in lines[index + 1 : end]])
                self.depth -= 1
                if not self.depth:
                    yield SPLIT
                index = end
            elif line.startswith("<figure"):
                end = next(n for n in range(index, len(lines)) if lines[n].strip() == "</figure>")
                yield from _figure("\n".join(lines[index : end + 1]))
                index = end + 1
            elif comment := COMMENT.fullmatch(line):
                self._comment(comment["text"].strip())
                index += 1
            else:
                yield self._prose(line)
                index += 1

    def _end(self, lines: list[str], start: int, fence: re.Match[str]) -> int:
        """Return the index of the line that ends a fence."""
        for index in range(start + 1, len(lines)):
            if lines[index].strip() == fence["ticks"]:
                return index
        raise NotebookError(f"{self.page}: the fence {fence[0].strip()!r} does not end")

    def _comment(self, text: str) -> None:
        """Remember what a marker says of the next fence; comments are no part of a notebook."""
        self.expected |= text == OUTPUT
        self.fails |= text.startswith("pytest.mark.xfail")
        self.skipped |= text.startswith("pytest.mark.skip")

    def _fence(self, fence: re.Match[str], lines: list[str]) -> Iterator[str]:
        """Yield a code cell, or what is only shown; an output is put aside."""
        info = fence["info"].strip()
        expected, fails, skipped = self.expected, self.fails, self.skipped
        self.expected = self.fails = self.skipped = False
        if expected:
            if not self.outputs:
                raise NotebookError(f"{self.page}: an output stands under no block")
            last = self.outputs[-1]
            text = "\n".join(lines).strip("\n")
            self.outputs[-1] = _Output(text and text + "\n", bool(last and last.fails))
            return
        if title := TITLE.search(info):
            yield from (f"`{title[1]}`", "")
        if not re.match(r"(python|py)\b", info) or skipped:
            yield from ("", "~~~" + info.split(" ")[0].replace("python", "py"), *lines, "~~~", "")
            return
        self.outputs.append(_Output("", fails))
        yield from ("", "```python", *"\n".join(lines).strip("\n").split("\n"), "```", "")

    def _note(self, note: re.Match[str], lines: list[str]) -> Iterator[str]:
        """Yield a note: folded as on the page, unless a cell stands in it, which nothing can fold."""
        title = self._prose(note["title"]) if note["title"] is not None else note["type"].capitalize()
        if any((fence := FENCE.fullmatch(line)) and fence["info"].startswith("py") for line in lines):
            yield from (f"**{title}**", "", *self.write(lines))
        elif note["kind"] == "!!!":
            yield from (
                '<div class="alert alert-block alert-info">',
                "",
                f"**{title}**",
                "",
                *self.write(lines),
            )
            yield from ("", "</div>", "")
        else:
            yield from (f"<details><summary>{_as_html(title)}</summary>", "", *self.write(lines))
            yield from ("", "</details>", "")

    def _prose(self, line: str) -> str:
        """Return a line of text: its numbers filled in, its links to the published pages, its anchor gone."""
        line = HEADING.sub(r"\1", fill(line, self.slug, ROOT))
        return LINK.sub(lambda link: self._target(link[1]), line)

    def _target(self, link: str) -> str:
        """Return the published address of a link to another page, or to a place on this one."""
        path, hash_, anchor = link.partition("#")
        if path:
            path = re.sub(r"(index)?\.md$", lambda end: "" if end[1] else "/", path)
            path = "../" + path  # the page lies in a folder of its own
        return urljoin(self.url, path) + hash_ + anchor


def _as_html(title: str) -> str:
    """Return a title for an element of HTML, in which Markdown is not read."""
    text = html.escape(title, quote=False)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text))


def _figure(text: str) -> Iterator[str]:
    """Yield a figure as an image that needs no file beside the notebook, with its words below."""
    svg = text[text.index("<svg") : text.index("</svg>") + 6]
    style = 'xmlns="http://www.w3.org/2000/svg" style="color:#1c2026;background:#fff"'
    svg = re.sub(r'style="[^"]*"', style, svg, count=1)
    name = re.search(r"<title[^>]*>(.*?)</title>", svg, re.DOTALL)
    caption = re.search(r"<figcaption>(.*?)</figcaption>", text, re.DOTALL)
    data = base64.b64encode(svg.encode()).decode()
    alt = re.sub(r"[\[\]\n]", " ", name[1]) if name else ""
    yield from ("", f"![{alt}](data:image/svg+xml;base64,{data})", "")
    if caption:
        yield from (f"<small>{caption[1]}</small>", "")


def notebook_path(language: str, slug: str, site: Path = SITE) -> Path:
    """Return where the notebook of a day lies in the built site."""
    return site / FOLDERS[language] / "downloads" / f"{slug}.{language}.ipynb"


def main() -> None:
    """Write the notebooks of both languages into the built site."""
    for language in SITES:
        config = settings(language)
        for page in nav_pages(config.nav):
            if page.startswith("days/"):
                path = notebook_path(language, Path(page).stem)
                path.parent.mkdir(parents=True, exist_ok=True)
                nbformat.write(notebook(language, page, config), path)
                print(path.relative_to(SITE.parent).as_posix())


if __name__ == "__main__":
    main()
