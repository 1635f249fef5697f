// A history as the timeline's canvas shows it: snapshots in lanes, what each changed, and the names of refs.

import { clamp } from "./dom.js";
import { tint } from "./theme.js";

// Px: of changes that are drawn together.
const BIN = 3;
const CORNERS = { overwrite: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]], delete: [[-1, -0.8], [1, -0.8], [0, 1]], replace: [[0, -1.1], [1.1, 0], [0, 1.1], [-1.1, 0]] };

const clip = (text, n) => (text.length > n ? text.slice(0, n - 1) + "…" : text);

// Paints the snapshots `low` to `high` of `all`, those that are in view: `x` and `base` are where a snapshot and a lane
// are, `top` is where the lanes begin, `most` the largest change.
export function paintHistory(c, colours, styles, { all, x, base, low, high, dense, most, top, width, height, measure, now, other, hovered }) {
  const tinted = (name) => tint(colours, styles, name);
  if (other >= 0 && now >= 0) {
    c.fillStyle = colours.chosen;
    c.globalAlpha = 0.5;
    c.fillRect(Math.min(x(now), x(other)), top, Math.abs(x(now) - x(other)), height - top);
    c.globalAlpha = 1;
  }
  pole(other, colours.muted, [3, 3]);
  pole(now, colours.accent);
  links();
  marks();
  for (const i of [hovered, other, now]) if (i >= 0) ring(i, i === now ? 2 : 1.25, i === other ? colours.muted : colours.accent);
  flags();

  function stroke(wide, colour, dash = [], alpha = 1) {
    Object.assign(c, { lineWidth: wide, globalAlpha: alpha }, colour && { strokeStyle: colour });
    c.setLineDash(dash);
    c.stroke();
    c.setLineDash([]);
    c.globalAlpha = 1;
  }
  function pole(i, colour, dash, from = top, to = height, alpha = 1) {
    if (i < 0) return;
    c.beginPath();
    c.moveTo(x(i), from);
    c.lineTo(x(i), to);
    stroke(1, colour, dash, alpha);
  }
  function links() {
    for (const reached of [true, false]) {
      c.beginPath();
      all.forEach((s, i) => {
        if (s.parent < 0 || s.reached !== reached) return;
        const [from, to] = [x(s.parent), x(i)];
        if (Math.max(from, to) < 0 || Math.min(from, to) > width) return;
        const [top, bottom] = [base(all[s.parent].lane), base(s.lane)];
        c.moveTo(from, top);
        if (top === bottom) c.lineTo(to, bottom);
        else c.bezierCurveTo((from + to) / 2, top, from, bottom, to, bottom);
      });
      stroke(1, colours.muted, reached ? [] : [2, 3], 0.55);
    }
  }
  function bar(left, wide, lane, [more, less]) {
    const size = (n, room) => (n && most ? Math.max(2, (room * Math.log1p(n)) / Math.log1p(most)) : 0);
    const [up, down] = lane ? [13, 9] : [28, 15];
    c.globalAlpha = 0.5;
    c.fillStyle = tinted("mark:added");
    c.fillRect(left, base(lane) - size(more, up), wide, size(more, up));
    c.fillStyle = tinted("mark:removed");
    c.fillRect(left, base(lane), wide, size(less, down));
    c.globalAlpha = 1;
  }
  // Where they stand too near: the largest changes in each few pixels.
  function marks() {
    const bins = new Map();
    for (let i = low; i <= high; i++) {
      const s = all[i];
      const px = dense ? Math.round(x(i) / BIN) * BIN : x(i);
      const key = dense ? px * 8 + s.lane : i;
      const bin = bins.get(key) ?? { s, px, sides: [0, 0] };
      const sides = s[measure];
      if (Math.max(...sides) > Math.max(...bin.sides)) bin.s = s;
      bin.sides = bin.sides.map((n, side) => Math.max(n, sides[side]));
      bins.set(key, bin);
    }
    for (const { s, px, sides } of bins.values()) {
      const wide = dense ? BIN - 1 : 6;
      bar(px - wide / 2, wide, s.lane, sides);
      c.fillStyle = c.strokeStyle = tinted("operation:" + s.operation);
      shape(s.operation, px, base(s.lane), dense ? 1.5 : 4.5);
      if (!dense && (!s.reached || !styles["operation:" + s.operation])) c.fillStyle = colours.paper;
      c.fill();
      if (!dense) stroke(1.4);
    }
  }
  function shape(operation, px, y, r) {
    c.beginPath();
    const corners = CORNERS[operation];
    for (const [dx, dy] of corners ?? []) c.lineTo(px + dx * r, y + dy * r);
    if (corners) c.closePath();
    else c.arc(px, y, r * 0.9, 0, 7);
  }
  function ring(i, wide, colour) {
    c.beginPath();
    c.arc(x(i), base(all[i].lane), 8, 0, 7);
    stroke(wide, colour);
  }
  // The names of refs where there is room: main, branches, tags.
  function flags() {
    const named = [];
    for (let i = low; i <= high; i++) all[i].refs.forEach((name, n) => named.push([n < all[i].branches ? (name === "main" ? 0 : 1) : 2, -i, i, name]));
    named.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const taken = [];
    c.font = `11px ${colours.font}`;
    c.textBaseline = "middle";
    for (const [kind, , i, whole] of named.slice(0, 200)) {
      const { lane } = all[i];
      const name = clip(whole, 20);
      const wide = c.measureText(name).width + 12;
      const px = x(i);
      // Beside a mark of a lane, not on it; above one of main.
      const beside = px + 11 + wide < width ? px + 11 : px - 11 - wide;
      const left = clamp(1, lane ? beside : px - wide / 2, width - wide - 1);
      const top = lane ? base(lane) - 8 : 0;
      if (px < 0 || px > width || taken.some(([l, r, t]) => t === top && left < r + 4 && l < left + wide + 4)) continue;
      taken.push([left, left + wide, top]);
      if (!lane) pole(i, colours.muted, [], 16, base(0) - 7, 0.5);
      c.beginPath();
      c.roundRect(left, top + 0.5, wide, 15, kind === 2 ? 2 : 7.5);
      c.fillStyle = colours.paper;
      c.fill();
      stroke(1, colours.muted, kind === 2 ? [3, 2] : []);
      c.fillStyle = kind ? colours.muted : colours.ink;
      c.fillText(name, left + 6, top + 8.5);
    }
  }
}
