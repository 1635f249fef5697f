/**
 * The tab Rows: a filter, a table of the rows that match it and of what happened to each, and the rows' histories.
 *
 * @module
 */

/** @import { Model } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { checkBox, copyButton, keyboardForm } from "./controls.js";
import { button, el, fill, keepFocus, linkButton, options, randomId, selectBox, timer } from "./dom.js";
import { filterBox } from "./filterBox.js";
import { gridView, selectNode } from "./grid.js";

/** The time, in ms, for which a row keeps the focus before its history is asked for. */
const PICK_DELAY = 150;
const SELECT_ROW = "Select a row of the table to see its history.";
const ALL_ROWS =
  "This covers all rows found, not only those that the table's filters keep. Select a row to see its history.";

/**
 * Send a request to Python, even if it equals the previous one.
 *
 * @param {Model} model
 * @param {string} want What is requested: "examples", "find", "first", "count", "value" or "story".
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
    (on) => {
      // What was typed is searched, too: a filter in sight must not be ignored.
      model.set("rows_filter", box.value().trim());
      model.save("rows_history", on);
    },
    {},
    "Also search the files of earlier snapshots",
  );
  const column = selectBox("Column");
  const value = el("input.input", { ariaLabel: "Value", placeholder: "value" });
  const equalButton = button("Find value", null, { type: "submit" });
  const form = keyboardForm(".scan-form", findValue, column, "=", value, equalButton);
  const answer = el("div.scan-answer");
  const grid = gridView(model, { grid: "rows", label: "Rows found", onRow: goToRow, onPick: pick });
  const waitToAsk = timer(model);
  /**
   * The row of the table whose history is shown, or -1.
   */
  let picked = -1;
  /**
   * The answer that was drawn last.
   *
   * @type {string | undefined}
   */
  let drawn;
  /**
   * The data from which the histories were drawn.
   *
   * @type {unknown[]}
   */
  let drawnStories = [];
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
   * Select a row's file and, in the explorer, switch to the tab with the tree.
   *
   * @param {string} node
   */
  function goToRow(node) {
    if (model.tab !== undefined) model.set("tab", "tree");
    selectNode(model, node);
  }

  /**
   * Request the history of a row of the table, to show it.
   *
   * @param {number} row
   */
  function pick(row) {
    const { of } = model.rows_answer;
    if (row === picked || of === undefined) return;
    picked = row;
    waitToAsk(() => askRows(model, "story", { of, row }), PICK_DELAY);
  }
  function showAll() {
    picked = -1;
    waitToAsk();
    drawStories();
    stories.focus();
  }
  function drawStories() {
    const { of, blocks: texts, more } = model.rows_answer;
    const story = model.rows_story;
    const page = model.pages.rows;
    const found = page && "rows" in page && page.of === of ? page : undefined;
    const isFiltered = (found?.filters ?? []).length > 0;
    // If there is only one row, its history is already shown.
    const hasChoice = (found?.whole ?? 0) > 1;
    const now = [model.rows_answer, story, picked, isFiltered, hasChoice];
    // A different page of the table changes nothing here.
    if (now.every((one, i) => one === drawnStories[i])) return;
    drawnStories = now;
    stories.scrollTop = 0;
    if (of !== undefined && picked >= 0 && story.of === of && story.row === picked) {
      const all = linkButton("Show the histories of all rows", showAll);
      fill(stories, el("p", el("b", "The row that is selected in the table"), " · ", all), blocks(model, story.blocks));
      return;
    }
    fill(
      stories,
      hasChoice && el("p", el("span.note", isFiltered ? ALL_ROWS : SELECT_ROW)),
      blocks(model, texts),
      more && button(more, () => askRows(model, "first"), { class: "primary" }),
    );
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
    const { of, error, headline, note, python = "" } = model.rows_answer;
    if (of !== drawn) picked = -1;
    drawn = of;
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
  }
  /** Make the view pale if it shows the answer to an earlier request. */
  function drawStale() {
    const { filter, history: all, snapshot } = model.rows_answer;
    const isNow = filter === model.rows_filter && all === model.rows_history && snapshot === model.selection.snapshot;
    root.classList.toggle("ice-stale", filter !== undefined && !isNow);
  }

  /** @type {(names: string[], draw: () => void) => void} */
  const follow = (names, draw) => model.follow(names, () => keepFocus(root, draw, findButton));
  follow(["scan_examples", "rows_history"], drawTop);
  follow(["rows_answer", "rows_count"], drawAnswer);
  follow(["rows_answer", "rows_story", "pages"], drawStories);
  follow(["rows_answer", "rows_filter", "rows_history", "selection"], drawStale);
  if (!model.scan_examples.names) askRows(model, "examples");
  return root;
}
