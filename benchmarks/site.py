"""Measure the site beside a plain Material site of the same pages, in one run: ``python -m benchmarks.site``.

The plain site is what Material's documentation sets up: its own search, KaTeX in the browser by arithmatex;
its pages have every embed already filled in. Measured are the bytes of a first visit, the CPU seconds of a
build and of showing one saved edit, both also for sites that grow, and what Lighthouse says of every kind of
page. ``--write`` keeps the lines in site.out, from which the page about the site reads them.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import http.server
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.utils.yaml import yaml_load

from practice.values import ValueFormError, fill
from sitekit.built import FOLDERS, change_formulas, nav_pages, settings
from sitekit.chromium import NO_CHROMIUM, find_chromium
from sitekit.formulas import CLOSE, OPEN
from sitekit.pages import ROOT, SITES, page_path
from tests.site.repository import KINDS, copy_repository
from tests.site.visits import COMPRESSED, INDEX, WORKER, search, visit

RESULTS = Path(__file__).with_name("site.out")
SIZES = (30, 60, 120)
GATHERING = ("quiz.md", "questions.md", "tags.md")
MATH = """document$.subscribe(() => document.querySelectorAll(".arithmatex").forEach((node) => {
  const tex = node.textContent.trim();
  katex.render(tex.slice(2, -2), node, { displayMode: tex.startsWith("\\\\["), throwOnError: false });
}));
"""
# In a process of its own, in the folder of a copy: CPU seconds to show one edit of a page.
EDIT = """
import sys, time
from pathlib import Path
from mkdocs.config import load_config
from mkdocs.commands.build import build
kind, config, page = sys.argv[1:]
def load():
    return load_config(config, site_dir=str(Path.cwd() / "shown"))
if kind == "ours":
    from sitekit.incremental import Site
    site = Site(load(), Path.cwd())
    show = lambda: site.refresh({str(path)})
else:
    cache = load()
    cache.plugins.on_startup(command="serve", dirty=False)
    build(cache)
    show = lambda: build(load())  # as `mkdocs serve` does
path = Path(page).resolve()
times = []
for number in range(3):
    edited = path.read_text(encoding="utf-8") + f"\\nEdit {number}: $e_{number}$.\\n"
    path.write_text(edited, encoding="utf-8")
    start = time.process_time()
    show()
    times.append(time.process_time() - start)
print(sorted(times)[1])
"""


# ---- the plain site ----


class Expanded(Extension):
    """Keeps each page as it is once everything embedded stands in it."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[Path, str] = {}

    def extendMarkdown(self, md: Markdown) -> None:
        """Register after pymdownx.snippets (32) and before anything reads Markdown."""
        pages = self.pages

        class Keep(Preprocessor):
            def run(self, lines: list[str]) -> list[str]:
                if path := page_path(md):
                    pages.setdefault(path, "\n".join(lines))
                return lines

        md.preprocessors.register(Keep(md), "expanded", 31)


def expand(language: str) -> dict[str, str]:
    """Return the pages of a language by their place in its docs, as Markdown with what is embedded."""
    from mkdocs.commands.build import build

    config = settings(language)
    keep = Expanded()
    config.markdown_extensions.append(keep)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder:
        config.site_dir = folder
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    docs = ROOT / "docs" / language
    pages = {}
    for path, text in keep.pages.items():
        text = "\n".join(_filled(line, path.stem) for line in text.split("\n"))
        text = re.sub(r'^( *\?{3}\+? question) [\w-]+ "', r'\1 "', text, flags=re.MULTILINE)
        front = re.match(r"---\n.*?\n---\n", path.read_text(encoding="utf-8"), re.DOTALL)
        head = re.sub(r"^template:.*\n", "", front[0] if front else "", flags=re.MULTILINE)
        pages[path.relative_to(docs).as_posix()] = head + text
    return pages


def _filled(line: str, slug: str) -> str:
    try:
        return fill(line, slug)
    except ValueFormError:
        return line


