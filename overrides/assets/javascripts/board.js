// The plan page as a board. Its tables are the only copy of the plan: rows under a part (h2#part-…) are days, the table under
// h2#three-weeks has a column for each shorter cut (a number: done with that day; words: not counted; nothing: as it is).
(() => {
  const {say, el} = study;
  let plan = null; // the board of the page that is shown

  /** Read days and cuts from the tables of the page. */
  function read(article) {
    const days = [];
    const cuts = [{name: say("全部", "All"), rows: new Map()}];
    let part = "";
    for (const node of article.querySelectorAll("h2, table")) {
      if (node.tagName === "H2") part = node.id;
      else if (part.startsWith("part-")) for (const row of node.tBodies[0].rows) days.push(day(row));
      else if (part === "three-weeks") {
        const names = [...node.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent.trim());
        const columns = names.map((name) => ({name, rows: new Map()}));
        for (const row of node.tBodies[0].rows)
          columns.forEach((column, index) => {
            const text = row.cells[index + 1].textContent.trim();
            if (text) column.rows.set(row.cells[0].textContent.trim(), text);
          });
        cuts.push(...columns);
      }
    }
    for (const cut of cuts) cut.days = days.filter((one) => !cut.rows.has(one.number));
    cuts[0].name += say(` ${days.length} 天`, ` ${days.length} days`);
    return {days, cuts};
  }

  function day(row) {
    const [first, second] = row.cells;
    const link = second.querySelector("a[href]");
    const slug = link && /(?:^|\/)days\/([a-z0-9-]+)(?:\/|\.html|$)/.exec(link.getAttribute("href"));
    return {
      row, number: first.textContent.trim(), subject: second.textContent.trim(), href: slug && link.href, slug: slug && slug[1],
    };
  }

  // A day without a page yet is kept by its number; the tick stays when the page comes.
  const key = (one) => one.slug || one.number;
  const isDone = (state, one) => Object.hasOwn(state.days, key(one)) || Object.hasOwn(state.days, one.number);

  function tick(one, on) {
    study.change((state) => {
      delete state.days[one.number];
      delete state.days[key(one)];
      if (on) state.days[key(one)] = study.today();
    });
  }

  const named = (one) => say(`第 ${one.number} 天 ${one.subject}`, `day ${one.number}, ${one.subject}`);

  /** Put a check box into each row, and a place for what a cut says of it. */
  function dress(one) {
    one.box = el("input", {type: "checkbox", "aria-label": say(`学完${named(one)}`, `Done with ${named(one)}`)});
    one.box.addEventListener("change", () => tick(one, one.box.checked));
    one.note = el("small", {class: "study-note"});
    one.row.cells[0].replaceChildren(el("label", {}, one.box, " " + one.number));
    one.row.cells[1].append(one.note);
    const table = one.row.closest("table");
    if (table.hasAttribute("data-study")) return;
    table.setAttribute("data-study", "");
    table.setAttribute("role", "table"); // rows are laid out as cards on a phone and stay rows to a screen reader
    for (const row of table.rows) row.setAttribute("role", "row");
    for (const cell of table.querySelectorAll("th")) cell.setAttribute("role", "columnheader");
    for (const cell of table.querySelectorAll("td")) cell.setAttribute("role", "cell");
  }

  function build(article) {
    plan = null;
    const start = article.querySelector('h2[id^="part-"]');
    if (!start) return;
    plan = read(article);
    if (!plan.days.length) return (plan = null);
    plan.days.forEach(dress);

    plan.radios = plan.cuts.map((cut) => el("input", {
      type: "radio", name: "study-view", onchange: () => study.change((state) => { state.view = cut.days.length; }),
    }));
    plan.bar = el("progress", {"aria-label": say("进度", "Progress")});
    plan.count = el("span", {class: "study-count"});
    plan.next = el("p", {class: "study-next"});
    plan.message = el("p", {class: "study-message", role: "status"});
    plan.aside = el("div", {class: "study-aside"});
    const file = el("input", {type: "file", accept: ".json,application/json", onchange: () => take(file)});
    start.before(el("section", {class: "study-board", "aria-label": say("学习进度", "Progress through the plan")},
      el("fieldset", {}, el("legend", {}, say("走法", "Plan")),
        ...plan.cuts.map((cut, index) => el("label", {}, plan.radios[index], " " + cut.name))),
      el("p", {class: "study-progress"}, plan.bar, plan.count),
      plan.next,
      el("p", {class: "study-actions"},
        el("button", {type: "button", class: "study-export", onclick: give}, say("导出", "Export")),
        el("label", {class: "study-import"}, file, say("导入", "Import")),
        el("button", {type: "button", class: "study-clear", onclick: clear}, say("清空", "Clear")),
        el("small", {}, say("进度只存在这个浏览器里，中英文共用。", "Kept in this browser only, for both languages."))),
      plan.message, plan.aside));
    show();
  }

  function show() {
    if (!plan || !plan.bar.isConnected) return;
    const state = study.load();
    const chosen = Math.max(0, plan.cuts.findIndex((cut) => cut.days.length === state.view));
    const cut = plan.cuts[chosen];
    plan.radios[chosen].checked = true;
    for (const one of plan.days) {
      const done = isDone(state, one);
      const text = cut.rows.get(one.number);
      one.box.checked = done;
      one.row.toggleAttribute("data-done", done);
      one.row.toggleAttribute("data-cut", Boolean(text));
      one.note.textContent = !text ? "" : /^\d/.test(text) ? say(`并入第 ${text} 天`, `with day ${text}`) : text;
    }
    const left = cut.days.filter((one) => !isDone(state, one));
    const done = cut.days.length - left.length;
    plan.bar.max = cut.days.length;
    plan.bar.value = done;
    plan.count.textContent = say(`已完成 ${done} / ${cut.days.length} 天`, `${done} of ${cut.days.length} days done`);
    plan.next.replaceChildren(...offer(left));
    plan.aside.replaceChildren(...study.aside().map(kept));
    if (!study.keeps())
      plan.message.textContent = say("这个浏览器不让网页保存数据，离开本页后进度就没了。",
        "This browser lets the page keep nothing; progress is lost when you leave it.");
  }

  /** The next day; where it has no page yet, also the next that has one. */
  function offer(left) {
    const link = (one) => (one.href ? el("a", {href: one.href}, named(one)) : el("span", {}, named(one)));
    if (!left.length) return [say("全部学完了。", "All days are done.")];
    const written = left.find((one) => one.href);
    const parts = [say("下一天：", "Next: "), link(left[0])];
    if (!left[0].href) parts.push(say("（还没有页面）", " (no page yet)"));
    if (written && written !== left[0]) parts.push(say("；可以先学", "; written already: "), link(written));
    return parts;
  }

  function give() {
    study.download(`llm-by-hand-${study.today()}.json`, study.text());
    plan.message.textContent = say("已导出。", "Exported.");
  }

  async function take(input) {
    const file = input.files[0];
    if (!file) return;
    input.value = "";
    try {
      if (file.size > 1e6) throw new Error(say("文件太大", "the file is too large"));
      const {days, questions} = study.merge(await file.text());
      plan.message.textContent = say(`导入了 ${days} 天、${questions} 道题，并入已有的进度。`,
        `Added ${days} days and ${questions} questions to what was here.`);
    } catch (error) {
      plan.message.textContent = say(`没有导入 ${file.name}：${error.message}。已有的进度没有变。`,
        `${file.name} was not imported: ${error.message}. Nothing was changed.`);
    }
  }

  function clear() {
    if (!confirm(say("清空这个浏览器里的全部进度（打的勾和题目的记号）？", "Clear all progress in this browser, ticks and marks?"))) return;
    study.clear();
    plan.message.textContent = say("已清空。", "Cleared.");
  }

  /** Words and buttons for an entry that could not be understood. */
  function kept([name, text]) {
    let why = "";
    try {
      study.parse(text);
      why = say("现在可以读了，可用「导入」取回", "it can be read now; import it to have it back");
    } catch (error) {
      why = error.message;
    }
    return el("p", {}, say(`这个浏览器里有一份读不懂的进度（${why}），原样留着。`,
      `This browser held progress that cannot be understood (${why}). It is kept as it was. `),
      el("button", {type: "button", onclick: () => study.download("llm-by-hand-unread.json", text)}, say("下载", "Download")), " ",
      el("button", {type: "button", onclick: () => study.forget(name)}, say("丢掉", "Discard")));
  }

  document.addEventListener("study", show);
  study.onPage(build);
})();
