from collections.abc import Iterator
from typing import Any
import torch
from torch import Tensor

from llmcore.softmax import upcast
from llmcore.logprobs import _check_labels


CHUNK_LOGITS = 2**18  # a chunk of 1 MiB in float32 stays in the processor's cache


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


def per_token_logps(logits: Tensor, labels: Tensor, *, ignore_index: int = -100) -> Tensor:
    _check_labels(logits, labels, ignore_index)
    scored = labels[:, 1:] != ignore_index
    labels[labels == ignore_index] = 0
    logits, targets = logits[:, :-1], labels[:, 1:].long()
    logps = upcast(logits).log_softmax(-1)
    picked = logps.gather(-1, targets.where(scored, 0)[..., None]).squeeze(-1)
    return picked.masked_fill(~scored, 0.0)
