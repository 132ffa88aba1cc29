// Scale and temperature: what the softmax makes of eight scores that spread as q · k of width d does.
play.softmax = (() => {
  const {say} = study;
  const SCALES = {none: () => 1, root: (d) => 1 / Math.sqrt(d), whole: (d) => 1 / d};

  /** Scores of spread √d, scaled and divided by the temperature; `spread` are they at spread 1. */
  const scores = (spread, d, scale, temperature) => spread.map((z) => (z * Math.sqrt(d) * SCALES[scale](d)) / temperature);

  /** The softmax, with the largest score subtracted. */
  function weights(row) {
    const most = Math.max(...row);
    const powers = row.map((score) => Math.exp(score - most));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => power / total);
  }

  /** The entropy of a distribution, in nats. */
  const entropy = (shares) => shares.reduce((sum, share) => sum - (share ? share * Math.log(share) : 0), 0);

  /** The derivative of the largest weight by its own score, p(1 − p): the sum of the others keeps its digits. */
  function slope(shares) {
    const top = shares.indexOf(Math.max(...shares));
    return shares[top] * shares.reduce((sum, share, index) => (index === top ? sum : sum + share), 0);
  }

  const temperature = (power) => 2 ** (power / 2);

  function draw(state, spread) {
    const d = 2 ** state.d;
    const row = scores(spread, d, state.scale, temperature(state.temperature));
    const shares = weights(row);
    const top = shares.indexOf(Math.max(...shares));
    const [floor, high, wide] = [226, 170, 52];
    const level = (share, words, look) => `<path d="M20 ${floor - high * share}h430" stroke="currentColor" ${look}/>` + play.text(458, floor - high * share + 6, words, play.left);
    let svg = level(0, "0", 'stroke-width="1.2"') + level(1 / shares.length, `1/${shares.length}`, 'stroke-dasharray="5 4" stroke-opacity=".7"') + level(1, "1", 'stroke-opacity=".25"');
    shares.forEach((share, key) => {
      const x = 26 + key * wide;
      svg += `<rect data-weight="${key}" x="${x}" y="${floor - high * share}" width="${wide - 10}" height="${high * share}" fill="${play.ink(key === top ? "orange" : "blue")}"/>`
        + play.text(x + 21, floor - high * share - 9, share.toFixed(2), play.clear) + play.text(x + 21, floor + 20, `k${key}`) + play.text(x + 21, floor + 43, Math.abs(row[key]) < 1 ? row[key].toFixed(2).replace("-", "−") : play.short(row[key]), 'fill-opacity=".8"');
    });
    svg += play.text(20, 20, say("柱：权重；最下一行：softmax 之前的分数", "bars: weights; last line: scores before the softmax"), play.left);
    const [most, spreadNow] = [Math.log(shares.length), entropy(shares)];
    const words = say(
      `最大权重 ${play.short(shares[top])}（k${top}），熵 ${play.short(spreadNow)} nats（均匀时 ${play.short(most)}），最大权重对自己分数的导数 p(1 − p) = ${play.short(slope(shares))}。`,
      `Largest weight ${play.short(shares[top])} (k${top}); entropy ${play.short(spreadNow)} nats (uniform: ${play.short(most)}); derivative of the largest weight by its own score, p(1 − p) = ${play.short(slope(shares))}.`);
    return {svg, words};
  }

  const build = (spread) => ({
    title: say("动手：同样八个分数，换 d、缩放与温度", "Try it: the same eight scores under another d, scale and temperature"),
    size: [500, 280],
    controls: {
      scale: {label: say("缩放", "Scale"), value: "root", options: {none: say("不缩放", "none"), root: "÷ √d", whole: "÷ d"}},
      d: {label: "head_dim d =", low: 2, high: 10, value: 6, show: (power) => 2 ** power},
      temperature: {label: say("温度 T =", "Temperature T ="), low: -6, high: 10, value: 0, show: (power) => play.short(temperature(power))},
    },
    draw: (state) => draw(state, spread),
  });
  return {scores, weights, entropy, slope, temperature, build};
})();
