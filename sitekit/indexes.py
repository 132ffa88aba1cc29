"""Indexes over the days, made while the site is built: a line ``[[questions]]`` or ``[[papers]]`` on a page.

``[[questions]]`` becomes every theory question of every day, linked to where it is answered; ``[[papers]]``
every arXiv paper that a day cites, with what the references of the day say of it and the sections that cite
it. Days come in the order of the nav. A paper that is not among the references of its day is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from practice.values import ValueFormError, fill
from sitekit.pages import ROOT, SITES, FrontMatterError, front_matter, page_path, refuse

FORM = re.compile(r"\[\[(?P<index>[a-z]+)\]\]\s*")  # [[tags]] has become sitekit.tags' by now
DAY = re.compile(r"\bdays/(?P<slug>[\w-]+)\.md\b")
HEADING = re.compile(r"#{2,3} (?P<text>.*?) \{ #(?P<id>[\w-]+)[^}]*\}\s*")
QUESTION = re.compile(r'\?{3}\+? question (?P<name>[a-z0-9-]+) "(?P<text>.*)"\s*')
PAPER = re.compile(r"(?:arxiv\.org/abs/|\barXiv:)(?P<id>\d{4}\.\d{4,5})")
INDEXES = ("questions", "papers")
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
REFERENCES = "references"
WORDS = {"zh": ("论文", "引用处", "：", "、"), "en": ("Paper", "Cited in", ": ", ", ")}


class Question(NamedTuple):
    """A theory question of a day."""

    name: str
    text: str


class Citation(NamedTuple):
    """A place where a day cites a paper."""

    line: int
    paper: str
    anchor: str
    place: str  # the heading
    text: str  # what the list of references says, "" elsewhere


class Day(NamedTuple):
    """What the indexes take from the page of a day."""

    path: Path
    title: str
    questions: list[Question]
    citations: list[Citation]

    @property
    def slug(self) -> str:
        """The name of the day."""
        return self.path.stem


def read_day(path: Path, root: Path = ROOT) -> Day:
    """Return what the indexes take from a page.

    Args:
        path: the page of a day.
        root: where ``snippets`` lie, from which numbers in questions are filled in.

    Raises:
        ValueFormError: a question names a number that is not there.
    """

    def filled(line: str, number: int) -> str:
        try:
            return fill(line, path.stem, root)
        except ValueFormError as error:
            where = path.relative_to(root).as_posix()
            raise ValueFormError(f"{where}:{number}: {error}") from error

    text = path.read_text(encoding="utf-8-sig")
    questions: list[Question] = []
    citations: list[Citation] = []
    anchor = place = fence = ""
    section = anchor
    for number, line in enumerate(text.split("\n"), 1):
        if match := FENCE.match(line):
            fence = "" if fence and match[1].startswith(fence) else fence or match[1]
        if fence:
            continue
        if match := HEADING.fullmatch(line):
            anchor = section = match["id"]
            place = match["text"]
        elif match := QUESTION.fullmatch(line):
            anchor = f"q-{match['name']}"
            words = re.sub(r"^\d+\. ", "", filled(match["text"], number))
            questions.append(Question(match["name"], words))
        elif line and not line.startswith(" "):
            anchor = section
        for match in PAPER.finditer(line):
            words = _entry(filled(line, number), match[0]) if section == REFERENCES else ""
            citations.append(Citation(number, match["id"], anchor, place, words))
    return Day(path, title_of(path, text), questions, citations)


def title_of(path: Path, text: str) -> str:
    """Return the title that the front matter of a page states, or its name.

    Args:
        path: the page.
        text: all of it.

    Raises:
        FrontMatterError: the front matter cannot be read.
    """
    return str(front_matter(text).get("title", path.stem))


def _entry(line: str, link: str) -> str:
    """Return what a line of the references says of one paper: all of it, or the part between semicolons."""
    line = re.sub(r"^\s*[-*] +", "", line).rstrip()
    parts = re.split(r"[;；]\s*", line) if len(PAPER.findall(line)) > 1 else [line]
    return next(part for part in parts if link in part).rstrip("。.").replace("|", "\\|")


def day_paths(language: str, root: Path = ROOT) -> list[Path]:
    """Return the pages of the days of a language, in the order of its nav."""
    nav = (root / SITES[language]).read_text(encoding="utf-8")
    paths = [root / "docs" / language / "days" / f"{match['slug']}.md" for match in DAY.finditer(nav)]
    return [path for path in paths if path.is_file()]


def read_days(language: str, root: Path = ROOT) -> list[Day]:
    """Return what the indexes take from the days of a language."""
    return [read_day(path, root) for path in day_paths(language, root)]


def list_questions(days: list[Day]) -> list[str]:
    """Return the index of questions, as lines of Markdown."""
    lines = []
    for day in days:
        lines += [f"## {day.title} {{ #{day.slug} }}", ""]
        lines += [f"1. [{one.text}](days/{day.slug}.md#q-{one.name})" for one in day.questions] + [""]
    return lines


def list_papers(days: list[Day], language: str) -> list[str]:
    """Return the index of papers by arXiv id, which is the order in time, as lines of Markdown."""
    paper, cited, colon, comma = WORDS[language]
    lines = [f"| {paper} | {cited} |", "|---|---|"]
    for name in sorted({one.paper for day in days for one in day.citations}):
        said, places = [], []
        for day in days:
            own = [one for one in day.citations if one.paper == name]
            said += [one.text for one in own if one.text]
            inside = {one.anchor: one.place for one in own if not one.text} or {
                one.anchor: one.place for one in own
            }
            links = [
                f"[{place}](days/{day.slug}.md#{anchor})" if anchor else f"[{day.title}](days/{day.slug}.md)"
                for anchor, place in inside.items()
            ]
            places += [day.title + colon + comma.join(links)] if own else []
        lines.append(f"| {'<br>'.join(dict.fromkeys(said))} | {'<br>'.join(places)} |")
    return lines


class IndexPreprocessor(Preprocessor):
    """Puts an index in the place of its line."""

    md: Markdown

    def run(self, lines: list[str]) -> list[str]:
        """Replace every line that asks for an index."""
        shown: list[str] = []
        for number, line in enumerate(lines, 1):
            match = FORM.fullmatch(line)
            shown.extend(self._index(match["index"], number) if match else [line])
        return shown

    def _index(self, name: str, number: int) -> list[str]:
        if name not in INDEXES:
            refuse(
                self.md,
                number,
                f"[[{name}]] is no index; there are {', '.join(INDEXES)}, tags, exercises, mistakes, counts",
            )
            return []
        path = page_path(self.md)
        language = path.parent.name if path else ""
        if path is None or language not in SITES:
            refuse(self.md, number, f"[[{name}]] stands on a page directly under docs/zh or docs/en")
            return []
        try:
            days = read_days(language, path.parents[2])
        except FrontMatterError:  # the page of the day says which
            return []
        except ValueFormError as error:
            refuse(self.md, number, str(error))
            return []
        if name == "questions":
            return list_questions(days)
        for day in days:
            known = {one.paper for one in day.citations if one.text}
            for one in day.citations:
                if one.paper not in known:
                    where = day.path.relative_to(path.parents[2]).as_posix()
                    refuse(
                        self.md,
                        None,
                        f"{where}:{one.line}: {one.paper} is not among the references of the page",
                    )
        return list_papers(days, language)


class IndexExtension(Extension):
    """The Markdown extension ``sitekit.indexes``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register before all that reads Markdown, as an index is Markdown."""
        md.preprocessors.register(IndexPreprocessor(md), "indexes", 40)


def makeExtension(**kwargs: object) -> IndexExtension:
    """Return the extension (called by Markdown)."""
    return IndexExtension(**kwargs)
