r"""torch.where in place of masked_fill; the axis is chosen by an index instead of squeeze."""

import torch

from llmcore.softmax import check_softmax_input, upcast


def logsumexp(x, dim=-1, keepdim=False):
    check_softmax_input(x, dim)
    a = upcast(x)
    biggest = torch.amax(a.detach(), dim=dim, keepdim=True)
    shift = torch.where(torch.isfinite(biggest), biggest, torch.zeros_like(biggest))
    s = torch.sum(torch.exp(a - shift), dim=dim, keepdim=True)
    nothing = s == 0
    out = torch.where(
        nothing, torch.full_like(s, float("-inf")), torch.log(torch.where(nothing, 1.0, s)) + shift
    )
    if not keepdim and x.dim() > 0:
        out = out.select(dim, 0)
    return out.to(x.dtype)
