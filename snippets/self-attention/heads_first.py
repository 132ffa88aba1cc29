"""Heads folded into the batch, (80, 2, 4): which row is which, and what repeating costs."""

import torch

batch, heads, q_len, k_len = 10, 8, 2, 4
torch.manual_seed(0)
attention = torch.randn(batch, heads, q_len, k_len).softmax(-1)
heads_first = attention.transpose(0, 1).flatten(0, 1)  # (80, 2, 4), row h * 10 + b
print("folded:", tuple(heads_first.shape))

read_as_batch_first = heads_first.view(batch, heads, q_len, k_len)
read_right = heads_first.view(heads, batch, q_len, k_len).transpose(0, 1)
wrong = (read_as_batch_first != attention).flatten(2).any(-1).float().mean()
print(f"read as (batch, heads, ...): {wrong:.1%} of the rows belong to another batch or head")
print("read as (heads, batch, ...) and transposed: right =", torch.equal(read_right, attention))

mask = torch.rand(batch, q_len, k_len) < 0.5  # another mask for each sequence
wanted = mask[:, None].expand(batch, heads, q_len, k_len)
for order, fold in (("heads first", wanted.transpose(0, 1)), ("batch first", wanted)):
    rows = fold.flatten(0, 1)
    for name, repeated in (
        ("repeat(8, 1, 1)", mask.repeat(8, 1, 1)),
        ("repeat_interleave(8)", mask.repeat_interleave(8, 0)),
    ):
        print(f"{order}, mask.{name:<21} right: {torch.equal(repeated, rows)}")


def new_bytes(x, base):
    return (
        0
        if x.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
        else x.untyped_storage().nbytes()
    )


key = torch.randn(batch, 1, k_len, 16)  # one key head for all: multi-query attention
one_head = key.untyped_storage().nbytes()
print(f"\none key head: {one_head} bytes")
expanded = key.expand(-1, 8, -1, -1)
for name, x in (
    ("repeat to 8 heads", key.repeat(1, 8, 1, 1)),
    ("expand to 8 heads", expanded),
    ("expand, then fold to (80, 4, 16)", expanded.flatten(0, 1)),
):
    new = new_bytes(x, key)
    print(f"{name}: {new} new bytes, {new // one_head} times the one head")
