r"""The command line: `python -m practice`, the same as `make practice`."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from practice import drills, terminal
from practice.catalogue import LANGUAGES, CatalogueError, Exercise, exercises, find
from practice.process import Judge
from practice.progress import STATES, ProgressError, Workspace, now
from practice.source import empty, reference, stub
from practice.terminal import Closed, ask
from practice.verdict import explain, passed
from practice.words import called_with, of, program, say, speak

RIGHT, WRONG, USAGE, NOT_ATTEMPTED, NO_JUDGE = range(5)
STATE_NAMES = {
    "todo": ("to do", "未开始"),
    "started": ("started", "在写"),
    "passed": ("passed", "已通过"),
    "due": ("due again", "该复习"),
}


class UsageError(Exception):
    r"""What was asked for cannot be done; the message says why and what can."""


def main(arguments: list[str] | None = None) -> int:
    r"""Run one command; return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("--lang")
    chosen, _ = first.parse_known_args(arguments)
    try:
        speak(chosen.lang)
    except ValueError as error:
        print(error, file=sys.stderr)
        return USAGE
    called_with("")
    options = _parser().parse_args(arguments)
    called_with("" if options.workspace == "workspace" else f"--workspace {shlex.quote(options.workspace)}")
    try:
        return options.run(Workspace(Path(options.workspace)), options)
    except (UsageError, ProgressError, CatalogueError) as error:
        print(error, file=sys.stderr)
        return USAGE
    except (RuntimeError, ModuleNotFoundError) as error:
        print(_without_judge(error), file=sys.stderr)
        return NO_JUDGE
    except Closed:
        return WRONG
    except BrokenPipeError:  # whoever read has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return RIGHT
    except OSError as error:
        print(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "), file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print()
        return 130


def _without_judge(error: Exception) -> str:
    return say(f"{error}\nPractising needs more than llmcore: python -m pip install 'llmcore[practice]'",
               f"{error}\n练习需要额外的包：python -m pip install 'llmcore[practice]'")  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program(),
        description=say("Write it from memory, before the tests that llmcore itself passes.",
                        "合上页面重写一遍，由 llmcore 自己要通过的测试来判。"),
        epilog=say("exit codes: 0 right or done, 1 not right yet, 2 cannot be done, 3 not attempted, 4 no judge",
                   "退出码：0 正确或完成，1 还不对，2 做不了，3 还没动手，4 判题器起不来"),
    )  # fmt: skip
    both = argparse.ArgumentParser(add_help=False)  # stand before the command or after it
    for each, default in ((parser, "workspace"), (both, argparse.SUPPRESS)):
        each.add_argument("--lang", choices=LANGUAGES, default=argparse.SUPPRESS,
                          help=say("language; by the locale if not given", "语言，缺省看系统"))  # fmt: skip
        each.add_argument("--workspace", default=default, metavar="DIR",
                          help=say("the folder of your answers (workspace)", "存放答案的文件夹（workspace）"))  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True, metavar=say("command", "命令"))

    def add(
        name: str, run: Callable[[Workspace, Any], int], words: str, *, exercise: str = ""
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=words, description=words, parents=[both])
        command.set_defaults(run=run)
        if exercise:
            command.add_argument(
                "exercise", nargs=exercise, help=say("its name (see list)", "题目名（见 list）")
            )  # type: ignore[arg-type]
        return command

    listed = add(
        "list", list_, say("the exercises, by day, level and state", "列出题目，可按天、难度、状态筛选")
    )
    listed.add_argument("--day", help=say("of one day, by its slug", "某一天的题"))
    listed.add_argument("--level", type=int, choices=range(1, 5), help=say("of one level", "某一难度的题"))
    listed.add_argument("--state", choices=STATES, help=say("in one state", "某一状态的题"))
    add("next", next_, say("the exercise to do next", "接下来做哪一题"))
    start = add("start", start_, say("make the file to write in", "建好要写的文件"), exercise="?")
    start.add_argument("--again", action="store_true",
                       help=say("begin anew; what is there moves to old/", "重新开始，已有的移到 old/"))  # fmt: skip
    for name, run, words in (
        ("check", check, say("judge what you wrote", "判你写的代码")),
        ("watch", watch, say("judge it on every save", "每次保存就判")),
    ):
        command = add(name, run, words, exercise="?")
        command.add_argument(
            "--file", type=Path, help=say("another file than the workspace's", "判另一个文件")
        )
    hint = add("hint", hint_, say("one hint more", "再看一条提示"), exercise="?")
    hint.add_argument("--all", action="store_true", help=say("all of them", "全部提示"))
    show = add(
        "show",
        show_,
        say("the reference beside yours, after passing", "通过之后，参考答案与你的并排"),
        exercise="?",
    )
    show.add_argument("--insist", action="store_true", help=say("before passing too", "没通过也要看"))
    drill = add("bug", bug, say("find the bug in a wrong variant", "找出错误变体里的错"), exercise="?")
    mock = add("mock", mock_, say("a timed interview, with a report", "限时模拟面试，附报告"))
    mock.add_argument("minutes", nargs="?", type=int, default=45)
    review = add("review", review_, say("what is due again", "到期的复习"))
    for command in (drill, mock, review):
        command.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    add("stats", stats, say("what you have done", "你做过什么"))
    return parser


