r"""Sessions with questions and answers: find the bug, a timed interview, what is due."""

from __future__ import annotations

import ast
import random
import time
from pathlib import Path
from typing import Any

from practice import terminal
from practice.catalogue import Exercise, Wrong, exercises
from practice.process import Judge
from practice.progress import Workspace, now
from practice.questions import Question, draw, questions
from practice.source import reference, stub, wrong_answer
from practice.terminal import Closed, ask
from practice.verdict import explain, passed
from practice.words import language, of, program, say

# --- find the bug -------------------------------------------------------------------------------------------


def shown_bug(exercise: Exercise, wrong: Wrong) -> tuple[str, set[int]]:
    r"""Return the code of a wrong variant without docstrings, and the lines where it is wrong.

    A line that is missing counts as the line above it and the one below.
    """
    right, mistaken = (_bare(text) for text in (reference(exercise), wrong_answer(exercise, wrong)))
    import difflib

    lines: set[int] = set()
    for kind, _, _, start, stop in difflib.SequenceMatcher(
        None, right.split("\n"), mistaken.split("\n"), autojunk=False
    ).get_opcodes():
        if kind == "delete":
            lines |= {start, start + 1}
        elif kind != "equal":
            lines |= set(range(start + 1, stop + 1))
    return mistaken, lines


def _bare(text: str) -> str:
    r"""Return code without its docstrings and comments' hints: what a reader would be shown."""
    lines = text.split("\n")
    gone: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            gone |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    kept = [line for number, line in enumerate(lines, 1) if number not in gone]
    return "\n".join(
        line for line, after in zip(kept, [*kept[1:], "x"], strict=True) if line.strip() or after.strip()
    )


def bug(workspace: Workspace, chance: random.Random, exercise: Exercise | None = None) -> int:
    r"""Show a wrong variant, ask where it is wrong and why; return 0 where both were found."""
    pool = [
        (each, wrong)
        for each in ([exercise] if exercise else exercises().values())
        for wrong in each.wrong
        if wrong.change
    ]
    fresh = [pair for pair in pool if f"bug:{pair[0].name}/{pair[1].name}" not in workspace.cards]
    due = [pair for pair in pool if workspace.is_due(f"bug:{pair[0].name}/{pair[1].name}")]
    pool = due or fresh or pool
    if not pool:
        terminal.line(say("this exercise has no drill", "这道题没有找错练习"))
        return 2
    (chosen,) = chance.choices(pool, [each.asked**2 for each, _ in pool])
    each, wrong = chosen
    text, places = shown_bug(each, wrong)
    terminal.line(
        say(f"{of(each.title)}: one thing in it is wrong.", f"{of(each.title)}：里面有一处错误。"), "bold"
    )
    terminal.code(text, numbers=True)
    started = time.monotonic()
    line = ask(say("Which line? (a number, Enter to see it)", "哪一行？（输入行号，直接回车看答案）"))
    found = line.isdigit() and int(line) in places
    terminal.line(
        say("Yes.", "对。") if found else say(f"It is line {_lines(places)}.", f"是第 {_lines(places)} 行。")
    )
    near = [other for e in exercises().values() if e.module == each.module for other in e.wrong]
    others = {of(other.title): other for other in [*near, *each.wrong]}  # no two that read the same
    others.pop(of(wrong.title))
    options = [wrong, *chance.sample(list(others.values()), min(3, len(others)))]
    chance.shuffle(options)
    for number, option in enumerate(options, 1):
        terminal.line(f"  {number}. {of(option.title)}")
    answer = ask(say("What is wrong?", "错在哪里？"), [*map(str, range(1, len(options) + 1)), ""])
    known = answer.isdigit() and options[int(answer) - 1] is wrong
    verdict = say("Yes.", "对。") if known else say(f"No: {of(wrong.title)}.", f"不对：{of(wrong.title)}。")
    terminal.line(f"{verdict} {of(wrong.why)}")
    for old, new in wrong.change:
        terminal.line(say("wrong:", "错：") + f" {' '.join(new.split()) or say('nothing', '没有写')}")
        terminal.line(say("right:", "对：") + f" {' '.join(old.split())}")
    workspace.rate(f"bug:{each.name}/{wrong.name}", 3 if found and known else 2 if found or known else 1)
    workspace.sessions.append({"kind": "bug", "at": now().isoformat(), "what": f"{each.name}/{wrong.name}",
                               "found": found, "known": known, "seconds": round(time.monotonic() - started)})  # fmt: skip
    workspace.save()
    return 0 if found and known else 1


def _lines(places: set[int]) -> str:
    return ", ".join(map(str, sorted(places)))


