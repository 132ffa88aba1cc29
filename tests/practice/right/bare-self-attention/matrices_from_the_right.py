r"""Three nn.Parameter multiplied from the right, einsum, its own check of the input."""

import math

import torch
from torch import nn

from llmcore.softmax import softmax


class BareSelfAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        if type(hidden_size) is not int or hidden_size < 1:
            raise ValueError(f"a width of {hidden_size} is not possible")
        self.W_query = nn.Parameter(torch.randn(hidden_size, hidden_size) / math.sqrt(hidden_size))
        self.W_key = nn.Parameter(torch.randn(hidden_size, hidden_size) / math.sqrt(hidden_size))
        self.W_value = nn.Parameter(torch.randn(hidden_size, hidden_size) / math.sqrt(hidden_size))

    def forward(self, x):
        width = self.W_query.shape[0]
        if x.ndim != 3 or x.shape[-1] != width:
            raise ValueError(f"expected (batch, tokens, {width}), got {tuple(x.shape)}")
        q, k, v = x @ self.W_query, x @ self.W_key, x @ self.W_value
        work = torch.promote_types(x.dtype, torch.float32)
        scores = torch.einsum("bie,bje->bij", q.to(work), k.to(work)) * width**-0.5
        return torch.einsum("bij,bje->bie", softmax(scores, -1), v.to(work)).to(x.dtype)
