// The commit lab: a form as Python describes it, the tree before and after a step, its rules and costs. It knows no
// operation: what there is to choose, what happened and what was refused are in the traits.

import { chooseTab, tabRow } from "./controls.js";
import { button, copyText, el, enable, fill, keepFocus, options, random, same, svg } from "./dom.js";
import { gridView } from "./grid.js";
import { mapView } from "./map.js";

const ABOUT = { trees: "Before and after", files: "Changed files", manifests: "Manifests", rules: "Rules", cost: "Cost", written: "Files written", python: "Python", save: "Save" };
const GRIDS = ["files", "manifests", "rules", "written"];

export function commitView(model) {
  const id = `ice-${random()}`;
  const get = (name) => model.get("commit_" + name);
  const draft = () => get("draft");
  const problem = (title, ...parts) => el("div.ice-problem.ice-is-error", el("strong", title), ...parts.filter(Boolean).map((part) => el("div", part)));

  const keep = (change) => model.put("commit_draft", { ...draft(), ...change });
  const ask = (what, more) => model.askEach("commit_asked", { do: what, ...more });

  // The form: `where` is an operation, "layout", or "" of the form itself -------------------------------------------

  const group = (where) => (where === "" ? draft() : where === "layout" ? draft().layout : draft().values?.[where]) ?? {};
  function change(where, name, value) {
    const values = { ...group(where), [name]: value };
    keep(where === "" ? values : where === "layout" ? { layout: values } : { values: { ...draft().values, [where]: values } });
  }
  function value(where, { name, choices, kind, default: first }) {
    const found = group(where)[name] ?? first;
    return kind !== "choice" || choices.some(([known]) => known === found) ? found : first;
  }
  const means = (where, fields, { when }) => !when || when[1].includes(value(where, fields.find(({ name }) => name === when[0])));

  function control(where, field) {
    const { name, kind, label, help, more, choices, min, max, default: first } = field;
    const key = `${id}-${where}-${name}`;
    const number = kind === "int" || kind === "number";
    const props = { id: key, "data-field": name, "aria-describedby": help ? key + "-help" : null };
    // What is no number a browser shows, and does not give: Python is to refuse it, not to take the default for it.
    const typed = () => (input.validity.badInput ? "what was typed" : input.value === "" ? null : Number(input.value));
    props.onchange = () => change(where, name, kind === "flag" ? input.checked : number ? typed() : input.value);
    const input =
      kind === "choice"
        ? el("select.ice-select", props, options(choices))
        : el("input", { ...props, class: kind === "flag" ? "ice-check" : "ice-input", type: kind === "flag" ? "checkbox" : number ? "number" : "text", placeholder: number && first, min, max, step: kind === "int" ? 1 : number && "any", spellcheck: "false", autocomplete: "off" });
    const told = help && el(more ? "summary" : "span", { id: key + "-help" }, help);
    const element = el(`div.ice-field.ice-is-${where ? kind : "text"}`, el("label", { for: key }, label), input, told && el("small", more ? el("details", told, more) : told));
    const show = (fields) => {
      const now = value(where, field);
      if (kind === "flag") input.checked = now;
      else if (document.activeElement !== input || kind === "choice") input.value = number && typeof now === "string" ? "" : now ?? "";
      element.hidden = !means(where, fields, field);
    };
    return { element, show };
  }
  // Fields are made anew only where Python describes others: whoever types keeps the focus.
  function fieldset(...boxes) {
    let last = null;
    let controls = [];
    return (where, fields) => {
      if (!same(last, [where, fields])) {
        last = [where, fields];
        controls = fields.map((field) => control(where, field));
        boxes.forEach((box, i) => fill(box, controls.slice(i, i + 1 < boxes.length ? i + 1 : undefined).map(({ element }) => element)));
      }
      controls.forEach(({ show }) => show(fields));
    };
  }
  const operation = () => {
    const all = get("form").operations ?? [];
    return all.find(({ name }) => name === draft().operation) ?? all[0];
  };
  function apply() {
    const chosen = (where, fields) => Object.fromEntries(fields.filter((field) => means(where, fields, field)).map((field) => [field.name, value(where, field)]));
    const { name, fields } = operation();
    ask("apply", { operation: name, values: chosen(name, fields), layout: chosen("layout", get("form").layout), rival: value("", get("form").choose[1]) });
  }

  const [version, others, what, own, rival] = ["", ".ice-options", "", "", ""].map((name) => el("div" + name));
  const folded = el("details.ice-rest", el("summary", "Options of the layout"), others);
  const help = el("p.ice-advice");
  const go = el("button.ice-go", { type: "submit" }, "Apply");
  const refused = el("div", { role: "alert" });
  const form = el(
    "form.ice-commit-form",
    { novalidate: true, onsubmit: (event) => (event.preventDefault(), apply()), onkeydown: (event) => event.stopPropagation() },
    el("div.ice-commit-fields", el("fieldset", el("legend", "Layout"), version, folded), el("fieldset", el("legend", "Commit"), what, help, own, rival)),
    go,
    refused,
  );
  const [drawLayout, drawOwn, drawChoose] = [fieldset(version, others), fieldset(own), fieldset(what, rival)];

  function drawForm() {
    const { needs, layout, choose } = get("form");
    if (needs) return fill(form, el("p", needs));
    if (!layout) return; // it is on its way
    drawLayout("layout", layout);
    folded.hidden = layout.slice(1).every((field) => !means("layout", layout, field));
    drawChoose("", choose);
    const { name, fields, help: text } = operation();
    help.textContent = text;
    drawOwn(name, fields);
  }
  function drawRefused() {
    const { text, rule, law, files = [], advice } = get("refused");
    fill(refused, text && problem(rule ? `Refused: ${rule}` : "Refused", text, law, ...files, advice));
  }

  // Steps ----------------------------------------------------------------------------------------------------------

  const steps = el("ol.ice-steps");
  const undo = button("Undo", () => ask("undo"));
  const redo = button("Redo", () => ask("redo"));
  const fork = button("Fork", () => ask("fork"), { title: "Go on from here in a line of its own" });
  const lines = el("span.ice-group", { role: "group", ariaLabel: "Lines" });
  const bar = el("nav.ice-commit-bar", { ariaLabel: "Steps" }, steps, el("span.ice-group.ice-end", undo, redo, fork), lines);

  // Other buttons in a box; the focus stays at its place.
  function renew(box, made) {
    const buttons = () => [...box.querySelectorAll("button")];
    const held = buttons().indexOf(document.activeElement);
    fill(box, made);
    buttons()[held]?.focus();
  }
  function drawLine() {
    const { lines: names = [], current = 0, steps: list = [], at = 0, ends = [], code: text = "" } = get("line");
    const titles = ["Start", ...list.map(({ title }, i) => `${i + 1} ${title}`)];
    renew(steps, titles.map((title, i) => el("li", button(title, () => ask("go", { line: current, at: i }), { ariaCurrent: i === at ? "step" : null, ...(i > at && { class: "ice-undone", ariaLabel: `${title}, undone` }) }))));
    lines.hidden = names.length < 2;
    renew(lines, names.map((name, i) => button(name, () => ask("go", { line: i, at: ends[i] }), { ariaPressed: i === current })));
    enable(undo, at > 0);
    enable(redo, at < list.length);
    enable(fork, names.length);
    code.textContent = text;
    copy.textContent = "Copy";
  }

  // Before and after -----------------------------------------------------------------------------------------------

  const sides = ["before", "after"].map((side) => {
    const traits = Object.fromEntries(["nodes", "roots", "expanded"].map((name) => [name, `commit_${side}_${name}`]));
    const map = mapView(model, { ...traits, label: `Tree ${side} the step`, list: true, watch: ["commit_draft"], selected: () => draft()[side] ?? "", select: (node) => keep({ [side]: node }) });
    const [title, said] = [el("figcaption"), el("div.ice-path", { tabindex: 0 })];
    return { side, title, said, element: el("figure.ice-side", title, map, said) };
  });
  const trees = el("div.ice-sides", sides.map(({ element }) => element));
  const heading = el("h3");
  const told = el("ul.ice-told-list", { ariaLive: "polite" });

  function drawSides() {
    const { id: step, title = "", text = [], checked, compared } = get("report");
    heading.textContent = title;
    fill(told, [...text, checked, compared].filter(Boolean).map((line) => el("li", line)));
    for (const { side, title: caption, said, element } of sides) {
      element.hidden = !get(side + "_roots").length;
      caption.textContent = !step ? "Now" : side === "before" ? "Before: − goes, = stays" : "After: + is new, − went, = stayed";
      said.textContent = get(side + "_nodes")[draft()[side]]?.tooltip ?? "Select a part to see what it is and where.";
    }
    trees.classList.toggle("ice-alone", sides[0].element.hidden);
  }

  // What else is known of the step ---------------------------------------------------------------------------------

  const grid = gridView(model, { grid: "commit", label: "Table of the step", onRow: () => {} });
  const costs = el("div.ice-costs");
  const code = el("pre.ice-text", { tabindex: 0, ariaLabel: "The steps as Python" });
  const copy = button("Copy", async () => (copy.textContent = (await copyText(code.textContent)) ? "Copied" : "Select it, and copy it by hand"));
  const python = el("div", el("p.ice-group", copy, "The steps so far. Run, they make the same table, to the last id."), code);
  const path = el("input.ice-input", { type: "text", id: `${id}-path`, "data-field": "path", placeholder: "new-folder", spellcheck: "false" });
  const answer = el("div", { role: "status" });
  const onsubmit = (event) => (event.preventDefault(), ask("save", { path: path.value }));
  const save = el("form", { onsubmit, onkeydown: (event) => event.stopPropagation() }, el("label", { for: path.id }, "Write the table as it is now into a new folder"), el("p.ice-group", path, el("button.ice-go", { type: "submit" }, "Save")), answer);
  const panel = el("div.ice-commit-panel", { role: "tabpanel", id: `${id}-panel` }, trees, grid.element, costs, python, save);
  const keys = Object.keys(ABOUT);
  const buttons = keys.map((key) => el("button.ice-tab", { role: "tab", id: `${id}-${key}`, "data-key": key, "aria-controls": panel.id, onclick: () => keep({ tab: key }) }, ABOUT[key]));
  const tabs = tabRow("div.ice-tabs", "About the step", buttons);
  let asked = ""; // the step and table that the grid has asked for

  function drawPanel() {
    const { id: step } = get("report");
    const now = step && keys.includes(draft().tab) ? draft().tab : "trees";
    tabs.hidden = !step;
    const tab = buttons[keys.indexOf(now)];
    chooseTab(buttons, tab);
    panel.setAttribute("aria-labelledby", tab.id);
    const shown = { trees, cost: costs, python, save }[now] ?? grid.element;
    keepFocus(panel, () => [...panel.children].forEach((part) => (part.hidden = part !== shown)), tab);
    const wanted = `${step} ${now}`;
    const { of, table } = model.get("pages").commit ?? {};
    // What another view has asked for is there, sorted and filtered.
    if (GRIDS.includes(now) && wanted !== asked && (of !== step || table !== now)) grid.show(step, now);
    if (GRIDS.includes(now)) asked = wanted;
  }
  function drawCosts() {
    const { bars, compared = "" } = get("report");
    if (!bars) return fill(costs, compared || "That was cancelled: undo and redo the step to have it done.");
    const all = bars.map(({ title, rows }) => {
      const most = Math.max(1, ...rows.map(({ parts }) => parts.reduce((sum, part) => sum + part.value, 0)));
      return el("section.ice-cost", el("h4", title), rows.flatMap(({ label, total, parts }) => [el("div.ice-cost-row", el("span", label), drawBar(parts, most), el("strong", total)), el("small", parts.map(({ text }) => text).join(" · "))]));
    });
    fill(costs, all);
  }
  // The numbers stand below it as text.
  function drawBar(parts, most) {
    const bar = svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", ariaHidden: true });
    let x = 0;
    for (const { level, value } of parts) {
      const width = (100 * value) / most;
      bar.append(svg(`rect.ice-level-${level}`, { x, width: Math.max(width - 0.4, 0.2), height: 8 }));
      x += width;
    }
    return bar;
  }
  function drawSaved() {
    const { error, text, code: open } = get("saved");
    fill(answer, error ? problem("Not saved", error) : text && [el("p", text), el("pre.ice-text", open)]);
  }
  const drawBusy = () => enable(go, model.get("busy") === "");

  const result = el("section.ice-commit-result", { ariaLabel: "Result" }, bar, el("div.ice-commit-what", heading, told), tabs, panel);
  const draws = [[drawForm, "form", "draft"], [drawRefused, "refused"], [drawLine, "line"], [drawSides, "report", "draft", "before_nodes", "after_nodes"], [drawPanel, "report", "draft"], [drawCosts, "report"], [drawSaved, "saved"]];
  for (const [draw, ...names] of draws) {
    draw();
    model.listen(names.map((name) => "commit_" + name), draw);
  }
  model.listen(["busy"], drawBusy);
  drawBusy();
  if (!get("form").needs && !get("after_roots").length) ask("show");
  return el("div.ice-commit", form, result);
}
