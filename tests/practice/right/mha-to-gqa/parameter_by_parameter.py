r"""Each parameter copied by hand, with the pooling written out and the dtype set at the end."""

import torch

from llmcore.checks import check_divisible
from llmcore.grouped_query import GroupedQueryAttention


def mha_to_gqa(mha, num_kv_heads):
    width = mha.q_proj.weight.shape[1]
    for name, other in (
        ("kdim", mha.k_proj.weight.shape[1]),
        ("vdim", mha.v_proj.weight.shape[1]),
        ("out_dim", mha.o_proj.weight.shape[0]),
    ):
        if other != width:
            raise ValueError(f"{name} is {other}, hidden_size {width}")
    rows, value_rows = mha.q_proj.weight.shape[0], mha.v_proj.weight.shape[0]
    if rows != value_rows:
        raise ValueError(f"{rows} rows of queries, {value_rows} rows of values")
    check_divisible(num_heads=mha.num_heads, num_kv_heads=num_kv_heads)
    head_dim = rows // mha.num_heads
    new = GroupedQueryAttention(
        width,
        mha.num_heads,
        num_kv_heads,
        head_dim=head_dim,
        bias=mha.o_proj.bias is not None,
        dropout=mha.dropout,
    )
    new.to(dtype=mha.q_proj.weight.dtype, device=mha.q_proj.weight.device)

    def pooled(x):
        wide = x.double().reshape(num_kv_heads, mha.num_heads // num_kv_heads, head_dim, *x.shape[1:])
        return wide.mean(1).reshape(num_kv_heads * head_dim, *x.shape[1:])

    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        old_layer, new_layer = getattr(mha, name), getattr(new, name)
        change = pooled if name in ("k_proj", "v_proj") else torch.clone
        with torch.no_grad():
            new_layer.weight.copy_(change(old_layer.weight))
            if old_layer.bias is not None:
                new_layer.bias.copy_(change(old_layer.bias))
    new.training = mha.training
    for child in new.children():
        child.training = mha.training
    return new
