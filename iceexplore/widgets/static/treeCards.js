/**
 * Painting a forest (one tree or several): cards joined by lines, with fewer details at smaller scales.
 *
 * @module
 */

/** @import { Arrangement, Colours, FoldedCells, Styles, TreeNode, TreeRow, TreeState, Viewport } from "./types.d.ts" */

import { CARD, CELL } from "./arrangement.js";
import { drawPath, drawText, fitText, SHADES } from "./painting.js";

/** The minimum scale at which cards have words and icons; below it, they are dots. */
export const WORDS_SCALE = 0.3;
/** Below this scale, cards have one line, in letters that are about `LETTERS` px high on the screen. */
const ONE_LINE_SCALE = 0.74;
const LETTERS = 9.2;
/** The height of the columns' headings in px of the screen. */
export const HEADINGS = 22;
/** If there are more arrows from deletes than this, only those of the selected node are drawn. */
const MOST_ARROWS = 400;
/** The marks that colour a node's card; if it has several, the first in this list does. */
const COLOURED_MARKS = ["problem", "removed", "added"];
/** The distance, in px, from the cards of a block to its frame. */
const BLOCK_MARGIN = 6;
/** The distance, in px, by which the sign for unfolding extends beyond its card. */
const TWISTY_REACH = 14;
/** The maximum distance, in px, by which an arrow within a column extends beyond its cards. */
const BULGE = 60;
/** Lines that go up or down by at least this, in px, run along a vertical stem that the children share. */
const FAR = 150;

/**
 * Return the name, in `styles`, of the style of a node's card.
 *
 * @param {TreeNode} node
 */
function toneName(node) {
  const mark = mainMark(node);
  return mark ? `mark:${mark}` : node.kind;
}

/** @param {TreeNode} node */
function mainMark({ marks }) {
  return COLOURED_MARKS.find((mark) => marks?.includes(mark));
}

/**
 * Return a few words for a card in which there is little room: what tells it apart from its siblings.
 *
 * @param {Pick<TreeNode, "kind" | "label" | "title" | "note">} node
 */
export function fewWords({ kind, label, title, note }) {
  if (!title) return label.replace(/^Snapshot /, "");
  // The values of the partition, without the names of its fields.
  const values = note.replace(/[^\s=]+=/g, "");
  if (!values || kind.endsWith("-manifest")) return title;
  return kind === "data-file" ? `${values} · ${title}` : `${title.replace(/^(\S+) deleted .*/, "−$1")} · ${values}`;
}

/**
 * Return the functions that paint a forest.
 *
 * @param {Colours} colours
 * @param {Styles} styles
 */
