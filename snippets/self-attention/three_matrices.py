"""What two of the three matrices buy: a bilinear form of low rank that need not be symmetric."""

import torch

from llmcore.attention import attention_weights

torch.manual_seed(0)
E, D, L = 64, 8, 6
make = {"dtype": torch.float64}
w_q, w_k = torch.randn(E, D, **make) / 8, torch.randn(E, D, **make) / 8
x = torch.randn(L, E, **make)
form = w_q @ w_k.T  # (E, E): scores = x form xᵀ

scores = (x @ w_q) @ (x @ w_k).T
print("scores from the form alone:", torch.allclose(scores, x @ form @ x.T))
print(
    f"rank of the {E} x {E} form: {torch.linalg.matrix_rank(form)}; parameters {2 * E * D} instead of {E * E}"
)
mix = torch.randn(D, D, **make)
same = (x @ w_q @ mix) @ (x @ w_k @ torch.linalg.inv(mix).T).T
print("W_Q A and W_K A^-T give the same scores:", torch.allclose(scores, same))

shared = (x @ w_q) @ (x @ w_q).T
print(
    "\nW_Q = W_K: scores symmetric:",
    torch.allclose(shared, shared.T),
    "| separate:",
    torch.allclose(scores, scores.T),
)
print("W_Q = W_K: all squared lengths on the diagonal:", bool((shared.diagonal() >= 0).all()))

many = torch.randn(200, 1, L, E)
heads = {
    "no projection": (many, many),
    "W_Q = W_K": (many @ w_q.float(), many @ w_q.float()),
    "W_Q and W_K": (many @ w_q.float(), many @ w_k.float()),
}
print(f"\nmean weight of a token on itself, {L} tokens (uniform {1 / L:.2f})")
for name, (query, key) in heads.items():
    print(f"    {name:<14}{attention_weights(query, key).diagonal(dim1=-2, dim2=-1).mean():.2f}")