# --- questions ----------------------------------------------------------------------------------------------


def put(question: Question) -> int:
    r"""Ask a question, show the answer and what comes after it; return how well the reader knew it, 1 to 4."""
    terminal.line(question.text, "bold")
    ask(say("Answer aloud, then Enter.", "先说出答案，再按回车。"))
    terminal.markdown(question.answer)
    for title, answer in question.deeper:
        terminal.line(title, "bold")
        ask(say("Answer aloud, then Enter.", "先说出答案，再按回车。"))
        terminal.markdown(answer)
    return int(
        ask(
            say("How was it? 1 not known, 2 with effort, 3 known, 4 at once:",
                "答得如何？1 不会，2 勉强，3 会，4 脱口而出："),
            ["1", "2", "3", "4"],
        )
    )  # fmt: skip


# --- a timed interview --------------------------------------------------------------------------------------


def plan(minutes: int, chance: random.Random) -> tuple[list[Exercise], list[Question]]:
    r"""Draw what fits: exercises for about two thirds of the time, questions of three minutes for the rest.

    What is asked more often is drawn more often; no two exercises ask for the same module.
    """
    left, chosen = minutes * 2 // 3, list[Exercise]()
    pool = list(exercises().values())
    while True:
        pool = [e for e in pool if e.minutes <= left and e.module not in {c.module for c in chosen}]
        if not pool:
            break
        (drawn,) = chance.choices(pool, [e.asked**2 * e.level for e in pool])
        chosen.append(drawn)
        left -= drawn.minutes
    rest = minutes - sum(e.minutes for e in chosen)
    return chosen, draw(language(), max(1, rest // 3), chance)


def mock(workspace: Workspace, minutes: int, chance: random.Random) -> int:
    r"""Hold an interview and write its report; return 0 where every exercise passed."""
    tasks, asked = plan(minutes, chance)
    stamp = f"{now():%Y-%m-%d-%H%M%S}"
    folder = workspace.folder / f"mock-{stamp}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [say(f"# Mock interview of {minutes} minutes, {stamp}", f"# {minutes} 分钟模拟面试，{stamp}"), ""]
    terminal.line(
        say(f"{minutes} minutes: {len(asked)} questions, {len(tasks)} to write. Ctrl-D ends it, with a report.",
            f"{minutes} 分钟：{len(asked)} 道八股，{len(tasks)} 道手撕。按 Ctrl-D 提前结束，也有报告。"), "bold"
    )  # fmt: skip
    started = time.monotonic()
    results: list[dict[str, Any]] = []

    def left() -> str:
        seconds = minutes * 60 - (time.monotonic() - started)
        over = "-" if seconds < 0 else ""
        return f"{over}{abs(int(seconds)) // 60}:{abs(int(seconds)) % 60:02}"

    with Judge() as judge:
        try:
            for number, question in enumerate(asked, 1):
                terminal.line(say(f"\nquestion {number} of {len(asked)}, {left()} left",
                                  f"\n第 {number}/{len(asked)} 题，还剩 {left()}"))  # fmt: skip
                begun = time.monotonic()
                rating = put(question)
                workspace.rate(f"question:{question.key}", rating)
                results.append({"kind": "question", "what": question.key, "rating": rating,
                                "seconds": round(time.monotonic() - begun)})  # fmt: skip
                lines.append(f"- {question.text} — {rating}/4, {_minutes(results[-1])}")
            for exercise in tasks:
                result, closed = _write(workspace, exercise, folder, judge, left, lines)
                results.append(result)
                if closed:
                    raise Closed
        except (Closed, KeyboardInterrupt):
            terminal.line(say("ended early", "提前结束"))
    used = round(time.monotonic() - started)
    wrote = [r for r in results if r["kind"] == "exercise"]
    right = sum(r["verdict"] == "passed" for r in wrote)
    known = [r for r in results if r["kind"] == "question"]
    summary = say(
        f"{right} of {len(tasks)} written passed, {sum(r['rating'] >= 3 for r in known)} of {len(asked)} questions known, "
        f"{used // 60}:{used % 60:02} of {minutes}:00",
        f"手撕 {len(tasks)} 道通过 {right} 道，八股 {len(asked)} 道会 {sum(r['rating'] >= 3 for r in known)} 道，"
        f"用时 {used // 60}:{used % 60:02}，共 {minutes}:00",
    )
    lines += ["", summary, ""]
    done = {r["what"] for r in results if r.get("rating", 3) >= 3 and r.get("verdict", "passed") == "passed"}
    again = [name for name in (*(q.key for q in asked), *(e.name for e in tasks)) if name not in done]
    if again:
        lines.append(say("To do again: ", "需要再练：") + ", ".join(again))
    report = folder / "report.md"
    report.write_text("\n".join(lines) + "\n", encoding="utf-8")
    terminal.line()
    terminal.line(summary, "bold")
    terminal.line(say(f"report: {report}", f"报告：{report}"))
    workspace.sessions.append({"kind": "mock", "at": now().isoformat(), "minutes": minutes, "seconds": used,
                               "results": results})  # fmt: skip
    workspace.save()
    return 0 if right == len(tasks) and tasks else 1


def _write(
    workspace: Workspace, exercise: Exercise, folder: Path, judge: Judge, left: Any, lines: list[str]
) -> tuple[dict[str, Any], bool]:
    r"""Let the reader write one exercise, judge it as often as wanted.

    Returns:
        How it went, and whether the reader left.
    """
    path = folder / f"{exercise.name.replace('-', '_')}.py"
    path.write_text(stub(exercise), encoding="utf-8")
    terminal.line()
    terminal.line(
        say(f"write {of(exercise.title)} ({exercise.minutes} minutes, {left()} left): {path}",
            f"手撕：{of(exercise.title)}（{exercise.minutes} 分钟，还剩 {left()}）：{path}"), "bold"
    )  # fmt: skip
    if exercise.forbidden:
        terminal.line(say("without: ", "不许用：") + ", ".join(exercise.forbidden))
    begun, checks = time.monotonic(), 0
    report: dict[str, Any] = {"verdict": "not attempted"}
    wish = text = ""
    while True:
        try:
            wish = ask(say("Enter to check, s to go on without:", "回车判题，s 跳过："), ["", "s"])
            text = "" if wish else path.read_text(encoding="utf-8-sig")
        except (Closed, KeyboardInterrupt):
            wish = "closed"
        except (OSError, UnicodeDecodeError) as error:
            terminal.line(f"  {path}: {error}")
            continue
        if wish:
            break
        checks += 1
        report = judge(exercise.name, text, path)
        for each in explain(exercise, report):
            terminal.line("  " + each)
        if passed(report):
            break
    result = {"kind": "exercise", "what": exercise.name, "verdict": report["verdict"], "checks": checks,
              "seconds": round(time.monotonic() - begun)}  # fmt: skip
    words = say("passed", "通过") if passed(report) else explain(exercise, report)[0]
    count = say(f"{checks} checks", f"判了 {checks} 次")
    lines.append(f"- {of(exercise.title)} — {words}, {count}, {_minutes(result)} / {exercise.minutes}:00")
    for name in report.get("diagnosis", []):
        wrong = next(each for each in exercise.wrong if each.name == name)
        lines.append(f"    - {of(wrong.title)}: {of(wrong.why)}")
    in_time = result["seconds"] <= exercise.minutes * 60
    workspace.rate(
        f"exercise:{exercise.name}", (3 if in_time and checks == 1 else 2) if passed(report) else 1
    )
    if passed(report):
        workspace.of(exercise)["passed"] = now().isoformat()
    workspace.of(exercise)["checks"] += checks
    return result, wish == "closed"


def _minutes(result: dict[str, Any]) -> str:
    return f"{result['seconds'] // 60}:{result['seconds'] % 60:02}"


# --- what is due --------------------------------------------------------------------------------------------


def review(workspace: Workspace, chance: random.Random) -> int:
    r"""Go through what is due: questions and drills here and now, exercises to be written again."""
    due = workspace.due()
    if not due:
        upcoming = min((card["due"] for card in workspace.cards.values()), default=None)
        terminal.line(
            say("Nothing is due.", "今天没有到期的复习。")
            + (say(f" Next: {upcoming[:10]}.", f"下一次：{upcoming[:10]}。") if upcoming else "")
        )
        return 0
    known = {question.key: question for question in questions(language())}
    writing = []
    try:
        for key in due:
            kind, _, name = key.partition(":")
            if kind == "question" and name in known:
                when = workspace.rate(key, put(known[name]))
                terminal.line(say(f"again on {when:%Y-%m-%d}", f"下次 {when:%Y-%m-%d}"))
                workspace.save()
            elif kind == "bug":
                exercise = exercises().get(name.split("/")[0])
                if exercise is not None and any(
                    w.name == name.split("/")[1] and w.change for w in exercise.wrong
                ):
                    bug(workspace, chance, exercise)
            elif kind == "exercise":
                writing.append(name)
    except Closed:
        workspace.save()
    for name in writing:
        terminal.line(
            say(f"write {name} again: `{program()} start {name} --again`",
                f"再写一遍 {name}：`{program()} start {name} --again`")
        )  # fmt: skip
    return 0
