r"""Head h of the result is head h // n_rep: an index, without any repeating."""

import torch

from llmcore.checks import check_positive


def repeat_kv(x, n_rep):
    if x.dim() != 4:
        raise ValueError(f"expected 4 dimensions, got {tuple(x.shape)}")
    check_positive(n_rep=n_rep)
    heads = torch.arange(x.size(1) * n_rep, device=x.device) // n_rep
    return x.index_select(1, heads)
