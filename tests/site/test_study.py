"""Studying with the site, most of it in a real browser: the board of the plan, the questions, the quiz."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from markdown import Markdown

from sitekit.pages import ROOT, SITES, PageError
from tests.site.repository import DAYS

KEY = "llm-by-hand.study.v1"
PLAN = {"zh": "plan/", "en": "en/plan/"}


def state(reader: Any) -> dict[str, Any]:
    """Return what the browser keeps."""
    return json.loads(reader.evaluate(f"localStorage.getItem('{KEY}')"))


def keep(reader: Any, text: str) -> None:
    """Put a text where the state belongs, and open the plan again."""
    reader.goto(PLAN["zh"])
    reader.evaluate("([key, text]) => localStorage.setItem(key, text)", [KEY, text])
    reader.reload()


def box(reader: Any, day: int) -> Any:
    """Return the check box of a day."""
    return reader.locator("[data-study] label", has_text=re.compile(rf"^\s*{day}$")).locator("input")


def saved(**fields: Any) -> str:
    """Return a state as a file has it."""
    return json.dumps(
        {"format": "llm-by-hand progress", "version": 1, "days": {}, "questions": {}, "view": 0} | fields
    )


def give(reader: Any, text: str, name: str = "progress.json") -> str:
    """Import a file; return what the board says."""
    file = {"name": name, "mimeType": "application/json", "buffer": text.encode()}
    reader.locator(".study-message").evaluate("node => { node.textContent = ''; }")
    reader.locator(".study-import input").set_input_files(file)
    message = reader.locator(".study-message:not(:empty)")
    message.wait_for()
    return message.inner_text()


# ---- the plan itself: one copy, in the tables of the page ----


def rows(path: Path) -> list[list[str]]:
    """Return the cells of all table rows of a page, heads and rules left out."""
    lines = [
        line.strip("|").split("|") for line in path.read_text(encoding="utf-8").split("\n") if line[:1] == "|"
    ]
    return [[cell.strip() for cell in cells] for cells in lines if cells[0].strip()[:1].isdigit()]


def test_the_plan_says_the_same_in_both_languages_and_the_cuts_have_as_many_days_as_they_say() -> None:
    plans = {lang: rows(ROOT / "docs" / lang / "plan.md") for lang in SITES}
    for lang, plan in plans.items():
        days = [cells[0] for cells in plan if len(cells) == 5]
        assert days == [str(number) for number in range(1, len(days) + 1)], lang
        cuts = [cells for cells in plan if len(cells) == 3]
        assert {cells[0] for cells in cuts} <= set(days), lang
        for column, count in ((1, 30), (2, 21)):
            cut = {cells[0]: cells[column] for cells in cuts if cells[column]}
            assert len(days) - len(cut) == count, (lang, column)
            hosts = [host for text in cut.values() for host in re.findall(r"\d+", text)]
            assert set(hosts) <= set(days) - set(cut), f"{lang}: a day is folded into one that is not there"
    numbers = [
        [re.findall(r"\d+", cell) or bool(cell) for cells in plan if len(cells) == 3 for cell in cells]
        for plan in plans.values()
    ]
    assert numbers[0] == numbers[1]


# ---- the board ----


def test_ticks_survive_a_reload_and_a_change_of_language(reader: Any) -> None:
    reader.goto(PLAN["zh"])
    box(reader, 1).check()
    box(reader, 7).check()
    reader.reload()
    assert box(reader, 1).is_checked()
    assert reader.locator(".study-count").inner_text() == "已完成 2 / 32 天"
    reader.locator("a.twin").click()
    reader.wait_for_url("**/en/plan/**")
    assert box(reader, 1).is_checked()
    assert box(reader, 7).is_checked()
    assert not box(reader, 2).is_checked()
    assert reader.locator(".study-count").inner_text() == "2 of 32 days done"
    box(reader, 7).uncheck()
    assert list(state(reader)["days"]) == ["self-attention"]


def test_a_tick_in_another_tab_shows_here(reader: Any) -> None:
    reader.goto(PLAN["zh"])
    other = reader.context.new_page()
    other.goto(PLAN["en"])
    box(other, 1).check()
    reader.locator("tr[data-done]").wait_for()
    assert box(reader, 1).is_checked()


def test_the_board_comes_back_when_the_page_is_left_without_a_reload(reader: Any) -> None:
    reader.goto(PLAN["en"])
    box(reader, 1).check()
    reader.wait_for_load_state("networkidle")  # the theme has read its site map
    reader.evaluate("window.stayed = true")
    reader.locator(".md-nav__link").get_by_text("Glossary").first.evaluate("node => node.click()")
    reader.locator(".study-board").wait_for(state="detached")
    reader.go_back()
    reader.locator(".study-board").wait_for()
    assert reader.evaluate("window.stayed"), "the page was loaded as a whole: nothing was tested"
    assert box(reader, 1).is_checked()
    box(reader, 2).check()
    assert reader.locator(".study-count").inner_text() == "2 of 32 days done"


def test_the_next_day_is_offered_and_one_that_can_be_read(reader: Any) -> None:
    reader.goto(PLAN["en"])
    following = reader.locator(".study-next")
    assert following.inner_text() == "Next: day 1, Self-attention"
    box(reader, 1).check()
    box(reader, 2).check()
    assert (
        "Next: day 3, Masks and numerical stability (no page yet); written already: day 24, DPO"
        in following.inner_text()
    )
    following.get_by_role("link").click()
    reader.wait_for_url("**/en/days/dpo/")


def test_the_shorter_cuts_count_their_own_days(reader: Any) -> None:
    reader.goto(PLAN["en"])
    box(reader, 5).check()
    reader.get_by_label("Thirty days").check()
    assert reader.locator(".study-count").inner_text() == "0 of 30 days done"
    reader.get_by_label("Twenty-one days").check()
    assert reader.locator(".study-count").inner_text() == "0 of 21 days done"
    notes = reader.locator(".study-note:not(:empty)").all_inner_texts()
    assert notes[:2] == ["with day 4", "with day 2, 15"]
    assert notes[-4:] == ["theory only", "optional", "optional", "optional"]
    for day in (1, 2, 3):
        box(reader, day).check()
    assert "Next: day 4," in reader.locator(".study-next").inner_text()
    box(reader, 4).check()
    assert "Next: day 7," in reader.locator(".study-next").inner_text()
    reader.goto(PLAN["zh"])
    assert reader.get_by_label("二十一天").is_checked()
    assert reader.locator(".study-count").inner_text() == "已完成 4 / 21 天"
    reader.get_by_label("全部 32 天").check()
    assert reader.locator(".study-count").inner_text() == "已完成 5 / 32 天"
    assert reader.locator(".study-note:not(:empty)").count() == 0


def test_the_board_is_worked_by_keyboard_and_named_for_a_screen_reader(reader: Any) -> None:
    reader.goto(PLAN["en"])
    reader.get_by_role("checkbox", name="Done with day 1, Self-attention").focus()
    reader.keyboard.press("Space")
    assert box(reader, 1).is_checked()
    assert reader.get_by_role("progressbar", name="Progress").get_attribute("value") == "1"
    reader.get_by_label("All 32 days").focus()
    reader.keyboard.press("ArrowDown")
    assert reader.get_by_label("Thirty days").is_checked()
    assert reader.get_by_role("row").count() > 32


def test_export_clear_import(reader: Any, tmp_path: Path) -> None:
    keep(reader, saved(days={"dpo": "2031-02-03"}, questions={"dpo#q-beta": "known"}, view=21))
    box(reader, 1).check()
    before = state(reader)
    with reader.expect_download() as waiting:
        reader.locator(".study-export").click()
    waiting.value.save_as(tmp_path / "progress.json")
    assert re.fullmatch(r"llm-by-hand-\d{4}-\d\d-\d\d\.json", waiting.value.suggested_filename)
    text = (tmp_path / "progress.json").read_text(encoding="utf-8")
    assert json.loads(text) == before

    reader.once("dialog", lambda dialog: dialog.dismiss())
    reader.locator(".study-clear").click()
    assert state(reader) == before
    reader.once("dialog", lambda dialog: dialog.accept())
    reader.locator(".study-clear").click()
    assert not state(reader)["days"]
    assert not box(reader, 1).is_checked()

    assert "导入了 2 天、1 道题" in give(reader, text)
    assert state(reader) == before
    assert box(reader, 24).is_checked()


def test_an_import_adds_to_what_is_there(reader: Any) -> None:
    keep(reader, saved(days={"rope": "2031-01-01"}, questions={"dpo#q-a": "known", "dpo#q-b": "known"}))
    give(reader, saved(days={"rope": "2032-01-01", "dpo": "2032-01-01"}, questions={"dpo#q-b": "again"}))
    assert state(reader)["days"] == {"rope": "2031-01-01", "dpo": "2032-01-01"}
    assert state(reader)["questions"] == {"dpo#q-a": "known", "dpo#q-b": "again"}


BROKEN = [
    ("{", "not JSON"),
    ("[]", "not progress of this site"),
    ('{"format": "other"}', "not progress of this site"),
    (saved(version=2), "version is 2, only 1 is known here"),
    (saved(colour="red"), 'unknown field "colour"'),
    (saved(days=[]), "days is not an object"),
    (saved(view=-1), "view must be a number of days, not -1"),
    (saved(days={"<b>": "2031-01-01"}), '"<b>" in days names no day'),
    (saved(days={"dpo": "2031-13-01"}), 'days.dpo must be a date, not "2031-13-01"'),
    (saved(days={"dpo": True}), "days.dpo must be a date, not true"),
    (saved(questions={"dpo": "known"}), '"dpo" in questions names no question'),
    (saved(questions={"dpo#q-a": 1}), "dpo#q-a in questions must be known or again, not 1"),
    ('{"format": "llm-by-hand progress", "version": 1, "questions": {}, "view": 0}', "days is not an object"),
    (
        saved().replace('"days": {}', '"days": {"__proto__": "2031-01-01"}'),
        '"__proto__" in days names no day',
    ),
]


def test_a_broken_import_says_what_is_wrong_and_changes_nothing(reader: Any) -> None:
    keep(reader, saved(days={"dpo": "2031-02-03"}))
    reader.goto(PLAN["en"])
    before = state(reader)
    for text, words in BROKEN:
        message = give(reader, text, "a file.json")
        assert message.startswith("a file.json was not imported: "), message
        assert words in message
        assert message.endswith("Nothing was changed.")
        assert state(reader) == before
    assert "the file is too large" in give(reader, " " * 1_100_000)


@pytest.mark.parametrize("text", ["{oops", saved(days={"dpo": 3}), saved(version=9), "null"])
def test_a_state_that_cannot_be_understood_is_kept_aside(reader: Any, text: str) -> None:
    keep(reader, text)
    assert "原样留着" in reader.locator(".study-aside").inner_text()
    box(reader, 1).check()
    reader.reload()
    assert box(reader, 1).is_checked()
    with reader.expect_download() as waiting:
        reader.locator(".study-aside").get_by_role("button", name="下载").click()
    assert Path(waiting.value.path()).read_text(encoding="utf-8") == text
    reader.locator(".study-aside").get_by_role("button", name="丢掉").click()
    assert reader.locator(".study-aside").inner_text() == ""
    assert box(reader, 1).is_checked()


def test_two_unreadable_states_are_both_kept(reader: Any) -> None:
    keep(reader, "{one")
    keep(reader, "{two")
    assert reader.locator(".study-aside > p").count() == 2


REFUSE = """const real = Storage.prototype.METHOD;
Storage.prototype.METHOD = function (key, ...rest) {
  if (key.startsWith("llm-by-hand")) throw new Error("refused");
  return real.call(this, key, ...rest);
};"""


def test_without_storage_the_board_works_and_says_so(reader: Any) -> None:
    reader.add_init_script(REFUSE.replace("METHOD", "getItem"))
    reader.goto(PLAN["en"])
    box(reader, 1).check()
    assert reader.locator(".study-count").inner_text() == "1 of 32 days done"
    assert "lets the page keep nothing" in reader.locator(".study-message").inner_text()


def test_a_full_storage_loses_nothing(reader: Any) -> None:
    keep(reader, saved(days={"dpo": "2031-02-03"}))
    reader.evaluate(f"localStorage.setItem('{KEY}', '{{oops')")
    reader.add_init_script(REFUSE.replace("METHOD", "setItem"))
    reader.reload()
    box(reader, 1).check()
    assert reader.evaluate(f"localStorage.getItem('{KEY}')") == "{oops"
    assert "不让网页保存" in reader.locator(".study-message").inner_text()


def test_the_plan_is_whole_without_scripts(chromium: Any, address: str) -> None:
    context = chromium.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    page.goto(PLAN["zh"])
    assert page.locator("article tbody tr").count() == 32 + 11
    assert page.locator("article input").count() == 0
    context.close()


@pytest.mark.parametrize("lang", SITES)
def test_the_board_fits_a_phone(reader: Any, lang: str) -> None:
    reader.set_viewport_size({"width": 360, "height": 740})
    reader.goto(PLAN[lang])
    reader.locator(".study-board").wait_for()
    assert reader.evaluate("document.documentElement.scrollWidth") == 360
    assert reader.evaluate(
        "[...document.querySelectorAll('[data-study]')].every(t => t.getBoundingClientRect().right <= 360)"
    )


# ---- theory questions ----


def convert(text: str) -> str:
    """Return the HTML of a page with questions."""
    return Markdown(extensions=["pymdownx.details", "sitekit.questions"]).convert(text)


def test_a_question_has_the_address_of_its_name() -> None:
    html = convert('??? question why-heads "Why?"\n\n    Because.\n\n    ??? note "And?"\n\n        So.\n')
    assert '<details class="question" id="q-why-heads">' in html
    assert '<details class="note">' in html


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('??? question "Why?"\n\n    So.\n', r"one name of lower-case words joined by hyphens, not \[\]"),
        ('??? question a b "Why?"\n\n    So.\n', "one name"),
        ('??? question Why_heads "Why?"\n\n    So.\n', "one name"),
        (
            '??? question a "Why?"\n\n    So.\n\n??? question a "How?"\n\n    So.\n',
            "two questions .* named a",
        ),
    ],
)
def test_a_question_without_a_name_of_its_own_is_refused(text: str, message: str) -> None:
    with pytest.raises(PageError, match=message):
        convert(text)


def test_a_refused_question_is_named_by_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '---\ntitle: T\n---\n\n??? question a "Why?"\n\n    So.\n\n??? question a "How?"\n\n    So.\n'
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr("sitekit.pages.page_path", lambda md: tmp_path / "page.md")
    with pytest.raises(PageError, match=r"page\.md:9: two questions"):
        convert(text.split("---\n\n")[1])


@pytest.mark.parametrize("lang", SITES)
@pytest.mark.parametrize("day", DAYS)
def test_answers_fold_and_follow_ups_fold_deeper(built_site: Path, lang: str, day: str) -> None:
    html = (built_site / ("" if lang == "zh" else lang) / "days" / day / "index.html").read_text("utf-8")
    part = html.split('<h2 id="questions">')[1].split("<h2 ")[0]
    folded, depths = [], {"question": 0, "note": 1, "abstract": 2}
    questions: list[set[str]] = []
    for tag in re.finditer(r'<details class="(\w+)"(.*?)>|</details>', part):
        if tag[0] == "</details>":
            folded.pop()
            continue
        assert "open" not in tag[2], "a question is unfolded from the start"
        assert depths[tag[1]] == len(folded), f"{tag[0]} lies at depth {len(folded)}"
        folded.append(tag[1])
        if tag[1] == "question":
            questions.append(set())
        questions[-1].add(tag[1])
    assert questions
    assert not folded
    assert all("note" in kinds for kinds in questions), "a question has no follow-up"


DEEP = "CHES"  # a word of one deep answer of DPO, and of no other part of the questions


def test_a_link_to_a_question_unfolds_it(reader: Any) -> None:
    reader.goto("en/days/dpo/#q-beta")
    assert reader.locator("#q-beta").get_attribute("open") is not None
    assert reader.locator("#q-ppo").get_attribute("open") is None


def test_a_search_unfolds_what_it_finds(reader: Any) -> None:
    reader.goto(f"en/days/dpo/?h={DEEP}#questions")
    found = reader.locator("details.abstract mark", has_text=DEEP).first
    found.wait_for()
    assert found.is_visible()
    assert reader.locator("#q-derive").get_attribute("open") is None


@pytest.mark.parametrize("scripts", [True, False])
def test_print_shows_every_answer(chromium: Any, address: str, scripts: bool) -> None:
    context = chromium.new_context(base_url=address, java_script_enabled=scripts)
    page = context.new_page()
    page.goto("days/dpo/")
    answer = page.locator("details.abstract p", has_text=DEEP)
    assert not answer.is_visible()
    page.emulate_media(media="print")
    answer.wait_for()
    context.close()


def test_all_answers_unfold_at_once(reader: Any) -> None:
    reader.goto("days/dpo/")
    everything = reader.locator("details.question, details.question details")
    button = reader.locator("button.study-unfold")
    assert button.inner_text() == "展开全部答案"
    button.click()
    assert everything.evaluate_all("list => list.every(node => node.open)")
    button.click()
    assert everything.evaluate_all("list => list.every(node => !node.open)")


# ---- the quiz ----


def test_a_round_leaves_the_address_of_the_page_as_it_was(reader: Any) -> None:
    """The theme writes the section one is at into the address, and a page without its text has others."""
    reader.goto("en/days/self-attention/#questions", wait_until="networkidle")
    reader.locator(".quiz-start").click()
    reader.wait_for_timeout(500)
    reader.keyboard.press("Escape")
    reader.wait_for_timeout(1500)
    assert reader.evaluate("() => location.hash") == "#questions"


def test_a_page_quizzes_by_keyboard(reader: Any) -> None:
    reader.goto("en/days/dpo/")
    button = reader.locator(".quiz-start")  # asking for a role takes seconds on a page of so many formulas
    assert button.inner_text() == "Show only the questions"
    button.focus()
    reader.keyboard.press("Enter")
    question, answer = reader.locator(".quiz-question"), reader.locator(".quiz-answer")
    assert question.inner_text() == "Derive DPO from RLHF"
    assert question.evaluate("node => node === document.activeElement")
    assert not answer.is_visible()
    assert reader.locator("article > :visible").count() == 2, "only the title and the question are shown"

    reader.keyboard.press("r")
    assert answer.is_visible()
    follow = answer.locator("details")
    assert follow.evaluate_all("list => list.map(node => node.open)") == [False, False]
    reader.keyboard.press("r")
    assert follow.evaluate_all("list => list.map(node => node.open)") == [True, False]
    reader.keyboard.press("r")
    assert follow.evaluate_all("list => list.map(node => node.open)") == [True, True]
    reader.keyboard.press("r")  # nothing is left to reveal

    reader.keyboard.press("k")
    assert question.inner_text() == "What if a whole ranking is given, not a pair?"
    assert not answer.is_visible()
    reader.keyboard.press("Space")
    assert answer.is_visible()
    reader.keyboard.press("a")
    reader.keyboard.press("n")
    reader.keyboard.press("ArrowRight")
    assert reader.locator(".quiz-count").inner_text() == "5 of 19 · known 1 · again 1"
    assert reader.url.split("#")[0].endswith("/en/days/dpo/"), "the theme's own key n was not pressed"
    assert state(reader)["questions"] == {"dpo#q-derive": "known", "dpo#q-ranking": "again"}

    for _ in range(14):
        reader.keyboard.press("n")
    assert question.inner_text() == "What if a whole ranking is given, not a pair?", (
        "it comes again at the end"
    )
    reader.keyboard.press("k")
    assert question.inner_text() == "The round is over."
    reader.keyboard.press("k")
    reader.keyboard.press("Escape")
    assert reader.locator(".quiz").count() == 0
    assert reader.locator("#q-derive .study-mark").first.inner_text() == "known"
    assert state(reader)["questions"] == {"dpo#q-derive": "known", "dpo#q-ranking": "known"}
    reader.locator("a.twin").click()
    reader.wait_for_url("**:*/days/dpo/**")
    assert reader.locator("#q-derive .study-mark").first.inner_text() == "会了"


def total() -> int:
    """Return how many questions the days have."""
    texts = [(ROOT / f"docs/en/days/{day}.md").read_text("utf-8") for day in DAYS]
    return sum(len(re.findall(r"^\?\?\? question", text, re.MULTILINE)) for text in texts)


def test_all_days_quiz_at_random(reader: Any) -> None:
    reader.goto("en/quiz/")
    reader.locator(".quiz-setup").wait_for()
    assert [text.strip() for text in reader.locator(".quiz-setup label").all_inner_texts()] == [
        f"All ({total()})",
        f"Not known yet ({total()})",
        "To come again (0)",
    ]
    orders, days = [], set()
    for _ in range(2):
        reader.locator(".quiz-setup .quiz-start").click()
        order = []
        for _ in range(total()):
            order.append(reader.locator(".quiz-question").inner_text())
            days.add(reader.locator(".quiz-day").inner_text())
            reader.keyboard.press("n")
        assert reader.locator(".quiz-question").inner_text() == "The round is over."
        reader.keyboard.press("Escape")
        orders.append(order)
    assert len(set(orders[0])) == total()
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    assert len(days) == len(DAYS)


def test_what_is_known_is_asked_no_more_and_links_lead_where_they_led(reader: Any) -> None:
    reader.goto(PLAN["zh"])
    known = [name for name in reader.request.get("quiz/").text().split('id="q-')[1:]]
    assert len(known) == total()
    keep(reader, saved(questions={"dpo#q-beta": "again", "dpo#q-ppo": "known"}))
    reader.goto("quiz/")
    reader.get_by_label("说了再来的").check()
    reader.locator(".quiz-setup .quiz-start").click()
    assert reader.locator(".quiz-question").inner_text() == "β 是什么？大了小了各怎样？"
    reader.keyboard.press("r")
    links = reader.locator(".quiz-answer a, .quiz-day a").evaluate_all("list => list.map(node => node.href)")
    assert links
    assert all("/days/dpo/#" in link for link in links), links
    reader.keyboard.press("k")
    reader.keyboard.press("Escape")
    assert reader.get_by_label("说了再来的").is_disabled()
    assert f"还不会的 {total() - 2} 题" in reader.locator(".quiz-setup").inner_text()


def test_typing_a_search_answers_no_question(reader: Any) -> None:
    reader.goto("en/quiz/")
    reader.locator(".quiz-setup .quiz-start").click()
    reader.locator("input[name=query]").focus()
    reader.keyboard.type("rank")
    assert reader.locator(".quiz-count").inner_text().startswith("1 of")
    assert not reader.locator(".quiz-answer").is_visible()


def test_the_quiz_works_from_a_folder(chromium: Any, built_site: Path) -> None:
    context = chromium.new_context()
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((built_site / "en/quiz/index.html").as_uri())
    page.locator(".quiz-setup .quiz-start").click()
    page.keyboard.press("r")
    assert page.locator(".quiz-answer").is_visible()
    page.keyboard.press("k")
    page.goto((built_site / "quiz/index.html").as_uri())
    assert f"还不会的 {total() - 1} 题" in page.locator(".quiz-setup").inner_text()
    context.close()
    assert not errors


def test_a_page_that_carries_no_questions_fetches_them(reader: Any, built_site: Path) -> None:
    html = (built_site / "en/quiz/index.html").read_text(encoding="utf-8")
    html = re.sub(r"(<template class=.quiz-questions[^>]*>).*?(?=</template>)", r"\1", html, flags=re.DOTALL)
    reader.route(
        "**/en/quiz/", lambda route: route.fulfill(body=html, content_type="text/html; charset=utf-8")
    )
    reader.goto("en/quiz/")
    reader.get_by_label(f"All ({total()})").check()
    reader.locator(".quiz-setup .quiz-start").click()
    reader.keyboard.press("r")
    assert reader.locator(".quiz-answer").is_visible()


def test_without_scripts_the_quiz_page_leads_to_the_days(chromium: Any, address: str) -> None:
    context = chromium.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    page.goto("en/quiz/")
    assert page.locator("article noscript a, article ul a").count() == len(DAYS)
    context.close()


@pytest.mark.parametrize("lang", SITES)
def test_the_quiz_fits_a_phone(reader: Any, lang: str) -> None:
    reader.set_viewport_size({"width": 360, "height": 740})
    reader.goto(("" if lang == "zh" else "en/") + "days/attention-variants/")
    reader.locator(".quiz-start").click()
    for _ in range(5):
        for _ in range(3):
            reader.keyboard.press("r")
        assert reader.evaluate("document.documentElement.scrollWidth") == 360
        assert reader.locator(".quiz-known").evaluate(
            "node => node.getBoundingClientRect().bottom <= innerHeight"
        )
        reader.keyboard.press("n")
