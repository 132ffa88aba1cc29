r"""functools.reduce over logical_and, the shapes left to broadcast_tensors."""

from functools import reduce

import torch


def combine_masks(*masks):
    if len(masks) == 0:
        raise ValueError("no mask to combine")
    for m in masks:
        if m.dtype is not torch.bool:
            raise ValueError(f"only boolean masks can be combined, not {m.dtype}")
        if m.ndim not in (1, 2, 4):
            raise ValueError(f"a mask has 1, 2 or 4 dimensions, not {tuple(m.shape)}")
    try:
        same_shape = torch.broadcast_tensors(*masks)
    except RuntimeError:
        raise ValueError(f"shapes do not fit: {', '.join(str(tuple(m.shape)) for m in masks)}") from None
    return reduce(torch.logical_and, same_shape)
