r"""Oracle: `F.scaled_dot_product_attention` with explicit masks, `enable_gqa` and `causal_lower_right`;
calculations by hand."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention.bias import causal_lower_right

from llmcore.attention import apply_mask, attention_weights, dropout, scaled_dot_product_attention

B, H, K, L, S, D, DV = 3, 8, 2, 5, 7, 6, 9
INF = float("inf")
exact = torch.float64
both = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def make(*shape: int, dtype: torch.dtype = exact, seed: int = 0, spread: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (spread * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)


def make_qkv(dtype: torch.dtype = exact, heads: int = H, kv_heads: int = K, q_len: int = L, k_len: int = S):
    return (
        make(B, heads, q_len, D, dtype=dtype, seed=1),
        make(B, kv_heads, k_len, D, dtype=dtype, seed=2),
        make(B, kv_heads, k_len, DV, dtype=dtype, seed=3),
    )


def flags(*shape: int, seed: int = 4) -> torch.Tensor:
    r"""A random boolean mask that leaves every query at least one key, another one in each row."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    rows = mask.view(-1, shape[-1])
    rows[torch.arange(len(rows)), torch.arange(len(rows)) * 3 % shape[-1]] = True
    return mask


def lower_right(q_len: int, k_len: int) -> torch.Tensor:
    rows, columns = torch.arange(q_len)[:, None], torch.arange(k_len)
    return columns <= rows + (k_len - q_len)


def library(q, k, v, mask=None, **options):
    r"""PyTorch's own, K and V repeated to the query heads, the mask brought to four dimensions."""
    groups = q.size(1) // k.size(1)
    if mask is not None:
        mask = mask.expand(q.size(0), q.size(1), q.size(2), k.size(2))
    return F.scaled_dot_product_attention(
        q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1), attn_mask=mask, **options
    )


def weights_of(q, k, mask=None, **options):
    r"""The weights alone: attention over the identity."""
    eye = torch.eye(k.size(2), dtype=q.dtype).expand(k.size(0), k.size(1), -1, -1)
    return library(q, k, eye, mask, **options)


def compare(same, actual, expected):
    for a, b in zip(actual, expected, strict=True):
        same(a, b)


# values and gradients


@both
@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8])
def test_equals_torch(kv_heads, dtype, same, run):
    qkv = make_qkv(dtype, kv_heads=kv_heads)
    compare(same, run(scaled_dot_product_attention, *qkv), run(library, *qkv))


@both
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_equals_torch_enable_gqa(kv_heads, dtype, same, run):
    qkv = make_qkv(dtype, kv_heads=kv_heads)
    expected = run(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), *qkv)
    compare(same, run(scaled_dot_product_attention, *qkv), expected)


MASKS = {
    "(S,)": (S,),
    "(L,S)": (L, S),
    "(1,S)": (1, S),
    "(B,1,L,S)": (B, 1, L, S),
    "(B,H,L,S)": (B, H, L, S),
    "(B,1,1,S)": (B, 1, 1, S),
    "(1,H,L,S)": (1, H, L, S),
}
every_mask = pytest.mark.parametrize("shape", MASKS.values(), ids=MASKS)


@both
@every_mask
def test_boolean_mask(shape, dtype, same, run):
    qkv, mask = make_qkv(dtype), flags(*shape)
    compare(
        same,
        run(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), *qkv),
        run(lambda q, k, v: library(q, k, v, mask), *qkv),
    )


@both
@every_mask
def test_additive_mask(shape, dtype, same, run):
    # a bias on visible keys, -inf on hidden ones; the bias has a gradient too
    mask = make(*shape, dtype=dtype, seed=5).masked_fill(~flags(*shape), -INF)
    inputs = (*make_qkv(dtype), mask)
    compare(same, run(scaled_dot_product_attention, *inputs), run(library, *inputs))


@both
def test_boolean_and_additive_mask_say_the_same(dtype, same, run):
    qkv, mask = make_qkv(dtype), flags(B, 1, L, S)
    added = torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -INF)
    compare(
        same,
        run(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), *qkv),
        run(lambda q, k, v: scaled_dot_product_attention(q, k, v, added), *qkv),
    )


