r"""Looks at grouped-query attention, the pooling of heads and the conversion of a checkpoint."""

import torch

from llmcore.kv_cache import KVCache
from practice.probes import See, drawn, tensor


def gqa(see: See, GroupedQueryAttention) -> None:
    r"""Groups, masks, the cache, dropout, sizes that do not fit."""
    x = tensor(2, 5, 24)
    see.gradients("plain", lambda x: drawn(GroupedQueryAttention(24, 6, 2))(x), x)
    see("mask", lambda: drawn(GroupedQueryAttention(24, 6, 2))(x, torch.ones(5, 5).tril().bool()))
    see("causal", lambda: drawn(GroupedQueryAttention(24, 6, 2, bias=True))(x, is_causal=True))
    see("head_dim", lambda: drawn(GroupedQueryAttention(24, 6, 3, head_dim=5))(x))

    def cached():
        module, cache = drawn(GroupedQueryAttention(24, 6, 2)), KVCache()
        parts = [module(part, is_causal=True, past_key_values=cache) for part in x.split([2, 1, 2], 1)]
        return [*parts, cache.seq_len, cache.num_bytes, cache.key, cache.value]

    see("cache", cached)

    def dropped(training: bool):
        module = drawn(GroupedQueryAttention(24, 6, 2, dropout=0.5)).train(training)
        return [torch.equal(module(x), module(x))]

    see("dropout in training", lambda: dropped(True))
    see("dropout in evaluation", lambda: dropped(False))
    for sizes in ((100, 8, 2), (24, 6, 4), (24, 4, 8), (24, 0, 1)):
        see(f"sizes {sizes}", lambda sizes=sizes: bool(GroupedQueryAttention(*sizes)))
    see("width", lambda: drawn(GroupedQueryAttention(24, 6, 2))(tensor(2, 5, 23)))
    see("bfloat16", lambda: drawn(GroupedQueryAttention(24, 6, 2), torch.bfloat16)(x.bfloat16()))
