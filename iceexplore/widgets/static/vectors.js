/**
 * Deleted positions as a picture and as tables, with a summary from Python.
 *
 * @module
 */

/** @import { Model, Vector } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { button, clamp, el, fill, formatCount, icon, keepFocus, linkButton, listen } from "./dom.js";
import { gridView } from "./grid.js";
import { canvasColours, inNextFrame, resizeCanvas } from "./painting.js";
import { recorded, slideButtons } from "./slide.js";

/** The maximum height of the picture in px. */
const PICTURE_HEIGHT = 132;
/** The smallest and the largest square of the picture, in px. */
const SQUARE = { least: 3, most: 12 };

/** @typedef {"positions" | "runs" | "all"} TableName */

/**
 * The tables with their titles.
 *
 * @type {[TableName, string][]}
 */
const TABLES = [["positions", "Positions"], ["runs", "Ranges"], ["all", "All deletes of the snapshot"]];

/**
 * Return the size of a picture's squares, and the number of squares in a row.
 *
 * @param {number} width The room, in px.
 * @param {number} cells The number of squares.
 * @returns {{ square: number, columns: number }}
 */
export function squareSize(width, cells) {
  const square = clamp(SQUARE.least, Math.floor(Math.sqrt((width * PICTURE_HEIGHT) / cells)), SQUARE.most);
  return { square, columns: Math.max(1, Math.floor(width / square)) };
}

/**
 * Return what a square of the picture shows, as text; undefined if there is no such square.
 *
 * @param {Pick<Vector, "picture" | "borders">} vector
 * @param {number} i The square's index.
 * @returns {string | undefined}
 */
export function describeSquare({ picture: { cells, width, size }, borders }, i) {
  const deleted = cells[i];
  if (deleted === undefined) return undefined;
  const first = i * width;
  const last = Math.min(size, first + width) - 1;
  let text;
  if (first === last) {
    text = `Position ${formatCount(first)}: ${deleted ? "deleted" : "not deleted"}`;
  } else {
    const percent = Number(((100 * deleted) / (last - first + 1)).toPrecision(2));
    const positions = `Positions ${formatCount(first)} to ${formatCount(last)}`;
    text = `${positions}: ${formatCount(deleted)} deleted (${percent} %)`;
  }
  const groups = borders.filter((start) => start <= first).length;
  return groups ? `${text}, row group ${groups - 1}` : text;
}

/**
 * Return the view of deletes.
 *
 * @param {Model} model
 */
