"""Every shape from inputs to output: heads on their own axis, then folded into the batch."""

import torch

from llmcore.attention import attention_weights
from llmcore.heads import merge_heads, split_heads
from llmcore.masks import additive_mask, causal_mask
from llmcore.multi_head import MultiHeadAttention

torch.manual_seed(0)
mha = MultiHeadAttention(128, 8, kdim=128, vdim=64, head_dim=16, v_head_dim=16, out_dim=8)
query, key, value = torch.randn(10, 2, 128), torch.randn(10, 4, 128), torch.randn(10, 4, 64)


def show(name: str, x: torch.Tensor) -> None:
    print(f"{name:<38}{tuple(x.shape)}")


show("query", query)
show("key", key)
show("value", value)
show("q_proj(query)", mha.q_proj(query))
show("k_proj(key)", mha.k_proj(key))
show("v_proj(value)", mha.v_proj(value))
q = split_heads(mha.q_proj(query), 8)
k = split_heads(mha.k_proj(key), 8)
v = split_heads(mha.v_proj(value), 8)
show("q: split into heads", q)
show("k", k)
show("v", v)
weights = attention_weights(q, k, causal_mask(2, 4))
show("weights = softmax(q kᵀ / √16 + mask)", weights)
show("weights @ v", weights @ v)
merged = merge_heads(weights @ v)
show("merge_heads", merged)
output = mha.o_proj(merged)
show("o_proj: output", output)
whole = mha(query, key, value, is_causal=True)
print("equal to MultiHeadAttention:", bool((output - whole).abs().max() < 1e-6))

print("\nthe same with the heads moved in front and folded into the batch")
q80, k80, v80 = (x.transpose(0, 1).flatten(0, 1) for x in (q, k, v))  # row h * 10 + b
show("q", q80)
show("k", k80)
show("v", v80)
scores = q80 @ k80.transpose(-2, -1) / 16**0.5
show("scores", scores)
mask = additive_mask(causal_mask(2, 4)).expand(10, 2, 4)
show("additive mask", mask)
attention = torch.softmax(scores + mask.repeat(8, 1, 1), dim=-1)
show("attention", attention)
mixed = (attention @ v80).unflatten(0, (8, 10))  # (H, B, L, D)
show("attention @ v, unfolded", mixed)
out80 = mha.o_proj(mixed.permute(1, 2, 0, 3).flatten(2))
show("output", out80)
print("same output:", bool((out80 - output).abs().max() < 1e-6))
