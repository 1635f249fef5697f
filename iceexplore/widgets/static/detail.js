// The detail pane: facts and problems of what is selected, and its tables, a page at a time.

import { el, icon, listen } from "./dom.js";

const WIDE = 34; // characters that a cell shows of a location

// Of a long location the end says more than the beginning.
const tail = (value) => (value.length > WIDE && /^([a-z][a-z0-9+.-]*:\/)?\//i.test(value) ? "…" + value.slice(1 - WIDE) : value);

export function detailView(model) {
  const head = el("div", { class: "ice-head" });
  const tabs = el("div", { class: "ice-tabs", role: "tablist", "aria-label": "Tables" });
  const panel = el("div", { class: "ice-panel", role: "tabpanel", tabindex: 0 });
  const pager = el("div", { class: "ice-pager" });
  const box = el("section", { class: "ice-detail", "aria-label": "Details" }, head, tabs, panel, pager);
  let chosen = null; // what was asked for last, until its page comes

  function ask(table, page) {
    const query = model.get("query");
    chosen = { node: model.get("detail").id, table };
    model.set("query", { n: (query.n ?? 0) + 1, grid: "detail", of: chosen.node, table, page });
    model.save_changes();
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

  function current() {
    const page = (model.get("pages").detail ?? {});
    const detail = model.get("detail");
    if (chosen?.node === detail.id && chosen.table !== page.table) return chosen.table;
    return page.of === detail.id ? page.table : detail.tables?.[0]?.key;
  }

  function drawTabs() {
    const names = model.get("detail").tables ?? [];
    tabs.hidden = names.length === 0;
    const now = current();
    tabs.replaceChildren(
      ...names.map(({ key, title }) =>
        el("button", {
          class: "ice-tab", type: "button", role: "tab", "data-key": key,
          "aria-selected": key === now, tabindex: key === now ? 0 : -1, onclick: () => ask(key, 0),
        }, title),
      ),
    );
  }

  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = [...tabs.children].indexOf(event.target);
    if (!step || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const key = tabs.children[(at + step + tabs.children.length) % tabs.children.length].dataset.key;
    ask(key, 0);
    [...tabs.children].find((tab) => tab.dataset.key === key)?.focus();
  });

  function drawPage() {
    const page = (model.get("pages").detail ?? {});
    const detail = model.get("detail");
    const mine = page.of === detail.id && (detail.tables ?? []).some(({ key }) => key === page.table);
    if (!mine) {
      panel.replaceChildren();
      pager.hidden = true;
      return;
    }
    const cell = (value, right) =>
      value === null
        ? el("td", { class: "ice-null" + (right ? " ice-right" : "") }, "null")
        : el("td", { class: right ? "ice-right" : null, title: value.length > WIDE ? value : null }, tail(value));
    const table = el(
      "table",
      { class: "ice-table" },
      el("thead", {}, el("tr", {}, ...page.columns.map((c) => el("th", { scope: "col", class: c.right ? "ice-right" : null }, c.name)))),
      el("tbody", {}, ...page.rows.map((row) => el("tr", {}, ...row.map((value, i) => cell(value, page.columns[i].right))))),
    );
    panel.replaceChildren(page.total ? table : el("div", { class: "ice-empty" }, "No rows."));
    panel.scrollTop = 0;
    const first = page.page * page.size;
    const go = (to, text, name) =>
      el("button", { type: "button", class: "ice-button", "aria-label": name, disabled: to < 0 || to >= page.pages || to === page.page, onclick: () => ask(page.table, to) }, text);
    pager.hidden = page.total === 0;
    const range = page.total === 1 ? "1 row" : `${(first + 1).toLocaleString("en")}–${(first + page.rows.length).toLocaleString("en")} of ${page.total.toLocaleString("en")} rows`;
    pager.replaceChildren(
      el("span", { class: "ice-range", role: "status" }, range),
      ...(page.pages > 1
        ? [go(0, "«", "First page"), go(page.page - 1, "‹", "Previous page"), go(page.page + 1, "›", "Next page"), go(page.pages - 1, "»", "Last page")]
        : []),
    );
  }

  const drawDetail = () => (drawHead(), drawTabs(), drawPage());
  const ends = [listen(model, ["detail"], drawDetail), listen(model, ["pages"], () => (drawTabs(), drawPage()))];
  drawDetail();
  return { element: box, end: () => ends.forEach((end) => end()) };
}
