r"""A loop over the groups, each the mean of a list of its heads; rows are cut by `chunk`."""

import torch

from llmcore.checks import check_divisible


def pool_kv_heads(weight, num_heads, num_kv_heads):
    if weight.dtype not in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        raise ValueError(f"weight must be floating point, got {weight.dtype}")
    if weight.ndim not in (1, 2):
        raise ValueError(f"one or two dimensions wanted, got {tuple(weight.shape)}")
    check_divisible(rows=weight.shape[0], num_heads=num_heads)
    check_divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
    wide = weight if weight.dtype == torch.float64 else weight.to(torch.float32)
    heads = wide.chunk(num_heads)
    size = num_heads // num_kv_heads
    groups = [sum(heads[start : start + size]) / size for start in range(0, num_heads, size)]
    return torch.cat(groups).to(weight.dtype)
