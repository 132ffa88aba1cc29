r"""Guard clauses: wrong input is refused with its values and the rule, before anything is computed."""

import math

import torch
from torch import Tensor, nn


def check_positive(**sizes: int) -> None:
    r"""Refuse a size that is not an integer of at least 1.

    Args:
        **sizes: Named counts, lengths or widths.

    Raises:
        ValueError: If one of them is not an `int` (a `bool` is none), or is zero or negative.
    """
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name}={size!r} must be an integer of at least 1")


def check_divisible(**sizes: int) -> None:
    r"""Refuse two sizes of which the first is no multiple of the second.

    Args:
        **sizes: Exactly two named sizes: the dividend, then the divisor.

    Raises:
        ValueError: If one is not a positive integer, or the first is not divisible by the second.
    """
    check_positive(**sizes)
    (name, size), (by, divisor) = sizes.items()
    if size % divisor:
        raise ValueError(f"{name}={size} must be divisible by {by}={divisor}")


def check_probability(**rates: float) -> None:
    r"""Refuse a dropout rate outside [0, 1).

    Args:
        **rates: Named rates.

    Raises:
        ValueError: If a rate is negative, 1 or more, or not a number.
    """
    check_finite(**rates)
    for name, rate in rates.items():
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"{name}={rate} must lie in [0, 1)")


def check_floating(**tensors: Tensor) -> None:
    r"""Refuse tensors that are not real floating point, or that differ in dtype or device.

    Args:
        **tensors: Named tensors of any shape.

    Raises:
        ValueError: If one holds integers, booleans or complex numbers.
        ValueError: If their dtypes or their devices are not all the same.
    """
    first_name, first = next(iter(tensors.items()))
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(f"{name} must be floating point, got dtype {tensor.dtype}")
        if tensor.dtype != first.dtype:
            raise ValueError(
                f"{first_name} and {name} must share a dtype, got {first.dtype} and {tensor.dtype}"
            )
        if tensor.device != first.device:
            raise ValueError(
                f"{first_name} and {name} must share a device, got {first.device} and {tensor.device}"
            )


def check_input(projection: nn.Linear, **tensors: Tensor) -> None:
    r"""Refuse tensors that a projection cannot take.

    Args:
        projection: The layer that the tensors go through first.
        **tensors: Named tensors, expected (B, T, in_features).

    Raises:
        ValueError: If one does not have three dimensions, or has another width.
        ValueError: If one is on another device than the weight, or, outside of autocast, of another dtype.
    """
    weight, size = projection.weight, projection.in_features
    for name, tensor in tensors.items():
        if tensor.dim() != 3 or tensor.size(-1) != size:
            raise ValueError(f"{name} must have shape (batch, tokens, {size}), got {tuple(tensor.shape)}")
        if tensor.device != weight.device:
            raise ValueError(f"{name} is on {tensor.device}, the module is on {weight.device}")
        if tensor.dtype != weight.dtype and not torch.is_autocast_enabled(weight.device.type):
            raise ValueError(f"{name} must have the module's dtype {weight.dtype}, got {tensor.dtype}")


def check_finite(**numbers: float) -> None:
    r"""Refuse a setting that is not a finite real number.

    Args:
        **numbers: Named numbers.

    Raises:
        ValueError: If one is no `int` or `float` (a `bool` or a tensor is none), infinite or NaN.
    """
    for name, number in numbers.items():
        if not isinstance(number, int | float) or isinstance(number, bool) or not math.isfinite(number):
            raise ValueError(f"{name}={number!r} must be a finite number")


def check_heads(query: Tensor, key: Tensor, value: Tensor | None = None) -> None:
    r"""Refuse query, key and value that attention cannot take.

    Args:
        query: (B, H, L, D).
        key: (B, K, S, D) with H a multiple of K.
        value: (B, K, S, Dv), or None where only weights are wanted.

    Raises:
        ValueError: If dtypes or devices differ, or a tensor is not floating point.
        ValueError: If a tensor does not have four dimensions, or has no head, token or feature.
        ValueError: If batch sizes, head_dim, key lengths or kv heads do not fit, or H is no multiple of K.
    """
    tensors = {"query": query, "key": key} | ({} if value is None else {"value": value})
    check_floating(**tensors)
    for name, tensor in tensors.items():
        if tensor.dim() != 4 or 0 in tensor.shape[1:]:
            shape = tuple(tensor.shape)
            raise ValueError(
                f"{name} must be (batch, heads, tokens, width), no axis of them empty, got {shape}"
            )
        if tensor.size(0) != query.size(0):
            raise ValueError(
                f"query and {name} must share a batch size, got {query.size(0)} and {tensor.size(0)}"
            )
    if query.size(-1) != key.size(-1):
        raise ValueError(f"query and key must share head_dim, got {query.size(-1)} and {key.size(-1)}")
    if value is not None and value.shape[1:3] != key.shape[1:3]:
        shapes = f"{tuple(key.shape)} and {tuple(value.shape)}"
        raise ValueError(f"key and value must share heads and tokens, got {shapes}")
    check_divisible(num_heads=query.size(1), num_kv_heads=key.size(1))
