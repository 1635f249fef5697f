/**
 * The commit lab: a form that Python describes, the tree before and after a step, and the step's rules and costs. This
 * module has no code for particular operations: the choices, results and refusals are in the traits.
 *
 * @module
 */

/** @import { CommitDraft, CommitItem, FieldValue, Figure, FormField, Model } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { copyButton, keyboardForm, panelTabs } from "./controls.js";
import { button, el, fill, options, randomId, sameJson, setEnabled } from "./dom.js";
import { gridView } from "./grid.js";
import { canvasColours } from "./painting.js";
import { sidesView } from "./sides.js";
import { pictureOf, slideButtons } from "./slide.js";

/** The tabs of a step; `COMMIT_TABLES` are those that show tables. */
const COMMIT_TABS = {
  figure: "Before and after",
  trees: "Trees",
  item: "Details",
  files: "Changed files",
  manifests: "Manifests",
  rules: "Rules",
  cost: "Cost",
  written: "Files written",
  python: "Python",
  save: "Save",
};
const COMMIT_TABLES = ["files", "manifests", "rules", "written"];
/** A text about the checked rules is added to the summary only if it has fewer characters than this. */
const LONGEST_SUMMARY = 80;
/** The minimum scale at which a figure is shown. */
const SMALLEST = 0.72;
/**
 * The value for input that is not a number: the browser does not return the typed text, and Python should refuse the
 * input instead of using the default.
 */
const NOT_A_NUMBER = "what was typed";

/**
 * Return the value of a field: the chosen one, or the default if none was chosen or it is no longer offered.
 *
 * @param {FormField} field
 * @param {CommitDraft} draft
 * @returns {FieldValue}
 */
export function fieldValue({ of, name, choices, default: standard }, draft) {
  const group = of ? draft[of] ?? {} : draft;
  const found = group[name] ?? standard;
  return !choices || choices.some(([known]) => known === found) ? found : standard;
}

/**
 * Return the values of fields by their names.
 *
 * @param {FormField[]} fields
 * @param {CommitDraft} draft
 */
export function fieldValues(fields, draft) {
  return Object.fromEntries(fields.map((field) => [field.name, fieldValue(field, draft)]));
}

/**
 * Return whether a field is hidden, because it depends on a certain value of another field.
 *
 * @param {FormField} field
 * @param {FormField[]} fields
 * @param {CommitDraft} draft
 */
export function isFieldHidden({ when }, fields, draft) {
  if (!when) return false;
  const [name, values] = when;
  const other = fields.find((one) => one.name === name);
  return other !== undefined && !values.includes(fieldValue(other, draft));
}

/**
 * Return a figure as an image, so that no text of the table is parsed as markup of the page; below it, as text.
 *
 * @param {Figure | null | undefined} figure
 */
function figureElements(figure) {
  if (!figure) return [];
  const [svg, text, width] = figure;
  // Below the minimum width, the figure would be unreadable, so it scrolls instead.
  const style = { "max-width": `${width}px`, "min-width": `${SMALLEST * width}px` };
  const src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  return [
    el("div.figure", { tabindex: 0, role: "region", ariaLabel: "Figure" }, el("img", { src, alt: text, style })),
    el("details.rest", el("summary", "The figure as text"), el("pre.text", { tabindex: 0 }, text)),
  ];
}

/**
 * Scroll a figure that is too wide to its end, where the snapshot after the step and its new files are.
 *
 * @param {HTMLElement} figure
 */
async function showEnd(figure) {
  const [box, image] = [figure.querySelector(".ice-figure"), figure.querySelector("img")];
  // If the image was replaced in the meantime, it has no size, and nothing is scrolled.
  await image?.decode().catch(() => {});
  if (box) box.scrollLeft = box.scrollWidth;
}

/**
 * Return the commit lab.
 *
 * @param {Model} model
 */