@both
@pytest.mark.parametrize(("q_len", "k_len"), [(5, 5), (5, 7), (1, 7)])
def test_causal_is_lower_right(q_len, k_len, dtype, same, run):
    qkv = make_qkv(dtype, q_len=q_len, k_len=k_len)
    ours = run(lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True), *qkv)
    groups = H // K
    theirs = run(
        lambda q, k, v: F.scaled_dot_product_attention(
            q,
            k.repeat_interleave(groups, 1),
            v.repeat_interleave(groups, 1),
            attn_mask=causal_lower_right(q_len, k_len),
        ),
        *qkv,
    )
    compare(same, ours, theirs)
    compare(same, ours, run(lambda q, k, v: library(q, k, v, lower_right(q_len, k_len)), *qkv))


@both
@every_mask
def test_causal_and_mask_together(shape, dtype, same, run):
    qkv, mask = make_qkv(dtype), flags(*shape)
    mask[..., 0] = True  # or the first query would see nothing
    together = mask & lower_right(L, S)
    ours = run(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask, is_causal=True), *qkv)
    compare(same, ours, run(lambda q, k, v: library(q, k, v, together), *qkv))
    added = make(*shape, dtype=dtype, seed=6).masked_fill(~mask, -INF)
    ours = run(lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m, is_causal=True), *qkv, added)
    theirs = run(
        lambda q, k, v, m: library(q, k, v, m.expand(B, H, L, S).masked_fill(~lower_right(L, S), -INF)),
        *qkv,
        added,
    )
    compare(same, ours, theirs)


@both
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, -0.7, 0.0])
def test_scale(scale, dtype, same, run):
    qkv = make_qkv(dtype)
    ours = run(lambda q, k, v: scaled_dot_product_attention(q, k, v, scale=scale), *qkv)
    groups = H // K
    theirs = run(
        lambda q, k, v: (
            torch.softmax(q @ k.repeat_interleave(groups, 1).mT * scale, -1) @ v.repeat_interleave(groups, 1)
        ),
        *qkv,
    )
    compare(same, ours, theirs)
    weights = torch.softmax(qkv[0] @ qkv[1].repeat_interleave(groups, 1).mT * scale, -1)
    same(attention_weights(qkv[0], qkv[1], scale=scale), weights)


def test_by_hand(same):
    # D = 4: scores q·k/2 are ln 3 and 0, so the weights are 3/4 and 1/4
    q = torch.tensor([2 * math.log(3), 0.0, 0.0, 0.0], dtype=exact).reshape(1, 1, 1, 4)
    k = torch.eye(4, dtype=exact)[:2].reshape(1, 1, 2, 4)
    v = torch.tensor([[8.0, 0.0, 4.0], [0.0, 4.0, 8.0]], dtype=exact).reshape(1, 1, 2, 3)
    same(attention_weights(q, k), torch.tensor([[[[0.75, 0.25]]]], dtype=exact))
    same(scaled_dot_product_attention(q, k, v), torch.tensor([[[[6.0, 1.0, 5.0]]]], dtype=exact))
    # seeing only the second key
    only = torch.tensor([False, True])
    same(scaled_dot_product_attention(q, k, v, only), v[:, :, 1:])


@both
@pytest.mark.parametrize("kv_heads", [1, 2, 8])
def test_weights_equal_torch(kv_heads, dtype, same, run):
    q, k, _ = make_qkv(dtype, kv_heads=kv_heads)
    compare(same, run(attention_weights, q, k), run(weights_of, q, k))
    mask = flags(B, 1, L, S)
    compare(
        same,
        run(lambda q, k: attention_weights(q, k, mask), q, k),
        run(lambda q, k: weights_of(q, k, mask), q, k),
    )
    same(attention_weights(q, k, is_causal=True), weights_of(q, k, lower_right(L, S)))


def test_weights_have_heads_behind_the_batch():
    q, k, _ = make_qkv()
    weights = attention_weights(q, k, flags(L, S))
    assert weights.shape == (B, H, L, S)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, L, dtype=exact))


# rows that see nothing


def hidden_rows() -> torch.Tensor:
    mask = flags(B, 1, L, S)
    mask[0, :, 2] = False
    mask[1] = False
    return mask


@both
@pytest.mark.parametrize("kind", ["boolean", "additive"])
def test_fully_masked_rows(kind, dtype, same, run):
    mask = hidden_rows()
    sees = mask.any(-1)  # (B, 1, L)
    bias = make(B, 1, L, S, dtype=dtype, seed=7)
    qkv = make_qkv(dtype)
    if kind == "boolean":
        ours = run(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), *qkv)
        bias = bias * 0
    else:
        ours = run(scaled_dot_product_attention, *qkv, bias.masked_fill(~mask, -INF))
    for tensor in ours:
        assert tensor.isfinite().all()
    rows = sees.expand(B, H, L)
    assert (ours[0][~rows] == 0).all()
    assert (ours[1][~rows] == 0).all()  # no gradient into a query that sees nothing

    def zeros_outside(q, k, v, *added):
        # PyTorch with the blind rows opened, their output cut out of value and gradient
        opened = (added[0] if added else bias).masked_fill(~(mask | ~sees[..., None]), -INF)
        return library(q, k, v, opened) * rows[..., None]

    compare(same, ours, run(zeros_outside, *qkv, *([bias] if kind == "additive" else [])))
    weights = attention_weights(*qkv[:2], mask)
    assert (weights[~rows] == 0).all()
    same(weights[rows].sum(-1), torch.ones(int(rows.sum()), dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mask", ["all keys", "additive", "lowest", "causal"])
def test_everything_masked(mask, dtype, run):
    q_len = 7 if mask == "causal" else L
    k_len = 4 if mask == "causal" else S
    qkv = make_qkv(dtype, q_len=q_len, k_len=k_len)
    if mask == "causal":  # the first three of seven queries stand before all four keys
        ours = run(lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True), *qkv)
        blind = ours[0][:, :, :3], ours[1][:, :, :3]
        assert (ours[0][:, :, 3:] != 0).any()
    elif mask == "all keys":
        ours = run(
            lambda q, k, v: scaled_dot_product_attention(q, k, v, torch.zeros(S, dtype=torch.bool)), *qkv
        )
        blind = ours
    elif mask == "additive":
        ours = run(scaled_dot_product_attention, *qkv, torch.full((L, S), -INF, dtype=dtype))
        blind = ours
    else:  # hidden twice
        hide = torch.zeros(B, 1, 1, S, dtype=torch.bool)
        ours = run(lambda q, k, v: scaled_dot_product_attention(q, k, v, hide, is_causal=True), *qkv)
        blind = ours
    for tensor in ours:
        assert tensor.isfinite().all()
    for tensor in blind:
        assert (tensor == 0).all()


# hidden keys have no weight at all, however large the scores


@pytest.mark.parametrize("kind", ["boolean", "additive"])
@pytest.mark.parametrize("height", [1e3, 1e6, 1e12])
def test_hidden_keys_weigh_nothing_however_high_they_score(kind, height, same, run):
    q, k, v = make_qkv(kv_heads=1)
    q = q.abs() + 0.5
    mask = torch.ones(S, dtype=torch.bool)
    mask[[1, 4]] = False
    high = k.clone()
    high[:, :, ~mask] = height  # scores far above the visible ones
    hide = mask if kind == "boolean" else torch.zeros(S, dtype=exact).masked_fill(~mask, -INF)
    value, *grads = run(lambda q, k, v: scaled_dot_product_attention(q, k, v, hide), q, high, v)
    expected = run(library, q, k[:, :, mask], v[:, :, mask])
    same(value, expected[0])
    same(grads[0], expected[1])
    for grad, whole in zip(grads[1:], expected[2:], strict=True):
        same(grad[:, :, mask], whole)
        assert (grad[:, :, ~mask] == 0).all()


@pytest.mark.parametrize("depth", [2e4, 3e9, 1e15])
def test_hidden_keys_weigh_nothing_however_low_the_others_score(depth, same):
    # visible scores of -2e4 or -3e9: a hidden key filled with -1e4 or -1e9 would win
    q = torch.full((1, 1, 1, 1), -depth, dtype=exact)
    k = torch.tensor([1.0, 0.0, 1.0], dtype=exact).reshape(1, 1, 3, 1)
    v = torch.tensor([2.0, 100.0, 4.0], dtype=exact).reshape(1, 1, 3, 1)
    mask = torch.tensor([True, False, True])
    same(attention_weights(q, k, mask), torch.tensor([[[[0.5, 0.0, 0.5]]]], dtype=exact))
    same(scaled_dot_product_attention(q, k, v, mask), torch.tensor([[[[3.0]]]], dtype=exact))
    added = torch.zeros(3, dtype=exact).masked_fill(~mask, -INF)
    same(scaled_dot_product_attention(q, k, v, added), torch.tensor([[[[3.0]]]], dtype=exact))


def test_an_additive_mask_is_added_however_low():
    # -1e4 is a bias like any other, not a way to say hidden
    q, k, _ = make_qkv()
    assert torch.allclose(
        attention_weights(q, k, torch.full((L, S), -1e4, dtype=exact)), attention_weights(q, k), atol=1e-9
    )


# low precision


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mask", [None, "boolean", "additive"])
def test_low_precision_is_as_close_as_torch(mask, dtype, as_close, run):
    q = make(B, H, 17, 32, dtype=dtype, seed=1)
    k = make(B, K, 30, 32, dtype=dtype, seed=2)
    v = make(B, K, 30, 24, dtype=dtype, seed=3)
    given_mask = {
        None: None,
        "boolean": flags(B, 1, 17, 30),
        "additive": make(17, 30, dtype=dtype, seed=8).masked_fill(~flags(17, 30), -INF),
    }[mask]
    ours = run(lambda q, k, v: scaled_dot_product_attention(q, k, v, given_mask), q, k, v)
    theirs = run(lambda q, k, v: library(q, k, v, given_mask), q, k, v)
    wide = given_mask.double() if given_mask is not None and given_mask.is_floating_point() else given_mask
    truth = run(lambda q, k, v: library(q, k, v, wide), q.double(), k.double(), v.double())
    for a, b, c in zip(ours, theirs, truth, strict=True):
        as_close(a, b, c)
    as_close(
        attention_weights(q, k, given_mask),
        weights_of(q, k, given_mask),
        weights_of(q.double(), k.double(), wide),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_beyond_float16(dtype, same, run):
    # q·k = 8 · 120² = 115200 > 65504, although the scaled score would fit
    q = torch.full((1, 1, 2, 8), 120.0, dtype=dtype)
    k = torch.stack([torch.full((8,), 120.0), torch.full((8,), 119.0), torch.full((8,), -120.0)])
    k = k.to(dtype).reshape(1, 1, 3, 8)
    v = make(1, 1, 3, 5, dtype=dtype)
    ours = run(scaled_dot_product_attention, q, k, v)
    truth = run(library, q.double(), k.double(), v.double())
    for a, b in zip(ours, truth, strict=True):
        assert a.isfinite().all()
        torch.testing.assert_close(a.double(), b, rtol=1e-2, atol=1e-2)
    assert attention_weights(q, k).isfinite().all()


def test_scores_beyond_float16(run):
    # even scaled, 8 · 500² / √8 = 707107
    q = torch.full((1, 1, 1, 8), 500.0, dtype=torch.float16)
    k = torch.stack([torch.full((8,), 500.0), torch.full((8,), 499.0)]).half().reshape(1, 1, 2, 8)
    v = torch.tensor([[1.0], [2.0]], dtype=torch.float16).reshape(1, 1, 2, 1)
    value, *grads = run(scaled_dot_product_attention, q, k, v)
    assert value.item() == 1.0
    for grad in grads:
        assert grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_mask_of_another_dtype(dtype, run):
    # a float32 mask beside a bfloat16 model
    qkv = make_qkv(dtype)
    mask = make(L, S, dtype=torch.float32, seed=9).masked_fill(~flags(L, S), -INF)
    ours = run(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), *qkv)
    truth = run(lambda q, k, v: library(q, k, v, mask.double()), *(x.double() for x in qkv))
    loose = {torch.bfloat16: 4e-2, torch.float16: 5e-3, torch.float64: 1e-10}[dtype]
    for a, b in zip(ours, truth, strict=True):
        assert a.dtype == dtype
        torch.testing.assert_close(a.double(), b, rtol=loose, atol=loose)


@both
@every_mask
def test_apply_mask_hides_and_adds(shape, dtype, same, run):
    scores, mask = make(B, H, L, S, dtype=dtype), flags(*shape)
    before = scores.clone()
    hidden = apply_mask(scores, mask)
    assert (hidden == -INF)[~mask.expand(B, H, L, S)].all()
    same(hidden[mask.expand(B, H, L, S)], scores[mask.expand(B, H, L, S)])
    bias = make(*shape, dtype=dtype, seed=5)
    same(apply_mask(scores, bias.masked_fill(~mask, -INF)), (scores + bias).masked_fill(~mask, -INF))
    compare(same, run(apply_mask, scores, bias), run(lambda s, b: s + b, scores, bias))
    assert torch.equal(scores, before)


def test_apply_mask_passes_no_gradient_to_hidden_scores(same):
    scores, mask = make(B, H, L, S).requires_grad_(), flags(L, S)
    (grad,) = torch.autograd.grad(apply_mask(scores, mask)[..., mask].sum(), scores)
    same(grad, mask.expand(B, H, L, S).to(exact))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_apply_mask_in_low_precision_dtypes(dtype):
    scores = make(B, H, L, S, dtype=dtype)
    hidden = apply_mask(scores, flags(L, S))
    assert torch.equal(hidden, scores.masked_fill(~flags(L, S), -INF))
    assert apply_mask(scores, torch.zeros(L, S)).dtype == dtype


@pytest.mark.parametrize("shape", [(L,), (1,), (B, S), (L, 1), (S, L), (B, L, S), (H, L, S), (B, 1, L, 1)])
def test_apply_mask_refuses_what_does_not_fit(shape, refuses):
    for mask in (torch.ones(shape, dtype=torch.bool), torch.zeros(shape)):
        with refuses(shape):
            apply_mask(torch.zeros(B, H, L, S), mask)


def test_apply_mask_refuses_other_dtypes_and_devices(refuses):
    with refuses(torch.int64):
        apply_mask(torch.zeros(B, H, L, S), torch.ones(L, S, dtype=torch.int64))
    with refuses("meta", "cpu"):
        apply_mask(torch.zeros(B, H, L, S), torch.ones(L, S, dtype=torch.bool, device="meta"))


def test_an_added_mask_leaves_the_dtype_of_the_scores():
    scores = torch.zeros(B, H, L, S)
    assert apply_mask(scores, torch.zeros(L, S, dtype=exact)).dtype == torch.float32


def test_masks_and_dropout_live_where_the_inputs_do():
    q, k, v = make_qkv()
    with torch.device("meta"):  # the default for what is made without a device
        output = scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.5)
    assert output.device.type == "cpu"