def _named(workspace: Workspace, name: str | None) -> Exercise:
    r"""Return the exercise that is meant: by its name, or the one started last."""
    if name:
        try:
            return find(name)
        except KeyError as error:
            raise UsageError(say(f"no exercise {error.args[0]}; list has them all",
                                 f"没有题目 {error.args[0]}；list 列出全部")) from None  # fmt: skip
    started = [
        (data.get("started", ""), each) for each, data in workspace.exercises.items() if data.get("started")
    ]
    known = [name for _, name in sorted(started) if name in exercises()]
    if not known:
        raise UsageError(say("which exercise? list has them all", "哪一题？list 列出全部"))
    return exercises()[known[-1]]


def list_(workspace: Workspace, options: Any) -> int:
    r"""Print the exercises that fit, with their state."""
    days = {each.day for each in exercises().values()}
    if options.day and options.day not in days:
        raise UsageError(say(f"no day {options.day}; there are {', '.join(sorted(days))}",
                             f"没有 {options.day} 这一天；有 {', '.join(sorted(days))}"))  # fmt: skip
    rows, states = [], {each: workspace.state(each) for each in exercises().values()}
    for each, state in states.items():
        fits = (options.day in (None, each.day) and options.level in (None, each.level)
                and (options.state in (None, state) or (options.state == "passed" and state == "due")))  # fmt: skip
        if fits:
            rows.append([each.name, of(each.title), each.day, "★" * each.level, f"{each.minutes} min",
                         say(*STATE_NAMES[state])])  # fmt: skip
    head = [say("name", "题目"), say("what", "内容"), say("day", "哪一天"), say("level", "难度"), say("time", "时间"),
            say("state", "状态")]  # fmt: skip
    terminal.table(head, rows)
    done = sum(state in ("passed", "due") for state in states.values())
    terminal.line(say(f"{done} of {len(exercises())} passed", f"已通过 {done}/{len(exercises())}"))
    return RIGHT


def next_(workspace: Workspace, options: Any) -> int:
    r"""Print what to do next: what is due, then what is begun, then the first to do."""
    states = {each: workspace.state(each) for each in exercises().values()}
    wanted = [each for state in ("due", "started", "todo") for each in states if states[each] == state]
    if not wanted:
        terminal.line(
            say(
                "All passed, and nothing due. `mock` holds an interview.",
                "全部通过，也没有到期的复习。`mock` 可以模拟面试。",
            )
        )
        return RIGHT
    chosen = wanted[0]
    again = " --again" if states[chosen] == "due" else ""
    command = f"check {chosen.name}" if states[chosen] == "started" else f"start {chosen.name}{again}"
    terminal.line(f"{of(chosen.title)} ({chosen.day}, {chosen.minutes} min): `{program()} {command}`")
    return RIGHT


