r"""One sequence after the other, each its own sum of what cross_entropy says about its scored tokens."""

import torch
import torch.nn.functional as F

from llmcore.logprobs import _check_labels
from llmcore.softmax import upcast


def sequence_logps(logits, labels, *, ignore_index=-100):
    _check_labels(logits, labels, ignore_index)
    totals = []
    for scores, ids in zip(logits, labels, strict=True):
        each = F.cross_entropy(
            upcast(scores[:-1]), ids[1:].long(), reduction="sum", ignore_index=ignore_index
        )
        totals.append(-each)
    return torch.stack(totals)
