/** What a head attends to from one character, and its scores in both directions. */

import { bar, line, picture, strip, words } from "../pen.js";
import { _, percent, rounded, visible } from "../say.js";

export const controls = { position: 0, layer: 0, head: 2 };
const SHOWN = 6;

/** @param {import("../model.js").Model} model @param {string} sentence @param {import("../pen.js").Choice} choice */
export function compute(model, sentence, { position, layer, head }) {
  const { symbols, heads, d_model } = model.config, d_k = d_model / heads;
  model.read([...sentence].map((symbol) => symbols.indexOf(symbol)));
  const { queries, keys } = model.cache[layer], seq = position + 1, at = (layer * heads + head) * seq;
  /** How well the key of `b` matches the query of `a`. @param {number} a @param {number} b */
  const score = (a, b) => {
    let dot = 0;
    for (let i = head * d_k; i < (head + 1) * d_k; i++) dot += queries[a * d_model + i] * keys[b * d_model + i];
    return dot / Math.sqrt(d_k);
  };
  const earlier = [...Array(seq).keys()];
  return {
    sentence, position, layer, head,
    weights: [...model.attention[position].subarray(at, at + seq)],
    asks: earlier.map((other) => score(position, other)), // the query of the chosen character, the key of the other
    asked: earlier.map((other) => score(other, position)), // the reverse
  };
}

/** @param {ReturnType<typeof compute>} found @returns {import("../pen.js").Drawing} */
export function draw({ sentence, position, layer, head, weights, asks, asked }) {
  const symbol = visible(sentence[position]);
  const { parts, height } = strip(2, sentence, position, weights.map(Math.sqrt));
  const order = weights.map((_weight, i) => i).sort((a, b) => weights[b] - weights[a]).slice(0, SHOWN);
  const most = Math.max(1, ...order.flatMap((i) => [Math.abs(asks[i]), Math.abs(asked[i])]));
  const top = height + 20, middle = 292, unit = 60 / most;
  parts.push(words(84, top, _("weight"), "left soft"), words(middle, top, _("scores"), "soft"));
  order.forEach((i, n) => {
    const y = top + 14 + 30 * n;
    parts.push(words(10, y + 12, visible(sentence[i]), "m strong"), words(22, y + 12, i === position ? _("itself") : _("{} back", position - i), "left soft"));
    parts.push(bar(84, y + 5, 84 * weights[i], 14), words(88 + 84 * weights[i], y + 12, percent(weights[i]), "left"));
    parts.push(bar(middle, y + 2, unit * asks[i], 9), bar(middle, y + 13, unit * asked[i], 9, "c1"));
    parts.push(words(398, y + 6, rounded(asks[i]), "right c0"), words(398, y + 19, rounded(asked[i]), "right c1"));
  });
  const end = top + 14 + 30 * order.length;
  parts.push(line(middle, top + 12, middle, end - 4));
  parts.push(words(400, end + 12, _("teal: “{}” asks it; orange: it asks “{}”", symbol, symbol), "right soft"));
  const [first] = order, other = order.find((i) => i !== position);
  const place = (/** @type {number} */ i) => i === position ? _("“{}”", visible(sentence[i])) : _("“{}” ({} back)", visible(sentence[i]), position - i);
  const caption = [
    _("In layer {}, head {}, “{}” attends most to {}, with weight {}.", layer, head, symbol, place(first), percent(weights[first])),
    other === undefined ? "" : _("The query of “{}” and the key of {} have a score of {}; the other way round it is {}.", symbol, place(other), rounded(asks[other]), rounded(asked[other])),
    _("With one matrix for queries and keys, the two would be equal."),
  ].filter(Boolean).join(" ");
  return {
    picture: picture(end + 26, caption, parts), words: caption,
    head: [_("character"), _("weight"), _("score of “{}” for it", symbol), _("score of it for “{}”", symbol)],
    rows: weights.map((weight, i) => [`${visible(sentence[i])} ${i + 1}`, percent(weight), rounded(asks[i], 2), rounded(asked[i], 2)]),
  };
}
