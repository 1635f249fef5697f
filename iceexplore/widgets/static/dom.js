// Elements, icons and themes. Text only ever becomes text nodes: nothing from a table is parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("aria-")) node.setAttribute(key, String(value));
    else if (value === false) continue;
    else if (key === "class") node.className = value;
    else if (key === "style") for (const [name, v] of Object.entries(value)) node.style.setProperty(name, v);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== undefined && child !== null) node.append(child);
  return node;
}

// A drawing of lines in the colour of the text, 16 by 16.
export function lines(d, size = 14) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" })) svg.setAttribute(key, value);
  path.setAttribute("d", d);
  svg.append(path);
  return svg;
}

// The icon of a kind of node: its shape says the kind as well as its colour.
export function icon(styles, kind, size = 16) {
  const style = styles[kind] ?? styles[""] ?? {};
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("width", size);
  svg.setAttribute("height", size);
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "ice-icon");
  colour(svg, style);
  for (const [index, name] of [[0, "ice-fill"], [1, "ice-line"]]) {
    const d = style.icon?.[index];
    if (!d) continue;
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", d);
    path.setAttribute("class", name);
    svg.append(path);
  }
  return svg;
}

export function colour(node, style) {
  node.style.setProperty("--light", style.light ?? "#616161");
  node.style.setProperty("--dark", style.dark ?? "#bdbdbd");
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

const WIDE = 36; // characters that a cell shows of a location

// Of a long location the end says more than the beginning.
export const tail = (value) => (value.length > WIDE && /^([a-z][a-z0-9+.-]*:\/)?\//i.test(value) ? "…" + value.slice(1 - WIDE) : value);

// Puts text on the clipboard; says whether the browser let us.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // no permission, or no secure context: as it was done before there was one
    const held = document.activeElement;
    const area = el("textarea", { style: { position: "fixed", opacity: 0 }, "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    held?.focus();
    return done;
  }
}

// Light or dark, as the page has it: JupyterLab and Notebook, VS Code, documentation sites, then the system.
export function theme() {
  const body = document.body.dataset;
  if (body.jpThemeLight !== undefined) return body.jpThemeLight === "false" ? "dark" : "light";
  const code = body.vscodeThemeKind;
  if (code !== undefined) return /light/.test(code) ? "light" : "dark";
  const page = document.documentElement.dataset.theme;
  if (page === "dark" || page === "light") return page;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

// Keeps data-ice-theme right while the page's theme changes; returns what ends it.
export function followTheme(root) {
  const apply = () => (root.dataset.iceTheme = theme());
  apply();
  const observer = new MutationObserver(apply);
  observer.observe(document.body, { attributes: true });
  observer.observe(document.documentElement, { attributes: true });
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", apply);
  return () => {
    observer.disconnect();
    media.removeEventListener("change", apply);
  };
}
