r"""Shape comments of llmcore, `# (B, H, L, D)`, and the shapes in its docstrings are held to the truth.

The modules are compiled a second time with a probe behind every statement that carries such a comment, behind
every return and at the start of every function, and then called with tensors whose sizes are pairwise
different. Within one call a letter must mean one number: a letter gets its number from the arguments
("num_heads: H.", "query: (B, H, L, D)."), from the module's own sizes ("hidden_size: Width E of a token") or
where it is first met; an inner function without such words takes the letters of the documented function of
its module that was called last. Expressions such as H/K, H*D or K*n_rep are evaluated; names in small letters
are variables. A comment that no call reaches fails, and so does one that only calls with equal sizes reach.
"""

import ast
import importlib
import importlib.abc
import importlib.util
import io
import re
import sys
import tokenize
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace

import pytest
import torch
from torch import Tensor

import llmcore

FOLDER = Path(llmcore.__file__).parent
SIZE = r"[\w\s*/+-]+"
SHAPE = re.compile(rf"\(({SIZE}(?:,{SIZE})+|{SIZE},)\)")
COMMENT = re.compile(rf"#\s*({SHAPE.pattern}(?: or {SHAPE.pattern})*)")


def sizes_in(text: str) -> list[str]:
    r"""The sizes of a shape: "(B, H*D)" gives B and H*D."""
    return [size.strip() for size in text.strip("()").split(",") if size.strip()]


# what the documentation says


def described(docstring: str | None, section: str) -> dict[str, str]:
    r"""The entries of a section of a Google-style docstring, by name; what is returned has the name ""."""
    entries: dict[str, str] = {}
    name, indent, inside, outer = "", None, False, 0
    for line in (docstring or "").splitlines():
        depth = len(line) - len(line.lstrip())
        if line.strip() == f"{section}:":
            inside, indent, outer = True, None, depth
        elif inside and line.strip():
            if depth <= outer:
                break
            indent = depth if indent is None else indent
            entry = (
                re.match(r"\s*\*{0,2}(\w+): (.*)", line) if depth == indent and section != "Returns" else None
            )
            name = entry[1] if entry else name
            entries[name] = (
                f"{entries[name]} {line.strip()}"
                if name in entries
                else (entry[2] if entry else line.strip())
            )
    return entries


def letter_of(text: str) -> str | None:
    r"""The letter that an integer argument is described by: "H query heads." gives H."""
    letters = re.findall(r"\b[A-Z]\b", re.split(r"[;,.]", text)[0])
    return letters[0] if len(letters) == 1 else None


def shapes_of(text: str) -> list[str]:
    r"""The shapes, any of which a described tensor may have."""
    if re.match(rf"(?:[A-Z]\w*\s)?{SHAPE.pattern}", text) is None and "of shape (" not in text:
        return []
    if "broadcast" in text or "True = may attend) or" in text:
        return []
    return [match[0] for match in SHAPE.finditer(re.split(r"\.\s|;(?! or)", text)[0])]


@dataclass
class Documentation:
    arguments: dict[str, str]
    returns: list[str]
    own: dict[str, str]  # of the class: sizes kept on self


# probes


@dataclass
class Call:
    r"""One call of one function: what was known at its start, then what the probes saw."""

    function: str
    letters: list[tuple[str, int]]
    arguments: list[tuple[list[str], tuple[int, ...]]]
    outer: "Call | None" = None
    seen: list[tuple[str, tuple[int, ...], dict[str, int]]] = field(default_factory=list)


