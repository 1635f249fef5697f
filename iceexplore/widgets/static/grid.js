// A table: pages from Python, sorted and filtered there; cells to walk with the arrow keys (WAI-ARIA grid pattern).

import { menuOf } from "./controls.js";
import { choose, clamp, count, el, enable, fill, focusedIn, keepFocus, lines, listen, ours, plural, same, tail, timer, UNSTOPPED } from "./dom.js";
import { filterBar } from "./filters.js";
import { outlet } from "./outlet.js";
import { resized } from "./theme.js";

const FEW = 6; // columns that need no menu
const LOWEST = 20; // px that a row is high at least
const SOME = 20; // rows out of view that are drawn in a frame
const PAUSE = 500; // ms after which they are
const ROOM = 250; // px of text in a cell, which has 260
const ROOM_OF_NAME = 200; // in a header, beside its two buttons
const SHORT = 20; // letters that have room in a cell, whichever they are
// Of the style sheet: the first page is drawn before the box is in the notebook and has one.
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
// Letters that stay where they are put, and take room each.
const PLAIN = /^[ -~]*$/;

// Shows the page of a grid; `show(of, table, more)` of what is returned asks for a table, `look(of, table)` for one that is
// not there already. `onRow(node, row)` is called for
// a row that stands for a node and is opened; without it the node is selected.
export function gridView(model, { grid, label, onRow = (node) => chooseNode(model, node) }) {
  const summary = el("summary.ice-button");
  const list = el("div.ice-menu-list", UNSTOPPED);
  const menu = menuOf(summary, { ontoggle: () => drawMenu() });
  const panel = el("div.ice-panel", UNSTOPPED);
  const said = el("span.ice-said.ice-gap", { role: "status" });
  const pager = el("div.ice-pager");
  const page = () => model.get("pages")[grid] ?? {};
  const waits = () => asked && !(page().n >= asked.n);
  const current = () => (waits() ? asked : page());
  const drawSaid = () => (said.textContent = said.title = fault || note);
  const say = (words) => ((note = words), drawSaid());
  const filters = filterBar(model, { label, page, current, ask, say: (words) => ((fault = words), drawSaid()) });
  filters.bar.append(menu);
  const box = el("div.ice-grid", { role: "region", ariaLabel: label }, filters.bar, filters.chips, panel, pager);
  let asked = null; // the query that is not answered yet
  let looked = null; // what was looked at last
  let fault = ""; // what is wrong with the filter that is typed
  let note = ""; // what was done last
  let focus = [0, 0]; // the cell that has the tab stop: row (-1 the header), place in it
  let drawn = {}; // the page that is shown
  let tall = 400; // px that are in view; this and how far it is scrolled are heard of: to ask takes a layout
  let [across, down] = [0, 0];
  let rest = null; // draws rows that are not in view
  const wait = timer(model);
  let turning = 0; // the frame in which another table is drawn
  let font = null; // to measure text

  const out = outlet(model, { grid, page, cell: () => (focus[0] < 0 ? [0, Math.floor(focus[1] / 2)] : focus), say });

  const body = () => page().rows ?? [];
  const another = () => drawn.of !== page().of || drawn.table !== page().table;
  const chosen = () => model.get("selection").node;

  function ask(change) {
    const now = current();
    const queries = model.get("query");
    const { of, table, sort = null, filters = [], columns } = now;
    const kept = columns && typeof columns[0] !== "number" ? page().shown : columns;
    asked = { of, table, page: 0, sort, filters, ...(kept && { columns: kept }), ...change, n: Math.max(queries[grid]?.n ?? 0, page().n ?? 0) + 1 };
    model.put("query", { ...queries, [grid]: asked });
    drawState();
  }

  // Another table; what is typed, sorted and filtered goes with the old one.
  function show(newOf, newTable, more = {}) {
    filters.forget();
    focus = [0, 0];
    asked = { of: newOf, table: newTable };
    ask(more);
  }

  // Once: what could not be read is not asked for again, and what another view has asked for stays sorted and filtered.
  function look(newOf, newTable) {
    if (same(looked, [newOf, newTable])) return;
    looked = [newOf, newTable];
    if (page().of !== newOf || page().table !== newTable) show(newOf, newTable);
  }

  // The table ----------------------------------------------------------------------------------------------------------

  function sortBy(place) {
    const [now, way] = current().sort ?? [];
    ask({ sort: now !== place ? [place, "asc"] : way === "asc" ? [place, "desc"] : null, page: 0 });
  }

  function drawTable() {
    const now = page();
    const held = focusedIn(panel);
    const moved = another();
    const turned = moved || drawn.page !== now.page || !same(drawn.sort, now.sort) || !same(drawn.filters, now.filters);
    drawn = now;
    later(null);
    if (moved) filters.drawColumns();
    drawMenu();
    if (now.text !== undefined) return drawText(held);
    if (!now.rows) return fill(panel);
    const shown = now.shown.map((place) => ({ place, ...now.columns[place] }));
    const head = shown.map(({ place, name, right, doc }) => {
      const way = now.sort?.[0] === place ? now.sort[1] : null;
      const filtered = now.filters.some((filter) => filter.column === place);
      return el(
        "th" + (right ? ".ice-right" : "") + (spills(name, ROOM_OF_NAME) ? ".ice-long" : ""),
        { scope: "col", role: "columnheader", ariaColIndex: place + 1, ariaSort: way ? (way === "asc" ? "ascending" : "descending") : "none" },
        el("div.ice-th",
          el("button.ice-sort", { tabindex: -1, title: doc ? `${name}: ${doc}` : name, onclick: () => sortBy(place) }, el("span.ice-th-name", name), el("span.ice-way", { ariaHidden: true }, way ? (way === "asc" ? "↑" : "↓") : "")),
          el("button.ice-funnel", { class: filtered && "ice-on", tabindex: -1, ariaLabel: `Filter ${name}`, onclick: () => filters.begin(place) }, lines("M2 4h12l-4.5 5v4l-3-1.5V9z", 12)),
        ),
      );
    });
    const link = Math.max(0, shown.findIndex(({ right }) => !right)); // text tells more of a row than a number
    // Rows are copies of one: a page has a thousand cells and more.
    const pattern = el("tr", { role: "row" }, shown.map(({ right, place }, i) =>
      el(i === 0 ? "th" : "td", { role: i === 0 ? "rowheader" : "gridcell", tabindex: -1, ariaColIndex: place + 1, class: right && "ice-right" })));
    const rowOf = (row, at) => {
      const node = now.nodes?.[at];
      const line = pattern.cloneNode(true);
      line.ariaRowIndex = now.page * now.size + at + 2;
      if (node) {
        line.className = "ice-goes";
        line.dataset.node = node;
        line.ariaSelected = node === chosen();
      }
      let cell = line.firstChild;
      row.forEach((value, i) => {
        const words = written(value);
        const long = spills(words, ROOM);
        if (value === null) cell.classList.add("ice-null");
        else if (words !== value || (long && words.length > SHORT)) cell.title = value;
        if (long) cell.classList.add("ice-long");
        cell.append(i === link && node ? el("span.ice-open", words) : words);
        cell = cell.nextSibling;
      });
      return line;
    };
    const rows = el("tbody", { role: "rowgroup" });
    const content = el(
      "table.ice-table",
      { class: !head[1] && "ice-one", role: "grid", ariaLabel: label, ariaRowCount: now.total + 1, ariaColCount: now.columns.length },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
      rows,
      el("tfoot.ice-widths", { ariaHidden: true }, rowOf(now.shown.map((_, i) => widest(now.rows, i)), -1)),
    );
    const more = (count) => {
      const from = rows.childElementCount;
      rows.append(...now.rows.slice(from, from + count).map((row, i) => rowOf(row, from + i)));
      if (rows.childElementCount === now.rows.length) later(null);
    };
    later(more);
    more(turned ? Math.ceil(tall / LOWEST) : Infinity);
    fill(panel, content, !now.total && drawEmpty(now));
    if (across) panel.scrollLeft = moved ? 0 : across;
    if (down && turned) panel.scrollTop = 0;
    focus = [Math.min(focus[0], body().length - 1), focus[1]];
    stop(held);
  }
  // What is in view is drawn at once; the rows below it when somebody goes there or pauses, so that no frame has all of a
  // page's cells to lay out, and who clicks through a tree never waits for what is out of sight.
  function later(more) {
    rest = more;
    const next = () => rest && (rest(SOME), requestAnimationFrame(next));
    wait(more && next, PAUSE);
  }
  const finish = () => rest?.(Infinity);
  function widthOf(words) {
    font ??= Object.assign(document.createElement("canvas").getContext("2d"), { font: FONT });
    return font.measureText(words.slice(0, 100)).width;
  }
  const written = (value) => (value === null ? "null" : tail(value));
  // Whether a text may leave its cell. Only such cells clip: a browser takes long over a thousand that do.
  const spills = (words, room) => !PLAIN.test(words) || widthOf(words) > room;
  // The value of a column that needs most room: columns have their width before the last row is drawn.
  function widest(rows, place) {
    const widths = rows.map((row) => widthOf(written(row[place])));
    return rows[widths.indexOf(Math.max(...widths))]?.[place] ?? null;
  }

  function drawText(held) {
    fill(panel, el("pre.ice-text", { tabindex: 0, ariaLabel: label }, page().text));
    panel.scrollTop = 0;
    if (held) panel.firstChild.focus({ preventScroll: true });
  }

  function drawEmpty(now) {
    if (!now.filters.length) return el("div.ice-empty", now.none ?? "No rows.");
    return el("div.ice-empty", `None of ${count(now.whole)} rows matches. `, el("button.ice-link", { onclick: filters.clear }, now.filters.length > 1 ? "Remove all filters" : "Remove the filter"));
  }

  function drawMenu() {
    const { columns = [], shown = [] } = page();
    menu.hidden = columns.length <= FEW || page().text !== undefined;
    summary.textContent = shown.length < columns.length ? `Columns ${shown.length}/${columns.length}` : "Columns";
    if (!menu.open) return list.remove(); // it is made when it is looked at
    const toggle = (place, on) => {
      const columns = on ? [...shown, place].sort((a, b) => a - b) : shown.filter((other) => other !== place);
      if (columns.length) ask({ columns, page: page().page });
    };
    const held = focusedIn(list)?.dataset.place;
    fill(
      list,
      columns.map(({ name, doc }, place) =>
        el("label", { title: doc || null }, el("input", { type: "checkbox", checked: shown.includes(place), "data-place": place, disabled: shown.length === 1 && shown[0] === place, onchange: (event) => toggle(place, event.target.checked) }), el("span", name)),
      ),
    );
    if (!list.isConnected) menu.append(list);
    list.querySelector(`[data-place="${held}"]`)?.focus({ preventScroll: true });
  }

  function drawPager() {
    const now = page();
    pager.hidden = now.rows === undefined && now.text === undefined;
    const button = (words, name, run, off = false) => enable(el("button.ice-button", { ariaLabel: name === words ? null : name, onclick: run }, words), !off);
    if (now.text !== undefined) return fill(pager, said, button("Copy", "Copy", () => out.copied(now.text)));
    if (!now.rows) return;
    const first = now.page * now.size;
    const range = (now.pages > 1 ? `${count(first + 1)}–${count(first + now.rows.length)} of ` : "") + plural(now.total, "row");
    const go = (to, words, name) => button(words, name, () => ask({ page: to }), to < 0 || to >= now.pages || to === now.page);
    const number = el("input.ice-input.ice-number", { inputmode: "numeric", ariaLabel: `Page, of ${count(now.pages)}`, value: count(now.page + 1), onfocus: () => number.select(), onkeydown: (event) => {
      event.stopPropagation();
      const wanted = Number(number.value.replaceAll(/\D/g, ""));
      if (event.key !== "Enter") return;
      if (wanted) ask({ page: Math.min(wanted, now.pages) - 1 });
      else number.value = count(now.page + 1);
    } });
    fill(
      pager,
      el("span.ice-range", { role: "status" }, now.total < now.whole ? `${range} (of ${count(now.whole)})` : range),
      now.pages > 1 && [go(0, "«", "First page"), go(now.page - 1, "‹", "Previous page"), number, go(now.page + 1, "›", "Next page"), go(now.pages - 1, "»", "Last page")],
      said,
      button("Copy cell", "Copy cell", out.copyCell, !now.total),
      button("Copy row", "Copy row as JSON", out.copyRow, !now.total),
      button("CSV", "Download all rows as CSV", out.download, !now.total),
    );
  }

  function drawState() {
    box.ariaBusy = asked !== null;
    if (asked && !page().rows && page().text === undefined) fill(panel, el("div.ice-empty", "Reading …"));
    filters.bar.hidden = page().text !== undefined || (!page().rows && !asked);
    filters.drawChips();
  }

  // What was asked for does not come: it could not be read, or somebody cancelled.
  function missed(words, { of, table, page: wanted, ...how } = asked) {
    asked = null;
    const here = page().of === of && page().table === table;
    filters.miss(how.filters, here);
    drawState();
    if (here && page().rows) return; // what was shown before still is
    const again = () => ((asked = { of, table, ...how }), ask({ page: wanted ?? 0 }), filters.focus());
    fill(panel, el("div.ice-empty", words, " ", el("button.ice-link", { onclick: again }, "Try again")));
    pager.hidden = filters.bar.hidden = filters.chips.hidden = true;
    drawn = {};
  }

  // Another table is drawn a frame later than what else the same answer tells: two short frames, not a long one.
  function turn() {
    if (drawn.of === undefined || !another()) draw();
    else if (!turning) turning = requestAnimationFrame(draw);
  }
  const settle = () => turning && draw();

  function draw() {
    cancelAnimationFrame(turning);
    turning = 0;
    if (waits()) return; // an answer to what was asked before
    const wanted = asked?.filters;
    asked = null;
    const now = page();
    if (["of", "table", "n"].some((key) => drawn[key] !== now[key])) say("");
    if (wanted && now.refused) filters.miss(wanted, true, now.refused);
    else filters.settle(now.filters);
    drawTable();
    keepFocus(pager, drawPager, panel.querySelector("[tabindex='0']"));
    drawState();
    // Now that all has the height that it will have.
    reveal();
  }

  // Cells to walk ------------------------------------------------------------------------------------------------------

  const rowAt = (place) => {
    const { rows = [] } = panel.querySelector("tbody") ?? {};
    if (place >= rows.length) finish();
    return rows[place];
  };
  const line = (row) => (row < 0 ? [...panel.querySelectorAll("thead button")] : [...(rowAt(row)?.children ?? [])]);
  const at = ([row, place]) => {
    const cells = line(row);
    return cells[clamp(0, place, cells.length - 1)];
  };
  function stop(move) {
    for (const old of panel.querySelectorAll("[tabindex='0']")) old.tabIndex = -1;
    const cell = at(focus);
    if (!cell) return;
    cell.tabIndex = 0;
    if (move) cell.focus({ preventScroll: false });
  }
  function walk(row, place) {
    const next = clamp(-1, row, body().length - 1);
    if (next < 0 && focus[0] >= 0) place *= 2; // the header has two buttons for a column
    if (next >= 0 && focus[0] < 0) place = Math.floor(place / 2);
    focus = [next, clamp(0, place, line(next).length - 1)];
    stop(true);
  }
  function place(target) {
    const cell = target.closest?.("td, th, button");
    const row = [...panel.querySelectorAll("tr")].indexOf(cell?.closest("tr")) - 1;
    const found = line(row).indexOf(row < 0 ? target.closest("button") : target.closest("td, th"));
    return found < 0 ? null : [row, found];
  }
  function open(row) {
    const node = page().nodes?.[row];
    if (node) onRow(node, row);
  }
  // The row of what is selected comes into sight, without moving the notebook.
  function reveal() {
    const row = rowAt(page().nodes?.indexOf(chosen()));
    if (!row) return;
    const top = row.offsetTop - panel.querySelector("thead").offsetHeight;
    const bottom = row.offsetTop + row.offsetHeight + 6;
    panel.scrollTop = clamp(bottom - panel.clientHeight, panel.scrollTop, top);
  }
  function drawSelection() {
    if (turning) return;
    for (const row of panel.querySelectorAll("tr[data-node]")) row.ariaSelected = row.dataset.node === chosen();
    reveal();
  }

  // The header and the first column stay in sight beside what is scrolled to; until then they are like all others, to be drawn at once.
  function scrolled() {
    [across, down] = [panel.scrollLeft, panel.scrollTop];
    panel.classList.toggle("ice-across", across > 0);
    panel.classList.toggle("ice-down", down > 0);
    if (down) finish();
  }
  resized(model, panel, ([{ contentRect }]) => (tall = contentRect.height || tall));
  listen(panel, {
    scroll: scrolled,
    click(event) {
      const found = place(event.target);
      if (!found) return;
      focus = found;
      stop(found[0] >= 0);
      if (event.target.closest(".ice-open")) open(found[0]);
    },
    dblclick(event) {
      const found = place(event.target);
      if (found && found[0] >= 0) open(found[0]);
    },
    focusin: (event) => (focus = place(event.target) ?? focus),
    keydown(event) {
      if (page().rows === undefined || !panel.querySelector("table")?.contains(event.target)) return;
      const [row, cell] = focus;
      const far = event.ctrlKey || event.metaKey;
      if (far && event.key === "c" && row >= 0 && getSelection().isCollapsed) {
        ours(event);
        return out.copyCell();
      }
      if (event.altKey || event.shiftKey || (far && !["Home", "End"].includes(event.key))) return;
      const leaf = (to) => to >= 0 && to < page().pages && ask({ page: to });
      const act = {
        ArrowDown: () => walk(row + 1, cell),
        ArrowUp: () => walk(row - 1, cell),
        ArrowRight: () => walk(row, cell + 1),
        ArrowLeft: () => walk(row, cell - 1),
        Home: () => walk(far ? 0 : row, 0),
        End: () => walk(far ? body().length - 1 : row, Infinity),
        PageDown: () => leaf(page().page + 1),
        PageUp: () => leaf(page().page - 1),
        Enter: row >= 0 ? () => open(row) : null,
      }[event.key];
      if (!act) return;
      ours(event);
      act();
    },
  });

  for (const kind of ["pointerdown", "keydown", "focusin"]) box.addEventListener(kind, settle, true);
  model.listen(["pages"], turn);
  model.listen(["selection"], drawSelection);
  model.listen(["error"], () => asked && model.get("error").text && missed("This could not be read."));
  model.listen(["cancelled"], () => asked && missed("Cancelled."));
  model.end(() => {
    cancelAnimationFrame(turning);
    later(null);
  });
  draw();
  return { element: box, ask, show, look, current };
}

// Selects a node, and the snapshot that it is of.
export function chooseNode(model, node) {
  const snapshot = /^(?:snapshot|root|manifest|file|statistics):(-?\d+)/.exec(node)?.[1];
  choose(model, { node, ...(snapshot && { snapshot }) });
}
