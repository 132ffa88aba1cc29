"""Finds and runs a Chromium that is installed; none is ever downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
SECONDS = 600  # what hangs is not waited for
NO_CHROMIUM = (
    "no Chromium found: install one (Debian and Ubuntu: apt install chromium; elsewhere: Chrome, Chromium or "
    "Edge), or name its program in the variable CHROMIUM"
)


class ChromiumError(RuntimeError):
    """A Chromium that is not there or did not make what it was to make; the message says which."""


def find_chromium() -> str | None:
    """Return the program of an installed Chromium, Chrome or Edge: CHROMIUM, the path, the usual places."""
    if named := os.environ.get("CHROMIUM"):
        return shutil.which(named)
    found = (shutil.which(name) for name in NAMES)
    return next(filter(None, found), None) or next((place for place in PLACES if Path(place).is_file()), None)


def run_chromium(page: Path, makes: Path, *options: str) -> None:
    """Open a page without a window, to print it or to take a picture of it.

    Args:
        page: a file.
        makes: the file that comes of it.
        options: what to do.

    Raises:
        ChromiumError: there is none, or it did not make the file.
    """
    chromium = find_chromium()
    if chromium is None:
        raise ChromiumError(NO_CHROMIUM)
    command = [chromium, "--headless", "--disable-gpu", *options]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--no-sandbox")  # root in a container has no other way
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command += [f"--user-data-dir={profile}", page.resolve().as_uri()]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            raise ChromiumError(f"{chromium} did not make {makes.name} in {SECONDS} s") from None
    if done.returncode or not makes.is_file():
        raise ChromiumError(f"{chromium} did not make {makes.name}: {done.stderr.strip()[-500:]}")
