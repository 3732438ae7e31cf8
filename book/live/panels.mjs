/** Draw what each panel shows of the recorded sentence, in the words that are given, and print it as JSON. */

import { readFileSync } from "node:fs";
import { Model, parseModel } from "./static/live/model.js";

const SENTENCE = "To be, or not to be";

const { words, panels } = JSON.parse(readFileSync(0, "utf8"));
globalThis.words = words;
const models = Object.fromEntries([...new Set(Object.values(panels))].map((name) => {
  const file = readFileSync(new URL(`static/live/${name}.bin`, import.meta.url));
  const { config, weights } = parseModel(new Uint8Array(file).buffer);
  return [name, new Model(config, weights)];
}));

const drawn = {};
for (const [name, model] of Object.entries(panels)) {
  const { compute, controls, draw } = await import(`./static/live/panels/${name}.js`);
  drawn[name] = draw(compute(models[model], SENTENCE, { ...controls, position: SENTENCE.length - 1 })).picture;
}
console.log(JSON.stringify(drawn));
