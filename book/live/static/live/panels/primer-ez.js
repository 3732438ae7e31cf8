/** A head of Primer-EZ with and without its convolutions, and its kernels. */

import { heat, picture, strip, words } from "../pen.js";
import { _, percent, visible } from "../say.js";

export const controls = { position: 0, layer: 0, head: 3 };
const KINDS = /** @type {const} */ (["query", "key", "value"]);

/** @param {import("../model.js").Model} model @param {string} sentence @param {import("../pen.js").Choice} choice */
export function compute(model, sentence, { position, layer, head }) {
  const { symbols, heads, d_model, kernel_size } = model.config, d_k = d_model / heads;
  const seq = position + 1, at = (layer * heads + head) * seq;
  /** The head's weights; without its convolutions, the kernels' earlier weights are zero. @param {boolean} currentOnly */
  const weights = (currentOnly) => {
    for (const kind of KINDS) model.currentOnly[layer][kind][head] = currentOnly;
    model.read([...sentence].map((symbol) => symbols.indexOf(symbol)));
    for (const kind of KINDS) model.currentOnly[layer][kind][head] = false;
    return [...model.attention[position].subarray(at, at + seq)];
  };
  const kernels = KINDS.map((kind) => {
    const kernel = model.weights[`blocks.${layer}.attention.${kind}_conv.weight`];
    return [...Array(kernel_size).keys()].map((tap) => [...kernel.subarray(tap * d_model + head * d_k, tap * d_model + (head + 1) * d_k)]);
  });
  return { sentence, position, layer, head, with: weights(false), without: weights(true), kernels };
}

/** @param {ReturnType<typeof compute>} found @returns {import("../pen.js").Drawing} */
export function draw({ sentence, position, layer, head, kernels, ...found }) {
  const symbol = visible(sentence[position]), parts = [];
  let y = 12;
  for (const [name, weights] of [[_("with its convolutions"), found.with], [_("without: the current token only"), found.without]]) {
    parts.push(words(2, y, String(name), "left strong"));
    const shown = strip(y + 14, sentence, position, /** @type {number[]} */ (weights).map(Math.sqrt));
    parts.push(...shown.parts);
    y += shown.height + 34;
  }
  const most = Math.max(...kernels.flat(2).map(Math.abs)), wide = 112;
  KINDS.forEach((kind, i) => {
    const x = 62 + (wide + 1) * i;
    parts.push(words(x + wide / 2, y, kind, "m"), heat(x, y + 12, wide - 4, 54, kernels[i], most));
  });
  [_("two back"), _("one back"), _("current")].forEach((name, tap) => parts.push(words(56, y + 21 + 18 * tap, name, "right soft")));
  const top = (/** @type {number[]} */ weights) => weights.indexOf(Math.max(...weights));
  const [a, b] = [top(found.with), top(found.without)];
  const place = (/** @type {number} */ i) => i === position ? _("“{}”", visible(sentence[i])) : _("“{}” ({} back)", visible(sentence[i]), position - i);
  const caption = [
    _("In layer {}, head {}, “{}” attends most to {} with its convolutions, weight {}; without them to {}, weight {}.", layer, head, symbol, place(a), percent(found.with[a]), place(b), percent(found.without[b])),
    _("Below, the head's kernels: a column per channel, blue is positive, orange negative. With them a query or a key can stand for up to three characters in a row."),
  ].join(" ");
  return {
    picture: picture(y + 76, caption, parts), words: caption,
    head: [_("character"), _("with convolutions"), _("without")],
    rows: found.with.map((weight, i) => [`${visible(sentence[i])} ${i + 1}`, percent(weight), percent(found.without[i])]),
  };
}