def start_(workspace: Workspace, options: Any) -> int:
    r"""Write the stub; never over somebody's work."""
    exercise = _named(workspace, options.exercise) if options.exercise else _next(workspace)
    path = workspace.path(exercise)
    if path.exists() and path.read_bytes() != stub(exercise).encode():
        if not options.again:
            if not sys.stdin.isatty():
                raise UsageError(
                    say(f"{path} is there already; --again moves it to {workspace.folder}/old and begins anew",
                        f"{path} 已经存在；--again 会把它移到 {workspace.folder}/old 再重新开始")
                )  # fmt: skip
            question = say(f"{path} is there already. Move it to {workspace.folder}/old and begin anew? [y/n]",
                           f"{path} 已经存在。把它移到 {workspace.folder}/old 再重新开始吗？[y/n]")  # fmt: skip
            if ask(question, ["y", "n"]) == "n":
                return RIGHT
        terminal.line(say("kept: ", "已保留：") + str(workspace.put_away(exercise)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(stub(exercise), encoding="utf-8")
    known = workspace.of(exercise)
    if known.get("passed", "") >= known.get(
        "started", ""
    ):  # a new round: what was needed before is kept apart
        known["before"] = known.get("before", 0) + known["checks"]
        known["checks"] = known["hints"] = 0
    known["started"] = now().isoformat()
    workspace.save()
    terminal.line(f"{of(exercise.title)} ({exercise.minutes} min): {path}")
    terminal.line(say(f"when it is written: `{program()} check {exercise.name}`",
                      f"写好之后：`{program()} check {exercise.name}`"))  # fmt: skip
    if exercise.forbidden:
        names = ", ".join(f"`{name}`" for name in exercise.forbidden)
        terminal.line(say(f"without: {names}", f"不许用：{names}"))
    return RIGHT


def _next(workspace: Workspace) -> Exercise:
    left = [each for each in exercises().values() if workspace.state(each) == "todo"]
    if not left:
        raise UsageError(
            say("every exercise is started or passed; name one", "每道题都开始或通过了；请写出题目名")
        )
    return left[0]


def _answer(workspace: Workspace, exercise: Exercise, options: Any) -> tuple[Path, str]:
    path = options.file or workspace.path(exercise)
    if not path.exists():
        raise UsageError(say(f"{path} is not there; {program()} start {exercise.name} makes it",
                             f"没有 {path}；{program()} start {exercise.name} 会建好"))  # fmt: skip
    return path, _read(path)


def _read(path: Path) -> str:
    r"""Return the text of an answer; editors may put a byte-order mark in front of it."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(
            say(f"{path} is not UTF-8; save it as UTF-8", f"{path} 不是 UTF-8，请存成 UTF-8")
        ) from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def check(workspace: Workspace, options: Any) -> int:
    r"""Judge once."""
    exercise = _named(workspace, options.exercise)
    path, text = _answer(workspace, exercise, options)
    with contextlib.suppress(SyntaxError, ValueError):
        if set(empty(text, exercise.symbols)) == set(exercise.symbols):  # without waiting for torch
            for line in explain(exercise, {"verdict": "not attempted"}):
                terminal.line(line)
            return NOT_ATTEMPTED
    with Judge(exercise.module) as judge:
        return _check(workspace, exercise, path, text, judge)


def _check(workspace: Workspace, exercise: Exercise, path: Path, text: str, judge: Judge) -> int:
    bar = terminal.Bar(say("judging", "判题中"))
    try:
        report = judge(exercise.name, text, path, tell=bar)
    finally:
        bar.clear()
    lines = explain(exercise, report)
    terminal.line(lines[0], "bold green" if passed(report) else "bold red")
    for line in lines[1:]:
        terminal.line("  " + line)
    known = workspace.of(exercise)
    if report["verdict"] == "not attempted":
        return NOT_ATTEMPTED
    known["checks"] += 1
    if passed(report):
        if not known.get("passed") or known["passed"] < known.get("started", ""):
            rating = 2 if known["hints"] or known["checks"] > 3 else 4 if known["checks"] == 1 else 3
            when = workspace.rate(f"exercise:{exercise.name}", rating)
            known["passed"] = now().isoformat()
            terminal.line(
                "  " + say(f"to write again on {when:%Y-%m-%d}; `{program()} show {exercise.name}` compares it with the reference",
                           f"{when:%Y-%m-%d} 再写一遍；`{program()} show {exercise.name}` 与参考答案对照")
            )  # fmt: skip
    elif len(exercise.hints) > known["hints"]:
        terminal.line("  " + say(f"stuck? `{program()} hint {exercise.name}`",
                                 f"卡住了？`{program()} hint {exercise.name}`"))  # fmt: skip
    workspace.save()
    return RIGHT if passed(report) else WRONG


def watch(workspace: Workspace, options: Any) -> int:
    r"""Judge on every save, until it passes or Ctrl-C."""
    exercise = _named(workspace, options.exercise)
    path, _ = _answer(workspace, exercise, options)
    terminal.line(say(f"watching {path}; Ctrl-C ends it", f"正在看着 {path}；Ctrl-C 结束"))
    seen: str | None = None
    said = ""
    with Judge(exercise.module) as judge:
        judge.start()
        while True:
            try:
                text, unreadable = _read(path), ""
            except UsageError as error:
                text, unreadable = seen or "", str(error)
            if unreadable != said:
                said = unreadable
                terminal.line(unreadable)
            if text != seen and not unreadable:
                seen = text
                terminal.line(f"{now().astimezone():%H:%M:%S}")
                if _check(workspace, exercise, path, text, judge) == RIGHT:
                    return RIGHT
            time.sleep(0.3)


def hint_(workspace: Workspace, options: Any) -> int:
    r"""Print the next hint."""
    exercise = _named(workspace, options.exercise)
    known = workspace.of(exercise)
    count = len(exercise.hints) if options.all else min(known["hints"] + 1, len(exercise.hints))
    for number, hint in enumerate(exercise.hints[:count], 1):
        if options.all or number == count:
            terminal.line(f"{number}/{len(exercise.hints)} {of(hint)}")
    known["hints"] = max(known["hints"], count)
    workspace.save()
    return RIGHT


def show_(workspace: Workspace, options: Any) -> int:
    r"""Print the reference, beside the reader's own."""
    exercise = _named(workspace, options.exercise)
    known = workspace.of(exercise)
    if not known.get("passed") and not options.insist:
        raise UsageError(
            say(f"{exercise.name} has not passed yet; hint {exercise.name} helps, --insist shows it all the same",
                f"{exercise.name} 还没有通过；hint {exercise.name} 有提示，--insist 强行显示")
        )  # fmt: skip
    if not known.get("passed"):
        workspace.rate(f"exercise:{exercise.name}", 1)
        known["hints"] = len(exercise.hints)
        workspace.save()
    path = workspace.path(exercise)
    title = say("the reference", "参考答案")
    if path.exists():
        terminal.beside((say("yours", "你的"), _read(path)), (title, reference(exercise)))
    else:
        terminal.code(reference(exercise), title=title)
    return RIGHT


def bug(workspace: Workspace, options: Any) -> int:
    r"""Drill one wrong variant."""
    exercise = _named(workspace, options.exercise) if options.exercise else None
    return drills.bug(workspace, random.Random(options.seed), exercise)


def mock_(workspace: Workspace, options: Any) -> int:
    r"""Hold an interview."""
    if not 10 <= options.minutes <= 240:
        raise UsageError(
            say(
                f"minutes={options.minutes} must be 10 to 240",
                f"minutes={options.minutes} 应在 10 到 240 之间",
            )
        )
    return drills.mock(workspace, options.minutes, random.Random(options.seed))


def review_(workspace: Workspace, options: Any) -> int:
    r"""Go through what is due."""
    return drills.review(workspace, random.Random(options.seed))


def stats(workspace: Workspace, options: Any) -> int:
    r"""Print what has been done."""
    states = [workspace.state(each) for each in exercises().values()]
    rows = [[say(*STATE_NAMES[state]), str(states.count(state))] for state in STATES]
    terminal.table([say("exercises", "手撕"), str(len(states))], rows)
    data = workspace.exercises.values()
    bugs = [s for s in workspace.sessions if s["kind"] == "bug"]
    mocks = [s for s in workspace.sessions if s["kind"] == "mock"]
    asked = [key for key in workspace.cards if key.startswith("question:")]
    terminal.table(
        [say("so far", "累计"), ""],
        [
            [say("checks", "判题"), str(sum(each.get("checks", 0) + each.get("before", 0) for each in data))],
            [say("hints", "提示"), str(sum(each.get("hints", 0) for each in data))],
            [say("bugs found", "找到的错"), f"{sum(s['found'] and s['known'] for s in bugs)}/{len(bugs)}"],
            [say("interviews", "模拟面试"), str(len(mocks))],
            [say("questions met", "见过的八股"), str(len(asked))],
            [say("due now", "现在到期"), str(len(workspace.due()))],
        ],
    )
    return RIGHT


if __name__ == "__main__":
    sys.exit(main())
