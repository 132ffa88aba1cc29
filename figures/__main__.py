"""`python -m figures` draws every figure into docs/figures; with `--check` it only says what is stale."""

from __future__ import annotations

import argparse
import sys

from figures import ROOT, draw, slugs, stale


def main() -> int:
    """Draws or checks; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m figures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is stale")
    check = parser.parse_args().check
    drawn = {path: text for slug in slugs() for path, text in draw(slug)}
    problems = stale(drawn)
    if check:
        print(*problems, f"{len(drawn)} figures, {len(problems)} stale", sep="\n")
        return 1 if problems else 0
    for path, text in drawn.items():
        file = ROOT / path
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
            print("drew", path.as_posix())
    left = stale(drawn)
    print(*left, f"{len(drawn)} figures are up to date" if not left else "delete what nobody draws", sep="\n")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
