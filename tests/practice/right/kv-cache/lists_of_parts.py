r"""The parts are kept in lists and joined when they are read; `key` and `value` are properties."""

import torch


class KVCache:
    def __init__(self):
        self.parts = ([], [])

    @property
    def key(self):
        return torch.cat(self.parts[0], dim=-2) if self.parts[0] else None

    @property
    def value(self):
        return torch.cat(self.parts[1], dim=-2) if self.parts[1] else None

    @property
    def seq_len(self):
        return sum(part.shape[-2] for part in self.parts[0])

    @property
    def num_bytes(self):
        return sum(part.numel() * part.element_size() for parts in self.parts for part in parts)

    def update(self, key, value):
        for name, new in (("key", key), ("value", value)):
            if not new.is_floating_point():
                raise ValueError(f"{name} is {new.dtype}")
            if new.dim() != 4:
                raise ValueError(
                    f"four dimensions wanted: key {tuple(key.shape)}, value {tuple(value.shape)}"
                )
        if key.shape[:3] != value.shape[:3]:
            raise ValueError(f"key {tuple(key.shape)} and value {tuple(value.shape)} do not belong together")
        if key.dtype != value.dtype or key.device != value.device:
            raise ValueError(f"{key.dtype} on {key.device}, but {value.dtype} on {value.device}")
        for name, new, old in (("key", key, self.parts[0]), ("value", value, self.parts[1])):
            if not old:
                continue
            have = (self.key, self.value)[name == "value"]
            if new.dtype != have.dtype or new.device != have.device:
                raise ValueError(f"{name}: {new.dtype} on {new.device} after {have.dtype} on {have.device}")
            if (new.shape[0], new.shape[1], new.shape[3]) != (have.shape[0], have.shape[1], have.shape[3]):
                raise ValueError(f"{name}: {tuple(new.shape)} does not continue {tuple(have.shape)}")
        self.parts[0].append(key)
        self.parts[1].append(value)
        return self.key, self.value
