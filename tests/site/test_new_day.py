"""The scaffold of a day: complete, the same in both languages, and never over what is there."""

from pathlib import Path

import pytest

from sitekit.new_day import files, main
from tests.site.test_twins import differences


def test_creates_twins_with_a_snippet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["position-encoding"], tmp_path) == 0
    assert {path for path in files("position-encoding") if not (tmp_path / path).is_file()} == set()
    assert differences(tmp_path) == []
    assert "position-encoding: days/position-encoding.md" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["Rope"], ["day_04"], ["rope", "alibi"], ["../rope"], ["-rope"]])
def test_refuses_names_that_are_no_slugs(tmp_path: Path, arguments: list[str]) -> None:
    assert main(arguments, tmp_path) == 2
    assert list(tmp_path.iterdir()) == []


def test_writes_nothing_over_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "docs/en/days/rope.md"
    page.parent.mkdir(parents=True)
    page.write_text("mine", encoding="utf-8")
    assert main(["rope"], tmp_path) == 1
    assert "docs/en/days/rope.md" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "docs/zh").exists()
