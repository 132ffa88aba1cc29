"""What other tools run, catch and locate on the same cases: `python -m tests.drift.rivals [FOLDER]`.

A case is a page of the site in FOLDER; its `manifest.json` says which blocks run to their end and which
planted fault must be reported where. Each tool gets each page alone, in a fresh copy of the site and a
process of its own, set up as its documentation says and with the options that serve it best (`TOOLS`); the
marks of a page (continues, skipped) are first written in the tool's own words, on the lines where they stand.

- runs: blocks of the manifest that ran to their end on the clean page
- catches: faults with which the page fails, where it passed without (a run that does not end catches nothing)
- locates: caught faults whose file and line stand somewhere in what the tool prints
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import re
import runpy
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.site.planted import CASES, CLEAN, Cases, edit

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 10
FORK = multiprocessing.get_context("fork")
# imported once, by the parent of all runs
PRELOAD = [
    "pytest",
    "mkdocs.commands.build",
    "mkdocstrings",
    "pymdownx.superfences",
    "black",
    "numpy",
    "torch",
]
FENCE = re.compile(r"(?P<indent>[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*)(?P<ticks>`{3,}|~{3,})(?P<info>[^`\r\n]*)")
PYTHON = re.compile(r"\s*\{?\s*\.?(py|python|python3|pycon)\b", re.IGNORECASE)
CONTINUES, SKIPPED = "<!--pytest-codeblocks:cont-->", "<!--pytest.mark.skip("


def marked(text: str, info: Callable[[str, str], str]) -> str:
    """Rewrite the info string of each Python fence by `info(string, mark)`; lines stay where they are."""
    lines, open_fence, mark = text.split("\n"), "", ""
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if open_fence:
            closes = fence and fence["ticks"].startswith(open_fence) and not fence["info"].strip()
            open_fence = "" if closes else open_fence
        elif fence:
            open_fence = fence["ticks"]
            if PYTHON.match(fence["info"]):
                lines[number] = line[: fence.start("info")] + info(fence["info"], mark) + line[fence.end() :]
            mark = ""
        elif comment := line.lstrip("> \t").rstrip():
            unless = mark if comment.startswith("<!--") else ""
            mark = next((each for each in (CONTINUES, SKIPPED) if comment.startswith(each)), unless)
    return "\n".join(lines)


def added(info: str, option: str) -> str:
    """Add an option to an info string: inside of its braces, where it ends in some."""
    info = info.rstrip()
    return f"{info[:-1].rstrip()} {option}}}" if info.endswith("}") else f"{info} {option}"


def plain(text: str) -> str:
    """The marks are pytest-codeblocks' own."""
    return text


def in_braces(text: str) -> str:
    """pytest-markdown-docs: an option in the info string, in braces as Material needs them."""
    word = {CONTINUES: "continuation", SKIPPED: "notest"}

    def info(old: str, mark: str) -> str:
        braced = old.strip() if "{" in old else f"{{.{old.strip()}}}"
        return added(braced, word[mark]) if mark else old

    return marked(text, info)


def settings(text: str) -> str:
    """pytest-examples: settings in the info string, read by the test below."""
    word = {CONTINUES: "continue", SKIPPED: "skip"}

    def info(old: str, mark: str) -> str:
        braced = old if "{" in old else f"{old.rstrip()} {{}}"
        return added(braced, f'test="{word[mark]}"') if mark else old

    return marked(text, info)


def comments(text: str) -> str:
    """Sybil: a comment that skips the next example; a page is one namespace anyway."""
    return re.sub(r"<!--pytest\.mark\.skip\(.*-->", "<!--- skip: next -->", text)


def executed(text: str) -> str:
    """markdown-exec: every Python block is executed and shown; a page with a continued one is one session."""
    options = 'exec="on" source="above"' + (' session="page"' if CONTINUES in text else "")
    known = re.compile(
        r"\s*\{?\s*\.?(py|python|pycon)\b"
    )  # another language would leave the fence unrendered

    def info(old: str, mark: str) -> str:
        return added(old, options) if mark != SKIPPED and known.match(old) else old

    return marked(text, info)


