/**
 * A saved page: the explorer's views with a model that answers from saved data, without Python.
 *
 * @module
 */

/** @import { AnyModel, FileCells, Model, Query, SavedPage, Selection, TablePage, View } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { el, sameJson } from "./dom.js";
import { explorerView } from "./explorer.js";
import { fileMapView } from "./fileMap.js";
import { problemsView } from "./problems.js";
import { answerMessage, answerQuery } from "./savedTables.js";
import { shell } from "./shell.js";
import { treeView } from "./treeView.js";

const NO_ROWS =
  "Rows are in data files, which this page does not include; to read them takes Python: t.scan(where), or t.explore().";
const NO_PLAN =
  "No plan was shown when this page was saved, or it is redacted; to plan a scan takes Python: t.plan(filter).";
/** The trait `file_map` for a snapshot whose files the page does not include. */
const NO_FILES = /** @type {FileCells} */ ({
  of: "none",
  title: "",
  none: "This page does not include the files of this snapshot.",
  groups: /** @type {FileCells["groups"]} */ ([]),
  names: /** @type {string[]} */ ([]),
  kinds: "",
  changes: "",
  shades: { size: "", age: "", deletes: "" },
});

/**
 * Return a model with those parts of anywidget's model that the views use. Setting a trait calls its listeners; a new
 * selection or query is then answered.
 *
 * @param {SavedPage} saved
 * @returns {AnyModel}
 */
export function savedModel(saved) {
  const traits = /** @type {SavedPage["traits"] & Record<string, any>} */ (saved.traits);
  /** @type {Record<string, ((message?: unknown) => void)[]>} */
  const listeners = {};

  /**
   * @param {string} event
   * @param {unknown} [message]
   */
  function emit(event, message) {
    for (const run of listeners[event] ?? []) run(message);
  }
  /**
   * @param {string} name
   * @param {any} value
   */
  function set(name, value) {
    if (name === "selection") value = { ...value, against: comparedWith(value) };
    if (sameJson(traits[name], value)) return;
    const before = traits[name];
    /** @type {Record<string, any>} */ (traits)[name] = value;
    emit("change:" + name);
    if (name === "selection") answerSelection(value, before);
    if (name === "query") answerQueries(value, before);
  }

  /**
   * Return the id of the snapshot with which the selected one is compared, or "". The page can only show the comparison
   * with which it was saved, because others need Python.
   *
   * @param {Selection} selection
   */
  function comparedWith({ snapshot, against }) {
    const pair = [traits.comparison?.against, traits.comparison?.snapshot];
    if (!against || snapshot === against || !pair.includes(snapshot) || !pair.includes(against)) return "";
    set("comparison", { ...traits.comparison, snapshot, against });
    return against;
  }

  /**
   * Return the ids of the nodes above a node, from the root on.
   *
   * @param {string} id
   * @returns {string[]}
   */
  function above(id) {
    const parent = Object.keys(traits.nodes).find((other) => traits.nodes[other].children?.includes(id));
    return parent ? [...above(parent), parent] : [];
  }
  /** @param {string} node */
  function tablesOf(node) {
    return saved.tables[node] ?? {};
  }
  /**
   * Answer a query of a grid. If the query names no table, it gets the first table of its node.
   *
   * @param {string} grid
   * @param {Query} query
   */
  function showTable(grid, query) {
    const tables = tablesOf(query.of ?? "");
    const table = query.table ?? Object.keys(tables)[0];
    const { [grid]: _, ...others } = traits.pages;
    const found = tables[table];
    set("pages", found ? { ...others, [grid]: answerQuery(found, { ...query, table }) } : others);
  }

  /**
   * @param {Selection} now
   * @param {Selection} before
   */
  function answerSelection(now, before) {
    set("error", {});
    if (now.snapshot !== before.snapshot) {
      const tree = saved.trees[now.snapshot];
      if (!tree) {
        traits.selection = before;
        emit("change:selection");
        set("error", {
          text: "This page does not include this snapshot.",
          advice: "Open the table itself to see it.",
        });
        return;
      }
      for (const [name, value] of Object.entries(tree)) set(name, value);
      if (now.node === before.node && !tree.nodes[now.node]) {
        set("selection", { ...now, node: `snapshot:${now.snapshot}` });
        return;
      }
    }
    set("file_map", saved.files[now.snapshot] ?? NO_FILES);
    const id = now.node;
    // Unfold the path to the selected node, so that it is visible.
    if (id !== before.node) set("expanded", [...new Set([...traits.expanded, ...above(id)])]);
    const detail = detailOf(id);
    const node = traits.nodes[id];
    const unknown = { id, kind: node?.kind ?? "", kind_title: "Not in this page", title: node?.label ?? id };
    set("detail", detail ?? unknown);
    showTable("detail", queryOf(id, before));
  }
  /**
   * Return the details of a node; the comparison is among its tables only while it is shown.
   *
   * @param {string} id
   */
  function detailOf(id) {
    const detail = saved.details[id];
    const { against } = traits.selection;
    const tables = detail?.tables?.filter(({ key }) => against || !key.startsWith("compared:"));
    return detail && { ...detail, tables };
  }
  /**
   * Return the query of the table to show for a node. If the node was selected by opening a row of a table, that table
   * stays.
   *
   * @param {string} id
   * @param {Selection} before
   * @returns {Query}
   */
  function queryOf(id, before) {
    const page = /** @type {TablePage | undefined} */ (traits.pages.detail);
    const own = detailOf(id)?.tables?.find(({ of, key }) => of === id && key in tablesOf(id));
    const first = { of: id, table: own?.key };
    if (!page || page.of === id || before.against !== traits.selection.against) return first;
    const kindOf = (/** @type {string} */ node) => node.split(":")[0];
    // The tab stays if the newly selected node is of the same kind, such as a different snapshot or file.
    if (page.of === before.node && kindOf(page.of) === kindOf(id) && page.table in tablesOf(id)) {
      return { of: id, table: page.table };
    }
    const isOpened = traits.query.detail?.node === id || page.of !== before.node;
    const isOffered = saved.details[id]?.tables?.some(({ of, key }) => of === page.of && key === page.table);
    if (!isOpened || !isOffered || !tablesOf(page.of)[page.table].nodes?.includes(id)) return first;
    return { ...page, columns: page.shown, node: id };
  }

  /**
   * @param {Record<string, Query>} now
   * @param {Record<string, Query>} before
   */
  function answerQueries(now, before) {
    for (const [grid, query] of Object.entries(now)) {
      if (query !== before[grid]) showTable(grid, query);
    }
  }

  answerSelection(traits.selection, traits.selection);
  return {
    get: (name) => traits[name],
    set,
    save_changes() {},
    on(event, run) {
      listeners[event] = [...(listeners[event] ?? []), run];
    },
    off(event, run) {
      listeners[event] = (listeners[event] ?? []).filter((other) => other !== run);
    },
    send(message) {
      const request = /** @type {any} */ (message);
      const found = tablesOf(request.of)[request.table];
      // Pings are answered, too, so that the shell does not report a lost kernel.
      emit("msg:custom", found ? answerMessage(found, request) : {});
    },
  };
}

