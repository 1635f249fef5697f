/**
 * The picture of a forest (one tree or several) on a canvas that pans and zooms, with an overview in a corner.
 *
 * @module
 */

/** @import { Arrangement, Model, SlidePicture, Styles, TreeNode, TreeRow, TreeState, Viewport } from "./types.d.ts" */

import { CARD, CELL } from "./arrangement.js";
import { clamp, el, listen, timer } from "./dom.js";
import { gestures } from "./gestures.js";
import { canvasColours, contextOf, inNextFrame, resizeCanvas } from "./painting.js";
import { recorded } from "./slide.js";
import { cardPainter, HEADINGS, WORDS_SCALE } from "./treeCards.js";

const SMALLEST_SCALE = 0.03;
const LARGEST_SCALE = 2.5;
/** The scale at which cards are read comfortably. */
const READABLE_SCALE = 0.9;
/** The margin, in px, around the outermost cards. */
const EDGE = 40;
/** The distance, in px, that a card has from the edge after it was brought into view. */
const MARGIN = 16;
/** The distances, in px, by which the sign for unfolding extends beyond its card, and into it. */
const TWISTY_BEYOND = 13;
const TWISTY_INSIDE = 12;
/** The delay of the tooltip in ms. */
const TIP_DELAY = 350;
/** The minimum size, in px, of a canvas with an overview. */
const OVERVIEW_NEEDS = { width: 450, height: 220 };
/** The maximum size of the overview, without its border, and the width of the border, in px. */
const OVERVIEW = { width: 124, height: 84, border: 4 };
/** The distance of the overview from the edges, in px. */
const MINI_MARGIN = 10;
/** The room for a picture on a slide, in px. */
const SLIDE_ROOM = { width: 1790, height: 800 };

/**
 * The place of a card in px of the canvas.
 *
 * @typedef {{ x: number, y: number, width: number, height: number, scale: number }} CardPlace
 */

/**
 * Return the id of the node, or of the first of some nodes, that a cell of a card represents.
 *
 * @param {TreeNode} node
 * @param {number} at
 */
export function cellId({ cells }, at) {
  if (!cells) return "";
  const { names, kinds, below, rows } = cells;
  return `${names[Number(kinds[at])].endsWith("-manifest") ? "manifest" : "file"}:${below}:${rows[at]}`;
}

/**
 * Return the element that shows the picture of a forest, and functions that control it.
 *
 * @param {Model} model
 * @param {object} options
 * @param {Styles} options.styles
 * @param {(row: TreeRow) => void} options.onSelect A card was clicked.
 * @param {(id: string) => void} options.onCell A cell of a card was clicked, which represents this node.
 * @param {(row: TreeRow) => void} options.onToggle A card was double-clicked, or its sign for unfolding was clicked.
 */
