import math

import torch
from torch import nn

from llmcore.multi_head import MultiHeadAttention


def loop_over_heads(mha: MultiHeadAttention, query, key, value):
    """Rung 1, the formula: a sum over heads of head_i W_i, one head at a time, no reshape."""
    out = mha.o_proj.bias
    size = mha.q_proj.out_features // mha.num_heads
    for rows in torch.arange(mha.num_heads * size).split(size):
        q = query @ mha.q_proj.weight[rows].T + mha.q_proj.bias[rows]  # (B, L, D)
        k = key @ mha.k_proj.weight[rows].T + mha.k_proj.bias[rows]  # (B, S, D)
        v = value @ mha.v_proj.weight[rows].T + mha.v_proj.bias[rows]  # (B, S, D)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(size), dim=-1)  # (B, L, S)
        out = out + weights @ v @ mha.o_proj.weight[:, rows].T  # (B, L, E)
    return out


torch.manual_seed(0)
mha = MultiHeadAttention(24, 4, kdim=10, vdim=14)  # all heads at once, kdim != vdim
query, key, value = torch.randn(2, 3, 24), torch.randn(2, 5, 10), torch.randn(2, 5, 14)
out = mha(query, key, value)
print("loop == all at once:", torch.allclose(loop_over_heads(mha, query, key, value), out, atol=1e-6))

reference = nn.MultiheadAttention(24, 4, kdim=10, vdim=14, batch_first=True)
with torch.no_grad():
    reference.q_proj_weight.copy_(mha.q_proj.weight)
    reference.k_proj_weight.copy_(mha.k_proj.weight)
    reference.v_proj_weight.copy_(mha.v_proj.weight)
    reference.in_proj_bias.copy_(torch.cat([mha.q_proj.bias, mha.k_proj.bias, mha.v_proj.bias]))
    reference.out_proj.load_state_dict(mha.o_proj.state_dict())
expected, _ = reference(query, key, value, need_weights=False)
print("== nn.MultiheadAttention:", torch.allclose(out, expected, atol=1e-6))

own_width = MultiHeadAttention(128, 8, kdim=128, vdim=64, head_dim=16, v_head_dim=16, out_dim=8)
shapes = (10, 2, 128), (10, 4, 128), (10, 4, 64)
out = own_width(*map(torch.randn, shapes), is_causal=True)
print("first note:", *shapes, "->", tuple(out.shape))

w_q, w_k, w_v, w_o = (getattr(mha, f"{name}_proj").weight for name in "qkvo")
qk, vo = w_q[:6].T @ w_k[:6], w_v[:6].T @ w_o[:, :6].T  # head 0: D = 6 rows
print(f"head 0: W_q W_k^T {tuple(qk.shape)} of rank {int(torch.linalg.matrix_rank(qk))}, ", end="")
print(f"W_v W_o {tuple(vo.shape)} of rank {int(torch.linalg.matrix_rank(vo))}")
