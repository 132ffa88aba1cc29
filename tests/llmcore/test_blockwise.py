r"""Oracle: `F.scaled_dot_product_attention` with explicit masks; `gradcheck`; memory that torch counts."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from benchmarks.measure import peak_bytes
from llmcore.blockwise import blockwise_attention

B, H, K, L, S, D, DV = 3, 8, 2, 5, 7, 6, 9
INF = float("inf")
exact = torch.float64
both = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
more = pytest.mark.stronger  # for a judge 2, 3 and 128 are enough: the hypothesis test draws 1 to 20
every_block = pytest.mark.parametrize(
    "block_size", [pytest.param(1, marks=more), 2, 3, pytest.param(4, marks=more), 128]
)


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
    r"""A random boolean mask that leaves every query its first key at least."""
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    mask[..., 0] = True
    return mask


def lower_right(q_len: int, k_len: int) -> torch.Tensor:
    return torch.arange(k_len) <= torch.arange(q_len)[:, None] + (k_len - q_len)


def library(q, k, v, mask=None, **options):
    r"""PyTorch's own, the mask written out to four dimensions."""
    if mask is not None:
        mask = mask.expand(q.size(0), q.size(1), q.size(2), k.size(2))
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, enable_gqa=q.size(1) != k.size(1), **options
    )


def compare(same, actual, expected):
    for a, b in zip(actual, expected, strict=True):
        same(a, b)


# values and gradients


@both
@every_block
@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8])
def test_equals_torch(kv_heads, block_size, dtype, same, run):
    qkv = make_qkv(dtype, kv_heads=kv_heads)
    compare(same, run(lambda *x: blockwise_attention(*x, block_size=block_size), *qkv), run(library, *qkv))


@both
@every_block
@pytest.mark.parametrize(("q_len", "k_len"), [(5, 5), (5, 7), (1, 7), (4, 11)])
def test_causal_is_bottom_right(q_len, k_len, block_size, dtype, same, run):
    qkv = make_qkv(dtype, q_len=q_len, k_len=k_len)
    compare(
        same,
        run(lambda *x: blockwise_attention(*x, is_causal=True, block_size=block_size), *qkv),
        run(lambda *x: library(*x, mask=lower_right(q_len, k_len)), *qkv),
    )


@every_block
def test_with_more_queries_than_keys_the_first_see_nothing(block_size, same, run):
    qkv, blind = make_qkv(q_len=S, k_len=L), S - L
    ours = run(lambda *x: blockwise_attention(*x, is_causal=True, block_size=block_size), *qkv)
    compare(same, ours, run(lambda *x: library(*x, mask=lower_right(S, L)), *qkv))
    assert ours[0][:, :, :blind].eq(0).all()
    assert ours[1][:, :, :blind].eq(0).all()


@pytest.mark.parametrize("block_size", [2, *(pytest.param(size, marks=more) for size in (1, 3, 4, 128))])
@pytest.mark.parametrize("kv_heads", [2, pytest.param(8, marks=more)])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "shape", [(S,), (L, S), (1, S), (B, 1, L, S), (B, H, L, S), (1, H, 1, S), (B, 1, 1, S), (1, 1, L, S)]
)
def test_masks_broadcast(shape, is_causal, kv_heads, block_size, same, run):
    qkv, mask = make_qkv(kv_heads=kv_heads), flags(*shape)
    whole = mask & lower_right(L, S) if is_causal else mask
    added = make(*shape, seed=5)
    expected = run(lambda *x: library(*x, mask=whole), *qkv)

    def ours(mask):
        return run(
            lambda *x: blockwise_attention(*x, attn_mask=mask, is_causal=is_causal, block_size=block_size),
            *qkv,
        )

    compare(same, ours(mask), expected)
    compare(same, ours(torch.zeros(shape, dtype=exact).masked_fill(~mask, -INF)), expected)
    bias = added.expand(B, H, L, S).masked_fill(~whole, -INF)
    compare(same, ours(added.masked_fill(~mask, -INF)), run(lambda *x: library(*x, mask=bias), *qkv))


