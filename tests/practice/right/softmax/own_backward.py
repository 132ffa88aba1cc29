r"""The gradient is written out, p (g - sum p g), in an autograd.Function; the quotient by logarithms."""

import torch

from llmcore.softmax import check_softmax_input, upcast


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        wide = upcast(x)
        m = wide.amax(dim, keepdim=True)
        m[m == float("-inf")] = 0
        shifted = wide - m
        log_sum = shifted.exp().sum(dim, keepdim=True).log()
        log_sum[log_sum == float("-inf")] = 0
        p = (shifted - log_sum).exp()
        ctx.save_for_backward(p)
        ctx.dim, ctx.dtype = dim, x.dtype
        return p.to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        g = g.to(p.dtype)
        return (p * (g - (p * g).sum(ctx.dim, keepdim=True))).to(ctx.dtype), None


def softmax(x, dim=-1):
    check_softmax_input(x, dim)
    return Softmax.apply(x, dim)


if __name__ == "__main__":
    print(softmax(torch.tensor([0.0, 1.0])))
