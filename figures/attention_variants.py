"""Figures of the day on MHA, MQA, GQA and cross-attention."""

from __future__ import annotations

import torch

from llmcore import heads
from llmcore.attention import attention_weights
from llmcore.cross_attention import CrossAttention
from llmcore.kv_cache import kv_cache_bytes
from sitekit.svg import Axes, Figure, Words, decimals

GIB = 2**30
LLAMA = {"num_layers": 32, "head_dim": 128, "dtype": torch.bfloat16}
KINDS = (
    ("MHA", 32, "orange", "2 3", "triangle"),
    ("GQA", 8, "blue", "", "circle"),
    ("MQA", 1, "green", "9 4", "square"),
)

# layers, heads, kv heads, head_dim; as in snippets/attention-variants/kv_bytes.py
PLAYED = {
    "Llama 3 8B": [32, 32, 8, 128],
    "Llama 3 70B": [80, 64, 8, 128],
    "SmolLM2-135M": [30, 9, 3, 64],
}


def _kv_head_of(num_heads: int, num_kv_heads: int) -> list[int]:
    """Which kv head each query head reads."""
    numbered = torch.arange(num_kv_heads).reshape(1, num_kv_heads, 1, 1)
    return heads.repeat_kv(numbered, num_heads // num_kv_heads).flatten().tolist()


def head_sharing(lang: str) -> Figure:
    """Eight query heads that read 8, 2 or 1 kv heads."""
    figure = Figure(
        lang,
        height=470,
        title=("MHA、GQA、MQA：query head 怎样共用 kv head", "MHA, GQA, MQA: how query heads share kv heads"),
        desc=(
            "三行，每行 8 个 query head。MHA：每个 query head 有自己的 kv head，共 8 个；GQA：query head "
            "0–3 共用 kv 0，4–7 共用 kv 1；MQA：8 个 query head 共用 kv 0。",
            "Three rows of 8 query heads. MHA: each has a kv head of its own, 8 in all. GQA: query heads 0 "
            "to 3 share kv 0 and 4 to 7 share kv 1. MQA: all 8 share kv 0.",
        ),
        caption=(
            "8 个 query head，kv head 依次为 8、2、1 个。query 一侧不变，要缓存的 K、V 按 kv head 的个数缩"
            "小。",
            "8 query heads over 8, 2 and 1 kv heads. The query side stays as it is; the K and V to be "
            "cached shrink with the number of kv heads.",
        ),
    )
    titles: tuple[tuple[int, Words], ...] = (
        (8, ("MHA：8 个 kv head", "MHA: 8 kv heads")),
        (2, ("GQA：2 个 kv head，缓存为 1/4", "GQA: 2 kv heads, 1/4 of the cache")),
        (1, ("MQA：1 个 kv head，缓存为 1/8", "MQA: 1 kv head, 1/8 of the cache")),
    )
    for row, (num_kv_heads, title) in enumerate(titles):
        y, reads = 14 + row * 158, _kv_head_of(8, num_kv_heads)
        figure.text(4, y, title, anchor="start", bold=True)
        for kv in range(num_kv_heads):
            members = [head for head in range(8) if reads[head] == kv]
            centre = 31 + sum(members) / len(members) * 62.5
            wide = 52 + (members[-1] - members[0]) * 62.5 * 0.5
            for head in members:
                x = 31 + head * 62.5
                figure.box(x, y + 34, 52, 30, f"q{head}", fill="blue")
                figure.line((x, y + 49), (centre, y + 92), thick=1.3, heat=0.7)
            figure.box(centre, y + 107, wide, 30, f"kv{kv}", fill="orange", heat=0.3)
    return figure


def _llama_weights() -> int:
    """Bytes of the weights of Llama 3 8B in bf16, from the shapes in its configuration."""
    hidden, inner, vocabulary, kv = 4096, 14336, 128256, 8 * 128
    layer = 2 * hidden * hidden + 2 * hidden * kv + 3 * hidden * inner + 2 * hidden
    return 2 * (2 * vocabulary * hidden + 32 * layer + hidden)


def kv_bytes(lang: str) -> Figure:
    """GiB of KV cache against the context, on the shape of Llama 3 8B."""
    contexts = [1024 * 2**power for power in range(8)]
    gib = {
        name: [kv_cache_bytes(num_kv_heads=kv_heads, seq_len=length, **LLAMA) / GIB for length in contexts]
        for name, kv_heads, *_ in KINDS
    }
    short, long = contexts.index(8 * 1024), contexts.index(128 * 1024)
    listed = {name: (f"{sizes[short]:g}", f"{sizes[long]:g}") for name, sizes in gib.items()}
    total = decimals(_llama_weights() / GIB, 0)
    zh = "；".join(f"{name} 在 8k 时 {a} GiB，128k 时 {b} GiB" for name, (a, b) in listed.items())
    en = "; ".join(f"{name} {a} GiB at 8k and {b} GiB at 128k" for name, (a, b) in listed.items())
    figure = Figure(
        lang,
        height=400,
        play="kv-cache",
        values=PLAYED,
        title=("KV 缓存随上下文长度的增长", "KV cache against context length"),
        desc=(
            f"双对数折线图，横轴为上下文 1k 到 128k 个 token，纵轴为 GiB，三条平行的直线：{zh}。虚线是模型权"
            f"重，约 {total} GiB。",
            "Line chart with both axes logarithmic, 1k to 128k tokens of context across, GiB upwards, "
            f"three parallel straight lines: {en}. A dashed line marks the weights of the model, about "
            f"{total} GiB.",
        ),
        caption=(
            "Llama 3 8B 的形状（32 层、32 个 head、head_dim 128、bf16、batch 1），只换 kv head 的个数：MHA "
            "32、GQA 8（原模型）、MQA 1。由 `kv_cache_bytes` 算出；1 GiB = 2³⁰ 字节。",
            "The shape of Llama 3 8B (32 layers, 32 heads, head_dim 128, bf16, batch 1) with only the kv "
            "heads changed: MHA 32, GQA 8 (the released model), MQA 1. Computed by `kv_cache_bytes`; 1 GiB "
            "is 2³⁰ bytes.",
        ),
    )
    axes = Axes(figure, 56, 44, 360, 280, x=(1024, 128 * 1024), y=(1 / 64, 128), log="xy")
    axes.ticks(
        [(length, f"{length // 1024}k") for length in contexts],
        [(1 / 64, "1/64"), (1 / 8, "1/8"), (1, "1"), (8, "8"), (64, "64")],
    )
    axes.names(("上下文长度（token）", "context length (tokens)"), ("KV 缓存（GiB）", "KV cache (GiB)"))
    level = axes.place(1024, _llama_weights() / GIB)[1]
    figure.line((56, level), (416, level), dash="6 4", thick=1.3, heat=0.7)
    figure.text(62, level - 12, (f"模型权重 {total} GiB", f"model weights {total} GiB"), anchor="start")
    for name, _, ink, dash, mark in KINDS:
        places = axes.curve(list(zip(contexts, gib[name], strict=True)), ink, dash=dash, mark=mark, slack=0)
        figure.text(places[short][0] + 4, places[short][1] + 17, listed[name][0], anchor="start")
        figure.text(places[long][0] + 12, places[long][1], f"{name} {listed[name][1]}", anchor="start")
    return figure


def split_heads(lang: str) -> Figure:
    """Which numbers end in which head: view and transpose, or view alone."""
    x = torch.arange(12).reshape(1, 3, 4)
    right, wrong = heads.split_heads(x, 2)[0], x.reshape(2, 3, 2)
    figure = Figure(
        lang,
        height=452,
        title=(
            "split_heads 的内存布局：先 view 再 transpose",
            "The layout behind split_heads: view, then transpose",
        ),
        desc=(
            "3 个 token、隐藏维 4，数字 0 到 11。每行前两个数属于 head 0，后两个属于 head 1。view(B, L, H, "
            f"D).transpose(1, 2)：head 0 得到 {right[0].tolist()}，head 1 得到 {right[1].tolist()}。直接 "
            f"view(B, H, L, D)：head 0 得到 {wrong[0].tolist()}，head 1 得到 {wrong[1].tolist()}，两个 head "
            "的数混在一起，token 也错了位。",
            "3 tokens of width 4, numbers 0 to 11. The first two of a row belong to head 0, the last two "
            f"to head 1. view(B, L, H, D).transpose(1, 2) gives head 0 {right[0].tolist()} and head 1 "
            f"{right[1].tolist()}. view(B, H, L, D) at once gives head 0 {wrong[0].tolist()} and head 1 "
            f"{wrong[1].tolist()}: the heads are mixed and the tokens displaced.",
        ),
        caption=(
            "B = 1、L = 3、H = 2、D = 2。颜色与虚线框标出每个数本来属于哪个 head。两种写法形状相同，都不报"
            "错；错的那种把序列的前一半当成 head 0。",
            "B = 1, L = 3, H = 2, D = 2. Colour and dashes show which head a number belongs to. Both give "
            "the same shape and neither raises; the wrong one takes the first half of the sequence for "
            "head 0.",
        ),
    )
    home = {int(value): head for head in range(2) for value in right[head].flatten()}

    def matrix(left: float, top: float, values: torch.Tensor, labels: list[Words] | None) -> None:
        for r, row in enumerate(values.tolist()):
            if labels:
                figure.text(left - 8, top + r * 34 + 15, labels[r], anchor="end")
            for c, value in enumerate(row):
                ink, dashed = ("blue", False) if home[value] == 0 else ("orange", True)
                figure.rect(
                    left + c * 44,
                    top + r * 34,
                    40,
                    30,
                    fill=ink,
                    heat=0.3,
                    stroke=ink,
                    dashed=dashed,
                    thick=1.6,
                )
                figure.text(left + c * 44 + 20, top + r * 34 + 15, str(value))

    tokens: list[Words] = [f"token {index}" for index in range(3)]
    rows: list[Words] = [("位置 0", "row 0"), ("位置 1", "row 1"), ("位置 2", "row 2")]
    figure.text(250, 14, "x (B, L, H·D) = (1, 3, 4)", bold=True)
    figure.text(246, 40, "head 0")
    figure.text(334, 40, "head 1")
    matrix(204, 56, x[0], tokens)
    figure.arrow((190, 168), (150, 196))
    figure.arrow((310, 168), (350, 196))
    for centre, parts, title, call in (
        (143, right, ("对", "right"), ("view(B, L, H, D)", ".transpose(1, 2)")),
        (391, wrong, ("错", "wrong"), ("view(B, H, L, D)", "")),
    ):
        figure.text(centre, 212, title, bold=True)
        for line, words in enumerate(call):
            if words:
                figure.text(centre, 234 + 22 * line, words)
        for head in range(2):
            left = centre - 85 + head * 94
            figure.text(left + 42, 284, f"head {head}")
            matrix(left, 300, parts[head], None if head else rows)
    figure.text(391, 428, ("两个 head 的数混在一起", "heads are mixed"))
    figure.text(143, 428, ("每个 head 都有 3 个 token", "all 3 tokens in each head"))
    return figure


def repeat_kv(lang: str) -> Figure:
    """Which kv head each query head reads: interleaved, or tiled."""
    right = _kv_head_of(8, 2)
    tiled = torch.arange(2).repeat(4).tolist()
    wrong = [head for head in range(8) if right[head] != tiled[head]]
    figure = Figure(
        lang,
        height=400,
        title=("repeat_kv：repeat_interleave 与 repeat", "repeat_kv: repeat_interleave or repeat"),
        desc=(
            f"8 个 query head 读 2 个 kv head。repeat_interleave 的次序是 {right}，前 4 个读 kv 0，后 4 个读"
            f" kv 1；repeat 的次序是 {tiled}，query head {wrong} 读错。",
            f"8 query heads read 2 kv heads. repeat_interleave gives the order {right}: the first 4 read kv "
            f"0, the last 4 kv 1. repeat gives {tiled}: query heads {wrong} read the wrong one.",
        ),
        caption=(
            "GQA 的约定：query head h 读 kv head `h // (H // K)`。`repeat` 形状相同，也不报错，却有一半的 "
            "query head 读错（打叉处）；自己从头训练时看不出来，一加载公开的权重就错。",
            "The convention of GQA: query head h reads kv head `h // (H // K)`. `repeat` has the same "
            "shape and raises nothing, yet half of the query heads read the wrong one (crossed). A model "
            "trained from scratch hides it; released weights do not.",
        ),
    )
    for row, (title, reads) in enumerate(
        (
            (("repeat_interleave(4, dim=1)：对", "repeat_interleave(4, dim=1): right"), right),
            (("repeat(1, 4, 1, 1)：错", "repeat(1, 4, 1, 1): wrong"), tiled),
        )
    ):
        y = 14 + row * 206
        figure.text(4, y, title, anchor="start", bold=True)
        for head, kv in enumerate(reads):
            x, ink, dash = 31 + head * 62.5, ("blue", "orange")[kv], ("", "6 4")[kv]
            label = f"q{head}" if kv == right[head] else f"q{head} ✗"
            figure.box(x, y + 34, 56, 30, label, fill=ink, dashed=bool(kv))
            figure.line((x, y + 49), (140 + 220 * kv, y + 122), ink=ink, dash=dash, thick=1.6)
        for kv in range(2):
            figure.box(
                140 + 220 * kv,
                y + 138,
                150,
                32,
                f"kv{kv}",
                fill=("blue", "orange")[kv],
                heat=0.3,
                dashed=bool(kv),
            )
    return figure


def cross_attention(lang: str) -> Figure:
    """Shapes when queries come from the decoder, keys and values from the encoder."""
    layer = CrossAttention(16, 4, context_size=24)
    hidden_states, context = torch.zeros(2, 3, 16), torch.zeros(2, 5, 24)
    query, key, value = (
        heads.split_heads(proj(x), 4)
        for proj, x in ((layer.q_proj, hidden_states), (layer.k_proj, context), (layer.v_proj, context))
    )
    weights = attention_weights(query, key)
    merged = heads.merge_heads(weights @ value)
    s = {
        name: str(tuple(tensor.shape))
        for name, tensor in {
            "x": hidden_states,
            "c": context,
            "q": query,
            "k": key,
            "v": value,
            "w": weights,
            "y": layer.o_proj(merged),
        }.items()
    }
    figure = Figure(
        lang,
        height=524,
        title=(
            "交叉注意力的形状：query 来自解码器，key 与 value 来自编码器",
            "Cross-attention: queries from the decoder, keys and values from the encoder",
        ),
        desc=(
            f"左侧解码器的 hidden_states {s['x']} 经 q_proj 得到 query {s['q']}；右侧编码器的输出 context "
            f"{s['c']} 经 k_proj、v_proj 得到 key {s['k']} 与 value {s['v']}；权重 {s['w']} 每行是一个解码器"
            f" token，每列是一个编码器 token；输出 {s['y']}，长度与解码器相同。",
            f"On the left hidden_states {s['x']} of the decoder pass q_proj and give query {s['q']}; on the "
            f"right context {s['c']}, the output of the encoder, passes k_proj and v_proj and gives key "
            f"{s['k']} and value {s['v']}. The weights {s['w']} have a row for each decoder token and a "
            f"column for each encoder token; the output {s['y']} is as long as the decoder's side.",
        ),
        caption=(
            "B = 2、L = 3（解码器）、S = 5（编码器）、4 个 head。输出长度跟 query 走；没有因果掩码，只按编"
            "码器的填充遮 key。K、V 只依赖编码器，解码时算一次就够。",
            "B = 2, L = 3 in the decoder, S = 5 in the encoder, 4 heads. The output is as long as the "
            "queries. There is no causal mask, only padding of the encoder's keys. K and V depend on the "
            "encoder alone: compute them once per generation.",
        ),
    )
    left, middle, right = 88, 250, 412
    figure.text(left, 14, ("解码器", "decoder"), bold=True)
    figure.text(331, 14, ("编码器的输出", "encoder output"), bold=True)
    figure.box(left, 54, 156, 50, "hidden_states", s["x"])
    figure.box(331, 54, 318, 50, "context", s["c"], dashed=True)
    for x, name, shape, ink in (
        (left, "q_proj", s["q"], "blue"),
        (middle, "k_proj", s["k"], "orange"),
        (right, "v_proj", s["v"], "orange"),
    ):
        figure.arrow((x, 79), (x, 103))
        figure.box(x, 120, 130, 34, name, fill=ink, dashed=ink == "orange")
        figure.text(x, 155, shape)
    figure.arrow((left, 166), (left, 190))
    figure.arrow((middle, 166), (middle, 190))
    figure.arrow((right, 166), (right, 376))
    figure.box(
        169, 208, 312, 34, ("query · keyᵀ，对 key 做 softmax", "query · keyᵀ, softmax over keys"), fill="blue"
    )
    figure.text(169, 243, (f"权重 {s['w']}，其中一个 head：", f"weights {s['w']}, one head:"))
    rows, columns = weights.shape[-2:]
    figure.cells(
        94,
        282,
        [[""] * columns] * rows,
        cell=(32, 21),
        paint=lambda row, column: ("blue", 0.25),
        left=[f"q{row}" for row in range(rows)],
        top=[f"k{column}" for column in range(columns)],
    )
    figure.arrow((174, 349), (174, 376))
    figure.box(250, 394, 474, 34, ("权重 · value", "weights · value"), fill="blue")
    figure.arrow((250, 411), (250, 435))
    figure.box(250, 452, 474, 34, ("merge_heads，再过 o_proj", "merge_heads, then o_proj"), fill="blue")
    figure.arrow((250, 469), (250, 493))
    figure.text(250, 508, (f"输出 {s['y']}，与解码器等长", f"output {s['y']}, as long as the decoder side"))
    return figure


FIGURES = (head_sharing, kv_bytes, split_heads, repeat_kv, cross_attention)
