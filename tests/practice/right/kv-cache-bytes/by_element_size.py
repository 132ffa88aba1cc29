r"""Bytes of an entry asked of a tensor, the product taken by `math.prod`."""

import math

import torch


def kv_cache_bytes(*, num_layers, num_kv_heads, head_dim, seq_len, batch_size=1, dtype=torch.bfloat16):
    sizes = dict(
        num_layers=num_layers,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        seq_len=seq_len,
        batch_size=batch_size,
    )
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} must be a positive integer, got {size}")
    return math.prod(sizes.values()) * 2 * torch.empty(0, dtype=dtype).element_size()
