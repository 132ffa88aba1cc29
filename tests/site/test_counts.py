"""Formulas for counts (parameters, bytes, FLOPs) agree with the modules they speak of.

A formula of a day's page that multiplies dimensions or whole numbers is a count: it is listed in COUNTS
with what is counted, and evaluated against it, or in NO_COUNTS with a reason. Orders O(…), shapes and
matrices are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from llmcore.attention import attention_weights
from llmcore.attention import scaled_dot_product_attention as attention
from llmcore.cross_attention import CrossAttention
from llmcore.grouped_query import GroupedQueryAttention
from llmcore.kv_cache import KVCache
from llmcore.masks import causal_mask
from llmcore.multi_head import MultiHeadAttention
from llmcore.multi_query import MultiQueryAttention
from llmcore.self_attention import MultiHeadSelfAttention
from tests.site.formulas import Formula, formulas, is_count, sides, value

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*/days/*.md"))


def sizes(B: int, L: int, S: int, H: int, K: int, D: int, E: int, **more: int) -> dict[str, int]:
    """Return values for the letters of the pages: n is L, d is D, and an element takes `bytes`."""
    return {
        **dict(B=B, L=L, S=S, H=H, K=K, D=D, E=E),
        "n": L,
        "d": D,
        "m": 13,
        "k": 17,
        "V": 19,
        "T": 23,
        "layers": 3,
        "bytes": 2,
        **more,
    }


FREE = [sizes(2, 3, 5, 8, 4, 6, 7), sizes(3, 4, 9, 6, 2, 5, 11, layers=7, bytes=4)]
BF16 = [sizes(2, 3, 5, 8, 4, 6, 7), sizes(3, 4, 9, 6, 2, 5, 11)]
SQUARE = [sizes(2, 3, 5, 4, 2, 6, 24), sizes(3, 4, 7, 6, 2, 5, 30)]  # HD = E
LAYER = [sizes(2, 5, 5, 4, 4, 3, 12), sizes(3, 7, 7, 2, 2, 5, 10)]  # and L = S
ALONE = [size | {"B": 1} for size in LAYER]  # one sequence
EVEN = [sizes(1, 24, 24, 3, 3, 4, 12), sizes(1, 20, 20, 2, 2, 5, 10)]  # and n = 2E
PROMPT = [sizes(1, 5, 5, 8, 4, 6, 7), sizes(1, 7, 7, 6, 2, 5, 11)]
WIDE = [size | {"D": 128} for size in PROMPT]
LLAMA = [sizes(1, 1, 1, 32, 8, 128, 4096, layers=32)]  # one token of Llama 3 8B
DEMO = [sizes(128, 512, 512, 8, 8, 128, 1024, bytes=4)]
MLA = [sizes(1, 2, 2, 128, 1, 128, 5120)]  # DeepSeek-V2's heads


def parameters(*modules: nn.Module) -> int:
    """Return the number of parameters."""
    return sum(weight.numel() for module in modules for weight in module.parameters())


def flops(call: Callable[..., object], *inputs: object, **options: object) -> int:
    """Return the FLOPs that PyTorch counts in a call."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        call(*inputs, **options)
    return counter.get_total_flops()


def cached(module: nn.Module, hidden_states: Tensor) -> KVCache:
    """Return the cache that a forward pass of some tokens, or of none, fills."""
    past = KVCache()
    if hidden_states.numel():
        module(hidden_states, past_key_values=past)
    return past


@cache
def measured(items: frozenset[tuple[str, int]]) -> dict[str, Fraction]:
    """Build what the pages speak of in these sizes, and count; real models' without taking their memory."""
    size = dict(items)
    with torch.device("meta" if size["E"] > 1000 else "cpu"), torch.no_grad():
        found = grouped(**size)
        if size["E"] == size["H"] * size["D"]:
            found |= layer(**size)
        if size in LLAMA:
            found |= llama_ffn(size["E"])
    return {name: Fraction(count) for name, count in found.items()}


