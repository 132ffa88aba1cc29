"""Embed one definition of a Python file by its name.

A line inside a fence

    --8<-- "llmcore/attention.py:scaled_dot_product_attention"

becomes that function (or class, constant, ``Class.method``) with the imports it needs above it, so that what
a reader sees runs when pasted. Whole files are left to ``pymdownx.snippets``; what that would publish wrongly
without a word (a range beyond the end, a section without its end, quotes that are none, a file that embeds
again, a byte-order mark) is refused here, by page and line.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator
from pathlib import Path

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from sitekit.pages import ROOT, line_number, page_lines, refuse

Line = tuple[str, int]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign

WIDTH = 100
SCISSORS = re.compile(r"^(?P<space>[ \t]*)-+8<-+(?P<rest>.*?)\r?$")
TARGET = re.compile(r"""^[ \t]+(?P<quote>["'])(?P<path>[^"':\s]+)(?::(?P<name>[^"']*))?(?P=quote)$""")
NAME = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$")


class DefinitionError(ValueError):
    """A definition that cannot be shown on its own; the message names file and definition."""


def cut(path: Path, name: str) -> list[Line]:
    """Cut one definition out of a Python file, with the imports it uses above it.

    Args:
        path: a Python file. Names of the same file that the definition uses are imported from it, which must
            then be a module of a package.
        name: a function, class or constant at the top level, or ``Class.method``.

    Returns:
        The lines to show, each with the 1-based number of the line of ``path`` that it stands for.

    Raises:
        DefinitionError: the file does not parse.
        DefinitionError: it has no such definition, or more than one.
        DefinitionError: the definition uses names of the same file, which is no module.
    """
    source = path.read_text(encoding="utf-8").removeprefix("\ufeff")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise DefinitionError(f"{path.name}:{error.lineno}: {error.msg}") from error
    lines = source.split("\n")
    node = _find(tree, name, path)
    first, last = _extent(node, lines)
    head = list(_imports(tree, node, name, path, source))
    body = [(line, number) for number, line in enumerate(lines[first - 1 : last], first)]
    column = node.col_offset
    body = [(line[column:] if not line[:column].strip() else line, number) for line, number in body]
    gap = [("", first)] * 2 if head else []
    return head + gap + body


def _find(tree: ast.Module, name: str, path: Path) -> Definition:
    """Return the one node that defines ``name``."""
    scope: list[ast.stmt] = tree.body
    node: ast.stmt | None = None
    for part in name.split("."):
        found = [child for child in scope if part in _bound(child)]
        if not found:
            known = ", ".join(sorted({known for child in scope for known in _bound(child)})) or "nothing"
            raise DefinitionError(f"{path.name} has no definition {name!r} (it has: {known})")
        if len(found) > 1:
            where = ", ".join(str(child.lineno) for child in found)
            raise DefinitionError(f"{path.name} defines {name!r} more than once (lines {where})")
        node = found[0]
        scope = node.body if isinstance(node, ast.ClassDef) else []
    assert isinstance(node, Definition)
    return node


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines (imports apart)."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return {child.id for target in targets for child in ast.walk(target) if isinstance(child, ast.Name)}


def _extent(node: Definition, lines: list[str]) -> tuple[int, int]:
    """Return first and last line (1-based), decorators and the comments directly above included."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    assert node.end_lineno is not None
    return first, node.end_lineno


def _imports(tree: ast.Module, node: Definition, name: str, path: Path, source: str) -> Iterator[Line]:
    """Yield the imports that the definition needs to run alone, blank lines between them as in the file."""
    used = _used(node, source, path)
    module = _module(path)
    lines = source.split("\n")
    previous: ast.Import | ast.ImportFrom | None = None
    for child in tree.body:
        if not isinstance(child, (ast.Import, ast.ImportFrom)):
            continue
        future = isinstance(child, ast.ImportFrom) and child.module == "__future__"
        aliases = [
            alias
            for alias in child.names
            if _binds(alias) in used or (future and _postponed(tree, node, name))
        ]
        if not aliases:
            continue
        if previous is not None and not all(
            line.strip() for line in lines[previous.end_lineno or 0 : child.lineno - 1]
        ):
            yield "", child.lineno
        yield from _import_lines(child, aliases, module, path, child.lineno)
        previous = child
    # Names of the same file are imported from it, but for the name that the block itself defines.
    local = used & {bound for child in tree.body for bound in _bound(child)}
    if "." not in name:
        local -= _bound(node)
    if local:
        if module is None:
            names = ", ".join(sorted(local))
            raise DefinitionError(f"{path.name}: {name!r} uses {names} of the same file, which is no module")
        number = min(child.lineno for child in tree.body if _bound(child) & local)
        statement = ast.ImportFrom(module, [ast.alias(item) for item in sorted(local)], 0)
        if previous is not None and not _same_package(previous, module):
            yield "", number
        yield from _import_lines(statement, statement.names, module, path, number)


