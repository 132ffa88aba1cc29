r"""Two ranges of positions are compared instead of cutting a triangle."""

import torch


def causal_mask(q_len, k_len=None, *, device=None):
    if k_len is None:
        k_len = q_len
    for length in (q_len, k_len):
        if type(length) is not int or length <= 0:
            raise ValueError(f"a length must be a positive integer, got {length}")
    query_position = torch.arange(k_len - q_len, k_len, device=device).unsqueeze(1)
    return torch.arange(k_len, device=device).unsqueeze(0) <= query_position
