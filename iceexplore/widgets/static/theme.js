// Light or dark, and what canvases paint with.

import { el } from "./dom.js";

const DARK = "(prefers-color-scheme: dark)";
const CONTRAST = "(prefers-contrast: more)";
const COLOURS = "paper panel hover ink muted line accent chosen".split(" ");

// Light or dark, as the page has it: JupyterLab and Notebook, VS Code, documentation sites and Colab, then as its text is:
// a page need not do as the system would like.
function theme() {
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

// Calls `run` when attributes of the nodes change, or what the system is asked, until the widget ends.
function watch(model, nodes, attributes, medias, run) {
  const observer = new MutationObserver(run);
  for (const node of nodes) observer.observe(node, attributes);
  for (const media of medias) media.addEventListener("change", run);
  model.end(() => {
    observer.disconnect();
    for (const media of medias) media.removeEventListener("change", run);
  });
}

// Keeps data-ice-theme right while the page's theme changes, and data-ice-contrast, which is there where more contrast is
// asked for: by the system, or by a theme of VS Code, of which the system need not know.
export function followTheme(model, root) {
  const medias = [DARK, CONTRAST].map((query) => matchMedia(query));
  const apply = () => {
    root.toggleAttribute(
      "data-ice-contrast",
      medias[1].matches || document.body.classList.contains("vscode-high-contrast"),
    );
    root.dataset.iceTheme = theme();
  };
  apply();
  watch(model, [document.body, document.documentElement], { attributes: true }, medias, apply);
}

// Calls `run` when a box has another size, and when it comes into the page.
export function resized(model, box, run) {
  const observer = new ResizeObserver(run);
  observer.observe(box);
  model.end(() => observer.disconnect());
}

// What a canvas in a box paints with: the style sheet's colours by name, `font`, `dark`, `plain` where the system's
// colours are forced, in which kinds are told by their icons alone, and `tint` of what has a look of its own in `styles`,
// as a kind of node. They are there when `resize` is called, as by `resized`; with every change of them `run` is.
export function inks(model, box, run, resize) {
  const probe = el("span", { hidden: true });
  const medias = [matchMedia("(forced-colors: active)")];
  const styles = model.styles;
  const found = {
    tint: (name) => (found.plain ? found.ink : styles[name]?.[found.dark ? "dark" : "light"] ?? found.muted),
  };
  let host = null;
  box.append(probe);
  function read() {
    for (const name of COLOURS) {
      probe.style.color = `var(--ice-${name})`;
      found[name] = getComputedStyle(probe).color;
    }
    Object.assign(found, {
      font: getComputedStyle(box).fontFamily,
      dark: host.dataset.iceTheme === "dark",
      plain: medias[0].matches,
    });
    run();
  }
  resized(model, box, () => {
    if (!host) {
      host = box.closest("[data-ice-theme]");
      if (!host) return;
      // A theme's style sheet may come later.
      watch(
        model,
        [host],
        { attributeFilter: ["data-ice-theme", "data-ice-contrast"] },
        medias,
        () => (read(), setTimeout(read, 400)),
      );
      read();
    }
    resize();
  });
  return found;
}

// A canvas of so many px, and as many points as the screen has for them; returns what draws on it, in px.
export function stretch(canvas, width, height) {
  const ratio = Math.min(devicePixelRatio || 1, 3);
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

// Fills a path, strokes it, or both: `trace(c, () => c.rect(...), { fill, stroke, width, dash, alpha })`.
export function trace(c, path, { fill, stroke, width = 1, dash = [], alpha = 1 }) {
  c.beginPath();
  path();
  c.globalAlpha = alpha;
  if (fill) {
    c.fillStyle = fill;
    c.fill();
  }
  if (stroke) {
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.setLineDash(dash);
    c.stroke();
    c.setLineDash([]);
  }
  c.globalAlpha = 1;
}

export function write(c, text, x, y, fill, font) {
  c.fillStyle = fill;
  c.font = font;
  c.fillText(text, x, y);
}

// Texts as they fit.
const cut = new Map();

// A text as far as it has room.
export function fitted(c, text, room, font) {
  const key = `${font} ${Math.round(room)} ${text}`;
  let found = cut.get(key);
  if (found !== undefined) return found;
  c.font = font;
  found = text;
  if (c.measureText(text).width > room) {
    let [low, high] = [0, text.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(text.slice(0, middle) + "…").width <= room) low = middle;
      else high = middle - 1;
    }
    found = text.slice(0, low) + "…";
  }
  if (cut.size > 20000) cut.clear();
  cut.set(key, found);
  return found;
}

// What has `draw` called in the next frame, once however often it is asked for.
export function framed(model, draw) {
  let frame = 0;
  model.end(() => cancelAnimationFrame(frame));
  return () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  };
}
