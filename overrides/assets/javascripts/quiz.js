// Quizzing oneself: one question at a time, its answer folded. On a day's page its questions in order; on the quiz page those
// of all days, which it carries in <template> elements (overrides/quiz.html), at random. By keyboard too.
(() => {
  const {say, el} = study;
  let round = null; // what is asked now

  const keys = () => say("键盘：R 或空格揭晓（再按展开追问），K 会了，A 再来，N 或 → 下一题，Esc 结束。",
    "Keys: R or space reveals (again: the follow-up), K known, A again, N or → next, Esc ends.");

  /** A round over cards {key, node, href, title}, shown in the article instead of everything else. */
  function start(article, cards, back) {
    const button = (name, key, words, act) => el("button", {type: "button", class: `quiz-${name}`, "aria-keyshortcuts": key, onclick: act}, words);
    round = {
      article, back, queue: [...cards], at: 0, known: 0, again: 0,
      bar: el("progress", {"aria-label": say("进度", "Progress")}), count: el("span", {class: "quiz-count"}),
      day: el("p", {class: "quiz-day"}), question: el("h2", {class: "quiz-question", tabindex: "-1"}),
      answer: el("div", {class: "quiz-answer", tabindex: "-1", role: "region", "aria-label": say("答案", "Answer")}),
    };
    round.reveal = button("reveal", "R", say("揭晓", "Reveal"), reveal);
    round.buttons = el("p", {class: "quiz-buttons"}, round.reveal, button("known", "K", say("会了", "Known"), () => judge("known")),
      button("again", "A", say("再来", "Again"), () => judge("again")), button("next", "N", say("下一题", "Next"), next));
    round.panel = el("section", {class: "quiz", "aria-label": say("自测", "Quiz")},
      el("p", {class: "quiz-head"}, round.bar, round.count, button("end", "Escape", say("结束", "End"), end)),
      round.day, round.question, round.answer, round.buttons, el("p", {class: "quiz-keys"}, el("small", {}, keys())));
    round.address = location.href;
    article.classList.add("quizzing");
    (article.querySelector("h1") || article.firstElementChild).after(round.panel);
    ask();
  }

  /** A copy of nodes whose links lead where they led from their own page, and leave the quiz open. */
  function copy(nodes, href) {
    const box = el("div");
    box.append(...[...nodes].map((node) => node.cloneNode(true)));
    for (const node of box.querySelectorAll(".study-mark, .headerlink, button")) node.remove();
    for (const node of box.querySelectorAll("[id]")) node.removeAttribute("id");
    for (const node of box.querySelectorAll("details")) node.open = false;
    for (const [tag, name] of [["a[href]", "href"], ["img[src]", "src"]])
      for (const node of box.querySelectorAll(tag)) node.setAttribute(name, new URL(node.getAttribute(name), href).href);
    for (const node of box.querySelectorAll("a[href]")) Object.assign(node, {target: "_blank", rel: "noopener"});
    return [...box.childNodes];
  }

  function tally() {
    const {queue, at, known, again} = round;
    round.bar.max = queue.length;
    round.bar.value = at;
    round.count.textContent = say(`第 ${Math.min(at + 1, queue.length)} / ${queue.length} 题 · 会了 ${known} · 再来 ${again}`,
      `${Math.min(at + 1, queue.length)} of ${queue.length} · known ${known} · again ${again}`);
  }

  function ask() {
    tally();
    const card = round.queue[round.at];
    if (!card) return finish();
    const [summary, ...rest] = card.node.children;
    round.day.replaceChildren(...(card.title ? [el("a", {href: `${card.href}#${card.node.id}`, target: "_blank", rel: "noopener"}, card.title)] : []));
    round.question.replaceChildren(...copy(summary.childNodes, card.href));
    const first = round.question.firstChild;
    if (card.title && first.nodeType === 3) first.data = first.data.replace(/^\s*\d+\. /, ""); // its place on its day
    round.answer.replaceChildren(...copy(rest, card.href));
    round.answer.hidden = true;
    round.reveal.disabled = false;
    round.question.focus({preventScroll: true});
    round.panel.scrollIntoView({block: "nearest"});
  }

  /** Show the answer; then, one at a time, what is folded in it. */
  function reveal() {
    if (round.answer.hidden) {
      round.answer.hidden = false;
      round.answer.focus({preventScroll: true});
    } else {
      const folded = round.answer.querySelector("details:not([open])");
      if (folded) {
        folded.open = true;
        folded.querySelector("summary").focus();
      }
    }
    const left = round.answer.querySelector("details:not([open])");
    round.reveal.disabled = !left;
    round.reveal.textContent = left ? say("展开追问", "Follow-up") : say("揭晓", "Reveal");
  }

  function next() {
    round.at++;
    round.reveal.textContent = say("揭晓", "Reveal");
    ask();
  }

  /** Keep what the reader says of the question; one to come again is asked once more at the end of the round. */
  function judge(mark) {
    const card = round.queue[round.at];
    study.change((state) => { state.questions[card.key] = mark; });
    round[mark]++;
    if (mark === "again") round.queue.push(card);
    next();
  }

  function finish() {
    round.over = true;
    round.day.replaceChildren();
    round.question.textContent = say("这一轮答完了。", "The round is over.");
    round.answer.hidden = true;
    round.buttons.hidden = true;
    round.question.focus({preventScroll: true});
  }

  function end() {
    const {article, panel, back, address} = round;
    round = null;
    panel.remove();
    article.classList.remove("quizzing");
    back();
    // The theme, which writes into the address where one is, took the end of a page without its text for that.
    setTimeout(() => {
      if (location.pathname === new URL(address).pathname) history.replaceState(history.state, "", address);
    }, 500);
  }

  const actions = {r: reveal, " ": reveal, k: () => judge("known"), a: () => judge("again"), n: next, arrowright: next, escape: end};

  // On the way down, before the theme's own keys (n is its next page) see them.
  document.addEventListener("keydown", (event) => {
    if (!round || !round.panel.isConnected || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if (!Object.hasOwn(actions, key) || (round.over && key !== "escape")) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (key === " " && event.target.closest("button, summary, a")) return; // presses what has the focus
    event.preventDefault();
    event.stopImmediatePropagation();
    if ((key !== "r" && key !== " ") || !round.reveal.disabled) actions[key]();
  }, true);

  /** The button on a day's page. */
  function onDay(article) {
    const bar = article.querySelector(".study-bar");
    if (!bar) return;
    const href = location.href.split("#")[0];
    const cards = questions.all(article).map((node) => ({key: `${questions.slug()}#${node.id}`, node, href}));
    const button = el("button", {type: "button", class: "quiz-start", onclick: () => start(article, cards, () => {
      button.focus({preventScroll: true});
      button.scrollIntoView({block: "center"});
    })}, say("只看问题，测自己", "Show only the questions"));
    bar.prepend(button);
  }

  /** The questions that a <template> of the quiz page carries; one that is empty has them fetched from the day's own page. */
  async function carried({content, dataset}) {
    const href = new URL(dataset.href, location.href).href;
    let source = content;
    if (!content.firstElementChild)
      try {
        source = new DOMParser().parseFromString(await (await fetch(href)).text(), "text/html");
      } catch {} // from a folder nothing can be fetched
    return questions.all(source).map((node) => ({key: `${dataset.day}#${node.id}`, node, href, title: dataset.title}));
  }

  /** What the quiz page asks of: all questions of all days, those not known yet, those to come again. */
  async function onQuizPage(article) {
    const days = [...article.querySelectorAll("template.quiz-questions")];
    if (!days.length) return;
    const cards = (await Promise.all(days.map(carried))).flat();
    const mark = (card) => { const marks = study.load().questions; return Object.hasOwn(marks, card.key) ? marks[card.key] : ""; };
    const choices = [
      [say("全部", "All"), () => true],
      [say("还不会的", "Not known yet"), (card) => mark(card) !== "known"],
      [say("说了再来的", "To come again"), (card) => mark(card) === "again"],
    ].map(([words, test]) => ({words, test, radio: el("input", {type: "radio", name: "quiz-choice"}), text: el("span")}));
    choices[0].radio.checked = true;
    const button = el("button", {type: "button", class: "quiz-start", onclick: () => {
      const chosen = cards.filter(choices.find(({radio}) => radio.checked).test);
      if (chosen.length) start(article, shuffle(chosen), () => button.focus());
    }}, say("开始", "Start"));
    const count = () => {
      for (const {words, test, radio, text} of choices) {
        const number = cards.filter(test).length;
        text.textContent = say(`${words} ${number} 题`, `${words} (${number})`);
        radio.disabled = !number;
        if (!number && radio.checked) choices[0].radio.checked = true;
      }
    };
    const setup = el("section", {class: "quiz-setup study-board", "aria-label": say("自测", "Quiz")},
      el("fieldset", {}, el("legend", {}, say("考哪些", "Which")), ...choices.map(({radio, text}) => el("label", {}, radio, " ", text))),
      el("p", {}, button), el("p", {}, el("small", {}, keys())));
    (article.querySelector(".verified") || days[0]).before(setup);
    count();
    document.addEventListener("study", function again() {
      if (setup.isConnected) count();
      else document.removeEventListener("study", again);
    });
  }

  function shuffle(cards) {
    for (let last = cards.length - 1; last > 0; last--) {
      const other = Math.floor(Math.random() * (last + 1));
      [cards[last], cards[other]] = [cards[other], cards[last]];
    }
    return cards;
  }

  study.onPage((article) => {
    round = null;
    onDay(article);
    onQuizPage(article);
  });
})();
