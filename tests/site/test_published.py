"""The mechanism that runs what is published, held against small sites with planted faults.

Each fault must be reported at its file and line; the same site without faults must pass, every block counted.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.site.blocks import Site
from tests.site.ledger import build

ROOT = Path(__file__).resolve().parents[2]

CONFIG = """
site_name: planted
theme: {name: mkdocs, highlightjs: false}
plugins:
  - mkdocstrings:
      handlers:
        python:
          paths: ["."]
          options: {show_source: true, separate_signature: true, show_signature_annotations: true}
markdown_extensions:
  - admonition
  - attr_list
  - md_in_html
  - sitekit.definitions: {base_path: .}
  - pymdownx.details
  - pymdownx.highlight: {pygments_lang_class: true}
  - pymdownx.snippets: {base_path: [.], check_paths: true, dedent_subsections: true}
  - pymdownx.superfences
  - pymdownx.tabbed: {alternate_style: true}
validation: {links: {not_found: warn, anchors: warn}}
"""

PACKAGE = '''"""A package."""

FACTOR: float = 0.5


def half(x: float) -> float:
    """Half of x.

    Examples:
        ```python
        from tiny import half
        assert half(4) == 2
        ```

        >>> from tiny import half
        >>> half(3)
        1.5
    """
    return FACTOR * x
'''


def plant(root: Path, files: dict[str, str]) -> Path:
    """Write a site; `files` are pages unless they name a folder."""
    everything = {"mkdocs.yml": CONFIG, "tiny/__init__.py": PACKAGE, "docs/index.md": "# Start\n", **files}
    for name, text in everything.items():
        path = root / (name if "/" in name or name == "mkdocs.yml" else f"docs/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


def run(root: Path, *options: str, **environment: str) -> tuple[int, str]:
    """Run pytest on a planted site, in a process of its own."""
    (root / "pytest.ini").write_text(
        "[pytest]\npublished_sites = mkdocs.yml\ntestpaths = docs\n", encoding="utf-8"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.site.published",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
    ]
    variables = {name: value for name, value in os.environ.items() if name != "CI"} | environment
    variables |= {"PYTHONPATH": os.pathsep.join([str(root), str(ROOT)]), "COLUMNS": "240", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [*command, *options],
        cwd=root,
        env=variables,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


# --- what a build must find wrong: page, text, place, message -----------------------------------------------

SNIPPETS = {
    "snippets/s.py": "# --8<-- [start:a]\nx = 1\n# --8<-- [end:a]\n# --8<-- [start:open]\ny = 2\n",
    "snippets/bom.py": "\ufeffx = 1\n",
    "snippets/loop.md": 'Again.\n\n--8<-- "snippets/loop.md"\n',
}
FAULTS = [
    ("unclosed", "# A\n\n```python\nx = 1\n", "docs/unclosed.md:3", "no block of code"),
    ("option", "# A\n\n```python titel=x\nx = 1\n```\n", "docs/option.md:3", "no block of code"),
    ("indented", "# A\n\n    ```python\n  x = 1\n    ```\n", "docs/indented.md:3", "no block of code"),
    ("in-list", "# A\n\n- ```python\n  x = 1\n  ```\n", "docs/in-list.md:3", "no block of code"),
    ("beyond", '# A\n\n```python hl_lines="1 3"\nx = 1\n```\n', "docs/beyond.md:3", "beyond the end"),
    ("missing", '# A\n\n```python\n--8<-- "snippets/none.py"\n```\n', "docs/missing.md:4", "no such file"),
    (
        "no-name",
        '# A\n\n```python\n--8<-- "tiny/__init__.py:whole"\n```\n',
        "docs/no-name.md:4",
        "no definition 'whole'",
    ),
    ("curly", "# A\n\n```python\n--8<-- “snippets/s.py”\n```\n", "docs/curly.md:4", "embed"),
    ("unquoted", "# A\n\n```python\n--8<-- snippets/s.py\n```\n", "docs/unquoted.md:4", "embed"),
    ("range", '# A\n\n```python\n--8<-- "snippets/s.py:4:40"\n```\n', "docs/range.md:4", "range|never lines"),
    (
        "section",
        '# A\n\n```python\n--8<-- "snippets/s.py:open"\n```\n',
        "docs/section.md:4",
        "section|no definition|embed",
    ),
    (
        "bom",
        '# A\n\n```python\n--8<-- "snippets/bom.py"\n```\n',
        "docs/bom.md:4|snippets/bom.py:1",
        "byte-order mark",
    ),
    ("recursion", '# A\n\n--8<-- "snippets/loop.md"\n', "docs/recursion.md:3|snippets/loop.md:3", "embed"),
    (
        "skip",
        "# A\n\n<!--pytest-codeblocks:skip-->\n\n```python\nx = 1\n```\n",
        "docs/skip.md:3",
        "without a reason",
    ),
    (
        "far",
        "# A\n\n<!--pytest-codeblocks:cont-->\n\nText.\n\n```python\nx = 1\n```\n",
        "docs/far.md:3",
        "directly below",
    ),
    (
        "first",
        "# A\n\n<!--pytest-codeblocks:cont-->\n```python\nx = 1\n```\n",
        "docs/first.md:3",
        "no block above",
    ),
    (
        "word",
        "# A\n\n<!--pytest-codeblocks:nonsense-->\n```python\nx = 1\n```\n",
        "docs/word.md:3",
        "unknown marker",
    ),
    (
        "lonely",
        "# A\n\n<!--pytest-codeblocks:expected-output-->\n```text\n1\n```\n",
        "docs/lonely.md:3",
        "no block above",
    ),
    (
        "text-mark",
        "# A\n\n<!--pytest-codeblocks:cont-->\n```text\n1\n```\n",
        "docs/text-mark.md:3",
        "Python block",
    ),
    ("link", "# A\n\nText.\n\n[there](index.md#nowhere)\n", "docs/link.md:5", "anchor"),
    (
        "front",
        "---\ntitle: A\n---\n\n# A\n\n```python\nx = 1\n```\n\n```python\nx = 2\n",
        "docs/front.md:11",
        "no block of code",
    ),
]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One site with every fault, built once."""
    root = plant(
        tmp_path_factory.mktemp("faulty"), SNIPPETS | {f"{name}.md": text for name, text, *_ in FAULTS}
    )
    site = build(root / "mkdocs.yml", root)
    assert not site.failure
    return site


