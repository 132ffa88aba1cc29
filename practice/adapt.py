r"""A module whose parameters are named or laid out in its author's own way, shown as the reference has them.

Names are free: `wq`, `fc_q`, `W_query`, one fused `qkv`, a matrix multiplied from the right. The tests copy
weights from other systems by the reference's names, so such a module is wrapped: the wrapper owns the
reference's parameters, and each call computes the author's from them (joined, cut, turned) and runs the
author's `forward` with those. Values, gradients and errors are then judged as everybody's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

Recipe = Callable[[dict[str, Tensor]], Tensor]  # from the reference's parameters to one of the author's
Way = tuple[str, tuple[str, ...], tuple[int, ...], Recipe]  # role, what it uses, its shape, how
CANDIDATES, STEPS = 600, 20_000  # how many are tried, and how many choices are made to find them
WORDS = {
    "qkv": r"qkv|c_attn|in_proj|query_key_value|inproj|attn_proj",
    "kv": r"kv(?!_?head)|key_value",
    "qk": r"qk(?!v)",
    "q": r"(?:^|_|w|b|fc|to|lin)q(?:$|_|\d)|query|queries|wq|fc_?q|q_?(?:proj|lin|weight|w|map)",
    "k": r"(?:^|_|w|b|fc|to|lin)k(?:$|_|\d)|key|wk|fc_?k|k_?(?:proj|lin|weight|w|map)",
    "v": r"(?:^|_|w|b|fc|to|lin)v(?:$|_|\d)|value|wv|fc_?v|v_?(?:proj|lin|weight|w|map)",
    "o": r"(?:^|_|w|b|fc|to|lin)o(?:$|_|\d)|out|wo|fc_?o|dense|c_proj|merge|final|proj$",
}


# Parameters of answers, and of the reference, between which no way was found.
unmatched: list[tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]] = []


def role_of(name: str) -> str:
    r"""Guess from a parameter's name what it projects; nothing where the name does not say."""
    stem = re.sub(r"\.?(weight|bias)$", "", name.lower().replace(".", "_"))
    for role, words in WORDS.items():
        if re.search(words, stem):
            return role
    return ""


def adapted(author: type[nn.Module], reference: type[nn.Module]) -> type[nn.Module]:
    r"""Return a class that is called as the author's and has the reference's parameters.

    Where the author's parameters are those of the reference by name and shape, an object of the author's own
    class is made; where no way is found to compute one from the other, too: the tests say what is missing.
    """

    known: dict[str, dict[str, Recipe] | None] = {}
    wanted: dict[str, dict[str, tuple[int, ...]]] = {}

    def shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
        return {name: tuple(p.shape) for name, p in module.named_parameters()}

    class Adapted(_Adapted):
        pass

    class Meta(type(nn.Module)):
        def __call__(cls, *args: Any, **kwargs: Any) -> nn.Module:
            theirs = author(*args, **kwargs)
            if not isinstance(theirs, nn.Module):
                return theirs
            call = repr((args, kwargs))
            if wanted.get(call) == shapes(theirs):
                return theirs
            try:
                ours = reference(*args, **kwargs)
            except Exception:  # what the author should have refused
                return theirs
            wanted[call] = shapes(ours)
            if wanted[call] == shapes(theirs):
                return theirs
            key = repr((call, shapes(theirs)))
            if key not in known:
                known[key] = recipes(theirs, ours)
            found = known[key]
            if found is None:
                unmatched.append((shapes(theirs), wanted[call]))
                return theirs
            wrapper = Adapted.__new__(Adapted)
            _Adapted.__init__(wrapper, theirs, ours, found)
            return wrapper

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, author | Adapted)

    return Meta(author.__name__, (author,), {"__doc__": author.__doc__, "__module__": author.__module__})


