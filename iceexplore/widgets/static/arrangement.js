/**
 * The positions of a forest's cards: from left to right, one column per level. Many sibling leaves become a block of
 * several columns, so that a long list stays readable.
 *
 * @module
 */

/** @import { Arrangement, Nodes, TreeBlock, TreeNode, TreeRow } from "./types.d.ts" */

/** Sizes in px: the height of a card, the gaps between cards, and how wide cards are. */
export const CARD = { height: 40, gapX: 38, gapY: 8, narrowest: 92, widest: 220 };
/** The distance from one card to the one below it. */
const STEP = CARD.height + CARD.gapY;
/** The maximum number of columns of a block. */
const MOST_COLUMNS_OF_BLOCK = 8;

/**
 * Return the width that a node's card needs for its texts and marks, estimated without measuring.
 *
 * @param {TreeNode} node
 */
function cardWidth({ label, note, marks }) {
  const letters = Math.max(label.length, 0.88 * note.length);
  return Math.min(CARD.widest, 62 + 6.3 * letters + 11 * marks.length);
}

/**
 * Return the visible nodes of a forest, in order, with the places of their cards.
 *
 * @param {Nodes} nodes
 * @param {string[]} roots
 * @param {string[]} expanded
 * @returns {Arrangement}
 */
export function arrange(nodes, roots, expanded) {
  const open = new Set(expanded);
  /** @type {Map<string, TreeRow>} */
  const byId = new Map();
  /** @type {TreeBlock[]} */
  const blocks = [];
  /**
   * For each level, the width of its cards and the x of its first column.
   *
   * @type {number[]}
   */
  const widths = [];
  /** @type {number[]} */
  const lefts = [];
  let width = 0;
  let height = 0;

  /**
   * Collect the visible nodes among some siblings and below them.
   *
   * @param {string[]} ids
   * @param {string | null} parent
   * @param {number} level
   * @returns {TreeRow[]}
   */
  function collect(ids, parent, level) {
    // Show each node only once: in damaged data, nodes may form a cycle.
    const known = ids.filter((id) => nodes[id] && !byId.has(id));
    return known.map((id, index) => {
      const node = nodes[id];
      /** @type {TreeRow} */
      const row = {
        id,
        node,
        parent,
        level,
        index,
        of: known.length,
        open: !node.leaf && open.has(id),
        children: [],
        inBlock: false,
        x: 0,
        y: 0,
        width: 0,
      };
      byId.set(id, row);
      widths[level] = Math.max(widths[level] ?? CARD.narrowest, cardWidth(node));
      if (row.open && node.children) row.children = collect(node.children, id, level + 1);
      return row;
    });
  }

  /**
   * @param {TreeRow} row
   * @param {number} x
   * @param {number} y
   */
  function place(row, x, y) {
    row.x = x;
    row.y = y;
    row.width = widths[row.level];
    width = Math.max(width, x + row.width);
    height = Math.max(height, y + CARD.height);
  }

  /**
   * Place siblings without children: below one another, from nine on in a block of columns.
   *
   * @param {TreeRow[]} run
   * @param {TreeRow | null} parent
   * @param {number} top
   * @returns {number} Where the next card may be.
   */
  function placeChildless(run, parent, top) {
    if (!run.length) return top;
    const { level } = run[0];
    const columns = Math.min(MOST_COLUMNS_OF_BLOCK, Math.round(Math.sqrt(run.length / 4)));
    const lines = Math.ceil(run.length / columns);
    const columnWidth = widths[level] + CARD.gapY;
    run.forEach((row, i) => {
      row.inBlock = columns > 1;
      place(row, lefts[level] + Math.floor(i / lines) * columnWidth, top + (i % lines) * STEP);
    });
    const end = top + lines * STEP;
    if (columns === 1) return end;
    blocks.push({
      parent,
      x: lefts[level],
      y: top,
      width: Math.ceil(run.length / lines) * columnWidth - CARD.gapY,
      height: end - top - CARD.gapY,
    });
    return end + CARD.gapY;
  }

  /**
   * Place siblings and their descendants.
   *
   * @param {TreeRow[]} siblings
   * @param {TreeRow | null} parent
   * @param {number} top
   * @returns {number} Where the next card may be.
   */
  function placeAll(siblings, parent, top) {
    /** @type {TreeRow[]} */
    let childless = [];
    for (const row of siblings) {
      const { children, level } = row;
      if (!children.length) {
        childless.push(row);
        continue;
      }
      top = placeChildless(childless, parent, top);
      childless = [];
      const end = placeAll(children, row, top);
      const first = children[0].y;
      const last = children[children.length - 1].y;
      // Centered beside its children, but near the first one, so that it stays on the screen.
      place(row, lefts[level], Math.min((first + last) / 2, first + 2 * STEP));
      top = Math.max(end, row.y + STEP) + (children.length > 1 ? CARD.gapY : 0);
    }
    return placeChildless(childless, parent, top);
  }

  const topmost = collect(roots, null, 1);
  let left = 0;
  widths.forEach((columnWidth, level) => {
    lefts[level] = left;
    left += columnWidth + CARD.gapX;
  });
  placeAll(topmost, null, 0);
  return { rows: [...byId.values()], byId, blocks, width, height };
}
