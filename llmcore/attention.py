r"""Scaled dot-product attention, the readable version: the whole score matrix is held in memory."""

import math

import torch
from torch import Tensor

from llmcore.checks import check_finite, check_floating, check_heads, check_probability
from llmcore.masks import causal_mask, expand_mask
from llmcore.softmax import softmax, upcast


def attention_weights(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    r"""$P = \mathrm{softmax}(Q K^\top / \sqrt{D} + M)$, the softmax over the keys.

    H query heads share K key heads: query head $h$ reads key head $\lfloor h / (H / K) \rfloor$. The queries
    are grouped; the keys are not copied.

    Args:
        query: (B, H, L, D).
        key: (B, K, S, D) with H a multiple of K.
        attn_mask: Boolean (True = may attend) or additive, of shape (S,), (L, S) or broadcastable to (B, H,
            L, S).
        is_causal: Hide later keys, aligned bottom-right; may be combined with `attn_mask`.
        scale: Factor on the scores; 1/sqrt(D) if not given.

    Returns:
        Weights (B, H, L, S) in the dtype of `query`, computed in float32 at least; each row sums to 1, or is
        zero where every key is hidden.

    Raises:
        ValueError: If shapes, dtypes or devices do not fit, H is no multiple of K, or the mask is ambiguous.
        ValueError: If `scale` is not a finite number.

    Reference:
        Vaswani et al., Attention Is All You Need, eq. 1, arXiv:1706.03762.
    """
    check_heads(query, key)
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    check_finite(scale=scale)
    grouped = (upcast(query) * scale).unflatten(1, (key.size(1), -1))  # (B, K, H/K, L, D)
    scores = torch.einsum("bkgld,bksd->bkgls", grouped, upcast(key)).flatten(1, 2)  # (B, H, L, S)
    if is_causal:
        scores = scores.masked_fill(
            ~causal_mask(scores.size(2), scores.size(3), device=scores.device), -torch.inf
        )
    if attn_mask is not None:
        scores = apply_mask(scores, attn_mask)
    return softmax(scores, dim=-1).to(query.dtype)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    dropout_p: float = 0.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""$\mathrm{softmax}(Q K^\top / \sqrt{D} + M)\, V$: each query takes a weighted mean of the values.

    Args:
        query: (B, H, L, D).
        key: (B, K, S, D) with H a multiple of K.
        value: (B, K, S, Dv).
        attn_mask: Boolean (True = may attend) or additive, of shape (S,), (L, S) or broadcastable to (B, H,
            L, S).
        is_causal: Hide later keys, aligned bottom-right; may be combined with `attn_mask`.
        scale: Factor on the scores; 1/sqrt(D) if not given.
        dropout_p: Share of the weights that is set to zero, the rest scaled by 1/(1 - p). The caller passes 0
            in evaluation.
        generator: Source of the dropout's randomness.

    Returns:
        (B, H, L, Dv) in the dtype of `query`, computed in float32 at least; zeros where every key is hidden.

    Raises:
        ValueError: If shapes, dtypes or devices do not fit, H is no multiple of K, the mask is ambiguous, or
            `dropout_p` is outside [0, 1).

    Reference:
        Vaswani et al., Attention Is All You Need, eq. 1, arXiv:1706.03762. Equal to
        `torch.nn.functional.scaled_dot_product_attention` (`enable_gqa` for H != K), whose causal mask is
        top-left.
    """
    check_heads(query, key, value)
    check_probability(dropout_p=dropout_p)
    weights = attention_weights(
        upcast(query), upcast(key), attn_mask, is_causal=is_causal, scale=scale
    )  # (B, H, L, S)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p, generator)
    grouped = weights.unflatten(1, (value.size(1), -1))  # (B, K, H/K, L, S)
    output = torch.einsum("bkgls,bksd->bkgld", grouped, upcast(value)).flatten(1, 2)  # (B, H, L, Dv)
    return output.to(query.dtype)


def apply_mask(scores: Tensor, attn_mask: Tensor) -> Tensor:
    r"""Hide the keys that a mask hides, before the softmax.

    Args:
        scores: (B, H, L, S).
        attn_mask: Boolean (True = may attend): hidden scores become -inf. Floating point: added to the
            scores.

    Returns:
        (B, H, L, S) in the dtype of `scores`.

    Raises:
        ValueError: If the mask is on another device, ambiguous, or does not broadcast.
    """
    batch, heads, q_len, k_len = scores.shape
    mask = expand_mask(attn_mask, (batch, heads, q_len, k_len), scores.device)
    return (
        scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask.to(scores.dtype)
    )


def dropout(x: Tensor, p: float, generator: torch.Generator | None = None) -> Tensor:
    r"""Inverted dropout: zero each entry with probability p and divide the others by 1 - p, so that the mean
    is kept.

    Args:
        x: Any shape.
        p: Probability of a zero, in [0, 1).
        generator: Source of randomness, drawn from in float32: in bfloat16 a draw is often exactly 0.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        ValueError: If `x` is not floating point, or `p` is outside [0, 1).

    Reference:
        Srivastava et al., Dropout, JMLR 15 (2014), section 10.
    """
    check_floating(x=x)
    check_probability(p=p)
    keep = torch.rand(x.shape, generator=generator, device=x.device) >= p
    return x.masked_fill(~keep, 0.0) / (1.0 - p)
