"""Pytest plugin: runs what is published, through pytest-codeblocks, and counts it.

    pytest                            everything: the folder docs is among the test paths
    pytest docs/zh/days/dpo.md        one page
    pytest docs --update-outputs      write the shown outputs that changed, and print the difference
    pytest docs --ledger FILE         write what was verified, for the site to show

pytest-codeblocks' collector takes its blocks from the ledger here. Its comments stay, directly above a fence:

    <!--pytest-codeblocks:cont-->
        this block continues the one before it
    <!--pytest-codeblocks:expected-output-->
        this is what the block before it prints
    <!--pytest-codeblocks:expected-output-within 0.01-->
        ours: the same, and numbers may differ by this much
    <!--pytest.mark.skip(reason="needs a GPU")-->
        this block cannot run; the page tells its reader the same reason
    <!--pytest.mark.xfail(raises=ValueError, reason="the shapes differ")-->
        this block fails, as the page says in the same words; its output ends in `ValueError: …`
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr
from _pytest._io import TerminalWriter
from pytest_codeblocks import plugin as codeblocks

from tests.site.blocks import Block, BlockKey, Page, Problem, Site
from tests.site.blocks import Origin as At
from tests.site.judge import Edits, Failure, judge, mark, one_character_changes, raises
from tests.site.ledger import Recorder, docs_dir
from tests.site.sandbox import Pool, Result

STATE = pytest.StashKey["State"]()


class Report(TerminalRepr):
    """How a failure is printed: place and message, no traceback through the machinery."""

    def __init__(self, failure: Failure) -> None:
        origin, message = failure.problems[0]
        self.text = str(failure)
        self.reprcrash = ReprFileLocation(origin.path, origin.line, f"{origin}: {message}".split("\n")[0])

    def toterminal(self, tw: TerminalWriter) -> None:
        for line in self.text.split("\n"):
            tw.line(line)


class State:
    """What one run knows: the built sites, what became of each block, and what is to be written."""

    def __init__(self, config: pytest.Config) -> None:
        self.root, option = config.rootpath, config.getoption
        names = option("site_config") or config.getini("published_sites")
        self.configs = [self.root / name for name in names]
        self.update, self.house = bool(option("update_outputs")), not option("foreign_site")
        self.options = {"seconds": option("block_seconds")}
        filters = [*config.getini("filterwarnings"), *(option("pythonwarnings") or ())]
        self.options["warnings"] = "error" if "error" in filters else "default"
        self.workers, self.preload = option("block_workers"), config.getini("published_preload")
        self.docs: dict[Path, Path] = {}
        self.sites: dict[Path, Site] = {}
        self.pool: Pool | None = None
        self.running: dict[BlockKey, Future[Result]] = {}
        self.collected: dict[int, PublishedBlock] = {}
        self.edits = Edits(self.root)
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []
        self.pages: dict[str, Counter[str]] = {}
        self.reasons: dict[str, list[str]] = {}

    def site(self, path: Path) -> Site | None:
        """Return the site that publishes a file; it is built when first asked for."""
        for config in self.configs:
            if config not in self.docs:
                try:
                    self.docs[config] = docs_dir(config)
                except (Exception, SystemExit) as error:
                    raise pytest.UsageError(f"{config}: {error}") from error
            if path.is_relative_to(self.docs[config]):
                if self.pool is None:
                    self.pool = Pool(self.root, self.preload, self.workers)  # imports while the site builds
                if config not in self.sites:
                    self.sites[config] = Recorder(config, self.root, self.update).build()
                return self.sites[config]
        return None

    def run(self, block: Block) -> Future[Result]:
        """Run a block; the same lines of the same files on another page run once."""
        assert self.pool is not None
        key = block.key()
        if key not in self.running:
            self.running[key] = self.pool.submit(block, **self.options)
        return self.running[key]

    def tell(self, page: str, what: str, reason: str = "") -> None:
        """Count what became of a block, or that something was compared."""
        self.counts[what] += 1
        self.pages.setdefault(page, Counter())[what] += 1
        if reason:
            self.reasons.setdefault(page, []).append(reason)


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
            item.obj, item.page = block, name
            for text in list(block.marks):
                try:
                    found = mark(text)
                except ValueError as error:
                    page.problems.append(Problem(text.origin, str(error)))
                    block.marks.remove(text)
                    continue
                account.reasons.append((text.origin, " ".join(found.kwargs["reason"].split())))
                if found.name != "xfail":
                    item.add_marker(found)
            state.collected[id(block)] = item
            yield item


class Reported(pytest.Item):
    """Prints a failure that knows its place as a place and a message."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Failure):
            return Report(excinfo.value)
        return pytest.Item.repr_failure(self, excinfo, style)


class Account(Reported):
    """Fails where something on a page is not accounted for."""

    def __init__(self, *, page: Page, site: Site, **options: Any) -> None:
        super().__init__(**options)
        self.page, self.site = page, site
        self.reasons: list[tuple[At, str]] = []

    def runtest(self) -> None:
        state = self.config.stash[STATE]
        if self.site.failure:
            # said once; the other pages of this language are not there to be judged
            state.counts[self.site.config] += 1
            if state.counts[self.site.config] > 1:
                pytest.skip(f"{self.site.config} does not build")
            at = self.site.at or At(self.site.config, 1)
            raise Failure([Problem(at, f"{self.site.config} does not build\n{self.site.failure}")])
        state.tell(self.page.source, "pages")
        state.counts.update(definitions=self.page.definitions, seen=self.page.lost)
        unsaid = [(origin, reason) for origin, reason in self.reasons if reason not in self.page.text]
        problems = [Problem(at, f"the page does not tell its reader: {reason}") for at, reason in unsaid]
        if found := self.page.problems + problems * state.house:
            raise Failure(found)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.page.source}: {self.name}"


