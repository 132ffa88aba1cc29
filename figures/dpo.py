"""Figures of the day on DPO."""

from __future__ import annotations

import functools

import torch

from llmcore.dpo import dpo_loss
from llmcore.logprobs import per_token_logps, sequence_logps
from sitekit.svg import Axes, Figure, Words, decimals, steady

BETAS = ((0.05, "green", "9 4", "square"), (0.1, "blue", "", "circle"), (0.5, "orange", "2 3", "triangle"))
LENGTHS = (64, 128, 256, 512)


def loss_curve(lang: str) -> Figure:
    """The loss of one pair and the weight of its gradient, against h, for three betas."""
    marks = [float(h) for h in range(-40, 41, 10)]
    steps = [h / 2 for h in range(-80, 81)]
    loss: dict[float, dict[float, float]] = {}
    weight: dict[float, dict[float, float]] = {}
    for beta, *_ in BETAS:
        loss[beta], weight[beta] = {}, {}
        for h in steps:
            policy = torch.tensor([h], dtype=torch.float64, requires_grad=True)
            zero = torch.zeros(1, dtype=torch.float64)
            value = dpo_loss(policy, zero, zero, zero, beta=beta).loss
            (slope,) = torch.autograd.grad(value, policy)
            loss[beta][h], weight[beta][h] = value.item(), -slope.item()
    far = {beta: decimals(weight[beta][-20.0], 3) for beta, *_ in BETAS}
    figure = Figure(
        lang,
        height=680,
        play="dpo-beta",
        title=("DPO 损失与梯度权重随 h 的变化", "The DPO loss and the weight of its gradient against h"),
        desc=(
            "两张曲线图，横轴是 h，即策略与参考模型对数概率之差在 chosen 与 rejected 之间的差，从 −40 到 "
            "40 nats。上图是损失 −logsigmoid(βh)，h = 0 时都是 0.693，h 越小越接近斜率为 −β 的直线，β 越大"
            "越陡。下图是梯度权重 βσ(−βh)，从 β 平滑降到 0，h = 0 时为 β/2；h = −20 时，β 为 0.05、0.1、"
            f"0.5 分别是 {far[0.05]}、{far[0.1]}、{far[0.5]}。",
            "Two charts over h, the difference between chosen and rejected of the log-ratios of policy to "
            "reference, from −40 to 40 nats. Above, the loss −logsigmoid(βh): 0.693 at h = 0 for every β, "
            "and towards a straight line of slope −β to the left. Below, the weight of the gradient, "
            f"βσ(−βh), which falls smoothly from β to 0 and is β/2 at h = 0; at h = −20 it is {far[0.05]}, "
            f"{far[0.1]} and {far[0.5]} for β of 0.05, 0.1 and 0.5.",
        ),
        caption=(
            "h =（策略 − 参考）在 chosen 上的对数概率之差，减去在 rejected 上的。排错了（h < 0）梯度接近 β"
            "，排对了逐渐归零；β 越大，h 只需很小就不再推动。",
            "h is policy minus reference log-probability of the chosen answer, less that of the rejected "
            "one. Ranked wrongly (h < 0), a pair pulls with almost β; ranked rightly, less and less. The "
            "larger β, the smaller the h at which the pull is over.",
        ),
    )
    across: list[tuple[float, Words]] = [(h, f"{h:.0f}".replace("-", "−")) for h in marks[::2]]
    upper = Axes(figure, 50, 44, 370, 220, x=(-40, 40), y=(0, 4.5))
    upper.ticks(across, [(value, str(value)) for value in range(5)])
    upper.names("h (nats)", ("损失 −logsigmoid(βh)（nats）", "loss −logsigmoid(βh) (nats)"))
    lower = Axes(figure, 50, 366, 370, 260, x=(-40, 40), y=(0, 0.5))
    lower.ticks(across, [(tenths / 10, f"{tenths / 10:g}") for tenths in range(6)])
    lower.names("h (nats)", ("梯度权重 βσ(−βh)", "weight of the gradient βσ(−βh)"))
    for axes, series, top in ((upper, loss, 4.5), (lower, weight, 0.5)):
        for beta, ink, dash, mark in BETAS:
            axes.curve([(h, y) for h, y in series[beta].items() if y <= top], ink, dash=dash, slack=1e-9)
            for h in marks:
                if series[beta][h] <= top:
                    figure.mark(*axes.place(h, series[beta][h], 1e-9), mark, ink)
    spots = (
        (upper, ((-38, 1.1), (-27, 3.4), (-5, 3.8))),
        (lower, ((-38, 0.071), (-38, 0.127), (-38, 0.465))),
    )
    for axes, places in spots:
        for (beta, *_), (h, y) in zip(BETAS, places, strict=True):
            figure.text(*axes.place(h, y), f"β = {beta}", anchor="start")
    return figure


