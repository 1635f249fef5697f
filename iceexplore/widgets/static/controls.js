// Tabs and menus: what the keys do in them.

import { el, ours } from "./dom.js";

// A row of tabs (WAI-ARIA tabs pattern): arrows, Home and End go to another, and choose it.
export function tabRow(kind, label, tabs) {
  const row = el(kind, { role: "tablist", ariaLabel: label, onkeydown: walk }, tabs);
  function walk(event) {
    const all = [...row.children];
    const at = all.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    ours(event);
    const next = all.at(to % all.length);
    next.click();
    next.focus();
  }
  return row;
}

// Which of the tabs is chosen: it alone has the tab stop.
export function chooseTab(tabs, chosen) {
  for (const tab of tabs) {
    tab.ariaSelected = tab === chosen;
    tab.tabIndex = tab === chosen ? 0 : -1;
  }
}

// A menu below its summary, which Escape shuts.
export function menuOf(summary, props, ...list) {
  const menu = el("details.ice-menu", { onkeydown: shut, ...props }, summary, list);
  function shut(event) {
    if (event.key !== "Escape") return;
    menu.open = false;
    summary.focus();
    event.stopPropagation();
  }
  return menu;
}
