"""Without positions self-attention does not know the order; a causal mask lets some of it back in."""

import torch

from llmcore.self_attention import MultiHeadSelfAttention

torch.manual_seed(0)
first, second = MultiHeadSelfAttention(16, 4), MultiHeadSelfAttention(16, 4)
x = torch.randn(1, 6, 16)
order = torch.tensor([3, 1, 4, 0, 2, 5])  # the last token stays last
positions = torch.randn(6, 16)


def same(a, b):
    return bool((a - b).abs().max() < 1e-5)


print("f(P x) = P f(x), no mask:          ", same(first(x[:, order]), first(x)[:, order]))
print(
    "f(P x) = P f(x), positions added:  ",
    same(first(x[:, order] + positions), first(x + positions)[:, order]),
)
causal = {"is_causal": True}
print("f(P x) = P f(x), causal:           ", same(first(x[:, order], **causal), first(x, **causal)[:, order]))
one = first(x[:, order], **causal)[:, -1], first(x, **causal)[:, -1]
print("last token unchanged, 1 causal layer: ", same(*one))


def stack(x):
    x = x + first(x, is_causal=True)
    return x + second(x, is_causal=True)


print("last token unchanged, 2 causal layers:", same(stack(x[:, order])[:, -1], stack(x)[:, -1]))
