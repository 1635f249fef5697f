/**
 * The scan lab: a filter box with completion, what the filter reads and skips at each level and why, tuning advice, and
 * a search for single rows.
 *
 * @module
 */

/** @import { Model, ScanHint } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { checkBox, copyButton, foldedMenu, keyboardForm, panelTabs } from "./controls.js";
import { button, clamp, el, fill, keepFocus, linkButton, listen, options, randomId, selectBox, timer } from "./dom.js";
import { gridView } from "./grid.js";
import { treeView } from "./treeView.js";

/** The tabs beside the tree, and which of them are tables. */
const SCAN_TABS = {
  why: "Why",
  tasks: "Read",
  skipped: "Skipped",
  deletes: "Deletes",
  head: "Rows",
  advice: "Tuning advice",
  rows: "Find a row",
};
const SCAN_TABLES = ["tasks", "skipped", "deletes", "head"];
/** The time without a key, in ms, after which the typed text is sent to Python. */
const HINT_DELAY = 120;

/**
 * Send a request to Python, even if it is repeated: "plan", "examples", "advice", "count", "rows".
 *
 * @param {Model} model
 * @param {string} want
 * @param {object} [more]
 */
function askScan(model, want, more) {
  model.requestEach("scan_ask", { ...more, want });
}

/**
 * Return the error to show below the box, or "": none while a word is being completed, and none that the plan already
 * shows.
 *
 * @param {ScanHint} hint
 * @param {string} text What is in the box.
 * @param {boolean} hasChoices Whether choices are shown.
 * @param {string | undefined} planned The filter of the plan.
 */
export function errorToShow({ error = "", unfinished, start = 0, end = 0, text: hinted }, text, hasChoices, planned) {
  const isCompleting = hasChoices && (unfinished || start < end);
  if (!text.trim() || hinted !== text || isCompleting || planned === text.trim()) return "";
  return error;
}

/**
 * Return the choice reached by moving from one. The `count` choices, and -1 for none of them, form a circle.
 *
 * @param {number} at
 * @param {number} by
 * @param {number} count
 */
export function nextChoice(at, by, count) {
  const places = count + 1;
  return ((at + 1 + by + places) % places) - 1;
}

/**
 * Return the box for a filter, and the list of its possible continuations (WAI-ARIA combobox): the focus stays in the
 * box.
 *
 * @param {Model} model
 * @param {string} id Unique in the page.
 * @param {(text: string) => void} submit
 */
