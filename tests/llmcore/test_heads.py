r"""Oracle: the definition index by index, `torch.repeat_interleave`, and transformers' `repeat_kv`."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.llama import modeling_llama

from llmcore.heads import merge_heads, repeat_kv, split_heads

B, L, H, D, K, N, S = 2, 5, 3, 4, 3, 6, 7


def numbered(*shape: int) -> torch.Tensor:
    r"""Every entry another number, so that a moved one shows."""
    count = 1
    for size in shape:
        count *= size
    return torch.arange(count, dtype=torch.float64).reshape(shape)


def test_split_heads_index_by_index():
    x = numbered(B, L, H * D)
    heads = split_heads(x, H)
    assert heads.shape == (B, H, L, D)
    for h in range(H):
        assert torch.equal(heads[:, h], x[:, :, h * D : (h + 1) * D])


def test_split_heads_by_hand():
    # one sequence of two tokens, two heads of width 2
    x = torch.tensor([[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]])
    assert split_heads(x, 2).tolist() == [[[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]]


def test_merge_heads_index_by_index():
    x = numbered(B, H, L, D)
    merged = merge_heads(x)
    assert merged.shape == (B, L, H * D)
    for h in range(H):
        assert torch.equal(merged[:, :, h * D : (h + 1) * D], x[:, h])


def test_merge_heads_by_hand():
    x = torch.tensor([[[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]])
    assert merge_heads(x).tolist() == [[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]]


dims = st.integers(1, 5)
dtypes = st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.int64])


@given(batch=dims, length=dims, heads=dims, width=dims, dtype=dtypes)
def test_merge_undoes_split(batch, length, heads, width, dtype):
    x = numbered(batch, length, heads * width).to(dtype)
    split = split_heads(x, heads)
    assert split.dtype == dtype
    assert split.shape == (batch, heads, length, width)
    assert torch.equal(merge_heads(split), x)
    assert torch.equal(split_heads(merge_heads(split), heads), split)


def test_gradients_go_back_to_their_place():
    weight = numbered(B, H, L, D)
    x = torch.zeros(B, L, H * D, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad((split_heads(x, H) * weight).sum(), x)
    for h in range(H):
        assert torch.equal(grad[:, :, h * D : (h + 1) * D], weight[:, h])
    x = torch.zeros(B, H, L, D, dtype=torch.float64, requires_grad=True)
    weight = numbered(B, L, H * D)
    (grad,) = torch.autograd.grad((merge_heads(x) * weight).sum(), x)
    for h in range(H):
        assert torch.equal(grad[:, h], weight[:, :, h * D : (h + 1) * D])


def test_inputs_need_not_be_contiguous_and_are_not_changed():
    x = numbered(B, H * D, L).transpose(1, 2)
    before = x.clone()
    assert torch.equal(split_heads(x, H), split_heads(x.contiguous(), H))
    assert torch.equal(x, before)
    y = numbered(B, L, D, H).movedim(3, 1)
    before = y.clone()
    assert torch.equal(merge_heads(y), merge_heads(y.contiguous()))
    assert torch.equal(repeat_kv(y, 2), repeat_kv(y.contiguous(), 2))
    assert torch.equal(y, before)


def test_split_heads_refuses(refuses):
    for shape in [(L, H * D), (B, H, L, D), (H * D,)]:
        with refuses(shape):
            split_heads(torch.zeros(shape), H)
    with refuses(12, 5):
        split_heads(torch.zeros(B, L, 12), 5)
    # 100 over 8 heads: reshaping the whole sequence would fit and mix tokens
    with refuses(100, 8):
        split_heads(torch.zeros(B, 24, 100), 8)
    for bad in (0, -3):
        with refuses(bad):
            split_heads(torch.zeros(B, L, 12), bad)


def test_merge_heads_refuses(refuses):
    for shape in [(L, D), (H, L, D), (1, B, H, L, D)]:
        with refuses(shape):
            merge_heads(torch.zeros(shape))


def test_repeat_kv_by_hand():
    # kv heads 0 1 2, each for two query heads: 0 0 1 1 2 2, not 0 1 2 0 1 2
    x = torch.tensor([0.0, 1.0, 2.0]).reshape(1, 3, 1, 1)
    assert repeat_kv(x, 2).flatten().tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    assert torch.equal(repeat_kv(x, 1), x)


@pytest.mark.memory
def test_repeat_kv_once_is_no_copy():
    x = numbered(B, K, S, D)
    assert repeat_kv(x, 1) is x


@given(batch=dims, heads=dims, n_rep=dims, length=dims, width=dims, dtype=dtypes)
def test_repeat_kv_equals_torch(batch, heads, n_rep, length, width, dtype):
    x = numbered(batch, heads, length, width).to(dtype)
    repeated = repeat_kv(x, n_rep)
    assert repeated.dtype == dtype
    assert torch.equal(repeated, torch.repeat_interleave(x, n_rep, dim=1))
    assert torch.equal(repeated, modeling_llama.repeat_kv(x, n_rep))


@pytest.mark.parametrize("n", [N, 1])
def test_repeat_kv_gradient_sums_over_the_group(n, same):
    x = torch.zeros(B, K, S, D, dtype=torch.float64, requires_grad=True)
    weight = numbered(B, K * n, S, D)
    (grad,) = torch.autograd.grad((repeat_kv(x, n) * weight).sum(), x)
    same(grad, torch.stack([weight[:, k * n : (k + 1) * n].sum(1) for k in range(K)], dim=1))


def test_repeat_kv_refuses(refuses):
    for shape in [(K, S, D), (B, K, 1, S, D), (S, D)]:
        with refuses(shape):
            repeat_kv(torch.zeros(shape), 2)
    bad: Any
    for bad in (0, -1, 1.5):
        with refuses(bad):
            repeat_kv(torch.zeros(B, K, S, D), bad)
