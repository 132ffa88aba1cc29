"""What a page says of its own verification comes from the ledger of a run, or is that there was none."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from mkdocs.utils.templates import url_filter

from sitekit.pages import ROOT, SITES
from sitekit.verified import verified
from tests.site.test_structure import load

LEDGER: dict[str, Any] = {
    "date": "2031-02-03",
    "commit": "0123456789abcdef",
    "versions": {"python": "3.13.1", "torch": "9.9.0"},
    "pages": {
        f"docs/{lang}/{name}.md": {"blocks": blocks, "run": blocks - 1, "skipped": 1, "outputs": 7}
        for lang in SITES
        for name, blocks in (("index", 1), ("days/dpo", 23))
    },
}
RUN = "Python 3.13.1, torch 9.9.0 · commit 0123456789 · 2031-02-03"


def shown(lang: str, url: str, known: Any) -> str:
    """Return the words at the foot of a page."""
    config = load(ROOT / SITES[lang])
    config.extra["verified"] = known
    env = config.theme.get_env()
    env.filters["url"] = url_filter
    page = SimpleNamespace(url=url, is_homepage=url == "")
    html = env.get_template("partials/verified.html").render(config=config, page=page, base_url="/x")
    return " ".join(re.sub(r"<[^>]+>", "", html).split())


@pytest.mark.parametrize(
    ("lang", "url", "words"),
    [
        (
            "en",
            "days/dpo/",
            "Verified · This page: 22 of 23 Python blocks run, 1 shown with the reason why not, 7 outputs "
            f"are those shown · {RUN} · ledger",
        ),
        ("en", "", "Verified · All 2 pages: 22 of 24 Python blocks run"),
        (
            "zh",
            "days/dpo/",
            "已验证 · 本页：23 个 Python 代码块中 22 个已运行，1 个注明理由未运行，7 处输出与所示一致",
        ),
        ("zh", "", "已验证 · 全站 2 页：24 个 Python 代码块中 22 个已运行"),
    ],
)
def test_a_published_page_says_what_was_verified(lang: str, url: str, words: str) -> None:
    assert shown(lang, url, verified(LEDGER, lang)).startswith(words)


@pytest.mark.parametrize(("lang", "words"), [("en", "were not verified"), ("zh", "未经验证")])
def test_a_local_build_says_that_nothing_was_verified(lang: str, words: str) -> None:
    assert words in shown(lang, "days/dpo/", None)


def test_a_ledger_without_a_language_is_refused() -> None:
    pages = {name: page for name, page in LEDGER["pages"].items() if "/zh/" in name}
    with pytest.raises(SystemExit, match="no page of docs/en/"):
        verified(LEDGER | {"pages": pages}, "en")
