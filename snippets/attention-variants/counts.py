import torch
from torch.utils.flop_counter import FlopCounterMode

from llmcore.grouped_query import GroupedQueryAttention

batch, length, hidden, heads = 2, 256, 512, 8
size = hidden // heads
x = torch.randn(batch, length, hidden)
print("       parameters          MFLOPs of one forward          KV floats")
print("       formula  module   projections  attention  counted  a token")
for kv_heads in (8, 4, 2, 1):
    gqa = GroupedQueryAttention(hidden, heads, kv_heads)
    formula = 2 * hidden * size * (heads + kv_heads)
    params = sum(p.numel() for p in gqa.parameters())
    projections = 2 * batch * length * formula
    attention = 4 * batch * heads * length * length * size
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        gqa(x)
    assert (params, counter.get_total_flops()) == (formula, projections + attention)
    print(
        f"K = {kv_heads}  {formula:7}  {params:6}   {projections / 1e6:11.1f}  {attention / 1e6:9.1f}"
        f"  {counter.get_total_flops() / 1e6:7.1f}  {2 * kv_heads * size:7}"
    )


def llama3_layer(kv_heads, hidden=4096, heads=32, head_dim=128, ffn=14336):
    attention = 2 * hidden * head_dim * (heads + kv_heads)
    params = attention + 3 * hidden * ffn
    print(f"{kv_heads:2} kv heads: {attention:,} parameters in attention, {params:,} with the FFN;")
    q_and_out, k_and_v = 2 * heads * head_dim, 2 * kv_heads * head_dim
    print(f"   a token has {q_and_out} numbers of Q and output, {k_and_v} of K and V, {3 * ffn} in the FFN")
    return params


print("a layer of Llama 3 8B")
gqa, mha = llama3_layer(8), llama3_layer(32)
print(f"MHA instead of GQA: {mha / gqa - 1:.0%} more parameters, {32 // 8} times the cache")
