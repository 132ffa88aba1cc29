r"""Looks at multi-query attention: what is shared, the cache, masks, dropout, what is refused."""

import torch

from llmcore.kv_cache import KVCache
from practice.probes import See, drawn, tensor
from practice.probes.cached import in_parts, tokens_after_refusal

INF = float("inf")


def mqa(see: See, MultiQueryAttention) -> None:
    r"""One fact a label; every call without a cache is one that a kept state would change."""
    x = tensor(2, 5, 12)
    visible = torch.tensor([[True, False, True, True, True], [False, False, True, True, True]])[:, None, None]

    def attend(x, mask=None, options=None, **settings):
        return drawn(MultiQueryAttention(12, 3, **settings))(x, mask, **options or {})

    see("one token, one head", lambda: drawn(MultiQueryAttention(4, 1))(tensor(1, 1, 4)))
    see("one head", lambda: drawn(MultiQueryAttention(4, 1))(x[..., :4]))
    see.gradients("plain", attend, x)
    see("again", lambda: attend(x[:, :3]))
    see("parameters", lambda: sum(p.numel() for p in MultiQueryAttention(12, 3).parameters()))
    see("bias", lambda: attend(x, bias=True))
    see("head_dim", lambda: attend(x, head_dim=5))
    see("boolean mask", lambda: attend(x, visible))
    see(
        "additive mask",
        lambda: attend(x, tensor(5, 5, seed=2).masked_fill(~torch.ones(5, 5).tril().bool(), -INF)),
    )
    see("causal", lambda: attend(x, options={"is_causal": True}))
    see("causal and a mask", lambda: attend(x, visible, {"is_causal": True}))
    nothing = torch.zeros(2, 1, 5, 5, dtype=torch.bool)
    nothing[0, :, 1:] = True
    see.gradients("hidden rows", lambda x: attend(x, nothing), x)

    def cached(sizes, **options):
        return in_parts(drawn(MultiQueryAttention(12, 3)), x, sizes, **options)

    see("one token at a time", lambda: cached([1] * 5)[0])
    see("causal, one token at a time", lambda: cached([1] * 5, is_causal=True)[0])
    see("causal, in chunks", lambda: cached([3, 2], is_causal=True)[0])
    see("bytes in the cache", lambda: cached([3, 2])[1].num_bytes)
    see("tokens in the cache", lambda: cached([3, 2])[1].seq_len)

    see(
        "cache after a mask that does not fit",
        lambda: tokens_after_refusal(drawn(MultiQueryAttention(12, 3)), x),
    )

    def repeated(training: bool):
        module = drawn(MultiQueryAttention(12, 3, dropout=0.5)).train(training)
        return torch.equal(module(x, past_key_values=KVCache()), module(x, past_key_values=KVCache()))

    see("dropout in training", lambda: repeated(True))
    see("dropout in evaluation", lambda: repeated(False))
    see("bfloat16", lambda: drawn(MultiQueryAttention(12, 3), torch.bfloat16)(x.bfloat16()))
    see("100 over 8", lambda: bool(MultiQueryAttention(100, 8)))
    see("dropout rate 1.0", lambda: bool(MultiQueryAttention(12, 3, dropout=1.0)))
    see("head_dim of 0", lambda: bool(MultiQueryAttention(12, 3, head_dim=0)))
    see("width", lambda: attend(x[..., :8]))
    see("three-dimensional mask", lambda: attend(x, nothing[:, 0]))
