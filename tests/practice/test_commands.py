r"""The command line as a reader uses it: each command, both languages, what is refused."""

import io
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from practice import terminal
from practice.__main__ import main
from practice.catalogue import ROOT, exercises, find
from practice.process import Judge
from practice.progress import ProgressError, Workspace
from practice.questions import draw, questions
from practice.source import reference, stub, wrong_answer
from practice.words import speak

RIGHT, WRONG, USAGE, NOT_ATTEMPTED = range(4)
GQA = find("gqa")


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRACTICE_NOW", "2026-12-01T10:00:00")
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    speak("en")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, judge: Judge):
    r"""`run("check gqa", typed="y\n")`: exit code, what was printed, what was said on the error stream.

    A judge that is warm already stands in for the one that each command would start.
    """

    class Warm:
        def __init__(self, *_: object) -> None:
            pass

        def __enter__(self) -> Judge:
            return judge

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("practice.__main__.Judge", Warm)
    monkeypatch.setattr("practice.drills.Judge", Warm)

    def call(command: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        try:
            code = main(command.split())
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


def answer(text: str) -> Path:
    path = Path("workspace/gqa.py")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_from_the_stub_to_a_passed_exercise(run):
    code, out, _ = run("start gqa")
    assert code == RIGHT
    path = Path("workspace/gqa.py")
    assert str(path) in out
    assert path.read_text(encoding="utf-8") == stub(GQA)
    code, out, _ = run("check gqa")
    assert code == NOT_ATTEMPTED
    assert "not attempted" in out
    wrong = next(each for each in GQA.wrong if each.name == "tiled")
    answer(wrong_answer(GQA, wrong))
    code, out, _ = run("check gqa")
    assert code == WRONG
    assert wrong.title["en"] in out
    assert "hint gqa" in out
    answer(reference(GQA))
    code, out, _ = run("check")  # the one that was started last
    assert code == RIGHT
    assert out.startswith("gqa: passed")
    known = json.loads(Path("workspace/progress.json").read_text(encoding="utf-8"))
    assert known["exercises"]["gqa"]["passed"].startswith("2026-12-01")
    assert known["cards"]["exercise:gqa"]["due"] > "2026-12-01"
    code, out, _ = run("show gqa")
    assert code == RIGHT
    assert out.count("class GroupedQueryAttention") == 2
    code, out, _ = run("list --state passed")
    assert "gqa" in out
    assert out.count("★") == GQA.level


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_verdict_that_the_page_shows(run, language: str):
    wrong = next(each for each in GQA.wrong if each.name == "tiled")
    answer(wrong_answer(GQA, wrong))
    code, out, _ = run(f"check gqa --lang {language}")
    assert code == WRONG
    shown = f"$ python -m practice check gqa\n{out}"
    path = Path(__file__).parent / f"verdict.{language}.txt"
    assert path.read_text(encoding="utf-8") == shown, (
        f"python -m tests.practice.record writes {path.name} again"
    )


def test_work_is_never_overwritten(run, monkeypatch: pytest.MonkeyPatch):
    run("start gqa")
    answer("mine = 1\n")
    code, _, err = run("start gqa")
    assert code == USAGE
    assert "--again" in err
    assert Path("workspace/gqa.py").read_text() == "mine = 1\n"
    code, out, _ = run("start gqa --again")
    assert code == RIGHT
    kept = Path("workspace/old/gqa_2026-12-01.py")
    assert str(kept) in out
    assert kept.read_text() == "mine = 1\n"
    answer("mine = 2\n")
    run("start gqa --again")
    assert Path("workspace/old/gqa_2026-12-01_2.py").read_text() == "mine = 2\n"
    assert kept.read_text() == "mine = 1\n"

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    answer("mine = 3\n")
    for typed, kept_text in (("n\n", "mine = 3\n"), ("what\ny\n", stub(GQA))):
        monkeypatch.setattr("sys.stdin", Terminal(typed))
        assert main(["start", "gqa"]) == RIGHT
        assert Path("workspace/gqa.py").read_text(encoding="utf-8") == kept_text


def test_hints_come_one_at_a_time_and_are_remembered(run):
    seen = [run("hint gqa")[1] for _ in range(len(GQA.hints) + 1)]
    for number, hint in enumerate(GQA.hints):
        assert terminal.CODE.sub(r"\1", hint["en"]) in seen[number]
    assert seen[-1] == seen[-2]
    assert run("hint gqa --all")[1].count("\n") == len(GQA.hints)
    answer(reference(GQA))
    run("check gqa")
    easier = json.loads(Path("workspace/progress.json").read_text())["cards"]["exercise:gqa"]["due"]
    shutil.rmtree("workspace")
    answer(reference(GQA))
    run("check gqa")
    assert json.loads(Path("workspace/progress.json").read_text())["cards"]["exercise:gqa"]["due"] > easier


def test_the_reference_is_not_shown_before_it_is_earned(run):
    code, out, err = run("show gqa")
    assert (code, out) == (USAGE, "")
    assert "--insist" in err
    code, out, _ = run("show gqa --insist")
    assert code == RIGHT
    assert "scaled_dot_product_attention" in out


def test_what_cannot_be_done_is_said(run):
    for command, words in {
        "check": "which exercise",
        "check gqaa": "gqa",
        "check gqa": "start gqa",
        "check gqa --file nowhere.py": "nowhere.py",
        "list --day nowhere": "self-attention",
        "mock 5": "10 to 240",
    }.items():
        code, _, err = run(command)
        assert code == USAGE, command
        assert words in err, command
    assert run("--lang fr list")[0] == USAGE
    answer("x")
    Path("workspace/progress.json").write_text("{", encoding="utf-8")
    code, _, err = run("list")
    assert code == USAGE
    assert "progress.json" in err
    assert Path("workspace/progress.json").read_text() == "{"
    with pytest.raises(ProgressError):
        Workspace(Path("workspace"))


def test_next_goes_from_due_to_begun_to_new(run, monkeypatch: pytest.MonkeyPatch):
    first = next(iter(exercises()))
    assert f"start {first}" in run("next")[1]
    run("start gqa")
    answer(reference(GQA) + "# mine\n")
    assert "check gqa" in run("next")[1]
    run("check gqa")
    assert f"start {first}" in run("next")[1]
    monkeypatch.setenv("PRACTICE_NOW", "2027-12-01T10:00:00")
    assert "start gqa --again" in run("next")[1]
    assert "start gqa --again" in run("review")[1]


def test_a_drill_asks_where_and_why(run):
    code, out, _ = run("bug gqa --seed 4", typed="1\n")
    assert "which" in out.lower()
    # the title among the options that the explanation then repeats
    found = None
    for choice in "1234":
        shutil.rmtree("workspace", ignore_errors=True)
        code, out, _ = run("bug gqa --seed 4", typed=f"\n{choice}\n")
        if "Yes. " in out.split("What is wrong?")[1]:
            found = choice
    assert found is not None
    lines = out.split("It is line ")[1].split(".")[0].split("–")
    code, out, _ = run("bug gqa --seed 4", typed=f"{lines[0]}\n{found}\n")
    assert out.count("Yes.") == 2 or code == WRONG
    sessions = json.loads(Path("workspace/progress.json").read_text())["sessions"]
    assert {each["kind"] for each in sessions} == {"bug"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_interview_ends_in_a_report(run, language: str):
    code, out, _ = run(
        f"mock 30 --seed 7 --lang {language}", typed="\n\n\n3\n\n\n\n1\n" + "\n\n\n\n2\n" * 8 + "s\n" * 9
    )
    assert code == WRONG
    (report,) = Path("workspace").glob("mock-*/report.md")
    text = report.read_text(encoding="utf-8")
    assert str(report) in out
    assert ("模拟面试" if language == "zh" else "Mock interview") in text
    cards = json.loads(Path("workspace/progress.json").read_text())["cards"]
    assert any(key.startswith("question:") for key in cards)


def test_an_interview_can_be_left_at_any_time(run):
    code, out, _ = run("mock 30 --seed 7", typed="\n")
    assert code == WRONG
    assert "ended early" in out
    assert list(Path("workspace").glob("mock-*/report.md"))


def test_every_question_of_the_pages_can_be_asked():
    for language in ("zh", "en"):
        found = questions(language)
        pages = sorted((ROOT / "docs" / language / "days").glob("*.md"))
        assert len(found) == sum(page.read_text(encoding="utf-8").count("??? question ") for page in pages)
        assert all(
            each.answer and each.deeper and "{{" not in each.answer and "??? " not in each.answer
            for each in found
        )
    assert [each.key for each in questions("zh")] == [each.key for each in questions("en")]


def test_what_is_asked_more_often_is_drawn_more_often():
    import random

    counts = {1: 0, 2: 0, 3: 0}
    have = {rate: sum(each.asked == rate for each in questions("en")) for rate in counts}
    for seed in range(400):
        (question,) = draw("en", 1, random.Random(seed))
        counts[question.asked] += 1
    rates = [counts[rate] / have[rate] for rate in counts if have[rate]]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1]


def test_a_judge_that_cannot_start_says_what_to_install(run, monkeypatch: pytest.MonkeyPatch):
    answer(reference(GQA))
    monkeypatch.setattr("practice.__main__.Judge", Judge)
    monkeypatch.setenv("PYTHONPATH", str(Path("shadow").absolute()))
    Path("shadow/hypothesis").mkdir(parents=True)
    Path("shadow/hypothesis/__init__.py").write_text("raise ModuleNotFoundError('no hypothesis')")
    monkeypatch.setattr("practice.process.HOME", Path("shadow/practice").absolute())
    shutil.copytree(ROOT / "practice", "shadow/practice")
    code, _, err = run("check gqa")
    assert code == 4
    assert "llmcore[practice]" in err


def test_what_a_wheel_has_is_enough(tmp_path: Path):
    r"""The files that the package takes along, and nothing else of the repository."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]
    site = tmp_path / "site"
    places = {name: name for name in wheel["packages"]} | wheel["force-include"]
    for source, target in places.items():
        (site / target).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copyfile
        copy(ROOT / source, site / target)
    work = tmp_path / "work"
    (work / "workspace").mkdir(parents=True)
    (work / "workspace" / "gqa.py").write_text(reference(GQA), encoding="utf-8")
    script = (
        f"import sys; sys.path = [{str(site)!r}] + [p for p in sys.path if p and {str(ROOT)!r} != p]\n"
        "import practice, llmcore; print(practice.__file__, llmcore.__file__)\n"
        "from practice.__main__ import main; print(main(sys.argv[1:]))"
    )
    for command, words in (
        (["check", "gqa", "--lang", "en"], "gqa: passed"),
        (["mock", "30", "--lang", "zh"], "第 1/"),
    ):
        ended = subprocess.run(
            [sys.executable, "-P", "-c", script, *command],
            cwd=work,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert words in ended.stdout, ended.stderr
        assert str(site) in ended.stdout.splitlines()[0]


def test_what_is_begun_again_is_not_sent_away(run, monkeypatch: pytest.MonkeyPatch):
    run("start gqa")
    answer(reference(GQA))
    run("check gqa")
    monkeypatch.setenv("PRACTICE_NOW", "2027-12-01T10:00:00")
    run("start gqa --again")
    assert "start gqa --again" in run("next")[1]  # nothing is written yet
    answer(reference(GQA) + "# half of it\n")
    assert "check gqa" in run("next")[1]
    assert "gqa" in run("list --state started")[1]


def test_an_interview_that_is_broken_off_keeps_its_report(run, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("practice.drills.put", interrupt)
    code, out, _ = run("mock 30 --seed 7")
    assert code == WRONG
    assert "ended early" in out
    (report,) = Path("workspace").glob("mock-*/report.md")
    assert "To do again" in report.read_text(encoding="utf-8")


def test_files_of_other_editors(run):
    path = answer("")
    path.write_text(reference(GQA), encoding="utf-8-sig", newline="\r\n")
    assert run("check gqa")[0] == RIGHT
    path.write_bytes("# 注意力\n".encode("gbk") + reference(GQA).encode())
    code, _, err = run("check gqa")
    assert code == USAGE
    assert "UTF-8" in err


@pytest.mark.parametrize(
    "text",
    [
        '{"exercises": []}',
        '{"exercises": {"gqa": 3}}',
        '{"sessions": [{}]}',
        '{"cards": {"exercise:gqa": {}}}',
        '{"cards": {"exercise:gqa": {"due": "never"}}}',
        "[]",
    ],
)
def test_progress_that_cannot_be_read_is_left_alone(run, text: str):
    answer("x")
    Path("workspace/progress.json").write_text(text, encoding="utf-8")
    for command in ("stats", "next", "review"):
        code, _, err = run(command)
        assert code == USAGE
        assert "progress.json" in err
    assert Path("workspace/progress.json").read_text() == text


def test_a_folder_in_the_place_of_a_file_is_told(run):
    Path("workspace").write_text("a file")
    code, _, err = run("start gqa")
    assert code == USAGE
    assert "workspace" in err
