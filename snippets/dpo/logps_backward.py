"""The gradient of a picked log-probability is onehot - p: an autograd.Function that saves no softmax."""

import torch


class PickedLogps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, index):
        lse = logits.logsumexp(-1)  # (N,): one number a row instead of V probabilities
        ctx.save_for_backward(logits, index, lse)
        return logits.gather(-1, index.unsqueeze(-1)).squeeze(-1) - lse

    @staticmethod
    def backward(ctx, grad_output):
        logits, index, lse = ctx.saved_tensors
        grad = (logits - lse.unsqueeze(-1)).exp().neg_()  # -p, made again from logits and lse
        grad.scatter_add_(-1, index.unsqueeze(-1), torch.ones_like(index, dtype=grad.dtype).unsqueeze(-1))
        return grad * grad_output.unsqueeze(-1), None


torch.manual_seed(0)
logits = torch.randn(4, 7, dtype=torch.float64, requires_grad=True)
index = torch.tensor([0, 3, 6, 3])
weight = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)

(PickedLogps.apply(logits, index) * weight).sum().backward()
ours = logits.grad.clone()
logits.grad = None
(logits.log_softmax(-1).gather(-1, index.unsqueeze(-1)).squeeze(-1) * weight).sum().backward()
print("equal to autograd:", torch.allclose(ours, logits.grad, atol=1e-12))
print("row sums of the gradient are zero:", torch.allclose(ours.sum(-1), torch.zeros(4).double(), atol=1e-12))
print("gradcheck:", torch.autograd.gradcheck(PickedLogps.apply, (logits, index)))
