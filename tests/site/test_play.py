"""Figures to play with: their numbers are llmcore's, controls work by keyboard, mouse and finger, and pages
without one ask for none of it.

The pure functions of a module are called in V8 without a browser; what a reader does is done in a browser.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from figures.attention_variants import PLAYED
from llmcore.dpo import dpo_loss
from llmcore.kv_cache import KVCache, kv_cache_bytes
from llmcore.masks import causal_mask
from llmcore.softmax import softmax
from sitekit.formulas import engine
from sitekit.pages import ROOT
from sitekit.svg import PLAYS, Figure, plays
from tests.site.test_figures import HAN

SCRIPTS = PLAYS.parent
NAMES = plays()
DAYS = {
    "mask": "self-attention",
    "softmax": "self-attention",
    "kv-cache": "attention-variants",
    "dpo-beta": "dpo",
}
ITEM = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.int8}
MOST = 4096  # bytes of a module, compressed
ASKED = re.compile(r"""data-play=(?P<quote>["'])(?P<name>.*?)(?P=quote)""")
STUB = "var study = {say: (zh, en) => en, el() {}};"


@pytest.fixture(scope="module")
def call() -> Any:
    """Call a function of a module: `call("mask", "mask", {...})`."""
    v8 = engine()
    v8.eval(STUB + (SCRIPTS / "play.js").read_text(encoding="utf-8"))
    for name in NAMES:
        v8.eval((PLAYS / f"{name}.js").read_text(encoding="utf-8"))

    def call(name: str, function: str, *arguments: Any) -> Any:
        given = ",".join(json.dumps(argument) for argument in arguments)
        return json.loads(v8.eval(f"JSON.stringify(play[{json.dumps(name)}].{function}({given}))"))

    return call


# ---- the numbers are llmcore's ----


@pytest.mark.parametrize("side", ["bottom", "top"])
def test_the_mask_is_that_of_llmcore(call: Any, side: str) -> None:
    for queries, keys, window in itertools.product(range(1, 9), repeat=3):
        state = {"side": side, "queries": queries, "keys": keys, "window": window}
        # of a square mask top-left takes the first rows and columns
        square = causal_mask(queries, keys) if side == "bottom" else causal_mask(8)[:queries, :keys]
        last = torch.arange(queries)[:, None] + (keys - queries if side == "bottom" else 0)
        expected = square & (torch.arange(keys)[None, :] > last - window) if window < 8 else square
        assert call("mask", "mask", state) == expected.tolist(), state
        for query in range(queries):
            assert call("mask", "seen", state, query) == expected[query].nonzero().flatten().tolist()


def test_the_bytes_of_the_cache_are_those_of_llmcore(call: Any) -> None:
    for shape, batch, dtype in itertools.product(PLAYED.values(), (1, 2, 64), ITEM):
        layers, heads, kv_heads, head_dim = shape
        kinds = call("kv-cache", "kinds", shape, batch, dtype)
        assert [(kind["name"], kind["kvHeads"]) for kind in kinds] == [
            ("MHA", heads),
            ("GQA", kv_heads),
            ("MQA", 1),
        ]
        for kind, prompt, step in itertools.product(kinds, (1, 16, 8192), (1, 2, 17)):
            tokens = call("kv-cache", "tokens", prompt, step)
            assert tokens == prompt + step - 1
            assert call("kv-cache", "bytes", kind, tokens) == kv_cache_bytes(
                num_layers=layers,
                num_kv_heads=kind["kvHeads"],
                head_dim=head_dim,
                seq_len=tokens,
                batch_size=batch,
                dtype=ITEM[dtype],
            )
    assert call("kv-cache", "tokens", 16, 0) == 0


def test_the_bytes_of_the_cache_are_those_of_real_tensors(call: Any) -> None:
    for kind in call("kv-cache", "kinds", [1, 6, 2, 5], 3, "bf16"):
        cache = KVCache()
        for step, new in enumerate((4, 1, 1), 1):
            cache.update(*(torch.zeros(3, kind["kvHeads"], new, 5, dtype=torch.bfloat16) for _ in range(2)))
            tokens = call("kv-cache", "tokens", 4, step)
            assert tokens == cache.seq_len
            assert call("kv-cache", "bytes", kind, tokens) == cache.num_bytes


def test_the_shapes_are_those_of_the_program_on_the_page() -> None:
    program = (ROOT / "snippets/attention-variants/kv_bytes.py").read_text(encoding="utf-8")
    for name, shape in PLAYED.items():
        assert f'"{name}": ({", ".join(map(str, shape))}, ' in program


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 bytes"), (1000, "1000 bytes"), (131072, "128 KiB"), (2**31 + 2**29, "2.5 GiB")],
)
def test_bytes_are_written_in_the_largest_unit(call: Any, count: int, words: str) -> None:
    assert call("kv-cache", "amount", count) == words