function filterBox(model, id, submit) {
  const input = el("input.input.scan-input", {
    role: "combobox",
    ariaLabel: "Filter",
    ariaAutoComplete: "list",
    "aria-controls": `${id}-list`,
    "aria-describedby": `${id}-fault`,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    placeholder: "Filter rows",
  });
  const list = el("ul.scan-list", { role: "listbox", id: `${id}-list`, ariaLabel: "Suggestions" });
  const fault = el("pre.scan-fault", { id: `${id}-fault`, role: "status" });
  /** The number of the request whose answer is the list; 0 while the list is closed. */
  let question = 0;
  /** The choice that Enter takes, once there are choices, or -1. */
  let at = -1;
  const wait = timer(model);

  function choices() {
    const { n, at: cursor, choices: found = [] } = model.scan_hint;
    return n === question && cursor === input.selectionStart ? found : [];
  }
  /** @param {number} [first] The choice to begin with. */
  function show(first = -1) {
    wait();
    question = model.request("scan_draft", { text: input.value, at: input.selectionStart });
    at = first;
    draw();
  }
  function shut() {
    wait();
    question = 0;
    at = -1;
    draw();
  }
  function draw() {
    const found = choices();
    if (found.length) at = Math.min(at, found.length - 1);
    const items = found.map(([text, note], i) => {
      /** @param {MouseEvent} event */
      function onmousedown(event) {
        // Keep the focus in the box.
        event.preventDefault();
        accept(i);
      }
      const properties = { role: "option", id: `${id}-${i}`, ariaSelected: i === at, onmousedown };
      return el("li", properties, el("code", text), el("span", note));
    });
    fill(list, items);
    const chosen = items[at];
    input.ariaExpanded = String(found.length > 0);
    input.setAttribute("aria-activedescendant", chosen?.id ?? "");
    if (chosen) {
      const least = chosen.offsetTop + chosen.offsetHeight - list.clientHeight;
      list.scrollTop = clamp(least, list.scrollTop, chosen.offsetTop);
    }
    const hint = model.scan_hint;
    const isHere = input.matches(":focus");
    const error = isHere ? errorToShow(hint, input.value, found.length > 0, model.scan_plan.filter) : "";
    // Setting it again would make screen readers read it again.
    if (fault.textContent !== error) fault.textContent = error;
    fault.classList.toggle("ice-quiet", hint.unfinished ?? false);
    input.ariaInvalid = String(error !== "" && !hint.unfinished);
  }
  /** @param {number} i */
  function accept(i) {
    const { start = 0, end = 0 } = model.scan_hint;
    input.setRangeText(choices()[i][2], start, end, "end");
    show();
  }
  /** @param {number} by */
  function move(by) {
    const count = choices().length;
    if (count) {
      at = nextChoice(at, by, count);
      draw();
    } else {
      // Go to the first or the last choice once they have arrived.
      show(by > 0 ? 0 : Infinity);
    }
  }
  function enter() {
    if (choices()[at]) {
      accept(at);
    } else {
      shut();
      submit(input.value);
    }
  }
  listen(input, {
    keydown(event) {
      // Otherwise the notebook would handle the key.
      event.stopPropagation();
      /** @type {Record<string, false | (() => void)>} */
      const actions = {
        ArrowDown: () => move(1),
        ArrowUp: () => move(-1),
        Enter: enter,
        Escape: choices().length > 0 && shut,
        " ": event.ctrlKey && (() => show()),
      };
      const action = actions[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    },
    input() {
      shut();
      wait(show, HINT_DELAY);
    },
    blur: shut,
  });
  model.follow("scan_filter", () => {
    if (input.value.trim() !== model.scan_filter) input.value = model.scan_filter;
    shut();
  });
  model.onChange(["scan_hint", "scan_plan"], draw);
  return { element: el("div.combo", input, el("div.scan-pop", fault, list)), value: () => input.value };
}

/**
 * Return the scan lab.
 *
 * @param {Model} model
 */
export function scanView(model) {
  const id = `ice-${randomId()}`;
  const box = filterBox(model, id, submit);
  const columnsSummary = el("summary.button");
  const columnsList = el("div.menu-list");
  const columnsMenu = foldedMenu(columnsSummary, { class: "scan-columns" }, columnsList);
  const rowGroups = checkBox(
    "Row groups",
    (on) => model.save("scan_row_groups", on),
    {},
    "Also open the footers of the remaining files, to skip row groups",
  );
  const examples = selectBox("Examples and recent filters", exampleChosen, null, { class: "scan-tries" });
  const planButton = button("Plan", () => submit(box.value()), { class: "primary" });
  const answer = el("div.scan-answer");
  const tree = treeView(model, { prefix: "scan_", label: "Files read and skipped" });
  const empty = el("div.scan-empty");
  const text = el("div.scan-why", { tabindex: 0 });
  const grid = gridView(model, { grid: "scan", label: "Details of the plan" });
  const finder = rowFinder(model);
  const pane = el("div.scan-pane", { role: "tabpanel", id: `${id}-pane` }, text, grid.element, finder);
  const tabs = panelTabs("Views of the plan", SCAN_TABS, pane, (key) => model.save("scan_tab", key));
  const root = el(
    "section.scan",
    { ariaLabel: "Scan lab" },
    el(
      "div.scan-top",
      el("div.scan-line", box.element, planButton),
      el("div.scan-line.scan-how", examples, columnsMenu, rowGroups.element),
    ),
    answer,
    el(
      "div.scan-panes",
      el("div.scan-left", tree, empty),
      el("div.scan-side", tabs.element, pane),
    ),
  );

  /**
   * Draw now and when one of these traits changes, without losing the focus to the page.
   *
   * @param {string[]} names
   * @param {() => void} draw
   */
  function follow(names, draw) {
    model.follow(names, () => keepFocus(root, draw, planButton));
  }
  function hasPlan() {
    return model.scan_plan.of !== undefined;
  }

  /** @param {string} filter */
  function submit(filter) {
    if (filter.trim() === model.scan_filter) askScan(model, "plan");
    else model.save("scan_filter", filter.trim());
  }
  function exampleChosen() {
    submit(examples.value);
    examples.value = "";
  }
  function drawTop() {
    const { names = [], filters = [], blocks: words } = model.scan_examples;
    const chosen = model.scan_columns;
    // Another snapshot may lack a selected column.
    const all = [...new Set([...names, ...chosen])];
    columnsSummary.textContent = chosen.length ? `Columns ${chosen.length}/${all.length}` : "All columns";
    const boxes = all.map((name) => {
      /** @param {boolean} on */
      function choose(on) {
        model.save("scan_columns", all.filter((one) => (one === name ? on : chosen.includes(one))));
      }
      return checkBox(name, choose, { value: name, checked: chosen.includes(name) }).element;
    });
    fill(columnsList, boxes);
    rowGroups.input.checked = model.scan_row_groups;
    /** @type {(label: string, texts: string[]) => HTMLElement} */
    const group = (label, texts) => el("optgroup", { label }, options(texts.map((one) => [one, one])));
    const title = el("option", { value: "", hidden: true }, "Examples");
    fill(examples, title, group("Recent", model.scan_recent), group("Examples", filters));
    const chips = filters.map((filter) =>
      el(
        "button.chip",
        { onclick: () => submit(filter) },
        el("code", filter),
        filter === "true" && el("span", "every row"),
      )
    );
    fill(empty, blocks(model, words), chips);
  }
  function drawAnswer() {
    const { error, headline, took, python = "", blocks: texts, of } = model.scan_plan;
    const count = model.scan_count;
    tree.hidden = !hasPlan();
    empty.hidden = hasPlan();
    if (!hasPlan()) return fill(answer, error && el("pre.scan-fault", { role: "alert" }, error));
    fill(
      answer,
      el(
        "div.scan-summary",
        el("h3", headline),
        el("span.note", took),
        el(
          "span.scan-acts",
          button("Count rows", () => askScan(model, "count")),
          copyButton("Copy as Python", () => python),
        ),
      ),
      el("div", { role: "status" }, count.of === of && count.text),
      blocks(model, texts),
    );
  }
  /** Dim the old result while a newer request is pending, or after it was cancelled. */
  function drawStale() {
    const { filter, snapshot } = model.scan_plan;
    const isStale = filter !== model.scan_filter || snapshot !== model.selection.snapshot;
    root.classList.toggle("ice-stale", hasPlan() && isStale);
  }

  function drawSide() {
    const now = model.scan_tab in SCAN_TABS ? model.scan_tab : "why";
    /** @type {HTMLElement} */
    let shown = text;
    if (now === "rows") shown = finder;
    else if (hasPlan() && SCAN_TABLES.includes(now)) shown = grid.element;
    if (shown === grid.element) grid.look(model.scan_plan.of ?? "", now);
    /** @type {HTMLElement | HTMLElement[]} */
    let content = [];
    if (shown === text) {
      content = hasPlan() && now === "advice" ? adviceElements() : blocks(model, model.scan_why.blocks);
    }
    fill(text, content);
    text.scrollTop = 0;
    tabs.mark(now, shown);
  }
  function adviceElements() {
    const advice = model.scan_advice.of === model.scan_plan.of ? model.scan_advice : {};
    if (advice.blocks) return blocks(model, advice.blocks);
    const again = linkButton("Try again", () => askScan(model, "advice"));
    const reading = "Reading the statistics of every manifest …";
    return el("div.evidence", advice.missed ? [advice.missed, " ", again] : reading);
  }

  follow(["scan_examples", "scan_columns", "scan_row_groups", "scan_recent"], drawTop);
  follow(["scan_plan", "scan_count"], drawAnswer);
  follow(["scan_plan", "scan_why", "scan_advice", "scan_tab"], drawSide);
  follow(["scan_plan", "scan_filter", "selection"], drawStale);
  if (!model.scan_examples.names) askScan(model, "examples");
  return root;
}

/**
 * Return the form that finds a row: where it is, what deleted it, in which snapshot.
 *
 * @param {Model} model
 */
function rowFinder(model) {
  const column = selectBox("Column");
  const value = el("input.input", { ariaLabel: "Value", placeholder: "value" });
  const history = checkBox("Include removed files");
  const found = el("div", { role: "status" });
  const findButton = button("Find", null, { type: "submit", class: "primary" });
  function find() {
    if (!value.value) return;
    askScan(model, "rows", { column: column.value, value: value.value, history: history.input.checked });
  }
  model.follow("scan_examples", () => {
    const { columns = [] } = model.scan_examples;
    const items = columns.map(([name, type]) =>
      el("option", { value: name, title: type, selected: name === column.value }, name)
    );
    fill(column, items);
  });
  model.follow("scan_found", () => fill(found, blocks(model, model.scan_found.blocks)));
  return el("div.scan-why", keyboardForm(".scan-form", find, column, "=", value, history.element, findButton), found);
}
