r"""Oracle: `F.cross_entropy` on shifted logits, hand calculations, `gradcheck`; memory that torch counts."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from benchmarks.measure import peak_bytes
from llmcore.logprobs import per_token_logps, sequence_logps

B, T, V = 3, 5, 7
INF, NAN = float("inf"), float("nan")
both = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
low = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])


def make(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0, spread: float = 3.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (spread * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)


def words(*shape: int, vocabulary: int = V, seed: int = 1) -> torch.Tensor:
    return torch.randint(0, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def library(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    shifted_logits, shifted_labels = logits[:, :-1].reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1)
    loss = F.cross_entropy(shifted_logits, shifted_labels, reduction="none", ignore_index=ignore_index)
    return -loss.view(labels.size(0), -1)


# values and gradients


@both
@pytest.mark.parametrize("ignored", ["none", "prompt", "scattered", "a whole sequence"])
def test_equals_torch(ignored, dtype, same, run):
    logits, labels = make(B, T, V, dtype=dtype), words(B, T)
    if ignored == "prompt":
        labels[:, :3] = -100
    elif ignored == "scattered":
        labels[make(B, T, seed=3) < -0.8] = -100
    elif ignored == "a whole sequence":
        labels[1] = -100
    for ours, expected in zip(
        run(lambda x: per_token_logps(x, labels), logits),
        run(lambda x: library(x, labels), logits),
        strict=True,
    ):
        same(ours, expected)
    for ours, expected in zip(
        run(lambda x: sequence_logps(x, labels), logits),
        run(lambda x: library(x, labels).sum(-1), logits),
        strict=True,
    ):
        same(ours, expected)


@pytest.mark.stronger  # torch's own cross_entropy over an axis that is not the last is less exact
@pytest.mark.parametrize(
    ("tokens", "vocabulary"), [(2, 50257), (30, 50257), (9, 2**15), (4, 2**18), (4, 2**18 + 1)]
)
def test_chunks_of_a_real_vocabulary(tokens, vocabulary, same, run):
    logits = make(2, tokens, vocabulary, dtype=torch.float32)
    labels = words(2, tokens, vocabulary=vocabulary)
    labels[1, : tokens // 2] = -100
    for ours, expected in zip(
        run(lambda x: per_token_logps(x, labels), logits),
        run(lambda x: library(x, labels), logits),
        strict=True,
    ):
        same(ours, expected)


def test_an_impossible_token_makes_its_sequence_impossible():
    logits, labels = make(2, 4, 7), words(2, 4, vocabulary=7)
    logits[0, 1, labels[0, 2]] = -INF
    total = sequence_logps(logits, labels)
    assert total[0] == -INF
    assert total[1].isfinite()
    logits[1, 0] = float("nan")
    assert sequence_logps(logits, labels)[1].isnan()


def test_many_short_rows_are_cut_into_chunks(same, run):
    logits, labels = make(2, 300, 2001), words(2, 300, vocabulary=2001)
    labels[0, 100:260] = -100  # whole chunks without a label, and chunks with some
    for ours, expected in zip(
        run(lambda x: per_token_logps(x, labels), logits),
        run(lambda x: library(x, labels), logits),
        strict=True,
    ):
        same(ours, expected)


def test_by_hand(same):
    # the notes' example of a gather, whose rows are no distributions: they sum to 1.23, 1.09 and 1.40
    logits = torch.tensor(
        [
            [
                [-2.1, -0.5, -1.0, -3.0, -2.5],
                [-1.2, -2.3, -0.8, -4.0, -1.5],
                [-3.0, -1.0, -0.3, -2.0, -2.2],
                [0.0, 0.0, 0.0, 0.0, 0.0],
            ]
        ],
        dtype=torch.float64,
    )
    labels = torch.tensor([[3, 2, 0, 4]])  # the first is the prompt's and scores nothing
    sums = [sum(math.exp(z) for z in row) for row in logits[0, :3].tolist()]
    assert [round(total, 2) for total in sums] == [1.23, 1.09, 1.40]
    expected = [z - math.log(total) for z, total in zip([-1.0, -1.2, -2.2], sums, strict=True)]
    same(per_token_logps(logits, labels), torch.tensor([expected], dtype=torch.float64))
    same(sequence_logps(logits, labels), torch.tensor([sum(expected)], dtype=torch.float64))


def test_gradient_by_hand():
    # of log p(label): 1 at the label, minus the softmax, here (1/4, 1/2, 1/4)
    logits = torch.tensor(
        [[[0.0, math.log(2), 0.0], [9.0, 9.0, 9.0]]], dtype=torch.float64, requires_grad=True
    )
    per_token_logps(logits, torch.tensor([[0, 2]])).backward(torch.tensor([[3.0]], dtype=torch.float64))
    assert logits.grad is not None
    expected = torch.tensor([[[-0.75, -1.5, 2.25], [0.0, 0.0, 0.0]]], dtype=torch.float64)
    torch.testing.assert_close(logits.grad, expected, rtol=0, atol=1e-12)


def test_gradcheck():
    labels = words(B, T)
    labels[0, :3] = -100
    logits = make(B, T, V).requires_grad_()
    assert gradcheck(lambda x: per_token_logps(x, labels), (logits,))
    assert gradcheck(lambda x: sequence_logps(x, labels), (logits,))


def test_a_second_derivative_is_right_or_refused(same):
    def gradient_penalty(function) -> torch.Tensor:
        logits, labels = make(B, T, V).requires_grad_(), words(B, T)
        (grad,) = torch.autograd.grad(function(logits, labels).sum(), logits, create_graph=True)
        return torch.autograd.grad(function(logits, labels).sum() + grad.square().sum(), logits)[0]

    expected = gradient_penalty(library)
    try:
        ours = gradient_penalty(per_token_logps)
    except RuntimeError as refusal:
        if "differentiable once" not in str(refusal):
            raise
    else:
        same(ours, expected)


def test_strided_logits(same, run):
    logits, labels = make(T, V, B), words(B, T)
    ours = run(lambda x: per_token_logps(x.permute(2, 0, 1), labels), logits)
    expected = run(lambda x: library(x.permute(2, 0, 1), labels), logits)
    for a, b in zip(ours, expected, strict=True):
        same(a, b)


@pytest.mark.stronger
@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_labels_of_other_integers(dtype, same):
    logits, labels = make(B, T, V), words(B, T)
    same(per_token_logps(logits, labels.to(dtype)), library(logits, labels))


@pytest.mark.stronger
def test_labels_and_limits_that_their_own_type_cannot_hold(same, refuses):
    logits, labels = make(1, 3, 300), torch.tensor([[0, 50, 200]])
    same(per_token_logps(logits, labels.to(torch.uint8)), library(logits, labels))  # 300 is 44 in uint8
    with refuses(156, 7):  # -100 is 156 in uint8
        per_token_logps(make(1, 3, 7), torch.tensor([[0, 156, 3]], dtype=torch.uint8))


def test_inputs_are_left_alone():
    logits, labels = make(B, T, V).requires_grad_(), words(B, T)
    labels[0, :2] = -100
    before = logits.detach().clone(), labels.clone()
    sequence_logps(logits, labels).sum().backward()
    assert torch.equal(logits, before[0])
    assert torch.equal(labels, before[1])


# what is scored


def test_the_first_label_and_the_last_logits_score_nothing():
    logits, labels = make(B, T, V).requires_grad_(), words(B, T)
    output = per_token_logps(logits, labels)
    output.sum().backward()
    assert output.shape == (B, T - 1)
    assert logits.grad is not None
    assert logits.grad[:, -1].eq(0).all()
    labels[:, 0] = (labels[:, 0] + 1) % V
    assert torch.equal(per_token_logps(logits, labels), output)


@both
def test_ignored_positions_are_exactly_zero(dtype):
    logits, labels = make(B, T, V, dtype=dtype).requires_grad_(), words(B, T)
    labels[1, 2:4] = -100
    output = per_token_logps(logits, labels)
    output.backward(make(B, T - 1, dtype=dtype, seed=2))
    assert logits.grad is not None
    assert output[1, 1:3].eq(0).all()
    assert logits.grad[1, 1:3].eq(0).all()
    assert output.ne(0).sum() == B * (T - 1) - 2


@pytest.mark.parametrize("ignore_index", [-100, -1, 0, V + 3])
def test_ignore_index(ignore_index, same):
    logits, labels = make(B, T, V), words(B, T)
    labels[0, 1:3] = ignore_index
    expected = library(logits, labels, ignore_index)
    same(per_token_logps(logits, labels, ignore_index=ignore_index), expected)
    same(sequence_logps(logits, labels, ignore_index=ignore_index), expected.sum(-1))


def test_a_vocabulary_of_one_word():
    labels = torch.tensor([[0, 0, -100, 0]])
    assert torch.equal(per_token_logps(make(1, 4, 1), labels), torch.zeros(1, 3, dtype=torch.float64))


def test_nothing_to_score():
    logits = make(B, T, V).requires_grad_()
    output = sequence_logps(logits, torch.full((B, T), -100))
    output.sum().backward()
    assert output.eq(0).all()
    assert logits.grad is not None
    assert logits.grad.eq(0).all()


def test_a_single_token_and_an_empty_batch():
    logits = make(B, 1, V).requires_grad_()
    assert per_token_logps(logits, words(B, 1)).shape == (B, 0)
    total = sequence_logps(logits, words(B, 1))
    total.sum().backward()
    assert torch.equal(total, torch.zeros(B, dtype=torch.float64))
    assert per_token_logps(make(0, T, V), words(0, T)).shape == (0, T - 1)


@given(
    batch=st.integers(1, 4), tokens=st.integers(2, 6), vocabulary=st.integers(1, 9), shift=st.floats(-50, 50)
)
def test_a_constant_added_to_the_logits_changes_nothing(batch, tokens, vocabulary, shift, same):
    logits, labels = make(batch, tokens, vocabulary), words(batch, tokens, vocabulary=vocabulary)
    same(per_token_logps(logits + shift, labels), per_token_logps(logits, labels))


def test_probabilities_of_all_words_sum_to_one(same):
    logits = make(1, 2, V)
    logps = [per_token_logps(logits, torch.tensor([[0, word]])) for word in range(V)]
    same(torch.cat(logps).exp().sum(), torch.tensor(1.0, dtype=torch.float64))


# low precision and extreme values


@low
def test_low_precision_is_summed_in_float32(dtype, same, run):
    logits, labels = make(B, T, V, dtype=dtype), words(B, T)
    output, grad = run(lambda x: per_token_logps(x, labels), logits)
    expected, expected_grad = run(lambda x: library(x.float(), labels), logits)
    same(output, expected)  # float32, 1e-5
    assert grad.dtype == dtype
    same(grad, expected_grad, torch.finfo(dtype).eps)


@low
def test_512_tokens_of_32k_words_within_a_thousandth_of_a_nat(dtype):
    logits, labels = make(1, 512, 32768, dtype=dtype, spread=1.0), words(1, 512, vocabulary=32768)
    exact = sum(
        row.double().log_softmax(-1)[word].item()
        for row, word in zip(logits[0, :-1], labels[0, 1:].tolist(), strict=True)
    )
    assert abs(sequence_logps(logits, labels).item() - exact) < 1e-3
    naive = logits[:, :-1].log_softmax(-1).gather(-1, labels[:, 1:, None]).sum().item()
    assert abs(naive - exact) > 0.1  # what the test would see if the sum were taken in the logits' dtype


@both
def test_large_logits_do_not_overflow(dtype, same):
    logits = torch.tensor([[[1e4, 1e4 + 1.0, -1e4], [0.0, 0.0, 0.0]]], dtype=dtype)
    assert per_token_logps(logits, torch.tensor([[0, 2]])).item() == pytest.approx(-20001.3133, abs=1e-2)
    expected = torch.tensor([[-1.0 - math.log1p(math.exp(-1.0))]], dtype=dtype)
    # a logit of 1e4 is itself known to 1e-3 in float32, so that gather minus logsumexp is right as well
    same(per_token_logps(logits, torch.tensor([[0, 0]])), expected, 2e-3 if dtype == torch.float32 else 1e-10)


def test_a_forbidden_word_at_an_ignored_position_is_no_nan(run):
    logits, labels = make(B, T, V), words(B, T)
    labels[1, 2] = -100
    logits[1, 1, :-1] = -INF  # word 0 among them, which stands in for -100 in many a gather
    ours, grad = run(lambda x: per_token_logps(x, labels), logits)
    assert ours.isfinite().all()
    assert ours[1, 1] == 0
    assert grad.isfinite().all()
    assert grad[1, 1].eq(0).all()


@pytest.mark.stronger
@pytest.mark.parametrize("value", [-INF, INF, NAN])
def test_an_ignored_position_may_hold_anything(value, run):
    logits, labels = make(B, T, V), words(B, T)
    labels[1, 2] = labels[1, 3] = -100
    clean = run(lambda x: per_token_logps(x, labels), logits)
    logits[1, 1, 4], logits[1, 2] = value, value
    for a, b in zip(run(lambda x: per_token_logps(x, labels), logits), clean, strict=True):
        assert torch.equal(a, b)


@both
def test_a_forbidden_word_is_no_nan(dtype, same, run):
    logits, labels = make(B, T, V, dtype=dtype), words(B, T)
    logits[..., 2] = -INF
    labels[labels == 2] = 3
    ours, grad = run(lambda x: per_token_logps(x, labels), logits)
    expected, expected_grad = run(lambda x: library(x, labels), logits)
    same(ours, expected)
    same(grad, expected_grad)
    assert ours.isfinite().all()
    assert grad[..., 2].eq(0).all()


def test_a_forbidden_label_is_minus_infinity(same, run):
    logits, labels = make(B, T, V), words(B, T)
    logits[1, 2, labels[1, 3]] = -INF
    ours, grad = run(lambda x: per_token_logps(x, labels), logits)
    assert ours[1, 2] == -INF
    assert ours.isinf().sum() == 1
    same(grad, run(lambda x: library(x, labels), logits)[1])


@pytest.mark.stronger
def test_a_row_without_a_possible_word_is_minus_infinity(run):
    logits, labels = make(B, T, V), words(B, T)
    logits[1, 2] = -INF  # there torch gives NaN
    ours, grad = run(lambda x: per_token_logps(x, labels), logits)
    assert ours[1, 2] == -INF
    assert ours.isinf().sum() == 1
    assert grad.isfinite().all()


# memory


@pytest.mark.memory
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_second_tensor_of_the_size_of_the_logits(dtype):
    logits, labels = torch.randn(2, 256, 32768).to(dtype), words(2, 256, vocabulary=32768)
    assert peak_bytes(lambda: per_token_logps(logits, labels)) <= logits.nbytes // 10

    def with_gradient() -> object:
        return torch.autograd.grad(per_token_logps(logits.requires_grad_(), labels).sum(), logits)

    assert peak_bytes(with_gradient) <= logits.nbytes * 1.1  # the gradient itself and a tenth


# errors


@pytest.mark.parametrize("wrong", [V, V + 5, -1, -99, 50256])
def test_labels_out_of_range(wrong, refuses):
    logits, labels = make(B, T, V), words(B, T)
    labels[1, 2] = wrong
    for function in (per_token_logps, sequence_logps):
        with refuses(wrong, V):
            function(logits, labels)


@pytest.mark.parametrize("shape", [(B, T - 1), (T, B), (B,), (B, T, 1), (1, T)])
def test_labels_of_another_shape(shape, refuses):
    with refuses(shape, (B, T, V)):
        per_token_logps(make(B, T, V), torch.zeros(shape, dtype=torch.int64))


@pytest.mark.parametrize("shape", [(T, V), (B, T, V, 1), (B, 0, V), (B, T, 0)])
def test_logits_of_another_shape(shape, refuses):
    with refuses(shape):
        per_token_logps(make(*shape), torch.zeros(shape[:2], dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64])
def test_labels_that_are_no_integers(dtype, refuses):
    with refuses(dtype):
        per_token_logps(make(B, T, V), torch.zeros(B, T, dtype=dtype))


def test_logits_that_are_no_floats_and_other_devices(refuses):
    with refuses(torch.int64):
        per_token_logps(words(B, T, V), words(B, T))
    with refuses("meta", "cpu"):
        per_token_logps(make(B, T, V), words(B, T).to("meta"))
