r"""Every mask becomes one that is added: the logarithm of a boolean one."""

import torch

from llmcore.masks import expand_mask


def apply_mask(scores, attn_mask):
    bias = expand_mask(attn_mask, tuple(scores.shape), scores.device)
    if bias.dtype == torch.bool:
        bias = bias.to(scores.dtype).log()
    return scores + bias.type_as(scores)
