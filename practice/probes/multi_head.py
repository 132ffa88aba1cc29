r"""Looks at multi-head attention: sources, widths, masks, dropout, what is refused."""

import torch

from practice.probes import See, drawn, tensor

INF = float("inf")


def mha(see: See, MultiHeadAttention) -> None:
    r"""One fact a label: what is read, how wide it is, what is hidden, what is dropped, what is refused."""
    q, k, v = tensor(2, 3, 12, seed=1), tensor(2, 5, 12, seed=2), tensor(2, 5, 12, seed=3)

    def attend(*inputs, options=None, **settings):
        return drawn(MultiHeadAttention(12, 3, **settings))(*inputs, **options or {})

    see(
        "one head, one key",
        lambda: drawn(MultiHeadAttention(4, 1))(*(tensor(1, 1, 4, seed=s) for s in range(3))),
    )
    see("one head", lambda: drawn(MultiHeadAttention(12, 1))(q, k, v))
    see.gradients("three sources", attend, q, k, v)
    see.gradients("keys are the values", lambda q, k: attend(q, k, k), q, k)
    see("self-attention", lambda: attend(q, q, q))
    see("kdim and vdim", lambda: attend(q, k[..., :10], v[..., :8], kdim=10, vdim=8))
    see("head_dim", lambda: attend(q, k, v, head_dim=5))
    see("v_head_dim", lambda: attend(q, k, v, v_head_dim=5))
    see("out_dim", lambda: attend(q, k, v, out_dim=7))
    see("without bias", lambda: attend(q, k, v, bias=False))
    see("parameters", lambda: sum(p.numel() for p in MultiHeadAttention(12, 3, bias=False).parameters()))

    visible = torch.tensor([[True, False, True, True, False], [True, True, False, False, False]])[
        :, None, None
    ]
    added = tensor(1, 3, 3, 5, seed=4).masked_fill(~visible, -INF)
    see("boolean mask", lambda: attend(q, k, v, visible))
    see("additive mask", lambda: attend(q, k, v, added))
    see("causal, as many queries as keys", lambda: attend(k, k, v, options={"is_causal": True}))
    see("causal, fewer queries than keys", lambda: attend(q, k, v, options={"is_causal": True}))
    see("causal and a mask", lambda: attend(k, k, v, visible, options={"is_causal": True}))
    nothing = torch.zeros(2, 1, 3, 5, dtype=torch.bool)
    nothing[0, :, 1:] = True
    see.gradients("hidden rows", lambda q, k, v: attend(q, k, v, nothing), q, k, v)
    see("three-dimensional mask", lambda: attend(q, k, v, nothing[:, 0]))

    def repeated(training: bool):
        module = drawn(MultiHeadAttention(12, 3, dropout=0.5)).train(training)
        first = module(q, k, v)
        return torch.equal(first, module(q, k, v))

    def direction():
        # equal tokens: dropping weights changes the length of an output and not its direction
        module = drawn(MultiHeadAttention(12, 1, bias=False, dropout=0.5)).train()
        x = q[:, :1].expand(2, 5, 12)
        one, other = module(x, x, x), module.eval()(x, x, x)
        return torch.linalg.matrix_rank(torch.stack((one[0, 0], other[0, 0]))).item() < 2

    see("dropout in training", lambda: repeated(True))
    see("dropout in evaluation", lambda: repeated(False))
    see("dropout turns the outputs", direction)
    see(
        "bfloat16",
        lambda: drawn(MultiHeadAttention(12, 3), torch.bfloat16)(*(x.bfloat16() for x in (q, k, v))),
    )
    see("100 over 8", lambda: bool(MultiHeadAttention(100, 8)))
    for rate in (1.0, -0.1, float("nan")):
        see(f"dropout rate {rate}", lambda rate=rate: bool(MultiHeadAttention(12, 3, dropout=rate)))
    for name in ("kdim", "vdim", "head_dim", "v_head_dim", "out_dim"):
        see(f"{name} of 0", lambda name=name: bool(MultiHeadAttention(12, 3, **{name: 0})))
    see("width of the key", lambda: attend(q, k[..., :10], v))
    see("length of the value", lambda: attend(q, k, v[:, :4]))
