r"""torch's own logsumexp on the shifted scores, and the gradient g - p sum(g) written out."""

import torch

from llmcore.softmax import check_softmax_input, upcast


class LogSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        top = x.amax(dim, keepdim=True)
        x = x - top.masked_fill(top == -torch.inf, 0)
        lse = torch.logsumexp(x, dim, keepdim=True)
        out = x - lse.masked_fill(lse == -torch.inf, 0)
        ctx.save_for_backward(out)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g - out.exp() * g.sum(ctx.dim, keepdim=True), None


def log_softmax(x, dim=-1):
    check_softmax_input(x, dim)
    return LogSoftmax.apply(upcast(x), dim).to(x.dtype)
