r"""Oracle: `nn.MultiheadAttention` with copied weights (kdim, vdim, bias), and where it has no such widths,
`F.scaled_dot_product_attention` between `F.linear`."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from llmcore.multi_head import MultiHeadAttention

B, L, S, H, E, KDIM, VDIM = 2, 5, 7, 3, 12, 10, 8
D, DV, OUT = 4, 6, 9
INF = float("inf")
exact = torch.float64
both = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def make(*shape: int, dtype: torch.dtype = exact, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def make_inputs(dtype: torch.dtype = exact, kdim: int = KDIM, vdim: int = VDIM):
    return (
        make(B, L, E, dtype=dtype, seed=1),
        make(B, S, kdim, dtype=dtype, seed=2),
        make(B, S, vdim, dtype=dtype, seed=3),
    )


def randomised(module: nn.Module, dtype: torch.dtype = exact) -> nn.Module:
    r"""Every parameter drawn anew: biases differ from zero and scores are far from uniform."""
    for seed, (_, parameter) in enumerate(sorted(module.named_parameters())):
        parameter.data = make(*parameter.shape, seed=100 + seed) * 0.4
    return module.to(dtype)


def library_of(module: nn.Module, bias: bool) -> nn.MultiheadAttention:
    r"""`nn.MultiheadAttention` with the weights of a `MultiHeadAttention`."""
    state = module.state_dict()
    kdim, vdim = state["k_proj.weight"].size(1), state["v_proj.weight"].size(1)
    library = nn.MultiheadAttention(E, H, kdim=kdim, vdim=vdim, bias=bias, batch_first=True)
    copied = {"out_proj.weight": state["o_proj.weight"]}
    weights = [state[f"{name}_proj.weight"] for name in "qkv"]
    if kdim == vdim == E:
        copied["in_proj_weight"] = torch.cat(weights)
    else:
        copied |= {f"{name}_proj_weight": weight for name, weight in zip("qkv", weights, strict=True)}
    if bias:
        copied["in_proj_bias"] = torch.cat([state[f"{name}_proj.bias"] for name in "qkv"])
        copied["out_proj.bias"] = state["o_proj.bias"]
    library = library.to(weights[0].dtype)
    library.load_state_dict(copied)
    return library


def in_one_row(grads: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    r"""Gradients of the parameters in one order, whichever of the two modules they come from."""
    if "out_proj.weight" in grads:
        rows = [grads[name] for name in ("in_proj_weight",) if name in grads] or [
            grads[f"{name}_proj_weight"] for name in "qkv"
        ]
        names = ["in_proj_bias", "out_proj.weight", "out_proj.bias"]
        return [*rows, *(grads[name] for name in names if name in grads)]
    rows = [grads[f"{name}_proj.weight"] for name in "qkv"]
    if len({row.size(1) for row in rows}) == 1:
        rows = [torch.cat(rows)]
    if "q_proj.bias" in grads:
        rows.append(torch.cat([grads[f"{name}_proj.bias"] for name in "qkv"]))
    return [*rows, *(grads[name] for name in ("o_proj.weight", "o_proj.bias") if name in grads)]


def visible(*shape: int) -> torch.Tensor:
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.5
    mask[..., 2] = True
    return mask


def lower_right(q_len: int, k_len: int) -> torch.Tensor:
    return torch.arange(k_len) <= torch.arange(q_len)[:, None] + (k_len - q_len)


def for_library(mask: torch.Tensor) -> torch.Tensor:
    r"""(B or 1, H or 1, L, S) as `nn.MultiheadAttention` takes it: (B*H, L, S), and True hides."""
    mask = mask.expand(B, H, L, S).reshape(B * H, L, S)
    return ~mask if mask.dtype == torch.bool else mask


@both
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("kdim", "vdim"), [(None, None), (KDIM, None), (None, VDIM), (KDIM, VDIM)])
def test_equals_torch(kdim, vdim, bias, dtype, same, run_module):
    ours = randomised(MultiHeadAttention(E, H, kdim=kdim, vdim=vdim, bias=bias), dtype)
    theirs = library_of(ours, bias)
    inputs = make_inputs(dtype, kdim or E, vdim or E)
    value, grads, weights = run_module(ours, *inputs)
    expected, expected_grads, expected_weights = run_module(theirs, *inputs)
    same(value, expected)
    same([*grads, *in_one_row(weights)], [*expected_grads, *in_one_row(expected_weights)])


@both
@pytest.mark.parametrize("shape", [(S,), (L, S), (B, 1, L, S), (B, H, L, S), (B, 1, 1, S), (1, H, L, S)])
@pytest.mark.parametrize("kind", ["boolean", "additive", "boolean and causal"])
def test_masks_equal_torch(kind, shape, dtype, same, run_module):
    ours = randomised(MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM), dtype)
    theirs = library_of(ours, True)
    mask = visible(*shape)
    hers = mask & lower_right(L, S) if kind.endswith("causal") else mask
    if kind == "additive":
        mask = hers = make(*shape, dtype=dtype, seed=6).masked_fill(~mask, -INF)
    inputs = make_inputs(dtype)
    value, grads, weights = run_module(ours, *inputs, attn_mask=mask, is_causal=kind.endswith("causal"))
    expected, expected_grads, expected_weights = run_module(theirs, *inputs, attn_mask=for_library(hers))
    same(value, expected)
    same([*grads, *in_one_row(weights)], [*expected_grads, *in_one_row(expected_weights)])


@both
@pytest.mark.parametrize(
    "widths",
    [
        {},
        {"head_dim": 5},
        {"v_head_dim": DV},
        {"out_dim": OUT},
        {"kdim": KDIM, "vdim": VDIM, "head_dim": 5, "v_head_dim": DV, "out_dim": OUT},
    ],
)
def test_own_widths(widths, dtype, same, run_module):
    ours = randomised(MultiHeadAttention(E, H, **widths), dtype)
    inputs = make_inputs(dtype, widths.get("kdim", E), widths.get("vdim", E))

    class Library(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterDict(
                {name.replace(".", "_"): value.clone() for name, value in ours.state_dict().items()}
            )

        def forward(self, query, key, value):
            w = self.weights
            q, k, v = (
                F.linear(x, w[f"{name}_proj_weight"], w[f"{name}_proj_bias"])
                .unflatten(-1, (H, -1))
                .movedim(2, 1)
                for name, x in zip("qkv", (query, key, value), strict=True)
            )
            mixed = F.scaled_dot_product_attention(q, k, v).movedim(1, 2).flatten(2)
            return F.linear(mixed, w["o_proj_weight"], w["o_proj_bias"])

    value, grads, weights = run_module(ours, *inputs)
    expected, expected_grads, expected_weights = run_module(Library(), *inputs)
    assert value.shape == (B, L, widths.get("out_dim", E))
    same(value, expected)
    named = [expected_weights[f"weights.{name.replace('.', '_')}"] for name in weights]
    same([*grads, *weights.values()], [*expected_grads, *named])


def test_the_worked_example():
    # batch 10, 8 heads, 2 queries, 4 keys, widths 128 and 64, heads of 16, output 8
    module = MultiHeadAttention(128, 8, vdim=64, head_dim=16, out_dim=8)
    query, key, value = make(10, 2, 128).float(), make(10, 4, 128).float(), make(10, 4, 64).float()
    assert module(query, key, value, is_causal=True).shape == (10, 2, 8)


def test_parameters():
    def count(module: nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    assert count(MultiHeadAttention(E, H, bias=False)) == 4 * E * E
    assert count(MultiHeadAttention(E, H)) == 4 * E * E + 4 * E
    wide = MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM, head_dim=D, v_head_dim=DV, out_dim=OUT, bias=False)
    assert count(wide) == E * H * D + KDIM * H * D + VDIM * H * DV + H * DV * OUT


def test_scores_are_scaled_by_the_head(same):
    # two heads of width 2 in a hidden size of 4: by hand, scores are divided by √2, not by √4
    eye = torch.eye(4, dtype=exact)
    module = MultiHeadAttention(4, 2, bias=False).to(exact)
    module.load_state_dict({f"{name}_proj.weight": eye for name in "qkvo"})
    query = torch.tensor([[[2.0, 0.0, 0.0, 0.0]]], dtype=exact)
    key = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]], dtype=exact)
    value = torch.tensor([[[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]], dtype=exact)
    seen = 1 / (1 + torch.exp(torch.tensor(-2 / 2**0.5, dtype=exact)))
    # head 0 scores √2 and 0; head 1 scores 0 and 0
    same(module(query, key, value), torch.tensor([[[seen, 0.0, 0.5, 0.0]]], dtype=exact))


@given(
    batch=st.integers(1, 3),
    q_len=st.integers(1, 4),
    k_len=st.integers(1, 4),
    heads=st.integers(1, 3),
    head_dim=st.integers(1, 3),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
    is_causal=st.booleans(),
)
def test_shapes_and_dtypes(batch, q_len, k_len, heads, head_dim, dtype, is_causal):
    width = heads * head_dim
    module = MultiHeadAttention(width, heads, kdim=5, vdim=7, out_dim=3).to(dtype)
    output = module(
        make(batch, q_len, width, dtype=dtype),
        make(batch, k_len, 5, dtype=dtype),
        make(batch, k_len, 7, dtype=dtype),
        is_causal=is_causal,
    )
    assert output.shape == (batch, q_len, 3)
    assert output.dtype == dtype
    assert output.isfinite().all()


@given(order=st.permutations(range(S)))
def test_order_of_the_keys_does_not_matter(order):
    module, (query, key, value) = randomised(MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM)), make_inputs()
    torch.testing.assert_close(
        module(query, key[:, order], value[:, order]), module(query, key, value), rtol=1e-10, atol=1e-10
    )


@given(order=st.permutations(range(L)))
def test_queries_do_not_see_each_other(order):
    module, (query, key, value) = randomised(MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM)), make_inputs()
    torch.testing.assert_close(
        module(query[:, order], key, value), module(query, key, value)[:, order], rtol=1e-10, atol=1e-10
    )


def test_causal_in_self_attention(same):
    module, x = randomised(MultiHeadAttention(E, H)), make(B, L, E)
    whole = module(x, x, x, is_causal=True)
    for length in range(1, L):
        prefix = x[:, :length]
        same(module(prefix, prefix, prefix, is_causal=True), whole[:, :length])
        same(module(x[:, length:], x, x, is_causal=True), whole[:, length:])


def test_fully_masked_rows_give_zeros_and_finite_gradients(run_module):
    module = randomised(MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM, bias=False))
    mask = torch.ones(B, 1, L, S, dtype=torch.bool)
    mask[0, :, 3] = False
    mask[1] = False
    for hide in (mask, torch.zeros(mask.shape, dtype=exact).masked_fill(~mask, -INF)):
        value, grads, weights = run_module(module, *make_inputs(), attn_mask=hide)
        assert (value[0, 3] == 0).all()
        assert (value[1] == 0).all()
        assert (value[0, 0] != 0).all()
        for grad in (*grads, *weights.values()):
            assert grad.isfinite().all()
        for grad in grads:
            assert (grad[1] == 0).all()


def test_a_fully_masked_row_is_the_bias_of_the_output(same):
    module = randomised(MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM))
    value = module(*make_inputs(), torch.zeros(S, dtype=torch.bool))
    same(value, module.state_dict()["o_proj.bias"].expand(B, L, E))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_as_close_as_torch(dtype, as_close):
    ours = randomised(MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM), dtype)
    inputs = make_inputs(dtype)
    library = library_of(ours, True)
    with torch.no_grad():
        theirs = library(*inputs)[0]
        as_close(ours(*inputs), theirs, library.double()(*(x.double() for x in inputs))[0])


def test_dropout_acts_in_training_alone(same):
    module = randomised(MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM, dropout=0.5))
    plain = randomised(MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM))
    inputs = make_inputs()
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
    module = randomised(MultiHeadAttention(E, 1, bias=False, dropout=0.5))
    x = make(B, 1, E).expand(B, L, E)
    with torch.no_grad():
        expected = module.eval()(x, x, x)
        output = module.train()(x, x, x)
    factor = (output * expected).sum(-1, keepdim=True) / expected.square().sum(-1, keepdim=True)
    assert not torch.allclose(factor, torch.ones_like(factor))
    torch.testing.assert_close(output, factor * expected, rtol=1e-9, atol=1e-9)


def test_dropout_keeps_the_mean():
    module = randomised(MultiHeadAttention(E, H, dropout=0.3))
    x = make(1, L, E)
    with torch.no_grad():
        many = x.expand(6000, -1, -1)
        mean = module(many, many, many).mean(0)
        expected = module.eval()(x, x, x)[0]
    torch.testing.assert_close(mean, expected, rtol=0, atol=0.04 * expected.abs().max().item())


def test_inputs_need_not_be_contiguous_and_are_not_changed(same):
    module = randomised(MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM))
    inputs = [make(B, E, L), make(B, KDIM, S), make(B, VDIM, S)]
    inputs = [x.transpose(1, 2) for x in inputs]
    before = [x.clone() for x in inputs]
    same(module(*inputs), module(*(x.contiguous() for x in inputs)))
    for x, copy in zip(inputs, before, strict=True):
        assert torch.equal(x, copy)


# errors


def test_refuses_heads_that_do_not_divide(refuses):
    with refuses(100, 8):
        MultiHeadAttention(100, 8)
    MultiHeadAttention(100, 8, head_dim=16)  # the heads' own width makes it right


@pytest.mark.parametrize("bad", [0, -4, 2.5])
def test_refuses_sizes(bad, refuses):
    for sizes in ((bad, 3), (12, bad)):
        with refuses(bad):
            MultiHeadAttention(*sizes)
        with refuses(bad):
            MultiHeadAttention(*sizes, head_dim=4)
    for name in ("kdim", "vdim", "head_dim", "v_head_dim", "out_dim"):
        with refuses(name, bad):
            MultiHeadAttention(12, 3, **{name: bad})


@pytest.mark.parametrize("bad", [-0.1, 1.0, float("nan")])
def test_refuses_dropout_rates(bad, refuses):
    with refuses(bad):
        MultiHeadAttention(E, H, dropout=bad)


@pytest.mark.parametrize(
    ("place", "shape", "named"),
    [
        (0, (B, L, E + 1), (E, (B, L, E + 1))),
        (0, (L, E), (E, (L, E))),
        (1, (B, S, E), (KDIM, (B, S, E))),
        (2, (B, S, KDIM), (VDIM, (B, S, KDIM))),
        (2, (1, B, S, VDIM), (VDIM, (1, B, S, VDIM))),
        (1, (3, S, KDIM), (B, 3)),
        (1, (1, S, KDIM), (B, 1)),
        (2, (3, S, VDIM), (B, 3)),
        (2, (B, S + 2, VDIM), (S, S + 2)),
    ],
)
def test_refuses_shapes(place, shape, named, refuses):
    inputs = list(make_inputs(torch.float32))
    inputs[place] = torch.zeros(shape)
    with refuses(*named):
        MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM)(*inputs)


@pytest.mark.parametrize("shape", [(L,), (B, S), (B, L, S), (H, L, S), (S, L), (B, 2, L, S)])
def test_refuses_masks(shape, refuses):
    module = MultiHeadAttention(E, H, kdim=KDIM, vdim=VDIM)
    with refuses(shape):
        module(*make_inputs(torch.float32), torch.ones(shape, dtype=torch.bool))
    with refuses(torch.int64):
        module(*make_inputs(torch.float32), torch.ones(L, S, dtype=torch.long))
