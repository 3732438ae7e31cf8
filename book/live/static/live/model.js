/**
 * The book's language models in plain JavaScript: one token at a time, with a KV cache.
 *
 * `append` computes what the chapters' `forward` computes, for the newest token alone. A vector is a
 * Float32Array. A matrix is one too, row after row, as PyTorch stores it: [out, in].
 *
 * @typedef {Record<string, Float32Array>} Weights the parameters, by their names in PyTorch
 * @typedef {"query" | "key" | "value"} Kind what a kernel convolves
 *
 * @typedef {object} Config what a file of weights says about its model
 * @property {string} title
 * @property {string} digest SHA-256 of the weights, in hexadecimal
 * @property {string} symbols the vocabulary: a token is the index of its character
 * @property {number} d_model
 * @property {number} heads
 * @property {number} d_ff
 * @property {number} layers
 * @property {number} context the most tokens that the model can read: the rows of its table of positions
 * @property {number} kernel_size width of the kernels; 0 for attention without convolutions
 * @property {"relu" | "squared-relu"} activation
 * @property {{name: string, shape: number[], dtype: "int8" | "float32"}[]} tensors in the order of the file
 */

const KINDS = /** @type {const} */ (["query", "key", "value"]);

/**
 * Read a file of weights: the length of a header, the header as JSON, and the tensors.
 *
 * An 8-bit matrix has a scale for each row, before its numbers. A weight is its number times the scale.
 *
 * @param {ArrayBuffer} file
 * @returns {{config: Config, weights: Weights, data: Uint8Array}} `data` is what the digest covers
 */
export function parseModel(file) {
  const length = new DataView(file).getUint32(0, true);
  const header = new TextDecoder().decode(new Uint8Array(file, 4, length));
  const config = /** @type {Config} */ (JSON.parse(header));
  const weights = /** @type {Weights} */ ({});
  let at = 4 + length;
  for (const { name, shape, dtype } of config.tensors) {
    const size = shape.reduce((product, side) => product * side, 1);
    if (dtype === "float32") {
      weights[name] = new Float32Array(file, at, size);
      at += 4 * size;
    } else {
      const rows = shape[0], columns = size / rows;
      const scales = new Float32Array(file, at, rows);
      const numbers = new Int8Array(file, at + 4 * rows, size);
      weights[name] = Float32Array.from(numbers, (number, i) => number * scales[Math.floor(i / columns)]);
      at += 4 * rows + size;
    }
  }
  if (at !== file.byteLength) throw new RangeError("The file of weights has the wrong length.");
  return { config, weights, data: new Uint8Array(file, 4 + length) };
}

/**
 * A linear map, y = W x + b.
 *
 * @param {Float32Array} x
 * @param {Float32Array} weight [out, in]
 * @param {Float32Array} [bias] [out]
 */
function linear(x, weight, bias) {
  const columns = x.length, rows = weight.length / columns;
  const y = new Float32Array(rows);
  // Four rows at a time: their sums do not wait for each other, and x is read once for all four.
  for (let block = 0; block < rows; block += 4) {
    const row = Math.min(block, rows - 4); // the last block may repeat some rows
    const i = row * columns, j = i + columns, k = j + columns, l = k + columns;
    let a = 0, b = 0, c = 0, d = 0;
    for (let column = 0; column < columns; column++) {
      const value = x[column];
      a += value * weight[i + column];
      b += value * weight[j + column];
      c += value * weight[k + column];
      d += value * weight[l + column];
    }
    y[row] = a;
    y[row + 1] = b;
    y[row + 2] = c;
    y[row + 3] = d;
  }
  if (bias) for (let row = 0; row < rows; row++) y[row] += bias[row];
  return y;
}

/**
 * Layer normalization: mean 0 and variance 1, then a factor and a shift for each feature.
 *
 * @param {Float32Array} x
 * @param {Float32Array} weight
 * @param {Float32Array} bias
 */
function layerNorm(x, weight, bias) {
  const size = x.length, y = new Float32Array(size);
  let mean = 0, variance = 0;
  for (let i = 0; i < size; i++) mean += x[i] / size;
  for (let i = 0; i < size; i++) variance += (x[i] - mean) ** 2 / size;
  const scale = 1 / Math.sqrt(variance + 1e-5);
  for (let i = 0; i < size; i++) y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
  return y;
}

