"""Additive (Bahdanau) scores beside dot-product scores: what each has to hold in memory."""

import torch

torch.manual_seed(0)
B, L, S, D = 2, 32, 48, 64
query, key = torch.randn(B, L, D), torch.randn(B, S, D)
w, u, v = torch.randn(D, D) / 8, torch.randn(D, D) / 8, torch.randn(D) / 8

dot = query @ key.mT / D**0.5  # (B, L, S), one matrix product
hidden = torch.tanh((query @ w)[:, :, None] + (key @ u)[:, None])  # (B, L, S, D): every pair gets a vector
additive = hidden @ v  # (B, L, S)

print("scores:", tuple(dot.shape), tuple(additive.shape))
print("largest intermediate, dot product:", dot.numel(), "numbers")
times = hidden.numel() // dot.numel()
print("largest intermediate, additive:   ", hidden.numel(), f"numbers, {times} times as many, tanh of each")
bound = v.abs().sum()
print("additive scores stay within ±‖v‖₁: ", bool((additive.abs() <= bound).all()))
