/** What the model would predict after each block, if the output layer came there. */

import { cell, picture, strip, words } from "../pen.js";
import { _, percent, visible } from "../say.js";
import { distribution } from "../sampling.js";

export const controls = { position: 0 };
const SHOWN = 4;

/** @param {import("../model.js").Model} model @param {string} sentence @param {import("../pen.js").Choice} choice */
export function compute(model, sentence, { position }) {
  const { symbols, layers } = model.config;
  model.read([...sentence].map((symbol) => symbols.indexOf(symbol)));
  const actual = sentence[position + 1] ?? "";
  const stages = [...Array(layers + 1).keys()].map((block) => {
    const logits = model.logits(model.stream[position][2 * block]);
    const { order, before } = distribution(logits, { temperature: 1, topK: 0, topP: 1 });
    const next = order.slice(0, SHOWN).map((token) => /** @type {[string, number]} */ ([symbols[token], before[token]]));
    return { next, actual: actual ? before[symbols.indexOf(actual)] : 0 };
  });
  return { sentence, position, actual, stages };
}

/** @param {ReturnType<typeof compute>} found @returns {import("../pen.js").Drawing} */
export function draw({ sentence, position, actual, stages }) {
  const { parts, height } = strip(2, sentence, position);
  const names = stages.map((_stage, i) => i ? _("block {}", i - 1) : _("embedding"));
  const top = height + 20, left = 86, wide = 66;
  parts.push(words(2, top, _("read after"), "left soft"), words(left, top, _("most probable next characters"), "left soft"));
  if (actual) parts.push(words(398, top, _("“{}”", visible(actual)), "right c1"));
  stages.forEach((stage, i) => {
    const y = top + 14 + 30 * i;
    parts.push(words(2, y + 13, names[i], "left"));
    stage.next.forEach(([symbol, share], n) => {
      const x = left + wide * n;
      parts.push(`<rect class="box" x="${x}" y="${y}" width="${wide - 3}" height="26" rx="2"/>`, cell(x, y, wide - 3, 26, 0.75 * share, symbol === actual ? "c1" : "c0"));
      parts.push(words(x + 10, y + 13, visible(symbol), "m strong"), words(x + wide - 7, y + 13, percent(share), "right"));
    });
    if (actual) parts.push(words(398, y + 13, percent(stage.actual), "right c1"));
  });
  const last = stages[stages.length - 1];
  const caption = [
    _("After “{}”, the whole model predicts “{}” with {}. Read right after the embedding, it would predict “{}”.", visible(sentence[position]), visible(last.next[0][0]), percent(last.next[0][1]), visible(stages[0].next[0][0])),
    actual ? _("The sentence continues with “{}”, which gets {}.", visible(actual), percent(last.actual)) : "",
    _("Each block adds to the same stream, so the final norm and the output matrix can read it anywhere."),
  ].filter(Boolean).join(" ");
  return {
    picture: picture(top + 18 + 30 * stages.length, caption, parts), words: caption,
    head: [_("read after"), ...Array.from({ length: SHOWN }, (_nothing, i) => `${i + 1}.`), ...(actual ? [_("“{}”", visible(actual))] : [])],
    rows: stages.map((stage, i) => [names[i], ...stage.next.map(([symbol, share]) => `${visible(symbol)} ${percent(share)}`), ...(actual ? [percent(stage.actual)] : [])]),
  };
}
