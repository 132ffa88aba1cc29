r"""Looks at the KV cache of one layer and at how many bytes the caches of a model take."""

import torch

from practice.probes import See, tensor


def kv_cache(see: See, KVCache) -> None:
    r"""What is stored and returned, what is counted, what is shared, what is refused."""
    keys, values = tensor(2, 3, 5, 4, seed=1), tensor(2, 3, 5, 6, seed=2)

    def filled(*sizes, values=values):
        cache = KVCache()
        return cache, [
            cache.update(k, v) for k, v in zip(keys.split(sizes, 2), values.split(sizes, 2), strict=True)
        ]

    see("empty", lambda: [KVCache().seq_len, KVCache().num_bytes])
    see("first call", lambda: filled(5)[1])
    see("token by token", lambda: filled(1, 1, 1, 1, 1)[1][-1])
    see("in chunks", lambda: filled(2, 3)[1][-1])
    see("values as wide as keys", lambda: filled(2, 3, values=keys + 1)[1][-1])
    see("seq_len after one token", lambda: filled(1, 4)[0].seq_len - 4)
    see("seq_len after three tokens", lambda: filled(3, 2)[0].seq_len)
    see("num_bytes, values as wide as keys", lambda: filled(5, values=keys)[0].num_bytes)
    see("num_bytes", lambda: filled(5)[0].num_bytes)
    see(
        "num_bytes of bfloat16",
        lambda: (c := KVCache(), c.update(keys.bfloat16(), values.bfloat16()), c.num_bytes)[2],
    )

    def attributes():
        cache, _ = filled(2, 3)
        return [cache.key, cache.value]

    see("key and value", attributes)

    def gradients(first_k, first_v, k, v):
        cache = KVCache()
        cache.update(first_k, first_v)
        return torch.cat(cache.update(k, v), dim=-1)

    see.gradients("gradients", gradients, keys[:, :, :2], values[:, :, :2], keys[:, :, 2:], values[:, :, 2:])

    def two():
        filled(2, 3)
        other = KVCache()
        return other.seq_len

    see("another cache", two)

    def given():
        k, v = keys[:, :, :2].clone(), values[:, :, :2].clone()
        cache = KVCache()
        cache.update(k, v)
        cache.update(keys[:, :, 2:], values[:, :, 2:])
        return [k, v]

    see("what was given before", given)

    def refused(k, v):
        cache = KVCache()
        cache.update(keys, values)
        try:
            cache.update(k, v)
        except Exception as error:
            return [type(error).__name__, cache.seq_len]
        return [cache.key.dtype == torch.float64, cache.seq_len]

    one, two_wide = tensor(2, 3, 1, 4), tensor(2, 3, 1, 6)
    see("then another batch", lambda: refused(one[:1], two_wide[:1]))
    see("then other heads", lambda: refused(tensor(2, 6, 1, 4), tensor(2, 6, 1, 6)))
    see("then another key width", lambda: refused(two_wide, two_wide))
    see("then another value width", lambda: refused(one, one))
    see("then another dtype", lambda: refused(one.float(), two_wide.float()))
    see("more values than keys", lambda: KVCache().update(keys[:, :, :4], values))
    see("fewer heads of values", lambda: KVCache().update(keys, values[:, :2]))
    see("key of three dimensions", lambda: KVCache().update(keys[0], values[0]))
    see("integers", lambda: KVCache().update(keys.long(), values.long()))
    see("key and value of two dtypes", lambda: KVCache().update(keys, values.float()))


def kv_cache_bytes(see: See, kv_cache_bytes) -> None:
    r"""One factor a label."""
    ones = {"num_layers": 1, "num_kv_heads": 1, "head_dim": 1, "seq_len": 1}
    see("all ones", lambda: kv_cache_bytes(**ones))
    for name, size in (
        ("num_layers", 3),
        ("num_kv_heads", 5),
        ("head_dim", 7),
        ("seq_len", 11),
        ("batch_size", 13),
    ):
        see(name, lambda name=name, size=size: kv_cache_bytes(**ones | {name: size}))
        see(f"{name} of 0", lambda name=name: kv_cache_bytes(**ones | {name: 0}))
    for dtype in (torch.float32, torch.float16, torch.float8_e4m3fn):
        see(f"{dtype}", lambda dtype=dtype: kv_cache_bytes(**ones, dtype=dtype))
    see("half a layer", lambda: kv_cache_bytes(**ones | {"num_layers": 1.5}))
