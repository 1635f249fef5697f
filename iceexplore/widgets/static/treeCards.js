/**
 * The picture of a forest: cards joined by lines, in less detail from afar.
 *
 * @module
 */

/** @import { Arrangement, Colours, FoldedCells, Styles, TreeNode, TreeRow, TreeState, Viewport } from "./types.d.ts" */

import { CARD, CELL } from "./arrangement.js";
import { contextOf, drawPath, drawText, fitText, SHADES } from "./painting.js";

/** The minimum scale at which cards have text. */
export const WORDS_SCALE = 0.35;
/** The minimum scale at which cards have icons; below it, they are dots. */
export const ICONS_SCALE = 0.24;
/** The first of these marks that a node has gives its card a colour. */
const COLOURED_MARKS = ["problem", "removed", "added"];
/** The distance, in px, from the cards of a block to its frame. */
const BLOCK_MARGIN = 6;
/** The distance, in px, by which the sign for unfolding extends beyond its card. */
const TWISTY_REACH = 14;
/** The distance in px from which lines share a common stem. */
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
   * @param {HTMLCanvasElement} canvas The page's canvas, or one for a file.
   * @param {Viewport} view
   * @param {Arrangement} arrangement
   * @param {TreeState} state
   */
  function paint(canvas, { x, y, scale, width, height }, arrangement, state) {
    const context = contextOf(canvas);
    const ratio = canvas.width / width;
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
    drawPath(context, edgesAndFrames, { stroke: colours.line, width: Math.max(1, 0.6 / scale) });

    const inView = arrangement.rows.filter((row) => !isOutside(row));
    const visible = inView.filter(({ isCell }) => !isCell);
    cells(context, inView.filter(({ isCell }) => isCell), state);
    if (scale < ICONS_SCALE) { for (const row of visible) if (row.node.cells) folded(context, row); }
    if (scale < ICONS_SCALE) {
      dots(context, visible, scale, arrangement, state);
    } else {
      for (const row of visible) card(context, row, scale, state);
    }
  }

  /**
   * Add the line from a card to its children.
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
      context.arcTo(half, fromY, half, toY, 8);
      context.arcTo(half, toY, toX, toY, 8);
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
   * Draw the nodes that are cells.
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
    // Never thinner than three pixels.
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

    let fill = isMore || isPruned ? colours.panel : colours.paper;
    if (isSelected) fill = colours.chosen;
    else if (id === hovered) fill = colours.hover;
    let stroke = mark ? colours.tint(`mark:${mark}`) : colours.line;
    if (isSelected) stroke = colours.accent;
    drawPath(context, () => context.roundRect(x, y, width, height, 6), {
      fill,
      stroke,
      width: isSelected ? 2 : 1,
      dash: marks.includes("removed") || isMore || isPruned ? [4, 3] : [],
    });
    if (node.cells) folded(context, row);
    if (hits.has(id)) {
      drawPath(context, () => context.rect(x + 8, y + height - 3, width - 16, 3), { fill: colours.accent });
    }
    if (id === focus) {
      const outline = () => context.roundRect(x - 3.5, y - 3.5, width + 7, height + 7, 9);
      drawPath(context, outline, { stroke: colours.accent, width: 2 });
    }

    context.globalAlpha = isDim ? 0.72 : 1;
    drawIcon(context, node.kind, x + 9, y + 12, isPruned);
    context.globalAlpha = 1;

    const signs = marks.map((name) => `mark:${name}`).filter((name) => styles[name]?.sign);
    if (scale < WORDS_SCALE) {
      // Draw a bar in place of the text.
      drawPath(context, () => context.rect(x + 32, y + 15, width - 52, 10), { fill: colours.line });
    } else {
      let ink = isDim ? colours.muted : colours.ink;
      if (isMore) ink = colours.accent;
      words(context, row, isPruned, width - 45 - 11 * signs.length, ink);
    }
    const right = x + width - (node.leaf ? 6 : 13);
    signs.forEach((name, i) => {
      const sign = styles[name].sign ?? "";
      const signX = right - 11 * (signs.length - i);
      drawText(context, sign, signX, y + 17, colours.tint(name), `bold 13px ${colours.font}`);
    });
    if (!node.leaf) twisty(context, row);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {TreeRow} row
   * @param {boolean} isPruned
   * @param {number} room For the label, in px.
   * @param {string} ink
   */
  function words(context, { node, x, y, width }, isPruned, room, ink) {
    const note = (isPruned && node.reason) || node.note;
    const large = `12.5px ${colours.font}`;
    const small = `11px ${colours.font}`;
    drawText(context, fitText(context, node.label, room, large), x + 32, y + (note ? 17 : 24.5), ink, large);
    if (note) drawText(context, fitText(context, note, width - 45, small), x + 32, y + 31.5, colours.muted, small);
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
   */
  function drawIcon(context, kind, x, y, isGrey) {
    let paths = iconPaths.get(kind);
    if (!paths) {
      paths = (styles[kind]?.icon ?? ["", ""]).map((d) => new Path2D(d));
      iconPaths.set(kind, paths);
    }
    const [filled, stroked] = paths;
    const colour = isGrey ? colours.muted : colours.tint(kind);
    context.translate(x, y);
    context.fillStyle = colour;
    context.strokeStyle = colour;
    context.lineWidth = 1.3;
    context.fill(filled);
    context.stroke(stroked);
    context.translate(-x, -y);
  }

  return { paint, toneOf };
}