@pytest.mark.parametrize(
    ("name", "place", "message"), [(name, *rest) for name, _, *rest in FAULTS], ids=lambda v: v
)
def test_fault_of_a_page_is_found_where_it_is(faulty: Site, name: str, place: str, message: str) -> None:
    page = next(page for page in faulty.pages if page.source == f"docs/{name}.md")
    found = [str(origin) for origin, text in page.problems if re.search(message, text)]
    assert any(origin in place.split("|") for origin in found), page.problems


def test_a_page_without_fault_has_no_problem(faulty: Site) -> None:
    assert [page.problems for page in faulty.pages if page.source == "docs/index.md"] == [[]]


# --- what a reader sees, and where each line came from ------------------------------------------------------

SEEN = {
    "snippets/whole.py": "import math\n\nprint(math.sqrt(16))\n",
    "snippets/part.py": "hidden = 0\n# --8<-- [start:a]\nif True:\n    x = 1\n# --8<-- [end:a]\n",
    "seen.md": """# Seen

```python title="snippets/whole.py" hl_lines="3"
--8<-- "snippets/whole.py"
```

1.  List.

    ``` py
    a = 1
    ```

    !!! note

        ~~~{.python3 .annotate}
        b = 2  # (1)!
        ~~~

=== "Tab"

    ```Python
    --8<-- "tiny/__init__.py:half"
    ```

> ```python
> c = 3
> ```

<!--
```python
hidden = 0
```
-->

````markdown
```python
shown, but as Markdown
```
````

<pre><code class="language-python">d = 1 &lt; 2
assert d</code></pre>

```pycon
>>> 1 + 1
2
```
""",
    "api.md": "# API\n\n::: tiny\n",
}


