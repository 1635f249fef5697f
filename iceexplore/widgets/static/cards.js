// A forest as a view of a canvas shows it: cards, joined by lines; in less detail from afar.

import { tint } from "./theme.js";
import { SIZE } from "./layout.js";

// From this scale on cards have words.
export const WORDS = 0.52;
// And icons; below they are dots.
export const ICONS = 0.24;

// `colours` is what inks returns, `styles` the look of the kinds of nodes.
export function cardPainter(colours, styles) {
  const tinted = (name) => tint(colours, styles, name);
  const paths = new Map();
  // Texts as they fit.
  const cut = new Map();

  // Paints what a view shows of the forest: of this canvas, or of one for a file.
  function paint(canvas, { x, y, scale, width, height }, { map, state }) {
    const c = canvas.getContext("2d");
    const ratio = canvas.width / width;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.direction = "ltr";
    c.fillStyle = colours.panel;
    c.fillRect(0, 0, width, height);
    c.setTransform(ratio * scale, 0, 0, ratio * scale, x * ratio, y * ratio);
    const [left, top, right, bottom] = [-x / scale, -y / scale, (width - x) / scale, (height - y) / scale];
    const outside = (r, h = SIZE.height) => r.x > right || r.x + r.w + 14 < left || r.y > bottom || r.y + h < top;
    c.lineWidth = Math.max(1, 0.6 / scale);
    c.strokeStyle = c.fillStyle = colours.line;
    c.beginPath();
    for (const { parent, x, y, w, h } of map.blocks) {
      if (parent) edge(c, parent, x - 6, y + Math.min(h, SIZE.height) / 2, top, bottom);
      if (!outside({ x: x - 6, y: y - 6, w: w + 12 }, h + 12)) c.roundRect(x - 6, y - 6, w + 12, h + 12, 8);
    }
    for (const row of map.rows) for (const kid of row.kids) if (!kid.blocked) edge(c, row, kid.x, kid.y + SIZE.height / 2, top, bottom);
    c.stroke();
    if (scale < ICONS) return dots(c, outside, scale, map, state);
    c.textBaseline = "alphabetic";
    for (const row of map.rows) if (!outside(row)) card(c, row, scale, state);
  }
  function edge(c, { x, y, w }, toX, toY, top, bottom) {
    const fromY = y + SIZE.height / 2;
    if (Math.max(fromY, toY) < top || Math.min(fromY, toY) > bottom) return;
    const half = (x + w + toX) / 2;
    c.moveTo(x + w, fromY);
    if (Math.abs(toY - fromY) < 150) return c.bezierCurveTo(half, fromY, half, toY, toX, toY);
    // Far: down a common trunk.
    c.arcTo(half, fromY, half, toY, 8);
    c.arcTo(half, toY, toX, toY, 8);
    c.lineTo(toX, toY);
  }
  function dots(c, outside, scale, map, state) {
    // Never thinner than three pixels.
    const least = 3 / scale;
    const groups = Map.groupBy(map.rows.filter((row) => !outside(row)), ({ node }) => toneOf(node));
    c.globalAlpha = 0.75;
    for (const [colour, rows] of groups) {
      c.fillStyle = colour;
      for (const { x, y, w } of rows) c.fillRect(x, y, w, Math.max(least, SIZE.height - 10));
    }
    c.globalAlpha = 1;
    c.strokeStyle = colours.accent;
    c.lineWidth = 2 / scale;
    for (const row of map.rows) if (row.id === state.selected || state.hits.has(row.id)) c.strokeRect(row.x - least, row.y - least, row.w + 2 * least, SIZE.height + 2 * least);
  }
  // Of a node: the name of its colour.
  const tones = new WeakMap();
  const mainMark = (node) => {
    if (!tones.has(node)) tones.set(node, ["problem", "removed", "added"].find((mark) => node.marks?.includes(mark)));
    return tones.get(node) && "mark:" + tones.get(node);
  };
  const toneOf = (node) => tinted(mainMark(node) ?? node.kind);

  function card(c, row, scale, state) {
    const { id, node, x, y, w } = row;
    const h = SIZE.height;
    const marks = node.marks ?? [];
    const pruned = marks.includes("pruned");
    const dim = pruned || (marks.includes("carried") && !marks.includes("problem"));
    const mark = mainMark(node);
    const selected = id === state.selected;
    const more = node.kind === "more";
    c.beginPath();
    c.roundRect(x, y, w, h, 6);
    c.fillStyle = selected ? colours.chosen : id === state.hovered ? colours.hover : more || pruned ? colours.panel : colours.paper;
    c.fill();
    c.lineWidth = selected ? 2 : 1;
    c.strokeStyle = selected ? colours.accent : mark ? tinted(mark) : colours.line;
    if (marks.includes("removed") || more || pruned) c.setLineDash([4, 3]);
    c.stroke();
    c.setLineDash([]);
    if (state.hits.has(id)) {
      c.fillStyle = colours.accent;
      c.fillRect(x + 8, y + h - 3, w - 16, 3);
    }
    if (id === state.focus && state.hasFocus) {
      c.lineWidth = 2;
      c.strokeStyle = colours.accent;
      c.beginPath();
      c.roundRect(x - 3.5, y - 3.5, w + 7, h + 7, 9);
      c.stroke();
    }
    c.globalAlpha = dim ? 0.72 : 1;
    drawIcon(c, node.kind, x + 9, y + 12, pruned);
    c.globalAlpha = 1;
    const signs = marks.map((m) => [styles["mark:" + m]?.sign, tinted("mark:" + m)]).filter(([sign]) => sign);
    if (scale >= WORDS) {
      const room = w - 45 - 11 * signs.length;
      const note = (pruned && node.reason) || node.note;
      c.fillStyle = more ? colours.accent : dim ? colours.muted : colours.ink;
      c.font = `12.5px ${colours.font}`;
      c.fillText(fitted(c, node.label, room), x + 32, y + (note ? 17 : 24.5));
      if (note) {
        c.fillStyle = colours.muted;
        c.font = `11px ${colours.font}`;
        c.fillText(fitted(c, note, w - 45), x + 32, y + 31.5);
      }
    } else {
      c.fillStyle = colours.line;
      c.fillRect(x + 32, y + 15, w - 52, 10);
    }
    c.font = `bold 13px ${colours.font}`;
    signs.forEach(([sign, colour], i) => {
      c.fillStyle = colour;
      c.fillText(sign, x + w - 13 - 11 * (signs.length - i) + (node.leaf ? 7 : 0), y + 17);
    });
    if (!node.leaf) twisty(c, row);
  }
  function twisty(c, { node, x, y, w, open }) {
    const [cx, cy] = [x + w, y + SIZE.height / 2];
    c.beginPath();
    c.arc(cx, cy, 8, 0, 7);
    c.fillStyle = colours.paper;
    c.fill();
    c.lineWidth = 1;
    c.strokeStyle = colours.muted;
    c.stroke();
    c.beginPath();
    // It is being read.
    if (open && !node.children) for (const d of [-3.5, 0, 3.5]) c.rect(cx + d - 0.5, cy - 0.5, 1, 1);
    else {
      c.moveTo(cx - 4, cy);
      c.lineTo(cx + 4, cy);
      if (!open) {
        c.moveTo(cx, cy - 4);
        c.lineTo(cx, cy + 4);
      }
    }
    c.strokeStyle = colours.ink;
    c.lineWidth = 1.4;
    c.stroke();
  }
  function drawIcon(c, kind, x, y, grey) {
    const style = styles[kind] ?? {};
    if (!paths.has(kind)) paths.set(kind, (style.icon ?? ["", ""]).map((d) => (d ? new Path2D(d) : null)));
    const [fill, line] = paths.get(kind);
    c.translate(x, y);
    c.fillStyle = c.strokeStyle = grey ? colours.muted : tinted(kind);
    c.lineWidth = 1.3;
    c.lineJoin = c.lineCap = "round";
    if (fill) c.fill(fill);
    if (line) c.stroke(line);
    c.translate(-x, -y);
  }
  // A text as far as it has room.
  function fitted(c, text, room) {
    const key = `${c.font[0]}${Math.round(room)} ${text}`;
    let found = cut.get(key);
    if (found === undefined) {
      found = text;
      if (c.measureText(text).width > room) {
        let [low, high] = [0, text.length];
        while (low < high) {
          const middle = (low + high + 1) >> 1;
          if (c.measureText(text.slice(0, middle) + "…").width <= room) low = middle;
          else high = middle - 1;
        }
        found = text.slice(0, low) + "…";
      }
      if (cut.size > 20000) cut.clear();
      cut.set(key, found);
    }
    return found;
  }

  return { paint, toneOf, forget: () => cut.clear() };
}
