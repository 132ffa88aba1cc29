r"""The KV cache of one attention layer, and how many bytes a model's caches take."""

import torch
from torch import Tensor

from llmcore.checks import check_floating, check_positive


class KVCache:
    r"""Keys and values of the tokens seen so far, for one layer; K heads, never repeated to H.

    Attributes:
        key: (B, K, S, D), or None before the first update.
        value: (B, K, S, Dv), or None before the first update.
    """

    def __init__(self) -> None:
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    @property
    def seq_len(self) -> int:
        r"""Cached tokens S."""
        return 0 if self.key is None else self.key.size(2)

    @property
    def num_bytes(self) -> int:
        r"""Bytes of the cached keys and values."""
        return sum(tensor.nbytes for tensor in (self.key, self.value) if tensor is not None)

    def update(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        r"""Append the new tokens and return all of them.

        The first tensors are kept as they are, not copied: they must not be changed afterwards.

        Args:
            key: (B, K, L, D), the new keys.
            value: (B, K, L, Dv), the new values.

        Returns:
            Keys (B, K, S, D) and values (B, K, S, Dv), cached and new.

        Raises:
            ValueError: If the shapes are not four-dimensional with equal batch, heads and tokens, or differ
                in dtype or device.
            ValueError: If batch, heads, width, dtype or device differ from what is cached.
        """
        check_floating(key=key, value=value)
        if key.dim() != 4 or value.dim() != 4 or key.shape[:3] != value.shape[:3]:
            raise ValueError(
                f"key and value must be (batch, kv heads, tokens, width) and differ in width alone, "
                f"got {tuple(key.shape)} and {tuple(value.shape)}"
            )
        if self.key is None or self.value is None:
            self.key, self.value = key, value
            return key, value
        for name, new, old in (("key", key, self.key), ("value", value, self.value)):
            check_floating(**{f"new {name}": new, f"cached {name}": old})
            if new.shape[:2] != old.shape[:2] or new.size(3) != old.size(3):
                shapes = f"{tuple(new.shape)} and {tuple(old.shape)}"
                raise ValueError(f"new and cached {name} may differ in tokens alone, got {shapes}")
        self.key = torch.cat((self.key, key), dim=2)
        self.value = torch.cat((self.value, value), dim=2)
        return self.key, self.value


def kv_cache_bytes(
    *,
    num_layers: int,
    num_kv_heads: int,
    head_dim: int,
    seq_len: int,
    batch_size: int = 1,
    dtype: torch.dtype = torch.bfloat16,
) -> int:
    r"""$2 \cdot \mathrm{layers} \cdot B \cdot K \cdot S \cdot D \cdot \mathrm{bytes}$: 2 for key and value.

    Args:
        num_layers: Layers of the model.
        num_kv_heads: K: H for multi-head attention, 1 for multi-query attention.
        head_dim: D.
        seq_len: Cached tokens S of a sequence.
        batch_size: B sequences.
        dtype: Dtype of the cache.

    Returns:
        Bytes.

    Raises:
        ValueError: If a size is not a positive integer.
    """
    check_positive(num_layers=num_layers, num_kv_heads=num_kv_heads, head_dim=head_dim)
    check_positive(seq_len=seq_len, batch_size=batch_size)
    return 2 * num_layers * batch_size * num_kv_heads * seq_len * head_dim * dtype.itemsize
