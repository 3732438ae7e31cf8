/* A reader's tools on a chapter: copy, shapes, names that light up, the list of keys.
   The page reads well without them. */
(() => {
  const root = document.documentElement;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const made = (tag, id, attributes) => document.body.appendChild(Object.assign(document.createElement(tag), { id, ...attributes }));
  root.classList.add("tools");

  // Copy. Line numbers are generated content, so the text of a line is its code.
  const toast = made("div", "toast", { className: "toast" });
  toast.setAttribute("role", "status");
  const say = text => { toast.textContent = text; clearTimeout(say.timer); say.timer = setTimeout(() => { toast.textContent = ""; }, 2200); };
  const copy = (text, said) => (navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject())
    .then(() => say(said), () => say("The browser gave no clipboard"));
  const source = name => {
    const blocks = $$(`pre[data-of~="${name}"]`);
    const lines = blocks.flatMap((block, i) => [
      ...(i && block.parentNode.matches(".def") ? ["\n"] : []),
      ...$$(".ln", block).map(line => line.textContent),
    ]);
    const indent = lines[0].match(/^ */)[0];
    return lines.map(line => line.startsWith(indent) ? line.slice(indent.length) : line).join("").trimEnd() + "\n";
  };
  document.addEventListener("click", event => {
    const button = event.target.closest("[data-copy], [data-standalone], [data-link], [data-bibtex]");
    if (!button) return;
    const { copy: name, standalone, bibtex } = button.dataset;
    if (name) copy(source(name), `${name} copied`);
    else if (standalone) copy(document.getElementById(`standalone:${standalone}`).content.textContent, `${standalone} copied with what it needs`);
    else if (bibtex) copy(document.getElementById(bibtex).textContent, "BibTeX copied");
    else copy(button.href, "Link copied");
  });

  // Shapes: one tip. It stays while pointed at, and Escape closes it.
  const tip = made("div", "tip", { className: "tip", hidden: true });
  tip.setAttribute("role", "tooltip");
  let timer, owner;
  const show = element => {
    clearTimeout(timer);
    owner?.removeAttribute("aria-describedby");
    owner = element;
    tip.replaceChildren(
      Object.assign(document.createElement("b"), { textContent: element.textContent }),
      ` · [${element.dataset.shape}] `,
      Object.assign(document.createElement("i"), { textContent: element.dataset.dtype }),
    );
    tip.hidden = false;
    element.setAttribute("aria-describedby", "tip");
    const at = element.getBoundingClientRect(), width = tip.offsetWidth, height = tip.offsetHeight;
    tip.style.left = Math.max(8, Math.min(innerWidth - width - 8, at.left + at.width / 2 - width / 2)) + "px";
    tip.style.top = (at.top - height - 6 > 60 ? at.top - height - 6 : at.bottom + 6) + "px";
  };
  const hide = () => { tip.hidden = true; };
  for (const [on, off] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    document.addEventListener(on, event => {
      const element = event.target.closest("[data-shape]");
      if (element) show(element); else if (tip.contains(event.target)) clearTimeout(timer);
    });
    document.addEventListener(off, event => { if (event.target.closest("[data-shape], .tip")) { clearTimeout(timer); timer = setTimeout(hide, 140); } });
  }
  addEventListener("scroll", hide, { passive: true });
  const shapes = $("#shapes-toggle");
  const toggle = () => shapes?.setAttribute("aria-pressed", root.classList.toggle("shapes-on"));
  shapes?.addEventListener("click", toggle);

  // Light up: pointing at a name lights its other uses, and the symbol that the chapter ties to it.
  const ties = new Map($$("[data-ties]").flatMap(list => list.dataset.ties.split(";").map(pair => pair.split("="))));
  const lit = () => $$(".lit");
  const light = element => {
    for (const other of lit()) other.classList.remove("lit");
    if (!element) return;
    const name = element.textContent;
    for (const other of $$(".sbs__code .n")) if (other.textContent === name) other.classList.add("lit");
    const symbol = ties.get(name);
    if (symbol) for (const letter of $$(".katex-html .mord")) if (letter.textContent === symbol) letter.classList.add("lit");
  };
  document.addEventListener("pointerover", event => {
    const name = event.target.closest(".sbs__code .n");
    if (name || lit().length) light(name);
  });
  document.addEventListener("focusin", event => light(event.target.closest(".sbs__code .n")));

  // Keys.
  const keys = [["/", "search"], ["?", "this list"], ["s", "shapes at the ends of lines"], ["↑ ↓", "from line number to line number"], ["Escape", "close what is open"]];
  const dialog = made("dialog", "keys", {});
  dialog.setAttribute("aria-label", "Keys");
  dialog.append(...keys.map(([key, does]) => {
    const line = document.createElement("p");
    line.append(Object.assign(document.createElement("kbd"), { textContent: key }), ` ${does}`);
    return line;
  }));
  addEventListener("keydown", event => {
    const { key, target } = event;
    if (key === "Escape") hide();
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest?.("input, textarea, select, [contenteditable]")) return;
    if (key === "?") dialog.open ? dialog.close() : dialog.showModal();
    if (key === "s" && shapes) toggle();
  });
  dialog.addEventListener("click", () => dialog.close());
})();
