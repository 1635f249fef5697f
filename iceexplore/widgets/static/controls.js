/**
 * Tabs, menus, forms and copy buttons: their appearance, and their keyboard handling.
 *
 * @module
 */

/** @import { Child, Help, OpenPoint, Properties } from "./types.d.ts" */

import { consumeEvent, copyText, el, fill, keepFocus } from "./dom.js";

/** How long, in ms, a button shows its result. */
const SHOWN_TIME = 1500;

/**
 * Return the index of the tab that a key moves to; undefined if the key does not move between tabs.
 *
 * @param {string} key
 * @param {number} at The index of the tab that has the focus.
 * @param {number} length The number of tabs.
 * @returns {number | undefined}
 */
export function nextTab(key, at, length) {
  switch (key) {
    case "ArrowRight":
      return (at + 1) % length;
    case "ArrowLeft":
      return (at - 1 + length) % length;
    case "Home":
      return 0;
    case "End":
      return length - 1;
    default:
      return undefined;
  }
}

/**
 * Return a row of tabs (WAI-ARIA tabs pattern): arrows, Home and End go to another tab and choose it.
 *
 * @param {string} kind As for `el`.
 * @param {string} label
 * @param {HTMLElement[]} [tabs]
 */
export function tabRow(kind, label, tabs) {
  const row = el(kind, { role: "tablist", ariaLabel: label, onkeydown: pressed }, tabs);
  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const all = /** @type {HTMLElement[]} */ ([...row.children]).filter((one) =>
      !(/** @type {HTMLElement} */ (one).hidden)
    );
    const to = nextTab(event.key, all.indexOf(/** @type {HTMLElement} */ (event.target)), all.length);
    if (to === undefined) return;
    consumeEvent(event);
    all[to].click();
    all[to].focus();
  }
  return row;
}

/**
 * Mark one of the tabs as selected, and make it the only one that the Tab key reaches.
 *
 * @param {Iterable<Element>} tabs
 * @param {Element | undefined} chosen
 */
export function markTab(tabs, chosen) {
  for (const tab of /** @type {Iterable<HTMLElement>} */ (tabs)) {
    tab.ariaSelected = String(tab === chosen);
    tab.tabIndex = tab === chosen ? 0 : -1;
  }
}

/**
 * Return a row of tabs for the parts of one panel.
 *
 * @param {string} label
 * @param {Record<string, string>} titles The titles of the tabs, by their keys.
 * @param {HTMLElement} panel The element whose children are the parts; it must have an id.
 * @param {(key: string) => void} choose
 * @returns {{ element: HTMLElement, mark: (key: string, shown: HTMLElement) => void }} `mark` marks the chosen tab, and
 *   shows its part of the panel.
 */
export function panelTabs(label, titles, panel, choose) {
  const tabs = Object.entries(titles).map(([key, title]) =>
    el("button.tab", {
      role: "tab",
      id: `${panel.id}-${key}`,
      "data-key": key,
      "aria-controls": panel.id,
      onclick: () => choose(key),
    }, title)
  );
  /** @type {(key: string, shown: HTMLElement) => void} */
  function mark(key, shown) {
    const tab = /** @type {HTMLElement} */ (tabs.find((one) => one.dataset.key === key));
    const show = () => {
      for (const part of /** @type {HTMLElement[]} */ ([...panel.children])) part.hidden = part !== shown;
    };
    markTab(tabs, tab);
    panel.setAttribute("aria-labelledby", tab.id);
    // Python or another view may have selected the tab while the focus was in the panel.
    keepFocus(panel, show, tab);
  }
  return { element: tabRow("div.tabs", label, tabs), mark };
}

/**
 * Return a button that copies a text, and then shows whether that succeeded.
 *
 * @param {Child} label
 * @param {() => string | Promise<string>} text
 * @param {Properties} [extra]
 * @param {{ copied: Child, refused: Child }} [answers] What the button shows after success and after failure.
 */
export function copyButton(label, text, extra, answers = { copied: "Copied", refused: "Not allowed" }) {
  const made = el("button", { class: "button framed", ...extra, onclick: copy }, label);
  async function copy() {
    const isCopied = await copyText(text());
    fill(made, isCopied ? answers.copied : answers.refused);
    setTimeout(() => fill(made, label), SHOWN_TIME);
  }
  return made;
}

/**
 * Return a checkbox with its label.
 *
 * @param {string} words
 * @param {((on: boolean) => void) | null} [choose]
 * @param {Properties} [properties] Properties of the input.
 * @param {string | null} [title]
 * @returns {{ element: HTMLElement, input: HTMLInputElement }}
 */
export function checkBox(words, choose, properties, title) {
  const onchange = () => {
    choose?.(input.checked);
  };
  const input = el("input", { type: "checkbox", "data-key": words, ...properties, onchange });
  return { element: el("label.check", { title }, input, el("span", words)), input };
}

/**
 * Return a form that can also be submitted with Enter. Keys pressed in it do not reach the notebook.
 *
 * @param {string} kind Its classes, such as ".wide", or "".
 * @param {() => void} send
 * @param {...Child} inside
 */
export function keyboardForm(kind, send, ...inside) {
  /** @param {SubmitEvent} event */
  function onsubmit(event) {
    event.preventDefault();
    send();
  }
  const onkeydown = (/** @type {KeyboardEvent} */ event) => event.stopPropagation();
  return el(`form${kind}`, { novalidate: true, onsubmit, onkeydown }, ...inside);
}

/**
 * Return a menu that opens below its summary. Escape closes it, and so does opening another menu: menus never overlap.
 *
 * @param {HTMLElement} summary
 * @param {Properties} properties
 * @param {...Child} inside
 */
export function foldedMenu(summary, properties, ...inside) {
  const menu = el("details.menu", { name: "ice-menu", onkeydown: shut, ...properties }, summary, inside);
  /** @param {KeyboardEvent} event */
  function shut(event) {
    if (event.key !== "Escape") return;
    menu.open = false;
    summary.focus();
    event.stopPropagation();
  }
  return menu;
}

/**
 * Return the explanation of a field: its meaning, the section of the spec, and what the V4 proposal leaves open.
 *
 * @param {Help} help
 * @param {Record<string, OpenPoint>} [open]
 * @returns {Child[]}
 */
export function helpOf([meaning, section, link, points = []], open = {}) {
  const anchor = section && el("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, section);
  return [meaning, anchor && [". Spec: ", anchor], points.map((key) => openPoint(open[key]))];
}

/**
 * Return what the V4 proposal leaves open about a field, folded.
 *
 * @param {OpenPoint} point
 */
function openPoint([title, says, answer]) {
  const quotations = says.map((quotation) => el("blockquote", quotation));
  const summary = el("summary", `Open in the proposal: ${title}`);
  const details = el("details.point", { ontoggle: show }, summary, quotations, el("div", answer));
  function show() {
    details.scrollIntoView({ block: "nearest" });
  }
  return details;
}
