// β in the DPO loss: one pair with log-ratio difference h, its loss, its margin and the weight of its gradient.
play["dpo-beta"] = (() => {
  const {say} = study;
  const BETAS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
  const [FAR, TOP] = [40, 5]; // how far h goes, and the highest loss drawn
  const [LEFT, WIDE] = [62, 400];
  const UPPER = {y: 40, high: 170};
  const LOWER = {y: 300, high: 120};

  /** σ(z), exact on both sides. */
  const sigmoid = (z) => (z < 0 ? Math.exp(z) / (1 + Math.exp(z)) : 1 / (1 + Math.exp(-z)));

  /** The difference of the implicit rewards. */
  const margin = (beta, h) => beta * h;

  /** −log σ(βh), as softplus(−βh). */
  const loss = (beta, h) => Math.max(0, -beta * h) + Math.log1p(Math.exp(-Math.abs(beta * h)));

  /** How hard the pair pulls: βσ(−βh), minus the derivative of the loss by h. */
  const weight = (beta, h) => beta * sigmoid(-beta * h);

  const across = (h) => LEFT + (WIDE * (h + FAR)) / (2 * FAR);
  const up = ({y, high}, share) => y + high * (1 - share);

  /** A curve of values from 0 to 1; what is above is left out. */
  function curve(part, share, look) {
    const points = [];
    for (let h = -FAR; h <= FAR; h += 0.5) if (share(h) <= 1) points.push(`${across(h).toFixed(1)},${up(part, share(h)).toFixed(1)}`);
    return `<polyline points="${points.join(" ")}" fill="none" ${look}/>`;
  }

  /** The frame of a chart, its name and its ticks. */
  function frame(part, name, ticks) {
    const floor = part.y + part.high;
    let svg = `<path d="M${LEFT} ${part.y}V${floor}h${WIDE}" fill="none" stroke="currentColor" stroke-width="1.2"/>` + play.text(8, part.y - 18, name, `${play.left} font-weight="700"`);
    for (const [share, words] of ticks)
      svg += `<path d="M${LEFT} ${up(part, share)}h${WIDE}" stroke="currentColor" stroke-width=".8" stroke-opacity=".25"/>` + play.text(LEFT - 7, up(part, share) + 5, words, play.right);
    for (const h of [-40, -20, 0, 20, 40]) svg += play.text(across(h), floor + 25, play.short(h));
    return svg;
  }

  function draw(state) {
    const [beta, h] = [BETAS[state.beta], state.h];
    const [cost, pull] = [loss(beta, h), weight(beta, h)];
    const bold = (name) => `stroke="${play.ink(name)}" stroke-width="3"`;
    const spot = (part, share) => `<circle cx="${across(h)}" cy="${up(part, share)}" r="7" fill="${play.ink("orange")}"/>`;
    const high = Math.min(1, cost / TOP);
    const svg = frame(UPPER, say("损失 −log σ(βh)", "loss −log σ(βh)"), [0, 1, 2, 3, 4, 5].map((value) => [value / TOP, value]))
      + curve(UPPER, (x) => loss(0.1, x) / TOP, 'stroke="currentColor" stroke-dasharray="3 4" stroke-opacity=".7" stroke-width="1.5"')
      + curve(UPPER, (x) => loss(beta, x) / TOP, bold("blue"))
      + play.text(488, 22, say("虚线：β = 0.1", "dashed: β = 0.1"), play.right)
      + (cost > TOP ? play.text(across(h) + 16, UPPER.y + 6, `↑ ${play.short(cost)}`, `${play.left} ${play.clear}`) : "")
      + frame(LOWER, say("梯度权重 βσ(−βh)", "weight of the gradient βσ(−βh)"), [[0, 0], [0.5, play.short(beta / 2)], [1, play.short(beta)]])
      + curve(LOWER, (x) => weight(beta, x) / beta, bold("green")) + spot(LOWER, pull / beta)
      + play.text(LEFT + WIDE / 2, 469, "h (nats)");
    const words = say(
      `β = ${beta}，h = ${play.short(h)}：隐式奖励之差 βh = ${play.short(margin(beta, h))}，隐式奖励给出的 chosen 胜率 σ(βh) = ${play.short(sigmoid(beta * h))}，损失 ${play.short(cost)}，梯度权重 ${play.short(pull)}，是上限 β 的 ${Math.round((100 * pull) / beta)}%。`,
      `β = ${beta}, h = ${play.short(h)}: margin of the implicit rewards βh = ${play.short(margin(beta, h))}, so chosen wins with σ(βh) = ${play.short(sigmoid(beta * h))}; loss ${play.short(cost)}; weight of the gradient ${play.short(pull)}, ${Math.round((100 * pull) / beta)}% of its bound β.`);
    return {svg, words, hooks: {pair: [across(h), up(UPPER, high)]}};
  }

  const build = () => ({
    title: say("动手：左右拖动这一对的点，换 β", "Try it: drag the pair's point sideways, choose another β"),
    size: [500, 476],
    controls: {
      beta: {label: "β =", low: 0, high: BETAS.length - 1, value: 3, show: (index) => BETAS[index]},
      h: {label: "h =", low: -FAR, high: FAR, value: -10, show: (h) => play.short(h)},
    },
    draw,
    moves: {pair: (state, x) => (state.h = play.clamp(Math.round(((x - LEFT) / WIDE) * 2 * FAR - FAR), -FAR, FAR))},
  });
  return {margin, loss, weight, sigmoid, build};
})();
