"""Links each download from the pages, once it is there.

    python -m sitekit.downloads     (the last step of `make build`, `make pdf` and `make offline`)

The templates name a download as ``<span data-download="../downloads/x.pdf">``, words that are no link, beside
others that say how to make it. What MkDocs builds, and `make serve` shows, therefore holds no broken link.
This makes each of them a link when the file is there.
"""

from __future__ import annotations

import re
from pathlib import Path

from sitekit.built import SITE

LINK = re.compile(r'<(span|a href="[^"]*") data-download="([^"]+)"( download)?>([^<]*)</(?:span|a)>')


def offer(site: Path = SITE) -> dict[str, int]:
    """Give every link to a download in a built site its target, or take it away; return links by file.

    Raises:
        SystemExit: the site is not built.
    """
    if not site.is_dir():
        raise SystemExit(f"downloads: {site} is not there; `make build` builds it")
    found: dict[str, int] = {}
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(encoding="utf-8")

        def link(match: re.Match[str], folder: Path = page.parent) -> str:
            path, download, words = match[2], match[3] or "", match[4]
            file = (folder / path).resolve()
            if not file.is_file():
                return f'<span data-download="{path}"{download}>{words}</span>'
            name = file.relative_to(site.resolve()).as_posix()
            found[name] = found.get(name, 0) + 1
            return f'<a href="{path}" data-download="{path}"{download}>{words}</a>'

        linked = LINK.sub(link, text)
        if linked != text:
            page.write_text(linked, encoding="utf-8", newline="\n")
    return found


def main() -> None:
    """Link what is in site/."""
    for name, count in sorted(offer().items()):
        print(f"site/{name}: linked from {count} pages")


if __name__ == "__main__":
    main()
