r"""Keys and values repeated to the query heads, einsum; nan_to_num on the weights behind masked_fill."""

import torch

from llmcore.attention import dropout
from llmcore.checks import check_finite, check_heads, check_probability
from llmcore.masks import causal_mask, expand_mask


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, *, is_causal=False, scale=None, dropout_p=0.0, generator=None
):
    check_heads(query, key, value)
    check_probability(dropout_p=dropout_p)
    b, h, n, d = query.shape
    s = key.shape[2]
    scale = d**-0.5 if scale is None else scale
    check_finite(scale=scale)
    work = torch.float64 if query.dtype == torch.float64 else torch.float32
    q = query.to(work) * scale
    k = key.to(work).repeat_interleave(h // key.shape[1], 1)
    v = value.to(work).repeat_interleave(h // key.shape[1], 1)
    scores = torch.einsum("bhld,bhsd->bhls", q, k)
    visible = torch.ones(b, h, n, s, dtype=torch.bool, device=q.device)
    if is_causal:
        visible = visible & causal_mask(n, s, device=q.device)
    if attn_mask is not None:
        mask = expand_mask(attn_mask, (b, h, n, s), q.device)
        if mask.dtype == torch.bool:
            visible = visible & mask
        else:
            visible = visible & (mask != -torch.inf)
            scores = scores + mask.to(work).masked_fill(mask == -torch.inf, 0.0)
    scores = scores.masked_fill(~visible, -torch.inf)
    weights = torch.nan_to_num(torch.softmax(scores, -1)) if not visible.any(-1).all() else scores.softmax(-1)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p, generator)
    return torch.einsum("bhls,bhsv->bhlv", weights, v).to(query.dtype)
