// A forest as a view of a canvas shows it: cards, joined by lines; in less detail from afar.

import { SIZE } from "./arrangement.js";
import { drawPath, drawText, fitText } from "./painting.js";

// From this scale on cards have words.
export const WORDS = 0.52;
// And icons; below they are dots.
export const ICONS = 0.24;
// Of what a node is marked with, the first of these gives it its colour.
const TELLING = ["mark:problem", "mark:removed", "mark:added"];

// `colours` is what inks returns, `styles` the look of the kinds of nodes.
export function cardPainter(colours, styles) {
  const paths = new Map();

  // Paints what a view shows of the forest: of this canvas, or of one for a file.
  function paint(canvas, { x, y, scale, width, height }, { map, state }) {
    const c = canvas.getContext("2d");
    const ratio = canvas.width / width;
    Object.assign(c, { direction: "ltr", lineJoin: "round", lineCap: "round", fillStyle: colours.panel });
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillRect(0, 0, width, height);
    c.setTransform(ratio * scale, 0, 0, ratio * scale, x * ratio, y * ratio);
    const [left, top, right, bottom] = [-x / scale, -y / scale, (width - x) / scale, (height - y) / scale];
    const outside = (r, h = SIZE.height) => r.x > right || r.x + r.w + 14 < left || r.y > bottom || r.y + h < top;
    const lines = () => {
      for (const { parent, x, y, w, h } of map.blocks) {
        if (parent) edge(c, parent, x - 6, y + Math.min(h, SIZE.height) / 2, top, bottom);
        if (!outside({ x: x - 6, y: y - 6, w: w + 12 }, h + 12)) c.roundRect(x - 6, y - 6, w + 12, h + 12, 8);
      }
      for (const row of map.rows) {
        for (const kid of row.kids) if (!kid.blocked) edge(c, row, kid.x, kid.y + SIZE.height / 2, top, bottom);
      }
    };
    drawPath(c, lines, { stroke: colours.line, width: Math.max(1, 0.6 / scale) });
    if (scale < ICONS) return dots(c, outside, scale, map, state);
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
    const highlighted = map.rows.filter(({ id }) => id === state.selected || state.hits.has(id));
    const frames = () =>
      highlighted.forEach(({ x, y, w }) => c.rect(x - least, y - least, w + 2 * least, SIZE.height + 2 * least));
    drawPath(c, frames, { stroke: colours.accent, width: 2 / scale });
  }
  // Of a node: the name of its colour.
  const mainMark = ({ marks }) => TELLING.find((name) => marks?.includes(name.slice(5)));
  const toneOf = (node) => colours.tint(mainMark(node) ?? node.kind);

  function card(c, row, scale, { selected, hovered, focus, hits }) {
    const { id, node, x, y, w } = row;
    const h = SIZE.height;
    const marks = node.marks ?? [];
    const pruned = marks.includes("pruned");
    const dim = pruned || (marks.includes("carried") && !marks.includes("problem"));
    const mark = mainMark(node);
    const chosen = id === selected;
    const more = node.kind === "more";
    drawPath(c, () => c.roundRect(x, y, w, h, 6), {
      fill: chosen ? colours.chosen : id === hovered ? colours.hover : more || pruned ? colours.panel : colours.paper,
      stroke: chosen ? colours.accent : mark ? colours.tint(mark) : colours.line,
      width: chosen ? 2 : 1,
      dash: marks.includes("removed") || more || pruned ? [4, 3] : [],
    });
    if (hits.has(id)) drawPath(c, () => c.rect(x + 8, y + h - 3, w - 16, 3), { fill: colours.accent });
    if (id === focus) {
      drawPath(c, () => c.roundRect(x - 3.5, y - 3.5, w + 7, h + 7, 9), { stroke: colours.accent, width: 2 });
    }
    c.globalAlpha = dim ? 0.72 : 1;
    drawIcon(c, node.kind, x + 9, y + 12, pruned);
    c.globalAlpha = 1;
    const signs = marks.map((m) => "mark:" + m).filter((name) => styles[name]?.sign);
    if (scale < WORDS) drawPath(c, () => c.rect(x + 32, y + 15, w - 52, 10), { fill: colours.line });
    else {
      const note = (pruned && node.reason) || node.note;
      const [large, small] = [`12.5px ${colours.font}`, `11px ${colours.font}`];
      const label = fitText(c, node.label, w - 45 - 11 * signs.length, large);
      drawText(
        c,
        label,
        x + 32,
        y + (note ? 17 : 24.5),
        more ? colours.accent : dim ? colours.muted : colours.ink,
        large,
      );
      if (note) drawText(c, fitText(c, note, w - 45, small), x + 32, y + 31.5, colours.muted, small);
    }
    const right = x + w - (node.leaf ? 6 : 13);
    signs.forEach((name, i) =>
      drawText(
        c,
        styles[name].sign,
        right - 11 * (signs.length - i),
        y + 17,
        colours.tint(name),
        `bold 13px ${colours.font}`,
      )
    );
    if (!node.leaf) twisty(c, row);
  }
  function twisty(c, { node, x, y, w, open }) {
    const [cx, cy] = [x + w, y + SIZE.height / 2];
    const sign = () => {
      // It is being read.
      if (open && !node.children) return [-3.5, 0, 3.5].forEach((d) => c.rect(cx + d - 0.5, cy - 0.5, 1, 1));
      c.moveTo(cx - 4, cy);
      c.lineTo(cx + 4, cy);
      if (open) return;
      c.moveTo(cx, cy - 4);
      c.lineTo(cx, cy + 4);
    };
    drawPath(c, () => c.arc(cx, cy, 8, 0, 7), { fill: colours.paper, stroke: colours.muted });
    drawPath(c, sign, { stroke: colours.ink, width: 1.4 });
  }
  function drawIcon(c, kind, x, y, grey) {
    if (!paths.has(kind)) paths.set(kind, (styles[kind]?.icon ?? ["", ""]).map((d) => new Path2D(d)));
    const [fill, line] = paths.get(kind);
    c.translate(x, y);
    c.fillStyle = c.strokeStyle = grey ? colours.muted : colours.tint(kind);
    c.lineWidth = 1.3;
    c.fill(fill);
    c.stroke(line);
    c.translate(-x, -y);
  }

  return { paint, toneOf };
}