class Recorder:
    def __init__(self, documentation: dict[str, Documentation]):
        self.documentation = documentation
        self.calls: list[Call] = []
        self.made: dict[int, dict[str, int]] = {}  # sizes that an object was made with
        self.latest: dict[str, Call] = {}  # of each module, the last call whose arguments have a known shape
        self.kept: list[object] = []  # so that no id is given twice

    def numbers(self, names: dict) -> dict[str, int]:
        owner = names.get("self")
        known = {} if owner is None else self.made.get(id(owner), {}) | vars(owner)
        return {name: value for name, value in (known | names).items() if type(value) is int}

    def enter(self, function: str, names: dict) -> Call:
        if function.endswith(".__init__"):
            self.made[id(names["self"])] = {
                name: value for name, value in names.items() if type(value) is int
            }
            self.kept.append(names["self"])
        documented = self.documentation[function]
        known = self.numbers(names)
        described_sizes = (documented.own | documented.arguments).items()
        letters = [
            (letter, known[name])
            for name, text in described_sizes
            if name in known and (letter := letter_of(text))
        ]
        shapes = [
            (shapes_of(text), tuple(names[name].shape))
            for name, text in documented.arguments.items()
            if isinstance(names.get(name), Tensor) and shapes_of(text)
        ]
        call = Call(function, letters, shapes)
        module = function.split(".")[0]
        if shapes:
            self.latest[module] = call
        else:
            call.outer = self.latest.get(module) if not documented.arguments else None
        self.calls.append(call)
        return call

    def see(self, call: Call, key: str, names: dict, *values: object) -> None:
        for value in values:
            if isinstance(value, Tensor):
                call.seen.append((key, tuple(value.shape), self.numbers(names)))
            elif isinstance(value, (tuple, list)):
                self.see(call, key, names, *value)
            else:
                raise TypeError(f"{key}: a shape comment stands behind {type(value).__name__}, not a tensor")

    def give(self, call: Call, key: str | None, names: dict, value: object) -> object:
        if key is not None:
            self.see(call, key, names, value)
        returned, shapes = (
            value if isinstance(value, tuple) else (value,),
            self.documentation[call.function].returns,
        )
        tensors = [tensor for tensor in returned if isinstance(tensor, Tensor)]
        if shapes and len(tensors) == len(returned):
            numbers = self.numbers(names)
            call.seen += [(f"{call.function} returns", tuple(t.shape), numbers) for t in tensors]
        return value


class Probe(ast.NodeTransformer):
    r"""Put the probes into one module."""

    def __init__(self, module: str, tree: ast.Module, comments: dict[int, str]):
        self.module = module
        self.path: list[str] = []
        self.docstrings: list[str | None] = []
        self.documentation: dict[str, Documentation] = {}
        self.comments: dict[str, str] = {}
        self.at: dict[ast.stmt, str] = {}
        statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
        for line, text in comments.items():
            around = [s for s in statements if s.lineno <= line <= (s.end_lineno or s.lineno)]
            key = f"{module}.py:{line}"
            holder = max(around, key=lambda s: (s.lineno, -(s.end_lineno or 0)), default=None)
            if not isinstance(holder, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.For)):
                raise ValueError(f"{key}: {text} stands behind a line that makes no tensor")
            self.comments[key] = text
            self.at[holder] = key

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.path.append(node.name)
        self.docstrings.append(ast.get_docstring(node, clean=False))
        self.generic_visit(node)
        self.path.pop()
        self.docstrings.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.path.append(node.name)
        name = f"{self.module}.{'.'.join(self.path)}"
        docstring = ast.get_docstring(node, clean=False)
        returned = described(docstring, "Returns").get("", "")
        returns = (
            []
            if "broadcast" in returned
            else [m[0] for m in SHAPE.finditer(re.split(r"\.\s|;", returned)[0])]
        )
        own = described(self.docstrings[-1], "Args") if self.docstrings else {}
        self.documentation[name] = Documentation(described(docstring, "Args"), returns, own)
        if returns:
            self.comments[f"{name} returns"] = (
                " or ".join(returns) if " or " in returned else "; ".join(returns)
            )
        self.generic_visit(node)
        node.body.insert(0, ast.parse(f"__shape_call__ = __shapes__.enter({name!r}, locals())").body[0])
        self.path.pop()
        return node

    def probe(self, method: str, key: str | None, values: list[ast.expr]) -> ast.Call:
        call = ast.parse(f"__shapes__.{method}(__shape_call__, {key!r}, locals())", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args += values
        return call

    def loaded(self, target: ast.expr) -> ast.expr:
        return ast.parse(ast.unparse(target), mode="eval").body

    def visit_Return(self, node: ast.Return) -> ast.Return:
        if node.value is not None:
            node.value = self.probe("give", self.at.get(node), [node.value])
        return node

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> ast.AST | list[ast.AST]:
        if node not in self.at:
            return node
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return [node, ast.Expr(self.probe("see", self.at[node], [self.loaded(target)]))]

    visit_AnnAssign = visit_AugAssign = visit_Assign

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        if node in self.at:
            node.body.insert(0, ast.Expr(self.probe("see", self.at[node], [self.loaded(node.target)])))
        return node


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    r"""Import llmcore with probes in it."""

    def __init__(self, sources: dict[str, str]):
        self.sources = sources
        self.documentation: dict[str, Documentation] = {}
        self.comments: dict[str, str] = {}
        self.recorder = Recorder(self.documentation)

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] != "llmcore":
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=fullname == "llmcore")

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__.partition(".")[2] or "__init__"
        source = self.sources[name]
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        lines = {
            t.start[0]: m[1] for t in tokens if t.type == tokenize.COMMENT and (m := COMMENT.match(t.string))
        }
        tree = ast.parse(source)
        probe = Probe(name, tree, lines)
        tree = ast.fix_missing_locations(probe.visit(tree))
        self.documentation |= probe.documentation
        self.comments |= probe.comments
        module.__dict__["__shapes__"] = self.recorder
        exec(compile(tree, f"<{name} with probes>", "exec"), module.__dict__)


