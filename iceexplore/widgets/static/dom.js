// Elements and icons, focus, files. Text only ever becomes text nodes: nothing from a table is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

// An element: `el("button.framed", { onclick }, "Undo")`, its classes (these, and those of `class`) without the ice- that
// keeps them apart from the page's. Properties can be left out; so are children that are nothing (null, undefined, false,
// ""), and lists are taken apart.
export const el = (kind, ...rest) => furnish(document.createElement(kind.split(".")[0]), kind, rest);

// The same for drawings.
export const svg = (kind, ...rest) => furnish(document.createElementNS(SVG, kind.split(".")[0]), kind, rest);

function furnish(node, kind, [props, ...children]) {
  if (props?.constructor !== Object) return furnish(node, kind, [{}, props, ...children]);
  const classes = `${kind} ${props.class || ""}`.split(/[ .]/).slice(1).filter(Boolean).map((name) => "ice-" + name)
    .join(" ");
  if (classes) node.setAttribute("class", classes);
  if (kind.startsWith("button")) node.type = "button"; // not what sends a form, as it would be
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || key === "class") continue;
    if (/^aria[A-Z]/.test(key)) node[key] = value; // false is said too
    else if (value === false) continue;
    else if (key === "style") { for (const [name, v] of Object.entries(value)) node.style.setProperty(name, v); }
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...present(children));
  return node;
}
const present = (children) => children.flat().filter((child) => child || child === 0);

// Other children in a box; as with `el`. The focus stays where it was, see `keepFocus`.
export const fill = (box, ...children) => keepFocus(box, () => box.replaceChildren(...present(children)));

// A button that says what it does.
export const button = (text, onclick, extra) => el("button.button.wordy", { onclick, ...extra }, text);

// One that stands in a text.
export const link = (text, onclick) => el("button.link", { onclick }, text);

// A button with a sign or a short word, and what it says to who points at it or hears it.
export const signButton = (text, label, onclick, extra) =>
  el("button.button", { ariaLabel: label, title: label, onclick, ...extra }, text);

// Of a box that scrolls and has a tab stop inside: Firefox would make the box another.
export const UNSTOPPED = { tabindex: -1 };

// A drawing of lines in the colour of the text, 16 by 16.
export const lines = (d, size = 14) => sign("svg", size, [svg("path", { d })]);
const sign = (kind, size, paths) =>
  svg(kind, { viewBox: "0 0 16 16", width: size, height: size, ariaHidden: true }, paths);

// The icon of a kind of node: its shape says the kind as well as its colour.
export function icon(styles, kind, size = 16) {
  const style = styles[kind] ?? styles[""];
  const paths = ["fill", "line"].map((name, i) => style.icon?.[i] && svg("path." + name, { d: style.icon[i] }));
  return colour(sign("svg.icon", size, paths), style);
}

export function colour(node, { light, dark }) {
  node.style.setProperty("--light", light);
  node.style.setProperty("--dark", dark);
  return node;
}

const refuse = (event) =>
  event.currentTarget.ariaDisabled === "true" && (event.preventDefault(), event.stopImmediatePropagation());

// A button that can be used now, or not. Never `disabled`: one that has the focus would lose it to the page.
export function enable(button, on) {
  button.ariaDisabled = !on;
  // Once, however often it is said.
  button.addEventListener("click", refuse, true);
  return button;
}

// What has the focus in a box, or is the box; or nothing.
export const focusedIn = (box) => (box.contains(document.activeElement) ? document.activeElement : null);

// Draws what is in a box anew. Where that takes away or hides what has the focus, it goes to what stands there now under
// the same name (its data-key, what it is called, its id, or its text), else to `next` (or what that gives), not to the
// page.
export function keepFocus(box, draw, next = box) {
  const held = focusedIn(box);
  draw();
  if (!held || held.getClientRects().length) return;
  const name = (one) => one.dataset.key ?? one.ariaLabel ?? (one.id || one.textContent);
  const seen = [...box.querySelectorAll("button, input, select, summary, [tabindex]")].filter((one) =>
    one.getClientRects().length
  );
  const named = seen.find((one) => name(one) === name(held));
  named?.focus({ preventScroll: true });
  // What is in a folded <details> has a place, and takes no focus.
  if (!named || document.activeElement !== named) (typeof next === "function" ? next() : next)?.focus();
}

// Selects: a node, a snapshot, one to compare with. What is not given stays.
export const choose = (model, change) => model.put("selection", { ...model.selection, ...change });

// Has what happens to a node heard: `listen(box, { click: run })`.
export function listen(node, heard) {
  for (const [event, run] of Object.entries(heard)) node.addEventListener(event, run);
}

// Runs what it is given after so many ms, in place of what was to run: `wait(run, ms)`; nothing after `wait()`, nor once
// the widget has ended.
export function timer(model) {
  let running;
  const wait = (run, ms) => {
    clearTimeout(running);
    running = run && setTimeout(run, ms);
  };
  model.end(wait);
  return wait;
}

// For ids and questions: several widgets may be in a page.
export const random = () => crypto.getRandomValues(new Uint32Array(1))[0];

// A key that the widget has used is nobody else's.
export function ours(event) {
  event.preventDefault();
  event.stopPropagation();
}

export const count = (n) => n.toLocaleString("en");
export const plural = (n, word) => `${count(n)} ${word}${Number(n) === 1 ? "" : "s"}`;
export const clamp = (low, n, high) => Math.max(low, Math.min(n, high));
export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// Characters that a cell shows of a location.
const WIDE = 33;

// Of a long location, and of a file's name, the end says more than the beginning.
export const tail = (
  value,
) => (value.length > WIDE && /^([\w.+:%=~@-]*\/\S|\S+\.[a-z]\w{1,7}$)/i.test(value)
  ? "…" + value.slice(1 - WIDE)
  : value);

// Puts text, or what a promise will be, on the clipboard; says whether the browser let us.
export async function copyText(given) {
  try {
    // Firefox has such items from 127 on.
    if (typeof given === "string" || !window.ClipboardItem) await navigator.clipboard.writeText(await given);
    // Safari lets us only while it handles the click: what comes later is promised to it.
    else {await navigator.clipboard.write([
        new ClipboardItem({ "text/plain": given.then((text) => new Blob([text], { type: "text/plain" })) }),
      ]);}
    return true;
  } catch {
    const text = await given;
    // no permission, or no secure context: as it was done before there was one
    const held = document.activeElement;
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

// What there is to choose: pairs of a value and its words.
export const options = (pairs) => pairs.map(([value, words]) => el("option", { value }, words));

// A box to choose in.
export const select = (label, onchange, pairs, props) =>
  el("select.select", { ariaLabel: label, title: label, onchange, ...props }, pairs && options(pairs));

// A file for the user. Clicked in the page: VS Code saves what it sees clicked there, and nothing else.
export function saveFile(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
