"""Plants the faults of a folder of cases, one a page at a time, and reads what the run of its blocks says.

    python -m tests.site.planted FOLDER

A folder holds a small site, `site/`, and a `manifest.json` that says for each page what its readers see and
which blocks run to their end, and where each fault must be reported. Everything happens in copies.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).parent / "cases"
CLEAN = -1  # the number of the round without faults
INI = "[pytest]\nxfail_strict = true\nfilterwarnings = error\n"
OPTIONS = ["-v", "--assert=plain", "--block-seconds=3", "--site-config=mkdocs.yml", "-ptests.site.published"]
OPTIONS += ["-pno:cacheprovider", "-pno:hypothesispytest", "-pno:anyio"]
ITEM = re.compile(r"(\S.*?)::(?!accounted for).+? (?:PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR)\b.*")
FAILURE = re.compile(r"(?:FAILED|ERROR) (.+?)(?:::.*?)? - (.*)")


@dataclass
class Run:
    """What runs of a site's pages said, what their blocks noted, and the files that they left in the site."""

    report: str = ""
    hits: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()

    def blocks(self, page: str) -> int:
        """Return how many Python blocks of a page were taken up."""
        return sum(found[1] == page for found in map(ITEM.fullmatch, self.report.splitlines()) if found)

    def failures(self) -> list[tuple[str, str]]:
        """Return each failure: its page, and what the one line about it says, file and line first."""
        found = map(FAILURE.fullmatch, self.report.splitlines())
        return [(failure[1], failure[2]) for failure in found if failure]

    def of(self, page: str) -> list[str]:
        """Return the failures of a page."""
        return [line for at, line in self.failures() if at == page]


class Cases:
    """The cases of a folder, being run: the site as it is, and once for each round of faults."""

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site"
        self.manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self.cases: list[dict[str, Any]] = self.manifest["cases"]
        self.faults = [(case, fault) for case in self.cases for fault in case["drifts"]]
        self.rounds = range(CLEAN, max(len(case["drifts"]) for case in self.cases))
        self.runs: dict[int, Future[Run]] = {}

    def run(self, number: int) -> Run:
        """Return what a round said. The first call starts all rounds, one a core at a time."""
        if not self.runs:
            pool = ThreadPoolExecutor(os.cpu_count())
            self.runs = {each: pool.submit(self._plant_and_run, each) for each in self.rounds}
            pool.shutdown(wait=False)
        return self.runs[number].result()

    def wrong(self, case: dict[str, Any]) -> list[str]:
        """Return what the run of the site as it is got wrong about a page."""
        run, page = self.run(CLEAN), case["page"]
        found = run.of(page)
        if found and case["clean"] == "either":
            return []  # refused at sight, as it may be
        if run.blocks(page) != (seen := case["reader_python_blocks"] - case.get("of_which_source", 0)):
            found.append(f"{run.blocks(page)} Python blocks taken up, not {seen}")
        if missing := set(case["hits"]) - run.hits:
            found.append(f"not run to the end: {', '.join(sorted(missing))}")
        return found

    def misplaced(self, case: dict[str, Any], fault: dict[str, Any]) -> list[str]:
        """Return what was wrong about the report of a fault: nothing if it is where it must be, and alone."""
        run, place, found = self._of(case, fault), f"{fault['must_fail_at']}: ", []
        allowed = (place, *(f"{then}: " for then in fault.get("then", ())))
        for page in _pages(case, fault):
            lines = [line for line in run.of(page) if "not reached" not in line]
            named = any(line.startswith(place) and re.search(fault["error"], line) for line in lines)
            if not (named and lines[0].startswith(place) and all(line.startswith(allowed) for line in lines)):
                found.append(f"{page}: {lines or 'not caught'}, not {place}{fault['error']}")
        for block in fault.get("not_reached", ()):
            if not any("not reached" in line and block in line for line in run.report.splitlines()):
                found.append(f"{block} is not said to be not reached")
        return found

    def caught(self, case: dict[str, Any], fault: dict[str, Any]) -> bool:
        """Tell whether the page failed at all."""
        return bool(self._of(case, fault).of(case["page"]))

    def strangers(self, number: int) -> list[str]:
        """Return what a round got wrong beside its faults: other pages that fail, stray hits and files."""
        expected = {page for case, fault in self._planted(number) for page in _pages(case, fault)}
        expected |= {case["page"] for case in self.cases if case["clean"] == "either"}
        run = self.run(number)
        found = [f"{page} fails: {line}" for page, line in run.failures() if page not in expected]
        noted = run.hits - {hit for case in self.cases for hit in case["hits"]}
        return [*found, *(f"{hit} must not run" for hit in noted), *(f"{file} is left" for file in run.left)]

    def _of(self, case: dict[str, Any], fault: dict[str, Any]) -> Run:
        return self.run(case["drifts"].index(fault))

    def _planted(self, number: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(case, fault) for case, fault in self.faults if case["drifts"].index(fault) == number]

    def _plant_and_run(self, number: int) -> Run:
        planted = self._planted(number)
        pages = {page for case, fault in planted for page in _pages(case, fault)}
        pages = pages or {case["page"] for case in self.cases}
        heavy = {page for page in pages if "import torch" in (self.site / page).read_text(encoding="utf-8")}
        with tempfile.TemporaryDirectory() as folder:
            site, hits = Path(folder) / "site", Path(folder) / "hits"
            shutil.copytree(self.site, site, copy_function=shutil.copyfile)
            for _, fault in planted:
                edit(site, fault["edits"])
            before = _files(site)
            # torch is imported first for the few pages that need it: it makes each block of a run dearer
            report = self._pytest(site, pages - heavy, "", hits) + self._pytest(site, heavy, "torch", hits)
            noted = hits.read_text(encoding="utf-8").split() if hits.exists() else []
            return Run(report, frozenset(noted), _files(site) - before)

    def _pytest(self, site: Path, pages: set[str], preload: str, hits: Path) -> str:
        if not pages:
            return ""
        ini = site.parent / "pytest.ini"
        ini.write_text(f"{INI}published_preload = {preload}\n", encoding="utf-8")
        options = [*OPTIONS, f"--rootdir={site}", *([] if self.manifest.get("house") else ["--foreign-site"])]
        variables = {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "HITS": str(hits), "PYTHONUTF8": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "-c", ini, *sorted(pages)],
            cwd=site,
            env=os.environ | variables | {"COLUMNS": "400"},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return done.stdout + done.stderr


