/* The welcome page's routes: choose one, see what was read, forget both. Without scripts, each is a list of links. */
(() => {
  const _ = (text, ...values) => values.reduce((said, value) => said.replace("{}", value), window.words?.[text] ?? text);
  const recall = key => { try { return localStorage[key]; } catch (e) { return undefined; } };
  const store = (key, value) => { try { if (value) localStorage[key] = value; else delete localStorage[key]; } catch (e) { /* storage is off */ } };
  const made = (tag, values) => Object.assign(document.createElement(tag), values);
  const routes = [...document.querySelectorAll(".route")].map(box => ({
    box, name: box.className.match(/route--(\S+)/)[1], links: box.querySelectorAll(".stops a"),
    button: made("button", { type: "button", className: "btn" }), said: made("span", { className: "route__read" }),
  }));
  if (!routes.length) return;
  const forget = made("button", { type: "button", className: "btn", textContent: _("Forget what I read, and the route") });
  const show = () => {
    dispatchEvent(new Event("marks"));
    for (const { name, button, said, links } of routes) {
      const chosen = recall("route") === name, ticks = [...links].filter(link => link.querySelector(".tick")).length;
      button.textContent = chosen ? _("You follow this route") : _("Follow this route");
      button.setAttribute("aria-pressed", chosen);
      said.textContent = ticks ? _("{} of {} read", ticks, links.length) : "";
    }
    forget.hidden = !recall("route") && !recall("read");
  };
  for (const { box, name, button, said } of routes) {
    const line = made("p", { className: "route__tools" });
    line.append(button, " ", said);
    box.append(line);
    button.addEventListener("click", () => { store("route", recall("route") === name ? "" : name); show(); });
  }
  forget.addEventListener("click", () => { store("read"); store("route"); show(); routes[0].button.focus(); });
  const last = made("p", { className: "route__tools" });
  last.append(forget);
  routes.at(-1).box.after(last);
  show();
})();
