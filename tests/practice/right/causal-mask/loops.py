r"""Row by row in Python."""

import torch

from llmcore.checks import check_positive


def causal_mask(q_len, k_len=None, *, device=None):
    k_len = q_len if k_len is None else k_len
    check_positive(q_len=q_len, k_len=k_len)
    mask = torch.zeros(q_len, k_len, dtype=torch.bool, device=device)
    for i in range(q_len):
        mask[i, : max(0, k_len - q_len + i + 1)] = True
    return mask
