/* Small helpers; every page reads well without them. */
(() => {
  const _ = (text, ...values) => values.reduce((said, value) => said.replace("{}", value), window.words?.[text] ?? text);
  const root = document.documentElement;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const recall = key => { try { return localStorage[key]; } catch (e) { return undefined; } };
  // Waits for a frame, then for the fonts, then for a frame with them. Asking for the fonts before the first frame, or for a width
  // before the last, would lay out the page at once.
  const framed = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const laidOut = act => framed().then(() => document.fonts.ready).then(framed).then(act);
  const store = (key, value) => { try { localStorage[key] = value; } catch (e) { /* storage is off */ } };

  // Light or dark: follows the system until the reader chooses.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const forced = new URLSearchParams(location.search).has("theme");
  $("#theme-toggle").addEventListener("click", () => store("theme", root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"));
  dark.addEventListener("change", () => { if (!forced && !recall("theme")) root.dataset.theme = dark.matches ? "dark" : "light"; });

  // The same place of the page in another language: the section or definition at the top of the window.
  for (const link of $$(".language")) link.addEventListener("click", () => {
    const places = $$("#main :is(h2, h3, h4, section, .def)[id]").filter(place => place.checkVisibility?.() ?? true);
    const above = places.filter(place => place.getBoundingClientRect().top < innerHeight / 3 && scrollY > 0).at(-1);
    link.hash = above ? above.id : location.hash;
  });

  // The chapter list: docked on wide screens, a drawer on others.
  const wide = matchMedia("(min-width: 1380px)"), button = $("#nav-toggle"), list = $("#chapnav");
  const tell = () => button.setAttribute("aria-expanded", wide.matches ? !root.classList.contains("nav-closed") : root.classList.contains("nav-open"));
  const close = () => { root.classList.remove("nav-open"); tell(); };
  button.addEventListener("click", () => {
    const on = root.classList.toggle(wide.matches ? "nav-closed" : "nav-open");
    if (wide.matches) store("nav", on ? "closed" : "open");
    else if (on) ($("[aria-current]", list) || $("a", list) || list).focus();
    tell();
  });
  wide.addEventListener("change", close);
  tell();
  // Shows the chapter's place in the list. Not by scrollIntoView, from where the first Tab would start in Chrome.
  laidOut(() => { const here = $("[aria-current]", list); if (here) list.scrollTop = here.offsetTop - list.clientHeight / 2; });

  // What was read, known by its address in the edition, and which route was chosen: on this machine, and nowhere else.
  const home = new URL(root.dataset.content_root, location.href).pathname;
  const page = ({ pathname }) => pathname.slice(home.length).replace(/\.html$/, "");
  const read = () => (recall("read") ?? "").split(" "), way = $(".needs"), pager = $(".pager");
  const mark = () => {
    for (const tick of $$(".tick")) tick.remove();
    for (const link of $$("#chapnav a, .stops a")) if (read().includes(page(link)))
      link.append(Object.assign(document.createElement("span"), { className: "tick", textContent: "✓", role: "img", ariaLabel: _("read") }));
    const nexts = way ? $$("[data-route]", way) : [];
    if (recall("route")) for (const next of nexts) next.hidden = next.dataset.route !== recall("route");
  };
  addEventListener("marks", mark);
  mark();
  if (way && pager) new IntersectionObserver(([seen], watch) => {
    if (!seen.isIntersecting) return;
    watch.disconnect();
    if (!read().includes(page(location))) store("read", [...read(), page(location)].join(" ").trim());
    mark();
  }).observe(pager);

  // The search script is loaded when a reader focuses the field.
  const form = $("form.search"), ways = ["pointerover", "focusin"], base = document.currentScript.src;
  const seek = () => {
    for (const on of ways) form.removeEventListener(on, seek);
    document.head.append(Object.assign(document.createElement("script"), { src: new URL("search.js", base) }));
  };
  for (const on of ways) form.addEventListener(on, seek);

  const menus = () => $$("details.menu[open]");
  document.addEventListener("click", event => {
    if (!event.target.closest("#chapnav, #nav-toggle")) close();
    for (const menu of menus()) if (!menu.contains(event.target) || event.target.closest("a")) menu.open = false;
  });

  // Keys: "/" searches, Escape closes, arrow keys move along the line numbers (one tab stop per row).
  addEventListener("keydown", event => {
    const { key, target } = event;
    if (key === "Escape") {
      if (root.classList.contains("nav-open")) { close(); button.focus(); }
      for (const menu of menus()) { menu.open = false; $("summary", menu).focus(); }
    }
    if (key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !target.closest?.("input, textarea, select, [contenteditable]")) {
      event.preventDefault();
      ($(".search-page input") || $(".search input")).focus();
    }
    if (target.matches?.(".lno") && (key === "ArrowUp" || key === "ArrowDown")) {
      const all = $$(".lno").filter(line => line.checkVisibility?.() ?? true), to = all[all.indexOf(target) + (key === "ArrowUp" ? -1 : 1)];
      if (to) { event.preventDefault(); to.focus(); }
    }
  });

  // The on-this-page menu names the section being read.
  const label = $(".menu__label"), links = $$(".menu__list ul ul a");
  if (label && links.length) {
    const resting = label.textContent;
    const heads = links.map(link => document.getElementById(decodeURIComponent(link.hash.slice(1))));
    const spy = () => {
      let now = -1;
      heads.forEach((head, i) => { if (head && head.getBoundingClientRect().top < 180) now = i; });
      links.forEach((link, i) => i === now ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"));
      label.textContent = now < 0 ? resting : links[now].textContent;
    };
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; spy(); });
    }, { passive: true });
    laidOut(spy);
  }

  // A long formula shrinks a little before its box scrolls; a box that scrolls can be focused.
  const formulas = ".katex-display";
  const boxes = "pre, .out, .output, .table-scroll, div.math, .katex-display";
  const shown = selector => $$(selector).filter(box => !box.closest("details:not([open])")); // what is folded has no width
  const fit = () => {
    // Measure all, then change all, so that the page is laid out once and not once per formula.
    const sized = shown(formulas).map(box => box.firstElementChild);
    for (const inner of sized) inner.style.fontSize = "";
    const rooms = sized.map(inner => inner.parentElement.clientWidth / inner.parentElement.scrollWidth);
    sized.forEach((inner, i) => { if (rooms[i] < 1) inner.style.fontSize = Math.max(.78, rooms[i] * .99) + "em"; });
    const all = shown(boxes), wide = new Set(all.filter(box => box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(box).overflowX)));
    for (const box of all) {
      const scrolls = wide.has(box);
      if (scrolls && !box.hasAttribute("tabindex") && !$("a[href]:not([tabindex='-1'])", box)) {
        box.tabIndex = 0;
        box.dataset.scrolls = "";
        if (!box.matches("figure")) box.setAttribute("role", "group");
        if (!box.hasAttribute("aria-label")) box.setAttribute("aria-label", box.closest(".out, .output") ? _("Output") : box.matches("pre") ? _("Code") : box.matches(".table-scroll") ? _("Table") : _("Formula"));
      } else if (!scrolls && "scrolls" in box.dataset) {
        for (const name of ["tabindex", "role", "aria-label", "data-scrolls"]) box.removeAttribute(name);
      }
    }
  };
  let asked = 0;
  addEventListener("resize", () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(fit); });
  document.addEventListener("toggle", fit, true); // what was folded has a width now
  laidOut(fit);
})();
