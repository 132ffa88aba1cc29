r"""Pooling is a linear map of the rows: one matrix (K, H) with 1/(H/K) where head h belongs to group k."""

import torch

from llmcore.checks import check_divisible, check_floating


def pool_kv_heads(weight, num_heads, num_kv_heads):
    check_floating(weight=weight)
    if weight.dim() > 2 or weight.dim() == 0:
        raise ValueError(f"got a weight of shape {tuple(weight.shape)}")
    check_divisible(rows=weight.size(0), num_heads=num_heads)
    check_divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
    group = num_heads // num_kv_heads
    dtype = torch.promote_types(weight.dtype, torch.float32)
    pool = torch.eye(num_kv_heads, dtype=dtype, device=weight.device).repeat_interleave(group, dim=1) / group
    heads = weight.to(dtype).reshape(num_heads, -1)
    return (pool @ heads).reshape(-1, *weight.shape[1:]).to(weight.dtype)
