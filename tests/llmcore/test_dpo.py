r"""Oracle: TRL's own `DPOTrainer`, recorded in trl_dpo.json by record_trl.py, and calculations by hand.

The record has a run in float64 (compared within 1e-10) and one in float32, as far as TRL itself is float32
(within 1e-5). Both cover the way from logits and labels to the loss and back to the logits' gradient.
"""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llmcore.dpo import dpo_loss
from llmcore.logprobs import per_token_logps, sequence_logps

RECORD = json.loads(Path(__file__).with_name("trl_dpo.json").read_text(encoding="utf-8"))
NAMES = ("policy_chosen_logps", "policy_rejected_logps", "ref_chosen_logps", "ref_rejected_logps")
exact = torch.float64
DTYPES = {"float64": torch.float64, "float32": torch.float32}
runs = pytest.mark.parametrize(
    ("run", "dtype"),
    [(run[name], dtype) for run in RECORD["runs"] for name, dtype in DTYPES.items()],
    ids=[f"beta={run['beta']}-{name}" for run in RECORD["runs"] for name in DTYPES],
)
betas = {id(run[name]): run["beta"] for run in RECORD["runs"] for name in DTYPES}


def recorded() -> tuple[torch.Tensor, torch.Tensor]:
    r"""Tokens, and the labels: -100 at prompt and padding."""
    tokens, mask = torch.tensor(RECORD["input_ids"]), torch.tensor(RECORD["completion_mask"])
    return tokens, tokens.masked_fill(mask == 0, -100)


