r"""The guard clauses: each refuses what it must, names the values, and lets everything else through."""

import pytest
import torch
from torch import nn

from llmcore.checks import (
    check_divisible,
    check_finite,
    check_floating,
    check_heads,
    check_input,
    check_positive,
    check_probability,
)


@pytest.mark.parametrize("bad", [0, -3, 2.0, True, None, "4"])
def test_check_positive_refuses(bad, refuses):
    with refuses("width", repr(bad).strip("'")):
        check_positive(length=7, width=bad)


def test_check_positive_accepts():
    check_positive(length=1, width=10**9)


@pytest.mark.parametrize(("dividend", "divisor"), [(10, 3), (3, 10), (8, 5), (8, 3)])
def test_check_divisible_refuses(dividend, divisor, refuses):
    with refuses("num_heads", dividend, "num_kv_heads", divisor):
        check_divisible(num_heads=dividend, num_kv_heads=divisor)


@pytest.mark.parametrize(("dividend", "divisor", "bad"), [(8, 0, 0), (8, -2, -2), (0, 2, 0), (8.0, 2, 8.0)])
def test_check_divisible_refuses_what_is_no_count(dividend, divisor, bad, refuses):
    with refuses(bad):
        check_divisible(num_heads=dividend, num_kv_heads=divisor)


def test_check_divisible_accepts():
    check_divisible(num_heads=12, num_kv_heads=4)
    check_divisible(num_heads=5, num_kv_heads=5)
    check_divisible(num_heads=5, num_kv_heads=1)


@pytest.mark.parametrize("bad", [-0.1, 1.0, 1.5, float("nan"), float("inf")])
def test_check_probability_refuses(bad, refuses):
    with refuses("dropout", bad):
        check_probability(dropout=bad)


@pytest.mark.parametrize("bad", [False, None, "0.5", torch.tensor(0.5)])
def test_check_probability_refuses_what_is_no_number(bad, refuses):
    with refuses("dropout"):
        check_probability(dropout=bad)


def test_check_probability_accepts():
    check_probability(dropout=0.0, other=0.999, whole=0)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_check_floating_refuses_other_kinds(dtype, refuses):
    with refuses("logits", dtype):
        check_floating(logits=torch.zeros(3, dtype=dtype))


def test_check_floating_refuses_mixtures(refuses):
    with refuses("key", "value", torch.float32, torch.bfloat16):
        check_floating(key=torch.zeros(3), value=torch.zeros(3, dtype=torch.bfloat16))
    with refuses("key", "value", "cpu", "meta"):
        check_floating(key=torch.zeros(3), value=torch.zeros(3, device="meta"))


def test_check_floating_accepts():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        check_floating(key=torch.zeros(3, dtype=dtype), value=torch.zeros(4, 5, dtype=dtype))


@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 4), (4,), (2, 3, 5, 4)])
def test_check_input_refuses_shapes(shape, refuses):
    with refuses("hidden_states", 4, shape):
        check_input(nn.Linear(4, 2), hidden_states=torch.zeros(shape))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64])
def test_check_input_refuses_other_dtypes_and_devices(dtype, refuses):
    with refuses("context", dtype, torch.float32):
        check_input(nn.Linear(4, 2), context=torch.zeros(2, 3, 4, dtype=dtype))
    with refuses("context", "meta", "cpu"):
        check_input(nn.Linear(4, 2), context=torch.zeros(2, 3, 4, device="meta"))


def test_check_input_accepts():
    check_input(nn.Linear(4, 2), hidden_states=torch.zeros(2, 3, 4), context=torch.zeros(2, 7, 4))
    with torch.autocast("cpu", torch.bfloat16):
        check_input(nn.Linear(4, 2), hidden_states=torch.zeros(2, 3, 4, dtype=torch.bfloat16))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True, "1", None, torch.ones(())])
def test_check_finite_refuses(number, refuses):
    with refuses("scale"):
        check_finite(scale=number)


def test_check_finite_accepts():
    check_finite(scale=-0.5, beta=2)


@pytest.mark.parametrize(
    ("query", "key", "value", "named"),
    [
        ((2, 6, 5), (2, 3, 7, 4), (2, 3, 7, 9), ("query", (2, 6, 5))),
        ((2, 6, 5, 4), (2, 3, 7), (2, 3, 7, 9), ("key", (2, 3, 7))),
        ((2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7), ("value", (2, 3, 7))),
        ((2, 0, 5, 4), (2, 3, 7, 4), (2, 3, 7, 9), ("query", (2, 0, 5, 4))),
        ((2, 6, 0, 4), (2, 3, 7, 4), (2, 3, 7, 9), ("query", (2, 6, 0, 4))),
        ((2, 6, 5, 4), (2, 3, 0, 4), (2, 3, 0, 9), ("key", (2, 3, 0, 4))),
        ((2, 6, 5, 4), (1, 3, 7, 4), (2, 3, 7, 9), ("key", 1, 2)),
        ((2, 6, 5, 4), (2, 3, 7, 4), (8, 3, 7, 9), ("value", 8, 2)),
        ((2, 6, 5, 4), (2, 3, 7, 8), (2, 3, 7, 9), ("head_dim", 4, 8)),
        ((2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 8, 9), ("value", 7, 8)),
        ((2, 6, 5, 4), (2, 3, 7, 4), (2, 6, 7, 9), ("value", 3, 6)),
        ((2, 6, 5, 4), (2, 5, 7, 4), (2, 5, 7, 9), (6, 5)),
        ((2, 6, 5, 4), (2, 12, 7, 4), (2, 12, 7, 9), (6, 12)),
    ],
)
def test_check_heads_refuses(query, key, value, named, refuses):
    with refuses(*named):
        check_heads(torch.zeros(query), torch.zeros(key), torch.zeros(value))


def test_check_heads_refuses_dtypes(refuses):
    query, key, value = torch.zeros(2, 6, 5, 4), torch.zeros(2, 3, 7, 4), torch.zeros(2, 3, 7, 9)
    with refuses("key", torch.float64):
        check_heads(query, key.double(), value)
    with refuses("value", torch.int64):
        check_heads(query, key, value.long())
    with refuses("value", "meta"):
        check_heads(query, key, value.to("meta"))


def test_check_heads_accepts():
    check_heads(torch.zeros(2, 6, 5, 4), torch.zeros(2, 3, 7, 4), torch.zeros(2, 3, 7, 9))
    check_heads(torch.zeros(2, 6, 5, 4), torch.zeros(2, 1, 7, 4))
    check_heads(torch.zeros(0, 6, 5, 4), torch.zeros(0, 3, 7, 4), torch.zeros(0, 3, 7, 9))
