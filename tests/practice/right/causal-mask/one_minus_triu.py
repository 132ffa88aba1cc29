r"""What lies above the diagonal is hidden: triu of ones, then what is left at zero."""

import torch

from llmcore.checks import check_positive


def causal_mask(q_len, k_len=None, *, device=None):
    k_len = q_len if k_len is None else k_len
    check_positive(q_len=q_len, k_len=k_len)
    future = torch.triu(torch.ones((q_len, k_len), device=device), diagonal=k_len - q_len + 1)
    return future == 0
