// What the figures to play with share. `play.start(figure)` puts a panel below a drawn figure: controls, a drawing that follows
// them, and what is seen in words. The module figures/<name>.js sets `play["<name>"]`: pure functions for its numbers, and
// `build(values)`, which gives
//   title      words
//   controls   {key: {label, value, low, high, show(value, state)} a slider | {label, value, options: {value: words}} | {label, press(state)}}
//   size       [width, height] of the drawing
//   draw       (state) => {svg, words, hooks: {name: [x, y] or null}}, the hooks being what can be dragged
//   moves      {name(state, x, y)}: a hook is dragged to a place; `tap` is a click anywhere else
// site.js loads all of it when a reader comes near such a figure.
const play = (() => {
  const {say, el} = study;
  let panels = 0;

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  /** A number in three digits at most, with a true minus sign; a small one as 1.2·10⁻⁷. */
  function short(value) {
    if (value === 0 || Math.abs(value) >= 0.0005) return String(Number(value.toPrecision(3))).replace("-", "−");
    const [digits, power] = value.toExponential(1).split("e-");
    return `${digits}·10⁻${[...power].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`.replace("-", "−");
  }

  /** Texts in a row, as a language writes them. */
  const list = (texts) => texts.join(say("、", ", "));

  /** A text of a drawing; `more` are attributes. */
  const text = (x, y, words, more = "") => `<text x="${x}" y="${y}" ${more}>${words}</text>`;
  const ink = (name) => ({blue: "var(--fig-blue,#0072b2)", orange: "var(--fig-orange,#c25700)", green: "var(--fig-green,#00825f)"})[name];

  /** One control; `node` is what the page shows, `show` brings it up to date. */
  function control(key, one, state, changed, panel) {
    if (one.press) {
      const node = el("button", {type: "button", "data-key": key, onclick: () => (one.press(state), changed())}, one.label);
      return {node, show() {}};
    }
    if (one.options) {
      const inputs = Object.keys(one.options).map((value) => el("input", {type: "radio", name: `${panel}-${key}`, value,
        onchange: () => ((state[key] = value), changed())}));
      const labels = inputs.map((input) => el("label", {}, input, " " + one.options[input.value]));
      const node = el("fieldset", {"data-key": key}, el("legend", {}, one.label), ...labels);
      return {node, show: () => inputs.forEach((input) => (input.checked = input.value === state[key]))};
    }
    const input = el("input", {type: "range", min: one.low, max: one.high, step: 1, oninput: () => ((state[key] = Number(input.value)), changed())});
    const said = el("span", {class: "play-value"});
    const node = el("label", {class: "play-range", "data-key": key}, el("span", {}, one.label, " ", said), input);
    return {node, show() {
      const high = typeof one.high === "function" ? one.high(state) : one.high;
      input.max = high;
      input.value = state[key] = clamp(state[key], one.low, high);
      said.textContent = one.show ? one.show(state[key], state) : state[key];
      input.setAttribute("aria-valuetext", said.textContent);
    }};
  }

  /** Put the panel below a figure; one that has it keeps it. */
  function start(figure) {
    if (figure.nextElementSibling && figure.nextElementSibling.matches(".play")) return;
    const {title, controls, size, draw, moves = {}} = play[figure.dataset.play].build(JSON.parse(figure.dataset.values || "null"));
    const id = `play-${++panels}`;
    const state = {};
    for (const [key, one] of Object.entries(controls)) if (!one.press) state[key] = one.value;
    const parts = Object.entries(controls).map(([key, one]) => control(key, one, state, show, id));
    const board = el("div", {class: "play-drawing"});
    board.innerHTML = `<svg viewBox="0 0 ${size.join(" ")}" width="${size[0]}" height="${size[1]}" font-size="17" text-anchor="middle" fill="currentColor" role="img" aria-labelledby="${id}" aria-describedby="${id}-words"><g></g></svg>`;
    const svg = board.firstChild;
    const words = el("p", {class: "play-words", id: `${id}-words`, role: "status"});
    const handles = {};
    figure.after(el("section", {class: "play", "aria-labelledby": id, "data-search-exclude": ""},
      el("p", {class: "play-title", id}, title), el("div", {class: "play-controls"}, ...parts.filter((part) => part.node.tagName !== "BUTTON").map((part) => part.node),
        el("p", {class: "play-buttons"}, ...parts.filter((part) => part.node.tagName === "BUTTON").map((part) => part.node))), board, words));

    function show() {
      for (const part of parts) part.show();
      const seen = draw(state);
      svg.firstChild.innerHTML = seen.svg;
      if (words.textContent !== seen.words) words.textContent = seen.words;
      for (const [name, place] of Object.entries(seen.hooks || {})) {
        if (!handles[name]) { // kept while it is dragged: a finger must not lose what it holds
          svg.insertAdjacentHTML("beforeend", `<g class="play-handle" data-hook="${name}"><circle r="20"/><circle r="9"/></g>`);
          handles[name] = svg.lastChild;
        }
        handles[name].style.display = place ? "" : "none";
        if (place) handles[name].setAttribute("transform", `translate(${place.join(" ")})`);
      }
    }

    let held = null;
    const move = (name, event) => {
      const box = svg.getBoundingClientRect();
      moves[name](state, ((event.clientX - box.left) * size[0]) / box.width, ((event.clientY - box.top) * size[1]) / box.height);
      show();
    };
    svg.addEventListener("pointerdown", (event) => {
      const hook = event.target.closest("[data-hook]");
      if (!hook) return;
      held = hook.dataset.hook;
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    // A browser heeds touch-action on the whole drawing only, on which a finger should scroll the page.
    svg.addEventListener("touchstart", (event) => event.target.closest("[data-hook]") && event.preventDefault(), {passive: false});
    svg.addEventListener("pointermove", (event) => held && move(held, event));
    for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => setTimeout(() => (held = null)));
    svg.addEventListener("click", (event) => !held && moves.tap && move("tap", event));
    show();
  }

  return {start, short, list, clamp, text, ink, left: 'text-anchor="start"', right: 'text-anchor="end"',
    clear: 'stroke="var(--md-code-bg-color)" stroke-width="4" paint-order="stroke"'}; // a text that a line passes behind
})();
