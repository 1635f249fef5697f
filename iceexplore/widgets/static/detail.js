// The detail pane: what the selected node is, its fields with their meanings, its problems, tables and raw JSON.

import { tabRow } from "./controls.js";
import { copyText, el, fill, focusedIn, icon, keepFocus, lines, plural } from "./dom.js";
import { chooseNode, gridView } from "./grid.js";

// Characters of a value that are seen before it is unfolded.
const UNFOLDED = 160;
const COPY = "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3";
// ms that a button says so.
const COPIED = 1500;

export function detailView(model) {
  const head = el("div.ice-head", { tabindex: -1 });
  const tabs = tabRow("div.ice-tabs", "Tables");
  const tables = gridView(model, { grid: "detail", label: "Table", onRow: openRow });
  const box = el("section.ice-detail", { ariaLabel: "Details" }, head, tabs, tables.element);
  // The tab that was asked for last, until its page comes.
  let chosen = null;
  // The tabs that are shown.
  let drawn;

  // The table stays, as its row is what is selected now.
  function openRow(node) {
    tables.ask({ page: (model.get("pages").detail ?? {}).page, node });
    chooseNode(model, node);
  }

  function copyButton(text, what) {
    const button = el("button.ice-copy", { ariaLabel: `Copy ${what}`, title: `Copy ${what}`, onclick: async () => {
      fill(button, lines((await copyText(text)) ? "M3 8.5l3.5 3.5L13 4.5" : "M4 4l8 8m0-8l-8 8"));
      setTimeout(() => fill(button, lines(COPY)), COPIED);
    } }, lines(COPY));
    return button;
  }

  // A field: its name is a button that tells what it means, a long value is folded, ids and places can be copied.
  // Where what is shown has signs for what would act, the third is what it is.
  function field([name, text, whole = text], [meaning, section, link] = []) {
    const folded = text.length > UNFOLDED ? el("details.ice-fold", el("summary", text.slice(0, UNFOLDED - 20) + "…"), text) : text;
    const copies = /(^|[-_.])(id|uuid|location|path|list|file|manifest)$/.test(name) || /^([a-z][a-z0-9+.-]*:\/)?\/\S/i.test(text);
    const value = el("dd", folded, copies && copyButton(whole, name));
    const size = text.length > 48 ? "ice-wide" : text.length > 16 && "ice-two";
    if (!meaning) return el("div", { class: size }, el("dt", name), value);
    const told = el("dd.ice-help", { hidden: true }, meaning, section && [". Spec: ", el("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, section)]);
    const ask = el("button.ice-why", { ariaExpanded: false, ariaLabel: `${name}: what is it?`, onclick: () => tell(told.hidden) }, name, el("span.ice-what", { ariaHidden: true }, "?"));
    const item = el("div", { class: size, onkeydown: leave }, el("dt", ask), value, told);
    function tell(open) {
      told.hidden = !open;
      if (open) requestAnimationFrame(() => (head.scrollTop = Math.max(head.scrollTop, item.offsetTop + item.offsetHeight + 8 - head.clientHeight)));
      ask.ariaExpanded = open;
      item.classList.toggle("ice-told", open);
    }
    function leave(event) {
      if (event.key !== "Escape" || told.hidden) return;
      event.stopPropagation();
      tell(false);
      ask.focus();
    }
    return item;
  }

  function drawHead() {
    const detail = model.get("detail");
    if (detail.id === undefined) return fill(head);
    // First: afterwards it would take a layout of its own.
    head.scrollTop = 0;
    const problems = (detail.problems ?? []).map((problem) =>
      el(
        "div.ice-problem",
        { class: problem.severity === "error" && "ice-is-error" },
        el("strong", problem.title),
        el("div", problem.text),
        problem.evidence && el("div.ice-evidence", problem.evidence),
        el("div.ice-advice", problem.advice),
      ),
    );
    const list = (facts) => el("dl.ice-facts", facts.map((fact) => field(fact, detail.help?.[fact[0]])));
    const more = detail.more ?? [];
    fill(
      head,
      el(
        "div.ice-title",
        icon(model.get("styles"), detail.kind, 20),
        el("div.ice-name", el("span.ice-kind", detail.kind_title), el("h3", detail.title)),
      ),
      detail.path && el("div.ice-path", el("span", detail.path), copyButton(detail.copy ?? detail.path, "location")),
      problems,
      list(detail.facts ?? []),
      more[0] && el("details.ice-rest", el("summary", plural(more.length, "more field")), list(more)),
    );
  }

  const is = (tab, other) => tab.key === other?.key && tab.of === other?.of;

  function drawTabs() {
    const { id: row, tables: list } = model.get("detail");
    const { table: key, of } = model.get("pages").detail ?? {};
    const answered = { key, of };
    if (is(answered, chosen)) chosen = null;
    const all = (list ?? []).map((tab) => ({ of: row, ...tab }));
    const now = all.find((tab) => is(tab, chosen)) ?? all.find((tab) => is(tab, answered)) ?? all[0];
    const held = focusedIn(tabs);
    tabs.hidden = tables.element.hidden = !now;
    if (now) tables.element.ariaLabel = now.title;
    const wanted = JSON.stringify([all, now, row]);
    if (wanted === drawn) return;
    drawn = wanted;
    fill(
      tabs,
      all.map((tab) =>
        el("button.ice-tab", {
          role: "tab", "data-key": tab.key, ariaSelected: is(tab, now), tabindex: is(tab, now) ? 0 : -1,
          title: tab.of === row ? null : "The table in which this is a row",
          onclick: () => {
            chosen = tab;
            tables.show(tab.of, tab.key, tab.of === row ? {} : { node: row });
            drawTabs();
          },
        }, tab.title),
      ),
    );
    if (held) tabs.querySelector("[aria-selected=true]")?.focus();
  }

  model.listen(["cancelled"], () => ((chosen = null), drawTabs()));
  model.listen(["detail"], () => (keepFocus(head, drawHead), drawTabs()));
  model.listen(["pages"], drawTabs);
  drawHead();
  drawTabs();
  return box;
}
