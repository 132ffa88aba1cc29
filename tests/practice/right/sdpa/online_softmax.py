r"""Online softmax: one key after the other, with a running maximum, sum and weighted mean."""

import torch

from llmcore.attention import apply_mask, dropout
from llmcore.checks import check_finite, check_heads, check_probability
from llmcore.masks import causal_mask
from llmcore.softmax import upcast


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, *, is_causal=False, scale=None, dropout_p=0.0, generator=None
):
    check_heads(query, key, value)
    check_probability(dropout_p=dropout_p)
    if scale is None:
        scale = query.size(-1) ** -0.5
    check_finite(scale=scale)
    K, S = key.shape[1:3]
    H = query.size(1)
    q = upcast(query) * scale
    head = torch.arange(H, device=q.device) // (H // K)
    k, v = upcast(key)[:, head], upcast(value)[:, head]
    scores = q @ k.mT
    if attn_mask is not None:
        scores = apply_mask(scores, attn_mask)
    if is_causal:
        scores = scores.masked_fill(~causal_mask(q.size(2), S, device=q.device), -torch.inf)
    keep = torch.ones_like(scores.detach())
    if dropout_p > 0:
        keep = dropout(keep, dropout_p, generator)
    best = torch.full_like(scores[..., :1].detach(), -torch.inf)
    total, mixed = torch.zeros_like(best), 0.0
    for j in range(S):
        score = scores[..., j : j + 1]
        new = torch.maximum(best, score.detach())
        base = new.masked_fill(new == -torch.inf, 0.0)
        old, weight = (best - base).exp(), (score - base).exp()
        total = total * old + weight
        mixed = mixed * old + weight * keep[..., j : j + 1] * v[:, :, j : j + 1]
        best = new
    return (mixed / total.masked_fill(total == 0.0, 1.0)).to(query.dtype)