def _postponed(tree: ast.Module, node: Definition, name: str) -> bool:
    """Tell whether annotations name what is not there when they are read, such as the class itself."""
    known = set(dir(builtins)) | {bound for child in tree.body for bound in _bound(child)}
    known |= {
        _binds(a)
        for child in tree.body
        if isinstance(child, (ast.Import, ast.ImportFrom))
        for a in child.names
    }
    if "." not in name:
        known -= _bound(node)
    annotations = [
        child.annotation for child in ast.walk(node) if isinstance(child, (ast.arg, ast.AnnAssign))
    ]
    annotations += [
        c.returns for c in ast.walk(node) if isinstance(c, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    named = {c.id for a in annotations if a is not None for c in ast.walk(a) if isinstance(c, ast.Name)}
    return not named <= known


def _same_package(node: ast.Import | ast.ImportFrom, module: str) -> bool:
    """Tell whether an import is one from the package of ``module``."""
    if not isinstance(node, ast.ImportFrom):
        return False
    return node.level > 0 or (node.module or "").split(".")[0] == module.split(".")[0]


def _binds(alias: ast.alias) -> str:
    """Return the name that an import binds: ``torch`` for ``import torch.nn``."""
    return alias.asname or alias.name.split(".")[0]


def _import_lines(
    node: ast.Import | ast.ImportFrom, aliases: list[ast.alias], module: str | None, path: Path, number: int
) -> Iterator[Line]:
    """Yield one import statement with only the wanted names, relative imports made absolute."""
    names = [alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in aliases]
    if isinstance(node, ast.Import):
        yield f"import {', '.join(names)}", number
        return
    origin = node.module or ""
    if node.level:
        if module is None:
            raise DefinitionError(f"{path.name}:{number}: a relative import outside a package")
        base = module.split(".")[: -node.level]
        origin = ".".join([*base, *([origin] if origin else [])])
    line = f"from {origin} import {', '.join(names)}"
    if len(line) <= WIDTH:
        yield line, number
        return
    yield f"from {origin} import (", number
    for alias, text in zip(aliases, names, strict=True):
        yield f"    {text},", getattr(alias, "lineno", number)
    yield ")", getattr(node, "end_lineno", None) or number


def _module(path: Path) -> str | None:
    """Return the dotted name under which ``path`` is imported, None for a file outside a package."""
    path = path.resolve()
    parts = [path.stem] if path.stem != "__init__" else []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) if len(parts) > (path.stem != "__init__") else None


def _used(node: Definition, source: str, path: Path) -> set[str]:
    """Return the module-level names that the definition refers to, its local variables left out."""
    used: set[str] = set()
    for child in ast.walk(node):  # what is evaluated outside of function bodies
        for expression in _header(child):
            used |= _names(expression)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        used |= _names(node.value)
    else:
        for table in _tables(symtable.symtable(source, str(path), "exec")):
            if table.get_name() == node.name and table.get_lineno() in _possible_lines(node):
                used |= _globals(table)
    return used - set(dir(builtins))


def _possible_lines(node: Definition) -> range:
    """Return the lines where a symbol table may let a decorated definition start: versions differ."""
    return range(
        min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]), node.lineno + 1
    )


