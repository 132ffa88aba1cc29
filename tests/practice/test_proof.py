r"""The judge proves itself: it passes the reference and every right answer, and no other.

For each exercise the reference passes, the stub is "not attempted", every wrong variant fails with its own
diagnosis, and the answers of `right/`, written in other ways, pass. `-k gqa` looks at one exercise.
"""

import os
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from practice.catalogue import Exercise, Wrong, exercises
from practice.process import Judge
from practice.source import reference, stub, wrong_answer

RIGHT = Path(__file__).parent / "right"
EXERCISES = list(exercises().values())
ANSWERS = sorted(RIGHT.glob("*/*.py"))
VARIANTS = [(exercise, wrong) for exercise in EXERCISES for wrong in exercise.wrong]
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=[each.name for each in EXERCISES])
each_variant = pytest.mark.parametrize(
    ("exercise", "wrong"), VARIANTS, ids=[f"{exercise.name}-{wrong.name}" for exercise, wrong in VARIANTS]
)
each_answer = pytest.mark.parametrize("path", ANSWERS, ids=[f"{p.parent.name}-{p.stem}" for p in ANSWERS])


def job(parameters: dict[str, Any]) -> tuple[str, str, Path, bool]:
    r"""What a test has judged: exercise, text, path, and whether to stop at the first failure."""
    if "path" in parameters:
        path = parameters["path"]
        return path.parent.name, path.read_text(encoding="utf-8"), path, False
    exercise: Exercise = parameters["exercise"]
    if "wrong" in parameters:
        wrong: Wrong = parameters["wrong"]
        return exercise.name, wrong_answer(exercise, wrong), Path(f"{wrong.name}.py"), True
    return exercise.name, reference(exercise), exercise.source, False


@pytest.fixture(scope="module")
def verdict(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], dict[str, Any]]]:
    r"""`verdict(request)`: the report on what the test has judged; a judge a core works on all of them."""
    judges = [Judge() for _ in range(os.cpu_count() or 1)]
    free: queue.SimpleQueue[Judge] = queue.SimpleQueue()
    for judge in judges:
        free.put(judge)

    def work(exercise: str, text: str, path: Path, first: bool) -> dict[str, Any]:
        judge = free.get()
        try:
            return judge(exercise, text, path, first=first)
        finally:
            free.put(judge)

    with ThreadPoolExecutor(len(judges)) as pool:
        here: list[Any] = [item for item in request.session.items if item.path == request.path]
        mine = [item for item in here if "verdict" in item.fixturenames]
        waiting: dict[str, Future[dict[str, Any]]] = {}
        for item in sorted(mine, key=lambda item: job(item.callspec.params)[0]):
            waiting[item.nodeid] = pool.submit(work, *job(item.callspec.params))
        yield lambda asked: waiting[asked.node.nodeid].result()
        for future in waiting.values():
            future.cancel()
    for judge in judges:
        judge.close()


@each_exercise
def test_the_reference_passes(exercise: Exercise, verdict, request: pytest.FixtureRequest):
    report = verdict(request)
    assert report["verdict"] == "passed", report
    assert sum(report["passed"].values()) >= 5, "hardly any test uses the definitions"
    assert not report["remarks"], report


@each_variant
def test_a_wrong_variant_fails_and_is_recognised(
    exercise: Exercise, wrong: Wrong, verdict, request: pytest.FixtureRequest
):
    report = verdict(request)
    assert report["verdict"] in (
        "parameters",
        "raised",
        "shape",
        "value",
        "gradient",
        "dtype",
        "error",
        "memory",
    ), report
    assert report["diagnosis"] == [wrong.name], (report["diagnosis"], report["failed"])


@each_answer
def test_a_right_answer_passes_however_it_is_written(path: Path, verdict, request: pytest.FixtureRequest):
    report = verdict(request)
    assert report["verdict"] == "passed", report


@each_exercise
def test_the_stub_is_not_attempted(exercise: Exercise, judge: Judge):
    assert judge(exercise.name, stub(exercise), "stub.py")["verdict"] == "not attempted"
