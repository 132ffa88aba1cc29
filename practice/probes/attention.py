r"""Looks at attention: scale, axes, masks of every kind, rows without keys, groups, precision, dropout."""

from collections.abc import Callable

import torch
from torch import Tensor

from practice.probes import See, tensor

INF = torch.inf
B, H, K, L, S, D, DV = 2, 6, 2, 3, 5, 4, 7
EXACT = torch.float64


def _inputs(dtype: torch.dtype = EXACT, k_len: int = S) -> tuple[Tensor, Tensor, Tensor]:
    shapes = (B, H, L, D), (B, K, k_len, D), (B, K, k_len, DV)
    q, k, v = (tensor(*shape, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes, start=1))
    return q, k, v


def _flags(*shape: int) -> Tensor:
    flags = tensor(*shape, seed=4) < 0.3
    flags[..., 0] = True
    return flags


def _look(see: See, attend: Callable[..., Tensor]) -> None:
    r"""Look at what holds for the weights and for the output; `attend` takes q, k, v and the options."""
    q, k, v = _inputs()
    see.gradients("plain", attend, q, k, v)
    see.gradients("one kv head, one query", attend, q[:, :, :1], k[:, :1], v[:, :1])
    see.gradients("boolean mask", lambda q, k, v: attend(q, k, v, _flags(L, S)), q, k, v)
    see("boolean mask of the batch", lambda: attend(q, k, v, _flags(B, 1, 1, S)))
    bias = tensor(L, S, seed=5).masked_fill(~_flags(L, S), -INF)
    see.gradients("additive mask", attend, q, k, v, bias)
    zeros = torch.zeros(L, S, dtype=EXACT).masked_fill(~_flags(L, S), -INF)
    see("additive mask without a bias", lambda: attend(q, k, v, zeros))
    see("causal", lambda: attend(q, k, v, is_causal=True))
    square = _inputs(k_len=L)
    see("causal and square", lambda: attend(*square, is_causal=True))
    see("causal, one query", lambda: attend(q[:, :, :1], k, v, is_causal=True))
    see("causal and mask", lambda: attend(q, k, v, torch.arange(S) != 1, is_causal=True))
    see("causal and additive mask", lambda: attend(q, k, v, tensor(L, S, seed=5), is_causal=True))
    hidden = _flags(L, S)
    hidden[1] = False
    see("hidden row", lambda: attend(q, k, v, hidden))
    see.gradients("gradient beside a hidden row", lambda q, k, v: attend(q, k, v, hidden)[:, :, ::2], q, k, v)
    see("scale", lambda: attend(q, k, v, scale=0.3))
    see("scale 0", lambda: attend(q, k, v, scale=0.0))
    see("scale 0 and mask", lambda: attend(q, k, v, hidden, scale=0.0))
    see("scale 1 and additive mask", lambda: attend(q, k, v, bias, scale=1.0))
    high = k.clone()
    high[:, :, ~_flags(S)] = 1e6
    see("hidden keys far above", lambda: attend(q.abs() + 0.5, high, v, _flags(S)))
    one = torch.ones(1, 1, 1, 1, dtype=EXACT)
    low, values = (torch.tensor(x, dtype=EXACT).view(1, 1, 3, 1) for x in ([1, 0, 1], [2, 100, 4]))
    middle = torch.tensor([True, False, True])
    for depth in (2e4, 3e9):
        see(f"visible keys at -{depth:g}", lambda d=depth: attend(-d * one, low, values, middle, scale=1.0))
    for dtype in (torch.float16, torch.bfloat16):
        see(f"{dtype}", lambda dtype=dtype: str(attend(*_inputs(dtype)).dtype))
        see(f"{dtype} values", lambda dtype=dtype: attend(*_inputs(dtype)).double().bfloat16())
    big = torch.full((1, 1, 2, 8), 120.0, dtype=torch.float16)
    see("products beyond float16", lambda: attend(big, big, big).double())
    for name, changed in {
        "three axes": (q[0], k, v),
        "another width": (q, k[..., :3], v),
        "heads that do not divide": (q, k[:, :1].repeat(1, 4, 1, 1), v[:, :1].repeat(1, 4, 1, 1)),
        "dtypes that differ": (q, k.float(), v),
        "integers": (q.long(), k.long(), v.long()),
    }.items():
        see(name, lambda changed=changed: attend(*changed).shape)
    for shape in ((B, S), (B, L, S), (S, L)):
        see(f"mask {shape}", lambda shape=shape: attend(q, k, v, torch.ones(shape, dtype=torch.bool)).shape)
    see("infinite scale", lambda: attend(q, k, v, scale=INF).shape)


def attention_weights(see: See, attention_weights) -> None:
    r"""The weights."""
    _look(see, lambda q, k, v, *mask, **options: attention_weights(q, k, *mask, **options))


