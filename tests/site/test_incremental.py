"""What the live server shows after a save is what a whole build makes, page by page, search included."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mkdocs.config import load_config

from sitekit.incremental import Site
from tests.site.repository import copy_repository

# Runs in a copy: builds, changes what its second argument says, shows it, and builds the copy as a whole.
PROGRAM = """
import json, logging, sys
from pathlib import Path
logging.basicConfig(level=logging.WARNING)
from mkdocs.config import load_config
from sitekit.incremental import Site
root = Path.cwd()
site = Site(load_config("mkdocs.en.yml", site_dir=str(root / "shown")), root)
shown = []
for step in json.loads(sys.argv[1]):
    for name, (old, new) in step.items():
        path = root / name
        text = path.read_text(encoding="utf-8")
        assert old in text, name
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
    try:
        shown.append(site.refresh({str(root / name) for name in step}))
    except BaseException as error:
        shown.append(str(error))
Site(load_config("mkdocs.en.yml", site_dir=str(root / "whole")), root)
print(json.dumps(shown))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    copy_repository(tmp_path)
    return tmp_path


def show(copy: Path, *steps: dict[str, tuple[str, str]]) -> tuple[list[list[str] | str | None], str]:
    """Change files step by step; return what was rendered after each, and what was printed."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(steps)]
    done = subprocess.run(command, cwd=copy, capture_output=True, encoding="utf-8", check=False)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def read(folder: Path) -> dict[str, str]:
    """Return every page of a built site, and what can be searched, which has no order."""
    texts = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.suffix in {".html", ".css", ".js", ".xml"}
    }
    index = json.loads((folder / "search" / "search_index.json").read_text(encoding="utf-8"))
    index["docs"].sort(key=lambda one: one["location"])
    return texts | {"search": json.dumps(index, ensure_ascii=False, indent=1)}


def test_what_is_shown_is_what_a_whole_build_makes(copy: Path) -> None:
    page = "docs/en/days/dpo.md"
    shown, _ = show(
        copy,
        {
            page: (
                "## Theory questions",
                "## A new one { #new }\n\n$a_1$ and [masks][llmcore.masks].\n\n## Theory questions",
            )
        },
        {page: ("??? question ", '??? question fresh "Is it new?"\n\n    Yes.\n\n??? question ')},
        {page: ("\n# ", "\n$\\nonsense$\n\n# "), "docs/en/glossary.md": ("\n# ", "\nOne more.\n\n# ")},
        {page: ("\n$\\nonsense$\n\n# ", "\n# ")},
        {"snippets/dpo/train.py": ("import", "# a remark\nimport")},
    )
    gathering = {"quiz.md", "practice.md", "questions.md", "papers.md", "tags.md"}
    assert [sorted(one) if isinstance(one, list) else one for one in (shown[0], shown[1])] == [
        sorted({"days/dpo.md"} | gathering)
    ] * 2
    assert "nonsense" in str(shown[2])
    assert isinstance(shown[3], list)
    assert {"days/dpo.md", "glossary.md"} <= set(shown[3])
    assert isinstance(shown[4], list)
    assert "days/dpo.md" in shown[4]
    parts, whole = read(copy / "shown"), read(copy / "whole")
    assert parts.keys() == whole.keys()
    assert [name for name in parts if parts[name] != whole[name]] == []
    assert "A new one" in parts["search"]
    assert "Is it new?" in parts["questions/index.html"]
    assert "Is it new?" in parts["quiz/index.html"]
    assert "One more." in parts["glossary/index.html"]
    assert "# a remark" in parts["days/dpo/index.html"]
    assert "../../api/masks/#llmcore.masks" in parts["days/dpo/index.html"]


def test_a_link_that_a_save_breaks_is_named_where_it_stands(copy: Path) -> None:
    shown, said = show(copy, {"docs/en/days/self-attention.md": ("#alignment }", "#aligned }")})
    assert isinstance(shown[0], list)
    assert "#alignment" in said


@pytest.mark.parametrize("name", ["llmcore/dpo.py", "overrides/main.html", "mkdocs.base.yml"])
def test_what_can_change_any_page_takes_a_whole_build(copy: Path, name: str) -> None:
    (copy / "mkdocs.en.yml").write_text(
        "site_name: small\ndocs_dir: docs/en\nplugins: []\ntheme: mkdocs\n", encoding="utf-8"
    )
    shutil.rmtree(copy / "docs" / "en")
    (copy / "docs" / "en").mkdir(parents=True)
    (copy / "docs" / "en" / "index.md").write_text("# One\n", encoding="utf-8")
    shown, _ = show(copy, {"docs/en/index.md": ("One", "Two")}, {name: ("\n", "\n\n")})
    assert shown == [["index.md"], None]


def test_a_file_that_came_and_went_touches_nothing_and_a_page_that_went_everything(copy: Path) -> None:
    docs = copy / "docs" / "en"
    shutil.rmtree(docs)
    docs.mkdir()
    for name, text in {"index.md": "# One\n", "api.md": "# Two\n\n::: llmcore.masks\n"}.items():
        (docs / name).write_text(text, encoding="utf-8")
    (copy / "small.yml").write_text(
        "site_name: small\ndocs_dir: docs/en\nplugins: []\ntheme: mkdocs\n", encoding="utf-8"
    )
    site = Site(load_config(str(copy / "small.yml"), site_dir=str(copy / "shown")), copy)
    assert site.refresh({str(docs / "4913")}) == []
    assert site.refresh({str(docs / "index.md")}) == ["index.md"]
    assert site.refresh({str(docs / "api.md")}) is None
    (docs / "new.md").write_text("# Three\n", encoding="utf-8")
    site.pending.clear()
    assert site.refresh({str(docs / "new.md")}) is None
    site.pending.clear()
    (docs / "index.md").unlink()
    assert site.refresh({str(docs / "index.md")}) is None
