"""The proof that no block was missed: a parser of its own reads every built page.

A Python block on a page is a numbered fence, or text of the source of the modules that the page documents, or
text that stands somewhere in the page or in a docstring (raw HTML, examples). Anything else is a problem.
"""

from __future__ import annotations

import ast
import copy
import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.site.ledger import NUMBER, Block, Fence, Line, Origin, Output, Page, Problem, Recorder

CONSOLE = {"pycon", "pycon3", "python-console"}
PYTHON = {"python", "python3", "py", "py3", "ipython", "ipython3"} | CONSOLE
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass
class Shown:
    """A `<pre>` as a reader of the HTML finds it."""

    language: str
    number: str | None = None
    text: str = ""


class HtmlReader(HTMLParser):
    """Reads a built page: its blocks of code and its words, without comments, scripts and line numbers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, list[str]]] = []
        self.blocks: list[Shown] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        attributes = dict(attrs)
        self.open.append((tag, (attributes.get("class") or "").split()))
        if tag not in ("pre", "code") or self._numbers():
            return
        classes = (name for _, names in reversed(self.open) for name in names)
        language = next(
            (name for name in classes if re.match(r"(language|lang|highlight|brush)-\w", name)), "-"
        )
        if tag == "pre":
            self.blocks.append(Shown(language.split("-", 1)[1].lower()))
        elif self._inside("pre"):
            self.blocks[-1] = Shown(
                language.split("-", 1)[1].lower(), attributes.get(NUMBER), self.blocks[-1].text
            )

    def handle_endtag(self, tag: str) -> None:
        if self._inside(tag):
            while self.open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._inside("pre") and not self._numbers():
            self.blocks[-1].text += data
        if not self._inside("script") and not self._inside("style"):
            self.words.append(data)

    def _inside(self, tag: str) -> bool:
        return any(name == tag for name, _ in self.open)

    def _numbers(self) -> bool:
        return any("linenos" in names or "linenodiv" in names for _, names in self.open)


def prove(recorder: Recorder, target: Path) -> list[Page]:
    """Read every built page and return the pages with their blocks and problems."""
    for file in sorted(target.rglob("*.html")):
        # what the theme adds (404.html, search) is read too, and has no source
        page = recorder.page = recorder.pages.setdefault(file, Page(""))
        reader = HtmlReader(file.read_text(encoding="utf-8"))
        page.text = " ".join("".join(reader.words).split())
        api = ApiSource(recorder.root, page.documents)
        fences: list[Fence] = []
        for shown in reader.blocks:
            if shown.number is None and shown.language in PYTHON:
                _unnumbered(recorder, shown, api)
            elif shown.number is not None:
                fences.append(recorder.fences[int(shown.number)])
                if plain(fences[-1].lines) != plain(shown.text.split("\n")):
                    page.problems.append(Problem(fences[-1].opening, "the built page shows another text"))
        _thread(recorder, fences)
        for problem in page.problems if not page.source else ():
            raise ValueError(f"{file.name}: {problem.message}")
    pages = [page for page in recorder.pages.values() if page.source]
    for message in recorder.warnings:
        quoted = re.findall(r"'([^']+)'", message)
        page = next((page for name in quoted for page in pages if page.source.endswith(f"/{name}")), pages[0])
        lines = [*enumerate((recorder.root / page.source).read_text(encoding="utf-8").split("\n"), 1)]
        words = [name for name in quoted if not page.source.endswith(f"/{name}")]
        found = (number for word in words for number, line in lines if word in line)
        page.problems.append(Problem(Origin(page.source, next(found, 1)), message))
    return pages


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
        expected = markers.pop("pytest-codeblocks:expected-output", None)
        for text, line in markers.items():
            if text == "pytest-codeblocks:skip":
                recorder.problem(line, 'a skip without a reason: <!--pytest.mark.skip(reason="…")--> has one')
            elif not text.startswith("pytest.mark."):
                recorder.problem(line, f"unknown marker: {text}")
        if fence.language in PYTHON:
            before = previous if continues else None
            block = Block(fence.lines, fence.opening, fence.language in CONSOLE, marks, before)
            if continues and previous is None:
                recorder.problem(continues, "there is no block above to continue")
            if expected:
                recorder.problem(expected, "output marked as Python: nothing would run it")
            page.blocks.append(block)
            previous = block
            continue
        for line in [*marks, *([continues] if continues else [])]:
            recorder.problem(line, "this marker belongs directly above a Python block")
        if expected and (previous is None or previous.output is not None):
            recorder.problem(expected, "there is no block above that still lacks its output")
        elif expected and previous is not None:
            inside = Origin(fence.opening.path, fence.opening.line + 1)
            file = recorder.embedded.get(inside) if fence.closing.line == inside.line + 1 else None
            previous.output = Output(plain(fence.lines).split("\n"), fence.opening, fence.closing, file)


def _unnumbered(recorder: Recorder, shown: Shown, api: ApiSource) -> None:
    """Account for a Python block that is no fence of the page."""
    page, text = recorder.page, plain(shown.text.split("\n"))
    if api.proves(text):
        page.api_blocks += 1
        return
    wanted = text.split("\n")
    places = [(source, whole.splitlines(), api.used[source]) for source, whole in api.texts.items()]
    if page.source:
        whole = (recorder.root / page.source).read_text(encoding="utf-8")
        places.append((page.source, [html.unescape(line) for line in whole.splitlines()], page.used))
    for source, have, used in places:
        # a line of a docstring is the whole line, one of raw HTML may have tags beside it
        same = str.__contains__ if source == page.source else str.__eq__
        for start in range(len(have) - len(wanted) + 1):
            if start not in used and all(
                same(have[start + i].strip(), w.strip()) for i, w in enumerate(wanted)
            ):
                used.add(start)
                lines = [Line(line, Origin(source, start + i)) for i, line in enumerate(wanted, 1)]
                page.blocks.append(Block(lines, lines[0].origin, shown.language in CONSOLE))
                return
    first = text.split("\n")[0]
    recorder.problem("", f"shown as Python, but neither in the page nor in the source it documents: {first}")


class ApiSource:
    """The source of the modules that a page documents, to hold what mkdocstrings shows against it."""

    def __init__(self, root: Path, names: list[str]) -> None:
        files: list[Path] = []
        for name in names:
            parts = name.split(".")
            modules = [root.joinpath(*parts[:length]) for length in range(len(parts), 0, -1)]
            found = (file for path in modules for file in (path.with_suffix(".py"), path / "__init__.py"))
            file = next((file for file in found if file.is_file()), root / "none")
            files += sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
        self.texts = {
            f.relative_to(root).as_posix(): f.read_text(encoding="utf-8") for f in files if f.is_file()
        }
        self.used: dict[str, set[int]] = {source: set() for source in self.texts}
        self.known: set[str] = set()
        for text in self.texts.values():
            for node in ast.walk(ast.parse(text)):
                self.known.update(_source(node, text.split("\n")))
                self.known.update(_shapes(node))

    def proves(self, text: str) -> bool:
        """Tell whether a text is a definition of the source to the letter, or the signature of one."""
        return text in self.known or _shape(text) in self.known


def _source(node: ast.AST, lines: list[str]) -> Iterator[str]:
    """Yield a definition as mkdocstrings shows it: with its decorators, moved to the left."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        column = node.col_offset
        shown = lines[first - 1 : node.end_lineno]
        yield plain(line[column:] if not line[:column].strip() else line for line in shown)
    if isinstance(node, ast.ClassDef):
        yield f"class {node.name}"


