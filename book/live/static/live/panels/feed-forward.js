/** The hidden features that fire on a character, and the lines on which one of them fires most. */

import { bar, line, picture, strip, words } from "../pen.js";
import { _, percent, rounded, visible } from "../say.js";
import { LINES } from "./passages.js";

export const controls = { position: 0, layer: 0, feature: -1 };
const SHOWN = 8, TEXTS = 4, BACK = 26;

/** The features of all characters of the lines: a model reads them once. @type {WeakMap<object, Float32Array[][][]>} */
const read = new WeakMap();

/** @param {import("../model.js").Model} model @param {string} text */
function hidden(model, text) {
  model.read([...text].map((symbol) => model.config.symbols.indexOf(symbol)));
  return model.hidden;
}

/** @param {import("../model.js").Model} model @param {string} sentence @param {import("../pen.js").Choice} choice */
export function compute(model, sentence, { position, layer, feature }) {
  if (!read.has(model)) read.set(model, LINES.map((text) => hidden(model, text)));
  const own = hidden(model, sentence), values = [...own[position][layer]];
  const order = values.map((_value, i) => i).filter((i) => values[i] > 0).sort((a, b) => values[b] - values[a]);
  const chosen = order.includes(feature) ? feature : order[0] ?? 0;
  const texts = [sentence, ...LINES].flatMap((text, i) => (i ? read.get(model)[i - 1] : own).map((features, at) => ({ text, at, value: features[layer][chosen] })));
  texts.sort((a, b) => b.value - a.value);
  const sum = (/** @type {number[]} */ numbers) => numbers.reduce((all, each) => all + each, 0);
  const relu = order.map((i) => values[i]), square = relu.map((value) => value ** 2);
  return {
    sentence, position, layer, feature: chosen, fires: order.length, all: values.length,
    features: order.slice(0, SHOWN),
    values: relu.slice(0, SHOWN),
    share: { relu: sum(relu.slice(0, SHOWN)) / sum(relu), square: sum(square.slice(0, SHOWN)) / sum(square) },
    texts: texts.slice(0, TEXTS),
  };
}

/** @param {ReturnType<typeof compute>} found @returns {import("../pen.js").Drawing} */
export function draw({ sentence, position, layer, feature, fires, all, features, values, share, texts }) {
  const { parts, height } = strip(2, sentence, position), symbol = visible(sentence[position]);
  const top = height + 20, left = 62, right = 236, most = values[0] || 1;
  parts.push(words(2, top, _("feature"), "left soft"), words(left, top, "ReLU", "left strong c5"), words(right, top, _("its square"), "left strong c0"));
  features.forEach((each, i) => {
    const y = top + 12 + 22 * i, value = values[i];
    parts.push(words(2, y + 9, String(each), each === feature ? "left strong c1" : "left"));
    parts.push(bar(left, y + 2, 110 * value / most, 14, "c5"), words(left + 4 + 110 * value / most, y + 9, rounded(value, 2), "left soft"));
    parts.push(bar(right, y + 2, 110 * (value / most) ** 2, 14), words(right + 4 + 110 * (value / most) ** 2, y + 9, rounded(value ** 2, 2), "left soft"));
  });
  let y = top + 30 + 22 * features.length;
  parts.push(words(2, y, _("Where feature {} fires most", feature), "left strong"), words(340, y, "ReLU", "right c5"), words(398, y, _("square"), "right c0"));
  texts.forEach(({ text, at, value }, i) => {
    const from = Math.max(0, at - BACK + 6), shown = text.slice(from, from + BACK + 8);
    y = top + 40 + 22 * (features.length + 1 + i);
    parts.push(`<rect class="tint c1" x="${2 + 7.2 * (at - from)}" y="${y - 9}" width="7.2" height="18" fill-opacity=".4"/>`);
    parts.push(`<text class="left" x="2" y="${y + 4.5}" xml:space="preserve"><tspan class="m" textLength="${(7.2 * shown.length).toFixed(1)}">${shown.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`)}</tspan></text>`);
    parts.push(words(340, y, rounded(value, 2), "right"), words(398, y, rounded(value ** 2, 2), "right"));
  });
  const caption = [
    _("In layer {}, {} of {} features fire on “{}”.", layer, fires, all, symbol),
    _("The {} strongest have {} of the sum with ReLU, {} with its square: squaring makes the strong stand out.", features.length, percent(share.relu), percent(share.square)),
    _("The lines are of plays that the model did not see in training, and your sentence."),
  ].join(" ");
  return {
    picture: picture(y + 16, caption, parts), words: caption,
    head: [_("feature"), "ReLU", _("its square")],
    rows: [
      ...features.map((each, i) => [String(each), rounded(values[i], 3), rounded(values[i] ** 2, 3)]),
      ...texts.map(({ text, at, value }) => [`${feature}: ${text.slice(Math.max(0, at - 12), at)}[${text[at]}]`, rounded(value, 3), rounded(value ** 2, 3)]),
    ],
  };
}
