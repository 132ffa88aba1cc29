"""The ledger: the Python blocks that a reader of the built site sees, and where each line of them came from.

The site is built once, with its own configuration, while a recorder watches. No rule of Markdown is written
again: lines are strings that remember their origin, and the site's own preprocessors, given a subclass of
their class, hand them on. Each fence carries its number into the HTML of this one build; `proof` then reads
the built pages and accounts for every block on them. What Markdown would pass over silently (a fence that
became prose, a section without its end) is a `Problem` with its file and line.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.commands.build import build as build_site
from mkdocs.config import load_config
from mkdocs.plugins import BasePlugin
from pymdownx.snippets import SnippetPreprocessor
from pymdownx.superfences import (
    FENCED_BLOCK_RE,
    SuperFencesBlockPreprocessor,
    SuperFencesRawBlockPreprocessor,
)

from sitekit import pages as watched
from sitekit.definitions import DefinitionPreprocessor, cut
from tests.site.blocks import Fence, Line, Origin, Page, Problem, Site
from tests.site.proof import NUMBER, HtmlReader, account, locate

MARKER = re.compile(r"[> \t]*<!--[-\s]*((?:pytest-codeblocks:|pytest\.mark\.).*?)[-\s]*-->\s*")
ALMOST = re.compile(r"[> \t]*<!--[-\s]*pytest\W?(?:mark|codeblocks)")
SCISSORS = re.compile(r"[ \t]*-+8<-+")
PROSE_FENCE = re.compile(r"[>\s]*(?:(?:[-*+]|\d+[.)])\s+)*(?:`{3,}|~{3,})[^`]*$")


class Recorder(BasePlugin):
    """Watches builds of one site as the last of its plugins."""

    def __init__(self, config: Path, root: Path, create_outputs: bool) -> None:
        super().__init__()
        self.config_file, self.root, self.create_outputs = config, root, create_outputs
        self.page, self.text, self.offset = Page(""), "", 0
        self.pages: dict[Path, Page] = {}  # by built file
        self.fences: list[Fence] = []
        self.embedded: dict[Origin, str] = {}  # line of a directive -> the file that it embeds
        self.sources: dict[str, dict[str, list[str]]] = {}  # page -> the modules that it documents
        self.raw: dict[str, list[str]] = {}  # placeholder of a fence whose tabs are kept -> its lines
        self.files: Any = None
        self.warned: list[str] = []

    def relative(self, path: str | os.PathLike[str]) -> str:
        """Return a path as messages write it."""
        return Path(os.path.relpath(path, self.root)).as_posix()

    def documented(self) -> dict[str, list[str]]:
        """Return the sources of the modules that the page documents, by file, where mkdocstrings looks."""
        page = self.page
        if page.source not in self.sources:
            plugin, files = self.settings.plugins.get("mkdocstrings"), list[Path]()
            handler = plugin.config.handlers.get("python", {}) if plugin else {}
            folders = [self.config_file.parent / path for path in handler.get("paths", ["."])]
            folders += map(Path, sys.path)
            for name in (name for line in page.prose for name in re.findall(r"^::: ([\w.]+)", line)):
                parts = name.split(".")
                lengths = range(len(parts), 0, -1)
                modules = [folder.joinpath(*parts[:n]) for n in lengths for folder in folders]
                found = (file for path in modules for file in (path.with_suffix(".py"), path / "__init__.py"))
                if file := next((file for file in found if file.is_file()), None):
                    files += file.parent.rglob("*.py") if file.name == "__init__.py" else [file]
            texts = {self.relative(file): file.read_text("utf-8").split("\n") for file in sorted(files)}
            self.sources[page.source] = texts
        return self.sources[page.source]

    def problem(self, line: str, message: str) -> None:
        """Note what an author must mend; a line without an origin stands for the page."""
        origin = getattr(line, "origin", Origin(self.page.source, 1))
        self.page.problems.append(Problem(origin, message))

    def on_config(self, config: Any) -> Any:
        """Come last among the extensions."""
        config.markdown_extensions.append(_Watch(self))
        return config

    def on_env(self, env: Any, /, *, files: Any, **_: Any) -> Any:
        """Keep the files, so that a page can be rendered again."""
        self.files = files
        return env

    def on_page_markdown(self, markdown: str, /, *, page: Any, **_: Any) -> str:
        """Remember which page is rendered next; its front matter is gone, its line numbers are not."""
        self.page = self.pages[Path(page.file.abs_dest_path)] = Page(self.relative(page.file.abs_src_path))
        raw = (self.root / self.page.source).read_text(encoding="utf-8-sig")  # as MkDocs reads it
        self.sources.pop(self.page.source, None)
        self.text, self.offset = markdown, raw.removesuffix(markdown).count("\n")
        if not raw.endswith(markdown):
            self.problem("", "a plugin rewrote the text of this page, so its lines cannot be traced")
        return markdown

    def build(self) -> Site:
        """Build the whole site into a temporary folder and return its ledger."""
        site = Site(self.relative(self.config_file))
        with tempfile.TemporaryDirectory() as target, self._watching():
            self.settings = load_config(str(self.config_file), site_dir=target)
            self.settings.plugins["published"] = self
            try:
                self.settings.plugins.on_startup(command="build", dirty=False)
                build_site(self.settings)
                for file in sorted(Path(target).rglob("*.html")):
                    # what the theme adds (404.html, search) is read too, and has no source
                    self.page = self.pages.setdefault(file, Page(""))
                    account(self, HtmlReader(file.read_text(encoding="utf-8")))
                    for problem in () if self.page.source else self.page.problems:
                        raise ValueError(f"{file.name}: {problem.message}")
                site.pages = [page for page in self.pages.values() if page.source]
                locate(self.warned, site.pages, self.root)
            except (Exception, SystemExit) as error:
                site.failure = "\n".join([*self.warned, f"{type(error).__name__}: {error}"])
                site.at = self._api_line(site.failure)
            finally:
                self.settings.plugins.on_shutdown()
        return site

    def _api_line(self, message: str) -> Origin | None:
        """Return the `:::` line of the name that a message says cannot be found."""
        names = re.findall(r"[\w.]+", message)
        for path in sorted(Path(self.settings.docs_dir).rglob("*.md")):
            for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
                if line.startswith("::: ") and line.removeprefix("::: ").strip() in names:
                    return Origin(self.relative(path), number)
        return None

    def render(self, source: str) -> Page:
        """Render one page again after a change of what it is made from."""
        file = next(file for file in self.files if self.relative(file.abs_src_path or "") == source)
        with self._watching():
            file.page.read_source(self.settings)
            file.page.markdown = self.on_page_markdown(file.page.markdown, page=file.page)
            file.page.render(self.settings, self.files)
            account(self, HtmlReader(file.page.content))
        return self.page

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """Note what would stop `mkdocs build --strict`; the tools' own deprecations do not."""
        log, handler = logging.getLogger("mkdocs"), logging.Handler(logging.WARNING)
        handler.emit = lambda record: self.warned.append(record.getMessage())
        watched.watch = lambda number, message: self.page.problems.append(
            Problem(Origin(self.page.source, number or 1), message)
        )
        log.addHandler(handler)
        try:
            with contextlib.chdir(self.config_file.parent), warnings.catch_warnings(action="ignore"):
                yield
        finally:
            log.removeHandler(handler)
            watched.watch = None


