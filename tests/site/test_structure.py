"""The repository fits together: nav and files, modules and API pages, snippets and pages, README and tree."""

from __future__ import annotations

import ast
import logging
import re
import shutil
import subprocess
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mkdocs.config import load_config

from sitekit.built import nav_pages
from sitekit.pages import ROOT, SITES

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ufeff\ufffd]")


def load(config: Path) -> Any:
    """Load a configuration of MkDocs."""
    with warnings.catch_warnings(action="ignore"):
        return load_config(str(config))


def at(path: Path, root: Path, words: str) -> str:
    """Return file and line where words stand first, the first line where nowhere."""
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
    number = next((number for number, line in lines if words in line), 1)
    return f"{path.relative_to(root).as_posix()}:{number}"


def nav_problems(root: Path) -> list[str]:
    """Both navs list every page once, in the same order; MkDocs is told to warn of what does not resolve."""
    problems: list[str] = []
    orders: dict[str, list[str]] = {}
    for lang, name in SITES.items():
        config = load(root / name)
        order = orders[lang] = list(nav_pages(config.nav))
        files = {
            path.relative_to(root / "docs" / lang).as_posix() for path in root.glob(f"docs/{lang}/**/*.md")
        }
        where = partial(at, root / name, root)
        problems += [
            f"docs/{lang}/{page}:1: is not in the nav of {name}" for page in sorted(files - set(order))
        ]
        problems += [
            f"{where(page)}: the nav names docs/{lang}/{page}, which does not exist"
            for page in order
            if page not in files
        ]
        problems += [f"{where(page)}: is in the nav twice" for page in set(order) if order.count(page) > 1]
        validation = config.validation
        levels = {
            "nav.omitted_files": validation.nav.omitted_files,
            "nav.not_found": validation.nav.not_found,
            "links.not_found": validation.links.not_found,
            "links.anchors": validation.links.anchors,
            "links.absolute_links": validation.links.absolute_links,
            "links.unrecognized_links": validation.links.unrecognized_links,
        }
        problems += [
            f"{where('validation:')}: {key} is not warn"
            for key, level in levels.items()
            if level != logging.WARNING
        ]
    for zh, en in zip(orders["zh"], orders["en"], strict=False):
        if zh != en:
            one, two = (
                at(root / name, root, page) for name, page in zip(SITES.values(), (zh, en), strict=True)
            )
            problems.append(f"{one}: the navs part here, {two}: and here")
            break
    return problems


