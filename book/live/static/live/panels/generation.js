/** What temperature, top-k and top-p make of the next character's probabilities. */

import { bar, picture, strip, words } from "../pen.js";
import { _, percent, visible } from "../say.js";
import { distribution } from "../sampling.js";

export const controls = { temperature: 0.8, topK: 0, topP: 0.9 };
const SHOWN = 10;

/** @param {import("../model.js").Model} model @param {string} sentence @param {import("../pen.js").Choice} choice */
export function compute(model, sentence, { temperature, topK, topP }) {
  const { symbols } = model.config;
  const logits = model.read([...sentence].map((symbol) => symbols.indexOf(symbol)));
  const { order, before } = distribution(logits, { temperature: 1, topK: 0, topP: 1 });
  const { after } = distribution(logits, { temperature, topK, topP });
  return {
    sentence, temperature, topK, topP,
    kept: after.reduce((count, share) => count + Number(share > 0), 0),
    all: symbols.length,
    next: order.slice(0, SHOWN).map((token) => ({ symbol: symbols[token], before: before[token], after: after[token] })),
  };
}

/** @param {ReturnType<typeof compute>} found @returns {import("../pen.js").Drawing} */
export function draw({ sentence, temperature, kept, all, next }) {
  const { parts, height } = strip(2, sentence, -1);
  const most = Math.max(...next.flatMap(({ before, after }) => [before, after])), top = height + 20, unit = 240 / most;
  parts.push(words(30, top, _("the model's probabilities"), "left c5"), words(210, top, _("what is sampled from"), "left c0"));
  next.forEach(({ symbol, before, after }, i) => {
    const y = top + 14 + 24 * i;
    parts.push(words(12, y + 9, visible(symbol), "m strong"), bar(30, y, unit * before, 8, "c5"), bar(30, y + 9, unit * after, 10));
    parts.push(words(36 + unit * Math.max(before, after), y + 9, `${percent(before)} → ${percent(after)}`, after ? "left" : "left soft"));
  });
  const [first] = next;
  const caption = [
    _("{} of {} characters can come next.", kept, all),
    _("“{}” had {} and now has {}.", visible(first.symbol), percent(first.before), percent(first.after)),
    temperature === 0 ? _("Temperature 0 always takes the most probable one.") : temperature < 1 ? _("A temperature below 1 makes probable characters more probable.") : temperature > 1 ? _("A temperature above 1 makes the probabilities more even.") : "",
  ].filter(Boolean).join(" ");
  return {
    picture: picture(top + 20 + 24 * next.length, caption, parts), words: caption,
    head: [_("character"), _("the model's probability"), _("sampled from")],
    rows: next.map(({ symbol, before, after }) => [visible(symbol), percent(before), percent(after)]),
  };
}
