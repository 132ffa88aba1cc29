"""blockwise_attention: the same values and gradients; what each version keeps for the backward pass."""

import torch
from torch.autograd.graph import saved_tensors_hooks

from llmcore.attention import scaled_dot_product_attention
from llmcore.blockwise import blockwise_attention


def run(attention, length):
    torch.manual_seed(0)
    inputs = [torch.randn(1, 4, length, 32, requires_grad=True) for _ in range(3)]
    kept = {}

    def pack(x):
        storage = x.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()  # a storage saved twice counts once
        return x

    with saved_tensors_hooks(pack, lambda x: x):
        output = attention(*inputs, is_causal=True)
    output.square().sum().backward()
    return [output, *(x.grad for x in inputs)], sum(kept.values()) / 2**20


for length in (256, 512, 1024):
    whole, whole_mib = run(scaled_dot_product_attention, length)
    blocks, blocks_mib = run(blockwise_attention, length)
    same = all(torch.allclose(a, b, atol=1e-4) for a, b in zip(whole, blocks, strict=True))
    print(f"{length:>5} tokens: equal {same}, kept for backward {whole_mib:.1f} MiB | {blocks_mib:.2f} MiB")
