// Shows a page anew when it was built again, at its place, and lists what is wrong with the build.
{
  const PLACE = "serve-place";

  // A heading or a definition and where it is in the window: lines above it may come and go.
  const remember = () => {
    const named = [...document.querySelectorAll("main [id]")];
    const passed = named.filter((each) => !/^L\d+$/.test(each.id) && each.getClientRects().length);
    const last = passed.filter((each) => each.getBoundingClientRect().top <= 120).pop();
    const place = last && { id: last.id, top: last.getBoundingClientRect().top, path: location.pathname };
    sessionStorage.setItem(PLACE, JSON.stringify(place ?? null));
  };
  const restore = () => {
    const place = JSON.parse(sessionStorage.getItem(PLACE));
    sessionStorage.removeItem(PLACE);
    const there = place?.path === location.pathname && document.getElementById(place.id);
    if (there) scrollBy({ top: there.getBoundingClientRect().top - place.top, behavior: "instant" });
  };

  // A style replaces its former self when it is there, so that the page is never without one.
  const restyle = (count) => {
    for (const link of document.querySelectorAll('link[rel="stylesheet"]')) {
      const next = link.cloneNode();
      next.href = `${link.href.split("?")[0]}?changed=${count}`;
      next.onload = () => link.remove();
      link.after(next);
    }
  };

  const box = document.createElement("pre");
  box.setAttribute("role", "status");
  box.style.cssText = `position: fixed; inset: auto 0 0 0; z-index: 99; max-height: 40vh; margin: 0;
    padding: 8px 16px; overflow: auto; white-space: pre-wrap; font: 13px/1.4 monospace;
    color: #fff; background: #8c1d18`;
  const tell = (text, wrong) => {
    box.textContent = text;
    box.style.background = wrong ? "#8c1d18" : "#0b6272";
    if (text) document.body.append(box);
    else box.remove();
  };

  let seen;
  const look = async () => {
    const reply = await fetch(`/.state?page=${encodeURIComponent(location.pathname)}`).catch(() => null);
    const now = reply && (await reply.json());
    if (now) {
      tell(now.building ? "building …" : now.wrong, !now.building);
      if (seen && now.styles !== seen.styles) restyle(now.styles);
      if (seen && !now.building && (now.page !== seen.page || now.scripts !== seen.scripts)) {
        remember();
        location.reload();
        return;
      }
      seen = now.building && seen ? { ...seen, styles: now.styles } : now;
    }
    setTimeout(look, 200);
  };

  if (document.readyState === "complete") restore();
  else addEventListener("load", restore);
  look();
}