def _shapes(node: ast.AST) -> Iterator[str]:
    """Yield the signatures of a definition, in one spelling."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield _signature(node.name, node.args, node.returns)
        if node.returns:
            yield f"{node.name}: {_short(node.returns)}"  # a property
    elif isinstance(node, ast.ClassDef):
        fields = [child for child in node.body if isinstance(child, ast.AnnAssign)]
        names = [ast.arg(ast.unparse(child.target), child.annotation) for child in fields]
        defaults = [child.value for child in fields if child.value]
        yield _signature(node.name, ast.arguments([], names, None, [], [], None, defaults), None)
        for child in node.body:
            if isinstance(child, ast.FunctionDef) and child.name == "__init__":
                yield _signature(node.name, child.args, None)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        annotation = f": {_short(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
        yield f"{_short(target)}{annotation}" + (f" = {_short(node.value)}" if node.value else "")


def _shape(text: str) -> str | None:
    """Return a shown signature in the same spelling, or None where it is none."""
    bare = re.sub(r"^(?:\w+\.)+(?=\w)", "", text)
    for candidate in (f"def {bare}: ...", bare):
        try:
            (node,) = ast.parse(candidate).body
        except (SyntaxError, ValueError):
            continue
        return next(_shapes(node), None)
    return None


def _signature(name: str, arguments: ast.arguments, returns: ast.expr | None) -> str:
    text = re.sub(r"^(self|cls)(, |$)", "", _short(arguments))
    return f"{name}({text})" + (f" -> {_short(returns)}" if returns and _short(returns) != "None" else "")


def _short(node: ast.AST) -> str:
    """Return an expression with dotted names cut to their last part, as mkdocstrings shows them."""

    class Cut(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> Any:
            return ast.Name(node.attr, ast.Load())

    return ast.unparse(Cut().visit(copy.deepcopy(node)))
