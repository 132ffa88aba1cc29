r"""The maximum keeps its place in the graph, torch.where for the masked rows, names of one's own."""

import torch

from llmcore.softmax import check_softmax_input


def softmax(logits, dim=-1):
    check_softmax_input(logits, dim)
    z = logits.double() if logits.dtype == torch.float64 else logits.float()
    top = z.max(dim, keepdim=True).values
    numerator = torch.exp(z - torch.where(top.isneginf(), torch.zeros_like(top), top))
    denominator = numerator.sum(dim, keepdim=True)
    p = numerator / torch.where(denominator == 0, torch.ones_like(denominator), denominator)
    return p.type(logits.dtype)
