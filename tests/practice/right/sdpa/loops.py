r"""A loop over sequences and heads; each is plain matrix algebra, softmax(q kT + log mask) v."""

import math

import torch

from llmcore.attention import dropout
from llmcore.checks import check_finite, check_heads, check_probability
from llmcore.masks import causal_mask, expand_mask
from llmcore.softmax import softmax, upcast


def one_head(q, k, v, bias, p, generator):
    weights = softmax(q @ k.T + bias)
    if p:
        weights = dropout(weights, p, generator)
    return weights @ v


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, *, is_causal=False, scale=None, dropout_p=0.0, generator=None
):
    check_heads(query, key, value)
    check_probability(dropout_p=dropout_p)
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1))
    check_finite(scale=scale)
    (batch, heads, n, _), (groups, m) = query.shape, key.shape[1:3]
    q, k, v = upcast(query) * scale, upcast(key), upcast(value)
    bias = torch.zeros(batch, heads, n, m, dtype=q.dtype, device=q.device)
    if attn_mask is not None:
        mask = expand_mask(attn_mask, (batch, heads, n, m), q.device)
        bias = bias + (mask.to(q.dtype).log() if mask.dtype == torch.bool else mask.to(q.dtype))
    if is_causal:
        bias = bias + causal_mask(n, m, device=q.device).to(q.dtype).log()
    rows = []
    for i in range(batch):
        row = []
        for h in range(heads):
            g = h * groups // heads
            row.append(one_head(q[i, h], k[i, g], v[i, g], bias[i, h], dropout_p, generator))
        rows.append(torch.stack(row))
    return torch.stack(rows).to(query.dtype)
