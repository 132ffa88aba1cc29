"""Builds the site to publish: each page says what was verified, the ledger of the run stands beside it.

    python -m sitekit.verified LEDGER     (what `pytest docs --ledger LEDGER` wrote)

A plain `mkdocs build` has no ledger, and its pages say that nothing was verified.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from sitekit.pages import ROOT, SITES


def verified(ledger: dict[str, Any], language: str) -> dict[str, Any]:
    """Return what the pages of one language show, by the address of the page; "" is the front page."""
    folder = f"docs/{language}/"
    pages = {
        name.removeprefix(folder): page for name, page in ledger["pages"].items() if name.startswith(folder)
    }
    if not pages:
        raise SystemExit(f"the ledger has no page of {folder}: run all of docs")
    by_address = {name.removesuffix(".md").removesuffix("index"): page for name, page in pages.items()}
    keys = ("blocks", "run", "skipped", "outputs")
    total = {key: sum(page[key] for page in pages.values()) for key in keys} | {"pages": len(pages)}
    known = {key: ledger[key] for key in ("date", "commit", "versions")}
    return {
        **known,
        "total": total,
        "pages": {name and f"{name}/": page for name, page in by_address.items()},
    }


def build_with(changes: dict[str, Any], config: str, name: str, *options: str) -> None:
    """Build one language with a configuration that changes its own for as long as that takes.

    Args:
        changes: settings of MkDocs; what is in `extra` is added to what is there.
        config: the configuration of the language.
        name: of the changed one: `mkdocs.yml` becomes `mkdocs.<name>.yml`.
        options: of `mkdocs build`.

    Raises:
        CalledProcessError: MkDocs refuses the site, and has said why.
    """
    path = ROOT / config.replace(".yml", f".{name}.yml")
    lines = [f"INHERIT: {config}", *(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in changes.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    try:
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", path.name]
        subprocess.run([*command, *options], cwd=ROOT, check=True)
    finally:
        path.unlink()


def main() -> None:
    """Build both languages, each with a configuration that adds the ledger to its own."""
    ledger = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for language, config in SITES.items():
        build_with({"extra": {"verified": verified(ledger, language)}}, config, "verified")
    shutil.copyfile(sys.argv[1], ROOT / "site" / "ledger.json")


if __name__ == "__main__":
    main()
