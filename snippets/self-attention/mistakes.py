"""Eight ways to get one line wrong, each beside PyTorch, with what gives it away."""

import torch
import torch.nn.functional as F

from llmcore.masks import causal_mask

torch.manual_seed(0)
B, H, L, D = 2, 8, 16, 64
query, key, value = torch.randn(3, B, H, L, D)
later = (torch.arange(L) > 7)[:, None]  # the tokens after token 7
query2, key2, value2 = (torch.where(later, torch.randn(B, H, L, D), x) for x in (query, key, value))
seen = causal_mask(L)
root = D**0.5


def hide(dots):
    return dots.masked_fill(~seen, -torch.inf)


ways = {
    "right": lambda dots: (hide(dots) / root).softmax(-1),
    "no scale": lambda dots: hide(dots).softmax(-1),
    "divided by d": lambda dots: (hide(dots) / D).softmax(-1),
    "by √hidden_size": lambda dots: (hide(dots) / (H * D) ** 0.5).softmax(-1),
    "softmax over queries": lambda dots: (hide(dots) / root).softmax(-2),
    "mask after softmax": lambda dots: (dots / root).softmax(-1) * seen,
    "scores * mask": lambda dots: (dots / root * seen).softmax(-1),
    "mask upside down": lambda dots: (dots / root).masked_fill(seen, -torch.inf).softmax(-1).nan_to_num(),
    "bool mask added": lambda dots: (dots / root + seen).softmax(-1),
}
reference = F.scaled_dot_product_attention(query, key, value, seen)

print("16 tokens               error | query 7: row sum  largest  on future keys  feels the future")
for name, weights in ways.items():
    p = weights(query @ key.mT)
    error = (p @ value - reference).abs().mean()
    row = p[:, :, 7]  # sees 8 keys of 16
    total, largest, future = (x.mean() for x in (row.sum(-1), row.amax(-1), row[..., 8:].sum(-1)))
    moved = weights(query2 @ key2.mT) @ value2
    feels = bool((moved - p @ value)[:, :, 7].abs().max() > 1e-5)
    print(f"{name:<22}{error:>7.2f} |{total:>17.2f}{largest:>9.2f}{future:>16.2f}  {feels!s:>16}")
