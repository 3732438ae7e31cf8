// @ts-check
/* The individuals of a search. The form picks one, and the address names it (#search/number), so that links
   and the back button work. A lineage becomes a walk, one step at a time. Without scripts a lineage is a list. */

/**
 * @typedef {{number: number, parent: number | null, mutations: string[], program: number[],
 *   loss: number | null, finished: boolean, rejected: string, hurdle: number, seconds: number | null}} Individual
 * @typedef {{name: string, best: number | null, texts: string[], individuals: Individual[]}} Search
 * @typedef {{mark: "+" | "−" | "~" | "", text: string}} Line
 */

/** What a text is in the language of the page, with `values` in the places of `{}`.
 * @type {(text: string, ...values: (string | number)[]) => string} */
const _ = (text, ...values) => values.reduce((/** @type {string} */ said, value) => said.replace("{}", `${value}`), /** @type {any} */ (window).words?.[text] ?? text);

/** The names of the mutations. @type {Record<string, string>} */
const KINDS = {
  delete: _("delete"), insert: _("insert"), delete_and_insert: _("delete and insert"),
  mutate_field: _("mutate field"), swap: _("swap"), mutate_bank: _("mutate bank"),
};

/**
 * What became of an individual, in words.
 * @param {Individual} one
 */
function outcome({ rejected, loss, hurdle }) {
  if (rejected) return _("rejected: {}", rejected);
  if (loss === null) return _("not evaluated yet");
  return hurdle ? _("loss {}, stopped at hurdle {}", loss.toFixed(3), hurdle) : _("loss {}", loss.toFixed(3));
}

/**
 * Return an element with children.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {(string | Node)[]} children
 */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Return an element of a drawing.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 */
