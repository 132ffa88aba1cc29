r"""What is cut from llmcore: the stub a reader starts from, the reference beside it, its wrong variants.

All are whole files of the same form, so that the judge reads each as it reads a reader's own.
"""

from __future__ import annotations

import ast
import symtable

from practice.catalogue import CatalogueError, Exercise, Wrong

Definition = ast.FunctionDef | ast.ClassDef


def reference(exercise: Exercise) -> str:
    r"""Return the definitions of llmcore that the exercise asks for, with the imports they need.

    Raises:
        CatalogueError: If llmcore has no such definition.
    """
    return _file(exercise, (*exercise.parts, *exercise.symbols), lambda node, lines: _text(node, lines))


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
    # what the code uses of the reference's imports is imported as well, used or not
    head = _file(exercise, (*exercise.parts, *exercise.symbols), None)
    rest = [_text(node, _lines(exercise)) for node in _nodes(exercise, kept)]
    return "\n\n\n".join([head.rstrip("\n"), *rest, wrong.code.strip()]) + "\n"


def empty(text: str, symbols: tuple[str, ...]) -> list[str]:
    r"""Return which of the definitions are as empty as the stub has them.

    Raises:
        SyntaxError: If the text does not parse.
    """
    found = {node.name: node for node in ast.parse(text).body if isinstance(node, Definition)}
    return [name for name in symbols if _empty(found.get(name))]


def untouched(text: str, symbols: tuple[str, ...]) -> list[str]:
    r"""Return which of the definitions are missing or as empty as the stub has them.

    Raises:
        SyntaxError: If the text does not parse.
    """
    tree = ast.parse(text)
    found = {node.name: node for node in tree.body if isinstance(node, Definition)}
    bound = {target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
             if isinstance(target, ast.Name)}  # fmt: skip
    bound |= {alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom)
              for alias in node.names}  # fmt: skip
    return [name for name in symbols if (name not in found and name not in bound) or _empty(found.get(name))]


def _empty(node: Definition | None) -> bool:
    r"""Tell whether a definition only raises NotImplementedError; of a class, whether all its methods do."""
    if isinstance(node, ast.ClassDef):
        methods = [child for child in node.body if isinstance(child, ast.FunctionDef)]
        return bool(methods) and all(map(_empty, methods))
    if node is None:
        return False
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not body:
        return True
    raised = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    raised = raised.func if isinstance(raised, ast.Call) else raised
    only_pass = len(body) == 1 and isinstance(body[0], ast.Pass)
    return only_pass or (isinstance(raised, ast.Name) and raised.id == "NotImplementedError")


def _lines(exercise: Exercise) -> list[str]:
    return exercise.source.read_text(encoding="utf-8").split("\n")


def _nodes(exercise: Exercise, names) -> list[ast.stmt]:
    r"""Return the statements of the module that define the names, in the order of the file."""
    tree = ast.parse("\n".join(_lines(exercise)))
    bound = {}
    for node in tree.body:
        if isinstance(node, Definition):
            bound[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            bound[node.targets[0].id] = node
    if missing := [name for name in names if name not in bound]:
        raise CatalogueError(f"{exercise.name}: llmcore/{exercise.module}.py does not define {missing}")
    return sorted((bound[name] for name in names), key=lambda node: node.lineno)


def _file(exercise: Exercise, names, show) -> str:
    r"""Return a file with the imports that the answer needs and, if `show` is given, its definitions."""
    source = "\n".join(_lines(exercise))
    wanted = _nodes(exercise, (*exercise.parts, *exercise.symbols))
    used: set[str] = set()
    tables = {table.get_name(): table for table in symtable.symtable(source, "", "exec").get_children()}
    for node in wanted:
        used |= {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
        if isinstance(node, Definition):
            used |= _globals(tables[node.name])
    imports = []
    answer = {*exercise.parts, *exercise.symbols}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            aliases = [alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) in used]
            if aliases:
                kept = (
                    ast.ImportFrom(node.module, aliases, 0)
                    if isinstance(node, ast.ImportFrom)
                    else ast.Import(aliases)
                )
                imports.append((isinstance(node, ast.ImportFrom) and str(node.module).startswith("llmcore"),
                                ast.unparse(kept)))  # fmt: skip
    local = (used & _module_names(source)) - answer
    if local:
        imports.append((True, f"from llmcore.{exercise.module} import {', '.join(sorted(local))}"))
    foreign = [line for ours, line in imports if not ours]
    ours = [line for ours, line in imports if ours]
    if not any(line.startswith("import torch") for line in foreign):
        foreign.insert(0, "import torch")
    head = "\n\n".join("\n".join(group) for group in (foreign, ours) if group)
    shown = [show(node, _lines(exercise)) for node in _nodes(exercise, names)] if show else []
    return "\n\n\n".join([head, *shown]) + "\n"


def _module_names(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, Definition):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _globals(table: symtable.SymbolTable) -> set[str]:
    found = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    for child in table.get_children():
        found |= _globals(child)
    return found


def _text(node: ast.stmt, lines: list[str]) -> str:
    r"""Return a statement as it stands, with its decorators and the comment above it."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return "\n".join(lines[first - 1 : node.end_lineno])


def _emptied(node: ast.stmt, lines: list[str]) -> str:
    r"""Return a definition whose bodies are gone; signatures, docstrings, comments around them stay."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    cuts: list[tuple[int, int, int]] = []  # first and last line of a body, and its column

    def empty(function: ast.stmt) -> None:
        assert isinstance(function, ast.FunctionDef)
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        start = body[0].lineno if body else (function.end_lineno or 0) + 1
        above = function.body[0].end_lineno if body is not function.body else None
        if above is not None:
            start = min(start, above + 1)
        cuts.append((start, function.end_lineno or start, function.col_offset + 4))

    dropped: list[tuple[int, int]] = []
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            if isinstance(child, ast.FunctionDef):
                empty(child)
    else:
        empty(node)
    text, number = [], first
    for start, stop, column in cuts:
        text += lines[number - 1 : start - 1]
        text.append(" " * column + "raise NotImplementedError")
        number = stop + 1
    text += lines[number - 1 : node.end_lineno]
    assert not dropped
    return "\n".join(text).rstrip()
