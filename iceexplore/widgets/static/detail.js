// The detail pane: what the selected node is, its fields with their meanings, its problems, tables and raw JSON.

import { chooseTab, copier, tabRow } from "./controls.js";
import { el, fill, focusedIn, icon, lineIcon, plural } from "./dom.js";
import { chooseNode, gridView } from "./grid.js";

// Characters of a value that are seen before it is unfolded.
const UNFOLDED = 160;
const COPY = "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3";
const COPIED = "M3 8.5l3.5 3.5L13 4.5";
const REFUSED = "M4 4l8 8m0-8l-8 8";

export function detailView(model) {
  const head = el("div.head", { tabindex: -1 });
  const tabs = tabRow("div.tabs", "Tables");
  const tables = gridView(model, { grid: "detail", label: "Table", onRow: openRow });
  const box = el("section.detail", { ariaLabel: "Details" }, head, tabs, tables.element);

  // The table stays, as its row is what is selected now.
  function openRow(node) {
    tables.ask({ page: model.pages.detail.page, node });
    chooseNode(model, node);
  }

  const copyButton = (text, title) =>
    copier(lineIcon(COPY), () => text, { class: "copy", ariaLabel: title, title }, [
      lineIcon(COPIED),
      lineIcon(REFUSED),
    ]);

  // A field: its name is a button that tells what it means, a long value is folded, ids and places can be copied.
  // Where what is shown has signs for what would act, the third is what it is.
  function field([name, text, whole = text], [meaning, section, link] = []) {
    const folded = text.length > UNFOLDED
      ? el("details.fold", el("summary", text.slice(0, UNFOLDED - 20) + "…"), text)
      : text;
    const copies = /(^|[-_.])(id|uuid|location|path|list|file|manifest)$/.test(name) ||
      /^([a-z][a-z0-9+.-]*:\/)?\/\S/i.test(text);
    const value = el("dd", folded, copies && copyButton(whole, `Copy ${name}`));
    const size = text.length > 48 ? "wide" : text.length > 16 && "two";
    if (!meaning) return el("div", { class: size }, el("dt", name), value);
    const explanation = el(
      "dd.help",
      meaning,
      section && [". Spec: ", el("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, section)],
    );
    const ask = el("button.why", {
      ariaExpanded: false,
      ariaLabel: `${name}: what is it?`,
      onclick: () => tell(!isTold()),
    }, name);
    const item = el("div", { class: size, onkeydown: leave }, el("dt", ask), value, explanation);
    const isTold = () => ask.ariaExpanded === "true";
    function tell(open) {
      ask.ariaExpanded = open;
      if (open) item.scrollIntoView({ block: "nearest" });
    }
    function leave(event) {
      if (event.key !== "Escape" || !isTold()) return;
      event.stopPropagation();
      tell(false);
      ask.focus();
    }
    return item;
  }

  function drawHead() {
    const { kind, kind_title, title, path, copy = path, problems = [], facts = [], more = [], help = {} } =
      model.detail;
    // First: afterwards it would take a layout of its own.
    head.scrollTop = 0;
    const meanings = new Map(Object.entries(help));
    const list = (some) => el("dl.facts", some.map((fact) => field(fact, meanings.get(fact[0]))));
    fill(
      head,
      el("div.title", icon(model.styles, kind, 20), el("div.name", el("span.kind", kind_title), el("h3", title))),
      path && el("div.path", el("span", path), copyButton(copy, "Copy location")),
      problems.map(({ severity, title, text, evidence, advice }) =>
        el(
          "div.problem",
          { class: severity === "error" && "is-error" },
          el("strong", title),
          el("div", text),
          evidence && el("div.evidence", evidence),
          el("div.advice", advice),
        )
      ),
      list(facts),
      more[0] && el("details.rest", el("summary", plural(more.length, "more field")), list(more)),
    );
  }

  function drawTabs() {
    const { id: node, tables: all = [] } = model.detail;
    const held = focusedIn(tabs);
    const tab = ({ of, key, title }) => {
      const show = () => (tables.show(of, key, of === node ? {} : { node }), mark());
      return el("button.tab", {
        role: "tab",
        title: of === node ? null : "The table in which this is a row",
        onclick: show,
      }, title);
    };
    fill(tabs, all.map(tab));
    const chosen = mark();
    if (held) (chosen ?? head).focus();
  }
  // The tab of the table that was asked for last; returns it.
  function mark() {
    const { tables: all = [] } = model.detail;
    const { of, table } = tables.current();
    const now = all.find((tab) => tab.of === of && tab.key === table) ?? all[0];
    const chosen = tabs.children[all.indexOf(now)];
    tabs.hidden = tables.element.hidden = !now;
    if (now) tables.element.ariaLabel = now.title;
    chooseTab(tabs.children, chosen);
    return chosen;
  }

  model.follow("detail", () => (drawHead(), drawTabs()));
  model.onChange(["pages", "cancelled"], mark);
  return box;
}
