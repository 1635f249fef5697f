/**
 * The tab Health: the form that runs a check, its findings and their repair; figures of the files and manifests; and the
 * problems found while reading, by severity and kind, each with a link to its node.
 *
 * @module
 */

/** @import { Model, ProblemGroup, ProblemItem, Severity } from "./types.d.ts" */

import { barSlides, plainText } from "./bars.js";
import { blocks } from "./blocks.js";
import { panelTabs } from "./controls.js";
import { changeDoctorDraft, checkForm, findingsView, goToNode, repairView, severitySign } from "./doctor.js";
import { button, el, fill, formatCount, keepFocus, randomId, setEnabled } from "./dom.js";
import { canvasColours } from "./painting.js";

/**
 * The severities, most severe first, with their labels.
 *
 * @type {[Severity, string][]}
 */
const SEVERITIES = [["error", "error"], ["warning", "warning"], ["info", "note"]];
const SEVERITY_NAMES = new Map(SEVERITIES);
/** The tabs of the panel. */
const PROBLEM_TABS = {
  findings: "Findings",
  figures: "Files and manifests",
  repair: "Repair",
  met: "Found while reading",
};

/**
 * Return the list of problems found while reading.
 *
 * @param {Model} model
 */
function metView(model) {
  const sums = el("span.group", { role: "group", ariaLabel: "Filter by severity" });
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
      return setEnabled(button([severitySign(severity, name), " " + text], toggle, properties), counts[severity]);
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
      button(title, () => goToNode(model, selection), { "data-key": title + id, ariaLabel: `${title}: ${where}` })
    );
    return el(
      "li.finding",
      { ariaCurrent: actions.some(({ selection }) => selection.node === node) || null },
      el("div", text),
      el("div.evidence", evidence),
      el("div.where", where),
      el("div.evidence", since),
      el("div.acts", buttons),
    );
  }

  /**
   * Return a list with the element of a group; an empty list if none of the group's problems is to be shown.
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
        severitySign(severity, SEVERITY_NAMES.get(severity)),
        el("strong", title),
        el("span.badge", formatCount(count)),
      ),
      el("div.advice", advice),
      el("ul", visible.map(problemElement)),
      el("div.advice", more),
    );
    return [group];
  }
  /** Draw the whole list at once, so that it keeps its scroll position. */
  function drawList() {
    const { groups = [], nothing = "Looking …" } = model.problems;
    const elements = groups.flatMap(groupElements);
    fill(list, elements.length ? elements : el("div.empty", nothing));
  }
  /** Scroll the list, but not the page, to the problem of the selected node. */
  function follow() {
    drawList();
    const current = list.querySelector("[aria-current]")?.getBoundingClientRect();
    const view = list.getBoundingClientRect();
    if (current && (current.bottom > view.bottom || current.top < view.top)) list.scrollTop += current.top - view.top;
  }

  model.follow(["problems", "severities", "busy"], drawBar);
  model.follow(["problems", "severities"], drawList);
  model.onChange("selection", follow);
  return el("section.met", { ariaLabel: "Problems found while reading" }, bar, list);
}

/**
 * Return the view with figures about files and manifests.
 *
 * @param {Model} model
 */
function figuresView(model) {
  const element = el("section.figures", { ariaLabel: "Files and manifests", tabindex: -1 });
  const probe = el("div");
  const colours = canvasColours(model, probe);
  model.follow("health", () => {
    const list = model.health.blocks ?? [];
    const measured = list.find(([kind]) => kind === "advice")?.[1] ?? [];
    const drawn = blocks(model, list).map((block, i) => {
      if (list[i][0] !== "table") return block;
      return [block, barSlides(model, list[i], list[i - 1][1], plainText(measured), colours)];
    });
    fill(element, probe, drawn);
  });
  return element;
}

/**
 * Return the tab Health.
 *
 * @param {Model} model
 */
export function problemsView(model) {
  const figures = figuresView(model);
  // A saved page only has what was found before it was saved, and no Python to find more.
  if (model.doctor_asked === undefined) {
    return el(
      "section.problems.saved",
      { ariaLabel: "Health" },
      model.doctor_report.id && findingsView(model),
      figures,
    );
  }
  const parts = { findings: findingsView(model), figures, repair: repairView(model), met: metView(model) };
  const panel = el("div.problem-panel", { role: "tabpanel", id: `ice-${randomId()}-problems` }, Object.values(parts));
  const tabs = panelTabs("Health views", PROBLEM_TABS, panel, (tab) => changeDoctorDraft(model, { tab }));
  /** The tab to show until the user chooses one: problems found while reading if there are any, otherwise figures. */
  let first = "";
  let isAsked = false;

  function draw() {
    const { groups } = model.problems;
    if (groups) first ||= groups.length ? "met" : "figures";
    const { tab = model.doctor_report.id ? "findings" : first } = model.doctor_draft;
    const chosen = /** @type {keyof typeof parts} */ (tab in parts ? tab : "met");
    tabs.mark(chosen, parts[chosen]);
    if (chosen !== "figures" || isAsked || model.health.blocks) return;
    isAsked = true;
    model.request("health_asked", { do: "look" });
  }

  model.follow(["doctor_draft", "doctor_report", "problems"], draw);
  return el("section.problems", { ariaLabel: "Health" }, checkForm(model), tabs.element, panel);
}
