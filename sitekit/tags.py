"""What a day is about, how hard it is and how often it is asked: in its front matter and under its title.

    topics: [attention, numerics]
    difficulty: 2
    frequency: 3

The line ``[[tags]]`` on a page becomes the days by each of the three. The words below are all there are. A
page that states none of the three shows none; a test holds the days to theirs.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from sitekit.indexes import day_paths, title_of
from sitekit.pages import SITES, FrontMatterError, front_matter, page_path, refuse

Words = dict[str, dict[str, tuple[str, str]]]  # kind -> value -> what it is called, in the order of SITES
KINDS = {
    "topics": ("主题", "Topic"),
    "difficulty": ("难度", "Difficulty"),
    "frequency": ("频率", "Frequency"),
}
VALUES: Words = {
    "topics": {
        "attention": ("注意力", "Attention"),
        "architecture": ("模型结构", "Architecture"),
        "numerics": ("数值稳定", "Numerical stability"),
        "training": ("训练", "Training"),
        "losses": ("损失函数", "Loss functions"),
        "inference": ("推理与缓存", "Inference and caches"),
        "efficiency": ("微调与压缩", "Fine-tuning and compression"),
        "post-training": ("后训练", "Post-training"),
        "systems": ("系统", "Systems"),
        "applications": ("评测与应用", "Evaluation and applications"),
    },
    "difficulty": {
        "1": ("入门", "First steps"),
        "2": ("进阶", "Intermediate"),
        "3": ("深入", "Advanced"),
    },
    "frequency": {
        "3": ("必考", "Almost always"),
        "2": ("常考", "Often"),
        "1": ("偶尔", "Now and then"),
    },
}
LANGUAGES = list(SITES)


class TagError(FrontMatterError):
    """Front matter that lacks a tag or has another than the known ones."""


class Tag(NamedTuple):
    """One of the things said of a day."""

    kind: str
    value: str

    @property
    def anchor(self) -> str:
        """Its address on the page of tags."""
        return f"{self.kind}-{self.value}"

    def name(self, language: str) -> str:
        """What it is called."""
        return VALUES[self.kind][self.value][LANGUAGES.index(language)]


def read_tags(text: str) -> list[Tag]:
    """Return the tags of a day, in the order of ``KINDS``; none if its front matter has none of the three.

    Args:
        text: the page, with its front matter.

    Raises:
        TagError: some are there and one of the three is missing.
        TagError: a value is none of the known ones.
    """
    meta = front_matter(text)
    tags: list[Tag] = []
    if not meta.keys() & VALUES.keys():
        return tags
    for kind, known in VALUES.items():
        values = meta.get(kind)
        values = values if isinstance(values, list) else [] if values is None else [values]
        if not values:
            raise TagError(f"a day states its {kind} in the front matter: {', '.join(known)}")
        for value in map(str, values):
            if value not in known:
                raise TagError(f"{kind}: {value} is none of {', '.join(known)}")
            tags.append(Tag(kind, value))
    return tags


def tag_line(tags: list[Tag], language: str) -> list[str]:
    """Return the line under the title of a day, as Markdown."""
    groups = []
    for kind, names in KINDS.items():
        links = [f"[{one.name(language)}](../tags.md#{one.anchor})" for one in tags if one.kind == kind]
        groups.append(f"{names[LANGUAGES.index(language)]} {' '.join(links)}")
    return ["", " · ".join(groups), '{ .tags data-search-exclude="" }', ""]


def list_tags(paths: list[Path], language: str) -> list[str]:
    """Return the days by tag, as lines of Markdown; what no day has is left out."""
    texts = [(path, path.read_text(encoding="utf-8-sig")) for path in paths]
    days = [(read_tags(text), f"- [{title_of(path, text)}](days/{path.name})") for path, text in texts]
    lines = []
    for kind, names in KINDS.items():
        lines += [f"## {names[LANGUAGES.index(language)]} {{ #{kind} }}", ""]
        for value in VALUES[kind]:
            tag = Tag(kind, value)
            if having := [link for tags, link in days if tag in tags]:
                lines += [f"### {tag.name(language)} {{ #{tag.anchor} }}", "", *having, ""]
    return lines


class TagPreprocessor(Preprocessor):
    """Shows the tags of a day below its title, and the days by tag where a page asks for them."""

    md: Markdown

    def run(self, lines: list[str]) -> list[str]:
        """Add what is to be shown."""
        path = page_path(self.md)
        if path is None:
            return lines
        folder = path.parent
        if folder.name == "days" and folder.parent.name in SITES:
            return self._day(lines, path, folder.parent.name)
        at = next((index for index, line in enumerate(lines) if line.rstrip() == "[[tags]]"), None)
        if at is None:
            return lines
        if folder.name not in SITES:
            refuse(self.md, None, "[[tags]] stands on a page directly under docs/zh or docs/en")
            return lines
        paths = day_paths(folder.name, path.parents[2])
        try:
            return lines[:at] + list_tags(paths, folder.name) + lines[at + 1 :]
        except FrontMatterError:  # the page of the day says which
            return lines[:at] + lines[at + 1 :]

    def _day(self, lines: list[str], path: Path, language: str) -> list[str]:
        try:
            tags = read_tags(path.read_text(encoding="utf-8-sig"))
        except FrontMatterError as error:
            refuse(self.md, error.line, str(error))
            return lines
        if not tags:
            return lines
        at = next((index for index, line in enumerate(lines, 1) if line.startswith("# ")), 0)
        return lines[:at] + tag_line(tags, language) + lines[at:]


class TagExtension(Extension):
    """The Markdown extension ``sitekit.tags``."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register before all that reads Markdown."""
        md.preprocessors.register(TagPreprocessor(md), "tags", 41)


def makeExtension(**kwargs: object) -> TagExtension:
    """Return the extension (called by Markdown)."""
    return TagExtension(**kwargs)
