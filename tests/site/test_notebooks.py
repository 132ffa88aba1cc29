"""The notebooks hold the blocks of their pages, and do what they show when run in order in one namespace.

They are run without a kernel: nothing on a page needs more than a namespace called ``__main__``, so that a
plain interpreter tells the same in a third of the time, with none of Jupyter's packages.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest

from practice.values import ValueFormError
from sitekit import notebooks
from sitekit.built import FOLDERS, plain, read_days, settings
from sitekit.notebooks import NotebookError, notebook
from sitekit.pages import ROOT, SITES

SLUGS = sorted(path.stem for path in (ROOT / "docs" / "zh" / "days").glob("*.md"))
RUN = """
import contextlib, io, json, sys

def run(sources, namespace):
    for source in sources:
        printed, error = io.StringIO(), ""
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(source, "<cell>", "exec"), namespace)
            except Exception as failure:
                error = f"{type(failure).__name__}: {failure}"
        print(json.dumps([printed.getvalue(), error]))

run(json.load(sys.stdin), {"__name__": "__main__"})
"""
PAGE = """---
title: A
---

# A { #top }

It is {{run "is" 1}}, see [b](b.md#x), [m](../api/m.md), [below](#y) and [out](https://example.com).


After two blank lines.

```python title="snippets/a/run.py"
--8<-- "snippets/a/run.py"
```

<!--pytest-codeblocks:expected-output-->
```text title="Output"
--8<-- "snippets/a/run.out"
```

## B { #y data-toc-label="B" }

??? question why-x "Why `x` < **y**?"

    Because $x$.

    ??? note "More"

        Deep.

<!--pytest.mark.xfail(raises=ValueError, reason="shown")-->
```python
raise ValueError("no")
```

<!--pytest.mark.skip(reason="needs a GPU")-->
```python
gpu()
```

<figure class="fig">
<svg viewBox="0 0 1 1" style="height:auto"><title>A [b]</title></svg>
<figcaption>Words.</figcaption>
</figure>

??? example "Folded code"

    ```python
    y = 2


    z = 3
    ```
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository with one day."""
    for name, text in {
        "docs/en/days/a.md": PAGE,
        "snippets/a/run.py": 'x = 1\n\n\nprint("x is", x)\n',
        "snippets/a/run.out": "x is 1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    return tmp_path


def small(repository: str = "") -> Any:
    """Return the notebook of the small repository."""
    config = SimpleNamespace(
        site_url="https://example.org/en/",
        mdx_configs={"pymdownx.snippets": {}},
        extra={"repository": repository},
    )
    return notebook("en", "days/a.md", config)


def code(made: Any) -> list[str]:
    """Return the sources of the code cells but for the first, which is none of the page's."""
    return [cell.source for cell in made.cells if cell.cell_type == "code"][1:]


def test_the_cells_of_a_page(root: Path) -> None:
    made = small()
    nbformat.validate(made)
    first, setup, *cells = [(cell.cell_type[0], cell.source) for cell in made.cells]
    assert "[A](https://example.org/en/days/a/)" in first[1]
    assert "pip install ." in first[1]
    assert setup == ("c", notebooks.SETUP.format(source="."))
    assert "in a checkout of the project" in first[1]
    published = small("https://example.org/our/site").cells
    assert "pip install git+https://example.org/our/site`, then" in published[0].source
    (figure,) = [source for _, source in cells if "data:image" in source]
    image = re.fullmatch(
        r"~~~py\ngpu\(\)\n~~~\n\n!\[A  b \]\(data:image/svg\+xml;base64,([^)]*)\)\n\n"
        r"<small>Words.</small>\n\n\*\*Folded code\*\*",
        figure,
    )
    assert image
    svg = base64.b64decode(image[1]).decode()
    assert svg.startswith('<svg viewBox="0 0 1 1" xmlns="http://www.w3.org/2000/svg" style="color')
    assert [cell for cell in cells if "data:image" not in cell[1]] == [
        (
            "m",
            "# A\n\nIt is 1, see [b](https://example.org/en/days/b/#x), [m](https://example.org/en/api/m/), "
            "[below](https://example.org/en/days/a/#y) and [out](https://example.com).\n\n"
            "After two blank lines.\n\n`snippets/a/run.py`",
        ),
        ("c", 'x = 1\n\n\nprint("x is", x)'),
        (
            "m",
            "## B\n\n<details><summary>Why <code>x</code> &lt; <strong>y</strong>?</summary>\n\n"
            "Because $x$.\n\n<details><summary>More</summary>\n\nDeep.\n\n</details>\n\n</details>",
        ),
        ("c", 'raise ValueError("no")'),
        ("c", "y = 2\n\n\nz = 3"),
    ]
    printing, failing, _ = [cell for cell in made.cells if cell.cell_type == "code"][1:]
    assert [output.text for output in printing.outputs] == ["x is 1\n"]
    assert failing.metadata.tags == ["raises-exception"]
    assert small() == made  # ids and all


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ('{{run "is" 1}}', '{{run "is" 2}}', ValueFormError, "has 1 numbers after it, no number 2"),
        ("z = 3\n    ```", "z = 3", NotebookError, "does not end"),
        (
            '```python title="snippets/a/run.py"\n--8<-- "snippets/a/run.py"\n```\n',
            "",
            NotebookError,
            "an output stands under no block",
        ),
    ],
)
def test_what_cannot_become_a_notebook_is_refused(
    root: Path, old: str, new: str, error: type[Exception], message: str
) -> None:
    page = root / "docs/en/days/a.md"
    assert old in PAGE
    page.write_text(PAGE.replace(old, new), encoding="utf-8")
    with pytest.raises(error, match=message):
        small()


