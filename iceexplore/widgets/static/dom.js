/**
 * Helpers for elements and icons, the focus, the clipboard and files.
 *
 * Text only ever becomes text nodes: nothing from a table is parsed as markup.
 *
 * @module
 */

/**
 * @import { Child, ElementOf, Listeners, Model, Properties, Selection, Style, Styles, SvgOf } from "./types.d.ts"
 */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
/** The longest location that a cell shows in full, in characters. */
const MOST_CHARACTERS = 33;
/** A location or a file's name. */
const LOCATION = /^([\w.+:%=~@-]*\/\S|\S+\.[a-z]\w{1,7}$)/i;
const UNITS_OF_BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];
/** A selector for elements that can have the focus. */
const FOCUSABLE = "button, input, select, summary, [tabindex]";

/** Properties for a scrolling box that contains a tab stop: Firefox would make the box itself a second tab stop. */
export const NO_TAB_STOP = { tabindex: -1 };

// Elements -------------------------------------------------------------------------------------------------------------

/**
 * Return an element, such as `el("button.framed", { onclick }, "Undo")`.
 *
 * @template {string} K
 * @param {K} kind The tag and classes, such as `"div.wide.pale"`. Each class, here and in the property `class`, gets
 *   the prefix `ice-`, which distinguishes it from the page's own classes.
 * @param {...(Properties | Child)} rest Properties, which can be left out, then children. Children that are null,
 *   undefined, false or "" are left out, and lists are flattened.
 * @returns {ElementOf<K>}
 */
export function el(kind, ...rest) {
  const node = document.createElement(kind.split(".")[0]);
  return /** @type {ElementOf<K>} */ (build(node, kind, rest));
}

/**
 * Return an SVG element; the parameters are those of `el`.
 *
 * @template {string} K
 * @param {K} kind
 * @param {...(Properties | Child)} rest
 * @returns {SvgOf<K>}
 */
export function svg(kind, ...rest) {
  const node = document.createElementNS(SVG_NAMESPACE, kind.split(".")[0]);
  return /** @type {SvgOf<K>} */ (build(node, kind, rest));
}

/**
 * Return the value of an element's attribute `class`: its classes with their prefix, separated by spaces.
 *
 * @param {string} kind As for `el`.
 * @param {string | false | null} [more] The property `class`.
 * @returns {string}
 */
export function classesOf(kind, more) {
  const [, ...classes] = `${kind} ${more || ""}`.split(/[ .]/);
  return classes.filter(Boolean).map((name) => "ice-" + name).join(" ");
}

/**
 * @param {HTMLElement | SVGElement} node
 * @param {string} kind
 * @param {(Properties | Child)[]} rest
 */
function build(node, kind, rest) {
  const hasProperties = /** @type {Properties | null | undefined} */ (rest[0])?.constructor === Object;
  const properties = /** @type {Properties} */ (hasProperties ? rest[0] : {});
  const children = /** @type {Child[]} */ (hasProperties ? rest.slice(1) : rest);
  const classes = classesOf(kind, properties.class);
  if (classes) node.setAttribute("class", classes);
  // By default a button would submit the form around it.
  if (kind.startsWith("button")) /** @type {HTMLButtonElement} */ (node).type = "button";
  for (const [key, value] of Object.entries(properties)) {
    if (value !== undefined && value !== null && key !== "class") setProperty(node, key, value);
  }
  node.append(...present(children));
  return node;
}

/**
 * @param {HTMLElement | SVGElement} node
 * @param {string} key
 * @param {unknown} value
 */
function setProperty(node, key, value) {
  if (/^aria[A-Z]/.test(key)) {
    // Handled before the next test, because "false" is a value of aria-pressed and others.
    Object.assign(node, { [key]: value });
  } else if (value === false) {
    return;
  } else if (key === "style") {
    const style = /** @type {Record<string, string | number>} */ (value);
    for (const [name, one] of Object.entries(style)) node.style.setProperty(name, String(one));
  } else if (key.startsWith("on")) {
    node.addEventListener(key.slice(2), /** @type {EventListener} */ (value));
  } else {
    node.setAttribute(key, value === true ? "" : String(value));
  }
}

/**
 * Return the children as a flat list, without empty ones.
 *
 * @param {unknown[]} children
 * @returns {(Node | string)[]} The list may also contain numbers, which `append` turns into text.
 */
function present(children) {
  const flat = /** @type {(Node | string)[]} */ (children.flat(Infinity));
  return flat.filter((child) => child || /** @type {unknown} */ (child) === 0);
}

/**
 * Replace the children of a box with others, given as for `el`. The focus stays where it was (see `keepFocus`).
 *
 * @param {HTMLElement} box
 * @param {...Child} children
 */
export function fill(box, ...children) {
  keepFocus(box, () => box.replaceChildren(...present(children)));
}

/**
 * Add listeners, given by the names of their events.
 *
 * @param {HTMLElement} node
 * @param {Listeners} listeners
 */
