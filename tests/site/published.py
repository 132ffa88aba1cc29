"""Pytest plugin: runs what is published, through pytest-codeblocks, and counts it.

    pytest                            everything: the folder docs is among the test paths
    pytest docs/zh/days/dpo.md        one page
    pytest docs --update-outputs      write the shown outputs that changed, and print the difference

pytest-codeblocks' collector takes its blocks from the ledger here. Its comments stay, directly above a fence:

    <!--pytest-codeblocks:cont-->
        this block continues the one before it
    <!--pytest-codeblocks:expected-output-->
        this is what the block before it prints
    <!--pytest.mark.skip(reason="needs a GPU")-->
        this block cannot run; the page tells its reader the same reason
    <!--pytest.mark.xfail(raises=ValueError, reason="the shapes differ")-->
        this block fails, as the page says in the same words; an output shown for it ends in `ValueError: …`
    <!--published-counts-->
        ours: the numbers of the next line are those of the pages, blocks and outputs in this language
"""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr
from _pytest._io import TerminalWriter
from pytest_codeblocks import plugin as codeblocks

from tests.site import sandbox
from tests.site.ledger import Block, Line, Origin, Page, Problem, Site, build, docs_dir

COUNTS = "<!--published-counts-->"
WHOLE = sys.maxsize  # the end of an edit that replaces a whole file
STATE = pytest.StashKey["State"]()


class Located(Exception):
    """A failure that knows its place; the first problem is the one that the summary names."""

    def __init__(self, problems: list[Problem], *details: str) -> None:
        super().__init__("\n".join([*(f"{origin}: {message}" for origin, message in problems), *details]))
        self.problems = problems


class Report(TerminalRepr):
    """How a failure is printed: place and message, no traceback through the machinery."""

    def __init__(self, failure: Located) -> None:
        origin, message = failure.problems[0]
        self.text = str(failure)
        self.reprcrash = ReprFileLocation(origin.path, origin.line, f"{origin}: {message}".split("\n")[0])

    def toterminal(self, tw: TerminalWriter) -> None:
        for line in self.text.split("\n"):
            tw.line(line)


