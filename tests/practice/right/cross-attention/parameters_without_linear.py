r"""`nn.Parameter` matrices multiplied from the right, between them llmcore's attention."""

import torch
from torch import nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.checks import check_divisible, check_positive, check_probability


class CrossAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, *, context_size=None, bias=False, dropout=0.0):
        super().__init__()
        check_divisible(hidden_size=hidden_size, num_heads=num_heads)
        context_size = hidden_size if context_size is None else context_size
        check_positive(context_size=context_size)
        check_probability(dropout=dropout)
        self.num_heads, self.p = num_heads, dropout
        self.w_q = nn.Parameter(torch.randn(hidden_size, hidden_size) * hidden_size**-0.5)
        self.w_k = nn.Parameter(torch.randn(context_size, hidden_size) * context_size**-0.5)
        self.w_v = nn.Parameter(torch.randn(context_size, hidden_size) * context_size**-0.5)
        self.w_o = nn.Parameter(torch.randn(hidden_size, hidden_size) * hidden_size**-0.5)
        for name in ("b_q", "b_k", "b_v", "b_o"):
            self.register_parameter(name, nn.Parameter(torch.zeros(hidden_size)) if bias else None)

    def forward(self, hidden_states, context, attn_mask=None):
        for x, w in ((hidden_states, self.w_q), (context, self.w_k)):
            if x.dim() != 3 or x.size(2) != w.size(0):
                raise ValueError(f"expected (batch, tokens, {w.size(0)}), got {tuple(x.shape)}")

        def heads(x, w, b):
            x = x @ w if b is None else x @ w + b
            return x.reshape(x.size(0), x.size(1), self.num_heads, -1).transpose(1, 2)

        mixed = scaled_dot_product_attention(
            heads(hidden_states, self.w_q, self.b_q),
            heads(context, self.w_k, self.b_k),
            heads(context, self.w_v, self.b_v),
            attn_mask,
            dropout_p=self.p if self.training else 0.0,
        )
        mixed = mixed.transpose(1, 2).flatten(2) @ self.w_o
        return mixed if self.b_o is None else mixed + self.b_o
