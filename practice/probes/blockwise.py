r"""Looks at attention in blocks: borders of blocks, masks, gradients, and what is in memory at a time."""

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from practice.probes import See, tensor

INF = torch.inf
B, H, K, L, S, D, DV = 2, 4, 2, 5, 7, 3, 6


class _Largest(TorchDispatchMode):
    r"""Keeps the size of the largest tensor that a call makes."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self.numel = max(self.numel, leaf.untyped_storage().nbytes() // leaf.itemsize)
        return result


def blockwise_attention(see: See, blockwise_attention) -> None:
    r"""Values and gradients with blocks of 2 and of 100; a long sequence for the memory."""

    def inputs(k_len: int = S) -> tuple[Tensor, Tensor, Tensor]:
        shapes = (B, H, L, D), (B, K, k_len, D), (B, K, k_len, DV)
        q, k, v = (tensor(*shape, seed=seed) for seed, shape in enumerate(shapes, start=1))
        return q, k, v

    flags = torch.arange(S)[None] % 3 != torch.arange(L)[:, None] % 3
    hidden = flags.clone()
    hidden[3] = False
    for size in (2, 100):

        def attend(*args, size=size, **options):
            return blockwise_attention(*args, block_size=size, **options)

        see(f"values, blocks of {size}", lambda: attend(*inputs()))
        see.gradients(f"gradients, blocks of {size}", attend, *inputs())
        see(f"causal, blocks of {size}", lambda: attend(*inputs(), is_causal=True))
        see(f"causal and square, blocks of {size}", lambda: attend(*inputs(L), is_causal=True))
        see(f"boolean mask, blocks of {size}", lambda: attend(*inputs(), flags))
        see.gradients(f"bias, blocks of {size}", attend, *inputs(), tensor(L, S, seed=5))
        see(f"hidden row, blocks of {size}", lambda: attend(*inputs(), hidden))
    see("mask of the keys", lambda: blockwise_attention(*inputs(), flags[0], block_size=2))
    see("whole blocks", lambda: blockwise_attention(*inputs(), block_size=5))
    see("scale", lambda: blockwise_attention(*inputs(), scale=0.3))
    half = torch.full((1, 1, 2, 8), 120.0, dtype=torch.float16)
    see("float16", lambda: blockwise_attention(half, half, half))

    def second() -> Tensor:
        q, k, v = (x.requires_grad_() for x in inputs())
        (grad,) = torch.autograd.grad(blockwise_attention(q, k, v).square().sum(), q, create_graph=True)
        return torch.autograd.grad(grad.sum(), k)[0]

    see("second derivative", second)
    long = [tensor(1, 2, 96, 2, dtype=torch.float32, seed=seed) for seed in (1, 2, 3)]

    def largest() -> bool:
        with _Largest() as seen:
            blockwise_attention(*long, block_size=8)
        return seen.numel <= 2 * 96 * 96 // 4

    def kept() -> bool:
        storages = {}

        def pack(x: Tensor) -> Tensor:
            storages[x.untyped_storage().data_ptr()] = x
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            blockwise_attention(*(x.clone().requires_grad_() for x in long), block_size=8)
        return sum(x.untyped_storage().nbytes() // x.itemsize for x in storages.values()) <= 2 * 96 * 96 // 4

    see("the largest tensor is a block", largest)
    see("what is kept for the gradient is small", kept)
    for size in (0, -1, 2.0):
        see(f"block_size {size}", lambda size=size: blockwise_attention(*inputs(), block_size=size).shape)
    see("heads that do not divide", lambda: blockwise_attention(tensor(B, 3, L, D), *inputs()[1:]).shape)
    see("three axes", lambda: blockwise_attention(*inputs(), torch.ones(B, L, S).bool()).shape)