class State:
    """What one run knows: the built sites, what became of each block, and what is to be written."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.configs = [
            self.root / name for name in config.getoption("site_config") or config.getini("published_sites")
        ]
        self.update, self.seconds = (
            bool(config.getoption("update_outputs")),
            config.getoption("block_seconds") or 120.0,
        )
        self.house = not config.getoption("foreign_site")
        self.preload: list[str] = config.getini("published_preload")
        self.docs: dict[Path, Path] = {}
        self.sites: dict[Path, Site] = {}
        self.outcomes: dict[tuple[tuple[str, Origin], ...], sandbox.Outcome] = {}
        self.edits: dict[Path, dict[tuple[int, int], list[str]]] = {}
        self.counts: Counter[str] = Counter()
        self.skipped: list[str] = []
        self.notes: list[str] = []

    def site(self, path: Path) -> Site | None:
        """Return the site that publishes a file; it is built when first asked for."""
        for config in self.configs:
            if config not in self.docs:
                try:
                    self.docs[config] = docs_dir(config)
                except (Exception, SystemExit) as error:
                    raise pytest.UsageError(f"{config}: {error}") from error
            if path.is_relative_to(self.docs[config]):
                if config not in self.sites:
                    self.sites[config] = build(config, self.root, self.update)
                return self.sites[config]
        return None

    def run(self, block: Block) -> sandbox.Outcome:
        """Run a block, or tell what became of the same lines of the same files on another page."""
        key = tuple((line, line.origin) for part in block.chain() for line in part.lines)
        self.counts["shared"] += key in self.outcomes
        if key not in self.outcomes:
            for name in self.preload:
                importlib.import_module(name)
            self.outcomes[key] = sandbox.run(block, self.root, self.seconds)
        return self.outcomes[key]

    def edit(self, origin: Origin, end: int, lines: list[str]) -> None:
        """Replace the lines of a file from `origin` to before `end` when the run is over."""
        edits = self.edits.setdefault(self.root / origin.path, {})
        if edits.setdefault((origin.line, end), lines) != lines:
            raise Located([Problem(origin, "printed differently on two pages; the first is written")])

    def write(self) -> None:
        """Make the edits, from the end of each file to its start so that line numbers hold."""
        for path, edits in self.edits.items():
            with path.open(encoding="utf-8", newline="") as file:
                before = file.read().splitlines(keepends=True)
            after = list(before)
            newline = "\r\n" if before and before[0].endswith("\r\n") else "\n"
            for (first, end), lines in sorted(edits.items(), reverse=True):
                fence = "" if end == WHOLE else before[first - 2]
                indent = fence[: len(fence) - len(fence.lstrip("> \t"))]
                after[first - 1 : end - 1] = [(indent + line).rstrip() + newline for line in lines]
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(after)
            name = path.relative_to(self.root).as_posix()
            self.notes += [line.rstrip() for line in difflib.unified_diff(before, after, name, name)]


class PublishedPage(codeblocks.MarkdownFile):
    """A page, with its blocks as the ledger has them. Other Markdown files have none."""

    def collect(self) -> Iterator[pytest.Item]:  # type: ignore[override]
        state = self.config.stash[STATE]
        site, name = state.site(self.path), self.path.relative_to(state.root).as_posix()
        if site is None:
            return
        page = next((page for page in site.pages if page.source == name), Page(name))
        account = Account.from_parent(self, name="accounted for", page=page, site=site)
        yield account
        for block in page.blocks:
            at = block.opening
            item = PublishedBlock.from_parent(self, name=f"line {at.line}" if at.path == name else str(at))
            item.obj = block
            for text in block.marks:
                try:
                    mark = _mark(text)
                except Exception as error:
                    page.problems.append(Problem(text.origin, f"{text}: {error}"))
                else:
                    item.add_marker(mark)
                    account.reasons.append((text.origin, " ".join(mark.kwargs["reason"].split())))
            yield item


def _mark(text: Line) -> pytest.MarkDecorator:
    """Return the mark that a comment names; who skips says why, who fails says how."""
    mark: pytest.MarkDecorator = eval(text, {"pytest": pytest, "sys": sys})
    if mark.name not in ("skip", "skipif", "xfail"):
        raise ValueError("not a mark for pages")
    if not str(mark.kwargs.get("reason", "")).strip():
        raise ValueError("the reason is missing (reason=…)")
    if mark.name == "xfail" and "raises" not in mark.kwargs:
        raise ValueError("the type of the error is missing (raises=…)")
    return mark


class Account(pytest.Item):
    """Fails where something on a page is not accounted for."""

    def __init__(self, *, page: Page, site: Site, **options: Any) -> None:
        super().__init__(**options)
        self.page, self.site = page, site
        self.reasons: list[tuple[Origin, str]] = []

    def runtest(self) -> None:
        state = self.config.stash[STATE]
        state.counts["pages"] += 1
        state.counts["api"] += self.page.api_blocks
        problems = [*self.page.problems, *(self._house(state) if state.house else ())]
        if self.site.failure:
            # said once; the other pages of this language are not there to be judged
            state.counts[self.site.config] += 1
            if state.counts[self.site.config] > 1:
                pytest.skip(f"{self.site.config} does not build")
            problems = [Problem(Origin(self.site.config, 1), f"does not build\n{self.site.failure}")]
        if problems:
            raise Located(problems)

    def _house(self, state: State) -> Iterator[Problem]:
        """Yield what our own pages must also keep to: reasons that readers can read, counts that are true."""
        for origin, reason in self.reasons:
            if reason not in self.page.text:
                yield Problem(origin, f"the page does not tell its reader: {reason}")
        blocks = [block for page in self.site.pages for block in page.blocks]
        truth = [len(self.site.pages), len(blocks), sum(block.output is not None for block in blocks)]
        lines = [*self.path.read_text(encoding="utf-8").split("\n"), ""]
        for number, line in enumerate(lines, 1):
            if line.strip() != COUNTS or [int(found) for found in re.findall(r"\d+", lines[number])] == truth:
                continue
            at, parts = Origin(self.page.source, number + 1), re.split(r"\d+", lines[number])
            if state.update and len(parts) == 4:
                new = "".join(f"{words}{count}" for words, count in zip(parts, [*truth, ""], strict=True))
                state.edit(at, number + 2, [new])
            else:
                yield Problem(at, "the numbers of pages, blocks and outputs are {}, {}, {}".format(*truth))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return (
            Report(excinfo.value)
            if isinstance(excinfo.value, Located)
            else super().repr_failure(excinfo, style)
        )

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.page.source}: {self.name}"


class PublishedBlock(codeblocks.TestBlock):
    """A block of a page."""

    obj: Block

    def runtest(self) -> None:
        state, block, purpose = self.config.stash[STATE], self.obj, self.get_closest_marker("xfail")
        printed, error = state.run(block)
        if error and not (purpose and block.output and isinstance(error, purpose.kwargs["raises"])):
            raise error
        if error:
            printed += f"{type(error).__name__}: {error}"
        if block.output is not None:
            self._compare(state, block, printed)
        elif printed.strip() and not block.console and state.house:
            first = printed.strip().split("\n")[0]
            raise Located([Problem(block.opening, f"prints what the page does not show: {first}")])
        if error:
            raise error

    @staticmethod
    def _compare(state: State, block: Block, printed: str) -> None:
        """Hold the output on the page against what was printed, blanks at line ends apart."""
        output = block.output
        assert output is not None
        made = [line.rstrip() for line in printed.rstrip().split("\n")]
        shown = [line.rstrip() for line in "\n".join(output.lines).rstrip().split("\n")]
        if made == shown:
            return
        if state.update:
            first = (
                Origin(output.file, 1)
                if output.file
                else Origin(output.opening.path, output.opening.line + 1)
            )
            state.edit(first, WHOLE if output.file else output.closing.line, made)
            return
        pairs = enumerate(zip(made, shown, strict=False))
        index = next((i for i, (new, old) in pairs if new != old), min(len(made), len(shown)))
        got = made[index] if index < len(made) else "nothing more"
        problem = Problem(output.origin(index), f"output: the block prints {got}")
        difference = difflib.unified_diff(shown, made, "shown", "printed", lineterm="")
        raise Located([problem], f"    printed by the block at {block.opening}", *difference)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]
        error, root = excinfo.value, self.config.stash[STATE].root
        if not isinstance(error, Located):
            text = str(error) if isinstance(error, sandbox.BlockError) else f"{type(error).__name__}: {error}"
            first, *path = sandbox.where(error, self.obj, root)
            lines = {
                at: sandbox.linecache.getline(str(root / at.path), at.line).strip() for at in (first, *path)
            }
            through = [f"    through {at}: {lines[at]}" for at in path]
            seen = f"    in the block that readers see at {self.obj.opening}"
            error = Located([Problem(first, text)], f"    {lines[first]}", *through, seen)
        return Report(error)

    def reportinfo(self) -> tuple[Path, int, str]:  # type: ignore[override]
        return self.path, self.obj.opening.line - 1, f"{self.obj.opening}"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("published", "what is published is what runs")
    group.addoption("--update-outputs", action="store_true", help="write the shown outputs that changed")
    group.addoption("--block-seconds", type=float, default=120.0, help="how long one block may take")
    group.addoption(
        "--site-config", action="append", metavar="FILE", help="judge the sites of these configurations"
    )
    group.addoption(
        "--foreign-site", action="store_true", help="not our pages: output and reasons may stay unshown"
    )
    parser.addini(
        "published_sites", "the configuration of each language", "args", ["mkdocs.yml", "mkdocs.en.yml"]
    )
    parser.addini("published_preload", "modules to import once, before the first block", "args")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("update_outputs") and os.environ.get("CI"):
        raise pytest.UsageError("--update-outputs writes to the sources: not in CI")
    codeblocks.MarkdownFile = PublishedPage
    config.option.codeblocks = True
    config.stash[STATE] = State(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fail closed: a run of everything that misses a page is not a run of everything."""
    state = config.stash[STATE]
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    collected = {item.page.source for item in items if isinstance(item, Account)}
    missing = [
        page.source for site in state.sites.values() for page in site.pages if page.source not in collected
    ]
    missing += [path.name for path in state.configs if path not in state.sites]
    if missing:
        raise pytest.UsageError(f"published, but not collected: {', '.join(missing)}")


