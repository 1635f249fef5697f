// The detail pane: what the selected node is, its fields and problems, and its tables.

import { el, icon, listen } from "./dom.js";
import { gridView } from "./grid.js";

export function detailView(model) {
  const head = el("div", { class: "ice-head" });
  const tabs = el("div", { class: "ice-tabs", role: "tablist", "aria-label": "Tables" });
  const tables = gridView(model, { grid: "detail", label: "Table" });
  const box = el("section", { class: "ice-detail", "aria-label": "Details" }, head, tabs, tables.element);
  let chosen = null; // the tab that was asked for last, until its page comes

  function ask({ key, of }) {
    chosen = { key, of };
    tables.show(of, key);
    drawTabs();
  }

  function drawHead() {
    const detail = model.get("detail");
    if (detail.id === undefined) return head.replaceChildren();
    const problems = (detail.problems ?? []).map((problem) =>
      el(
        "div",
        { class: "ice-problem" + (problem.severity === "error" ? " ice-is-error" : "") },
        el("strong", {}, problem.title),
        el("div", {}, problem.text),
        problem.evidence ? el("div", { class: "ice-evidence" }, problem.evidence) : null,
        el("div", { class: "ice-advice" }, problem.advice),
      ),
    );
    const list = (facts) =>
      el("dl", { class: "ice-facts" }, ...facts.map(([name, value]) => el("div", { class: value.length > 48 ? "ice-wide" : value.length > 16 ? "ice-two" : null }, el("dt", {}, name), el("dd", {}, value))));
    const more = detail.more ?? [];
    head.replaceChildren(
      el(
        "div",
        { class: "ice-title" },
        icon(model.get("styles"), detail.kind, 20),
        el("div", { class: "ice-name" }, el("span", { class: "ice-kind" }, detail.kind_title), el("h3", {}, detail.title)),
      ),
      detail.path ? el("div", { class: "ice-path" }, detail.path) : "",
      ...problems,
      list(detail.facts ?? []),
      more.length ? el("details", { class: "ice-rest" }, el("summary", {}, `${more.length} more field${more.length > 1 ? "s" : ""}`), list(more)) : "",
    );
  }

  const names = () => (model.get("detail").tables ?? []).map((tab) => ({ of: model.get("detail").id, ...tab }));
  const is = (tab, other) => tab.key === other?.key && tab.of === other?.of;

  function current() {
    const page = model.get("pages").detail ?? {};
    const all = names();
    return all.find((tab) => is(tab, chosen)) ?? all.find((tab) => is(tab, { key: page.table, of: page.of })) ?? all[0];
  }

  function drawTabs() {
    const page = model.get("pages").detail ?? {};
    if (is({ key: page.table, of: page.of }, chosen)) chosen = null;
    const now = current();
    const held = tabs.contains(document.activeElement);
    tabs.hidden = tables.element.hidden = !now;
    tabs.replaceChildren(
      ...names().map((tab) =>
        el("button", {
          class: "ice-tab", type: "button", role: "tab", "data-key": tab.key,
          "aria-selected": is(tab, now), tabindex: is(tab, now) ? 0 : -1, onclick: () => ask(tab),
        }, tab.title),
      ),
    );
    if (held) tabs.querySelector("[aria-selected=true]")?.focus();
  }

  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = [...tabs.children].indexOf(event.target);
    if (!step || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    tabs.children[(at + step + tabs.children.length) % tabs.children.length].click();
    tabs.querySelector("[aria-selected=true]").focus();
  });

  const ends = [tables.end, listen(model, ["detail"], () => (drawHead(), drawTabs())), listen(model, ["pages"], drawTabs)];
  drawHead();
  drawTabs();
  return { element: box, end: () => ends.forEach((end) => end()) };
}
