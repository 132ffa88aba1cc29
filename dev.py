"""Every task of the project, on any system: `python dev.py serve`, or `make serve` where there is make.

Makes .venv on first use, installs into it what the task needs and nothing twice, then runs the task there.
Standard library only, and readable by a Python too old for the project, which is then told so in one line.
"""

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
OLDEST = (3, 11)
SETTINGS = {"PYTHONUTF8": "1", "NO_MKDOCS_2_WARNING": "1"}

CONFIGS = ("mkdocs.yml", "mkdocs.en.yml")
MKDOCS = [f"-m mkdocs build --strict -f {config}" for config in CONFIGS]
ZENSICAL = [*(f"-m zensical build --clean --strict -f {config}" for config in CONFIGS), "-m sitekit.feed"]
MADE = ["-m sitekit.cards", "-m sitekit.feed", "-m sitekit.anki", "-m sitekit.notebooks"]
LINKS = ["-m sitekit.downloads"]
BUILD = [*MKDOCS, *MADE, *LINKS]
LINT = ["-m ruff check .", "-m ruff format --check .", "-m pyright"]
UPDATE = ["-m pytest --update-outputs"]
LEDGER = ".cache/ledger.json"
PUBLISH = ["-m pytest docs --ledger " + LEDGER, "-m sitekit.verified " + LEDGER]
PUBLISH += [*MADE, "-m sitekit.pdf", "-m sitekit.offline " + LEDGER, *LINKS]
TESTS = ["docs", "torch", "test"]


class Task(NamedTuple):
    """One line of help, the groups of pyproject.toml it needs, what .venv's Python is called with in turn."""

    help: str
    groups: list
    commands: list
    default: tuple = ()  # arguments of the last command when none are given


TASKS = {
    "serve": Task("serve both languages, reloaded on save (PORT=8001)", ["docs"], ["-m sitekit.serve"]),
    "build": Task("build both languages into site/, strictly", ["docs"], BUILD),
    "offline": Task("build, and pack the site as a zip to read from a folder, into site/downloads/", ["docs"],
                    [*BUILD, "-m sitekit.offline"]),
    "pdf": Task("build, and print the plan of each language into site/downloads/ (needs Chromium)",
                ["docs", "pdf"], [*BUILD, "-m sitekit.pdf"]),
    "test": Task("run all tests and published blocks (ARGS='-k dpo' chooses)", TESTS, ["-m pytest"]),
    "practice": Task("write it from memory, before a judge (ARGS='start gqa', ARGS=--help)", [*TESTS],
                     ["-m practice"], ("next",)),
    "watch": Task("run again, on every save, the blocks that it changes", TESTS, ["-m tests.site.watch"]),
    "publish": Task("run what is published, then build the pages with what was verified", [*TESTS, "pdf"],
                    PUBLISH),
    "drift": Task("measure how strong the checks are: planted faults, mutants, noise (two hours)", TESTS,
                  ["-m tests.drift"]),
    "rivals": Task("set other tools beside this one on the same planted faults (half an hour)",
                   [*TESTS, "rivals"], ["-m tests.drift.rivals"], ("--write",)),
    "lint": Task("check style and types", [*TESTS, "lint"], LINT),
    "bench": Task("time and memory beside the library calls one would pick", ["torch"], ["-m benchmarks"]),
    "bench-site": Task("the site beside a plain Material site: bytes, builds, Lighthouse (half an hour)",
                       ["docs", "test"], ["-m benchmarks.site"]),
    "update-outputs": Task("run the published blocks, rewrite changed outputs", TESTS, UPDATE, ("docs",)),
    "figures": Task("draw the figures again", ["docs", "torch"], ["-m figures"]),
    "zensical": Task("build both languages with Material's successor", ["docs", "zensical"], ZENSICAL),
    "record": Task("record TRL's DPO loss again, the oracle too heavy for every test run", [*TESTS, "record"],
                   ["tests/llmcore/record_trl.py"]),
    "new-day": Task("create the files of a new day (ARGS=<slug>)", [], ["-m sitekit.new_day"]),
}  # fmt: skip


def fail(message):
    """End with one line."""
    sys.exit("dev.py: " + message)


def requirements(group):
    """The requirement strings of a dependency group; `torch` is TORCH or the version pyproject.toml names."""
    import tomllib

    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    if group == "torch":
        return [os.environ.get("TORCH") or project["tool"]["dev"]["torch"]]
    return project["dependency-groups"][group]


def pip(*args):
    """Run pip of .venv; its own message says what went wrong."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *args]
    if subprocess.run(command, cwd=ROOT).returncode:
        fail("could not install " + " ".join(args))


def install(groups):
    """Create .venv and install the groups that are not there yet or whose requirements have changed."""
    created = VENV / ".created"  # an interrupted start is made again
    if not (created.exists() and PYTHON.exists()):
        print("dev.py: creating .venv", flush=True)
        made = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True
        )
        if made.returncode:
            shutil.rmtree(VENV, ignore_errors=True)
            said = (made.stdout + made.stderr).strip()
            if "ensurepip" in said or "No module named venv" in said:
                fail("Python's venv module is missing (Debian and Ubuntu: apt install python3-venv)")
            fail("could not create .venv: " + said.splitlines()[-1])
        created.touch()
    for group in ["package", *groups]:  # torch before what would pull in another
        wanted = ["--no-deps", "--editable", "."] if group == "package" else requirements(group)
        state = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
        stamp = VENV / (".installed-" + group)
        if stamp.exists() and stamp.read_text() == state:
            continue
        print("dev.py: installing " + group, flush=True)
        pip(*wanted)
        stamp.write_text(state)


def main():
    """Parse the command line and run one task."""
    if sys.version_info < OLDEST:
        fail(
            f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed, {sys.executable} is {sys.version.split()[0]}"
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    width = max(map(len, TASKS))
    lines = [f"  {name:{width}}  {task.help}" for name, task in TASKS.items()]
    parser = argparse.ArgumentParser(
        description="tasks:\n" + "\n".join(lines), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=[*TASKS, "help"], metavar="task", nargs="?", default="help")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="handed to the task")
    options = parser.parse_args()
    if options.task == "help":
        print("\n".join(lines))
        return
    task = TASKS[options.task]
    install(task.groups)
    extra = options.args or list(task.default)
    for number, command in enumerate(task.commands, 1):
        arguments = command.split() + (extra if number == len(task.commands) else [])
        env = os.environ | SETTINGS
        if options.task == "practice":  # which says what to call next
            env |= {"PRACTICE_PROGRAM": "python dev.py practice"}
        try:
            code = subprocess.run([str(PYTHON), *arguments], cwd=ROOT, env=env).returncode
        except KeyboardInterrupt:
            code = 130
        if code:
            sys.exit(code)


if __name__ == "__main__":
    main()
