// The scan lab: a filter that completes while it is typed, what it reads and skips level by level, why, what would help,
// and where a row is.

import { bars, blocks } from "./blocks.js";
import { copier, menuOf, tabsOf } from "./controls.js";
import { clamp, el, fill, focusedIn, keepFocus, listen, random, timer } from "./dom.js";
import { gridView } from "./grid.js";
import { mapView } from "./map.js";

const VIEWS = { why: "Why", tasks: "Read", skipped: "Skipped", deletes: "Deletes", head: "Rows", advice: "What would help", rows: "Find a row" };
const TABULAR = ["tasks", "skipped", "deletes", "head"];
const HINTED = 120; // ms without a key until what is typed is asked about

const action = (text, onclick, kind = "ice-framed") => el("button.ice-button." + kind, { onclick }, text);
const check = (text, onchange, more) => el("label.ice-check", { title: more?.title }, el("input", { type: "checkbox", ...more, onchange }), el("span", text));

const ask = (model, want, more) => model.askEach("scan_ask", { ...more, want });

// The box and its list of what can come next (WAI-ARIA combobox): the focus stays in the box.
function filterBox(model, id, submit) {
  const input = el("input.ice-input.ice-scan-input", { role: "combobox", ariaLabel: "Filter", ariaAutoComplete: "list", "aria-controls": `${id}-list`, "aria-describedby": `${id}-fault`, autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: "Filter: which rows?" });
  const list = el("ul.ice-scan-list", { role: "listbox", id: `${id}-list`, ariaLabel: "What can come next" });
  const fault = el("pre.ice-scan-fault", { id: `${id}-fault`, role: "status" });
  let open = false;
  let at = -1; // the choice that Enter takes
  let pending = 0; // an arrow that waits for the choices
  const wait = timer(model);

  const hint = () => model.get("scan_hint");
  const here = () => input.matches(":focus") && hint().text === input.value;
  const choices = () => (open && here() && hint().at === input.selectionStart ? hint().choices : []);
  function send() {
    wait();
    model.ask("scan_draft", { text: input.value, at: input.selectionStart });
  }
  function show() {
    open = true;
    send();
  }
  // Nothing is chosen of the list yet, or any more.
  function reset(opened) {
    open = opened;
    at = -1;
    pending = 0;
    draw();
  }
  const close = () => reset(false);
  function draw() {
    const found = choices();
    if (found.length && pending) at = pending > 0 ? 0 : found.length - 1;
    if (found.length) pending = 0;
    at = Math.min(at, found.length - 1);
    fill(list, found.map(([text, note], i) => el("li", { role: "option", id: `${id}-${i}`, ariaSelected: i === at, onmousedown: (event) => (event.preventDefault(), accept(i)) }, el("code", text), el("span", note))));
    list.hidden = !found.length;
    input.ariaExpanded = found.length > 0;
    input.setAttribute("aria-activedescendant", at < 0 ? "" : `${id}-${at}`);
    const chosen = list.children[at];
    if (chosen) list.scrollTop = clamp(chosen.offsetTop + chosen.offsetHeight - list.clientHeight, list.scrollTop, chosen.offsetTop);
    const { error, unfinished, start, end } = hint();
    // not while a word is being completed, and not what is said below already
    const wrong = here() && input.value.trim() && !(found.length && (unfinished || start < end)) && model.get("scan_plan").filter !== input.value.trim() ? error : "";
    fault.hidden = !wrong;
    if (fault.textContent !== wrong) fault.textContent = wrong;
    fault.classList.toggle("ice-quiet", unfinished);
    input.ariaInvalid = Boolean(wrong) && !unfinished;
  }
  function accept(i) {
    const { start, end } = hint();
    const text = choices()[i][0];
    const before = input.value.slice(0, start);
    const after = input.value.slice(end);
    const head = before + (/[^\s(]$/.test(before) ? " " : "") + text + (text.endsWith("(") || after.startsWith(" ") ? "" : " ");
    input.value = head + after;
    input.setSelectionRange(head.length, head.length);
    at = -1;
    show();
  }
  function move(by) {
    const count = choices().length + 1; // and none of them, as before
    if (count === 1) {
      pending = by;
      return show();
    }
    at = ((at + 1 + by + count) % count) - 1;
    draw();
  }
  listen(input, {
    keydown(event) {
      event.stopPropagation(); // or the notebook takes it
      const act = {
        ArrowDown: () => move(1),
        ArrowUp: () => move(-1),
        Enter: () => (at >= 0 && choices().length ? accept(at) : (close(), submit(input.value))),
        Escape: choices().length ? close : null,
        " ": event.ctrlKey ? show : null,
      }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    },
    input() {
      wait(send, HINTED);
      reset(true);
    },
    blur: close,
  });
  const take = () => (input.value.trim() === model.get("scan_filter") ? null : (input.value = model.get("scan_filter")), draw());
  model.listen(["scan_hint", "scan_plan"], draw);
  model.listen(["scan_filter"], take);
  take();
  return { element: el("div.ice-combo", input, el("div.ice-scan-pop", fault, list)), value: () => input.value };
}

// What each level leaves: the number and its bar, and below the level's name what took the rest away.
function levels({ heads, levels }) {
  return el(
    "table.ice-levels",
    { ariaLabel: "What is left after each level" },
    el("thead", el("tr", ["what is left", ...heads].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", levels.map((level) => el("tr", { title: level.tip }, el("th", { scope: "row" }, level.label, level.note && el("small", level.note)), level.bars.map((one) => el("td", one && [el("span", one.text), bars([["left", one.left], ["gone", one.gone]])]))))),
  );
}

export function scanView(model) {
  const id = `ice-${random()}`;
  const plan = () => model.get("scan_plan");
  const there = () => plan().of !== undefined;
  const box = filterBox(model, id, submit);
  const summary = el("summary.ice-button");
  const names = el("div.ice-menu-list");
  const columns = menuOf(summary, { class: "ice-scan-columns" }, names);
  const groups = check("Row groups", (event) => model.put("scan_row_groups", event.target.checked), { title: "Opens the footers of the files that are left" });
  const tries = el("select.ice-select.ice-scan-tries", { ariaLabel: "Examples and recent filters", onchange: () => submit(tries.value) });
  const planner = action("Plan", () => submit(box.value()), "ice-primary");
  const answer = el("div.ice-scan-answer");
  const map = mapView(model, { nodes: "scan_nodes", roots: "scan_roots", expanded: "scan_expanded", label: "What is read and what is skipped" });
  const empty = el("div.ice-scan-empty");
  const pane = el("div.ice-scan-pane", { role: "tabpanel", id: `${id}-pane` });
  const tabs = tabsOf("About the plan", VIEWS, pane, (key) => model.put("scan_tab", key));
  const grid = gridView(model, { grid: "scan", label: "Table of the plan" });
  const finder = rowFinder(model);
  const root = el(
    "section.ice-scan",
    { ariaLabel: "Scan lab" },
    el("div.ice-scan-top", el("div.ice-scan-line", box.element, planner), el("div.ice-scan-line.ice-scan-how", tries, columns, groups)),
    answer,
    el("div.ice-scan-panes", el("div.ice-scan-left", map, empty), el("div.ice-scan-side", tabs.element, pane)),
  );
  let asked = null; // what this view asked for last: the plan and the tab

  function submit(text) {
    if (text.trim() === model.get("scan_filter")) ask(model, "plan");
    else model.put("scan_filter", text.trim());
  }
  function drawTop() {
    const { names: known = [], filters = [] } = model.get("scan_examples");
    const chosen = model.get("scan_columns");
    const every = [...new Set([...known, ...chosen])]; // another snapshot may lack one
    const held = focusedIn(names)?.value ?? "";
    summary.textContent = chosen.length ? `Columns ${chosen.length}/${every.length}` : "All columns";
    fill(names, every.map((name) => check(name, (event) => model.put("scan_columns", every.filter((one) => (one === name ? event.target.checked : chosen.includes(one)))), { value: name, checked: chosen.includes(name) })));
    names.querySelector(`[value="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
    groups.firstChild.checked = model.get("scan_row_groups");
    const group = (label, texts) => el("optgroup", { label }, texts.map((text) => el("option", { value: text }, text)));
    fill(tries, el("option", { value: "", hidden: true }, "Examples"), group("Recent", model.get("scan_recent")), group("Examples", [...filters, "true"]));
    const chips = [...filters, "true"].map((text) => el("button.ice-chip", { onclick: () => submit(text) }, el("code", text), text === "true" && el("span", "every row")));
    const words = el("p", el("strong", "Which files does a query read?"), el("br"), "Type a filter above: no data is read to plan it. Or try one:");
    keepFocus(empty, () => fill(empty, words, chips), planner);
  }
  function drawAnswer() {
    const { error, headline, took, python, notes, of } = plan();
    const count = model.get("scan_count");
    keepFocus(map, () => (map.hidden = !there()), planner);
    keepFocus(empty, () => (empty.hidden = there()), planner);
    answer.hidden = !there() && !error;
    if (!there()) return fill(answer, el("pre.ice-scan-fault", { role: "alert" }, error));
    fill(
      answer,
      el("div.ice-scan-said", el("h3", headline), el("span.ice-note", took), el("span.ice-scan-acts", action("Count rows", () => ask(model, "count")), copier("Copy as Python", () => python))),
      el("div", { role: "status" }, count.of === of ? count.text : ""),
      notes.map((note) => el("div.ice-problem", note)),
      levels(plan()),
    );
  }
  // What was asked for and is not shown yet, or was cancelled, is pale.
  const drawStale = () => root.classList.toggle("ice-stale", there() && (plan().filter !== model.get("scan_filter") || plan().snapshot !== model.get("selection").snapshot));

  function drawSide() {
    const now = model.get("scan_tab") in VIEWS ? model.get("scan_tab") : "why";
    tabs.mark(now);
    const show = (element) => pane.firstChild === element || fill(pane, element);
    const say = (text) => show(el("div.ice-empty", text));
    const tell = (list) => show(el("div.ice-scan-why", { tabindex: 0 }, blocks(model, list)));
    const news = there() && asked !== `${plan().of} ${now}`;
    asked = `${plan().of} ${now}`;
    if (now === "rows") return show(finder);
    if (!there()) return say("There is no plan yet: type a filter.");
    const { of, table } = model.get("pages").scan ?? {};
    const advice = model.get("scan_advice").of === plan().of ? model.get("scan_advice") : {};
    if (TABULAR.includes(now)) {
      show(grid.element);
      if (news && (of !== plan().of || table !== now)) grid.show(plan().of, now);
    } else if (now === "why") {
      const { blocks } = model.get("scan_why");
      if (blocks) tell(blocks);
      else say("Select a manifest or a file to see why it is read, or is not.");
    } else if (advice.blocks) tell(advice.blocks);
    else if (advice.cancelled) show(el("div.ice-empty", "Cancelled. ", el("button.ice-link", { onclick: () => ask(model, "advice") }, "Try again")));
    else {
      say("Reading the statistics of every manifest …");
      if (news) ask(model, "advice");
    }
  }

  model.follow(["scan_examples", "scan_columns", "scan_row_groups", "scan_recent"], drawTop);
  model.follow(["scan_plan", "scan_count"], () => keepFocus(answer, drawAnswer, planner));
  model.follow(["scan_plan", "scan_why", "scan_advice", "scan_tab"], () => keepFocus(pane, drawSide, tabs.element.querySelector("[tabindex='0']")));
  model.follow(["scan_plan", "scan_filter", "selection"], drawStale);
  if (!model.get("scan_examples").names) ask(model, "examples");
  return root;
}

// Where a row is, what deleted it, in which snapshot.
function rowFinder(model) {
  const column = el("select.ice-select", { ariaLabel: "Column" });
  const value = el("input.ice-input", { ariaLabel: "Value", placeholder: "value", onkeydown: (event) => (event.stopPropagation(), event.key === "Enter" && find()) });
  const history = check("removed files too");
  const found = el("div", { role: "status" });
  const find = () => value.value && ask(model, "rows", { column: column.value, value: value.value, history: history.firstChild.checked });
  function draw() {
    const before = column.value;
    fill(column, (model.get("scan_examples").columns ?? []).map(([name, type]) => el("option", { value: name, title: type }, name)));
    if (before) column.value = before;
    fill(found, blocks(model, model.get("scan_found").blocks ?? [["p", [["note", "Where is a row, what deleted it, and in which snapshot? Data files are read for it."]]]]));
  }
  model.listen(["scan_examples", "scan_found"], draw);
  draw();
  return el("div.ice-scan-why", el("div.ice-scan-form", column, "=", value, history, action("Find", find, "ice-primary")), found);
}
