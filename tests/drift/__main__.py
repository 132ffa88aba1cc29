"""`make drift`: how strong the checks are, as five numbers. `python -m tests.drift noise` takes one."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("record.out")
# name -> the command, and how the lines begin that it prints as its result
PARTS = {
    "run": (["-m", "pytest", "docs", "-q"], ("accounted:", "outputs:")),
    "cases": (["-m", "tests.site.planted"], ("planted faults:",)),
    "faults": (["-m", "tests.drift.faults"], ("faults on the real site:",)),
    "blocks": (["-m", "tests.drift.mutants", "--blocks"], ("mutants killed",)),
    "mutants": (["-m", "tests.drift.mutants"], ("mutants killed",)),
    "noise": (["-m", "tests.drift.noise"], ("noise:",)),
}


def main() -> None:
    """Measure, print what each part prints, then the numbers, and keep them where a page can name them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all when none is named"
    )
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    results: list[str] = []
    failed = False
    for name in chosen:
        command, beginnings = PARTS[name]
        print(f"--- {name}", flush=True)
        with subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                if line.startswith(beginnings):
                    results.append(line.strip())
        failed |= process.returncode != 0
    print("---", *results, sep="\n")
    if not failed and set(chosen) == set(PARTS):
        RECORD.write_text("\n".join(results) + "\n", encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
