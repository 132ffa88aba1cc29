r"""The lines everybody writes: log_softmax, gather, mask. Holds a second tensor of the logits' size."""

import torch

from llmcore.logprobs import _check_labels


def per_token_logps(logits, labels, *, ignore_index=-100):
    _check_labels(logits, labels, ignore_index)
    x = logits[:, :-1, :]
    if x.dtype != torch.float64:
        x = x.float()
    y = labels[:, 1:].long()
    keep = y != ignore_index
    safe = torch.where(keep, y, torch.zeros_like(y))
    logp = torch.log_softmax(x, dim=-1).gather(2, safe.unsqueeze(2)).squeeze(2)
    return torch.where(keep, logp, torch.zeros_like(logp))
