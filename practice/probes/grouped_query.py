r"""Looks at grouped-query attention, the pooling of heads and the conversion of a checkpoint."""

import torch

from llmcore.multi_head import MultiHeadAttention
from practice.probes import See, drawn, tensor
from practice.probes.cached import in_parts, tokens_after_refusal

INF = float("inf")


def gqa(see: See, GroupedQueryAttention) -> None:
    r"""One fact a label: groups, masks, the cache, dropout, sizes that do not fit."""
    x = tensor(2, 5, 24)
    visible = torch.tensor([[True, False, True, True, True], [False, False, True, True, True]])[:, None, None]

    def attend(x, mask=None, options=None, heads=6, kv_heads=2, **settings):
        return drawn(GroupedQueryAttention(24, heads, kv_heads, **settings))(x, mask, **options or {})

    one = drawn(GroupedQueryAttention(4, 1, 1, bias=False))
    see("one token, one head", lambda: one(tensor(1, 1, 4)))
    see("one head", lambda: one(x[..., :4]))
    see("one kv head", lambda: attend(x, kv_heads=1, bias=False))
    see("as many kv heads as heads", lambda: attend(x, kv_heads=6, bias=False))
    see.gradients("two groups of three", lambda x: attend(x, bias=False), x)
    see("parameters", lambda: sum(p.numel() for p in GroupedQueryAttention(24, 6, 2).parameters()))
    see("bias", lambda: attend(x, bias=True))
    see("head_dim", lambda: attend(x, kv_heads=3, head_dim=5, bias=False))
    see("boolean mask", lambda: attend(x, visible, bias=False))
    hidden = ~torch.ones(5, 5).tril().bool()
    see("additive mask", lambda: attend(x, tensor(5, 5, seed=2).masked_fill(hidden, -INF), bias=False))
    see("causal", lambda: attend(x, options={"is_causal": True}, bias=False))
    see("causal and a mask", lambda: attend(x[1:], visible[:1], {"is_causal": True}, bias=False))
    nothing = torch.zeros(2, 1, 5, 5, dtype=torch.bool)
    nothing[0, :, 1:] = True
    see.gradients("hidden rows", lambda x: attend(x, nothing, bias=False), x)

    def cached(sizes, **options):
        return in_parts(drawn(GroupedQueryAttention(24, 6, 2, bias=False)), x, sizes, **options)

    see("one token at a time", lambda: cached([1] * 5)[0])
    see("causal, one token at a time", lambda: cached([1] * 5, is_causal=True)[0])
    see("causal, in chunks", lambda: cached([2, 1, 2], is_causal=True)[0])
    see("bytes in the cache", lambda: cached([3, 2])[1].num_bytes)
    see("tokens in the cache", lambda: cached([3, 2])[1].seq_len)

    see(
        "cache after a mask that does not fit",
        lambda: tokens_after_refusal(drawn(GroupedQueryAttention(24, 6, 2)), x),
    )

    def repeated(training: bool):
        module = drawn(GroupedQueryAttention(24, 6, 2, dropout=0.5)).train(training)
        return torch.equal(module(x), module(x))

    see("dropout in training", lambda: repeated(True))
    see("dropout in evaluation", lambda: repeated(False))

    def far():
        module = GroupedQueryAttention(16, 4, 2, bias=False).half()
        for parameter in module.parameters():
            parameter.data.fill_(1.0)
        return module(torch.full((1, 3, 16), 60.0, dtype=torch.float16))

    see("float16 scores beyond its end", far)
    see("bfloat16", lambda: drawn(GroupedQueryAttention(24, 6, 2, bias=False), torch.bfloat16)(x.bfloat16()))
    for sizes in ((100, 8, 2), (24, 6, 4), (24, 4, 8), (24, 0, 1)):
        see(f"sizes {sizes}", lambda sizes=sizes: bool(GroupedQueryAttention(*sizes)))
    see("dropout rate 1.0", lambda: bool(GroupedQueryAttention(24, 6, 2, dropout=1.0)))
    see("head_dim of 0", lambda: bool(GroupedQueryAttention(24, 6, 2, head_dim=0)))
    see("width", lambda: attend(tensor(2, 5, 23)))
    see("three-dimensional mask", lambda: attend(x, nothing[:, 0]))


