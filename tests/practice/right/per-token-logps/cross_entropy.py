r"""Minus torch's cross_entropy with reduction "none", which knows ignore_index."""

import torch.nn.functional as F

from llmcore.logprobs import _check_labels
from llmcore.softmax import upcast


def per_token_logps(logits, labels, *, ignore_index=-100):
    _check_labels(logits, labels, ignore_index)
    b, t, v = logits.shape
    flat = upcast(logits[:, :-1]).reshape(b * (t - 1), v)
    loss = F.cross_entropy(
        flat, labels[:, 1:].reshape(-1).long(), reduction="none", ignore_index=ignore_index
    )
    return 0.0 - loss.view(b, t - 1)
