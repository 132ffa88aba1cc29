"""The site as one file to unpack and read without a server or a network.

    python -m sitekit.offline [LEDGER]     (after `make build`; the ledger as for sitekit.verified)

Both languages are built again with pages that a folder can serve (``days/dpo.html``), and with search: a
browser gives a page opened from a disk neither a worker nor the index, so a small vendored shim stands in for
the worker and the index comes as a script. Material's own plugin does the same with a shim from another host.
The decks, notebooks and documents are those of the built site, as far as they are there.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from sitekit.built import FOLDERS, SITE
from sitekit.downloads import offer
from sitekit.pages import ROOT, SITES
from sitekit.verified import build_with, verified

NAME = "llm-by-hand"
SHIM = "assets/vendor/iframe-worker/shim.js"
UNUSED = ("404.html", "sitemap.xml", "sitemap.xml.gz")  # are for servers


def build(folder: Path, ledger: dict[str, Any] | None = None) -> None:
    """Build both languages into a folder from which they can be read.

    Args:
        folder: where to; what is in it is replaced.
        ledger: of the run whose results the pages state.

    Raises:
        CalledProcessError: MkDocs refuses the site, and has said why.
    """
    for language, config in SITES.items():
        extra: dict[str, Any] = {"polyfills": [SHIM]}
        if ledger is not None:
            extra["verified"] = verified(ledger, language)
        target = folder / FOLDERS[language]
        changes = {"use_directory_urls": False, "extra": extra}
        build_with(changes, config, "offline", "-d", str(target))
        index = (target / "search" / "search_index.json").read_text(encoding="utf-8")
        (target / "search" / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
        for name in UNUSED:
            (target / name).unlink(missing_ok=True)


def pack(folder: Path, path: Path) -> None:
    """Write a folder as one archive that unpacks into a folder of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix != ".map":
                archive.write(file, f"{NAME}/{file.relative_to(folder).as_posix()}")


def offline_path(site: Path = SITE) -> Path:
    """Return where the archive lies in the built site: one for both languages."""
    return site / "downloads" / f"{NAME}.zip"


def main() -> None:
    """Build, add the downloads that are there, and pack."""
    ledger = Path(sys.argv[1]) if sys.argv[1:] else None
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        build(folder, json.loads(ledger.read_text(encoding="utf-8")) if ledger else None)
        for language in SITES:
            made = SITE / FOLDERS[language] / "downloads"
            for file in sorted(made.glob("*")) if made.is_dir() else ():
                if file != offline_path():
                    target = folder / FOLDERS[language] / "downloads" / file.name
                    target.parent.mkdir(exist_ok=True)
                    shutil.copyfile(file, target)
        if ledger:
            shutil.copyfile(ledger, folder / "ledger.json")
        offer(folder)
        pack(folder, offline_path())
    offer()
    print(f"{offline_path().relative_to(ROOT).as_posix()}: {offline_path().stat().st_size / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
