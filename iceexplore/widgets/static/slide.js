/**
 * Pictures for slides: any picture of a widget on a page of 16 : 9 with its title, caption and legend, to copy or save
 * as PNG or SVG. What a canvas shows is recorded as SVG.
 *
 * @module
 */

/** @import { Colours, LegendItem, Model, SlidePicture } from "./types.d.ts" */

import { el, fill, saveFile, smallButton } from "./dom.js";
import { contextOf, fitText } from "./painting.js";

/** Sizes in px: the page and its margin, the small font, and the distance between lines in it. */
const SLIDE = { width: 1920, height: 1080, margin: 64, small: 22, line: 40 };
/** How long, in ms, a button shows its result. */
const RESULT_TIME = 1500;
/** Characters that XML cannot contain, or that must be escaped. */
const NOT_XML = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]|[&<>"]/gu;

/**
 * Return a text as SVG contains it: escaped, without characters that XML cannot contain.
 *
 * @param {unknown} text
 */
export function escapeXml(text) {
  return String(text).replace(NOT_XML, (sign) => ('&<>"'.includes(sign) ? `&#${sign.charCodeAt(0)};` : "\ufffd"));
}

/**
 * Return an element as SVG.
 *
 * @param {string} name
 * @param {Record<string, unknown>} attributes
 * @param {string} [inside] The element's content, as SVG.
 */
function tag(name, attributes, inside = "") {
  // The minifier does not support nested template literals.
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeXml(value)}"`).join("");
  return `<${name}${written}>${inside}</${name}>`;
}

/** @param {number} n */
function round(n) {
  return Math.round(n * 100) / 100;
}

/**
 * Return what a painter draws, as SVG. The painter gets an object with those parts of `CanvasRenderingContext2D` that
 * the widgets' painters use: transformations only move and scale, and circles are whole.
 *
 * @param {{ width: number, height: number }} size
 * @param {(paper: CanvasRenderingContext2D) => void} paint
 * @returns {SlidePicture}
 */
export function recorded(size, paint) {
  /** @type {string[]} */
  const parts = [];
  /** @type {CanvasRenderingContext2D | undefined} */
  let ruler;
  let d = "";
  let [scale, left, top] = [1, 0, 0];
  /** @type {number[]} */
  let dash = [];
  const at = (/** @type {number} */ a, /** @type {number} */ b) =>
    `${round(a * scale + left)} ${round(b * scale + top)}`;
  const by = (/** @type {number} */ n) => round(n * scale);
  /** @type {(name: string, attributes: Record<string, unknown>, inside?: string) => void} */
  function add(name, attributes, inside) {
    parts.push(tag(name, { ...attributes, opacity: paper.globalAlpha }, inside));
  }
  /**
   * @param {(Path2D & { d?: string }) | undefined} own A path with coordinates of its own.
   * @param {Record<string, unknown>} look
   */
  function addPath(own, look) {
    const transform = own ? `translate(${at(0, 0)}) scale(${by(1)})` : "";
    add("path", { d: own ? own.d : d, transform, ...look });
  }
  /** @type {any} */
  const paper = {
    globalAlpha: 1,
    lineWidth: 1,
    font: "",
    setTransform: (/** @type {number[]} */ ...[a, , , , e, f]) => [scale, left, top] = [a, e, f],
    translate: (/** @type {number} */ x, /** @type {number} */ y) => [left, top] = [left + x * scale, top + y * scale],
    scale: (/** @type {number} */ factor) => scale *= factor,
    clearRect() {},
    setLineDash: (/** @type {number[]} */ next) => dash = next,
    beginPath: () => d = "",
    closePath: () => d += "Z",
    moveTo: (/** @type {number} */ x, /** @type {number} */ y) => d += `M${at(x, y)}`,
    lineTo: (/** @type {number} */ x, /** @type {number} */ y) => d += `${d ? "L" : "M"}${at(x, y)}`,
    bezierCurveTo: (/** @type {number[]} */ ...[a, b, c, e, x, y]) => d += `C${at(a, b)} ${at(c, e)} ${at(x, y)}`,
    arc: (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ r) =>
      paper.roundRect(x - r, y - r, 2 * r, 2 * r, r),
    rect: (/** @type {number[]} */ ...[x, y, width, height]) =>
      d += `M${at(x, y)}h${by(width)}v${by(height)}h${by(-width)}Z`,
    roundRect(/** @type {number[]} */ ...[x, y, width, height, radius]) {
      const r = by(radius);
      const [w, h] = [by(width - 2 * radius), by(height - 2 * radius)];
      const arc = `a${r} ${r} 0 0 1 `;
      d += `M${
        at(x + radius, y)
      }h${w}${arc}${r} ${r}v${h}${arc}${-r} ${r}h${-w}${arc}${-r} ${-r}v${-h}${arc}${r} ${-r}Z`;
    },
    fill: (/** @type {Path2D} */ own) => addPath(own, { fill: paper.fillStyle }),
    stroke(/** @type {Path2D} */ own) {
      const width = own ? paper.lineWidth : by(paper.lineWidth);
      const dashes = dash.map(by).join(" ") || "none";
      addPath(own, { fill: "none", stroke: paper.strokeStyle, "stroke-width": width, "stroke-dasharray": dashes });
    },
    fillRect(/** @type {number[]} */ ...box) {
      paper.beginPath();
      paper.rect(...box);
      paper.fill();
    },
    fillText(/** @type {string} */ text, /** @type {number} */ x, /** @type {number} */ y) {
      const [, weight, px] = paper.font.match(/^(\w*) ?\b([\d.]+)px/) ?? [];
      const baseline = paper.textBaseline === "middle" ? y + px * 0.36 : y;
      const look = { fill: paper.fillStyle, "font-size": by(px), "font-weight": weight || "normal" };
      add("text", { transform: `translate(${at(x, baseline)})`, ...look }, escapeXml(text));
    },
    measureText(/** @type {string} */ text) {
      ruler ??= contextOf(el("canvas"));
      ruler.font = paper.font;
      return ruler.measureText(text);
    },
  };
  paint(paper);
  return { ...size, svg: parts.join("\n") };
}

