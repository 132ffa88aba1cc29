r"""The softmax family, safe for large scores, low precision and rows that are masked from end to end."""

import torch
from torch import Tensor

from llmcore.checks import check_floating


def upcast(x: Tensor) -> Tensor:
    r"""Bring a tensor to the dtype that sums are taken in: float64 stays, everything else becomes float32.

    Args:
        x: Any shape, floating point.

    Returns:
        Tensor of the same shape in float32 or float64; `x` itself where nothing changes.
    """
    return x if x.dtype == torch.float64 else x.float()


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    r"""$\mathrm{softmax}(x)_i = e^{x_i - m} / \sum_j e^{x_j - m}$ with $m = \max_j x_j$.

    The maximum cancels in the fraction, so it changes no value and no gradient; it only keeps $e^{x}$ from
    overflowing (float32 beyond 88.7, float16 beyond 11.1). A row that is $-\infty$ from end to end gives
    zeros.

    Args:
        x: Scores of any shape, in nats; a scalar is a row of one.
        dim: The axis that sums to 1.

    Returns:
        Tensor of the shape and dtype of `x`; computed in float32 at least.

    Raises:
        ValueError: If `x` is not floating point, `dim` is not one of its axes, or that axis is empty.

    Reference:
        Equal to `torch.softmax`, except for fully masked rows, where torch gives NaN.
    """
    check_softmax_input(x, dim)
    scores = upcast(x)
    row_max = scores.detach().amax(dim, keepdim=True)
    row_max = row_max.masked_fill(row_max == -torch.inf, 0.0)  # -inf - (-inf) would be NaN
    exp = (scores - row_max).exp()
    total = exp.sum(dim, keepdim=True)
    return (exp / total.masked_fill(total == 0.0, 1.0)).to(x.dtype)


def logsumexp(x: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    r"""$\log \sum_j e^{x_j} = m + \log \sum_j e^{x_j - m}$ with $m = \max_j x_j$.

    The largest term of the sum is $e^0 = 1$, so the logarithm never sees an overflow or a zero. A row of
    $-\infty$ gives $-\infty$ with zero gradient.

    Args:
        x: Scores of any shape, in nats; a scalar is a row of one.
        dim: The axis that is summed over.
        keepdim: Keep that axis with length 1.

    Returns:
        Tensor of the dtype of `x`, without the axis `dim`; computed in float32 at least.

    Raises:
        ValueError: If `x` is not floating point, `dim` is not one of its axes, or that axis is empty.

    Reference:
        Equal to `torch.logsumexp`.
    """
    check_softmax_input(x, dim)
    scores = upcast(x)
    row_max = scores.detach().amax(dim, keepdim=True)
    row_max = row_max.masked_fill(row_max.isinf(), 0.0)
    total = (scores - row_max).exp().sum(dim, keepdim=True)
    empty = total == 0.0
    result = (total.masked_fill(empty, 1.0).log() + row_max).masked_fill(empty, -torch.inf)
    return (result if keepdim or x.dim() == 0 else result.squeeze(dim)).to(x.dtype)


def log_softmax(x: Tensor, dim: int = -1) -> Tensor:
    r"""$\log \mathrm{softmax}(x)_i = x_i - \log \sum_j e^{x_j}$.

    Not `log(softmax(x))`: a probability below 1e-45 is 0 in float32 and its logarithm $-\infty$, while this
    form gives the true value. A row of $-\infty$ stays $-\infty$.

    Args:
        x: Scores of any shape, in nats; a scalar is a row of one.
        dim: The axis whose probabilities sum to 1.

    Returns:
        Tensor of the shape and dtype of `x`; computed in float32 at least.

    Raises:
        ValueError: If `x` is not floating point, `dim` is not one of its axes, or that axis is empty.

    Reference:
        Equal to `torch.log_softmax`, except for fully masked rows, where torch gives NaN.
    """
    check_softmax_input(x, dim)
    scores = upcast(x)
    row_max = scores.detach().amax(dim, keepdim=True)
    shifted = scores - row_max.masked_fill(row_max == -torch.inf, 0.0)  # x - lse would round
    lse = logsumexp(shifted, dim, keepdim=True)
    return (shifted - lse.masked_fill(lse == -torch.inf, 0.0)).to(x.dtype)


def check_softmax_input(x: Tensor, dim: int) -> None:
    r"""Refuse what no softmax is defined for.

    Args:
        x: Scores of any shape.
        dim: The axis to normalise.

    Raises:
        ValueError: If `x` is not floating point, `dim` is not one of its axes, or that axis is empty.
    """
    check_floating(x=x)
    axes = max(x.dim(), 1)
    if not isinstance(dim, int) or isinstance(dim, bool) or not -axes <= dim < axes:
        raise ValueError(f"dim={dim} must name one of the {axes} axes of x, whose shape is {tuple(x.shape)}")
    if x.dim() and x.size(dim) == 0:
        raise ValueError(f"x must not be empty along dim={dim}, got shape {tuple(x.shape)}")
