/**
 * Canvases: their size, colours, shapes and texts.
 *
 * @module
 */

/** @import { Colours, Look, Model } from "./types.d.ts" */

import { el } from "./dom.js";
import { watchTheme } from "./theme.js";

/** The names of the style sheet's colours: `--ice-paper` and so on. */
const COLOURS = /** @type {const} */ (["paper", "panel", "hover", "ink", "muted", "line", "accent", "chosen"]);
/** The time, in ms, that a theme's style sheet may take to arrive. */
const THEME_DELAY = 400;
/** The maximum number of texts whose shortened forms are cached. */
const MOST_FITTED = 20000;

/**
 * Call `run` when the size of a box changes and when it is added to the page, until the widget is removed.
 *
 * @param {Model} model
 * @param {Element} box
 * @param {ResizeObserverCallback} run
 */
export function onResize(model, box, run) {
  const observer = new ResizeObserver(run);
  observer.observe(box);
  model.onEnd(() => observer.disconnect());
}

/**
 * Return the colours to paint with on a canvas in a box. They are updated when the theme changes.
 *
 * @param {Model} model
 * @param {HTMLElement} box
 * @param {() => void} [repaint] Called when colours change.
 * @param {() => void} [resize] Called when the size of the box changes; the colours are known by then.
 * @returns {Colours}
 */
export function canvasColours(model, box, repaint, resize) {
  const probe = el("span", { hidden: true });
  const forced = matchMedia("(forced-colors: active)");
  const styles = model.styles;
  const found = /** @type {Colours} */ ({
    tint(name) {
      if (found.plain) return found.ink;
      return styles[name]?.[found.dark ? "dark" : "light"] ?? found.muted;
    },
    fill(kind) {
      return (!found.plain && styles[kind]?.fills?.[found.dark ? 1 : 0]) || found.paper;
    },
  });
  /** @type {HTMLElement | null} */
  let root = null;
  box.append(probe);

  function read() {
    for (const name of COLOURS) {
      probe.style.color = `var(--ice-${name})`;
      found[name] = getComputedStyle(probe).color;
    }
    found.font = getComputedStyle(box).fontFamily;
    found.dark = root?.dataset.iceTheme === "dark";
    found.plain = forced.matches;
    repaint?.();
  }
  function readTwice() {
    read();
    setTimeout(read, THEME_DELAY);
  }
  onResize(model, box, () => {
    if (!root) {
      root = box.closest("[data-ice-theme]");
      if (!root) return;
      watchTheme(model, [root], { attributeFilter: ["data-ice-theme", "data-ice-contrast"] }, [forced], readTwice);
      read();
    }
    resize?.();
  });
  return found;
}

/**
 * Give a canvas a size in px, and as many points as the screen has for that size.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 * @returns {CanvasRenderingContext2D} The context with which to draw, in px.
 */
export function resizeCanvas(canvas, width, height) {
  // If the user enlarges the text, the canvas grows, too, and needs more points.
  const ratio = Math.min((devicePixelRatio || 1) * (canvas.currentCSSZoom ?? 1), 3);
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = contextOf(canvas);
  context.scale(ratio, ratio);
  return context;
}

/**
 * Return the drawing context of a canvas.
 *
 * @param {HTMLCanvasElement} canvas
 */
export function contextOf(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/**
 * Fill a path, stroke it, or both.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {() => void} path Adds to the context's path.
 * @param {Look} look
 */
export function drawPath(context, path, { fill, stroke, width = 1, dash = [], alpha = 1 }) {
  context.beginPath();
  path();
  context.globalAlpha = alpha;
  if (fill) {
    context.fillStyle = fill;
    context.fill();
  }
  if (stroke) {
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.stroke();
    context.setLineDash([]);
  }
  context.globalAlpha = 1;
}

/**
 * Write a text.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} text
 * @param {number} x
 * @param {number} y
 * @param {string} colour
 * @param {string} font
 */
export function drawText(context, text, x, y, colour, font) {
  context.fillStyle = colour;
  context.font = font;
  context.fillText(text, x, y);
}

/** The opacity of the shades of cells, as in `iceexplore.render.scenes._cells`. */
export const SHADES = [0.14, 0.3, 0.46, 0.62, 0.8, 1];

/** @type {Map<string, string>} */
const fitted = new Map();

/**
 * Return a text or, if it does not fit, the longest beginning that fits together with an ellipsis.
 *
 * @param {Pick<CanvasRenderingContext2D, "font" | "measureText">} context
 * @param {string} text
 * @param {number} room The available width in px.
 * @param {string} font
 * @returns {string}
 */
export function fitText(context, text, room, font) {
  const key = `${font} ${Math.round(room)} ${text}`;
  const known = fitted.get(key);
  if (known !== undefined) return known;
  context.font = font;
  let found = text;
  if (context.measureText(text).width > room) {
    // Find the longest prefix that fits, by bisection.
    let low = 0;
    let high = text.length;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (context.measureText(text.slice(0, middle) + "…").width <= room) low = middle;
      else high = middle - 1;
    }
    found = text.slice(0, low) + "…";
  }
  if (fitted.size > MOST_FITTED) fitted.clear();
  fitted.set(key, found);
  return found;
}

/**
 * Return a function that schedules `draw` for the next frame, where it is called once however often it was scheduled.
 *
 * @param {Model} model
 * @param {() => void} draw
 * @returns {() => void}
 */
export function inNextFrame(model, draw) {
  let frame = 0;
  model.onEnd(() => cancelAnimationFrame(frame));
  return () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  };
}
