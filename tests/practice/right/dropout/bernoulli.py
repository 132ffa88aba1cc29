r"""Zeros and ones from bernoulli_, multiplied in: other draws than the reference's, the same distribution."""

import torch

from llmcore.checks import check_floating, check_probability


def dropout(x, p, generator=None):
    check_floating(x=x)
    check_probability(p=p)
    if p == 0:
        return x.clone()
    survivors = torch.empty_like(x, requires_grad=False).bernoulli_(1 - p, generator=generator)
    return x * survivors / (1 - p)
