// Tabs, menus, buttons that copy: what the keys do in them.

import { consumeEvent, copyText, el, fill, keepFocus } from "./dom.js";

// A row of tabs (WAI-ARIA tabs pattern): arrows, Home and End go to another, and choose it.
export function tabRow(kind, label, tabs) {
  const row = el(kind, { role: "tablist", ariaLabel: label, onkeydown: walk }, tabs);
  function walk(event) {
    const all = [...row.children];
    const at = all.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    consumeEvent(event);
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

// Such a row for one panel: `titles` by key, `choose` is called with one. `mark` says which is chosen, and what of the
// panel it shows.
export function tabsOf(label, titles, panel, choose) {
  const all = Object.entries(titles).map(([key, title]) =>
    el("button.tab", {
      role: "tab",
      id: `${panel.id}-${key}`,
      "data-key": key,
      "aria-controls": panel.id,
      onclick: () => choose(key),
    }, title)
  );
  function mark(key, shown) {
    const tab = all.find((one) => one.dataset.key === key);
    chooseTab(all, tab);
    panel.setAttribute("aria-labelledby", tab.id);
    // Python, or another view, may have chosen it while the focus was in the panel.
    keepFocus(panel, () => [...panel.children].forEach((part) => (part.hidden = part !== shown)), tab);
  }
  return { element: tabRow("div.tabs", label, all), mark };
}

// ms that a button says what it did.
const SHOWN_MS = 1500;

// A button that copies what `text` returns, or will: says so in its place, in words or drawings.
export function copier(label, text, extra, [done, refused] = ["Copied", "Not allowed"]) {
  const made = el("button", {
    class: "button framed",
    ...extra,
    onclick: async () => {
      fill(made, (await copyText(text())) ? done : refused);
      setTimeout(() => fill(made, label), SHOWN_MS);
    },
  }, label);
  return made;
}

// A box to tick, with its words; `choose` is called with whether it is.
export const check = (words, choose, props, title) =>
  el(
    "label.check",
    { title },
    el("input", { type: "checkbox", "data-key": words, ...props, onchange: ({ target }) => choose?.(target.checked) }),
    el("span", words),
  );

// A form that Enter sends, too. Its keys are not the notebook's.
export const formOf = (kind, send, ...inside) =>
  el("form" + kind, {
    novalidate: true,
    onsubmit: (event) => (event.preventDefault(), send()),
    onkeydown: (event) => event.stopPropagation(),
  }, ...inside);

// A menu below its summary, which Escape shuts.
export function menuOf(summary, props, ...list) {
  const menu = el("details.menu", { onkeydown: shut, ...props }, summary, list);
  function shut(event) {
    if (event.key !== "Escape") return;
    menu.open = false;
    summary.focus();
    event.stopPropagation();
  }
  return menu;
}
