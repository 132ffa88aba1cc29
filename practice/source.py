r"""What is cut from llmcore: the stub a reader starts from, the reference beside it, its wrong variants.

All are whole files of the same form, so that the judge reads each as it reads a reader's own.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Callable, Collection

from practice.catalogue import CatalogueError, Exercise, Wrong

Definition = ast.FunctionDef | ast.ClassDef


def reference(exercise: Exercise) -> str:
    r"""Return the definitions of llmcore that the exercise asks for, with the imports they need.

    Raises:
        CatalogueError: If llmcore has no such definition.
    """
    return _file(exercise, (*exercise.parts, *exercise.symbols), _text)


def stub(exercise: Exercise) -> str:
    r"""Return the same with every body replaced by `raise NotImplementedError`; docstrings stay.

    Raises:
        CatalogueError: If llmcore has no such definition.
    """
    return _file(exercise, exercise.symbols, _emptied)


def wrong_answer(exercise: Exercise, wrong: Wrong) -> str:
    r"""Return the reference with a mistake in it.

    Raises:
        CatalogueError: If what is to be changed does not stand in the reference exactly once, or the code
            defines none of the symbols.
    """
    text = reference(exercise)
    for old, new in wrong.change:
        if text.count(old) != 1:
            times = text.count(old)
            raise CatalogueError(
                f"{exercise.name}: {wrong.name} changes {old!r}, which the reference has {times} times"
            )
        text = text.replace(old, new)
    if not wrong.code:
        return text
    tree = ast.parse(wrong.code)
    replaced = {node.name for node in tree.body if isinstance(node, Definition)}
    if not replaced & set(exercise.symbols):
        raise CatalogueError(f"{exercise.name}: the code of {wrong.name} defines none of {exercise.symbols}")
    kept = [name for name in (*exercise.parts, *exercise.symbols) if name not in replaced]
    # what the reference imports is there for the code, used or not
    return f"{_file(exercise, kept, _text)}\n\n{wrong.code.strip()}\n"


def empty(text: str, symbols: tuple[str, ...]) -> list[str]:
    r"""Return which of the definitions are as empty as the stub has them.

    Raises:
        SyntaxError: If the text does not parse.
    """
    bound = _bound(ast.parse(text))
    return [name for name in symbols if _empty(bound.get(name))]


def untouched(text: str, symbols: tuple[str, ...]) -> list[str]:
    r"""Return which of the definitions are missing or as empty as the stub has them.

    Raises:
        SyntaxError: If the text does not parse.
    """
    tree = ast.parse(text)
    bound = _bound(tree)
    imported = {alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom)
                for alias in node.names}  # fmt: skip
    return [name for name in symbols if name not in {*bound, *imported} or _empty(bound.get(name))]


def _bound(tree: ast.Module) -> dict[str, ast.stmt]:
    r"""Return what a module defines and assigns, by name."""
    bound: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, Definition):
            bound[node.name] = node
        elif isinstance(node, ast.Assign):
            bound |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return bound


def _empty(node: ast.stmt | None) -> bool:
    r"""Tell whether a definition only raises NotImplementedError; of a class, whether all its methods do."""
    if isinstance(node, ast.ClassDef):
        methods = [child for child in node.body if isinstance(child, ast.FunctionDef)]
        return bool(methods) and all(map(_empty, methods))
    if not isinstance(node, ast.FunctionDef):
        return False
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not body:
        return True
    raised = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    raised = raised.func if isinstance(raised, ast.Call) else raised
    only_pass = len(body) == 1 and isinstance(body[0], ast.Pass)
    return only_pass or (isinstance(raised, ast.Name) and raised.id == "NotImplementedError")


def _file(exercise: Exercise, names: Collection[str], show: Callable[[ast.stmt, list[str]], str]) -> str:
    r"""Return a file with the imports that the answer needs, and some of its definitions."""
    source = exercise.source.read_text(encoding="utf-8")
    tree, answer = ast.parse(source), (*exercise.parts, *exercise.symbols)
    bound = _bound(tree)
    if missing := [name for name in answer if name not in bound]:
        raise CatalogueError(f"{exercise.name}: llmcore/{exercise.module}.py does not define {missing}")
    tables = {table.get_name(): table for table in symtable.symtable(source, "", "exec").get_children()}
    used: set[str] = set()
    for node in (bound[name] for name in answer):
        used |= {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
        if isinstance(node, Definition):
            used |= _globals(tables[node.name])
    foreign, ours = list[str](), list[str]()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            aliases = [alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) in used]
            if aliases:
                module = node.module if isinstance(node, ast.ImportFrom) else None
                kept = ast.ImportFrom(module, aliases, 0) if module else ast.Import(aliases)
                (ours if str(module).startswith("llmcore") else foreign).append(ast.unparse(kept))
    if local := used & set(bound) - set(answer):
        ours.append(f"from llmcore.{exercise.module} import {', '.join(sorted(local))}")
    if not any(line.startswith("import torch") for line in foreign):
        foreign.insert(0, "import torch")
    head = "\n\n".join("\n".join(group) for group in (foreign, ours) if group)
    nodes = sorted((bound[name] for name in names), key=lambda node: node.lineno)
    return "\n\n\n".join([head, *(show(node, source.split("\n")) for node in nodes)]) + "\n"


def _globals(table: symtable.SymbolTable) -> set[str]:
    found = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    for child in table.get_children():
        found |= _globals(child)
    return found


def _first(node: ast.stmt) -> int:
    r"""Return the first line of a statement, its decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def _text(node: ast.stmt, lines: list[str]) -> str:
    r"""Return a statement as it stands, with its decorators and the comment above it."""
    first = _first(node)
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return "\n".join(lines[first - 1 : node.end_lineno])


def _emptied(node: ast.stmt, lines: list[str]) -> str:
    r"""Return a definition whose bodies are gone; signatures, docstrings, comments around them stay."""
    inside = node.body if isinstance(node, ast.ClassDef) else [node]
    text, number = list[str](), _first(node)
    for function in inside:
        if isinstance(function, ast.FunctionDef):
            documented = ast.get_docstring(function) is not None
            start = (function.body[0].end_lineno or 0) + 1 if documented else function.body[0].lineno
            text += lines[number - 1 : start - 1]
            text.append(" " * (function.col_offset + 4) + "raise NotImplementedError")
            number = (function.end_lineno or start) + 1
    text += lines[number - 1 : node.end_lineno]
    return "\n".join(text).rstrip()
