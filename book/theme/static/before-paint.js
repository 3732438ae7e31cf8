/* Runs before the first paint, so that no theme flashes: what the reader chose, or ?theme=, or the system. */
(function (root) {
  var theme = new URLSearchParams(location.search).get("theme"), stored = {};
  try { stored = { theme: localStorage.theme, nav: localStorage.nav }; } catch (e) { /* storage is off */ }
  if (theme !== "dark" && theme !== "light") theme = stored.theme;
  if (theme !== "dark" && theme !== "light") theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = theme;
  root.classList.add("js");
  if (stored.nav === "closed") root.classList.add("nav-closed");
})(document.documentElement);
