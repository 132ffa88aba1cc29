r"""Blocks of queries and of keys, an online softmax; the log-sum-exp of a row is kept for the backward."""

import math

import torch

from llmcore.checks import check_finite, check_heads, check_positive
from llmcore.masks import expand_mask
from llmcore.softmax import upcast


def blocks(length, size):
    return [slice(a, min(a + size, length)) for a in range(0, length, size)]


def cut(mask, rows, keys):
    r"""A block of a mask (b, h or 1, n or 1, s)."""
    return (mask[:, :, rows] if mask.size(2) > 1 else mask)[..., keys]


def scores_of(q, k, mask, rows, keys, offset):
    r"""q is (b, g, r, rows, d), k is (b, g, 1, keys, d)."""
    x = q[..., rows, :] @ k[..., keys, :].mT
    if offset is not None:
        i = torch.arange(rows.start, rows.stop, device=q.device)[:, None] + offset
        x = x.masked_fill(torch.arange(keys.start, keys.stop, device=q.device) > i, -torch.inf)
    if mask is not None:
        part = cut(mask, rows, keys)
        part = part.unflatten(1, (q.size(1), -1)) if part.size(1) > 1 else part.unsqueeze(1)
        x = x.masked_fill(~part, -torch.inf) if part.dtype == torch.bool else x + part
    return x


class Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, mask, offset, size):
        out = q.new_zeros(*q.shape[:-1], v.size(-1))
        lse = q.new_zeros(*q.shape[:-1], 1)
        for rows in blocks(q.size(-2), size):
            m = torch.full_like(lse[..., rows, :], -torch.inf)
            total, acc = torch.zeros_like(m), torch.zeros_like(out[..., rows, :])
            for keys in blocks(k.size(-2), max(size, 64)):
                x = scores_of(q, k, mask, rows, keys, offset)
                new = torch.maximum(m, x.amax(-1, keepdim=True))
                base = new.masked_fill(new == -torch.inf, 0.0)
                fix, p = (m - base).exp(), (x - base).exp()
                total = total * fix + p.sum(-1, keepdim=True)
                acc = acc * fix + p @ v[..., keys, :]
                m = new
            nothing = total == 0
            total = total.masked_fill(nothing, 1.0)
            out[..., rows, :] = acc / total
            lse[..., rows, :] = m.masked_fill(nothing, 0.0) + total.log()
        ctx.save_for_backward(q, k, v, mask, out, lse)
        ctx.rest = offset, size
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_out):
        q, k, v, mask, out, lse = ctx.saved_tensors
        offset, size = ctx.rest
        dq, dk, dv = (torch.zeros_like(x) for x in (q, k, v))
        d_mask = torch.zeros_like(mask) if ctx.needs_input_grad[3] else None
        delta = (d_out * out).sum(-1, keepdim=True)
        for rows in blocks(q.size(-2), size):
            do = d_out[..., rows, :]
            for keys in blocks(k.size(-2), max(size, 64)):
                p = (scores_of(q, k, mask, rows, keys, offset) - lse[..., rows, :]).exp()
                dv[..., keys, :] += (p.mT @ do).sum(2, keepdim=True)
                ds = p * (do @ v[..., keys, :].mT - delta[..., rows, :])
                dq[..., rows, :] += ds @ k[..., keys, :]
                dk[..., keys, :] += (ds.mT @ q[..., rows, :]).sum(2, keepdim=True)
                if d_mask is not None:
                    part = cut(d_mask, rows, keys)
                    part += ds.flatten(1, 2).sum_to_size(part.shape)
        return dq, dk, dv, d_mask, None, None


def blockwise_attention(query, key, value, attn_mask=None, *, is_causal=False, scale=None, block_size=256):
    check_heads(query, key, value)
    check_positive(block_size=block_size)
    b, h, n, d = query.shape
    g, s = key.shape[1:3]
    scale = 1 / math.sqrt(d) if scale is None else scale
    check_finite(scale=scale)
    q = (upcast(query) * scale).reshape(b, g, h // g, n, d)
    if attn_mask is not None:
        expand_mask(attn_mask, (b, h, n, s), query.device)
        attn_mask = attn_mask.reshape((1,) * (4 - attn_mask.ndim) + tuple(attn_mask.shape))
        if attn_mask.dtype != torch.bool:
            attn_mask = attn_mask.to(q.dtype)
    out = Flash.apply(
        q,
        upcast(key)[:, :, None],
        upcast(value)[:, :, None],
        attn_mask,
        s - n if is_causal else None,
        min(block_size, 4096),
    )
    return out.flatten(1, 2).to(query.dtype)
