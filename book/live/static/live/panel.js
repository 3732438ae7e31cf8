/**
 * "Your own sentence", in the chapters: loads the model, keeps the sentence from chapter to chapter, and shows at
 * each key what the chapter's lines compute of it. What that is, is in `panels/`, a module per panel.
 */

import { _, visible } from "./say.js";

const LONGEST = 64, KEPT = "sentence", FIRST = "To be, or not to be";
const PATIENCE = 400; // milliseconds after which a panel says that it computes

/** @param {string} name @param {object} given @param {(string | Node)[]} children @returns {any} */
const made = (name, given = {}, ...children) => {
  const part = Object.assign(document.createElement(name), given);
  part.append(...children);
  return part;
};
const recall = () => { try { return localStorage[KEPT]; } catch { return undefined; } };
const keep = (/** @type {string} */ sentence) => { try { localStorage[KEPT] = sentence; } catch { /* storage is off */ } };

/** What a reader can choose: a name, and the attributes of its field. */
const CONTROLS = {
  position: () => ({ label: _("Character"), type: "range", min: 0, max: 0 }),
  layer: (/** @type {any} */ { layers }) => ({ label: _("Layer"), options: [...Array(layers).keys()] }),
  head: (/** @type {any} */ { heads }) => ({ label: _("Head"), options: [...Array(heads).keys()] }),
  feature: () => ({ label: _("Feature"), options: [-1] }),
  shift: () => ({ label: _("Shift"), type: "range", min: 0, max: 32 }),
  temperature: () => ({ label: _("Temperature"), type: "range", min: 0, max: 2, step: 0.05 }),
  topK: () => ({ label: "Top-k", type: "number", min: 1, max: 79, placeholder: _("all") }),
  topP: () => ({ label: "Top-p", type: "range", min: 0.05, max: 1, step: 0.05 }),
};

