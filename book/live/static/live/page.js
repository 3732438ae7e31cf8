/*
 * The page "Write with it": asks the worker for text, and draws what it replies. The page shows a recorded
 * example until the reader asks for the models; without scripts it stays.
 */
(() => {
  const _ = (text, ...values) => values.reduce((said, value) => said.replace("{}", value), window.words?.[text] ?? text);
  const script = document.currentScript.src;
  const live = document.querySelector(".live");
  const $ = (selector, from = live) => from.querySelector(selector);
  const $$ = (selector, from = live) => [...from.querySelectorAll(selector)];
  const { sources, context } = JSON.parse(live.dataset.models);
  const LONGEST_BEGINNING = 2000, LONGEST = 5000, SHOWN = 10;
  const GAP = 4; // pixels between the squares of two heads

  const status = $(".live-status"), controls = $(".live-controls"), loadButton = $(".live-load button");
  const field = Object.fromEntries($$("[name]", controls).map((input) => [input.name, input]));
  const shown = { layer: $("[name=layer]"), head: $("[name=head]") };
  const say = (message, wrong = false) => {
    status.textContent = message;
    status.classList.toggle("live-status--wrong", wrong);
  };
  const quoted = (symbol) => _("“{}”", symbol);
  const visible = (symbol) => ({ "\n": "↵", " ": "␣" })[symbol] ?? symbol;
  const percent = (share) => `${Math.round(100 * share)}%`;

  // ---------- the worker: one request at a time, in the order of the clicks ----------

  let worker, number = 0, turn = Promise.resolve();
  const waiting = new Map();

  function start() {
    worker = new Worker(new URL("worker.js", script), { type: "module" });
    worker.onmessage = ({ data: { id, reply, error } }) => {
      const [resolve, reject] = waiting.get(id);
      waiting.delete(id);
      error === undefined ? resolve(reply) : reject(new Error(_(...error)));
    };
    worker.onerror = () => {
      for (const [, reject] of waiting.values()) reject(new Error(_("The models stopped working in this browser.")));
      waiting.clear();
    };
  }

  const ask = (type, request) => new Promise((resolve, reject) => {
    waiting.set(++number, [resolve, reject]);
    worker.postMessage({ id: number, type, ...request });
  });

  /** Do `act` after everything that was asked for before. An error becomes a message. */
  const inTurn = (act) => turn = turn.then(act).catch((error) => {
    running = false;
    say(`${error.message} ${_("Reload the page to begin again.")}`, true);
  });

  // ---------- loading ----------

  loadButton.addEventListener("click", async () => {
    loadButton.disabled = true;
    say(_("Loading the models…"));
    try {
      start();
      // The paths in `sources` are relative to this script.
      for (const model of await ask("load", { sources: sources.map((each) => ({ ...each, url: new URL(each.url, script).href })) })) {
        models.set(model.name, new View(model));
      }
    } catch (error) {
      worker?.terminate();
      loadButton.disabled = false;
      loadButton.textContent = _("Try again");
      const hint = location.protocol === "file:" ? _("They need a web server; this page was opened from a file.") : _("The recorded example stays.");
      return say(`${error.message} ${hint}`, true);
    }
    $(".live-load").hidden = true;
    $(".live-recorded").hidden = true;
    for (const part of $$(".live-after")) part.hidden = false;
    makeKernels();
    await restart();
    say(_("Both models are loaded. From here on, the page works offline."));
    field.beginning.focus({ preventScroll: true });
  });

  // ---------- writing ----------

  const settings = () => ({
    temperature: Number(field.temperature.value),
    topK: field.topK.value ? Math.max(1, Math.round(field.topK.valueAsNumber)) : 0,
    topP: Number(field.topP.value),
  });
  let beginning = "", length = 0, running = false;

  // On a narrow screen the settings are folded, and the texts are below the buttons.
  const narrow = matchMedia("(max-width: 599.98px)"), more = $(".live-more");
  const fold = () => { more.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  const inSight = () => {
    if ($$(".live-text").some((text) => text.getBoundingClientRect().bottom > innerHeight)) $(".live-buttons").scrollIntoView();
  };

  /** The reader's beginning, or nothing if the models cannot read it: then a message says why. */
  function checked() {
    const text = field.beginning.value, known = models.values().next().value.config.symbols;
    const unknown = [...new Set(text)].filter((symbol) => !known.includes(symbol));
    const wrong = text === "" ? _("Type at least one character for the models to continue.")
      : text.length > LONGEST_BEGINNING ? _("The beginning has {} characters. Use at most {}; the models see the last {}.", text.length, LONGEST_BEGINNING, context)
      : unknown.length ? _("The models do not know {}. They know the {} characters of the plays: English letters, digits, spaces and common punctuation.", unknown.slice(0, 8).map(quoted).join(_(", ")), known.length)
      : "";
    field.beginning.toggleAttribute("aria-invalid", Boolean(wrong));
    if (wrong) say(wrong, true);
    else if (status.matches(".live-status--wrong")) say("");
    return wrong ? "" : text;
  }

  /** Let both models read the beginning, and forget what they wrote. */
  function restart() {
    running = false;
    return inTurn(async () => {
      const text = checked();
      if (!text) return;
      const replies = await ask("read", { text, seed: field.seed.valueAsNumber || 0, settings: settings() });
      beginning = text; // not before the replies, because an earlier one may be drawn until then
      length = 0;
      show(replies);
    });
  }

  /** Write `count` characters with both models. Returns whether there is room for more. */
  async function write(count) {
    count = Math.min(count, LONGEST - length);
    length += count;
    show(await ask("write", { count, settings: settings() }));
    return length < LONGEST;
  }

  async function run() {
    const began = performance.now(), from = length;
    running = true;
    say(_("Writing…"));
    $("[data-act=run]").textContent = _("Stop");
    let room = true;
    while (running && room) {
      const pace = Number(field.pace.value);
      const next = new Promise((done) => setTimeout(done, pace ? 1000 / pace : 0));
      await inTurn(async () => { if (running) room = await write(pace ? 1 : 8); });
      await next;
    }
    running = false;
    $("[data-act=run]").textContent = _("Run");
    if (status.matches(".live-status--wrong")) return;
    const speed = Math.round(2 * (length - from) / (performance.now() - began) * 1000);
    const why = room ? _("Stopped.") : _("Stopped at {} characters. Press “Start again” for a new text.", LONGEST);
    say(`${asleep ? _("Paused while this tab was in the background. Press “Run” to continue.") : why} ${_("Each model wrote {} characters; together {} per second.", length - from, speed)}`);
  }

  let asleep = false;
  document.addEventListener("visibilitychange", () => {
    asleep = document.hidden && running;
    if (document.hidden) running = false;
  });

  const acts = {
    one: () => inTurn(async () => {
      running = false;
      if (!checked()) return;
      inSight();
      if (length >= LONGEST) return say(_("The text has {} characters, the most that this page writes. Press “Start again”.", LONGEST), true);
      await write(1);
      say([...models.values()].map((view) => _("{}: “{}”", view.config.title, visible(view.written.at(-1)))).join(_(", ")));
    }),
    run: () => {
      if (running) return running = false;
      asleep = false;
      if (!checked()) return;
      inSight();
      run();
    },
    restart: () => restart().then(() => { if (!status.matches(".live-status--wrong")) say(_("Back at the beginning.")); }),
  };
  for (const button of $$("[data-act]")) button.addEventListener("click", async () => {
    if (typing) await readTyped();
    acts[button.dataset.act]();
  });
  controls.addEventListener("submit", (event) => event.preventDefault());

  let typing = 0;
  function readTyped() {
    clearTimeout(typing);
    typing = 0;
    return restart();
  }
  field.beginning.addEventListener("input", () => {
    running = false;
    clearTimeout(typing);
    typing = setTimeout(readTyped, 250);
  });
  field.seed.addEventListener("change", () => restart());
  for (const input of [field.temperature, field.topK, field.topP]) {
    input.addEventListener("input", () => {
      const output = $("output", input.parentElement);
      if (output) output.textContent = input.value;
      inTurn(async () => show(await ask("write", { count: 0, settings: settings() })));
    });
  }

  // ---------- what a model wrote, and what it looks at ----------

  const models = new Map();
  let drawing = 0;

  /** Take the worker's replies, and draw them with the next frame. */
  function show(replies) {
    for (const reply of replies) models.get(reply.name).take(reply);
    drawing ||= requestAnimationFrame(() => {
      drawing = 0;
      for (const view of models.values()) view.draw();
    });
  }

  const colour = (name) => {
    const probe = live.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
    probe.style.color = `var(${name})`;
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  class View {
    constructor(config) {
      this.config = config;
      this.place = $(`[data-model="${config.name}"]`);
      this.text = $(".live-text", this.place);
      this.slider = $(".live-position input", this.place);
      this.canvas = $("canvas", this.place);
      this.written = "";
      this.rows = [];
      this.follows = true; // the newest character
      this.pointed = null;
      this.slider.addEventListener("input", () => {
        this.follows = this.slider.valueAsNumber === this.rows.length - 1;
        this.shade(this.slider.valueAsNumber);
      });
      this.text.addEventListener("pointerover", ({ target }) => this.shade(target.dataset.at ? Number(target.dataset.at) : this.slider.valueAsNumber));
      this.text.addEventListener("pointerleave", () => this.shade(this.slider.valueAsNumber));
      this.text.addEventListener("click", ({ target }) => {
        if (!target.dataset.at) return;
        this.slider.value = target.dataset.at;
        this.slider.dispatchEvent(new Event("input"));
      });
      this.canvas.addEventListener("click", ({ offsetX, offsetY }) => {
        shown.head.value = Math.floor(offsetX / this.canvas.clientWidth * config.heads);
        shown.layer.value = Math.floor(offsetY / this.canvas.clientHeight * config.layers);
        choose();
      });
    }

    take({ text, sent, start, attention, order, before, after }) {
      if (length === 0) this.written = "";
      this.written += text;
      this.start = start;
      this.rows.length = sent;
      this.rows.push(...attention);
      Object.assign(this, { order, before, after });
    }

    /** The weight that token `query` of the window gives to token `key`, in the head that is shown. */
    weight(query, key) {
      const at = Number(shown.layer.value) * this.config.heads + Number(shown.head.value);
      return key > query ? 0 : this.rows[query][at * (query + 1) + key];
    }

    draw() {
      const whole = beginning + this.written;
      const earlier = document.createElement("span");
      earlier.className = "live-earlier";
      earlier.textContent = whole.slice(0, this.start);
      this.text.replaceChildren(earlier, ...[...whole.slice(this.start)].map((symbol, i) => {
        const span = document.createElement("span");
        span.dataset.at = i;
        span.textContent = symbol;
        if (symbol === "\n") span.className = "live-newline";
        if (this.start + i >= beginning.length) span.classList.add("live-written");
        return span;
      }));
      this.text.scrollTop = this.text.scrollHeight;
      this.slider.max = this.rows.length - 1;
      if (this.follows) this.slider.value = this.slider.max;
      this.shade(this.slider.valueAsNumber);
      this.drawNext();
      this.drawHeads();
    }

    /** Colour the text by what character `at` of the window looks at, and by who looks at it. */
    shade(at) {
      const symbols = $$("[data-at]", this.text);
      for (const [i, span] of symbols.entries()) {
        span.style.setProperty("--looked-at", i <= at ? Math.sqrt(this.weight(at, i)).toFixed(3) : 0);
        span.style.setProperty("--looks", i > at ? Math.sqrt(this.weight(i, at)).toFixed(3) : 0);
        span.classList.toggle("live-pointed", i === at);
      }
      const most = symbols.map((span, i) => [this.weight(at, i), span, i]).sort((a, b) => b[0] - a[0]).slice(0, 3);
      const named = most.filter(([weight]) => weight >= .005).map(([weight, span, i]) => i === at ? _("itself {}", percent(weight)) : _("“{}” {} back {}", visible(span.textContent), at - i, percent(weight)));
      const words = _("“{}” looks at {}", visible(symbols[at].textContent), named.join(_(", ")));
      $(".live-looks", this.place).textContent = _("{}.", words);
      this.slider.setAttribute("aria-valuetext", words);
    }

    drawNext() {
      $(".live-next", this.place).replaceChildren(...this.order.slice(0, SHOWN).map((token) => {
        const row = document.createElement("li"), name = document.createElement("b"), numbers = document.createElement("span");
        name.textContent = visible(this.config.symbols[token]);
        numbers.textContent = `${percent(this.before[token])} → ${percent(this.after[token])}`;
        row.append(name, document.createElement("i"), numbers);
        row.style.setProperty("--before", this.before[token]);
        row.style.setProperty("--after", this.after[token]);
        return row;
      }));
    }

    /** All heads: a square each, a row of heads per layer. In a square, rows are queries and columns keys. */
    drawHeads() {
      const { layers, heads } = this.config, side = context + GAP, pen = this.canvas.getContext("2d");
      const all = pen.createImageData(heads * side, layers * side);
      const [red, green, blue] = colour("--accent").match(/[\d.]+/g).map(Number);
      for (const [query, row] of this.rows.entries()) {
        for (let at = 0, i = 0; at < layers * heads; at++) {
          const left = at % heads * side + GAP / 2, top = Math.floor(at / heads) * side + GAP / 2 + query;
          for (let key = 0; key <= query; key++, i++) {
            all.data.set([red, green, blue, 255 * Math.min(1, .06 + Math.sqrt(row[i]))], 4 * (top * heads * side + left + key));
          }
        }
      }
      pen.putImageData(all, 0, 0);
      pen.strokeStyle = colour("--fig-1");
      pen.lineWidth = 3;
      pen.strokeRect(shown.head.value * side + 1.5, shown.layer.value * side + 1.5, side - 3, side - 3);
    }
  }

  function choose() {
    for (const view of models.values()) view.draw();
    drawKernels();
  }
  for (const select of Object.values(shown)) select.addEventListener("change", choose);
  new MutationObserver(() => { if (models.size) choose(); }).observe(document.documentElement, { attributeFilter: ["data-theme"] });

  // ---------- kernels: one for queries, keys and values of each head ----------

  const NAMES = { query: _("query, head {}"), key: _("key, head {}"), value: _("value, head {}") };
  const KINDS = Object.keys(NAMES), all = $("[name=all-kernels]"), grid = $(".live-kernels__grid");
  let view, currentOnly;

  function makeKernels() {
    view = [...models.values()].find(({ config }) => config.kernel_size);
    const { heads, layers } = view.config;
    currentOnly = Array.from({ length: layers }, () => Object.fromEntries(KINDS.map((kind) => [kind, Array(heads).fill(false)])));
    grid.replaceChildren(...Array.from({ length: heads }, (_nothing, head) => KINDS.map((kind) => {
      const label = document.createElement("label"), box = document.createElement("input"), canvas = document.createElement("canvas");
      Object.assign(box, { type: "checkbox" });
      Object.assign(box.dataset, { kind, head });
      Object.assign(canvas, { width: view.config.d_model / heads, height: view.config.kernel_size });
      canvas.setAttribute("aria-hidden", "true");
      box.addEventListener("change", () => switched(() => currentOnly[shown.layer.value][kind][head] = box.checked));
      label.append(canvas, box, ` ${NAMES[kind].replace("{}", head)}`);
      return label;
    })).flat());
    drawKernels();
  }

  all.addEventListener("change", () => switched(() => {
    for (const layer of currentOnly) for (const kind of KINDS) layer[kind].fill(all.checked);
  }));

  /** Change switches, and let the model read its text again. */
  function switched(change) {
    change();
    drawKernels();
    inTurn(async () => show(await ask("switch", { currentOnly, settings: settings() })));
  }

  /** The kernels of the layer that is shown: a column per channel, rows from two tokens back to the current one. */
  function drawKernels() {
    const { heads, d_model } = view.config, layer = Number(shown.layer.value);
    const signs = [colour("--danger"), colour("--fig-2")].map((each) => each.match(/[\d.]+/g).map(Number));
    for (const box of $$("input", grid)) {
      const { kind } = box.dataset, head = Number(box.dataset.head), off = currentOnly[layer][kind][head];
      const canvas = box.previousElementSibling, { width, height } = canvas, pen = canvas.getContext("2d");
      const image = pen.createImageData(width, height), kernel = view.config.kernels[`blocks.${layer}.attention.${kind}_conv.weight`];
      const largest = kernel.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
      for (let tap = 0; tap < height; tap++) {
        for (let channel = 0; channel < width; channel++) {
          const weight = off && tap < height - 1 ? 0 : kernel[tap * d_model + head * width + channel];
          image.data.set([...signs[Number(weight > 0)], 255 * Math.abs(weight) / largest], 4 * (tap * width + channel));
        }
      }
      pen.putImageData(image, 0, 0);
      box.checked = off;
    }
    const states = currentOnly.flatMap((each) => KINDS.flatMap((kind) => each[kind]));
    all.checked = states.every(Boolean);
    all.indeterminate = !all.checked && states.some(Boolean);
  }
})();
