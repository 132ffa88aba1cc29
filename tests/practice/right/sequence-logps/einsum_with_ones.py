r"""The sum as a product with a vector of ones."""

import torch

from llmcore.logprobs import per_token_logps


def sequence_logps(logits, labels, *, ignore_index=-100):
    logps = per_token_logps(logits, labels, ignore_index=ignore_index)
    return torch.einsum("bt,t->b", logps, torch.ones_like(logps[0]))
