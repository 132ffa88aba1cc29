r"""The logarithm of 1 and 0 is 0 and minus infinity."""

import torch


def additive_mask(mask, dtype=torch.float32):
    if mask.dtype is not torch.bool:
        raise ValueError(f"a boolean mask is needed, not {mask.dtype}")
    if not dtype.is_floating_point:
        raise ValueError(f"{dtype} has no infinity")
    return torch.log(mask.to(dtype))