def test_a_fence_is_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    formats = """
def python(source, *_, **__):
    return f'<div class="language-python"><pre><code>{source}</code></pre></div>'

def other(source, *_, **__):
    return "<pre><code>drawn</code></pre>"
"""
    custom = """
  - pymdownx.superfences:
      custom_fences:
        - {name: solution, class: s, format: !!python/name:custom_formats.python }
        - {name: drawing, class: d, format: !!python/name:custom_formats.other }
"""
    page = "# A\n\n```solution\nx = 1\n```\n\n```drawing\nline\n```\n"
    config = CONFIG.replace("\n  - pymdownx.superfences\n", custom)
    root = plant(tmp_path, {"lib/custom_formats.py": formats, "mkdocs.yml": config, "custom.md": page})
    monkeypatch.syspath_prepend(str(root / "lib"))
    site = build(root / "mkdocs.yml", root)
    custom_page = next(page for page in site.pages if page.source == "docs/custom.md")
    assert [block.lines for block in custom_page.blocks] == [["x = 1"]], site.failure
    assert custom_page.problems == []


def test_tabs_are_kept_markers_are_shown_modules_stand_in_a_folder(tmp_path: Path) -> None:
    config = CONFIG.replace('["."]', "[src]").replace("superfences\n", "superfences: {preserve_tabs: true}\n")
    files = {
        "mkdocs.yml": config,
        "src/apart/__init__.py": PACKAGE.replace("tiny", "apart"),
        "tabs.md": "# A\n\n- Item\n\n\t```python\n\tif True:\n\t\tx = 1\n\n\t# ;--8<-- [start:a]\n\t```\n",
        "api.md": "# API\n\n::: apart\n",
    }
    root = plant(tmp_path, files)
    site = build(root / "mkdocs.yml", root)
    assert [page.problems for page in site.pages] == [[], [], []], site.failure
    blocks = {page.source: page.blocks for page in site.pages}
    shown = [(str(line), str(line.origin)) for line in blocks["docs/tabs.md"][0].lines if line]
    assert shown == [
        ("if True:", "docs/tabs.md:6"),
        ("\tx = 1", "docs/tabs.md:7"),
        ("# --8<-- [start:a]", "docs/tabs.md:9"),
    ]
    openings = {str(block.opening) for block in blocks["docs/api.md"]}
    assert openings == {"src/apart/__init__.py:10", "src/apart/__init__.py:15"}


def test_blocks_and_the_origin_of_their_lines(tmp_path: Path) -> None:
    root = plant(tmp_path, SEEN)
    site = build(root / "mkdocs.yml", root)
    pages = {page.source: page for page in site.pages}
    assert [page.problems for page in site.pages] == [[], [], []], site.failure
    lines = [
        [f"{line.origin} {line}" for line in block.lines if line] for block in pages["docs/seen.md"].blocks
    ]
    assert sorted(lines) == sorted(
        [
            ["snippets/whole.py:1 import math", "snippets/whole.py:3 print(math.sqrt(16))"],
            ["docs/seen.md:10 a = 1"],
            ["docs/seen.md:16 b = 2  # (1)!"],
            [
                "tiny/__init__.py:3 from tiny import FACTOR",
                *(
                    f"tiny/__init__.py:{n} {text}"
                    for n, text in enumerate(PACKAGE.split("\n"), 1)
                    if text and n >= 6
                ),
            ],
            ["docs/seen.md:26 c = 3"],
            ["docs/seen.md:41 d = 1 < 2", "docs/seen.md:42 assert d"],
            ["docs/seen.md:45 >>> 1 + 1", "docs/seen.md:46 2"],
        ]
    )
    # of the API page: the source of `half` and its signature; the two examples are blocks that run
    assert pages["docs/api.md"].definitions == 2
    assert {str(block.opening) for block in pages["docs/api.md"].blocks} == {
        "tiny/__init__.py:10",
        "tiny/__init__.py:15",
    }


