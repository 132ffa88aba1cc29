r"""torch.where, the factor inside it; its own check of the rate."""

import torch


def dropout(x, p, generator=None):
    if not x.is_floating_point():
        raise ValueError(f"dropout of {x.dtype}")
    if not 0 <= p < 1:
        raise ValueError(f"p={p} is no rate below 1")
    drawn = torch.rand(x.size(), generator=generator, device=x.device)
    return torch.where(drawn < p, torch.zeros_like(x), x / (1 - p))
