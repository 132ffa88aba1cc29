r"""Oracle: `F.scaled_dot_product_attention` on projections; `nn.MultiheadAttention` with copied weights."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from llmcore.self_attention import (
    BareSelfAttention,
    FusedSelfAttention,
    MultiHeadSelfAttention,
    SelfAttention,
)

B, L, H, E = 2, 5, 3, 12
INF = float("inf")
exact = torch.float64
both = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def make(*shape: int, dtype: torch.dtype = exact, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def matrix(rows: int, columns: int, seed: int) -> torch.Tensor:
    r"""A weight large enough that the attention is far from uniform."""
    return make(rows, columns, seed=seed) * 0.5


def filled(module: nn.Module, dtype: torch.dtype = exact, **state: torch.Tensor) -> nn.Module:
    r"""The module with these weights: `q_proj=…` is the weight, `q_proj_bias=…` the bias."""
    renamed = {
        f"{name.removesuffix('_bias')}.{'bias' if name.endswith('_bias') else 'weight'}": value
        for name, value in state.items()
    }
    module = module.to(dtype)
    module.load_state_dict(renamed)
    return module


def lower(size: int) -> torch.Tensor:
    rows = torch.arange(size)
    return rows <= rows[:, None]


def rungs(dropout: float = 0.0) -> dict[str, nn.Module]:
    return {
        "bare": BareSelfAttention(E),
        "fused": FusedSelfAttention(E),
        "one head": SelfAttention(E, dropout=dropout),
        "many heads": MultiHeadSelfAttention(E, H, dropout=dropout),
    }


every = pytest.mark.parametrize("name", rungs())


# the formula


@both
def test_bare_equals_torch(dtype, same, run):
    weights = [matrix(E, E, seed) for seed in (1, 2, 3)]
    module = filled(
        BareSelfAttention(E), dtype, **dict(zip(("q_proj", "k_proj", "v_proj"), weights, strict=True))
    )
    wq, wk, wv = (w.to(dtype) for w in weights)

    def library(x):
        return F.scaled_dot_product_attention(x @ wq.T, x @ wk.T, x @ wv.T)

    for a, b in zip(
        run(module, make(B, L, E, dtype=dtype)), run(library, make(B, L, E, dtype=dtype)), strict=True
    ):
        same(a, b)


def test_bare_by_hand(same):
    # W_q and W_k the identity, W_v doubles: softmax(x xᵀ / √2) · 2x for x = ((1, 1), (0, 0))
    eye = torch.eye(2, dtype=exact)
    module = filled(BareSelfAttention(2), q_proj=eye, k_proj=eye, v_proj=2 * eye)
    x = torch.tensor([[[1.0, 1.0], [0.0, 0.0]]], dtype=exact)
    first = 1 / (1 + torch.exp(torch.tensor(-(2.0**0.5), dtype=exact)))  # weight of token 0 on itself
    same(module(x), torch.stack((2 * first.expand(2), torch.ones(2, dtype=exact)))[None])


# each rung adds something, and nothing else changes


@both
def test_fused_equals_bare(dtype, same, run_module):
    wq, wk, wv = (matrix(E, E, seed) for seed in (1, 2, 3))
    bare = filled(BareSelfAttention(E), dtype, q_proj=wq, k_proj=wk, v_proj=wv)
    fused = filled(FusedSelfAttention(E), dtype, qkv_proj=torch.cat((wq, wk, wv)))
    value, (grad,), weights = run_module(bare, make(B, L, E, dtype=dtype))
    fused_value, (fused_grad,), fused_weights = run_module(fused, make(B, L, E, dtype=dtype))
    same(fused_value, value)
    same(fused_grad, grad)
    parts = [weights[f"{name}.weight"] for name in ("q_proj", "k_proj", "v_proj")]
    same(fused_weights["qkv_proj.weight"], torch.cat(parts))


@both
def test_one_head_equals_fused(dtype, same):
    qkv, x = matrix(3 * E, E, 1), make(B, L, E, dtype=dtype)
    fused = filled(FusedSelfAttention(E), dtype, qkv_proj=qkv)
    one = filled(SelfAttention(E), dtype, qkv_proj=qkv, o_proj=torch.eye(E))
    same(one(x), fused(x))
    out = matrix(E, E, 2)
    one = filled(SelfAttention(E), dtype, qkv_proj=qkv, o_proj=out)
    same(one(x), fused(x) @ out.to(dtype).T)


@both
def test_many_heads_of_one_equal_one_head(dtype, same):
    state = {"qkv_proj": matrix(3 * E, E, 1), "o_proj": matrix(E, E, 2)}
    x = make(B, L, E, dtype=dtype)
    one, many = filled(SelfAttention(E), dtype, **state), filled(MultiHeadSelfAttention(E, 1), dtype, **state)
    same(many(x, is_causal=True), one(x, is_causal=True))


# nn.MultiheadAttention


def pair(heads: int, dtype: torch.dtype, one_head: bool = False) -> tuple[nn.Module, nn.Module]:
    library = nn.MultiheadAttention(E, heads, batch_first=True).to(dtype)
    state = {
        "qkv_proj": matrix(3 * E, E, 1),
        "qkv_proj_bias": make(3 * E, seed=2),
        "o_proj": matrix(E, E, 3),
        "o_proj_bias": make(E, seed=4),
    }
    library.load_state_dict(
        {
            "in_proj_weight": state["qkv_proj"],
            "in_proj_bias": state["qkv_proj_bias"],
            "out_proj.weight": state["o_proj"],
            "out_proj.bias": state["o_proj_bias"],
        }
    )
    module = SelfAttention(E, bias=True) if one_head else MultiHeadSelfAttention(E, heads, bias=True)
    return filled(module, dtype, **state), library


@both
@pytest.mark.parametrize("heads", [1, 3, 4])
@pytest.mark.parametrize("mask", ["none", "boolean", "additive", "causal", "causal and padding"])
def test_equals_torch(mask, heads, dtype, same, run_module):
    ours, theirs = pair(heads, dtype, one_head=heads == 1)
    x = make(B, L, E, dtype=dtype)
    visible = torch.rand(L, L, generator=torch.Generator().manual_seed(5)) < 0.5
    visible |= torch.eye(L, dtype=torch.bool)
    bias = make(L, L, dtype=dtype, seed=6).masked_fill(~visible, -INF)
    padding = torch.tensor([[True] * L, [True] * 3 + [False] * (L - 3)])
    own, hers = {  # nn.MultiheadAttention hides where a boolean mask is True
        "none": ({}, {}),
        "boolean": ({"attn_mask": visible}, {"attn_mask": ~visible}),
        "additive": ({"attn_mask": bias}, {"attn_mask": bias}),
        "causal": ({"is_causal": True}, {"attn_mask": ~lower(L)}),
        "causal and padding": (
            {"attn_mask": padding[:, None, None], "is_causal": True},
            {"attn_mask": ~lower(L), "key_padding_mask": ~padding},
        ),
    }[mask]
    value, (grad,), weights = run_module(ours, x, **own)
    expected, grads, expected_weights = run_module(_Thrice(theirs), x, need_weights=False, **hers)
    same(value, expected)
    names = {
        "qkv_proj.weight": "library.in_proj_weight",
        "qkv_proj.bias": "library.in_proj_bias",
        "o_proj.weight": "library.out_proj.weight",
        "o_proj.bias": "library.out_proj.bias",
    }
    same(
        [grad, *(weights[name] for name in names)],
        [grads[0], *(expected_weights[name] for name in names.values())],
    )


class _Thrice(nn.Module):
    def __init__(self, library: nn.Module):
        super().__init__()
        self.library = library

    def forward(self, x, **options):
        return self.library(x, x, x, **options)


def test_bias_only_where_asked():
    plain = sum(p.numel() for p in MultiHeadSelfAttention(E, H).parameters())
    with_bias = sum(p.numel() for p in MultiHeadSelfAttention(E, H, bias=True).parameters())
    assert (plain, with_bias) == (4 * E * E, 4 * E * E + 4 * E)
    plain = sum(p.numel() for p in SelfAttention(E).parameters())
    with_bias = sum(p.numel() for p in SelfAttention(E, bias=True).parameters())
    assert (plain, with_bias) == (4 * E * E, 4 * E * E + 4 * E)


# properties


@every
def test_shape_and_dtype(name):
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        y = rungs()[name].to(dtype)(make(B, L, E, dtype=dtype))
        assert y.shape == (B, L, E)
        assert y.dtype == dtype


@every
@given(order=st.permutations(range(L)))
def test_without_a_mask_the_order_of_the_tokens_only_moves_the_outputs(name, order):
    module, x = rungs()[name].to(exact), make(B, L, E)
    torch.testing.assert_close(module(x[:, order]), module(x)[:, order], rtol=1e-10, atol=1e-10)


@every
def test_sequences_do_not_see_each_other(name, same):
    module, x = rungs()[name].to(exact), make(B, L, E)
    for b in range(B):
        same(module(x[b : b + 1]), module(x)[b : b + 1])


@pytest.mark.parametrize("name", ["one head", "many heads"])
@given(seen=st.integers(1, L))
def test_causality_and_prefix(name, seen):
    module, x = rungs()[name].to(exact), make(B, L, E)
    changed = x.clone()
    changed[:, seen:] = 5.0
    whole = module(x, is_causal=True)
    torch.testing.assert_close(
        module(changed, is_causal=True)[:, :seen], whole[:, :seen], rtol=1e-10, atol=1e-10
    )
    torch.testing.assert_close(module(x[:, :seen], is_causal=True), whole[:, :seen], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["one head", "many heads"])
@pytest.mark.parametrize("shape", [(L,), (L, L), (B, 1, 1, L), (B, 1, L, L)])
def test_mask_shapes(name, shape, same):
    module, x = rungs()[name].to(exact), make(B, L, E)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(8)) < 0.6
    mask[..., 1] = True
    same(module(x, mask), module(x, mask.expand(B, 1, L, L).contiguous()))
    added = torch.zeros(shape, dtype=exact).masked_fill(~mask, -INF)
    same(module(x, added), module(x, mask))
    assert not torch.allclose(module(x, mask), module(x))


@pytest.mark.parametrize("name", ["one head", "many heads"])
def test_fully_masked_rows_give_zeros_and_finite_gradients(name, run_module):
    module = rungs()[name].to(exact)
    mask = torch.ones(B, 1, L, L, dtype=torch.bool)
    mask[0, :, 2] = False
    mask[1] = False
    value, grads, weights = run_module(module, make(B, L, E), attn_mask=mask)
    assert (value[0, 2] == 0).all()
    assert (value[1] == 0).all()
    assert (value[0, 0] != 0).all()
    for grad in (*grads, *weights.values()):
        assert grad.isfinite().all()


@pytest.mark.parametrize("name", ["one head", "many heads"])
def test_dropout_acts_in_training_alone(name, same):
    module, x = rungs(dropout=0.5)[name].to(exact), make(B, L, E)
    plain = rungs()[name].to(exact)
    plain.load_state_dict(module.state_dict())
    module.eval()
    same(module(x), plain(x))
    module.train()
    torch.manual_seed(1)
    first, second = module(x), module(x)
    torch.manual_seed(1)
    assert torch.equal(module(x), first)
    assert not torch.allclose(first, second)
    assert not torch.allclose(first, plain(x))


@pytest.mark.parametrize(
    "make_module",
    [lambda: SelfAttention(E, dropout=0.5), lambda: MultiHeadSelfAttention(E, 1, dropout=0.5)],
)
def test_dropout_is_on_the_weights(make_module):
    # one head and equal tokens: dropped weights change the length of an output and not its direction
    module = make_module().to(exact)
    x = make(B, 1, E).expand(B, L, E)
    with torch.no_grad():
        expected = module.eval()(x)
        output = module.train()(x)
    factor = (output * expected).sum(-1, keepdim=True) / expected.square().sum(-1, keepdim=True)
    assert not torch.allclose(factor, torch.ones_like(factor))
    torch.testing.assert_close(output, factor * expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["one head", "many heads"])
def test_dropout_keeps_the_mean(name):
    module, x = rungs(dropout=0.3)[name].to(exact), make(1, L, E)
    with torch.no_grad():
        mean = module(x.expand(6000, -1, -1)).mean(0)
        expected = module.eval()(x)[0]
    torch.testing.assert_close(mean, expected, rtol=0, atol=0.03 * expected.abs().max().item())


@every
def test_input_need_not_be_contiguous_and_is_not_changed(name, same):
    module, x = rungs()[name].to(exact), make(B, E, L).transpose(1, 2)
    before = x.clone()
    same(module(x), module(x.contiguous()))
    assert torch.equal(x, before)


# errors


@every
@pytest.mark.parametrize("shape", [(B, L, E + 1), (L, E), (B, 1, L, E)])
def test_refuses_shapes(name, shape, refuses):
    with refuses(E, shape):
        rungs()[name](torch.zeros(shape))


@pytest.mark.parametrize("bad", [0, -4, 2.5])
@pytest.mark.parametrize("make_module", [BareSelfAttention, FusedSelfAttention, SelfAttention])
def test_refuses_sizes(make_module, bad, refuses):
    with refuses(bad):
        make_module(bad)
    with refuses(bad):
        MultiHeadSelfAttention(bad, 2)
    with refuses(bad):
        MultiHeadSelfAttention(12, bad)


def test_refuses_heads_that_do_not_divide(refuses):
    with refuses(100, 8):
        MultiHeadSelfAttention(100, 8)
    with refuses(4, 8):
        MultiHeadSelfAttention(4, 8)


@pytest.mark.parametrize("bad", [-0.1, 1.0, float("nan")])
def test_refuses_dropout_rates(bad, refuses):
    with refuses(bad):
        SelfAttention(E, dropout=bad)
    with refuses(bad):
        MultiHeadSelfAttention(E, H, dropout=bad)


@pytest.mark.parametrize("name", ["one head", "many heads"])
@pytest.mark.parametrize("shape", [(L + 1,), (B, L, L), (L, L + 1), (B, L)])
def test_refuses_masks(name, shape, refuses):
    with refuses(shape):
        rungs()[name](torch.zeros(B, L, E), torch.ones(shape, dtype=torch.bool))


@every
def test_half_precision_scores_beyond_its_largest_number(name):
    r"""With identity weights a score is 12 * 100 * 100 = 120000 before the scale; float16 ends at 65504."""
    module = rungs()[name]
    state = {key: torch.zeros_like(value) for key, value in module.state_dict().items()}
    for key, value in state.items():
        state[key] = torch.eye(E).repeat(value.size(0) // E, 1)
    module.load_state_dict(state)
    x = torch.full((1, L, E), 100.0, dtype=torch.float16)
    torch.testing.assert_close(module.half()(x), x)  # equal tokens: their mean is the token