def grouped(B: int, L: int, S: int, H: int, K: int, D: int, E: int, **more: int) -> dict[str, Fraction | int]:
    """Count what the days on grouped queries and on DPO count: L new tokens of S, that have been cached."""
    width = more["bytes"]
    zeros = partial(torch.zeros, dtype={2: torch.bfloat16, 4: torch.float32}[width])
    x, query = zeros(B, S, E), zeros(B, H, L, D)
    found: dict[str, Fraction | int] = {}
    for name, module in (
        ("MHA", GroupedQueryAttention(E, H, H, head_dim=D)),
        ("MQA", MultiQueryAttention(E, H, head_dim=D)),
        ("GQA", GroupedQueryAttention(E, H, K, head_dim=D)),
    ):
        past = cached(module.to(x.dtype), x)
        key, value = past.key, past.value
        assert key is not None
        assert value is not None
        step = flops(attention, query[:, :, :1], key, value)
        found[f"parameters of {name}"] = parameters(module)
        found[f"numbers cached by {name}"] = past.num_bytes // width
        found[f"numbers cached by {name} a token"] = Fraction(past.num_bytes, width * B * S)
        found[f"FLOPs of a step of {name}"] = step
        found[f"intensity of {name}"] = Fraction(step, past.num_bytes)
    before = cached(module, x[:, L:])  # the last is GQA
    prompt = query[:1], key[:1, :, :L], value[:1, :, :L]
    full, weights = flops(attention, *prompt), attention_weights(query, key)
    causal = Fraction(full * int(causal_mask(L, device=torch.device("cpu")).sum()), L * L)
    latent = zeros(1, 1, 4, 576)  # MLA, its up-projections absorbed: the value is the first part of the key
    absorbed = Fraction(flops(attention, zeros(1, H, 1, 576), latent, latent[..., :512]), 4)
    linear = nn.Linear(E, H, bias=False).to(x.dtype)
    chosen_and_rejected = torch.cat([zeros(B, more["T"], D), zeros(B, more["T"], D)])
    return found | {
        "parameters of MultiHeadAttention": parameters(MultiHeadAttention(E, H, head_dim=D, bias=False)),
        "parameters of q_proj": parameters(module.q_proj),
        "parameters of k_proj": parameters(module.k_proj),
        "FLOPs of the layer": flops(module, x[:, :L], past_key_values=before, is_causal=True),
        "FLOPs of attention": flops(attention, query, key, value),
        "scores": weights.numel(),
        "bytes of the scores": weights.nbytes,
        "a token's key": key[0, :, 0].numel(),
        "a token's value": value[0, :, 0].numel(),
        "a token's query": query[0, :, 0].numel(),
        "a token's query and output": query[0, :, 0].numel() + attention(query, key, value)[0, :, 0].numel(),
        "bytes of the cache": sum(cached(module, x).num_bytes for _ in range(more["layers"])),
        "intensity of the weights": Fraction(flops(linear, x[:, 0]), linear.weight.nbytes),
        "FLOPs of a prompt": causal,
        "queries of a prompt": prompt[0].numel(),
        "keys of a prompt": prompt[1].numel(),
        "intensity of a prompt": causal / sum(tensor.nbytes for tensor in (*prompt, attention(*prompt))),
        "scores and weights, written and read": 2 * 2 * attention_weights(*prompt[:2]).numel(),
        "intensity with scores in memory": Fraction(full, 2 * 2 * attention_weights(*prompt[:2]).nbytes),
        "FLOPs of MLA a latent": absorbed,
        "intensity of MLA, 1 digit": round(absorbed / latent[0, 0, 0].nbytes / H, 1) * H,
        "intensity of MLA, 0 digits": round(absorbed / latent[0, 0, 0].nbytes / H) * H,
        "groups as large as a latent": latent[0, 0, 0].numel() / found["numbers cached by MQA a token"],
        "bytes of the logits": nn.Linear(D, more["V"]).to(x.dtype)(chosen_and_rejected).nbytes,
    }


