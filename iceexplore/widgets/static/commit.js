// The commit lab: a form as Python describes it, the tree before and after a step, its rules and costs. It knows no
// operation: what there is to choose, what happened and what was refused are in the traits.

import { blocks } from "./blocks.js";
import { copier, formOf, tabsOf } from "./controls.js";
import { button, el, fill, options, randomId, sameJson, setEnabled } from "./dom.js";
import { gridView } from "./grid.js";
import { treeView } from "./treeView.js";

const ABOUT = {
  trees: "Before and after",
  files: "Changed files",
  manifests: "Manifests",
  rules: "Rules",
  cost: "Cost",
  written: "Files written",
  python: "Python",
  save: "Save",
};
const GRIDS = ["files", "manifests", "rules", "written"];
// What is no number a browser shows, and does not give: Python is to refuse it, not to take the default for it.
const NO_NUMBER = "what was typed";

export function commitView(model) {
  const id = `ice-${randomId()}`;
  const get = (name) => model["commit_" + name];
  const draft = () => get("draft");
  const keep = (change) => model.save("commit_draft", { ...draft(), ...change });
  const ask = (what, more) => model.requestEach("commit_asked", { do: what, ...more });
  const sender = (words) => el("button.go", { type: "submit" }, words);

  // The form: a field is `of` an operation, "layout", or "" of the form itself ---------------------------------------

  const group = (of) => (of ? draft()[of] ?? {} : draft());
  const change = ({ of, name }, value) => keep(of ? { [of]: { ...group(of), [name]: value } } : { [name]: value });
  function value({ of, name, choices, default: first }) {
    const found = group(of)[name] ?? first;
    return !choices || choices.some(([known]) => known === found) ? found : first;
  }
  const values = (fields) => Object.fromEntries(fields.map((field) => [field.name, value(field)]));

  function control(field) {
    const { of, name, label, help, more, wide, choices, input: how, when } = field;
    const key = `${id}-${of}-${name}`;
    const take = () => change(field, read());
    // To a browser what is no number is as empty as nothing: that it went is no change.
    const oninput = () => value(field) === NO_NUMBER && take();
    const props = {
      ...how,
      id: key,
      "data-field": name,
      "aria-describedby": help && key + "-help",
      onchange: take,
      oninput,
    };
    const input = choices ? el("select.select", props, options(choices)) : el("input", props);
    const [flag, number] = ["checkbox", "number"].map((type) => how.type === type);
    const read =
      () => (flag
        ? input.checked
        : input.validity.badInput
        ? NO_NUMBER
        : number && input.value
        ? Number(input.value)
        : input.value);
    const helpText = help && el("small", { id: key + "-help" }, more ? el("details", el("summary", help), more) : help);
    const element = el("div.field", { class: wide && "is-wide" }, el("label", { for: key }, label), input, helpText);
    const show = (fields) => {
      const now = value(field);
      if (flag) input.checked = now;
      else if (document.activeElement !== input || choices) input.value = now === NO_NUMBER ? "" : now;
      element.hidden = when && !when[1].includes(value(fields.find((other) => other.name === when[0])));
    };
    return { element, show };
  }
  // Fields are made anew only where Python describes others: whoever types keeps the focus. The first may be elsewhere.
  function fieldset(box, top) {
    let drawn = [];
    let controls = [];
    return (fields) => {
      if (!sameJson(drawn, fields)) {
        drawn = fields;
        controls = fields.map(control);
        fill(box, controls.map(({ element }) => element));
        if (top) fill(top, controls[0].element);
      }
      controls.forEach(({ show }) => show(fields));
    };
  }
  function operation() {
    const { choose, operations } = get("form");
    return operations.find(({ name }) => name === value(choose[0]));
  }
  function apply() {
    const { layout, choose } = get("form");
    ask("apply", { ...values(choose), values: values(operation().fields), layout: values(layout) });
  }

  const [version, what, own, rival] = [1, 2, 3, 4].map(() => el("div"));
  const others = el("div.options");
  const help = el("p.advice");
  const go = sender("Apply");
  const refused = el("div.problem.is-error", { role: "alert" });
  const layoutOf = el(
    "fieldset",
    el("legend", "Layout"),
    version,
    el("details.rest", el("summary", "Options of the layout"), others),
  );
  const form = formOf(
    ".commit-form",
    apply,
    el("div.commit-fields", layoutOf, el("fieldset", el("legend", "Commit"), what, help, own, rival)),
    go,
    refused,
  );
  const [drawLayout, drawOwn, drawChoose] = [fieldset(others, version), fieldset(own), fieldset(rival, what)];

  function drawForm() {
    const { needs, layout, choose } = get("form");
    if (needs) return fill(form, el("p", needs));
    if (!layout) return; // it is on its way
    drawLayout(layout);
    drawChoose(choose);
    drawOwn(operation().fields);
    help.textContent = operation().help;
  }

  // Steps ----------------------------------------------------------------------------------------------------------

  const steps = el("ol.steps");
  const undo = button("Undo", () => ask("undo"));
  const redo = button("Redo", () => ask("redo"));
  const fork = button("Fork", () => ask("fork"), { title: "Go on from here in a line of its own" });
  const lines = el("span.group", { role: "group", ariaLabel: "Lines" });
  const bar = el("nav.commit-bar", { ariaLabel: "Steps" }, steps, el("span.group.end", undo, redo, fork), lines);

  function drawLine() {
    const { lines: names = [], current, steps: list = [], at = 0, ends, code: text } = get("line");
    const titles = ["Start", ...list.map(({ title }, i) => `${i + 1} ${title}`)];
    const undone = (i) => i > at && { class: "undone", ariaLabel: `${titles[i]}, undone` };
    fill(
      steps,
      titles.map((title, i) =>
        el(
          "li",
          button(title, () => ask("go", { line: current, at: i }), {
            "data-key": i,
            ariaCurrent: i === at ? "step" : null,
            ...undone(i),
          }),
        )
      ),
    );
    lines.hidden = names.length < 2;
    fill(
      lines,
      names.map((name, i) => button(name, () => ask("go", { line: i, at: ends[i] }), { ariaPressed: i === current })),
    );
    setEnabled(undo, at > 0);
    setEnabled(redo, at < list.length);
    setEnabled(fork, names.length);
    code.textContent = text;
  }

  // Before and after -----------------------------------------------------------------------------------------------

  const sides = ["before", "after"].map((side) => {
    const map = treeView(model, {
      prefix: `commit_${side}_`,
      label: `Tree ${side} the step`,
      list: true,
      watch: ["commit_draft"],
      selected: () => draft()[side] ?? "",
      select: (node) => keep({ [side]: node }),
    });
    const [title, nodeText] = [el("figcaption"), el("div.path", { tabindex: 0 })];
    return { side, title, nodeText, element: el("figure.side", title, map, nodeText) };
  });
  const trees = el("div.sides", sides.map(({ element }) => element));
  const heading = el("h3");
  const reportList = el("ul.report-list", { ariaLive: "polite" });

  function drawSides() {
    const report = get("report");
    const { title, text = [], checked, compared } = report;
    heading.textContent = title;
    fill(reportList, [...text, checked, compared].filter(Boolean).map((line) => el("li", line)));
    for (const { side, title: caption, nodeText, element } of sides) {
      element.hidden = !get(side + "_roots").length;
      caption.textContent = report[side];
      nodeText.textContent = get(side + "_nodes")[draft()[side]]?.tooltip ??
        "Select a part to see what it is and where.";
    }
  }

  // What else is known of the step ---------------------------------------------------------------------------------

  const grid = gridView(model, { grid: "commit", label: "Table of the step", onRow: () => {} });
  const cost = el("div.costs");
  const code = el("pre.text", { tabindex: 0, ariaLabel: "The steps as Python" });
  const python = el(
    "div",
    el(
      "p.group",
      copier("Copy", () => code.textContent),
      "The steps so far. Run, they make the same table, to the last id.",
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
  const answer = el("div", { role: "status" });
  const save = formOf(
    "",
    () => ask("save", { path: path.value }),
    el("label", { for: path.id }, "Write the table as it is now into a new folder"),
    el("p.group", path, sender("Save")),
    answer,
  );
  const panel = el(
    "div.commit-panel",
    { role: "tabpanel", id: `${id}-panel` },
    trees,
    grid.element,
    cost,
    python,
    save,
  );
  const tabs = tabsOf("About the step", ABOUT, panel, (tab) => keep({ tab }));

  function drawPanel() {
    const { id: step, costs, compared } = get("report");
    const now = step && draft().tab in ABOUT ? draft().tab : "trees";
    tabs.element.hidden = !step;
    if (GRIDS.includes(now)) grid.look(step, now);
    fill(
      cost,
      costs ? blocks(model, costs) : compared || "That was cancelled: undo and redo the step to have it done.",
    );
    tabs.mark(now, { trees, cost, python, save }[now] ?? grid.element);
  }

  const follow = (names, draw) => model.follow([names].flat().map((name) => "commit_" + name), draw);
  follow(["form", "draft"], drawForm);
  follow("refused", () => fill(refused, blocks(model, get("refused").blocks)));
  follow("line", drawLine);
  follow(["report", "draft", "before_nodes", "after_nodes"], drawSides);
  follow(["report", "draft"], drawPanel);
  follow("saved", () => fill(answer, blocks(model, get("saved").blocks)));
  model.follow("busy", () => setEnabled(go, model.busy === ""));
  if (!get("form").needs && !get("after_roots").length) ask("show");
  const result = el(
    "section.commit-result",
    { ariaLabel: "Result" },
    bar,
    el("div.commit-what", heading, reportList),
    tabs.element,
    panel,
  );
  return el("div.commit", form, result);
}
