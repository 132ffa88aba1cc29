r"""Looks at cross-attention: who is read, masks, dropout, what is refused."""

import torch

from practice.probes import See, drawn, tensor

INF = float("inf")


def cross_attention(see: See, CrossAttention) -> None:
    r"""One fact a label: what the context decides, what is hidden, what is dropped, what is refused."""
    x, context = tensor(2, 3, 12, seed=1), tensor(2, 5, 12, seed=2)
    visible = torch.tensor([[True, True, True, True, True], [True, True, True, False, False]])[:, None, None]

    def attend(x, context, mask=None, **settings):
        return drawn(CrossAttention(12, 3, **settings))(x, context, mask)

    see("one head, one context token", lambda: drawn(CrossAttention(4, 1))(x[:, :1, :4], context[:, :1, :4]))
    see("one head", lambda: drawn(CrossAttention(4, 1))(x[..., :4], context[..., :4]))
    see.gradients("two sequences", attend, x, context)
    see("as many tokens as in the context", lambda: attend(context, tensor(2, 5, 12, seed=3)))
    see("itself as context", lambda: attend(x, x))
    see("bias", lambda: attend(x, context, bias=True))
    see("context_size", lambda: attend(x, context[..., :7], context_size=7))
    see("boolean mask", lambda: attend(x, context, visible))
    see("a mask that hides nothing", lambda: attend(x, context, torch.ones(5, dtype=torch.bool)))
    see("additive mask", lambda: attend(x, context, tensor(3, 5, seed=4)))
    see(
        "additive mask of 0 and -inf",
        lambda: attend(x, context, torch.zeros(2, 1, 1, 5).masked_fill(~visible, -INF)),
    )
    nothing = visible.clone()
    nothing[1] = False
    see.gradients("empty context", lambda x, c: attend(x, c, nothing), x, context)

    def repeated(training: bool):
        module = drawn(CrossAttention(12, 3, dropout=0.5)).train(training)
        return torch.equal(module(x, context), module(x, context))

    see("dropout in training", lambda: repeated(True))
    see("dropout in evaluation", lambda: repeated(False))
    see("bfloat16", lambda: drawn(CrossAttention(12, 3), torch.bfloat16)(x.bfloat16(), context.bfloat16()))
    see("100 over 8", lambda: bool(CrossAttention(100, 8)))
    see("dropout rate 1.0", lambda: bool(CrossAttention(12, 3, dropout=1.0)))
    see("context_size of 0", lambda: bool(CrossAttention(12, 3, context_size=0)))
    see("width of the context", lambda: attend(x, context[..., :7]))
    see("context of one sequence", lambda: attend(x, context[:1]))
    see("batch of the context", lambda: attend(x, tensor(3, 5, 12)))
    see("three-dimensional mask", lambda: attend(x, context, visible[:, 0]))