@every_block
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", [(S,), (L, S), (B, 1, L, S), (B, H, L, S), (1, H, 1, S)])
def test_an_additive_mask_can_be_learned(shape, is_causal, block_size, same, run):
    def oracle(q, k, v, bias):
        bias = bias.expand(B, H, L, S)
        return library(q, k, v, bias.masked_fill(~lower_right(L, S), -INF) if is_causal else bias)

    inputs = (*make_qkv(), make(*shape, seed=5))
    compare(
        same,
        run(lambda *x: blockwise_attention(*x, is_causal=is_causal, block_size=block_size), *inputs),
        run(oracle, *inputs),
    )


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (2, 4, 2, 2), (2, 2, 5, 2)])
def test_masks_of_axes_of_two(sizes, same, run):
    batch, heads, q_len, k_len = sizes
    qkv = make(batch, heads, q_len, D), make(batch, 2, k_len, D, seed=1), make(batch, 2, k_len, DV, seed=2)
    for shape in ((k_len,), (q_len, k_len), (batch, 1, 1, k_len), (1, heads, 1, k_len), sizes):
        inputs = (*qkv, make(*shape, seed=5))
        compare(same, run(blockwise_attention, *inputs), run(library, *inputs))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_gradient_of_a_rounded_mask_is_summed_in_float32(dtype, run, as_close):
    q, k, v = make(1, 8, 300, D, seed=1), make(1, 2, S, D, seed=2), make(1, 2, S, DV, seed=3)
    mask = make(S, dtype=dtype, seed=5)

    def gradient(attend, mask):
        return run(lambda mask: attend(q.to(mask.dtype), k.to(mask.dtype), v.to(mask.dtype), mask), mask)[1]

    ours = gradient(lambda *x: blockwise_attention(*x, block_size=1), mask)
    as_close(ours, gradient(library, mask), gradient(library, mask.double()))


@both
def test_scale(dtype, same, run):
    qkv = make_qkv(dtype)
    compare(
        same,
        run(lambda *x: blockwise_attention(*x, scale=0.3), *qkv),
        run(lambda *x: library(*x, scale=0.3), *qkv),
    )


@pytest.mark.parametrize("is_causal", [pytest.param(False, marks=more), True])
def test_long_sequences_cross_the_borders_of_blocks(is_causal, same, run):
    # 600 queries of 2 heads over 600 keys: several blocks by the default size, the last one shorter
    qkv = make_qkv(torch.float64, heads=2, kv_heads=1, q_len=600, k_len=600)
    compare(
        same,
        run(lambda *x: blockwise_attention(*x, is_causal=is_causal), *qkv),
        run(lambda *x: library(*x, is_causal=is_causal), *qkv),
    )


@pytest.mark.parametrize("is_causal", [pytest.param(False, marks=more), True])
def test_heads_are_worked_on_in_turns_when_keys_are_many(is_causal, same, run):
    # 8 heads of 40 queries over 5000 keys are more scores than one block holds
    q, k, v = make(1, 8, 40, D, seed=1), make(1, 4, 5000, D, seed=2), make(1, 4, 5000, DV, seed=3)
    compare(
        same,
        run(lambda *x: blockwise_attention(*x, is_causal=is_causal), q, k, v),
        run(lambda *x: library(*x, mask=lower_right(40, 5000) if is_causal else None), q, k, v),
    )


@pytest.mark.stronger  # of blocks whose size the keys decide
def test_more_keys_than_scores_in_a_block(same):
    q, k, v = make(1, 2, 3, 1), make(1, 1, 2**20 + 5, 1, seed=1), make(1, 1, 2**20 + 5, 1, seed=2)
    same(blockwise_attention(q, k, v), library(q, k, v))


def test_what_is_made_lives_where_the_inputs_do():
    (q, k, v), mask = make_qkv(), flags(L, S)
    expected = blockwise_attention(q, k, v, mask, is_causal=True)
    with torch.device("meta"):  # the default for what is made without a device
        output = blockwise_attention(q, k, v, mask, is_causal=True)
    assert torch.equal(output, expected)


