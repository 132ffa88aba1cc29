r"""Heads folded into the batch, the additive mask inside baddbmm, expand for the groups."""

import math

import torch

from llmcore.attention import dropout
from llmcore.checks import check_finite, check_heads, check_probability
from llmcore.masks import additive_mask, causal_mask, expand_mask
from llmcore.softmax import softmax


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, *, is_causal=False, scale=None, dropout_p=0.0, generator=None
):
    check_heads(query, key, value)
    check_probability(dropout_p=dropout_p)
    B, H, L, D = query.shape
    K, S, Dv = value.shape[1:]
    scale = 1 / math.sqrt(D) if scale is None else scale
    check_finite(scale=scale)
    dtype = torch.promote_types(query.dtype, torch.float32)

    def fold(x, width):
        x = x.to(dtype)
        if x.size(1) != H:
            x = x.unsqueeze(2).expand(B, K, H // K, -1, width)
        return x.reshape(B * H, -1, width)

    bias = torch.zeros(1, 1, 1, 1, dtype=dtype, device=query.device).expand(B, H, L, S)
    if attn_mask is not None:
        mask = expand_mask(attn_mask, (B, H, L, S), query.device)
        bias = bias + (additive_mask(mask, dtype) if mask.dtype == torch.bool else mask.to(dtype))
    if is_causal:
        bias = bias + additive_mask(causal_mask(L, S, device=query.device), dtype)
    scores = torch.baddbmm(bias.reshape(B * H, L, S), fold(query, D) * scale, fold(key, D).transpose(1, 2))
    weights = softmax(scores, dim=-1)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p, generator)
    out = torch.bmm(weights, fold(value, Dv))
    return out.view(B, H, L, Dv).to(query.dtype)
