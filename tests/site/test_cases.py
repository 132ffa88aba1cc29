"""The site of `cases/`: each page is judged right as it is, each planted fault is reported where it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.site.planted import CASES, Cases

SITE = Cases(CASES)


@pytest.mark.parametrize("case", SITE.cases, ids=lambda case: case["id"])
def test_page_without_fault(case: dict[str, Any]) -> None:
    assert SITE.wrong(case) == [], case["what"]


@pytest.mark.parametrize(("case", "fault"), [pytest.param(*each, id=each[1]["id"]) for each in SITE.faults])
def test_planted_fault(case: dict[str, Any], fault: dict[str, Any]) -> None:
    assert SITE.misplaced(case, fault) == [], fault["why"]


@pytest.mark.parametrize("number", SITE.rounds)
def test_nothing_else_fails_runs_or_is_left(number: int) -> None:
    assert SITE.strangers(number) == []