def test_strided_inputs(same, run):
    q, k, v = make(B, L, H, D, seed=1), make(B, S, K, D, seed=2), make(B, S, K, DV, seed=3)

    def heads_first(attend):
        return lambda *x: attend(*(tensor.transpose(1, 2) for tensor in x))

    compare(
        same,
        run(heads_first(lambda *x: blockwise_attention(*x, block_size=2)), q, k, v),
        run(heads_first(library), q, k, v),
    )


def test_inputs_are_left_alone():
    qkv, mask = make_qkv(), make(L, S, seed=5)
    before = [x.clone() for x in (*qkv, mask)]
    blockwise_attention(*qkv, attn_mask=mask, is_causal=True, block_size=2)
    assert all(torch.equal(a, b) for a, b in zip((*qkv, mask), before, strict=True))


@pytest.mark.stronger  # slow, and every gradient is compared with torch's above
@pytest.mark.parametrize("is_causal", [False, True])
def test_gradcheck(is_causal):
    inputs = (make(2, 4, 3, 2), make(2, 2, 5, 2, seed=1), make(2, 2, 5, 3, seed=2), make(2, 1, 3, 5, seed=3))
    inputs = [x.requires_grad_() for x in inputs]
    assert gradcheck(lambda *x: blockwise_attention(*x, is_causal=is_causal, block_size=2), inputs)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("masked", [False, True])
