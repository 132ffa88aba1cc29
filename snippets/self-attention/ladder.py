"""The four rungs give the same numbers where they should, and the top one equals nn.MultiheadAttention."""

import torch
from torch import nn

from llmcore.self_attention import (
    BareSelfAttention,
    FusedSelfAttention,
    MultiHeadSelfAttention,
    SelfAttention,
)

torch.manual_seed(0)
hidden_states = torch.randn(2, 5, 16)  # (B, L, E)


def same(a, b):
    return bool((a - b).abs().max() < 1e-6)


bare, fused = BareSelfAttention(16), FusedSelfAttention(16)
one, many = SelfAttention(16), MultiHeadSelfAttention(16, 4)
with torch.no_grad():
    fused.qkv_proj.weight.copy_(torch.cat([bare.q_proj.weight, bare.k_proj.weight, bare.v_proj.weight]))
    one.qkv_proj.weight.copy_(fused.qkv_proj.weight)
    one.o_proj.weight.copy_(torch.eye(16))
print("rung 1 = rung 2 with the three weights stacked:", same(bare(hidden_states), fused(hidden_states)))
print("rung 2 = rung 3 with o_proj the identity:      ", same(fused(hidden_states), one(hidden_states)))

single = MultiHeadSelfAttention(16, 1)
single.load_state_dict(one.state_dict())
a, b = one(hidden_states, is_causal=True), single(hidden_states, is_causal=True)
print("rung 3 = rung 4 with one head:                 ", same(a, b))

theirs = nn.MultiheadAttention(16, 4, bias=False, batch_first=True)
with torch.no_grad():
    theirs.in_proj_weight.copy_(many.qkv_proj.weight)
    theirs.out_proj.weight.copy_(many.o_proj.weight)
hidden = torch.ones(5, 5, dtype=torch.bool).triu(diagonal=1)  # there True = hidden
ours = many(hidden_states, is_causal=True)
reference, _ = theirs(hidden_states, hidden_states, hidden_states, attn_mask=hidden, need_weights=False)
print("rung 4 = nn.MultiheadAttention:                ", same(ours, reference))
ours.square().sum().backward()
reference.square().sum().backward()
grads = many.qkv_proj.weight.grad, theirs.in_proj_weight.grad
print("and the gradient of the fused weight:          ", same(*grads))
for module in (bare, fused, one, many):
    print(f"{type(module).__name__:<23}{sum(p.numel() for p in module.parameters()):>5} parameters")
