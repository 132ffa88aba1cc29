r"""The width is cut into chunks and these are stacked: a copy, no view, and no transpose."""

import torch


def split_heads(x, num_heads):
    if x.ndim != 3:
        raise ValueError(f"three dimensions wanted, not {tuple(x.shape)}")
    if not isinstance(num_heads, int) or num_heads < 1 or x.shape[-1] % num_heads != 0:
        raise ValueError(f"cannot cut a width of {x.shape[-1]} into {num_heads} heads")
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)
