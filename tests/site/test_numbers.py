"""Numbers in prose are filled in from what was computed; one that was typed is found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from practice.values import FORM, ValueFormError, fill, look_up, reformat
from tests.site.blocks import Line, Origin, Problem
from tests.site.judge import Failure
from tests.site.published import STATE

UNIT = (
    r"[KMGT]i?B(?![\w])|bytes?\b|字节|bits?\b|比特|[KMGTP]?FLOPs?\b|FLOP/s|次浮点|tokens?\b|"
    r"个? ?词元|个? ?token|"
    r"parameters?\b|params?\b|个?参数|[%％×]|\\%|\\times(?!\s*\d)|倍|(?<!\\)times (?!as many)|"
    r"[mµμn]s\b|毫秒|微秒|seconds?\b|秒"
)
NUMERAL = re.compile(
    rf"(?<![\w./\-^])(?<!\^\{{)(?P<number>\d[\d,]*(?:\.\d+)?(?:e-?\d+)?)"
    rf"(?=(?P<unit>[\s~,$\\;{{}}]{{0,3}}(?:{UNIT}))?)"
)
NO_NUMBER = re.compile(
    r"<!--.*?-->"  # not seen
    r"|\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|<[^>]*>|\{\s*[#.:][^}]*\}"  # links, tags, attributes
    r"|`[^`]*`"  # code
    r"|\d{4}\.\d{4,5}|\d+\.\d+\.\d+(?:\.\w+)?"  # arXiv, versions
    r"|(?:Llama|LLaMA|Qwen|Gemma|Gemini|GPT|Phi|Mistral|DeepSeek-V|Falcon|TRL|[Tt]orch|transformers|Python)"
    r"[ -]?\d[\d.]*"
    r"|\d[\d.]*[BM]\b(?!i?B)|\d+(?:\.\d+)? ?节"
    r"|(?i:section|sec\.|theorem|figure|fig\.|table|equation|appendix|chapter|页|图|表|第|式|附录|定理)\s?\d[\d.]*"
)
GIVEN = re.compile(r"\s*<!--given: \S.*-->\s*")


def untied(line: str) -> Iterator[str]:
    """Yield the numerals of a line of prose that are typed and that somebody must have computed.

    Those are numerals next to a unit, and decimal fractions. Names and references are none.
    """
    bare = NO_NUMBER.sub(" ", FORM.sub(" \ufffc ", line))
    for match in NUMERAL.finditer(bare):
        if match["unit"] or "." in match["number"] or "e" in match["number"]:
            yield (match["number"] + (match["unit"] or "")).strip()


def problems(prose: Iterable[Line]) -> Iterator[Problem]:
    """Yield the typed numbers of a page; a paragraph or table below `<!--given: why-->` has a reason."""
    given = started = False
    lines = [Line("", Origin("", 0)), *prose]
    for before, line in pairwise(lines):
        if GIVEN.fullmatch(line):
            given, started = True, False
            continue
        # a fence in between leaves a gap in the numbers of the lines
        ends = not line.strip() or line.origin.line != before.origin.line + 1
        given, started = given and not (started and ends), bool(line.strip())
        if not given:
            for number in untied(line):
                message = f'a number that nothing computes: {number} (write {{{{program "label" nth}}}})'
                yield Problem(line.origin, message)


def test_no_number_of_a_page_is_typed(request: pytest.FixtureRequest) -> None:
    state, found = request.config.stash[STATE], list[Problem]()
    for config, folder in zip(state.configs, ("docs/zh", "docs/en"), strict=True):
        site = state.site(state.root / folder / "index.md")
        assert site is not None
        assert site.pages, config
        for page in site.pages:
            if "/api/" not in page.source:  # and figures have a test of their own
                found += problems(line for line in page.prose if line.origin.path == page.source)
    if found:
        raise Failure(found)


def test_a_typed_number_is_found_at_its_line_and_a_reason_covers_one_paragraph() -> None:
    text = "An error of 0.5.\n\n<!--given: chosen-->\n\n| 0.1 |\n| 4 MB |\n\nAnd 3 tokens."
    prose = [Line(line, Origin("a.md", number)) for number, line in enumerate(text.split("\n"), 1)]
    assert [str(problem.origin) for problem in problems(prose)] == ["a.md:1", "a.md:8"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("The cache takes 128 KiB a token, 4× as much", ["128 KiB", "4×"]),
        ("每个词元 128 KiB，是 MHA 的 1/4，共 8192 个词元，快 3 倍", ["128 KiB", "8192 个词元", "3 倍"]),
        ("an error of 0.81 and $0.9442 \\cdot 2$", ["0.81", "0.9442"]),
        ("8,030,261,248 parameters at $3.2\\times$", ["8,030,261,248 parameters", "3.2\\times"]),
        ("5\\% of $2 \\times 3$", ["5\\%"]),
        ('{{kv_bytes "Llama 3 8B" 3}} KiB a token, {{5 given "2305.13245"}}%', []),
        ("[2305.13245](https://arxiv.org/abs/2305.13245), table 4.2, Llama 3.1 8B, torch 2.13.0, `0.5`", []),
        ("with 8 heads and 2 kv heads, shape $(2, 16, 256)$, theorem 4.1, 第 5.4 节", []),
    ],
)
def test_typed_numbers_are_told_from_names(line: str, found: list[str]) -> None:
    assert list(untied(line)) == found


OUT = """bf16               H  K   KiB a token
Llama 3 8B        32  8         128.0    512.0
x: (2, 16, 256), error -1.5e-7, 8,030,261,248 parameters, ['-8.454']
batch 1
K = 8 5
batch 64
K = 8 15.25
"""


@pytest.mark.parametrize(
    ("label", "nth", "number"),
    [
        ("Llama 3 8B", 3, "128.0"),
        ("x:", 3, "256"),
        ("x:", 4, "-1.5e-7"),
        ("x:", 5, "8,030,261,248"),
        ("x:", 6, "-8.454"),
        ("batch 64 > K = 8", 1, "15.25"),
    ],
)
def test_a_number_is_found_by_its_label(label: str, nth: int, number: str) -> None:
    assert look_up(OUT, label, nth) == number


@pytest.mark.parametrize(
    ("label", "nth", "message"),
    [
        ("K = 8", 1, "2 lines have 'K = 8', not one"),
        ("Llama 4", 1, "0 lines have 'Llama 4', not one"),
        ("Llama 3 8B", 9, "has 4 numbers after it, no number 9"),
    ],
)
def test_a_label_that_names_no_number_is_refused(label: str, nth: int, message: str) -> None:
    with pytest.raises(ValueFormError, match=re.escape(message)):
        look_up(OUT, label, nth)


def test_a_number_is_rounded_once(tmp_path: Path) -> None:
    assert [reformat("15.26", ".1f"), reformat("8030261248", ",d"), reformat("0.049", ".2f")] == [
        "15.3",
        "8,030,261,248",
        "0.05",
    ]
    with pytest.raises(ValueFormError, match="cannot be rounded again"):
        reformat("15.25", ".1f")
    with pytest.raises(ValueFormError, match="fewer than 3 digits"):
        reformat("15.25", ".3f")


def test_a_line_is_filled(tmp_path: Path) -> None:
    (tmp_path / "snippets/day").mkdir(parents=True)
    (tmp_path / "snippets/day/a.out").write_text("loss -0.25 at 3\n", encoding="utf-8")
    line = r'$\frac{{a}}{b}$ {{a "loss"}} at {{a "loss" 2}}, {{5% given "a paper"}}, f"{{x}}"'
    assert fill(line, "day", tmp_path) == r'$\frac{{a}}{b}$ −0.25 at 3, 5%, f"{{x}}"'
    for wrong, message in (
        ("{{a “loss”}}", "a number is"),
        ('{{b "loss"}}', "snippets/day/b.out: no such file"),
        ('{{a "gain"}}', "snippets/day/a.out: 0 lines have 'gain'"),
    ):
        with pytest.raises(ValueFormError, match=re.escape(message)):
            fill(wrong, "day", tmp_path)
