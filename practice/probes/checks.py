r"""Looks at the guard clauses: what each lets through, and what it raises."""

import torch
from torch import nn

from practice.probes import See


def guards(see: See, check_positive, check_divisible, check_finite, check_probability) -> None:
    r"""One value a label, in first and in second place."""
    odd = (0, 1, -3, 2.0, 0.5, True, None, "4", float("nan"), float("inf"), float("-inf"), 7)
    for value in odd:
        see(f"positive {value!r}", lambda value=value: check_positive(width=value))
        see(f"finite {value!r}", lambda value=value: check_finite(scale=value))
        see(f"probability {value!r}", lambda value=value: check_probability(dropout=value))
    for rate in (0.0, -0.1, 0.999, 1.0):
        see(f"rate {rate}", lambda rate=rate: check_probability(dropout=rate))
    see("negative and finite", lambda: check_finite(scale=-0.5))
    see("a tensor as number", lambda: check_finite(scale=torch.ones(())))
    see("a tensor as rate", lambda: check_probability(dropout=torch.tensor(0.5)))
    see("second size", lambda: check_positive(length=7, width=0))
    see("second number", lambda: check_finite(scale=1.0, beta=float("nan")))
    see("second rate", lambda: check_probability(dropout=0.1, other=2.0))
    for pair in ((12, 4), (4, 12), (5, 5), (10, 3), (8, 0), (0, 8), (8, -2), (8.0, 2), (8, True)):
        see(f"divisible {pair}", lambda pair=pair: check_divisible(num_heads=pair[0], num_kv_heads=pair[1]))


def tensor_guards(see: See, check_floating, check_input, check_heads) -> None:
    r"""One rule a label."""
    kinds = (
        torch.float64,
        torch.float32,
        torch.bfloat16,
        torch.float16,
        torch.int64,
        torch.bool,
        torch.complex64,
    )
    for dtype in kinds:
        see(f"floating {dtype}", lambda dtype=dtype: check_floating(x=torch.zeros(3, dtype=dtype)))
        see(
            f"input {dtype}",
            lambda dtype=dtype: check_input(nn.Linear(4, 2), x=torch.zeros(2, 3, 4, dtype=dtype)),
        )
    one = torch.zeros(3)
    see("floating, two dtypes", lambda: check_floating(key=one, value=one.bfloat16()))
    see("floating, two devices", lambda: check_floating(key=one, value=one.to("meta")))
    see("floating, third", lambda: check_floating(query=one, key=one, value=one.double()))
    for shape in ((2, 3, 4), (2, 3, 5), (3, 4), (4,), (2, 3, 5, 4)):
        see(f"input {shape}", lambda shape=shape: check_input(nn.Linear(4, 2), x=torch.zeros(shape)))
    see("input, second", lambda: check_input(nn.Linear(4, 2), x=torch.zeros(2, 3, 4), y=torch.zeros(2, 3, 5)))
    see(
        "input on another device", lambda: check_input(nn.Linear(4, 2), x=torch.zeros(2, 3, 4, device="meta"))
    )

    def autocast():
        with torch.autocast("cpu", torch.bfloat16):
            check_input(nn.Linear(4, 2), x=torch.zeros(2, 3, 4, dtype=torch.bfloat16))

    see("input under autocast", autocast)
    shapes = {
        "grouped": ((2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 9)),
        "grouped, values as wide": ((2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)),
        "grouped, as many keys as queries": ((2, 6, 7, 4), (2, 3, 7, 4), (2, 3, 7, 4)),
        "as many kv heads": ((2, 6, 7, 4), (2, 6, 7, 4), (2, 6, 7, 4)),
        "as many kv heads, more keys": ((2, 6, 5, 4), (2, 6, 7, 4), (2, 6, 7, 4)),
        "6 heads over 5": ((2, 6, 7, 4), (2, 5, 7, 4), (2, 5, 7, 4)),
        "6 heads over 12": ((2, 6, 7, 4), (2, 12, 7, 4), (2, 12, 7, 4)),
        "query of three dimensions": ((2, 6, 4), (2, 3, 7, 4), (2, 3, 7, 4)),
        "value of three dimensions": ((2, 6, 7, 4), (2, 3, 7, 4), (2, 3, 7)),
        "no query": ((2, 6, 0, 4), (2, 6, 0, 4), (2, 6, 0, 4)),
        "no feature": ((2, 6, 7, 0), (2, 6, 7, 0), (2, 6, 7, 0)),
        "no sequence": ((0, 6, 7, 4), (0, 6, 7, 4), (0, 6, 7, 4)),
        "key of one sequence": ((2, 6, 7, 4), (1, 6, 7, 4), (2, 6, 7, 4)),
        "value of eight sequences": ((2, 6, 7, 4), (2, 6, 7, 4), (8, 6, 7, 4)),
        "two head_dims": ((2, 6, 7, 4), (2, 6, 7, 8), (2, 6, 7, 8)),
        "more values than keys": ((2, 6, 7, 4), (2, 6, 7, 4), (2, 6, 8, 4)),
        "more heads of values": ((2, 6, 7, 4), (2, 3, 7, 4), (2, 6, 7, 4)),
    }
    for name, each in shapes.items():
        see(name, lambda each=each: check_heads(*map(torch.zeros, each)))
    q, k, v = map(torch.zeros, shapes["as many kv heads"])
    see("no value", lambda: check_heads(q, k))
    see("heads of two dtypes", lambda: check_heads(q, k.double(), v))
    see("heads on two devices", lambda: check_heads(q, k, v.to("meta")))
    see("integer heads", lambda: check_heads(q.long(), k.long(), v.long()))