def make(*shape: int, dtype: torch.dtype = exact, seed: int = 0, spread: float = 5.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (spread * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)


def four(size: int = 7, dtype: torch.dtype = exact, spread: float = 5.0) -> list[torch.Tensor]:
    return [make(size, dtype=dtype, seed=seed, spread=spread) - 30 for seed in range(4)]


# TRL


@runs
def test_equals_trl_from_logps(run, dtype, same):
    chosen, rejected = torch.tensor(run["policy_logps"], dtype=dtype).chunk(2)
    references = torch.tensor(run["reference_logps"], dtype=dtype).chunk(2)
    output = dpo_loss(chosen, rejected, *references, beta=betas[id(run)])
    same(output.loss, torch.tensor(run["loss"], dtype=dtype))
    same(output.chosen_rewards.mean(), torch.tensor(run["mean_chosen_reward"], dtype=dtype))
    same(output.rejected_rewards.mean(), torch.tensor(run["mean_rejected_reward"], dtype=dtype))
    same(output.margin, torch.tensor(run["margin"], dtype=dtype))
    same(output.accuracy, torch.tensor(run["accuracy"], dtype=dtype), 1e-6)  # TRL takes it in float32


@runs
def test_equals_trl_from_logits_to_their_gradient(run, dtype, same):
    _, labels = recorded()
    policy = torch.tensor(RECORD["policy_logits"], dtype=dtype, requires_grad=True)
    reference = torch.tensor(RECORD["reference_logits"], dtype=dtype, requires_grad=True)
    chosen, rejected = sequence_logps(policy, labels).chunk(2)
    references = sequence_logps(reference, labels)
    same(torch.cat((chosen, rejected)).detach(), torch.tensor(run["policy_logps"], dtype=dtype))
    same(references.detach(), torch.tensor(run["reference_logps"], dtype=dtype))
    loss = dpo_loss(chosen, rejected, *references.chunk(2), beta=betas[id(run)]).loss
    same(loss.detach(), torch.tensor(run["loss"], dtype=dtype))
    loss.backward()
    assert policy.grad is not None
    same(policy.grad, torch.tensor(run["grad_policy_logits"], dtype=dtype))
    assert reference.grad is None or not reference.grad.any()


@runs
def test_logps_equal_trl_token_by_token(run, dtype, same):
    _, labels = recorded()
    logits = torch.tensor(RECORD["policy_logits"], dtype=dtype)
    same(per_token_logps(logits, labels), torch.tensor(run["policy_per_token_logps"], dtype=dtype))


def test_the_record_tells_its_origin():
    for name in ("trl", "torch", "transformers", "seed", "by"):
        assert RECORD[name]
    lengths = torch.tensor(RECORD["completion_mask"]).sum(1)
    assert len(set(lengths.tolist())) > 2, "answers of different length, or a mean would pass for a sum"


# by hand


def test_by_hand():
    # β 0.5, log-ratios 4 and -2: margin 0.5·(4 - -2) = 3, loss log(1 + e^-3)
    output = dpo_loss(*(torch.tensor([x], dtype=exact) for x in (-6.0, -12.0, -10.0, -10.0)), beta=0.5)
    assert output.loss.item() == pytest.approx(math.log1p(math.exp(-3)), abs=1e-12)
    assert output.chosen_rewards.tolist() == pytest.approx([2.0])
    assert output.rejected_rewards.tolist() == pytest.approx([-1.0])
    assert output.margin.item() == pytest.approx(3.0)
    assert output.accuracy.item() == 1.0


def test_two_pairs_by_hand():
    # margins 0.1·10 = 1 and 0.1·(-30) = -3
    inputs = [
        torch.tensor(x, dtype=exact) for x in ([-10.0, -50.0], [-20.0, -20.0], [-15.0, -30.0], [-15.0, -30.0])
    ]
    output = dpo_loss(*inputs)
    losses = math.log1p(math.exp(-1)), math.log1p(math.exp(3))
    assert output.loss.item() == pytest.approx(sum(losses) / 2, abs=1e-12)
    assert output.chosen_rewards.tolist() == pytest.approx([0.5, -2.0])
    assert output.rejected_rewards.tolist() == pytest.approx([-0.5, 1.0])
    assert output.accuracy.item() == 0.5
    assert output.margin.item() == pytest.approx(-1.0)


def test_a_policy_equal_to_its_reference():
    # nothing learned yet: every margin 0, the loss log 2, and no pair is right already
    chosen, rejected = make(5), make(5, seed=1)
    output = dpo_loss(chosen, rejected, chosen, rejected)
    assert output.loss.item() == pytest.approx(math.log(2), abs=1e-12)
    assert output.accuracy.item() == 0.0
    assert output.margin.item() == 0.0


def test_beta_is_a_tenth_by_default(same):
    same(dpo_loss(*four()).loss, dpo_loss(*four(), beta=0.1).loss)


@pytest.mark.parametrize("beta", [0.05, 0.1, 0.7])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradient_by_hand(beta, dtype, same):
    # d loss / d log π(y_w) = -β σ(-margin) / B, and the opposite for y_l
    inputs = four(dtype=dtype)
    policy = [x.clone().requires_grad_() for x in inputs[:2]]
    output = dpo_loss(*policy, *inputs[2:], beta=beta)
    grads = torch.autograd.grad(output.loss, policy)
    margins = beta * ((inputs[0] - inputs[2]) - (inputs[1] - inputs[3]))
    expected = -beta * torch.sigmoid(-margins) / len(margins)
    same(grads[0], expected)
    same(grads[1], -expected)


def test_the_reference_gets_no_gradient():
    inputs = [x.requires_grad_() for x in four()]
    dpo_loss(*inputs).loss.backward()
    assert all(x.grad is not None and x.grad.any() for x in inputs[:2])
    assert all(x.grad is None or not x.grad.any() for x in inputs[2:])


def test_only_the_loss_has_a_gradient():
    output = dpo_loss(*(x.requires_grad_() for x in four()))
    assert output.loss.requires_grad
    assert not any(tensor.requires_grad for tensor in output[1:])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_far_margins_do_not_overflow(dtype):
    # log(sigmoid(-200)) is -inf in float32; the loss is 200, and its gradient -1
    policy = torch.tensor([-1000.0, -100.0], dtype=dtype, requires_grad=True)
    zeros, rejected = torch.zeros(2, dtype=dtype), torch.tensor([1000.0, -2100.0], dtype=dtype)
    loss = dpo_loss(policy, rejected, zeros, zeros, beta=0.1).loss
    assert loss.item() == pytest.approx(100.0)
    (grad,) = torch.autograd.grad(loss, policy)
    assert grad.tolist() == pytest.approx([-0.05, 0.0])


def test_bfloat16_is_computed_in_float32():
    # -351 is -352 in bfloat16: given so, nothing more may be lost, and -350 + 1.3 does not fit bfloat16
    inputs = [
        torch.tensor(x).bfloat16() for x in ([-350.0, -7.0], [-351.0, -9.0], [-1.3, -8.0], [-353.0, -0.7])
    ]
    output = dpo_loss(*inputs)
    expected = dpo_loss(*(x.double() for x in inputs))
    for a, b in zip(output, expected, strict=True):
        assert a.dtype == torch.float32
        torch.testing.assert_close(a.double(), b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_shapes_and_dtypes(dtype):
    output = dpo_loss(*four(5, dtype=dtype))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert all(tensor.dtype == wide for tensor in output)
    assert output.loss.shape == output.accuracy.shape == output.margin.shape == ()
    assert output.chosen_rewards.shape == output.rejected_rewards.shape == (5,)


def test_gradients_keep_the_dtype_of_the_policy():
    policy = make(5, dtype=torch.bfloat16).requires_grad_()
    dpo_loss(policy, *four(5, dtype=torch.bfloat16)[1:]).loss.backward()
    assert policy.grad is not None
    assert policy.grad.dtype == torch.bfloat16


# properties


@given(size=st.integers(1, 6), shift=st.floats(-50, 50), beta=st.floats(0.01, 2.0))
def test_a_shift_of_policy_and_reference_changes_nothing(size, shift, beta):
    inputs = four(size)
    shifted = [inputs[0] + shift, inputs[1], inputs[2] + shift, inputs[3]]
    torch.testing.assert_close(
        dpo_loss(*shifted, beta=beta).loss, dpo_loss(*inputs, beta=beta).loss, rtol=1e-9, atol=1e-9
    )


@given(order=st.permutations(range(6)))
def test_order_of_the_pairs_does_not_matter(order):
    inputs = four(6)
    ours, moved = dpo_loss(*inputs), dpo_loss(*(x[order] for x in inputs))
    torch.testing.assert_close(moved.loss, ours.loss)
    torch.testing.assert_close(moved.chosen_rewards, ours.chosen_rewards[order])
    torch.testing.assert_close(moved.rejected_rewards, ours.rejected_rewards[order])


@given(times=st.integers(2, 4))
def test_the_loss_is_a_mean(times):
    inputs = four(3)
    torch.testing.assert_close(dpo_loss(*(x.repeat(times) for x in inputs)).loss, dpo_loss(*inputs).loss)


@given(beta=st.floats(0.01, 2.0))
def test_swapping_the_answers_turns_the_margin_round(beta):
    chosen, rejected, ref_chosen, ref_rejected = four()
    ours = dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta=beta)
    swapped = dpo_loss(rejected, chosen, ref_rejected, ref_chosen, beta=beta)
    torch.testing.assert_close(swapped.margin, -ours.margin)
    # -log σ(z) - (-log σ(-z)) = -z
    torch.testing.assert_close(ours.loss - swapped.loss, -ours.margin)


def test_inputs_are_not_changed_and_need_not_be_contiguous(same):
    inputs = [make(7, 2, seed=seed)[:, 0] for seed in range(4)]
    before = [x.clone() for x in inputs]
    same(dpo_loss(*inputs).loss, dpo_loss(*(x.contiguous() for x in inputs)).loss)
    for x, copy in zip(inputs, before, strict=True):
        assert torch.equal(x, copy)


# errors


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("shape", [(3,), (4, 1), (), (1,)])
def test_refuses_shapes(place, shape, refuses):
    inputs = four(4)
    inputs[place] = torch.zeros(shape, dtype=exact)
    with refuses(shape):
        dpo_loss(*inputs)


def test_refuses_no_pairs(refuses):
    with refuses((0,)):
        dpo_loss(*(torch.zeros(0) for _ in range(4)))
    with refuses((2, 3)):
        dpo_loss(*(torch.zeros(2, 3) for _ in range(4)))


@pytest.mark.parametrize("place", range(1, 4))
def test_refuses_dtypes_and_devices(place, refuses):
    inputs = four(4)
    inputs[place] = inputs[place].float()
    with refuses(NAMES[place], torch.float32, torch.float64):
        dpo_loss(*inputs)
    inputs[place] = inputs[place].double().to("meta")
    with refuses(NAMES[place], "meta", "cpu"):
        dpo_loss(*inputs)
    with refuses(NAMES[0], torch.int64):
        dpo_loss(*(x.long() for x in four(4)))


@pytest.mark.parametrize(
    "beta", [0.0, -0.1, float("nan"), float("inf"), pytest.param(True, marks=pytest.mark.stronger)]
)
def test_refuses_beta(beta, refuses):
    with refuses(beta):
        dpo_loss(*four(4), beta=beta)
