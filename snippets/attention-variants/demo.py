import math

import torch

from llmcore.grouped_query import GroupedQueryAttention
from llmcore.heads import repeat_kv, split_heads
from llmcore.masks import causal_mask
from llmcore.multi_head import MultiHeadAttention

GIB = 2**30
batch, seq, hidden, heads = 128, 512, 1024, 8
size, entry = batch * heads * seq * seq * 4, batch * seq * hidden * 4  # bytes
print(f"scores ({batch}, {heads}, {seq}, {seq}) fp32: 2^{math.log2(size):.0f} bytes = {size / GIB:.0f} GiB")
print(f"input  ({batch}, {seq}, {hidden}) fp32: {entry / GIB:.2f} GiB, scores {size // entry} times as much")

torch.manual_seed(0)
mha = MultiHeadAttention(hidden, heads)  # the same layer on 2 sequences of 16 tokens
x = torch.randn(2, 16, hidden)
keep = 1 - torch.triu(torch.ones(16, 16), diagonal=1)  # 1 = may attend
print("mask equal to causal_mask:", torch.equal(keep.bool(), causal_mask(16)))
out = mha(x, x, x, keep.bool())
print("MHA", tuple(x.shape), "->", tuple(out.shape))

gqa = GroupedQueryAttention(256, num_heads=8, num_kv_heads=2)
x = torch.randn(2, 16, 256)
k = gqa.k_proj(x)
print("GQA", tuple(x.shape), "->", tuple(gqa(x, is_causal=True).shape))
for name, tensor in {
    "q_proj": gqa.q_proj(x),
    "  split_heads(q, 8)": split_heads(gqa.q_proj(x), 8),
    "k_proj": k,
    "  view": k.view(2, 16, 2, 32),
    "  transpose": k.view(2, 16, 2, 32).transpose(1, 2),
    "  unsqueeze": split_heads(k, 2)[:, :, None],
    "  expand": split_heads(k, 2)[:, :, None].expand(2, 2, 4, 16, 32),
    "  reshape": repeat_kv(split_heads(k, 2), 4),
}.items():
    print(f"{name:20} {tuple(tensor.shape)}")