def layer(B: int, L: int, H: int, D: int, E: int, **more: int) -> dict[str, Fraction | int]:
    """Count what the day on self-attention counts: a sequence of L tokens that sees itself, HD = E."""
    module, x, heads = MultiHeadSelfAttention(E, H), torch.zeros(B, L, E), torch.zeros(B, H, L, D)
    head, full = GroupedQueryAttention(E, 1, 1, head_dim=D), GroupedQueryAttention(E, H, H)
    ffn = nn.Sequential(nn.Linear(E, 4 * E, bias=False), nn.Linear(4 * E, E, bias=False))
    scores, both = flops(attention_weights, heads, heads), flops(attention, heads, heads, heads)
    factors = torch.zeros(more["m"], more["k"]), torch.zeros(more["k"], L)
    past = cached(full, x[:, 1:])
    return {
        "parameters of cross-attention": parameters(CrossAttention(E, H)),
        "parameters of self-attention": parameters(module),
        "parameters of one head's Q and K": parameters(head.q_proj, head.k_proj),
        "parameters of the FFN": parameters(ffn),
        "FLOPs of a matrix product": flops(torch.mm, *factors),
        "FLOPs of the projections": flops(module.qkv_proj, x) + flops(module.o_proj, x),
        "outputs of the projections": module.qkv_proj(x).numel() + module.o_proj(x).numel(),
        "FLOPs of the scores": scores,
        "FLOPs of P V": both - scores,
        "FLOPs of the scores and P V": both,
        "weights": attention_weights(heads, heads).numel(),
        "outputs of P V": attention(heads, heads, heads).numel(),
        "FLOPs of a step with n keys": flops(full, x[:, :1], past_key_values=past),
        "numbers that a step reads": past.num_bytes // x.itemsize,
        "FLOPs of the FFN": flops(ffn, x),
        "FLOPs of an RNN": flops(nn.RNN(E, E, bias=False), x),
    }


