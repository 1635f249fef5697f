// The filters of a table: one that is typed, and those that are kept, each of a column or of all.

import { el, fill, focusedIn, options, same, timer } from "./dom.js";

const OPERATORS = [["contains", "contains"], ["=", "="], ["<", "<"], [">", ">"], ["null", "is null"], ["not null", "is not null"]];
const TYPED = 300; // ms without a key until what is typed filters
const MANY = 200_000; // rows that are not filtered before Enter
// A number, or the beginning of one; and what numbers without end are called.
const NUMBER = /^[+-]?(\d*\.?\d*(e[+-]?\d*)?|inf|nan)$/i;

const needsText = (op) => op !== "null" && op !== "not null";

// `page` returns the page that is shown and `current` what is asked for, or shown; `ask` asks for another, and `say` tells
// what is wrong with what is typed.
export function filterBar(model, { label, page, current, ask, say }) {
  const column = el("select.ice-select", { ariaLabel: "Column to filter", onchange: () => (drawInput(), text.focus(), typed()) });
  const operator = el("select.ice-select", { ariaLabel: "How to compare", onchange: () => (drawInput(), typed()) }, options(OPERATORS));
  const text = el("input.ice-input", { type: "search", ariaLabel: `Filter ${label}`, maxlength: 1000, oninput: typed, onkeydown: typing });
  const add = el("button.ice-button", { ariaLabel: "Add another filter", title: "Keep this filter, add another (Enter)", onclick: keep }, "+");
  const chips = el("div.ice-chips");
  const bar = el("div.ice-grid-bar", column, operator, text, add);
  let draft = null; // the filter that is being typed
  let answered = null; // the same in the page that is shown
  const wait = timer(model);

  const everywhere = () => column.value === "";
  const columns = () => page().columns ?? [];
  const many = () => page().whole > MANY;
  const asked = () => current().filters ?? [];
  const written = () => ({ column: everywhere() ? null : Number(column.value), op: everywhere() ? "contains" : operator.value, value: text.value });
  const kept = () => asked().filter((filter) => !same(filter, draft));
  const focus = () => text.focus();

  // What the boxes have: a filter, or none.
  function write({ column: place, op, value } = {}) {
    column.value = place ?? "";
    operator.value = op ?? "contains";
    text.value = value ?? "";
    drawInput();
  }
  function forget() {
    draft = null;
    write();
    sound();
  }
  const tell = (fault) => ((text.ariaInvalid = fault !== ""), say(fault));
  // Whether what is typed can be asked for, as a number where the column has numbers. Half a number is none, but whoever
  // types it is not told so.
  function sound(done) {
    const { column, op, value } = written();
    const plain = value.replaceAll(",", "").trim();
    const numeric = plain && "<=>".includes(op) && columns()[column]?.right;
    const half = NUMBER.test(plain);
    const wrong = numeric && (!half || isNaN(plain.replace(/[in].+/i, 0)));
    tell(wrong && (done || !half) ? `“${value.slice(0, 20)}” is no number` : "");
    return !wrong;
  }
  function typed() {
    wait(many() ? sound : apply, TYPED);
  }
  function apply(done) {
    wait();
    if (!sound(done)) return false;
    const others = kept();
    const now = written();
    draft = needsText(now.op) && now.value.trim() === "" ? null : now;
    const filters = draft ? [...others, draft] : others;
    if (!same(filters, asked())) ask({ filters, page: 0 });
    return draft !== null;
  }
  function keep() {
    if (!apply(true)) return;
    if (same(draft, answered)) answered = null;
    forget();
    drawChips();
    focus();
  }
  function typing(event) {
    event.stopPropagation();
    if (event.key === "Enter") keep();
  }
  // A filter of this column is to be typed.
  function begin(place) {
    column.value = String(place);
    operator.value = page().columns[place].right ? "=" : "contains";
    drawInput();
    focus();
  }
  function clear() {
    forget();
    ask({ filters: [], page: 0 });
    focus();
  }

  function drawInput() {
    operator.hidden = everywhere();
    if (operator.hidden) operator.value = "contains";
    text.hidden = !needsText(operator.value);
    text.placeholder = (everywhere() ? "Filter" : "Value") + (many() ? ", then Enter" : "");
  }
  // The columns of another table.
  function drawColumns() {
    const before = column.value;
    fill(column, options([["", "any column"], ...columns().map(({ name }, place) => [place, name])]));
    column.value = draft && before !== "" ? before : "";
    drawInput();
  }
  function drawChips() {
    const words = ({ column, op, value }) => [column === null ? "any column" : columns()[column]?.name ?? `column ${column + 1}`, OPERATORS.find(([name]) => name === op)?.[1] ?? op, needsText(op) ? value : ""].filter(Boolean).join(" ");
    const all = kept();
    chips.hidden = all.length === 0;
    fill(
      chips,
      all.map((filter) =>
        el("button.ice-chip", { ariaLabel: `Remove filter: ${words(filter)}`, onclick: () => (ask({ filters: asked().filter((other) => other !== filter), page: 0 }), focus()) }, el("span", words(filter)), el("span", { ariaHidden: true }, "×")),
      ),
    );
  }

  // A page has come with these filters.
  function settle(filters) {
    if (draft && !filters?.some((filter) => same(filter, draft))) {
      // another view took it away
      if (focusedIn(bar)) draft = null;
      else forget();
    }
    answered = draft;
  }
  // What was asked for did not come, or was refused: what is typed stays, `here` also what was kept.
  function miss(wanted, here, fault) {
    const filters = page().filters ?? [];
    const lost = wanted?.find((one) => !filters.some((other) => same(one, other)));
    if (here && lost && !text.value) write(lost);
    draft = column.value || text.value ? answered : null;
    if (fault) tell(fault);
  }

  return { bar, chips, focus, forget, begin, clear, drawColumns, drawChips, settle, miss };
}
