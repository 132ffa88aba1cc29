"""FLOPs of one self-attention layer: the formula, PyTorch's counter, and the size of a real model."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from llmcore.self_attention import MultiHeadSelfAttention


def attention_flops(batch, seq, hidden):
    """One multiply-add is 2 FLOPs. Number of heads and softmax (a few per score) do not appear."""
    projections = 4 * 2 * batch * seq * hidden**2  # q, k, v and output
    scores_and_values = 2 * 2 * batch * seq**2 * hidden  # Q Kᵀ and P V
    return projections, scores_and_values


torch.manual_seed(0)
batch, seq, hidden = 2, 96, 64
layer = MultiHeadSelfAttention(hidden, 4)
x = torch.randn(batch, seq, hidden, requires_grad=True)
with FlopCounterMode(display=False) as forward:
    y = layer(x)
with FlopCounterMode(display=False) as backward:
    y.sum().backward()
total = sum(attention_flops(batch, seq, hidden))
print(f"formula {total}, counted forward {forward.get_total_flops()}, backward {backward.get_total_flops()}")
with FlopCounterMode(display=False) as causal:
    layer(x, is_causal=True)
print(f"with a causal mask: {causal.get_total_flops()} (the hidden half is computed and thrown away)")

print("\nhidden 4096, 32 heads, one layer, one sequence")
linear, quadratic = attention_flops(1, 1, 4096)  # they grow as n and as n²
print(f"the two parts are equal at {linear // quadratic} tokens")
print("tokens   projections   QKᵀ and PV   share   scores in 2 bytes")
for seq in (2048, 8192, 32768, 131072):
    projections, quadratic = attention_flops(1, seq, 4096)
    share = quadratic / (projections + quadratic)
    gib = 32 * seq**2 * 2 / 2**30
    print(f"{seq:>6}{projections:>14.2e}{quadratic:>13.2e}{share:>8.0%}{gib:>12g} GiB")