def test_weights_entropy_and_slope_are_those_of_llmcore(call: Any) -> None:
    figure = (ROOT / "docs/figures/self-attention/scaling.en.svg").read_text(encoding="utf-8")
    spread = json.loads(re.findall(r"data-values='(.*?)'", figure)[0])
    assert len(spread) == 8
    scales = {"none": lambda d: 1.0, "root": lambda d: d**-0.5, "whole": lambda d: 1 / d}
    for power, scale, step in itertools.product(range(2, 11), scales, range(-6, 11, 2)):
        d, temperature = 2**power, call("softmax", "temperature", step)
        assert temperature == pytest.approx(2 ** (step / 2))
        row = call("softmax", "scores", spread, d, scale, temperature)
        scores = torch.tensor(spread, dtype=torch.float64) * d**0.5 * scales[scale](d) / temperature
        scores.requires_grad_()
        weights = softmax(scores)
        (gradient,) = torch.autograd.grad(weights.max(), scores)
        assert row == pytest.approx(scores.tolist())
        shares = call("softmax", "weights", row)
        assert shares == pytest.approx(weights.tolist(), abs=1e-300, rel=1e-9)
        entropy = torch.distributions.Categorical(weights.detach()).entropy()
        assert call("softmax", "entropy", shares) == pytest.approx(entropy.item(), abs=1e-12)
        assert call("softmax", "slope", shares) == pytest.approx(gradient.max().item(), abs=1e-15)


def test_loss_margin_and_weight_are_those_of_llmcore(call: Any) -> None:
    zero = torch.zeros(1, dtype=torch.float64)
    for beta, h in itertools.product((0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), range(-40, 41, 5)):
        policy = torch.tensor([float(h)], dtype=torch.float64, requires_grad=True)
        said = dpo_loss(policy, zero, zero, zero, beta=beta)
        (slope,) = torch.autograd.grad(said.loss, policy)
        assert call("dpo-beta", "loss", beta, h) == pytest.approx(said.loss.item(), rel=1e-12)
        assert call("dpo-beta", "weight", beta, h) == pytest.approx(-slope.item(), rel=1e-9)
        assert call("dpo-beta", "margin", beta, h) == pytest.approx(said.margin.item(), rel=1e-12)
        assert call("dpo-beta", "sigmoid", beta * h) == pytest.approx(math.exp(-said.loss.item()), rel=1e-12)


# ---- the files ----


def unknown(root: Path) -> Iterator[str]:
    """Yield a line for each figure of a page or a drawing that asks for a module that is not there."""
    for path in sorted([*root.glob("docs/**/*.md"), *root.glob("docs/figures/**/*.svg")]):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            for match in ASKED.finditer(line):
                if (name := match["name"]) not in NAMES:
                    yield f"{path.relative_to(root).as_posix()}:{number}: data-play={name}, one of {NAMES}"


def test_every_figure_asked_for_has_a_module_and_every_module_a_figure() -> None:
    problems = list(unknown(ROOT))
    assert not problems, "\n".join(problems)
    drawn = [path.read_text(encoding="utf-8") for path in (ROOT / "docs/figures").glob("*/*.svg")]
    for name in NAMES:
        assert len([text for text in drawn if f'data-play="{name}"' in text]) == 2, f"figures/{name}.js"


def test_a_misspelt_name_is_found_at_its_line_and_cannot_be_drawn(tmp_path: Path) -> None:
    (tmp_path / "docs/en").mkdir(parents=True)
    (tmp_path / "docs/en/a.md").write_text('# A\n\n<figure data-play="maks">\n', encoding="utf-8")
    assert list(unknown(tmp_path)) == [f"docs/en/a.md:3: data-play=maks, one of {NAMES}"]
    with pytest.raises(ValueError, match="play='maks' must be one of"):
        Figure("en", height=9, title="t", desc="d", caption="c", play="maks")


