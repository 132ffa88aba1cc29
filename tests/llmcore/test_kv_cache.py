r"""Oracle: `torch.cat` of everything given so far, and byte counts by hand."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llmcore.kv_cache import KVCache, kv_cache_bytes

B, K, L, D, DV = 2, 3, 5, 4, 6


def make(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def test_an_empty_cache():
    cache = KVCache()
    assert cache.seq_len == 0
    assert cache.num_bytes == 0


@given(
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_update_returns_everything_so_far(lengths, dtype):
    cache, keys, values = KVCache(), [], []
    for step, length in enumerate(lengths):
        keys.append(make(B, K, length, D, dtype=dtype, seed=step))
        values.append(make(B, K, length, DV, dtype=dtype, seed=100 + step))
        key, value = cache.update(keys[-1], values[-1])
        assert torch.equal(key, torch.cat(keys, dim=2))
        assert torch.equal(value, torch.cat(values, dim=2))
        assert cache.seq_len == sum(lengths[: step + 1])
        assert cache.num_bytes == B * K * cache.seq_len * (D + DV) * dtype.itemsize


def test_nothing_given_or_returned_is_changed_later():
    cache = KVCache()
    first = make(B, K, 2, D), make(B, K, 2, DV)
    returned = cache.update(*first)
    kept = [x.clone() for x in (*first, *returned)]
    cache.update(make(B, K, 3, D, seed=1), make(B, K, 3, DV, seed=2))
    for x, copy in zip((*first, *returned), kept, strict=True):
        assert torch.equal(x, copy)


def test_two_caches_share_nothing():
    first, second = KVCache(), KVCache()
    first.update(make(B, K, L, D), make(B, K, L, DV))
    assert second.seq_len == 0
    key, _ = second.update(make(B, K, 1, D), make(B, K, 1, DV))
    assert key.size(2) == 1


def test_gradients_reach_old_and_new_tokens():
    parts = [make(B, K, n, D, seed=n).requires_grad_() for n in (2, 3)]
    values = [make(B, K, n, DV, seed=n).requires_grad_() for n in (2, 3)]
    cache = KVCache()
    cache.update(parts[0], values[0])
    keys_so_far, values_so_far = cache.update(parts[1], values[1])
    weight = make(B, K, 5, D, seed=9)
    grads = torch.autograd.grad((keys_so_far * weight).sum() + values_so_far.sum(), [*parts, *values])
    assert torch.equal(torch.cat(grads[:2], dim=2), weight)
    assert torch.equal(grads[2], torch.ones_like(values[0]))


def test_inputs_need_not_be_contiguous():
    cache = KVCache()
    key, value = make(B, L, K, D).transpose(1, 2), make(B, L, K, DV).transpose(1, 2)
    cache.update(key, value)
    keys, values = cache.update(key, value)
    assert torch.equal(keys, torch.cat((key, key), 2))
    assert torch.equal(values, torch.cat((value, value), 2))
    assert cache.num_bytes == B * K * 2 * L * (D + DV) * 8


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ((B, L, D), (B, L, D)),
        ((B, K, L), (B, K, L, DV)),
        ((B, K, L, D), (B, K, L)),
        ((B, K, L, D), (B, K, L + 1, D)),
        ((B, K, L, D), (B, K + 1, L, D)),
        ((B, K, L, D), (B + 1, K, L, D)),
    ],
)
def test_refuses_shapes(key, value, refuses):
    with refuses(key, value):
        KVCache().update(torch.zeros(key), torch.zeros(value))


def test_refuses_dtypes_and_devices(refuses):
    key, value = torch.zeros(B, K, L, D), torch.zeros(B, K, L, DV)
    with refuses(torch.float32, torch.float64):
        KVCache().update(key, value.double())
    with refuses(torch.int64):
        KVCache().update(key.long(), value.long())
    with refuses("cpu", "meta"):
        KVCache().update(key, value.to("meta"))


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ((1, K, 1, D), (1, K, 1, DV), ("key", (B, K, L, D), (1, K, 1, D))),
        ((B, 6, 1, D), (B, 6, 1, DV), ("key", (B, K, L, D), (B, 6, 1, D))),
        ((B, K, 1, D + 1), (B, K, 1, DV), ("key", (B, K, L, D), (B, K, 1, D + 1))),
        ((B, K, 1, D), (B, K, 1, DV + 1), ("value", (B, K, L, DV), (B, K, 1, DV + 1))),
    ],
)
def test_refuses_what_differs_from_the_cached(key, value, named, refuses):
    cache = KVCache()
    cache.update(torch.zeros(B, K, L, D), torch.zeros(B, K, L, DV))
    with refuses(*named):
        cache.update(torch.zeros(key), torch.zeros(value))
    assert cache.seq_len == L


def test_refuses_another_dtype_or_device_than_the_cached(refuses):
    cache = KVCache()
    cache.update(torch.zeros(B, K, L, D), torch.zeros(B, K, L, DV))
    with refuses(torch.float32, torch.bfloat16):
        cache.update(torch.zeros(B, K, 1, D).bfloat16(), torch.zeros(B, K, 1, DV).bfloat16())
    with refuses("cpu", "meta"):
        cache.update(torch.zeros(B, K, 1, D, device="meta"), torch.zeros(B, K, 1, DV, device="meta"))


# kv_cache_bytes


def test_kv_cache_bytes_by_hand():
    # 2 (key and value) · 32 layers · 32 heads · 128 · 4096 tokens · 2 bytes = 2 GiB
    model: dict[str, Any] = {"num_layers": 32, "head_dim": 128, "seq_len": 4096}
    assert kv_cache_bytes(num_kv_heads=32, **model) == 2 * 1024**3
    assert kv_cache_bytes(num_kv_heads=8, **model) == 512 * 1024**2
    assert kv_cache_bytes(num_kv_heads=1, **model) == 64 * 1024**2
    assert kv_cache_bytes(num_kv_heads=8, batch_size=3, **model) == 3 * 512 * 1024**2
    assert kv_cache_bytes(num_kv_heads=8, dtype=torch.float32, **model) == 1024**3
    assert kv_cache_bytes(num_kv_heads=8, dtype=torch.float8_e4m3fn, **model) == 256 * 1024**2
    assert kv_cache_bytes(num_kv_heads=8, dtype=torch.int8, **model) == 256 * 1024**2
    # pairwise different
    assert (
        kv_cache_bytes(num_layers=3, num_kv_heads=5, head_dim=7, seq_len=11, batch_size=13) == 2 * 15015 * 2
    )


@given(
    layers=st.integers(1, 3),
    heads=st.integers(1, 4),
    head_dim=st.integers(1, 6),
    length=st.integers(1, 6),
    batch=st.integers(1, 3),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
)
def test_kv_cache_bytes_is_what_caches_take(layers, heads, head_dim, length, batch, dtype):
    caches = [KVCache() for _ in range(layers)]
    for cache in caches:
        for _ in range(length):
            new = torch.zeros(batch, heads, 1, head_dim, dtype=dtype)
            cache.update(new, new)
    estimate = kv_cache_bytes(
        num_layers=layers,
        num_kv_heads=heads,
        head_dim=head_dim,
        seq_len=length,
        batch_size=batch,
        dtype=dtype,
    )
    assert isinstance(estimate, int)
    assert estimate == sum(cache.num_bytes for cache in caches)


@pytest.mark.parametrize("name", ["num_layers", "num_kv_heads", "head_dim", "seq_len", "batch_size"])
@pytest.mark.parametrize("bad", [0, -3, 1.5])
def test_kv_cache_bytes_refuses(name, bad, refuses):
    sizes: dict[str, Any] = {"num_layers": 2, "num_kv_heads": 2, "head_dim": 4, "seq_len": 8, "batch_size": 1}
    with refuses(name, bad):
        kv_cache_bytes(**sizes | {name: bad})
