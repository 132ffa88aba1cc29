r"""Three projections, reshape and permute, torch's own attention with one boolean or additive mask."""

import torch
import torch.nn.functional as F
from torch import nn

from llmcore.checks import check_divisible, check_input, check_probability
from llmcore.masks import causal_mask, expand_mask


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, *, dropout=0.0, bias=False):
        super().__init__()
        check_divisible(hidden_size=hidden_size, num_heads=num_heads)
        check_probability(dropout=dropout)
        self.to_q = nn.Linear(hidden_size, hidden_size, bias=bias)
        self.to_k = nn.Linear(hidden_size, hidden_size, bias=bias)
        self.to_v = nn.Linear(hidden_size, hidden_size, bias=bias)
        self.to_out = nn.Linear(hidden_size, hidden_size, bias=bias)
        self.heads = num_heads
        self.rate = dropout

    def forward(self, hidden_states, attn_mask=None, *, is_causal=False):
        check_input(self.to_q, hidden_states=hidden_states)
        b, n, e = hidden_states.shape

        def heads(layer):
            return layer(hidden_states).reshape(b, n, self.heads, e // self.heads).permute(0, 2, 1, 3)

        if attn_mask is not None:
            attn_mask = expand_mask(attn_mask, (b, self.heads, n, n), hidden_states.device)
            if is_causal and attn_mask.dtype == torch.bool:
                attn_mask = attn_mask & causal_mask(n, device=hidden_states.device)
            elif is_causal:
                attn_mask = attn_mask.masked_fill(~causal_mask(n, device=hidden_states.device), -torch.inf)
        mixed = F.scaled_dot_product_attention(
            heads(self.to_q),
            heads(self.to_k),
            heads(self.to_v),
            attn_mask=attn_mask,
            is_causal=is_causal and attn_mask is None,
            dropout_p=self.rate * self.training,
        )
        return self.to_out(mixed.permute(0, 2, 1, 3).reshape(b, n, e))