def llama_ffn(E: int) -> dict[str, Fraction | int]:
    """Count what an FFN of Llama 3 8B has, and what it makes of a token."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaMLP

    ffn = LlamaMLP(LlamaConfig(hidden_size=E, intermediate_size=14336))
    made = ffn.gate_proj.out_features + ffn.up_proj.out_features + ffn.down_proj.in_features
    return {"parameters of Llama's FFN": parameters(ffn), "activations of Llama's FFN": made}


class Count(NamedTuple):
    """A formula, where it stands, and what of ``measured`` it gives for which sizes, ``beyond`` left out."""

    place: str
    latex: str
    counts: str
    sizes: list[dict[str, int]] = FREE
    beyond: str = "0"


COUNTS = {
    "attention-variants": [
        Count("tying", r"K \cdot D", "a token's key"),
        Count("tying", r"K \cdot D", "a token's value"),
        Count("tying", "HD", "a token's query"),
        Count("tying", "2KD", "numbers cached by GQA a token"),
        Count("counts", r"E \cdot HD", "parameters of q_proj"),
        Count("counts", r"E \cdot KD", "parameters of k_proj"),
        Count("counts", r"N_{\text{params}} = 2ED\,(H + K)", "parameters of GQA"),
        Count(
            "counts",
            r"\text{FLOPs} = \underbrace{2BL \cdot 2ED\,(H + K)}_{\text{projections}}"
            r" + \underbrace{2 \cdot 2\,BHLSD}_{QK^\top \text{ and } PV}",
            "FLOPs of the layer",
        ),
        Count("counts", r"2 \cdot 4096 \cdot 128 \cdot (32 + 8)", "parameters of GQA", LLAMA),
        Count("counts", r"3 \cdot 4096 \cdot 14336", "parameters of Llama's FFN", LLAMA),
        Count("kv-formula", r"K \cdot D", "a token's key"),
        Count(
            "kv-formula",
            r"\text{bytes} = 2 \cdot N_{\text{layers}} \cdot B \cdot K \cdot S \cdot D"
            r" \cdot \text{bytes per element}",
            "bytes of the cache",
        ),
        Count("kv-formula", r"2 \cdot 32 \cdot 8 \cdot 128 \cdot 2 = 131072", "bytes of the cache", LLAMA),
        Count("intensity", "4BHSD", "FLOPs of a step of GQA"),
        Count("intensity", "2BKSD", "numbers cached by GQA"),
        Count("intensity", r"\frac{4BHSD}{2BKSD \cdot 2} = \frac{H}{K}", "intensity of GQA", BF16),
        Count("intensity", "2B/2 = B", "intensity of the weights", BF16),
        Count("intensity", "2HL^2D", "FLOPs of a prompt", PROMPT, beyond="2HLD"),
        Count("intensity", "HLD", "queries of a prompt", PROMPT),
        Count("intensity", "KLD", "keys of a prompt", PROMPT),
        Count(
            "intensity",
            r"\frac{2HL^2D}{(2H + 2K)\,LD \cdot 2} = \frac{L\,H}{2\,(H + K)}",
            "intensity of a prompt",
            PROMPT,
            beyond="H / (2(H + K))",
        ),
        Count("shapes", r"128 \cdot 8 \cdot 512 \cdot 512 \cdot 4 = 2^{30}", "bytes of the scores", DEMO),
        Count("comparison:1", "4EHD", "parameters of MultiHeadAttention"),
        Count("comparison:2", "2ED(H + K)", "parameters of GQA"),
        Count("comparison:3", "2ED(H + 1)", "parameters of MQA"),
        Count("comparison:4", "4EHD", "parameters of cross-attention", SQUARE),
        Count("comparison:1", "2HD", "numbers cached by MHA a token"),
        Count("comparison:2", "2KD", "numbers cached by GQA a token"),
        Count("comparison:3", "2D", "numbers cached by MQA a token"),
        Count("comparison:4", "2HD", "numbers cached by MHA a token"),
        Count("comparison:2", "H/K", "intensity of GQA", BF16),
        Count("comparison:3", "H", "intensity of MQA", BF16),
        Count("comparison:5", "2H", "intensity of MLA, 0 digits", BF16),
        Count("comparison:1", "4BHLSD", "FLOPs of attention"),
        Count("comparison", "2H", "intensity of MLA, 0 digits", BF16),
        Count("comparison", r"2 \cdot 128 \cdot 128 = 32768", "numbers cached by MHA a token", MLA),
        Count("comparison", r"576 / (2 \cdot 128) = 2.25", "groups as large as a latent", MLA),
        Count("comparison", "2KD", "numbers cached by GQA a token"),
        Count("questions", "4E^2", "parameters of MultiHeadAttention", SQUARE),
        Count("questions", "4BHLSD = 4BLSE", "FLOPs of attention", SQUARE),
        Count("questions", "BHLS", "scores"),
        Count(
            "questions",
            r"2ED(H + K) = 2 \cdot 4096 \cdot 128 \cdot (32 + 8) = 41943040",
            "parameters of GQA",
            LLAMA,
        ),
        Count("questions", r"2 \cdot 4096 \cdot 128 \cdot 64 = 67108864", "parameters of MHA", LLAMA),
        Count("questions", "2HD = 8192", "numbers cached by MHA a token", LLAMA),
        Count("questions", "2KD = 2048", "numbers cached by GQA a token", LLAMA),
        Count("questions", "2HD = 8192", "a token's query and output", LLAMA),
        Count("questions", r"3 \cdot 14336 = 43008", "activations of Llama's FFN", LLAMA),
        Count(
            "questions",
            r"2 \cdot \text{layers} \cdot B \cdot K \cdot S \cdot D \cdot \text{bytes}",
            "bytes of the cache",
        ),
        Count("questions", "2KD", "numbers cached by GQA a token"),
        Count("questions", "LH / (2(H+K))", "intensity of a prompt", PROMPT, beyond="H / (2(H + K))"),
        Count("questions", "4HL^2", "scores and weights, written and read", PROMPT),
        Count("questions", "4HL^2D / (8HL^2) = D/2 = 64", "intensity with scores in memory", WIDE),
        Count("questions", "2H(576 + 512)", "FLOPs of MLA a latent"),
        Count("questions", "1.9H", "intensity of MLA, 1 digit", BF16),
        Count("questions", "2H", "intensity of MLA, 0 digits", BF16),
    ],
    "self-attention": [
        Count("three-matrices", "2Ed", "parameters of one head's Q and K", LAYER),
        Count("complexity", "2mkn", "FLOPs of a matrix product", LAYER),
        Count("complexity:1", "8 B n E^2", "FLOPs of the projections", LAYER),
        Count("complexity:2", "4 B n E", "outputs of the projections", LAYER),
        Count("complexity:1", "2 B n^2 E", "FLOPs of the scores", LAYER),
        Count("complexity:2", "B H n^2", "weights", LAYER),
        Count("complexity:2", "B H n^2", "weights", LAYER),
        Count("complexity:1", "2 B n^2 E", "FLOPs of P V", LAYER),
        Count("complexity:2", "B n E", "outputs of P V", LAYER),
        Count("complexity", "8 n E^2 = 4 n^2 E", "FLOPs of the projections", EVEN),
        Count("numbers:0", "8BnE^2", "FLOPs of the projections", LAYER),
        Count("numbers:0", "4Bn^2E", "FLOPs of the scores and P V", LAYER),
        Count("numbers:0", "4E^2", "parameters of self-attention", LAYER),
        Count("questions", "8nE^2", "FLOPs of the projections", ALONE),
        Count("questions", "4n^2E", "FLOPs of the scores and P V", ALONE),
        Count("questions", "16nE^2", "FLOPs of the FFN", ALONE),
        Count("questions", "8E^2 + 4nE", "FLOPs of a step with n keys", ALONE),
        Count("questions", "2nE", "numbers that a step reads", ALONE),
        Count("questions", "8nE^2", "FLOPs of the projections", ALONE),
        Count("questions", "4nE^2", "FLOPs of an RNN", ALONE),
        Count("questions", "4E^2", "parameters of self-attention", LAYER),
        Count("questions", "8E^2", "parameters of the FFN", LAYER),
    ],
    "dpo": [
        Count("questions", r"2B \cdot T \cdot V \cdot \text{bytes}", "bytes of the logits"),
    ],
}
NO_COUNTS = {  # formula: why nothing is counted
    "HD = E": "the choice of widths that is spoken of",
    "HD": "the width of all heads side by side",
    "HD = 2048": "a width of a released model",
    "LD = D": "when two strides fit",
    r"6 \neq 1 \cdot 2": "strides of a tensor of the page",
    r"E \times E": "a shape",
    r"128 \times 512 \times 1024": "a shape",
    "bnd^2": "the paper's order, without its factor",
    "n = 2E": "where two counts are equal; complexity evaluates both there",
}


def unlisted(page: str, found: list[Formula], listed: list[Count]) -> Iterator[str]:
    """Yield the formulas for a count that stand where, or more often than, none is listed."""
    left = Counter((count.place, count.latex) for count in listed)
    for line, place, latex in found:
        if left[place, latex] > 0:
            left[place, latex] -= 1
        elif is_count(latex) and latex not in NO_COUNTS:
            yield f"{page}:{line}: this formula for a count is evaluated nowhere: ${latex}$"


def faults(page: str, found: list[Formula], listed: list[Count], count: Count) -> Iterator[str]:
    """Yield where and how a formula is gone from its page, or gives another number than there is."""
    here = [formula for formula in found if formula.place == count.place]
    lines = [formula.line for formula in here if formula.latex == count.latex]
    if len(lines) < sum(other[:2] == count[:2] for other in listed):
        strange = {
            f.latex: f.line for f in reversed(here) if f.latex not in {other.latex for other in listed}
        }
        near = get_close_matches(count.latex, strange, 1, 0)
        line, instead = (
            (strange[near[0]], f", but ${near[0]}$") if near else (here[0].line if here else 1, "")
        )
        yield f"{page}:{line}: #{count.place} has no ${count.latex}$ ({count.counts}){instead}"
        return
    for size in count.sizes:
        there = measured(frozenset(size.items()))[count.counts] - value(count.beyond, size)
        for side in sides(count.latex):
            if (given := value(side, size)) != there:
                which = ", ".join(f"{name} = {size[name]}" for name in size if name in side)
                yield f"{page}:{lines[0]}: ${side}$ is {given} for {which}; {count.counts}: {there}"


@cache
def read(page: str) -> list[Formula]:
    """Return the formulas of a page."""
    return formulas((ROOT / page).read_text(encoding="utf-8"), Path(page).stem)


@pytest.mark.parametrize("page", PAGES)
def test_every_formula_for_a_count_is_listed(page: str) -> None:
    problems = list(unlisted(page, read(page), COUNTS.get(Path(page).stem, [])))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("page", "count"),
    [
        pytest.param(page, count, id=f"{page[5:-3]}#{count.place}-{count.counts}".replace(" ", "_"))
        for page in PAGES
        for count in COUNTS.get(Path(page).stem, [])
    ],
)
def test_a_formula_counts_what_is_there(page: str, count: Count) -> None:
    problems = list(faults(page, read(page), COUNTS[Path(page).stem], count))
    assert not problems, "\n".join(problems)


def test_every_exception_is_needed() -> None:
    assert set(NO_COUNTS) <= {formula.latex for page in PAGES for formula in read(page)}


TEXT = r"""# A page { #top }

