r"""What a definition does on a few fixed inputs, by which a wrong answer is told from another.

A module of this folder has one function an exercise, named after it (`gqa`, `causal_mask`). It is given `see`
and the definitions, and looks at them: `see("causal", lambda: attend(q, k, v, is_causal=True))`. Two answers
that do the same everywhere are the same mistake, however they are written.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten

from practice.catalogue import Exercise

Outcome = list[Any] | str  # flat values, or the name of the error
TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def tensor(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64, spread: float = 1.0) -> Tensor:
    r"""Draw a tensor that is the same every time."""
    return (
        torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * spread
    ).to(dtype)


def drawn(module: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    r"""Give every parameter values that are the same every time, far from uniform scores and zero biases."""
    for seed, (_, parameter) in enumerate(sorted(module.named_parameters())):
        parameter.data = tensor(*parameter.shape, seed=100 + seed) * 0.3
    return module.to(dtype).eval()


class See:
    r"""Keeps what was seen, by its label."""

    def __init__(self) -> None:
        self.seen: dict[str, Outcome] = {}

    def __call__(self, label: str, call: Callable[[], Any]) -> None:
        r"""See what a call gives: tensors, numbers, nested as they may be; or the class of its error."""
        assert label not in self.seen, label
        try:
            result = call()
        except Exception as error:
            self.seen[label] = type(error).__name__
            return
        flat, structure = tree_flatten(result)
        # a named tuple of one's own is as good as ours
        shape = str(structure) if isinstance(result, dict) else str(len(flat))
        self.seen[label] = [shape, *(x.detach().clone() if isinstance(x, Tensor) else x for x in flat)]

    def gradients(self, label: str, function: Callable[..., Tensor], *inputs: Tensor) -> None:
        r"""See the value of a function and its gradient with respect to each input."""

        def call() -> list[Tensor]:
            leaves = [x.detach().clone().requires_grad_() for x in inputs]
            output = function(*leaves)
            cotangent = tensor(*output.shape, seed=11).to(output.dtype)
            return [output, *torch.autograd.grad(output, leaves, cotangent, allow_unused=True)]

        self(label, call)


def look(exercise: Exercise, definitions: list[Any]) -> dict[str, Outcome]:
    r"""Return what the definitions of an answer do, by the labels of the exercise's probes."""
    probes = importlib.import_module(f"practice.probes.{exercise.module}")
    see = See()
    state = torch.get_rng_state()
    torch.manual_seed(0)
    try:
        getattr(probes, exercise.name.replace("-", "_"))(see, *definitions)
    finally:
        torch.set_rng_state(state)
    return see.seen


def equal(one: Outcome, other: Outcome) -> bool:
    r"""Tell whether two outcomes are the same, but for rounding."""
    if isinstance(one, str) or isinstance(other, str):
        return type(one) is type(other) and one == other
    return len(one) == len(other) and all(map(_same, one, other))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
            return False
        if a.device.type == "meta" or not a.is_floating_point():
            return a.device.type == "meta" or torch.equal(a, b)
        largest = max(
            [1.0, *b[b.isfinite()].abs().max().reshape(1).tolist()] if b.isfinite().any() else [1.0]
        )
        allowed = TOLERANCE.get(a.dtype, 0.0)
        return torch.allclose(a.double(), b.double(), rtol=allowed, atol=allowed * largest, equal_nan=True)
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-7 * max(1.0, abs(a), abs(b)) or (a != a and b != b) or a == b
    return type(a) is type(b) and a == b


def diagnose(
    answer: dict[str, Outcome], right: dict[str, Outcome], wrong: dict[str, dict[str, Outcome]]
) -> list[str]:
    r"""Return the known mistakes that explain an answer, the one that explains most first.

    A mistake explains an answer where every deviation of the mistake is a deviation of the answer, with the
    same result. Of several, those are left out whose deviations another one covers.

    Args:
        answer: What the answer does.
        right: What the reference does.
        wrong: What each known mistake does.
    """
    explained = {}
    for name, seen in wrong.items():
        deviations = {label for label in right if not equal(seen[label], right[label])}
        if deviations and all(label in answer and equal(answer[label], seen[label]) for label in deviations):
            explained[name] = deviations
    names = sorted(explained, key=lambda name: -len(explained[name]))
    return [n for n in names if not any(explained[n] < explained[m] for m in names)]