export function commitView(model) {
  const id = `ice-${randomId()}`;

  /** @param {CommitDraft} change */
  function changeDraft(change) {
    model.save("commit_draft", { ...model.commit_draft, ...change });
  }
  /**
   * Send a request to Python, even if it equals the previous one.
   *
   * @param {string} what
   * @param {object} [more]
   */
  function ask(what, more) {
    model.requestEach("commit_asked", { do: what, ...more });
  }
  /** @param {string} text */
  function submitButton(text) {
    return el("button.go", { type: "submit" }, text);
  }

  // The form -----------------------------------------------------------------------------------------------------------

  /**
   * @param {FormField} field
   * @param {FieldValue} value
   */
  function changeField({ of, name }, value) {
    changeDraft(of ? { [of]: { ...model.commit_draft[of], [name]: value } } : { [name]: value });
  }

  /**
   * Return a field of the form, and a function that shows its value.
   *
   * @param {FormField} field
   * @returns {{ element: HTMLElement, show: (fields: FormField[]) => void }}
   */
  function formControl(field) {
    const { of, name, label, help, more, wide, choices, input: attributes } = field;
    const key = `${id}-${of}-${name}`;
    const isTicked = attributes?.type === "checkbox";
    const isNumber = attributes?.type === "number";
    const properties = {
      ...attributes,
      id: key,
      "data-field": name,
      "aria-describedby": help && `${key}-help`,
      onchange: take,
      // To the browser, an invalid number is the same as an empty field, so it reports no change when the input is
      // cleared.
      oninput() {
        if (fieldValue(field, model.commit_draft) === NOT_A_NUMBER) take();
      },
    };
    const select = choices && el("select.select", properties, options(choices));
    const input = el("input", choices ? {} : properties);
    const control = select ?? input;
    const helpText = more ? el("details", el("summary", help), more) : help;
    const element = el(
      "div.field",
      { class: wide && "is-wide" },
      el("label", { for: key }, label),
      control,
      help && el("small", { id: `${key}-help` }, helpText),
    );
    function take() {
      changeField(field, valueInControl());
    }
    /** @returns {FieldValue} */
    function valueInControl() {
      if (select) return select.value;
      if (isTicked) return input.checked;
      if (input.validity.badInput) return NOT_A_NUMBER;
      return isNumber && input.value ? Number(input.value) : input.value;
    }
    /** @param {FormField[]} fields */
    function show(fields) {
      const value = fieldValue(field, model.commit_draft);
      if (isTicked) {
        input.checked = Boolean(value);
      } else if (select || document.activeElement !== input) {
        control.value = value === NOT_A_NUMBER ? "" : String(value ?? "");
      }
      element.hidden = isFieldHidden(field, fields, model.commit_draft);
    }
    return { element, show };
  }

  /**
   * Return a function that draws fields. Fields are created again only if Python's description of them has changed, so
   * that a user who types keeps the focus.
   *
   * @param {HTMLElement} box
   * @param {HTMLElement} [top] The element for the first field, if that is not in the box.
   * @returns {(fields: FormField[]) => void}
   */
  function fieldDrawer(box, top) {
    /** @type {FormField[]} */
    let drawn = [];
    /** @type {ReturnType<typeof formControl>[]} */
    let controls = [];
    return (fields) => {
      if (!sameJson(drawn, fields)) {
        drawn = fields;
        controls = fields.map(formControl);
        fill(box, controls.map(({ element }) => element));
        if (top) fill(top, controls[0].element);
      }
      for (const { show } of controls) show(fields);
    };
  }
  function chosenOperation() {
    const { choose = [], operations = [] } = model.commit_form;
    const name = fieldValue(choose[0], model.commit_draft);
    return operations.find((one) => one.name === name) ?? operations[0];
  }
  /** @param {string} [version] The format version to upgrade to, instead of the chosen one. */
  function apply(version) {
    const { layout = [], choose = [] } = model.commit_form;
    const draft = model.commit_draft;
    ask("apply", {
      ...fieldValues(choose, draft),
      values: fieldValues(chosenOperation().fields, draft),
      layout: { ...fieldValues(layout, draft), ...(version && { format_version: version }) },
    });
  }

  const version = el("div");
  const operation = el("div");
  const ownFields = el("div");
  const rival = el("div");
  const layoutOptions = el("div.options");
  const operationHelp = el("p.advice");
  const applyButton = submitButton("Apply");
  const upgradeButton = button("Apply in V4", () => apply("4"), {
    title: "Upgrade the table to version 4, and make this commit there",
  });
  const refused = el("div.problem.is-error", { role: "alert" });
  const layoutFields = el(
    "fieldset",
    el("legend", "Layout"),
    version,
    el("details.rest", el("summary", "Layout options"), layoutOptions),
  );
  const commitFields = el("fieldset", el("legend", "Commit"), operation, operationHelp, ownFields, rival);
  const awaited = el("p.advice", { role: "status" }, "Preparing a copy of the table to commit to …");
  const fields = el("div.commit-fields", layoutFields, commitFields);
  const form = keyboardForm(
    ".commit-form",
    () => apply(),
    awaited,
    fields,
    el("p.group", applyButton, upgradeButton),
  );
  const drawLayout = fieldDrawer(layoutOptions, version);
  const drawOwnFields = fieldDrawer(ownFields);
  const drawChoices = fieldDrawer(rival, operation);

  function drawApply() {
    const { layout } = model.commit_form;
    const [versions] = layout ?? [];
    for (const one of [applyButton, upgradeButton]) setEnabled(one, layout && model.busy === "");
    const canUpgrade = versions?.choices?.some(([version]) => version === "4");
    upgradeButton.hidden = !versions || !canUpgrade || fieldValue(versions, model.commit_draft) === "4";
  }
  function drawForm() {
    const { needs, layout, choose = [] } = model.commit_form;
    if (needs) return fill(form, el("p", needs));
    // Until Python has described the form, there is nothing to apply.
    form.ariaBusy = String(!layout);
    awaited.hidden = Boolean(layout);
    fields.hidden = !layout;
    drawApply();
    if (!layout) return;
    drawLayout(layout);
    drawChoices(choose);
    drawOwnFields(chosenOperation().fields);
    operationHelp.textContent = chosenOperation().help;
  }

  // Steps --------------------------------------------------------------------------------------------------------------

  const steps = el("ol.steps");
  const undo = button("Undo", () => ask("undo"));
  const redo = button("Redo", () => ask("redo"));
  const fork = button("Fork", () => ask("fork"), { title: "Branch off: start another series of steps here" });
  const lines = el("span.group", { role: "group", ariaLabel: "Forks" });
  const toForm = button("Form", () => form.querySelector("select")?.focus(), {
    title: "Go to the form",
    class: "to-form",
  });
  const bar = el(
    "nav.commit-bar",
    { ariaLabel: "Steps" },
    steps,
    el("span.group.end", toForm, undo, redo, fork),
    lines,
  );

  function drawLine() {
    const { lines: names = [], current, steps: taken = [], at = 0, ends = [], code: python = "" } = model.commit_line;
    const titles = ["Start", ...taken.map(({ title }, i) => `${i + 1} ${title}`)];
    const stepButtons = titles.map((title, i) => {
      const undone = i > at && { class: "undone", ariaLabel: `${titles[i]}, undone` };
      const properties = { "data-key": i, ariaCurrent: i === at ? "step" : null, ...undone };
      return el("li", button(title, () => ask("go", { line: current, at: i }), properties));
    });
    const lineButtons = names.map((name, i) =>
      button(name, () => ask("go", { line: i, at: ends[i] }), { ariaPressed: i === current })
    );
    fill(steps, stepButtons);
    lines.hidden = names.length < 2;
    fill(lines, lineButtons);
    setEnabled(undo, at > 0);
    setEnabled(redo, at < taken.length);
    setEnabled(fork, names.length);
    code.textContent = python;
  }

  // Before and after ---------------------------------------------------------------------------------------------------

  const sides = sidesView(model, {
    prefix: "commit",
    change: "the step",
    draft: "commit_draft",
    select: (side, node) => changeDraft({ [side]: node }),
    caption: (side) => model.commit_report[side],
    open: (side, node) => showItem({ side, node }),
  });
  const heading = el("h3");
  const headline = el("div.headline", { role: "status" });
  const report = el("ul.report-list");
  const reportSummary = el("summary");
  const details = el("details.rest", reportSummary, report);
  const figure = el("div.commit-figure");
  const figureBox = el("div");
  const colours = canvasColours(model, figureBox);
  const slides = slideButtons(model, "Figure", {
    colours,
    picture: () => pictureOf(model.commit_report.figure?.[0] ?? "", colours),
    legend: () => [[model.commit_report.title ?? ""]],
  });
  figureBox.append(slides, figure);
  /** The key of the drawn figure: its step, and the length of its image. */
  let drawn = "";

  function drawSides() {
    const { id: step, title = "", text = [], checked = "", compared, figure: picture, headline: costs } =
      model.commit_report;
    const lines = [...text, checked, compared].filter(Boolean);
    heading.textContent = title;
    fill(headline, costs ? blocks(model, [["p", costs]]) : step && "Drawing …");
    // The reason why rules cannot be checked may be long; it is then only in the folded list.
    reportSummary.textContent = [text[0], checked.length < LONGEST_SUMMARY && checked].filter(Boolean).join(" ");
    fill(report, lines.map((line) => el("li", line)));
    details.hidden = !lines.length;
    sides.draw();
    // Draw the image only if it has changed: an image that is created again would flicker.
    const key = `${step}:${picture?.[0].length}`;
    if (key === drawn) return;
    drawn = key;
    slides.hidden = !picture;
    fill(figure, picture === null ? "There is no snapshot to draw." : figureElements(picture));
    if (step && picture) showEnd(figure);
  }
  function drawRefused() {
    const { blocks: words, figure: conflict } = model.commit_refused;
    fill(refused, blocks(model, words), figureElements(conflict));
    if (words) refused.scrollIntoView({ block: "nearest" });
  }

  // Details of the step ------------------------------------------------------------------------------------------------

  const grid = gridView(model, {
    grid: "commit",
    label: "Details of the step",
    // Rows in the tab Details are nodes of the chosen item's tree; rows of other tables are nodes of the tree after the
    // step.
    onRow: (node) => showItem({ side: chosenTab() === "item" ? model.commit_item.side : "after", node }),
  });
  const cost = el("div.costs");
  const code = el("pre.text", { tabindex: 0, ariaLabel: "The steps as Python" });
  const python = el(
    "div",
    el(
      "p.group",
      copyButton("Copy", () => code.textContent ?? ""),
      "The steps so far. Running them creates the same table again, with the same ids.",
    ),
    code,
  );
  const path = el("input.input", {
    type: "text",
    id: `${id}-path`,
    "data-field": "path",
    placeholder: "new-folder",
    spellcheck: "false",
  });
  const saved = el("div", { role: "status" });
  const save = keyboardForm(
    "",
    () => ask("save", { path: path.value }),
    el("label", { for: path.id }, "Save this table to a new folder"),
    el("p.group", path, submitButton("Save")),
    saved,
  );
  const panel = el(
    "div.commit-panel",
    { role: "tabpanel", id: `${id}-panel` },
    figureBox,
    sides.element,
    grid.element,
    cost,
    python,
    save,
  );
  const tabs = panelTabs("Views of the step", COMMIT_TABS, panel, (tab) => changeDraft({ tab }));

  /** @param {CommitItem} item */
  function showItem(item) {
    model.set("commit_item", item);
    changeDraft({ tab: "item" });
  }
  function chosenTab() {
    const chosen = model.commit_draft.tab ?? "";
    return chosen in COMMIT_TABS && (model.commit_report.id || chosen === "trees") ? chosen : "figure";
  }
  function drawPanel() {
    const { id: step, costs, compared } = model.commit_report;
    const now = chosenTab();
    for (const tab of /** @type {HTMLElement[]} */ ([...tabs.element.children])) {
      // At the start, before any step, the other tabs have nothing to show.
      tab.hidden = !step && !["figure", "trees"].includes(tab.dataset.key ?? "");
    }
    if (step && COMMIT_TABLES.includes(now)) grid.look(step, now);
    if (now === "item") {
      const { side = "after", node = "", table = "" } = model.commit_item;
      grid.look(`${step} ${side} ${node}`, table);
    }
    const missing = compared || "Cancelled. Undo and redo the step to compute this.";
    fill(cost, costs ? blocks(model, costs) : missing);
    const shown = /** @type {Record<string, HTMLElement>} */ ({
      figure: figureBox,
      trees: sides.element,
      cost,
      python,
      save,
    });
    tabs.mark(now, shown[now] ?? grid.element);
  }

  model.follow(["commit_form", "commit_draft"], drawForm);
  model.follow("commit_refused", drawRefused);
  model.follow("commit_line", drawLine);
  model.follow(["commit_report", "commit_draft", "commit_before_nodes", "commit_after_nodes"], drawSides);
  model.follow(["commit_report", "commit_draft", "commit_item"], drawPanel);
  model.follow("commit_saved", () => fill(saved, blocks(model, model.commit_saved.blocks)));
  model.follow("busy", drawApply);
  if (!model.commit_form.needs && !model.commit_after_roots.length) ask("show");
  const result = el(
    "section.commit-result",
    { ariaLabel: "Result" },
    bar,
    refused,
    el("div.commit-what", heading, headline, details),
    tabs.element,
    panel,
  );
  return el("div.commit", form, result);
}
