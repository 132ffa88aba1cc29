// What a reader has done, kept in this browser and nowhere else: the days ticked, the answers known, the view of the plan.
// Both languages share one entry. What cannot be understood is set aside, never overwritten. The other scripts use `study`.
const study = (() => {
  const KEY = "llm-by-hand.study.v1";
  const ASIDE = KEY + ".aside.";
  const FORMAT = "llm-by-hand progress";
  const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
  const QUESTION = /^[a-z0-9]+(-[a-z0-9]+)*#[a-z0-9]+(-[a-z0-9]+)*$/;
  const fresh = () => ({format: FORMAT, version: 1, days: {}, questions: {}, view: 0});
  let memory = null; // stands in where the browser keeps nothing

  /** One of two texts, by the language of the page. */
  const say = (zh, en) => (document.documentElement.lang.startsWith("zh") ? zh : en);

  /** An element with its attributes and children; `on…` attributes are listeners. */
  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value != null) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }

  /** Run on every page, once: on this one now, on others as they come by instant navigation. From a folder (file:) the theme
   *  never announces even the first. */
  function onPage(build) {
    let last = null;
    const run = () => {
      const article = document.querySelector("article");
      if (!article || article === last) return;
      last = article;
      build(article);
    };
    run();
    document$.subscribe(run);
  }

  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const shown = (value) => {
    const text = JSON.stringify(value) ?? String(value);
    return text.length > 40 ? text.slice(0, 40) + "…" : text;
  };

  /** What is wrong with a saved state, in words; null when nothing is. */
  function fault(value) {
    if (!isObject(value) || value.format !== FORMAT)
      return say(`不是本站的进度（format 应为 "${FORMAT}"）`, `not progress of this site (format must be "${FORMAT}")`);
    if (value.version !== 1)
      return say(`版本是 ${shown(value.version)}，这里只认 1`, `version is ${shown(value.version)}, only 1 is known here`);
    for (const name of Object.keys(value))
      if (!(name in fresh())) return say(`不认识的字段 ${shown(name)}`, `unknown field ${shown(name)}`);
    for (const name of ["days", "questions"])
      if (!isObject(value[name])) return say(`${name} 不是对象`, `${name} is not an object`);
    if (!Number.isInteger(value.view) || value.view < 0)
      return say(`view 应为天数，却是 ${shown(value.view)}`, `view must be a number of days, not ${shown(value.view)}`);
    for (const [day, date] of Object.entries(value.days)) {
      if (!NAME.test(day)) return say(`days 里的 ${shown(day)} 不是一天的名字`, `${shown(day)} in days names no day`);
      if (typeof date !== "string" || !/^\d{4}-\d\d-\d\d$/.test(date) || isNaN(Date.parse(date)))
        return say(`days.${day} 应为日期，却是 ${shown(date)}`, `days.${day} must be a date, not ${shown(date)}`);
    }
    for (const [question, mark] of Object.entries(value.questions)) {
      if (!QUESTION.test(question))
        return say(`questions 里的 ${shown(question)} 不是一道题`, `${shown(question)} in questions names no question`);
      if (mark !== "known" && mark !== "again")
        return say(`questions 里的 ${question} 应为 known 或 again，却是 ${shown(mark)}`,
          `${question} in questions must be known or again, not ${shown(mark)}`);
    }
    return null;
  }

  /** The state that a text holds. Throws an Error with words for the reader. */
  function parse(text) {
    let value;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw new Error(say("不是 JSON：", "not JSON: ") + error.message);
    }
    const wrong = fault(value);
    if (wrong) throw new Error(wrong);
    return value;
  }

  /** What was kept but cannot be understood: pairs of key and text. */
  function aside() {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(ASIDE)).sort()
        .map((key) => [key, localStorage.getItem(key)]);
    } catch {
      return [];
    }
  }

  /** The present state; what cannot be understood is moved out of its way first. */
  function load() {
    if (memory) return memory;
    let text = null;
    try {
      text = localStorage.getItem(KEY);
      if (text === null) return fresh();
      return parse(text);
    } catch {
      if (text !== null)
        try {
          let free = 1;
          while (localStorage.getItem(ASIDE + free) !== null) free++;
          localStorage.setItem(ASIDE + free, text);
          localStorage.removeItem(KEY);
          return fresh();
        } catch {} // no room for a copy: the entry stays as it is, and this page remembers by itself
      memory = fresh();
      return memory;
    }
  }

  const tell = () => document.dispatchEvent(new CustomEvent("study"));

  /** Change the state by a function and keep it; every part of the page that shows it is told. */
  function change(edit) {
    const state = load();
    edit(state);
    if (!memory)
      try {
        localStorage.setItem(KEY, JSON.stringify(state));
      } catch {
        memory = state;
      }
    tell();
  }

  /** Hand the reader a text as a file. */
  function download(name, text) {
    const url = URL.createObjectURL(new Blob([text], {type: "application/json"}));
    el("a", {href: url, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }

  /** Add what a file holds to what is here. Throws an Error with words for the reader. */
  function merge(text) {
    const more = parse(text);
    change((state) => {
      state.days = {...more.days, ...state.days};
      Object.assign(state.questions, more.questions);
      state.view ||= more.view;
    });
    return {days: Object.keys(more.days).length, questions: Object.keys(more.questions).length};
  }

  /** Forget everything that is understood. */
  function clear() {
    change((state) => Object.assign(state, fresh()));
  }

  const today = () => {
    const now = new Date();
    return new Date(now - now.getTimezoneOffset() * 60000).toISOString().slice(0, 10);
  };

  addEventListener("storage", (event) => (event.key === null || event.key.startsWith(KEY)) && tell());
  addEventListener("pageshow", (event) => event.persisted && tell());

  return {
    say, el, onPage, load, change, parse, merge, clear, aside, today, download, tell,
    keeps: () => !memory,
    forget: (key) => (localStorage.removeItem(key), tell()),
    text: () => JSON.stringify(load(), null, 1) + "\n",
  };
})();