# dropout


def dropped(p: float, seed: int, q_len: int = 60, k_len: int = 80) -> torch.Tensor:
    r"""The weights after dropout: queries of zero see all keys alike, and the values are the identity."""
    q, k = torch.zeros(2, 4, q_len, 3, dtype=exact), torch.zeros(2, 2, k_len, 3, dtype=exact)
    eye = torch.eye(k_len, dtype=exact).expand(2, 2, -1, -1)
    generator = torch.Generator().manual_seed(seed)
    return scaled_dot_product_attention(q, k, eye, dropout_p=p, generator=generator) * k_len


@pytest.mark.parametrize("p", [0.1, 0.3, 0.75])
def test_dropout_rate_and_mean(p):
    weights = dropped(p, 1)  # 38400 draws: a share is off by more than 5σ = 0.013 once in a million
    kept = weights[weights != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-9, atol=0)
    assert abs((weights == 0).double().mean().item() - p) < 0.013
    assert abs(weights.mean().item() - 1) < 0.013 / (1 - p)


def test_dropout_draws_for_each_head_query_and_key():
    zero = dropped(0.5, 1) == 0
    assert not torch.equal(zero[0], zero[1])
    assert not torch.equal(zero[:, 0], zero[:, 1])
    assert not torch.equal(zero[:, :, 0], zero[:, :, 1])
    assert not torch.equal(zero[..., 0], zero[..., 1])


