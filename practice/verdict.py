r"""A report of the judge in words: what was wrong first, where, which known mistake it is, what passed."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from practice.catalogue import Exercise, Wrong
from practice.words import of, say

Report = dict[str, Any]
SHAPE = re.compile(r"\(([A-Za-z][\w*+\-/ ]*(?:, ?[\w*+\-/ ]+)*,?)\)")


def passed(report: Report) -> bool:
    r"""Tell whether the answer is right."""
    return report["verdict"] == "passed"


def category_name(category: str) -> str:
    r"""Return what the tests of a category look at."""
    return {
        "shape": say("shapes", "形状"),
        "value": say("values", "数值"),
        "gradient": say("gradients", "梯度"),
        "dtype": say("dtypes and extreme values", "精度与极端值"),
        "error": say("errors for wrong input", "非法输入的报错"),
        "memory": say("memory", "内存"),
    }[category]


def explain(exercise: Exercise, report: Report) -> list[str]:
    r"""Return the lines that tell a reader how it went; the first says it all.

    Markdown's backquotes are the only markup in them.
    """
    lines = [_headline(exercise, report)]
    failed = (report.get("failed") or [None])[0]
    if failed is not None:
        lines += _what_failed(exercise, failed)
    elif "line" in report:
        lines.append(_line(report))
    lines += _diagnosis(exercise, report)
    if report.get("missing") and report["verdict"] not in ("not attempted",):
        names = ", ".join(f"`{name}`" for name in report["missing"])
        lines.append(say(f"still to write: {names}", f"还没有写：{names}"))
    if report.get("printed_characters"):
        first = report["printed"].strip().splitlines() or [""]
        count = report["printed_characters"]
        lines.append(say(f"it printed {count} characters, beginning with: {first[0][:80]}",
                         f"它打印了 {count} 个字符，开头是：{first[0][:80]}"))  # fmt: skip
    lines += _tally(report)
    remarks = {remark["name"].split("[")[0]: remark for remark in report.get("remarks", [])}
    for remark in remarks.values():
        lines.append(
            say(
                f"a remark, not counted: it takes more memory than it has to ({remark['test']}: {_test(remark)})",
                f"附注，不计入成绩：占用的内存超过必要（{remark['test']}：{_test(remark)}）",
            )
        )
    return [line for line in lines if line]


def _headline(exercise: Exercise, report: Report) -> str:
    name, verdict = exercise.name, report["verdict"]
    symbols = ", ".join(f"`{symbol}`" for symbol in exercise.symbols)
    lines = {
        "passed": say(f"{name}: passed", f"{name}：通过"),
        "not attempted": say(f"{name}: not attempted, {symbols} still raises NotImplementedError",
                             f"{name}：还没有动手，{symbols} 仍是 NotImplementedError"),
        "raised": say(f"{name}: it raises an error", f"{name}：运行时抛出异常"),
        "parameters": say(f"{name}: its parameters cannot be matched to the reference's",
                          f"{name}：参数与参考答案的对不上"),
        "import": say(f"{name}: the file does not run", f"{name}：文件运行不起来"),
        "shape": say(f"{name}: a shape is wrong", f"{name}：形状不对"),
        "value": say(f"{name}: a value is wrong", f"{name}：数值不对"),
        "gradient": say(f"{name}: a gradient is wrong", f"{name}：梯度不对"),
        "dtype": say(f"{name}: wrong in low precision or for extreme values", f"{name}：低精度或极端值下不对"),
        "error": say(f"{name}: wrong input is not refused as it must be", f"{name}：非法输入没有按要求拒绝"),
        "memory": say(f"{name}: it takes too much memory", f"{name}：占用内存太多"),
        "time": say(f"{name}: it did not end", f"{name}：没有在时限内结束"),
        "limit": say(f"{name}: it asked for more memory than there is", f"{name}：申请的内存超过上限"),
        "exit": say(f"{name}: it ends the process", f"{name}：它结束了整个进程"),
        "crash": say(f"{name}: the process crashed", f"{name}：进程崩溃"),
        "forbidden": say(f"{name}: it calls what it is to be written without", f"{name}：调用了本题不许用的东西"),
        "tampered": say(f"{name}: it changes what is not its own", f"{name}：它改动了不属于自己的东西"),
    }  # fmt: skip
    line = lines[verdict]
    failed = next(iter(report.get("failed", [])), {})
    detail = {"forbidden": report.get("name"), "tampered": report.get("changed") or failed.get("changed")}
    detail |= {each: report.get("error") for each in ("time", "exit", "crash", "limit", "import")}
    return line + (say(": ", "：") + str(detail[verdict]) if detail.get(verdict) else "")


def _what_failed(exercise: Exercise, failed: Report) -> list[str]:
    lines = []
    part = failed.get("part", "")
    if "theirs" in failed:
        lines.append(say(f"yours: {failed['theirs']}", f"你的：{failed['theirs']}"))
        lines.append(say(f"the reference's: {failed['ours']}", f"参考答案的：{failed['ours']}"))
        lines.append(
            say("names are free, and so are fused or turned matrices; one matrix for all heads is needed, biases as asked for",
                "名字随意，合并、转置的矩阵也可以；所有头要在一个矩阵里，偏置按要求有或没有")
        )  # fmt: skip
        return lines
    if failed.get("kind") == "shape":
        letters = returned_letters(exercise) if part == "output" else []
        expected, got = (_shape(failed[key], letters) for key in ("expected", "got"))
        lines.append(say(f"expected {expected}, got {got}", f"应为 {expected}，得到 {got}"))
    elif failed.get("kind") == "dtype":
        lines.append(say(f"expected {failed['expected']}, got {failed['got']}",
                         f"应为 {failed['expected']}，得到 {failed['got']}"))  # fmt: skip
    elif failed.get("kind") == "value" and "index" in failed:
        index = f"[{', '.join(map(str, failed['index']))}]"
        what = say(part, _part_zh(part))
        expected, got = _numbers(failed["expected"], failed["got"])
        count, size, error = failed["count"], failed["of"], f"{failed['error']:.6g}"
        lines.append(
            say(f"{what}{index}: expected {expected}, got {got}; {count} of {size} entries differ, by {error} at most",
                f"{what}{index}：应为 {expected}，得到 {got}；{size} 个数里有 {count} 个不同，最大相差 {error}")
        )  # fmt: skip
    if failed.get("raised"):
        lines.append(_line(failed) + say(" raised ", " 抛出 ") + failed["error"].splitlines()[0])
    elif "line" in failed:
        lines.append(_line(failed))
    elif "message" in failed and "kind" not in failed:
        lines.append(_message(failed["message"]))
    lines.append(
        say(f"test: {_test(failed)} ({failed['test']})", f"测试：{_test(failed)}（{failed['test']}）")
    )
    return lines


def _diagnosis(exercise: Exercise, report: Report) -> list[str]:
    known = {wrong.name: wrong for wrong in exercise.wrong}
    found: list[Wrong] = [known[name] for name in report.get("diagnosis", [])]
    lines = []
    for wrong in found[:3]:
        number = list(known).index(wrong.name) + 1
        lines.append(
            say(f"this looks like a known mistake: {of(wrong.title)}. {of(wrong.why)} (mistake {number} of this exercise)",
                f"像是一个已知的错误：{of(wrong.title)}。{of(wrong.why)}（本题第 {number} 个常见错误）")
        )  # fmt: skip
    return lines


def _tally(report: Report) -> list[str]:
    counts = report.get("passed")
    if not counts:
        return []
    shown = ", ".join(f"{category_name(name)} {count}" for name, count in counts.items() if count)
    lines = []
    if shown:
        lines.append(say(f"passed: {shown}", f"已通过：{shown}"))
    if report.get("left"):
        lines.append(
            say(f"not run yet: {report['left']} more tests", f"还没有跑：另外 {report['left']} 个测试")
        )
    return lines


def _line(found: Report) -> str:
    code = f": `{found['code']}`" if found.get("code") else ""
    return say(f"your line {found['line']}{code}", f"你的第 {found['line']} 行{code}")


def _test(failed: Report) -> str:
    name, _, parameters = failed["name"].partition("[")
    words = name.removeprefix("test_").replace("_", " ")
    return words + (f" [{parameters}" if parameters else "")


def _message(message: str) -> str:
    first = _first(message)
    if first.startswith("DID NOT RAISE"):
        wanted = first.split()[-1].strip("<>'").rsplit(".")[-1]
        return say(f"{wanted} must be raised, nothing was", f"应当抛出 {wanted}，却什么也没有抛出")
    if first == "no gradient":
        return say("no gradient reaches an input or a parameter", "没有梯度传到某个输入或参数")
    if first.startswith(("Tensor-likes", "Scalars")):
        return " ".join(re.findall(r"(?:Expected|Greatest absolute).*", message)) or first
    return "" if first.startswith("assert ") else first  # the test's name says more


def _first(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    line = lines[0] if lines else ""
    return re.sub(r"^(?:AssertionError|Failed|_pytest\.\w+\.Failed)(?::\s*|$)", "", line) or (
        lines[1] if len(lines) > 1 else line
    )


def _numbers(*values: float) -> list[str]:
    r"""Write numbers that differ so that one sees it."""
    short = [f"{value:.6g}" for value in values]
    return short if len(set(short)) == len(short) else [f"{value:.17g}" for value in values]


def _part_zh(part: str) -> str:
    return (
        part.replace("gradient of input", "对输入的梯度 ")
        .replace("gradient of ", "梯度 ")
        .replace("output", "输出")
    )


def _shape(sizes: Any, letters: list[str]) -> str:
    r"""Return a shape, with the letters that the docstring gives to what is returned where they fit."""
    if not isinstance(sizes, list):
        return f"`{sizes}`"
    if letters and len(letters) == len(sizes):
        return f"({', '.join(f'{letter}={size}' for letter, size in zip(letters, sizes, strict=True))})"
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def returned_letters(exercise: Exercise) -> list[str]:
    r"""Return the letters of the shape that the last symbol's docstring says is returned."""
    tree = ast.parse(exercise.source.read_text(encoding="utf-8"))
    node = next((n for n in tree.body if getattr(n, "name", "") == exercise.symbols[-1]), None)
    if isinstance(node, ast.ClassDef):
        node = next((n for n in node.body if getattr(n, "name", "") == "forward"), None)
    if not isinstance(node, ast.FunctionDef):
        return []
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    returns = text.split("Returns:", 1)[-1] if "Returns:" in text else ""
    found = SHAPE.search(returns)
    return [letter.strip() for letter in found[1].split(",") if letter.strip()] if found else []
