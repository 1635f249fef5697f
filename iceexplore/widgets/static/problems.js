/**
 * The problems found so far, by severity and kind, each with a link to its node.
 *
 * @module
 */

/** @import { Model, ProblemGroup, ProblemItem, Selection, Severity } from "./types.d.ts" */

import { button, changeSelection, el, fill, formatCount, keepFocus, setEnabled } from "./dom.js";

/**
 * The severities, most severe first, with their labels.
 *
 * @type {[Severity, string][]}
 */
const SEVERITIES = [["error", "error"], ["warning", "warning"], ["info", "note"]];
const SEVERITY_NAMES = new Map(SEVERITIES);

/**
 * Return the sign of a severity.
 *
 * @param {Severity} severity
 */
function severitySign(severity) {
  return el(`span.sign.is-${severity}`, { role: "img", ariaLabel: SEVERITY_NAMES.get(severity) });
}

/**
 * Return the list of problems.
 *
 * @param {Model} model
 */
export function problemsView(model) {
  const sums = el("span.group", { role: "group", ariaLabel: "Severities shown" });
  const covered = el("span.covered", { role: "status" });
  const readAll = button("", () => model.save("read_all", model.read_all + 1));
  const list = el("div.findings", { tabindex: -1 });
  const bar = el("div.problem-bar", sums, covered, readAll);
  /** The codes of the groups that are folded. */
  const folded = new Set();

  function drawBar() {
    const { counts = {}, sums: texts = {}, covered: coverage, left = "" } = model.problems;
    const shown = model.severities;
    const buttons = SEVERITIES.map(([severity, name]) => {
      const others = shown.filter((one) => one !== severity);
      const isShown = others.length < shown.length;
      const toggle = () => model.save("severities", isShown ? others : [...shown, severity]);
      const text = texts[severity] ?? `${name}s: not checked`;
      const properties = { "data-key": severity, ariaPressed: isShown };
      return setEnabled(button([severitySign(severity), " " + text], toggle, properties), counts[severity]);
    });
    fill(sums, buttons);
    fill(covered, coverage);
    keepFocus(readAll, () => (readAll.textContent = left), list);
    setEnabled(readAll, model.busy === "");
  }

  /** @param {ProblemItem} item */
  function problemElement({ id, text, evidence, where, since, actions }) {
    const { node } = model.selection;
    const buttons = actions.map(({ title, selection }) =>
      button(title, () => go(selection), { "data-key": title + id, ariaLabel: `${title}: ${where}` })
    );
    return el(
      "li.finding",
      { ariaCurrent: actions.some(({ selection }) => selection.node === node) || null },
      el("div", text),
      el("div.evidence", evidence),
      el("div.where", where),
      el("div.evidence", since && `since ${since}`),
      el("div.acts", buttons),
    );
  }
  /** @param {Partial<Selection>} selection */
  function go(selection) {
    // In the explorer, nodes are shown in another tab.
    if (model.tab !== undefined) model.set("tab", "tree");
    changeSelection(model, selection);
  }

  /**
   * Return the elements of a group: one, or none if none of its problems is shown.
   *
   * @param {ProblemGroup} group
   * @returns {HTMLElement[]}
   */
  function groupElements({ code, severity, title, advice, items, more, count }) {
    const shown = model.severities;
    const visible = items.filter((item) => shown.includes(item.severity));
    if (!visible.length && !shown.includes(severity)) return [];
    function ontoggle() {
      if (group.open) folded.delete(code);
      else folded.add(code);
    }
    const group = el(
      "details.finding-group",
      { open: !folded.has(code), ontoggle },
      el(
        "summary",
        { "data-key": code },
        severitySign(severity),
        el("strong", title),
        el("span.badge", formatCount(count)),
      ),
      el("div.advice", advice),
      el("ul", visible.map(problemElement)),
      el("div.advice", more),
    );
    return [group];
  }
  /** It stays scrolled as it is, as all of it is drawn at once. */
  function drawList() {
    const { groups = [], nothing = "Looking …" } = model.problems;
    const elements = groups.flatMap(groupElements);
    fill(list, elements.length ? elements : el("div.empty", nothing));
  }
  /** Scroll to the problem of the selected node, in the list alone, not in the page. */
  function follow() {
    drawList();
    const current = list.querySelector("[aria-current]")?.getBoundingClientRect();
    const view = list.getBoundingClientRect();
    if (current && (current.bottom > view.bottom || current.top < view.top)) list.scrollTop += current.top - view.top;
  }

  model.follow(["problems", "severities", "busy"], drawBar);
  model.follow(["problems", "severities"], drawList);
  model.onChange("selection", follow);
  return el("section.problems", { ariaLabel: "Problems" }, bar, list);
}