def test_dropout_is_on_the_weights_and_not_on_the_output():
    # each output is a mean over the keys that are left: none is zero, and its features agree
    q, k, v = torch.zeros(2, 4, 20, 3), torch.zeros(2, 2, 60, 3), torch.ones(2, 2, 60, 5)
    output = scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    assert (output > 0.5).all()
    assert torch.allclose(output, output[..., :1].expand_as(output))
    assert not torch.allclose(output, torch.ones_like(output))


def test_dropout_follows_the_generator():
    torch.manual_seed(1)
    first = dropped(0.5, 7)
    torch.manual_seed(2)
    assert torch.equal(first, dropped(0.5, 7))
    assert not torch.equal(first, dropped(0.5, 8))


def test_dropout_without_generator_follows_the_global_one():
    q, k, v = make_qkv()
    torch.manual_seed(1)
    first = scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    second = scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    torch.manual_seed(1)
    assert torch.equal(first, scaled_dot_product_attention(q, k, v, dropout_p=0.5))
    assert not torch.equal(first, second)


def test_no_dropout_by_default(same):
    q, k, v = make_qkv()
    generator = torch.Generator().manual_seed(1)
    same(scaled_dot_product_attention(q, k, v, generator=generator), library(q, k, v))
    same(scaled_dot_product_attention(q, k, v, dropout_p=0.0), library(q, k, v))


def test_without_dropout_nothing_is_drawn():
    before = torch.get_rng_state()
    scaled_dot_product_attention(*make_qkv(), dropout_p=0.0)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.stronger  # another way of drawing is as random
