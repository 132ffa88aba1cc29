r"""Oracle: `nn.MultiheadAttention` called with the context as key and value, weights copied."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from llmcore.cross_attention import CrossAttention

B, L, S, H, E, C = 2, 5, 7, 3, 12, 10
INF = float("inf")
exact = torch.float64
both = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def make(*shape: int, dtype: torch.dtype = exact, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def make_inputs(dtype: torch.dtype = exact, context_size: int = C):
    return make(B, L, E, dtype=dtype, seed=1), make(B, S, context_size, dtype=dtype, seed=2)


def randomised(module: nn.Module, dtype: torch.dtype = exact) -> nn.Module:
    r"""Every parameter drawn anew: biases differ from zero and scores are far from uniform."""
    for seed, (_, parameter) in enumerate(sorted(module.named_parameters())):
        parameter.data = make(*parameter.shape, seed=100 + seed) * 0.4
    return module.to(dtype)


class Library(nn.Module):
    r"""`nn.MultiheadAttention` with the weights of a `CrossAttention`."""

    def __init__(self, module: nn.Module, bias: bool = False):
        super().__init__()
        state = module.state_dict()
        weights = [state[f"{name}_proj.weight"] for name in "qkv"]
        context = weights[1].size(1)
        self.library = nn.MultiheadAttention(E, H, kdim=context, vdim=context, bias=bias, batch_first=True)
        copied = {"out_proj.weight": state["o_proj.weight"]}
        if context == E:
            copied["in_proj_weight"] = torch.cat(weights)
        else:
            copied |= {f"{name}_proj_weight": weight for name, weight in zip("qkv", weights, strict=True)}
        if bias:
            copied["in_proj_bias"] = torch.cat([state[f"{name}_proj.bias"] for name in "qkv"])
            copied["out_proj.bias"] = state["o_proj.bias"]
        self.library.to(weights[0].dtype).load_state_dict(copied)

    def forward(self, hidden_states, context, **options):
        return self.library(hidden_states, context, context, **options)


def in_one_row(grads: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    r"""Gradients of the parameters in one order, whichever of the two modules they come from."""
    grads = {name.removeprefix("library."): grad for name, grad in grads.items()}
    if "out_proj.weight" in grads:
        rows = (
            [grads["in_proj_weight"]]
            if "in_proj_weight" in grads
            else [grads[f"{n}_proj_weight"] for n in "qkv"]
        )
        names = ["in_proj_bias", "out_proj.weight", "out_proj.bias"]
        return [*rows, *(grads[name] for name in names if name in grads)]
    rows = [grads[f"{name}_proj.weight"] for name in "qkv"]
    if len({row.size(1) for row in rows}) == 1:
        rows = [torch.cat(rows)]
    if "q_proj.bias" in grads:
        rows.append(torch.cat([grads[f"{name}_proj.bias"] for name in "qkv"]))
    return [*rows, *(grads[name] for name in ("o_proj.weight", "o_proj.bias") if name in grads)]


def compare(same, ours, theirs):
    same(ours[0], theirs[0])
    same([*ours[1], *in_one_row(ours[2])], [*theirs[1], *in_one_row(theirs[2])])


@both
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("context_size", [None, C, 20])
def test_equals_torch(context_size, bias, dtype, same, run_module):
    ours = randomised(CrossAttention(E, H, context_size=context_size, bias=bias), dtype)
    inputs = make_inputs(dtype, context_size or E)
    compare(same, run_module(ours, *inputs), run_module(Library(ours, bias), *inputs))


@both
@pytest.mark.parametrize("shape", [(S,), (L, S), (B, 1, L, S), (B, H, L, S), (B, 1, 1, S)])
def test_masks_equal_torch(shape, dtype, same, run_module):
    ours, inputs = randomised(CrossAttention(E, H, context_size=C), dtype), make_inputs(dtype)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.5
    mask[..., 2] = True
    bias = make(*shape, dtype=dtype, seed=6).masked_fill(~mask, -INF)
    hers = (~mask.expand(B, H, L, S).reshape(B * H, L, S), bias.expand(B, H, L, S).reshape(B * H, L, S))
    for own, other in zip((mask, bias), hers, strict=True):
        expected = run_module(Library(ours), *inputs, attn_mask=other)
        compare(same, run_module(ours, *inputs, attn_mask=own), expected)


@both
def test_padded_context(dtype, same, run_module):
    ours, inputs = randomised(CrossAttention(E, H, context_size=C), dtype), make_inputs(dtype)
    keys = torch.tensor([[True] * S, [True] * 4 + [False] * (S - 4)])
    expected = run_module(Library(ours), *inputs, key_padding_mask=~keys)
    compare(same, run_module(ours, *inputs, attn_mask=keys[:, None, None]), expected)
    # and it is as if the padding were not there
    value = ours(*inputs, keys[:, None, None])
    same(ours(inputs[0][1:], inputs[1][1:, :4]), value[1:])


def test_keys_and_values_come_from_the_context():
    module = randomised(CrossAttention(E, H))
    hidden, context = make_inputs(context_size=E)
    output = module(hidden, context)
    # one context token: every query takes it whole, whatever the query
    alone = module(hidden, context[:, :1])
    assert torch.allclose(alone, alone[:, :1].expand_as(alone))
    assert torch.allclose(module(make(B, L, E, seed=9), context[:, :1]), alone)
    # the context alone decides what is mixed, the hidden states how
    assert not torch.allclose(module(hidden, make(B, S, E, seed=8)), output)
    assert not torch.allclose(module(make(B, L, E, seed=9), context), output)


@given(order=st.permutations(range(S)))
def test_order_of_the_context_does_not_matter(order):
    module, (hidden, context) = randomised(CrossAttention(E, H, context_size=C)), make_inputs()
    torch.testing.assert_close(
        module(hidden, context[:, order]), module(hidden, context), rtol=1e-10, atol=1e-10
    )


@given(order=st.permutations(range(L)))
def test_queries_do_not_see_each_other(order):
    module, (hidden, context) = randomised(CrossAttention(E, H, context_size=C)), make_inputs()
    torch.testing.assert_close(
        module(hidden[:, order], context), module(hidden, context)[:, order], rtol=1e-10, atol=1e-10
    )


@given(
    batch=st.integers(1, 3),
    q_len=st.integers(1, 4),
    k_len=st.integers(1, 4),
    heads=st.integers(1, 3),
    head_dim=st.integers(1, 3),
    context_size=st.integers(1, 5),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_shapes_and_dtypes(batch, q_len, k_len, heads, head_dim, context_size, dtype):
    module = CrossAttention(heads * head_dim, heads, context_size=context_size).to(dtype)
    hidden = make(batch, q_len, heads * head_dim, dtype=dtype)
    output = module(hidden, make(batch, k_len, context_size, dtype=dtype))
    assert output.shape == hidden.shape
    assert output.dtype == dtype


def test_parameters():
    def count(module: nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    assert count(CrossAttention(E, H, context_size=C)) == 2 * E * E + 2 * C * E
    assert count(CrossAttention(E, H, context_size=C, bias=True)) == 2 * E * E + 2 * C * E + 4 * E


def test_fully_masked_rows_give_zeros_and_finite_gradients(run_module):
    mask = torch.ones(B, 1, L, S, dtype=torch.bool)
    mask[0, :, 3] = False
    mask[1] = False
    module = randomised(CrossAttention(E, H, context_size=C))
    for hide in (mask, torch.zeros(mask.shape, dtype=exact).masked_fill(~mask, -INF)):
        value, grads, weights = run_module(module, *make_inputs(), attn_mask=hide)
        assert (value[0, 3] == 0).all()
        assert (value[1] == 0).all()
        assert (value[0, 0] != 0).all()
        for grad in (*grads, *weights.values()):
            assert grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_as_close_as_torch(dtype, as_close):
    module = randomised(CrossAttention(E, H, context_size=C), dtype)
    inputs, library = make_inputs(dtype), Library(module)
    with torch.no_grad():
        theirs = library(*inputs)[0]
        as_close(module(*inputs), theirs, library.double()(*(x.double() for x in inputs))[0])


def test_dropout_acts_in_training_alone(same):
    module = randomised(CrossAttention(E, H, context_size=C, dropout=0.5))
    plain, inputs = randomised(CrossAttention(E, H, context_size=C)), make_inputs()
    module.eval()
    same(module(*inputs), plain(*inputs))
    module.train()
    torch.manual_seed(1)
    first, second = module(*inputs), module(*inputs)
    torch.manual_seed(1)
    assert torch.equal(module(*inputs), first)
    assert not torch.allclose(first, second)
    assert not torch.allclose(first, plain(*inputs))


def test_dropout_is_on_the_weights():
    # one head and equal tokens: dropped weights change the length of an output and not its direction
    module = randomised(CrossAttention(E, 1, dropout=0.5))
    hidden, context = make(B, L, E), make(B, 1, E, seed=1).expand(B, S, E)
    with torch.no_grad():
        expected = module.eval()(hidden, context)
        output = module.train()(hidden, context)
    factor = (output * expected).sum(-1, keepdim=True) / expected.square().sum(-1, keepdim=True)
    assert not torch.allclose(factor, torch.ones_like(factor))
    torch.testing.assert_close(output, factor * expected, rtol=1e-9, atol=1e-9)


def test_inputs_need_not_be_contiguous_and_are_not_changed(same):
    module = randomised(CrossAttention(E, H, context_size=C))
    inputs = [make(B, E, L).transpose(1, 2), make(B, C, S).transpose(1, 2)]
    before = [x.clone() for x in inputs]
    same(module(*inputs), module(*(x.contiguous() for x in inputs)))
    for x, copy in zip(inputs, before, strict=True):
        assert torch.equal(x, copy)


# errors


def test_refuses_heads_that_do_not_divide(refuses):
    with refuses(100, 8):
        CrossAttention(100, 8)


@pytest.mark.parametrize("bad", [0, -4, 2.5])
def test_refuses_sizes(bad, refuses):
    for sizes in ((bad, 3), (12, bad)):
        with refuses(bad):
            CrossAttention(*sizes)
    with refuses(bad):
        CrossAttention(12, 3, context_size=bad)


@pytest.mark.parametrize("bad", [-0.1, 1.0, float("nan")])
def test_refuses_dropout_rates(bad, refuses):
    with refuses(bad):
        CrossAttention(E, H, dropout=bad)


@pytest.mark.parametrize(
    ("place", "shape", "named"),
    [
        (0, (B, L, C), (E, (B, L, C))),
        (0, (L, E), (E, (L, E))),
        (1, (B, S, E), (C, (B, S, E))),
        (1, (1, B, S, C), (C, (1, B, S, C))),
        (1, (3, S, C), (B, 3)),
        (1, (1, S, C), (B, 1)),
    ],
)
def test_refuses_shapes(place, shape, named, refuses):
    inputs = list(make_inputs(torch.float32))
    inputs[place] = torch.zeros(shape)
    with refuses(*named):
        CrossAttention(E, H, context_size=C)(*inputs)


@pytest.mark.parametrize("shape", [(L,), (B, S), (B, L, S), (H, L, S), (S, L), (B, 2, L, S)])
def test_refuses_masks(shape, refuses):
    module = CrossAttention(E, H, context_size=C)
    with refuses(shape):
        module(*make_inputs(torch.float32), torch.ones(shape, dtype=torch.bool))
    with refuses(torch.int64):
        module(*make_inputs(torch.float32), torch.ones(L, S, dtype=torch.long))
