/* Sorts a table by a column: each head cell of `table.sortable` becomes a button. It goes round: up, down,
   the order of the source. Cells sort by `data-value` where they have one, empty ones last; else as words.
   Without scripts a table stands in the order of its source. */
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], source = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];

  const compare = (a, b, way) => {
    const [x, y] = [a.dataset.value, b.dataset.value];
    if (x === undefined || y === undefined) return way * a.textContent.localeCompare(b.textContent);
    return !x - !y || way * (x - y);
  };

  heads.forEach((head, column) => {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const next = { null: "ascending", ascending: "descending" }[head.getAttribute("aria-sort")];
      const way = next === "ascending" ? 1 : -1;
      for (const other of heads) other.removeAttribute("aria-sort");
      if (next) head.setAttribute("aria-sort", next);
      const cell = row => row.cells[column];
      body.append(...(next ? [...source].sort((a, b) => compare(cell(a), cell(b), way)) : source));
    });
  });
}
