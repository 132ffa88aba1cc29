"""What a weighted mean cannot do: keep tokens apart, keep its focus among many keys; and what rank it has."""

import math

import torch

from llmcore.attention import attention_weights
from llmcore.masks import causal_mask
from llmcore.softmax import softmax

torch.manual_seed(0)
n, E = 32, 64
start = torch.randn(n, E)
layers = [[torch.randn(E, E) / E**0.5 for _ in "qkv"] for _ in range(8)]


def spread(x):
    """Distance of the tokens from their mean, as a share of their length: 0 where all are equal."""
    return (x - x.mean(0)).norm() / x.norm()


print("spread of the tokens after 0, 1, 2, 4 and 8 layers")
for name, residual in (("attention only", 0.0), ("with residual", 1.0)):
    x, rows = start, [spread(start)]
    for w_q, w_k, w_v in layers:
        x = residual * x + attention_weights((x @ w_q)[None, None], (x @ w_k)[None, None])[0, 0] @ x @ w_v
        rows.append(spread(x))
    print(f"    {name:<16}" + "".join(f"{rows[i]:>7.2f}" for i in (0, 1, 2, 4, 8)))

print("\nweight of a key that scores 5 where all others score 0")
for keys in (16, 256, 4096, 65536):
    scores = torch.zeros(keys)
    scores[0] = 5.0
    plain, scaled = softmax(scores)[0], softmax(scores * math.log(keys) / math.log(16))[0]
    print(f"    among {keys:>5} keys: {plain:.3f}, scores times log n / log 16: {scaled:.3f}")

query, key = torch.randn(1, 1, n, 4, dtype=torch.float64), torch.randn(1, 1, n, 4, dtype=torch.float64)
full, causal = attention_weights(query, key), attention_weights(query, key, causal_mask(n))
ranks = [int(torch.linalg.matrix_rank(m)) for m in (query @ key.mT, full, causal)]
print(f"\n{n} tokens, head_dim 4: rank of Q Kᵀ {ranks[0]}, weights {ranks[1]}, causal weights {ranks[2]}")
