r"""The judge proves itself: it passes the reference and every right answer, and no other.

For each exercise the reference passes, the stub is "not attempted", every wrong variant fails with a diagnosis that is
its own, and the answers of `right/`, written in other ways, pass. `-k gqa` looks at one exercise.
"""

from pathlib import Path

import pytest

from practice.catalogue import Exercise, exercises
from practice.process import Judge
from practice.source import reference, stub, wrong_answer

RIGHT = Path(__file__).parent / "right"
EXERCISES = list(exercises().values())
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=[each.name for each in EXERCISES])
VARIANTS = [(exercise, wrong) for exercise in EXERCISES for wrong in exercise.wrong]
ANSWERS = sorted(RIGHT.glob("*/*.py"))


@each_exercise
def test_the_reference_passes(exercise: Exercise, judge: Judge):
    report = judge(exercise.name, reference(exercise), exercise.source)
    assert report["verdict"] == "passed", report
    assert sum(report["passed"].values()) >= 5, "hardly any test uses the definitions"
    assert not report["remarks"], report


@each_exercise
def test_the_stub_is_not_attempted(exercise: Exercise, judge: Judge):
    assert judge(exercise.name, stub(exercise), "stub.py")["verdict"] == "not attempted"


@pytest.mark.parametrize(("exercise", "wrong"), VARIANTS, ids=[f"{e.name}-{w.name}" for e, w in VARIANTS])
def test_a_wrong_variant_fails_and_is_recognised(exercise: Exercise, wrong, judge: Judge):
    report = judge(exercise.name, wrong_answer(exercise, wrong), f"{wrong.name}.py", first=True)
    assert report["verdict"] in ("raised", "shape", "value", "gradient", "dtype", "error", "memory"), report
    assert report["diagnosis"] == [wrong.name], (report["diagnosis"], report["failed"])


@pytest.mark.parametrize("path", ANSWERS, ids=[f"{path.parent.name}-{path.stem}" for path in ANSWERS])
def test_a_right_answer_passes_however_it_is_written(path: Path, judge: Judge):
    report = judge(path.parent.name, path.read_text(encoding="utf-8"), path)
    assert report["verdict"] == "passed", report
