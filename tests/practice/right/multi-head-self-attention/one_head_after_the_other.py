r"""A loop over the heads, slices of the fused projection, cat at the end; nn.Dropout as a module."""

import math

import torch
from torch import nn

from llmcore.checks import check_divisible, check_input, check_probability
from llmcore.masks import causal_mask, expand_mask
from llmcore.softmax import softmax, upcast


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, *, dropout=0.0, bias=False):
        super().__init__()
        check_divisible(hidden_size=hidden_size, num_heads=num_heads)
        check_probability(dropout=dropout)
        self.num_heads, self.width = num_heads, hidden_size // num_heads
        self.in_proj = nn.Linear(hidden_size, hidden_size * 3, bias=bias)
        self.out_proj = nn.Linear(hidden_size, hidden_size, bias=bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, hidden_states, attn_mask=None, *, is_causal=False):
        check_input(self.in_proj, hidden_states=hidden_states)
        b, n, e = hidden_states.shape
        mask = None
        if attn_mask is not None:
            mask = expand_mask(attn_mask, (b, self.num_heads, n, n), hidden_states.device)
        qkv = self.in_proj(hidden_states)
        outputs = []
        for h in range(self.num_heads):
            at = h * self.width
            q, k, v = (upcast(qkv[:, :, i * e + at : i * e + at + self.width]) for i in range(3))
            scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(self.width)
            if mask is not None and mask.dtype == torch.bool:
                scores = scores.masked_fill(~mask[:, h], -math.inf)
            elif mask is not None:
                scores = scores + mask[:, h].to(scores.dtype)
            if is_causal:
                scores = scores.masked_fill(~causal_mask(n, device=scores.device), -math.inf)
            outputs.append(torch.bmm(self.drop(softmax(scores)), v))
        return self.out_proj(torch.cat(outputs, dim=-1).to(hidden_states.dtype))
