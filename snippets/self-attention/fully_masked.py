"""One row that may see nothing: NaN in its output and in the gradients, though the row is not in the loss."""

import torch
import torch.nn.functional as F
from torch import nn

from llmcore.attention import scaled_dot_product_attention

mask = torch.ones(4, 4, dtype=torch.bool).tril()
mask[0] = False  # the first query sees no key, as under left padding


def textbook_add(query, key, value, mask):
    scores = query @ key.mT / query.size(-1) ** 0.5
    return torch.softmax(scores + torch.zeros(4, 4).masked_fill(~mask, -torch.inf), dim=-1) @ value


def textbook_fill(query, key, value, mask):
    scores = query @ key.mT / query.size(-1) ** 0.5
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1) @ value


def textbook_repaired(query, key, value, mask):
    scores = query @ key.mT / query.size(-1) ** 0.5
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1).nan_to_num() @ value


def run(attention):
    torch.manual_seed(0)
    layers = nn.ModuleDict({name: nn.Linear(8, 8) for name in ("q_proj", "k_proj", "v_proj", "o_proj")})
    x = torch.randn(2, 1, 4, 8)
    mixed = attention(layers["q_proj"](x), layers["k_proj"](x), layers["v_proj"](x), mask)
    out = layers["o_proj"](mixed)
    out[:, :, 1:].square().mean().backward()  # row 0 is left out of the loss
    nan = [name for name, p in layers.named_parameters() if p.grad.isnan().any()]
    return mixed[0, 0, 0, :2].tolist(), nan


for name, attention in (
    ("scores + mask", textbook_add),
    ("masked_fill", textbook_fill),
    ("scores + mask, nan_to_num of the output", lambda *x: textbook_add(*x).nan_to_num()),
    ("masked_fill, nan_to_num of the output", lambda *x: textbook_fill(*x).nan_to_num()),
    ("masked_fill, nan_to_num of the weights", textbook_repaired),
    ("F.scaled_dot_product_attention", F.scaled_dot_product_attention),
    ("llmcore", scaled_dot_product_attention),
):
    row, nan = run(attention)
    weights = " ".join(name for name in nan if name.endswith("weight")) or "none"
    print(f"{name}: row 0 starts {row}\n    weights with NaN gradient: {weights}")
    print(
        f"    biases with NaN gradient: {' '.join(name for name in nan if name.endswith('bias')) or 'none'}"
    )

x = torch.randn(1, 1, 4, 8)
for depth in (1, 2):
    x = x + textbook_fill(x, x, x, mask)
    print(f"textbook, NaN rows after layer {depth}: {x.isnan().any(-1)[0, 0].tolist()}")

value = torch.randn(1, 1, 4, 8)
value[0, 0, 3] = torch.nan  # a hidden key with a NaN value: its weight is 0, and 0 * NaN is NaN
query = key = torch.randn(1, 1, 4, 8)
out = scaled_dot_product_attention(query, key, value, torch.tensor([True, True, True, False]))
print("NaN in a hidden value reaches the output:", bool(out.isnan().any()))
