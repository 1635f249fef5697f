/**
 * The detail pane: the kind of the selected node, its fields with explanations, its problems, tables and raw JSON.
 *
 * @module
 */

/** @import { Detail, Fact, Help, Model, OpenPoint } from "./types.d.ts" */

import { copyButton, helpOf, markTab, tabRow } from "./controls.js";
import { changeSelection, el, fill, focusedIn, icon, lineIcon, linkButton, plural } from "./dom.js";
import { gridView, selectNode } from "./grid.js";
import { headButton } from "./room.js";

/** Values with up to `UNFOLDED` characters are shown in full; of longer ones, only the first `FOLDED` characters. */
const UNFOLDED = 160;
const FOLDED = 140;
/** The numbers of characters from which a value takes two columns, and the whole width. */
const TWO_COLUMNS = 17;
const WHOLE_WIDTH = 49;
/** The kinds of nodes that the tab Deletes shows, as in `KINDS` of `iceexplore.widgets.deletes._deletes_of_node`. */
const POSITIONS = /^(data-file|position-delete|deletion-vector|manifest-dv)$/;
const COPY_ICON = "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3";
const COPIED_ICON = "M3 8.5l3.5 3.5L13 4.5";
const REFUSED_ICON = "M4 4l8 8m0-8l-8 8";

/**
 * Return whether a field's value gets a copy button, because it is an id or a location.
 *
 * @param {string} name
 * @param {string} text
 */
export function isCopied(name, text) {
  const isNamedSo = /(^|[-_.])(id|uuid|location|path|list|file|manifest)$/.test(name);
  return isNamedSo || /^([a-z][a-z0-9+.-]*:\/)?\/\S/i.test(text);
}

/**
 * Return a button that has an icon and copies a text.
 *
 * @param {string} text
 * @param {string} title
 */
function copyIconButton(text, title) {
  const answers = { copied: lineIcon(COPIED_ICON), refused: lineIcon(REFUSED_ICON) };
  return copyButton(lineIcon(COPY_ICON), () => text, { class: "copy", ariaLabel: title, title }, answers);
}

/**
 * Return a field: its name is a button that explains it, a long value is folded, and ids and locations can be copied.
 *
 * @param {Fact} fact
 * @param {Help} [help]
 * @param {Record<string, OpenPoint>} [open]
 */
function fieldItem([name, text, exact = text], help, open) {
  const isLong = text.length > UNFOLDED;
  const folded = isLong ? el("details.fold", el("summary", text.slice(0, FOLDED) + "…"), text) : text;
  const value = el("dd", folded, isCopied(name, text) && copyIconButton(exact, `Copy ${name}`));
  let size = "";
  if (text.length >= WHOLE_WIDTH) size = "wide";
  else if (text.length >= TWO_COLUMNS) size = "two";
  if (!help) return el("div", { class: size }, el("dt", name), value);

  const explanation = el("div.help", { onkeydown: leave }, el("dd", el("b", name), " ", helpOf(help, open)));
  const button = el(
    "button.why",
    { ariaExpanded: false, ariaLabel: `${name}: what is it?`, onclick: toggle },
    name,
  );
  const item = el("div", { class: size, onkeydown: leave }, el("dt", button), value);
  function toggle() {
    explain(!isExplained());
  }
  function isExplained() {
    return button.ariaExpanded === "true";
  }
  /** @param {boolean} on */
  function explain(on) {
    button.ariaExpanded = String(on);
    if (!on) return explanation.remove();
    // Insert it below all fields in the same line, so that none of them moves to a different column.
    let last = item;
    while (/** @type {HTMLElement | null} */ (last.nextSibling)?.offsetTop === item.offsetTop) {
      last = /** @type {HTMLDivElement} */ (last.nextSibling);
    }
    last.after(explanation);
    explanation.scrollIntoView({ block: "nearest" });
  }
  /** @param {KeyboardEvent} event */
  function leave(event) {
    if (event.key !== "Escape" || !isExplained()) return;
    event.stopPropagation();
    explain(false);
    button.focus();
  }
  return item;
}