class _Adapted(nn.Module):
    r"""The reference's parameters around the author's module."""

    def __init__(self, theirs: nn.Module, ours: nn.Module, found: dict[str, Recipe]) -> None:
        super().__init__()
        object.__setattr__(self, "_theirs", theirs)  # no submodule: its parameters are not ours
        object.__setattr__(self, "_recipes", found)
        for name, child in ours.named_children():
            if list(child.parameters()):
                self.add_module(name, child)
        for name, parameter in ours.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        self.train(theirs.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        ours = dict(self.named_parameters())
        computed = {name: recipe(ours) for name, recipe in self._recipes.items()}
        return functional_call(self._theirs, computed, args, kwargs)

    def train(self, mode: bool = True) -> _Adapted:
        self._theirs.train(mode)
        return super().train(mode)

    def _apply(self, fn: Any, recurse: bool = True) -> _Adapted:
        self._theirs._apply(fn)
        return super()._apply(fn, recurse)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_theirs"], name)


def recipes(theirs: nn.Module, ours: nn.Module) -> dict[str, Recipe] | None:
    r"""Find how each of the author's parameters comes from the reference's; None if no way is found.

    Every way that fits by shape, and by name where the name says what it is, is a candidate. Of several, the
    first is taken under which both modules agree on one input, else the first of all.
    """
    wanted = {name: tuple(p.shape) for name, p in theirs.named_parameters()}
    have = {name: tuple(p.shape) for name, p in ours.named_parameters()}
    options: list[list[Way]] = []
    for name, shape in wanted.items():
        role = role_of(name)
        fitting = [way for way in _ways(have) if way[2] == shape]
        fitting = [way for way in fitting if way[0] == role] or fitting
        if not fitting:
            return None
        options.append(fitting)
    found = list(itertools.islice(_choices(options, have), CANDIDATES))
    candidates = [dict(zip(wanted, choice, strict=True)) for choice in found]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    return next((each for each in candidates if _agree(theirs, ours, each)), candidates[0])


def _choices(options: list[list[Way]], have: dict[str, tuple[int, ...]]) -> Iterator[list[Recipe]]:
    r"""Choose a way for each of the author's parameters; each of the reference's is used up once."""
    every = {part for name in have for part in _parts(name)}
    steps = itertools.count()

    def choose(index: int, used: frozenset[str]) -> Iterator[list[Recipe]]:
        if index == len(options):
            if used == every:
                yield []
            return
        for _, sources, _, recipe in options[index]:
            parts = [part for name in sources for part in ([name] if "#" in name else _parts(name))]
            if next(steps) < STEPS and used.isdisjoint(parts):
                for rest in choose(index + 1, used.union(parts)):
                    yield [recipe, *rest]

    return choose(0, frozenset())


def _parts(name: str) -> list[str]:
    return [f"{name}#{index}" for index in range(3)] if role_of(name) == "qkv" else [name]


def _ways(have: dict[str, tuple[int, ...]]) -> list[Way]:
    r"""List what can be computed from the reference's parameters."""
    ways = []

    def add(role: str, sources: tuple[str, ...], shape: tuple[int, ...], recipe: Recipe) -> None:
        ways.append((role, sources, shape, recipe))
        if len(shape) == 2:  # x @ W
            ways.append((role, sources, shape[::-1], lambda p, recipe=recipe: recipe(p).mT))

    for name, shape in have.items():
        role = role_of(name)
        add(role, (name,), shape, lambda p, name=name: p[name])
        if role == "qkv":
            for part, index in (("q", 0), ("k", 1), ("v", 2)):
                third = (shape[0] // 3, *shape[1:])
                add(part, (f"{name}#{index}",), third, lambda p, n=name, i=index: p[n].chunk(3)[i])
    for kind in ("weight", "bias"):
        for joined in ("qkv", "kv", "qk"):
            names = tuple(f"{role}_proj.{kind}" for role in joined)
            if all(name in have for name in names):
                shapes = [have[name] for name in names]
                if len({shape[1:] for shape in shapes}) == 1:
                    rows = sum(shape[0] for shape in shapes)
                    add(joined, names, (rows, *shapes[0][1:]),
                        lambda p, names=names: torch.cat([p[name] for name in names]))  # fmt: skip
    return ways


def _agree(theirs: nn.Module, ours: nn.Module, found: dict[str, Recipe]) -> bool:
    r"""Tell whether both modules do the same on one input, with parameters of one draw."""
    generator = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    parameters = {name: draw(*p.shape) for name, p in ours.named_parameters()}
    inputs = tuple(draw(2, 3 + (i > 0), layer.in_features) for i, layer in enumerate(_inputs(ours)))
    with torch.no_grad():
        try:
            expected = functional_call(ours.eval(), parameters, inputs)
            computed = {name: recipe(parameters) for name, recipe in found.items()}
            mode, state = theirs.training, torch.get_rng_state()
            try:
                actual = functional_call(theirs.eval(), computed, inputs)
            finally:
                theirs.train(mode)
                torch.set_rng_state(state)
        except Exception:
            return False
    return isinstance(actual, Tensor) and actual.shape == expected.shape and torch.allclose(actual, expected)


def _inputs(ours: nn.Module) -> list[nn.Linear]:
    r"""Return the projections through which the arguments of `forward` go, one an argument."""
    import inspect

    parameters = inspect.signature(ours.forward).parameters.items()
    names = [name for name, p in parameters if p.annotation in (Tensor, "Tensor")]
    layers = dict(ours.named_children())
    if len(names) == 3:
        return [layers["q_proj"], layers["k_proj"], layers["v_proj"]]  # type: ignore[list-item]
    if len(names) == 2:
        return [layers["q_proj"], layers["k_proj"]]  # type: ignore[list-item]
    return [next(layer for layer in layers.values() if isinstance(layer, nn.Linear))]
