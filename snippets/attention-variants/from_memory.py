import math

import torch
from torch import nn

from llmcore.grouped_query import GroupedQueryAttention


class GQA(nn.Module):
    """What fits on a whiteboard: MHA with num_kv_heads = num_heads, MQA with num_kv_heads = 1."""

    def __init__(self, hidden_size, num_heads, num_kv_heads):
        super().__init__()
        assert hidden_size % num_heads == 0
        assert num_heads % num_kv_heads == 0
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.head_dim = hidden_size // num_heads
        self.q_proj = nn.Linear(hidden_size, num_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden_size, num_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, num_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * self.head_dim, hidden_size, bias=False)

    def forward(self, x, past=None):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.num_kv_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.num_kv_heads, self.head_dim).transpose(1, 2)
        if past is not None:  # cache K heads, before repeating
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        past = (k, v)
        n_rep = self.num_heads // self.num_kv_heads
        k, v = k.repeat_interleave(n_rep, dim=1), v.repeat_interleave(n_rep, dim=1)  # (B, H, S, D)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, H, L, S)
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device)
        seen = seen.tril(k.size(2) - length)  # (L, S), bottom-right
        weights = scores.masked_fill(~seen, -torch.inf).softmax(dim=-1)
        out = (weights @ v).transpose(1, 2).reshape(batch, length, -1)  # (B, L, H*D)
        return self.o_proj(out), past


torch.manual_seed(0)
mine, reference = GQA(64, 8, 2), GroupedQueryAttention(64, 8, 2)
reference.load_state_dict(mine.state_dict())
x = torch.randn(2, 6, 64)
expected = reference(x, is_causal=True)
print("== llmcore:", torch.allclose(mine(x)[0], expected, atol=1e-6))
first, past = mine(x[:, :4])
rest, past = mine(x[:, 4:], past)
print("with a cache:", torch.allclose(torch.cat([first, rest], dim=1), expected, atol=1e-6))
