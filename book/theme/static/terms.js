/* A link to the glossary shows the definition when it is pointed at or focused. The definition stays while
   it is pointed at, and Escape closes it. A tap follows the link. Without scripts it is the link's title. */
(() => {
  const tip = document.querySelector("main").appendChild(Object.assign(document.createElement("span"), { id: "definition", className: "tip tip--definition", hidden: true }));
  tip.setAttribute("role", "tooltip");
  const definitions = new Map();
  for (const name of document.querySelectorAll("a[title] > .std-term")) {
    definitions.set(name.parentNode, name.parentNode.title);
    name.parentNode.removeAttribute("title");
  }
  let timer, owner;
  const hide = () => { tip.hidden = true; owner?.removeAttribute("aria-describedby"); };
  const show = link => {
    hide();
    owner = link;
    owner.setAttribute("aria-describedby", tip.id);
    tip.textContent = definitions.get(link);
    tip.hidden = false;
    // The first line of a link that is broken over two.
    const at = link.getClientRects()[0], below = at.bottom + tip.offsetHeight + 12 < innerHeight;
    tip.style.left = Math.max(8, Math.min(document.documentElement.clientWidth - tip.offsetWidth - 8, at.left)) + scrollX + "px";
    tip.style.top = (below ? link.getBoundingClientRect().bottom + 4 : at.top - tip.offsetHeight - 4) + scrollY + "px";
  };
  const linkOf = event => definitions.has(event.target.closest?.("a")) ? event.target.closest("a") : null;
  document.addEventListener("pointerover", event => {
    const link = linkOf(event);
    if (link || tip.contains(event.target)) clearTimeout(timer);
    if (link && event.pointerType !== "touch") show(link);
  });
  document.addEventListener("focusin", event => {
    const link = linkOf(event);
    if (link?.matches(":focus-visible")) { clearTimeout(timer); show(link); }
  });
  for (const off of ["pointerout", "focusout"]) document.addEventListener(off, event => {
    if (linkOf(event) || tip.contains(event.target)) { clearTimeout(timer); timer = setTimeout(hide, 200); }
  });
  addEventListener("keydown", event => { if (event.key === "Escape") hide(); });
})();