def test_a_module_is_small() -> None:
    for path in [*PLAYS.glob("*.js"), SCRIPTS / "play.js", SCRIPTS.parent / "stylesheets/play.css"]:
        assert len(gzip.compress(path.read_bytes(), 9)) <= MOST, path


# ---- what a reader does ----


def open_play(reader: Any, name: str, lang: str = "en") -> Any:
    """Open the page of a figure, go there, and return its panel."""
    reader.goto(f"{'' if lang == 'zh' else 'en/'}days/{DAYS[name]}/")
    reader.locator(f"figure[data-play={name}]").scroll_into_view_if_needed()
    panel = reader.locator(f"figure[data-play={name}] + .play")
    panel.scroll_into_view_if_needed()
    return panel


def words(panel: Any) -> str:
    """Return what the panel says is seen."""
    return panel.get_by_role("status").inner_text()


def slide(panel: Any, name: str, to: int) -> None:
    """Move a slider by its keys to a position, counted from its lowest."""
    slider = panel.locator(f"[data-key={name}] input")
    slider.press("Home")
    for _ in range(to):
        slider.press("ArrowRight")


def drag(reader: Any, panel: Any, hook: str, across: float, down: float = 0) -> None:
    """Drag a handle by so many units of the drawing."""
    svg = panel.locator("svg").bounding_box()
    unit = svg["width"] / 500
    place = panel.locator(f"[data-hook={hook}] circle").last.bounding_box()
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    reader.mouse.move(x, y)
    reader.mouse.down()
    reader.mouse.move(x + across * unit / 2, y + down * unit / 2)
    reader.mouse.move(x + across * unit, y + down * unit)
    reader.mouse.up()


def test_the_mask_by_keyboard_answers_the_exercise_of_the_page(reader: Any) -> None:
    panel = open_play(reader, "mask")
    assert (
        words(panel)
        == "15 of 18 positions are allowed. q1 sees k0, k1, k2, k3, k4: 5 of 6. Every row sees something."
    )
    slide(panel, "queries", 5)
    slide(panel, "keys", 2)
    assert "q0 sees nothing. Rows that see nothing: q0, q1, q2." in words(panel)
    assert panel.get_by_text("sees none").count() == 3
    panel.get_by_role("radio", name="bottom-right").press("ArrowLeft")
    assert panel.get_by_role("radio", name="top-left").is_checked()
    assert "Every row sees something." in words(panel)
    slide(panel, "window", 1)
    assert "Rows that see nothing: q4, q5." in words(panel)
    slide(panel, "window", 2)
    assert "Rows that see nothing: q5." in words(panel)
    slide(panel, "query", 4)
    assert "q4 sees k2: 1 of 3" in words(panel)
    slide(panel, "queries", 1)
    assert panel.get_by_role("slider", name="Chosen query").input_value() == "0"  # q4 is gone
    slide(panel, "keys", 5)
    assert "Keys that nobody sees: k2, k3, k4, k5." in words(panel)


def test_the_mask_is_dragged(reader: Any) -> None:
    panel = open_play(reader, "mask")
    drag(reader, panel, "corner", 44, 80)
    assert "of 35 positions" in words(panel)
    assert panel.get_by_role("slider", name="Keys").input_value() == "7"
    drag(reader, panel, "edge", 88)
    assert "q1 sees k2, k3: 2 of 7" in words(panel)
    assert panel.get_by_role("slider", name="Window").input_value() == "2"
    svg = panel.locator("svg").bounding_box()
    unit = svg["width"] / 500
    panel.locator("svg").click(position={"x": 100 * unit, "y": (34 + 4.5 * 40) * unit})
    assert "q4 sees k5, k6" in words(panel)
    drag(reader, panel, "edge", -400)
    assert panel.get_by_role("slider", name="Window").get_attribute("aria-valuetext") == "none"
    drag(reader, panel, "corner", -900, -900)
    assert "of 1 positions" in words(panel)


