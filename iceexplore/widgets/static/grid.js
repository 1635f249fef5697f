// A table: pages from Python, sorted and filtered there; cells to walk with the arrow keys (WAI-ARIA grid pattern).

import { check, menuOf } from "./controls.js";
import {
  changeSelection,
  clamp,
  consumeEvent,
  el,
  fill,
  focusedIn,
  formatCount,
  keepFocus,
  lineIcon,
  linkButton,
  listen,
  NO_TAB_STOP,
  plural,
  sameJson,
  setEnabled,
  shortenPath,
  timer,
} from "./dom.js";
import { filterBar } from "./gridFilters.js";
import { gridExport } from "./export.js";
import { inNextFrame, onResize } from "./painting.js";

const FEW = 6; // columns that need no menu
const LOWEST = 20; // px that a row is high at least
const SOME = 20; // rows out of view that are drawn at once
const PAUSE = 500; // ms after which the first of them are
const FRAME = 20; // and the next
const SHORT = 20; // letters that have room in a cell, whichever they are

// Shows the page of a grid; `show(of, table, more)` of what is returned asks for a table, `look(of, table)` for one that is
// not there already. `onRow(node)` is called when the row of a node is opened; without it the node is selected.
export function gridView(model, { grid, label, onRow = (node) => chooseNode(model, node) }) {
  const summary = el("summary.button");
  const list = el("div.menu-list", NO_TAB_STOP);
  const menu = menuOf(summary, { ontoggle: drawMenu }, list);
  const panel = el("div.panel", NO_TAB_STOP);
  const messageLine = el("span.message.gap", { role: "status" });
  const pager = el("div.pager");
  let page = {}; // what is shown
  let asked = null; // the query that is not answered yet
  let fault = ""; // what is wrong with the filter that is typed
  let note = ""; // what was done last
  let looked = null; // what was looked at last
  let focus = [0, 0]; // the cell that has the tab stop: row (-1 the header), place in it
  let tall = 400; // px that are in view; this and how far it is scrolled are heard of: to ask takes a layout
  let [across, down] = [0, 0];
  let drawRows = () => {}; // draws so many more of the page's rows
  const wait = timer(model);
  const soon = inNextFrame(model, draw);

  const drawMessage = () => (messageLine.textContent = messageLine.title = fault || note);
  const say = (words) => ((note = words), drawMessage());
  const filters = filterBar(model, {
    label,
    page: () => page,
    current,
    ask,
    say: (words) => ((fault = words), drawMessage()),
  });
  filters.bar.append(menu);
  const out = gridExport(model, {
    grid,
    page: () => page,
    cell: () => (focus[0] < 0 ? [0, Math.floor(focus[1] / 2)] : focus),
    say,
  });
  const box = el("div.grid", { role: "region", ariaLabel: label }, filters.bar, filters.chips, panel, pager);

  const sent = () => model.pages[grid] ?? {};
  const elsewhere = ({ of, table }) => of !== page.of || table !== page.table;
  const leads = (to) => to !== page.page && to === clamp(0, to, page.pages - 1);
  const leaf = (to) => leads(to) && ask({ page: to });
  const chosen = () => model.selection.node;

  const waits = () => asked && !(sent().n >= asked.n);
  // What is asked for, or there.
  function current() {
    return waits() ? asked : { ...sent(), columns: sent().shown };
  }

  function ask(change) {
    const { of, table, sort, filters, columns } = current();
    const queries = model.query;
    const n = Math.max(queries[grid]?.n ?? 0, sent().n ?? 0) + 1;
    asked = { of, table, page: 0, sort, filters, columns, ...change, n };
    model.save("query", { ...queries, [grid]: asked });
    drawState();
  }

  // Another table; what is typed, sorted and filtered goes with the old one.
  function show(of, table, more) {
    filters.forget();
    focus = [0, 0];
    asked = { of, table };
    ask(more);
  }

  // Once: what could not be read is not asked for again, and what another view has asked for stays sorted and filtered.
  // What is there need not be what comes, or be shown: another table may have been asked for.
  function look(of, table) {
    if (sameJson(looked, [of, table])) return;
    looked = [of, table];
    const now = current();
    if (!page.of || now.of !== of || now.table !== table) show(of, table);
  }

  // The table ----------------------------------------------------------------------------------------------------------

  function draw() {
    const now = sent();
    if (waits()) return; // an answer to what was asked before
    const wanted = asked?.filters;
    const held = focusedIn(panel);
    const moved = elsewhere(now);
    const turned = moved || page.page !== now.page || !sameJson([page.sort, page.filters], [now.sort, now.filters]);
    asked = null;
    page = now;
    say("");
    if (wanted && page.refused) {
      filters.miss(wanted);
      filters.tell(page.refused);
    } else filters.settle(page.filters);
    if (moved) filters.drawColumns();
    drawMenu();
    // The focus stays at its place in the table, whatever is there now.
    panel.replaceChildren();
    wait();
    if (page.text !== undefined) panel.append(el("pre.text", { tabindex: 0, ariaLabel: label }, page.text));
    if (page.rows) drawTable(turned);
    if (turned && (across || down)) panel.scrollTo(moved ? 0 : across, 0);
    const home = panel.querySelector("[tabindex='0']") ?? panel;
    if (held) home.focus();
    keepFocus(pager, drawPager, home);
    drawState();
    // Now that all has the height that it will have.
    reveal();
  }

  function drawTable(turned) {
    const { columns, shown, rows, nodes, sort, total } = page;
    const head = shown.map((place) => {
      const { name, right, doc } = columns[place];
      const filtered = page.filters.some(({ column }) => column === place);
      return el(
        "th",
        {
          scope: "col",
          class: right && "right",
          ariaColIndex: place + 1,
          ariaSort: sort?.[0] === place ? `${sort[1]}ending` : "none",
        },
        el(
          "div.th",
          el(
            "button.sort",
            {
              tabindex: -1,
              title: doc ? `${name}: ${doc}` : name,
              onclick: () => sortBy(place),
            },
            el("span", name),
            el("span.way", { ariaHidden: true }),
          ),
          el("button.funnel", {
            class: filtered && "on",
            tabindex: -1,
            ariaLabel: `Filter ${name}`,
            onclick: () => filters.begin(place),
          }, lineIcon("M2 4h12l-4.5 5v4l-3-1.5V9z", 12)),
        ),
      );
    });
    const link = Math.max(0, shown.findIndex((place) => !columns[place].right)); // text tells more of a row than a number
    // Rows are copies of one: a page has a thousand cells and more.
    const pattern = el(
      "tr",
      shown.map((place, i) =>
        el(i ? "td" : "th", {
          scope: i ? null : "row",
          tabindex: -1,
          ariaColIndex: place + 1,
          class: columns[place].right && "right",
        })
      ),
    );
    const rowOf = (row, at) => {
      const line = pattern.cloneNode(true);
      line.ariaRowIndex = page.page * page.size + at + 2;
      if (nodes[at]) {
        line.dataset.node = nodes[at];
        line.ariaSelected = nodes[at] === chosen();
      }
      row.forEach((value, i) => {
        const cell = line.cells[i];
        if (value === null) cell.classList.add("ice-null");
        else if (value.length > SHORT) cell.title = value;
        cell.append(i === link && nodes[at] ? el("span.open", written(value)) : written(value));
      });
      return line;
    };
    const body = el("tbody");
    // What is in view is drawn at once; the rows below it when somebody goes there or pauses, so that no frame has all of a
    // page's cells to lay out, and who clicks through a tree never waits for what is out of sight.
    drawRows = (most, pause = FRAME) => {
      const from = body.rows.length;
      body.append(...rows.slice(from, from + most).map((row, i) => rowOf(row, from + i)));
      wait(body.rows.length < rows.length && (() => drawRows(SOME)), pause);
    };
    drawRows(turned ? Math.ceil(tall / LOWEST) : Infinity, PAUSE);
    const late = rows.slice(body.rows.length);
    panel.append(
      el(
        "table.table",
        {
          class: !head[1] && "one",
          role: "grid",
          ariaLabel: label,
          ariaRowCount: total + 1,
          ariaColCount: columns.length,
        },
        el("thead", el("tr", head)),
        body,
        // The texts that are not drawn yet, unseen: a column has its width before its last row.
        el(
          "tfoot.widths",
          { ariaHidden: true },
          el("tr", shown.map((_, i) => el("td", late.map((row) => written(row[i])).join("\n")))),
        ),
      ),
    );
    if (!total) panel.append(el("div.empty", empty()));
    if (page.lacks) panel.prepend(el("div.lacks", { role: "status" }, `▲ ${page.lacks}`));
    focus = [Math.min(focus[0], rows.length - 1), focus[1]];
    stop();
  }
  const written = (value) => (value === null ? "null" : shortenPath(value));

  function sortBy(place) {
    const [now, way] = current().sort ?? [];
    ask({ sort: now !== place ? [place, "asc"] : way === "asc" ? [place, "desc"] : null });
  }

  function empty() {
    const { filters: had, none = "No rows.", whole } = page;
    return had.length
      ? [
        `None of ${formatCount(whole)} rows matches. `,
        linkButton(had.length > 1 ? "Remove all filters" : "Remove the filter", filters.clear),
      ]
      : none;
  }

  function drawMenu() {
    const { columns = [], shown = [] } = page;
    menu.hidden = columns.length <= FEW;
    summary.textContent = shown.length < columns.length ? `Columns ${shown.length}/${columns.length}` : "Columns";
    const toggle = (place, on) =>
      ask({
        columns: on ? [...shown, place].sort((a, b) => a - b) : shown.filter((other) => other !== place),
        page: page.page,
      });
    fill(
      list,
      // They are made when they are looked at.
      menu.open &&
        columns.map(({ name, doc }, place) =>
          check(name, (on) => toggle(place, on), {
            checked: shown.includes(place),
            "data-key": place,
            disabled: shown.length === 1 && shown[0] === place,
          }, doc || null)
        ),
    );
  }

  function drawPager() {
    const { text, rows, total, whole, pages, size } = page;
    const button = (words, onclick, on, ariaLabel) =>
      setEnabled(el("button.button", { ariaLabel, onclick }, words), on);
    if (text !== undefined) return fill(pager, messageLine, button("Copy", () => out.copied(text), true));
    if (!rows) return;
    const first = page.page * size;
    const range = (pages > 1 ? `${formatCount(first + 1)}–${formatCount(first + rows.length)} of ` : "") +
      plural(total, "row");
    const go = (words, name, to) => button(words, () => leaf(to), leads(to), name);
    const number = el("input.input.number", {
      inputmode: "numeric",
      ariaLabel: `Page, of ${formatCount(pages)}`,
      value: formatCount(page.page + 1),
      onfocus: () => number.select(),
      onkeydown: (event) => {
        event.stopPropagation();
        if (event.key !== "Enter") return;
        const wanted = Number(number.value.replaceAll(/\D/g, ""));
        if (wanted) ask({ page: Math.min(wanted, pages) - 1 });
        else number.value = formatCount(page.page + 1);
      },
    });
    fill(
      pager,
      el("span.range", { role: "status" }, total < whole ? `${range} (of ${formatCount(whole)})` : range),
      pages > 1 &&
        [
          go("«", "First page", 0),
          go("‹", "Previous page", page.page - 1),
          number,
          go("›", "Next page", page.page + 1),
          go("»", "Last page", pages - 1),
        ],
      messageLine,
      button("Copy cell", out.copyCell, total),
      button("Copy row", out.copyRow, total, "Copy row as JSON"),
      button("CSV", out.download, total, "Download all rows as CSV"),
    );
  }

  function drawState() {
    box.ariaBusy = asked !== null;
    if (asked && page.of === undefined) fill(panel, el("div.empty", "Reading …"));
    filters.bar.hidden = !page.rows && (!asked || page.of !== undefined);
    pager.hidden = page.of === undefined;
    filters.drawChips();
  }

  // What was asked for does not come: it could not be read, or somebody cancelled. What was shown of it before still is.
  function missed(words) {
    const again = asked;
    asked = null;
    if (!elsewhere(again)) filters.miss(again.filters);
    else {
      page = {};
      fill(panel, el("div.empty", words, " ", linkButton("Try again", () => ask(again))));
    }
    drawState();
  }

  // Cells to walk ------------------------------------------------------------------------------------------------------

  function rowAt(place) {
    const body = panel.querySelector("tbody");
    if (place >= body?.rows.length) drawRows(Infinity);
    return body?.rows[place];
  }
  const line = (row) => [...(row < 0 ? panel.querySelectorAll("thead button") : rowAt(row)?.cells ?? [])];
  // The cell that has the focus has the tab stop; without a focus it stays at its place.
  function stop() {
    for (const old of panel.querySelectorAll("table [tabindex='0']")) old.tabIndex = -1;
    const cells = line(focus[0]);
    const cell = cells[focus[1]] ?? cells.at(-1);
    if (cell) cell.tabIndex = 0;
  }
  function walk(row, place) {
    const next = clamp(-1, row, page.rows.length - 1);
    if (next < 0 && focus[0] >= 0) place *= 2; // the header has two buttons for a column
    if (next >= 0 && focus[0] < 0) place = Math.floor(place / 2);
    const cells = line(next);
    cells[clamp(0, place, cells.length - 1)].focus();
  }
  function place(target) {
    const row = target.closest("tr")?.rowIndex - 1;
    const found = line(row).indexOf(target.closest("button, td, th"));
    return found < 0 ? null : [row, found];
  }
  function open(target) {
    const { node } = target.closest("tr")?.dataset ?? {};
    if (node) onRow(node);
  }
  // The row of what is selected comes into sight, without moving the notebook.
  function reveal() {
    const row = rowAt(page.nodes?.indexOf(chosen()));
    if (!row) return;
    const top = row.offsetTop - panel.querySelector("thead").offsetHeight;
    const bottom = row.offsetTop + row.offsetHeight + 6;
    panel.scrollTop = clamp(bottom - panel.clientHeight, panel.scrollTop, top);
  }
  function drawSelection() {
    for (const row of panel.querySelectorAll("tr[data-node]")) row.ariaSelected = row.dataset.node === chosen();
    reveal();
  }

  // The header and the first column stay in sight beside what is scrolled to; until then they are like all others, to be drawn at once.
  function scrolled() {
    [across, down] = [panel.scrollLeft, panel.scrollTop];
    panel.classList.toggle("ice-across", across > 0);
    panel.classList.toggle("ice-down", down > 0);
    if (down) drawRows(Infinity);
  }
  onResize(model, panel, ([{ contentRect }]) => (tall = contentRect.height || tall));
  listen(panel, {
    scroll: scrolled,
    click: ({ target }) => target.closest(".ice-open") && open(target),
    dblclick: ({ target }) => open(target),
    focusin(event) {
      focus = place(event.target) ?? focus;
      stop();
    },
    keydown(event) {
      const [row, cell] = place(event.target) ?? [];
      const far = event.ctrlKey || event.metaKey;
      if (row === undefined || event.altKey || event.shiftKey) return;
      const near = {
        ArrowDown: () => walk(row + 1, cell),
        ArrowUp: () => walk(row - 1, cell),
        ArrowRight: () => walk(row, cell + 1),
        ArrowLeft: () => walk(row, cell - 1),
        Home: () => walk(row, 0),
        End: () => walk(row, Infinity),
        PageDown: () => leaf(page.page + 1),
        PageUp: () => leaf(page.page - 1),
        Enter: row >= 0 && (() => open(event.target)),
      };
      const ends = {
        Home: () => walk(0, 0),
        End: () => walk(page.rows.length - 1, Infinity),
        c: row >= 0 && getSelection().isCollapsed && out.copyCell,
      };
      const act = (far ? ends : near)[event.key];
      if (!act) return;
      consumeEvent(event);
      act();
    },
  });

  model.onChange("pages", () => {
    if (sameJson(page, sent())) return; // another grid's has come
    // Another table is drawn a frame later than what else the same answer tells: two short frames, not a long one.
    if (page.of !== undefined && elsewhere(sent())) soon();
    else draw();
  });
  model.onChange("selection", drawSelection);
  model.onChange("error", () => asked && model.error.text && missed("This could not be read."));
  model.onChange("cancelled", () => asked && missed("Cancelled."));
  draw();
  return { element: box, ask, show, look, current };
}

// Selects a node, and the snapshot that it is of.
export function chooseNode(model, node) {
  const snapshot = /^(?:snapshot|root|manifest|file|statistics):(-?\d+)/.exec(node)?.[1];
  changeSelection(model, { node, ...(snapshot && { snapshot }) });
}
