// Deleted positions: a picture of them, where row groups begin, how they are stored, bytes by encoding, and as tables.

import { button, clamp, count, el, fill, icon, keepFocus, listen, plural } from "./dom.js";
import { gridView } from "./grid.js";
import { framed, inks, stretch } from "./theme.js";

const HEIGHT = 132; // px that the picture takes at most
const LISTS = [["positions", "Positions"], ["runs", "Runs"], ["all", "All deletes of the snapshot"]];
const share = (part, all) => {
  const percent = (100 * Number(part)) / Number(all);
  return `${percent > 0 && percent < 0.1 ? "< 0.1" : percent.toFixed(percent < 10 ? 1 : 0)} %`;
};

export function vectorsView(model) {
  const head = el("div.ice-vector-head");
  const canvas = el("canvas.ice-cells", { role: "img" });
  const under = el("div.ice-cell-said");
  const picture = el("div.ice-vector-picture", { hidden: true }, canvas, under);
  const facts = el("div.ice-vector-facts", { hidden: true });
  const tabs = el("div.ice-group", { role: "group", ariaLabel: "Table" });
  const tables = { positions: gridView(model, { grid: "positions", label: "Deleted positions" }), deletes: gridView(model, { grid: "deletes", label: "Deletes of the snapshot" }) };
  const box = el("section.ice-vectors", { ariaLabel: "Deletes" }, head, picture, facts, el("div.ice-vector-tabs", tabs), tables.positions.element, tables.deletes.element);
  // In a frame of its own: the picture has another height then, and a box must not change while its size is told.
  const repaint = framed(model, paint);
  const colours = inks(model, picture, repaint, repaint);
  let table = "positions";
  let layout = { columns: 1, cell: 1 };
  let seen = false;

  const vector = () => (model.get("vector").node === model.get("vector_of").node ? model.get("vector") : {});
  const has = () => vector().picture !== undefined;

  // What is asked ------------------------------------------------------------------------------------------------------

  const ask = (change) => model.put("vector_of", { node: model.get("selection").node, path: "", footer: false, ...change });
  // Only what is looked at is read.
  function look() {
    if (!seen) return;
    if (model.get("vector_of").node !== model.get("selection").node) ask();
    showTable();
  }
  function showTable() {
    if (!seen) return;
    const some = has() && vector().cardinality;
    const now = some ? table : "all";
    const { snapshot } = model.get("selection");
    const hide = (one, yes) => keepFocus(one.element, () => (one.element.hidden = yes), () => tabs.querySelector("button"));
    hide(tables.positions, now === "all");
    hide(tables.deletes, now !== "all" || !snapshot);
    const [grid, of, name] = now === "all" ? ["deletes", snapshot, "all"] : ["positions", `${vector().node}\n${vector().path}`, now];
    const page = model.get("pages")[grid] ?? {};
    if (of && (page.of !== of || page.table !== name)) tables[grid].show(of, name);
    const buttons = LISTS.filter(([one]) => (one === "all" ? snapshot : some)).map(([one, title]) => button(title, () => ((table = one), showTable()), { "data-key": one, ariaPressed: one === now }));
    keepFocus(tabs, () => fill(tabs, buttons), tables.deletes.element.querySelector("[tabindex='0']"));
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  function draw() {
    const v = vector();
    picture.hidden = facts.hidden = !has();
    const said = model.get("selection").snapshot ? v.notes ?? [] : ["The table has no snapshot, so nothing is deleted."];
    const notes = said.map((text) => el("div.ice-evidence", text));
    const nothing = model.get("busy") === "" && model.get("error").text ? "It could not be read." : "Reading …";
    const { cancelled, ...asked } = model.get("vector_of");
    const again = cancelled && ["Cancelled. ", el("button.ice-link", { onclick: () => ask(asked) }, "Try again")];
    if (!has()) drawHead(notes[0] ? notes : el("div.ice-evidence", again || nothing));
    else {
      const of = v.rows === null ? "" : ` of ${plural(v.rows, v.kind === "manifest-dv" ? "entry" : "row").replace("entrys", "entries")} (${share(v.cardinality, v.rows || 1)})`;
      const span = v.cardinality ? ` · ${plural(v.runs, "run")} · positions ${count(Number(v.first))} to ${count(Number(v.last))}` : "";
      drawHead(
        el("div.ice-title", icon(model.get("styles"), v.kind, 20), el("div.ice-name", el("span.ice-kind", v.title), el("strong", v.cardinality ? `${count(v.cardinality)} deleted${of}${span}` : "Nothing is deleted here by position"))),
        v.of && el("div.ice-path", v.of),
        notes,
        v.paths[0] && el("label.ice-evidence", "Data file ", el("select.ice-select.ice-wide-select", { onchange: (event) => ask({ node: v.node, path: event.target.value, footer: false }) }, v.paths.map(([path, n, shown]) => el("option", { value: path, selected: path === (v.path || v.paths[0][0]) }, `${count(n)} in ${shown}`)))),
      );
      keepFocus(facts, drawFacts, tabs.firstChild);
      paint();
    }
    showTable();
  }
  const drawHead = (...parts) => keepFocus(head, () => fill(head, ...parts), tabs.querySelector("button"));
  function drawFacts() {
    const v = vector();
    const most = Math.max(1, ...v.encodings.map(({ bytes }) => Number(bytes)));
    const line = ({ name, bytes, note }) =>
      el("tr", el("th", { scope: "row" }, name), el("td.ice-right", bytes === null ? "–" : `${count(bytes)} B`), el("td.ice-bytes-cell", el("span.ice-bytes-bar", { style: { width: `${Math.max(bytes ? 1 : 0, (100 * Number(bytes)) / most)}%` } })), el("td.ice-evidence", note));
    const kinds = Object.entries(v.containers).map(([kind, n]) => `${count(n)} ${kind}`);
    const known = v.borders_from;
    const groups =
      v.groups[0] &&
      el("details.ice-rest", el("summary", plural(v.groups.length, "row group")), el("table.ice-table", el("thead", el("tr", ["Row group", "Rows", "Deleted", "Share"].map((text) => el("th", { scope: "col" }, text)))), el("tbody", v.groups.map(([all, gone], i) => el("tr", [i, all, gone].map((n) => el("td.ice-right", count(n))), el("td.ice-right", share(gone, all || 1)))))));
    const read = known !== "footer" && v.rows > 0 && v.kind !== "manifest-dv" && button("Read the row groups from the data file's footer", () => ask({ node: v.node, path: v.path, footer: true }));
    fill(
      facts,
      el("table.ice-bytes", el("caption", "Bytes by encoding"), el("tbody", v.encodings.map(line))),
      el("div.ice-evidence", `Roaring containers: ${kinds.join(", ")}.`, known === "split offsets" && " Row groups are drawn about where the split offsets have them."),
      read,
      groups,
    );
  }
  function paint() {
    const wide = picture.clientWidth;
    if (!has() || !wide || !colours.line) return;
    const { cardinality, borders, rows, picture: { cells, width, size } } = vector();
    canvas.hidden = cells.length === 0;
    const cell = clamp(3, Math.floor(Math.sqrt((wide * HEIGHT) / Math.max(1, cells.length))), 12);
    const columns = Math.max(1, Math.floor(wide / cell));
    layout = { columns, cell };
    const high = Math.max(1, Math.ceil(cells.length / columns)) * cell;
    const c = stretch(canvas, columns * cell, high);
    canvas.style.width = `${columns * cell}px`;
    canvas.style.height = `${high}px`;
    const { line, accent, dark, plain } = colours;
    const gone = plain ? accent : model.get("styles")["mark:removed"]?.[dark ? "dark" : "light"];
    const gap = cell > 4 ? 1 : 0.5;
    cells.forEach((n, i) => {
      const [x, y] = [(i % columns) * cell, Math.floor(i / columns) * cell];
      c.globalAlpha = plain ? 0.25 : 1; // the system's lines are as bright as its text
      c.fillStyle = line;
      c.fillRect(x, y, cell - gap, cell - gap);
      if (!n) return;
      c.globalAlpha = 0.15 + 0.85 * Math.sqrt(n / Number(width));
      c.fillStyle = gone;
      c.fillRect(x, y, cell - gap, cell - gap);
    });
    c.globalAlpha = 1;
    c.fillStyle = accent;
    for (const start of borders) {
      const i = Math.floor(Number(start) / Number(width));
      if (start > 0) c.fillRect((i % columns) * cell - gap, Math.floor(i / columns) * cell - gap, 2, cell + gap);
    }
    canvas.ariaLabel = `${count(cardinality)} of ${count(rows ?? size)} positions deleted; the table below has them`;
    say(`Each square is ${Number(width) === 1 ? "one position" : plural(Number(width), "position")}${Number(width) > 1 ? ", the stronger the more are deleted" : ""}; ${count(size)} in all${borders.length > 1 ? "; a line begins a row group" : ""}.`);
  }
  const say = (text) => (under.textContent = text);

  listen(canvas, {
    pointermove({ offsetX, offsetY }) {
      const { cells, width, size } = vector().picture;
      const i = Math.floor(offsetY / layout.cell) * layout.columns + Math.floor(offsetX / layout.cell);
      if (cells[i] === undefined) return;
      const [first, last] = [i * Number(width), Math.min(Number(size), (i + 1) * Number(width)) - 1];
      const group = vector().borders.filter((start) => Number(start) <= first).length;
      const where = group ? `, row group ${group - 1}` : "";
      say(first === last ? `Position ${count(first)}: ${cells[i] ? "deleted" : "not deleted"}${where}` : `Positions ${count(first)} to ${count(last)}: ${count(cells[i])} deleted (${share(cells[i], last - first + 1)})${where}`);
    },
    pointerleave: paint,
  });

  const sight = new IntersectionObserver((entries) => {
    seen = entries.at(-1).isIntersecting;
    look();
  });
  sight.observe(box);
  model.end(() => sight.disconnect());
  model.listen(["vector", "vector_of", "error"], draw);
  model.listen(["selection"], look);
  draw();
  return box;
}