def label_shift(lang: str) -> Figure:
    """Which row of logits scores which label, and what is summed."""
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(1, 8, 6, generator=generator, dtype=torch.float64)
    labels = torch.tensor([[-100, -100, -100, 4, 1, 5, -100, -100]])
    logps = per_token_logps(logits, labels)[0]
    total = decimals(float(sequence_logps(logits, labels)[0]), 2)
    kept = [position for position in range(8) if int(labels[0, position]) != -100]
    scored = {position: decimals(float(logps[position - 1]), 2) for position in kept}
    tokens: list[Words] = [
        ("你", "Two"),
        ("好", "plus"),
        ("吗", "two"),
        ("很", "is"),
        ("好", "four"),
        "eos",
        "pad",
        "pad",
    ]
    figure = Figure(
        lang,
        height=412,
        title=(
            "标签移位：哪一行 logits 给哪个 token 打分",
            "The label shift: which row of logits scores which token",
        ),
        desc=(
            "8 个位置：3 个提示 token，3 个回答 token（含 eos），2 个填充。labels 在提示与填充处为 −100。箭"
            "头从 logits 第 t 行指向位置 t + 1 的标签：第 2、3、4 行给回答的 3 个 token 打分，得 "
            f"{'、'.join(scored.values())}，和为 {total}。其余各行不计入，最后一行没有标签。",
            "8 positions: 3 tokens of prompt, 3 of completion with eos, 2 of padding. labels are −100 on "
            "prompt and padding. An arrow leads from row t of logits to the label at t + 1: rows 2, 3 and "
            f"4 score the 3 completion tokens, {', '.join(scored.values())}, sum {total}. The other rows do "
            "not count, and the last has no label.",
        ),
        caption=(
            "logits 的第 t 行预测位置 t + 1。回答的第一个 token 由提示的最后一个位置打分；eos 要计入，提示"
            "与填充（labels = −100）不计。移位只在 `per_token_logps` 里做一次。",
            "Row t of logits predicts position t + 1. The last position of the prompt scores the first "
            "token of the completion; eos counts, prompt and padding (labels = −100) do not. The shift "
            "happens once, inside `per_token_logps`.",
        ),
    )
    left, wide = 78, 52.5
    centres = [left + (position + 0.5) * wide for position in range(8)]
    for first, last, words, dash in (
        (0, 2, ("提示", "prompt"), ""),
        (3, 5, ("回答", "completion"), ""),
        (6, 7, ("填充", "padding"), "4 3"),
    ):
        figure.text((centres[first] + centres[last]) / 2, 14, words, bold=first == 3)
        figure.line(
            (centres[first] - 22, 29),
            (centres[last] + 22, 29),
            ink="blue" if first == 3 else "ink",
            thick=2.4,
            dash=dash,
        )
    rows: tuple[tuple[float, Words], ...] = (
        (54, "token"),
        (114, "logits"),
        (214, "labels"),
        (286, "log p"),
    )
    for y, words in rows:
        figure.text(left - 8, y, words, anchor="end")
    for position, x in enumerate(centres):
        scores, is_scored = position + 1 in kept, position in kept
        figure.text(x, 54, tokens[position])
        figure.line((x, 68), (x, 94), thick=1.2, heat=0.5)
        figure.box(
            x, 114, 50, 38, f"t={position}", fill="blue" if scores else None, heat=0.3, dashed=not scores
        )
        label = tokens[position] if is_scored else "−100"
        figure.box(
            x, 214, 50, 38, label, fill="orange" if is_scored else None, heat=0.3, dashed=not is_scored
        )
        figure.text(x, 286, scored.get(position, "0" if position else "·"), faint=not is_scored)
        if is_scored:
            figure.line((x, 302), (x, 326), ink="orange", thick=1.6)
        if position < 7:
            figure.arrow(
                (x + 6, 133),
                (centres[position + 1] - 6, 195),
                ink="blue" if scores else "ink",
                dash="" if scores else "3 4",
            )
    figure.line((centres[kept[0]], 326), (centres[kept[-1]], 326), ink="orange", thick=1.6)
    middle = (centres[kept[0]] + centres[kept[-1]]) / 2
    figure.arrow((middle, 326), (middle, 350), ink="orange")
    figure.text(middle, 366, f"log π(y | x) = {total}", bold=True)
    figure.text(middle, 394, ("求和，不取平均", "a sum, not a mean"))
    return figure


