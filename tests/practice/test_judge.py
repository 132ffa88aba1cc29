r"""What an answer may try, and the verdict it gets: loops, floods, exits, cheats, what is not its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from practice.catalogue import find
from practice.process import Judge
from practice.source import reference, stub
from practice.verdict import explain
from practice.words import speak

EXERCISE = find("gqa")
REFERENCE = reference(EXERCISE)
FIRST = "        check_input(self.q_proj, hidden_states=hidden_states)\n"
LAST = "return self.o_proj(merge_heads(mixed))"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with pytest.MonkeyPatch.context() as patch, Judge() as judge:
        patch.setenv("PRACTICE_SECONDS", "3")  # loops are waited for
        judge.start()
        yield judge


@pytest.fixture(autouse=True)
def _english() -> None:
    speak("en")


def at_import(lines: str) -> str:
    return f"{lines}\n{REFERENCE}"


def in_forward(lines: str) -> str:
    r"""The reference, with lines in front of what its `forward` does."""
    indented = "".join(f"        {line}\n" for line in lines.split("\n"))
    assert REFERENCE.count(FIRST) == 1
    return REFERENCE.replace(FIRST, indented + FIRST)


def returning(expression: str) -> str:
    assert REFERENCE.count(LAST) == 1
    return REFERENCE.replace(LAST, f"return {expression}")


LINE = REFERENCE[: REFERENCE.index(FIRST)].count("\n") + 1  # of what in_forward puts in

VERDICTS = {
    "no Python": ("def x(:", "import", "your line 1"),
    "an unknown name": (at_import("foo"), "import", "name 'foo' is not defined"),
    "nothing at all": ("x = 1", "import", "GroupedQueryAttention not defined"),
    "a loop at import": (at_import("while True: pass"), "time", "your line 1: `while True: pass`"),
    "a loop": (in_forward("while True: pass"), "time", f"your line {LINE}: `while True: pass`"),
    "a loop that catches": (
        in_forward("while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
        "time",
        "your line",
    ),
    "a tensor too large": (
        in_forward("torch.ones(10**10)"),
        "limit",
        f"your line {LINE}: `torch.ones(10**10)`",
    ),
    "a list too large": (in_forward("[0] * 10**10"), "limit", f"your line {LINE}"),
    "sys.exit": (in_forward("import sys; sys.exit(0)"), "exit", "SystemExit(0)"),
    "sys.exit at import": (at_import("import sys; sys.exit(0)"), "exit", "SystemExit(0)"),
    "os._exit": (in_forward("import os; os._exit(0)"), "exit", "os._exit(0)"),
    "KeyboardInterrupt": (in_forward("raise KeyboardInterrupt"), "exit", "KeyboardInterrupt"),
    "pytest.skip": (in_forward("import pytest; pytest.skip('ok')"), "exit", "your line"),
    "a crash in C": (in_forward("import ctypes; ctypes.string_at(0)"), "crash", "SIGSEGV"),
    "a fork": (in_forward("import os; os.fork()"), "tampered", "os.fork()"),
    "a process": (at_import("import subprocess; subprocess.run(['true'])"), "tampered", "subprocess.Popen"),
    "a signal": (in_forward("import os; os.kill(os.getppid(), 9)"), "tampered", "os.kill"),
    "the network": (
        at_import("import socket; socket.create_connection(('127.0.0.1', 9))"),
        "tampered",
        "socket",
    ),
    "a file of others": (at_import("open('/tmp/not_mine', 'w')"), "tampered", "/tmp/not_mine"),
    "torch's default dtype": (
        at_import("import torch; torch.set_default_dtype(torch.float64)"),
        "tampered",
        "torch.get_default_dtype(): torch.float32 → torch.float64",
    ),
    "gradients switched off": (
        in_forward("torch.set_grad_enabled(False)"),
        "tampered",
        "torch.is_grad_enabled()",
    ),
    "the comparison": (
        at_import("import torch; torch.testing.assert_close = lambda *a, **k: None"),
        "tampered",
        "torch.testing.assert_close",
    ),
    "another module of llmcore": (
        at_import("import llmcore.attention as a; a.softmax = None"),
        "tampered",
        "llmcore.attention.softmax",
    ),
    "the oracle": (
        at_import("import torch.nn.functional as F; F.scaled_dot_product_attention = None"),
        "tampered",
        "torch.nn.functional.scaled_dot_product_attention",
    ),
    "a method of Tensor": (
        at_import("import torch; torch.Tensor.sum = lambda *a: 0"),
        "tampered",
        "torch.Tensor.sum",
    ),
    "the reference imported": (
        "from llmcore.grouped_query import GroupedQueryAttention",
        "forbidden",
        "GroupedQueryAttention",
    ),
    "the reference by its module": (
        "import llmcore.grouped_query as g\nGroupedQueryAttention = g.GroupedQueryAttention",
        "forbidden",
        "GroupedQueryAttention",
    ),
    "the reference inherited": (
        "import llmcore.grouped_query as g\nclass GroupedQueryAttention(g.GroupedQueryAttention): pass",
        "forbidden",
        "GroupedQueryAttention",
    ),
    "the reference loaded again": (
        "import importlib, llmcore.grouped_query as g\n"
        "GroupedQueryAttention = importlib.reload(g).GroupedQueryAttention",
        "tampered",
        "llmcore.grouped_query",
    ),
    "a neighbour that is the answer": (
        "from llmcore.multi_query import MultiQueryAttention as GroupedQueryAttention",
        "forbidden",
        "MultiQueryAttention",
    ),
    "an error of one's own": (
        in_forward("raise RuntimeError('oops')"),
        "raised",
        f"your line {LINE}: `raise RuntimeError('oops')` raised RuntimeError: oops",
    ),
    "a shape": (
        returning(f"({LAST.removeprefix('return ')}).mT"),
        "shape",
        "expected (B=3, L=5, E=48), got (B=3, L=48, E=5)",
    ),
    "parameters of another layout": (
        REFERENCE.replace(
            "self.o_proj = nn.Linear(num_heads * head_dim, hidden_size, bias=bias)",
            "self.o_proj = nn.Linear(num_heads * head_dim, hidden_size, bias=not bias)",
        ),
        "parameters",
        "o_proj.bias [48]",
    ),
    "a cut gradient": (
        returning("self.o_proj(merge_heads(mixed).detach())"),
        "gradient",
        "no gradient reaches",
    ),
    "a value": (returning("self.o_proj(merge_heads(mixed)) * 1.01"), "value", "718 of 720 entries differ"),
    "no error": (
        REFERENCE.replace("        check_divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)\n", ""),
        "error",
        "passed: values",
    ),
    "half precision summed as it is": (
        returning("self.o_proj(merge_heads(mixed) * (1 + 0.02 * (mixed.dtype == torch.bfloat16)))"),
        "dtype",
        "passed: values",
    ),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_every_answer_gets_its_verdict(name: str, judge: Judge):
    text, verdict, words = VERDICTS[name]
    report = judge("gqa", text, "workspace/gqa.py")
    said = "\n".join(explain(EXERCISE, report))
    assert report["verdict"] == verdict, said
    assert words in said


def test_what_is_printed_is_told_and_does_no_harm(judge: Judge):
    report = judge("gqa", in_forward("print('hello' + 10**5 * 'x')"), "workspace/gqa.py")
    assert report["verdict"] == "passed"
    assert any("it printed" in line and "hello" in line for line in explain(EXERCISE, report))
    assert len(report["printed"]) <= 2000


def test_nothing_is_left_for_the_next_answer(judge: Judge):
    before = judge("gqa", REFERENCE, "workspace/gqa.py")
    judge(
        "gqa",
        at_import("import torch; torch.Tensor.sum = None; torch.set_default_dtype(torch.float64)"),
        "gqa.py",
    )
    after = judge("gqa", REFERENCE, "workspace/gqa.py")
    assert before == after
    assert after["verdict"] == "passed"


def test_the_authors_file_is_not_touched(judge: Judge, tmp_path: Path):
    path = tmp_path / "gqa.py"
    text = at_import("from pathlib import Path\nPath(__file__).write_text('gone')")
    path.write_text(text, encoding="utf-8")
    report = judge("gqa", text, path)
    assert report["verdict"] == "passed"  # what it overwrote was a copy
    assert path.read_text(encoding="utf-8") == text
    assert judge("gqa", at_import(f"open({str(path)!r}, 'w')"), path)["verdict"] == "tampered"
    assert path.read_text(encoding="utf-8") == text


def test_a_stub_is_told_from_a_wrong_answer(judge: Judge):
    assert judge("gqa", stub(EXERCISE), "gqa.py")["verdict"] == "not attempted"
    half = stub(EXERCISE).replace("        raise NotImplementedError", "        super().__init__()", 1)
    report = judge("gqa", half, "gqa.py")
    assert report["verdict"] not in ("passed", "not attempted")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_verdict_has_words_in_both_languages(language: str):
    speak(language)
    verdicts = "passed parameters raised import shape value gradient dtype error memory time limit exit"
    for verdict in (*verdicts.split(), "crash", "not attempted", "forbidden", "tampered"):
        (line, *_) = explain(EXERCISE, {"verdict": verdict, "error": "x", "name": "x", "changed": "x"})
        assert line.startswith("gqa")


def test_without_a_fork_the_verdicts_are_the_same(judge: Judge, monkeypatch: pytest.MonkeyPatch):
    texts = [VERDICTS[name][0] for name in ("the comparison", "os._exit")]
    expected = [judge("gqa", text, "workspace/gqa.py") for text in texts]
    monkeypatch.setenv("PRACTICE_WITHOUT_FORK", "1")
    for text, report in zip(texts, expected, strict=True):
        with Judge() as slow:
            found = slow("gqa", text, "workspace/gqa.py")
        assert found["verdict"] == report["verdict"]
        assert found.get("passed") == report.get("passed")
