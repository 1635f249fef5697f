/**
 * The room that a widget takes: its height, with an edge to drag; the size of its text; which parts are collapsed. Also
 * the dialog that lists the keys. What the user chooses is a trait, so that all views of the widget share it and the
 * cell's next run keeps it; other widgets in the browser's session begin with it.
 *
 * @module
 */

/** @import { Model, RoomName, Traits } from "./types.d.ts" */

import { clamp, consumeEvent, el, fill, listen, setEnabled, smallButton } from "./dom.js";
import { onResize } from "./painting.js";

/** The name under which choices are in the browser's session storage. */
const STORED = "iceexplore";
/** The sizes of text in percent. */
const TEXT_SIZES = [85, 100, 115, 130, 150, 175, 200];
/** In px: the minimum and maximum height of a widget, and the step of an arrow key. */
const HEIGHT = { least: 200, most: 10_000, step: 40 };
/** In a widget lower than this, in px before text scaling, timeline and head are collapsed at first. */
const SHORT = 640;

/**
 * The last choices, by trait. In frames without storage, they last as long as the page.
 *
 * @type {Record<string, any>}
 */
let session = {};
try {
  session = JSON.parse(sessionStorage.getItem(STORED) ?? "{}");
} catch {
  // There is no storage, or something else has written to it.
}

/**
 * Return the choice of this widget; without one, the last choice in this session; without that, `first`.
 *
 * @template {RoomName} K
 * @param {Pick<Model, K>} model
 * @param {K} name
 * @param {NonNullable<Traits[K]>} first
 * @returns {NonNullable<Traits[K]>}
 */
export function chosen(model, name, first) {
  return model[name] ?? session[name] ?? first;
}

/**
 * Set a choice for this widget, and for widgets that are created later in this session.
 *
 * @template {RoomName} K
 * @param {Model} model
 * @param {K} name
 * @param {Traits[K]} value
 */
export function choose(model, name, value) {
  session[name] = value;
  try {
    sessionStorage.setItem(STORED, JSON.stringify(session));
  } catch {
    // There is no storage: the choice lasts as long as the page.
  }
  model.save(name, value);
}

/**
 * Return the next text size in a direction, or the same size if it is the last.
 *
 * @param {number} size
 * @param {number} by 1 or -1.
 */
export function nextTextSize(size, by) {
  const others = TEXT_SIZES.filter((other) => (other - size) * by > 0);
  return (by > 0 ? others[0] : others.at(-1)) ?? size;
}

/**
 * Return a button that collapses or expands a part of the widget, and shows whether it is collapsed.
 *
 * @param {Model} model
 * @param {"collapsed" | "head_collapsed"} name
 * @param {string} what
 * @param {() => boolean} isCollapsed
 */
export function collapseButton(model, name, what, isCollapsed) {
  const button = smallButton("", "", () => choose(model, name, !isCollapsed()));
  function draw() {
    const on = isCollapsed();
    const label = `${on ? "Expand" : "Collapse"} the ${what}`;
    Object.assign(button, { ariaExpanded: String(!on), textContent: on ? "▸" : "▾", title: label, ariaLabel: label });
  }
  model.onRoom(draw);
  model.follow(name, draw);
  return button;
}

/**
 * Return a button that collapses the head: the line with the name, and the fields above a table.
 *
 * @param {Model} model
 */
export function headButton(model) {
  return collapseButton(model, "head_collapsed", "head", () => isHeadCollapsed(model));
}

/** @param {Model} model */
export function isHeadCollapsed(model) {
  return chosen(model, "head_collapsed", model.isShort());
}

/**
 * Manage a widget's height, text size and keys. Return the controls for its first line, and its lower edge.
 *
 * @param {Model} model
 * @param {HTMLElement} root
 * @param {(isShort: boolean) => void} changed Called when the height may have changed.
 */
