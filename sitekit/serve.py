"""Serve both languages while they are being written: ``python -m sitekit.serve``.

One process, one port: Chinese at ``/``, English at ``/en/``. A saved page or snippet is rendered again with
what gathers from it (sitekit/incremental.py); a module of llmcore, a template or a configuration builds both
languages anew; then the browser reloads. A page that does not build prints what is wrong and where, and the
last good version stays.
"""

from __future__ import annotations

import argparse
import html
import io
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")  # a banner about other versions that helps no writer

import click
import watchdog.events
from mkdocs.config import load_config
from mkdocs.exceptions import MkDocsException
from mkdocs.livereload import LiveReloadServer

from sitekit.incremental import Site
from sitekit.pages import ROOT, SITES

HOST = "127.0.0.1"
Done = TypeVar("Done")
WATCHED = ("docs", "snippets", "llmcore", "overrides", "sitekit", "benchmarks", "tests")
WATCHED += ("mkdocs.base.yml", *SITES.values())


def _passing(path: Path) -> bool:
    """Say whether a file is a cache or what an editor keeps beside what is edited."""
    return "__pycache__" in path.parts or path.name.startswith(".") or path.name.endswith("~")


class Server(LiveReloadServer):
    """MkDocs' live server over two sites, each in a folder of its own that changes with every build."""

    allow_reuse_address = os.name != "nt"  # on Windows it would let two servers share a port

    def __init__(self, builder: Callable[[], None], port: int, root: Path) -> None:
        super().__init__(builder=builder, host=HOST, port=port, root=str(root))
        self.folders: dict[str, Path] = {}
        self.changed: set[str] = set()

    def watch(self, path: str, func: None = None, *, recursive: bool = True) -> None:
        """Rebuild when a file under ``path`` changes, and remember which; caches and backups do not count."""

        def callback(event: watchdog.events.FileSystemEvent) -> None:
            paths = [os.fsdecode(path) for path in (event.src_path, getattr(event, "dest_path", "")) if path]
            changed = {path for path in paths if not _passing(Path(path))}
            if event.is_directory or not changed:
                return
            with self._rebuild_cond:
                self.changed |= changed
                self._want_rebuild = True
                self._rebuild_cond.notify_all()

        handler = watchdog.events.FileSystemEventHandler()
        handler.on_any_event = callback  # type: ignore[method-assign]
        self._watched_paths[path] = 1
        self.observer.schedule(handler, path, recursive=recursive)

    def serve(self, *, open_in_browser: bool = False) -> None:
        """Serve until interrupted; the port is taken already."""
        self.observer.start()
        self.serve_thread.start()
        self._build_loop()

    def serve_request(self, environ: dict[str, Any], start_response: Callable) -> Iterable[bytes]:
        """Look a path up in the folder of its language."""
        path = environ["PATH_INFO"]
        if path.startswith("/livereload/"):
            return super().serve_request(environ, start_response)
        with self._epoch_cond:  # a build that is under way changes the folder
            self._epoch_cond.wait_for(lambda: self._visible_epoch == self._wanted_epoch)
        language = "en" if path == "/en" or path.startswith("/en/") else "zh"
        prefix = f"/{self.folders[language].name}"
        environ["PATH_INFO"] = prefix + (path.removeprefix("/en") if language == "en" else path)

        status, headers = "", []

        def respond(answer: str, pairs: list[tuple[str, str]], *rest: Any) -> Any:
            nonlocal status, headers
            status = answer
            public = "/en" if language == "en" else ""
            headers = [
                (key, public + value.removeprefix(prefix) if key == "Location" else value)
                for key, value in pairs
            ]

        body = super().serve_request(environ, respond)
        page = self.folders[language] / "404.html"
        if status.startswith("404") and page.is_file():
            body = [page.read_bytes()]
        start_response(status, headers)
        return body


