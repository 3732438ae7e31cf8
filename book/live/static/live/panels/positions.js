/** What one shift does: the same sentence some positions later, with sines and with a trained table. */

import { bar, cell, line, picture, words } from "../pen.js";
import { _, percent, rounded, visible } from "../say.js";
import { distribution } from "../sampling.js";

export const controls = { shift: 1 };
const SHOWN = 5;

/** @param {import("../model.js").Model} model @param {string} sentence @param {import("../pen.js").Choice} choice */
export function compute(model, sentence, { shift }) {
  const { symbols, d_model } = model.config, table = model.weights["positions.encoding"];
  const trained = (/** @type {number} */ t) => table.subarray(t * d_model, (t + 1) * d_model);
  const places = [...sentence].map((_symbol, t) => t);
  return {
    sentence, shift,
    sines: places.map((t) => distance(encoding(t, d_model), encoding(t + shift, d_model))),
    trained: places.map((t) => distance(trained(t), trained(t + shift))),
    before: next(model, sentence, 0),
    after: next(model, sentence, shift),
  };
}

/** The sines and cosines of a position. @param {number} t @param {number} d_model */
function encoding(t, d_model) {
  return Float32Array.from({ length: d_model }, (_nothing, i) => {
    const angle = t * 10000 ** (-(i - i % 2) / d_model);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** @param {Float32Array} a @param {Float32Array} b */
const distance = (a, b) => Math.sqrt(a.reduce((sum, each, i) => sum + (each - b[i]) ** 2, 0));

/** The most probable next characters, if the first one is at position `shift`. @param {import("../model.js").Model} model @param {string} sentence @param {number} shift @returns {[string, number][]} */
function next(model, sentence, shift) {
  const { symbols } = model.config;
  model.shift = shift;
  const logits = model.read([...sentence].map((symbol) => symbols.indexOf(symbol)));
  model.shift = 0;
  const { order, before } = distribution(logits, { temperature: 1, topK: 0, topP: 1 });
  return order.slice(0, SHOWN).map((token) => [symbols[token], before[token]]);
}

/** @param {ReturnType<typeof compute>} found @returns {import("../pen.js").Drawing} */
export function draw({ sentence, shift, sines, trained, before, after }) {
  const parts = [], wide = Math.min(20, 400 / sentence.length), high = 44;
  const charts = /** @type {const} */ ([[_("sines and cosines"), sines, "c0"], [_("the trained table of this model"), trained, "c1"]]);
  charts.forEach(([name, distances, kind], i) => {
    const y = 12 + 78 * i, most = Math.max(...distances, 1e-9);
    const low = Math.min(...distances);
    parts.push(words(2, y, name, "left strong"), words(398, y, low.toFixed(2) === most.toFixed(2) ? rounded(most, 2) : `${rounded(low, 2)}–${rounded(most, 2)}`, `right ${kind}`));
    distances.forEach((each, t) => parts.push(bar(t * wide + 0.5, y + 12 + high * (1 - each / most), wide - 1, high * each / most, kind)));
    parts.push(line(0, y + 12 + high, wide * sentence.length, y + 12 + high));
  });
  [...sentence].forEach((symbol, t) => parts.push(words((t + 0.5) * wide, 158, visible(symbol), wide < 8 ? "s" : "m")));
  const top = 190, sides = /** @type {const} */ ([[2, _("next, from position 0"), before], [206, _("next, from position {}", shift), after]]);
  for (const [x, name, rows] of sides) {
    parts.push(words(x, top, name, "left strong"));
    rows.forEach(([symbol, share], i) => {
      const y = top + 14 + 20 * i;
      parts.push(cell(x, y, 18, 17, 0.6 * share), words(x + 9, y + 8.5, visible(symbol), "m"), bar(x + 24, y + 2, 110 * share, 13), words(x + 28 + 110 * share, y + 8.5, percent(share), "left soft"));
    });
  }
  const caption = [
    _("Moved to the right by {}, each character gets the vector of a later position. The distance between the two vectors is {} for all characters with sines, because one matrix makes the step from wherever it starts.", shift, rounded(sines[0], 2)),
    _("In a trained table it depends on the place: from {} to {}.", rounded(Math.min(...trained), 2), rounded(Math.max(...trained), 2)),
    _("Below: the next character, before and after the move."),
  ].join(" ");
  return {
    picture: picture(top + 20 + 20 * SHOWN, caption, parts), words: caption,
    head: [_("character"), _("distance, sines"), _("distance, trained")],
    rows: [
      ...[...sentence].map((symbol, t) => [`${visible(symbol)} ${t}`, rounded(sines[t], 3), rounded(trained[t], 3)]),
      [_("next character"), before.map(([symbol, share]) => `${visible(symbol)} ${percent(share)}`).join(_(", ")), after.map(([symbol, share]) => `${visible(symbol)} ${percent(share)}`).join(_(", "))],
    ],
  };
}
