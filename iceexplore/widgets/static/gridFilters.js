// The filters of a table: one that is typed, and those that are kept, each of a column or of all.

import { el, fill, focusedIn, options, sameJson, selectBox, timer } from "./dom.js";

const OPERATORS = ["contains", "=", "<", ">", "null", "not null"];
const TYPED = 300; // ms without a key until what is typed filters
const MANY = 200_000; // rows that are not filtered before Enter
// A number, or the beginning of one; and what numbers without end are called.
const NUMBER = /^[+-]?(\d*\.?\d*(e[+-]?\d*)?|inf|nan)$/i;

const needsText = (op) => !op.endsWith("null");
const spoken = (op) => (needsText(op) ? op : `is ${op}`);
const has = (filters, filter) => filters.some((one) => sameJson(one, filter));

// `page` returns the page that is shown and `current` what is asked for, or shown; `ask` asks for another, and `say` tells
// what is wrong with what is typed.
export function filterBar(model, { label, page, current, ask, say }) {
  const column = selectBox("Column to filter", () => (drawInput(), text.focus(), typed()));
  const operator = selectBox("How to compare", () => (drawInput(), typed()), OPERATORS.map((op) => [op, spoken(op)]));
  const text = el("input.input", {
    type: "search",
    ariaLabel: `Filter ${label}`,
    maxlength: 1000,
    oninput: typed,
    onkeydown: typing,
  });
  const add = el("button.button", {
    ariaLabel: "Add another filter",
    title: "Keep this filter, add another (Enter)",
    onclick: keep,
  }, "+");
  const chips = el("div.chips");
  const bar = el("div.grid-bar", column, operator, text, add);
  let draft = null; // the filter that is being typed
  const wait = timer(model);

  const columns = () => page().columns ?? [];
  const many = () => page().whole > MANY;
  const asked = () => current().filters ?? [];
  const kept = () => asked().filter((filter) => !sameJson(filter, draft));

  // What the boxes have: a filter, or null.
  function written() {
    const [place, op, value] = [column.value, operator.value, text.value];
    return needsText(op) && !value.trim() ? null : { column: place === "" ? null : Number(place), op, value };
  }
  function write({ column: place, op = "contains", value = "" } = {}) {
    column.value = place ?? "";
    operator.value = op;
    text.value = value;
    drawInput();
  }
  function forget() {
    draft = null;
    write();
    tell("");
  }
  const tell = (fault) => ((text.ariaInvalid = fault !== ""), say(fault));
  // Whether what is typed can be asked for, as a number where the column has numbers. An incomplete
  // number is invalid, but no error is shown while it is being typed.
  function sound(done) {
    const { column, op, value } = written() ?? {};
    const numeric = "<=>".includes(op) && columns()[column]?.right;
    const plain = numeric ? value.replaceAll(",", "").trim() : "0";
    const half = NUMBER.test(plain);
    const wrong = !half || isNaN(plain.replace(/[in].+/i, 0));
    tell(wrong && (done || !half) ? `“${value.slice(0, 20)}” is no number` : "");
    return !wrong;
  }
  function typed() {
    wait(many() ? sound : apply, TYPED);
  }
  function apply(done) {
    wait();
    if (!sound(done)) return null;
    const others = kept();
    draft = written();
    const filters = draft ? [...others, draft] : others;
    if (!sameJson(filters, asked())) ask({ filters });
    return draft;
  }
  function keep() {
    if (!apply(true)) return;
    forget();
    drawChips();
    text.focus();
  }
  function typing(event) {
    event.stopPropagation();
    if (event.key === "Enter") keep();
  }
  // A filter of this column is to be typed.
  function begin(place) {
    write({ column: place, op: columns()[place].right ? "=" : "contains", value: text.value });
    text.focus();
  }
  function clear() {
    forget();
    ask({ filters: [] });
    text.focus();
  }

  function drawInput() {
    const everywhere = column.value === "";
    operator.hidden = everywhere;
    if (everywhere) operator.value = "contains";
    text.hidden = !needsText(operator.value);
    text.placeholder = (everywhere ? "Filter" : "Value") + (many() ? ", then Enter" : "");
  }
  // The columns of another table.
  function drawColumns() {
    const before = column.value;
    fill(column, options([["", "any column"], ...columns().map(({ name }, place) => [place, name])]));
    column.value = draft ? before : "";
    drawInput();
  }
  function drawChips() {
    const chip = (filter) => {
      const { column, op, value } = filter;
      const words = [column === null ? "any column" : columns()[column]?.name, spoken(op), needsText(op) && value]
        .filter(Boolean).join(" ");
      const remove = () => (ask({ filters: asked().filter((other) => other !== filter) }), text.focus());
      return el(
        "button.chip",
        { ariaLabel: `Remove filter: ${words}`, onclick: remove },
        el("span", words),
        el("span", { ariaHidden: true }, "×"),
      );
    };
    fill(chips, kept().map(chip));
  }

  // A page has come with these filters.
  function settle(filters = []) {
    if (!draft || has(filters, draft)) return;
    // another view took it away
    if (focusedIn(bar)) draft = null;
    else forget();
  }
  // What was asked for did not come, or was refused: what is typed stays, and so does what the page has.
  function miss(wanted = []) {
    const { filters } = page();
    const lost = wanted.find((one) => !has(filters, one));
    if (lost && !text.value) write(lost);
    // Until it is corrected, what is typed counts as the filter that it was to replace.
    if (!has(filters, draft)) draft = (column.value || text.value) && filters.find((one) => !has(wanted, one));
  }

  return { bar, chips, forget, begin, clear, tell, drawColumns, drawChips, settle, miss };
}