EXAMPLES = """
import os
import pytest
from pytest_examples import find_examples

NAMES = {}

@pytest.mark.parametrize("example", list(find_examples(*os.environ["SOURCES"].splitlines())), ids=str)
def test_example(example, eval_example):
    test = example.prefix_settings().get("test")
    if test == "skip":
        pytest.skip()
    run = eval_example.run_print_check if "#> " in example.source else eval_example.run
    NAMES[example.group] = run(example, module_globals=NAMES[example.group] if test == "continue" else None)
"""
MKTESTDOCS = """
import importlib
import os
import pathlib
import pytest
from mktestdocs import check_docstring, check_md_file, get_codeblock_members, register_executor
from mktestdocs.__main__ import exec_python

SOURCES = os.environ["SOURCES"].splitlines()
LANGUAGES = ["python", "py", "python3"]
for language in LANGUAGES:
    register_executor(language, exec_python)

def members():
    for source in SOURCES:
        if source.endswith(".py"):
            module = importlib.import_module(source.removesuffix(".py").replace("/", "."))
            named = (each for each in vars(module).values() if hasattr(each, "__module__"))
            yield from get_codeblock_members(*(each for each in named if each.__module__ == module.__name__))

@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", [source for source in SOURCES if source.endswith(".md")])
def test_page(page, language):
    check_md_file(page, memory="pytest-codeblocks:cont" in pathlib.Path(page).read_text(), lang=language)

@pytest.mark.parametrize("member", list(members()))
def test_docstring(member):
    check_docstring(member, lang="python")
"""
SYBIL = """
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

def fences(language):
    parser = PythonCodeBlockParser()
    parser.codeblock_parser.language = language
    return parser

pytest_collect_file = Sybil(
    parsers=[*map(fences, ["python", "py", "python3", "pycon"]), SkipParser()],
    patterns=["*.md", "*.py"],
    document_types={".py": PythonDocStringDocument},
).pytest()
"""


class Tool(NamedTuple):
    """How a tool is set up: what `python -m` gets, and what the copy of the site gets."""

    package: str
    command: str
    marks: Callable[[str], str] = plain
    files: tuple[tuple[str, str], ...] = ()
    plugin: str = ""  # one more plugin of the site's
    sources: bool = True  # whether the page's sources follow the command


PYTEST = "pytest -p no:cacheprovider --rootdir ."
BUILD = "mkdocs build --strict --config-file one.yml --site-dir built"
OURS = "this site"
TOOLS = {
    "pytest-codeblocks": Tool("pytest-codeblocks", f"{PYTEST} -p pytest_codeblocks.plugin --codeblocks"),
    "pytest-examples": Tool(
        "pytest-examples",
        f"{PYTEST} -p pytest_examples --tb=line test_examples.py",  # the other styles need Python 3.12
        settings,
        (("test_examples.py", EXAMPLES),),
        sources=False,
    ),
    "pytest-markdown-docs": Tool(
        "pytest-markdown-docs",
        f"{PYTEST} -p pytest_markdown_docs.plugin --markdown-docs --markdown-docs-syntax=superfences",
        in_braces,
    ),
    "mktestdocs": Tool(
        "mktestdocs", f"{PYTEST} test_docs.py", files=(("test_docs.py", MKTESTDOCS),), sources=False
    ),
    "Sybil": Tool("sybil", f"{PYTEST} -p no:doctest", comments, (("conftest.py", SYBIL),)),
    "markdown-exec": Tool("markdown-exec", BUILD, executed, plugin="markdown-exec", sources=False),
    "mkdocs --strict": Tool("mkdocs", BUILD, sources=False),
}


class Outcome(NamedTuple):
    """What came of one run: whether the page passed, whether it ended, its output, the blocks that ran."""

    passed: bool
    ended: bool
    output: str
    hits: set[str]


