"""Figures of the day on self-attention."""

from __future__ import annotations

import torch

from llmcore.attention import attention_weights
from llmcore.heads import merge_heads, split_heads
from llmcore.masks import causal_mask
from llmcore.multi_head import MultiHeadAttention
from sitekit.svg import Axes, Figure, Words, decimals, steady


def _shape(tensor: torch.Tensor) -> str:
    return str(tuple(tensor.shape))


def shapes(lang: str) -> Figure:
    """The worked example: every shape between query, key, value and the output."""
    mha = MultiHeadAttention(128, 8, kdim=128, vdim=64, head_dim=16, v_head_dim=16, out_dim=8)
    inputs = [torch.zeros(10, 2, 128), torch.zeros(10, 4, 128), torch.zeros(10, 4, 64)]
    projected = [layer(x) for layer, x in zip((mha.q_proj, mha.k_proj, mha.v_proj), inputs, strict=True)]
    query, key, value = (split_heads(x, 8) for x in projected)
    mask = causal_mask(2, 4).expand(10, 1, 2, 4)
    scores, weights = query @ key.mT, attention_weights(query, key, mask)
    heads = weights @ value
    merged = merge_heads(heads)
    figure = Figure(
        lang,
        height=640,
        title=("一次注意力计算中的张量形状", "Tensor shapes through one attention call"),
        desc=(
            f"从上到下：query {_shape(inputs[0])}、key {_shape(inputs[1])}、value {_shape(inputs[2])} 各经一"
            f"个投影，拆成 8 个 head；query 与 key 相乘得到分数 {_shape(scores)}；缩放、加掩码、softmax 后与"
            f" value 相乘得到 {_shape(heads)}；合并 head 得到 {_shape(merged)}，输出投影后为 "
            f"{_shape(mha.o_proj(merged))}。",
            f"From top to bottom: query {_shape(inputs[0])}, key {_shape(inputs[1])} and value "
            f"{_shape(inputs[2])} pass one projection each and are split into 8 heads; query times key "
            f"gives scores {_shape(scores)}; scaled, masked and through softmax they multiply value and "
            f"give {_shape(heads)}; merged, {_shape(merged)}; after the output projection, "
            f"{_shape(mha.o_proj(merged))}.",
        ),
        caption=(
            "batch 为 10、8 个 head、2 个 query、4 个 key 时，每一步的形状。形状里同时含有 query 长度与 key "
            "长度的，只有分数和由它得到的权重。",
            "Every shape for a batch of 10, 8 heads, 2 queries and 4 keys. The scores, and the weights "
            "made of them, are the only tensors with both lengths in their shape.",
        ),
    )
    columns = (88, 250, 412)
    names = (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"))
    for x, (name, layer), before, after in zip(columns, names, inputs, projected, strict=True):
        figure.text(x, 14, name, bold=True)
        figure.text(x, 37, _shape(before))
        figure.arrow((x, 48), (x, 68))
        figure.box(x, 86, 150, 34, layer, fill="blue")
        figure.text(x, 119, _shape(after))
        figure.arrow((x, 130), (x, 150))
    figure.box(250, 168, 474, 34, ("split_heads：8 个 head，各 16 维", "split_heads: 8 heads of 16"))
    for x, head in zip(columns, (query, key, value), strict=True):
        figure.text(x, 201, _shape(head))
    figure.arrow((88, 212), (88, 232))
    figure.arrow((250, 212), (250, 232))
    figure.arrow((412, 212), (412, 434))
    figure.box(169, 250, 312, 34, "query · keyᵀ", fill="orange")
    figure.text(169, 283, (f"分数 {_shape(scores)}", f"scores {_shape(scores)}"))
    figure.arrow((169, 294), (169, 314))
    figure.box(
        169,
        343,
        312,
        56,
        (f"÷ √16，加掩码 {_shape(mask)}", f"÷ √16, mask {_shape(mask)}"),
        ("沿 key 方向 softmax", "softmax over keys"),
        fill="orange",
    )
    figure.text(169, 387, (f"权重 {_shape(weights)}", f"weights {_shape(weights)}"))
    figure.arrow((169, 398), (169, 434))
    figure.box(250, 452, 474, 34, ("权重 · value", "weights · value"), fill="orange")
    figure.text(250, 485, _shape(heads))
    figure.arrow((250, 496), (250, 516))
    figure.box(250, 534, 474, 34, ("merge_heads，再过 o_proj", "merge_heads, then o_proj"), fill="blue")
    figure.arrow((250, 551), (250, 598))
    figure.text(264, 573, f"{_shape(merged)} → {_shape(mha.o_proj(merged))}", anchor="start")
    figure.text(250, 616, ("输出", "output"), bold=True)
    return figure


def weights(lang: str) -> Figure:
    """Scores, masked scores and weights of five tokens."""
    generator = torch.Generator().manual_seed(5)
    query, key = (torch.randn(1, 1, 5, 16, generator=generator, dtype=torch.float64) for _ in range(2))
    scores = (query @ key.mT / 16**0.5)[0, 0]
    visible = causal_mask(5)
    shares = attention_weights(query, key, is_causal=True)[0, 0]
    tokens: list[Words] = [("我", "I"), ("要", "do"), ("手撕", "it"), ("大", "by"), ("模型", "hand")]
    figure = Figure(
        lang,
        height=500,
        title=(
            "五个 token 的因果注意力：分数、掩码、权重",
            "Causal attention over five tokens: scores, mask, weights",
        ),
        desc=(
            "三个 5×5 矩阵，行是 query，列是 key。左上是缩放后的分数；右上把对角线以上换成负无穷；下方是按"
            "行 softmax 后的权重热图，对角线以上为 0，每行之和为 1，第一行只能看自己，权重为 1。",
            "Three 5 by 5 matrices, queries down and keys across. Upper left, the scaled scores; upper "
            "right, minus infinity above the diagonal; below, the weights after a softmax along each row: "
            "0 above the diagonal, each row sums to 1, and the first row, which sees only itself, has "
            "weight 1.",
        ),
        caption=(
            "先掩码、再 softmax：被掩掉的位置权重恰为 0，留下的位置在一行之内重新归一化。数字由 "
            "`attention_weights` 算出。",
            "Mask first, softmax second: hidden keys get exactly 0 and what is left of a row is normalised "
            "to 1. The numbers come from `attention_weights`.",
        ),
    )
    top = [[decimals(float(x), 1) for x in row] for row in scores]
    masked = [[x if visible[r, c] else "−∞" for c, x in enumerate(row)] for r, row in enumerate(top)]
    final = [
        [decimals(float(x), 2) if visible[r, c] else "0" for c, x in enumerate(row)]
        for r, row in enumerate(shares)
    ]
    figure.text(163, 14, ("① 分数 ÷ √D", "① scores ÷ √D"), bold=True)
    figure.cells(56, 62, top, cell=(43, 32), left=tokens, top=tokens)
    figure.text(389, 14, ("② 掩码之后", "② masked"), bold=True)
    figure.cells(
        282,
        62,
        masked,
        cell=(43, 32),
        top=tokens,
        paint=lambda r, c: None if visible[r, c] else ("ink", 0.14),
    )
    figure.text(224, 250, ("③ softmax 之后：权重", "③ after softmax: weights"), bold=True)

    def heat(row: int, column: int) -> tuple[str, float] | None:
        share = float(shares[row, column])
        return ("blue", 0.06 + 0.6 * share) if share else ("ink", 0.14)

    figure.cells(74, 300, final, cell=(60, 37), left=tokens, top=tokens, paint=heat)
    for row in range(5):
        figure.text(386, 300 + (row + 0.5) * 37, ("行和 = 1", "row sum = 1"), anchor="start", faint=True)
    return figure


def _spread_scores() -> list[float]:
    """q · k / √d of one query and eight keys: the scores that the reader scales, to two decimals."""
    generator = torch.Generator().manual_seed(2)
    query = torch.randn(1, 64, generator=generator, dtype=torch.float64)
    key = torch.randn(8, 64, generator=generator, dtype=torch.float64)
    return [round(steady(float(score), 0.01), 2) for score in (query @ key.mT)[0] / 64**0.5]


def scaling(lang: str) -> Figure:
    """What 1, 1/√d and 1/d do to the spread of the scores and to the softmax."""
    generator = torch.Generator().manual_seed(0)
    widths = [4, 16, 64, 256, 1024]
    spread: dict[str, list[tuple[float, float]]] = {"1": [], "√": [], "d": []}
    peak: dict[str, list[tuple[float, float]]] = {"1": [], "√": [], "d": []}
    for d in widths:
        query = torch.randn(256, 1, 1, d, generator=generator)
        key = torch.randn(256, 1, 64, d, generator=generator)
        for name, scale in (("1", 1.0), ("√", d**-0.5), ("d", 1 / d)):
            spread[name].append((d, float((query @ key.mT * scale).std())))
            largest = attention_weights(query, key, scale=scale).amax(-1)
            peak[name].append((d, float(largest.median())))
    none, root, whole = (peak[name][-1][1] for name in ("1", "√", "d"))
    figure = Figure(
        lang,
        height=640,
        play="softmax",
        values=_spread_scores(),
        title=(
            "为什么除以 √d：分数的标准差与最大权重",
            "Why divide by √d: spread of the scores and the largest weight",
        ),
        desc=(
            "两张折线图，横轴是 head_dim d，从 4 到 1024。上图是分数的标准差：不缩放时等于 √d，从 2 升到 32"
            "；除以 √d 时始终是 1；除以 d 时从 0.5 降到 1/32。下图是 64 个 key 中最大的权重的中位数：d = "
            f"1024 时，不缩放为 {decimals(none, 2)}，除以 √d 为 {decimals(root, 2)}，除以 d 为 "
            f"{decimals(whole, 2)}，接近均匀的 1/64。",
            "Two line charts over head_dim d from 4 to 1024. Above, the standard deviation of the scores: "
            "without a scale it is √d, from 2 up to 32; divided by √d it stays at 1; divided by d it falls "
            "from 0.5 to 1/32. Below, the median of the largest of 64 weights: at d = 1024 it is "
            f"{decimals(none, 2)} without a scale, {decimals(root, 2)} divided by √d and "
            f"{decimals(whole, 2)} divided by d, next to the uniform 1/64.",
        ),
        caption=(
            "query 与 key 的分量独立同分布于 N(0, 1)，64 个 key。不缩放，softmax 趋于 one-hot，梯度消失；除"
            "以 d，趋于均匀，挑不出任何 key；只有除以 √d 与 d 无关。",
            "Components of query and key drawn from N(0, 1), 64 keys. Without a scale softmax tends to "
            "one-hot and its gradient vanishes; divided by d it tends to uniform and prefers no key; only "
            "√d does not depend on d.",
        ),
    )
    across = [(d, str(d)) for d in widths]
    looks = {"1": ("orange", "2 3", "triangle"), "√": ("blue", "", "circle"), "d": ("green", "9 4", "square")}
    labels: dict[str, Words] = {"1": ("不缩放", "no scale"), "√": "÷ √d", "d": "÷ d"}
    upper = Axes(figure, 56, 44, 340, 220, x=(4, 1024), y=(1 / 32, 32), log="xy")
    upper.ticks(across, [(1 / 32, "1/32"), (1 / 4, "1/4"), (1, "1"), (4, "4"), (32, "32")])
    upper.names(("head_dim d", "head_dim d"), ("分数的标准差", "standard deviation of the scores"))
    lower = Axes(figure, 56, 366, 340, 220, x=(4, 1024), y=(0, 1), log="x")
    lower.ticks(across, [(0, "0"), (0.25, "0.25"), (0.5, "0.5"), (0.75, "0.75"), (1, "1")])
    lower.names(
        ("head_dim d", "head_dim d"), ("64 个权重中最大者的中位数", "median of the largest of 64 weights")
    )
    for axes, series in ((upper, spread), (lower, peak)):
        for name, (ink, dash, mark) in looks.items():
            x, y = axes.curve(series[name], ink, dash=dash, mark=mark)[-1]
            figure.text(x + 12, y, labels[name], anchor="start")
    return figure


def mask_alignment(lang: str) -> Figure:
    """The causal mask aligned top-left and bottom-right when there are fewer queries than keys."""
    figure = Figure(
        lang,
        height=388,
        play="mask",
        title=("因果掩码：左上对齐与右下对齐", "Causal mask: aligned top-left or bottom-right"),
        desc=(
            "四个掩码，行是 query，列是 key，打勾处可见。2 个 query、4 个 key：左上对齐时两个 query 只看到 "
            "key 0 和 key 0、1，key 2、3 谁也看不到；右下对齐时分别看到前 3 个和全部 4 个。1 个 query、5 个"
            " key：左上对齐只看到 key 0，右下对齐看到全部 5 个。",
            "Four masks, queries down and keys across, a tick where a query may look. With 2 queries and 4 "
            "keys, top-left shows the queries key 0 and keys 0 and 1, and nobody sees keys 2 and 3; "
            "bottom-right shows the first 3 and all 4. With 1 query and 5 keys, top-left shows only key 0, "
            "bottom-right all 5.",
        ),
        caption=(
            "query 是序列的最后几个 token 时（带缓存的解码），只有右下对齐是对的：最新的 query 看得到每一个"
            " key。PyTorch 的 `is_causal=True` 是左上对齐。",
            "When the queries are the last tokens of the sequence, as in decoding with a cache, only "
            "bottom-right is right: the newest query sees every key. `is_causal=True` of PyTorch is "
            "top-left.",
        ),
    )
    figure.text(148, 14, ("左上对齐：错", "top-left: wrong"), bold=True)
    figure.text(388, 14, ("右下对齐：对", "bottom-right: right"), bold=True)
    notes: dict[tuple[int, str], Words] = {
        (2, "top"): ("key 2、3 没有人看", "nobody sees keys 2, 3"),
        (2, "bottom"): ("第 i 行看到前 3 + i 个", "row i sees the first 3 + i"),
        (1, "top"): ("新 token 只看到 key 0", "new token sees only key 0"),
        (1, "bottom"): ("新 token 看到全部", "new token sees them all"),
    }
    for q_len, k_len, y in ((2, 4, 104), (1, 5, 296)):
        figure.text(250, y - 58, f"L = {q_len}, S = {k_len}")
        for side, centre, visible in (
            ("top", 148, torch.ones(q_len, k_len, dtype=torch.bool).tril()),
            ("bottom", 388, causal_mask(q_len, k_len)),
        ):
            ink = "orange" if side == "top" else "blue"

            def paint(
                row: int, column: int, visible: torch.Tensor = visible, ink: str = ink
            ) -> tuple[str, float]:
                return (ink, 0.38) if visible[row, column] else ("ink", 0.1)

            figure.cells(
                centre - k_len * 19,
                y,
                [["✓" if seen else "" for seen in row] for row in visible.tolist()],
                cell=(38, 34),
                paint=paint,
                left=[f"q{row}" for row in range(q_len)],
                top=[f"k{column}" for column in range(k_len)],
            )
            figure.text(centre, y + q_len * 34 + 20, notes[q_len, side])
    return figure


FIGURES = (shapes, weights, scaling, mask_alignment)
