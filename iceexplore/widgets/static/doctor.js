/**
 * The doctor: the form that runs a check, its findings with their consequences, and the repair with the trees before
 * and after it.
 *
 * @module
 */

/** @import { DoctorDraft, DoctorReport, Effect, Finding, Model, Selection, Severity } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { copyButton } from "./controls.js";
import {
  button,
  changeSelection,
  el,
  fill,
  formatCount,
  keepFocus,
  linkButton,
  plural,
  selectBox,
  setEnabled,
} from "./dom.js";
import { sidesView } from "./sides.js";

/**
 * The levels of a check, from quick to thorough.
 *
 * @type {[value: string, text: string][]}
 */
const LEVELS = [
  ["metadata", "Metadata, and whether files exist"],
  ["files", "Files: also open every file"],
  ["rows", "Rows: also read every row"],
];
/** @type {[value: string, text: string][]} */
const CHECKED_SNAPSHOTS = [["current", "Current snapshot"], ["all", "All snapshots"]];
/**
 * The severities of findings, worst first, with the sign of each and its name.
 *
 * @type {[Effect, Severity, string][]}
 */
const EFFECTS = [
  ["fail", "error", "readers fail"],
  ["wrong", "error", "wrong rows or numbers"],
  ["slow", "warning", "slow"],
  ["untidy", "info", "untidy"],
];
/** The number of findings that are unfolded at first. */
const FIRST_OPEN = 3;

/**
 * Return the sign of a severity.
 *
 * @param {Severity} severity
 * @param {string} [name] The severity's name for screen readers; omit it if it is shown beside the sign.
 */
export function severitySign(severity, name) {
  return el(`span.sign.is-${severity}`, name ? { role: "img", ariaLabel: name } : { ariaHidden: true });
}

/**
 * Select a node and, in the explorer, switch to the tab with the tree.
 *
 * @param {Model} model
 * @param {Partial<Selection>} selection
 */
export function goToNode(model, selection) {
  if (model.tab !== undefined) model.set("tab", "tree");
  changeSelection(model, selection);
}

/**
 * Return the findings that have one of the chosen severities.
 *
 * @param {DoctorReport} report
 * @param {Effect[]} effects
 * @returns {Finding[]}
 */
export function shownFindings({ findings = [] }, effects) {
  return findings.filter(({ severity }) => effects.includes(severity));
}

/**
 * Return the text for an empty list of findings.
 *
 * @param {DoctorReport} report
 */
export function nothingFound({ id, findings = [] }) {
  if (!id) return "Not checked yet. Choose a level, then check.";
  return findings.length ? "No findings of these severities." : "Nothing found.";
}

/**
 * @param {Model} model
 * @param {DoctorDraft} change
 */
export function changeDoctorDraft(model, change) {
  model.save("doctor_draft", { ...model.doctor_draft, ...change });
}

/**
 * @param {Model} model
 * @param {string} level
 * @param {string} snapshots
 */
function requestCheck(model, level, snapshots) {
  model.request("doctor_asked", { do: "check", level, snapshots });
}

/**
 * Return the form that runs a check.
 *
 * @param {Model} model
 */
export function checkForm(model) {
  const level = selectBox("Level of the check", () => changeDoctorDraft(model, { level: level.value }), LEVELS);
  const snapshots = selectBox(
    "Snapshots to check",
    () => changeDoctorDraft(model, { snapshots: snapshots.value }),
    CHECKED_SNAPSHOTS,
  );
  const check = button("Check the table", () => {
    model.set("doctor_draft", { ...model.doctor_draft, tab: "findings" });
    requestCheck(model, level.value, snapshots.value);
  });
  model.follow("doctor_draft", () => {
    const { level: deep = LEVELS[0][0], snapshots: where = CHECKED_SNAPSHOTS[0][0] } = model.doctor_draft;
    level.value = deep;
    snapshots.value = where;
  });
  model.follow("doctor_running", () => setEnabled(check, !model.doctor_running));
  return el("div.problem-bar", level, snapshots, check);
}

/**
 * Return the list of findings.
 *
 * @param {Model} model
 */
