/**
 * Choose the next token from logits, as the chapter on generation does.
 *
 * @typedef {object} Settings
 * @property {number} temperature 0 takes the most probable token
 * @property {number} topK how many tokens to keep; 0 keeps all
 * @property {number} topP keep the most probable tokens until their probabilities sum to this; 1 keeps all
 */

import { softmax } from "./model.js";

/**
 * The probabilities before and after the cuts. Both have the temperature in them.
 *
 * @param {Float32Array} logits
 * @param {Settings} settings
 */
export function distribution(logits, { temperature, topK, topP }) {
  const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a]);
  const before = softmax(logits.map((logit) => logit / (temperature || 1)));
  let kept = order;
  if (temperature === 0) {
    kept = order.slice(0, 1);
  } else if (topK) {
    // Tokens that tie with the last one stay.
    const threshold = logits[order[Math.min(topK, order.length) - 1]];
    kept = order.filter((token) => logits[token] >= threshold);
  }
  if (topP < 1) {
    // Top-p sums the probabilities that top-k has left, scaled up to 1.
    const whole = kept.reduce((sum, token) => sum + before[token], 0);
    let sum = 0;
    kept = kept.filter((token) => {
      const reached = sum >= topP;
      sum += before[token] / whole;
      return !reached;
    });
  }
  const after = new Float32Array(logits.length);
  const whole = kept.reduce((sum, token) => sum + before[token], 0);
  for (const token of kept) after[token] = before[token] / whole;
  return { order, before, after };
}

/**
 * Draw a token by its probability.
 *
 * @param {Float32Array} probabilities
 * @param {() => number} random uniform between 0 and 1
 */
export function sample(probabilities, random) {
  const target = random();
  let sum = 0, last = 0;
  for (const [token, probability] of probabilities.entries()) {
    if (probability) last = token;
    sum += probability;
    if (target < sum) return token;
  }
  return last; // the sum of all can be just below 1, by rounding
}

/**
 * A source of random numbers that a seed determines (mulberry32). JavaScript's own cannot be seeded.
 *
 * @param {number} seed
 * @returns {() => number}
 */
export function seeded(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
