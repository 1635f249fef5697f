/**
 * The omnibox: one field to find files, snapshots, rows and actions (WAI-ARIA combobox: the focus stays in the field).
 * Python finds the results. Choosing one sets traits, changes the selection, or presses a button of the widget.
 *
 * @module
 */

/** @import { Model, OmniAction } from "./types.d.ts" */

import { changeSelection, consumeEvent, el, fill, listen, randomId, timer } from "./dom.js";

/** The time without a key press, in ms, after which the text is sent. */
const TYPING_DELAY = 150;

/**
 * Return the omnibox: its element, and `open`, which gives it the focus.
 *
 * @param {Model} model
 * @param {HTMLElement} root The widget's root element.
 */
export function omnibox(model, root) {
  const id = `ice-${randomId()}`;
  const input = el("input.input.omni-input", {
    role: "combobox",
    ariaLabel: "Find files, snapshots, rows, actions",
    ariaAutoComplete: "list",
    ariaExpanded: false,
    "aria-controls": id,
    placeholder: "Find or do … (Ctrl+K)",
    autocomplete: "off",
    spellcheck: "false",
  });
  const list = el("div.scan-list.omni-list", { role: "listbox", id, ariaLabel: "Results" });
  const note = el("div.omni-note", { role: "status" });
  const box = el("div.combo.omni", input, el("div.scan-pop", list, note));
  const wait = timer(model);
  /** Whether the results are shown. */
  let isOpen = false;
  /** The number of the request whose answer is shown. */
  let question = 0;
  /** The index of the result that was reached by arrow keys, or -1. */
  let at = -1;
  /** Whether the text has changed since it was sent. */
  let isChanged = false;
  /** Whether Enter was pressed before there was a result: then the first one is chosen when it arrives. */
  let isEager = false;
  /** @type {HTMLElement | null} */
  let before = null;

  function groups() {
    const { n, groups: found = [] } = model.omni_found;
    return isOpen && n === question ? found : [];
  }
  function results() {
    return groups().flatMap(([, found]) => found);
  }
  function ask() {
    wait();
    isOpen = true;
    isChanged = isEager = false;
    at = -1;
    question = model.request("omni", { text: input.value });
    draw();
  }
  function shut() {
    wait();
    isOpen = isEager = false;
    draw();
  }
  function draw() {
    let i = 0;
    const found = results();
    at = Math.min(at, found.length - 1);
    const items = groups().map(([title, some]) =>
      el(
        "div",
        { role: "group", ariaLabel: title },
        el("div.omni-title", { ariaHidden: true }, title),
        some.map(([name, more, does]) => {
          const place = i++;
          /** @param {MouseEvent} event */
          function onmousedown(event) {
            event.preventDefault();
            choose(does);
          }
          const properties = { role: "option", id: `${id}-${place}`, ariaSelected: place === at, onmousedown };
          return el("div.omni-item", properties, el("b", name), el("span", more));
        }),
      )
    );
    fill(list, items);
    input.ariaExpanded = String(found.length > 0);
    input.setAttribute("aria-activedescendant", at < 0 ? "" : `${id}-${at}`);
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" });
    const text = isOpen ? model.omni_found.note ?? "" : "";
    if (note.textContent !== text) note.textContent = text;
    if (isEager && found.length) choose(found[0][2]);
  }
  function takeFirst() {
    if (isChanged || !isOpen) ask();
    isEager = true;
    draw();
  }
  /** @param {OmniAction} does */
  function choose({ set = {}, select, press = [] }) {
    shut();
    for (const [name, value] of Object.entries(set)) model.save(/** @type {"tab"} */ (name), value);
    if (select) {
      model.save("tab", "tree");
      // Focus the tree first: in a narrow widget, a selection opens the details only if the focus is there.
      /** @type {HTMLElement | null} */ (root.querySelector("[role=treeitem][tabindex='0']"))?.focus();
      changeSelection(model, select);
    } else if (press.length) {
      const buttons = [...root.querySelectorAll("button")];
      const button = buttons.find(({ ariaLabel, textContent }) => press.includes(ariaLabel ?? textContent));
      button?.focus();
      button?.click();
    } else {
      /** @type {HTMLElement | null} */ (root.querySelector(".ice-part[aria-selected=true]"))?.focus();
    }
  }
  function leave() {
    input.value = "";
    ask();
    shut();
    (before ?? input).focus();
    before = null;
  }
  listen(input, {
    keydown(event) {
      event.stopPropagation();
      const count = results().length;
      const isEnter = event.key === "Enter";
      isEager &&= isEnter;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        if (!isOpen) return ask();
        const by = event.key === "ArrowDown" ? 1 : -1;
        at = at < 0 && by < 0 ? count - 1 : (at + by + count) % count || 0;
        draw();
      } else if (isEnter) {
        if (at >= 0) choose(results()[at][2]);
        else if (input.value.trim()) takeFirst();
      } else if (event.key === "Escape") {
        if (isOpen) shut();
        else leave();
      } else {
        return;
      }
      consumeEvent(event);
    },
    input() {
      isChanged = true;
      at = -1;
      wait(ask, TYPING_DELAY);
    },
    focus: () => !isOpen && ask(),
    blur: shut,
  });
  model.onChange("omni_found", draw);
  function open() {
    before = /** @type {HTMLElement | null} */ (document.activeElement);
    input.focus();
    input.select();
  }
  return { element: box, open };
}
