// The KV cache of MHA, GQA and MQA, step by step: a prefill of the whole prompt, then one token a step.
play["kv-cache"] = (() => {
  const {say} = study;
  const STEPS = 17; // nothing, the prefill, and sixteen tokens
  const SIZES = {fp32: 4, bf16: 2, int8: 1}; // bytes of a number

  /** Tokens in the cache after a step: none after 0, the prompt after 1, then one more a step. */
  const tokens = (prompt, step) => (step ? prompt + step - 1 : 0);

  /** Bytes of the keys and values of so many tokens; 2 for the two. */
  const bytes = ({layers, kvHeads, headDim, batch, dtype}, length) => 2 * layers * batch * kvHeads * length * headDim * SIZES[dtype];

  /** What the three cache, by the number of their kv heads. */
  const kinds = ([layers, heads, kvHeads, headDim], batch, dtype) =>
    [["MHA", heads], ["GQA", kvHeads], ["MQA", 1]].map(([name, count]) => ({name, layers, kvHeads: count, headDim, batch, dtype}));

  /** Bytes in the largest unit of which there is at least one. */
  function amount(count) {
    const power = Math.max(0, Math.min(4, Math.floor(Math.log2(count || 1) / 10)));
    return `${Number((count / 1024 ** power).toPrecision(4))} ${power ? "KMGT"[power - 1] + "iB" : say("字节", "bytes")}`;
  }

  function draw({model, prompt, batch, dtype, step}, models) {
    const all = kinds(models[model], 2 ** batch, dtype);
    const length = 2 ** prompt;
    const most = bytes(all[0], tokens(length, STEPS));
    const [now, fed] = [tokens(length, step), step ? length : 0];
    let svg = "";
    all.forEach((kind, index) => {
      const y = 24 + index * 78;
      const wide = (count) => (460 * bytes(kind, count)) / most;
      svg += play.text(20, y, `${kind.name}, ${kind.kvHeads} kv head${say("", kind.kvHeads === 1 ? "" : "s")}`, `${play.left} font-weight="700"`)
        + play.text(480, y, amount(bytes(kind, now)), play.right)
        + `<rect x="20" y="${y + 10}" width="460" height="30" fill="none" stroke="currentColor" stroke-opacity=".35" stroke-dasharray="3 4"/>`
        + `<rect data-bar="${kind.name}" x="20" y="${y + 10}" width="${wide(now)}" height="30" fill="${play.ink("orange")}"/>`
        + `<rect x="20" y="${y + 10}" width="${wide(fed)}" height="30" fill="${play.ink("blue")}"/>`;
      for (let at = length; at < now && wide(1) > 3; at++) // where a decoded token begins, if there is room
        svg += `<path d="M${20 + wide(at)} ${y + 10}v30" stroke="var(--md-default-bg-color,#fff)" stroke-width="1.5"/>`;
    });
    svg += `<rect x="20" y="252" width="14" height="14" fill="${play.ink("blue")}"/>${play.text(42, 265, say("prefill 写入", "by prefill"), play.left)}`
      + `<rect x="190" y="252" width="14" height="14" fill="${play.ink("orange")}"/>${play.text(212, 265, say("解码写入，每格一个 token", "by decoding, one token each"), play.left)}`;
    const each = (count) => play.list(all.map((kind) => `${kind.name} ${amount(bytes(kind, count))}`));
    const words = step < 1 ? say("缓存是空的。下一步：prefill。", "The cache is empty. Next: prefill.")
      : step < 2 ? say(`prefill：一次前向写入 ${length} 个 token。${each(now)}。`, `Prefill: one forward pass writes ${length} tokens. ${each(now)}.`)
      : say(`解码第 ${step - 1} 步：缓存里有 ${now} 个 token，${each(now)}。这一步只写入 ${each(1)}，却要把缓存整个读一遍。`,
        `Decoding step ${step - 1}: ${now} tokens are cached, ${each(now)}. The step writes only ${each(1)}, and reads all of the cache.`);
    return {svg, words};
  }

  const build = (models) => ({
    title: say("动手：一步步走过 prefill 与解码", "Try it: step through prefill and decoding"),
    size: [500, 276],
    controls: {
      model: {label: say("模型的形状", "Shape of"), value: Object.keys(models)[0], options: Object.fromEntries(Object.keys(models).map((name) => [name, name]))},
      dtype: {label: say("精度", "Numbers"), value: "bf16", options: Object.fromEntries(Object.keys(SIZES).map((name) => [name, name]))},
      prompt: {label: say("提示的 token 数 =", "Tokens of the prompt ="), low: 0, high: 13, value: 4, show: (power) => 2 ** power},
      batch: {label: "batch =", low: 0, high: 6, value: 0, show: (power) => 2 ** power},
      step: {label: say("第几步 =", "Step ="), low: 0, high: STEPS, value: 1,
        show: (step) => (step < 1 ? say("开始前", "before") : step < 2 ? "prefill" : say(`解码 ${step - 1}`, `decode ${step - 1}`))},
      back: {label: say("退一步", "Back"), press: (state) => state.step--},
      next: {label: say("下一步", "Next step"), press: (state) => state.step++},
    },
    draw: (state) => draw(state, models),
  });
  return {tokens, bytes, kinds, amount, build};
})();
