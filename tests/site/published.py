"""Pytest plugin: runs what is published, through pytest-codeblocks, and counts it.

    pytest                              everything (the folder docs is among the test paths)
    pytest docs/zh/days/dpo.md          one page
    pytest docs --update-outputs        write the printed outputs that changed, and show the difference

pytest-codeblocks' collector is replaced by one that takes its blocks from the ledger; its option and its marker comments stay:

    <!--pytest-codeblocks:cont-->                                   above a block: continues the block before it
    <!--pytest-codeblocks:expected-output-->                        above a fence: what the block before it prints
    <!--pytest.mark.skip(reason="needs a GPU")-->                   above a block that cannot run; the page must say the reason too
    <!--pytest.mark.xfail(raises=ValueError, reason="…")-->         above a block that fails on purpose; its output then ends in
                                                                    the error as the reader would see it, `ValueError: …`
    <!--published-counts-->                                         above a line whose numbers are this language's pages, blocks, outputs
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

WHOLE = sys.maxsize  # an edit of a whole file ends here
COUNTS = "<!--published-counts-->"
STATE = pytest.StashKey["State"]()


class Located(Exception):
    """A failure that knows its place: the first problem is named in the summary, the others below it."""

    def __init__(self, problems: list[Problem], details: str = "") -> None:
        super().__init__("\n".join(f"{origin}: {message}" for origin, message in problems) + details)
        self.problems = problems


class Report(TerminalRepr):
    """How a `Located` failure is printed."""

    def __init__(self, failure: Located) -> None:
        origin, message = failure.problems[0]
        self.text = str(failure)
        self.reprcrash = ReprFileLocation(origin.path, origin.line, f"{origin}: {message}".split("\n")[0])

    def toterminal(self, tw: TerminalWriter) -> None:
        for line in self.text.split("\n"):
            tw.line(line)


class State:
    """What one run of pytest knows: the built sites, what became of each block, and the outputs to be written."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.configs = [
            self.root / name for name in config.getoption("site_config") or config.getini("published_sites")
        ]
        self.update: bool = config.getoption("update_outputs")
        self.house = not config.getoption("foreign_site")
        self.seconds: float = config.getoption("block_seconds")
        self.preload: list[str] = config.getini("published_preload")
        self.docs: dict[Path, Path] = {}
        self.sites: dict[Path, Site] = {}
        self.outcomes: dict[tuple[tuple[Line, Origin], ...], str | Exception] = {}
        self.counts: Counter[str] = Counter()
        self.skipped: list[str] = []
        self.edits: dict[Path, dict[tuple[int, int], list[str]]] = {}
        self.written: list[str] = []
        self.told: set[str] = set()

    def site(self, path: Path) -> Site | None:
        """Return the site that publishes a file, built when it is first asked for."""
        for config in self.configs:
            if config not in self.docs:
                self.docs[config] = docs_dir(config)
            if path.is_relative_to(self.docs[config]):
                if config not in self.sites:
                    self.sites[config] = build(config, self.root, self.update)
                return self.sites[config]
        return None

    def run(self, block: Block) -> str:
        """Run a block, or repeat what became of the same lines from the same files on another page."""
        key = tuple((line, line.origin) for part in block.chain() for line in part.lines)
        if key not in self.outcomes:
            for name in self.preload:
                importlib.import_module(name)
            try:
                self.outcomes[key] = sandbox.run(block, self.root, self.seconds)
            except Exception as error:
                self.outcomes[key] = error
        else:
            self.counts["shared"] += 1
        outcome = self.outcomes[key]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def edit(self, origin: Origin, last: int, lines: list[str]) -> None:
        """Replace lines of a file, from that of `origin` up to but not including `last`, when the run has ended."""
        edits = self.edits.setdefault(self.root / origin.path, {})
        if edits.setdefault((origin.line, last), lines) != lines:
            raise Located(
                [Problem(origin, "two runs of the same block print differently; nothing was written")]
            )


