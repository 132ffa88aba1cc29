r"""Sets of dtypes, devices and sizes instead of comparisons with the first; shapes unpacked."""

import torch

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def check_floating(**tensors):
    for name, x in tensors.items():
        if x.dtype not in FLOATS:
            raise ValueError(f"{name}: dtype {x.dtype}")
    for what in ("dtype", "device"):
        values = {name: getattr(x, what) for name, x in tensors.items()}
        if len(set(values.values())) > 1:
            raise ValueError(f"one {what} wanted, got " + ", ".join(f"{n}: {v}" for n, v in values.items()))


def check_input(projection, **tensors):
    in_features = projection.weight.shape[1]
    for name, x in tensors.items():
        if x.ndim != 3 or x.shape[2] != in_features:
            raise ValueError(f"{name}: (batch, tokens, {in_features}) expected, got {tuple(x.shape)}")
        if x.device != projection.weight.device:
            raise ValueError(f"{name}: {x.device}, weight: {projection.weight.device}")
        mixed = torch.is_autocast_enabled(x.device.type)
        if not mixed and x.dtype != projection.weight.dtype:
            raise ValueError(f"{name}: {x.dtype}, weight: {projection.weight.dtype}")


def check_heads(query, key, value=None):
    named = [("query", query), ("key", key)]
    if value is not None:
        named.append(("value", value))
    check_floating(**dict(named))
    for name, x in named:
        if x.ndim != 4 or min(x.shape[1:]) == 0:
            raise ValueError(f"{name}: shape {tuple(x.shape)}")
    for name, x in named[1:]:
        if len(x) != len(query):
            raise ValueError(f"{name} has batch {len(x)}, query {len(query)}")
    (_, heads, _, width), (_, kv_heads, k_len, k_width) = query.shape, key.shape
    if width != k_width:
        raise ValueError(f"head_dim of query {width}, of key {k_width}")
    if value is not None and (value.shape[1], value.shape[2]) != (kv_heads, k_len):
        raise ValueError(f"key {tuple(key.shape)}, value {tuple(value.shape)}")
    if heads % kv_heads != 0:
        raise ValueError(f"{heads} heads, {kv_heads} kv heads")