/**
 * ReLU or its square, in place.
 *
 * @param {Float32Array} x
 * @param {Config["activation"]} kind
 */
function activate(x, kind) {
  for (let i = 0; i < x.length; i++) {
    const positive = Math.max(x[i], 0);
    x[i] = kind === "squared-relu" ? positive ** 2 : positive;
  }
  return x;
}

/**
 * Turn scores into probabilities, in place.
 *
 * @param {Float32Array} scores
 */
export function softmax(scores) {
  let largest = -Infinity, sum = 0;
  for (const score of scores) largest = Math.max(largest, score);
  for (let i = 0; i < scores.length; i++) sum += scores[i] = Math.exp(scores[i] - largest);
  for (let i = 0; i < scores.length; i++) scores[i] /= sum;
  return scores;
}

/**
 * A causal depthwise convolution at one position: y_t = sum over k of w[K-1-k] x_{t-k}.
 *
 * @param {Float32Array} inputs [seq, d_model], the inputs of all positions
 * @param {number} position t
 * @param {Float32Array} weight [K, d_model]; the last row is the current token's
 * @param {boolean[]} currentOnly for each head, whether to leave out the earlier tokens
 * @param {number} d_model
 */
function convolve(inputs, position, weight, currentOnly, d_model) {
  const y = new Float32Array(d_model), d_k = d_model / currentOnly.length;
  const last = weight.length / d_model - 1; // K - 1
  for (let back = 0; back <= last && back <= position; back++) {
    const input = (position - back) * d_model, row = (last - back) * d_model;
    for (let i = 0; i < d_model; i++) {
      const used = back === 0 || !currentOnly[Math.floor(i / d_k)];
      if (used) y[i] += weight[row + i] * inputs[input + i];
    }
  }
  return y;
}

/**
 * The first token that a model reads of a text with `length` tokens.
 *
 * A model has `context` positions. When the next token has none left, the model forgets the older half of
 * what it read and reads the other half again, from position 0. So it reads the whole text at first, and
 * later between half of `context` and all of it.
 *
 * @param {number} length
 * @param {number} context
 */
export function windowStart(length, context) {
  return length <= context ? 0 : Math.ceil((length - context) / (context / 2)) * (context / 2);
}

/** A Transformer or a Primer-EZ, with the text that it has read. */
export class Model {
  /**
   * @param {Config} config
   * @param {Weights} weights
   */
  constructor(config, weights) {
    this.config = config;
    this.weights = weights;
    /** Whether a kernel's earlier weights are left out: for each layer and kind, one switch per head. */
    this.currentOnly = Array.from({ length: config.layers }, () => ({
      query: Array(config.heads).fill(false),
      key: Array(config.heads).fill(false),
      value: Array(config.heads).fill(false),
    }));
    /** Which row of the table of positions the first token gets. */
    this.shift = 0;
    this.read([]);
  }

  /**
   * Forget everything, and read a text. Returns the logits of the token after it.
   *
   * @param {number[]} tokens
   */
  read(tokens) {
    this.text = tokens.slice(0, windowStart(tokens.length, this.config.context));
    this.forget();
    let logits = new Float32Array(this.config.symbols.length);
    for (const token of tokens.slice(this.text.length)) logits = this.append(token);
    return logits;
  }

  /** Empty the cache: for each layer, the queries, keys and values, and the inputs of the convolutions. */
  forget() {
    const { layers, context, d_model } = this.config;
    const empty = () => new Float32Array(context * d_model); // [seq, d_model]
    this.start = this.text.length;
    this.cache = Array.from({ length: layers }, () => ({
      queries: empty(), // past ones are not needed again; the chapters' panels show them
      keys: empty(),
      values: empty(),
      inputs: { query: empty(), key: empty(), value: empty() },
    }));
    /** The attention weights of each token read: [layers, heads, tokens up to this one]. */
    this.attention = /** @type {Float32Array[]} */ ([]);
    /** The residual stream of each token read: as it enters, then after each attention and each feed-forward layer. */
    this.stream = /** @type {Float32Array[][]} */ ([]);
    /** The hidden features of each token read, one list per layer, after the activation function. */
    this.hidden = /** @type {Float32Array[][]} */ ([]);
  }

