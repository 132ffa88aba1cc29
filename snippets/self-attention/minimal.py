"""The interview version, written from memory, held to PyTorch's own function."""

import math

import torch
import torch.nn.functional as F


def softmax(x, dim=-1):
    x = x - x.amax(dim, keepdim=True)  # the largest exponent is 0: no overflow
    exp = x.exp()
    return exp / exp.sum(dim, keepdim=True)


def attention(query, key, value, mask=None):
    """query (..., L, D), key (..., S, D), value (..., S, Dv), mask bool (..., L, S), True = may attend."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (..., L, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))  # before the softmax
    return softmax(scores, dim=-1) @ value  # over the keys; (..., L, Dv)


torch.manual_seed(0)
query, key, value = torch.randn(2, 3, 5, 16), torch.randn(2, 3, 7, 16), torch.randn(2, 3, 7, 8)
mask = torch.ones(5, 7, dtype=torch.bool).tril(diagonal=7 - 5)

for name, m in (("no mask", None), ("causal", mask)):
    ours, theirs = attention(query, key, value, m), F.scaled_dot_product_attention(query, key, value, m)
    print(f"{name}: {tuple(ours.shape)}, error below 1e-6: {bool((ours - theirs).abs().max() < 1e-6)}")
