/**
 * The tab Rows: a filter, the rows that match with what happened to them, and their histories.
 *
 * @module
 */

/** @import { Model } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { checkBox, copyButton, keyboardForm } from "./controls.js";
import { button, el, fill, keepFocus, options, randomId, selectBox } from "./dom.js";
import { filterBox } from "./filterBox.js";
import { gridView, selectNode } from "./grid.js";

/**
 * Send a request to Python, even if it is repeated: "examples", "find", "first", "count", "value".
 *
 * @param {Model} model
 * @param {string} want
 * @param {object} [more]
 */
function askRows(model, want, more) {
  model.requestEach("rows_ask", { ...more, want });
}

/**
 * Return the tab Rows.
 *
 * @param {Model} model
 */
export function rowsView(model) {
  const id = `ice-${randomId()}`;
  const box = filterBox(model, { id, trait: "rows_filter", planned: () => model.rows_answer.filter, submit });
  const findButton = button("Find", () => submit(box.value()), { class: "primary" });
  const examples = selectBox("Examples", exampleChosen, null, { class: "scan-tries" });
  const history = checkBox(
    "Include removed files",
    (on) => model.save("rows_history", on),
    {},
    "Also search the files of earlier snapshots",
  );
  const column = selectBox("Column");
  const value = el("input.input", { ariaLabel: "Value", placeholder: "value" });
  const equalButton = button("Find value", null, { type: "submit" });
  const form = keyboardForm(".scan-form", findValue, column, "=", value, equalButton);
  const answer = el("div.scan-answer");
  const grid = gridView(model, { grid: "rows", label: "Rows found", onRow: goToRow });
  const stories = el("div.scan-why", { tabindex: 0, role: "region", ariaLabel: "What happened to the rows" });
  const root = el(
    "section.scan.rows",
    { ariaLabel: "Rows" },
    el(
      "div.scan-top",
      el("div.scan-line", box.element, findButton),
      el("div.scan-line.scan-how", examples, history.element, form),
    ),
    answer,
    el("div.scan-panes", el("div.scan-left", grid.element), el("div.scan-side", stories)),
  );

  /** @param {string} filter */
  function submit(filter) {
    if (filter.trim() === model.rows_filter) askRows(model, "find");
    else model.save("rows_filter", filter.trim());
  }
  function exampleChosen() {
    submit(examples.value);
    examples.value = "";
  }
  function findValue() {
    if (value.value) askRows(model, "value", { column: column.value, value: value.value });
  }

  /**
   * Show a row's file: in the explorer, nodes are in another tab.
   *
   * @param {string} node
   */
  function goToRow(node) {
    if (model.tab !== undefined) model.set("tab", "tree");
    selectNode(model, node);
  }

  function drawTop() {
    const { columns = [], filters = [] } = model.scan_examples;
    const items = columns.map(([name, type]) =>
      el("option", { value: name, title: type, selected: name === column.value }, name)
    );
    fill(column, items);
    fill(
      examples,
      el("option", { value: "", hidden: true }, "Examples"),
      options(filters.map((filter) => [filter, filter])),
    );
    history.input.checked = model.rows_history;
  }
  function drawAnswer() {
    const { of, error, headline, note, python = "", blocks: texts, more } = model.rows_answer;
    const counted = model.rows_count.of === of && model.rows_count.text;
    grid.element.hidden = of === undefined;
    if (of !== undefined) grid.look(of, "rows");
    if (error) {
      fill(answer, el("pre.scan-fault", { role: "alert" }, error));
    } else {
      const acts = of !== undefined && [
        button("Count rows", () => askRows(model, "count")),
        copyButton("Copy as Python", () => python),
      ];
      fill(
        answer,
        el("div.scan-summary", el("h3", headline ?? ""), el("span.scan-acts", acts)),
        el("div", { role: "status" }, counted || note),
      );
    }
    fill(stories, blocks(model, texts), more && button(more, () => askRows(model, "first"), { class: "primary" }));
    stories.scrollTop = 0;
  }
  /** What belongs to an earlier request is pale. */
  function drawStale() {
    const { filter, history: all, snapshot } = model.rows_answer;
    const isNow = filter === model.rows_filter && all === model.rows_history && snapshot === model.selection.snapshot;
    root.classList.toggle("ice-stale", filter !== undefined && !isNow);
  }

  /** @type {(names: string[], draw: () => void) => void} */
  const follow = (names, draw) => model.follow(names, () => keepFocus(root, draw, findButton));
  follow(["scan_examples", "rows_history"], drawTop);
  follow(["rows_answer", "rows_count"], drawAnswer);
  follow(["rows_answer", "rows_filter", "rows_history", "selection"], drawStale);
  if (!model.scan_examples.names) askRows(model, "examples");
  return root;
}
