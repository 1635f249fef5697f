// The scan lab: a filter that completes while it is typed, what it reads and skips level by level, why, what would help,
// and where a row is.

import { choose, copyText, el, listen } from "./dom.js";
import { gridView } from "./grid.js";
import { mapView } from "./map.js";

const TABLES = ["tasks", "skipped", "deletes", "head"];
const TABS = [["why", "Why"], ["tasks", "Files read"], ["skipped", "Skipped"], ["deletes", "Deletes"], ["head", "First rows"], ["advice", "What would help"], ["rows", "Find a row"]];
const DELAY = 120; // ms without a key until what is typed is asked about
const SVG = "http://www.w3.org/2000/svg";
let made = 0; // for ids: several labs may be in a page

const button = (text, act, extra = {}) => el("button", { type: "button", class: "ice-button ice-framed", onclick: act, ...extra }, text);

function ask(model, want, more = {}) {
  model.set("scan_ask", { ...more, want, n: (model.get("scan_ask").n ?? 0) + 1 });
  model.save_changes();
}

// The box and its list of what can come next (WAI-ARIA combobox): the focus stays in the box.
function filterBox(model, id, submit) {
  const input = el("input", { class: "ice-input ice-scan-input", type: "text", role: "combobox", "aria-label": "Filter", "aria-autocomplete": "list", "aria-controls": `${id}-list`, "aria-expanded": false, "aria-describedby": `${id}-fault`, autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: "Filter: which rows?" });
  const list = el("ul", { class: "ice-scan-list", role: "listbox", id: `${id}-list`, "aria-label": "What can come next", hidden: true });
  const fault = el("pre", { class: "ice-scan-fault", id: `${id}-fault`, role: "status", hidden: true });
  const box = el("div", { class: "ice-combo" }, input, list);
  let open = false;
  let at = -1; // the choice that Enter takes
  let timer = null;

  const hint = () => model.get("scan_hint");
  const choices = () => (open && input.matches(":focus") && hint().text === input.value && hint().at === input.selectionStart ? hint().choices : []);
  function send() {
    clearTimeout(timer);
    model.set("scan_draft", { n: (model.get("scan_draft").n ?? 0) + 1, text: input.value, at: input.selectionStart });
    model.save_changes();
  }
  function later(yes) {
    open = yes;
    clearTimeout(timer);
    timer = setTimeout(send, DELAY);
    draw();
  }
  function draw() {
    const found = choices();
    at = Math.min(at, found.length - 1);
    list.hidden = !found.length;
    list.replaceChildren(
      ...found.map(([text, note, kind], i) =>
        el("li", { role: "option", id: `${id}-${i}`, "aria-selected": i === at, "data-kind": kind, onmousedown: (event) => (event.preventDefault(), accept(i)) }, el("code", {}, text), el("span", {}, note)),
      ),
    );
    input.setAttribute("aria-expanded", found.length > 0);
    if (at >= 0) input.setAttribute("aria-activedescendant", `${id}-${at}`);
    else input.removeAttribute("aria-activedescendant");
    const chosen = list.children[at];
    if (chosen) list.scrollTop = Math.min(Math.max(list.scrollTop, chosen.offsetTop + chosen.offsetHeight - list.clientHeight), chosen.offsetTop);
    const plan = model.get("scan_plan");
    const planned = plan.filter === input.value.trim();
    const text = planned ? plan.error : hint().text === input.value && input.value ? hint().error : "";
    fault.hidden = !text;
    fault.textContent = text ?? "";
    fault.classList.toggle("ice-quiet", !planned && Boolean(hint().unfinished));
    input.setAttribute("aria-invalid", Boolean(text) && !fault.classList.contains("ice-quiet"));
  }
  function accept(i) {
    const { start, end } = hint();
    const text = choices()[i][0];
    const before = input.value.slice(0, start);
    const after = input.value.slice(end);
    const head = before + (/[^\s(]$/.test(before) ? " " : "") + text + (text.endsWith("(") || after.startsWith(" ") ? "" : " ");
    put(head + after, head.length);
    open = true;
    send();
  }
  function put(text, caret = text.length) {
    input.value = text;
    if (input.matches(":focus")) input.setSelectionRange(caret, caret);
    at = -1;
    draw();
  }
  function move(by) {
    const count = choices().length;
    if (!open || !count) return (open = true), send();
    at = at < 0 && by < 0 ? count - 1 : (at + by + count + 1) % (count + 1);
    if (at === count) at = -1; // past the end: nothing, as before
    draw();
  }
  function close() {
    open = false;
    at = -1;
    draw();
  }
  input.addEventListener("keydown", (event) => {
    event.stopPropagation(); // or the notebook takes it
    const listed = choices().length > 0;
    const act = {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Enter: () => (listed && at >= 0 ? accept(at) : (close(), submit(input.value))),
      Escape: listed ? close : null,
      " ": event.ctrlKey ? () => ((open = true), send()) : null,
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  input.addEventListener("input", () => ((at = -1), later(true)));
  input.addEventListener("blur", close);
  const taken = () => (input.value.trim() === model.get("scan_filter") ? draw() : put(model.get("scan_filter")));
  const ends = [listen(model, ["scan_hint", "scan_plan"], draw), listen(model, ["scan_filter"], taken)];
  put(model.get("scan_filter"));
  return { element: box, fault, value: () => input.value, focus: () => input.focus(), end: () => (clearTimeout(timer), ends.forEach((end) => end())) };
}

function bar({ left, gone }) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true", class: "ice-level-bar" })) svg.setAttribute(name, value);
  for (const [kind, x, width] of [["left", 0, left], ["gone", left, gone]]) {
    const rect = document.createElementNS(SVG, "rect");
    for (const [name, value] of Object.entries({ class: `ice-${kind}`, x: x * 100, y: 0, width: width && Math.max(0.6, width * 100), height: 6 })) rect.setAttribute(name, value);
    svg.append(rect);
  }
  return svg;
}

// What each level leaves: the number and its bar, and below the level's name what took the rest away.
function levels({ heads, levels }) {
  const cell = (words) => (words ? el("td", {}, el("span", {}, words.text), bar(words)) : el("td", {}));
  return el(
    "table",
    { class: "ice-levels", "aria-label": "What is left after each level" },
    el("thead", {}, el("tr", {}, ["what is left", ...heads].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, levels.map((level) => el("tr", { title: level.tip }, el("th", { scope: "row" }, level.label, level.note ? el("small", {}, level.note) : null), level.bars.map(cell)))),
  );
}

function copier(text, label, said) {
  return button(label, async () => (said.textContent = (await copyText(text)) ? "Copied." : "The browser does not let us copy."));
}

export function scanView(model) {
  const id = `ice-scan-${Date.now().toString(36)}-${made++}`;
  const plan = () => model.get("scan_plan");
  const there = () => plan().of !== undefined;
  const said = el("span", { class: "ice-said", role: "status" });
  const box = filterBox(model, id, submit);
  const columns = el("details", { class: "ice-menu ice-scan-columns", onkeydown: (event) => event.key === "Escape" && ((columns.open = false), columns.firstChild.focus(), event.stopPropagation()) }, el("summary", { class: "ice-button" }), el("div", { class: "ice-menu-list" }));
  const groups = el("input", { type: "checkbox", onchange: () => set("scan_row_groups", groups.checked) });
  const tries = el("select", { class: "ice-select ice-scan-tries", "aria-label": "Examples and recent filters", onchange: () => (submit(tries.value), (tries.value = "")) });
  const top = el("div", { class: "ice-scan-top" }, box.element, button("Plan", () => submit(box.value()), { class: "ice-button ice-primary" }), tries, columns, el("label", { class: "ice-check", title: "Opens the footers of the files that are left" }, groups, "Row groups"));
  const answer = el("div", { class: "ice-scan-answer" });
  const map = mapView(model, { nodes: "scan_nodes", roots: "scan_roots", expanded: "scan_expanded", label: "What is read and what is skipped" });
  const empty = el("div", { class: "ice-scan-empty" });
  const left = el("div", { class: "ice-scan-left" }, map.element, empty);
  const tabs = el("div", { class: "ice-tabs", role: "tablist", "aria-label": "About the plan" });
  const grid = gridView(model, { grid: "scan", label: "Table of the plan" });
  const pane = el("div", { class: "ice-scan-pane", role: "tabpanel", id: `${id}-pane` });
  const finder = rowFinder(model);
  const side = el("div", { class: "ice-scan-side" }, tabs, pane);
  const root = el("section", { class: "ice-scan", "aria-label": "Scan lab" }, top, box.fault, answer, el("div", { class: "ice-scan-panes" }, left, side));

  function set(name, value) {
    model.set(name, value);
    model.save_changes();
  }
  function submit(text) {
    if (text.trim() === model.get("scan_filter")) ask(model, "plan");
    else set("scan_filter", text.trim());
  }
  tabs.append(...TABS.map(([key, title]) => el("button", { type: "button", class: "ice-tab", role: "tab", "data-key": key, "aria-controls": `${id}-pane`, onclick: () => set("scan_tab", key) }, title)));
  tabs.addEventListener("keydown", (event) => {
    const all = [...tabs.children];
    const at = all.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = all[(to + all.length) % all.length];
    set("scan_tab", next.dataset.key);
    next.focus();
  });

  function drawTop() {
    const { names = [], filters = [] } = model.get("scan_examples");
    const chosen = model.get("scan_columns");
    const [summary, menu] = columns.children;
    summary.textContent = chosen.length ? `Columns ${chosen.length}/${names.length}` : "All columns";
    const held = menu.contains(document.activeElement) ? document.activeElement.value : null;
    menu.replaceChildren(...names.map((name) => el("label", {}, el("input", { type: "checkbox", value: name, checked: chosen.includes(name), onchange: (event) => set("scan_columns", names.filter((one) => (one === name ? event.target.checked : chosen.includes(one)))) }), el("span", {}, name))));
    if (held !== null) [...menu.querySelectorAll("input")].find((one) => one.value === held)?.focus({ preventScroll: true });
    groups.checked = model.get("scan_row_groups");
    const group = (label, texts) => (texts.length ? [el("optgroup", { label }, texts.map((text) => el("option", { value: text }, text)))] : []);
    tries.replaceChildren(el("option", { value: "" }, "Examples"), ...group("Recent", model.get("scan_recent")), ...group("Examples", [...filters, "true"]));
    empty.replaceChildren(
      el("p", {}, el("strong", {}, "Which files does a query read?"), el("br"), "Type a filter above: no data is read to plan it. Or try one:"),
      ...[...filters, "true"].map((text) => el("button", { type: "button", class: "ice-chip", onclick: () => submit(text) }, el("code", {}, text), text === "true" ? el("span", {}, "every row") : null)),
    );
  }
  function drawAnswer() {
    const now = plan();
    map.element.hidden = !there();
    empty.hidden = there();
    const count = model.get("scan_count");
    answer.hidden = !there();
    if (!there()) return answer.replaceChildren();
    said.textContent = "";
    answer.replaceChildren(
      el(
        "div",
        { class: "ice-scan-said" },
        el("h3", {}, now.headline),
        el("span", { class: "ice-note" }, now.took),
        el("span", { class: "ice-scan-acts" }, said, button("Count rows", () => ask(model, "count")), copier(now.python, "Copy as Python", said)),
      ),
      ...(count.of === now.of ? [el("p", { class: "ice-scan-count" }, count.text)] : []),
      ...now.notes.map((note) => el("div", { class: "ice-problem" }, note)),
      levels(now),
    );
  }
  // What was asked for and is not shown yet, or was cancelled, is pale.
  const drawStale = () => root.classList.toggle("ice-stale", there() && (plan().filter !== model.get("scan_filter") || plan().snapshot !== model.get("selection").snapshot));

  function drawSide() {
    const now = TABS.some(([key]) => key === model.get("scan_tab")) ? model.get("scan_tab") : TABS[0][0];
    for (const tab of tabs.children) {
      tab.setAttribute("aria-selected", tab.dataset.key === now);
      tab.tabIndex = tab.dataset.key === now ? 0 : -1;
    }
    if (now === "rows") return show(finder.element);
    if (!there()) return show(el("div", { class: "ice-empty" }, "There is no plan yet: type a filter."));
    if (TABLES.includes(now)) {
      const { of, table } = model.get("pages").scan ?? {};
      show(grid.element);
      if ((of !== plan().of || table !== now) && asked !== `${plan().of} ${now}`) grid.show(plan().of, now);
      asked = `${plan().of} ${now}`;
      return;
    }
    if (now === "why") return show(why());
    const advice = model.get("scan_advice");
    if (advice.of === plan().of) return show(help(advice));
    show(el("div", { class: "ice-empty" }, "Reading the statistics of every manifest …"));
    if (asked !== `${plan().of} ${now}`) ask(model, "advice");
    asked = `${plan().of} ${now}`;
  }
  let asked = null; // the table that this view asked for last
  function show(element) {
    if (pane.firstChild !== element) pane.replaceChildren(element);
  }

  function why() {
    const { id: node, read, why: because, terms = [], residual, deletes = [], deleteCount } = model.get("scan_why");
    if (read === undefined) return el("div", { class: "ice-empty" }, "Select a manifest or a file to see why it is read, or is not.");
    const name = model.get("scan_nodes")[node]?.label ?? node;
    return el(
      "div",
      { class: "ice-scan-why" },
      el("h4", {}, el("span", { class: `ice-verdict ${read ? "ice-yes" : "ice-no"}` }, read ? "✓ read" : "⊘ skipped"), name),
      el("p", {}, because),
      terms.length ? el("table", { class: "ice-terms" }, el("thead", {}, el("tr", {}, ["condition", "what is known", "so"].map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, terms.map(([term, by, known, verdict]) => el("tr", {}, el("td", {}, el("code", {}, term)), el("td", {}, known, by === "—" ? null : el("small", {}, by)), el("td", { class: verdict === "no row" ? "ice-no" : verdict === "every row" ? "ice-yes" : null }, { "no row": "⊘ no row", "every row": "✓ every row" }[verdict] ?? "some rows may"))))) : null,
      residual ? el("p", {}, "Left to ask of its rows: ", el("code", {}, residual)) : null,
      deleteCount ? el("p", {}, deleteCount === 1 ? "One delete applies:" : `${deleteCount.toLocaleString("en")} deletes apply:`) : null,
      deletes.length ? el("ul", {}, deletes.map(([kind, place, rows]) => el("li", { title: place }, `${kind === "vector" ? "deletion vector" : kind + " deletes"} ${place.split("/").at(-1)}${rows ? `, ${rows} rows` : ""}`))) : null,
    );
  }
  function help({ items, notes }) {
    return el(
      "div",
      { class: "ice-scan-why" },
      items.length ? el("ol", { class: "ice-helps" }, items.map(helpOf)) : el("p", {}, "Nothing that statistics show would help this filter."),
      notes.length ? el("ul", {}, notes.map((note) => el("li", {}, note))) : null,
    );
  }
  function helpOf({ title, why: because, gain, assumes, statements }) {
    const done = el("span", { class: "ice-said", role: "status" });
    return el("li", {}, el("strong", {}, title), gain ? el("div", { class: "ice-gain" }, gain) : null, el("div", {}, because), assumes ? el("div", { class: "ice-note" }, `Assumes: ${assumes}`) : null, statements.map((text) => el("div", { class: "ice-statement" }, el("pre", {}, text), copier(text, "Copy", done))), done);
  }

  const ends = [
    listen(model, ["scan_examples", "scan_columns", "scan_row_groups", "scan_recent"], drawTop),
    listen(model, ["scan_plan", "scan_count"], drawAnswer),
    listen(model, ["scan_plan", "scan_why", "scan_advice", "scan_tab"], drawSide),
    listen(model, ["scan_plan", "scan_filter", "selection"], drawStale),
    ...[box, map, grid, finder].map(({ end }) => end),
  ];
  drawTop();
  drawAnswer();
  drawSide();
  drawStale();
  if (!model.get("scan_examples").names) ask(model, "examples");
  return { element: root, end: () => ends.forEach((end) => end()) };
}

// Where a row is, what deleted it, in which snapshot.
function rowFinder(model) {
  const column = el("select", { class: "ice-select", "aria-label": "Column" });
  const value = el("input", { class: "ice-input", "aria-label": "Value", placeholder: "value", onkeydown: (event) => event.stopPropagation() || (event.key === "Enter" && find()) });
  const history = el("input", { type: "checkbox" });
  const found = el("div", { class: "ice-scan-found" });
  const element = el("div", { class: "ice-scan-why" }, el("div", { class: "ice-scan-form" }, column, "=", value, el("label", { class: "ice-check" }, history, "removed files too"), button("Find", find, { class: "ice-button ice-primary" })), found);

  function find() {
    if (value.value !== "") ask(model, "rows", { column: column.value, value: value.value, history: history.checked });
  }
  function drawColumns() {
    const before = column.value;
    column.replaceChildren(...(model.get("scan_examples").columns ?? []).map(([name, type]) => el("option", { value: name, title: type }, name)));
    if (before) column.value = before;
  }
  const event = ({ when, operation, by, what, where, snapshot, node }) =>
    el(
      "li",
      {},
      el("span", { class: "ice-note" }, when),
      by ? el("button", { type: "button", class: "ice-link", title: `Go to snapshot ${by}`, onclick: () => choose(model, { snapshot: by, node: `snapshot:${by}` }) }, operation || "snapshot") : el("span", {}, operation),
      el("span", {}, what, " ", node ? el("button", { type: "button", class: "ice-link", title: "Go to the file", onclick: () => choose(model, { snapshot, node }) }, where) : where),
    );
  function draw() {
    const { n, error, said, rows = [], notes = [] } = model.get("scan_found");
    if (n === undefined) return found.replaceChildren(el("p", { class: "ice-note" }, "Where is a row, what deleted it, and in which snapshot? Data files are read."));
    found.replaceChildren(
      error ? el("pre", { class: "ice-scan-fault" }, error) : el("p", { role: "status" }, said),
      ...rows.map(({ title, fate, id, events }) => el("div", { class: "ice-story" }, el("h4", {}, el("span", { class: `ice-verdict ${fate === "live" ? "ice-yes" : "ice-no"}` }, fate), title, id ? el("span", { class: "ice-note" }, ` _row_id ${id}`) : null), el("ol", {}, events.map(event)))),
      ...notes.map((note) => el("p", { class: "ice-note" }, note)),
    );
  }
  const ends = [listen(model, ["scan_examples"], drawColumns), listen(model, ["scan_found"], draw)];
  drawColumns();
  draw();
  return { element, end: () => ends.forEach((end) => end()) };
}
