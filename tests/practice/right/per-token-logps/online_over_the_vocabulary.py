r"""Online logsumexp over pieces of the vocabulary; the label's logit by index, masked rows left out."""

import torch

from llmcore.logprobs import _check_labels
from llmcore.softmax import upcast


def per_token_logps(logits, labels, *, ignore_index=-100):
    _check_labels(logits, labels, ignore_index)
    targets = labels[:, 1:].long()
    rows = (targets != ignore_index).nonzero(as_tuple=True)
    scored = logits[:, :-1][rows]  # (N, V)
    total = None
    for piece in scored.split(4096, dim=-1):
        new = torch.logsumexp(upcast(piece), dim=-1)
        total = new if total is None else torch.logaddexp(total, new)
    values = upcast(scored[torch.arange(len(scored)), targets[rows]]) - total
    return torch.zeros_like(targets, dtype=values.dtype).index_put(rows, values)
