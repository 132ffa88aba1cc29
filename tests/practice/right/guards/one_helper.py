r"""One helper refuses for all four; types are asked exactly, and `numbers` is not needed."""

from math import inf


def refuse_if(bad, name, value, rule):
    if bad:
        raise ValueError(f"{name} must be {rule}, got {value!r}")


def is_number(x):
    return type(x) in (int, float)


def check_positive(**sizes):
    for name in sizes:
        size = sizes[name]
        refuse_if(type(size) is not int or size <= 0, name, size, "a positive integer")


def check_divisible(**sizes):
    check_positive(**sizes)
    (a, x), (b, y) = list(sizes.items())
    refuse_if(x // y * y != x, f"{a}={x}", f"{b}={y}", "a multiple")


def check_finite(**numbers):
    for name, x in numbers.items():
        refuse_if(not is_number(x) or not -inf < x < inf, name, x, "finite")


def check_probability(**rates):
    for name, rate in rates.items():
        refuse_if(not is_number(rate) or not (rate >= 0 and rate < 1), name, rate, "in [0, 1)")
