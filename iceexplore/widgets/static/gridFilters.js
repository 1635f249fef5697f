/**
 * The filters of a table: one that is being typed, and those that are kept, each for one column or for all.
 *
 * @module
 */

/** @import { Filter, Model, Operator, Query, TablePage } from "./types.d.ts" */

import { foldedMenu } from "./controls.js";
import { el, fill, focusedIn, options, sameJson, selectBox, timer } from "./dom.js";

/** @type {Operator[]} */
const OPERATORS = ["contains", "=", "!=", "<", "<=", ">", ">=", "null", "not null"];
/** Examples of what can be typed besides a plain value. */
const HELP = ["< 1 MB", ">= 64 MiB", "1k..10k", "> 2026-01-01", "2026-01-01..2026-01-31", "< 5 d", "!= x"];
const HELP_OF_QUOTES = 'In a column, a value may begin with an operator. In quotes, text is searched as it is: "< 1"';
/** The time without a key press, in ms, after which the typed filter is applied. */
const TYPING_PAUSE_OF_FILTER = 300;
/** A table with more rows than this is only filtered when Enter is pressed. */
const MANY_ROWS = 200_000;
/** The maximum number of characters of a filter. */
const MOST_FILTER = 1000;

/**
 * Return whether an operator compares with a text.
 *
 * @param {Operator} op
 */
export function needsText(op) {
  return !op.endsWith("null");
}

/**
 * Return an operator as it is shown: "is null".
 *
 * @param {Operator} op
 */
export function operatorText(op) {
  return needsText(op) ? op : `is ${op}`;
}

/**
 * Return a filter as it is shown: "city contains Oslo".
 *
 * @param {Filter} filter
 * @param {{ name: string }[]} columns
 */
export function filterText({ column, op, value }, columns) {
  const name = column === null ? "any column" : columns[column]?.name;
  return [name, operatorText(op), needsText(op) && value].filter(Boolean).join(" ");
}

/**
 * @param {Filter[]} filters
 * @param {Filter | null} filter
 */
function includes(filters, filter) {
  return filters.some((one) => sameJson(one, filter));
}

/**
 * Return the bar in which filters are typed, and the chips of those that are kept.
 *
 * @param {Model} model
 * @param {object} options_
 * @param {string} options_.label
 * @param {() => Partial<TablePage>} options_.page Return the page that is shown.
 * @param {() => Query} options_.current Return the pending query or, if there is none, the query of the page.
 * @param {(change: Query) => void} options_.ask Ask for another page.
 * @param {(text: string) => void} options_.say Show what is wrong with the typed text.
 */