def pipeline(lang: str) -> Figure:
    """From four log-probabilities to rewards, margin and loss, and where the gradient stops."""
    values = [
        torch.tensor([x], dtype=torch.float64, requires_grad=True) for x in (-40.0, -52.0, -44.0, -50.0)
    ]
    chosen, rejected, ref_chosen, ref_rejected = values
    out = dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta=0.1)
    slope_chosen, slope_rejected, *cut_off = torch.autograd.grad(out.loss, values, allow_unused=True)
    if cut_off != [None, None]:
        raise ValueError("the figure says that the reference receives no gradient")
    text = {
        "w": decimals(chosen.item(), 0),
        "l": decimals(rejected.item(), 0),
        "rw": decimals(ref_chosen.item(), 0),
        "rl": decimals(ref_rejected.item(), 0),
        "reward_w": decimals(out.chosen_rewards.item(), 1),
        "reward_l": decimals(out.rejected_rewards.item(), 1),
        "margin": decimals(out.margin.item(), 1),
        "loss": decimals(out.loss.item(), 3),
        "slope_w": decimals(slope_chosen.item(), 3),
        "slope_l": "+" + decimals(slope_rejected.item(), 3),
    }
    figure = Figure(
        lang,
        height=470,
        title=("DPO 的计算流程：四个对数概率到损失", "How DPO computes: four log-probabilities to one loss"),
        desc=(
            f"从上到下。策略模型对 chosen、rejected 的对数概率 {text['w']}、{text['l']}，参考模型的 "
            f"{text['rw']}、{text['rl']}；两两相减乘 β = 0.1，得到隐式奖励 {text['reward_w']} 与 "
            f"{text['reward_l']}；二者之差 margin 为 {text['margin']}；损失 −logsigmoid(margin) 为 "
            f"{text['loss']}。梯度只流回策略模型：对 chosen 为 {text['slope_w']}，对 rejected 为 "
            f"{text['slope_l']}；参考模型的虚线上没有梯度。",
            f"From top to bottom. Log-probabilities of chosen and rejected: {text['w']} and {text['l']} by "
            f"the policy, {text['rw']} and {text['rl']} by the reference. Their differences times β = 0.1 "
            f"are the implicit rewards, {text['reward_w']} and {text['reward_l']}; the margin between them "
            f"is {text['margin']}, and the loss, −logsigmoid(margin), {text['loss']}. The gradient flows "
            f"back to the policy alone, {text['slope_w']} for chosen and {text['slope_l']} for rejected; "
            "the dashed lines of the reference carry none.",
        ),
        caption=(
            "一对回答的例子，β = 0.1。实线有梯度，虚线没有：参考模型的对数概率要 `detach`。损失对两个策略对"
            f"数概率的梯度为 {text['slope_w']} 与 {text['slope_l']}，大小相等、方向相反。",
            "One pair, β = 0.1. Solid lines carry a gradient, dashed ones do not: the log-probabilities of "
            f"the reference are detached. The slopes of the loss, {text['slope_w']} and {text['slope_l']}, "
            "are equal in size and opposite in sign.",
        ),
    )
    figure.text(127, 14, "chosen (y_w)", bold=True)
    figure.text(373, 14, "rejected (y_l)", bold=True)
    for centre, mine, other, reward in ((127, "w", "rw", "reward_w"), (373, "l", "rl", "reward_l")):
        figure.box(centre - 60, 70, 112, 74, ("策略模型", "policy"), "log π", text[mine], fill="blue")
        figure.box(centre + 60, 70, 112, 74, ("参考模型", "reference"), "log π_ref", text[other], dashed=True)
        figure.arrow((centre - 60, 107), (centre - 60, 175))
        figure.arrow((centre + 60, 107), (centre + 60, 175), dash="5 4")
        figure.text(centre + 52, 130, ("无梯度", "no gradient"), anchor="end")
        figure.box(
            centre,
            203,
            232,
            56,
            ("β · (log π − log π_ref)", "β · (log π − log π_ref)"),
            (f"奖励 {text[reward]}", f"reward {text[reward]}"),
            fill="blue",
        )
        figure.arrow((centre, 231), (centre, 271))
    figure.box(
        250,
        289,
        478,
        36,
        (f"margin = 奖励之差 = {text['margin']}", f"margin = difference of rewards = {text['margin']}"),
        fill="blue",
    )
    figure.arrow((250, 307), (250, 347))
    figure.box(250, 365, 478, 36, f"−logsigmoid(margin) = {text['loss']}", fill="orange", bold=True)
    figure.arrow((250, 383), (250, 423))
    figure.text(250, 440, ("对一批求平均，即损失", "the loss is the mean over the batch"))
    return figure


