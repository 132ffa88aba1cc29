r"""What the tests of llmcore share.

The tests see definitions through their documented names alone: values, gradients, dtypes, errors and memory.
They run as well on another person's definitions put in place of ours, so they ask neither for private helpers
nor for the wording of an error beyond the values it must name. Names of projections matter only where weights
are copied from an oracle. Two marks name tests that an answer with right values may fail: `memory`, how the
value is made, and `stronger`, what llmcore promises where torch's own calls do not.

Tolerances: float64 within 1e-10 and float32 within 1e-5 of the oracle, of each entry plus of the largest one
(a small entry may be the difference of two large ones). bfloat16 and float16 are compared with the float64
result: the root mean square of the error may be 1.25 times the library's, the largest error 3 times (of a
few hundred rounded numbers the largest error varies that much between two equally good ways).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import settings
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

settings.register_profile("llmcore", derandomize=True, deadline=None, max_examples=15, database=None)
settings.load_profile("llmcore")

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "memory: right values are not enough, how they are made is measured")
    config.addinivalue_line("markers", "stronger: what llmcore promises where torch's own calls do not")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(20240229)


class Difference(AssertionError):
    r"""Two tensors are not the same; `facts` says in which way, for whoever reports it.

    Attributes:
        facts: `kind` (shape, dtype or value), `part` (output, or gradient of what), `got` and `expected`; for
            values also `index`, the first entry that differs, `error`, the largest difference, and `allowed`.
    """

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts


def named(part: str, tensor: Tensor) -> Tensor:
    r"""Write on a tensor what it is, for the message when it is wrong."""
    tensor.part = part  # pyright: ignore[reportAttributeAccessIssue]
    return tensor


def compare(actual: Any, expected: Tensor, rtol: float, atol: float) -> None:
    r"""Compare two tensors as `torch.testing.assert_close` does.

    Raises:
        Difference: If they differ.
    """
    try:
        torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)
    except (AssertionError, TypeError) as error:
        facts: dict[str, Any] = {"kind": "value", "part": getattr(actual, "part", "output")}
        if not isinstance(actual, Tensor):
            facts |= {"kind": "shape", "got": type(actual).__name__, "expected": list(expected.shape)}
        elif actual.shape != expected.shape:
            facts |= {"kind": "shape", "got": list(actual.shape), "expected": list(expected.shape)}
        elif actual.dtype != expected.dtype:
            facts |= {"kind": "dtype", "got": str(actual.dtype), "expected": str(expected.dtype)}
        elif actual.device == expected.device and actual.device.type != "meta":
            a, e = actual.detach().double(), expected.detach().double()
            close = (a - e).abs() <= atol + rtol * e.abs()
            wrong = (~(close | (a == e))).nonzero()
            index = tuple(wrong[0].tolist()) if len(wrong) else ()
            facts |= {"index": list(index), "got": a[index].item(), "expected": e[index].item()}
            facts |= {
                "error": (a - e).abs().max().item(),
                "allowed": atol,
                "count": len(wrong),
                "of": a.numel(),
            }
        raise Difference(str(error), **facts) from None


@pytest.fixture(scope="session")
def same() -> Callable[..., None]:
    r"""`same(actual, expected)`: same shape, dtype and values, within the tolerance of the dtype.

    Two lists are compared in pairs; what counts as the largest entry is then that of the whole list (the
    gradient of a key bias is a sum of large terms that cancel to zero).
    """

    def check(
        actual: Tensor | Sequence[Tensor],
        expected: Tensor | Sequence[Tensor],
        tolerance: float | None = None,
    ) -> None:
        one = isinstance(expected, Tensor)
        pairs: list[tuple[Any, Any]] = (
            [(actual, expected)] if one else list(zip(actual, expected, strict=True))
        )
        wanted = [e.detach() for _, e in pairs if isinstance(e, Tensor)]
        largest = max(1.0, *(e[e.isfinite()].abs().max().item() for e in wanted if e.isfinite().any()))
        for a, e in pairs:
            allowed = TOLERANCE.get(e.dtype, 0.0) if tolerance is None else tolerance
            compare(a, e, rtol=allowed, atol=allowed * largest)

    return check


@pytest.fixture(scope="session")
def run() -> Callable[..., tuple[Tensor, ...]]:
    r"""`run(function, *inputs)`: (output, gradient of each input), for a fixed random cotangent."""

    def value_and_grads(function: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        output = function(*leaves)
        generator = torch.Generator().manual_seed(11)
        cotangent = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)
        grads = torch.autograd.grad(output, leaves, cotangent)
        return (output.detach(), *(named(f"gradient of input {i}", grad) for i, grad in enumerate(grads)))

    return value_and_grads


@pytest.fixture(scope="session")
def run_module() -> Callable[..., tuple[Tensor, list[Tensor], dict[str, Tensor]]]:
    r"""`run_module(module, *inputs, **options)`: output, gradients of inputs and of parameters by name."""

    def value_and_grads(module: nn.Module, *inputs: Tensor, **options: object):
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        output = module(*leaves, **options)
        output = output[0] if isinstance(output, tuple) else output
        generator = torch.Generator().manual_seed(11)
        cotangent = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)
        names, weights = zip(*module.named_parameters(), strict=True)
        grads = torch.autograd.grad(output, [*leaves, *weights], cotangent)
        for name, grad in zip([*(f"input {i}" for i in range(len(leaves))), *names], grads, strict=True):
            named(f"gradient of {name}", grad)
        return (
            output.detach(),
            list(grads[: len(leaves)]),
            dict(zip(names, grads[len(leaves) :], strict=True)),
        )

    return value_and_grads


@pytest.fixture(scope="session")
def as_close() -> Callable[..., None]:
    r"""`as_close(actual, library, exact)`: no further from the float64 result than the library's own call."""

    def check(actual: Tensor, library: Tensor, exact: Tensor) -> None:
        assert actual.dtype == library.dtype
        assert actual.shape == library.shape
        error, allowed = actual.double() - exact, library.double() - exact
        for name, factor, norm in (
            ("mean square", 1.25, lambda x: x.square().mean().sqrt().item()),
            ("largest", 3.0, lambda x: x.abs().max().item()),
        ):
            ours, theirs = norm(error), norm(allowed)
            assert ours <= factor * theirs, f"{name} error {ours:.3g}, the library's is {theirs:.3g}"

    return check