def test_dropout_draws_below_p():
    # a draw lies in [0, 1), so the share below p is p; the one that equals p stays
    draws = torch.rand(30, generator=torch.Generator().manual_seed(3))
    left = dropout(torch.ones(30), draws[4].item(), torch.Generator().manual_seed(3))
    assert torch.equal(left != 0, draws >= draws[4])


@pytest.mark.parametrize("p", [0.1, 0.75])
def test_dropout_alone_zeroes_a_share_and_keeps_the_mean(p):
    x = torch.full((200, 200), 3.0, dtype=exact)
    left = dropout(x, p, torch.Generator().manual_seed(2))  # 40000 draws: 5σ = 0.0125
    assert abs((left == 0).double().mean().item() - p) < 0.0125
    kept = left[left != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 3 / (1 - p)), rtol=1e-12, atol=0)
    assert (x == 3).all()


def test_dropout_alone_draws_for_each_entry():
    zero = dropout(torch.ones(2, 3, 4, 50), 0.5, torch.Generator().manual_seed(2)) == 0
    assert not torch.equal(zero[0], zero[1])
    assert not torch.equal(zero[:, 0], zero[:, 1])
    assert not torch.equal(zero[:, :, 0], zero[:, :, 1])
    assert not torch.equal(zero[..., :25], zero[..., 25:])


def test_dropout_alone_follows_the_generator_and_moves_it():
    generator = torch.Generator().manual_seed(2)
    first, second = dropout(torch.ones(99), 0.5, generator), dropout(torch.ones(99), 0.5, generator)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(first, dropout(torch.ones(99), 0.5, generator.manual_seed(2)))