function drawing(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/**
 * Return the lines of two subprograms, each with its mark: added, removed, or reading other values (~).
 * Lines belong together if they are the same except for their values, h0, h1 and so on.
 * @param {string[]} old
 * @param {string[]} now
 * @returns {Line[]}
 */
function difference(old, now) {
  /** @param {string} line */
  const bare = line => line.replace(/h\d+/g, "h");
  // The longest common subsequence: `length[i][j]` is that of the lines from i and j on.
  const length = Array.from({ length: old.length + 1 }, () => Array(now.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      length[i][j] = bare(old[i]) === bare(now[j]) ? 1 + length[i + 1][j + 1] : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  /** @type {Line[]} */
  const lines = [];
  const moved = new Map([["h0", "h0"], ["h1", "h1"]]);
  /** @param {string} line */
  const named = line => line.trim().split(" ")[0];
  for (let i = 0, j = 0; i < old.length || j < now.length;) {
    if (i < old.length && j < now.length && bare(old[i]) === bare(now[j])) {
      moved.set(named(old[i]), named(now[j]));
      const same = old[i].replace(/h\d+/g, value => moved.get(value) ?? "") === now[j];
      lines.push({ mark: same ? "" : "~", text: now[j] });
      i++; j++;
    } else if (j === now.length || (i < old.length && length[i + 1][j] >= length[i][j + 1])) {
      lines.push({ mark: "−", text: old[i++] });
    } else {
      lines.push({ mark: "+", text: now[j++] });
    }
  }
  return lines;
}

for (const root of document.querySelectorAll(".individuals")) {
  const form = /** @type {HTMLFormElement} */ (root.querySelector("form"));
  const plot = /** @type {SVGSVGElement} */ (root.querySelector(".population"));
  const view = /** @type {HTMLElement} */ (root.querySelector(".individual"));
  const search = /** @type {HTMLSelectElement} */ (form.elements.namedItem("search"));
  const number = /** @type {HTMLInputElement} */ (form.elements.namedItem("number"));
  const best = /** @type {HTMLButtonElement} */ (form.elements.namedItem("best"));
  /** @type {Map<string, Promise<Search>>} */
  const loaded = new Map();

  /** Load the data of a search: as a script, because a page that was opened from a file cannot fetch.
   * @param {string} name */
  const load = name => {
    const found = loaded.get(name) ?? new Promise((resolve, reject) => {
      const script = make("script", { src: `${/** @type {HTMLElement} */ (root).dataset.folder}/${name}.js` });
      script.addEventListener("load", () => {
        const all = /** @type {any} */ (window).searches?.[name]; // a server may answer with a page instead
        if (all) resolve(all);
        else reject();
      });
      script.addEventListener("error", reject);
      document.head.append(script);
    });
    loaded.set(name, found);
    return found;
  };

  /** @param {string} name @param {number | null} which */
  const address = (name, which) => `#${name}/${which}`;

  /** @param {Search} all @param {Individual} one */
  const link = (all, one) => make("a", { href: address(all.name, one.number) }, `${one.number}`);

  /**
   * Draw everyone trained to the end, by number and loss, with a line through `line`.
   * @param {Search} all @param {Individual[]} line
   */
  const draw = (all, line) => {
    const ended = all.individuals.filter(each => each.finished);
    plot.toggleAttribute("hidden", ended.length < 2);
    if (ended.length < 2) return;
    const losses = ended.map(each => each.loss ?? 0).sort((a, b) => a - b);
    const low = losses[0], high = losses[Math.ceil(0.95 * (losses.length - 1))];
    const last = Math.max(1, all.individuals.length - 1);
    /** @param {Individual} each */
    const x = each => 36 + 358 * each.number / last;
    /** @param {Individual} each */
    const y = each => 6 + 148 * Math.max(0, high - (each.loss ?? high)) / (high - low || 1);
    /** @param {string} kind @param {number} radius */
    const dot = (kind, radius) => (/** @type {Individual} */ each) => drawing("circle", { class: kind, cx: `${x(each)}`, cy: `${y(each)}`, r: `${radius}` });
    const trained = line.filter(each => each.finished);
    const path = drawing("polyline", { points: trained.map(each => `${x(each)},${y(each)}`).join(" ") });
    /** @param {number} loss @param {number} at */
    const label = (loss, at) => {
      const text = drawing("text", { x: "4", y: `${at}` });
      text.textContent = loss.toFixed(3);
      return text;
    };
    plot.replaceChildren(...ended.map(dot("", 1.5)), path, ...trained.map(dot("line", 2.5)), label(high, 9), label(low, 157));
    plot.onclick = event => {
      const box = plot.getBoundingClientRect(), scale = 400 / box.width;
      const [u, v] = [scale * (event.clientX - box.left), scale * (event.clientY - box.top)];
      const far = (/** @type {Individual} */ each) => Math.hypot(x(each) - u, y(each) - v);
      location.hash = address(all.name, ended.reduce((a, b) => far(b) < far(a) ? b : a).number);
    };
  };

  /** @param {Search} all @param {Individual} one */
  const show = (all, one) => {
    const byNumber = new Map(all.individuals.map(each => [each.number, each]));
    const parent = one.parent === null ? undefined : byNumber.get(one.parent);
    const children = all.individuals.filter(each => each.parent === one.number);
    /** @type {Individual[]} */
    const line = [];
    for (let each = parent; each; each = each.parent === null ? undefined : byNumber.get(each.parent)) line.unshift(each);
    draw(all, [...line, one]);
    const facts = make("dl");
    /** @param {string} name @param {(string | Node)[]} what */
    const fact = (name, ...what) => facts.append(make("dt", {}, name), make("dd", {}, ...what));
    /** @param {Individual[]} several */
    const links = several => several.flatMap((each, i) => [i ? _(", ") : "", link(all, each), each.loss === null ? "" : _(" ({})", each.loss.toFixed(3))]);
    fact(_("Outcome"), one.seconds === null ? outcome(one) : _("{}, {} s of training", outcome(one), one.seconds.toFixed(1)));
    fact(_("Mutation"), one.mutations.map(each => KINDS[each] ?? each).join(_(", then ")) || _("none: the search began with it"));
    fact(_("Ancestors"), ...(line.length ? links(line) : [_("none")]));
    fact(_("Children"), ...(children.length ? links(children) : [_("none")]));
    const program = make("div", { class: "program" });
    const fold = make("details", {}, make("summary", {}, parent ? _("Subprograms that are the same") : _("The program")));
    one.program.forEach((text, s) => {
      const now = all.texts[text].split("\n"), before = parent?.program[s];
      const same = parent === undefined || before === text;
      const lines = same || before === undefined ? now.map(each => ({ mark: "", text: each })) : difference(all.texts[before].split("\n"), now);
      const part = make("pre", { tabindex: "0" }, ...lines.map(each => make(
        each.mark === "+" ? "ins" : each.mark === "−" ? "del" : each.mark ? "mark" : "span", {}, `${each.mark || " "} ${each.text}\n`)));
      (same ? fold : program).append(part);
    });
    if (!parent) fold.setAttribute("open", "");
    const changed = program.childElementCount > 0;
    view.replaceChildren(
      make("h2", {}, _("Individual {} of {}", one.number, all.name)), facts,
      make("p", { class: "marks" }, changed ? _("Compared with its parent: + new, − removed, ~ reads other values.") : ""),
      program, fold);
  };

  const go = async () => {
    const [name, which] = decodeURIComponent(location.hash.slice(1)).split("/");
    if (![...search.options].some(option => option.value === name)) return;
    search.value = name;
    try {
      const all = await load(name);
      const one = all.individuals.find(each => each.number === +which);
      number.max = `${all.individuals.at(-1)?.number ?? 0}`;
      best.disabled = all.best === null;
      if (one) {
        number.value = which;
        show(all, one);
      } else {
        view.textContent = _("{} has no individual {}. Its last is {}.", name, which, number.max);
      }
    } catch {
      fail(name);
    }
  };

  /** Say that data are missing. The next choice loads them again.
   * @param {string} name */
  const fail = name => {
    loaded.delete(name);
    best.disabled = false;
    view.textContent = _("The data of {} could not be loaded. Press Best to retry.", name);
  };

  const pick = async () => {
    const all = await load(search.value).catch(() => null);
    location.hash = address(search.value, all?.best ?? 0);
    go();
  };

  /** Show the best individual of the first search, until a reader picks another. The address stays. */
  const open = async () => {
    plot.removeAttribute("hidden"); // so that nothing moves when it is drawn
    const all = await load(search.value).catch(() => null);
    const one = all?.individuals.find(each => each.number === all.best);
    if (location.hash.includes("/")) return;
    plot.toggleAttribute("hidden", !one);
    if (!all) fail(search.value);
    if (!all || !one) return;
    number.max = `${all.individuals.at(-1)?.number ?? 0}`;
    number.value = `${one.number}`;
    show(all, one);
  };

  search.addEventListener("change", pick);
  best.addEventListener("click", pick);
  number.addEventListener("change", () => { location.hash = address(search.value, +number.value); });
  form.addEventListener("submit", event => { event.preventDefault(); location.hash = address(search.value, +number.value); });
  addEventListener("hashchange", go);
  form.hidden = false;
  if (location.hash.includes("/")) go();
  else open();
}

for (const list of document.querySelectorAll("ol.lineage")) {
  const steps = /** @type {HTMLElement[]} */ ([...list.children]);
  if (steps.length < 2) continue;
  const slider = /** @type {HTMLInputElement} */ (make("input", {
    type: "range", min: "1", max: `${steps.length}`, value: `${steps.length}`, "aria-label": _("Step of: {}", list.getAttribute("aria-label") ?? "") }));
  const place = make("span"), walk = make("div", { class: "picture-steps" });
  /** @param {number} step */
  const show = step => {
    slider.value = `${step}`;
    place.textContent = _("step {} of {}", +slider.value, steps.length);
    slider.setAttribute("aria-valuetext", `${place.textContent}`);
    steps.forEach((each, i) => { each.hidden = i + 1 !== +slider.value; });
  };
  /** @param {string} name @param {number} by */
  const button = (name, by) => {
    const made = make("button", { type: "button" }, name);
    made.addEventListener("click", () => show(+slider.value + by));
    return made;
  };
  slider.addEventListener("input", () => show(+slider.value));
  walk.append(button(_("Back"), -1), slider, button(_("Next"), 1), place);
  list.before(walk);
  list.classList.add("lineage--walk");
  show(steps.length); // the best individual
}
