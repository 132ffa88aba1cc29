r"""Gather first, then minus logsumexp, as TRL does; labels checked by hand."""

import torch


def per_token_logps(logits, labels, *, ignore_index=-100):
    if not torch.is_floating_point(logits):
        raise ValueError(f"logits are {logits.dtype}")
    if logits.dim() != 3 or logits.size(1) == 0 or logits.size(2) == 0:
        raise ValueError(f"logits of shape {tuple(logits.shape)}")
    if labels.shape != logits.shape[:2]:
        raise ValueError(f"labels {tuple(labels.shape)} for logits {tuple(logits.shape)}")
    if labels.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        raise ValueError(f"labels are {labels.dtype}")
    if labels.device != logits.device:
        raise ValueError(f"labels on {labels.device}, logits on {logits.device}")
    ids = labels.long()
    ignored = ids == ignore_index
    bad = ids[~ignored & ((ids < 0) | (ids >= logits.size(-1)))]
    if len(bad):
        raise ValueError(f"{bad[0].item()} is no token of a vocabulary of {logits.size(-1)}")
    shifted = logits[:, :-1]
    shifted = shifted if logits.dtype == torch.float64 else shifted.to(torch.float32)
    ids, ignored = ids[:, 1:], ignored[:, 1:]
    picked = shifted.gather(-1, ids.masked_fill(ignored, 0).unsqueeze(-1)).squeeze(-1)
    return (picked - shifted.logsumexp(-1)).masked_fill(ignored, 0.0)
