"""The backward pass of attention in five formulas, held to autograd."""

import math

import torch

from llmcore.attention import attention_weights, scaled_dot_product_attention
from llmcore.masks import causal_mask

torch.manual_seed(0)
make = {"dtype": torch.float64, "requires_grad": True}
query, key, value = (
    torch.randn(2, 3, 5, 8, **make),
    torch.randn(2, 3, 7, 8, **make),
    torch.randn(2, 3, 7, 6, **make),
)
mask = causal_mask(5, 7)
d_out = torch.randn(2, 3, 5, 6, dtype=torch.float64)  # gradient that arrives at the output


def attention_backward(q, k, v, mask, d_out):
    scale = 1 / math.sqrt(q.size(-1))
    p = attention_weights(q, k, mask)  # (B, H, L, S)
    d_v = p.mT @ d_out  # (B, H, S, Dv)
    d_p = d_out @ v.mT  # (B, H, L, S)
    d_s = p * (d_p - (p * d_p).sum(-1, keepdim=True))  # softmax; 0 where p is 0, so the mask needs no line
    d_q = d_s @ k * scale  # (B, H, L, D)
    d_k = d_s.mT @ q * scale  # (B, H, S, D)
    return d_q, d_k, d_v, d_s


scaled_dot_product_attention(query, key, value, mask).backward(d_out)
with torch.no_grad():
    *by_hand, d_s = attention_backward(query, key, value, mask, d_out)
    output = scaled_dot_product_attention(query, key, value, mask)
    weights = attention_weights(query, key, mask)
for name, ours, tensor in zip(("dQ", "dK", "dV"), by_hand, (query, key, value), strict=True):
    print(name, tuple(ours.shape), "equal to autograd:", torch.allclose(ours, tensor.grad, atol=1e-12))
print("hidden keys get no gradient:", bool((d_s[..., ~mask] == 0).all()))
print("rows of dS sum to 0:", bool(d_s.sum(-1).abs().max() < 1e-12))
row_dot = (weights * (d_out @ value.mT)).sum(-1)
print("sum of p * dP equals sum of O * dO:", torch.allclose(row_dot, (output * d_out).sum(-1)))
