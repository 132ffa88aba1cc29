r"""Looks that attention with a cache shares: fed in parts, and refusing a mask after some tokens."""

import torch
from torch import Tensor, nn

from llmcore.kv_cache import KVCache


def in_parts(module: nn.Module, x: Tensor, sizes: list[int], **options: bool) -> tuple[list[Tensor], KVCache]:
    r"""Feed tokens in parts of these sizes; return what comes out and the cache."""
    cache = KVCache()
    return [module(part, past_key_values=cache, **options) for part in x.split(sizes, 1)], cache


def tokens_after_refusal(module: nn.Module, x: Tensor) -> int | None:
    r"""Give one token more, with a mask that does not fit; return what the cache holds if that is refused."""
    cache = KVCache()
    module(x, past_key_values=cache)
    try:
        module(x[:, :1], torch.ones(1, 7, dtype=torch.bool), past_key_values=cache)
    except ValueError:
        return cache.seq_len
    return None
