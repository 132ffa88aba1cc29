r"""One pass along the axis with a running maximum and a running sum; its own check of the input."""

import torch


def softmax(x, dim=-1):
    if not torch.is_floating_point(x):
        raise ValueError(f"softmax needs floating point, got {x.dtype}")
    if type(dim) is not int or not -max(x.ndim, 1) <= dim < max(x.ndim, 1):
        raise ValueError(f"no axis {dim} in a tensor of shape {tuple(x.shape)}")
    if x.ndim == 0:
        return torch.ones_like(x) + 0 * x
    if x.shape[dim] == 0:
        raise ValueError(f"axis {dim} of {tuple(x.shape)} is empty")
    y = x.to(torch.promote_types(x.dtype, torch.float32)).movedim(dim, 0)
    highest = torch.full_like(y[0], -torch.inf)
    total = torch.zeros_like(y[0])
    for row in y:
        new = torch.maximum(highest, row.detach())
        safe = new.masked_fill(new == -torch.inf, 0.0)
        total = total * torch.exp(highest - safe) + torch.exp(row - safe)
        highest = new
    safe = highest.masked_fill(highest == -torch.inf, 0.0)
    result = torch.exp(y - safe) / (total + (total == 0))
    return result.movedim(0, dim).to(x.dtype)
