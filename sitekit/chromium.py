"""Finds a Chromium that is installed; none is ever downloaded."""

from __future__ import annotations

import os
import shutil
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
NO_CHROMIUM = (
    "no Chromium found: install one (Debian and Ubuntu: apt install chromium; elsewhere: Chrome, Chromium or "
    "Edge), or name its program in the variable CHROMIUM"
)


def find_chromium() -> str | None:
    """Return the program of an installed Chromium, Chrome or Edge: CHROMIUM, the path, the usual places."""
    if named := os.environ.get("CHROMIUM"):
        return shutil.which(named)
    found = (shutil.which(name) for name in NAMES)
    return next(filter(None, found), None) or next((place for place in PLACES if Path(place).is_file()), None)