export function treeCanvas(model, { styles, onSelect, onToggle, onCell }) {
  const canvas = el("canvas.canvas", { ariaHidden: true });
  // The overview: all cards, and a frame around those that are in view.
  const overview = el("canvas");
  const frame = el("div.frame");
  const mini = el("div.mini", { ariaHidden: true, hidden: true }, overview, frame);
  const tip = el("div.tip", { role: "tooltip", hidden: true });
  const box = el("div.picture", canvas, mini, tip);
  /** @type {Viewport} */
  const view = { x: 0, y: 0, scale: 1, width: 0, height: 0 };
  /** @type {Arrangement} */
  let arrangement = { rows: [], byId: new Map(), blocks: [], columns: [], width: 0, height: 0 };
  /** @type {TreeState} */
  const state = { selected: null, focus: null, hovered: null, hits: new Set() };
  const wait = timer(model);
  /** Whether the overview must be drawn again, because cards or colours have changed. */
  let overviewIsOld = true;
  /** The scale and sizes for which the overview was put into its corner. */
  let placedFor = "";

  // Colours and sizes --------------------------------------------------------------------------------------------------

  const redraw = inNextFrame(model, draw);
  const colours = canvasColours(model, box, recolour, resize);
  const cards = cardPainter(colours, styles);

  function recolour() {
    overviewIsOld = true;
    redraw();
  }
  function resize() {
    const { clientWidth: width, clientHeight: height } = box;
    if (!width || !height) return;
    const isFirst = view.width === 0;
    resizeCanvas(canvas, width, height);
    view.width = width;
    view.height = height;
    if (isFirst) showBeginning();
    else limit();
    // Draw now, not in the next frame, because a canvas that was resized is empty.
    draw();
  }

  // Positions ----------------------------------------------------------------------------------------------------------

  /** Keep cards in view. */
  function limit() {
    for (const [axis, side] of /** @type {const} */ ([["x", "width"], ["y", "height"]])) {
      // The space at the edges is large, so that a card near one can keep its position when it is unfolded.
      const edge = Math.max(EDGE, view[side] * 0.45);
      const slack = view[side] - arrangement[side] * view.scale - edge;
      view[axis] = clamp(Math.min(edge, slack), view[axis], Math.max(edge, slack));
    }
  }
  /**
   * @param {number} x
   * @param {number} y
   * @param {number} [scale]
   * @returns {boolean} Whether that moved anything.
   */
  function moveTo(x, y, scale = view.scale) {
    const before = { ...view };
    Object.assign(view, { x, y, scale });
    limit();
    if (view.x === before.x && view.y === before.y && view.scale === before.scale) return false;
    hideTip();
    redraw();
    return true;
  }
  /** Return the scale at which all cards are in view. */
  function wholeScale() {
    const room = view.height - EDGE - HEADINGS;
    return Math.min((view.width - EDGE) / arrangement.width, room / arrangement.height);
  }
  /**
   * @param {number} dx
   * @param {number} dy
   */
  function pan(dx, dy) {
    return moveTo(view.x + dx, view.y + dy);
  }
  /**
   * Zoom around a point of the canvas.
   *
   * @param {number} by
   * @param {number} [x]
   * @param {number} [y]
   */
  function zoom(by, x = view.width / 2, y = view.height / 2) {
    const scale = clamp(Math.min(SMALLEST_SCALE, wholeScale()), view.scale * by, LARGEST_SCALE);
    const change = scale / view.scale;
    return moveTo(x - (x - view.x) * change, y - (y - view.y) * change, scale);
  }
  /** Show all cards; if the forest is very tall, fit only its width and show its top. */
  function fit() {
    const isHigh = wholeScale() < 0.1;
    const scale = Math.min(isHigh ? (view.width - EDGE) / arrangement.width : wholeScale(), 1.1);
    const top = isHigh ? EDGE : (view.height + HEADINGS - arrangement.height * scale) / 2;
    moveTo((view.width - arrangement.width * scale) / 2, top, scale);
  }
  /** Show all cards if they are readable at that scale; otherwise, the selected node and its children. */
  function showBeginning() {
    if (wholeScale() > 0.8) return fit();
    moveTo(EDGE / 2, EDGE / 2, READABLE_SCALE);
    const row = state.selected !== null && arrangement.byId.get(state.selected);
    if (!row) return;
    const [x, y] = [row.x * READABLE_SCALE, row.y * READABLE_SCALE];
    // If possible, the last column is in view, too, with its signs for unfolding.
    const whole = view.width - MARGIN - (arrangement.width + TWISTY_BEYOND) * READABLE_SCALE;
    moveTo(clamp(MARGIN - x, whole, EDGE - x), view.height / 2 - y, READABLE_SCALE);
  }
  /**
   * Return the place of a card.
   *
   * @param {string} id
   * @returns {CardPlace | undefined}
   */
  function placeOf(id) {
    const row = arrangement.byId.get(id);
    if (!row) return undefined;
    const { x, y, scale } = view;
    return {
      x: row.x * scale + x,
      y: row.y * scale + y,
      width: row.width * scale,
      height: row.height * scale,
      scale,
    };
  }
  /**
   * Show a card: move as little as necessary to bring it into view, or zoom until it is readable.
   *
   * @param {string} id
   */
  function reveal(id) {
    const row = arrangement.byId.get(id);
    const card = placeOf(id);
    if (!row || !card || !view.width) return;
    const { width, height, scale } = view;
    /** @type {(start: number, size: number, room: number, first?: number) => number} */
    const distance = (start, size, room, first = MARGIN) => clamp(first, start, room - size - MARGIN - 20) - start;
    const isNear = Math.abs(card.x - width / 2) < width && Math.abs(card.y - height / 2) < height;
    if (isNear && scale >= WORDS_SCALE) {
      pan(distance(card.x, card.width, width), distance(card.y, card.height, height, MARGIN + HEADINGS));
    } else {
      const next = scale < WORDS_SCALE ? READABLE_SCALE : scale;
      moveTo(width / 3 - row.x * next, height / 2 - row.y * next, next);
    }
  }
  /**
   * Show a new arrangement of cards.
   *
   * @param {Arrangement} next
   * @param {string} anchor The id of the card that stays where it is on the screen.
   */
  function show(next, anchor) {
    const before = arrangement.byId.get(anchor);
    const after = next.byId.get(anchor);
    const wasEmpty = !arrangement.rows.length;
    arrangement = next;
    overviewIsOld = true;
    if (before && after) {
      view.x += (before.x - after.x) * view.scale;
      view.y += (before.y - after.y) * view.scale;
    }
    if (!view.width) return;
    if (wasEmpty) showBeginning();
    limit();
    redraw();
  }
  /**
   * Return the row whose card is under the pointer.
   *
   * @param {MouseEvent} event
   */
  function rowAt({ offsetX, offsetY }) {
    const x = (offsetX - view.x) / view.scale;
    const y = (offsetY - view.y) / view.scale;
    return arrangement.rows.find((row) => {
      const right = row.x + row.width + (row.node.leaf || row.isCell ? 0 : TWISTY_BEYOND);
      return x >= row.x && x <= right && y >= row.y && y <= row.y + row.height;
    });
  }
  /**
   * Return the index of the cell, in a card that has cells, under the pointer; -1 if there is none.
   *
   * @param {TreeRow} row
   * @param {MouseEvent} event
   */
  function cellIn({ node, x, y }, { offsetX, offsetY }) {
    const column = Math.floor(((offsetX - view.x) / view.scale - x - CARD.gapY) / CELL.pitch);
    const line = Math.floor(((offsetY - view.y) / view.scale - y - CARD.height) / CELL.pitch);
    const at = line * CELL.columns + column;
    return line >= 0 && column >= 0 && column < CELL.columns && at < (node.cells?.kinds.length ?? 0) ? at : -1;
  }
  /**
   * @param {TreeRow} row
   * @param {MouseEvent} event
   */
  function isOnTwisty(row, { offsetX }) {
    if (row.node.leaf || row.isCell || view.scale < WORDS_SCALE) return false;
    return (offsetX - view.x) / view.scale > row.x + row.width - TWISTY_INSIDE;
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  function draw() {
    if (!view.width) return;
    cards.paint(contextOf(canvas), canvas.width / view.width, view, arrangement, state);
    drawMini();
  }

  // The overview -------------------------------------------------------------------------------------------------------

  function miniScale() {
    return Math.min(OVERVIEW.width / arrangement.width, OVERVIEW.height / arrangement.height);
  }
  function drawMini() {
    const { x, y, scale, width, height } = view;
    const isLarger = arrangement.width * scale > width || arrangement.height * scale > height;
    mini.hidden = !isLarger || width < OVERVIEW_NEEDS.width || height < OVERVIEW_NEEDS.height;
    if (mini.hidden) return;
    const small = miniScale();
    if (overviewIsOld) drawOverview(small);
    const shape = [scale, width, height].join();
    if (overviewIsOld || shape !== placedFor) placeMini();
    overviewIsOld = false;
    placedFor = shape;
    const left = OVERVIEW.border - (x / scale) * small;
    const top = OVERVIEW.border - (y / scale) * small;
    const right = left + (width / scale) * small;
    const bottom = top + (height / scale) * small;
    const inset = [top, overview.width - right, overview.height - bottom, left];
    frame.style.inset = inset.map((px) => `max(0px, ${px}px)`).join(" ");
  }
  /**
   * Put the overview into the corner in which it covers the fewest cards. It stays there while the picture is moved,
   * and cards can be moved out from under it.
   */
  function placeMini() {
    const [wide, high] = [overview.width + 2 * MINI_MARGIN, overview.height + 2 * MINI_MARGIN];
    const corners = [[false, true], [false, false], [true, true], [true, false]].map(([isLeft, isBottom]) => {
      const x = isLeft ? 0 : view.width - wide;
      const y = isBottom ? view.height - high : HEADINGS;
      const covered = arrangement.rows.filter((row) => {
        const [left, top] = [row.x * view.scale + view.x, row.y * view.scale + view.y];
        const isBeside = left > x + wide || left + row.width * view.scale < x;
        return !isBeside && top < y + high && top + row.height * view.scale > y;
      });
      return { isLeft, isBottom, count: covered.length };
    });
    const { isLeft, isBottom } = corners.reduce((best, one) => (one.count < best.count ? one : best));
    const [near, below] = [`${MINI_MARGIN}px`, `${MINI_MARGIN + HEADINGS}px`];
    Object.assign(mini.style, {
      left: isLeft ? near : "auto",
      right: isLeft ? "auto" : near,
      top: isBottom ? "auto" : below,
      bottom: isBottom ? near : "auto",
    });
  }
  /** @param {number} small The overview's scale. */
  function drawOverview(small) {
    const { border } = OVERVIEW;
    overview.width = Math.max(28, arrangement.width * small + 2 * border);
    overview.height = Math.max(28, arrangement.height * small + 2 * border);
    const context = contextOf(overview);
    let last = { x: 0, y: 0, tone: "" };
    for (const { node, x, y, width, height } of arrangement.rows) {
      const tone = cards.toneOf(node);
      // Skip a card that the previous card, which looks the same, covers.
      if (tone === last.tone && x === last.x && y >= last.y && (y - last.y) * small < 0.5) continue;
      last = { x, y, tone };
      context.fillStyle = tone;
      const cardWidth = Math.max(1, width * small);
      const cardHeight = Math.max(1, (height - 8) * small);
      context.fillRect(border + x * small, border + y * small, cardWidth, cardHeight);
    }
  }
  /** @param {PointerEvent} event */
  function moveToOverview({ offsetX, offsetY }) {
    const small = miniScale() / view.scale;
    const x = (offsetX - OVERVIEW.border) / small;
    const y = (offsetY - OVERVIEW.border) / small;
    moveTo(view.width / 2 - x, view.height / 2 - y);
  }
  listen(mini, {
    pointerdown(event) {
      mini.setPointerCapture(event.pointerId);
      moveToOverview(event);
    },
    pointermove(event) {
      if (event.buttons) moveToOverview(event);
    },
  });

  // Pointer ------------------------------------------------------------------------------------------------------------

  gestures(canvas, {
    pan,
    zoom,
    hold() {
      hideTip();
      const { x, y, scale } = view;
      return () => moveTo(x, y, scale);
    },
    takesWheel: () => state.focus !== null,
    hover(event) {
      const row = event && rowAt(event);
      const id = row?.id ?? null;
      canvas.style.cursor = row ? "pointer" : "";
      if (id === state.hovered) return;
      hideTip();
      state.hovered = id;
      redraw();
      if (event && row) wait(() => showTip(row, event.offsetX, event.offsetY), TIP_DELAY);
    },
    tap(event) {
      const row = rowAt(event);
      if (!row) return;
      const cell = cellIn(row, event);
      if (isOnTwisty(row, event)) onToggle(row);
      else if (cell >= 0) onCell(cellId(row.node, cell));
      else onSelect(row);
    },
  });
  canvas.addEventListener("dblclick", (event) => {
    const row = rowAt(event);
    if (row && !row.node.leaf && !isOnTwisty(row, event)) onToggle(row);
  });

  /**
   * @param {TreeRow} row
   * @param {number} x
   * @param {number} y
   */
  function showTip({ node }, x, y) {
    tip.textContent = [node.tooltip || node.label, node.reason].filter(Boolean).join("\n");
    tip.hidden = false;
    const left = clamp(4, x + 12, view.width - tip.offsetWidth - 4);
    // Below the pointer, or above it if there is no room below.
    let top = y + 18;
    if (top + tip.offsetHeight > view.height) top = Math.max(4, y - tip.offsetHeight - 8);
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
  }
  function hideTip() {
    wait();
    tip.hidden = true;
  }

  /**
   * Return the whole picture as SVG, at the scale at which a slide shows it, so that its words can be read.
   *
   * @returns {SlidePicture}
   */
  function picture() {
    const high = (SLIDE_ROOM.height - HEADINGS) / (arrangement.height + EDGE);
    const scale = Math.min(1, SLIDE_ROOM.width / (arrangement.width + EDGE), high);
    const y = EDGE / 2 + HEADINGS;
    // Leave space beside the last column for arrows.
    const size = { width: arrangement.width * scale + 2 * EDGE, height: arrangement.height * scale + y + EDGE / 2 };
    return recorded(size, (paper) => cards.paint(paper, 1, { x: EDGE / 2, y, scale, ...size }, arrangement, state));
  }

  /**
   * Change the nodes that are selected, focused and found.
   *
   * @param {Partial<TreeState>} next
   */
  function mark(next) {
    Object.assign(state, next);
    redraw();
  }

  return { element: box, show, fit, zoom, pan, reveal, hideTip, picture, colours, mark, placeOf };
}