class _Watch(Extension):
    """Gives every preprocessor down to the fences a class that hands the origins on."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def extendMarkdown(self, md: Markdown) -> None:
        traced: dict[type[Preprocessor], type[Any]] = {
            SnippetPreprocessor: _Snippets,
            DefinitionPreprocessor: _Definitions,
            SuperFencesRawBlockPreprocessor: _RawFences,
            SuperFencesBlockPreprocessor: _Fences,
            Preprocessor: _Carried,
        }
        for each in md.preprocessors:
            kind = next(new for old, new in traced.items() if isinstance(each, old))
            traced_class = type(kind.__name__, (kind, type(each)), {"recorder": self.recorder})
            object.__setattr__(each, "__class__", traced_class)
            if kind is _Fences:
                break
        md.preprocessors.register(_Opening(self.recorder), "published", 10**6)
        md.preprocessors.register(_Prose(self.recorder), "published-prose", 23)


class _Opening(Preprocessor):
    """Gives the lines of a page their origin, and those of a docstring, which comes by without its file."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def run(self, lines: list[str]) -> list[str]:
        page, wanted = self.recorder.page, [line.strip() for line in lines]
        if "\n".join(lines) == self.recorder.text:
            first = self.recorder.offset + 1
            return [Line(text, Origin(page.source, number)) for number, text in enumerate(lines, first)]
        for source, have in self.recorder.documented().items() if page.prose and any(wanted) else ():
            # its first line may stand behind the quotes, its last before them
            texts = [line.strip() for line in have]
            for start in (n for n, text in enumerate(texts) if text.endswith(wanted[0])):
                found = texts[start : start + len(wanted)]
                if found[1:-1] == wanted[1:-1] and found[-1].startswith(wanted[-1]):
                    return [Line(text, Origin(source, start + n)) for n, text in enumerate(lines, 1)]
        return lines


