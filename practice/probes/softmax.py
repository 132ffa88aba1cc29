r"""Looks at the softmax family: axes, large scores, hidden entries and rows, precision, wrong input."""

from collections.abc import Callable

import torch
from torch import Tensor

from practice.probes import See, tensor

INF = torch.inf


def _rows() -> Tensor:
    r"""Make a row that is hidden between two that are not; new each time, an answer may write into it."""
    return torch.tensor([[0.3, -INF, 1.2], [-INF, -INF, -INF], [-INF, 0.5, 7.0]], dtype=torch.float64)


def _rounds_once(f: Callable[..., Tensor], x: Tensor) -> bool:
    r"""Tell whether results in low precision are, nearly all, those of float64 rounded."""
    return bool((f(x, -1).to(x.dtype) != f(x.double(), -1).to(x.dtype)).double().mean() < 0.05)


def _family(see: See, f: Callable[..., Tensor]) -> None:
    r"""Look at what holds for all three."""
    x = tensor(2, 3, 4, spread=2.0)
    see.gradients("plain", f, tensor(3, 5, spread=2.0))
    see.gradients("axis", lambda x: f(x, 1), x)
    see("square", lambda: f(tensor(4, 4), -1))
    see("axis by default", lambda: f(tensor(4, 4)))
    see("a scalar", lambda: f(torch.tensor(2.5)))
    far = torch.tensor([[1000.0, 1001.0, 1003.0], [-1000.0, -1001.0, -999.0]])
    see("large", lambda: f(far[:1] * 1.0, -1))
    see("rows far apart", lambda: f(far.double(), -1))
    see("differences of large scores", lambda: f(far[:1] * 100.0 + 0.015625, -1) * 20)
    see("tiny probabilities", lambda: f(torch.tensor([0.0, -200.0, -1000.0])))
    see("hidden entries", lambda: f(_rows()[[0, 2]], -1))
    see("hidden row", lambda: f(_rows(), -1))
    see.gradients("gradient beside a hidden row", lambda x: f(x, -1)[[0, 2]].nan_to_num(neginf=0.0), _rows())
    see("plus infinity", lambda: f(torch.tensor([1.0, INF, 2.0])))
    low = tensor(40, 30, dtype=torch.bfloat16)
    see("bfloat16", lambda: _rounds_once(f, low))
    see("float16", lambda: _rounds_once(f, low.half()))
    see("dtype", lambda: [str(f(low.to(each), -1).dtype) for each in (torch.bfloat16, torch.float16)])

    def left_alone():
        before = far.clone()
        f(far, -1)
        return torch.equal(before, far)

    see("input left alone", left_alone)
    see("integers", lambda: f(torch.tensor([1, 2, 3])))
    see("no such axis", lambda: f(torch.zeros(2, 3), 2))
    see("an empty axis", lambda: f(torch.zeros(2, 0), 1))


def softmax(see: See, softmax) -> None:
    r"""The weights."""
    _family(see, softmax)


def logsumexp(see: See, logsumexp) -> None:
    r"""The logarithm of the sum: besides, which axes are left."""
    _family(see, logsumexp)
    see("keepdim", lambda: logsumexp(tensor(2, 3, 4), 1, keepdim=True))
    see("an axis of one", lambda: logsumexp(tensor(1, 3, 4), -1).shape)
    pairs = torch.stack([torch.zeros(64), torch.arange(64) / -32], -1)  # the maximum, 0, adds no rounding
    see("exponentials are not rounded", lambda: _rounds_once(logsumexp, pairs.bfloat16()))


def log_softmax(see: See, log_softmax) -> None:
    r"""The logarithms of the weights."""
    _family(see, log_softmax)


def upcast(see: See, upcast) -> None:
    r"""The dtype, the values, the gradient."""
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        see(f"{dtype}", lambda dtype=dtype: upcast(tensor(5, dtype=dtype)))
    see("gradient", lambda: upcast(tensor(5).requires_grad_()).requires_grad)