def sources() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}


def load(texts: dict[str, str]) -> tuple[Finder, SimpleNamespace]:
    r"""The modules with probes, under their own names, and nothing left in `sys.modules`."""
    finder = Finder(texts)
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "llmcore"}
    sys.meta_path.insert(0, finder)
    try:
        modules = {name: importlib.import_module(f"llmcore.{name}") for name in texts if name != "__init__"}
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] == "llmcore"]:
            del sys.modules[name]
        sys.modules.update(kept)
    return finder, SimpleNamespace(**modules)


# what a call proves


@cache
def compiled(size: str) -> CodeType:
    return compile(size, size, "eval")


def value_of(size: str, known: dict[str, int]) -> float:
    return known[size] if size in known else eval(compiled(size), {"__builtins__": {}}, known)


def fit(text: str, shape: tuple[int, ...], known: dict[str, int], variables: dict[str, int]) -> str | None:
    r"""Compare one written shape with one real shape. New letters go into `known`; returns what is wrong."""
    sizes = sizes_in(text)
    if len(sizes) != len(shape):
        return f"{text} is {shape}"
    pairs = sorted(zip(sizes, shape, strict=True), key=lambda pair: not pair[0].isidentifier())
    for size, real in pairs:
        names = [name for name in re.findall(r"[A-Za-z_]\w*", size) if name not in known]
        found = {name: variables[name] for name in names if name[0].islower() and name in variables}
        unknown = sorted(set(names) - set(found))
        if len(unknown) > 1:
            return f"{text}: nothing says what {unknown} are"
        if unknown:
            candidates = [real] if size == unknown[0] else range(1, 10 * real + 1)
            fits = [n for n in candidates if value_of(size, known | found | {unknown[0]: n}) == real]
            if not fits:
                return f"{text} is {shape}: no {unknown[0]} makes {size} = {real}"
            known[unknown[0]] = fits[0]
        elif value_of(size, known | found) != real:
            return f"{text} is {shape}: {size} = {value_of(size, known | found):g}"
    return None


def fit_any(
    texts: list[str], shape: tuple[int, ...], known: dict[str, int], variables: dict[str, int]
) -> str | None:
    r"""Compare alternatives with one real shape; the first that fits is taken."""
    problem = None
    for text in texts:
        trial = dict(known)
        problem = fit(text, shape, trial, variables)
        if problem is None:
            known.update(trial)
            return None
    return problem


