/** The length of the residual stream at one character, and what the norms make of it. */

import { bar, picture, strip, words } from "../pen.js";
import { _, rounded, visible } from "../say.js";

export const controls = { position: 0 };

/** @param {import("../model.js").Model} model @param {string} sentence @param {import("../pen.js").Choice} choice */
export function compute(model, sentence, { position }) {
  const { symbols, layers } = model.config;
  model.read([...sentence].map((symbol) => symbols.indexOf(symbol)));
  const norms = [...Array(layers).keys()].flatMap((layer) => [`blocks.${layer}.attention_norm`, `blocks.${layer}.feed_forward_norm`]);
  return {
    sentence, position,
    // The stream enters each sub-layer, and the output, through a norm of its own.
    lengths: model.stream[position].map(length),
    normed: [...norms, "norm"].map((name, i) => length(model.norm(model.stream[position][i], name))),
  };
}

/** @param {Float32Array} x */
const length = (x) => Math.sqrt(x.reduce((sum, each) => sum + each * each, 0));

/** @param {ReturnType<typeof compute>} found @returns {import("../pen.js").Drawing} */
export function draw({ sentence, position, lengths, normed }) {
  const { parts, height } = strip(2, sentence, position);
  const names = lengths.map((_length, i) => i === lengths.length - 1 ? _("output") : i % 2 ? _("feed-forward {}", (i - 1) / 2) : _("attention {}", i / 2));
  const most = Math.max(...lengths, ...normed), top = height + 20, unit = 180 / most;
  parts.push(words(2, top, _("entering"), "left soft"), words(126, top, _("the stream"), "left c0"), words(210, top, _("after its norm"), "left c1"));
  names.forEach((name, i) => {
    const y = top + 14 + 28 * i;
    parts.push(words(2, y + 10, name, "left"), bar(126, y, unit * lengths[i], 10), bar(126, y + 11, unit * normed[i], 8, "c1"));
    parts.push(words(131 + unit * Math.max(lengths[i], normed[i]), y + 9, `${rounded(lengths[i])} → ${rounded(normed[i])}`, "left soft"));
  });
  const caption = [
    _("At “{}”, the residual stream enters the first block with length {} and leaves the last with {}: sub-layers only add to it.", visible(sentence[position]), rounded(lengths[0]), rounded(lengths[lengths.length - 1])),
    _("A sub-layer reads the result of its norm, whose length does not depend on that of the stream."),
  ].join(" ");
  return {
    picture: picture(top + 18 + 28 * names.length, caption, parts), words: caption,
    head: [_("entering"), _("length of the stream"), _("after the norm")],
    rows: names.map((name, i) => [name, rounded(lengths[i], 2), rounded(normed[i], 2)]),
  };
}