/**
 * Return the element of a problem. If the problem is at a different node but concerns this one, it has a link there.
 *
 * @param {Model} model
 * @param {NonNullable<Detail["problems"]>[number]} problem
 */
function problemItem(model, { severity, title, text, evidence, advice, go }) {
  return el(
    "div.problem",
    { class: severity === "error" && "is-error" },
    el("strong", title),
    el("div", text),
    evidence && el("div.evidence", evidence),
    el("div.advice", advice),
    go && linkButton("Show where", () => changeSelection(model, go)),
  );
}

/**
 * Return the detail pane.
 *
 * @param {Model} model
 */
export function detailView(model) {
  const head = el("div.head", { tabindex: -1 });
  const tabs = tabRow("div.tabs", "Tables");
  const tables = gridView(model, { grid: "detail", label: "Table", onRow: openRow });
  const box = el("section.detail", { ariaLabel: "Details" }, headButton(model), head, tabs, tables.element);

  /**
   * Select the node of a row. The table stays open, because the selected row is in it.
   *
   * @param {string} node
   */
  function openRow(node) {
    const page = model.pages.detail;
    tables.ask({ page: "page" in page ? page.page : undefined, node });
    selectNode(model, node);
  }

  function drawHead() {
    const {
      kind,
      kind_title,
      title,
      path,
      copy = path,
      problems = [],
      facts = [],
      more = [],
      help = {},
      open,
      counted,
    } = model.detail;
    // A detail pane outside the explorer has no tabs, and a saved page has no tab Deletes.
    const hasDeletes = model.parts?.some(([key]) => key === "deletes");
    // Scroll before the content changes: afterwards, the browser would have to compute the layout once more.
    head.scrollTop = 0;
    const meanings = new Map(Object.entries(help));
    const list = (/** @type {Fact[]} */ some) =>
      el("dl.facts", some.map((fact) => fieldItem(fact, meanings.get(fact[0]), open)));
    fill(
      head,
      el("div.title", icon(model.styles, kind, 20), el("div.name", el("span.kind", kind_title), el("h3", title))),
      path && el("div.path", el("span", path), copyIconButton(copy ?? path, "Copy location")),
      problems.map((problem) => problemItem(model, problem)),
      list(facts),
      hasDeletes && POSITIONS.test(kind) &&
        linkButton("Show the deleted positions", () => model.save("tab", "deletes")),
      counted && el("div.evidence", counted),
      more.length > 0 && el("details.rest", el("summary", plural(more.length, "more field")), list(more)),
    );
  }

  function drawTabs() {
    const { id: node, tables: offered = [] } = model.detail;
    const held = focusedIn(tabs);
    const items = offered.map(({ of, key, title }) => {
      const isOwn = of === node;
      function show() {
        tables.show(of, key, isOwn ? {} : { node });
        mark();
      }
      const tip = isOwn ? null : "Open the table that lists this item";
      return el("button.tab", { role: "tab", title: tip, onclick: show }, title);
    });
    fill(tabs, items);
    const chosen = mark();
    if (held) (chosen ?? head).focus();
  }
  /**
   * Mark the tab of the table that was requested last.
   *
   * @returns {HTMLElement | undefined} The tab.
   */
  function mark() {
    const { tables: offered = [] } = model.detail;
    const { of, table } = tables.current();
    const now = offered.find((tab) => tab.of === of && tab.key === table) ?? offered[0];
    const chosen = /** @type {HTMLElement | undefined} */ (now && tabs.children[offered.indexOf(now)]);
    tabs.hidden = !now;
    tables.element.hidden = !now;
    if (now) tables.element.ariaLabel = now.title;
    markTab(tabs.children, chosen);
    return chosen;
  }

  model.follow("detail", () => {
    drawHead();
    drawTabs();
  });
  model.onChange(["pages", "cancelled"], mark);
  return box;
}
