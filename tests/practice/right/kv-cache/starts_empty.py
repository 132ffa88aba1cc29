r"""Starts with tensors of no tokens, made at the first call, so that every call joins."""

import torch

from llmcore.checks import check_floating


class KVCache:
    def __init__(self):
        self.key = self.value = None

    @property
    def seq_len(self):
        return self.key.shape[2] if self.key is not None else 0

    @property
    def num_bytes(self):
        return 0 if self.key is None else self.key.nbytes + self.value.nbytes

    def update(self, key, value):
        check_floating(key=key, value=value)
        if key.ndim != 4 or value.ndim != 4 or key.shape[:3] != value.shape[:3]:
            raise ValueError(f"key {tuple(key.shape)} does not fit value {tuple(value.shape)}")
        old_key = key[:, :, :0] if self.key is None else self.key
        old_value = value[:, :, :0] if self.value is None else self.value
        for name, a, b in (("key", key, old_key), ("value", value, old_value)):
            check_floating(new=a, cached=b)
            if a.shape[:2] + a.shape[3:] != b.shape[:2] + b.shape[3:]:
                raise ValueError(f"{name}: {tuple(b.shape)} cannot be continued by {tuple(a.shape)}")
        self.key, self.value = torch.cat([old_key, key], 2), torch.cat([old_value, value], 2)
        return self.key, self.value