def api_problems(root: Path) -> list[str]:
    """Every module has a page in both languages that documents it, and every page has a module."""
    problems: list[str] = []
    modules = {path.stem for path in (root / "llmcore").glob("*.py") if not path.stem.startswith("_")}
    for lang in SITES:
        pages = {
            path.stem: path for path in (root / "docs" / lang / "api").glob("*.md") if path.stem != "index"
        }
        problems += [
            f"llmcore/{name}.py:1: docs/{lang}/api/{name}.md is missing"
            for name in sorted(modules - set(pages))
        ]
        for name, path in sorted(pages.items()):
            shown = re.findall(r"^::: (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
            where = at(path, root, "::: ")
            if name not in modules:
                problems.append(f"{where}: documents llmcore/{name}.py, which does not exist")
            elif shown != [f"llmcore.{name}"]:
                problems.append(f"{where}: documents {shown}, not llmcore.{name}")
    return problems


def snippet_problems(root: Path) -> list[str]:
    """Every snippet is shown on the page of its day, in both languages, with its output if it has one."""
    problems: list[str] = []
    for path in sorted((root / "snippets").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_dir() or "__pycache__" in path.parts:
            continue
        if path.suffix not in (".py", ".out"):
            problems.append(f"{name}:1: is neither a program nor an output")
        if path.suffix == ".out" and not path.with_suffix(".py").is_file():
            problems.append(f"{name}:1: belongs to no program")
        for lang in SITES:
            page = root / "docs" / lang / "days" / f"{path.parent.name}.md"
            if not page.is_file():
                problems.append(
                    f"{name}:1: belongs to docs/{lang}/days/{path.parent.name}.md, which does not exist"
                )
            elif f'--8<-- "{name}"' not in page.read_text(encoding="utf-8"):
                problems.append(f"{name}:1: is not shown on docs/{lang}/days/{path.parent.name}.md")
    return problems


def tree_problems(root: Path, entries: set[str]) -> list[str]:
    """The tree in the README names what is there: every entry of the top level, and nothing else."""
    text = (root / "README.md").read_text(encoding="utf-8")
    before, _, after = text.partition("```text\n")
    top = before.count("\n") + 1
    lines = enumerate(after.split("\n```")[0].split("\n"), top + 1)
    listed = {line.split()[0]: number for number, line in lines if line.strip()}
    lacking = entries - {name.split("/")[0] for name in listed}
    problems = [f"README.md:{top}: the tree lacks {name}" for name in sorted(lacking)]
    for name, number in listed.items():
        if not (root / name).exists():
            problems.append(f"README.md:{number}: {name} does not exist")
        elif (root / name).is_dir() != name.endswith("/"):
            problems.append(f"README.md:{number}: {name}: folders end in /, files do not")
    return problems


def text_problems(root: Path) -> list[str]:
    """No file holds characters that nobody sees, and no docstring makes one by an escape (it is not raw)."""
    problems: list[str] = []
    for folder in ("docs", "snippets", "llmcore", "sitekit", "figures"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".md", ".py", ".out", ".svg"):
                continue
            name, text = (
                path.relative_to(root).as_posix(),
                path.read_bytes().decode("utf-8").replace("\r\n", "\n"),
            )
            lines = enumerate(text.split("\n"), 1)
            problems += [
                f"{name}:{n}: the character {c!r}" for n, line in lines for c in CONTROL.findall(line)
            ]
            for node in ast.walk(ast.parse(text)) if path.suffix == ".py" and folder != "docs" else ():
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
                    doc := ast.get_docstring(node, clean=False)
                ):
                    at = node.body[0].lineno
                    problems += [
                        f"{name}:{at}: an escape in the docstring makes {c!r}"
                        for c in re.findall(r"[\x00-\x09\x0b-\x1f]", doc)
                    ]
    return problems


def tracked(root: Path) -> set[str]:
    """Return the names at the top level of the repository that are not ignored, without git's own files."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        pytest.skip("not a checkout of git")
    names = (line for line in done.stdout.splitlines() if (root / line).exists())
    return {name.split("/")[0] for name in names} - {".gitignore", ".gitattributes"}


@pytest.mark.parametrize("check", [nav_problems, api_problems, snippet_problems, text_problems])
def test_the_repository_fits_together(check: Any) -> None:
    problems = check(ROOT)
    assert not problems, "\n".join(problems)


def test_the_readme_shows_the_tree() -> None:
    problems = tree_problems(ROOT, tracked(ROOT))
    assert not problems, "\n".join(problems)


# --- each check, shown to fail on a small repository in which one thing is broken ---------------------------

CONFIG = """
site_name: small
docs_dir: docs/LANG
theme: {name: mkdocs}
nav: [index.md, {Days: [{A: days/a.md}]}, {API: [api/m.md]}]
validation:
  nav: {omitted_files: warn, not_found: warn}
  links: {not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}
"""
SMALL = {
    "llmcore/__init__.py": "",
    "llmcore/m.py": 'r"""A module."""\n',
    "snippets/a/run.py": "print(1)\n",
    "snippets/a/run.out": "1\n",
    **{f"docs/{lang}/index.md": "# A\n" for lang in SITES},
    **{f"docs/{lang}/api/m.md": "# m\n\n::: llmcore.m\n" for lang in SITES},
    **{
        f"docs/{lang}/days/a.md": '--8<-- "snippets/a/run.py"\n--8<-- "snippets/a/run.out"\n'
        for lang in SITES
    },
    **{name: CONFIG.replace("LANG", lang) for lang, name in SITES.items()},
    "README.md": "# A\n\n```text\ndocs/  pages\nllmcore/m.py  a module\n```\n",
}
ENTRIES = {"docs", "llmcore"}
BROKEN = [
    (nav_problems, {"docs/en/b.md": "# B\n"}, "docs/en/b.md:1: is not in the nav of mkdocs.en.yml"),
    (
        nav_problems,
        {"mkdocs.en.yml": SMALL["mkdocs.en.yml"].replace("index.md", "gone.md")},
        "mkdocs.en.yml:5: the nav names docs/en/gone.md, which does",
    ),
    (
        nav_problems,
        {
            "mkdocs.en.yml": SMALL["mkdocs.en.yml"]
            .replace("index.md, {D", "{D")
            .replace("m.md]}", "m.md]}, index.md")
        },
        "mkdocs.yml:5: the navs part here, mkdocs.en.yml:5: and here",
    ),
    (
        nav_problems,
        {"mkdocs.yml": SMALL["mkdocs.yml"].replace("anchors: warn", "anchors: info")},
        "mkdocs.yml:6: links.anchors is not warn",
    ),
    (api_problems, {"llmcore/new.py": ""}, "llmcore/new.py:1: docs/en/api/new.md is missing"),
    (
        api_problems,
        {"docs/zh/api/old.md": "::: llmcore.old\n"},
        "docs/zh/api/old.md:1: documents llmcore/old.py",
    ),
    (api_problems, {"docs/zh/api/m.md": "::: llmcore.n\n"}, "docs/zh/api/m.md:1: documents"),
    (snippet_problems, {"snippets/a/new.py": ""}, "snippets/a/new.py:1: is not shown on docs/zh/days/a.md"),
    (snippet_problems, {"snippets/a/new.out": ""}, "snippets/a/new.out:1: belongs to no program"),
    (snippet_problems, {"snippets/b/run.py": ""}, "snippets/b/run.py:1: belongs to docs/en/days/b.md"),
    (snippet_problems, {"snippets/a/run.txt": ""}, "snippets/a/run.txt:1: is neither a program nor"),
    (
        text_problems,
        {"docs/zh/index.md": "# A\n\nzero\u200bwidth\n"},
        "docs/zh/index.md:3: the character '\\u200b'",
    ),
    (
        text_problems,
        {"llmcore/m.py": 'def f():\n    """\\frac"""\n'},
        "llmcore/m.py:2: an escape in the docstring",
    ),
    (
        tree_problems,
        {"README.md": "# A\n\n```text\ndocs/  pages\n```\n"},
        "README.md:3: the tree lacks llmcore",
    ),
    (
        tree_problems,
        {"README.md": SMALL["README.md"].replace("m.py", "n.py")},
        "README.md:5: llmcore/n.py does not",
    ),
    (
        tree_problems,
        {"README.md": SMALL["README.md"].replace("docs/ ", "docs ")},
        "README.md:4: docs: folders end",
    ),
]


def small(root: Path, files: dict[str, str]) -> Path:
    """Write a small repository."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(("check", "files", "message"), BROKEN, ids=[message for *_, message in BROKEN])
def test_what_does_not_fit_is_found(tmp_path: Path, check: Any, files: dict[str, str], message: str) -> None:
    options = (ENTRIES,) if check is tree_problems else ()
    assert check(small(tmp_path, SMALL), *options) == []
    problems = check(small(tmp_path, files), *options)
    assert any(message in problem for problem in problems), problems


def test_a_missing_twin_of_an_api_page_is_found(tmp_path: Path) -> None:
    root = small(tmp_path, SMALL)
    shutil.rmtree(root / "docs/en/api")
    assert api_problems(root) == ["llmcore/m.py:1: docs/en/api/m.md is missing"]
