// The scan lab: a filter that completes while it is typed, what it reads and skips level by level, why, what would help,
// and where a row is.

import { blocks } from "./blocks.js";
import { check, copier, formOf, menuOf, tabsOf } from "./controls.js";
import { button, clamp, el, fill, keepFocus, linkButton, listen, options, randomId, selectBox, timer } from "./dom.js";
import { gridView } from "./grid.js";
import { treeView } from "./treeView.js";

const VIEWS = {
  why: "Why",
  tasks: "Read",
  skipped: "Skipped",
  deletes: "Deletes",
  head: "Rows",
  advice: "What would help",
  rows: "Find a row",
};
const TABULAR = ["tasks", "skipped", "deletes", "head"];
const HINTED = 120; // ms without a key until what is typed is asked about

const ask = (model, want, more) => model.requestEach("scan_ask", { ...more, want });

// The box and its list of what can come next (WAI-ARIA combobox): the focus stays in the box.
function filterBox(model, id, submit) {
  const input = el("input.input.scan-input", {
    role: "combobox",
    ariaLabel: "Filter",
    ariaAutoComplete: "list",
    "aria-controls": `${id}-list`,
    "aria-describedby": `${id}-fault`,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    placeholder: "Filter: which rows?",
  });
  const list = el("ul.scan-list", { role: "listbox", id: `${id}-list`, ariaLabel: "What can come next" });
  const fault = el("pre.scan-fault", { id: `${id}-fault`, role: "status" });
  let asked = 0; // the question whose answer is the list; none while it is shut
  let at = -1; // the choice that Enter takes, once there are choices
  const wait = timer(model);

  const hint = () => model.scan_hint;
  const choices = () => (hint().n === asked && hint().at === input.selectionStart ? hint().choices : []);
  function show(first = -1) {
    wait();
    asked = model.request("scan_draft", { text: input.value, at: input.selectionStart });
    at = first;
    draw();
  }
  function close() {
    wait();
    asked = 0;
    at = -1;
    draw();
  }
  function draw() {
    const found = choices();
    if (found.length) at = Math.min(at, found.length - 1);
    fill(
      list,
      found.map(([text, note], i) =>
        el(
          "li",
          {
            role: "option",
            id: `${id}-${i}`,
            ariaSelected: i === at,
            onmousedown: (event) => (event.preventDefault(), accept(i)),
          },
          el("code", text),
          el("span", note),
        )
      ),
    );
    const chosen = list.children[at];
    input.ariaExpanded = found.length > 0;
    input.setAttribute("aria-activedescendant", chosen?.id ?? "");
    if (chosen) {
      list.scrollTop = clamp(
        chosen.offsetTop + chosen.offsetHeight - list.clientHeight,
        list.scrollTop,
        chosen.offsetTop,
      );
    }
    const { error, unfinished, start, end } = hint();
    // not while a word is being completed, and not what the plan below already reports
    const here = input.matches(":focus") && input.value.trim() && hint().text === input.value;
    const wrong =
      here && !(found.length && (unfinished || start < end)) && model.scan_plan.filter !== input.value.trim()
        ? error
        : "";
    if (fault.textContent !== wrong) fault.textContent = wrong;
    fault.classList.toggle("ice-quiet", unfinished);
    input.ariaInvalid = Boolean(wrong) && !unfinished;
  }
  function accept(i) {
    const { start, end } = hint();
    input.setRangeText(choices()[i][2], start, end, "end");
    show();
  }
  function move(by) {
    const count = choices().length + 1; // and none of them, as before
    if (count === 1) return show(by > 0 ? 0 : Infinity); // the first or the last, once they are there
    at = ((at + 1 + by + count) % count) - 1;
    draw();
  }
  listen(input, {
    keydown(event) {
      event.stopPropagation(); // or the notebook takes it
      const act = {
        ArrowDown: () => move(1),
        ArrowUp: () => move(-1),
        Enter: () => (choices()[at] ? accept(at) : (close(), submit(input.value))),
        Escape: choices().length ? close : null,
        " ": event.ctrlKey ? show : null,
      }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    },
    input() {
      close();
      wait(show, HINTED);
    },
    blur: close,
  });
  model.follow("scan_filter", () => {
    if (input.value.trim() !== model.scan_filter) input.value = model.scan_filter;
    close();
  });
  model.onChange(["scan_hint", "scan_plan"], draw);
  return { element: el("div.combo", input, el("div.scan-pop", fault, list)), value: () => input.value };
}

