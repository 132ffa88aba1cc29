"""Eight ways to get one line wrong, each beside PyTorch, with what gives it away."""

import torch
import torch.nn.functional as F

from llmcore.masks import causal_mask

torch.manual_seed(0)
B, H, L, D = 2, 8, 16, 64
query, key, value = torch.randn(3, B, H, L, D)
seen = causal_mask(L)
dots = query @ key.mT
hidden = dots.masked_fill(~seen, -torch.inf)
root = D**0.5

weights = {
    "right": (hidden / root).softmax(-1),
    "no scale": hidden.softmax(-1),
    "divided by d": (hidden / D).softmax(-1),
    "by √hidden_size": (hidden / (H * D) ** 0.5).softmax(-1),
    "softmax over queries": (hidden / root).softmax(-2),
    "mask after softmax": (dots / root).softmax(-1) * seen,
    "scores * mask": (dots / root * seen).softmax(-1),
    "mask upside down": (dots / root).masked_fill(seen, -torch.inf).softmax(-1).nan_to_num(),
    "bool mask added": (dots / root + seen).softmax(-1),
}
reference = F.scaled_dot_product_attention(query, key, value, seen)

print("16 tokens               error | query 7: row sum   largest   on future keys")
for name, p in weights.items():
    error = (p @ value - reference).abs().mean()
    row = p[:, :, 7]  # sees 8 keys of 16
    total, largest, future = (x.mean() for x in (row.sum(-1), row.amax(-1), row[..., 8:].sum(-1)))
    print(f"{name:<22}{error:>7.2f} |{total:>17.2f}{largest:>10.2f}{future:>17.2f}")
