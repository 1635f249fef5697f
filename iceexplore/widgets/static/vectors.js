// Deleted positions: a picture of them, what Python says of them, and as tables.

import { blocks } from "./blocks.js";
import { button, clamp, el, fill, formatCount, icon, keepFocus, linkButton, listen } from "./dom.js";
import { gridView } from "./grid.js";
import { canvasColours, inNextFrame, resizeCanvas } from "./painting.js";

const HEIGHT = 132; // px that the picture takes at most
const LISTS = { positions: "Positions", runs: "Runs", all: "All deletes of the snapshot" };

export function vectorsView(model) {
  const head = el("div.vector-head");
  const canvas = el("canvas.cells", { role: "img" });
  const legend = el("div.cell-text");
  const picture = el("div.vector-picture", canvas, legend);
  const facts = el("div.vector-facts");
  const tabs = el("div.group", { role: "group", ariaLabel: "Table" });
  const tables = {
    positions: gridView(model, { grid: "positions", label: "Deleted positions" }),
    deletes: gridView(model, { grid: "deletes", label: "Deletes of the snapshot" }),
  };
  const box = el(
    "section.vectors",
    { ariaLabel: "Deletes" },
    head,
    picture,
    facts,
    el("div.vector-tabs", tabs),
    tables.positions.element,
    tables.deletes.element,
  );
  // In a frame of its own: the picture has another height then, and a box must not change while its size is reported.
  const repaint = inNextFrame(model, paint);
  const colours = canvasColours(model, picture, repaint, repaint);
  let table = "positions";
  // Of the picture: px of a square, and how many are side by side.
  let cell = 1;
  let columns = 1;
  let seen = false;

  const vector = () => (model.vector.node === model.vector_of.node ? model.vector : {});

  // What is asked ------------------------------------------------------------------------------------------------------

  const ask = (change) => model.save("vector_of", { node: model.selection.node, path: "", footer: false, ...change });
  // Only what is looked at is read.
  function look() {
    if (seen && model.vector_of.node !== model.selection.node) ask();
    showTable();
  }
  function showTable() {
    if (!seen) return;
    const { node, path, cardinality } = vector();
    const { snapshot } = model.selection;
    const now = cardinality ? table : "all";
    const there = Object.entries(LISTS).filter(([name]) => (name === "all" ? snapshot : cardinality));
    keep(() => {
      tables.positions.element.hidden = now === "all";
      tables.deletes.element.hidden = now !== "all" || !snapshot;
      fill(
        tabs,
        there.map(([name, title]) =>
          button(title, () => ((table = name), showTable()), { "data-key": name, ariaPressed: name === now })
        ),
      );
    });
    const [grid, of] = now === "all" ? ["deletes", snapshot] : ["positions", `${node}\n${path}`];
    if (of) tables[grid].look(of, now);
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  const keep = (run) => keepFocus(box, run, () => tabs.firstChild);
  function waiting() {
    const { missed, ...asked } = model.vector_of;
    return missed ? [missed, " ", linkButton("Try again", () => ask(asked))] : "Reading …";
  }
  function draw() {
    const {
      kind,
      title,
      headline,
      of,
      notes = [waiting()],
      paths = [],
      path,
      facts: shownFacts,
      unread,
      picture: shown,
    } = vector();
    keep(() => {
      fill(
        head,
        headline &&
          el("div.title", icon(model.styles, kind, 20), el("div.name", el("span.kind", title), el("strong", headline))),
        of && el("div.path", of),
        notes.map((text) => el("div.evidence", text)),
        paths[0] &&
          el(
            "label.evidence",
            "Data file ",
            el(
              "select.select.wide-select",
              { onchange: (event) => ask({ path: event.target.value }) },
              paths.map(([value, n, name]) =>
                el("option", { value, selected: value === path }, `${formatCount(n)} in ${name}`)
              ),
            ),
          ),
      );
      picture.hidden = !shown;
      fill(facts, blocks(model, shownFacts), unread && button(unread, () => ask({ path, footer: true })));
    });
    showTable();
    paint();
  }
  function paint() {
    const wide = picture.clientWidth;
    if (!wide || !colours.line) return;
    const { label, legend: legendText, borders, picture: { cells, width } } = vector();
    const { line, accent, plain, tint } = colours;
    const gone = plain ? accent : tint("mark:removed");
    cell = clamp(3, Math.floor(Math.sqrt((wide * HEIGHT) / cells.length)), 12);
    columns = Math.max(1, Math.floor(wide / cell));
    const size = [columns * cell, Math.ceil(cells.length / columns) * cell];
    const c = resizeCanvas(canvas, ...size);
    [canvas.style.width, canvas.style.height] = size.map((px) => `${px}px`);
    canvas.hidden = cells.length === 0;
    canvas.ariaLabel = label;
    legend.textContent = legendText;
    const gap = cell > 4 ? 1 : 0.5;
    function square(i, colour, alpha, across = cell - gap) {
      c.globalAlpha = alpha;
      c.fillStyle = colour;
      c.fillRect((i % columns) * cell, Math.floor(i / columns) * cell, across, cell - gap);
    }
    cells.forEach((n, i) => {
      square(i, line, plain ? 0.25 : 1); // the system's lines are as bright as its text
      if (n) square(i, gone, 0.15 + 0.85 * Math.sqrt(n / width));
    });
    for (const start of borders) if (start > 0) square(Math.floor(start / width), accent, 1, 2);
  }

  listen(canvas, {
    pointermove({ offsetX, offsetY }) {
      const { borders, picture: { cells, width, size } } = vector();
      const i = Math.floor(offsetY / cell) * columns + Math.floor(offsetX / cell);
      const n = cells[i];
      if (n === undefined) return;
      const first = i * width;
      const last = Math.min(size, first + width) - 1;
      const percent = Number(((100 * n) / (last - first + 1)).toPrecision(2));
      const group = borders.filter((start) => start <= first).length;
      const words = first === last
        ? `Position ${formatCount(first)}: ${n ? "deleted" : "not deleted"}`
        : `Positions ${formatCount(first)} to ${formatCount(last)}: ${formatCount(n)} deleted (${percent} %)`;
      legend.textContent = group ? `${words}, row group ${group - 1}` : words;
    },
    pointerleave: paint,
  });

  const sight = new IntersectionObserver((entries) => {
    seen = entries.at(-1).isIntersecting;
    look();
  });
  sight.observe(box);
  model.onEnd(() => sight.disconnect());
  model.follow(["vector", "vector_of"], draw);
  model.onChange("selection", look);
  return box;
}