class _Prose(_Opening):
    """Keeps what of a page is no fence."""

    def run(self, lines: list[str]) -> list[str]:
        page = self.recorder.page
        if page.prose:
            return lines  # of a docstring
        page.prose = [line for line in lines if isinstance(line, Line)]
        for path in {line.origin.path for line in page.prose if line.origin.path.endswith(".py")}:
            embeds = (
                at for at, file in self.recorder.embedded.items() if (at.path, file) == (page.source, path)
            )
            page.problems.append(Problem(next(embeds, Origin(page.source, 1)), f"{path} is shown as prose"))
        return lines


class _Carried(Preprocessor):
    """A preprocessor that knows nothing of origins: a line that keeps its words keeps its own."""

    def run(self, lines: list[str]) -> list[str]:
        before = list(lines)
        after = super().run(lines)
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            if isinstance(old, Line) and not isinstance(new, Line) and old.split() == new.split():
                after[index] = Line(new, old.origin)
        return after


class _Definitions(DefinitionPreprocessor):
    """Definitions by name."""

    recorder: Recorder

    def _file(self, name: str) -> Path:
        if self.recorder.create_outputs and name.endswith(".out") and not (self.root / name).exists():
            (self.root / name).touch()
        return super()._file(name)

    def read_definition(self, path: Path, name: str) -> list[str]:
        source = self.recorder.relative(path)
        return [Line(text, Origin(source, number)) for text, number in cut(path, name)]


class _Marker:
    """A marker of a section; put together again without its escape, it is still the line that it was."""

    def __init__(self, found: re.Match[str], line: Line) -> None:
        self.found, self.line = found, line

    def group(self, name: str) -> Any:
        return Line(self.found[name], self.line.origin) if name == "pre" else self.found[name]

    __getitem__ = group


class _Snippets(SnippetPreprocessor):
    """Snippets. What pymdownx leaves out, or lets stand, without a word is a problem."""

    recorder: Recorder
    line = ""

    def run(self, lines: list[str]) -> list[str]:
        self.check_paths = False  # missing files are noted below, and the rest of the page is read
        return super().run(lines)

    def parse_snippets(self, lines: Any, *arguments: Any, **options: Any) -> list[str]:
        return super().parse_snippets(self._watch(lines), *arguments, **options)

    def _watch(self, lines: Iterable[str]) -> Iterator[str]:
        for self.line in lines:
            known = self.RE_ALL_SNIPPETS.match(self.line) or self.match_section(self.line)
            if SCISSORS.match(self.line) and not known:
                self.recorder.problem(self.line, f"looks like an embed, but is none: {self.line.strip()}")
            yield self.line

    def match_section(self, line: str) -> Any:
        found = super().match_section(line)
        return _Marker(found, line) if found and isinstance(line, Line) else found

    def get_snippet_path(self, path: str) -> str | None:
        found = super().get_snippet_path(path)
        if not found:
            self.recorder.problem(self.line, f"no such file: {path}")
        elif found in self.seen:
            self.recorder.problem(self.line, f"{path} embeds itself")
        elif isinstance(self.line, Line):
            self.recorder.embedded[self.line.origin] = self.recorder.relative(found)
        return found

    def read_lines(self, path: str) -> list[str]:
        source, texts = self.recorder.relative(path), super().read_lines(path)
        lines = [Line(text, Origin(source, number)) for number, text in enumerate(texts, 1)]
        if lines and lines[0].startswith("\ufeff"):
            self.recorder.problem(lines[0], "the file starts with a byte-order mark")
        return [*lines]

    def extract_section(self, section: str, lines: list[str]) -> list[str]:
        markers = [found for line in lines if (found := self.match_section(line)) and not found["escape"]]
        kinds = [marker["type"].lower() for marker in markers if marker["name"] == section]
        if kinds != ["start", "end"]:
            self.recorder.problem(self.line, f"section {section!r} has {kinds}, not one start and one end")
        return super().extract_section(section, lines)

    def extract_lines(self, start: list[int | None], end: list[int | None], lines: list[str]) -> list[str]:
        total = len(lines) - (not lines[-1])
        for first, last in zip(start, end, strict=True):
            low, high = first or 0, last or total
            low, high = low + total * (low < 0), high + (total + 1) * (high < 0)
            if not 0 <= low < high <= total:
                self.recorder.problem(self.line, f"a range outside of the file's {total} lines")
        return super().extract_lines(start, end, lines)

    def dedent(self, lines: list[str]) -> list[str]:
        texts = super().dedent(lines)
        origins = [getattr(line, "origin", None) for line in lines] or [None]
        return [Line(text, at) if at else text for text, at in zip(texts, origins, strict=True)]


