"""A common way to add the mask, and what breaks it: three crashes, a silent error, a clash of dtypes."""

import torch
from torch import nn

from llmcore.attention import attention_weights
from llmcore.masks import causal_mask


def naive_weights(scores, mask):
    """scores (B * H, L, S), heads first; mask expected additive (B, L, S)."""
    return torch.softmax(scores + mask.repeat(8, 1, 1), dim=-1)


torch.manual_seed(0)
query, key = torch.randn(10, 8, 2, 16), torch.randn(10, 8, 4, 16)
scores = (query @ key.mT / 4).transpose(0, 1).flatten(0, 1)  # (80, 2, 4)
seen = causal_mask(2, 4)
additive = torch.zeros(2, 4).masked_fill(~seen, -torch.inf)

for name, mask in (("no", None), ("2-D", additive), ("4-D", additive.expand(10, 1, 2, 4))):
    try:
        naive_weights(scores, mask)
    except (AttributeError, RuntimeError) as error:
        shape = tuple(attention_weights(query, key, mask).shape)
        print(f"{name} mask: {type(error).__name__}; llmcore: {shape}")

top_left = torch.ones(2, 4, dtype=torch.bool).tril()
for name, visible in (("top-left", top_left), ("bottom-right", seen)):
    silent = naive_weights(scores, visible.expand(10, 2, 4))
    hidden = (silent * ~visible).sum(-1).mean()
    right = (attention_weights(query, key, visible) * ~visible).sum()
    print(f"bool mask, {name}: {hidden:.2f} of the weight on hidden keys; llmcore {right:.2f}")

layer = nn.Linear(16, 16, dtype=torch.bfloat16)
values = layer(torch.randn(10, 8, 4, 16, dtype=torch.bfloat16))
mixed_dtype = torch.softmax((query @ key.mT).bfloat16() + additive, dim=-1)  # the fp32 mask makes it fp32
try:
    mixed_dtype @ values
except RuntimeError as error:
    weights = attention_weights(query.bfloat16(), key.bfloat16(), additive)
    print(f"bf16 module, fp32 mask: {type(error).__name__}; llmcore: {weights.dtype}")