def judge(call: Call, comments: dict[str, str]) -> tuple[list[str], set[str]]:
    r"""What is wrong in a call, and which comments it proves: those reached with all sizes different."""
    known: dict[str, int] = {}
    if call.outer is not None:
        for texts, shape in call.outer.arguments:
            fit_any(texts, shape, known, {})
    problems = [
        f"{call.function}: {letter} is {known[letter]} and {number}"
        for letter, number in call.letters
        if known.setdefault(letter, number) != number
    ]
    for texts, shape in call.arguments:
        if problem := fit_any(texts, shape, known, {}):
            problems.append(f"{call.function}, argument: {problem}")
    returned = 0
    for key, shape, variables in call.seen:
        text = comments[key]
        texts = text.split(" or ")
        if "; " in text:  # several tensors returned, one shape each
            texts = [text.split("; ")[returned]]
            returned += 1
        if problem := fit_any(texts, shape, known, variables):
            problems.append(f"{key}: {problem}, where {known}")
    letters = [number for name, number in known.items() if name[0].isupper()]
    different = len(set(letters)) == len(letters) and 1 not in letters
    return problems, {key for key, _, _ in call.seen} if different else set()


def make(*shape: int, grad: bool = True) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_(
        grad
    )


B, H, K, L, S, D, DV, E, C = 3, 8, 2, 5, 7, 6, 9, 48, 11


def drive(lib: SimpleNamespace) -> None:
    r"""Call everything with sizes that are pairwise different, backwards too."""
    lib.masks.padding_mask(torch.tensor([4, 2, S]), S)
    lib.masks.padding_mask(torch.tensor([4, 2, S]), S, side="left")
    lib.masks.causal_mask(L, S)
    lib.masks.expand_mask(torch.ones(L, S, dtype=torch.bool), (B, H, L, S))
    query, key, value = make(B, H, L, D), make(B, K, S, D), make(B, K, S, DV)
    for mask in (None, torch.ones(L, S, dtype=torch.bool), make(B, H, L, S), make(S), make(B, 1, L, S)):
        for is_causal in (False, True):
            for attend in (lib.attention.scaled_dot_product_attention, lib.blockwise.blockwise_attention):
                attend(query, key, value, mask, is_causal=is_causal).sum().backward()
            lib.blockwise.blockwise_attention(
                query, key, value, mask, is_causal=is_causal, block_size=2
            ).sum().backward()
    lib.attention.scaled_dot_product_attention(query, key, value, dropout_p=0.5)
    lib.heads.merge_heads(lib.heads.split_heads(make(B, L, H * D), H))
    lib.heads.repeat_kv(make(B, K, S, D), 4)
    for module in (
        lib.self_attention.BareSelfAttention,
        lib.self_attention.FusedSelfAttention,
        lib.self_attention.SelfAttention,
    ):
        module(E).double()(make(B, L, E))
    lib.self_attention.MultiHeadSelfAttention(E, H).double()(make(B, L, E))
    wide = lib.multi_head.MultiHeadAttention(
        E, H, kdim=C, vdim=13, head_dim=D, v_head_dim=DV, out_dim=17
    ).double()
    wide(make(B, L, E), make(B, S, C), make(B, S, 13))
    for module in (
        lib.multi_query.MultiQueryAttention(E, H),
        lib.grouped_query.GroupedQueryAttention(E, H, K),
    ):
        cache = lib.kv_cache.KVCache()
        module.double()(make(B, S - L, E), past_key_values=cache)
        module(make(B, L, E), past_key_values=cache)
    cache = lib.kv_cache.KVCache()
    cache.update(make(B, K, S - L, D), make(B, K, S - L, DV))
    cache.update(make(B, K, L, D), make(B, K, L, DV))
    mha = lib.multi_head.MultiHeadAttention(E, H)
    lib.grouped_query.mha_to_gqa(mha, K)
    lib.cross_attention.CrossAttention(E, H, context_size=C).double()(make(B, L, E), make(B, S, C))
    lib.dpo.dpo_loss(*(make(B) for _ in range(4))).loss.backward()
    tokens, words = 6, 10
    labels = torch.arange(B * tokens).reshape(B, tokens) % words
    for logits in (make(B, tokens, words), make(B, tokens, words, grad=False)):
        lib.logprobs.per_token_logps(logits, labels)
        total = lib.logprobs.sequence_logps(logits, labels).sum()
        if logits.requires_grad:
            total.backward()


