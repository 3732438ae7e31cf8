/**
 * Runs the models away from the page, which stays free while they compute. Each request gets one reply.
 *
 * @typedef {object} Source a file of weights that the page wants
 * @property {string} name
 * @property {string} title
 * @property {string} url
 * @property {number} bytes
 * @property {string} digest
 */

import { Model, parseModel } from "./model.js";
import { distribution, sample, seeded } from "./sampling.js";

/** An error that the page says in its language: a text with `{}` for each value. */
class Said extends Error {
  /** @param {string} text @param {(string | number)[]} values */
  constructor(text, ...values) {
    super(text);
    this.parts = [text, ...values];
  }
}

/** @type {{name: string, model: Model, logits: Float32Array, random: () => number, sent: number}[]} */
let writers = [];

/** What the page may ask for. Each method returns what it gets. */
const requests = {
  /** @param {{sources: Source[]}} request */
  async load({ sources }) {
    const models = [];
    for (const source of sources) models.push(await load(source));
    writers = models.map((model, i) => ({
      name: sources[i].name, model, logits: new Float32Array(0), random: seeded(0), sent: 0,
    }));
    return models.map(({ config, weights }, i) => ({
      name: sources[i].name, ...config, tensors: undefined,
      kernels: Object.fromEntries(Object.entries(weights).filter(([name]) => name.includes("_conv"))),
    }));
  },

  /** Read a text from the start. @param {{text: string, seed: number, settings: import("./sampling.js").Settings}} request */
  read({ text, seed, settings }) {
    for (const writer of writers) {
      const { symbols } = writer.model.config;
      writer.logits = writer.model.read([...text].map((symbol) => symbols.indexOf(symbol)));
      writer.random = seeded(seed);
      writer.sent = 0;
    }
    return writers.map((writer) => news(writer, "", settings));
  },

  /** Write `count` characters. @param {{count: number, settings: import("./sampling.js").Settings}} request */
  write({ count, settings }) {
    return writers.map((writer) => {
      const { model } = writer;
      let text = "";
      for (let i = 0; i < count; i++) {
        const token = sample(distribution(writer.logits, settings).after, writer.random);
        const { start } = model;
        writer.logits = model.append(token);
        if (model.start !== start) writer.sent = 0; // it has read the half of its window again
        text += model.config.symbols[token];
      }
      return news(writer, text, settings);
    });
  },

  /**
   * Switch kernels to the current token only, or back, and read the text again.
   * @param {{currentOnly: Model["currentOnly"], settings: import("./sampling.js").Settings}} request
   */
  switch({ currentOnly, settings }) {
    for (const writer of writers.filter(({ model }) => model.config.kernel_size)) {
      writer.model.currentOnly = currentOnly;
      writer.logits = writer.model.read(writer.model.text);
      writer.sent = 0;
    }
    return writers.map((writer) => news(writer, "", settings));
  },

  /**
   * Compute what a chapter's panel shows of a sentence.
   * @param {{panel: string, sentence: string, choice: import("./pen.js").Choice}} request
   */
  async compute({ panel, sentence, choice }) {
    const { compute } = await import(`./${panel}`);
    return compute(writers[0].model, sentence, choice);
  },
};

/**
 * What is new since the last reply: the text, the attention of tokens not yet sent, and the next token's odds.
 *
 * @param {typeof writers[number]} writer
 * @param {string} text
 * @param {import("./sampling.js").Settings} settings
 */
function news(writer, text, settings) {
  const { name, model, logits, sent } = writer;
  writer.sent = model.attention.length;
  return {
    name, text, sent, start: model.start,
    attention: model.attention.slice(sent),
    ...distribution(logits, settings),
  };
}

/** @param {Source} source */
async function load({ title, url, bytes, digest }) {
  const response = await fetch(url, { cache: "force-cache" }).catch(() => {
    throw new Said("The weights of {} could not be loaded: the site does not answer.", title);
  });
  if (!response.ok) throw new Said("The weights of {} could not be loaded: the site answers {}.", title, response.status);
  const file = await response.arrayBuffer();
  const broken = new Said("The file of {}'s weights is broken or out of date.", title);
  if (file.byteLength !== bytes) throw broken;
  const { config, weights, data } = parseModel(file);
  // Browsers compute digests on secure pages only: https, or this machine.
  if (crypto.subtle) {
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
    const found = [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (found !== digest) throw broken;
  }
  return new Model(config, weights);
}

onmessage = async ({ data: { id, type, ...request } }) => {
  try {
    postMessage({ id, reply: await requests[/** @type {keyof typeof requests} */ (type)](request) });
  } catch (error) {
    postMessage({ id, error: error instanceof Said ? error.parts : [error instanceof Error ? error.message : String(error)] });
  }
};