/**
 * Return the picture in an SVG document from Python. If it would follow the system's theme, it follows the widget's.
 *
 * @param {string} source
 * @param {Pick<Colours, "dark">} colours
 * @returns {SlidePicture}
 */
export function pictureOf(source, { dark }) {
  const [, width, height] = source.match(/^<svg[^>]* width="([\d.]+)" height="([\d.]+)"/) ?? [0, 1, 1];
  const svg = source.replaceAll("(prefers-color-scheme:dark)", dark ? "all" : "not all");
  return { svg, width: Number(width), height: Number(height) };
}

/**
 * Return a slide as SVG: a page with a title, a caption, a picture and its legend.
 *
 * @param {Pick<Model, "title" | "caption" | "styles">} model
 * @param {SlidePicture} picture
 * @param {string} name
 * @param {LegendItem[]} legend
 * @param {Colours} colours
 * @param {Pick<CanvasRenderingContext2D, "font" | "measureText">} ruler
 */
export function slide({ title, caption = "", styles }, picture, name, legend, colours, ruler) {
  const { width, height, margin, small, line } = SLIDE;
  const heading = `${name} of ${title}`;
  /** @type {(text: string, x: number, y: number, size: number, fill: string) => string} */
  function write(text, x, y, size, fill) {
    const shown = fitText(ruler, text, width - margin - x, `${size}px ${colours.font}`);
    return tag("text", { x, y, fill, "font-size": size }, escapeXml(shown));
  }
  // Lay out the legend from left to right, in as many lines as it needs.
  let [x, y] = [margin, 182];
  const signs = legend.filter(([text]) => text).map(([text, look = ""]) => {
    ruler.font = `${small}px ${colours.font}`;
    const need = ruler.measureText(text).width + 64;
    if (x > margin && x + need > width - margin) [x, y] = [margin, y + line];
    const { icon: [filled, stroked] = ["", ""], corners, sign = "" } = styles[look] ?? {};
    const fill = colours.tint(look);
    let shape = tag("path", { d: filled, fill }) + tag("path", { d: stroked, fill: "none", stroke: fill });
    if (corners) {
      shape = tag("polygon", { points: corners.map(([dx, dy]) => [8 + 6 * dx, 8 + 6 * dy]).join(" "), fill });
    } else if (look.startsWith("operation")) shape = tag("circle", { cx: 8, cy: 8, r: 5, fill });
    else if (sign) shape = write(sign, 3, 14, 18, fill);
    const group = tag("g", { transform: `translate(${x} ${y - 18}) scale(1.4)` }, shape);
    const words = write(text, look ? x + 32 : x, y, small, colours.muted);
    x += need;
    return look ? group + words : words;
  });
  const top = y + line / 2;
  const box = { x: margin, y: top, width: width - 2 * margin, height: height - margin / 2 - top };
  const inside = [
    tag("title", {}, escapeXml(`${heading}, ${caption}`)),
    tag("rect", { width, height, fill: colours.paper }),
    write(heading, margin, 92, 2 * small, colours.ink),
    write(caption, margin, 134, small, colours.muted),
    tag("svg", { ...box, viewBox: `0 0 ${picture.width} ${picture.height}` }, picture.svg),
    ...signs,
  ];
  const page = { xmlns: "http://www.w3.org/2000/svg", width, height, "font-family": colours.font };
  return tag("svg", page, inside.join("\n"));
}

