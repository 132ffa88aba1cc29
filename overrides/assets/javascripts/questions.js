// The theory questions of a day: what a search found is unfolded, all can be unfolded at once, and each shows whether it is known.
const questions = (() => {
  const {say, el} = study;

  /** The slug of the day that is shown; null on other pages. */
  const slug = () => (/\/days\/([a-z0-9-]+)(?:\/|\.html)/.exec(location.pathname) || [])[1] || null;

  const all = (root) => [...root.querySelectorAll("details.question[id]")];

  /** Show on each question of the page what the reader said of it. */
  function mark() {
    const day = slug();
    if (!day) return;
    const marks = study.load().questions;
    for (const node of all(document)) {
      const summary = node.querySelector("summary");
      const said = Object.hasOwn(marks, `${day}#${node.id}`) ? marks[`${day}#${node.id}`] : "";
      const old = summary.querySelector(".study-mark");
      if (old) old.remove();
      if (said) summary.append(el("span", {class: "study-mark"}, said === "known" ? say("会了", "known") : say("再来", "again")));
    }
  }

  /** Unfold the answers in which the search marks what was looked for. */
  function unfold(article) {
    const open = () => {
      for (const found of article.querySelectorAll("details:not([open]) mark"))
        for (let node = found.closest("details:not([open])"); node; node = node.parentElement.closest("details:not([open])"))
          node.open = true;
    };
    open();
    if (new URLSearchParams(location.search).has("h")) new MutationObserver(open).observe(article, {childList: true, subtree: true});
  }

  function build(article) {
    unfold(article);
    const list = slug() ? all(article) : [];
    if (!list.length) return;
    const fold = el("button", {type: "button", class: "study-unfold", "aria-pressed": "false", onclick: () => {
      const open = fold.getAttribute("aria-pressed") === "false";
      fold.setAttribute("aria-pressed", String(open));
      for (const node of list) for (const one of [node, ...node.querySelectorAll("details")]) one.open = open;
    }}, say("展开全部答案", "Unfold all answers"));
    list[0].before(el("p", {class: "study-bar"}, fold));
    mark();
  }

  document.addEventListener("study", mark);
  study.onPage(build);
  return {slug, all};
})();
