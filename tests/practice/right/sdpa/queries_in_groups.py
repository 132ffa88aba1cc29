r"""The queries of a group become more rows of one product; two functions, torch's softmax."""

import torch

from llmcore.attention import apply_mask, dropout
from llmcore.checks import check_finite, check_heads, check_probability
from llmcore.masks import causal_mask, combine_masks


def weights_of(scores):
    nothing = torch.isneginf(scores).all(-1, keepdim=True)
    return torch.where(nothing, 0.0, torch.softmax(torch.where(nothing, 0.0, scores), -1))


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, *, is_causal=False, scale=None, dropout_p=0.0, generator=None
):
    check_heads(query, key, value)
    check_probability(dropout_p=dropout_p)
    if scale is None:
        scale = 1.0 / query.size(-1) ** 0.5
    check_finite(scale=scale)
    q, k, v = (x if x.dtype == torch.float64 else x.float() for x in (query, key, value))
    b, h, n, d = q.shape
    g, s = k.shape[1:3]
    rows = (q * scale).reshape(b, g, h // g * n, d)
    scores = torch.matmul(rows, k.transpose(2, 3)).reshape(b, h, n, s)
    if attn_mask is not None:
        scores = apply_mask(scores, attn_mask)
    if is_causal:
        scores = apply_mask(scores, combine_masks(causal_mask(n, s, device=q.device)))
    p = weights_of(scores)
    if dropout_p:
        p = dropout(p, dropout_p, generator)
    return torch.matmul(p.reshape(b, g, h // g * n, s), v).reshape(b, h, n, -1).to(query.dtype)