def pytest_collection_finish(session: pytest.Session) -> None:
    seen = sum(isinstance(item, PublishedBlock) for item in session.items)
    session.config.stash[STATE].counts["seen"] = seen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Count what became of each block."""
    report = yield
    if isinstance(item, PublishedBlock):
        state = item.config.stash[STATE]
        if report.failed:
            state.counts["failed"] += 1
        elif report.skipped and not hasattr(report, "wasxfail"):
            state.skipped.append(
                f"{item.obj.opening}: {getattr(call.excinfo and call.excinfo.value, 'msg', '')}"
            )
        elif call.when == "call":
            state.counts["run"] += 1
            state.counts["outputs"] += item.obj.output is not None
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what changed. A block that was neither run nor skipped fails the run."""
    state = session.config.stash[STATE]
    state.write()
    counts = state.counts
    counts["missed"] = counts["seen"] - counts["run"] - counts["failed"] - len(state.skipped)
    if (
        counts["missed"]
        and not session.config.option.collectonly
        and session.exitstatus == pytest.ExitCode.OK
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the count."""
    state, counts = config.stash[STATE], config.stash[STATE].counts
    if not state.sites or config.option.collectonly:
        return
    terminalreporter.section("published")
    for line in (
        *state.notes,
        f"{counts['pages']} pages, {counts['seen']} Python blocks seen, {counts['run']} run to their end",
        f"    ({counts['shared']} are the same lines of the same files as on another page, run once)",
        f"{counts['outputs']} printed outputs compared with what the page shows",
        f"{counts['api']} more blocks, on API pages, equal the source they document",
        f"{len(state.skipped)} shown but not run",
        *(f"    {line}" for line in state.skipped),
        f"{counts['failed']} failed, {counts['missed']} not reached",
    ):
        terminalreporter.write_line(line)