def pool_kv_heads(see: See, pool_kv_heads) -> None:
    r"""Which rows are averaged, in which dtype, and what is refused."""
    weight = tensor(12, 5)
    see.gradients("weight", lambda w: pool_kv_heads(w, 6, 2), weight)
    see("bias", lambda: pool_kv_heads(weight[:, 0], 6, 3))
    see("one group", lambda: pool_kv_heads(weight, 4, 1))
    see("one head a group", lambda: pool_kv_heads(weight, 4, 4))
    see("float32", lambda: pool_kv_heads(weight.float(), 6, 2))
    see("bfloat16", lambda: pool_kv_heads(weight.bfloat16(), 6, 2).dtype == torch.bfloat16)
    small = torch.tensor([256.0, 1, 1, 1, 1, 1, 1, 1], dtype=torch.bfloat16)
    see("bfloat16 sums", lambda: round(pool_kv_heads(small, 8, 1).item()))

    def left_alone():
        given = weight.clone()
        pool_kv_heads(given, 6, 2)
        return torch.equal(given, weight)

    see("the weight afterwards", left_alone)
    see("integers", lambda: pool_kv_heads(torch.arange(12)[:, None], 6, 2))
    see("three dimensions", lambda: pool_kv_heads(tensor(12, 5, 3), 6, 2))
    see("10 rows, 4 heads", lambda: pool_kv_heads(tensor(10, 3), 4, 2))
    see("4 heads, 3 kv heads", lambda: pool_kv_heads(tensor(12, 3), 4, 3))
    see("no kv heads", lambda: pool_kv_heads(tensor(12, 3), 4, 0))


def mha_to_gqa(see: See, mha_to_gqa) -> None:
    r"""Where each parameter of the new module comes from, what it shares, what it keeps, what is refused."""
    x = tensor(2, 4, 12)

    def parameter(name, **settings):
        return mha_to_gqa(drawn(MultiHeadAttention(12, 6, **settings)), 2).state_dict()[name].double()

    for name in "qkvo":
        see(f"{name}_proj.weight", lambda name=name: parameter(f"{name}_proj.weight"))
        see(f"{name}_proj.bias", lambda name=name: parameter(f"{name}_proj.bias"))
    see("without bias", lambda: sorted(mha_to_gqa(MultiHeadAttention(12, 6, bias=False), 2).state_dict()))
    see("head_dim", lambda: parameter("k_proj.weight", head_dim=5))
    see("as many kv heads", lambda: mha_to_gqa(drawn(MultiHeadAttention(12, 3)), 3)(x))
    see("kv heads", lambda: mha_to_gqa(drawn(MultiHeadAttention(12, 6)), 3)(x))
    for dtype in (torch.float32, torch.bfloat16):
        see(
            f"{dtype}",
            lambda dtype=dtype: str(
                {p.dtype for p in mha_to_gqa(drawn(MultiHeadAttention(12, 6), dtype), 2).parameters()}
            ),
        )
    for training in (True, False):
        see(
            f"training {training}",
            lambda training=training: mha_to_gqa(MultiHeadAttention(12, 6).train(training), 2).training,
        )
    see("device", lambda: str(mha_to_gqa(MultiHeadAttention(12, 6).to("meta"), 2).k_proj.weight.device))

    def repeated():
        module = mha_to_gqa(drawn(MultiHeadAttention(12, 6, dropout=0.5)), 2).train()
        return torch.equal(module(x), module(x))

    see("dropout", repeated)
    see(
        "gradients wanted",
        lambda: all(p.requires_grad for p in mha_to_gqa(MultiHeadAttention(12, 6), 2).parameters()),
    )

    def changed():
        mha = drawn(MultiHeadAttention(12, 6))
        before = {name: value.clone() for name, value in mha.state_dict().items()}
        mha_to_gqa(mha, 2)
        return [
            name
            for name, value in mha.state_dict().items()
            if not (value.shape == before[name].shape and torch.equal(value, before[name]))
        ]

    def shared():
        mha = drawn(MultiHeadAttention(12, 6))
        ours = {value.data_ptr() for value in mha.state_dict().values()}
        return sum(value.data_ptr() in ours for value in mha_to_gqa(mha, 2).state_dict().values())

    see("parameters changed in the old module", lambda: len(changed()))
    see("parameters shared with the old module", shared)
    for name in ("kdim", "vdim", "out_dim", "v_head_dim"):
        see(
            f"{name} of its own",
            lambda name=name: bool(mha_to_gqa(MultiHeadAttention(12, 6, **{name: 8}), 2)),  # pyright: ignore[reportArgumentType],
        )
    see("6 heads, 4 kv heads", lambda: bool(mha_to_gqa(MultiHeadAttention(12, 6), 4)))
    see("no kv heads", lambda: bool(mha_to_gqa(MultiHeadAttention(12, 6), 0)))