export function filterBar(model, { label, page, current, ask, say }) {
  const column = selectBox("Column to filter", columnChosen);
  const operator = selectBox("Comparison", operatorChosen, OPERATORS.map((op) => [op, operatorText(op)]));
  const text = el("input.input", {
    type: "search",
    ariaLabel: `Filter ${label}`,
    maxlength: MOST_FILTER,
    oninput: typed,
    onkeydown: pressed,
  });
  const add = el(
    "button.button",
    { ariaLabel: "Add another filter", title: "Keep this filter and add another (Enter)", onclick: keep },
    "+",
  );
  const chips = el("div.chips");
  const help = foldedMenu(
    el("summary.button", { ariaLabel: "What can be typed" }, "?"),
    {},
    el("div.menu-list.hints", { tabindex: 0 }, HELP_OF_QUOTES, HELP.map((one) => el("code", one))),
  );
  const bar = el("div.grid-bar", column, operator, text, add, help);
  /** Whether the typed filter is complete, because Enter was pressed. */
  let isDone = false;
  /**
   * The filter that is being typed.
   *
   * @type {Filter | null}
   */
  let draft = null;
  const wait = timer(model);

  function columns() {
    return page().columns ?? [];
  }
  function hasManyRows() {
    return (page().whole ?? 0) > MANY_ROWS;
  }
  function requested() {
    return current().filters ?? [];
  }
  /** Return the filters without the one that is being typed. */
  function kept() {
    return requested().filter((filter) => !sameJson(filter, draft));
  }
  function operatorNow() {
    return /** @type {Operator} */ (operator.value);
  }

  /**
   * Return the filter in the boxes, or null.
   *
   * @returns {Filter | null}
   */
  function filterInBoxes() {
    const op = operatorNow();
    if (needsText(op) && !text.value.trim()) return null;
    return { column: column.value === "" ? null : Number(column.value), op, value: text.value };
  }
  /**
   * Put a filter into the boxes.
   *
   * @param {Partial<Filter>} [filter]
   */
  function putInBoxes({ column: place = null, op = "contains", value = "" } = {}) {
    column.value = place === null ? "" : String(place);
    operator.value = op;
    text.value = value;
    drawInput();
  }
  function forget() {
    draft = null;
    putInBoxes();
    tell("");
  }
  /**
   * Show what is wrong with the typed filter; "" removes the message.
   *
   * @param {string} fault
   */
  function tell(fault) {
    text.ariaInvalid = String(fault !== "");
    say(fault);
  }
  function typed() {
    isDone = false;
    if (!hasManyRows()) wait(apply, TYPING_PAUSE_OF_FILTER);
  }
  /**
   * Request the typed filter.
   *
   * @returns {Filter | null}
   */
  function apply() {
    wait();
    const others = kept();
    draft = filterInBoxes();
    const filters = draft ? [...others, draft] : others;
    if (sameJson(filters, requested())) tell("");
    else ask({ filters });
    return draft;
  }
  function keep() {
    isDone = true;
    if (!apply()) return;
    forget();
    drawChips();
    text.focus();
  }
  /** @param {KeyboardEvent} event */
  function pressed(event) {
    event.stopPropagation();
    if (event.key === "Enter") keep();
  }
  function columnChosen() {
    drawInput();
    text.focus();
    typed();
  }
  function operatorChosen() {
    drawInput();
    typed();
  }
  /**
   * Begin a new filter for a column.
   *
   * @param {number} place
   */
  function begin(place) {
    putInBoxes({ column: place, op: columns()[place].right ? "=" : "contains", value: text.value });
    text.focus();
  }
  /** Remove all filters. */
  function clear() {
    forget();
    ask({ filters: [] });
    text.focus();
  }

  function drawInput() {
    const isOfAnyColumn = column.value === "";
    operator.hidden = isOfAnyColumn;
    if (isOfAnyColumn) operator.value = "contains";
    text.hidden = !needsText(operatorNow());
    text.placeholder = (isOfAnyColumn ? "Filter" : "Value") + (hasManyRows() ? ", then Enter" : "");
  }
  /**
   * Allow or forbid the choice of a column: while a different table is awaited, the columns on offer are not its own.
   *
   * @param {boolean} on
   */
  function allowColumns(on) {
    column.disabled = !on;
    operator.disabled = !on;
  }
  /** Offer the columns of the table that is now shown. The chosen column stays chosen if the table has it, too. */
  function drawColumns() {
    const before = column.value && column.selectedOptions[0].text;
    /** @type {[number | string, string][]} */
    const offered = columns().map(({ name }, place) => [place, name]);
    fill(column, options([["", "any column"], ...offered]));
    const place = before ? columns().findIndex(({ name }) => name === before) : -1;
    column.value = place < 0 ? "" : String(place);
    drawInput();
  }
  function drawChips() {
    const items = kept().map((filter) => {
      const words = meaning(filter);
      const onclick = () => {
        ask({ filters: requested().filter((other) => other !== filter) });
        text.focus();
      };
      const cross = el("span", { ariaHidden: true }, "×");
      return el("button.chip", { ariaLabel: `Remove filter: ${words}`, onclick }, el("span", words), cross);
    });
    fill(chips, items);
  }

  /**
   * Return a filter as text, as Python has understood it.
   *
   * @param {Filter} filter
   */
  function meaning(filter) {
    const { filters = [], understood } = page();
    const place = filters.findIndex((one) => sameJson(one, filter));
    return understood?.[place] || filterText(filter, columns());
  }
  /** Return how Python has understood the typed filter; "" if that is the same as what was typed. */
  function typedMeaning() {
    const words = draft ? meaning(draft) : "";
    return draft && words !== filterText(draft, columns()) ? words : "";
  }

  /**
   * Handle a page that has arrived with these filters.
   *
   * @param {Filter[]} [filters]
   */
  function settle(filters = []) {
    if (draft && includes(filters, draft)) tell("");
    if (!draft || includes(filters, draft)) return;
    // Another view has removed the filter.
    if (focusedIn(bar)) draft = null;
    else forget();
  }
  /** Show why Python refused the typed filter, unless it may become valid while it is being typed. */
  function refuse() {
    const { refused = "", unfinished } = page();
    tell(unfinished && !isDone ? "" : refused);
  }
  /**
   * Handle a request that failed or was refused: the typed text and the page stay.
   *
   * @param {Filter[]} [wanted]
   */
  function miss(wanted = []) {
    const { filters = [] } = page();
    const lost = wanted.find((one) => !includes(filters, one));
    if (lost && !text.value) putInBoxes(lost);
    if (includes(filters, draft)) return;
    // The previously typed filter still applies: it is the draft, so that a corrected filter will replace it.
    draft = null;
    if (column.value || text.value) draft = filters.find((one) => !includes(wanted, one)) ?? null;
  }

  return { bar, chips, forget, begin, clear, refuse, typedMeaning, drawColumns, drawChips, settle, miss, allowColumns };
}
