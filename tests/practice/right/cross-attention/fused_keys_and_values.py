r"""Keys and values from one matrix, cut by `chunk`; scores by `baddbmm` over merged batch and heads."""

import math

import torch
from torch import nn

from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.masks import expand_mask


class CrossAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, *, context_size=None, bias=False, dropout=0.0):
        super().__init__()
        check_divisible(hidden_size=hidden_size, num_heads=num_heads)
        if context_size is None:
            context_size = hidden_size
        check_positive(context_size=context_size)
        check_probability(dropout=dropout)
        self.heads, self.width = num_heads, hidden_size // num_heads
        self.query = nn.Linear(hidden_size, hidden_size, bias=bias)
        self.kv = nn.Linear(context_size, 2 * hidden_size, bias=bias)
        self.out = nn.Linear(hidden_size, hidden_size, bias=bias)
        self.drop = nn.Dropout(dropout)

    def _heads(self, x):
        batch, tokens, _ = x.shape
        x = x.view(batch, tokens, self.heads, self.width).transpose(1, 2)
        return x.reshape(batch * self.heads, tokens, self.width)

    def forward(self, hidden_states, context, attn_mask=None):
        check_input(self.query, hidden_states=hidden_states)
        check_input(self.kv, context=context)
        (b, n, _), s = hidden_states.shape, context.size(1)
        if context.size(0) != b:
            raise ValueError(f"batch of {b} with a context of batch {context.size(0)}")
        dtype = hidden_states.dtype
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        key, value = self.kv(context).chunk(2, dim=-1)
        q, k, v = (self._heads(x).to(wide) for x in (self.query(hidden_states), key, value))
        add = q.new_zeros(b, self.heads, n, s)
        if attn_mask is not None:
            mask = expand_mask(attn_mask, (b, self.heads, n, s), q.device)
            add = add.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else add + mask
        add = add.flatten(0, 1)
        scores = torch.baddbmm(add, q, k.transpose(1, 2), alpha=1 / math.sqrt(self.width))
        empty = (add == -math.inf).all(dim=-1, keepdim=True)
        weights = scores.masked_fill(empty, 0.0).softmax(dim=-1).masked_fill(empty, 0.0)
        mixed = torch.bmm(self.drop(weights), v).view(b, self.heads, n, self.width)
        return self.out(mixed.transpose(1, 2).flatten(2).to(dtype))
