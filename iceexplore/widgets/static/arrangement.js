// A forest: which nodes are seen, and where their cards are. Left to right, level by level; many leaves side by side
// become a block of several columns, so that a long list stays readable.

export const SIZE = { height: 40, x: 38, y: 8, least: 92, most: 220 };
const COLUMNS = 8;

// The rows that are seen, in order, also by id, and what they take: { rows, byId, blocks, width, height }. A row is
// { id, node, parent (its id), level (from 1), index, of, open, kids, x, y, w, and blocked, its place in a block }.
export function arrange(nodes, roots, expanded) {
  const open = new Set(expanded);
  const byId = new Map();
  // By level, as what follows.
  const widths = [];
  const xs = [];
  const blocks = [];
  const step = SIZE.height + SIZE.y;
  let [width, height] = [0, 0];

  function see(ids, parent, level) {
    // Damaged data must not send us in circles.
    const known = ids.filter((id) => nodes[id] && !byId.has(id));
    return known.map((id, index) => {
      const node = nodes[id];
      const row = { id, node, parent, level, index, of: known.length, open: !node.leaf && open.has(id), kids: [] };
      byId.set(id, row);
      const letters = Math.max(node.label.length, 0.88 * node.note.length);
      widths[level] = Math.max(
        widths[level] ?? SIZE.least,
        Math.min(SIZE.most, 62 + 6.3 * letters + 11 * node.marks.length),
      );
      if (row.open && node.children) row.kids = see(node.children, id, level + 1);
      return row;
    });
  }
  function put(row, x, y) {
    Object.assign(row, { x, y, w: widths[row.level] });
    width = Math.max(width, x + row.w);
    height = Math.max(height, y + SIZE.height);
  }
  // Rows without kids, below one another; from nine on they are a block. Returns where the next may be placed.
  function putClosed(run, parent, top) {
    if (!run.length) return top;
    const { level } = run[0];
    const columns = Math.min(COLUMNS, Math.round(Math.sqrt(run.length / 4)));
    const lines = Math.ceil(run.length / columns);
    const across = widths[level] + SIZE.y;
    run.forEach((row, i) => {
      row.blocked = columns > 1;
      put(row, xs[level] + Math.floor(i / lines) * across, top + (i % lines) * step);
    });
    const end = top + lines * step;
    if (columns === 1) return end;
    blocks.push({
      parent,
      x: xs[level],
      y: top,
      w: Math.ceil(run.length / lines) * across - SIZE.y,
      h: end - top - SIZE.y,
    });
    return end + SIZE.y;
  }
  function place(siblings, parent, top) {
    let closed = [];
    for (const row of siblings) {
      const { kids, level } = row;
      if (!kids.length) {
        closed.push(row);
        continue;
      }
      top = putClosed(closed, parent, top);
      closed = [];
      const end = place(kids, row, top);
      const first = kids[0].y;
      // Near the first: not off the screen.
      put(row, xs[level], Math.min((first + kids.at(-1).y) / 2, first + 2 * step));
      top = Math.max(end, row.y + step) + (kids.length > 1 ? SIZE.y : 0);
    }
    return putClosed(closed, parent, top);
  }

  const first = see(roots, null, 1);
  let left = 0;
  widths.forEach((wide, level) => {
    xs[level] = left;
    left += wide + SIZE.x;
  });
  place(first, null, 0);
  return { rows: [...byId.values()], byId, blocks, width, height };
}
