"""`make drift`: how strong the checks are, in numbers. `python -m tests.drift noise` measures a part."""

from __future__ import annotations

import argparse
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("record.out")
# name -> the command, and how the lines begin that it prints as its result
PARTS = {
    "run": (["-m", "pytest", "docs", "-q"], ("accounted:", "outputs:")),
    "cases": (["-m", "tests.site.planted"], ("pages judged right", "planted faults caught")),
    "faults": (["-m", "tests.drift.faults"], ("faults on the real site:",)),
    "blocks": (
        ["-m", "tests.drift.mutants", "--blocks", "--sample", "100"],
        ("mutants killed by published",),
    ),
    "mutants": (["-m", "tests.drift.mutants"], ("mutants killed by all",)),
    "noise": (["-m", "tests.drift.noise"], ("noise:",)),
}


def measure(name: str) -> list[str] | None:
    """Run a part, print what it prints, return its results; None if it failed."""
    command, beginnings = PARTS[name]
    print(f"--- {name}", flush=True)
    results: list[str] = []
    with subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith(beginnings):
                results.append(line.strip())
    return None if process.returncode else results


def main() -> None:
    """Measure, and keep the results of each part that succeeds where a page can name them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all when none is named"
    )
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    head = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    failed = False
    for name in chosen:
        results = measure(name)
        if results is None:
            failed = True
            continue
        kept = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
        lines = {part: [x for x in kept if x.startswith(starts)] for part, (_, starts) in PARTS.items()}
        lines[name] = [f"{line}  ({date.today()}, commit {commit})" for line in results]
        RECORD.write_text("".join(f"{x}\n" for each in lines.values() for x in each), encoding="utf-8")
        print(*results, sep="\n", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