def plain_config(language: str, docs: Path) -> dict[str, Any]:
    """Return the configuration of the plain site: Material's theme, search and API pages, nothing of ours."""
    base = yaml_load((ROOT / "mkdocs.base.yml").read_text(encoding="utf-8"))
    own = settings(language)
    extensions = {
        name: values
        for name, values in base["markdown_extensions"].items()
        if not name.startswith("sitekit.") and name != "pymdownx.snippets"
    }
    extensions["pymdownx.arithmatex"] = {"generic": True}
    extensions["pymdownx.highlight"] = {"anchor_linenums": True, "pygments_lang_class": True}
    return {
        "site_name": own.site_name,
        "site_url": "http://127.0.0.1:8000/" + FOLDERS[language],
        "docs_dir": str(docs),
        "theme": {"name": "material", "language": own.theme["language"], "font": False},
        "plugins": [{"search": {"lang": ["zh", "en"]}}, {"mkdocstrings": base["plugins"]["mkdocstrings"]}],
        "markdown_extensions": [{name: values} for name, values in extensions.items()],
        "extra_css": ["katex/katex.min.css"],
        "extra_javascript": ["katex/katex.min.js", "katex/show.js"],
        "nav": own.nav,
    }


def write_plain(root: Path, language: str, pages: dict[str, str], nav: Any = None) -> str:
    """Write the plain site of these pages into the root; return the name of its configuration."""
    docs = root / "plain" / language
    for name, text in pages.items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "overrides" / "assets" / "vendor" / "katex", docs / "katex", dirs_exist_ok=True)
    (docs / "katex" / "show.js").write_text(MATH, encoding="utf-8")
    config = plain_config(language, docs) | ({"nav": nav} if nav else {})
    name = f"plain.{language}.yml"
    (root / name).write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    return name


# ---- what is measured ----


