import torch

from llmcore.grouped_query import mha_to_gqa, pool_kv_heads
from llmcore.multi_head import MultiHeadAttention

torch.manual_seed(0)
hidden, heads, kv_heads, size = 64, 8, 2, 8
group = heads // kv_heads
mha = MultiHeadAttention(hidden, heads, bias=False)
x = torch.randn(16, 12, hidden)
weight = mha.k_proj.weight.detach()
by_head = weight.unflatten(0, (kv_heads, group, size))  # (K, H/K, D, E)
choices = {  # the new keys, and the error that independent heads predict
    "mean": (pool_kv_heads(weight, heads, kv_heads), 1 - 1 / group),
    "first head": (by_head[:, 0].flatten(0, 1), 2 * (1 - 1 / group)),
    "random": (torch.empty(kv_heads * size, hidden).uniform_(-(hidden**-0.5), hidden**-0.5), 2),
}
keys = (x @ weight.T).unflatten(-1, (kv_heads, group, size))  # what the old query heads expect
print(f"relative squared error of the keys the query heads read, G = {group}: predicted, measured")
for name, (pooled, predicted) in choices.items():
    new = (x @ pooled.T).unflatten(-1, (kv_heads, 1, size))
    print(f"  {name:10} {predicted:<4} {((new - keys).square().sum() / keys.square().sum()):.2f}")

gqa = mha_to_gqa(mha, kv_heads)
with torch.no_grad():
    old, new = mha(x, x, x, is_causal=True), gqa(x, is_causal=True)
    print(f"output after pooling, relative error: {((new - old).norm() / old.norm()):.2f}")
    for name in ("k_proj", "v_proj"):  # make the heads of a group equal: then nothing is lost
        projection = getattr(mha, name).weight.unflatten(0, (kv_heads, group, size))
        projection.copy_(projection[:, :1].expand_as(projection).clone())
    old, new = mha(x, x, x, is_causal=True), mha_to_gqa(mha, kv_heads)(x, is_causal=True)
print("heads of a group equal: conversion exact", torch.allclose(old, new, atol=1e-6))

turned = MultiHeadAttention(hidden, heads, bias=False)  # the same function, value heads in other bases
turned.load_state_dict(mha.state_dict())
with torch.no_grad():
    for h in range(heads):
        rows, basis = slice(h * size, (h + 1) * size), torch.linalg.qr(torch.randn(size, size)).Q
        turned.v_proj.weight[rows] = basis.T @ turned.v_proj.weight[rows]
        turned.o_proj.weight[:, rows] = turned.o_proj.weight[:, rows] @ basis
    print("value heads turned: same MHA", torch.allclose(turned(x, x, x, is_causal=True), old, atol=1e-6))
    new = mha_to_gqa(turned, kv_heads)(x, is_causal=True)
    print(f"but conversion no longer exact, relative error: {((new - old).norm() / old.norm()):.2f}")