@pytest.fixture(scope="module")
def finder() -> Finder:
    finder, lib = load(sources())
    drive(lib)
    return finder


def test_shape_comments_are_true(finder):
    problems: dict[str, None] = {}
    proven: set[str] = set()
    for call in finder.recorder.calls:
        wrong, keys = judge(call, finder.comments)
        problems |= dict.fromkeys(wrong)
        proven |= keys
    assert not problems, "\n".join(problems)
    unproven = sorted(finder.comments.keys() - proven)
    assert not unproven, f"reached by no call with pairwise different sizes: {unproven}"


def test_every_module_with_tensors_has_such_comments(finder):
    assert len(finder.comments) > 50


def falsified(text: str) -> list[str]:
    r"""Two neighbouring sizes swapped, or an axis too many."""
    sizes = sizes_in(text)
    swapped = [
        [*sizes[:i], sizes[i + 1], sizes[i], *sizes[i + 2 :]]
        for i in range(len(sizes) - 1)
        if sizes[i] != sizes[i + 1]
    ]
    return [f"({', '.join(new)})" for new in [*swapped, [*sizes, "1"]]]


def test_a_wrong_shape_comment_is_caught(finder):
    missed = []
    for key, text in finder.comments.items():
        if " returns" in key:
            continue
        calls = [call for call in finder.recorder.calls if any(k == key for k, _, _ in call.seen)]
        for wrong in falsified(text):
            comments = finder.comments | {key: wrong}
            if not any(
                problem.startswith(f"{key}:") for call in calls for problem in judge(call, comments)[0]
            ):
                missed.append(f"{key}: {wrong} for {text}")
    assert not missed, "\n".join(missed)


HEADS = '''
def cut(x, num_heads):
    r"""Cut.

    Args:
        x: (B, L, H * D).
        num_heads: H.

    Returns:
        (B, H, L, D).
    """
    y = x.unflatten(-1, (num_heads, -1))  # (B, L, H, D)
    return y.transpose(1, 2)  # (B, H, L, D)
'''


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("", "", None),
        ("# (B, L, H, D)", "# (B, H, L, D)", "__init__.py:12: (B, H, L, D) is (3, 5, 8, 6)"),
        ("# (B, L, H, D)", "# (B, L, D)", "__init__.py:12: (B, L, D) is (3, 5, 8, 6)"),
        (".transpose(1, 2)", "", "__init__.py:13: (B, H, L, D) is (3, 5, 8, 6)"),
        (
            "        (B, H, L, D).",
            "        (B, L, H, D).",
            "__init__.cut returns: (B, L, H, D) is (3, 8, 5, 6)",
        ),
        ("(B, L, H * D)", "(B, L, H)", "argument: (B, L, H) is (3, 5, 48)"),
    ],
)
def test_the_checker_tells_right_from_wrong(before, after, problem):
    probe = Finder({"__init__": HEADS.replace(before, after) if before else HEADS})
    module = ModuleType("llmcore")
    probe.exec_module(module)
    module.cut(make(B, L, H * D), H)
    problems = [text for call in probe.recorder.calls for text in judge(call, probe.comments)[0]]
    if problem is None:
        assert problems == []
    else:
        assert any(problem in text for text in problems), problems


def test_a_comment_behind_no_tensor_is_refused():
    probe = Finder({"__init__": "def f(x):\n    print(x)  # (B, L)\n"})
    with pytest.raises(
        ValueError, match=r"__init__.py:2: \(B, L\) stands behind a line that makes no tensor"
    ):
        probe.exec_module(ModuleType("llmcore"))
