r"""One warm judge for all tests that need none of their own."""

from collections.abc import Iterator

import pytest

from practice.process import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge
