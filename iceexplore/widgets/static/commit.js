// The commit lab: a form as Python describes it, the tree before and after a step, its rules and costs. It knows no
// operation: what there is to choose, what happened and what was refused are in the traits.

import { copyText, el, listen } from "./dom.js";
import { gridView } from "./grid.js";
import { mapView } from "./map.js";

const SVG = "http://www.w3.org/2000/svg";
const TABS = [["files", "Changed files"], ["manifests", "Manifests"], ["rules", "Rules"], ["cost", "Cost"], ["written", "Files written"], ["python", "Python"], ["save", "Save"]];
const GRIDS = ["files", "manifests", "rules", "written"];
const MARKS = ["added", "removed", "carried"];
let made = 0; // for ids: several labs may be in a page

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export function commitView(model) {
  const id = `ice-commit-${Date.now().toString(36)}-${made++}`;
  const get = (name) => model.get("commit_" + name);
  const draft = () => get("draft");
  const button = (text, act, extra = {}) => el("button", { type: "button", class: "ice-button ice-wordy", onclick: act, ...extra }, text);
  let drawn = {}; // of each part of the form what it was made from
  let asked = ""; // the step whose table the grid has asked for

  function keep(change) {
    model.set("commit_draft", { ...draft(), ...change });
    model.save_changes();
  }
  function ask(what, more = {}) {
    model.set("commit_asked", { n: (get("asked").n ?? 0) + 1, do: what, ...more });
    model.save_changes();
  }

  // The form -----------------------------------------------------------------------------------------------------------

  const operations = () => get("form").operations ?? [];
  const operation = () => operations().find(({ name }) => name === draft().operation) ?? operations()[0];
  const group = (name) => (name === "layout" ? draft().layout : draft().values?.[name]) ?? {};
  const value = (where, { name, kind, choices, default: first }) => {
    const found = group(where)[name] ?? first;
    return kind === "choice" && !choices.some(([known]) => known === found) ? first : found;
  };
  const means = (where, fields, { when }) => !when || when[1].includes(value(where, fields.find(({ name }) => name === when[0])));
  const sent = (where, fields) => Object.fromEntries(fields.filter((field) => means(where, fields, field)).map((field) => [field.name, value(where, field)]));

  function change(where, name, now) {
    const values = { ...group(where), [name]: now };
    keep(where === "layout" ? { layout: values } : { values: { ...draft().values, [where]: values } });
  }
  function control(where, field) {
    const { name, kind, label, help, choices, min, max } = field;
    const key = `${id}-${where}-${name}`;
    const props = { id: key, "data-field": name, class: "ice-input", "aria-describedby": help ? key + "-help" : null };
    const read = () => (kind === "flag" ? input.checked : kind !== "int" && kind !== "number" ? input.value : input.value === "" ? null : Number(input.value));
    const onchange = () => change(where, name, read());
    const input =
      kind === "choice"
        ? el("select", { ...props, class: "ice-select", onchange }, choices.map(([known, title]) => el("option", { value: known }, title)))
        : kind === "flag"
          ? el("input", { ...props, class: "ice-check", type: "checkbox", onchange })
          : kind === "text" || kind === "json"
            ? el("input", { ...props, type: "text", spellcheck: "false", autocomplete: "off", onchange })
            : el("input", { ...props, type: "number", min, max, step: kind === "int" ? 1 : "any", onchange });
    const set = () => {
      const now = value(where, field);
      if (kind === "flag") input.checked = now;
      else if (document.activeElement !== input || kind === "choice") input.value = now ?? "";
    };
    return { field, set, element: el("div", { class: `ice-field ice-is-${kind}` }, el("label", { for: key }, label), input, help ? el("small", { id: key + "-help" }, help) : null) };
  }
  // Fields are made anew only where Python describes others: whoever types keeps the focus.
  function fill(box, where, fields) {
    if (!same(drawn[where === "layout" ? where : "fields"], [where, fields])) {
      drawn[where === "layout" ? where : "fields"] = [where, fields];
      const controls = fields.map((field) => control(where, field));
      box.replaceChildren(...controls.map(({ element }) => element));
      box.controls = controls;
    }
    for (const { field, set, element } of box.controls) {
      set();
      element.hidden = !means(where, fields, field);
    }
  }
  function apply() {
    const { name, fields } = operation();
    ask("apply", { operation: name, values: sent(name, fields), layout: sent("layout", get("form").layout), rival: draft().rival ?? "" });
  }

  const choice = (label, key, act) => {
    const input = el("select", { id: `${id}-${key}`, class: "ice-select", "data-field": key, onchange: () => act(input.value) });
    return { input, element: el("div", { class: "ice-field" }, el("label", { for: input.id }, label), input) };
  };
  const first = el("div", {});
  const options = el("div", { class: "ice-options" });
  const folded = el("details", { class: "ice-rest" }, el("summary", {}, "Options of the layout"), options);
  const what = choice("Operation", "operation", (name) => keep({ operation: name }));
  const help = el("p", { class: "ice-advice" });
  const fields = el("div", {});
  const rival = choice("Meanwhile", "rival", (name) => keep({ rival: name }));
  const go = el("button", { type: "submit", class: "ice-go" }, "Apply");
  const refused = el("div", { class: "ice-problem ice-is-error ice-refused", role: "alert", hidden: true });
  const form = el(
    "form",
    { class: "ice-commit-form", novalidate: true, onsubmit: (event) => (event.preventDefault(), apply()) },
    el("fieldset", {}, el("legend", {}, "Layout"), first, folded),
    el("fieldset", {}, el("legend", {}, "Commit"), what.element, help, fields, rival.element, go),
    refused,
  );
  form.addEventListener("keydown", (event) => event.stopPropagation()); // letters are for the fields

  function list(input, key, pairs, now) {
    if (!same(drawn[key], pairs)) {
      drawn[key] = pairs;
      input.replaceChildren(...pairs.map(([known, title]) => el("option", { value: known }, title)));
    }
    input.value = now;
  }
  function drawForm() {
    const { needs, layout, rivals } = get("form");
    if (needs) return form.replaceChildren(el("p", {}, needs));
    fill(first, "layout", layout);
    // the format version stands outside of what is folded
    const [version, ...others] = first.controls;
    if (others.length && others[0].element.parentNode !== options) options.replaceChildren(...others.map(({ element }) => element));
    folded.hidden = others.every(({ element }) => element.hidden);
    const now = operation();
    list(what.input, "operations", operations().map(({ name, title }) => [name, title]), now.name);
    help.textContent = now.help;
    fill(fields, now.name, now.fields);
    list(rival.input, "rivals", rivals, draft().rival ?? "");
  }
  function drawRefused() {
    const { text, rule, law, source, files, orphans } = get("refused");
    refused.hidden = !text;
    refused.replaceChildren(
      ...(text
        ? [
            el("strong", {}, rule ? `Refused: ${rule}` : "Refused"),
            el("div", {}, text),
            law ? el("div", { class: "ice-evidence" }, `${law} (${source})`) : "",
            files.length ? el("ul", {}, files.map((file) => el("li", {}, file))) : "",
            el("div", { class: "ice-advice" }, orphans ? `Its attempts left ${orphans} file${orphans > 1 ? "s" : ""} that nobody needs. The table is as it was.` : "Nothing was committed; the table is as it was."),
          ]
        : []),
    );
  }

  // Steps ----------------------------------------------------------------------------------------------------------------

  const lines = el("div", { class: "ice-group", role: "group", "aria-label": "Lines" });
  const steps = el("ol", { class: "ice-steps" });
  const undo = button("Undo", () => ask("undo"));
  const redo = button("Redo", () => ask("redo"));
  const fork = button("Fork", () => ask("fork"), { title: "Go on from here in a line of its own" });
  const bar = el("nav", { class: "ice-commit-bar", "aria-label": "Steps" }, steps, el("span", { class: "ice-group ice-end" }, undo, redo, fork), lines);

  function drawLine() {
    const { lines: names = [], current = 0, steps: list = [], at = 0 } = get("line");
    const to = (line, step) => () => ask("go", { line, at: step });
    steps.replaceChildren(
      ...[{ title: "Start" }, ...list].map(({ title }, i) =>
        el("li", { class: i > at ? "ice-undone" : null }, button(i ? `${i} ${title}` : title, to(current, i), { "aria-current": i === at ? "step" : null, title: i > at ? "undone" : null })),
      ),
    );
    lines.hidden = names.length < 2;
    lines.replaceChildren(...names.map((name, i) => button(name, to(i, i === current ? at : -1), { "aria-pressed": i === current })));
    undo.disabled = at === 0;
    redo.disabled = at === list.length;
    fork.disabled = names.length === 0;
  }

  // Before and after -------------------------------------------------------------------------------------------------------

  const sides = ["before", "after"].map((side) => {
    const traits = Object.fromEntries(["nodes", "roots", "expanded"].map((name) => [name, `commit_${side}_${name}`]));
    const map = mapView(model, {
      ...traits,
      label: `Tree ${side} the step`,
      python: false,
      watch: ["commit_draft"],
      selected: () => draft()[side] ?? "",
      select: (node) => keep({ [side]: node }),
    });
    const said = el("p", { class: "ice-path" });
    const title = el("figcaption", {});
    return { side, map, said, title, element: el("figure", { class: "ice-side" }, title, map.element, said) };
  });
  const heading = el("h3", {});
  const told = el("ul", { class: "ice-told-list", role: "status" });
  const signs = el(
    "p",
    { class: "ice-advice ice-group" },
    MARKS.map((mark) => {
      const style = model.get("styles")["mark:" + mark];
      return el("span", { class: "ice-sign" }, el("span", { class: "ice-mark", "aria-hidden": "true", style: { "--light": style.light, "--dark": style.dark } }, style.sign), mark);
    }),
  );
  const compared = el("div", { class: "ice-sides" }, sides.map(({ element }) => element));

  function drawSides() {
    const { id: step, title, text = [] } = get("report");
    heading.textContent = step ? title : "The table as it is";
    told.replaceChildren(...(step ? text : ["Choose an operation, and apply it. The table itself is never written: all of this is a simulation."]).map((line) => el("li", {}, line)));
    signs.hidden = !step;
    for (const { side, said, title: caption, element } of sides) {
      element.hidden = get(side + "_roots").length === 0;
      caption.textContent = step ? (side === "before" ? "Before" : "After") : "Now";
      said.textContent = get(side + "_nodes")[draft()[side]]?.tooltip ?? "";
    }
    compared.classList.toggle("ice-alone", sides[0].element.hidden);
  }

  // What else is known of the step ---------------------------------------------------------------------------------------

  const tabs = el("div", { class: "ice-tabs", role: "tablist", "aria-label": "About the step" });
  const panel = el("div", { class: "ice-commit-panel", role: "tabpanel", id: `${id}-panel` });
  const grid = gridView(model, { grid: "commit", label: "Table of the step", onRow: () => {} });
  const costs = el("div", { class: "ice-costs" });
  const code = el("pre", { class: "ice-text", tabindex: 0, "aria-label": "The steps as Python" });
  const copy = button("Copy", async () => (copy.textContent = (await copyText(code.textContent)) ? "Copied" : "Select it, and copy it by hand"));
  const python = el("div", {}, el("p", { class: "ice-group" }, copy, el("span", { class: "ice-advice" }, "The steps so far. Run, they make the same table, to the last id.")), code);
  const path = el("input", { type: "text", class: "ice-input", id: `${id}-path`, "data-field": "path", placeholder: "new-folder", spellcheck: "false" });
  const answer = el("div", { role: "status" });
  const save = el("form", { class: "ice-save", onsubmit: (event) => (event.preventDefault(), ask("save", { path: path.value })) }, el("label", { for: path.id }, "Write the table as it is now into a new folder"), el("span", { class: "ice-group" }, path, el("button", { type: "submit", class: "ice-go" }, "Save")), answer);
  path.addEventListener("keydown", (event) => event.stopPropagation());
  panel.append(grid.element, costs, python, save);

  const shown = () => TABS.find(([key]) => key === draft().tab)?.[0] ?? "files";
  const buttons = TABS.map(([key, title]) => el("button", { type: "button", class: "ice-tab", role: "tab", id: `${id}-${key}`, "data-key": key, "aria-controls": panel.id, onclick: () => keep({ tab: key }) }, title));
  tabs.append(...buttons);
  tabs.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = buttons[(to + buttons.length) % buttons.length];
    keep({ tab: next.dataset.key });
    next.focus();
  });

  function drawPanel() {
    const { id: step, rules } = get("report");
    const now = shown();
    panel.hidden = tabs.hidden = !step;
    buttons.forEach((tab) => {
      const here = tab.dataset.key === now;
      tab.setAttribute("aria-selected", here);
      tab.tabIndex = here ? 0 : -1;
      if (here) panel.setAttribute("aria-labelledby", tab.id);
    });
    const broken = rules?.broken.length;
    buttons[2].textContent = !rules ? "Rules" : broken ? `Rules (${broken} broken)` : `Rules (${rules.checked} kept)`;
    grid.element.hidden = !GRIDS.includes(now);
    costs.hidden = now !== "cost";
    python.hidden = now !== "python";
    save.hidden = now !== "save";
    const wanted = step && GRIDS.includes(now) ? `${step} ${now}` : "";
    if (wanted && wanted !== asked) grid.show(step, now);
    asked = wanted || asked;
  }
  function drawCosts() {
    const { bars, other } = get("report");
    if (!bars) return costs.replaceChildren(el("p", { class: "ice-empty" }, "The same operation is being done in another layout …"));
    costs.replaceChildren(
      ...bars.map(({ title, rows }) => {
        const most = Math.max(1, ...rows.map(({ parts }) => parts.reduce((sum, part) => sum + part.value, 0)));
        return el("section", { class: "ice-cost" }, el("h4", {}, title), ...rows.flatMap(({ label, total, parts }) => [el("div", { class: "ice-cost-row" }, el("span", {}, label), drawBar(parts, most), el("strong", {}, total)), el("small", {}, parts.map(({ text }) => text).join(" · "))]));
      }),
      other ? el("p", { class: "ice-advice" }, other) : "",
    );
  }
  // The numbers stand beside it as text.
  function drawBar(parts, most) {
    const svg = document.createElementNS(SVG, "svg");
    for (const [name, text] of [["viewBox", "0 0 100 8"], ["preserveAspectRatio", "none"], ["aria-hidden", "true"]]) svg.setAttribute(name, text);
    let x = 0;
    for (const { level, value, text } of parts) {
      const rect = document.createElementNS(SVG, "rect");
      const width = (100 * value) / most;
      for (const [name, text] of [["x", x], ["y", 0], ["width", Math.max(width - 0.4, 0.2)], ["height", 8], ["class", `ice-level-${level}`]]) rect.setAttribute(name, text);
      const title = document.createElementNS(SVG, "title");
      title.textContent = text;
      rect.append(title);
      svg.append(rect);
      x += width;
    }
    return svg;
  }
  function drawSaved() {
    const { error, text, code: open } = get("saved");
    answer.replaceChildren(...(error ? [el("div", { class: "ice-problem ice-is-error" }, el("strong", {}, "Not saved"), el("div", {}, error))] : text ? [el("p", {}, text), el("pre", { class: "ice-text" }, open)] : []));
  }
  function drawCode() {
    code.textContent = get("line").code ?? "";
    copy.textContent = "Copy";
  }
  function drawBusy() {
    go.disabled = model.get("busy") !== "";
  }

  const result = el("section", { class: "ice-commit-result", "aria-label": "Result" }, bar, el("div", { class: "ice-commit-what" }, heading, told, signs), compared, tabs, panel);
  const element = el("div", { class: "ice-commit" }, form, result);
  const draws = { form: [drawForm], draft: [drawForm, drawSides, drawPanel], refused: [drawRefused], line: [drawLine, drawCode], report: [drawSides, drawPanel, drawCosts], saved: [drawSaved], before_nodes: [drawSides], after_nodes: [drawSides] };
  const ends = Object.entries(draws).flatMap(([name, runs]) => runs.map((run) => listen(model, ["commit_" + name], run)));
  ends.push(listen(model, ["busy"], drawBusy));
  for (const run of new Set(Object.values(draws).flat())) run();
  drawBusy();
  if (!get("form").needs && get("after_roots").length === 0) ask("show");
  return { element, end: () => [...ends, grid.end, ...sides.map(({ map }) => map.end)].forEach((end) => end()) };
}
