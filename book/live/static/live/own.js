/* Waits until a reader opens "Your own sentence". Then it loads the code of the panel, and that the model. */
(() => {
  const _ = (text) => window.words?.[text] ?? text;
  const base = document.currentScript.src;
  const other = document.querySelector('script[src*="_static/words.js"]'); // an edition's: more words are next to it
  const ready = (/** @type {HTMLElement} */ part) => new Promise((done) => {
    part.onload = part.onerror = done;
    document.head.append(part);
  });
  for (const panel of document.querySelectorAll(".own")) panel.addEventListener("toggle", async () => {
    try {
      await Promise.all([
        ready(Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("own.css", base) })),
        other && ready(Object.assign(document.createElement("script"), { src: new URL("more-words.js", other.src) })),
      ]);
      const { start } = await import(new URL("panel.js", base));
      await start(panel);
    } catch (error) {
      const why = location.protocol === "file:" ? _("They need a web server; this page was opened from a file.") : error.message;
      panel.querySelector("p").after(Object.assign(document.createElement("p"), { textContent: why }));
    }
  }, { once: true });
})();
