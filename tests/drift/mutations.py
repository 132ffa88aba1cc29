r"""Small faults for Python code, each a splice of one place of the text: no line moves.

Left alone is what no run can tell: docstrings, annotations, imports, `__version__`, the wording of errors.
Left out is what any run kills: a name that is not there any more, a number in the place of a tensor.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

Fault = tuple[int, int, str]  # start, end, and the text to stand there

OPERATORS: dict[type[ast.AST], tuple[str, *tuple[str, ...]]] = {  # as written, and what is written by mistake
    **{
        ast.Lt: ("<", "<=", ">="),
        ast.LtE: ("<=", "<", ">="),
        ast.Gt: (">", ">=", "<"),
        ast.GtE: (">=", ">", "<"),
    },
    **{ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is")},
    **{ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.And: ("and", "or"), ast.Or: ("or", "and")},
    **{
        ast.Add: ("+", "-"),
        ast.Sub: ("-", "+"),
        ast.Mult: ("*", "/"),
        ast.Div: ("/", "*"),
        ast.Mod: ("%", "//"),
    },
    **{ast.FloorDiv: ("//", "*"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&")},
}
NEGATIONS = ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn
NAMES = {  # functions, methods, dtypes and numbers that are taken for each other
    **{"mean": "sum", "sum": "mean", "amax": "amin", "max": "min", "min": "max", "all": "any", "any": "all"},
    **{"tril": "triu", "zeros": "ones", "ones": "zeros", "new_zeros": "new_ones", "zeros_like": "ones_like"},
    **{"softmax": "log_softmax", "log_softmax": "softmax", "exp": "expm1", "sqrt": "exp", "softplus": "relu"},
    **{"isinf": "isnan", "isfinite": "isnan", "float": "double", "inf": "pi", "float64": "float32"},
    **{
        "float32": "float64",
        "bfloat16": "float32",
        "mul_": "add_",
        "scatter_add_": "scatter_",
        "rand": "randn",
    },
}
FORGOTTEN = """
    detach float long to expand flip flatten unflatten transpose reshape squeeze split_heads merge_heads
    upcast exp log mean sum masked_fill masked_fill_ softmax log_softmax softplus sqrt dropout apply_mask
    additive_mask where mul_ scatter_add_ train int min max
