r"""The exercises as a whole: every definition has one, both languages say all, what is cut is right."""

import ast
import inspect
from pathlib import Path

import pytest

from practice.catalogue import ROOT, CatalogueError, Exercise, exercises, find, read
from practice.drills import shown_bug
from practice.source import reference, stub, untouched, wrong_answer
from sitekit.indexes import day_paths

EXERCISES = list(exercises().values())
RIGHT = Path(__file__).parent / "right"
each_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=[each.name for each in EXERCISES])

# Guards that other definitions call, and what they return: nothing to write from memory.
NO_EXERCISE = {"softmax.check_softmax_input", "dpo.DPOOutput"}


def test_every_definition_of_llmcore_is_in_an_exercise():
    asked = {f"{each.module}.{symbol}" for each in EXERCISES for symbol in each.symbols}
    public = set()
    for path in (ROOT / "llmcore").glob("[!_]*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        public |= {
            f"{path.stem}.{node.name}"
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        }
    assert public - asked == NO_EXERCISE
    assert asked <= public


def test_there_are_as_many_as_promised():
    assert len(EXERCISES) >= 25
    assert sum(len(each.wrong) for each in EXERCISES) >= 150
    assert len(list(RIGHT.glob("*/*.py"))) >= 40
    assert {path.parent.name for path in RIGHT.glob("*/*.py")} <= set(exercises())


def test_every_written_day_has_exercises():
    assert {path.stem for path in day_paths("zh")} == {each.day for each in EXERCISES}


@each_exercise
def test_what_is_written_in_both_languages(exercise: Exercise):
    sentences = [exercise.title, *exercise.hints, *(wrong.why for wrong in exercise.wrong)]
    for text in sentences:
        assert any("\u4e00" <= character <= "\u9fff" for character in text["zh"]), text["zh"]
    for text in [*sentences, *(wrong.title for wrong in exercise.wrong)]:
        assert not any("\u3000" <= character <= "\u9fff" for character in text["en"]), text["en"]
    for wrong in exercise.wrong:
        assert len(wrong.why["en"]) > 40, f"{wrong.name}: what happens, and why?"
        assert not wrong.title["en"].endswith("."), wrong.title
        assert wrong.why["en"].rstrip("`*").endswith((".", "?")), wrong.why
        assert wrong.why["zh"].rstrip("`*").endswith(("。", "？")), wrong.why


def _definition(tree: ast.Module, name: str) -> ast.FunctionDef | ast.ClassDef:
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return next(node for node in found if node.name == name)


@each_exercise
def test_the_stub_is_the_reference_without_its_bodies(exercise: Exercise):
    empty, whole = ast.parse(stub(exercise)), ast.parse(reference(exercise))
    assert untouched(stub(exercise), exercise.symbols) == list(exercise.symbols)
    assert untouched(reference(exercise), exercise.symbols) == []
    for symbol in exercise.symbols:
        one, other = (_definition(tree, symbol) for tree in (empty, whole))
        assert ast.get_docstring(one) == ast.get_docstring(other)
        signatures = [
            [(n.name, ast.unparse(n.args)) for n in ast.walk(node) if isinstance(n, ast.FunctionDef)]
            for node in (one, other)
        ]
        public = [
            [each for each in names if not each[0].startswith("_") or each[0] == "__init__"]
            for names in signatures
        ]
        assert [each for each in public[0] if each in public[1]] == public[0]
    for part in exercise.parts:
        assert part not in stub(exercise)
    bodies = [
        node.body[1:] if ast.get_docstring(node) else node.body
        for node in ast.walk(empty)
        if isinstance(node, ast.FunctionDef)
    ]
    assert all(ast.unparse(body) == "raise NotImplementedError" for body in bodies)  # type: ignore[arg-type]


@each_exercise
def test_a_file_of_ours_runs(exercise: Exercise):
    for text in (
        stub(exercise),
        reference(exercise),
        *(wrong_answer(exercise, wrong) for wrong in exercise.wrong),
    ):
        namespace: dict[str, object] = {"__name__": "answer"}
        exec(compile(text, exercise.name, "exec"), namespace)
        assert all(callable(namespace[symbol]) for symbol in exercise.symbols)


@each_exercise
def test_the_drill_shows_where_it_is_wrong(exercise: Exercise):
    for wrong in exercise.wrong:
        if wrong.change:
            text, lines = shown_bug(exercise, wrong)
            ast.parse(text)
            assert lines
            assert all(1 <= line <= text.count("\n") + 1 for line in lines)
            assert len(lines) <= 14, f"{wrong.name}: {len(lines)} lines differ, nobody finds the one"
            assert '"""' not in text


def test_an_exercise_is_found_by_its_definition():
    assert find("GroupedQueryAttention").name == "gqa"
    assert find("gqa").name == "gqa"
    with pytest.raises(KeyError, match="gqa"):
        find("gqaa")


GOOD = (ROOT / "practice" / "exercises" / "gqa.toml").read_text(encoding="utf-8")
FAULTS = {
    "level = 3": ("level = 9", "level=9 must be 1 to 4"),
    "minutes = ": ("minuets = ", "'minutes'] missing"),
    'name = "': ('name = "Not kebab ', "lower-case words"),
    "title = {en": ("title = {fr", "must have words in en and zh"),
    "[[wrong]]": ("[wrong", "gqa.toml: "),
}


@pytest.mark.parametrize("old", FAULTS)
def test_a_file_that_breaks_a_rule_is_refused(old: str, tmp_path: Path):
    new, words = FAULTS[old]
    path = tmp_path / "gqa.toml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    assert GOOD.count(old)
    with pytest.raises(CatalogueError) as refused:
        read(path)
    assert words in str(refused.value)
    assert str(refused.value).startswith("gqa.toml")


def test_a_change_must_fit_the_reference_once(tmp_path: Path):
    exercise = find("gqa")
    wrong = next(each for each in exercise.wrong if each.change)
    never = type(wrong)(wrong.name, wrong.title, wrong.why, (("no such line", "x"),))
    with pytest.raises(CatalogueError, match="0 times"):
        wrong_answer(exercise, never)
    other = type(wrong)(wrong.name, wrong.title, wrong.why, (), "def something_else(): pass")
    with pytest.raises(CatalogueError, match="defines none of"):
        wrong_answer(exercise, other)


def test_the_documentation_of_the_format_names_every_field():
    import practice.catalogue

    described = inspect.getdoc(practice.catalogue) or ""
    for field in (
        "day",
        "module",
        "symbols",
        "parts",
        "forbidden",
        "level",
        "minutes",
        "asked",
        "judged",
        "hints",
    ):
        assert f"{field} = " in described
