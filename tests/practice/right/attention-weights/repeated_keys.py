r"""repeat_interleave and matmul, torch's softmax with the hidden rows opened and closed again."""

import math

import torch

from llmcore.checks import check_finite, check_heads
from llmcore.masks import causal_mask, expand_mask


def attention_weights(query, key, attn_mask=None, *, is_causal=False, scale=None):
    check_heads(query, key)
    if scale is None:
        scale = query.shape[-1] ** -0.5
    check_finite(scale=scale)
    wide = torch.promote_types(query.dtype, torch.float32)
    q, k = query.to(wide), key.to(wide)
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    scores = (q * scale) @ k.transpose(-2, -1)
    if attn_mask is not None:
        mask = expand_mask(attn_mask, tuple(scores.shape), scores.device)
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(mask.logical_not(), -math.inf)
        else:
            scores = scores + mask.to(wide)
    if is_causal:
        scores = scores.masked_fill(~causal_mask(*scores.shape[-2:], device=scores.device), -math.inf)
    blind = (scores == -math.inf).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(blind, 0.0), dim=-1)
    return weights.masked_fill(blind, 0.0).to(query.dtype)