"""  # calls that give back what they take, in another form
CHECKS = {"strict"}  # arguments that only refuse what cannot happen
MODULES = {"torch", "math", "nn"}
ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Constant | ast.Subscript


class Mutant(NamedTuple):
    r"""A fault: where it is, its lines before and after, and the whole text of the file that has it."""

    path: Path
    definition: str
    line: int
    before: str
    after: str
    number: int  # among the faults of the definition that read the same
    text: str

    @property
    def key(self) -> str:
        r"""What names the fault whatever else changes in the file."""
        place = f"{self.path.name} {self.definition}".strip()
        return f"{place}: `{self.before}` -> `{self.after}`" + f" ({self.number})" * (self.number > 1)


def mutants(path: Path) -> list[Mutant]:
    r"""Return the faults of a file, in the order of their places."""
    text = path.read_text(encoding="utf-8")
    assert text.isascii(), f"{path}: ast counts columns in bytes"
    tree, found, seen = ast.parse(text), dict[str, Mutant](), Counter[tuple[str, ...]]()
    for (start, end, new), definition in sorted(Spots(text).visit(tree, ""), key=lambda fault: fault[0][:2]):
        new += "\n" * (text[start:end].count("\n") - new.count("\n"))  # inside brackets or after a statement
        changed = text[:start] + new + text[end:]
        if changed in found or ast.dump(ast.parse(changed)) == ast.dump(tree):
            continue
        lines = slice(text.count("\n", 0, start), text.count("\n", 0, end) + 1)
        before, after = (" ".join(" ".join(x.splitlines()[lines]).split()) for x in (text, changed))
        seen[definition, before, after] += 1
        number = seen[definition, before, after]
        found[changed] = Mutant(path, definition, lines.start + 1, before, after, number, changed)
    return list(found.values())


class Spots:
    r"""The places of a text where a fault can stand; one method for each kind of node."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.decided: set[ast.AST] = set()  # what an `if` already does or leaves out
        self.lines = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]

    def visit(self, node: ast.AST, definition: str) -> Iterator[tuple[Fault, str]]:
        r"""Yield the faults of a node and of those below it, with the definition that they are in."""
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definition = f"{definition}.{node.name}".strip(".")
        for fault in getattr(self, type(node).__name__, lambda _: ())(node):
            yield fault, definition
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.keyword) and node.arg in CHECKS:
            return
        if isinstance(node, ast.Assign) and self.cut(node).startswith("__"):
            return
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                if isinstance(child, ast.AST) and name not in ("annotation", "returns") and not docstring:
                    yield from self.visit(child, definition)

    def span(self, node: ast.AST) -> tuple[int, int]:
        r"""Return where a node starts and ends."""
        first, start, last, end = (
            getattr(node, f"{side}{at}") for side in ("", "end_") for at in ("lineno", "col_offset")
        )
        return self.lines[first - 1] + start, self.lines[last - 1] + end

    def cut(self, node: ast.AST) -> str:
        r"""Return the text of a node."""
        return self.text[slice(*self.span(node))]

    def put(self, node: ast.AST, new: ast.AST | str) -> Fault:
        r"""Put a text, or another node, in the place of a node."""
        if isinstance(new, ast.AST):
            new = self.cut(new) if isinstance(new, ATOMS) else f"({self.cut(new)})"
        return *self.span(node), new

    def between(self, left: ast.AST, right: ast.AST, operator: ast.AST) -> Iterator[Fault]:
        r"""Write another operator between two nodes."""
        start, end = self.span(left)[1], self.span(right)[0]
        written, *others = OPERATORS.get(type(operator), ("",))
        for other in others:
            yield start, end, self.text[start:end].replace(written, other, 1)

    def Compare(self, node: ast.Compare) -> Iterator[Fault]:
        for left, right, operator in zip(
            [node.left, *node.comparators], node.comparators, node.ops, strict=False
        ):
            if not (node in self.decided and isinstance(operator, NEGATIONS)):
                yield from self.between(left, right, operator)

    def BinOp(self, node: ast.BinOp) -> Iterator[Fault]:
        yield from self.between(node.left, node.right, node.op)
        yield self.put(node, node.left)
        yield self.put(node, node.right)

    def BoolOp(self, node: ast.BoolOp) -> Iterator[Fault]:
        for left, right in pairwise(node.values):
            yield from self.between(left, right, node.op)
        for value in node.values:
            yield self.put(value, str(isinstance(node.op, ast.And)))

    def UnaryOp(self, node: ast.UnaryOp) -> Iterator[Fault]:
        if isinstance(node.operand, ast.Constant):  # -1: an axis, or what is left over
            yield self.put(node, "0")
        else:
            yield self.put(node, node.operand)

    def Constant(self, node: ast.Constant) -> Iterator[Fault]:
        if isinstance(node.value, bool):
            yield self.put(node, str(not node.value))
        elif isinstance(node.value, int):
            yield self.put(node, str(node.value - 1 if node.value > 1 else node.value + 1))
        elif isinstance(node.value, float):
            yield self.put(node, str(node.value + 1.0))
        elif isinstance(node.value, str):
            yield self.put(node, repr(node.value + "_"))

    def arguments(self, node: ast.arguments) -> Iterator[Fault]:
        for default in [*node.defaults, *node.kw_defaults]:
            if isinstance(default, ast.Constant) and default.value is None:
                yield self.put(default, "1")

    def Attribute(self, node: ast.Attribute) -> Iterator[Fault]:
        if node.attr in NAMES:
            yield self.span(node)[1] - len(node.attr), self.span(node)[1], NAMES[node.attr]
        if node.attr == "mT":
            yield self.put(node, node.value)

    def Call(self, node: ast.Call) -> Iterator[Fault]:
        parts = sorted([*node.args, *node.keywords], key=self.span)
        for before, part in pairwise([None, *parts]):
            if isinstance(part, ast.keyword) and before and part.arg not in CHECKS:
                yield self.span(before)[1], self.span(part)[1], ""
        function, owner = node.func, getattr(node.func, "value", None)
        name = getattr(function, "id", None) or getattr(function, "attr", "")
        if isinstance(function, ast.Name) and name in NAMES:
            yield self.put(function, NAMES[name])
        if name in FORGOTTEN.split():
            library = owner is None or self.cut(owner).split(".")[0] in MODULES
            taken = (*node.args, node)[0] if library else owner
            if taken is not None and not isinstance(taken, ast.GeneratorExp):
                yield self.put(node, taken)

    def Slice(self, node: ast.Slice) -> Iterator[Fault]:
        for bound in (node.lower, node.upper):
            if bound is not None:
                yield self.put(bound, "")

    def IfExp(self, node: ast.IfExp) -> Iterator[Fault]:
        self.decided.add(node.test)
        yield self.put(node, node.body)
        yield self.put(node, node.orelse)

    def If(self, node: ast.If) -> Iterator[Fault]:
        self.decided.update({node.test} if node.body[1:] else {node.test, node.body[0]})
        yield self.put(node.test, "True")
        yield self.put(node.test, "False")

    def comprehension(self, node: ast.comprehension) -> Iterator[Fault]:
        for condition in node.ifs:
            yield self.put(condition, "True")

    def For(self, node: ast.For) -> Iterator[Fault]:
        yield self.put(node.iter, "()")

    def FunctionDef(self, node: ast.FunctionDef) -> Iterator[Fault]:
        for decorator in node.decorator_list:
            yield self.span(decorator)[0] - 1, self.span(decorator)[1], ""

    def Assign(self, node: ast.Assign) -> Iterator[Fault]:
        names = {
            each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)
        }
        used = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
        if names & used or isinstance(node.targets[0], ast.Subscript):
            yield self.put(node, "pass")

    def AugAssign(self, node: ast.AugAssign) -> Iterator[Fault]:
        yield from self.between(node.target, node.value, node.op)
        start, end = self.span(node.target)[1], self.span(node.value)[0]
        yield start, end, " = "
        yield self.put(node, "pass")

    def statement(self, node: ast.stmt) -> Iterator[Fault]:
        if node not in self.decided:
            yield self.put(node, "pass")

    Expr = Raise = Continue = statement
