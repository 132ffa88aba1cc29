import torch
from torch.utils._python_dispatch import TorchDispatchMode


class NewBytes(TorchDispatchMode):
    """Counts the bytes of every tensor that owns storage none of its inputs had."""

    def __init__(self):
        super().__init__()
        self.largest: dict[str, int] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        inputs = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
        if isinstance(out, torch.Tensor) and out.untyped_storage().data_ptr() not in inputs:
            name = function.overloadpacket.__name__
            self.largest[name] = max(self.largest.get(name, 0), out.untyped_storage().nbytes())
        return out


batch, heads, kv_heads, k_len, size = 4, 32, 8, 1024, 64
n_rep = heads // kv_heads
query = torch.randn(batch, heads, 1, size)  # one decoding step
key = torch.randn(batch, kv_heads, k_len, size)
print(f"cached keys: {key.nbytes / 2**20:.0f} MiB")

ways = {
    "repeat": lambda: key.repeat(1, n_rep, 1, 1),
    "repeat_interleave": lambda: key.repeat_interleave(n_rep, dim=1),
    "expand": lambda: key[:, :, None].expand(-1, -1, n_rep, -1, -1),
    "expand + reshape": lambda: key[:, :, None].expand(-1, -1, n_rep, -1, -1).flatten(1, 2),
    "broadcast matmul": lambda: query.unflatten(1, (kv_heads, n_rep)) @ key[:, :, None].mT,
    "grouped matmul": lambda: query.view(batch, kv_heads, n_rep, size) @ key.mT,
    "einsum": lambda: torch.einsum("bkgld,bksd->bkgls", query.unflatten(1, (kv_heads, n_rep)), key),
}
for name, way in ways.items():
    with NewBytes() as counter:
        way()
    copied = {op: size for op, size in counter.largest.items() if size >= key.nbytes}
    told = (f"{op} {size / 2**20:.0f} MiB, {size // key.nbytes} times K" for op, size in copied.items())
    print(f"{name:18}", ", ".join(told) or "no copy of K")
