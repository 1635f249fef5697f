/**
 * A table: Python sorts and filters its rows and sends them page by page; the arrow keys move from cell to cell
 * (WAI-ARIA grid pattern).
 *
 * @module
 */

/** @import { Model, Query, Sort, TablePage, TextPage } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { checkBox, foldedMenu, helpOf } from "./controls.js";
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
import { gridExport } from "./export.js";
import { filterBar } from "./gridFilters.js";
import { inNextFrame, onResize } from "./painting.js";

/** A table with more columns than this has a menu to choose the shown ones. */
const FEW_COLUMNS = 6;
/** The minimum height of a row, in px. */
const LEAST_ROW_HEIGHT = 20;
/** The number of rows in each batch in which rows out of view are drawn. */
const ROWS_AT_ONCE = 20;
/** The delays, in ms, before the first of these batches and before each following one. */
const FIRST_PAUSE = 500;
const NEXT_PAUSE = 20;
/** The maximum number of characters that fit into a cell, whatever characters they are. */
const FITTING_CHARACTERS = 20;
/** The delay, in ms, after which the rows of the previous table are removed while another table is awaited. */
const AWAITING_DELAY = 200;
/** The minimum width of a column, and by how much a key changes the width, in px. */
const LEAST_WIDTH = 48;
const WIDTH_STEP = 24;
/** The row number of the header; the rows of the table are numbered from 0. */
const HEADER = -1;
const FILTER_ICON = "M2 4h12l-4.5 5v4l-3-1.5V9z";

/**
 * The page that is shown before any page has arrived; it belongs to no table.
 *
 * @type {Partial<TablePage & TextPage>}
 */
const NO_PAGE = {};

/**
 * Return the sort after a click on a column: ascending, descending, none.
 *
 * @param {Sort | null | undefined} sort
 * @param {number} column
 * @returns {Sort | null}
 */
export function nextSort(sort, column) {
  if (sort?.[0] !== column) return [column, "asc"];
  return sort[1] === "asc" ? [column, "desc"] : null;
}

/**
 * Return a text that says which rows are shown, and of how many.
 *
 * @param {Pick<TablePage, "page" | "pages" | "size" | "total" | "whole" | "rows" | "preview">} page
 */
export function rangeText({ page, pages, size, total, whole, rows, preview }) {
  const first = page * size;
  const places = pages > 1 ? `${formatCount(first + 1)}–${formatCount(first + rows.length)} of ` : "";
  const range = places + plural(total, "row");
  const text = total < whole ? `${range} (of ${formatCount(whole)})` : range;
  return preview ? `${text}, ${preview}` : text;
}

/**
 * Return a value as its cell shows it.
 *
 * @param {TablePage} page
 * @param {number} place The column's index.
 * @param {number} at The row's index in the page.
 * @param {string | null} value
 */
function shownText({ texts }, place, at, value) {
  return value === null ? "null" : texts?.[place]?.[at] ?? shortenPath(value);
}

/**
 * Return the tooltip of a cell: the exact value, or "" if the cell shows it. Screen readers also describe the cell with
 * this text, and it is shown when the cell has the focus.
 *
 * @param {string} value
 * @param {string} text What the cell shows.
 * @param {string} [unit]
 */
export function exactText(value, text, unit) {
  if (unit) return `${value.replace(/\B(?=(\d{3})+$)/g, ",")} ${unit}`;
  return text.replaceAll(",", "") === value.replaceAll(",", "") && value.length <= FITTING_CHARACTERS ? "" : value;
}

/**
 * Select a node, and the snapshot to which it belongs.
 *
 * @param {Model} model
 * @param {string} node
 */
export function selectNode(model, node) {
  const snapshot = /^(?:snapshot|root|manifest|file|statistics):(-?\d+)/.exec(node)?.[1];
  // While two snapshots are compared, the tree has the nodes of both, so the selected snapshot need not change.
  const isOther = snapshot && snapshot !== model.selection.against;
  changeSelection(model, { node, ...(isOther && { snapshot }) });
}

