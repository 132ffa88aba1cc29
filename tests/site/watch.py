"""`make watch`: while an author writes, each saved file re-runs the blocks that it changes.

Both languages are built once. After a save only the pages that show the file are rendered again, and only
those blocks run whose lines changed or that load the file; each wrong one is a line `file:line: message`.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from sitekit.pages import ROOT, SITES
from tests.site.blocks import BlockKey, Page, Site, runnable
from tests.site.judge import judge
from tests.site.ledger import Recorder
from tests.site.sandbox import Pool, Result, preloaded

FOLDERS = ("docs", "snippets", "llmcore")


recorders: list[Recorder] = []  # the one of its language, in a process that renders one


def _build(config: Path, root: Path) -> Site:
    recorders.append(Recorder(config, root, create_outputs=True))
    return recorders[-1].build()


def _render(source: str) -> Page:
    return recorders[-1].render(source)


class Watch:
    """What the pages show and how their blocks ended, kept up to date; each language has a process."""

    def __init__(self, root: Path, configs: Iterable[str], pool: Pool) -> None:
        self.root, self.pool = root, pool
        self.pages: dict[str, Page] = {}
        self.languages: dict[str, ProcessPoolExecutor] = {}
        self.results: dict[BlockKey, Result] = {}
        spawn = get_context("spawn")  # a fork would keep the doors of the sandbox open
        processes = {config: ProcessPoolExecutor(1, spawn) for config in configs}
        builds = {config: each.submit(_build, root / config, root) for config, each in processes.items()}
        for config, build in builds.items():
            site = build.result()
            if site.failure:
                raise SystemExit(f"{config} does not build\n{site.failure}")
            self.pages |= {page.source: page for page in site.pages}
            self.languages |= {page.source: processes[config] for page in site.pages}

    def shows(self, page: Page) -> set[str]:
        """Return the files that a page is made from."""
        lines = [line for block in page.blocks for line in block.lines]
        outputs = {block.output.file for block in page.blocks if block.output}
        return {page.source, *outputs, *(line.origin.path for line in lines)}

    def save(self, changed: set[str]) -> list[str]:
        """Take in that files have changed; return a line for each wrong thing, and one for each page."""
        began, started = time.perf_counter(), dict[BlockKey, Future[Result]]()
        shown = {name for name, page in self.pages.items() if changed & self.shows(page)}
        for key in [key for key, result in self.results.items() if changed.intersection(result.files)]:
            del self.results[key]
        renders = [self.languages[name].submit(_render, name) for name in shown]
        for render in as_completed(renders):
            page = self.pages[render.result().source] = render.result()
            self._start([page], started)  # while others are rendered
        self._start(self.pages.values(), started)
        self.results |= {key: future.result() for key, future in started.items()}
        lines: list[str] = []
        for page in self.pages.values():
            run = sum(block.key() in started for block in page.blocks)
            if run or page.source in shown:
                wrong = [f"{origin}: {message}" for origin, message in page.problems]
                results = [(b, self.results[b.key()]) for b in page.blocks if not b.may_skip()]
                failures = [judge(block, result, self.root, house=True) for block, result in results]
                wrong += ["{}: {}".format(*failure.problems[0]) for failure in failures if failure]
                lines += [
                    *wrong,
                    f"{page.source}: {run} of {len(page.blocks)} blocks run, {len(wrong)} wrong",
                ]
        return [*lines, f"{time.perf_counter() - began:.1f} s"]

    def _start(self, pages: Iterable[Page], started: dict[BlockKey, Future[Result]]) -> None:
        """Start the blocks of some pages whose results are not known."""
        for key, block in runnable(pages).items():
            if key not in self.results and key not in started:
                started[key] = self.pool.submit(block)


class _Saves(FileSystemEventHandler):
    """Puts the names of changed files into a queue."""

    def __init__(self, root: Path, names: queue.SimpleQueue[str]) -> None:
        self.root, self.names = root, names

    def on_any_event(self, event: FileSystemEvent) -> None:
        for path in filter(None, (event.src_path, event.dest_path)):
            file = Path(str(path))
            if event.event_type in ("modified", "created", "moved") and file.suffix in (".md", ".py", ".out"):
                self.names.put(file.relative_to(self.root).as_posix())


def main() -> None:
    """Watch until interrupted."""
    names: queue.SimpleQueue[str] = queue.SimpleQueue()
    observer = Observer()
    for folder in FOLDERS:
        observer.schedule(_Saves(ROOT, names), str(ROOT / folder), recursive=True)
    with Pool(ROOT, preloaded(ROOT)) as pool:
        print("building both languages", flush=True)
        watch = Watch(ROOT, SITES.values(), pool)
        print(
            *watch.save(set()),
            "watching: save a page, a snippet or a module",
            sep="\n",
            flush=True,
        )
        observer.start()
        try:
            while True:
                changed = {names.get()}
                time.sleep(0.1)  # an editor may write several times
                while not names.empty():
                    changed.add(names.get())
                print(f"\n{', '.join(sorted(changed))}", *watch.save(changed), sep="\n", flush=True)
        except KeyboardInterrupt:
            observer.stop()


if __name__ == "__main__":
    main()