def _header(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions of a definition that its surrounding scope evaluates."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield from node.decorator_list
    if isinstance(node, ast.ClassDef):
        yield from node.bases
        yield from (keyword.value for keyword in node.keywords)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from node.args.defaults
        yield from (default for default in node.args.kw_defaults if default is not None)
        if node.returns is not None:
            yield node.returns
    if isinstance(node, ast.arg) and node.annotation is not None:
        yield node.annotation
    if isinstance(node, ast.AnnAssign):
        yield node.annotation


def _names(node: ast.AST | None) -> set[str]:
    """Return the names in an expression, those in string annotations too."""
    found: set[str] = set()
    for child in ast.walk(node) if node is not None else ():
        if isinstance(child, ast.Name):
            found.add(child.id)
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            try:
                found |= _names(ast.parse(child.value, mode="eval")) if child.value.isidentifier() else set()
            except SyntaxError:
                continue
    return found


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """Yield every symbol table below one."""
    for child in table.get_children():
        yield child
        yield from _tables(child)


def _globals(table: symtable.SymbolTable) -> set[str]:
    """Return the names that a scope and the scopes in it look up in the module."""
    found = {
        symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()
    }
    for child in table.get_children():
        found |= _globals(child)
    return found


class DefinitionPreprocessor(Preprocessor):
    """Replaces ``--8<-- "file.py:Name"`` lines; runs before pymdownx.snippets, which gets everything else."""

    def __init__(self, md: Markdown, root: Path) -> None:
        super().__init__(md)
        self.root = root

    def run(self, lines: list[str]) -> list[str]:
        """Replace every embed by name in a page."""
        shown: list[str] = []
        for index, line in enumerate(lines):
            match = SCISSORS.match(line)
            if match is None:
                shown.append(line)
                continue
            try:
                target = TARGET.match(match["rest"])
                if target is None:
                    raise DefinitionError(
                        'an embed is one line: --8<-- "path/from/the/root" or --8<-- "file.py:Name"'
                    )
                path = self._file(target["path"])
                if target["name"] is None:
                    self._check_whole(path, target["path"])
                    shown.append(line)
                    continue
                if path.suffix != ".py" or not NAME.match(target["name"]):
                    raise DefinitionError(
                        f"cannot embed {target['name']!r} of {target['path']}: whole files, or functions, "
                        "classes and methods of a .py file by name, never lines or sections"
                    )
                shown.extend(match["space"] + text for text in self.read_definition(path, target["name"]))
            except (DefinitionError, OSError, UnicodeDecodeError) as error:
                refuse(self.md, self._line_number(index, line, lines), str(error))
        return shown

    def read_definition(self, path: Path, name: str) -> list[str]:
        """Return the lines to show; a subclass may return lines that remember where they came from."""
        return [text for text, _ in cut(path, name)]

    def _file(self, name: str) -> Path:
        """Return the embedded file, which must lie in the repository."""
        path = (self.root / name).resolve()
        if not path.is_relative_to(self.root):
            raise DefinitionError(f"{name} lies outside the repository")
        if not path.is_file():
            raise DefinitionError(f"no such file: {name}")
        return path

    def _check_whole(self, path: Path, name: str) -> None:
        """Refuse what pymdownx.snippets would publish wrongly without a word."""
        text = path.read_text(encoding="utf-8")
        if text.startswith("\ufeff"):
            raise DefinitionError(f"{name} starts with a byte-order mark")
        for number, line in enumerate(text.splitlines(), 1):
            if SCISSORS.match(line):
                raise DefinitionError(f"{name}:{number} embeds again; an embedded file is shown as it is")

    def _line_number(self, index: int, line: str, lines: list[str]) -> int | None:
        """Return the line in the page's file: MkDocs hands over the text without its front matter."""
        source = len("\n".join(page_lines(self.md)).rstrip().split("\n"))
        offset = source - len("\n".join(lines).rstrip().split("\n"))
        return line_number(
            self.md, line, near=index + 1 + offset
        )  # the same embed twice is told by its place


class DefinitionExtension(Extension):
    """The Markdown extension ``sitekit.definitions``."""

    def __init__(self, **kwargs: object) -> None:
        self.config = {"base_path": [str(ROOT), "Folder from which embedded paths are written"]}
        super().__init__(**kwargs)

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the preprocessor just before pymdownx.snippets (priority 32)."""
        md.preprocessors.register(
            DefinitionPreprocessor(md, Path(self.getConfig("base_path")).resolve()), "definition", 33
        )


def makeExtension(**kwargs: object) -> DefinitionExtension:
    """Return the extension (called by Markdown)."""
    return DefinitionExtension(**kwargs)
