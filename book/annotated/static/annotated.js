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
  const letters = element => element.textContent.replace(/[\u200b\s]/g, "");
  const ties = $$("[data-tie] .katex-html").map(symbol => [symbol.closest("[data-tie]").dataset.tie, letters(symbol)]);
  const spelled = symbol => { // in an index only where it stands nowhere else
    const all = $$(".katex-html .mord").filter(letter => letters(letter) === symbol), plain = all.filter(letter => !letter.matches(".mtight"));
    return plain.some(letter => letter.closest(".katex-display")) ? plain : all;
  };
  const light = name => {
    for (const other of $$(".lit")) other.classList.remove("lit");
    if (!name) return;
    for (const other of $$(".sbs__code .n, .tie code")) if (other.textContent === name) other.classList.add("lit");
    for (const [tied, symbol] of ties) if (tied === name) for (const letter of spelled(symbol)) letter.classList.add("lit");
  };
  // The name that an element stands for: it is one, it holds one (a link), or it is a tied symbol.
  const nameOf = element => {
    const name = element.closest(".sbs__code .n") ?? (element.matches(".ref") ? $(".n", element) : null);
    if (name) return name.textContent;
    const tie = element.closest("[data-tie]");
    if (tie) return tie.dataset.tie;
    for (let letter = element.closest(".katex-html .mord"); letter; letter = letter.parentElement.closest(".katex-html .mord"))
      for (const [tied, symbol] of ties) if (letters(letter) === symbol && spelled(symbol).includes(letter)) return tied;
  };
  for (const on of ["pointerover", "focusin"]) document.addEventListener(on, event => light(nameOf(event.target)));
  document.addEventListener("focusout", () => light());

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
