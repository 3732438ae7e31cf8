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
  // Pages, sections, definitions and terms, found by their names. They come before what is found in the text.
  const KINDS = ["page", "definition", "section", "term"];
  const wordsOf = text => text.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const named = (name, key) => { // 0: the name itself, 1: its end, 2: its beginning, 3: words inside it
    const words = wordsOf(name), tails = words.map((_, i) => words.slice(i).join(""));
    if (tails.includes(key)) return Math.min(tails.indexOf(key), 1);
    const begins = key.length > 2 ? tails.findIndex(tail => tail.startsWith(key)) : -1;
    return begins < 0 ? Infinity : begins ? 3 : 2;
  };
  const rank = (place, key) => Math.min(...place.names.map(name => named(name, key)));
  let coming;
  const placesOf = async words => {
    const all = await (coming ??= fetch(new URL("_pagefind/places.json", base)).then(answer => answer.json()));
    const key = wordsOf(words).join("");
    const found = all.map(place => ({ ...place, rank: rank(place, key) })).filter(place => place.rank < Infinity);
    const order = ({ kind, names: [name] }) => KINDS.indexOf(kind) + name.length / 1000;
    found.sort((a, b) => a.rank - b.rank || order(a) - order(b));
    const exact = found.filter(place => !place.rank).slice(0, 4);
    // After a term comes the place that the glossary refers to: a definition here, a page's sections below.
    const explained = exact.map(place => place.explained);
    const led = all.filter(place => place.kind !== "page" && explained.includes(place.url));
    // A class comes before its methods.
    const below = place => found.some(({ url }) => place.url.startsWith(`${url}.`));
    return { exact: [...exact, ...led], near: found.filter(place => place.rank && !below(place)).slice(0, 4), explained };
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
    if (hit.title !== hit.name) link.append(Object.assign(document.createElement("b"), { textContent: hit.title }));
    if (hit.name) link.append(Object.assign(document.createElement("code"), { textContent: hit.name }));
    if (hit.page !== hit.title) link.append(Object.assign(document.createElement("small"), { textContent: hit.page }));
    const words = document.createElement("span");
    words.innerHTML = hit.excerpt ?? ""; // escaped; Pagefind marks the words
    link.append(words);
    item.append(link);
    return item;
  };
  const search = async () => {
    const words = asked = input.value.trim();
    if (!words) return open(false);
    // A name in code is searched for by all of its words.
    const found = await (await load()).debouncedSearch(words.replace(/[_.]+/g, " "), {}, 120);
    if (!found || words !== asked) return;
    const [{ exact, near, explained }, ...pages] = await Promise.all([placesOf(words), ...found.results.slice(0, 6).map(result => result.data())]);
    if (words !== asked) return;
    const parts = page => page.sub_results.sort((a, b) => score(b) - score(a)).slice(0, 3).map(part => ({ ...part, page: page.meta.title }));
    const texts = pages.flatMap(parts), same = (a, b) => a.page === b.page && a.title === b.title;
    const explains = page => explained.some(url => url && new URL(url, base).pathname === page.url);
    const first = pages.filter(explains).flatMap(page => parts(page).slice(0, 2));
    const shown = place => {
      const hit = { title: place.names[0], page: place.page, url: new URL(place.url, base) };
      const name = place.kind === "definition" ? place.names.at(-1) : null; // in code
      return { ...hit, name, excerpt: place.text ?? texts.find(text => same(text, hit))?.excerpt };
    };
    const all = [...exact.map(shown), ...first, ...near.map(shown), ...texts];
    const hits = all.filter((hit, i) => all.findIndex(other => same(other, hit)) === i);
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
