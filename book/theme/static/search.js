/* Search as one types: prose, definitions and code of every page. Without scripts, or where the
   index cannot be read (a page opened from disk), the form leads to the search page. */
(() => {
  const form = document.querySelector("form.search"), input = form?.querySelector("input");
  if (!form || !location.protocol.startsWith("http")) return;
  const base = new URL(document.documentElement.dataset.content_root, location.href);
  const list = Object.assign(document.createElement("ol"), { id: "hits", className: "hits", hidden: true });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Search results");
  form.append(list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-controls": "hits", "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off" }))
    input.setAttribute(name, value);

  let pagefind, chosen = -1, asked = "";
  const load = () => pagefind ??= import(new URL("_pagefind/pagefind.js", base)).then(async module => {
    await module.options({ baseUrl: base.pathname, excerptLength: 18 });
    return module;
  });
  // Definitions by their names, from the index: whoever types one wants to see where it stands.
  let names;
  const chapters = new Map([...document.querySelectorAll("#chapnav a")].map(link => [link.pathname, link.lastChild.textContent]));
  const read = text => [...new DOMParser().parseFromString(text, "text/html").querySelectorAll(".letter a")].map(link => {
    const url = new URL(link.getAttribute("href"), base);
    return { name: (link.ariaLabel ?? link.textContent).split(",")[0], page: chapters.get(url.pathname), url };
  });
  const defined = async words => {
    const all = await (names ??= fetch(new URL("genindex.html", base)).then(answer => answer.text()).then(read));
    const part = words.toLowerCase(), found = all.filter(({ name }) => part.length > 2 && name.toLowerCase().includes(part));
    const begins = ({ name }) => name.toLowerCase().startsWith(part);
    return found.sort((a, b) => begins(b) - begins(a) || a.name.length - b.name.length).slice(0, 4);
  };
  const score = part => part.weighted_locations.reduce((sum, place) => sum + place.balanced_score, 0);
  const open = on => { list.hidden = !on; input.setAttribute("aria-expanded", on); if (!on) choose(-1); };
  const choose = index => {
    chosen = index;
    input.removeAttribute("aria-activedescendant");
    list.querySelectorAll("[role=option]").forEach((hit, i) => {
      hit.setAttribute("aria-selected", i === chosen);
      if (i === chosen) { input.setAttribute("aria-activedescendant", hit.id); hit.scrollIntoView({ block: "nearest" }); }
    });
  };
  const entry = (hit, number) => {
    const item = document.createElement("li");
    const link = Object.assign(document.createElement("a"), { id: `hit-${number}`, href: hit.url, tabIndex: -1 });
    item.setAttribute("role", "presentation");
    link.setAttribute("role", "option");
    link.append(Object.assign(document.createElement(hit.name ? "code" : "b"), { textContent: hit.name ?? hit.title }));
    if (hit.page !== hit.title) link.append(Object.assign(document.createElement("small"), { textContent: hit.page }));
    const words = document.createElement("span");
    words.innerHTML = hit.excerpt ?? ""; // Pagefind escapes the text and marks the words
    link.append(words);
    item.append(link);
    return item;
  };
  const search = async () => {
    const words = asked = input.value.trim();
    if (!words) return open(false);
    // A name in code is looked for by its words, all of them.
    const found = await (await load()).debouncedSearch(words.replace(/[_.]+/g, " "), {}, 120);
    if (!found || words !== asked) return;
    const [named, ...pages] = await Promise.all([defined(words), ...found.results.slice(0, 6).map(result => result.data())]);
    if (words !== asked) return;
    const parts = page => page.sub_results.sort((a, b) => score(b) - score(a)).slice(0, 3).map(part => ({ ...part, page: page.meta.title }));
    const hits = [...named, ...pages.flatMap(parts)];
    list.replaceChildren(...hits.slice(0, 12).map(entry));
    if (!hits.length) list.replaceChildren(Object.assign(document.createElement("li"), { className: "hits__none", textContent: `Nothing is found for “${words}”.` }));
    open(true);
  };
  input.addEventListener("input", search);
  const begin = () => { load().catch(() => {}); if (input.value) search(); };
  input.addEventListener("focus", begin);
  if (document.activeElement === input) begin();
  input.addEventListener("keydown", event => {
    const hits = list.querySelectorAll("[role=option]");
    if (event.key === "ArrowDown" && hits.length) { event.preventDefault(); choose(chosen + 1 < hits.length ? chosen + 1 : 0); }
    if (event.key === "ArrowUp" && hits.length) { event.preventDefault(); choose(chosen > 0 ? chosen - 1 : hits.length - 1); }
    if (event.key === "Escape") { open(false); }
  });
  form.addEventListener("submit", event => {
    const link = list.querySelectorAll("[role=option]")[Math.max(chosen, 0)];
    if (!list.hidden && link) { event.preventDefault(); open(false); location.href = link.href; }
  });
  document.addEventListener("click", event => { if (!form.contains(event.target)) open(false); });
  list.addEventListener("click", () => open(false));
})();