/**
 * Return the element of a grid, which shows a table, and functions that control it.
 *
 * @param {Model} model
 * @param {object} options
 * @param {string} options.grid The grid's name.
 * @param {string} options.label
 * @param {(node: string) => void} [options.onRow] Called with the node of a row that was opened; by default, the
 *   node is selected.
 * @param {(number: number) => void} [options.onPick] Called with the table's row number when a cell of that row gets
 *   the focus.
 * @returns {{
 *   element: HTMLElement,
 *   ask: (change: Query) => void,
 *   show: (of: string, table: string, more?: Query) => void,
 *   look: (of: string, table: string) => void,
 *   current: () => Query,
 * }} `ask` requests another page, and `show` another table; `look` does the same as `show`, but once for each table, and
 *   not for the one that is shown. `current` returns the pending query or, if there is none, the query of the page.
 */
export function gridView(model, { grid, label, onRow = (node) => selectNode(model, node), onPick }) {
  const summary = el("summary.button");
  const list = el("div.menu-list", NO_TAB_STOP);
  const menu = foldedMenu(summary, { ontoggle: drawMenu }, list);
  const panel = el("div.panel", NO_TAB_STOP);
  // The explanation of a column is below the table, so that no heading moves away from the pointer.
  const help = el("div.help.column-help", { role: "status", hidden: true, onkeydown: leaveHelp });
  const status = el("span.message.gap", { role: "status" });
  const pager = el("div.pager");
  /** The page that is shown. */
  let page = NO_PAGE;
  /**
   * The query that has not been answered yet.
   *
   * @type {Query | null}
   */
  let asked = null;
  /** The column whose field is explained, or -1. */
  let explained = -1;
  /** The fault of the filter that is being typed. */
  let fault = "";
  /** A message about the last action. */
  let note = "";
  /** The table that `look` was last called with. */
  let looked = "";
  /** The cell that has the tab stop: its row, and its place among the buttons or cells of the row. */
  let focus = { row: 0, place: 0 };
  /**
   * The widths of columns that were resized, in px, by name. They also apply to other pages, snapshots and tables.
   *
   * @type {Record<string, number>}
   */
  const widths = {};
  /**
   * The size of the visible part and the scroll position, in px. They are cached because reading them forces a layout.
   */
  let viewHeight = 400;
  let scrollLeft = 0;
  let scrollTop = 0;
  /**
   * Draw up to `most` more of the page's rows now, and the remaining ones after a pause.
   *
   * @type {(most: number, pause?: number) => void}
   */
  let drawRows = () => {};
  const wait = timer(model);
  const waitForOther = timer(model);
  const drawSoon = inNextFrame(model, draw);

  const filters = filterBar(model, { label, page: () => page, current, ask, say: setFault });
  filters.bar.append(menu);
  const actions = gridExport(model, {
    grid,
    page: () => /** @type {TablePage} */ (page),
    cell: () => [Math.max(0, focus.row), columnAt(focus.row, focus.place)],
    say: setNote,
  });
  const box = el("div.grid", { role: "region", ariaLabel: label }, filters.bar, filters.chips, panel, help, pager);

  function drawStatus() {
    const text = fault || note;
    status.textContent = text;
    status.title = text;
  }
  /** @param {string} text */
  function setNote(text) {
    note = text;
    drawStatus();
  }
  /** @param {string} text */
  function setFault(text) {
    fault = text;
    drawStatus();
  }

  // Requests -----------------------------------------------------------------------------------------------------------

  /** @returns {typeof NO_PAGE} */
  function received() {
    return model.pages[grid] ?? NO_PAGE;
  }
  /**
   * Return whether a page or query belongs to a different table from the one that is shown.
   *
   * @param {{ of?: string, table?: string }} other
   */
  function isOther({ of, table }) {
    return of !== page.of || table !== page.table;
  }
  /** @param {number} to */
  function isOtherPage(to) {
    return to !== page.page && to === clamp(0, to, (page.pages ?? 1) - 1);
  }
  /** @param {number} to */
  function turnTo(to) {
    if (isOtherPage(to)) askOfDrawn({ page: to });
  }
  function isWaiting() {
    if (asked === null) return false;
    const { n } = received();
    return n === undefined || asked.n === undefined || n < asked.n;
  }
  /**
   * Return the requested query or, if there is none, the one that is shown.
   *
   * @returns {Query}
   */
  function current() {
    if (asked && isWaiting()) return asked;
    const { of, table, page, sort, filters, shown } = received();
    return { of, table, page, sort, filters, columns: shown };
  }
  /** @param {Query} change */
  function ask(change) {
    const { of, table, sort, filters, columns } = current();
    const queries = model.query;
    const n = Math.max(queries[grid]?.n ?? 0, received().n ?? 0) + 1;
    asked = { of, table, page: 0, sort, filters, columns, ...change, n };
    model.save("query", { ...queries, [grid]: asked });
    drawState();
  }
  /**
   * Request what an action of the user on the drawn table needs. Ignore the action if a different table was requested,
   * in which the same number may mean a different column.
   *
   * @param {Query} change
   */
  function askOfDrawn(change) {
    if (!isLeft()) ask(change);
  }
  /** Return whether the drawn table, or what is left of it, has other columns than the requested one. */
  function isLeft() {
    return asked !== null && asked.table !== page.table;
  }
  /**
   * Request another table. The typed text, the sort and the filters of the old one are dropped.
   *
   * @param {string} of
   * @param {string} table
   * @param {Query} [more]
   */
  function show(of, table, more = {}) {
    filters.forget();
    focus = { row: 0, place: 0 };
    asked = { of, table };
    ask(more);
  }
  /**
   * Request a table once: one that could not be read is not requested again, and one that another view has requested
   * stays sorted and filtered. The query is compared with the pending one, not with the page, which may be outdated.
   *
   * @param {string} of
   * @param {string} table
   */
  function look(of, table) {
    const name = JSON.stringify([of, table]);
    if (looked === name) return;
    looked = name;
    const now = current();
    if (!page.of || now.of !== of || now.table !== table) show(of, table);
  }

  // The table ----------------------------------------------------------------------------------------------------------

  function draw() {
    // The received page answers an earlier query.
    if (isWaiting()) return;
    const next = received();
    const wanted = asked?.filters;
    const held = focusedIn(panel);
    const isMoved = isOther(next);
    const isTurned = isMoved || page.page !== next.page ||
      !sameJson([page.sort, page.filters], [next.sort, next.filters]);
    asked = null;
    page = next;
    setNote("");
    if (wanted && page.refused) {
      filters.miss(wanted);
      filters.refuse();
    } else {
      filters.settle(page.filters);
      setNote(filters.typedMeaning());
    }
    if (isMoved) filters.drawColumns();
    if (isMoved || !page.help?.[explained]) explain(-1);
    drawMenu();
    // The focus stays at the same position in the table, whatever is there now.
    panel.replaceChildren();
    wait();
    if (page.text !== undefined) panel.append(el("pre.text", { tabindex: 0, ariaLabel: label }, page.text));
    if (page.rows) drawTable(/** @type {TablePage} */ (page), isTurned);
    if (page.above) panel.prepend(el("div.above", blocks(model, page.above)));
    if (isTurned && (scrollLeft || scrollTop)) panel.scrollTo(isMoved ? 0 : scrollLeft, 0);
    const home = /** @type {HTMLElement} */ (panel.querySelector("[tabindex='0']") ?? panel);
    if (held) home.focus();
    keepFocus(pager, drawPager, home);
    drawState();
    // Scroll only now, when everything has its final height.
    reveal();
  }

  /**
   * @param {TablePage} shown
   * @param {boolean} isTurned Whether the table, the page number, the sort or the filters have changed.
   */
  function drawTable(shown, isTurned) {
    const { columns, rows, total } = shown;
    const body = el("tbody");
    // Visible rows are drawn at once, and those below when the user goes there or pauses. So no frame has to lay out
    // all cells of a page, and users who click through a tree never wait for rows out of sight.
    const rowFactory = makeRowFactory(shown);
    drawRows = (most, pause = NEXT_PAUSE) => {
      const from = body.rows.length;
      body.append(...rows.slice(from, from + most).map((row, i) => rowFactory(row, from + i)));
      wait(body.rows.length < rows.length && (() => drawRows(ROWS_AT_ONCE)), pause);
    };
    drawRows(isTurned ? Math.ceil(viewHeight / LEAST_ROW_HEIGHT) : Infinity, FIRST_PAUSE);
    const undrawn = rows.slice(body.rows.length);
    const heads = shown.shown.map((place) => headCell(shown, place));
    // Texts that are not drawn yet are added invisibly, so that a column has its final width from the start.
    const begin = body.rows.length;
    const texts = shown.shown.map((place, i) =>
      el(
        "td",
        { style: widthStyle(columns[place].name) },
        undrawn.map((row, at) => shownText(shown, place, begin + at, row[i])).join("\n"),
      )
    );
    panel.append(
      el(
        "table.table",
        {
          class: heads.length < 2 && "one",
          role: "grid",
          ariaLabel: label,
          ariaRowCount: total + 1,
          ariaColCount: columns.length,
        },
        el("thead", el("tr", heads)),
        body,
        el("tfoot.widths", { ariaHidden: true }, el("tr", texts)),
      ),
    );
    if (!total) panel.append(el("div.empty", emptyText(shown)));
    if (shown.lacks) panel.prepend(el("div.lacks", { role: "status" }, `▲ ${shown.lacks}`));
    focus.row = Math.min(focus.row, rows.length - 1);
    moveTabStop();
  }
  /**
   * @param {TablePage} shown
   * @param {number} place The column's index.
   */
  function headCell({ columns, sort, filters: applied, help: helps }, place) {
    const { name, right, doc } = columns[place];
    const isFiltered = applied.some(({ column }) => column === place);
    const direction = sort?.[0] === place ? `${sort[1]}ending` : "none";
    const title = `${doc ? `${name}: ${doc}` : name} (Shift+← → resizes)`;
    return el(
      "th",
      { scope: "col", style: widthStyle(name), class: right && "right", ariaColIndex: place + 1, ariaSort: direction },
      el(
        "div.th",
        el(
          "button.sort",
          { tabindex: -1, title, onclick: () => askOfDrawn({ sort: nextSort(current().sort, place) }) },
          el("span", name),
          el("span.way", { ariaHidden: true }),
        ),
        el("button.funnel", {
          class: isFiltered && "on",
          tabindex: -1,
          ariaLabel: `Filter ${name}`,
          onclick: () => isLeft() || filters.begin(place),
        }, lineIcon(FILTER_ICON, 12)),
        helps?.[place] && el("button.explain.why", {
          tabindex: -1,
          ariaLabel: `${name}: what is it?`,
          ariaExpanded: place === explained,
          "data-place": place,
          onclick: () => explain(place === explained ? -1 : place),
        }),
      ),
      el("span.grip", {
        onpointerdown: drag,
        ondblclick: (/** @type {MouseEvent} */ event) => resize(indexOf(event), 0),
      }),
    );
  }
  /**
   * Explain the field that a column shows.
   *
   * @param {number} place The column's index; -1 for none.
   */
  function explain(place) {
    const found = page.help?.[place];
    explained = found ? place : -1;
    help.hidden = !found;
    fill(help, found && [el("strong", page.columns?.[place].name), " ", helpOf(found, page.open)]);
    const buttons = /** @type {NodeListOf<HTMLElement>} */ (panel.querySelectorAll("[data-place]"));
    for (const button of buttons) button.ariaExpanded = String(Number(button.dataset.place) === explained);
  }
  /** @param {KeyboardEvent} event */
  function leaveHelp(event) {
    if (event.key !== "Escape" || explained < 0) return;
    const button = /** @type {HTMLElement | null} */ (panel.querySelector(`[data-place="${explained}"]`));
    consumeEvent(event);
    explain(-1);
    button?.focus();
  }
  /**
   * Return a function that creates the rows of a page. They are copies of one row, because copying is fast.
   *
   * @param {TablePage} drawn
   * @returns {(row: (string | null)[], at: number) => HTMLTableRowElement}
   */
  function makeRowFactory(drawn) {
    const { columns, shown, bars, nodes, page, size } = drawn;
    const cells = shown.map((place, i) => {
      const { name, right } = columns[place];
      const properties = { tabindex: -1, ariaColIndex: place + 1, style: widthStyle(name), class: right && "right" };
      // The first cell of a row is its head.
      return i ? el("td", properties) : el("th", { scope: "row", ...properties });
    });
    const pattern = el("tr", cells);
    // The index of the cell that opens the row's node. Text describes a row better than a number does.
    const link = Math.max(0, shown.findIndex((place) => columns[place].head || !columns[place].right));
    return (row, at) => {
      const line = /** @type {HTMLTableRowElement} */ (pattern.cloneNode(true));
      const node = nodes[at];
      line.ariaRowIndex = String(page * size + at + 2);
      if (node) {
        line.dataset.node = node;
        line.ariaSelected = String(node === selectedNode());
      }
      row.forEach((value, i) => {
        const cell = line.cells[i];
        const text = shownText(drawn, shown[i], at, value);
        const bar = bars?.[shown[i]]?.[at];
        if (value === null) cell.classList.add("ice-null");
        const exact = value !== null && exactText(value, text, columns[shown[i]].unit);
        if (exact) cell.title = exact;
        if (bar) cell.style.setProperty("--bar", bar + "%");
        cell.append(i === link && node ? el("span.open", text) : text);
      });
      return line;
    };
  }

  /**
   * Return the index, among the shown columns, of the column in whose header an event occurred.
   *
   * @param {Event} event
   */
  function indexOf(event) {
    const cell = /** @type {Element} */ (event.target).closest("th");
    return /** @type {HTMLTableCellElement} */ (cell).cellIndex;
  }
  /**
   * @param {number} index The index of a column among the shown ones.
   * @returns {HTMLTableCellElement[]}
   */
  function cellsOf(index) {
    const table = /** @type {HTMLTableElement | null} */ (panel.querySelector(".ice-table"));
    return [...table?.rows ?? []].map((row) => row.cells[index]);
  }
  /**
   * Return the style of the cells of a column that was resized.
   *
   * @param {string} name
   */
  function widthStyle(name) {
    const width = widths[name] ? `${widths[name]}px` : "";
    return { width, "min-width": width, "max-width": width };
  }
  /**
   * @param {number} index
   * @param {number} width In px; 0 removes the width that the user has chosen.
   */
  function resize(index, width) {
    const { name = "" } = page.columns?.[page.shown?.[index] ?? -1] ?? {};
    drawRows(Infinity);
    widths[name] = width && Math.max(LEAST_WIDTH, Math.round(width));
    for (const { style } of cellsOf(index)) {
      Object.entries(widthStyle(name)).forEach(([key, value]) => style.setProperty(key, value));
    }
    setNote(width ? `${name}: ${widths[name]} px` : "");
  }
  /**
   * Resize a column while its edge is dragged.
   *
   * @param {PointerEvent} event
   */
  function drag(event) {
    const grip = /** @type {HTMLElement} */ (event.target);
    const index = indexOf(event);
    const start = cellsOf(index)[0].offsetWidth - event.clientX;
    grip.setPointerCapture(event.pointerId);
    grip.onpointermove = ({ clientX }) => resize(index, start + clientX);
    grip.onlostpointercapture = () => (grip.onpointermove = null);
  }

  /** @param {TablePage} shown */
  function emptyText({ filters: applied, none = "No rows.", whole }) {
    if (!applied.length) return none;
    const words = applied.length > 1 ? "Remove all filters" : "Remove the filter";
    return [`None of the ${formatCount(whole)} rows match. `, linkButton(words, filters.clear)];
  }

  function drawMenu() {
    const { columns = [], shown = [] } = page;
    menu.hidden = columns.length <= FEW_COLUMNS;
    summary.textContent = shown.length < columns.length ? `Columns ${shown.length}/${columns.length}` : "Columns";
    /** @type {(place: number, on: boolean) => void} */
    const toggle = (place, on) => {
      // Start from the pending query: the user may tick a second box before Python has answered the first one.
      const { columns: chosen = shown } = current();
      const next = chosen.filter((other) => other !== place);
      if (on) next.push(place);
      if (next.length) askOfDrawn({ columns: next.sort((a, b) => a - b), page: page.page });
      else drawMenu();
    };
    const items = () =>
      columns.map(({ name, doc }, place) => {
        const properties = {
          checked: shown.includes(place),
          "data-key": place,
          disabled: shown.length === 1 && shown[0] === place,
        };
        return checkBox(name, (on) => toggle(place, on), properties, doc || null).element;
      });
    // The checkboxes are created when the menu is opened.
    fill(list, menu.open && items());
  }

  function drawPager() {
    const { text } = page;
    if (text !== undefined) {
      return fill(pager, status, pagerButton("Copy", () => actions.copy(text), true));
    }
    if (!page.rows) return;
    const shown = /** @type {TablePage} */ (page);
    const { page: at, pages, total } = shown;
    /** @type {(text: string, name: string, to: number) => HTMLElement} */
    const turn = (text, name, to) => pagerButton(text, () => turnTo(to), isOtherPage(to), name);
    fill(
      pager,
      el("span.range", { role: "status" }, rangeText(shown)),
      pages > 1 && [
        turn("«", "First page", 0),
        turn("‹", "Previous page", at - 1),
        pageNumber(shown),
        turn("›", "Next page", at + 1),
        turn("»", "Last page", pages - 1),
      ],
      status,
      pagerButton("Copy cell", actions.copyCell, total),
      pagerButton("Copy row", actions.copyRow, total, "Copy row as JSON"),
      pagerButton("CSV", actions.download, total, "Download all rows as CSV"),
    );
  }
  /**
   * @param {string} text
   * @param {() => void} onclick
   * @param {unknown} on Whether the button is enabled.
   * @param {string} [ariaLabel]
   */
  function pagerButton(text, onclick, on, ariaLabel) {
    return setEnabled(el("button.button", { ariaLabel, onclick }, text), on);
  }
  /**
   * Return the box that shows the page's number, and in which the user can type a different one.
   *
   * @param {TablePage} shown
   */
  function pageNumber({ page: at, pages }) {
    const text = formatCount(at + 1);
    const input = el("input.input.number", {
      inputmode: "numeric",
      ariaLabel: `Page, of ${formatCount(pages)}`,
      value: text,
      onfocus() {
        input.select();
      },
      onkeydown(event) {
        event.stopPropagation();
        if (event.key !== "Enter") return;
        const wanted = Number(input.value.replaceAll(/\D/g, ""));
        if (wanted) askOfDrawn({ page: Math.min(wanted, pages) - 1 });
        else input.value = text;
      },
    });
    return input;
  }

  function drawState() {
    box.ariaBusy = String(asked !== null);
    const isEmpty = page.of === undefined;
    if (asked && isEmpty) drawProgress();
    else waitForOther(asked !== null && isOther(asked) && leaveTable, AWAITING_DELAY);
    filters.bar.hidden = !page.rows && (!asked || !isEmpty);
    pager.hidden = isEmpty;
    filters.allowColumns(!isLeft());
    filters.drawChips();
  }

  /** Remove the rows of the previous table while another table is awaited. */
  function leaveTable() {
    if (!asked || !isOther(asked)) return;
    page = NO_PAGE;
    wait();
    drawState();
  }
  function drawProgress() {
    fill(panel, el("div.empty", { role: "status" }, model.busy || "Reading …"));
  }

  /**
   * Handle a request that failed or was cancelled. If it was for the shown table, its page stays.
   *
   * @param {string} why
   */
  function miss(why) {
    if (!asked) return;
    const again = asked;
    asked = null;
    if (!isOther(again)) {
      filters.miss(again.filters);
    } else {
      page = NO_PAGE;
      fill(panel, el("div.empty", why, " ", linkButton("Try again", () => ask(again))));
    }
    drawState();
  }

  // Moving through cells -----------------------------------------------------------------------------------------------

  /**
   * Return a row of the page; draw it first if necessary.
   *
   * @param {number} place
   * @returns {HTMLTableRowElement | undefined}
   */
  function rowAt(place) {
    const body = /** @type {HTMLTableSectionElement | null} */ (panel.querySelector(".ice-table tbody"));
    if (body && place >= body.rows.length) drawRows(Infinity);
    return body?.rows[place];
  }
  /**
   * Return the elements of a row that can have the focus: the header's buttons, or the cells.
   *
   * @param {number} row
   * @returns {HTMLElement[]}
   */
  function focusableIn(row) {
    if (row !== HEADER) return [...(rowAt(row)?.cells ?? [])];
    return /** @type {HTMLElement[]} */ ([...panel.querySelectorAll(".ice-table thead button")]);
  }
  /**
   * Return the index, among the shown columns, of the column at a place in a row. In the header, each button is a
   * place, and a column has several.
   *
   * @param {number} row
   * @param {number} place
   */
  function columnAt(row, place) {
    if (row !== HEADER) return place;
    return /** @type {HTMLTableCellElement | null} */ (focusableIn(HEADER)[place]?.closest("th"))?.cellIndex ?? place;
  }
  /** Give the tab stop to the cell that has the focus or had it last. */
  function moveTabStop() {
    const old = /** @type {NodeListOf<HTMLElement>} */ (panel.querySelectorAll(".ice-table [tabindex='0']"));
    for (const cell of old) cell.tabIndex = -1;
    const cells = focusableIn(focus.row);
    const cell = cells[focus.place] ?? cells[cells.length - 1];
    if (cell) cell.tabIndex = 0;
  }
  /**
   * Move the focus.
   *
   * @param {number} row
   * @param {number} place
   */
  function moveTo(row, place) {
    const next = clamp(HEADER, row, (page.rows?.length ?? 0) - 1);
    const cells = focusableIn(next);
    if (next !== HEADER) place = columnAt(focus.row, place);
    else if (focus.row !== HEADER) place = cells.findIndex((_, at) => columnAt(HEADER, at) === place);
    cells[clamp(0, place, cells.length - 1)].focus();
  }
  /**
   * Return the row of a cell or header button, and its place in the row.
   *
   * @param {Element} target
   * @returns {{ row: number, place: number } | null}
   */
  function placeOf(target) {
    const line = target.closest("tr");
    const cell = /** @type {HTMLElement | null} */ (target.closest("button, td, th"));
    if (!line || !cell) return null;
    // In the table element, the header is row 0.
    const row = line.rowIndex - 1;
    const place = focusableIn(row).indexOf(cell);
    return place < 0 ? null : { row, place };
  }
  /** @param {Element} target */
  function open(target) {
    const node = target.closest("tr")?.dataset.node;
    if (node) onRow(node);
  }
  function selectedNode() {
    return model.selection.node;
  }
  /** Scroll the row of the selected node into view, without scrolling the notebook. */
  function reveal() {
    const place = page.nodes?.indexOf(selectedNode()) ?? -1;
    const row = place >= 0 ? rowAt(place) : undefined;
    const head = /** @type {HTMLElement | null} */ (panel.querySelector(".ice-table thead"));
    if (!row || !head) return;
    const top = row.offsetTop - head.offsetHeight;
    const bottom = row.offsetTop + row.offsetHeight + 6;
    panel.scrollTop = clamp(bottom - panel.clientHeight, panel.scrollTop, top);
  }
  function drawSelection() {
    const rows = /** @type {NodeListOf<HTMLElement>} */ (panel.querySelectorAll("tr[data-node]"));
    for (const row of rows) row.ariaSelected = String(row.dataset.node === selectedNode());
    reveal();
  }

  // Pointer and keys ---------------------------------------------------------------------------------------------------

  /** Mark in which directions the table is scrolled: then the header or the first column is kept in view. */
  function scrolled() {
    scrollLeft = panel.scrollLeft;
    scrollTop = panel.scrollTop;
    panel.classList.toggle("ice-across", scrollLeft > 0);
    panel.classList.toggle("ice-down", scrollTop > 0);
    if (scrollTop) drawRows(Infinity);
  }
  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const at = placeOf(/** @type {Element} */ (event.target));
    if (!at || event.altKey) return;
    const { row, place } = at;
    if (event.shiftKey) {
      const step = { ArrowRight: WIDTH_STEP, ArrowLeft: -WIDTH_STEP }[event.key];
      if (row !== HEADER || !step) return;
      consumeEvent(event);
      const index = indexOf(event);
      return resize(index, cellsOf(index)[0].offsetWidth + step);
    }
    const lastRow = (page.rows?.length ?? 0) - 1;
    const pageNow = page.page ?? 0;
    /** @type {Record<string, false | (() => void)>} */
    const near = {
      ArrowDown: () => moveTo(row + 1, place),
      ArrowUp: () => moveTo(row - 1, place),
      ArrowRight: () => moveTo(row, place + 1),
      ArrowLeft: () => moveTo(row, place - 1),
      Home: () => moveTo(row, 0),
      End: () => moveTo(row, Infinity),
      PageDown: () => turnTo(pageNow + 1),
      PageUp: () => turnTo(pageNow - 1),
      Escape: explained >= 0 && (() => explain(-1)),
      // In the header, Enter presses the button.
      Enter: row !== HEADER && (() => open(/** @type {Element} */ (event.target))),
    };
    /** @type {Record<string, false | (() => void)>} */
    const withControl = {
      Home: () => moveTo(0, 0),
      End: () => moveTo(lastRow, Infinity),
      // If text is selected in the page, the browser copies that.
      c: row !== HEADER && getSelection()?.isCollapsed !== false && actions.copyCell,
    };
    const action = (event.ctrlKey || event.metaKey ? withControl : near)[event.key];
    if (!action) return;
    consumeEvent(event);
    action();
  }
  onResize(model, panel, ([{ contentRect }]) => {
    viewHeight = contentRect.height || viewHeight;
  });
  listen(panel, {
    scroll: scrolled,
    click(event) {
      const target = /** @type {Element} */ (event.target);
      if (target.closest(".ice-open")) open(target);
    },
    dblclick: (event) => open(/** @type {Element} */ (event.target)),
    focusin(event) {
      focus = placeOf(/** @type {Element} */ (event.target)) ?? focus;
      moveTabStop();
      const number = page.numbers?.[focus.row];
      if (number !== undefined) onPick?.(number);
    },
    keydown: pressed,
  });

  model.onChange("pages", () => {
    // Only the page of a different grid has changed.
    if (sameJson(page, received())) return;
    // Draw a different table one frame later than the rest of the answer: two short frames are better than a long one.
    if (page.of !== undefined && isOther(received())) drawSoon();
    else draw();
  });
  model.onChange("selection", drawSelection);
  model.onChange("busy", () => {
    if (asked && page.of === undefined) drawProgress();
  });
  model.onChange("error", () => {
    if (model.error.text) miss("This could not be read.");
  });
  model.onChange("cancelled", () => miss("Cancelled."));
  draw();
  return { element: box, ask, show, look, current };
}