def test_dropout_alone_passes_the_gradient_where_it_passes_the_value(same):
    x = torch.ones(99, dtype=exact, requires_grad=True)
    left = dropout(x, 0.3)
    (grad,) = torch.autograd.grad(left.sum(), x)
    same(grad, left)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_dropout_alone_keeps_dtype_and_device(dtype):
    with torch.device("meta"):  # the default for what is made without a device
        left = dropout(torch.ones(9, dtype=dtype, device="cpu"), 0.5)
    assert left.dtype == dtype
    assert left.device.type == "cpu"
    assert torch.equal(dropout(torch.ones(9, dtype=dtype), 0.0), torch.ones(9, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dropout_of_nothing_drops_nothing_in_low_precision(dtype):
    # of numbers drawn in bfloat16, two in a thousand are 0 exactly
    x = torch.ones(100_000, dtype=dtype)
    assert torch.equal(dropout(x, 0.0), x)


def test_dropout_alone_needs_no_generator():
    torch.manual_seed(1)
    first = dropout(torch.ones(30), 0.5)
    assert 0 < (first == 0).sum() < 30
    assert not torch.equal(first, dropout(torch.ones(30), 0.5))
    torch.manual_seed(1)
    assert torch.equal(first, dropout(torch.ones(30), 0.5))


# properties


@given(
    batch=st.integers(1, 3),
    kv_heads=st.integers(1, 3),
    groups=st.integers(1, 3),
    q_len=st.integers(1, 5),
    k_len=st.integers(1, 5),
    widths=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
    is_causal=st.booleans(),
    shape=st.sampled_from(["none", "(S,)", "(L,S)", "(B,1,1,S)", "(B,1,L,S)", "(B,H,L,S)"]),
)
def test_shapes_dtypes_and_masks(batch, kv_heads, groups, q_len, k_len, widths, dtype, is_causal, shape):
    heads = kv_heads * groups
    q = make(batch, heads, q_len, widths[0], dtype=dtype, seed=1)
    k = make(batch, kv_heads, k_len, widths[0], dtype=dtype, seed=2)
    v = make(batch, kv_heads, k_len, widths[1], dtype=dtype, seed=3)
    letters = {"S": k_len, "L": q_len, "B": batch, "H": heads, "1": 1}
    mask = None
    if shape != "none":
        sizes = [letters[letter] for letter in shape.strip("()").split(",") if letter]
        mask = torch.rand(sizes, generator=torch.Generator().manual_seed(4)) < 0.6
    output = scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)
    assert output.shape == (batch, heads, q_len, widths[1])
    assert output.dtype == dtype
    sees = (
        torch.ones(batch, heads, q_len, k_len, dtype=torch.bool)
        if mask is None
        else mask.expand(batch, heads, q_len, k_len)
    )
    if is_causal:
        sees = sees & lower_right(q_len, k_len)
    blind = ~sees.any(-1)
    truth = library(q.double(), k.double(), v.double(), sees | blind[..., None])
    loose = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    torch.testing.assert_close(
        output.double(), truth.masked_fill(blind[..., None], 0.0), rtol=loose, atol=loose
    )


@given(seen=st.integers(1, L))
def test_causal_queries_do_not_see_later_keys(seen):
    q, k, v = make_qkv(k_len=L)
    later_k, later_v = k.clone(), v.clone()
    later_k[:, :, seen:] = 99.0
    later_v[:, :, seen:] = -99.0
    whole = scaled_dot_product_attention(q, k, v, is_causal=True)
    changed = scaled_dot_product_attention(q, later_k, later_v, is_causal=True)
    assert torch.equal(whole[:, :, :seen], changed[:, :, :seen])
    if seen < L:
        assert not torch.allclose(whole[:, :, seen:], changed[:, :, seen:])


@given(length=st.integers(1, L))
def test_a_prefix_gives_what_the_whole_gives(length):
    q, k, v = make_qkv(k_len=L)
    whole = scaled_dot_product_attention(q, k, v, is_causal=True)
    prefix = scaled_dot_product_attention(
        q[:, :, :length], k[:, :, :length], v[:, :, :length], is_causal=True
    )
    torch.testing.assert_close(prefix, whole[:, :, :length], rtol=1e-10, atol=1e-10)


@given(cut=st.integers(1, L - 1))
def test_the_last_queries_alone_give_what_the_whole_gives(cut):
    # decoding a chunk over all keys: bottom-right, not top-left
    q, k, v = make_qkv(k_len=L)
    whole = scaled_dot_product_attention(q, k, v, is_causal=True)
    chunk = scaled_dot_product_attention(q[:, :, cut:], k, v, is_causal=True)
    torch.testing.assert_close(chunk, whole[:, :, cut:], rtol=1e-10, atol=1e-10)


@given(order=st.permutations(range(S)))
def test_order_of_the_keys_does_not_matter(order):
    q, k, v = make_qkv()
    mask = flags(B, 1, L, S)
    torch.testing.assert_close(
        scaled_dot_product_attention(q, k[:, :, order], v[:, :, order], mask[..., order]),
        scaled_dot_product_attention(q, k, v, mask),
        rtol=1e-10,
        atol=1e-10,
    )


def test_sequences_do_not_see_each_other(same):
    q, k, v = make_qkv()
    whole = scaled_dot_product_attention(q, k, v)
    for b in range(B):
        same(scaled_dot_product_attention(q[b : b + 1], k[b : b + 1], v[b : b + 1]), whole[b : b + 1])


def test_inputs_need_not_be_contiguous_and_are_not_changed(same):
    q, k, v = make(B, L, H, D, seed=1), make(D, K, S, B, seed=2), make(B, S, K, DV, seed=3)
    q, k, v = q.transpose(1, 2), k.permute(3, 1, 2, 0), v.transpose(1, 2)
    bias = make(S, L, seed=4).T
    before = [x.clone() for x in (q, k, v, bias)]
    ours = scaled_dot_product_attention(q, k, v, bias, is_causal=True)
    same(ours, library(q, k, v, bias.masked_fill(~lower_right(L, S), -INF)))
    mask = flags(S, L).T
    mask[:, 0] = True
    kept = mask.clone()
    same(scaled_dot_product_attention(q, k, v, mask), library(q, k, v, mask))
    attention_weights(q, k, bias)
    assert torch.equal(mask, kept)
    for x, copy in zip((q, k, v, bias), before, strict=True):
        assert torch.equal(x, copy)


# memory


@pytest.mark.memory
@pytest.mark.parametrize("kv_heads", [1, 2])
@pytest.mark.parametrize("q_len", [1, 3])
def test_keys_and_values_are_not_copied_per_head(kv_heads, q_len, largest_tensor):
    # few queries and wide heads: K repeated to H heads would be the largest tensor by far
    heads, k_len, width = 8, 50, 64
    q = make(2, heads, q_len, width, dtype=torch.float32).requires_grad_()
    k = make(2, kv_heads, k_len, width, dtype=torch.float32).requires_grad_()
    v = make(2, kv_heads, k_len, width, dtype=torch.float32).requires_grad_()
    with largest_tensor() as seen:
        scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    assert seen.numel < 2 * heads * k_len * width
    with largest_tensor() as seen:
        attention_weights(q, k, is_causal=True).sum().backward()
    assert seen.numel < 2 * heads * k_len * width


# errors

ZEROS = {"query": (B, H, L, D), "key": (B, K, S, D), "value": (B, K, S, DV)}


def call(**changed):
    tensors = {name: changed.pop(name, torch.zeros(shape)) for name, shape in ZEROS.items()}
    return scaled_dot_product_attention(*tensors.values(), **changed)


@pytest.mark.parametrize(
    ("name", "shape", "named"),
    [
        ("query", (B, L, D), ((B, L, D),)),
        ("query", (H, L, D, 1, 1), ((H, L, D, 1, 1),)),
        ("key", (B, S, D), ((B, S, D),)),
        ("value", (S, DV), ((S, DV),)),
        ("key", (B, K, 0, D), ((B, K, 0, D),)),
        ("key", (4, K, S, D), (4, B)),
        ("value", (4, K, S, DV), (4, B)),
        ("key", (B, K, S, D + 1), (D, D + 1)),
        ("value", (B, K, S + 1, DV), (S, S + 1)),
        ("value", (B, 4, S, DV), (K, 4)),
    ],
)
def test_refuses_shapes(name, shape, named, refuses):
    with refuses(*named):
        call(**{name: torch.zeros(shape)})


@pytest.mark.parametrize("kv_heads", [3, 5, 7, 16])
def test_refuses_kv_heads_that_do_not_divide(kv_heads, refuses):
    with refuses(H, kv_heads):
        call(key=torch.zeros(B, kv_heads, S, D), value=torch.zeros(B, kv_heads, S, DV))
    with refuses(H, kv_heads):
        attention_weights(torch.zeros(B, H, L, D), torch.zeros(B, kv_heads, S, D))


def test_refuses_dtypes_and_devices(refuses):
    with refuses(torch.float64, torch.float32):
        call(key=torch.zeros(B, K, S, D, dtype=torch.float64))
    with refuses(torch.bfloat16, torch.float32):
        call(value=torch.zeros(B, K, S, DV, dtype=torch.bfloat16))
    with refuses(torch.int64):
        call(**{name: torch.zeros(shape, dtype=torch.long) for name, shape in ZEROS.items()})
    with refuses("meta", "cpu"):
        call(key=torch.zeros(B, K, S, D, device="meta"))
    with refuses("meta", "cpu"):
        call(attn_mask=torch.ones(L, S, dtype=torch.bool, device="meta"))


@pytest.mark.parametrize("shape", [(L,), (S, L), (B, S), (L, 1), (B, H, S, L), (2, 1, L, S), (B, 3, L, S)])
def test_refuses_masks_that_do_not_fit(shape, refuses):
    with refuses(shape):
        call(attn_mask=torch.ones(shape, dtype=torch.bool))
    with refuses(shape):
        call(attn_mask=torch.zeros(shape))


@pytest.mark.parametrize("shape", [(B, L, S), (H, L, S), (1, L, S)])
def test_refuses_masks_of_three_dimensions(shape, refuses):
    with refuses(shape):
        call(attn_mask=torch.ones(shape, dtype=torch.bool))
    with refuses(shape):
        attention_weights(torch.zeros(B, H, L, D), torch.zeros(B, K, S, D), torch.zeros(shape))


def test_refuses_a_mask_over_the_batch_that_fits_the_heads(refuses):
    # (B, S, S) with B = H would silently mask heads
    q = torch.zeros(4, 4, S, D)
    with refuses((4, S, S)):
        scaled_dot_product_attention(q, q, q, torch.ones(4, S, S, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_refuses_masks_of_other_dtypes(dtype, refuses):
    with refuses(dtype):
        call(attn_mask=torch.ones(L, S, dtype=dtype))


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_refuses_dropout_rates(p, refuses):
    with refuses(p):
        call(dropout_p=p)


@pytest.mark.parametrize("scale", [INF, -INF, float("nan")])
def test_refuses_scales(scale, refuses):
    with refuses("scale", scale):
        call(scale=scale)
    with refuses("scale", scale):
        attention_weights(torch.zeros(B, H, L, D), torch.zeros(B, K, S, D), scale=scale)


@pytest.mark.parametrize("p", [-0.1, 1.0])
def test_dropout_alone_refuses_rates_and_integers(p, refuses):
    with refuses(p):
        dropout(torch.ones(3), p)
    with refuses(torch.int64):
        dropout(torch.ones(3, dtype=torch.int64), 0.5)