def builder(server: Server, root: Path, port: int) -> Callable[[], None]:
    """Return the function that builds what has changed since the last call; at first everything."""
    count = 0
    sites: dict[str, Site] = {}

    def run() -> None:
        nonlocal count
        with server._rebuild_cond:
            changed, server.changed = server.changed, set()
        for language, config_file in SITES.items():
            others = [str(ROOT / "docs" / other) + os.sep for other in SITES if other != language]
            if (
                language in server.folders
                and changed
                and all(path.startswith(tuple(others)) for path in changed)
            ):
                continue
            start = time.perf_counter()
            if changed and language in sites:
                changes = {path for path in changed if not path.startswith(tuple(others))}
                done, error = _attempt(lambda site=sites[language], changes=changes: site.refresh(changes))
                if done or error:
                    _say(": ".join([config_file, *([", ".join(done)] if done else [])]), start, error)
                if done is not None or error:
                    continue
            count += 1
            folder = root / f"{language}-{count}"
            site, error = _attempt(lambda name=config_file, folder=folder: _build(name, folder, port))
            _say(config_file, start, error)
            if site is None:
                shutil.rmtree(folder, ignore_errors=True)
                sites.pop(language, None)
                if language in server.folders:  # the last good version stays
                    continue
                folder.mkdir()
                (folder / "index.html").write_text(
                    f"<body><pre>{html.escape(error or '')}</pre></body>", encoding="utf-8"
                )
            else:
                sites[language] = site
            old = server.folders.get(language)
            server.folders[language] = folder
            if old is not None:
                shutil.rmtree(old, ignore_errors=True)

    return run


def _build(config_file: str, folder: Path, port: int) -> Site:
    """Build one language into a new folder."""
    url = f"http://{HOST}:{port}/"
    os.environ["SITE_URL"], os.environ["SITE_URL_EN"] = url, url + "en/"
    config = load_config(str(ROOT / config_file), site_dir=str(folder))
    logging.getLogger("jieba").setLevel(logging.WARNING)  # loaded by now, and talkative
    return Site(config, ROOT)


def _attempt(function: Callable[[], Done]) -> tuple[Done | None, str | None]:
    """Return what a function returns and None, or None and what went wrong."""
    try:
        return function(), None
    except (MkDocsException, click.ClickException, SystemExit) as error:
        return None, str(error).replace("Aborted with a BuildError!", "See above.")
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _say(what: str, start: float, error: str | None) -> None:
    """Print what was built, with the time it took, or why not."""
    now = time.strftime("%H:%M:%S")
    if error is None:
        print(f"{now}  {what}: {time.perf_counter() - start:.1f} s", flush=True)
    else:
        print(f"{now}  {what}: not built. {error}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Build both languages, serve them, and rebuild on every change."""
    parser = argparse.ArgumentParser(
        prog="python -m sitekit.serve", description="Serve both languages, live."
    )
    parser.add_argument("--port", type=int, default=os.environ.get("PORT") or "8000", help="PORT, or 8000")
    port: int = parser.parse_args(arguments).port
    os.chdir(ROOT)
    for stream in (sys.stdout, sys.stderr):  # a console that cannot show Chinese is no reason to stop
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    logging.getLogger("mkdocs.livereload").setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    with tempfile.TemporaryDirectory(prefix="llm-by-hand-", ignore_cleanup_errors=True) as temporary:
        root = Path(temporary).resolve()
        server = Server(lambda: None, port, root)
        try:
            server.server_bind()
            server.server_activate()
        except (OSError, OverflowError) as error:
            server.server_close()
            reason = getattr(error, "strerror", None) or str(error)
            print(
                f"Port {port} cannot be used ({reason}). Another: make serve PORT={port + 1}", file=sys.stderr
            )
            return 1
        server.builder = builder(server, root, port)
        try:
            server.builder()
            for name in WATCHED:
                if (ROOT / name).exists():
                    server.watch(str(ROOT / name))
            print(f"中文 {server.url}   English {server.url}en/   (Ctrl-C ends)", flush=True)
            server.serve()
        except KeyboardInterrupt:
            print()
        finally:
            server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
