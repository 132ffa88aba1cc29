r"""Log-probabilities of given tokens under a language model, without a second tensor of the logits' size.

$\log p(y_{t+1} \mid y_{\le t}) = z_{t, y_{t+1}} - \log \sum_v e^{z_{t, v}}$: of a row of logits one entry and
one sum are needed, and rows are independent, so a few rows at a time give the same result.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from llmcore.checks import check_floating
from llmcore.softmax import upcast

CHUNK_LOGITS = 2**18  # a chunk of 1 MiB in float32 stays in the processor's cache


def per_token_logps(logits: Tensor, labels: Tensor, *, ignore_index: int = -100) -> Tensor:
    r"""Log-probability of each token given those before it. The shift happens here and nowhere else.

    The logits of position t are scored against `labels[:, t + 1]`: pass both unshifted. The first label and
    the last logits score nothing.

    Args:
        logits: (B, T, V), unnormalised, in nats.
        labels: Integer (B, T), token ids in [0, V), or `ignore_index` where nothing is to be scored.
        ignore_index: The label of prompt and padding tokens.

    Returns:
        (B, T-1) in nats, float64 for float64 logits and float32 otherwise; 0, with zero gradient, where the
        label is `ignore_index`. Differentiable once.

    Raises:
        ValueError: If `logits` is not floating point, not (B, T, V), or has no token or no vocabulary.
        ValueError: If `labels` is not an integer tensor of shape (B, T) on the device of `logits`.
        ValueError: If a label lies outside [0, V) and is not `ignore_index`.

    Reference:
        Equal to minus `torch.nn.functional.cross_entropy` (`reduction="none"`) on shifted float32
        logits.
    """
    _check_labels(logits, labels, ignore_index)
    return _PerTokenLogps.apply(logits, labels[:, 1:].long(), ignore_index)


def sequence_logps(logits: Tensor, labels: Tensor, *, ignore_index: int = -100) -> Tensor:
    r"""Log-probability of each sequence, or of its completion where the prompt is ignored: a sum, not a mean.

    Args:
        logits: (B, T, V), unnormalised, in nats.
        labels: Integer (B, T), token ids in [0, V), or `ignore_index` where nothing is to be scored.
        ignore_index: The label of prompt and padding tokens.

    Returns:
        (B,) in nats, float64 for float64 logits and float32 otherwise; 0 where a sequence has nothing to
        score.

    Raises:
        ValueError: As `per_token_logps`.
    """
    return per_token_logps(logits, labels, ignore_index=ignore_index).sum(-1)


class _PerTokenLogps(torch.autograd.Function):
    r"""Keeps the logits, which exist anyway; the only tensor of their size it makes is their gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, ignore_index: int) -> Tensor:
        scored = targets != ignore_index
        label = targets.where(scored, 0)[..., None]  # (B, T-1, 1)
        impossible = logits[:, :-1].gather(-1, label) == -torch.inf
        ctx.save_for_backward(logits, scored, label, impossible)
        logps = upcast(logits.new_empty(0)).new_zeros(label.shape)  # (B, T-1, 1)
        for rows, row_scored, row_label, out in _chunks(logits[:, :-1], scored, label, logps):
            if row_scored.any():
                out.copy_(torch.log_softmax(upcast(rows), dim=-1).gather(-1, row_label))
        logps.masked_fill_(impossible, -torch.inf)  # NaN where no word is possible at all
        return logps.squeeze(-1).masked_fill_(~scored, 0.0)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        if torch.is_grad_enabled():  # create_graph: what follows would be taken for constant
            raise RuntimeError("per_token_logps is differentiable once, create_graph=True asks for more")
        logits, scored, label, impossible = ctx.saved_tensors
        grad_logits = torch.empty_like(logits)  # (B, T, V)
        grad_logits[:, -1] = 0.0
        grads = grad_output[..., None].masked_fill(~scored[..., None], 0.0)  # (B, T-1, 1)
        suspect = ~scored[..., None] | impossible  # rows that may hold NaN, or softmax to it
        others = scored, label, grads, suspect, grad_logits[:, :-1]
        for rows, row_scored, row_label, grad, row_suspect, out in _chunks(logits[:, :-1], *others):
            if not row_scored.any():
                out.zero_()
                continue
            wide = upcast(rows)
            chunk = out if out.dtype == wide.dtype else wide  # float32 goes straight to its place
            torch.softmax(wide, dim=-1, out=chunk).mul_(-grad).scatter_add_(-1, row_label, grad)
            if row_suspect.any():
                nothing = ~row_scored[:, None] | (rows.amax(-1, keepdim=True) == -torch.inf)
                chunk.masked_fill_(nothing, 0.0)
            out.copy_(chunk)
        return grad_logits, None, None


def _chunks(logits: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    r"""Some rows of the logits (n, V) at a time, never of two sequences, with those of the other tensors."""
    count = max(1, CHUNK_LOGITS // logits.size(-1))
    for sequence in zip(logits, *others, strict=True):
        yield from zip(*(tensor.split(count) for tensor in sequence), strict=True)


def _check_labels(logits: Tensor, labels: Tensor, ignore_index: int) -> None:
    r"""Refuse logits that are not (B, T, V) and labels that are not token ids (B, T) of that vocabulary."""
    check_floating(logits=logits)
    if logits.dim() != 3 or 0 in logits.shape[1:]:
        raise ValueError(f"logits must be (batch, tokens, vocabulary), none empty, got {tuple(logits.shape)}")
    if labels.shape != logits.shape[:2]:
        raise ValueError(
            f"labels must have the shape (batch, tokens) of the logits, unshifted: "
            f"got {tuple(labels.shape)} for logits {tuple(logits.shape)}"
        )
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ValueError(f"labels must be integer token ids, got dtype {labels.dtype}")
    if labels.device != logits.device:
        raise ValueError(f"labels are on {labels.device}, logits on {logits.device}")
    vocabulary, labels = logits.size(-1), labels.long()  # in uint8, 156 would equal -100
    wrong = labels[(labels != ignore_index) & ((labels < 0) | (labels >= vocabulary))]
    if wrong.numel():
        raise ValueError(
            f"labels must lie in [0, {vocabulary}) or be {ignore_index=}, got {wrong.unique().tolist()[:5]}"
        )