export function listen(node, listeners) {
  for (const [event, run] of Object.entries(listeners)) {
    node.addEventListener(event, /** @type {EventListener} */ (run));
  }
}

// Buttons and boxes ----------------------------------------------------------------------------------------------------

/**
 * Return a button whose text describes its action.
 *
 * @param {Child} text
 * @param {Properties["onclick"]} onclick
 * @param {Properties} [extra]
 */
export function button(text, onclick, extra) {
  return el("button.button.wordy", { onclick, ...extra }, text);
}

/**
 * Return a button that looks like a link in a text.
 *
 * @param {Child} text
 * @param {Properties["onclick"]} onclick
 */
export function linkButton(text, onclick) {
  return el("button.link", { onclick }, text);
}

/**
 * Return a button with a sign or a short word.
 *
 * @param {Child} text
 * @param {string} label Its action, for the tooltip and for screen readers.
 * @param {Properties["onclick"]} onclick
 * @param {Properties} [extra]
 */
export function smallButton(text, label, onclick, extra) {
  return el("button.button", { ariaLabel: label, title: label, onclick, ...extra }, text);
}

/**
 * Return the options of a select box.
 *
 * @param {Iterable<readonly [value: unknown, text: Child]>} pairs
 */
export function options(pairs) {
  return [...pairs].map(([value, text]) => el("option", { value }, text));
}

/**
 * Return a select box.
 *
 * @param {string} label
 * @param {Properties["onchange"]} [onchange]
 * @param {Iterable<readonly [value: unknown, text: Child]> | null} [pairs] Its options.
 * @param {Properties} [extra]
 */
export function selectBox(label, onchange, pairs, extra) {
  return el("select.select", { ariaLabel: label, title: label, onchange, ...extra }, pairs && options(pairs));
}

/** @param {Event} event */
function stopIfDisabled(event) {
  if (/** @type {HTMLElement} */ (event.currentTarget).ariaDisabled !== "true") return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/**
 * Enable or disable a button. Never use `disabled`: a button that has the focus would lose it to the page.
 *
 * @template {HTMLButtonElement} B
 * @param {B} button
 * @param {unknown} on
 * @returns {B} The button.
 */
export function setEnabled(button, on) {
  button.ariaDisabled = String(!on);
  // The same listener is added only once, however often this is called.
  button.addEventListener("click", stopIfDisabled, true);
  return button;
}

// Icons ----------------------------------------------------------------------------------------------------------------

/**
 * Return an icon of lines in the colour of the text, in a square of 16 units.
 *
 * @param {string} d The SVG path.
 * @param {number} [size] Its width and height in px.
 */
export function lineIcon(d, size = 14) {
  return iconFrame("svg", size, [svg("path", { d })]);
}

/**
 * @param {string} kind
 * @param {number} size
 * @param {Child[]} paths
 */
function iconFrame(kind, size, paths) {
  return /** @type {SVGSVGElement} */ (
    svg(kind, { viewBox: "0 0 16 16", width: size, height: size, ariaHidden: true }, paths)
  );
}

/**
 * Return the icon of a kind of node. Both its shape and its colour show the kind.
 *
 * @param {Styles} styles
 * @param {string} kind
 * @param {number} [size]
 */
export function icon(styles, kind, size = 16) {
  const style = styles[kind] ?? styles[""];
  const [filled, stroked] = style.icon ?? [];
  const paths = [filled && svg("path.fill", { d: filled }), stroked && svg("path.line", { d: stroked })];
  return applyColours(iconFrame("svg.icon", size, paths), style);
}

/**
 * Set the colours of a style on an element. The style sheet chooses among them by theme.
 *
 * @template {HTMLElement | SVGElement} E
 * @param {E} node
 * @param {Style} style
 * @returns {E} The element.
 */
export function applyColours(node, { light, dark }) {
  node.style.setProperty("--light", light);
  node.style.setProperty("--dark", dark);
  return node;
}

// Focus and keys -------------------------------------------------------------------------------------------------------

/**
 * Return the element that has the focus if it is in a box or is the box, else null.
 *
 * @param {HTMLElement} box
 * @returns {HTMLElement | null}
 */
export function focusedIn(box) {
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  return box.contains(focused) ? focused : null;
}

/** @param {HTMLElement} element */
function isVisible(element) {
  return element.getClientRects().length > 0;
}

/** @param {HTMLElement} element */
function nameOf(element) {
  return element.dataset.key ?? element.ariaLabel ?? (element.id || element.textContent);
}

/**
 * Redraw what is in a box without losing the focus to the page.
 *
 * If `draw` removes or hides the element that has the focus, the focus goes to the visible element of the same name (its
 * data-key, label, id, or text), else to `next`.
 *
 * @param {HTMLElement} box
 * @param {() => void} draw
 * @param {HTMLElement | null | (() => HTMLElement | null)} [next]
 */
export function keepFocus(box, draw, next = box) {
  const held = focusedIn(box);
  draw();
  if (!held || isVisible(held)) return;
  const candidates = /** @type {HTMLElement[]} */ ([...box.querySelectorAll(FOCUSABLE)]);
  const successor = candidates.filter(isVisible).find((one) => nameOf(one) === nameOf(held));
  successor?.focus({ preventScroll: true });
  // Content of a closed <details> looks visible by its rectangles, but cannot have the focus.
  if (successor && document.activeElement === successor) return;
  const other = typeof next === "function" ? next() : next;
  other?.focus();
}

/**
 * Stop an event from reaching the page, so that a key that the widget has handled has no other effect.
 *
 * @param {Event} event
 */
export function consumeEvent(event) {
  event.preventDefault();
  event.stopPropagation();
}

// The model ------------------------------------------------------------------------------------------------------------

/**
 * Change the selected node, the selected snapshot, or the snapshot to compare with. Parts not given stay the same.
 *
 * @param {Model} model
 * @param {Partial<Selection>} change
 */
export function changeSelection(model, change) {
  model.save("selection", { ...model.selection, ...change });
}

/**
 * Return a timer: `wait(run, ms)` calls `run` later, in place of a call that is still pending, and `wait()` cancels it.
 * The timer ends with the widget.
 *
 * @param {Model} model
 * @returns {(run?: (() => void) | false, ms?: number) => void}
 */
export function timer(model) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let running;
  /** @type {ReturnType<typeof timer>} */
  const wait = (run, ms) => {
    clearTimeout(running);
    running = run ? setTimeout(run, ms) : undefined;
  };
  model.onEnd(() => wait());
  return wait;
}