export function cardPainter(colours, styles) {
  /** @type {Map<string, Path2D[]>} */
  const iconPaths = new Map();

  /**
   * Return the colour of a node's card.
   *
   * @param {TreeNode} node
   */
  function toneOf(node) {
    return colours.tint(toneName(node));
  }

  /**
   * Paint the visible part of a forest.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {number} ratio The number of the canvas's points per px.
   * @param {Viewport} view
   * @param {Arrangement} arrangement
   * @param {TreeState} state
   */
  function paint(context, ratio, { x, y, scale, width, height }, arrangement, state) {
    Object.assign(context, { direction: "ltr", lineJoin: "round", lineCap: "round", fillStyle: colours.panel });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillRect(0, 0, width, height);
    context.setTransform(ratio * scale, 0, 0, ratio * scale, x * ratio, y * ratio);

    // The visible area, in the coordinates of the cards.
    const top = -y / scale;
    const bottom = (height - y) / scale;
    const left = -x / scale;
    const right = (width - x) / scale;
    /** @param {{ x: number, y: number, width: number, height: number }} box */
    const isOutside = (box) => {
      const boxBottom = box.y + box.height;
      return box.x > right || box.x + box.width + TWISTY_REACH < left || box.y > bottom || boxBottom < top;
    };

    const edgesAndFrames = () => {
      for (const block of arrangement.blocks) {
        const frame = {
          x: block.x - BLOCK_MARGIN,
          y: block.y - BLOCK_MARGIN,
          width: block.width + 2 * BLOCK_MARGIN,
          height: block.height + 2 * BLOCK_MARGIN,
        };
        const middle = block.y + Math.min(block.height, CARD.height) / 2;
        if (block.parent) edge(context, block.parent, frame.x, middle, top, bottom);
        if (!isOutside(frame)) context.roundRect(frame.x, frame.y, frame.width, frame.height, 8);
      }
      for (const row of arrangement.rows) {
        for (const child of row.children) {
          if (!child.inBlock) edge(context, row, child.x, child.y + CARD.height / 2, top, bottom);
        }
      }
    };
    drawPath(context, edgesAndFrames, { stroke: colours.muted, alpha: 0.6, width: Math.max(1, 0.6 / scale) });

    const inView = arrangement.rows.filter((row) => !isOutside(row));
    const visible = inView.filter(({ isCell }) => !isCell);
    cells(context, inView.filter(({ isCell }) => isCell), state);
    if (scale < WORDS_SCALE) {
      for (const row of visible) if (row.node.cells) folded(context, row);
      dots(context, visible, scale, arrangement, state);
    } else {
      for (const row of visible) card(context, row, scale, state);
    }
    drawArrows(context, arrangement, state.selected, scale);
    headings(context, ratio, { x, scale, width }, arrangement.columns);
  }

  /**
   * Draw arrows from deletes to what they apply to; those of the selected node are stronger. Within a column, an arrow
   * is on the right of the cards; between columns, it joins the sides that face each other.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {Arrangement} arrangement
   * @param {string | null} selected
   * @param {number} scale
   */
  function drawArrows(context, { rows, byId }, selected, scale) {
    const size = Math.max(1, 0.6 / scale);
    const stroke = colours.tint("deletion-vector");
    /** @type {[from: TreeRow, to: TreeRow, isStrong: boolean][]} */
    const arrows = [];
    for (const from of rows) {
      for (const id of from.node.applies ?? []) {
        const to = byId.get(id);
        const isStrong = from.id === selected || id === selected;
        if (to && (isStrong || !(from.isCell || to.isCell))) arrows.push([from, to, isStrong]);
      }
    }
    for (const strong of [false, true]) {
      const some = arrows.filter(([, , isStrong]) => isStrong === strong);
      if (!strong && some.length > MOST_ARROWS) continue;
      const lines = () => {
        for (const [from, to] of some) {
          const isSame = from.x === to.x;
          // An arrow leaves its card on the side that faces its end; within a column, on the right.
          const side = to.x < from.x ? -1 : 1;
          const end = isSame ? 1 : -side;
          const x = to.x + (end > 0 ? to.width : 0) + end;
          const fromY = from.y + from.height / 2;
          // The arrow ends below the sign for unfolding, if there is one.
          const y = to.y + to.height * (to.node.leaf ? 0.5 : 0.85);
          const bend = isSame ? Math.min(BULGE, 14 + Math.abs(y - fromY) * 0.14) : 30;
          const fromX = from.x + (side > 0 ? from.width : 0);
          context.moveTo(fromX, fromY);
          context.bezierCurveTo(fromX + side * bend, fromY, x + end * bend, y, x, y);
          context.moveTo(x + end * 7 * size, y - 4 * size);
          context.lineTo(x, y);
          context.lineTo(x + end * 7 * size, y + 4 * size);
        }
      };
      const alpha = strong ? 1 : some.length < arrows.length ? 0.3 : 0.6;
      drawPath(context, lines, { stroke, alpha, width: size * (strong ? 2.2 : 1.1) });
    }
  }

  /**
   * Draw the headings of the columns at the top, where they stay while the picture is moved.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {number} ratio
   * @param {Pick<Viewport, "x" | "scale" | "width">} view
   * @param {Arrangement["columns"]} columns
   */
  function headings(context, ratio, { x, scale, width }, columns) {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawPath(context, () => context.rect(0, 0, width, HEADINGS), { fill: colours.panel });
    const font = `600 11px ${colours.font}`;
    for (const column of columns) {
      const left = Math.max(8, column.x * scale + x);
      const room = Math.min(width, (column.x + column.width + CARD.gapX / 2) * scale + x) - left;
      if (room > 24) drawText(context, fitText(context, column.title, room, font), left, 15, colours.muted, font);
    }
  }

  /**
   * Add, to the path, the line from a card to a child or to the frame around several children.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {TreeRow} from
   * @param {number} toX
   * @param {number} toY
   * @param {number} top
   * @param {number} bottom
   */
  function edge(context, { x, y, width }, toX, toY, top, bottom) {
    const fromX = x + width;
    const fromY = y + CARD.height / 2;
    if (Math.max(fromY, toY) < top || Math.min(fromY, toY) > bottom) return;
    const half = (fromX + toX) / 2;
    context.moveTo(fromX, fromY);
    if (Math.abs(toY - fromY) < FAR) {
      context.bezierCurveTo(half, fromY, half, toY, toX, toY);
    } else {
      const bend = toY > fromY ? 8 : -8;
      context.lineTo(half - 8, fromY);
      context.bezierCurveTo(half, fromY, half, fromY, half, fromY + bend);
      context.lineTo(half, toY - bend);
      context.bezierCurveTo(half, toY, half, toY, half + 8, toY);
      context.lineTo(toX, toY);
    }
  }

  /**
   * Draw squares that look alike as one path.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {Iterable<{ x: number, y: number, tone: string, shade: number, change: string }>} squares
   */
  function drawSquares(context, squares) {
    const groups = Map.groupBy(squares, ({ tone, shade, change }) => `${tone} ${shade} ${change}`);
    for (const some of groups.values()) {
      const [{ tone, shade, change }] = some;
      const path = () => {
        for (const { x, y } of some) context.rect(x, y, CELL.size, CELL.size);
      };
      const mark = change && colours.tint(`mark:${change}`);
      if (change !== "removed") drawPath(context, path, { fill: tone, alpha: SHADES[shade] });
      drawPath(context, path, { stroke: mark || tone, width: mark ? 2.5 : 0.8 });
      if (change !== "removed") continue;
      const crosses = () => {
        for (const { x, y } of some) {
          context.moveTo(x, y);
          context.lineTo(x + CELL.size, y + CELL.size);
        }
      };
      drawPath(context, crosses, { stroke: mark, width: 1.5 });
    }
  }
  /**
   * Draw the nodes that are shown as cells.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {TreeRow[]} rows
   * @param {TreeState} state
   */
  function cells(context, rows, { selected, hovered, focus, hits }) {
    drawSquares(
      context,
      rows.map(({ node, x, y }) => {
        const mark = node.marks.includes("carried") ? "" : mainMark(node) ?? "";
        const isPruned = node.marks.includes("pruned");
        return { x, y, tone: isPruned ? colours.muted : colours.tint(node.kind), shade: node.shade ?? 2, change: mark };
      }),
    );
    for (const { id, x, y } of rows) {
      if (![selected, hovered, focus].includes(id) && !hits.has(id)) continue;
      const frame = () => context.rect(x - 3, y - 3, CELL.size + 6, CELL.size + 6);
      drawPath(context, frame, { stroke: colours.accent, width: id === selected ? 3 : 2 });
    }
  }
  /**
   * Draw the cells of a card that represents many nodes.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {TreeRow} row
   */
  function folded(context, { node, x, y }) {
    const { names, kinds, shades, changes } = /** @type {FoldedCells} */ (node.cells);
    const squares = Array.from(kinds, (kind, i) => ({
      x: x + CARD.gapY + (i % CELL.columns) * CELL.pitch,
      y: y + CARD.height + Math.floor(i / CELL.columns) * CELL.pitch,
      tone: colours.tint(names[Number(kind)]),
      shade: Number(shades[i]),
      change: ["", "added", "removed"][Number(changes[i])],
    }));
    drawSquares(context, squares);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {TreeRow[]} visible
   * @param {number} scale
   * @param {Arrangement} arrangement
   * @param {TreeState} state
   */
  function dots(context, visible, scale, arrangement, state) {
    // On the screen, cards are never thinner than three pixels.
    const least = 3 / scale;
    context.globalAlpha = 0.75;
    for (const [colour, rows] of Map.groupBy(visible, ({ node }) => toneOf(node))) {
      context.fillStyle = colour;
      for (const { x, y, width, node } of rows) {
        if (!node.cells) context.fillRect(x, y, width, Math.max(least, CARD.height - 10));
      }
    }
    const emphasized = arrangement.rows.filter(({ id }) => id === state.selected || state.hits.has(id));
    const frames = () => {
      for (const { x, y, width, height } of emphasized) {
        context.rect(x - least, y - least, width + 2 * least, height + 2 * least);
      }
    };
    drawPath(context, frames, { stroke: colours.accent, width: 2 / scale });
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {TreeRow} row
   * @param {number} scale
   * @param {TreeState} state
   */
  function card(context, row, scale, { selected, hovered, focus, hits }) {
    const { id, node, x, y, width, height } = row;
    const marks = node.marks ?? [];
    const isPruned = marks.includes("pruned");
    const isDim = isPruned || (marks.includes("carried") && !marks.includes("problem"));
    const isSelected = id === selected;
    const isMore = node.kind === "more";
    const mark = mainMark(node);

    const isBold = isSelected || id === hovered || mark;
    const isPlain = isMore || isPruned;
    let stroke = colours.tint(mark ? `mark:${mark}` : isPruned ? "" : node.kind);
    if (isSelected) stroke = colours.accent;
    drawPath(context, () => context.roundRect(x, y, width, height, 6), {
      fill: isPlain ? colours.panel : colours.fill(node.kind),
      stroke,
      // What the snapshot did not change is paler.
      alpha: isDim && !isBold ? 0.55 : 1,
      width: isSelected ? 3 : isBold ? 2 : 1,
      dash: isPlain || marks.includes("removed") ? [4, 3] : [],
    });
    if (node.cells) folded(context, row);
    if (hits.has(id)) {
      drawPath(context, () => context.rect(x + 8, y + height - 3, width - 16, 3), { fill: colours.accent });
    }
    if (id === focus) {
      const ring = () => context.roundRect(x - 3.5, y - 3.5, width + 7, height + 7, 9);
      drawPath(context, ring, { stroke: colours.accent, width: 2 });
    }

    // At small scales, cards have one line, with letters, signs and icons that are larger in relation to the card.
    const isOneLine = scale < ONE_LINE_SCALE;
    const size = isOneLine ? Math.round(2 * Math.max(12.5, LETTERS / scale)) / 2 : 12.5;
    const grow = Math.min(1.6, size / 12.5);
    context.globalAlpha = isDim ? 0.72 : 1;
    drawIcon(context, node.kind, x + 7, y + CARD.height / 2 - 8 * grow, isPruned, grow);
    context.globalAlpha = 1;

    const signs = marks.map((name) => `mark:${name}`).filter((name) => styles[name]?.sign);
    const pitch = 0.88 * size;
    const right = x + width - (node.leaf ? 6 : 13);
    const middle = y + CARD.height / 2 + size * 0.36;
    const left = x + 15 + 16 * grow;
    const room = right - left;
    // The note of a manifest or file (such as its partition) tells more than the file's name, which comes after it.
    const own = node.title ? [node.note, node.label].filter(Boolean).join(" · ") : node.note;
    const note = !isOneLine && ((isPruned && node.reason) || own);
    const large = `${size}px ${colours.font}`;
    const small = `11px ${colours.font}`;
    const text = fitText(
      context,
      isOneLine ? fewWords(node) : node.title ?? node.label,
      room - pitch * signs.length,
      large,
    );
    let ink = isDim ? colours.muted : colours.ink;
    if (isMore) ink = colours.accent;
    drawText(context, text, left, note ? y + 17 : middle, ink, large);
    if (note) drawText(context, fitText(context, note, room, small), left, y + 31.5, colours.muted, small);
    signs.forEach((name, i) => {
      const sign = styles[name].sign ?? "";
      const signX = right - pitch * (signs.length - i);
      drawText(context, sign, signX, note ? y + 17 : middle, colours.tint(name), `bold ${large}`);
    });
    if (!node.leaf) twisty(context, row);
  }

  /**
   * Draw the sign that unfolds or folds a card: +, −, or three dots while its children are being read.
   *
   * @param {CanvasRenderingContext2D} context
   * @param {TreeRow} row
   */
  function twisty(context, { node, x, y, width, open }) {
    const centreX = x + width;
    const centreY = y + CARD.height / 2;
    const sign = () => {
      if (open && !node.children) {
        for (const offset of [-3.5, 0, 3.5]) context.rect(centreX + offset - 0.5, centreY - 0.5, 1, 1);
        return;
      }
      context.moveTo(centreX - 4, centreY);
      context.lineTo(centreX + 4, centreY);
      if (open) return;
      context.moveTo(centreX, centreY - 4);
      context.lineTo(centreX, centreY + 4);
    };
    drawPath(context, () => context.arc(centreX, centreY, 8, 0, 7), { fill: colours.paper, stroke: colours.muted });
    drawPath(context, sign, { stroke: colours.ink, width: 1.4 });
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {string} kind
   * @param {number} x
   * @param {number} y
   * @param {boolean} isGrey
   * @param {number} grow
   */
  function drawIcon(context, kind, x, y, isGrey, grow) {
    let paths = iconPaths.get(kind);
    if (!paths) {
      paths = (styles[kind]?.icon ?? ["", ""]).map((d) => Object.assign(new Path2D(d), { d }));
      iconPaths.set(kind, paths);
    }
    const [filled, stroked] = paths;
    const colour = isGrey ? colours.muted : colours.tint(kind);
    context.translate(x, y);
    context.scale(grow, grow);
    context.fillStyle = colour;
    context.strokeStyle = colour;
    context.lineWidth = 1.3;
    context.fill(filled);
    context.stroke(stroked);
    context.scale(1 / grow, 1 / grow);
    context.translate(-x, -y);
  }

  return { paint, toneOf };
}