The cache takes $2KD$ numbers, with $HD = E$, `2BKD` and $O(n^2 d)$.

## Counts { #counts }

$$
N_{\text{params}} = 2ED\,(H + K), \qquad
\text{bytes} = \frac{4BKSD}{2} \cdot \text{layers} \cdot \text{bytes each}
$$

| H | D |
|---|---|
| $4BHLSD$ | 4BHL |
"""
LISTED = [
    Count("top", "2KD", "numbers cached by GQA a token"),
    Count("counts", r"N_{\text{params}} = 2ED\,(H + K)", "parameters of GQA"),
    Count(
        "counts",
        r"\text{bytes} = \frac{4BKSD}{2} \cdot \text{layers} \cdot \text{bytes each}",
        "bytes of the cache",
    ),
    Count("counts:0", "4BHLSD", "FLOPs of attention"),
    Count("counts:1", "4BHL", "FLOPs of attention"),
]


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("2KD", "2HD", [3, 3]),  # listed nowhere, and the other one gone
        ("2KD", "K", [3]),
        ("2KD", "2KD$ and $2KD", [3]),
        ("(H + K)", "(H + 2K)", [8, 8]),
        ("4BKSD", "3BKSD", [9, 9]),
        ("$O(n^2 d)$", "$n^2 d$", [3]),
        ("top", "head", [1, 3]),
        ("| $4BHLSD$ | 4BHL |", "| 4BHL | $4BHLSD$ |", [14, 14, 14]),
    ],
)  # fmt: skip
def test_a_changed_formula_is_found_where_it_is(old: str, new: str, lines: list[int]) -> None:
    def problems(text: str) -> list[str]:
        found = formulas(text, "a")
        return [
            *unlisted("a.md", found, LISTED),
            *(p for c in LISTED[:4] for p in faults("a.md", found, LISTED, c)),
        ]

    assert problems(TEXT) == []
    assert old in TEXT
    found = problems(TEXT.replace(old, new, 1))
    assert sorted(int(problem.split(":")[1]) for problem in found) == lines


def test_a_formula_that_miscounts_is_found() -> None:
    (first, second) = faults("a.md", formulas(TEXT, "a"), LISTED, LISTED[4])
    assert first == "a.md:14: $4BHL$ is 192 for B = 2, L = 3, H = 8; FLOPs of attention: 5760"
    assert second.startswith("a.md:14: ")


@pytest.mark.parametrize(
    ("latex", "number"),
    [
        (r"2B \times T \cdot V / 2", 1 * 3 * 5 * 7),
        (r"\frac{2B^2}{6}\,(T - V)", -6),
        (r"B / (2T)", Fraction(3, 10)),
        (r"\underbrace{2B + 1}_{\text{one}} \cdot 2^{10}", 7 * 1024),
        (r"1.5 B \cdot \text{bytes a number}", 18),
    ],
)  # fmt: skip
def test_values(latex: str, number: Fraction) -> None:
    assert value(latex, {"B": 3, "T": 5, "V": 7, "bytes": 4}) == number


@pytest.mark.parametrize("latex", [r"2 \sqrt B", "2Q", "B_i", r"\text{words} B", r"2B \cdot", "B^{T}", "(B"])
def test_what_has_no_value_is_named(latex: str) -> None:
    with pytest.raises(ValueError, match=r"\$ (?:has|is) no"):
        value(latex, {"B": 3, "T": 5})
