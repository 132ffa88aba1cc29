r"""The queries are reshaped into groups, einsum over group and member; no key or value is repeated."""

import torch
from torch import nn

from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.masks import causal_mask, expand_mask


class GroupedQueryAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, num_kv_heads, *, head_dim=None, bias=False, dropout=0.0):
        super().__init__()
        check_positive(hidden_size=hidden_size)
        check_divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
        check_probability(dropout=dropout)
        if head_dim is None:
            check_divisible(hidden_size=hidden_size, num_heads=num_heads)
            head_dim = hidden_size // num_heads
        check_positive(head_dim=head_dim)
        self.groups, self.members, self.width = num_kv_heads, num_heads // num_kv_heads, head_dim
        self.wk = nn.Linear(hidden_size, num_kv_heads * head_dim, bias=bias)
        self.wv = nn.Linear(hidden_size, num_kv_heads * head_dim, bias=bias)
        self.wq = nn.Linear(hidden_size, num_heads * head_dim, bias=bias)
        self.wo = nn.Linear(num_heads * head_dim, hidden_size, bias=bias)
        self.rate = dropout

    def forward(self, hidden_states, attn_mask=None, *, is_causal=False, past_key_values=None):
        check_input(self.wq, hidden_states=hidden_states)
        b, n, _ = hidden_states.shape
        q = self.wq(hidden_states).view(b, n, self.groups, self.members, self.width)
        k = self.wk(hidden_states).view(b, n, self.groups, self.width).transpose(1, 2)
        v = self.wv(hidden_states).view(b, n, self.groups, self.width).transpose(1, 2)
        s = n if past_key_values is None else n + past_key_values.seq_len
        heads = self.groups * self.members
        allowed = torch.ones(b, heads, n, s, dtype=torch.bool, device=q.device)
        bias = None
        if attn_mask is not None:
            mask = expand_mask(attn_mask, (b, heads, n, s), q.device)
            if mask.dtype == torch.bool:
                allowed = allowed & mask
            else:
                allowed, bias = allowed & (mask != -torch.inf), mask.masked_fill(mask == -torch.inf, 0.0)
        if is_causal:
            allowed = allowed & causal_mask(n, s, device=q.device)
        if past_key_values is not None:
            k, v = past_key_values.update(k, v)
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = torch.einsum("blgmd,bgsd->bgmls", q.to(wide) * self.width**-0.5, k.to(wide)).flatten(1, 2)
        scores = scores if bias is None else scores + bias
        scores = scores.masked_fill(~allowed, -torch.inf)
        top = scores.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(wide).min)
        raised = (scores - top).exp()
        weights = raised / raised.sum(-1, keepdim=True).clamp(min=torch.finfo(wide).tiny)
        weights = nn.functional.dropout(weights, self.rate, self.training)
        weights = weights.unflatten(1, (self.groups, self.members))
        mixed = torch.einsum("bgmls,bgsd->blgmd", weights, v.to(wide)).flatten(2)
        return self.wo(mixed.to(hidden_states.dtype))