export function widgetRoom(model, root, changed) {
  const smaller = smallButton("A−", "Smaller text", () => resizeText(-1));
  const larger = smallButton("A+", "Larger text", () => resizeText(1));
  const sizes = el("span.group", { role: "group", hidden: !CSS.supports("zoom", "1.5") }, smaller, larger);
  const sheet = el("dialog.keys", { ariaLabel: "Keys", tabindex: -1, onclick: shutOutside });
  const help = smallButton("?", "Keys", showKeys, { ariaHasPopup: "dialog" });
  const edge = el("div.edge", {
    role: "separator",
    tabindex: 0,
    ariaLabel: "Height of the widget",
    ariaOrientation: "horizontal",
    ariaValueMin: HEIGHT.least,
    ariaValueMax: HEIGHT.most,
  });

  function textSize() {
    return chosen(model, "text_size", 100);
  }
  /** @param {number} by */
  function resizeText(by) {
    choose(model, "text_size", nextTextSize(textSize(), by));
  }
  function drawTextSize() {
    const size = textSize();
    root.style.setProperty("--ice-zoom", String(size / 100));
    sizes.ariaLabel = `Text size: ${size} %`;
    setEnabled(smaller, nextTextSize(size, -1) !== size);
    setEnabled(larger, nextTextSize(size, 1) !== size);
  }
  function drawHead() {
    root.classList.toggle("ice-head-collapsed", isHeadCollapsed(model));
  }

  // The height ---------------------------------------------------------------------------------------------------------

  /** @param {string} [height] */
  function drawHeight(height = model.height) {
    root.classList.toggle("ice-sized", Boolean(height));
    root.style.setProperty("--ice-total", height || "auto");
    measure();
  }
  function measure() {
    const hasOwn = root.matches(":fullscreen, .ice-sized");
    edge.ariaValueNow = String(Math.round(root.getBoundingClientRect().height));
    changed(hasOwn && root.clientHeight < SHORT);
  }
  /** @param {number} px */
  function pixels(px) {
    return `${Math.round(clamp(HEIGHT.least, px, HEIGHT.most))}px`;
  }
  let dragged = "";
  listen(edge, {
    pointerdown(event) {
      event.preventDefault();
      edge.setPointerCapture(event.pointerId);
      edge.focus();
    },
    pointermove(event) {
      if (!edge.hasPointerCapture(event.pointerId) || !event.buttons) return;
      dragged = pixels(event.clientY - root.getBoundingClientRect().top);
      drawHeight(dragged);
    },
    pointerup() {
      if (dragged) model.save("height", dragged);
      dragged = "";
    },
    pointercancel() {
      dragged = "";
      drawHeight();
    },
    dblclick: () => model.save("height", ""),
    keydown(event) {
      const { height } = root.getBoundingClientRect();
      /** @type {Record<string, string>} */
      const heights = {
        ArrowUp: pixels(height - HEIGHT.step),
        ArrowDown: pixels(height + HEIGHT.step),
        Home: pixels(0),
        End: pixels(Infinity),
        Enter: "",
      };
      const to = heights[event.key];
      if (to === undefined || event.altKey) return;
      consumeEvent(event);
      model.save("height", to);
    },
  });

  // Keys ---------------------------------------------------------------------------------------------------------------

  function showKeys() {
    const keyOf = (/** @type {[string[], string]} */ [names, what]) =>
      el("div", el("dt", names.map((name) => el("kbd", name))), el("dd", what));
    const places = model.shortcuts.map(([place, keys]) => el("div", el("h3", place), el("dl", keys.map(keyOf))));
    const close = smallButton("×", "Close", () => sheet.close());
    fill(sheet, close, el("h2", "Keys"), el("div.key-places", places));
    sheet.showModal();
  }
  /** @param {MouseEvent} event */
  function shutOutside(event) {
    // A click on the backdrop has the dialog as its target; one inside has an element of its content.
    if (event.target === sheet) sheet.close();
  }
  // The notebook must not handle keys pressed in the dialog: Escape closes it, and arrows scroll it.
  sheet.addEventListener("keydown", (event) => event.stopPropagation());

  /**
   * Convert an event's offsets, which browsers give in px of the page, to px before text scaling, as canvases use them.
   *
   * @param {MouseEvent} event
   */
  function scaleOffsets(event) {
    if (textSize() === 100) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const { left, top, width } = target.getBoundingClientRect();
    const scale = target.offsetWidth / width || 1;
    Object.defineProperty(event, "offsetX", { value: (event.clientX - left) * scale });
    Object.defineProperty(event, "offsetY", { value: (event.clientY - top) * scale });
  }
  for (const name of ["pointerdown", "pointermove", "pointerup", "wheel", "dblclick"]) {
    root.addEventListener(name, (event) => scaleOffsets(/** @type {MouseEvent} */ (event)), true);
  }
  root.addEventListener("keydown", (event) => {
    if (event.key !== "?" || takesKeys(event.target)) return;
    consumeEvent(event);
    showKeys();
  }, true);

  onResize(model, root, measure);
  model.follow("text_size", drawTextSize);
  model.follow("height", drawHeight);
  model.follow("head_collapsed", drawHead);
  model.onRoom(drawHead);
  root.append(sheet);
  return { controls: [sizes, help], edge };
}

/**
 * Return whether an element itself handles the keys pressed in it: a text field, a select box, or part of a dialog.
 *
 * @param {EventTarget | null} target
 */
export function takesKeys(target) {
  return /** @type {Element} */ (target).matches("input:not([type=checkbox]), textarea, select, dialog, dialog *");
}