class _Fences(SuperFencesBlockPreprocessor):
    """Fences. Each that is rendered is numbered; one that is left over as prose is a problem."""

    recorder: Recorder
    highlights = ""

    def search_nested(self, lines: list[str]) -> list[str]:
        self.lines, self.claimed = lines, set[int]()
        after = super().search_nested(lines)
        hidden = False
        for line in after:
            inside, hidden = hidden, line.rfind("<!--") > line.rfind("-->") or (hidden and "-->" not in line)
            if PROSE_FENCE.match(line) and not inside:
                message = "this fence is no block of code (no end, ill indented, or an unknown option)"
                self.recorder.problem(line, f"{message}: {line.strip()}")
        for index, line in enumerate(lines):
            if index not in self.claimed and ALMOST.match(line) and not MARKER.fullmatch(line):
                self.recorder.problem(line, f"looks like a marker, but is none: {line.strip()}")
            if index not in self.claimed and MARKER.fullmatch(line):
                self.recorder.problem(line, f"a marker with no block directly below it: {line.strip()}")
        return after

    def restore_raw_text(self, lines: list[str]) -> list[str]:
        restored: list[str] = []
        for line in lines:
            texts, found = super().restore_raw_text([line]), FENCED_BLOCK_RE.match(line)
            raw = self.recorder.raw.get(found[2], []) if found else []
            known = len(raw) == len(texts) and all(isinstance(each, Line) for each in raw)
            restored += map(Line, texts, [cast(Line, each).origin for each in raw]) if known else texts
        return restored

    def parse_hl_lines(self, hl_lines: str) -> list[int]:
        self.highlights = hl_lines or ""
        return super().parse_hl_lines(hl_lines)

    def _store(self, source: str, code: str, start: int, end: int) -> None:
        above = start
        while above and (not self.lines[above - 1].strip("> \t") or MARKER.fullmatch(self.lines[above - 1])):
            above -= 1
        self.claimed.update(range(above, end))
        opening, *inside, closing = cast(list[Line], self.lines[start:end])
        if all(isinstance(line, Line) for line in (opening, *inside, closing)):
            texts = self.rebuild_block(self.code).split("\n") if self.code else []
            lines = [Line(text, line.origin) for text, line in zip(texts, inside, strict=True)]
            markers = {
                m[1]: cast(Line, line) for line in self.lines[above:start] if (m := MARKER.fullmatch(line))
            }
            first, last = opening.origin, closing.origin
            alone = last == Origin(first.path, first.line + 2) and Origin(first.path, first.line + 1)
            embeds = self.recorder.embedded.get(alone, "") if alone else ""
            self.recorder.fences.append(Fence((self.lang or "").lower(), lines, first, last, markers, embeds))
            code = code.replace("<code", f'<code {NUMBER}="{len(self.recorder.fences) - 1}"', 1)
        total = len("\n".join(self.code).rstrip().split("\n"))
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", self.highlights):
            if not 1 <= int(first) <= int(last or first) <= total:
                self.recorder.problem(opening, "highlights a line beyond the end of the block, or none")
        self.highlights = ""
        super()._store(source, code, start, end)


class _RawFences(SuperFencesRawBlockPreprocessor):
    """Fences of a site that keeps their tabs: they are set aside, and put back before fences are read."""

    recorder: Recorder

    def search_nested(self, lines: list[str]) -> list[str]:
        self.lines = lines
        return super().search_nested(lines)

    def _store(self, source: str, code: str, start: int, end: int) -> None:
        super()._store(source, code, start, end)
        placeholder = self.stack[-1][0].removeprefix(self.ws)
        self.recorder.raw[placeholder[1:-1]] = self.lines[start:end]


def docs_dir(config: Path) -> Path:
    """Return the folder of the pages that a configuration publishes."""
    with warnings.catch_warnings(action="ignore"):
        return Path(load_config(str(config)).docs_dir).resolve()


def build(config: Path, root: Path) -> Site:
    """Build one language of the site and return its ledger; origins are written from the folder `root`."""
    return Recorder(config, root, create_outputs=False).build()
