r"""torch's attention with `enable_gqa`; the mask is explicit, as torch's `is_causal` is aligned top-left."""

import torch
import torch.nn.functional as F
from torch import nn

from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.heads import merge_heads, split_heads
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
        self.h, self.kv, self.p = num_heads, num_kv_heads, dropout
        self.fc_q = nn.Linear(hidden_size, num_heads * head_dim, bias=bias)
        self.fc_kv = nn.Linear(hidden_size, 2 * num_kv_heads * head_dim, bias=bias)
        self.dense = nn.Linear(num_heads * head_dim, hidden_size, bias=bias)

    def forward(self, hidden_states, attn_mask=None, *, is_causal=False, past_key_values=None):
        check_input(self.fc_q, hidden_states=hidden_states)
        q = split_heads(self.fc_q(hidden_states), self.h)
        k, v = split_heads(self.fc_kv(hidden_states), 2 * self.kv).chunk(2, dim=1)
        mask, length = None, k.size(2) + (past_key_values.seq_len if past_key_values is not None else 0)
        if attn_mask is not None:
            mask = expand_mask(attn_mask, (*q.shape[:3], length), q.device)
            mask = mask if mask.dtype == torch.bool else mask.to(q.dtype)
        if is_causal:
            lower = causal_mask(q.size(2), length, device=q.device)
            if mask is None:
                mask = lower
            else:
                mask = mask & lower if mask.dtype == torch.bool else mask.masked_fill(~lower, -torch.inf)
        if past_key_values is not None:
            k, v = past_key_values.update(k, v)
        p = self.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p, enable_gqa=True)
        return self.dense(merge_heads(mixed))