def test_a_second_derivative_is_refused_and_not_wrong(masked, power, same):
    # an answer that is differentiable twice may give it
    def penalty(attend, mask) -> list[torch.Tensor]:
        leaves = [x.requires_grad_() for x in make_qkv()]
        loss = attend(*leaves, mask).pow(power).sum()
        (grad,) = torch.autograd.grad(loss, leaves[0], create_graph=True)
        assert grad.requires_grad, "a gradient that is taken for constant"
        grad.square().sum().backward()
        return [x.grad if x.grad is not None else torch.zeros_like(x) for x in leaves]

    def plain(q, k, v, mask):
        scores = q @ k.repeat_interleave(H // K, 1).mT / D**0.5
        hidden = (
            torch.zeros_like(scores) if mask is None else torch.zeros_like(scores).masked_fill(~mask, -INF)
        )
        return (scores + hidden).softmax(-1) @ v.repeat_interleave(H // K, 1)

    mask = flags(L, S) if masked else None
    try:
        ours = penalty(blockwise_attention, mask)
    except RuntimeError:
        return
    same(ours, penalty(plain, mask))


@pytest.mark.stronger
def test_the_second_derivative_is_refused():
    q, k, v = (x.requires_grad_() for x in make_qkv())
    for loss in (blockwise_attention(q, k, v).sum(), blockwise_attention(q, k, v).square().sum()):
        with pytest.raises(RuntimeError, match="differentiable once"):
            torch.autograd.grad(loss, q, create_graph=True)


def test_no_query_of_an_empty_batch():
    q, k, v = (x[:0].requires_grad_() for x in make_qkv())
    output = blockwise_attention(q, k, v)
    assert output.shape == (0, H, L, DV)
    output.sum().backward()


# properties


@given(
    block_size=st.integers(1, 20),
    q_len=st.integers(1, 9),
    k_len=st.integers(1, 9),
    heads=st.sampled_from([(1, 1), (2, 1), (6, 3), (4, 4)]),
    is_causal=st.booleans(),
    kind=st.sampled_from(["none", "bool", "added"]),
)
def test_any_block_size_gives_the_same(block_size, q_len, k_len, heads, is_causal, kind, same, run):
    qkv = make_qkv(heads=heads[0], kv_heads=heads[1], q_len=q_len, k_len=k_len)
    mask = {"none": None, "bool": flags(q_len, k_len), "added": make(B, 1, q_len, k_len)}[kind]
    compare(
        same,
        run(
            lambda *x: blockwise_attention(*x, attn_mask=mask, is_causal=is_causal, block_size=block_size),
            *qkv,
        ),
        run(lambda *x: blockwise_attention(*x, attn_mask=mask, is_causal=is_causal, block_size=1000), *qkv),
    )


@given(position=st.integers(0, 8), block_size=st.integers(1, 9))
def test_a_causal_query_sees_no_later_key(position, block_size):
    q, k, v = make_qkv(q_len=9, k_len=9)
    before = blockwise_attention(q, k, v, is_causal=True, block_size=block_size)
    k[:, :, position], v[:, :, position] = 3.0, -2.0
    after = blockwise_attention(q, k, v, is_causal=True, block_size=block_size)
    assert torch.equal(before[:, :, :position], after[:, :, :position])
    assert not torch.equal(before[:, :, position:], after[:, :, position:])


# low precision and extreme values


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("kv_heads", [2, 8])
def test_low_precision_is_as_close_as_torch(kv_heads, is_causal, dtype, as_close, run):
    qkv = make_qkv(dtype, kv_heads=kv_heads, q_len=33, k_len=33)
    wide = [x.double() for x in qkv]
    mask = lower_right(33, 33) if is_causal else None
    ours = run(lambda *x: blockwise_attention(*x, is_causal=is_causal, block_size=8), *qkv)
    theirs = run(lambda *x: library(*x, mask=mask), *qkv)
    for a, b, c in zip(ours, theirs, run(lambda *x: library(*x, mask=mask), *wide), strict=True):
        as_close(a, b, c)


def test_scores_beyond_the_range_of_half_precision(same):
    # q . k = 4 * 240 * 120 = 115200 > 65504, the largest float16
    q = torch.full((1, 1, 1, 4), 240.0, dtype=torch.float16)
    k = torch.tensor([120.0, -120.0], dtype=torch.float16)[None, None, :, None].expand(1, 1, 2, 4)
    v = torch.tensor([[2.0, 5.0], [7.0, 3.0]], dtype=torch.float16)[None, None]
    same(blockwise_attention(q, k, v), v[:, :, :1])


def test_a_float32_mask_on_a_bfloat16_query(same):
    qkv, mask = make_qkv(torch.bfloat16), make(L, S, dtype=torch.float32)
    output = blockwise_attention(*qkv, attn_mask=mask)
    assert output.dtype == torch.bfloat16
    same(output, library(*(x.float() for x in qkv), mask=mask).bfloat16(), 1e-2)


@both
@every_block
@pytest.mark.parametrize("additive", [False, True])
def test_a_fully_masked_row_gives_zeros_and_finite_gradients(additive, block_size, dtype, same, run):
    qkv, mask = make_qkv(dtype), flags(B, H, L, S)
    mask[1, 3, 2] = False
    mask[2, :, 4] = False
    given_mask = torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -INF) if additive else mask
    ours = run(lambda *x: blockwise_attention(*x, attn_mask=given_mask, block_size=block_size), *qkv)
    assert ours[0][1, 3, 2].eq(0).all()
    assert ours[0][2, :, 4].eq(0).all()
    assert ours[1][1, 3, 2].eq(0).all()
    compare(same, ours, run(lambda *x: library(*x, mask=mask), *qkv))  # torch gives zeros too


def test_nan_is_not_hidden():
    q, k, v = make_qkv()
    q[0, 0, 0, 0] = float("nan")
    output = blockwise_attention(q, k, v, flags(L, S))
    assert output[0, 0, 0].isnan().all()
    assert output.isnan().sum() == DV


# memory


@pytest.mark.memory
@pytest.mark.parametrize("masked", [False, True])
def test_a_block_is_as_large_as_asked_for(masked, largest_tensor):
    length, heads = 512, 4
    q = make(1, heads, length, 8, dtype=torch.float32, seed=1).requires_grad_()
    k = make(1, 2, length, 8, dtype=torch.float32, seed=2).requires_grad_()
    mask = (torch.arange(length) < 500)[None, None, None] if masked else None
    with largest_tensor() as seen:
        output = blockwise_attention(q, k, k, mask, is_causal=not masked, block_size=32)
    assert seen.numel <= heads * length * length // 4
    with largest_tensor() as seen:
        output.sum().backward()
    assert seen.numel <= heads * length * length // 4


@pytest.mark.memory
def test_no_weights_are_kept_for_the_gradient():
    length, heads = 512, 4
    inputs = [make(1, heads, length, 4, dtype=torch.float32, seed=n).requires_grad_() for n in range(3)]
    kept = {}

    def pack(x: torch.Tensor) -> torch.Tensor:
        kept[x.untyped_storage().data_ptr()] = x  # holds it, so that no address comes twice
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        blockwise_attention(*inputs, block_size=32)
    assert sum(x.untyped_storage().nbytes() // x.itemsize for x in kept.values()) <= heads * length**2 // 4


@pytest.mark.stronger  # the default of 256 queries is no promise of how many heads stand beside each other
@pytest.mark.memory
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kv_heads", [1, 2, 8])
@pytest.mark.parametrize("masked", [False, True])
def test_the_scores_are_never_whole(masked, kv_heads, dtype, largest_tensor):
    length = 2048
    q = make(1, 8, length, 16, dtype=dtype, seed=1).requires_grad_()
    k = make(1, kv_heads, length, 16, dtype=dtype, seed=2).requires_grad_()
    mask = (torch.arange(length) < 2000)[None, None, None] if masked else None
    with largest_tensor() as seen:
        output = blockwise_attention(q, k, k, mask, is_causal=True)
    assert seen.numel <= 8 * length * length // 16
    with largest_tensor() as seen:
        output.sum().backward()
    assert seen.numel <= 8 * length * length // 16


@pytest.mark.stronger
@pytest.mark.memory
def test_peak_is_a_tenth_of_the_scores():
    q, k, v = (torch.randn(1, heads, 2048, 64) for heads in (8, 2, 2))
    for inputs in ((q, k, v), (q, q, q)):
        for is_causal in (False, True):
            peak = peak_bytes(lambda x=inputs, c=is_causal: blockwise_attention(*x, is_causal=c))
            assert peak <= 8 * 2048 * 2048 * 4 // 10


@pytest.mark.memory
def test_a_mask_is_not_written_out():
    q, k, v = (torch.randn(4, 4, 512, 8) for _ in range(3))
    for mask in (torch.rand(512) < 0.9, torch.rand(4, 1, 1, 512) < 0.9, torch.randn(512, 512)):
        plain = peak_bytes(lambda: blockwise_attention(q, k, v))
        masked = peak_bytes(lambda mask=mask: blockwise_attention(q, k, v, mask))
        assert masked - plain < 4 * 4 * 512 * 512 // 4  # bytes: less than a whole boolean mask would take


# errors


def test_the_same_inputs_are_refused_as_by_the_readable_version(refuses):
    q, k, v = make_qkv()
    with refuses(H, 3):
        blockwise_attention(q, make(B, 3, S, D), make(B, 3, S, DV))
    with refuses(D, 4):
        blockwise_attention(q, make(B, K, S, 4), v)
    with refuses((B, K, S, D), (B, K, 6, DV)):
        blockwise_attention(q, k, v[:, :, :6])
    with refuses(B, 2):
        blockwise_attention(q, k[:2], v[:2])
    with refuses(torch.float64, torch.float32):
        blockwise_attention(q, k.float(), v.float())
    with refuses((B, H, D)):
        blockwise_attention(q[:, :, 0], k, v)
    with refuses("meta"):
        blockwise_attention(q, k, v.to("meta"))


@pytest.mark.parametrize("block_size", [0, -1, 2.0, True])
def test_a_block_holds_a_query_at_least(block_size, refuses):
    with refuses(block_size):
        blockwise_attention(*make_qkv(), block_size=block_size)


@pytest.mark.parametrize("scale", [INF, -INF, float("nan")])
def test_refuses_scales(scale, refuses):
    with refuses("scale", scale):
        blockwise_attention(*make_qkv(), scale=scale)


@pytest.mark.parametrize(
    "shape", [(B, L, S), (H, L, S), (L, S + 1), (S, L), (B, H, L, 1), (2, 1, L, S), (1, B, 1, L, S)]
)
def test_ambiguous_and_unfit_masks(shape, refuses):
    with refuses(tuple(shape)):
        blockwise_attention(*make_qkv(), torch.ones(shape, dtype=torch.bool))


def test_masks_of_other_dtypes_and_devices(refuses):
    with refuses(torch.int64):
        blockwise_attention(*make_qkv(), torch.ones(L, S, dtype=torch.int64))
    with refuses("meta", "cpu"):
        blockwise_attention(*make_qkv(), torch.ones(L, S, dtype=torch.bool, device="meta"))