export function findingsView(model) {
  const sums = el("span.group", { role: "group", ariaLabel: "Filter findings by severity" });
  const scope = el("span.covered", { role: "status" });
  const list = el("div.diagnoses", { tabindex: -1 });
  /** The ids of findings that the user has folded or unfolded. */
  const toggled = new Set();
  /** The id of the report to which the findings in `toggled` belong. */
  let drawn = "";

  function checkAll() {
    changeDoctorDraft(model, { snapshots: "all" });
    requestCheck(model, model.doctor_report.level ?? "", "all");
  }
  function drawBar() {
    const { sums: texts, counts, scope: text = "", left_out: left = 0 } = model.doctor_report;
    const shown = model.doctor_effects;
    const buttons = EFFECTS.map(([effect, sign, name]) => {
      const others = shown.filter((one) => one !== effect);
      const isShown = others.length < shown.length;
      const toggle = () => model.save("doctor_effects", isShown ? others : [...shown, effect]);
      const properties = { "data-key": effect, ariaPressed: isShown };
      return setEnabled(
        button([severitySign(sign), ` ${texts?.[effect] ?? name}`], toggle, properties),
        counts?.[effect],
      );
    });
    fill(sums, buttons);
    // A saved page cannot run a check.
    const isOpen = left > 0 && model.doctor_asked !== undefined;
    fill(scope, text, isOpen && " · ", isOpen && linkButton("Check all snapshots", checkAll));
  }

  /**
   * Return the text of a place, as a link if the place belongs to a node.
   *
   * @param {string} text
   * @param {Partial<Selection> | null} node
   */
  function placeElement(text, node) {
    return node ? linkButton(text, () => goToNode(model, node)) : text;
  }

  /**
   * @param {Finding} finding
   * @param {number} index
   */
  function findingElement(finding, index) {
    const {
      id,
      severity,
      title,
      code,
      text,
      where,
      count,
      lines,
      node,
      since,
      affected = [],
      places,
      follows,
      chain,
      more,
    } = finding;
    const [, sign, name] = EFFECTS.find(([effect]) => effect === severity) ?? EFFECTS[0];
    const isCurrent = node?.node === model.selection.node;
    const acts = [
      node && button("Show", () => goToNode(model, node), { "data-key": `show ${id}`, ariaLabel: `Show: ${where}` }),
      since && button("Show the commit", () => goToNode(model, since), {
        "data-key": `since ${id}`,
        ariaLabel: `Show the commit that introduced: ${title}`,
      }),
    ];
    const chained = follows.map((one) =>
      el("li", el("div", one.text, " ", el("span.badge", one.code)), el("div.where", placeElement(one.where, one.node)))
    );
    const ends = affected.map(([words, selection]) => [" · ", linkButton(words, () => goToNode(model, selection))]);
    const lineElement = (/** @type {[label: string, line: string]} */ [label, line]) =>
      el("div", el("dt", label), el("dd", line, label === "Affects" && ends));
    const placed = places.map(([place, selection]) => el("li.where", placeElement(place, selection)));
    function ontoggle() {
      if (group.open === index < FIRST_OPEN) toggled.delete(id);
      else toggled.add(id);
    }
    const group = el(
      "details.finding-group",
      { open: (index < FIRST_OPEN) !== toggled.has(id), ontoggle },
      el(
        "summary",
        { "data-key": id },
        severitySign(sign, name),
        el("strong", title),
        el("span.badge", code),
        count > 1 && el("span.badge", `${formatCount(count)} places`),
        chain && el("span.badge", `+${follows.length}`),
      ),
      el(
        "div.diagnosis",
        { ariaCurrent: isCurrent || null },
        el("div", text),
        el("dl.diagnosis-lines", lines.map(lineElement)),
        el("div.acts", acts),
        chain && el("details.rest", { open: true }, el("summary", chain), el("ul", chained), more),
        placed.length > 0 &&
          el(
            "details.rest",
            el("summary", count > placed.length ? `The first ${plural(placed.length, "place")}` : "Places"),
            el("ul", placed),
          ),
      ),
    );
    return group;
  }

  function drawList() {
    const report = model.doctor_report;
    if (report.id !== drawn) toggled.clear();
    drawn = report.id ?? "";
    const found = shownFindings(report, model.doctor_effects).map(findingElement);
    const notes = (report.notes ?? []).map((text) => el("div.advice", text));
    fill(list, found.length ? found : el("div.empty", nothingFound(report)), report.more, notes);
  }

  model.follow(["doctor_report", "doctor_effects"], drawBar);
  model.follow(["doctor_report", "doctor_effects", "selection"], drawList);
  return el("section.doctor-findings", { ariaLabel: "Findings" }, el("div.problem-bar", sums, scope), list);
}

/**
 * Return the view of the repair: its steps, the code to copy, and the trees before and after it.
 *
 * @param {Model} model
 */
export function repairView(model) {
  const ask = button("Plan the repair", () => model.request("doctor_asked", { do: "repair" }));
  const about = el("h3");
  const copies = el("span.group");
  const steps = el("div.repair-steps");
  const note = el("p.advice");
  /**
   * The view of both trees, once there is a plan.
   *
   * @type {ReturnType<typeof sidesView> | undefined}
   */
  let sides;

  function makeSides() {
    const made = sidesView(model, {
      prefix: "repair",
      list: true,
      change: "the repair",
      draft: "repair_draft",
      select: (side, node) => model.save("repair_draft", { ...model.repair_draft, [side]: node }),
      caption: (side) => model.repair_plan[side],
    });
    element.append(made.element);
    return made;
  }

  function draw() {
    const { of, headline, blocks: list, python = "", sql = "", note: text = "" } = model.repair_plan;
    const { id } = model.doctor_report;
    const hint = id
      ? "The plan lists the steps, and shows a simulation of the repaired table. The table itself is not changed."
      : "Check the table first: the repair is planned from the findings.";
    about.textContent = headline ?? hint;
    keepFocus(ask, () => (ask.hidden = Boolean(of)), element);
    setEnabled(ask, id && !model.doctor_running);
    fill(
      copies,
      python && copyButton("Copy as Python", () => python, { "data-key": "python" }),
      sql && copyButton("Copy as SQL", () => sql, { "data-key": "sql" }),
    );
    fill(steps, blocks(model, list));
    note.textContent = text;
    if (of) sides ??= makeSides();
    if (sides) sides.element.hidden = !of;
    sides?.draw();
  }

  const element = el(
    "section.repair",
    { ariaLabel: "Repair", tabindex: -1 },
    about,
    el("div.group", ask, copies),
    steps,
    note,
  );
  model.follow([
    "repair_plan",
    "repair_draft",
    "repair_before_nodes",
    "repair_after_nodes",
    "doctor_report",
    "doctor_running",
  ], draw);
  return element;
}
