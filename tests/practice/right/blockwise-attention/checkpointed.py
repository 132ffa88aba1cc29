r"""A loop over blocks of queries, each under torch.utils.checkpoint: no backward pass of one's own."""

import math

import torch
from torch.utils.checkpoint import checkpoint

from llmcore.checks import check_finite, check_heads, check_positive
from llmcore.masks import expand_mask
from llmcore.softmax import softmax, upcast


def one_block(q, k, v, mask, first, is_causal):
    scores = q @ k.mT
    if is_causal:
        row = torch.arange(first, first + q.size(-2), device=q.device)[:, None]
        scores = scores.masked_fill(torch.arange(k.size(-2), device=q.device) > row, -torch.inf)
    if mask is not None:
        mask = mask.unflatten(1, (k.size(1), -1)) if mask.size(1) > 1 else mask.unsqueeze(1)
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return softmax(scores) @ v


def blockwise_attention(query, key, value, attn_mask=None, *, is_causal=False, scale=None, block_size=256):
    check_heads(query, key, value)
    check_positive(block_size=block_size)
    b, h, n, d = query.shape
    s = key.size(2)
    if attn_mask is not None:
        expand_mask(attn_mask, (b, h, n, s), query.device)
        attn_mask = attn_mask[(None,) * (4 - attn_mask.dim())]
        if attn_mask.dtype != torch.bool:
            attn_mask = upcast(attn_mask).to(upcast(query[:0]).dtype)
    scale = 1 / math.sqrt(d) if scale is None else scale
    check_finite(scale=scale)
    q = (upcast(query) * scale).unflatten(1, (key.size(1), -1))
    k, v = upcast(key)[:, :, None], upcast(value)[:, :, None]
    outputs = []
    for start in range(0, n, block_size):
        rows = slice(start, min(start + block_size, n))
        mask = attn_mask
        if mask is not None and mask.size(2) > 1:
            mask = mask[:, :, rows]
        block = checkpoint(
            one_block, q[:, :, :, rows], k, v, mask, start + s - n, is_causal, use_reentrant=False
        )
        outputs.append(block)
    return torch.cat(outputs, dim=3).flatten(1, 2).to(query.dtype)