def names(message: str, value: object) -> bool:
    r"""Whether a message has a value; a shape may stand as (2, 3) or [2, 3], a dtype without `torch.`."""
    text = re.escape(str(value).removeprefix("torch."))
    if isinstance(value, tuple):
        text = rf"[(\[]{re.escape(', '.join(map(str, value)))},?[)\]]"
        return re.search(text, message) is not None
    return re.search(rf"(?<!\w)(?<!\d\.(?=\d)){text}(?!\w)(?!\.\d)", message) is not None


@pytest.fixture(scope="session")
def refuses() -> Callable[..., object]:
    r"""`with refuses(10, 3):` a ValueError must come, and its message must name the values."""

    @contextmanager
    def check(*values: object) -> Iterator[None]:
        with pytest.raises(ValueError) as caught:  # noqa: PT011 (the values are looked for below)
            yield
        message = str(caught.value)
        missing = [value for value in values if not names(message, value)]
        assert not missing, f"the error does not name {missing}: {message}"

    return check


@pytest.fixture(scope="session")
def largest_tensor() -> Callable[[], TorchDispatchMode]:
    r"""`with largest_tensor() as seen:`, then `seen.numel`: elements of the largest memory that was returned.

    What is counted is the storage behind a result, so a view of an input counts as that input and `expand`
    counts as nothing.
    """

    class Watch(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.numel = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            for tensor in tree_leaves(result):
                if isinstance(tensor, Tensor):
                    self.numel = max(self.numel, tensor.untyped_storage().nbytes() // tensor.itemsize)
            return result

    return Watch