class Compressing(http.server.SimpleHTTPRequestHandler):
    """Serves a folder as a host does, its text compressed."""

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        """Send a file, compressed if it is text."""
        path = Path(self.translate_path(self.path.split("?")[0]))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        if path.suffix in COMPRESSED:
            data = gzip.compress(data, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def host(folder: Path, port: int = 0) -> Iterator[str]:
    """Serve a folder while the block runs; yield its address."""
    handler = functools.partial(Compressing, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def cpu(command: list[str], folder: Path, env: dict[str, str]) -> float:
    """Run a command; return its CPU seconds, those of its children included.

    Raises:
        SystemExit: it fails; with what it said.
    """
    with subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        assert run.stderr is not None
        said = run.stderr.read().decode()
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise SystemExit(f"{' '.join(command)}: {run.returncode}\n{said}")
    return usage.ru_utime + usage.ru_stime


def environment(root: Path, address: str = "http://127.0.0.1:8000/") -> dict[str, str]:
    """Return the variables under which a copy of the repository builds."""
    own = {"PYTHONPATH": str(root), "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return os.environ | own | {"SITE_URL": address, "SITE_URL_EN": f"{address}en/"}


def build(root: Path, config: str, target: Path, address: str = "http://127.0.0.1:8000/") -> float:
    """Build a site into a folder; return the CPU seconds."""
    command = [sys.executable, "-m", "mkdocs", "build", "-f", config, "-d", str(target)]
    return cpu(command, root, environment(root, address))


def measure_builds(root: Path, pages: dict[str, dict[str, str]], rounds: int) -> Iterator[str]:
    """Both languages with their API pages, ours and plain in turn."""
    configs = {
        "ours": list(SITES.values()),
        "plain": [write_plain(root, lang, pages[lang]) for lang in SITES],
    }
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(rounds):
        for kind, names in configs.items():
            targets = [root / "built" / kind / FOLDERS[language] for language in SITES]
            seconds[kind].append(sum(build(root, *pair) for pair in zip(names, targets, strict=True)))
    ours, plain = (statistics.median(seconds[kind]) for kind in ("ours", "plain"))
    ratio = statistics.median(a / b for a, b in zip(seconds["ours"], seconds["plain"], strict=True))
    count = sum(map(len, pages.values()))
    yield f"build, both languages, {count} pages: ours {ours:.1f} s, plain {plain:.1f} s, ratio {ratio:.2f}"


def measure_visits(built: Path) -> Iterator[str]:
    """Bytes of a first visit of each day, without and with the search index; formulas without JavaScript."""
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    if path is None:
        yield f"first visits: not measured. {NO_CHROMIUM}"
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for day in days("zh"):
            sums = {}
            for kind in ("ours", "plain"):
                with host(built / kind) as address:
                    page = browser.new_context().new_page()
                    last = WORKER if kind == "ours" else INDEX
                    sizes = visit(page, built / kind, f"{address}days/{day}/", last)
                    sums[kind] = sum(sizes.values())
                    if kind == "ours":
                        assert not [url for url in sizes if re.search(INDEX, url)]
                        sums["opened"] = sum(search(page, built / kind, sizes).values())
            yield (
                f"first visit of {day}: ours {sums['ours']} bytes, {sums['opened']} once search is opened, "
                f"plain {sums['plain']}"
            )
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        shown = {}
        for kind in ("ours", "plain"):
            with host(built / kind) as address:
                page.goto(f"{address}days/self-attention/")
                shown[kind] = page.locator("article .katex-html").count()
        yield f"formulas without JavaScript on self-attention: ours {shown['ours']}, plain {shown['plain']}"
        browser.close()


def days(language: str) -> list[str]:
    """Return the names of the days, in the order of the nav."""
    return [Path(page).stem for page in nav_pages(settings(language).nav) if page.startswith("days/")]


def generated(pages: dict[str, str], number: int) -> str:
    """Return a page made of a third of a day, whose formulas no other page has."""
    names = days("zh")
    day = pages[f"days/{names[number % len(names)]}.md"]
    sections = re.split(
        r"^(?=## )", re.sub(r"\A---\n.*?\n---\n", "", day, flags=re.DOTALL), flags=re.MULTILINE
    )
    third = len(sections[1:]) // 3 + 1
    part = sections[1:][number // len(names) % 3 * third :][:third]
    text = re.sub(r"(?<![\$\\])\$([^\$\n]+)\$(?!\$)", rf"$\1{{}}_{{{number}}}$", "".join(part))
    text = re.sub(r"(\]\()(?:\.\./)*[\w/-]*\.md[^)]*\)|(\]\()#[^)]*\)", "](https://example.org/)", text)
    return f"---\ntitle: Page {number}\n---\n\n# Page {number}\n\n{text}"


def named(text: str) -> str:
    """Return a page whose questions have names, as ours have them."""
    parts = re.split(r'^( *\?{3}\+? question )(?=")', text, flags=re.MULTILINE)
    return parts[0] + "".join(
        f"{opening}q{number} {rest}"
        for number, (opening, rest) in enumerate(zip(parts[1::2], parts[2::2], strict=True))
    )


def measure_growth(pages: dict[str, str]) -> Iterator[str]:
    """Sites of generated pages: a build, and one saved edit in the live server, each of one language."""
    for size in SIZES:
        texts = {f"days/page-{number}.md": generated(pages, number) for number in range(size)}
        nav = [{"Front": "index.md"}, {"Pages": sorted(texts)}, *GATHERING]
        texts["index.md"] = "# Front\n"
        texts |= {name: pages[name] for name in GATHERING}
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            copy_repository(root)
            shutil.rmtree(root / "docs" / "zh")
            for name, text in texts.items():
                (root / "docs" / "zh" / name).parent.mkdir(parents=True, exist_ok=True)
                own = ROOT / "docs" / "zh" / name
                text = own.read_text(encoding="utf-8") if name in GATHERING else named(text)
                (root / "docs" / "zh" / name).write_text(text, encoding="utf-8")
            config = (root / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[0]
            (root / "mkdocs.yml").write_text(f"{config}\nnav: {json.dumps(nav)}\n", encoding="utf-8")
            configs = {"ours": "mkdocs.yml", "plain": write_plain(root, "zh", texts, nav)}
            built = {kind: build(root, config, root / "built") for kind, config in configs.items()}
            edits = {}
            for kind, config in configs.items():
                page = f"{'docs' if kind == 'ours' else 'plain'}/zh/days/page-1.md"
                command = [sys.executable, "-c", EDIT, kind, config, page]
                done = subprocess.run(
                    command,
                    cwd=root,
                    env=environment(root),
                    capture_output=True,
                    encoding="utf-8",
                    check=True,
                )
                edits[kind] = float(done.stdout.split()[-1])
        yield (
            f"{size} generated pages: build ours {built['ours']:.1f} s, plain {built['plain']:.1f} s, "
            f"ratio {built['ours'] / built['plain']:.2f}; one edit shown ours {edits['ours']:.2f} s, "
            f"plain {edits['plain']:.2f} s, ratio {edits['ours'] / edits['plain']:.3f}"
        )


def measure_formulas(built: Path) -> Iterator[str]:
    """What the search parser costs on formulas as they are handed to it, and on what KaTeX draws."""
    import time

    from material.plugins.search.plugin import Parser

    drawn = []
    for day in days("zh"):
        text = (built / "ours" / "days" / day / "index.html").read_text(encoding="utf-8")
        drawn.append(text[text.index("<article") : text.index("</article>")])

    def parse(texts: list[str]) -> float:
        times = []
        for _ in range(5):
            start = time.process_time()
            for text in texts:
                parser = Parser()
                parser.feed(text)
                parser.close()
            times.append(time.process_time() - start)
        return statistics.median(times)

    handed = [change_formulas(text, lambda one, _: OPEN + one + CLOSE) for text in drawn]
    count = sum(text.count(OPEN) for text in handed)
    whole, hidden = parse(drawn), parse(handed)
    yield (
        f"the search parser on the days, {count} formulas: {hidden:.2f} s as they are handed to it, "
        f"{whole:.2f} s if it saw what KaTeX draws"
    )


def measure_lighthouse(built: Path, command: list[str]) -> Iterator[str]:
    """Every kind of page, both languages, both schemes: the worst score of each category, and where."""
    categories = ("accessibility", "best-practices", "seo", "performance")
    worst: dict[str, tuple[float, str]] = {}
    runs = 0
    chromium = find_chromium()
    if not chromium or not shutil.which(command[0]):
        yield "Lighthouse: not run. npm install --global lighthouse, and a Chromium"
        return
    with tempfile.TemporaryDirectory() as folder, host(built) as address:
        for path in (
            FOLDERS[language] + kind for language in SITES for kind in [*KINDS, "days/self-attention/"]
        ):
            for scheme, number in (("dark", 0), ("light", 1)):
                flags = f"--headless=new --no-sandbox --blink-settings=preferredColorScheme={number}"
                report = Path(folder, "report.json")
                options = [f"{address}{path}", "--preset=desktop", "--output=json", f"--output-path={report}"]
                options += [f"--only-categories={','.join(categories)}", f"--chrome-flags={flags}", "--quiet"]
                env = os.environ | {"CHROME_PATH": chromium}
                subprocess.run([*command, *options], env=env, check=True, capture_output=True)
                result = json.loads(report.read_text(encoding="utf-8"))
                runs += 1
                for name in categories:
                    score = 100 * result["categories"][name]["score"]
                    if score < worst.get(name, (101.0, ""))[0]:
                        worst[name] = (score, f"{path or 'front page'} {scheme}")
                failed = [
                    one["id"]
                    for one in result["audits"].values()
                    if one["score"] is not None and one["score"] < 1 and one["scoreDisplayMode"] == "binary"
                ]
                print(
                    f"  {path or 'front page'} {scheme}:",
                    *(f"{name} {100 * result['categories'][name]['score']:.0f}" for name in categories),
                    *failed,
                    flush=True,
                )
    said = ", ".join(f"{name} {score:.0f} ({where})" for name, (score, where) in worst.items())
    yield f"Lighthouse, {runs} runs, the lowest of each: {said}"


def keep(lines: list[str], stamp: str) -> None:
    """Write what was measured in the place of what was measured before; what was not run is not written."""

    def subject(line: str) -> str:
        return re.split("[,:]", line)[0]

    before = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.is_file() else []
    results = {subject(line): line for line in before}
    results |= {subject(line): f"{line}  {stamp}" for line in lines if ": not " not in line}
    RESULTS.write_text("\n".join(results.values()) + "\n", encoding="utf-8")


def main() -> int:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.site", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"keep the lines in {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--rounds", type=int, default=3, help="of the builds (default: 3)")
    parser.add_argument("--lighthouse", default="lighthouse", help="the command (default: lighthouse)")
    parser.add_argument("parts", nargs="*", help="builds visits formulas growth lighthouse; all, if none")
    options = parser.parse_args()
    if not hasattr(os, "wait4"):
        sys.exit("CPU seconds of another process are measured on Linux and macOS alone")
    parts = options.parts or ["builds", "visits", "formulas", "growth", "lighthouse"]
    lines: list[str] = []

    def note(results: Iterator[str]) -> None:
        for line in results:
            print(line, flush=True)
            lines.append(line)

    pages = {language: expand(language) for language in SITES}
    for language, texts in pages.items():  # a page that is lost would be a cheap page
        assert texts.keys() == set(nav_pages(settings(language).nav))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_repository(root)
        builds = measure_builds(root, pages, options.rounds if "builds" in parts else 1)
        note(builds if "builds" in parts else iter(()))
        list(builds)  # the sites themselves, for the other parts
        if "visits" in parts:
            note(measure_visits(root / "built"))
        if "formulas" in parts:
            note(measure_formulas(root / "built"))
        if "growth" in parts:
            note(measure_growth(pages["zh"]))
        if "lighthouse" in parts:
            note(measure_lighthouse(root / "built" / "ours", options.lighthouse.split()))
    command = ["git", "describe", "--always", "--dirty=, with changes", "--exclude=*"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    if options.write:
        keep(lines, f"({date.today()}, commit {commit})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
