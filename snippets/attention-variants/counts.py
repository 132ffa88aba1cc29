import torch
from torch.utils.flop_counter import FlopCounterMode

from llmcore.grouped_query import GroupedQueryAttention

batch, length, hidden, heads = 2, 256, 512, 8
size = hidden // heads
x = torch.randn(batch, length, hidden)
print(" K  parameters          MFLOPs of one forward          KV floats")
print("    formula  module   projections  attention  counted  a token")
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
        f"{kv_heads:2}  {formula:7}  {params:6}   {projections / 1e6:11.1f}  {attention / 1e6:9.1f}"
        f"  {counter.get_total_flops() / 1e6:7.1f}  {2 * kv_heads * size:7}"
    )
