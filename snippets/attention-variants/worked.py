import torch

from llmcore.attention import attention_weights
from llmcore.heads import merge_heads, split_heads

torch.set_printoptions(precision=4, sci_mode=False)
x = torch.tensor([[[1.0, 0.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0]]])  # (B, L, E) = (1, 2, 4)
w_o = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])  # (H*D, 2): two rows a head

q = k = v = split_heads(x, 2)  # (B, H, L, D) = (1, 2, 2, 2); the projections are the identity here
scores = q @ k.mT / 2**0.5  # (B, H, L, S), divided by sqrt(D)
weights = attention_weights(q, k)  # their softmax
heads = weights @ v  # (B, H, L, D)
print("MHA: weights of the first token")
for h in range(2):
    products = (q[0, h, 0] @ k[0, h].T).tolist()
    print(f"  head {h}: q.k = {products}, scaled {scores[0, h, 0]} -> {weights[0, h, 0]}")
print("concat:", merge_heads(heads)[0, 0])
print("concat @ W_o:        ", (merge_heads(heads) @ w_o)[0, 0])
per_head = [heads[:, h] @ w_o[2 * h : 2 * h + 2] for h in range(2)]
print("sum of head_i @ W_i: ", sum(per_head)[0, 0], "from", per_head[0][0, 0], "+", per_head[1][0, 0])

shared = attention_weights(q, k[:, :1])  # K = 1: both query heads read key head 0
print("MQA: weights of the first token")
for h in range(2):
    print(f"  head {h}: q.k = {(q[0, h, 0] @ k[0, 0].T).tolist()} -> {shared[0, h, 0]}")
