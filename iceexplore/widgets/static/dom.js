// Elements, icons and themes. Text only ever becomes text nodes: nothing from a table is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const DARK = "(prefers-color-scheme: dark)";

// An element: `el("button.ice-button", { onclick }, "Undo")`. Properties can be left out; so are children that are
// nothing (null, undefined, false, ""), and lists are taken apart.
export const el = (kind, ...rest) => furnish(document.createElement(kind.split(".")[0]), kind, rest);

// The same for drawings.
export const svg = (kind, ...rest) => furnish(document.createElementNS(SVG, kind.split(".")[0]), kind, rest);

function furnish(node, kind, [props, ...children]) {
  if (props?.constructor !== Object) return furnish(node, kind, [{}, props, ...children]);
  const classes = [...kind.split(".").slice(1), props.class].filter(Boolean).join(" ");
  if (classes) node.setAttribute("class", classes);
  if (kind.startsWith("button")) node.type = "button"; // not what sends a form, as it would be
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || key === "class") continue;
    if (/^aria[A-Z]/.test(key)) node[key] = value; // false is said too
    else if (value === false) continue;
    else if (key === "style") for (const [name, v] of Object.entries(value)) node.style.setProperty(name, v);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...present(children));
  return node;
}
const present = (children) => children.flat().filter((child) => child || child === 0);

// Other children in a box; as with `el`.
export const fill = (box, ...children) => box.replaceChildren(...present(children));

// A button with a sign or a short word, and what it says to who points at it or hears it.
export const signButton = (text, label, onclick, extra = {}) => el("button.ice-button", { ariaLabel: label, title: label, onclick, ...extra }, text);

// A drawing of lines in the colour of the text, 16 by 16.
export const lines = (d, size = 14) => sign("svg", size, [svg("path", { d })]);
const sign = (kind, size, paths) => svg(kind, { viewBox: "0 0 16 16", width: size, height: size, ariaHidden: true }, paths);

// The icon of a kind of node: its shape says the kind as well as its colour.
export function icon(styles, kind, size = 16) {
  const style = styles[kind] ?? styles[""] ?? {};
  const paths = ["fill", "line"].map((name, i) => style.icon?.[i] && svg("path.ice-" + name, { d: style.icon[i] }));
  return colour(sign("svg.ice-icon", size, paths), style);
}

export function colour(node, style) {
  node.style.setProperty("--light", style.light ?? "#616161");
  node.style.setProperty("--dark", style.dark ?? "#bdbdbd");
  return node;
}

const refuse = (event) => event.currentTarget.ariaDisabled === "true" && (event.preventDefault(), event.stopImmediatePropagation());

// A button that can be used now, or not. Never `disabled`: one that has the focus would lose it to the page.
export function enable(button, on) {
  button.ariaDisabled = !on;
  // Once, however often it is said.
  button.addEventListener("click", refuse, true);
  return button;
}

// Draws what is in a box anew. Where that takes away or hides what has the focus, it goes to what stands there now under
// the same name, else to `next` (or what that gives), not to the page.
export function keepFocus(box, draw, next = box) {
  const held = box.contains(document.activeElement) ? document.activeElement : null;
  draw();
  if (!held || held.getClientRects().length) return;
  const name = (one) => one.ariaLabel ?? one.textContent;
  const seen = [...box.querySelectorAll("button, input, select, summary, [tabindex]")].filter((one) => one.getClientRects().length);
  (seen.find((one) => name(one) === name(held)) ?? (typeof next === "function" ? next() : next))?.focus();
}

// Calls `run` when one of the traits changes; returns what ends it.
export function listen(model, names, run) {
  for (const name of names) model.on("change:" + name, run);
  return () => names.forEach((name) => model.off("change:" + name, run));
}

// Selects: a node, a snapshot, one to compare with. What is not given stays.
export function choose(model, change) {
  model.set("selection", { ...model.get("selection"), ...change });
  model.save_changes();
}

// A key that the widget has used is nobody else's.
export function ours(event) {
  event.preventDefault();
  event.stopPropagation();
}

export const count = (n) => n.toLocaleString("en");
export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// Characters that a cell shows of a location.
const WIDE = 36;

// Of a long location, and of a file's name, the end says more than the beginning.
export const tail = (value) => (value.length > WIDE && /^([\w.+:%=~@-]*\/\S|\S+\.[a-z]\w{1,7}$)/i.test(value) ? "…" + value.slice(1 - WIDE) : value);

// Puts text on the clipboard; says whether the browser let us.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
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

// A file for the user. Clicked in the page: VS Code saves what it sees clicked there, and nothing else.
export function saveFile(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// Light or dark, as the page has it: JupyterLab and Notebook, VS Code, documentation sites and Colab, then as its text is:
// a page need not do as the system would like.
export function theme() {
  const { body, documentElement: page } = document;
  const { jpThemeLight: lab, vscodeThemeKind: code } = body.dataset;
  const named = page.dataset.theme ?? page.getAttribute("theme");
  const text = getComputedStyle(body).color;
  let dark = matchMedia(DARK).matches;
  if (lab) dark = lab === "false";
  else if (code) dark = !/light/.test(code);
  else if (/^(dark|light)$/.test(named)) dark = named === "dark";
  else if (/^rgb/.test(text)) dark = Math.max(...text.match(/\d+/g).slice(0, 3)) > 127;
  return dark ? "dark" : "light";
}

// What a canvas in a box paints with: the style sheet's colours by name, `font`, `dark`, and `plain` where the system's
// colours are forced, in which kinds are told by their icons alone. To be followed when the box is in the page: what is
// there is read, and `run` called, then and with every change.
export function inks(box, names, run) {
  const probe = el("span", { hidden: true });
  const medias = ["(forced-colors: active)", "(prefers-contrast: more)"].map((query) => matchMedia(query));
  let themed = null;
  box.append(probe);
  const found = { follow, end };
  function read() {
    for (const name of names) {
      probe.style.color = `var(--ice-${name})`;
      found[name] = getComputedStyle(probe).color;
    }
    const dark = box.closest("[data-ice-theme]")?.dataset.iceTheme === "dark";
    Object.assign(found, { font: getComputedStyle(box).fontFamily, dark, plain: medias[0].matches });
    run();
  }
  function follow() {
    const host = box.closest("[data-ice-theme]");
    if (!host || themed) return;
    // A theme's style sheet may come later.
    themed = new MutationObserver(() => (read(), setTimeout(read, 400)));
    themed.observe(host, { attributes: true, attributeFilter: ["data-ice-theme"] });
    for (const media of medias) media.addEventListener("change", read);
    read();
  }
  function end() {
    // Whoever draws once more, late, follows nothing.
    found.follow = () => {};
    if (!themed) return;
    themed.disconnect();
    for (const media of medias) media.removeEventListener("change", read);
  }
  return found;
}

// The colour of a kind of node, or of another thing that has a look of its own, in a theme's inks.
export const tint = (inks, styles, name, otherwise = "muted") => (inks.plain ? inks.ink : (inks.dark ? styles[name]?.dark : styles[name]?.light) ?? inks[otherwise]);

// Keeps data-ice-theme right while the page's theme changes; returns what ends it.
export function followTheme(root) {
  const apply = () => (root.dataset.iceTheme = theme());
  apply();
  const observer = new MutationObserver(apply);
  observer.observe(document.body, { attributes: true });
  observer.observe(document.documentElement, { attributes: true });
  const media = matchMedia(DARK);
  media.addEventListener("change", apply);
  return () => {
    observer.disconnect();
    media.removeEventListener("change", apply);
  };
}
