r"""Scaled dot-product attention through blocks of queries: the score matrix is never whole in memory.

A row of the softmax needs every key of its query and nothing of the other queries, so a few queries at a time
give the same result. Memory grows with L + S and not with L * S.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from llmcore.checks import check_finite, check_heads, check_positive
from llmcore.masks import additive_mask, causal_mask, expand_mask
from llmcore.softmax import upcast

BLOCK_SCORES = 2**20  # a block of 4 MiB in float32 stays in the processor's cache


def blockwise_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    block_size: int = 256,
) -> Tensor:
    r"""$\mathrm{softmax}(Q K^\top / \sqrt{D} + M)\, V$ with one block of the scores in memory at a time.

    Args:
        query: (B, H, L, D).
        key: (B, K, S, D) with H a multiple of K.
        value: (B, K, S, Dv).
        attn_mask: Boolean (True = may attend) or additive, of shape (S,), (L, S) or broadcastable to (B, H,
            L, S). An additive mask may be learned.
        is_causal: Hide later keys, aligned bottom-right; may be combined with `attn_mask`.
        scale: Factor on the scores; 1/sqrt(D) if not given.
        block_size: Most queries of one head in a block; fewer where the keys are many. Finite inputs
            give the same values with any.

    Returns:
        (B, H, L, Dv) in the dtype of `query`, computed in float32 at least; zeros where every key is hidden.
        Differentiable once.

    Raises:
        ValueError: If shapes, dtypes or devices do not fit, H is no multiple of K, or the mask is ambiguous.
        ValueError: If `block_size` is not a positive integer, or `scale` not a finite number.

    Reference:
        Rabe and Staats, Self-attention Does Not Need O(n^2) Memory, arXiv:2112.05682, who split the keys too.
        Equal to `torch.nn.functional.scaled_dot_product_attention`, whose causal mask is top-left.
    """
    check_heads(query, key, value)
    check_positive(block_size=block_size)
    if attn_mask is not None:
        batch, num_heads, q_len, _ = query.shape
        shape = batch, num_heads, q_len, key.size(2)
        expand_mask(attn_mask, shape, query.device)  # for its checks: the mask stays small
        attn_mask = attn_mask[(None,) * (4 - attn_mask.dim())]
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    check_finite(scale=scale)
    return _BlockwiseAttention.apply(query, key, value, attn_mask, is_causal, scale, block_size)


class _BlockwiseAttention(torch.autograd.Function):
    r"""Forward keeps its inputs and nothing else; backward computes each block of weights again."""

    @staticmethod
    def forward(ctx: Any, query, key, value, attn_mask, is_causal, scale, block_size) -> Tensor:
        ctx.save_for_backward(query, key, value, attn_mask)
        ctx.settings = is_causal, scale, block_size
        output = query.new_zeros(*query.shape[:3], value.size(-1))  # (B, H, L, Dv)
        blocks = _Blocks(query, key, attn_mask, is_causal, block_size)
        for heads, kv_heads in blocks.heads():
            k, v = upcast(key[kv_heads]), upcast(value[kv_heads])
            for rows, seen in blocks.queries():
                q = blocks.stack(query[heads][:, rows]) * scale
                mixed = torch.bmm(blocks.weights(q, k[:, seen], heads, rows), v[:, seen])
                output[heads][:, rows] = blocks.unstack(mixed)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        if torch.is_grad_enabled():  # create_graph: what follows would be taken for constant
            raise RuntimeError("blockwise_attention is differentiable once, create_graph=True asks for more")
        query, key, value, attn_mask = ctx.saved_tensors
        is_causal, scale, block_size = ctx.settings
        grad_query, grad_key, grad_value = (torch.zeros_like(tensor) for tensor in (query, key, value))
        grad_mask = torch.zeros_like(upcast(attn_mask)) if ctx.needs_input_grad[3] else None
        blocks = _Blocks(query, key, attn_mask, is_causal, block_size)
        for heads, kv_heads in blocks.heads():
            k, v = upcast(key[kv_heads]), upcast(value[kv_heads])
            grad_k, grad_v = torch.zeros_like(k), torch.zeros_like(v)
            for rows, seen in blocks.queries():
                q, grad_mixed = (blocks.stack(x[heads][:, rows]) for x in (query, grad_output))
                weights = blocks.weights(q * scale, k[:, seen], heads, rows)
                grad_v[:, seen] += torch.bmm(weights.mT, grad_mixed)
                grad_scores = torch.bmm(grad_mixed, v[:, seen].mT)
                grad_scores -= (grad_scores * weights).sum(-1, keepdim=True)
                grad_scores *= weights  # now before the softmax
                grad_k[:, seen] += torch.bmm(grad_scores.mT, q * scale)
                grad_query[heads][:, rows] = blocks.unstack(torch.bmm(grad_scores, k[:, seen]) * scale)
                if grad_mask is not None:
                    part = blocks.part(grad_mask, heads, rows, seen)
                    part += blocks.unstack(grad_scores).sum_to_size(part.shape)
            grad_key[kv_heads], grad_value[kv_heads] = grad_k, grad_v
        return grad_query, grad_key, grad_value, grad_mask, None, None, None


class _Blocks:
    r"""How the work is split, and the one buffer that every block's scores are written to."""

    def __init__(
        self, query: Tensor, key: Tensor, attn_mask: Tensor | None, is_causal: bool, block_size: int
    ):
        (self.batch, num_heads, self.q_len, _), (self.num_kv_heads, self.k_len) = query.shape, key.shape[1:3]
        self.group = num_heads // self.num_kv_heads
        self.count = min(block_size, self.q_len, max(16, BLOCK_SCORES // (self.group * self.k_len)))
        row_scores = self.group * self.count * self.k_len
        # kv heads in one batched product
        self.together = min(self.num_kv_heads, max(1, BLOCK_SCORES // row_scores))
        self.buffer = upcast(query.new_empty(0)).new_empty(self.together * row_scores)
        self.corner = additive_mask(causal_mask(self.count, device=query.device), self.buffer.dtype)
        self.attn_mask, self.is_causal = attn_mask, is_causal
        self.may_hide_all = attn_mask is not None or (is_causal and self.q_len > self.k_len)

    def heads(self) -> Iterator[tuple[tuple[int, slice], tuple[int, slice]]]:
        r"""Indices into (B, H) and (B, K): kv heads of one sequence and the query heads that share them."""
        for batch in range(self.batch):
            for first in range(0, self.num_kv_heads, self.together):
                last = min(first + self.together, self.num_kv_heads)
                yield (batch, slice(first * self.group, last * self.group)), (batch, slice(first, last))

    def queries(self) -> Iterator[tuple[slice, slice]]:
        r"""Some queries and the keys that any of them sees; queries that see none are left out."""
        for start in range(0, self.q_len, self.count):
            stop = min(start + self.count, self.q_len)
            seen = stop + self.k_len - self.q_len if self.is_causal else self.k_len
            if seen > 0:
                yield slice(start, stop), slice(0, seen)

    def stack(self, x: Tensor) -> Tensor:
        r"""From (n * H/K, rows, width) to (n, H/K * rows, width): one product for all of a kv head."""
        return upcast(x).reshape(-1, self.group * x.size(1), x.size(2))

    def unstack(self, x: Tensor) -> Tensor:
        r"""From (n, H/K * rows, width) to (n * H/K, rows, width)."""
        return x.view(-1, x.size(1) // self.group, x.size(2))

    def part(self, mask: Tensor, heads: tuple[int, slice], rows: slice, seen: slice) -> Tensor:
        r"""A block's view (n * H/K, rows, keys) of a four-dimensional mask; axes of length 1 stay so."""
        index = (slice(heads[0], heads[0] + 1), heads[1], rows, seen)
        return mask[tuple(at if n > 1 else slice(0, 1) for at, n in zip(index, mask.shape, strict=True))][0]

    def weights(self, query: Tensor, key: Tensor, heads: tuple[int, slice], rows: slice) -> Tensor:
        r"""Softmax weights (n, H/K * rows, keys) of stacked, scaled queries, until the next call."""
        shape = query.size(0), query.size(1), key.size(1)
        scores = torch.bmm(query, key.mT, out=self.buffer[: math.prod(shape)].view(shape))
        by_head = self.unstack(scores)
        if self.is_causal:  # the block's last query sees the last of these keys: bottom-right once more
            corner = by_head[..., -by_head.size(1) :]
            corner += self.corner[-corner.size(1) :, -corner.size(2) :]
        if self.attn_mask is not None:
            mask = self.part(self.attn_mask, heads, rows, slice(0, key.size(1)))
            by_head += additive_mask(mask, scores.dtype) if mask.dtype == torch.bool else mask
        if not self.may_hide_all:
            return torch.softmax(scores, dim=-1, out=scores)
        hidden = scores.amax(-1, keepdim=True) == -torch.inf
        return torch.softmax(scores, dim=-1, out=scores).masked_fill_(hidden, 0.0)  # no key: 0, not NaN