@pytest.mark.parametrize("language", SITES)
def test_a_notebook_has_the_blocks_of_its_page(language: str, built_site: Path) -> None:
    config = settings(language)
    for day in read_days(language, built_site):
        made = notebook(language, f"days/{day.slug}.md", config)
        nbformat.validate(made)
        blocks = [
            "".join(part.itertext()).strip("\n")
            for block in day.article.iter("div")
            if block.get("class") == "language-python highlight"
            for part in block.iter("code")
        ]
        assert code(made) == blocks, day.slug
        words = "\n".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
        outside = re.sub(r"`[^`\n]+`", "", re.sub(r"~~~.*?~~~", "", words, flags=re.DOTALL))
        assert not re.search(r"\{\{|--8<--|<!--|\{ *#|\]\((?!https?:|data:)|^[!?]{3}", outside, re.MULTILINE)
        for heading in day.article.iter("h2"):
            assert plain(heading).split("$")[0] in words
        assert words.count("<details>") == words.count("</details>") > 10


@pytest.mark.parametrize("slug", SLUGS)
def test_a_notebook_does_what_it_shows(slug: str) -> None:
    first, *others = [notebook(language, f"days/{slug}.md") for language in SITES]
    assert all(code(other) == code(first) for other in others), "the languages show different code"
    cells = [cell for cell in first.cells if cell.cell_type == "code"]
    sources = json.dumps([cell.source for cell in cells])
    command, env = [sys.executable, "-c", RUN], os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, input=sources, cwd=ROOT, env=env, capture_output=True, encoding="utf-8", check=False
    )
    assert not done.returncode, done.stderr
    for cell, line in zip(cells, done.stdout.splitlines(), strict=True):
        printed, error = json.loads(line)
        assert not error or "raises-exception" in cell.metadata.get("tags", []), f"{error} in\n{cell.source}"
        shown = "".join(output.text for output in cell.outputs)
        if not error:
            assert printed.rstrip().splitlines() == shown.rstrip().splitlines(), cell.source


def test_where_a_notebook_lies() -> None:
    site = Path("site")
    assert {notebooks.notebook_path(language, "a", site) for language in SITES} == {
        site / FOLDERS[language] / "downloads" / f"a.{language}.ipynb" for language in SITES
    }
