r"""Without logsumexp: maximum, exp, sum and log written out, the masked rows by torch.where."""

import torch

from llmcore.softmax import check_softmax_input


def log_softmax(x, dim=-1):
    check_softmax_input(x, dim)
    y = x if x.dtype == torch.float64 else x.float()
    top = y.max(dim=dim, keepdim=True)[0].detach()
    y = y - torch.where(top == -torch.inf, torch.zeros_like(top), top)
    total = y.exp().sum(dim=dim, keepdim=True)
    safe = torch.where(total > 0, total, torch.ones_like(total))
    return (y - safe.log()).to(x.dtype)
