// What the theme's search leaves open; runs before its bundle. Searching works without it, less well.
(() => {
  // The index weighs more than a page. It is fetched when somebody is about to search, not on every first visit.
  let wanted = /[?&][hq]=/.test(location.search);
  const waiting = [];
  const { open, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    this.isIndex = String(url).endsWith("search/search_index.json");
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    if (this.isIndex && !wanted) waiting.push(() => send.apply(this, body));
    else send.apply(this, body);
  };
  document.addEventListener("focusin", ({ target }) => {
    if (!target.matches("input[name=query]")) return;
    wanted = true;
    for (const start of waiting.splice(0)) start();
  });

  // The theme looks at the field when a key is let go; what is pasted, dictated or tapped as a suggestion lets go of none.
  document.addEventListener("input", ({ target }) => {
    if (target.matches("input[name=query]")) target.dispatchEvent(new KeyboardEvent("keyup"));
  });

  // The theme's worker cuts a run of Chinese into words of the index, but never finds the word that ends the run (of
  // 键值缓存 it keeps 键值). So each word goes to it as a run of its own, with a character behind it that no page has.
  const END = "〇";
  const words = new Set();
  const cut = (run) => {
    const found = [];
    for (let start = 0; start < run.length; ) {
      const rest = run.slice(start);
      // The last word may be half typed: then every word that begins so is looked for, up to a dozen.
      const whole = words.has(rest) ? [rest] : [...words].filter((word) => word.startsWith(rest)).slice(0, 12);
      let end = run.length;
      while (!whole.length && end > start && !words.has(run.slice(start, end))) end--;
      if (end > start) found.push(...(whole.length ? whole : [run.slice(start, end)]).map((word) => word + END));
      start = Math.max(end, start + 1);
    }
    return found;
  };
  const prepare = (query) => query.replace(/\p{sc=Han}+/gu, (run) => ` ${cut(run).join(" ") || run} `);

  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message?.type === 0 && message.data?.docs)
      for (const { title, text } of message.data.docs)
        for (const word of `${title} ${text}`.match(/\p{sc=Han}+/gu) ?? []) words.add(word);
    if (message?.type === 2 && typeof message.data === "string")
      message = { ...message, data: prepare(message.data) };
    return postMessage.call(this, message, ...rest);
  };
})();