class PublishedBlock(Reported, codeblocks.TestBlock):
    """A block of a page."""

    obj: Block
    page: str

    def failure(self) -> Failure | None:
        """Run the block and hold it against its page."""
        state = self.config.stash[STATE]
        return judge(self.obj, state.run(self.obj).result(), state.root, state.house)

    def runtest(self) -> None:
        state, block = self.config.stash[STATE], self.obj
        for part in block.chain()[:-1]:
            before = state.collected.get(id(part))
            if before in self.session.items and before.failure() and state.run(part).result().error:
                pytest.skip(f"not reached: the block at {part.opening} fails")
        failure = self.failure()
        result = state.run(block).result()
        if failure and state.update and block.output and (not result.error or raises(block)):
            state.edits.output(block, result.printed + result.error)
        elif failure:
            raise failure
        if block.output:
            state.tell(self.page, "outputs")
            changes, caught = one_character_changes("\n".join(block.output.lines), block.output.within)
            state.counts.update(changes=changes, caught=caught)

    def reportinfo(self) -> tuple[Path, int, str]:  # type: ignore[override]
        return self.path, self.obj.opening.line - 1, f"{self.obj.opening}"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("published", "what is published is what runs")
    group.addoption("--update-outputs", action="store_true", help="write the shown outputs that changed")
    group.addoption("--ledger", type=Path, metavar="FILE", help="write what was verified, page by page")
    group.addoption("--block-seconds", type=float, default=120.0, help="how long one block may take")
    group.addoption("--block-workers", type=int, help="how many blocks run at once (a core each)")
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


def pytest_unconfigure(config: pytest.Config) -> None:
    state = config.stash.get(STATE, None)  # none where the options were refused
    if state and state.pool:
        state.pool.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fail closed: a run of everything that misses a page is not a run of everything."""
    state = config.stash[STATE]
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS and not config.option.ledger:
        return
    collected = {item.page.source for item in items if isinstance(item, Account)}
    missing = [
        page.source for site in state.sites.values() for page in site.pages if page.source not in collected
    ]
    missing += [path.name for path in state.configs if path not in state.sites]
    if missing:
        raise pytest.UsageError(f"published, but not collected: {', '.join(missing)}")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the workers begin; they work while other tests run."""
    state = session.config.stash[STATE]
    for item in session.items:
        if isinstance(item, PublishedBlock):
            state.counts["seen"] += 1
            if not session.config.option.collectonly and not item.obj.may_skip():
                state.run(item.obj)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Count what became of each block."""
    report = yield
    if isinstance(item, PublishedBlock):
        state = item.config.stash[STATE]
        if report.failed:
            state.tell(item.page, "failed")
        elif report.skipped:
            said = getattr(call.excinfo and call.excinfo.value, "msg", "")
            what = "unreached" if said.startswith("not reached") else "skipped"
            state.tell(item.page, what, f"{item.obj.opening}: {said}")
        elif call.when == "call":
            state.tell(item.page, "run")
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what changed. A block that was neither run nor skipped fails the run."""
    state, config = session.config.stash[STATE], session.config
    state.notes += state.edits.write()
    ends = sum(state.counts[what] for what in ("run", "failed", "skipped", "unreached"))
    state.counts["missed"] = state.counts["seen"] - ends
    bad = state.counts["missed"] or state.counts["changes"] != state.counts["caught"]
    if bad and not config.option.collectonly and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if config.option.ledger and session.exitstatus == pytest.ExitCode.OK:
        config.option.ledger.parent.mkdir(parents=True, exist_ok=True)
        config.option.ledger.write_text(
            json.dumps(ledger(state), indent=1, ensure_ascii=False) + "\n", "utf-8"
        )


def ledger(state: State) -> dict[str, Any]:
    """Return what this run verified, as it is published beside the site."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=state.root, capture_output=True, text=True, check=False
    )
    versions = {"python": platform.python_version()}
    for name in ("torch", "mkdocs", "mkdocs-material", "pymdown-extensions", "pytest-codeblocks"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    pages = {
        name: {
            "blocks": sum(counts[what] for what in ("run", "skipped")),
            **{what: counts[what] for what in ("run", "skipped", "outputs")},
            "reasons": state.reasons.get(name, []),
        }
        for name, counts in sorted(state.pages.items())
    }
    keys = ("pages", "seen", "run", "skipped", "outputs", "definitions", "changes", "caught")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        "versions": versions,
        "total": {key: state.counts[key] for key in keys},
        "pages": pages,
    }


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the count."""
    state, counts = config.stash[STATE], config.stash[STATE].counts
    if not state.sites or config.option.collectonly:
        return
    terminalreporter.section("published")
    skipped = [reason for reasons in state.reasons.values() for reason in reasons]
    for line in (
        *state.notes,
        f"accounted: {counts['seen'] - counts['missed']} of {counts['seen']} Python blocks "
        f"on {counts['pages']} pages: "
        f"{counts['run']} run, {counts['failed']} failed, {counts['unreached']} not reached, "
        f"{counts['skipped']} shown with a reason; {counts['missed']} missed",
        f"    {len(state.running)} runs: the same lines of the same files on two pages run once",
        f"    {counts['definitions']} more blocks, on API pages, are the source they document",
        f"outputs: {counts['outputs']} compared; one-character changes of them caught: "
        f"{counts['caught']} of {counts['changes']}",
        *(f"    {line}" for line in skipped),
    ):
        terminalreporter.write_line(line)
