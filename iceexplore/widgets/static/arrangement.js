/**
 * The positions of the cards of a forest, which is one tree or several: from left to right, one column per level. Many
 * sibling leaves become a block of several columns, so that a long list stays readable.
 *
 * @module
 */

/** @import { Arrangement, Nodes, Styles, TreeBlock, TreeNode, TreeRow } from "./types.d.ts" */

/** Sizes in px: the height of a card, the gaps between cards, and how wide cards are. */
export const CARD = { height: 40, gapX: 38, gapY: 8, narrowest: 92, widest: 264 };
/** The small cells that replace the cards of many siblings: their distance and size in px, and number per line. */
export const CELL = { pitch: 18, size: 15, columns: 26 };
/** Up to `MOST_SIBLINGS` siblings are all drawn as cards; of more siblings, about `FEW_CARDS` are. */
const MOST_SIBLINGS = 30;
const FEW_CARDS = 12;
/** The maximum number of changed siblings that are drawn as cards. */
const CHANGED_CARDS = 24;
/** The marks of changed nodes, which become cards before other nodes do. */
const FIRST_MARKS = ["problem", "added", "removed"];
/** The distance from one card to the one below it. */
const STEP = CARD.height + CARD.gapY;
/** The maximum number of columns of a block. */
const MOST_COLUMNS_OF_BLOCK = 8;

/**
 * Return the width that a node's card needs for its texts and marks, estimated without measuring.
 *
 * @param {TreeNode} node
 */
function cardWidth({ label, title, note, marks }) {
  const letters = Math.max((title ?? label).length, 0.88 * note.length);
  return Math.min(CARD.widest, 62 + 6.3 * letters + 11 * marks.length);
}

/**
 * Return whether a node is damaged, or added or removed by its snapshot.
 *
 * @param {TreeNode} node
 */
function isChanged({ marks }) {
  return marks.includes("problem") || (!marks.includes("carried") && FIRST_MARKS.some((mark) => marks.includes(mark)));
}

/**
 * Return which of many siblings are drawn as cards: changed ones, some others, and the node that represents the rest.
 *
 * @param {TreeRow[]} run
 * @returns {Set<TreeRow>}
 */
function cardsOf(run) {
  const changed = run.filter(({ node }) => isChanged(node));
  const plain = run.filter(({ node }) => !isChanged(node) && node.kind !== "more");
  const first = changed.slice(0, plain.length ? CHANGED_CARDS : FEW_CARDS);
  const others = plain.slice(0, Math.max(0, FEW_CARDS - first.length));
  return new Set([...first, ...others, ...run.filter(({ node }) => node.kind === "more")]);
}

/**
 * Return the heading of a column, which is the heading of most of its nodes, as in `iceexplore.render.scenes._positions`.
 *
 * @param {string[]} layers The heading of each node.
 */
function columnTitle(layers) {
  // The children of a V4 root manifest can be both.
  if (layers.includes("Manifests") && layers.includes("Files")) return "Manifests and files";
  const counts = [...Map.groupBy(layers.filter(Boolean), (layer) => layer)];
  return counts.sort(([, some], [, others]) => others.length - some.length)[0]?.[0] ?? "";
}

/**
 * Return the visible nodes of a forest, in order, with the places of their cards.
 *
 * @param {Nodes} nodes
 * @param {string[]} roots
 * @param {string[]} expanded
 * @param {Styles} [styles] The styles of node kinds, which contain the headings of columns.
 * @returns {Arrangement}
 */
export function arrange(nodes, roots, expanded, styles = {}) {
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
        isCell: false,
        x: 0,
        y: 0,
        width: 0,
        height: CARD.height,
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
    const cells = row.node.cells?.kinds.length;
    if (cells) {
      // Below its label, the card has a cell for each node that it represents.
      row.width = Math.max(row.width, Math.min(cells, CELL.columns) * CELL.pitch + 2 * CARD.gapY);
      row.height = CARD.height + Math.ceil(cells / CELL.columns) * CELL.pitch + CARD.gapY;
    }
    width = Math.max(width, x + row.width);
    height = Math.max(height, y + row.height);
  }

  /**
   * Place siblings without children: below one another or, if there are nine or more, in a block of columns.
   *
   * @param {TreeRow[]} run
   * @param {TreeRow | null} parent
   * @param {number} top
   * @returns {number} The y at which the next card may be placed.
   */
  function placeChildless(run, parent, top) {
    if (!run.length) return top;
    if (run.length > MOST_SIBLINGS) return placeMany(run, parent, top);
    const more = run[run.length - 1];
    if (run.length > 1 && more.node.cells) {
      const end = placeChildless(run.slice(0, -1), parent, top);
      place(more, lefts[more.level], end);
      return end + more.height + CARD.gapY;
    }
    const { level } = run[0];
    const columns = Math.min(MOST_COLUMNS_OF_BLOCK, Math.round(Math.sqrt(run.length / 4)));
    const lines = Math.ceil(run.length / columns);
    const columnWidth = widths[level] + CARD.gapY;
    run.forEach((row, i) => {
      row.inBlock = columns > 1;
      place(row, lefts[level] + Math.floor(i / lines) * columnWidth, top + (i % lines) * STEP);
    });
    const end = top + Math.max(lines * STEP, ...run.map(({ height }) => height + CARD.gapY));
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
   * Place many siblings without children: a few cards, and the others as cells.
   *
   * @param {TreeRow[]} run
   * @param {TreeRow | null} parent
   * @param {number} top
   * @returns {number} The y at which the next card may be placed.
   */
  function placeMany(run, parent, top) {
    const cards = cardsOf(run);
    const cells = run.filter((row) => !cards.has(row));
    const left = lefts[run[0].level];
    let end = placeChildless([...cards].filter(({ node }) => node.kind !== "more"), parent, top) + CARD.gapY;
    cells.forEach((row, i) => {
      row.inBlock = row.isCell = true;
      row.x = left + (i % CELL.columns) * CELL.pitch;
      row.y = end + Math.floor(i / CELL.columns) * CELL.pitch;
      row.width = row.height = CELL.size;
    });
    if (cells.length) {
      const size = {
        width: Math.min(cells.length, CELL.columns) * CELL.pitch - (CELL.pitch - CELL.size),
        height: Math.ceil(cells.length / CELL.columns) * CELL.pitch - (CELL.pitch - CELL.size),
      };
      blocks.push({ parent, x: left, y: end, ...size });
      width = Math.max(width, left + size.width);
      height = Math.max(height, end + size.height);
      end += size.height + 2 * CARD.gapY;
    }
    return placeChildless([...cards].filter(({ node }) => node.kind === "more"), parent, end);
  }

  /**
   * Place siblings and their descendants.
   *
   * @param {TreeRow[]} siblings
   * @param {TreeRow | null} parent
   * @param {number} top
   * @returns {number} The y at which the next card may be placed.
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
      // The card is centered beside its children, but near the first one, so that it stays on the screen.
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
  const rows = [...byId.values()];
  const layers = Map.groupBy(rows, ({ level }) => level);
  const columns = [...layers].map(([level, some]) => ({
    x: lefts[level],
    width: (lefts[level + 1] ?? width + CARD.gapX) - CARD.gapX - lefts[level],
    title: columnTitle(some.map(({ node }) => styles[node.kind]?.layer ?? "")),
  }));
  return { rows, byId, blocks, columns, width, height };
}
