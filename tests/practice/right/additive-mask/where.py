r"""torch.where between two numbers."""

import torch


def additive_mask(mask, dtype=torch.float32):
    if mask.dtype != torch.bool:
        raise ValueError(f"mask is {mask.dtype}, not boolean")
    if dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise ValueError(f"{dtype} is not floating point")
    zero = torch.zeros((), dtype=dtype, device=mask.device)
    return torch.where(mask, zero, zero - float("inf"))