def test_a_finger_drags_without_scrolling_the_page(chromium: Any, address: str) -> None:
    context = chromium.new_context(base_url=address, viewport={"width": 360, "height": 740}, has_touch=True)
    context.set_default_timeout(120_000)
    page = context.new_page()
    panel = open_play(page, "mask")
    panel.locator("svg").scroll_into_view_if_needed()
    place = panel.locator("[data-hook=corner] circle").first.bounding_box()
    assert place["width"] >= 24
    assert place["height"] >= 24
    before = page.evaluate("scrollY")
    x, y = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    session = context.new_cdp_session(page)
    for kind, down in (("touchStart", 0), ("touchMove", 30), ("touchMove", 60), ("touchEnd", 60)):
        points = [] if kind == "touchEnd" else [{"x": x, "y": y + down}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    panel.get_by_text("q4", exact=True).wait_for(timeout=30_000)
    assert panel.get_by_role("slider", name="Queries").input_value() == "5"
    assert page.evaluate("scrollY") == before
    context.close()


def test_the_cache_is_stepped_through(reader: Any) -> None:
    panel = open_play(reader, "kv-cache")
    assert words(panel) == "Prefill: one forward pass writes 16 tokens. MHA 8 MiB, GQA 2 MiB, MQA 256 KiB."

    def widths() -> list[float]:
        return [float(bar.get_attribute("width")) for bar in panel.locator("[data-bar]").all()]

    before = widths()
    panel.get_by_role("button", name="Next step").press("Enter")
    assert words(panel) == (
        "Decoding step 1: 17 tokens are cached, MHA 8.5 MiB, GQA 2.125 MiB, MQA 272 KiB. "
        "The step writes only MHA 512 KiB, GQA 128 KiB, MQA 16 KiB, and reads all of the cache."
    )
    assert widths() == pytest.approx([width * 17 / 16 for width in before])
    assert before[0] == pytest.approx(4 * before[1])
    for _ in range(3):
        panel.get_by_role("button", name="Back").press("Enter")
    assert words(panel) == "The cache is empty. Next: prefill."
    slide(panel, "batch", 1)
    slide(panel, "step", 2)
    assert "writes only MHA 1 MiB, GQA 256 KiB, MQA 32 KiB" in words(panel)
    slide(panel, "prompt", 5)
    assert "33 tokens are cached" in words(panel)
    assert "writes only MHA 1 MiB, GQA 256 KiB, MQA 32 KiB" in words(panel)
    panel.get_by_role("radio", name="SmolLM2-135M").check()
    panel.get_by_role("radio", name="fp32").check()
    assert "MHA 8.701 MiB" in words(panel)


def test_temperature_undoes_what_the_missing_scale_does(reader: Any) -> None:
    panel = open_play(reader, "softmax")
    scaled = words(panel)
    slide(panel, "d", 8)
    assert words(panel) == scaled
    panel.get_by_role("radio", name="none").check()
    assert words(panel).startswith("Largest weight 1 (k2); entropy ")
    assert words(panel).endswith("·10⁻¹⁸.")
    slide(panel, "temperature", 16)
    assert panel.get_by_role("slider", name="Temperature").get_attribute("aria-valuetext") == "32"
    assert words(panel) == scaled


def test_a_larger_beta_asks_for_less_distance_and_pulls_harder(reader: Any) -> None:
    panel = open_play(reader, "dpo-beta")
    slide(panel, "h", 60)
    assert "βh = 2," in words(panel)
    assert "loss 0.127; weight of the gradient 0.0119," in words(panel)
    slide(panel, "beta", 4)
    slide(panel, "h", 50)
    assert "loss 0.127; weight of the gradient 0.0238," in words(panel)
    drag(reader, panel, "pair", -100)
    assert "h = −10:" in words(panel)
    assert panel.get_by_role("slider", name="h =").get_attribute("aria-valuetext") == "−10"


@pytest.mark.parametrize("name", NAMES)
def test_it_speaks_the_language_of_the_page_and_fits_a_phone(reader: Any, name: str) -> None:
    reader.set_viewport_size({"width": 360, "height": 740})
    for lang in ("zh", "en"):
        panel = open_play(reader, name, lang)
        text = panel.inner_text()
        assert bool(HAN.search(text)) == (lang == "zh"), text
        assert panel.get_attribute("aria-labelledby")
        for control in panel.locator("input").all():
            assert control.evaluate("node => node.labels.length && node.labels[0].textContent.trim()")
            assert control.evaluate("node => node.closest('label').getBoundingClientRect().height") >= 24
        assert reader.evaluate("document.documentElement.scrollWidth") <= 360
        inside = panel.bounding_box()
        for node in panel.locator("input, button, svg, p, legend").all():
            box = node.bounding_box()
            if box:
                assert box["x"] >= inside["x"] - 1, node
                assert box["x"] + box["width"] <= inside["x"] + inside["width"] + 1
        assert all(
            size >= 11
            for size in panel.locator("svg").evaluate(
                "node => [...node.querySelectorAll('text')].map((text) => "
                "parseFloat(getComputedStyle(text).fontSize) * node.getBoundingClientRect().width / 500)"
            )
        )


def test_no_text_of_a_drawing_leaves_it_or_touches_another(reader: Any) -> None:
    for name in NAMES:
        for lang in ("zh", "en"):
            panel = open_play(reader, name, lang)
            for end in ("Home", "End"):
                for slider in panel.locator("input[type=range]").all():
                    slider.press(end)
                boxes = panel.locator("svg text").evaluate_all(
                    "nodes => nodes.map((n) => [n.textContent, n.getBBox()])"
                    ".map(([t, b]) => [t, b.x, b.y + 4, b.x + b.width, b.y + b.height - 4])"
                )
                for text, left, _top, right, _bottom in boxes:
                    assert left >= 0, (name, lang, end, text)
                    assert right <= 500, (name, lang, end, text)
                for one, other in itertools.combinations(boxes, 2):
                    apart = (
                        one[3] <= other[1] or other[3] <= one[1] or one[4] <= other[2] or other[4] <= one[2]
                    )
                    assert apart, (name, lang, end, one[0], other[0])


def test_without_javascript_and_on_paper_the_drawn_figure_stays(chromium: Any, address: str) -> None:
    context = chromium.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    for name, day in DAYS.items():
        page.goto(f"en/days/{day}/")
        assert page.locator(f"figure[data-play={name}] > svg").is_visible()
        assert not page.locator(".play").count()
    context.close()
    context = chromium.new_context(base_url=address)
    page = context.new_page()
    panel = open_play(page, "mask")
    panel.wait_for()
    assert page.locator("figure[data-play=mask] > svg").is_visible()
    page.emulate_media(media="print")
    assert page.locator("figure[data-play=mask] > svg").is_visible()
    assert not panel.is_visible()
    context.close()


PLAY = re.compile(r"/play\.(?:js|css)$|/javascripts/figures/")


def test_nothing_is_asked_for_before_a_reader_comes_near(reader: Any) -> None:
    asked: list[str] = []
    reader.on("request", lambda request: PLAY.search(request.url) and asked.append(request.url))
    for page in ("en/plan/", "en/glossary/", "en/days/self-attention/"):
        reader.goto(page)
        reader.wait_for_load_state("networkidle")
    assert asked == []
    open_play(reader, "mask").wait_for()
    names = [url.rsplit("/", 1)[1] for url in asked]
    assert sorted(set(names)) == sorted(names), "asked for twice"
    assert {"play.css", "play.js", "mask.js"} <= set(names)
    assert not {"kv-cache.js", "dpo-beta.js"} & set(names)


def test_it_comes_by_instant_navigation_and_once(reader: Any) -> None:
    open_play(reader, "softmax").wait_for()
    reader.wait_for_load_state("networkidle")  # the theme has read its site map
    reader.evaluate("window.stayed = true")
    reader.locator("nav a[href$='days/dpo/'], nav a[href$='../dpo/']").first.evaluate("node => node.click()")
    reader.locator("figure[data-play=dpo-beta]").scroll_into_view_if_needed()
    panel = reader.locator("figure[data-play=dpo-beta] + .play")
    panel.wait_for()
    assert reader.evaluate("window.stayed"), "the page was loaded as a whole: nothing was tested"
    assert panel.evaluate("node => getComputedStyle(node).borderTopStyle") == "solid", "the style is gone"
    assert reader.locator(".play").count() == 1


def test_it_works_from_a_folder(chromium: Any, built_site: Path) -> None:
    page = chromium.new_page()
    page.goto((built_site / "en/days/dpo/index.html").as_uri())
    page.locator("figure[data-play=dpo-beta]").scroll_into_view_if_needed()
    panel = page.locator("figure[data-play=dpo-beta] + .play")
    panel.wait_for(timeout=60_000)
    slide(panel, "h", 40)
    assert "loss 0.693;" in words(panel)
    page.close()
