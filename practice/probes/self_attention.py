r"""Looks at the four rungs: the formula, the cut into three and into heads, masks, dropout, wrong sizes."""

from collections.abc import Callable

import torch
from torch import nn

from practice.probes import See, drawn, tensor

B, L, E, H = 2, 5, 12, 3


def _look(see: See, make: Callable[..., nn.Module], *sizes: int) -> None:
    r"""Look at what holds for all rungs."""
    x = tensor(B, L, E)
    see("sizes of the parameters", lambda: sum(p.numel() for p in make(*sizes).parameters()))
    see.gradients("plain", lambda x: drawn(make(*sizes))(x), x)

    def gradients():
        module = drawn(make(*sizes))
        return list(
            torch.autograd.grad(module(x).square().sum(), list(module.parameters()), allow_unused=True)
        )

    see("gradients of the parameters", gradients)
    see("one sequence", lambda: drawn(make(*sizes))(x[:1]))
    see("one token", lambda: drawn(make(*sizes))(x[:, :1]))
    see("dtype", lambda: str(drawn(make(*sizes), torch.bfloat16)(x.bfloat16()).dtype))
    see("large in float16", lambda: drawn(make(*sizes), torch.float16)(x.half() * 300).isfinite().all())
    for shape in ((B, L, E + 1), (L, E), (B, 1, L, E)):
        see(f"input {shape}", lambda shape=shape: drawn(make(*sizes))(tensor(*shape)).shape)
    for width in (0, -4, 2.5):
        see(f"width {width}", lambda width=width: bool(make(width, *sizes[1:])))


def _options(see: See, make: Callable[..., nn.Module], *sizes: int) -> None:
    r"""Look at masks, dropout and biases, which the upper rungs have."""
    x = tensor(B, L, E)
    see("causal", lambda: drawn(make(*sizes))(x, is_causal=True))
    see("boolean mask", lambda: drawn(make(*sizes))(x, torch.arange(L) < 3))
    see("additive mask", lambda: drawn(make(*sizes))(x, tensor(L, L, seed=5)))
    see("causal and mask", lambda: drawn(make(*sizes))(x, torch.arange(L) != 1, is_causal=True))
    see("mask of three axes", lambda: drawn(make(*sizes))(x, torch.ones(B, L, L).bool()).shape)
    see("biases", lambda: sum(p.numel() for p in make(*sizes, bias=True).parameters()))
    see("with biases", lambda: drawn(make(*sizes, bias=True))(x))

    def dropped(training: bool) -> bool:
        module = drawn(make(*sizes, dropout=0.5)).train(training)
        return torch.equal(module(x), module(x))

    see("dropout in training", lambda: dropped(True))
    see("dropout in evaluation", lambda: dropped(False))

    def zeroed() -> bool:
        # over 40 keys no query loses all
        return bool((drawn(make(*sizes, dropout=0.5)).train()(tensor(B, 40, E)) == 0).any())

    see("zeros in the output", zeroed)
    for rate in (-0.1, 1.0):
        see(f"dropout {rate}", lambda rate=rate: bool(make(*sizes, dropout=rate)))


def bare_self_attention(see: See, BareSelfAttention) -> None:
    r"""The formula."""
    _look(see, BareSelfAttention, E)


def fused_self_attention(see: See, FusedSelfAttention) -> None:
    r"""One matrix for three."""
    _look(see, FusedSelfAttention, E)


def self_attention(see: See, SelfAttention) -> None:
    r"""One head with everything."""
    _look(see, SelfAttention, E)
    _options(see, SelfAttention, E)


def multi_head_self_attention(see: See, MultiHeadSelfAttention) -> None:
    r"""Many heads."""
    _look(see, MultiHeadSelfAttention, E, H)
    _options(see, MultiHeadSelfAttention, E, H)
    see("one head", lambda: drawn(MultiHeadSelfAttention(E, 1))(tensor(B, L, E)))
    see(
        "as many tokens as heads",
        lambda: drawn(MultiHeadSelfAttention(E, H))(tensor(B, H, E), torch.ones(H, H).tril().bool()),
    )
    for heads in (5, 24, 0):
        see(f"{heads} heads", lambda heads=heads: bool(MultiHeadSelfAttention(E, heads)))