# --- whole runs of pytest -----------------------------------------------------------------------------------

CLEAN = {
    "snippets/whole.py": "import math\n\nprint(math.sqrt(16))\n",
    "snippets/whole.out": "4.0\n",
    "stub/__init__.py": "value = 1\n",
    "api.md": "# API\n\n::: tiny\n",
    "run.md": """# Run

```python
--8<-- "snippets/whole.py"
```
<!--pytest-codeblocks:expected-output-->
```text title="Output"
--8<-- "snippets/whole.out"
```

1.  The same again:

    ```python
    --8<-- "snippets/whole.py"
    ```

    <!--pytest-codeblocks:expected-output-->

    ```text
    4.0
    ```

```python
import os, random, sys, stub
os.environ["LEFT"], sys.argv[1:], stub.value, random.random = "1", ["-x"], 2, None
os.chdir("..")
```

<!--pytest-codeblocks:cont-->
```python
assert stub.value == 2 and sys.modules["__main__"].stub is stub
print(__name__, flush=True)
sys.exit()
```

<!--pytest-codeblocks:expected-output-->

```text
__main__
```

```python
import os, random, sys, stub
assert stub.value == 1 and random.random() and "LEFT" not in os.environ and len(sys.argv) == 1
assert not os.listdir()
```

Refused, since the shapes differ:

<!--pytest.mark.xfail(raises=ValueError, reason="the shapes differ")-->
```python
print("so far")
raise ValueError("3 is not 4")
```
<!--pytest-codeblocks:expected-output-->
```text
so far
ValueError: 3 is not 4
```

Not run here: needs a GPU.

<!--pytest.mark.skip(reason="needs a GPU")-->
```python
gpu()
```

```pycon
>>> 1 + 1
2
```
""",
}
# page, text of its one block and what stands around it, what the summary says
BROKEN = [
    (
        "whole",
        '```python\n--8<-- "snippets/broken.py"\n```\n',
        "snippets/broken.py:3: AttributeError: module 'math'",
    ),
    (
        "named",
        '```python\n--8<-- "tiny/bad.py:third"\n```\n',
        "tiny/bad.py:1: ZeroDivisionError",
    ),
    (
        "stale",
        '```python\nprint(1)\n```\nOUT\n--8<-- "snippets/stale.out"\n```\n',
        "snippets/stale.out:1: output: ",
    ),
    (
        "inline",
        "- A:\n\n    ```python\n    print(1)\n    ```\n    OUT\n    2\n    ```\n",
        "docs/inline.md:8: output: ",
    ),
    (
        "short",
        "```python\nprint(1)\nprint(2)\n```\nOUT\n1\n```\n",
        "docs/short.md:8: output: the block prints 2",
    ),
    (
        "long",
        "```python\nprint(1)\n```\nOUT\n1\n2\n```\n",
        "docs/long.md:7: output: the block prints nothing more",
    ),
    ("mute", "```python\nprint(1)\n```\n", "docs/mute.md:1: prints what the page does not show: 1"),
    (
        "chain",
        "```python\nx = 1\n```\nCONT\n```python\nassert x == 2\n```\n",
        "docs/chain.md:6: AssertionError",
    ),
    (
        "alone",
        "```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n",
        "docs/alone.md:6: NameError: name 'x'",
    ),
    ("inner", "```python\ndef f():\n\n    return 1 / 0\n\nf()\n```\n", "docs/inner.md:4: ZeroDivisionError"),
    ("exit", "```python\nimport sys\nsys.exit(3)\n```\n", "docs/exit.md:3: SystemExit: 3"),
    ("os-exit", "```python\nimport os\nos._exit(0)\n```\n", "docs/os-exit.md:3: os._exit(0)"),
    ("input", "```python\ninput()\n```\n", "docs/input.md:2: EOFError"),
    ("loop", "```python\nwhile True: pass\n```\n", "docs/loop.md:2: Timeout: still running after 2 s"),
    (
        "sleep",
        "```python\nimport time\ntime.sleep(99)\n```\n",
        "docs/sleep.md:3: Timeout: still running after 2 s",
    ),
    (
        "flood",
        "```python\nwhile True:\n    print('x' * 9**6)\n```\n",
        "docs/flood.md:3: prints more than 1000000 bytes",
    ),
    (
        "thread",
        "```python\nimport threading as t\nt.Timer(0, int, ['x']).start()\n```\n",
        "docs/thread.md:3: ValueError: invalid literal",
    ),
    ("syntax", "```python\nx = 1\ny = = 2\n```\n", "docs/syntax.md:3: SyntaxError"),
    (
        "warning",
        "```python\nimport warnings\nwarnings.warn('old')\n```\n",
        "docs/warning.md:3: UserWarning: old",
    ),
    (
        "seedless",
        "```python\nimport random\nprint(random.random())\n```\nOUT\n0.8\n```\n",
        "docs/seedless.md:7: output: ",
    ),
    ("type", "XFAIL\n```python\nint([])\n```\nwhy\n", "docs/type.md:3: TypeError: int() argument"),
    (
        "words",
        "XFAIL\n```python\nint('x')\n```\nwhy\nOUT\nValueError: y\n```\n",
        "docs/words.md:8: output: the block prints Val",
    ),
    (
        "works",
        "XFAIL\n```python\nint('1')\n```\nwhy\n",
        "docs/works.md:2: runs to its end, but is said to raise ValueError",
    ),
    (
        "silent",
        "XFAIL\n```python\nraise ValueError\n```\nOUT\nValueError\n```\n",
        "docs/silent.md:1: the page does not tell its reader: why",
    ),
    (
        "unshown",
        "XFAIL\n```python\nint('x')\n```\nwhy\n",
        "docs/unshown.md:2: the page does not show its err",
    ),
    (
        "no-type",
        'MARK.xfail(reason="why")-->\n```python\nint()\n```\nwhy\n',
        "docs/no-type.md:1: pytest.mark.xfail(reason",
    ),
    (
        "no-reason",
        "MARK.skip-->\n```python\nint()\n```\n",
        "docs/no-reason.md:1: pytest.mark.skip: the reason is missing",
    ),
    (
        "no-mark",
        'MARK.slow(reason="a")-->\n```python\nint()\n```\na\n',
        "docs/no-mark.md:1: pytest.mark.slow(reason",
    ),
    ("console", "```pycon\n>>> 1 + 1\n3\n```\n", "docs/console.md:2: output: expected '3', got '2'"),
    (
        "directive",
        "```pycon\n>>> 1 + 1  # doctest: +SKIP\n3\n```\n",
        "docs/directive.md:2: a doctest directive skips this line",
    ),
    ("one", "```pycon\n>>> 1 == 1\n1\n```\n", "docs/one.md:2: output: expected '1', got 'True'"),
    (
        "unparsed",
        'MARK.skip(reason="a GPU")-->\n```python\nx = = 1\n```\na GPU\n',
        "docs/unparsed.md:3: SyntaxError: invalid syntax",
    ),
    (
        "raw",
        '<pre><code class="language-python">x = 1\nassert x == 2</code></pre>\n',
        "docs/raw.md:2: AssertionError",
    ),
    ("api", "# API\n\n::: tiny\n", "tiny/__init__.py:16: output: expected '1.6', got '1.5'"),
]
SHORT = {
    "CONT": "<!--pytest-codeblocks:cont-->",
    "OUT": "<!--pytest-codeblocks:expected-output-->\n```text",
    "XFAIL": '<!--pytest.mark.xfail(raises=ValueError, reason="why", strict=True)-->',
    "MARK": "<!--pytest.mark",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of one site with every fault."""
    files = {
        "snippets/broken.py": "import math\n\nprint(math.sqr(16))\n",
        "snippets/stale.out": "4.0\n",
        "tiny/__init__.py": PACKAGE.replace("1.5\n", "1.6\n"),
        "tiny/bad.py": "def third(x: float = 1 / 0) -> float:\n    return x\n",
    }
    for name, text, _ in BROKEN:
        for word, meaning in SHORT.items():
            indent = "    " if "\n    OUT" in text else ""
            text = text.replace(word, meaning.replace("\n", f"\n{indent}"))
        files[f"{name}.md"] = text
    code, report = run(plant(tmp_path_factory.mktemp("broken"), files), "--block-seconds=2")
    assert code == 1, report
    return report


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name, _, place in BROKEN], ids=lambda value: value
)
def test_fault_of_a_block_is_reported_at_its_line(report: str, name: str, place: str) -> None:
    lines = [line for line in report.splitlines() if line.startswith(f"FAILED docs/{name}.md")]
    # one failure and no other: the blocks beside it, the pages beside it were judged all the same
    assert [place in line for line in lines] == [True], lines or report


def test_a_configuration_that_does_not_load_fails_the_run(tmp_path: Path) -> None:
    code, report = run(
        plant(tmp_path, CLEAN | {"mkdocs.yml": CONFIG.replace("plugins:", "plugins:\n  - none-such")})
    )
    assert code != 0
    assert "mkdocs.yml: Aborted with a configuration error" in report


@pytest.mark.parametrize("environment", [{}, {"BLOCKS_WITHOUT_FORK": "1"}], ids=["forks", "interpreters"])
def test_clean_site_passes_and_is_counted(tmp_path: Path, environment: dict[str, str]) -> None:
    crlf = {"run.md": CLEAN["run.md"].replace("\n", "\r\n")}
    code, text = run(plant(tmp_path, CLEAN | crlf), **environment)
    assert code == 0, text
    for line in (
        "accounted: 10 of 10 Python blocks on 3 pages: 9 run, 0 failed, 0 not reached, 1 shown with a reason",
        "8 runs: the same lines",
        "outputs: 4 compared; one-character changes of them caught: ",
        "2 more blocks, on API pages, are the source they document",
        "docs/run.md:64: needs a GPU",
    ):
        assert line in text, text


def test_outputs_are_written_on_demand(tmp_path: Path) -> None:
    files = CLEAN | {"run.md": CLEAN["run.md"].replace("    4.0", "    3.0\n    2.0").replace("\n", "\r\n")}
    files |= {"snippets/whole.out": ""}
    root = plant(tmp_path, files)
    (root / "snippets/whole.out").unlink()
    code, report = run(root, "--update-outputs")
    assert code == 0, report
    assert "-    2.0" in report
    assert (root / "docs/run.md").read_bytes().decode() == CLEAN["run.md"].replace("\n", "\r\n")
    assert (root / "snippets/whole.out").read_text(encoding="utf-8") == "4.0\n"
    assert run(root)[0] == 0


def test_outputs_are_not_written_in_ci(tmp_path: Path) -> None:
    code, report = run(plant(tmp_path, CLEAN), "--update-outputs", CI="true")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "not in CI" in report


def test_a_page_that_is_not_collected_fails_the_run(tmp_path: Path) -> None:
    code, report = run(plant(tmp_path, CLEAN), "--ignore=docs/run.md")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "published, but not collected: docs/run.md" in report


def test_a_block_that_stands_in_no_source_is_missed(tmp_path: Path) -> None:
    split = '<pre><code class="language-python">x = &#49;&#x0a;y = 2</code></pre>\n'  # two lines, in one
    code, report = run(plant(tmp_path, {"split.md": split}))
    assert code == 1, report
    assert "accounted: 0 of 1 Python blocks" in report
    assert "1 missed" in report


def test_a_block_that_is_not_reached_fails_the_run(tmp_path: Path) -> None:
    root = plant(tmp_path, CLEAN)
    (root / "conftest.py").write_text(
        "def pytest_runtest_protocol(item):\n    return True if item.name == 'line 3' else None\n",
        encoding="utf-8",
    )
    code, report = run(root)
    assert code == 1, report
    assert "1 missed" in report
