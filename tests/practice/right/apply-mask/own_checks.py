r"""Its own checks of the shape, torch.where for booleans."""

import torch


def apply_mask(scores, attn_mask):
    shape, wanted = tuple(attn_mask.shape), tuple(scores.shape)
    if attn_mask.device != scores.device:
        raise ValueError(f"mask on {attn_mask.device}, scores on {scores.device}")
    if len(shape) not in (1, 2, 4):
        raise ValueError(f"a mask of shape {shape} is ambiguous")
    padded = (1,) * (4 - len(shape)) + shape
    if shape[-1] != wanted[-1] or any(m not in (1, n) for m, n in zip(padded, wanted, strict=True)):
        raise ValueError(f"mask {shape} does not fit scores {wanted}")
    if attn_mask.dtype == torch.bool:
        return torch.where(
            attn_mask, scores, torch.tensor(float("-inf"), dtype=scores.dtype, device=scores.device)
        )
    if attn_mask.is_floating_point():
        return torch.add(scores, attn_mask.to(scores.dtype))
    raise ValueError(f"a mask of {attn_mask.dtype} is neither boolean nor floating point")
