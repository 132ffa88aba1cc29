r"""One matrix for queries, keys and values, names of one's own, reshape and permute, repeat_interleave."""

import math

import torch
from torch import nn

from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.masks import causal_mask, expand_mask


class GroupedQueryAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, num_kv_heads, *, head_dim=None, bias=False, dropout=0.0):
        super().__init__()
        if head_dim is None:
            check_divisible(hidden_size=hidden_size, num_heads=num_heads)
            head_dim = hidden_size // num_heads
        check_divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
        check_positive(hidden_size=hidden_size, head_dim=head_dim)
        check_probability(dropout=dropout)
        self.h, self.g, self.d, self.p = num_heads, num_kv_heads, head_dim, dropout
        self.qkv = nn.Linear(hidden_size, (num_heads + 2 * num_kv_heads) * head_dim, bias=bias)
        self.out = nn.Linear(num_heads * head_dim, hidden_size, bias=bias)

    def forward(self, hidden_states, attn_mask=None, *, is_causal=False, past_key_values=None):
        check_input(self.qkv, hidden_states=hidden_states)
        b, n, _ = hidden_states.shape
        sizes = [self.h * self.d, self.g * self.d, self.g * self.d]
        q, k, v = self.qkv(hidden_states).split(sizes, dim=-1)
        q = q.reshape(b, n, self.h, self.d).permute(0, 2, 1, 3)
        k, v = (x.reshape(b, n, self.g, self.d).permute(0, 2, 1, 3) for x in (k, v))
        if past_key_values is not None:
            if attn_mask is not None:
                expand_mask(attn_mask, (b, self.h, n, past_key_values.seq_len + n), q.device)
            k, v = past_key_values.update(k, v)
        dtype = q.dtype
        if dtype in (torch.float16, torch.bfloat16):
            q, k, v = q.float(), k.float(), v.float()
        k, v = (x.repeat_interleave(self.h // self.g, dim=1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.d)
        if attn_mask is not None:
            mask = expand_mask(attn_mask, tuple(scores.shape), q.device)
            scores = (
                scores.masked_fill(~mask, -math.inf)
                if mask.dtype == torch.bool
                else scores + mask.to(scores.dtype)
            )
        if is_causal:
            scores = scores.masked_fill(~causal_mask(n, k.size(2)), -math.inf)
        hidden = (scores == -math.inf).all(-1, keepdim=True)
        weights = scores.masked_fill(hidden, 0.0).softmax(-1).masked_fill(hidden, 0.0)
        if self.training and self.p:
            weights = nn.functional.dropout(weights, self.p)
        return self.out((weights @ v).to(dtype).permute(0, 2, 1, 3).reshape(b, n, self.h * self.d))
