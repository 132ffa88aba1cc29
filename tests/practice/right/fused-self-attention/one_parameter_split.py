r"""A single nn.Parameter (E, 3E), split; torch's softmax, the scale on the queries."""

import torch
import torch.nn as nn


class FusedSelfAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        if not isinstance(hidden_size, int) or hidden_size <= 0:
            raise ValueError(f"hidden_size must be positive, not {hidden_size}")
        self.n = hidden_size
        self.c_attn = nn.Parameter(torch.empty(hidden_size, 3 * hidden_size))
        nn.init.xavier_uniform_(self.c_attn)

    def forward(self, tokens):
        if tokens.dim() != 3 or tokens.size(2) != self.n:
            raise ValueError(f"tokens must be (batch, length, {self.n}), not {tuple(tokens.shape)}")
        q, k, v = torch.matmul(tokens, self.c_attn).split(self.n, dim=2)
        if tokens.dtype in (torch.float16, torch.bfloat16):
            q, k, v = q.float(), k.float(), v.float()
        attention = torch.softmax(torch.bmm(q / self.n**0.5, k.transpose(1, 2)), dim=2)
        return torch.bmm(attention, v).to(tokens.dtype)
