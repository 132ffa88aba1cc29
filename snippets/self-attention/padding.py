"""Padding must not be felt: each sequence of a padded batch gives what it gives alone."""

import torch

from llmcore.masks import causal_mask, combine_masks, padding_mask
from llmcore.self_attention import MultiHeadSelfAttention

torch.manual_seed(0)
layer = MultiHeadSelfAttention(16, 4)
sequences = [torch.randn(1, n, 16) for n in (6, 3, 4)]
lengths = torch.tensor([6, 3, 4])


def pad(side):
    batch = torch.full((3, 6, 16), 50.0)  # padding with loud garbage
    for row, x in zip(batch, sequences, strict=True):
        where = slice(0, x.size(1)) if side == "right" else slice(6 - x.size(1), 6)
        row[where] = x[0]
    return batch


for side in ("right", "left"):
    batch = pad(side)
    mask = combine_masks(causal_mask(6), padding_mask(lengths, side=side))  # (B, 1, L, S)
    for name, m in (("with padding mask", mask), ("causal only", causal_mask(6))):
        out = layer(batch, m)
        errors = []
        for row, x in zip(out, sequences, strict=True):
            where = slice(0, x.size(1)) if side == "right" else slice(6 - x.size(1), 6)
            errors.append((row[where] - layer(x, is_causal=True)[0]).abs().max())
        print(f"{side:<6}{name:<18} real tokens as alone: {bool(max(errors) < 1e-5)}")
    empty, finite = int((~mask.any(-1)).sum()), bool(layer(batch, mask).isfinite().all())
    print(f"{side:<6}fully masked rows: {empty}, output finite: {finite}")
