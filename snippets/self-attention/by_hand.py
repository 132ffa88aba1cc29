"""Self-attention on three tokens, small enough for a pencil. head_dim is 4, so that its root is 2."""

import torch

from llmcore.attention import attention_weights, scaled_dot_product_attention

x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # 3 tokens, hidden_size 2
w_q = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])  # (2, 4)
w_k = torch.tensor([[1.0, 1.0, 0.0, 2.0], [1.0, -1.0, 2.0, 0.0]])  # (2, 4)
w_v = torch.tensor([[2.0, 0.0], [0.0, 4.0]])  # (2, 2)


def show(name: str, matrix: torch.Tensor) -> None:
    rows = ["  ".join(f"{value:6.3f}" for value in row) for row in matrix.tolist()]
    print(f"{name:<16}" + ("\n" + " " * 16).join(rows))


query, key, value = x @ w_q, x @ w_k, x @ w_v
show("Q", query)
show("K", key)
show("V", value)
show("Q Kᵀ", query @ key.T)
show("Q Kᵀ / 2", query @ key.T / 4**0.5)
show("sum of exp", (query @ key.T / 4**0.5).exp().sum(-1, keepdim=True))  # what each row is divided by

q, k, v = query[None, None], key[None, None], value[None, None]  # llmcore wants (B, H, L, D)
show("weights", attention_weights(q, k)[0, 0])
show("output", scaled_dot_product_attention(q, k, v)[0, 0])
show("causal weights", attention_weights(q, k, is_causal=True)[0, 0])
show("causal output", scaled_dot_product_attention(q, k, v, is_causal=True)[0, 0])
