// Small things the theme leaves open. The pages are complete without any of it.

// What scrolls sideways can be reached by keyboard; what does not is no extra stop. A phone that is turned changes which.
const reach = () => {
  for (const box of document.querySelectorAll(".md-typeset div.formula, .md-typeset figure, .md-typeset__scrollwrap")) {
    const wide = box.scrollWidth > box.clientWidth + 1;
    box.toggleAttribute("data-wide", wide);
    if (wide) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
addEventListener("resize", reach);

// The heading of the section one is in stays in sight below the header, and reports of mistakes name the place one is at.
// The heading is a line of its own: links to one that sticks would lead nowhere, and the theme's contents lose their place.
let here, places = [];
const follow = () => {
  if (!here || !here.isConnected) return;
  const line = document.querySelector(".md-header").offsetHeight;
  const passed = (list, line) => list.filter((node) => node.offsetParent && node.getBoundingClientRect().top < line).pop();
  const headings = places.filter((node) => node.matches("article > h2, h3.doc-heading"));
  const heading = passed(headings, line);
  here.hidden = !heading || passed(headings, line + 40) != heading; // the next one is there itself
  if (heading && here.of != heading) {
    here.of = heading;
    here.firstChild.replaceChildren(...[...heading.cloneNode(true).childNodes].filter((node) => node.className != "headerlink"));
    here.firstChild.href = "#" + heading.id;
  }
  const place = passed(places, line + 40);
  if (here.place === (here.place = place)) return;
  for (const link of document.querySelectorAll("a[data-report]")) {
    const url = new URL(link.href);
    const text = url.searchParams.get("body").replace(/http\S*/, link.dataset.report + (place ? "#" + place.id : ""));
    url.searchParams.set("body", text);
    link.href = url;
  }
};
addEventListener("scroll", follow, { passive: true });
const arrive = () => {
  // The header survives instant navigation, so the language switch follows the page; it keeps the heading one is at.
  const twin = document.querySelector("link[data-twin]");
  const link = document.querySelector("a.twin");
  if (twin && link) link.href = new URL(twin.dataset.twin, location.href).href;

  // The search dialog is a dialog without a name.
  const dialog = document.querySelector(".md-search[role=dialog]");
  const query = dialog && dialog.querySelector("input[name=query]");
  if (query && !dialog.hasAttribute("aria-label")) dialog.setAttribute("aria-label", query.getAttribute("aria-label"));

  reach();

  // The copy button of a block of code stands in a landmark, and a page has dozens of the same.
  for (const nav of document.querySelectorAll(".md-code__nav")) nav.setAttribute("role", "presentation");

  const article = document.querySelector("article");
  places = [...article.querySelectorAll(":is(h2, h3, h4, details)[id]")];
  if (!places.length) return;
  here = document.createElement("div");
  here.className = "here";
  here.ariaHidden = here.hidden = true;
  here.append(document.createElement("a"), ...[...article.querySelectorAll("a[data-report]")].map((link) => link.cloneNode(true)));
  for (const link of here.children) link.tabIndex = -1;
  here.firstChild.href = "#";
  article.prepend(here);
  follow();
};
if (location.protocol === "file:") arrive(); // there the theme announces no page
else document$.subscribe(arrive);
document.addEventListener("click", (event) => {
  const link = event.target.closest && event.target.closest("a.twin");
  if (link && location.hash) link.hash = location.hash;
}, true);

// A figure to play with (figure[data-play]): its module, what all of them share (play.js) and their style come when the reader
// comes near, on pages that have one and on no other. Plain scripts, as a page opened from a folder may load no module.
(() => {
  const assets = new URL("../", document.currentScript.src);
  const coming = {};
  /** Load a file, once; where it does not come, the drawn figure stands for itself. */
  const load = (file) => (coming[file] ||= new Promise((done, failed) => {
    const style = file.endsWith(".css");
    const node = document.createElement(style ? "link" : "script");
    const onerror = () => (delete coming[file], failed());
    Object.assign(node, {rel: "stylesheet", async: false, onload: done, onerror});
    node[style ? "href" : "src"] = new URL(file, assets);
    document.body.append(node);
  }));
  const near = new IntersectionObserver((seen) => {
    for (const {target, isIntersecting} of seen) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      Promise.all(["stylesheets/play.css", "javascripts/play.js"].map(load))
        .then(() => load(`javascripts/figures/${target.dataset.play}.js`))
        // A reader who has leapt on meanwhile must not be moved: then it waits for the way back.
        .then(() => (target.getBoundingClientRect().bottom < 0 ? near.observe(target) : play.start(target)), () => {});
    }
  }, {rootMargin: "0px 0px 100% 0px"});
  const watch = () => document.querySelectorAll("figure[data-play]").forEach((one) => near.observe(one));
  if (location.protocol === "file:") watch();
  else document$.subscribe(watch);
})();
