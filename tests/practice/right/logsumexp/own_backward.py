r"""A running maximum and sum over the entries; the gradient, the softmax, written out by hand."""

import torch

from llmcore.softmax import check_softmax_input, upcast


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        largest = torch.full_like(x.select(dim, 0), -torch.inf)
        total = torch.zeros_like(largest)
        for part in x.unbind(dim):
            bigger = torch.maximum(largest, part)
            base = bigger.masked_fill(bigger.isinf(), 0.0)
            total = total * (largest - base).exp() + (part - base).exp()
            largest = bigger
        base = largest.masked_fill(largest.isinf(), 0.0)
        result = base + total.log()
        ctx.save_for_backward(x, result)
        ctx.dim = dim
        return result

    @staticmethod
    def backward(ctx, g):
        x, result = ctx.saved_tensors
        base = result.masked_fill(result == -torch.inf, 0.0).unsqueeze(ctx.dim)
        return g.unsqueeze(ctx.dim) * (x - base).exp(), None


def logsumexp(x, dim=-1, keepdim=False):
    check_softmax_input(x, dim)
    if x.dim() == 0:
        return x * 1
    result = LogSumExp.apply(upcast(x), dim)
    return (result.unsqueeze(dim) if keepdim else result).to(x.dtype)
