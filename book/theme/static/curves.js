/* A figure tells the numbers behind the pointer, for each line that has a name. Arrow keys move along, Escape
   ends it. What axes measure comes with the drawing: `data-axes`, `data-curve`. */
{
  const set = (element, attributes) => {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const points = path => [...path.getAttribute("d").matchAll(/(-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [+x, +y]);

  // From a place in the drawing to what the scale says there, as finely as one can point.
  const scale = ([label, kind, low, high], from, to) => {
    const part = place => (place - from) / (to - from);
    const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(Math.abs(high - low) / 200))));
    const at = kind === "log"
      ? place => String(Number((low * (high / low) ** part(place)).toPrecision(3)))
      : place => (low + part(place) * (high - low)).toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");
    return { label, at };
  };
  // How high a line stands at a place, between its two nearest points.
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
    return { group, left, right, top, bottom, x: scale(x, left, right), y: scale(y, bottom, top), curves };
  };

  const tip = document.body.appendChild(Object.assign(document.createElement("div"), { className: "tip tip--curves", hidden: true }));
  tip.setAttribute("role", "status");
  const cross = set(document.createElementNS("http://www.w3.org/2000/svg", "line"), { class: "cross" });
  const hide = () => { tip.hidden = true; cross.remove(); };

  const show = (plot, axes, place) => {
    const told = axes.curves.map(curve => ({ ...curve, y: height(curve.line, place) })).filter(({ y }) => y >= axes.top && y <= axes.bottom);
    if (!told.length) return hide();
    const head = document.createElement("b");
    head.textContent = `${axes.x.label} ${axes.x.at(place)}`;
    tip.replaceChildren(head, ...told.sort((a, b) => a.y - b.y).map(({ name, colour, y }) => {
      const row = document.createElement("p"), mark = document.createElement("i"), value = document.createElement("span");
      mark.style.background = colour;
      value.textContent = axes.y.at(y);
      row.append(mark, name, " ", value);
      return row;
    }));
    axes.group.append(set(cross, { x1: place, x2: place, y1: axes.top, y2: axes.bottom }));
    tip.hidden = false;
    const at = new DOMPoint(place, (axes.top + axes.bottom) / 2).matrixTransform(plot.getScreenCTM());
    const beside = at.x + 12 + tip.offsetWidth < innerWidth ? at.x + 12 : at.x - 12 - tip.offsetWidth;
    tip.style.left = Math.max(8, beside) + "px";
    tip.style.top = Math.max(64, at.y - tip.offsetHeight / 2) + "px";
  };

  for (const plot of document.querySelectorAll(".plot:has([data-axes])")) {
    const figure = plot.parentElement;
    let all, now = 0, place;
    const axes = () => all ??= [...plot.querySelectorAll("[data-axes]")].map(read);
    plot.addEventListener("pointermove", event => {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.getScreenCTM().inverse());
      const found = axes().findIndex(({ left, right, top, bottom }) => left <= x && x <= right && top <= y && y <= bottom);
      if (found < 0) return hide();
      show(plot, axes()[now = found], place = x);
    });
    plot.addEventListener("pointerleave", hide);
    figure.addEventListener("blur", hide);
    figure.addEventListener("keydown", event => {
      if (event.key === "Escape") return hide();
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const { left, right } = axes()[now];
      place = place === undefined ? (left + right) / 2 : place + step * (right - left) / 50;
      if (place < left || place > right) {
        now = (now + step + axes().length) % axes().length;
        place = step > 0 ? axes()[now].left : axes()[now].right;
      }
      show(plot, axes()[now], place);
    });
  }
  addEventListener("scroll", hide, { passive: true });
}
