import torch

from llmcore.attention import scaled_dot_product_attention
from llmcore.masks import additive_mask, causal_mask, combine_masks, padding_mask


def note_attention(x, w, mask):
    """One head, additive mask, plain softmax."""
    q, k, v = (x @ w).chunk(3, dim=-1)
    scores = q @ k.mT / q.size(-1) ** 0.5 + mask[:, 0]
    return torch.softmax(scores, dim=-1) @ v


def our_attention(x, w, mask):
    q, k, v = (part[:, None] for part in (x @ w).chunk(3, dim=-1))  # (B, 1, L, D)
    return scaled_dot_product_attention(q, k, v, mask)[:, 0]


torch.manual_seed(0)
w = torch.randn(8, 24, requires_grad=True)
x = torch.randn(2, 6, 8)
mask = combine_masks(
    causal_mask(6), padding_mask(torch.tensor([4, 6]), side="left")
)  # 2 pad tokens on the left
print("sequence 0, rows that see no key:", (~mask[0, 0].any(-1)).nonzero().flatten().tolist())

for name, attention, layer_mask in (
    ("plain softmax", note_attention, additive_mask(mask)),
    ("llmcore      ", our_attention, mask),
):
    first = attention(x, w, layer_mask)
    second = attention(first, w, layer_mask)
    real = first[mask[:, 0].diagonal(dim1=-2, dim2=-1)]  # the loss looks at real tokens of layer 1 only
    (gradient,) = torch.autograd.grad(real.square().sum(), w)
    nan = [layer.isnan().any(-1)[0].nonzero().flatten().tolist() for layer in (first, second)]
    print(
        name,
        "NaN rows after layer 1:",
        nan[0],
        "layer 2:",
        nan[1],
        "- gradient NaN:",
        bool(gradient.isnan().any()),
    )
