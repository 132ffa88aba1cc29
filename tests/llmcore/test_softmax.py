r"""Oracle: `torch.softmax`, `torch.log_softmax`, `torch.logsumexp`, and calculations by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llmcore.softmax import log_softmax, logsumexp, softmax, upcast

INF = float("inf")
OURS = {"softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp}
TORCH = {"softmax": torch.softmax, "log_softmax": torch.log_softmax, "logsumexp": torch.logsumexp}
every = pytest.mark.parametrize("name", OURS)


def scores(*shape: int, dtype: torch.dtype = torch.float64, spread: float = 4.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return (spread * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("dim", [-1, 0, 1, -2])
def test_equals_torch(name, dtype, dim, same, run):
    x = scores(3, 5, 7, dtype=dtype)
    for ours, expected in zip(
        run(lambda x: OURS[name](x, dim), x), run(lambda x: TORCH[name](x, dim), x), strict=True
    ):
        same(ours, expected)


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_last_axis_is_the_default(name, dtype, same):
    x = scores(3, 5, dtype=dtype)
    same(OURS[name](x), TORCH[name](x, -1))


@every
def test_one_axis_and_none(name, same):
    x = scores(6)
    same(OURS[name](x), TORCH[name](x, -1))
    same(OURS[name](x, 0), TORCH[name](x, 0))
    scalar = torch.tensor(2.5, dtype=torch.float64)
    same(OURS[name](scalar), TORCH[name](scalar, -1))


def test_by_hand(same):
    # e^0 + e^ln2 + e^ln5 = 1 + 2 + 5 = 8
    x = torch.tensor([[0.0, math.log(2), math.log(5)]], dtype=torch.float64)
    parts = torch.tensor([[1 / 8, 2 / 8, 5 / 8]], dtype=torch.float64)
    same(softmax(x), parts)
    same(log_softmax(x), parts.log())
    same(logsumexp(x), torch.tensor([math.log(8)], dtype=torch.float64))


def test_softmax_gradient_by_hand():
    # d p_i / d x_j = p_i (δ_ij - p_j), here for i = 1: p = (1/4, 3/4)
    x = torch.tensor([0.0, math.log(3)], dtype=torch.float64, requires_grad=True)
    softmax(x)[1].backward()
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx([-3 / 16, 3 / 16], abs=1e-12)


def test_logsumexp_keepdim(same):
    x = scores(3, 5, 7)
    for dim in (0, 1, -1):
        same(logsumexp(x, dim, keepdim=True), torch.logsumexp(x, dim, keepdim=True))


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shift", [1e4, -1e4, 1e30, -1e30])
def test_large_scores(name, dtype, shift, same, run):
    x = torch.tensor([[0.0, 1.0, 3.0], [2.0, -5.0, 0.5]], dtype=dtype) + shift
    # softmax sees differences alone; the logarithms may lose what adding log-sum-exp to the shift rounds off
    tolerance = None if name == "softmax" else max(1e-10, 4 * torch.finfo(dtype).eps * abs(shift))
    value, grad = run(lambda x: OURS[name](x, -1), x)
    same(value, TORCH[name](x, -1), tolerance)
    assert value.isfinite().all()
    assert grad.isfinite().all()


def test_log_softmax_sees_differences_alone(same):
    # at 10000 float32 knows steps of 0.001; the differences of the scores are exact
    x = torch.tensor([[10000.0, 10001.0, 10003.0, -INF]])
    same(log_softmax(x), torch.log_softmax(x.double(), -1).float())


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_each_row_has_its_own_maximum(name, dtype, same, run):
    # against the maximum of all, the second row would be e^-2000 = 0 throughout
    x = torch.tensor([[1000.0, 1001.0], [-1000.0, -1001.0]], dtype=dtype)
    ours, theirs = run(lambda x: OURS[name](x, -1), x), run(lambda x: TORCH[name](x, -1), x)
    same(ours[0], theirs[0], max(1e-10, 4000 * torch.finfo(dtype).eps))
    assert ours[1].isfinite().all()


def test_log_softmax_keeps_what_exp_loses(same, run):
    # e^-200 is 0 in float32 and log(0) is -inf; the true logarithm is -200
    x = torch.tensor([0.0, -200.0, -1000.0])
    value, grad = run(log_softmax, x)
    same(value, torch.tensor([0.0, -200.0, -1000.0]))
    same(grad, run(lambda x: torch.log_softmax(x, -1), x)[1])


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_as_close_as_torch(name, dtype, as_close):
    x = scores(6, 300, dtype=dtype)
    as_close(OURS[name](x, -1), TORCH[name](x, -1), TORCH[name](x.double(), -1))


def test_logsumexp_rounds_once():
    # e^-0.3125 in bfloat16 is off by 0.001, log(732) = 6.6 by 0.015; the result is -0.4
    x = torch.tensor([-7.0] + [-7.3125] * 999, dtype=torch.bfloat16)
    assert logsumexp(x) == torch.logsumexp(x.double(), -1).bfloat16()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_upcast(dtype):
    x = scores(5, dtype=dtype)
    wide = upcast(x)
    assert wide.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert torch.equal(wide.double(), x.double())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_upcast_is_linear_for_the_gradient(dtype, same, run):
    x = scores(5, dtype=dtype)
    value, grad = run(lambda x: upcast(x) * 2, x)
    cotangent = torch.randn(5, generator=torch.Generator().manual_seed(11), dtype=torch.float64)
    same(grad, (cotangent.to(value.dtype) * 2).to(dtype))


@pytest.mark.memory
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_upcast_copies_nothing_that_is_wide_enough(dtype):
    x = scores(5, dtype=dtype)
    assert upcast(x).data_ptr() == x.data_ptr()


@every
def test_float16_near_its_end(name, same):
    x = torch.tensor([[65504.0, 65472.0, -65504.0]], dtype=torch.float16)
    same(OURS[name](x, -1), TORCH[name](x.double(), -1).half(), tolerance=1e-3)


MASKED = torch.tensor(
    [[0.3, -INF, 1.2, -INF], [-INF, -INF, -INF, -INF], [-INF, -INF, -INF, 7.0]], dtype=torch.float64
)


@every
def test_some_entries_hidden(name, same, run):
    x = MASKED[[0, 2]]
    for ours, expected in zip(
        run(lambda x: OURS[name](x, -1), x), run(lambda x: TORCH[name](x, -1), x), strict=True
    ):
        same(ours, expected)


@every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_fully_masked_row_outside_the_loss_gets_no_gradient(name, dtype):
    x = MASKED.to(dtype).clone().requires_grad_()
    y = OURS[name](x, -1)[[0, 2]]
    (grad,) = torch.autograd.grad(y[y.isfinite()].sum(), x)
    assert grad.isfinite().all()
    assert (grad[1] == 0).all()


def test_softmax_of_a_fully_masked_row_is_zero(same, run):
    value, grad = run(lambda x: softmax(x, -1), MASKED)
    assert value[1].tolist() == [0.0] * 4
    assert grad[1].tolist() == [0.0] * 4
    same(value[[0, 2]], torch.softmax(MASKED[[0, 2]], -1))
    assert grad.isfinite().all()


def test_logsumexp_of_a_fully_masked_row_is_minus_infinity(run):
    value, grad = run(lambda x: logsumexp(x, -1), MASKED)
    assert value[1].item() == -INF
    assert grad[1].tolist() == [0.0] * 4
    assert grad.isfinite().all()


def test_log_softmax_of_a_fully_masked_row_is_minus_infinity(run):
    value, grad = run(lambda x: log_softmax(x, -1), MASKED)
    assert value[1].tolist() == [-INF] * 4
    assert grad.isfinite().all()


def test_a_fully_masked_column(same):
    x = MASKED.T.contiguous()
    same(softmax(x, 0), softmax(MASKED, 1).T)
    assert softmax(x, 0)[:, 1].tolist() == [0.0] * 4


def test_logsumexp_of_plus_infinity():
    assert logsumexp(torch.tensor([1.0, INF, 2.0])).item() == INF


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)
floats = st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16])


@given(shape=shapes, dtype=floats, data=st.data())
def test_shape_dtype_and_sum(shape, dtype, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = scores(*shape, dtype=dtype)
    weights, logs, total = softmax(x, dim), log_softmax(x, dim), logsumexp(x, dim)
    assert weights.dtype == logs.dtype == total.dtype == dtype
    assert weights.shape == logs.shape == x.shape
    assert total.shape == x.sum(dim).shape
    loose = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    ones = torch.ones_like(total, dtype=torch.float64)
    torch.testing.assert_close(weights.double().sum(dim), ones, rtol=0, atol=loose)
    torch.testing.assert_close(logs.double().exp(), weights.double(), rtol=0, atol=loose)


@given(shift=st.floats(-1e6, 1e6), size=st.integers(1, 9))
def test_a_shift_changes_nothing(shift, size):
    x = scores(size)
    torch.testing.assert_close(softmax(x + shift), softmax(x), rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(logsumexp(x + shift), logsumexp(x) + shift, rtol=1e-12, atol=1e-9)


@given(order=st.permutations(range(6)))
def test_order_of_the_entries_does_not_matter(order):
    x = scores(4, 6)
    torch.testing.assert_close(softmax(x)[:, order], softmax(x[:, order]), rtol=1e-12, atol=1e-12)


@every
def test_input_is_not_changed_and_need_not_be_contiguous(name, same):
    x = scores(4, 6, 5).transpose(0, 2)
    before = x.clone()
    same(OURS[name](x, 1), TORCH[name](x.contiguous(), 1))
    assert torch.equal(x, before)


@every
def test_refuses_integers(name, refuses):
    with refuses(torch.int64):
        OURS[name](torch.tensor([1, 2, 3]))


@every
@pytest.mark.parametrize("dim", [2, -3, 7, 1.0, True, None])
def test_refuses_an_axis_that_is_not_there(name, dim, refuses):
    with refuses(dim, (3, 5)):
        OURS[name](torch.zeros(3, 5), dim)
    for x in (torch.zeros(4), torch.zeros(())):
        with refuses(1):
            OURS[name](x, 1)


@every
def test_refuses_an_empty_axis(name, refuses):
    with refuses((3, 0)):
        OURS[name](torch.zeros(3, 0), 1)
