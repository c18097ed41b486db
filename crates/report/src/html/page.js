"use strict";
// A region is a stop of the keyboard only while it scrolls.
const stops = () => document.querySelectorAll(".scroll").forEach((region) => {
  if (region.scrollWidth > region.clientWidth) region.tabIndex = 0; else region.removeAttribute("tabindex");
});
addEventListener("load", stops);
addEventListener("resize", stops);
document.addEventListener("toggle", stops, true);
// Tables of one group are sorted together: the first keeps its number of rows, the second has the rest.
const tables = [...document.querySelectorAll(".sortable table")];
const key = (row, at) => {
  const text = row.cells[at].textContent, number = parseFloat(text.replace(/[,<>]/g, ""));
  return /^[-<>]? ?[\d,]+(\.\d+)?( %)?$/.test(text) ? number : text === "–" ? -1 : text;
};
const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
  : String(a).localeCompare(String(b), "en", { numeric: true });
const sort = (at, down) => {
  const bodies = tables.map((table) => table.tBodies[0]), rows = bodies.flatMap((body) => [...body.rows]);
  const shown = bodies[0].rows.length;
  rows.sort((a, b) => (down ? -1 : 1) * compare(key(a, at), key(b, at)));
  rows.forEach((row, place) => bodies[place < shown ? 0 : 1].append(row));
  tables.forEach((table) => [...table.tHead.rows[0].cells].forEach((cell, place) => {
    if (place === at) cell.ariaSort = down ? "descending" : "ascending"; else cell.removeAttribute("aria-sort");
  }));
};
tables.forEach((table) => [...table.tHead.rows[0].cells].forEach((cell, at) => {
  const button = document.createElement("button");
  button.textContent = cell.textContent;
  button.addEventListener("click", () =>
    sort(at, cell.ariaSort ? cell.ariaSort === "ascending" : cell.className === "n"));
  cell.replaceChildren(button);
}));
// The row of a plot's figures at the pointer. Each heading with positions begins the columns of lines that share them.
const tip = document.createElement("div");
tip.className = "tip";
document.querySelectorAll("figure:has(th[data-x])").forEach((figure) => {
  const svg = figure.querySelector(".scroll > svg"), table = figure.querySelector(".figures table");
  const heads = [...table.tHead.rows[0].cells], rows = table.tBodies[0].rows;
  const places = heads.map((head) => head.dataset.x ? head.dataset.x.split(" ").map(Number) : null);
  const show = (event) => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    let row = 0;
    tip.textContent = heads.map((head, at) => {
      if (places[at]) row = places[at].reduce((best, place, next) => Math.abs(place - x) < Math.abs(places[at][best] - x) ? next : best, 0);
      const value = rows[row].cells[at].textContent, comma = head.textContent.lastIndexOf(", ");
      if (places[at]) return value;
      return comma < 0 ? `${head.textContent} ${value}` : `${head.textContent.slice(0, comma)} ${value} ${head.textContent.slice(comma + 2)}`;
    }).join("\n");
    document.body.append(tip);
    tip.style.top = `${event.clientY + 14}px`;
    tip.style.left = `${Math.max(0, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4))}px`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", () => tip.remove());
});
