"""Chinese prose keeps to the rules of AutoCorrect: blanks around Latin words, full-width marks."""

from __future__ import annotations

import re
from pathlib import Path

import autocorrect_py
import pytest

from sitekit.pages import ROOT

TEXTS = ("README.zh.md", "docs/zh/**/*.md", "figures/*.py", "sitekit/*.py", "overrides/**/*.html")
TEXTS += ("overrides/assets/javascripts/**/*.js",)
KINDS = {".md": "markdown", ".py": "python", ".html": "html", ".js": "javascript"}


def prose_problems(path: Path, root: Path) -> list[str]:
    """Return what breaks a rule, a line each, with how it should be."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":  # what stands in a folded question is indented, and would be taken for code
        text = re.sub(r"^ +", "", text, flags=re.MULTILINE)
    found = autocorrect_py.lint_for(text, KINDS[path.suffix])
    where = path.relative_to(root).as_posix()
    return [f"{where}:{one.line}: {one.old.strip()}\n  should be {one.new.strip()}" for one in found.lines]


@pytest.mark.parametrize("pattern", TEXTS)
def test_chinese_prose_is_set_well(pattern: str) -> None:
    paths = sorted(ROOT.glob(pattern))
    assert paths
    problems = [problem for path in paths for problem in prose_problems(path, ROOT)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "# 甲\n\n用GQA缩小缓存，再算。\n"),
        ("a.md", '??? note "甲"\n\n    用GQA缩小缓存，再算。\n'),
        ("a.py", '"""用GQA缩小缓存。"""\n'),
        ("a.html", "<p>用GQA缩小缓存。</p>\n"),
        ("a.js", 'const a = "用GQA缩小缓存";\n'),
    ],
)
def test_a_lacking_blank_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (problem,) = prose_problems(tmp_path / name, tmp_path)
    line = 3 if name == "a.md" else 1
    assert problem.startswith(f"{name}:{line}: ")
    assert "用 GQA 缩小缓存" in problem
