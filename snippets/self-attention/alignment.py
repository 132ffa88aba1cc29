"""A causal mask aligned top-left is wrong as soon as there are fewer queries than keys."""

import torch
import torch.nn.functional as F

from llmcore.attention import attention_weights, scaled_dot_product_attention
from llmcore.masks import causal_mask

torch.manual_seed(0)
top_left = torch.ones(2, 4, dtype=torch.bool).tril()
query, value = torch.randn(10, 8, 2, 16), torch.randn(10, 8, 4, 16)
key = torch.randn(10, 8, 4, 16, requires_grad=True)

weights = attention_weights(query, key, top_left)
scaled_dot_product_attention(query, key, value, top_left).square().sum().backward()
print("top-left, mean weight per key:  ", [round(w, 2) for w in weights.mean((0, 1, 2)).tolist()])
print("top-left, gradient per key is 0:", (key.grad.abs().sum((0, 1, 3)) == 0).tolist())
right = scaled_dot_product_attention(query, key, value, is_causal=True)
wrong = scaled_dot_product_attention(query, key, value, top_left)
print(f"difference of the outputs, mean absolute: {(right - wrong).abs().mean():.2f}")
torch_causal = F.scaled_dot_product_attention(query, key, value, is_causal=True)
print("PyTorch's is_causal=True is top-left:", bool((torch_causal - wrong).abs().max() < 1e-5))

# Decoding with a cache: 6 tokens, the last 2 (or 1) of them new.
q, k, v = torch.randn(3, 1, 8, 6, 16)
full = scaled_dot_product_attention(q, k, v, is_causal=True)  # all six at once
print("\nlast queries only, error against the full run:")
for new in (2, 1):
    for name, mask in (
        ("bottom-right", causal_mask(new, 6)),
        ("tril()", torch.ones(new, 6, dtype=torch.bool).tril()),
        ("tril(S - L)", torch.ones(new, 6, dtype=torch.bool).tril(6 - new)),
        ("~triu(S - L + 1)", ~torch.ones(new, 6, dtype=torch.bool).triu(6 - new + 1)),
    ):
        error = (scaled_dot_product_attention(q[:, :, -new:], k, v, mask) - full[:, :, -new:]).abs().mean()
        print(f"  {new} new, {name:<17} sees {mask.sum(-1).tolist()!s:<7} keys, error {error:.2f}")