@functools.cache
def _summing_errors() -> tuple[dict[str, list[str]], str]:
    """Root mean square error in nats of log-probabilities summed over tokens, and their sum, roughly."""
    generator = torch.Generator().manual_seed(6)
    exact = torch.randn(512, 32768, generator=generator)
    labels = torch.randint(32768, (64, 512), generator=generator)
    shifted = torch.nn.functional.pad(labels[:1], (1, -1), value=-100)
    digits = {"bf16": 1, "fp16": 2}
    errors: dict[str, list[str]] = {}
    ours = 0.0
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        logits = exact.to(dtype)
        truth = logits.gather(1, labels.T).T.double() - logits.double().logsumexp(-1)
        naive = logits.log_softmax(-1).gather(1, labels.T).T
        errors[name] = []
        for length in LENGTHS:
            off = naive[:, :length].sum(-1).double() - truth[:, :length].sum(-1)
            errors[name].append(decimals(off.square().mean().sqrt().item(), digits[name], slack=0.05))
            own = sequence_logps(logits[None, :length], shifted[:, :length]) - truth[:1, : length - 1].sum()
            ours = max(ours, own.abs().item())
    if ours >= 1e-3:
        raise ValueError(f"the figure says that llmcore is within 1e-3 nats, got {ours}")
    total = f"−{steady(-truth[0].sum().item(), 100, slack=0.05):.0f}"
    return errors, total


def precision(lang: str) -> Figure:
    """Error of a summed log-probability in bf16 and fp16, and after an upcast."""
    errors, total = _summing_errors()
    gaps = [f"{torch.finfo(dtype).eps * 4096:g}" for dtype in (torch.bfloat16, torch.float16)]
    figure = Figure(
        lang,
        height=390,
        title=(
            "序列对数概率的精度：bf16、fp16 与先转 fp32",
            "Precision of a sequence log-probability: bf16, fp16, upcast first",
        ),
        desc=(
            "双对数折线图，横轴是 token 数 64、128、256、512，纵轴是与 float64 结果之差的均方根，单位 nats"
            f"。全程 bf16：{'、'.join(errors['bf16'])}；全程 fp16：{'、'.join(errors['fp16'])}；先转 fp32 再"
            "算则始终低于 0.001，画成底部的阴影带。",
            "Line chart with both axes logarithmic: 64, 128, 256 and 512 tokens across, root mean square "
            f"difference from float64 in nats upwards. All in bf16: {', '.join(errors['bf16'])}. All in "
            f"fp16: {', '.join(errors['fp16'])}. Upcast to fp32 first, it stays below 0.001, a shaded band "
            "at the bottom.",
        ),
        caption=(
            f"词表 32768，64 组随机标签。512 个 token 的和约为 {total}，bf16 在 4096 以上的间隔是 {gaps[0]}"
            f"，fp16 是 {gaps[1]}：误差主要来自求和结果的舍入。`sequence_logps` 先转 fp32。",
            f"Vocabulary of 32768, 64 sets of random labels. 512 tokens sum to about {total}, where bf16 "
            f"numbers are {gaps[0]} apart and fp16 numbers {gaps[1]}: rounding the sum is most of the "
            "error. `sequence_logps` goes to fp32 first.",
        ),
    )
    axes = Axes(figure, 62, 44, 336, 270, x=(64, 512), y=(1e-4, 32), log="xy")
    axes.ticks(
        [(length, str(length)) for length in LENGTHS],
        [(10.0**power, f"{10.0**power:g}") for power in range(-3, 2)],
    )
    axes.names(("token 数", "tokens"), ("误差（nats）", "error (nats)"))
    top = axes.place(64, 1e-3)[1]
    figure.rect(62, top, 336, 314 - top, fill="green", heat=0.25, stroke=None)
    figure.text(230, (top + 314) / 2, ("先转 fp32：< 0.001", "upcast to fp32 first: < 0.001"))
    for name, ink, dash, mark in (("bf16", "orange", "2 3", "triangle"), ("fp16", "blue", "", "circle")):
        places = axes.curve(
            [(length, float(error)) for length, error in zip(LENGTHS, errors[name], strict=True)],
            ink,
            dash=dash,
            mark=mark,
        )
        for (x, y), error in zip(places[1:-1], errors[name][1:-1], strict=True):
            figure.text(x, y - 18, error)
        figure.text(places[-1][0] + 12, places[-1][1], f"{name} {errors[name][-1]}", anchor="start")
    return figure


FIGURES = (loss_curve, label_shift, pipeline, precision)