/** @param {HTMLDetailsElement} panel */
export async function start(panel) {
  const name = panel.dataset.panel, status = made("p", { className: "own__status", role: "status" });
  const example = panel.querySelector("img");
  example.before(status);
  status.textContent = _("Loading the model…");
  const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });

  /** Ask the worker one thing. Nobody asks again before it has replied. */
  const ask = (/** @type {string} */ type, /** @type {object} */ request) => new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { reply, error } }) => error === undefined ? resolve(reply) : reject(new Error(_(...error)));
    worker.onerror = () => reject(new Error(_("The models stopped working in this browser.")));
    worker.postMessage({ id: 0, type, ...request });
  });

  let config, shows;
  try {
    const sources = JSON.parse(panel.dataset.models);
    [[config], shows] = await Promise.all([
      ask("load", { sources: sources.map((each) => ({ ...each, url: new URL(each.url, import.meta.url).href })) }),
      import(`./${name}`),
    ]);
  } catch (error) {
    worker.terminate();
    const again = made("button", { type: "button", className: "btn", textContent: _("Try again") });
    again.addEventListener("click", () => { status.remove(); start(panel); });
    return status.replaceChildren(`${error.message} ${_("The recorded example stays.")} `, again);
  }
  status.textContent = "";

  // ---------- the controls ----------

  const sentence = made("input", { type: "text", name: "sentence", maxLength: LONGEST, value: recall() ?? FIRST, autocomplete: "off", spellcheck: false });
  const form = made("form", { className: "own__controls" }, made("label", { className: "own__sentence" }, `${_("Your sentence")} `, sentence));
  /** @type {Record<string, any>} */
  const field = {};
  for (const [each, value] of Object.entries(shows.controls)) {
    const { label, options, ...given } = CONTROLS[each](config);
    field[each] = options ? made("select", { name: each }, ...options.map((option) => new Option(String(option)))) : made("input", { name: each, ...given });
    field[each].value = each === "topK" ? value || "" : value; // 0 keeps all
    const said = given.type === "range" ? [" ", made("output", { textContent: value })] : [];
    form.append(made("label", {}, `${label} `, field[each], ...said));
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  const picture = made("div", { className: "own__picture" }), caption = made("figcaption");
  const table = made("table");
  example.replaceWith(form, made("figure", {}, picture, caption),
    made("details", { className: "own__numbers" }, made("summary", { textContent: _("The numbers as a table") }), made("div", { className: "own__table" }, table)));

  // ---------- computing: what was asked last is shown, and what came in between is left out ----------

  let follows = true, wanted = false, busy = false; // whether the last character is the chosen one

  /** What is wrong with the sentence, for this model. */
  function wrong() {
    const unknown = [...new Set(sentence.value)].filter((symbol) => !config.symbols.includes(symbol));
    if (!sentence.value) return _("Type at least one character.");
    return unknown.length && _("The model does not know {}. It knows the {} characters of the plays: English letters, digits, spaces and common punctuation.",
      unknown.map((symbol) => _("“{}”", symbol)).join(_(", ")), config.symbols.length);
  }

  /** @returns {import("./pen.js").Choice} */
  function choice() {
    const of = (/** @type {string} */ each, other = 0) => field[each] && field[each].value !== "" ? Number(field[each].value) : other;
    return { position: of("position"), layer: of("layer"), head: of("head"), feature: of("feature", -1), shift: of("shift"),
      temperature: of("temperature", 1), topK: of("topK"), topP: of("topP", 1) };
  }

  async function compute() {
    wanted = true;
    if (busy) return;
    busy = true;
    while (wanted) {
      wanted = false;
      const fault = wrong();
      sentence.toggleAttribute("aria-invalid", Boolean(fault));
      status.textContent = fault || "";
      if (fault) continue;
      keep(sentence.value);
      if (field.position) {
        field.position.max = sentence.value.length - 1;
        if (follows) field.position.value = field.position.max;
      }
      const waits = setTimeout(() => { status.textContent = _("Computing…"); }, PATIENCE);
      try {
        const found = await ask("compute", { panel: name, sentence: sentence.value, choice: choice() });
        if (!wanted || !picture.firstChild) show(shows.draw(found), found);
        status.textContent = "";
      } catch (error) {
        status.textContent = `${error.message} ${_("Reload the page to begin again.")}`;
      }
      clearTimeout(waits);
    }
    busy = false;
  }

  /** @param {import("./pen.js").Drawing} drawing @param {any} found */
  function show(drawing, { sentence: text, features }) {
    picture.innerHTML = drawing.picture;
    picture.firstElementChild.setAttribute("aria-hidden", "true"); // the caption and the table say it
    caption.textContent = drawing.words;
    const cells = (/** @type {string} */ kind, /** @type {any[]} */ row) => row.map((each, i) =>
      i && kind === "td" ? made("td", { textContent: each }) : made("th", { scope: kind === "td" ? "row" : "col", textContent: each }));
    table.replaceChildren(made("thead", {}, made("tr", {}, ...cells("th", drawing.head))),
      made("tbody", {}, ...drawing.rows.map((row) => made("tr", {}, ...cells("td", row)))));
    if (field.feature) {
      const chosen = Number(field.feature.value);
      field.feature.replaceChildren(new Option(_("the strongest"), "-1"), ...features.map((/** @type {number} */ each) => new Option(String(each))));
      field.feature.value = features.includes(chosen) ? chosen : -1;
    }
    for (const [each, input] of Object.entries(field)) {
      const said = input.nextElementSibling;
      if (!said) continue;
      said.textContent = each === "position" ? visible(text[Number(input.value)]) : input.value;
      if (each === "position") input.setAttribute("aria-valuetext", `${visible(text[Number(input.value)])}, ${Number(input.value) + 1} / ${text.length}`);
    }
  }

  form.addEventListener("input", ({ target }) => {
    if (target === field.position) follows = field.position.value === field.position.max;
    compute();
  });
  picture.addEventListener("click", ({ target }) => {
    const at = /** @type {Element} */ (target).closest("[data-at]");
    if (!at || !field.position) return;
    field.position.value = at.getAttribute("data-at");
    follows = field.position.value === field.position.max;
    compute();
  });
  await compute();
}