class PublishedPage(codeblocks.MarkdownFile):
    """A page: its blocks as the ledger has them. Other Markdown files have none; their shell blocks are never run."""

    def collect(self) -> Iterator[pytest.Item]:
        state = self.config.stash[STATE]
        site = state.site(self.path)
        if site is None:
            return
        page = next((page for page in site.pages.values() if state.root / page.source == self.path), None)
        if page is None and not site.failure:
            return  # a part of other pages
        page = page or Page(self.path.relative_to(state.root).as_posix())
        account = Account.from_parent(self, name="accounted for", page=page, site=site)
        yield account
        for block in page.blocks:
            at = block.opening
            item = PublishedBlock.from_parent(
                self, name=f"line {at.line}" if at.path == page.source else str(at)
            )
            item.obj, item.page = block, page
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
    """Return the mark that a comment names; whoever skips must say why, whoever fails must say how."""
    mark: pytest.MarkDecorator = eval(text, {"pytest": pytest, "sys": sys})
    if mark.name not in ("skip", "skipif", "xfail"):
        raise ValueError(f"pytest.mark.{mark.name} is not for pages")
    if not str(mark.kwargs.get("reason", "")).strip():
        raise ValueError("the reason is missing")
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
        problems = list(self.page.problems)
        if self.site.failure:
            problems = []
            if self.site.config not in state.told:
                state.told.add(self.site.config)
                problems = [
                    Problem(Origin(self.site.config, 1), f"the site does not build\n{self.site.failure}")
                ]
        elif state.house:
            problems += self._house(state)
        if problems:
            raise Located(problems)

    def _house(self, state: State) -> Iterator[Problem]:
        """Yield what our own site must also keep to: reasons that a reader can read, counts that are true."""
        for origin, reason in self.reasons:
            if reason not in self.page.text:
                yield Problem(origin, f"the page does not tell its reader: {reason}")
        lines = self.path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines[:-1], 1):
            if line.strip() != COUNTS:
                continue
            pages = [page for page in self.site.pages.values() if page.source]
            blocks = [block for page in pages for block in page.blocks]
            truth = [len(pages), len(blocks), sum(block.output is not None for block in blocks)]
            if [int(found) for found in re.findall(r"\d+", lines[number])] == truth:
                continue
            if state.update:
                fresh = iter(truth)
                state.edit(
                    Origin(self.page.source, number + 1),
                    number + 2,
                    [re.sub(r"\d+", lambda _: str(next(fresh)), lines[number])],
                )
            else:
                yield Problem(Origin(self.page.source, number + 1), f"pages, blocks and outputs are {truth}")

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
    page: Page

    def runtest(self) -> None:
        state, block = self.config.stash[STATE], self.obj
        purpose = self.get_closest_marker("xfail")
        error: Exception | None = None
        try:
            printed = state.run(block)
        except Exception as failure:
            if purpose is None or block.output is None or not isinstance(failure, purpose.kwargs["raises"]):
                raise
            error, printed = failure, f"{type(failure).__name__}: {failure}\n"
        if block.output is not None:
            self._compare(state, block, printed)
        elif printed.strip() and not block.console and state.house:
            first = printed.strip().split("\n")[0]
            raise Located([Problem(block.opening, f"prints what the page does not show: {first}")])
        if error is not None:
            raise error

    def _compare(self, state: State, block: Block, printed: str) -> None:
        """Hold the output that the page shows against what was printed, blanks at line ends apart."""
        assert block.output is not None
        made = [line.rstrip() for line in printed.rstrip().split("\n")]
        shown = [line.rstrip() for line in "\n".join(block.output.lines).rstrip().split("\n")]
        if made == shown:
            return
        if state.update:
            file, opening = block.output.file, block.output.opening
            first = Origin(file, 1) if file else Origin(opening.path, opening.line + 1)
            state.edit(first, WHOLE if file else block.output.closing.line, made)
            return
        index = next(
            (i for i, (a, b) in enumerate(zip(made, shown, strict=False)) if a != b),
            min(len(made), len(shown)),
        )
        difference = difflib.unified_diff(shown, made, "shown", "printed", lineterm="")
        details = "\n".join(["", f"printed by the block at {block.opening}", *difference])
        got = made[index] if index < len(made) else "nothing more"
        raise Located([Problem(block.output.origin(index), f"output: the block prints {got}")], details)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        error = excinfo.value
        if not isinstance(error, Located):
            root = self.config.stash[STATE].root
            (first, line), *others = sandbox.where(error, self.obj, root)
            text = str(error) if isinstance(error, sandbox.BlockError) else f"{type(error).__name__}: {error}"
            details = "".join(f"\n    raised through {place}: {code}" for place, code in others)
            details = f"\n    {line}{details}\n    in the block that readers see at {self.obj.opening}"
            error = Located([Problem(first, text)], details)
        return Report(error)

    def reportinfo(self) -> tuple[Path, int, str]:  # type: ignore[override]
        return self.path, self.obj.opening.line - 1, f"{self.page.source}: {self.name}"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("published", "what is published is what runs")
    group.addoption("--update-outputs", action="store_true", help="write the shown outputs that changed")
    group.addoption(
        "--site-config",
        action="append",
        metavar="FILE",
        help="judge the sites of these MkDocs configurations",
    )
    group.addoption(
        "--foreign-site",
        action="store_true",
        help="not our site: output need not be shown, nor reasons for the reader",
    )
    group.addoption("--block-seconds", type=float, default=60, help="how long one block may take")
    parser.addini(
        "published_sites",
        "the MkDocs configuration of each language",
        "linelist",
        ["mkdocs.yml", "mkdocs.en.yml"],
    )
    parser.addini("published_preload", "modules to import once, before the first block", "linelist")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("update_outputs") and os.environ.get("CI"):
        raise pytest.UsageError("--update-outputs changes the sources; it does not run in CI")
    codeblocks.MarkdownFile = PublishedPage
    config.option.codeblocks = True
    config.stash[STATE] = State(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fail closed: a run of everything that misses a page of a site is not a run of everything."""
    state = config.stash[STATE]
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    collected = {item.page.source for item in items if isinstance(item, Account)}
    published = [page.source for site in state.sites.values() for page in site.pages.values() if page.source]
    missing = [name for name in published if name not in collected]
    missing += [config.name for config in state.configs if config not in state.sites]
    if missing:
        raise pytest.UsageError(f"published, but not collected: {', '.join(missing)}")


def pytest_collection_finish(session: pytest.Session) -> None:
    blocks = [item for item in session.items if isinstance(item, PublishedBlock)]
    session.config.stash[STATE].counts["seen"] = len(blocks)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Count what became of each block."""
    report = yield
    if isinstance(item, PublishedBlock):
        state = item.config.stash[STATE]
        if report.skipped and not hasattr(report, "wasxfail"):
            state.skipped.append(
                f"{item.obj.opening}: {getattr(call.excinfo and call.excinfo.value, 'msg', '')}"
            )
        elif report.failed:
            state.counts["failed"] += 1
        elif call.when == "call":
            state.counts["run"] += 1
            state.counts["outputs"] += item.obj.output is not None
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what changed, from the end of each file to its start so that line numbers hold; a block not reached fails the run."""
    state = session.config.stash[STATE]
    for path, edits in state.edits.items():
        with path.open(encoding="utf-8", newline="") as file:
            before = file.read().splitlines(keepends=True)
        after = list(before)
        end = "\r\n" if before and before[0].endswith("\r\n") else "\n"
        for (first, last), lines in sorted(edits.items(), reverse=True):
            fence = before[first - 2] if first > 1 and last != WHOLE else ""
            indent = fence[: len(fence) - len(fence.lstrip("> \t"))]
            after[first - 1 : last - 1] = [(indent + line).rstrip() + end for line in lines]
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(after)
        name = path.relative_to(state.root).as_posix()
        state.written += [line.rstrip() for line in difflib.unified_diff(before, after, name, name)]
    counts = state.counts
    counts["missed"] = counts["seen"] - counts["run"] - counts["failed"] - len(state.skipped)
    if counts["missed"] and not session.config.option.collectonly and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the count."""
    state, write = config.stash[STATE], terminalreporter.write_line
    if not state.sites or config.option.collectonly:
        return
    counts = state.counts
    terminalreporter.section("published")
    for line in state.written:
        write(line)
    write(
        f"{counts['pages']} pages, {counts['seen']} Python blocks that a reader sees: {counts['run']} run to their end",
        bold=True,
    )
    write(f"  of them {counts['shared']} are the same lines on a second page and ran once")
    write(f"{counts['outputs']} printed outputs compared with what the page shows")
    write(
        f"{counts['api']} more blocks on API pages are the source or the signatures of the modules, to the letter"
    )
    write(f"{len(state.skipped)} shown but not run" + (":" if state.skipped else ""))
    for line in state.skipped:
        write(f"  {line}")
    if counts["failed"] or counts["missed"]:
        write(f"{counts['failed']} failed, {counts['missed']} not reached", red=True)