/**
 * Return a page as a PNG file.
 *
 * @param {string} page
 * @returns {Promise<Blob>}
 */
async function pngOf(page) {
  const image = new Image();
  // If the image came from a blob, Safari would not return what was drawn.
  image.src = `data:image/svg+xml,${encodeURIComponent(page)}`;
  await image.decode();
  const canvas = el("canvas", { width: SLIDE.width, height: SLIDE.height });
  contextOf(canvas).drawImage(image, 0, 0);
  return new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail()), "image/png"));
}

/**
 * Return the name of a file, without its ending.
 *
 * @param {Pick<Model, "title">} model
 * @param {string} what
 */
export function fileName({ title }, what) {
  return `${(title || "table").slice(0, 60)}-${what.toLowerCase()}`.replace(/[^\w.-]+/g, "-");
}

/**
 * Return the buttons that copy a picture and save it.
 *
 * @param {Model} model
 * @param {string} name What the picture shows, for its title and the names of its files: "Tree".
 * @param {object} options
 * @param {Colours} options.colours
 * @param {() => SlidePicture | Promise<SlidePicture> | false | "" | undefined} options.picture
 * @param {() => LegendItem[]} options.legend
 * @param {() => void} [options.done] Called after each copying or saving.
 * @param {string} [options.caption] The caption, if it is not that of the selected snapshot.
 */
export function slideButtons(model, name, { colours, picture, legend, done, caption }) {
  async function page() {
    const drawn = await picture();
    if (!drawn) throw new Error("nothing to draw");
    const { title, styles } = model;
    return slide(
      { title, caption: caption ?? model.caption, styles },
      drawn,
      name,
      legend(),
      colours,
      contextOf(el("canvas")),
    );
  }
  /** @type {(blob: Blob, ending: string) => void} */
  const save = (blob, ending) => saveFile(model, blob, `${fileName(model, name)}.${ending}`);
  /** @type {Record<string, () => Promise<void>>} */
  const ways = {
    // Safari allows copying only while it handles the click, so it gets a promise of the picture.
    Copy: async () => {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": page().then(pngOf) })]);
      model.say("Copied the picture");
    },
    PNG: async () => save(await pngOf(await page()), "png"),
    SVG: async () => save(new Blob([await page()], { type: "image/svg+xml" }), "svg"),
  };
  const buttons = Object.entries(ways).map(([way, run]) => {
    const button = smallButton(way, `${way}: ${name}`, async () => {
      fill(button, await run().then(() => "Done", () => "Failed"));
      setTimeout(() => fill(button, way), RESULT_TIME);
      done?.();
    });
    return button;
  });
  return el("span.group.end", { role: "group", ariaLabel: `Picture: ${name}` }, buttons);
}
