// A forest: which nodes are seen, and where their cards stand. Left to right, level by level; many leaves side by side
// become a block of several columns, so that a long list stays readable.

export const SIZE = { height: 40, x: 38, y: 8, least: 92, most: 220 };
// So many closed nodes in a row stand below each other; more are a block.
const LONG = 8;
const COLUMNS = 8;
const NONE = [];

// The nodes that are seen, in order: { id, node, parent, level (from 1), index, of, open, kids }.
export function seen(nodes, roots, expanded) {
  const open = new Set(expanded);
  const rows = [];
  // Damaged data must not send us in circles.
  const known = new Set();
  const walk = (ids, parent, level) => {
    const here = [];
    ids.forEach((id, index) => {
      const node = nodes[id];
      if (!node || known.has(id)) return;
      known.add(id);
      const row = { id, node, parent, level, index, of: ids.length, open: !node.leaf && open.has(id), kids: NONE, x: 0, y: 0, w: 0, blocked: false };
      rows.push(row);
      here.push(row);
      if (row.open && node.children) row.kids = walk(node.children, id, level + 1);
    });
    return here;
  };
  return { rows, roots: walk(roots, null, 1) };
}

// Places every row: gives it x, y, w; returns { rows, byId, blocks, width, height }.
export function layout({ rows, roots }) {
  const widths = [];
  for (const row of rows) {
    const letters = Math.max(row.node.label.length, 0.88 * (row.node.note ?? "").length);
    const w = Math.min(SIZE.most, Math.max(SIZE.least, 62 + 6.3 * letters + 11 * (row.node.marks?.length ?? 0)));
    widths[row.level] = Math.max(widths[row.level] ?? 0, w);
  }
  const xs = [];
  let left = 0;
  for (let level = 1; level < widths.length; level++) {
    xs[level] = left;
    left += widths[level] + SIZE.x;
  }
  const blocks = [];
  const all = { rows, byId: new Map(rows.map((row) => [row.id, row])), blocks, width: 0, height: 0 };
  const step = SIZE.height + SIZE.y;

  function put(row, x, y) {
    row.x = x;
    row.y = y;
    row.w = widths[row.level];
    if (x + row.w > all.width) all.width = x + row.w;
    if (y + SIZE.height > all.height) all.height = y + SIZE.height;
  }
  function block(run, parent, top) {
    const level = run[0].level;
    const columns = Math.min(COLUMNS, Math.max(2, Math.round(Math.sqrt(run.length / 4))));
    const lines = Math.ceil(run.length / columns);
    run.forEach((row, i) => {
      row.blocked = true;
      put(row, xs[level] + Math.floor(i / lines) * (widths[level] + SIZE.y), top + (i % lines) * step);
    });
    const w = Math.ceil(run.length / lines) * (widths[level] + SIZE.y) - SIZE.y;
    blocks.push({ parent, x: xs[level], y: top, w, h: lines * step - SIZE.y });
    return top + lines * step + SIZE.y;
  }
  // The rows below one another from `top` on; returns where the next may stand.
  function place(siblings, parent, top) {
    for (let i = 0; i < siblings.length; ) {
      let j = i;
      while (j < siblings.length && !siblings[j].kids.length) j++;
      if (j - i > LONG) {
        top = block(siblings.slice(i, j), parent, top);
        i = j;
        continue;
      }
      const row = siblings[i++];
      if (!row.kids.length) {
        put(row, xs[row.level], top);
        top += step;
        continue;
      }
      const end = place(row.kids, row, top);
      const first = row.kids[0].y;
      const last = row.kids.at(-1).y;
      // Near the first: not off the screen.
      put(row, xs[row.level], Math.min((first + last) / 2, first + 2 * step));
      top = Math.max(end, row.y + step) + (row.kids.length > 1 ? SIZE.y : 0);
    }
    return top;
  }
  place(roots, null, 0);
  return all;
}
