r"""Axes of length 1 are put in front, then all four are compared one by one in a loop."""

import torch


def check_mask_dims(mask):
    if mask.ndim == 3:
        raise ValueError(f"{tuple(mask.shape)} could be over the batch or over the heads")
    if mask.ndim == 0 or mask.ndim > 4:
        raise ValueError(f"{tuple(mask.shape)} is no shape of a mask")


def expand_mask(attn_mask, shape, device=None):
    if attn_mask.dtype not in (torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(f"a mask of {attn_mask.dtype} is neither flags nor numbers to add")
    if device is not None and attn_mask.device != device:
        raise ValueError(f"scores on {device}, mask on {attn_mask.device}")
    check_mask_dims(attn_mask)
    full = attn_mask
    while full.ndim < 4:
        full = full.unsqueeze(0)
    for axis in range(4):
        allowed = (shape[axis],) if axis == 3 else (1, shape[axis])
        if full.shape[axis] not in allowed:
            raise ValueError(
                f"mask {tuple(attn_mask.shape)} for scores {tuple(shape)}: axis {axis} does not fit"
            )
    return torch.broadcast_to(full, shape)
