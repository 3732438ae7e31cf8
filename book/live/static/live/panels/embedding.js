/** The row of a character in the table of embeddings, and the characters whose rows point the same way. */

import { bar, heat, line, picture, strip, words } from "../pen.js";
import { _, rounded, visible } from "../say.js";

export const controls = { position: 0 };
const SHOWN = 6;

/** @param {import("../model.js").Model} model @param {string} sentence @param {import("../pen.js").Choice} choice */
export function compute(model, sentence, { position }) {
  const { symbols, d_model } = model.config, table = model.weights["embedding.weight"];
  const rows = [...symbols].map((_symbol, token) => [...table.subarray(token * d_model, (token + 1) * d_model)]);
  const token = symbols.indexOf(sentence[position]), own = rows[token];
  const near = rows.map((row, other) => ({ symbol: symbols[other], cosine: cosine(own, row), row }));
  near.splice(token, 1);
  near.sort((a, b) => b.cosine - a.cosine);
  return { sentence, position, token, row: own, near: near.slice(0, SHOWN) };
}

/** The cosine of the angle between two rows. @param {number[]} a @param {number[]} b */
function cosine(a, b) {
  const dot = (/** @type {number[]} */ u, /** @type {number[]} */ v) => u.reduce((sum, each, i) => sum + each * v[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

/** @param {ReturnType<typeof compute>} found @returns {import("../pen.js").Drawing} */
export function draw({ sentence, position, token, row, near }) {
  const symbol = visible(sentence[position]), { parts, height } = strip(2, sentence, position);
  const most = 0.8 * Math.max(...row.map(Math.abs)), top = height + 20;
  parts.push(words(26, top, _("row {}, {} numbers", token, row.length), "left soft"), words(280, top, _("cosine"), "left soft"));
  parts.push(line(280, top + 44, 280, top + 40 + 22 * near.length));
  [{ symbol: sentence[position], row, cosine: 1 }, ...near].forEach((each, i) => {
    const y = top + 12 + 22 * i + (i ? 8 : 0);
    parts.push(words(10, y + 9, visible(each.symbol), "m strong"), heat(26, y, 240, 18, [each.row], most));
    if (i) parts.push(bar(280, y + 3, 80 * each.cosine, 12), words(398, y + 9, rounded(each.cosine, 2), "right"));
  });
  const caption = [
    _("“{}” is token {}: the look-up takes row {} of the table.", symbol, token, token),
    _("The nearest row is that of “{}”, with a cosine of {}.", visible(near[0].symbol), rounded(near[0].cosine, 2)),
    _("Blue is positive, orange negative."),
  ].join(" ");
  return {
    picture: picture(top + 24 + 22 * (near.length + 1), caption, parts), words: caption,
    head: [_("character"), _("cosine"), _("first numbers of its row")],
    rows: [{ symbol: sentence[position], row, cosine: 1 }, ...near].map((each) =>
      [visible(each.symbol), rounded(each.cosine, 3), each.row.slice(0, 4).map((value) => rounded(value, 3)).join(_(", "))]),
  };
}
