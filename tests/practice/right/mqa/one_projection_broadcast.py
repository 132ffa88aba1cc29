r"""One matrix for all three, cut by `split`; the single head is broadcast by matmul, nothing is repeated."""

import math

import torch
from torch import nn

from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.masks import causal_mask, expand_mask


class MultiQueryAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, *, head_dim=None, bias=False, dropout=0.0):
        super().__init__()
        if head_dim is None:
            check_divisible(hidden_size=hidden_size, num_heads=num_heads)
            head_dim = hidden_size // num_heads
        check_positive(hidden_size=hidden_size, num_heads=num_heads, head_dim=head_dim)
        check_probability(dropout=dropout)
        self.sizes = [num_heads * head_dim, head_dim, head_dim]
        self.heads, self.dim, self.p = num_heads, head_dim, dropout
        self.c_attn = nn.Linear(hidden_size, sum(self.sizes), bias=bias)
        self.c_proj = nn.Linear(num_heads * head_dim, hidden_size, bias=bias)

    def forward(self, hidden_states, attn_mask=None, *, is_causal=False, past_key_values=None):
        check_input(self.c_attn, hidden_states=hidden_states)
        b, n, _ = hidden_states.shape
        q, k, v = self.c_attn(hidden_states).split(self.sizes, dim=-1)
        q = q.view(b, n, self.heads, self.dim).transpose(1, 2)
        k, v = k[:, None], v[:, None]
        before = 0 if past_key_values is None else past_key_values.seq_len
        if attn_mask is not None:
            attn_mask = expand_mask(attn_mask, (b, self.heads, n, before + n), q.device)
        if past_key_values is not None:
            k, v = past_key_values.update(k, v)
        dtype = q.dtype
        wide = dtype if dtype == torch.float64 else torch.float32
        scores = (q.to(wide) / math.sqrt(self.dim)) @ k.to(wide).mT
        allowed = torch.ones(scores.shape, dtype=torch.bool, device=q.device)
        if is_causal:
            allowed = allowed & causal_mask(n, before + n, device=q.device)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            allowed = allowed & attn_mask
        elif attn_mask is not None:
            scores = scores + attn_mask
            allowed = allowed & (attn_mask > -math.inf)
        # a finite fill and a product afterwards: rows without any key are zero, and so are their gradients
        weights = scores.masked_fill(~allowed, torch.finfo(wide).min).softmax(-1) * allowed
        weights = nn.functional.dropout(weights, self.p, self.training)
        return self.c_proj((weights @ v.to(wide)).to(dtype).transpose(1, 2).reshape(b, n, -1))