/**
 * Return a random number for ids and messages, as there may be several widgets in a page.
 *
 * @returns {number}
 */
export function randomId() {
  return crypto.getRandomValues(new Uint32Array(1))[0];
}

// Values ---------------------------------------------------------------------------------------------------------------

/**
 * Return a count as text, with commas between thousands.
 *
 * @param {number | bigint} n
 */
export function formatCount(n) {
  return n.toLocaleString("en");
}

/**
 * Return a size in bytes as text, as Python writes it.
 *
 * @param {number} bytes
 */
export function formatBytes(bytes) {
  let unit = 0;
  for (; bytes >= 1024 && unit < UNITS_OF_BYTES.length - 1; unit++) bytes /= 1024;
  return `${unit ? bytes.toFixed(1) : formatCount(bytes)} ${UNITS_OF_BYTES[unit]}`;
}

/**
 * Return a count with its noun, in the plural unless it is 1.
 *
 * @param {number | bigint} n
 * @param {string} noun
 */
export function plural(n, noun) {
  return `${formatCount(n)} ${noun}${Number(n) === 1 ? "" : "s"}`;
}

/**
 * Return the number from `low` to `high` that is nearest to `n`; `low` if there is none.
 *
 * @param {number} low
 * @param {number} n
 * @param {number} high
 */
export function clamp(low, n, high) {
  return Math.max(low, Math.min(n, high));
}

/**
 * Return whether two JSON values are equal.
 *
 * @param {unknown} a
 * @param {unknown} b
 */
export function sameJson(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

/**
 * Return a text as a cell shows it: only the end of a long location or file name, which tells more than the beginning.
 *
 * @param {string} text
 * @returns {string}
 */
export function shortenPath(text) {
  if (text.length <= MOST_CHARACTERS || !LOCATION.test(text)) return text;
  return "…" + text.slice(1 - MOST_CHARACTERS);
}

// Clipboard and files --------------------------------------------------------------------------------------------------

/**
 * Put a text on the clipboard.
 *
 * @param {string | Promise<string>} given
 * @returns {Promise<boolean>} Whether the browser allowed it.
 */
export async function copyText(given) {
  try {
    if (typeof given === "string" || !window.ClipboardItem) {
      // Firefox has no ClipboardItem before version 127.
      await navigator.clipboard.writeText(await given);
    } else {
      // Safari allows this only while it handles the click, so it gets a promise of text that arrives later.
      const blob = given.then((text) => new Blob([text], { type: "text/plain" }));
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    }
    return true;
  } catch {
    // Without permission, or outside a secure context, use the older way of copying.
    const text = await given;
    const held = /** @type {HTMLElement | null} */ (document.activeElement);
    const area = el("textarea", { style: { position: "fixed", opacity: 0 }, ariaHidden: true });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    held?.focus();
    return done;
  }
}

/**
 * Save a file for the user, and say so: not every browser shows downloads.
 *
 * @param {Pick<Model, "say">} model
 * @param {Blob} blob
 * @param {string} name
 */
export function saveFile(model, blob, name) {
  const url = URL.createObjectURL(blob);
  const anchor = el("a", { href: url, download: name });
  // The link must be in the page: VS Code only saves files for clicks that it sees there.
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  model.say(`Saved ${name}`);
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
