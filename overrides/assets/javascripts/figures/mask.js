// Which keys a query sees: the causal mask aligned top-left or bottom-right, with or without a sliding window.
play.mask = (() => {
  const {say} = study;
  const MOST = 8; // queries and keys at most, and the window from which on there is none
  const [LEFT, TOP, WIDE, HIGH] = [56, 34, 44, 40]; // the grid and its cells
  const HEIGHT = TOP + MOST * HIGH + 24;

  /** The last key that a query may see, the first being 0; a query before the first key has a negative one. */
  const newest = ({side, queries, keys}, query) => (side === "bottom" ? query + keys - queries : query);

  /** Whether a query sees a key; the window counts the token itself. */
  function sees(state, query, key) {
    const last = newest(state, query);
    return key <= last && (state.window >= MOST || key > last - state.window);
  }

  /** The keys that a query sees. */
  const seen = (state, query) => [...Array(state.keys).keys()].filter((key) => sees(state, query, key));

  /** The whole mask: a row of booleans for each query. */
  const mask = (state) => [...Array(state.queries).keys()].map((query) => [...Array(state.keys).keys()].map((key) => sees(state, query, key)));

  function draw(state) {
    const {queries, keys, query} = state;
    const rows = mask(state);
    const [allowed, blind] = [rows.flat().filter(Boolean).length, rows.flatMap((row, index) => (row.includes(true) ? [] : [`q${index}`]))];
    const unseen = [...Array(keys).keys()].filter((key) => !rows.some((row) => row[key])).map((key) => `k${key}`);
    const own = seen(state, query).map((key) => `k${key}`);
    let svg = `<rect x="${LEFT}" y="${TOP}" width="${MOST * WIDE}" height="${MOST * HIGH}" fill="none" stroke="currentColor" stroke-opacity=".3" stroke-dasharray="2 5"/>`;
    for (let key = 0; key < keys; key++) svg += play.text(LEFT + (key + 0.5) * WIDE, TOP - 10, `k${key}`);
    rows.forEach((row, index) => {
      const [y, none] = [TOP + index * HIGH, !row.includes(true)];
      svg += play.text(LEFT - 16, y + 26, `q${index}`, `${play.right}${index === query ? ' font-weight="700"' : ""}`);
      row.forEach((on, key) => {
        const fill = on ? play.ink("blue") : none ? play.ink("orange") : "currentColor";
        svg += `<rect x="${LEFT + key * WIDE}" y="${y}" width="${WIDE}" height="${HIGH}" fill="${fill}" fill-opacity="${on ? 0.38 : none ? 0.22 : 0.08}" stroke="currentColor" stroke-width=".8"/>`;
        if (on || none) svg += play.text(LEFT + (key + 0.5) * WIDE, y + 26, on ? "✓" : "✕");
      });
      if (none) svg += play.text(LEFT + MOST * WIDE + 10, y + 26, say("看不到", "sees none"), play.left);
    });
    svg += `<rect x="${LEFT - 2}" y="${TOP + query * HIGH}" width="${keys * WIDE + 4}" height="${HIGH}" fill="none" stroke="currentColor" stroke-width="3.5" rx="3"/>`;
    const edge = own.length ? [LEFT + Number(own[0].slice(1)) * WIDE, TOP + (query + 0.5) * HIGH] : null;
    const words = say(
      `${queries * keys} 个位置中允许 ${allowed} 个。q${query} ${own.length ? `看到 ${play.list(own)}，共 ${own.length} 个` : "什么也看不到"}。`
        + (blind.length ? `整行看不到：${play.list(blind)}。` : "每一行都看得到东西。") + (unseen.length ? `没有人看的 key：${play.list(unseen)}。` : ""),
      `${allowed} of ${queries * keys} positions are allowed. q${query} sees ${own.length ? `${play.list(own)}: ${own.length} of ${keys}` : "nothing"}. `
        + (blind.length ? `Rows that see nothing: ${play.list(blind)}.` : "Every row sees something.") + (unseen.length ? ` Keys that nobody sees: ${play.list(unseen)}.` : ""));
    return {svg, words, hooks: {edge, corner: [LEFT + keys * WIDE, TOP + queries * HIGH]}};
  }

  const column = (x) => Math.round((x - LEFT) / WIDE);
  const moves = {
    corner(state, x, y) {
      state.keys = play.clamp(column(x), 1, MOST);
      state.queries = play.clamp(Math.round((y - TOP) / HIGH), 1, MOST);
    },
    edge(state, x) {
      const last = newest(state, state.query);
      const first = play.clamp(column(x), 0, Math.min(last, state.keys - 1));
      state.window = first ? play.clamp(last - first + 1, 1, MOST) : MOST;
    },
    tap(state, x, y) {
      state.query = play.clamp(Math.floor((y - TOP) / HIGH), 0, state.queries - 1);
    },
  };

  const build = () => ({
    title: say("动手：拖右下角改长度，拖所选那一行的左边缘改窗口，点一行选中它",
      "Try it: drag the corner (lengths) or the left edge of the chosen row (window); click a row to choose it"),
    size: [500, HEIGHT],
    controls: {
      side: {label: say("对齐", "Alignment"), value: "bottom", options: {top: say("左上", "top-left"), bottom: say("右下", "bottom-right")}},
      queries: {label: say("query 个数 L =", "Queries, L ="), low: 1, high: MOST, value: 3},
      keys: {label: say("key 个数 S =", "Keys, S ="), low: 1, high: MOST, value: 6},
      window: {label: say("窗口 =", "Window ="), low: 1, high: MOST, value: MOST, show: (value) => (value < MOST ? value : say("不限", "none"))},
      query: {label: say("所选 query =", "Chosen query ="), low: 0, high: ({queries}) => queries - 1, value: 1, show: (value) => `q${value}`},
    },
    draw,
    moves,
  });
  return {mask, seen, build};
})();