/**
 * Return the tab Scan of a saved page: the plan that was shown when the page was saved, with its tree.
 *
 * @param {Model} model
 */
function savedScan(model) {
  const { of, filter, headline, blocks: texts } = model.scan_plan;
  if (of === undefined) return el("div.empty", NO_PLAN);
  const { reasons = [] } = model.scan_reasons;
  return el(
    "section.scan.saved-scan",
    { ariaLabel: "Plan" },
    el(
      "div.scan-answer",
      el("div.scan-summary", el("h3", headline), el("code", filter)),
      blocks(model, texts),
      el("ul.reasons", { ariaLabel: "Reasons" }, reasons.map(([words]) => el("li", words))),
      el("p.note", "To plan another filter takes Python: t.plan(filter)."),
    ),
    treeView(model, { prefix: "scan_", label: "Files read and skipped" }),
  );
}

function savedRows() {
  return el("div.empty", NO_ROWS);
}

/** Show the explorer in a saved page: the script of the page calls this. */
export function savedPage() {
  const data = /** @type {HTMLElement} */ (document.getElementById("ice-data"));
  const host = /** @type {HTMLElement} */ (document.getElementById("ice-host"));
  // A saved page loads no further scripts, so the views of all its tabs are in this one.
  /** @type {View} */
  const view = (model, root) =>
    explorerView(model, root, { problems: problemsView, files: fileMapView, scan: savedScan, rows: savedRows });
  shell({ model: savedModel(JSON.parse(data.textContent ?? "")), el: host }, view);
}
