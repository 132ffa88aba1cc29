"""Dropout acts on the weights, after the softmax: a row no longer sums to 1, its mean over draws does."""

import torch

from llmcore.attention import attention_weights, dropout, scaled_dot_product_attention
from llmcore.self_attention import SelfAttention

torch.manual_seed(0)
query, key, value = torch.randn(3, 1, 1, 4, 16)
weights = attention_weights(query, key)
dropped = dropout(weights, 0.25, torch.Generator().manual_seed(2))
print("row sums after dropout 0.25:", [round(s, 2) for s in dropped[0, 0].sum(-1).tolist()])

plain = scaled_dot_product_attention(query, key, value)
generator = torch.Generator().manual_seed(0)
draws = torch.stack(
    [
        scaled_dot_product_attention(query, key, value, dropout_p=0.25, generator=generator)
        for _ in range(4000)
    ]
)
print("mean of 4000 outputs near the plain one:", bool((draws.mean(0) - plain).abs().max() < 0.1))

scores = (query @ key.mT / 4)[0, 0]
keep = torch.rand(4, 4, generator=torch.Generator().manual_seed(2)) >= 0.25
on_scores = (scores * keep / 0.75).softmax(-1)
print("score set to 0 by dropout still gets weight:", bool((on_scores[~keep] > 0).all()))

layer = SelfAttention(16, dropout=0.25)
x = torch.randn(1, 4, 16)
print("train: two calls differ:", not torch.equal(layer(x), layer(x)))
layer.eval()
print("eval:  two calls equal: ", torch.equal(layer(x), layer(x)))
