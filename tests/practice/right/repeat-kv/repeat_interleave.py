r"""torch's own `repeat_interleave`, which copies for n_rep 1 as well."""

import torch


def repeat_kv(x, n_rep):
    if x.dim() != 4:
        raise ValueError(f"expected 4 dimensions, got {tuple(x.shape)}")
    if type(n_rep) is not int or n_rep <= 0:
        raise ValueError(f"n_rep must be at least 1, got {n_rep}")
    return torch.repeat_interleave(x, n_rep, dim=1)