  /**
   * Read one more token. Returns the logits of the next.
   *
   * @param {number} token
   * @returns {Float32Array} [vocab_size]
   */
  append(token) {
    const { d_model, layers, heads, context } = this.config, { weights } = this;
    const position = this.attention.length;
    if (position + this.shift === context) return this.read([...this.text, token]);
    this.text.push(token);
    this.attention.push(new Float32Array(layers * heads * (position + 1)));
    this.hidden.push([]);

    const embedding = weights["embedding.weight"];
    const positions = weights["positions.encoding"];
    let x = embedding.slice(token * d_model, (token + 1) * d_model);
    x = x.map((value, i) => value + positions[(position + this.shift) * d_model + i]);
    this.stream.push([x]);
    for (let layer = 0; layer < layers; layer++) x = this.block(x, layer);
    return this.logits(x);
  }

  /**
   * The logits of the next token: the final norm, then the table of embeddings again.
   *
   * @param {Float32Array} x
   */
  logits(x) {
    return linear(this.norm(x, "norm"), this.weights["embedding.weight"]);
  }

  /**
   * The layer norm of this name.
   *
   * @param {Float32Array} x
   * @param {string} name
   */
  norm(x, name) {
    return layerNorm(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
  }

  /**
   * One block: attention, then the feed-forward layer, each added to the residual stream.
   *
   * @param {Float32Array} x
   * @param {number} layer
   */
  block(x, layer) {
    const of = (/** @type {string} */ name) => this.weights[`blocks.${layer}.feed_forward.${name}`];
    const add = (/** @type {Float32Array} */ y) => x.map((value, i) => value + y[i]);
    let y = this.norm(x, `blocks.${layer}.attention_norm`);
    x = add(this.attend(y, layer));
    this.stream[this.stream.length - 1].push(x);
    y = this.norm(x, `blocks.${layer}.feed_forward_norm`);
    y = linear(y, of("expand.weight"), of("expand.bias"));
    y = activate(y, this.config.activation);
    this.hidden[this.hidden.length - 1].push(y);
    y = linear(y, of("contract.weight"), of("contract.bias"));
    x = add(y);
    this.stream[this.stream.length - 1].push(x);
    return x;
  }

  /**
   * Compute the newest token's query, and put its key and value into the cache.
   *
   * @param {Float32Array} x
   * @param {number} layer
   * @param {number} position
   */
  project(x, layer, position) {
    const { kernel_size, d_model } = this.config;
    const { queries, keys, values, inputs } = this.cache[layer];
    const [query, key, value] = KINDS.map((kind) => {
      const name = `blocks.${layer}.attention.${kind}`;
      const y = linear(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
      if (!kernel_size) return y;
      inputs[kind].set(y, position * d_model);
      const weight = this.weights[`${name}_conv.weight`];
      const off = this.currentOnly[layer][kind];
      return convolve(inputs[kind], position, weight, off, d_model);
    });
    queries.set(query, position * d_model);
    keys.set(key, position * d_model);
    values.set(value, position * d_model);
    return query;
  }

  /**
   * Multi-head attention of the newest token to all tokens.
   *
   * @param {Float32Array} x
   * @param {number} layer
   */
  attend(x, layer) {
    const { heads, d_model } = this.config, d_k = d_model / heads;
    const seq = this.attention.length;
    const query = this.project(x, layer, seq - 1);
    const { keys, values } = this.cache[layer];
    const results = new Float32Array(d_model);
    for (let head = 0; head < heads; head++) {
      // A view: what is written to `weights` stays in `attention`, for the page to draw.
      const at = (layer * heads + head) * seq;
      const weights = this.attention[seq - 1].subarray(at, at + seq);
      const first = head * d_k;
      for (let t = 0; t < seq; t++) {
        let dot = 0;
        for (let i = first; i < first + d_k; i++) dot += query[i] * keys[t * d_model + i];
        weights[t] = dot / Math.sqrt(d_k);
      }
      softmax(weights);
      for (let t = 0; t < seq; t++) {
        const weight = weights[t];
        for (let i = first; i < first + d_k; i++) results[i] += weight * values[t * d_model + i];
      }
    }
    const name = `blocks.${layer}.attention.output`;
    return linear(results, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
  }
}
