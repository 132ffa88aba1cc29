r"""A loop over the heads, one matrix product each, stacked at the end."""

import math

import torch

from llmcore.attention import apply_mask
from llmcore.checks import check_finite, check_heads
from llmcore.masks import causal_mask
from llmcore.softmax import softmax, upcast


def attention_weights(query, key, attn_mask=None, *, is_causal=False, scale=None):
    check_heads(query, key)
    factor = 1 / math.sqrt(query.size(3)) if scale is None else scale
    check_finite(scale=factor)
    per_group = query.size(1) // key.size(1)
    heads = []
    for h in range(query.size(1)):
        heads.append(torch.bmm(upcast(query[:, h]) * factor, upcast(key[:, h // per_group]).mT))
    scores = torch.stack(heads, dim=1)
    if is_causal:
        scores = apply_mask(scores, causal_mask(query.size(2), key.size(2), device=query.device))
    if attn_mask is not None:
        scores = apply_mask(scores, attn_mask)
    return softmax(scores).type(query.dtype)
