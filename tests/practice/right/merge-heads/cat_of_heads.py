r"""A loop over the heads and one `cat` along the features."""

import torch


def merge_heads(x):
    if x.dim() != 4:
        raise ValueError(f"expected (batch, heads, tokens, head_dim), got {tuple(x.shape)}")
    return torch.cat([x[:, head] for head in range(x.size(1))], dim=-1)
