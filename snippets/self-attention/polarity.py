"""One boolean mask means opposite things to F.scaled_dot_product_attention and nn.MultiheadAttention."""

import torch
import torch.nn.functional as F
from torch import nn

from llmcore.heads import merge_heads, split_heads
from llmcore.masks import additive_mask, causal_mask

torch.manual_seed(0)
x = torch.randn(2, 6, 16)
layer = nn.MultiheadAttention(16, 4, batch_first=True).eval()
query, key, value = (
    split_heads(p, 4) for p in F.linear(x, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1)
)
seen = causal_mask(6)  # True = may attend
wanted = layer.out_proj(merge_heads(F.scaled_dot_product_attention(query, key, value, seen)))


print("nn.MultiheadAttention against F.scaled_dot_product_attention(mask = True where visible)")
for name, mask in (
    ("same mask (True = visible)", seen),
    ("inverted (True = hidden)", ~seen),
    ("additive 0 / -inf", additive_mask(seen)),
):
    out, _ = layer(x, x, x, attn_mask=mask, need_weights=False)
    error = (out - wanted).abs().amax((0, 2))  # per token
    told = (
        "right" if bool((error < 1e-5).all()) else f"error per token {[round(e, 2) for e in error.tolist()]}"
    )
    print(f"    {name:<28}{told}")

print(
    "\nan additive mask where `masked_fill(mask == 0, -inf)` is expected: visible is 0, so visible is hidden"
)
scores = query @ key.mT / 2
wrong = scores.masked_fill(additive_mask(seen) == 0, -torch.inf).softmax(-1)
print("weight on visible keys, rows 0 to 5:", [round(v, 2) for v in (wrong[0, 0] * seen).sum(-1).tolist()])