def sdpa(see: See, scaled_dot_product_attention) -> None:
    r"""The output; besides, values of another length, and dropout."""
    _look(see, scaled_dot_product_attention)
    q, k, v = _inputs()
    see("values of another length", lambda: scaled_dot_product_attention(q, k, v[:, :, :4]).shape)
    see("values of another dtype", lambda: scaled_dot_product_attention(q, k, v.float()).shape)
    flat = torch.zeros(2, 4, 20, 3, dtype=EXACT)
    eye = torch.eye(20, dtype=EXACT).expand(2, 4, -1, -1)

    def dropped(seed: int, value: Tensor = eye, mask: Tensor | None = None) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return scaled_dot_product_attention(flat, flat, value, mask, dropout_p=0.2, generator=generator) * 20

    see("what dropout leaves", lambda: dropped(1).max())
    see("how much is dropped", lambda: ((dropped(1) == 0).double().mean() * 10).round())
    see("dropout leaves hidden keys hidden", lambda: dropped(1, mask=torch.arange(20) < 5)[..., 5:].max())
    ones = torch.ones(2, 4, 20, 2, dtype=EXACT)
    see(
        "dropout is on the weights",
        lambda: bool((dropped(1, ones)[..., 0] == dropped(1, ones)[..., 1]).all()),
    )

    def repeated():
        torch.manual_seed(1)
        first = dropped(7)
        torch.manual_seed(2)
        return torch.equal(first, dropped(7))

    see("the generator decides", repeated)
    for rate in (-0.1, 1.0, float("nan")):
        see(f"rate {rate}", lambda rate=rate: scaled_dot_product_attention(q, k, v, dropout_p=rate).shape)


def apply_mask(see: See, apply_mask) -> None:
    r"""Both kinds of masks, their dtypes, the scores afterwards, masks that do not fit."""
    scores = tensor(2, 3, 4, 5)
    flags = _flags(4, 5)
    bias = tensor(4, 5, seed=6).masked_fill(~flags, -INF)
    see.gradients("boolean", lambda x: apply_mask(x, flags).nan_to_num(neginf=0.0), scores)
    see("hidden", lambda: apply_mask(scores.clone(), flags)[..., ~flags])
    see("visible", lambda: apply_mask(scores.clone(), flags)[..., flags])
    see("a row hidden", lambda: apply_mask(scores.clone(), torch.zeros(5, dtype=torch.bool)))
    see("boolean over the batch", lambda: apply_mask(scores.clone(), _flags(2, 1, 1, 5)))
    see("additive", lambda: apply_mask(scores.clone(), bias))
    see.gradients("gradient of a bias", apply_mask, scores, tensor(4, 5, seed=6))
    see("float16 scores", lambda: apply_mask(scores.half(), flags))
    see("a wider mask", lambda: str(apply_mask(scores.half(), bias.float()).dtype))

    def left_alone(mask: Tensor) -> bool:
        given = scores.clone()
        apply_mask(given, mask)
        return torch.equal(given, scores)

    see("scores left alone", lambda: left_alone(flags))
    see("scores left alone by a bias", lambda: left_alone(bias))
    for shape in ((4,), (1,), (2, 5), (2, 4, 5), (3, 4, 5), (5, 4), (4, 1)):
        see(f"mask {shape}", lambda shape=shape: apply_mask(scores.clone(), _flags(*shape)).shape)
    see("a square mask of the batch", lambda: apply_mask(tensor(4, 4, 4, 5), _flags(4, 4, 5)).shape)
    see("integers", lambda: apply_mask(scores.clone(), torch.ones(4, 5, dtype=torch.long)).shape)


def dropout(see: See, dropout) -> None:
    r"""The share that is dropped, what is left, the draws, wrong rates."""

    def draw(p: float, seed: int = 1, shape: tuple[int, ...] = (40, 50)) -> Tensor:
        return dropout(torch.ones(shape, dtype=EXACT), p, torch.Generator().manual_seed(seed))

    see("what is left", lambda: draw(0.2).max())
    see("how much is dropped", lambda: ((draw(0.2) == 0).double().mean() * 10).round())
    see("rate 0", lambda: dropout(tensor(3, 4), 0.0))
    see("rows differ", lambda: bool((draw(0.5)[0] == draw(0.5)[1]).all()))

    def twice(seed: int | None) -> bool:
        torch.manual_seed(1)
        first = draw(0.5, seed) if seed else dropout(torch.ones(99), 0.5)
        torch.manual_seed(2)
        return torch.equal(first, draw(0.5, seed) if seed else dropout(torch.ones(99), 0.5))

    see("the generator decides", lambda: twice(7))
    see("without a generator the global seed does", lambda: twice(None))
    see("dtype", lambda: str(dropout(torch.ones(9, dtype=torch.bfloat16), 0.5).dtype))

    def gradient() -> bool:
        x = torch.ones(99, dtype=EXACT, requires_grad=True)
        y = dropout(x, 0.5)
        return torch.equal(torch.autograd.grad(y.sum(), x)[0], y)

    see("gradient", gradient)

    def left_alone() -> bool:
        x = torch.ones(99)
        dropout(x, 0.5)
        return bool((x == 1).all())

    see("input left alone", left_alone)
    for rate in (-0.1, 1.0, 1.5):
        see(f"rate {rate}", lambda rate=rate: dropout(torch.ones(3), rate).shape)
    see("integers", lambda: dropout(torch.ones(3, dtype=torch.long), 0.5).shape)
