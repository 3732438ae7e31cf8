/* A link to the glossary shows the definition: as a tooltip while it is pointed at or focused, and after a click, a tap or
   Enter as a small box with the link, in which the reader may follow it. A second click follows it, too. Escape and a click
   elsewhere close both. Without scripts the definition is the link's title. */
(() => {
  const _ = (text, ...values) => values.reduce((said, value) => said.replace("{}", value), window.words?.[text] ?? text);
  const tip = document.querySelector("main").appendChild(Object.assign(document.createElement("span"), { id: "definition", className: "tip tip--definition", hidden: true }));
  const definitions = new Map();
  for (const name of document.querySelectorAll("a[title] > .std-term")) {
    definitions.set(name.parentNode, name.parentNode.title);
    name.parentNode.removeAttribute("title");
  }
  let timer, owner;
  const pinned = () => !tip.hidden && tip.role === "dialog";
  const hide = () => {
    if (tip.contains(document.activeElement)) owner.focus();
    tip.hidden = true;
    for (const name of ["aria-describedby", "aria-expanded"]) owner?.removeAttribute(name);
  };
  const show = (link, pin) => {
    clearTimeout(timer);
    hide();
    owner = link;
    tip.setAttribute("role", pin ? "dialog" : "tooltip");
    tip.textContent = definitions.get(link);
    if (pin) {
      tip.setAttribute("aria-label", link.textContent);
      owner.setAttribute("aria-expanded", "true");
      tip.append(Object.assign(document.createElement("a"), { href: link.href, textContent: _("In the glossary") }));
    } else {
      tip.removeAttribute("aria-label");
      owner.setAttribute("aria-describedby", tip.id);
    }
    tip.hidden = false;
    // The first line of a link that is broken over two.
    const at = link.getClientRects()[0], below = at.bottom + tip.offsetHeight + 12 < innerHeight;
    tip.style.left = Math.max(8, Math.min(document.documentElement.clientWidth - tip.offsetWidth - 8, at.left)) + scrollX + "px";
    tip.style.top = (below ? link.getBoundingClientRect().bottom + 4 : at.top - tip.offsetHeight - 4) + scrollY + "px";
    if (pin) tip.lastChild.focus({ preventScroll: true });
  };
  const linkOf = event => definitions.has(event.target.closest?.("a")) ? event.target.closest("a") : null;
  document.addEventListener("pointerover", event => {
    const link = linkOf(event);
    if (pinned()) return;
    if (link || tip.contains(event.target)) clearTimeout(timer);
    if (link && event.pointerType !== "touch") show(link);
  });
  document.addEventListener("focusin", event => {
    const link = linkOf(event);
    if (link?.matches(":focus-visible") && !(pinned() && link === owner)) show(link);
  });
  for (const off of ["pointerout", "focusout"]) document.addEventListener(off, event => {
    if (!pinned() && (linkOf(event) || tip.contains(event.target))) { clearTimeout(timer); timer = setTimeout(hide, 200); }
  });
  document.addEventListener("click", event => {
    const link = linkOf(event), plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (link && plain && !(pinned() && link === owner)) { event.preventDefault(); show(link, true); }
    else if (pinned() && !tip.contains(event.target)) hide();
  });
  addEventListener("keydown", event => {
    if (tip.hidden) return;
    if (event.key === "Escape") hide();
    if (event.key === "Tab" && tip.contains(document.activeElement)) hide(); // and the focus moves on from the term
  });
})();
