/**
 * Content from Python: texts, lists and tables as blocks of parts, whose form `iceexplore.widgets.core._blocks`
 * documents. All of it is plain text, never markup.
 *
 * @module
 */

/** @import { Block, Model, Part, TableLook } from "./types.d.ts" */

import { copyButton } from "./controls.js";
import { applyColours, changeSelection, el, linkButton, svg } from "./dom.js";

/** The tags of those blocks that are not simply a `div` with the block's name as its class. */
const BLOCK_TAGS = /** @type {Record<string, string>} */ ({ h3: "h3", h: "h4", p: "p" });
/** The kinds of parts that are also the tags of their elements; most others become a `span`. */
const PART_TAGS = ["b", "code"];
/** The minimum width, in percent, of a bar whose value is not 0. */
const THINNEST_BAR = 0.6;

/**
 * Return the elements of blocks.
 *
 * @param {Model} model
 * @param {Block[]} [list]
 * @returns {HTMLElement[]}
 */
export function blocks(model, list = []) {
  /** @param {Part} part */
  function drawPart(part) {
    if (typeof part === "string") return part;
    const [kind, content, more] = /** @type {[string, any, any]} */ (/** @type {unknown} */ (part));
    if (kind === "go") return linkButton(content, () => changeSelection(model, more));
    if (kind === "set") return linkButton(content, () => setTraits(model, more));
    if (kind === "bars") return bars(content);
    if (kind === "sign") return applyColours(el("b.sign", { ariaHidden: true }, content), model.styles[more]);
    return el(PART_TAGS.includes(kind) ? kind : "span", { class: kind, title: more }, content);
  }

  /**
   * @param {Part[][]} heads
   * @param {Part[][][]} rows
   * @param {TableLook} [look]
   */
  function drawTable(heads, rows, { kind = "terms", label, caption, columns = [] } = {}) {
    /** @type {(tag: string, scope: string | null, parts: Part[], column: number) => HTMLElement} */
    const cell = (tag, scope, parts, column) => el(tag, { scope, class: columns[column] }, parts.map(drawPart));
    const head = heads.length > 0 && el("thead", el("tr", heads.map((parts, i) => cell("th", "col", parts, i))));
    const body = rows.map((cells) => {
      // The first cell of a row is its header.
      const [first, ...others] = cells;
      return el("tr", cell("th", "row", first, 0), others.map((parts, i) => cell("td", null, parts, i + 1)));
    });
    return el(`table.${kind}`, { ariaLabel: label }, caption && el("caption", caption), head, el("tbody", body));
  }

  /** @param {Block} block */
  function drawBlock([kind, ...content]) {
    switch (kind) {
      case "list":
        return el("ul", content[0].map((/** @type {Part[]} */ item) => el("li", item.map(drawPart))));
      case "table":
        return drawTable(content[0], content[1], content[2]);
      case "fold":
        return el("details.rest", el("summary", content[0].map(drawPart)), blocks(model, content[1]));
      case "code":
        return el("div.statement", el("pre", content[0]), copyButton("Copy", () => content[0]));
      default:
        return el(BLOCK_TAGS[kind] ?? `div.${kind}`, content[0].map(drawPart));
    }
  }
  return list.map(drawBlock);
}

/**
 * Set traits of the model. A partial selection is merged into the current one, and a query becomes the query of the
 * detail pane's table.
 *
 * @param {Model} model
 * @param {Record<string, any>} traits
 */
function setTraits(model, { query, selection, ...traits }) {
  if (selection) model.set("selection", { ...model.selection, ...selection });
  // `n` is higher than in all earlier queries.
  if (query) model.set("query", { ...model.query, detail: { ...query, n: Date.now() } });
  for (const name in traits) model.save(/** @type {any} */ (name), traits[name]);
}

/**
 * Return bars, drawn one after another in a line. They are decorative: their numbers are beside them as text.
 *
 * @param {[kind: string, share: number][]} parts Shares are from 0 to 1.
 */
function bars(parts) {
  let x = 0;
  const rectangles = parts.map(([kind, share]) => {
    const length = share * 100;
    const width = length && Math.max(THINNEST_BAR, length);
    const rectangle = svg(`rect.${kind}`, { x, width, height: 6 });
    x += length;
    return rectangle;
  });
  return svg("svg.bars", { viewBox: "0 0 100 6", preserveAspectRatio: "none", ariaHidden: true }, rectangles);
}
