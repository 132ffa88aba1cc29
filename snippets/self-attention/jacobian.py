"""The Jacobian of softmax, diag(p) - p pᵀ: against autograd, and what saturation leaves of it."""

import torch
from torch.autograd.functional import jacobian

from llmcore.softmax import softmax

x = torch.tensor([2.0, 1.0, 0.0, -1.0], dtype=torch.float64)
p = softmax(x)
by_hand = torch.diag(p) - torch.outer(p, p)
print("p        ", [round(v, 3) for v in p.tolist()])
print("Jacobian of scores [2, 1, 0, -1]:")
for row in by_hand.tolist():
    print("   ", "  ".join(f"{v:6.3f}" for v in row))
print("equal to autograd:", torch.allclose(by_hand, jacobian(softmax, x)))
print("rows sum to 0:", torch.allclose(by_hand.sum(-1), torch.zeros(4, dtype=torch.float64)))

upstream = torch.tensor([0.3, -0.2, 0.5, 0.1], dtype=torch.float64)
shortcut = p * (upstream - (p * upstream).sum())  # the product Jᵀ g without building J
print("p * (g - p·g) equals J g:", torch.allclose(shortcut, by_hand @ upstream))

print("\nscores   largest p   largest entry of J")
for factor in (1, 2, 4, 8, 16):
    p = softmax(x * factor)
    saturated = torch.diag(p) - torch.outer(p, p)
    print(f"   × {factor:<2}{p.max():>11.4f}{saturated.abs().max():>21.1e}")
