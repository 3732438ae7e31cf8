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
  // Pages, sections, definitions and terms, found by their names.
  const ranking = import(new URL("ranking.js", here));
  let coming;
  const places = async () => coming ??= fetch(new URL("_pagefind/places.json", base)).then(answer => answer.json()).then(async all => all.map((await ranking).prepared));
  const placesOf = async (words, pages) => {
    const all = await places(), found = (await ranking).ranked(all, words, pages), named = found.filter(({ score }) => score === 2).slice(0, 4);
    const exact = named.length ? named : found.slice(0, 1).filter(({ kind, share }) => kind === "term" && share > .6);
    // After a term comes the place that the glossary refers to: a definition here, a page's sections below.
    const explained = exact.map(place => place.explained);
    const led = term => all.filter(place => place.kind !== "page" && place.url === term.explained);
    return { exact: exact.flatMap(place => [place, ...led(place)]), near: found.filter(place => !exact.includes(place)).slice(0, 5), explained };
  };
  const marked = ({ excerpt }) => [...excerpt.matchAll(/<mark>(.*?)<\/mark>/g)].map(mark => mark[1]);
  // Sections found by their text: first those with most of the query. A name in code is searched for by all of its words.
  const textsOf = async (words, found, pages) => {
    const { answers, asked, covered, joined } = await ranking;
    const all = await places(), wanted = asked(all, words, pages), read = await Promise.all(found.results.slice(0, 10).map(result => result.data()));
    return read.flatMap((page, place) => {
      const heads = page.anchors.filter(({ element }) => /^h\d$/.test(element)).map(({ location }) => location), said = page.content.split(/\s+/);
      return page.sub_results.filter(part => answers(marked(part), words)).map(part => {
        const start = part.anchor?.location ?? 0, end = heads.find(location => location > start);
        const share = covered(`${part.title} ${said.slice(start, end).join(" ")}`, wanted);
        const strength = part.weighted_locations.reduce((sum, { balanced_score }) => sum + balanced_score, 0);
        const title = joined(part.title), named = all.find(each => each.page === joined(page.meta.title) && each.names[0] === title && each.kind !== "page");
        const url = named && part.anchor ? new URL(named.url, base) : part.url, name = named?.kind === "definition" ? named.names.at(-1) : null;
        return { share, place, strength, title, name, url: `${url}`, excerpt: joined(part.excerpt), page: joined(page.meta.title), of: page.url };
      }).sort((a, b) => b.share - a.share || b.strength - a.strength).slice(0, 3);
    }).sort((a, b) => Math.round(5 * (b.share - a.share)) || a.place - b.place || b.strength - a.strength);
  };
  // How many pages have the words of a query that no name has: the index also finds texts that share a beginning.
  const pagesOf = async (words, engine) => {
    const { asked, answers, spaced } = await ranking, all = await places(), pages = {};
    await Promise.all(asked(all, words).filter(({ found }) => !found).map(async ({ word, said }) => {
      const { results } = await engine.search(spaced(said)), first = await Promise.all(results.slice(0, 3).map(result => result.data()));
      pages[word] = first.some(page => answers(marked(page), said)) ? results.length : 0;
    }));
    return pages;
  };
  // What of a query neither names nor texts have, as it was typed.
  const absentOf = async (words, pages) => {
    const { asked, share } = await ranking, wanted = asked(await places(), words, pages), runs = [...new Set(wanted.map(({ run }) => run))];
    return runs.filter(run => share(wanted.filter(each => each.run === run), word => pages[word] === 0 ? 1 : 0) >= .5);
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
    const found = await engine.debouncedSearch((await ranking).spaced(words), {}, 120);
    if (!found || words !== asked) return;
    const pages = await pagesOf(words, engine), { exact, near, explained } = await placesOf(words, pages);
    let texts = await textsOf(words, found, pages);
    const other = (await ranking).corrected(await places(), words);
    if (!texts.length && other !== words) texts = await textsOf(other, await engine.search((await ranking).spaced(other)), pages);
    const absent = await absentOf(words, pages);
    if (words !== asked) return;
    const whole = ({ url }) => !new URL(url, base).hash, href = ({ url }) => new URL(url, base).href;
    const same = (a, b) => href(a) === href(b) || a.page === b.page && a.title === b.title && whole(a) === whole(b);
    const explains = page => explained.some(url => url && new URL(url, base).pathname === page);
    const first = texts.filter(({ of }) => explains(of)).slice(0, 2);
    const shown = place => {
      const hit = { title: place.names[0], page: place.page, url: new URL(place.url, base) };
      const name = ["definition", "row"].includes(place.kind) ? place.names.at(-1) : null; // in code
      return { ...hit, name, excerpt: place.text ?? texts.find(text => same(text, hit))?.excerpt };
    };
    // A place that is named so comes before texts, unless they have more of the query.
    const most = Math.max(0, ...texts.map(({ share }) => share)), isFirst = ({ share, named }) => share >= (named === 1 ? .5 : Math.min(.6, .8 * most));
    const every = [...exact.map(shown), ...first, ...near.filter(isFirst).map(shown), ...texts, ...near.filter(place => !isFirst(place)).map(shown)];
    const hits = every.filter((hit, i) => every.findIndex(other => same(other, hit)) === i);
    const note = text => Object.assign(document.createElement("li"), { className: "hits__none", textContent: text });
    list.replaceChildren(...hits.slice(0, 12).map(entry));
    if (absent.join("") === words.replace(/[^\p{L}\p{N}_-]/gu, "")) list.replaceChildren();
    else list.prepend(...absent.map(run => note(_("“{}” is not in this book.", run))));
    if (!list.children.length) list.replaceChildren(note(_("Nothing is found for “{}”.", words)));
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