export function vectorsView(model) {
  const head = el("div.vector-head");
  const canvas = el("canvas.cells", { role: "img" });
  const legend = el("div.cell-text");
  const pictureBox = el("div.vector-picture", canvas, legend);
  const facts = el("div.vector-facts");
  const tabs = el("div.group", { role: "group", ariaLabel: "Table" });
  const grids = {
    positions: gridView(model, { grid: "positions", label: "Deleted positions" }),
    deletes: gridView(model, { grid: "deletes", label: "Deletes of the snapshot" }),
  };
  const box = el(
    "section.vectors",
    { ariaLabel: "Deletes" },
    head,
    pictureBox,
    facts,
    el("div.vector-tabs", tabs),
    grids.positions.element,
    grids.deletes.element,
  );
  // Paint in the next frame, because painting changes the picture's height, and a box must not change while the browser
  // reports its size.
  const repaint = inNextFrame(model, paint);
  const colours = canvasColours(model, pictureBox, repaint, repaint);
  pictureBox.append(slideButtons(model, "Deleted positions", {
    colours,
    picture() {
      const count = vector().picture?.cells.length ?? 0;
      const size = { width: Math.min(count, columns) * square, height: Math.ceil(count / columns) * square };
      return count > 0 && recorded(size, paintSquares);
    },
    legend: () => [[vector().headline ?? ""], ["deleted", "mark:removed"], [vector().legend ?? ""]],
  }));
  /** @type {TableName} */
  let table = "positions";
  /** The size of the picture's squares, in px, and how many are beside one another. */
  let square = 1;
  let columns = 1;
  let isInView = false;

  /** Return the answer if it belongs to the node that was requested. */
  function vector() {
    return model.vector.node === model.vector_of.node ? model.vector : {};
  }

  // Requests -----------------------------------------------------------------------------------------------------------

  /** @param {Model["vector_of"]} [change] */
  function ask(change) {
    model.save("vector_of", { node: model.selection.node, path: "", footer: false, ...change });
  }
  /** Send a request for the selected node if the view is visible. */
  function look() {
    if (isInView && model.vector_of.node !== model.selection.node) ask();
    showTable();
  }
  /** @param {TableName} name */
  function choose(name) {
    table = name;
    showTable();
  }
  function showTable() {
    if (!isInView) return;
    const { node, path, cardinality } = vector();
    const { snapshot } = model.selection;
    const now = cardinality ? table : "all";
    const offered = TABLES.filter(([name]) => (name === "all" ? snapshot : cardinality));
    keepFocusInBox(() => {
      grids.positions.element.hidden = now === "all";
      grids.deletes.element.hidden = now !== "all" || !snapshot;
      const buttons = offered.map(([name, title]) =>
        button(title, () => choose(name), { "data-key": name, ariaPressed: name === now })
      );
      fill(tabs, buttons);
    });
    if (now !== "all") grids.positions.look(`${node}\n${path}`, now);
    else if (snapshot) grids.deletes.look(snapshot, now);
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  /** @param {() => void} draw */
  function keepFocusInBox(draw) {
    keepFocus(box, draw, () => /** @type {HTMLElement | null} */ (tabs.firstChild));
  }
  function waitingText() {
    const { missed, ...request } = model.vector_of;
    return missed ? [missed, " ", linkButton("Try again", () => ask(request))] : "Reading …";
  }
  function draw() {
    const { kind = "", title, headline, of, notes, paths = [], path, facts: texts, unread, picture } = vector();
    keepFocusInBox(() => {
      fill(
        head,
        headline && el(
          "div.title",
          icon(model.styles, kind, 20),
          el("div.name", el("span.kind", title), el("strong", headline)),
        ),
        of && el("div.path", of),
        notes ? notes.map((text) => el("div.evidence", text)) : el("div.evidence", waitingText()),
        paths.length > 0 && el("label.evidence", "Data file ", pathBox(paths, path)),
      );
      pictureBox.hidden = !picture;
      const readFooter = unread && button(unread, () => ask({ path, footer: true }));
      fill(facts, blocks(model, texts), readFooter);
    });
    showTable();
    paint();
  }
  /**
   * @param {Vector["paths"]} paths
   * @param {string | undefined} chosen
   */
  function pathBox(paths, chosen) {
    const offered = paths.map(([value, positions, name]) =>
      el("option", { value, selected: value === chosen }, `${formatCount(positions)} in ${name}`)
    );
    const select = el("select.select.wide-select", { onchange: pick }, offered);
    function pick() {
      ask({ path: select.value });
    }
    return select;
  }
  function paint() {
    const width = pictureBox.clientWidth;
    // The colours are known once the box has its first size.
    if (!width || !colours.line) return;
    const { label = "", legend: text = "", picture } = vector();
    if (!picture) return;
    const { cells } = picture;
    ({ square, columns } = squareSize(width, cells.length));
    const pictureWidth = columns * square;
    const pictureHeight = Math.ceil(cells.length / columns) * square;
    const context = resizeCanvas(canvas, pictureWidth, pictureHeight);
    canvas.style.width = `${pictureWidth}px`;
    canvas.style.height = `${pictureHeight}px`;
    canvas.hidden = cells.length === 0;
    canvas.ariaLabel = label;
    legend.textContent = text;
    paintSquares(context);
  }
  /** @param {CanvasRenderingContext2D} context */
  function paintSquares(context) {
    const { borders = [], picture } = vector();
    if (!picture) return;
    const { cells, width: positions } = picture;
    const { line, accent, plain, tint } = colours;
    const deletedColour = plain ? accent : tint("mark:removed");
    const gap = square > 4 ? 1 : 0.5;
    /**
     * @param {number} i
     * @param {string} colour
     * @param {number} alpha
     * @param {number} [squareWidth]
     */
    function paintSquare(i, colour, alpha, squareWidth = square - gap) {
      context.globalAlpha = alpha;
      context.fillStyle = colour;
      context.fillRect((i % columns) * square, Math.floor(i / columns) * square, squareWidth, square - gap);
    }
    cells.forEach((deleted, i) => {
      // With forced colours, lines are as bright as text, so the squares are painted paler.
      paintSquare(i, line, plain ? 0.25 : 1);
      if (deleted) paintSquare(i, deletedColour, 0.15 + 0.85 * Math.sqrt(deleted / positions));
    });
    for (const start of borders) {
      if (start > 0) paintSquare(Math.floor(start / positions), accent, 1, 2);
    }
  }

  listen(canvas, {
    pointermove({ offsetX, offsetY }) {
      const { borders = [], picture } = vector();
      if (!picture) return;
      const i = Math.floor(offsetY / square) * columns + Math.floor(offsetX / square);
      const text = describeSquare({ borders, picture }, i);
      if (text !== undefined) legend.textContent = text;
    },
    pointerleave: paint,
  });

  const observer = new IntersectionObserver((entries) => {
    isInView = entries[entries.length - 1].isIntersecting;
    look();
  });
  observer.observe(box);
  model.onEnd(() => observer.disconnect());
  model.follow(["vector", "vector_of"], draw);
  model.onChange("selection", look);
  return box;
}
