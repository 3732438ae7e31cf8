/* Search as one types: prose, definitions and code of every page. Without scripts, or where the
   index cannot be read (a page opened from disk), the form leads to the search page. */
(() => {
  const _ = (text, ...values) => values.reduce((said, value) => said.replace("{}", value), window.words?.[text] ?? text);
  const form = document.querySelector("form.search"), input = form?.querySelector("input");
  if (!form || form.hasAttribute("data-plain") || !location.protocol.startsWith("http")) return;
  const base = new URL(document.documentElement.dataset.content_root, location.href), here = document.currentScript.src;
  const list = Object.assign(document.createElement("ol"), { id: "hits", className: "hits", hidden: true });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", _("Search results"));
  form.append(list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-controls": "hits", "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off" }))
    input.setAttribute(name, value);

  let pagefind, chosen = -1, asked = "";
  const load = () => pagefind ??= import(new URL("_pagefind/pagefind.js", base)).then(async module => {
    await module.options({ baseUrl: base.pathname, excerptLength: 18 });
    return module;
  });
  // Pages, sections, definitions and terms, found by their names. They come before what is found in the text.
  const ranking = import(new URL("ranking.js", here));
  let coming;
  const placesOf = async words => {
    const { prepared, ranked } = await ranking;
    const all = await (coming ??= fetch(new URL("_pagefind/places.json", base)).then(answer => answer.json()).then(places => places.map(prepared)));
    const found = ranked(all, words), named = found.filter(({ score }) => score === 2).slice(0, 4);
    const exact = named.length ? named : found.slice(0, 1).filter(({ kind }) => kind === "term");
    // After a term comes the place that the glossary refers to: a definition here, a page's sections below.
    const explained = exact.map(place => place.explained);
    const led = all.filter(place => place.kind !== "page" && explained.includes(place.url));
    return { all, exact: [...exact, ...led], near: found.filter(place => place.score < 2 && !exact.includes(place)).slice(0, 5), explained };
  };
  // Sections found by their text. A name in code is searched for by all of its words.
  const score = part => part.weighted_locations.reduce((sum, place) => sum + place.balanced_score, 0);
  const textsOf = async (words, ask) => {
    const { answers, split, joined } = await ranking, found = await ask(split(words.replace(/[_.]+/g, " ")).trim());
    if (!found) return null;
    const pages = await Promise.all(found.results.slice(0, 6).map(result => result.data()));
    const marked = ({ excerpt }) => [...excerpt.matchAll(/<mark>(.*?)<\/mark>/g)].map(mark => mark[1]);
    return pages.map(page => {
      const parts = page.sub_results.filter(part => answers(marked(part), words)).sort((a, b) => score(b) - score(a)).slice(0, 3);
      return { url: page.url, parts: parts.map(part => ({ ...part, title: joined(part.title), excerpt: joined(part.excerpt), page: joined(page.meta.title) })) };
    });
  };
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
    if (hit.page !== hit.title || hit.name) link.append(Object.assign(document.createElement("small"), { textContent: hit.page }));
    const words = document.createElement("span");
    words.innerHTML = hit.excerpt ?? ""; // escaped; Pagefind marks the words
    link.append(words);
    item.append(link);
    return item;
  };
  const search = async () => {
    const words = asked = input.value.trim();
    if (!words) return open(false);
    const engine = await load();
    let pages = await textsOf(words, query => engine.debouncedSearch(query, {}, 120));
    if (!pages || words !== asked) return;
    const { all, exact, near, explained } = await placesOf(words);
    const other = (await ranking).corrected(all, words);
    if (!pages.some(({ parts }) => parts.length) && other !== words) pages = await textsOf(other, query => engine.search(query));
    if (words !== asked) return;
    const whole = ({ url }) => !new URL(url, base).hash;
    const texts = pages.flatMap(({ parts }) => parts), same = (a, b) => a.page === b.page && a.title === b.title && whole(a) === whole(b);
    const explains = page => explained.some(url => url && new URL(url, base).pathname === page.url);
    const first = pages.filter(explains).flatMap(({ parts }) => parts.slice(0, 2));
    const shown = place => {
      const hit = { title: place.names[0], page: place.page, url: new URL(place.url, base) };
      const name = place.kind === "definition" ? place.names.at(-1) : null; // in code
      return { ...hit, name, excerpt: place.text ?? texts.find(text => same(text, hit))?.excerpt };
    };
    const found = [...exact.map(shown), ...first, ...near.map(shown), ...texts];
    const hits = found.filter((hit, i) => found.findIndex(other => same(other, hit)) === i);
    list.replaceChildren(...hits.slice(0, 12).map(entry));
    if (!hits.length) list.replaceChildren(Object.assign(document.createElement("li"), { className: "hits__none", textContent: _("Nothing is found for “{}”.", words) }));
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
