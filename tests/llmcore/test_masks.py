r"""Oracle: masks written out by hand, `causal_lower_right` of PyTorch, and plain loops."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention.bias import causal_lower_right

from llmcore.masks import (
    additive_mask,
    causal_mask,
    check_mask_dims,
    combine_masks,
    expand_mask,
    padding_mask,
)

INF = float("inf")
B, H, L, S = 2, 3, 5, 7


def flags(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.6


# causal_mask


def test_causal_mask_by_hand():
    assert causal_mask(3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(2, 4).int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert causal_mask(4, 2).int().tolist() == [[0, 0], [0, 0], [1, 0], [1, 1]]
    assert causal_mask(1, 5).int().tolist() == [[1, 1, 1, 1, 1]]


def test_causal_mask_is_boolean():
    assert causal_mask(3, 4).dtype == torch.bool


@given(q_len=st.integers(1, 9), k_len=st.integers(1, 9))
def test_causal_mask_by_loops(q_len, k_len):
    mask = causal_mask(q_len, k_len)
    assert mask.shape == (q_len, k_len)
    for i in range(q_len):
        for j in range(k_len):
            assert mask[i, j].item() == (j <= i + k_len - q_len)


@given(q_len=st.integers(1, 6), extra=st.integers(0, 6))
def test_causal_mask_of_a_chunk_is_the_end_of_the_whole(q_len, extra):
    k_len = q_len + extra
    assert torch.equal(causal_mask(q_len, k_len), causal_mask(k_len)[extra:])


@pytest.mark.parametrize(("q_len", "k_len"), [(5, 5), (3, 7), (1, 7)])
def test_causal_mask_equals_torch_lower_right(q_len, k_len, same):
    generator = torch.Generator().manual_seed(1)
    q, k, v = (
        torch.randn(B, H, n, 4, generator=generator, dtype=torch.float64) for n in (q_len, k_len, k_len)
    )
    bias = causal_lower_right(q_len, k_len)
    same(
        F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(q_len, k_len)),
        F.scaled_dot_product_attention(q, k, v, attn_mask=bias),
    )


def test_causal_mask_lives_on_the_device():
    assert causal_mask(3, device="meta").device.type == "meta"
    assert causal_mask(3).device.type == "cpu"


@pytest.mark.parametrize("bad", [0, -2, 2.5])
def test_causal_mask_refuses(bad, refuses):
    with refuses(bad):
        causal_mask(bad, 4)
    with refuses(bad):
        causal_mask(4, bad)


# padding_mask


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_padding_mask_by_hand(dtype):
    lengths = torch.tensor([2, 0, 4], dtype=dtype)
    right = [[1, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 0]]
    left = [[0, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1]]
    assert padding_mask(lengths, 5)[:, 0, 0].int().tolist() == right
    assert padding_mask(lengths, 5, side="right")[:, 0, 0].int().tolist() == right
    assert padding_mask(lengths, 5, side="left")[:, 0, 0].int().tolist() == left


def test_padding_mask_is_as_long_as_the_longest():
    assert padding_mask(torch.tensor([2, 3])).int().tolist() == [[[[1, 1, 0]]], [[[1, 1, 1]]]]
    assert padding_mask(torch.tensor([2, 3]), side="left").int().tolist() == [[[[0, 1, 1]]], [[[1, 1, 1]]]]


@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    extra=st.integers(1, 3),
    side=st.sampled_from(["left", "right"]),
)
def test_padding_mask_counts_the_tokens(lengths, extra, side):
    max_len = max(lengths) + extra
    given_lengths = torch.tensor(lengths)
    mask = padding_mask(given_lengths, max_len, side=side)
    assert mask.dtype == torch.bool
    assert mask.shape == (len(lengths), 1, 1, max_len)
    assert mask.sum((1, 2, 3)).tolist() == lengths
    assert given_lengths.tolist() == lengths
    flat = mask[:, 0, 0].int()
    steps = flat.diff(dim=-1)
    assert (steps <= 0).all() if side == "right" else (steps >= 0).all()


def test_masks_live_where_their_inputs_do():
    lengths, mask = torch.tensor([2, 3]), flags(L, S)
    with torch.device("meta"):  # the default for what is made without a device
        assert padding_mask(lengths).device.type == "cpu"
        assert padding_mask(lengths, side="left").device.type == "cpu"
        assert additive_mask(mask).device.type == "cpu"


@pytest.mark.parametrize(
    "lengths", [torch.zeros(2, 3, dtype=torch.long), torch.tensor(3), torch.zeros(0, dtype=torch.long)]
)
def test_padding_mask_refuses_what_is_no_vector(lengths, refuses):
    with refuses(tuple(lengths.shape)):
        padding_mask(lengths, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64])
def test_padding_mask_refuses_what_is_no_integer(dtype, refuses):
    with refuses(dtype):
        padding_mask(torch.tensor([1, 0], dtype=dtype), 4)


def test_padding_mask_refuses_lengths(refuses):
    with refuses(-1):
        padding_mask(torch.tensor([3, -1]), 4)
    with refuses(5, 4):
        padding_mask(torch.tensor([3, 5]), 4)
    with refuses(0):
        padding_mask(torch.tensor([0, 0]))
    with refuses("middle"):
        padding_mask(torch.tensor([3]), 4, side="middle")


# combine_masks


def test_combine_masks():
    causal, padding, keys = causal_mask(L, S), padding_mask(torch.tensor([3, 7]), S), flags(S)
    before = [mask.clone() for mask in (causal, padding, keys)]
    both = combine_masks(causal, padding)
    assert both.dtype == torch.bool
    assert both.shape == (B, 1, L, S)
    for b, length in enumerate([3, 7]):
        for i in range(L):
            for j in range(S):
                assert both[b, 0, i, j].item() == (j <= i + S - L and j < length)
    assert torch.equal(combine_masks(keys, causal, padding), both & keys)
    assert torch.equal(combine_masks(flags(B, H, L, S), padding), flags(B, H, L, S) & padding)
    assert torch.equal(combine_masks(causal), causal)
    for mask, copy in zip((causal, padding, keys), before, strict=True):
        assert torch.equal(mask, copy)


@given(count=st.integers(1, 4), sizes=st.sampled_from([(S,), (L, S), (B, H, L, S)]))
def test_combine_masks_allows_what_every_mask_allows(count, sizes):
    masks = [torch.rand(sizes, generator=torch.Generator().manual_seed(n)) < 0.8 for n in range(count)]
    assert torch.equal(combine_masks(*masks), torch.stack(masks).all(0))


@given(order=st.permutations(range(3)))
def test_combine_masks_in_any_order(order):
    masks = [causal_mask(L, S), padding_mask(torch.tensor([3, 7]), S), flags(S)]
    assert torch.equal(combine_masks(*(masks[i] for i in order)), combine_masks(*masks))


def test_combine_masks_is_no_larger_than_needed():
    assert combine_masks(flags(S)).shape == (S,)
    assert combine_masks(flags(S), causal_mask(L, S)).shape == (L, S)
    assert combine_masks(flags(B, 1, 1, S), flags(1, H, 1, S)).shape == (B, H, 1, S)


def test_combine_masks_refuses(refuses):
    with pytest.raises(ValueError, match="mask"):
        combine_masks()
    with refuses(torch.float32):
        combine_masks(causal_mask(3), torch.zeros(3, 3))
    with refuses(torch.int64):
        combine_masks(torch.ones(3, 3, dtype=torch.long))
    with refuses((2, 3, 3)):
        combine_masks(causal_mask(3), flags(2, 3, 3))
    with refuses((3, 3), (4, 4)):
        combine_masks(causal_mask(3), causal_mask(4))
    with refuses((1, 2, 1, 3, 3)):
        combine_masks(flags(1, 2, 1, 3, 3))


# additive_mask


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_additive_mask(dtype):
    added = additive_mask(torch.tensor([[True, False, True]]), dtype)
    assert added.dtype == dtype
    assert added.tolist() == [[0.0, -INF, 0.0]]


def test_additive_mask_is_float32_and_keeps_the_shape():
    mask = flags(B, 1, L, S)
    before = mask.clone()
    added = additive_mask(mask)
    assert added.dtype == torch.float32
    assert added.shape == mask.shape
    assert torch.equal(added == 0.0, mask)
    assert torch.equal(added == -INF, ~mask)
    assert torch.equal(mask, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_additive_mask_refuses_other_masks(dtype, refuses):
    with refuses(dtype):
        additive_mask(torch.ones(3, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_additive_mask_refuses_other_results(dtype, refuses):
    with refuses(dtype):
        additive_mask(causal_mask(3), dtype)


# expand_mask

SHAPES = [(S,), (L, S), (1, S), (B, 1, L, S), (B, H, L, S), (B, 1, 1, S), (1, H, L, S), (1, 1, 1, S)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32, torch.float16])
def test_expand_mask(shape, dtype):
    mask = flags(*shape).to(dtype)
    expanded = expand_mask(mask, (B, H, L, S))
    assert expanded.dtype == dtype
    assert torch.equal(expanded, torch.broadcast_to(mask, (B, H, L, S)))


@pytest.mark.memory
def test_expand_mask_copies_nothing(largest_tensor):
    mask = flags(B, 1, 1, S)
    with largest_tensor() as seen:
        expand_mask(mask, (B, H, L, S))
    assert seen.numel <= mask.numel()


@pytest.mark.parametrize(
    "shape",
    [
        (L,),
        (1,),
        (S, L),
        (B, S),
        (L, 1),
        (B, H, S, L),
        (H, 1, L, S),
        (B, B, L, S),
        (B, 1, L, 1),
        (B, 1, S, S),
    ],
)
def test_expand_mask_refuses_what_does_not_fit(shape, refuses):
    with refuses(shape, (B, H, L, S)):
        expand_mask(flags(*shape), (B, H, L, S))


@pytest.mark.parametrize("shape", [(B, L, S), (H, L, S), (1, L, S)])
def test_expand_mask_refuses_three_dimensions(shape, refuses):
    # batch or heads? With B = H nobody could tell
    with refuses(shape):
        expand_mask(flags(*shape), (B, H, L, S))


@pytest.mark.parametrize("shape", [(), (1, B, H, L, S)])
def test_expand_mask_refuses_other_dimensions(shape, refuses):
    with refuses(shape):
        expand_mask(flags(*shape), (B, H, L, S))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.complex64])
def test_expand_mask_refuses_other_dtypes(dtype, refuses):
    with refuses(dtype):
        expand_mask(torch.ones(L, S, dtype=dtype), (B, H, L, S))


def test_expand_mask_refuses_other_devices(refuses):
    mask = flags(L, S)
    with refuses("cpu", "meta"):
        expand_mask(mask, (B, H, L, S), torch.device("meta"))
    assert expand_mask(mask, (B, H, L, S), torch.device("cpu")).shape == (B, H, L, S)


@pytest.mark.parametrize("shape", [(), (B, L, S), (1, B, H, L, S)])
def test_check_mask_dims_refuses(shape, refuses):
    with refuses(shape):
        check_mask_dims(flags(*shape))


@pytest.mark.parametrize("shape", [(S,), (L, S), (B, H, L, S), (B, 1, 1, S)])
def test_check_mask_dims_lets_pass(shape):
    check_mask_dims(flags(*shape))
    check_mask_dims(torch.zeros(shape))
