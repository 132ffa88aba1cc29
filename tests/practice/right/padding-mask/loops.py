r"""Sequence by sequence in Python."""

import torch

from llmcore.checks import check_positive


def padding_mask(lengths, max_len=None, *, side="right"):
    if lengths.dim() != 1 or not lengths.numel():
        raise ValueError(f"lengths has shape {tuple(lengths.shape)}, a vector is needed")
    if lengths.dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        raise ValueError(f"lengths has dtype {lengths.dtype}, integers are needed")
    if side not in ("left", "right"):
        raise ValueError(f"side is {side}, not left or right")
    counts = lengths.tolist()
    if max_len is None:
        max_len = max(counts)
    check_positive(max_len=max_len)
    mask = torch.zeros(len(counts), 1, 1, max_len, dtype=torch.bool, device=lengths.device)
    for row, count in zip(mask, counts, strict=True):
        if not 0 <= count <= max_len:
            raise ValueError(f"length {count} is not in 0..{max_len}")
        if side == "right":
            row[..., :count] = True
        else:
            row[..., max_len - count :] = True
    return mask