def copy(folder: Path, target: Path, tool: Tool, page: str, edits: list[dict[str, str]]) -> list[str]:
    """Write the site of one page, its faults, the tool's marks and files; return the sources of the page."""
    shutil.copytree(folder / "site", target)
    edit(target, edits)
    text = (target / page).read_text(encoding="utf-8")
    modules = (name.replace(".", "/") for name in re.findall(r"^::: ([\w.]+)", text, re.MULTILINE))
    files = (f"{module}{end}" for module in modules for end in (".py", "/__init__.py"))
    sources = [page, *(name for name in files if (target / name).is_file())]
    links = (os.path.normpath(f"{page}/../{link}") for link in re.findall(r"\]\(([^)#:]+\.md)", text))
    keep = {page, "docs/index.md", *links}
    for path in target.glob("docs/**/*.md"):
        if path.relative_to(target).as_posix() not in keep:
            path.unlink()
    for path in [*target.rglob("*.md"), *(target / module for module in sources[1:])]:
        path.write_bytes(tool.marks(path.read_bytes().decode("utf-8")).encode())
    config = (target / "mkdocs.yml").read_text(encoding="utf-8")
    if tool.plugin:
        config = config.replace("\nplugins:\n", f"\nplugins:\n  - {tool.plugin}\n")
    site = {"mkdocs.yml": config, "one.yml": f"INHERIT: mkdocs.yml\nnav: [{json.dumps(page[5:])}]\n"}
    for name, text in [*site.items(), *tool.files]:
        (target / name).write_text(text, encoding="utf-8")
    return sources


def start(command: list[str], folder: Path, log: Path, environment: dict[str, str]) -> None:
    """Be `python -m COMMAND` in a folder, in the process just forked for it."""
    os.setsid()
    output, nothing = os.open(log, os.O_WRONLY | os.O_CREAT), os.open(os.devnull, os.O_RDONLY)
    for descriptor, standard in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, standard)
    os.chdir(folder)
    os.environ.update(environment)
    sys.path[:] = [str(folder), *sys.path[1:], str(ROOT)]
    sys.argv = command
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)


