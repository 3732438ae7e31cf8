/* Sorts a table by a column: each head cell of `table.sortable` becomes a button. It goes round: up, down,
   the order of the source. Numbers sort by `data-value` or else by their first word, empty ones last; the rest
   as words. Without scripts a table stands in the order of its source. */
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], source = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];

  const compare = (a, b, way) => {
    if (!a.matches(".number")) return way * a.textContent.localeCompare(b.textContent);
    const [x, y] = [a, b].map(cell => cell.dataset.value ?? cell.textContent.split(" ")[0]);
    return (x === "") - (y === "") || way * (x - y);
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
