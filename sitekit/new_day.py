"""Create the files of a new day: `python -m sitekit.new_day rope`."""

import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SECTIONS = [
    ("recipe", "步骤总结", "Recipe"),
    ("derivation", "原理与推导", "Principle and derivation"),
    ("shapes", "形状", "Shapes"),
    ("code", "代码", "Code"),
    ("numbers", "值得记住的数字", "Numbers worth remembering"),
    ("mistakes", "常见错误", "Common mistakes"),
    ("questions", "八股", "Theory questions"),
    ("exercise", "合上页面写一遍", "Close the page and write it"),
    ("references", "参考", "References"),
]
TAGS = "topics: [attention]\ndifficulty: 2\nfrequency: 1\n"  # sitekit/tags.py has all there are
LABELS = {"zh": ("待写", "输出"), "en": ("To be written", "Output")}


def page(slug: str, language: str) -> str:
    """The empty page of a day: the sections that every day has, and the first snippet with its output."""
    todo, output = LABELS[language]
    snippet = f"snippets/{slug}/demo"
    code = (
        f'```python title="{snippet}.py"\n--8<-- "{snippet}.py"\n```\n\n'
        f'<!--pytest-codeblocks:expected-output-->\n```text title="{output}"\n--8<-- "{snippet}.out"\n```\n\n'
    )
    front = f"title: {slug}\ndescription: {todo}\ndate: {datetime.date.today()}\n{TAGS}"
    body = [f"---\n{front}---\n\n# {slug}\n\n"]
    for anchor, chinese, english in SECTIONS:
        heading = chinese if language == "zh" else english
        body.append(f"## {heading} {{ #{anchor} }}\n\n" + (code if anchor == "code" else f"{todo}\n\n"))
    return "".join(body).rstrip("\n") + "\n"


def files(slug: str) -> dict[str, str]:
    """Path from the root to content, for every file of a new day."""
    return {
        f"docs/zh/days/{slug}.md": page(slug, "zh"),
        f"docs/en/days/{slug}.md": page(slug, "en"),
        f"snippets/{slug}/demo.py": f'"""What this shows of {slug}, in one line."""\n\nprint("{slug}")\n',
        f"snippets/{slug}/demo.out": f"{slug}\n",
    }


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write the files, unless the name is bad or one of them is there already."""
    if len(arguments) != 1 or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", arguments[0]):
        print(
            "new_day: give one slug of lower-case words joined by hyphens, such as position-encoding",
            file=sys.stderr,
        )
        return 2
    slug = arguments[0]
    there = [path for path in files(slug) if (root / path).exists()]
    if there:
        print(f"new_day: nothing written, {', '.join(there)} exists", file=sys.stderr)
        return 1
    for path, text in files(slug).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", newline="\n")
        print(path)
    print(f"now add a line to the nav of mkdocs.yml and of mkdocs.en.yml:\n      - {slug}: days/{slug}.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
