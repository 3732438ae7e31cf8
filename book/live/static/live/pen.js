/**
 * A pen for the panels' pictures: SVG as text, in the style of the book's pictures (`drawing.css`).
 *
 * A panel is a module that exports `controls`, what a reader can choose and its value at first, `compute` and
 * `draw`. `compute` returns numbers and draws nothing;
 * `draw` makes of them a picture, a sentence and a table. So the same code draws in the page, from what the worker
 * computed, and while the book is built, for the recorded sentence.
 *
 * @typedef {object} Choice what a reader has chosen
 * @property {number} position the character
 * @property {number} layer
 * @property {number} head
 * @property {number} feature -1 takes the one that fires most
 * @property {number} shift
 * @property {number} temperature
 * @property {number} topK
 * @property {number} topP
 *
 * @typedef {object} Drawing
 * @property {string} picture SVG
 * @property {string} words what it shows, in one or two sentences
 * @property {string[]} head the table's names of columns
 * @property {(string | number)[][]} rows
 * @property {number[]} [features] what can be chosen
 */

import { visible } from "./say.js";

export const WIDTH = 400; // units, about the width of a phone

const escaped = (/** @type {string} */ text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const short = (/** @type {number} */ length) => String(Math.round(100 * length) / 100);
const size = (/** @type {number[]} */ ...lengths) => {
  const [x, y, width, height] = lengths.map(short);
  return `x="${x}" y="${y}" width="${width}" height="${height}"`;
};

/** @param {number} height @param {string} label @param {string[]} parts */
export const picture = (height, label, parts) =>
  `<svg class="picture" xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 ${WIDTH} ${short(height)}" aria-label="${escaped(label)}">`
  + `<rect class="ground" width="100%" height="100%"/>${parts.join("")}</svg>`;

/**
 * Words whose middle is at `y`. `kind` is any of the classes of `drawing.css`: `left`, `right`, `soft`, `m` for code.
 *
 * @param {number} x @param {number} y @param {string} text @param {string} [kind]
 */
export function words(x, y, text, kind = "") {
  const code = kind.split(" ").includes("m"), inside = escaped(text);
  return `<text class="${kind.replace(/\bm\b/, "")}" x="${short(x)}" y="${short(y + 4.5)}">${code ? `<tspan class="m">${inside}</tspan>` : inside}</text>`;
}

/** A bar from `x` on; one with a negative length goes to the left. @param {number} x @param {number} y @param {number} length @param {number} height @param {string} [kind] */
export const bar = (x, y, length, height, kind = "c0") =>
  `<rect class="tint ${kind}" ${size(Math.min(x, x + length), y, Math.abs(length), height)} fill-opacity=".55"/>`;

/** @param {number} x @param {number} y @param {number} x2 @param {number} y2 @param {string} [kind] */
export const line = (x, y, x2, y2, kind = "") => `<path class="line ${kind}" d="M${short(x)} ${short(y)}L${short(x2)} ${short(y2)}"/>`;

/** One cell, shaded from 0 to 1. @param {number} x @param {number} y @param {number} width @param {number} height @param {number} shade @param {string} [kind] */
export const cell = (x, y, width, height, shade, kind = "c0") =>
  `<rect class="tint ${kind}" ${size(x, y, width, height)} fill-opacity="${(0.85 * Math.min(1, shade)).toFixed(2)}"/>`;

/**
 * A picture of numbers: blue where they are positive, orange where negative, darker the larger they are.
 *
 * @param {number} x @param {number} y @param {number} width @param {number} height the picture's
 * @param {number[][]} rows @param {number} most the number that is darkest
 */
export function heat(x, y, width, height, rows, most) {
  const LEVELS = 8, wide = width / rows[0].length, high = height / rows.length;
  /** @type {Record<string, string>} */
  const paths = {};
  rows.forEach((row, i) => row.forEach((value, j) => {
    const level = Math.min(LEVELS, Math.round(LEVELS * Math.abs(value) / most));
    if (!level) return;
    const kind = `${value > 0 ? "c2" : "c1"}" fill-opacity="${level / LEVELS}`;
    paths[kind] = `${paths[kind] ?? ""}M${short(x + j * wide)} ${short(y + i * high)}h${short(wide)}v${short(high)}h-${short(wide)}z`;
  }));
  return `<rect class="box" ${size(x, y, width, height)}/>`
    + Object.entries(paths).map(([kind, path]) => `<path class="tint ${kind}" d="${path}"/>`).join("");
}

/**
 * A sentence, a cell for each character, shaded by numbers from 0 to 1. A click on a cell chooses it.
 *
 * @param {number} y @param {string} sentence @param {number} chosen @param {number[]} [shades] @param {string} [kind]
 * @returns {{parts: string[], height: number}}
 */
export function strip(y, sentence, chosen, shades = [], kind = "c0") {
  const ROW = 32, wide = WIDTH / ROW, high = 22;
  const parts = [...sentence].map((symbol, i) => {
    const left = i % ROW * wide, top = y + Math.floor(i / ROW) * (high + 3);
    return `<g data-at="${i}"><rect class="box" ${size(left + 0.6, top, wide - 1.2, high)} rx="2" stroke-opacity=".5"/>`
      + (shades[i] ? cell(left + 0.6, top, wide - 1.2, high, shades[i], kind) : "")
      + (i === chosen ? `<rect class="line thick c1" ${size(left + 0.6, top, wide - 1.2, high)} rx="2"/>` : "")
      + `${words(left + wide / 2, top + high / 2, visible(symbol), "m")}</g>`;
  });
  return { parts, height: Math.ceil(sentence.length / ROW) * (high + 3) };
}
