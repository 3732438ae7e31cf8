/* A figure shows the values at the pointer: of each line that has a name, or of the nearest dot.
   Arrow keys move along it, and Escape hides the values. The drawing contains names and scales: `data-axes`, `data-curve`,
   `data-dots`. */
{
  const NEAR = 6; // closer than that to a dot, one points at it
  const set = (element, attributes) => {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const points = path => [...path.getAttribute("d").matchAll(/(-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [+x, +y]);

  // Convert a coordinate of the drawing to a value on the scale, as precisely as one can point.
  const scale = ([label, kind, low, high], from, to) => {
    const part = place => (place - from) / (to - from);
    const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(Math.abs(high - low) / 200))));
    const at = kind === "log"
      ? place => String(Number((low * (high / low) ** part(place)).toPrecision(3)))
      : place => (low + part(place) * (high - low)).toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");
    return { label, at };
  };
  // The height of a line at a coordinate, interpolated between its two nearest points.
  const height = (line, place) => {
    for (let i = 1; i < line.length; i++) {
      const [[x, y], [right, top]] = [line[i - 1], line[i]];
      if (x <= place && place <= right) return right > x ? y + (top - y) * (place - x) / (right - x) : y;
    }
  };
  const ends = values => [Math.min(...values), Math.max(...values)];
  const read = group => {
    const corners = points(group.querySelector("path")), { x, y } = JSON.parse(group.dataset.axes);
    const [left, right] = ends(corners.map(([x]) => x)), [top, bottom] = ends(corners.map(([, y]) => y));
    const curves = [...group.querySelectorAll("[data-curve]")].map(curve => {
      const path = curve.querySelector("path");
      return { name: curve.dataset.curve, colour: getComputedStyle(path).stroke, line: points(path) };
    });
    const dots = [...group.querySelectorAll("[data-dots] use")].map(dot => ({
      name: dot.closest("[data-dots]").dataset.dots, x: +dot.getAttribute("x"), y: +dot.getAttribute("y"),
    })).sort((a, b) => a.y - b.y || a.x - b.x);
    // The stops of the arrow keys: from left to right, or from dot to dot.
    const middle = (top + bottom) / 2;
    const places = Array.from({ length: 51 }, (_, i) => ({ x: left + i * (right - left) / 50, y: middle }));
    const stops = curves.length ? places : dots;
    return { group, left, right, top, bottom, x: scale(x, left, right), y: scale(y, bottom, top), curves, dots, stops };
  };
  const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
  const nearest = (stops, to) => stops.reduce((a, b) => apart(b, to) < apart(a, to) ? b : a, { x: Infinity, y: 0 });

  const tip = document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip tip--curves", hidden: true }));
  tip.setAttribute("role", "status");
  const cross = set(document.createElementNS("http://www.w3.org/2000/svg", "line"), { class: "cross" });
  const hide = () => { tip.hidden = true; cross.remove(); };

  const made = (tag, ...parts) => {
    const element = document.createElement(tag);
    element.append(...parts);
    return element;
  };
  const swatch = colour => set(made("i"), { style: `background: ${colour}` });
  const row = (name, value, ...before) => made("p", ...before, name, " ", made("span", value));
  // For lines, show the value of each at a coordinate.
  const heights = (axes, x) => axes.curves.map(curve => ({ ...curve, y: height(curve.line, x) }))
    .filter(({ y }) => y >= axes.top && y <= axes.bottom).sort((a, b) => a.y - b.y)
    .map(({ name, colour, y }) => row(name, axes.y.at(y), swatch(colour)));
  // For a dot, show the values on both axes that have a label.
  const measures = (axes, dot) => ["x", "y"].filter(way => axes[way].label)
    .map(way => row(axes[way].label, axes[way].at(dot[way])));

  const show = (plot, axes, stop) => {
    const { name, x } = stop, rows = name ? measures(axes, stop) : heights(axes, x);
    if (!rows.length) return hide();
    tip.replaceChildren(made("b", name ?? `${axes.x.label} ${axes.x.at(x)}`), ...rows);
    axes.group.append(set(cross, { x1: x, x2: x, y1: axes.top, y2: axes.bottom }));
    tip.hidden = false;
    const at = new DOMPoint(x, name ? stop.y : (axes.top + axes.bottom) / 2).matrixTransform(plot.getScreenCTM());
    const beside = at.x + 12 + tip.offsetWidth < innerWidth ? at.x + 12 : at.x - 12 - tip.offsetWidth;
    tip.style.left = Math.max(8, beside) + "px";
    tip.style.top = Math.max(64, at.y - tip.offsetHeight / 2) + "px";
  };

  for (const plot of document.querySelectorAll(":is(.plot, .plot-narrow):has([data-axes])")) {
    const figure = plot.parentElement;
    let all, now = 0, stop;
    const axes = () => all ??= [...plot.querySelectorAll("[data-axes]")].map(read);
    plot.addEventListener("pointermove", event => {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.getScreenCTM().inverse());
      const found = axes().findIndex(({ left, right, top, bottom }) => left <= x && x <= right && top <= y && y <= bottom);
      if (found < 0) return hide();
      const dot = nearest(axes()[now = found].dots, { x, y });
      show(plot, axes()[now], stop = apart(dot, { x, y }) < NEAR ? dot : { x, y });
    });
    plot.addEventListener("pointerleave", hide);
    figure.addEventListener("blur", hide);
    figure.addEventListener("keydown", event => {
      if (!plot.checkVisibility()) return; // of a figure's two drawings, one is shown
      if (event.key === "Escape") return hide();
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      let { stops } = axes()[now];
      const from = stops.includes(stop) ? stop : stop && nearest(stops, stop);
      let at = from ? stops.indexOf(from) + step : Math.floor(stops.length / 2);
      if (!stops[at]) {
        now = (now + step + axes().length) % axes().length;
        ({ stops } = axes()[now]);
        at = step > 0 ? 0 : stops.length - 1;
      }
      show(plot, axes()[now], stop = stops[at]);
    });
  }
  addEventListener("scroll", hide, { passive: true });
}
