"""What a day asks its reader to write, and the mistakes that people make: from the catalogue of exercises.

The line ``[[exercises]]`` on the page of a day becomes the table of its exercises, on another page that of
all days; ``[[mistakes]]`` the known mistakes of each, folded; ``[[counts]]`` how many there are of all that.
"""

from __future__ import annotations

import xml.etree.ElementTree as etree
from collections.abc import Iterator

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

from practice.catalogue import ROOT, CatalogueError, Exercise, read_all
from sitekit.indexes import day_paths, title_of
from sitekit.pages import line_number, page_path, refuse

WORDS = {
    "zh": ("题目", "手写什么", "难度", "分钟", "错误", "哪一天"),
    "en": ("exercise", "to write", "level", "minutes", "mistakes", "day"),
}
COUNTS = {
    "zh": (
        "共 {exercises} 道题。判题器拒绝全部 {wrong} 种已知的错误写法，"
        "每一种都认得出来；{right} 份写法不同的正确答案全部通过。"
    ),
    "en": (
        "{exercises} exercises. The judge refuses all {wrong} known wrong ways and recognises each of them; "
        "all {right} right answers that are written in other ways pass."
    ),
}
KNOWN = {
    "zh": "{title}：判题器认得的 {count} 种错误",
    "en": "{title}: the {count} mistakes that the judge knows",
}
WRITTEN = {"zh": "写成：`{code}`", "en": " Written as `{code}`"}
BRACKETS = {"zh": "\uff08{}\uff09", "en": " ({})"}
SHORT = 90  # characters of a mistake that is shown as it is written


def right_answers() -> int:
    """Return how many right answers, written in other ways, the proof of the judge has."""
    return len(list((ROOT / "tests" / "practice" / "right").glob("*/*.py")))


class ExercisePreprocessor(Preprocessor):
    """Writes out the three lines."""

    md: Markdown

    def run(self, lines: list[str]) -> list[str]:
        """Replace each of the lines by what it stands for."""
        shown: list[str] = []
        known: list[Exercise] = []  # read when the first line asks for it
        for line in lines:
            kind = line.strip()
            if kind not in ("[[exercises]]", "[[mistakes]]", "[[counts]]"):
                shown.append(line)
                continue
            try:
                known = known or list(read_all().values())
                shown += ["", *self._written(kind, known), ""]
            except CatalogueError as error:
                refuse(self.md, line_number(self.md, line), str(error))
        return shown

    def _written(self, kind: str, known: list[Exercise]) -> list[str]:
        path = page_path(self.md)
        if path is None:
            return []
        days = path.parent.name == "days"
        language = (path.parent.parent if days else path.parent).name
        chosen = [each for each in known if not days or each.day == path.stem]
        if not chosen:
            raise CatalogueError(f"no exercise has day = {path.stem!r}")
        if kind == "[[counts]]":
            wrong = sum(len(each.wrong) for each in chosen)
            return [COUNTS[language].format(exercises=len(chosen), wrong=wrong, right=right_answers())]
        if kind == "[[mistakes]]":
            return [line for each in chosen for line in _mistakes(each, language)]
        titles = (
            {} if days else {p.stem: title_of(p, p.read_text(encoding="utf-8")) for p in day_paths(language)}
        )
        return list(_table(chosen, language, titles))


def _table(chosen: list[Exercise], language: str, titles: dict[str, str]) -> Iterator[str]:
    """Yield a table of exercises; with their days, if their titles are given."""
    name, what, level, minutes, wrong, day = WORDS[language]
    last = f" {day} |" if titles else ""
    yield f"| {name} | {what} | {level} | {minutes} | {wrong} |{last}"
    yield "|---|---|---|---:|---:|" + ("---|" if titles else "")
    for each in chosen:
        symbols = "、".join if language == "zh" else ", ".join
        link = f" [{titles.get(each.day, each.day)}](days/{each.day}.md#exercise) |" if titles else ""
        yield (
            f"| `{each.name}` | {each.title[language]}"
            f"{BRACKETS[language].format(symbols(f'`{symbol}`' for symbol in each.symbols))} | "
            f"{'★' * each.level} | {each.minutes} | {len(each.wrong)} |{link}"
        )


def _mistakes(each: Exercise, language: str) -> Iterator[str]:
    """Yield the folded list of an exercise's mistakes."""
    title = KNOWN[language].format(title=f"`{each.name}`", count=len(each.wrong))
    yield f'??? bug "{title}"'
    yield ""
    stop = "。" if language == "zh" else "."
    for number, wrong in enumerate(each.wrong, 1):
        new = [" ".join(change[1].split()) for change in wrong.change]
        written = ""
        if len(new) == 1 and 0 < len(new[0]) <= SHORT and "`" not in new[0]:
            written = WRITTEN[language].format(code=new[0])
        gap = " " if language == "en" else ""
        yield f"    {number}. **{wrong.title[language]}{stop}**{gap}{wrong.why[language]}{written}"
    yield ""


class FoldedTreeprocessor(Treeprocessor):
    """Keeps the lists out of the search index: they would be found before the pages that explain."""

    def run(self, root: etree.Element) -> None:
        """Mark them."""
        for node in root.iter("details"):
            if node.get("class", "").split()[:1] == ["bug"]:
                node.set("data-search-exclude", "")
        for table in root.iter("table"):
            if (table.findtext("./thead/tr/th") or "") in [words[0] for words in WORDS.values()]:
                table.set("data-search-exclude", "")


class ExerciseExtension(Extension):
    """The Markdown extension ``sitekit.exercises``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register before everything that reads Markdown."""
        md.preprocessors.register(ExercisePreprocessor(md), "exercises", 40)
        md.treeprocessors.register(FoldedTreeprocessor(md), "exercises", 7)


def makeExtension(**kwargs: object) -> ExerciseExtension:
    """Return the extension (called by Markdown)."""
    return ExerciseExtension(**kwargs)
