/* Tools on a chapter's page: copying, shapes, highlighted names, the list of keys.
   The page is readable without them. */
(() => {
  // The words of an edition in another language are in a script before this one.
  const _ = (text, ...values) => values.reduce((said, value) => said.replace("{}", value), window.words?.[text] ?? text);
  const root = document.documentElement;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const made = (tag, id, attributes) => document.body.appendChild(Object.assign(document.createElement(tag), { id, ...attributes }));
  root.classList.add("tools");

  // CSS counts the line numbers, and not every screen reader reads generated content.
  for (const number of $$(".ln[id] > .lno")) number.setAttribute("aria-label", `line ${number.parentNode.id.slice(1)}`);

  // The actions on a definition. Those of a method are only icons until pointed at.
  const icon = paths => `<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">${paths}</svg>`;
  const COPY = icon('<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2"/>');
  const WHOLE = icon('<path d="M8 1.8 13.5 5v6L8 14.2 2.5 11V5z"/><path d="M2.5 5 8 8.2 13.5 5M8 8.2v6"/>');
  const LINK = icon('<path d="M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.3-2.3a2.6 2.6 0 0 0-3.7-3.7l-.9.9"/><path d="M9.2 6.8a2.6 2.6 0 0 0-3.7 0L3.2 9.1a2.6 2.6 0 0 0 3.7 3.7l.9-.9"/>');
  // The standalone code is in a script, in pieces, each once. It is loaded when a reader first points at or focuses a button.
  const held = $("#standalone"), wholes = new Set(held?.dataset.of.split(" "));
  let coming;
  const fetched = () => coming ??= new Promise((done, failed) => document.head.append(Object.assign(
    document.createElement("script"), { src: new URL(held.dataset.source, location.href), onload: done, onerror: failed })));
  const whole = async name => {
    await fetched();
    const pieces = $$("i", held.content).map(piece => piece.textContent);
    return $(`b[title="${name}"]`, held.content).textContent.split(" ").map(i => pieces[i]).join("\n\n\n") + "\n";
  };
  const saying = { copy: _("Copy"), needs: _("Copy with the imports and definitions it needs"), alone: _("Copy standalone"), to: _("Copy link"), link: _("Link") };
  for (const { id: name, firstElementChild: code } of $$(".def--own")) {
    code.insertAdjacentHTML("beforebegin", `<div class="def-actions${name.includes(".") ? " def-actions--quiet" : ""}" role="group" aria-label="${name}">`
      + `<button type="button" data-copy="${name}" title="${saying.copy}">${COPY}<span>${saying.copy}</span></button>`
      + (wholes.has(name) ? `<button type="button" data-standalone="${name}" title="${saying.needs}">${WHOLE}<span>${saying.alone}</span></button>` : "")
      + `<a href="#${name}" data-link title="${saying.to}">${LINK}<span>${saying.link}</span></a></div>`);
  }

  for (const on of ["pointerover", "focusin"]) document.addEventListener(on, event => { if (event.target.closest("[data-standalone]")) fetched(); });

  // Copy. Line numbers are generated content, so a line's text is its code.
  const toast = made("div", "toast", { className: "toast" });
  toast.setAttribute("role", "status");
  const say = text => { toast.textContent = text; clearTimeout(say.timer); say.timer = setTimeout(() => { toast.textContent = ""; }, 2200); };
  const copy = (text, said) => (navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject())
    .then(() => say(said), () => say(_("The browser gave no clipboard")));
  const source = name => {
    const blocks = $$(`pre[data-of~="${name}"]`);
    const lines = blocks.flatMap((block, i) => [
      ...(i && block.parentNode.matches(".def") ? ["\n"] : []),
      ...$$(".ln", block).map(line => line.textContent),
    ]);
    const indent = lines[0].match(/^ */)[0];
    const text = lines.map(line => line.startsWith(indent) ? line.slice(indent.length) : line).join("").trimEnd() + "\n";
    // A body that is only a docstring is prose on the page, so it gets an ellipsis.
    return text.replace(/^( *)((?:async |def |class |\)).*:)\n(?!\n*\1 )/gm, "$1$2\n$1    ...\n");
  };
  document.addEventListener("click", event => {
    const button = event.target.closest("[data-copy], [data-standalone], [data-link], [data-bibtex]");
    if (!button) return;
    const { copy: name, standalone, bibtex } = button.dataset;
    if (name) copy(source(name), _("{} copied", name));
    else if (standalone) whole(standalone).then(text => copy(text, _("{} copied with what it needs", standalone)), () => say(_("The code could not be loaded")));
    else if (bibtex) copy(document.getElementById(bibtex).textContent, _("BibTeX copied"));
    else copy(button.href, _("Link copied"));
  });

  // A link to folded code opens its fold. Some browsers do that too, but not always before they scroll.
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    let closed = false;
    for (let fold = target?.closest("details:not([open])"); fold; fold = fold.closest("details:not([open])")) closed = fold.open = true;
    if (closed) target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // Shapes: one tooltip. It stays open while pointed at, and Escape closes it.
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

  // Highlight: pointing at a name highlights its other uses, and the symbol that is tied to it.
  // In the code, text without an element of its own is names and the blanks between them. Each name gets an element when
  // a reader first points at or focuses code or a name that is tied to it, so that the page is laid out sooner.
  let separate = () => {
    separate = () => {};
    for (const part of $$(".sbs__code :is(.ln, .t, .ref)")) for (const text of [...part.childNodes]) {
      if (text.nodeType !== Node.TEXT_NODE) continue;
      const pieces = text.data.split(/([\p{L}_][\p{L}\p{N}_]*)/u); // every second one is a name
      text.replaceWith(...pieces.map((piece, i) => i % 2 ? Object.assign(document.createElement("span"), { className: "n", textContent: piece }) : piece));
    }
  };
  const letters = element => element.textContent.replace(/[\u200b\s]/g, "");
  const ties = $$("[data-tie] .katex-html").map(symbol => [symbol.closest("[data-tie]").dataset.tie, letters(symbol)]);
  const spelled = symbol => { // in a subscript only if it occurs nowhere else
    const all = $$(".katex-html .mord").filter(letter => letters(letter) === symbol), plain = all.filter(letter => !letter.matches(".mtight"));
    return plain.some(letter => letter.closest(".katex-display")) ? plain : all;
  };
  const light = name => {
    for (const other of $$(".lit")) other.classList.remove("lit");
    if (!name) return;
    separate();
    for (const other of $$(".sbs__code .n, .tie code")) if (other.textContent === name) other.classList.add("lit");
    for (const [tied, symbol] of ties) if (tied === name) for (const letter of spelled(symbol)) letter.classList.add("lit");
  };
  // The name of an element: it is a name, contains one (a link), or is a tied symbol.
  const nameOf = element => {
    const name = element.closest(".sbs__code .n") ?? (element.matches(".ref, .t") ? $(".n", element) : null);
    if (name) return name.textContent;
    const tie = element.closest("[data-tie]");
    if (tie) return tie.dataset.tie;
    for (let letter = element.closest(".katex-html .mord"); letter; letter = letter.parentElement.closest(".katex-html .mord"))
      for (const [tied, symbol] of ties) if (letters(letter) === symbol && spelled(symbol).includes(letter)) return tied;
  };
  for (const on of ["pointerover", "focusin"]) document.addEventListener(on, event => {
    let { target } = event;
    if (target.closest(".sbs__code")) {
      separate();
      if (on === "pointerover") target = document.elementFromPoint(event.clientX, event.clientY) ?? target; // the name's own element is new
    }
    light(nameOf(target));
  });
  document.addEventListener("focusout", () => light());

  // Figures show their values. The script for that is loaded when a figure is first pointed at or focused.
  const figures = $$(".out--plot:has([data-axes])"), base = document.currentScript.src;
  const learn = () => {
    for (const figure of figures) for (const on of ["pointerover", "focus"]) figure.removeEventListener(on, learn);
    document.head.append(Object.assign(document.createElement("script"), { src: new URL("curves.js", base) }));
  };
  for (const figure of figures) {
    figure.tabIndex = 0;
    for (const on of ["pointerover", "focus"]) figure.addEventListener(on, learn);
  }

  // Pictures in steps: they open at the first, and Next shows the following one. Paper, and a page without scripts,
  // show the last step, the whole picture.
  for (const picture of $$(".picture[data-steps]")) {
    const last = picture.dataset.steps, box = document.createElement("div");
    box.className = "picture-steps";
    const before = _("Back"), step = _("Step"), after = _("Next");
    box.innerHTML = `<button type="button">${before}</button><input type="range" min="1" max="${last}" value="1" aria-label="${step}">`
      + `<button type="button">${after}</button><output></output>`;
    const [back, slider, next, shown] = box.children;
    const show = () => {
      for (const part of $$("[data-at]", picture)) part.classList.toggle("now", part.dataset.at.split(" ").includes(slider.value));
      const said = [_("{} of {}", slider.value, last), ...$$(".now .caption", picture).map(text => text.textContent)];
      shown.innerHTML = '<span></span><span class="visually-hidden"></span>';
      shown.firstChild.textContent = said[0];
      shown.lastChild.textContent = said.slice(1).join(" ");
      slider.setAttribute("aria-valuetext", said.join(": "));
      for (const [button, end] of [[back, "1"], [next, last]]) button.setAttribute("aria-disabled", slider.value === end);
    };
    slider.addEventListener("input", show);
    back.addEventListener("click", () => { slider.stepDown(); show(); });
    next.addEventListener("click", () => { slider.stepUp(); show(); });
    picture.classList.add("stepped");
    show();
    picture.after(box);
  }

  // An image of another site is loaded when a reader asks for it. Where the page's policy forbids it, the link is followed.
  for (const link of $$(".remote-image")) link.addEventListener("click", event => {
    event.preventDefault();
    const image = Object.assign(document.createElement("img"), { alt: link.textContent, referrerPolicy: "no-referrer" });
    image.addEventListener("error", () => { location.href = link.href; });
    image.src = link.href;
    link.replaceWith(image);
  });

  // Keys.
  const keys = [["/", _("search")], ["?", _("this list")], ["s", _("shapes at the ends of lines")], ["↑ ↓", _("from line number to line number")], ["← →", _("along a figure's lines")], ["Escape", _("close what is open")]];
  const dialog = made("dialog", "keys", {});
  dialog.setAttribute("aria-label", _("Keys"));
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
