r"""The kinds of faults that are planted: for each, every one that a file has room for.

No edit moves a line, so that faults of one file keep their places beside each other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.drift.tree import Fault, Tree, spliced, twin, within
from tests.site.formulas import formulas, is_count

FORM = re.compile(r'\{\{[\w./-]+ "[^"]+"[^}]*\}\}')
GIVEN = re.compile(r'\{\{([^\s{}"]*\.[^\s{}"]*) given "[^"]*"\}\}')
FORMULA = re.compile(r"(?<![\\$])\$(?![\s$])(?!.*\{\{)([^$\n]+?)(?<!\s)\$(?!\$)")
HEADING = re.compile(r"\{ #")
LINK = re.compile(r"\]\((?!http|#)")
ANCHOR = re.compile(r"\]\((?!http)[^)\s#]*#")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|<!--.*?-->")
Edit = tuple[int, str]  # a line, and what stands there instead
Faults = Iterator[Fault]
Find = Callable[[Tree, str], Iterable[Fault]]


# --- programs -----------------------------------------------------------------------------------------------


def other_numbers(lines: list[str], roots: Iterable[ast.AST]) -> Iterator[Edit]:
    """Yield another number for each that is written, but for seeds, tolerances and the wording of errors."""
    skipped = set[ast.AST]()
    for node in (node for root in roots for node in ast.walk(root)):
        seeds = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("seed")
        tolerates = isinstance(node, ast.keyword) and node.arg in ("atol", "rtol")
        if seeds or tolerates or isinstance(node, ast.Raise | ast.JoinedStr):
            skipped.update(ast.walk(node))
        if not isinstance(node, ast.Constant) or node in skipped or isinstance(old := node.value, bool):
            continue
        if isinstance(old, int | float) and (abs(old) >= 1e-3 or not old):
            new = old + 1 if isinstance(old, int) else old * 1.5 or 0.5
            yield node.lineno, spliced(lines, node, repr(new))


def constants(tree: Tree, file: str) -> Faults:
    """Another number in a program."""
    lines, out = tree.lines(file), file.removesuffix(".py") + ".out"
    places = within(file, 1, len(lines))
    if out in tree.files:
        places |= within(out, 1, len(tree.lines(out)))
    for number, new in other_numbers(lines, [tree.parsed(file)]):
        yield Fault(file, number, new, places, out)


def keywords(tree: Tree, file: str) -> Faults:
    """The name of an argument of a call."""
    nodes = list(ast.walk(tree.parsed(file)))
    texts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for call in nodes:
        if isinstance(call, ast.Call) and call not in texts and ast.unparse(call.func) != "dict":
            for keyword in filter(lambda keyword: keyword.arg, call.keywords):
                new = spliced(tree.lines(file), keyword, f"{keyword.arg}_", len(keyword.arg or ""))
                places = within(file, call.lineno, call.end_lineno or 0)
                yield Fault(file, keyword.lineno, new, places, file.removesuffix(".py") + ".out")


def characters(tree: Tree, file: str, pattern: str = r"\S") -> Faults:
    """One character of a file."""
    for number, line in enumerate(tree.lines(file), 1):
        for match in re.finditer(pattern, line):
            new = str((int(match[0]) + 1) % 10) if match[0].isdecimal() else "#"
            changed = line[: match.start()] + new + line[match.end() :]
            yield Fault(file, number, changed, {f"{file}:{number}"}, file)


def of_functions(find: Callable[[list[str], ast.FunctionDef], Iterable[tuple[int, str, int] | Edit]]) -> Find:
    """Return what yields faults of the functions of a module, which its own tests must find."""

    def faults(tree: Tree, file: str) -> Faults:
        functions = (node for node in ast.walk(tree.parsed(file)) if isinstance(node, ast.FunctionDef))
        for number, new, *end in (
            edit for function in functions for edit in find(tree.lines(file), function)
        ):
            rest = tuple((file, gone, "") for gone in range(number + 1, (*end, 0)[0] + 1))
            yield Fault(file, number, new, {f"tests/llmcore/test_{Path(file).name}"}, file, rest)

    return faults


def inner_numbers(lines: list[str], function: ast.FunctionDef) -> Iterator[Edit]:
    return other_numbers(lines, function.body[1:] if ast.get_docstring(function) else function.body)


def arguments(lines: list[str], function: ast.FunctionDef) -> Iterator[Edit]:
    for argument in [*function.args.args, *function.args.kwonlyargs]:
        if argument.arg not in ("self", "ctx"):
            yield argument.lineno, spliced(lines, argument, f"{argument.arg}_", len(argument.arg))


def defaults(lines: list[str], function: ast.FunctionDef) -> Iterator[Edit]:
    for default in filter(None, [*function.args.defaults, *function.args.kw_defaults]):
        value = getattr(default, "value", None)
        if isinstance(value, bool | str):
            new = repr(not value if isinstance(value, bool) else value[::-1])
            yield default.lineno, spliced(lines, default, new)
        else:
            yield from other_numbers(lines, [default])


def checks(lines: list[str], function: ast.FunctionDef) -> Iterator[tuple[int, str, int]]:
    for node in function.body:
        refuses = isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise) and not node.orelse
        if refuses or lines[node.lineno - 1].lstrip().startswith("check_"):
            yield node.lineno, " " * node.col_offset + "pass", node.end_lineno or 0


# --- pages --------------------------------------------------------------------------------------------------


def in_prose(pattern: re.Pattern[str], change: Callable[[re.Match[str]], str], twins: bool = False) -> Find:
    """Return what yields the faults of what a pattern finds in the lines of prose; of twins, one a pair."""

    def faults(tree: Tree, page: str) -> Faults:
        for number, line, section in tree.prose(page):
            for match in pattern.finditer(CODE.sub(lambda code: " " * len(code[0]), line)):
                new = line[: match.start()] + change(match) + line[match.end() :]
                apart = min(page, twin(page)) if twins else section
                if new != line:
                    yield Fault(page, number, new, {f"{page}:{number}"}, apart)

    return faults


def typed(tree: Tree, page: str) -> Faults:
    """A number with a unit at the end of a paragraph, but not where a source is named for all of a table."""
    given = {section for _, line, section in tree.prose(page) if line.strip().startswith("<!--given")}
    for number, line, section in tree.prose(page):
        if re.match(r"[A-Z\u4e00-\u9fff].*[.。]$", line) and section not in given:
            yield Fault(page, number, line[:-1] + ", 0.731 MiB" + line[-1], {f"{page}:{number}"}, section)


def display_formulas(tree: Tree, page: str) -> Faults:
    """Formulas that stand alone; what is wrong in them may show on any of their lines."""
    start, faults = 0, list[Fault]()
    for number, line, section in tree.prose(page):
        if line.strip() == "$$":
            for fault in faults if start else ():
                yield fault._replace(places=within(page, start, number))
            start, faults = 0 if start else number, []
        elif start and "{{" not in line:
            faults.append(Fault(page, number, line + r" \frac{1}{", set(), section))


def openings(old: str, new: str) -> Find:
    """Return what yields the first lines of blocks of code, something in them written otherwise."""

    def faults(tree: Tree, page: str) -> Faults:
        for first, _ in tree.fences(page):
            if re.search(old, line := tree.lines(page)[first - 1]):
                yield Fault(page, first, re.sub(old, new, line), {f"{page}:{first}"}, f"{page}:{first}")

    return faults


def unclosed(tree: Tree, page: str) -> Faults:
    """The last line of a block of code: what follows it, to the end of the next, seems to be code."""
    fences = tree.fences(page)
    for (first, last), (_, end) in zip(fences, [*fences[1:], (0, len(tree.lines(page)))], strict=True):
        yield Fault(page, last, "", within(page, first, end), page)


def wrong_embeds(tree: Tree, page: str) -> Faults:
    """A file, or a definition in it, that there is not."""
    for number, line, match in tree.embeds(page):
        end = match.end(2 if match[2] else 1)
        yield Fault(page, number, f"{line[:end]}x{line[end:]}", {f"{page}:{number}"}, f"{page}:{number}")


def lost_embeds(tree: Tree, page: str) -> Faults:
    """An embed that one language has lost."""
    for (number, _, _), (there, _, _) in zip(tree.embeds(page), tree.embeds(twin(page)), strict=True):
        yield Fault(page, number, "", {f"{page}:{number}", f"{twin(page)}:{there}"}, min(page, twin(page)))


def lost_blocks(tree: Tree, page: str) -> Faults:
    """A block of code that one language has lost."""
    for (first, last), there in zip(tree.fences(page), tree.fences(twin(page)), strict=True):
        rest = tuple((page, number, "") for number in range(first + 1, last + 1))
        yield Fault(page, first, "", within(twin(page), *there), min(page, twin(page)), rest)


def unshown(tree: Tree, page: str) -> Faults:
    """A program that neither language shows any more."""
    for number, _, match in tree.embeds(page):
        if match[1].startswith("snippets/") and match[1].endswith(".py"):
            there = next(number for number, _, other in tree.embeds(twin(page)) if other[1] == match[1])
            yield Fault(page, number, "", {f"{match[1]}:1"}, match[1], ((twin(page), there, ""),))


def counts(tree: Tree, page: str) -> Faults:
    """Another digit in a formula for a count."""
    for number, _, latex in formulas("\n".join(tree.lines(page)), Path(page).stem):
        line, digit = tree.lines(page)[number - 1], re.search(r"\d", latex)
        if is_count(latex) and line.count(latex) == 1 and digit:
            other = latex[: digit.start()] + str((int(digit[0]) + 1) % 10) + latex[digit.end() :]
            yield Fault(page, number, line.replace(latex, other), {f"{page}:{number}"}, f"{page}:{number}")


# --- what belongs together ----------------------------------------------------------------------------------


def lost_modules(tree: Tree, file: str) -> Faults:
    """A module of which only the API pages are left."""
    pages = {f"docs/{lang}/api/{Path(file).stem}.md" for lang in ("en", "zh")}
    yield Fault(file, 0, "", {f"{page}:{tree.first(page, '::: ')}" for page in pages}, min(pages))


def lost_pages(tree: Tree, page: str) -> Faults:
    """An API page that one language has lost."""
    yield Fault(page, 0, "", {f"llmcore/{Path(page).stem}.py:1"}, min(page, twin(page)))


def lost_entries(tree: Tree, config: str) -> Faults:
    """A page that the navigation has lost, and not the only one of its section."""
    lines = tree.lines(config)
    folder = lines[tree.first(config, "docs_dir: ") - 1].split()[1]
    for number, (above, line) in enumerate(pairwise(lines), 2):
        if (match := re.search(r": (\S+\.md)$", line)) and not above.endswith(":"):
            yield Fault(config, number, "", {f"{folder}/{match[1]}:1"}, f"{folder}/{match[1]}")


class Kind(NamedTuple):
    """A kind of faults: the tests that look for it, its files, how many in each are drawn."""

    tests: str
    files: str
    number: int
    find: Find


TESTS = {
    "blocks": ["docs/en/days"],
    "days": ["docs/en/days", "docs/zh/days"],
    "site": ["docs", "tests/site/test_numbers.py", "-k", "accounted or typed"],
    "whole": ["tests/site/test_structure.py", "tests/site/test_twins.py"],
    "counts": ["tests/site/test_counts.py"],
    "figures": ["tests/site/test_figures.py"],
    "llmcore": [],  # those of each module, in forks
}
PAGES, WORDS, DAYS = (rf"docs/(zh|en)/{names}.*\.md" for names in ("", "(?!api/)", "days/"))
PROGRAMS, MODULES = r"snippets/.*\.py", r"llmcore/[a-z]\w*\.py"
NTH = r'(?<=")( \d+)?(?=( ,?[\d.]*[deFf])?\}\})'
KINDS = {
    "changed constant in a snippet": Kind("blocks", PROGRAMS, 1, constants),
    "renamed keyword in a snippet": Kind("blocks", PROGRAMS, 1, keywords),
    "stale output": Kind("blocks", r"snippets/.*\.out", 1, characters),
    "unclosed fence": Kind("days", DAYS, 1, unclosed),
    "number of nothing": Kind("site", DAYS, 3, in_prose(FORM, lambda m: m[0].replace(' "', ' "no ', 1))),
    "number that is typed": Kind("site", WORDS, 1, typed),
    "number without its source": Kind("site", DAYS, 2, in_prose(GIVEN, lambda m: m[1])),
    "broken link": Kind("site", PAGES, 1, in_prose(LINK, lambda m: f"{m[0]}gone-")),
    "broken anchor": Kind("site", PAGES, 2, in_prose(ANCHOR, lambda m: f"{m[0]}gone-")),
    "broken formula": Kind("site", DAYS, 2, in_prose(FORMULA, lambda m: rf"{m[0][:-1]} \frac{{$")),
    "broken display formula": Kind("site", DAYS, 2, display_formulas),
    "misspelt option": Kind("site", DAYS, 2, openings("title=", "titel=")),
    "highlight beyond the block": Kind("site", DAYS, 2, openings(r"(?<=[\w\"])$", ' hl_lines="99"')),
    "embed of what is not there": Kind("site", DAYS, 4, wrong_embeds),
    "embed lost": Kind("whole", DAYS, 1, lost_embeds),
    "snippet no longer shown": Kind("whole", r"docs/en/days/.*\.md", 6, unshown),
    "twins: number": Kind("whole", DAYS, 1, in_prose(FORM, lambda m: re.sub(NTH, " 7", m[0]), twins=True)),
    "twins: formula": Kind("whole", DAYS, 1, in_prose(FORMULA, lambda m: f"{m[0][:-1]} + 1$", twins=True)),
    "twins: heading": Kind("whole", WORDS, 1, in_prose(HEADING, lambda m: f"{m[0]}an-", twins=True)),
    "twins: link": Kind("whole", WORDS, 1, in_prose(LINK, lambda m: f"{m[0]}other-", twins=True)),
    "twins: block": Kind("whole", DAYS, 1, lost_blocks),
    "module lost, API page left": Kind("whole", MODULES, 1, lost_modules),
    "API page lost, module left": Kind("whole", r"docs/(zh|en)/api/.*\.md", 1, lost_pages),
    "navigation: entry lost": Kind("whole", r"mkdocs(\.en)?\.yml", 6, lost_entries),
    "formula for a count": Kind("counts", DAYS, 4, counts),
    "figure out of date": Kind("figures", r"docs/figures/.*\.svg", 1, characters),
    "llmcore: constant": Kind("llmcore", MODULES, 2, of_functions(inner_numbers)),
    "llmcore: argument": Kind("llmcore", MODULES, 1, of_functions(arguments)),
    "llmcore: default": Kind("llmcore", MODULES, 1, of_functions(defaults)),
    "llmcore: check": Kind("llmcore", MODULES, 1, of_functions(checks)),
}