def edit(site: Path, edits: Iterable[dict[str, str]]) -> None:
    """Make the edits of a fault, each at the first place that it fits; a file with CRLF keeps it."""
    for each in edits:
        file = site / each["file"]
        raw = file.read_bytes().decode()
        text = raw.replace("\r\n", "\n")
        if each["find"] not in text:
            raise ValueError(f"{each['file']} has no {each['find']!r}")
        text = text.replace(each["find"], each["replace"], 1)
        file.write_bytes((text.replace("\n", "\r\n") if "\r\n" in raw else text).encode())


def _pages(case: dict[str, Any], fault: dict[str, Any]) -> list[str]:
    return [case["page"], *fault.get("also", ())]


def _files(site: Path) -> frozenset[str]:
    files = (path.relative_to(site) for path in site.rglob("*") if path.is_file())
    return frozenset(path.as_posix() for path in files if "__pycache__" not in path.parts)


def main() -> None:
    """Print what is wrong, and the counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.site.planted", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=CASES)
    parser.add_argument("--reports", type=Path, help="a folder for what each round printed")
    options = parser.parse_args()
    cases = Cases(options.folder.resolve())
    pages = {case["id"]: cases.wrong(case) for case in cases.cases}
    faults = {fault["id"]: cases.misplaced(case, fault) for case, fault in cases.faults}
    rounds = {f"round {number + 1}": cases.strangers(number) for number in cases.rounds}
    for name, found in [*pages.items(), *faults.items(), *rounds.items()]:
        print(*(f"{name}: {line}" for line in found), sep="\n", end="\n" if found else "")
    for number in cases.rounds if options.reports else ():
        options.reports.mkdir(parents=True, exist_ok=True)
        (options.reports / f"round-{number + 1}.log").write_text(cases.run(number).report, encoding="utf-8")
    caught = sum(cases.caught(case, fault) for case, fault in cases.faults)
    print(f"pages judged right as they are: {sum(not found for found in pages.values())} of {len(pages)}")
    print(f"planted faults caught: {caught} of {len(faults)}", end=", ")
    print(f"located: {sum(not found for found in faults.values())} of {len(faults)}")
    sys.exit(any([*pages.values(), *faults.values(), *rounds.values()]))


if __name__ == "__main__":
    main()
