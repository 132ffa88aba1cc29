import torch
import torch.nn.functional as F
from torch import nn

from llmcore.masks import additive_mask, causal_mask, combine_masks, padding_mask


def note_attention(q, k, v, mask):
    """A common convention: 1 = may attend, 0 = hidden. Nothing checks what it is given."""
    scores = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(mask == 0, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ v, weights


torch.manual_seed(0)
q, k, v = (torch.randn(8, 8, 8, 16) for _ in range(3))  # B = H = L = S = 8
keep = causal_mask(8)

_, weights = note_attention(
    q, k, v, additive_mask(keep)
)  # the first note's mask: 0 = may attend, -inf = hidden
future = weights[:, :, :-1].masked_fill(keep[:-1], 0.0).sum(-1).mean()
last = bool(weights[:, :, -1].isnan().all())
print(f"additive mask where 1/0 is meant: weight on future keys {future:.2f}, last row NaN: {last}")

mha = nn.MultiheadAttention(128, 8, batch_first=True)
x = torch.randn(2, 8, 128)
for name, mask in {"True = keep": keep, "True = hide": ~keep}.items():
    out, weights = mha(x, x, x, attn_mask=mask)
    future = weights[:, :-1].masked_fill(keep[:-1], 0.0).sum(-1).mean()
    nan = int(out.isnan().any(-1).sum())
    print(f"nn.MultiheadAttention, {name}: weight on future keys {future:.2f}, NaN rows {nan} of 16")

real = padding_mask(torch.tensor([8, 3, 5, 8, 4, 6, 7, 2]), 8)  # (B, 1, 1, S)
right, _ = note_attention(q, k, v, real)
by_sequence = real[:, 0].expand(8, 8, 8)  # (B, L, S): lands on the axis of the heads
for name, mask in {"(B, L, S) with B = H": by_sequence, "(B, S) with B = L": real[:, 0, 0]}.items():
    out, _ = note_attention(q, k, v, mask)
    sdpa = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # the same error, and no warning either
    print(f"{name}: error {(out - right).abs().max():.1f}, in SDPA {(sdpa - right).abs().max():.1f}")
try:
    combine_masks(by_sequence, keep)
except ValueError as error:
    print("llmcore:", error)
