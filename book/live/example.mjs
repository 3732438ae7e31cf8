/** Compute the page's example with the code that runs in the page, and print it as JSON. */

import { readFileSync } from "node:fs";
import { Model, parseModel } from "./static/live/model.js";
import { distribution, sample, seeded } from "./static/live/sampling.js";

const PROMPT = "ROMEO.\nO, speak again, bright angel!", LENGTH = 220, SEED = 1;
const SETTINGS = { temperature: 0.8, topK: 0, topP: 0.95 };
const SHOWN = 10; // rows of the next character's distribution
const HEAD = { layer: 0, head: 0 };
const STRIP = { text: "To be or not to", layer: 1, head: 3, features: 4, shown: 4, length: 4 };

const round = (/** @type {number} */ value) => Math.round(value * 1e4) / 1e4;

const models = ["transformer", "primer-ez"].map((name) => {
  const file = readFileSync(new URL(`static/live/${name}.bin`, import.meta.url));
  const { config, weights } = parseModel(new Uint8Array(file).buffer);
  const model = new Model(config, weights), random = seeded(SEED);
  let logits = model.read([...PROMPT].map((symbol) => config.symbols.indexOf(symbol))), text = "";
  for (let i = 0; i < LENGTH; i++) {
    const token = sample(distribution(logits, SETTINGS).after, random);
    text += config.symbols[token];
    logits = model.append(token);
  }
  const { order, before, after } = distribution(logits, SETTINGS);
  const seq = model.attention.length, at = (HEAD.layer * config.heads + HEAD.head) * seq;
  return {
    name, digest: config.digest, text,
    next: order.slice(0, SHOWN).map((token) => [config.symbols[token], round(before[token]), round(after[token])]),
    attention: [...model.attention[seq - 1].subarray(at, at + seq)].map(round),
  };
});

/** What the welcome page shows: one model reads a text, from its tokens to the next ones. */
function strip() {
  const file = readFileSync(new URL("static/live/transformer.bin", import.meta.url));
  const { config, weights } = parseModel(new Uint8Array(file).buffer);
  const model = new Model(config, weights), tokens = [...STRIP.text].map((symbol) => config.symbols.indexOf(symbol));
  let logits = model.read(tokens), text = "";
  const { order, before } = distribution(logits, { temperature: 1, topK: 0, topP: 1 });
  const seq = model.attention.length, at = (STRIP.layer * config.heads + STRIP.head) * seq;
  const attention = [...model.attention[seq - 1].subarray(at, at + seq)].map(round);
  for (let i = 0; i < STRIP.length; i++) {
    const token = logits.indexOf(Math.max(...logits));
    text += config.symbols[token];
    logits = model.append(token);
  }
  const { d_model } = config, features = [...Array(STRIP.features).keys()];
  return {
    ...STRIP, layers: config.layers, heads: config.heads, d_model, tokens,
    // A token's row plus its position's: the vector that enters the first block.
    vectors: tokens.map((token, t) => features.map((i) => round(
      weights["embedding.weight"][token * d_model + i] + weights["positions.encoding"][t * d_model + i]))),
    attention, next: order.slice(0, STRIP.shown).map((token) => [config.symbols[token], round(before[token])]), written: text,
  };
}

console.log(JSON.stringify({ prompt: PROMPT, seed: SEED, settings: SETTINGS, ...HEAD, models, strip: strip() }, null, 1));