def run(folder: Path, tool: Tool, page: str, edits: list[dict[str, str]]) -> Outcome:
    """Run a tool on one page of a copy of the site with these edits."""
    with tempfile.TemporaryDirectory() as temporary:
        target, hits, log = (Path(temporary).resolve() / name for name in ("site", "hits", "log"))
        sources = copy(folder, target, tool, page, edits)
        command = [*tool.command.split(), *(sources if tool.sources else [])]
        environment = {
            "PYTHONPATH": os.pathsep.join([str(target), str(ROOT)]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "COLUMNS": "240",
            "HITS": str(hits),
            "SOURCES": "\n".join(sources),
        }
        process = FORK.Process(target=start, args=(command, target, log, environment))
        process.start()
        process.join(SECONDS)
        ended = process.exitcode is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
        found = set(hits.read_text(encoding="utf-8").split()) if hits.exists() else set[str]()
        output = log.read_text(encoding="utf-8", errors="replace")
        return Outcome(process.exitcode in (0, 5), ended, output, found)  # 5: pytest found nothing to run


def located(output: str, place: str) -> bool:
    """Tell whether a file and line are named, as `file:3` or as a traceback names them."""
    path, line = place.rsplit(":", 1)
    return bool(re.search(rf'{re.escape(path)}(:|", line ){line}(?!\d)', output))


class Score(NamedTuple):
    """What one tool made of one case: blocks run, and for each fault "", "caught" or "located"."""

    ran: set[str]
    clean: Outcome
    faults: dict[str, str]


def judge(folder: Path, name: str, case: dict[str, Any]) -> Score:
    """Run a tool on a clean page and, where that passed or need not pass, with each of its faults."""
    tool = TOOLS[name]
    clean = run(folder, tool, case["page"], [])
    faults = dict.fromkeys((drift["id"] for drift in case["drifts"]), "")
    for drift in case["drifts"] if clean.passed or case["clean"] == "either" else ():
        outcome = run(folder, tool, case["page"], drift["edits"])
        if outcome.ended and not outcome.passed:
            faults[drift["id"]] = "located" if located(outcome.output, drift["must_fail_at"]) else "caught"
    return Score(clean.hits & set(case["hits"]), clean, faults)


def ours(folder: Path) -> list[Score]:
    """Return what the mechanism of this site makes of each case, by its own stricter reading of places."""
    cases, scores = Cases(folder), list[Score]()
    for case in cases.cases:
        run, faults = cases.run(CLEAN), dict[str, str]()
        for drift in case["drifts"]:
            caught = "caught" if cases.caught(case, drift) else ""
            faults[drift["id"]] = caught if cases.misplaced(case, drift) else "located"
        clean = Outcome(not cases.wrong(case), True, "", set(run.hits))
        scores.append(Score(clean.hits & set(case["hits"]), clean, faults))
    return scores


def table(folder: Path, names: list[str], workers: int) -> Iterator[tuple[str, list[str]]]:
    """Yield a line for the cases and one for each tool, each with what the tool passes over."""
    cases = Cases(folder).cases
    blocks, drifts = (sum(len(case[what]) for case in cases) for what in ("hits", "drifts"))
    sizes = f"{len(cases)} pages, {blocks} blocks, {drifts} faults, Python {platform.python_version()}"
    yield f"{'cases':20}  {sizes}", []
    for name in names:
        if name == OURS:
            scores = ours(folder)
        else:
            with ProcessPoolExecutor(workers, FORK) as pool:
                scores = list(pool.map(functools.partial(judge, folder, name), cases))
        ran = sum(len(score.ran) for score in scores)
        faults = [each for score in scores for each in score.faults.values()]
        counts = (
            f"runs {ran:3} of {blocks}   catches {sum(map(bool, faults)):3} of {drifts}"
            f"   locates {faults.count('located'):3} of {drifts}"
        )
        version = "" if name == OURS else f"   {importlib.metadata.version(TOOLS[name].package)}"
        notes = (missed(case, score) for case, score in zip(cases, scores, strict=True))
        yield f"{name:20}  {counts}{version}", [note for note in notes if note]


def missed(case: dict[str, Any], score: Score) -> str:
    """Return in a line what was passed over on a page, or nothing."""
    parts: list[str] = []
    if not score.clean.ended:
        parts.append("does not end")
    elif not score.clean.passed and case["clean"] == "pass":
        parts.append("fails without a fault")
    if left := sorted(set(case["hits"]) - score.ran):
        parts.append("not run: " + " ".join(left))
    for word, what in (("", "not caught"), ("caught", "not located")):
        if found := [drift for drift, each in score.faults.items() if each == word]:
            parts.append(f"{what}: {' '.join(found)}")
    return f"    {case['id']}: {'; '.join(parts)}" if parts else ""


def main() -> None:
    """Measure, print the table with what each tool passes over, and write the table where asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=CASES)
    parser.add_argument("--tool", action="append", choices=[*TOOLS, OURS], help="measure only this tool")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true", help="write what was measured into rivals.out")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NO_MKDOCS_2_WARNING="1")
    sys.dont_write_bytecode = True
    for name in PRELOAD:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    written = Path(__file__).with_suffix(".out")
    known = re.split(
        r"\n(?! )", written.read_text(encoding="utf-8").strip()
    )  # a line, and what it passes over
    parts = dict.fromkeys(["cases", *TOOLS, OURS], "") | {part[:20].strip(): part for part in known}
    for line, notes in table(options.folder.resolve(), options.tool or [*TOOLS, OURS], options.workers):
        parts[line[:20].strip()] = "\n".join([line, *notes])
        print(parts[line[:20].strip()], flush=True)
    if options.write:
        written.write_text("\n".join(filter(None, parts.values())) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
