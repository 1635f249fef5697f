/**
 * The scan lab: a filter box with completion, what the filter reads and skips at each level and why, and tuning advice.
 *
 * @module
 */

/** @import { Model } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { checkBox, copyButton, foldedMenu, panelTabs } from "./controls.js";
import { button, el, fill, keepFocus, linkButton, options, randomId, selectBox } from "./dom.js";
import { filterBox } from "./filterBox.js";
import { gridView } from "./grid.js";
import { canvasColours } from "./painting.js";
import { planSlides, rangesView } from "./ranges.js";
import { treeView } from "./treeView.js";

/** The tabs beside the tree; `SCAN_TABLES` are those that show tables. */
const SCAN_TABS = {
  why: "Why",
  tasks: "Read",
  skipped: "Skipped",
  deletes: "Deletes",
  head: "Rows",
  advice: "Tuning advice",
};
const SCAN_VIEWS = { ranges: "Ranges", tree: "Tree" };
const SCAN_TABLES = ["tasks", "skipped", "deletes", "head"];

/**
 * Send a request to Python, even if it equals the previous one.
 *
 * @param {Model} model
 * @param {string} want What is requested: "plan", "examples", "advice" or "count".
 * @param {object} [more]
 */
function askScan(model, want, more) {
  model.requestEach("scan_ask", { ...more, want });
}

/**
 * Return the scan lab.
 *
 * @param {Model} model
 */
export function scanView(model) {
  const id = `ice-${randomId()}`;
  const box = filterBox(model, { id, trait: "scan_filter", planned: () => model.scan_plan.filter, submit });
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
  const ranges = rangesView(model);
  const picture = el("div.scan-picture", { role: "tabpanel", id: `${id}-picture` }, ranges, tree);
  const views = panelTabs("Picture of the plan", SCAN_VIEWS, picture, (key) => model.save("scan_view", key));
  const empty = el("div.scan-empty");
  const text = el("div.scan-why", { tabindex: 0 });
  const grid = gridView(model, { grid: "scan", label: "Table of the plan" });
  const pane = el("div.scan-pane", { role: "tabpanel", id: `${id}-pane` }, text, grid.element);
  const tabs = panelTabs("About the plan", SCAN_TABS, pane, (key) => model.save("scan_tab", key));
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
      el("div.scan-left", views.element, picture, empty),
      el("div.scan-side", tabs.element, pane),
    ),
  );

  const slides = planSlides(model, "Waterfall", canvasColours(model, root));

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
    // A column that was selected for a different snapshot may be missing in this one.
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
    views.element.hidden = picture.hidden = !hasPlan();
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
          slides,
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
    if (hasPlan() && SCAN_TABLES.includes(now)) shown = grid.element;
    if (shown === grid.element) grid.look(model.scan_plan.of ?? "", now);
    /** @type {HTMLElement | HTMLElement[]} */
    let content = [];
    if (shown === text) {
      content = hasPlan() && now === "advice"
        ? adviceElements()
        : [reasonList(), ...blocks(model, model.scan_why.blocks)];
    }
    fill(text, content);
    text.scrollTop = 0;
    tabs.mark(now, shown);
  }
  /** Return the list of reasons for which files are read or skipped; each is a link to its files. */
  function reasonList() {
    const { of, reasons = [], missed } = model.scan_reasons;
    if (!hasPlan()) return el("div");
    if (of !== model.scan_plan.of || missed) return el("p.note", missed ?? "Counting the reasons …");
    const items = reasons.map(([words, table, filters]) => {
      function open() {
        model.save("scan_tab", table);
        grid.show(model.scan_plan.of ?? "", table, { filters });
      }
      return el("li", linkButton(words, open));
    });
    return el("ul.reasons", { ariaLabel: "Reasons" }, items);
  }
  function drawView() {
    const isTree = model.scan_view === "tree";
    views.mark(isTree ? "tree" : "ranges", isTree ? tree : ranges);
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
  follow(["scan_plan", "scan_why", "scan_reasons", "scan_advice", "scan_tab"], drawSide);
  follow(["scan_view"], drawView);
  follow(["scan_plan", "scan_filter", "selection"], drawStale);
  if (!model.scan_examples.names) askScan(model, "examples");
  return root;
}