export function scanView(model) {
  const id = `ice-${randomId()}`;
  const plan = () => model.scan_plan;
  const there = () => plan().of !== undefined;
  const follow = (names, draw) => model.follow(names, () => keepFocus(root, draw, planner));
  const box = filterBox(model, id, submit);
  const summary = el("summary.button");
  const names = el("div.menu-list");
  const columns = menuOf(summary, { class: "scan-columns" }, names);
  const groups = check(
    "Row groups",
    (on) => model.save("scan_row_groups", on),
    {},
    "Opens the footers of the files that are left",
  );
  const tries = selectBox("Examples and recent filters", () => (submit(tries.value), (tries.value = "")), null, {
    class: "scan-tries",
  });
  const planner = button("Plan", () => submit(box.value()), { class: "primary" });
  const answer = el("div.scan-answer");
  const map = treeView(model, { prefix: "scan_", label: "What is read and what is skipped" });
  const empty = el("div.scan-empty");
  const explanation = el("div.scan-why", { tabindex: 0 });
  const grid = gridView(model, { grid: "scan", label: "Table of the plan" });
  const finder = rowFinder(model);
  const pane = el("div.scan-pane", { role: "tabpanel", id: `${id}-pane` }, explanation, grid.element, finder);
  const tabs = tabsOf("About the plan", VIEWS, pane, (key) => model.save("scan_tab", key));
  const root = el(
    "section.scan",
    { ariaLabel: "Scan lab" },
    el("div.scan-top", el("div.scan-line", box.element, planner), el("div.scan-line.scan-how", tries, columns, groups)),
    answer,
    el("div.scan-panes", el("div.scan-left", map, empty), el("div.scan-side", tabs.element, pane)),
  );

  function submit(text) {
    if (text.trim() === model.scan_filter) ask(model, "plan");
    else model.save("scan_filter", text.trim());
  }
  function drawTop() {
    const { names: known = [], filters = [], blocks: words } = model.scan_examples;
    const chosen = model.scan_columns;
    const every = [...new Set([...known, ...chosen])]; // another snapshot may lack one
    summary.textContent = chosen.length ? `Columns ${chosen.length}/${every.length}` : "All columns";
    fill(
      names,
      every.map((name) =>
        check(
          name,
          (on) => model.save("scan_columns", every.filter((one) => (one === name ? on : chosen.includes(one)))),
          {
            value: name,
            checked: chosen.includes(name),
          },
        )
      ),
    );
    groups.firstChild.checked = model.scan_row_groups;
    const group = (label, texts) => el("optgroup", { label }, options(texts.map((text) => [text, text])));
    fill(
      tries,
      el("option", { value: "", hidden: true }, "Examples"),
      group("Recent", model.scan_recent),
      group("Examples", filters),
    );
    const chips = filters.map((text) =>
      el("button.chip", { onclick: () => submit(text) }, el("code", text), text === "true" && el("span", "every row"))
    );
    fill(empty, blocks(model, words), chips);
  }
  function drawAnswer() {
    const { error, headline, took, python, blocks: planBlocks, of } = plan();
    const count = model.scan_count;
    map.hidden = !there();
    empty.hidden = there();
    if (!there()) return fill(answer, error && el("pre.scan-fault", { role: "alert" }, error));
    fill(
      answer,
      el(
        "div.scan-summary",
        el("h3", headline),
        el("span.note", took),
        el("span.scan-acts", button("Count rows", () => ask(model, "count")), copier("Copy as Python", () => python)),
      ),
      el("div", { role: "status" }, count.of === of && count.text),
      blocks(model, planBlocks),
    );
  }
  // What was asked for and is not shown yet, or was cancelled, is pale.
  const drawStale = () =>
    root.classList.toggle(
      "ice-stale",
      there() && (plan().filter !== model.scan_filter || plan().snapshot !== model.selection.snapshot),
    );

  function drawSide() {
    const now = model.scan_tab in VIEWS ? model.scan_tab : "why";
    const shown = now === "rows" ? finder : there() && TABULAR.includes(now) ? grid.element : explanation;
    if (shown === grid.element) grid.look(plan().of, now);
    fill(
      explanation,
      shown === explanation && (there() && now === "advice" ? advised() : blocks(model, model.scan_why.blocks)),
    );
    explanation.scrollTop = 0;
    tabs.mark(now, shown);
  }
  function advised() {
    const advice = model.scan_advice.of === plan().of ? model.scan_advice : {};
    if (advice.blocks) return blocks(model, advice.blocks);
    const again = advice.missed && [advice.missed, " ", linkButton("Try again", () => ask(model, "advice"))];
    return el("div.evidence", again || "Reading the statistics of every manifest …");
  }

  follow(["scan_examples", "scan_columns", "scan_row_groups", "scan_recent"], drawTop);
  follow(["scan_plan", "scan_count"], drawAnswer);
  follow(["scan_plan", "scan_why", "scan_advice", "scan_tab"], drawSide);
  follow(["scan_plan", "scan_filter", "selection"], drawStale);
  if (!model.scan_examples.names) ask(model, "examples");
  return root;
}

// Where a row is, what deleted it, in which snapshot.
function rowFinder(model) {
  const column = selectBox("Column");
  const value = el("input.input", { ariaLabel: "Value", placeholder: "value" });
  const history = check("removed files too");
  const found = el("div", { role: "status" });
  const find = () =>
    value.value &&
    ask(model, "rows", { column: column.value, value: value.value, history: history.firstChild.checked });
  model.follow("scan_examples", () => {
    const { columns = [] } = model.scan_examples;
    fill(
      column,
      columns.map(([name, type]) => el("option", { value: name, title: type, selected: name === column.value }, name)),
    );
  });
  model.follow("scan_found", () => fill(found, blocks(model, model.scan_found.blocks)));
  return el(
    "div.scan-why",
    formOf(".scan-form", find, column, "=", value, history, button("Find", null, { type: "submit", class: "primary" })),
    found,
  );
}
