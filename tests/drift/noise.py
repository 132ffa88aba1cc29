r"""Runs all published blocks again and again, the world around them another each time; they must not notice.

    python -m tests.drift.noise                 27 settings
    python -m tests.drift.noise --settings 3    the first three
    python -m tests.drift.noise --blocks dpo    the blocks whose pages have this in their name

A setting is an order of the blocks, a seed of the random numbers that they find, how many of them run at
once, how many threads torch has, and the vector instructions that it and its libraries may use. Verdict and
printed text of each block are compared with those of the first setting.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from sitekit.pages import ROOT, SITES
from tests.site.blocks import Block, Line, Origin, Page, runnable
from tests.site.judge import judge
from tests.site.ledger import build
from tests.site.sandbox import Pool, preloaded

LEVELS = {
    "all there are": {},
    "none": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"},
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2"},
}
VARIABLES = sorted({name for level in LEVELS.values() for name in level})


class Setting(NamedTuple):
    """The world around the blocks; the seed also gives their order."""

    seed: int
    threads: int
    workers: int
    level: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.threads} threads, {self.workers} workers, instructions: {self.level}"


class Ending(NamedTuple):
    """How a block ended."""

    verdict: str
    printed: str


def settings() -> Iterator[Setting]:
    """Yield the settings; each has a seed, and so an order, of its own."""
    for number, (workers, threads, level) in enumerate(product((2, 1, 4), (1, 2, 4), LEVELS)):
        yield Setting(10007 * number, threads, workers, level)


def published(word: str = "") -> list[Block]:
    """Return the blocks of both languages that are run; the same lines on two pages are one."""
    pages: list[Page] = []
    for name in SITES.values():
        site = build(ROOT / name, ROOT)
        if site.failure:
            raise SystemExit(f"{name} does not build\n{site.failure}")
        pages += [page for page in site.pages if word in page.source]
    return list(runnable(pages).values())


def run(blocks: list[Block], setting: Setting) -> dict[int, Ending]:
    """Run the blocks in a setting; return how each ended, by its number."""
    order = random.Random(setting.seed).sample(range(len(blocks)), len(blocks))
    for name in VARIABLES:
        os.environ.pop(name, None)
    os.environ |= LEVELS[setting.level]
    with Pool(ROOT, preloaded(ROOT), setting.workers) as pool:
        options = {"seed": setting.seed, "threads": setting.threads}
        runs = {number: pool.submit(blocks[number], **options) for number in order}
        results = {number: future.result() for number, future in runs.items()}
    return {
        number: Ending(str(judge(blocks[number], result, ROOT, house=True) or "good"), result.printed)
        for number, result in results.items()
    }


def capability(level: str) -> str:
    """Return the instructions that torch says it uses at a level."""
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    at = Origin("tests/drift/noise.py", 1)
    return run([Block([Line(code, at)], at)], Setting(0, 1, 1, level))[0].printed.strip()


def main() -> None:
    """Run in each setting; print each block that ends otherwise than in the first, and the number."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--settings", type=int, help="how many")
    options.add_argument("--blocks", default="", help="a word in the names of their pages")
    asked = options.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # until each block has the threads of its setting
    chosen = list(settings())[: asked.settings]
    print("torch uses", ", ".join(f"{capability(level)} ({level})" for level in LEVELS), flush=True)
    blocks, others = published(asked.blocks), 0
    first = run(blocks, chosen[0])
    for ending in first.values():
        if ending.verdict != "good":
            others += 1
            print(f"in the first setting: {ending.verdict.splitlines()[0]}")
    for setting in chosen[1:]:
        print(setting, flush=True)
        for number, ending in sorted(run(blocks, setting).items()):
            if ending != first[number]:
                others += 1
                print(f"{blocks[number].opening}: {ending.verdict.splitlines()[0]}")
                print(f"--- first\n{first[number].printed}--- now\n{ending.printed}")
    print(f"noise: {len(chosen)} settings, {len(blocks)} blocks, {others} other endings")
    sys.exit(others > 0)


if __name__ == "__main__":
    main()
