// A history as the timeline's canvas shows it: snapshots in lanes, what each changed, and the names of refs.

import { clamp } from "./dom.js";
import { drawPath, drawText, fitText } from "./painting.js";

// px apart: nearer ones are drawn together.
const DENSE = 7;
// Px: of changes that are drawn together.
const BIN = 3;

// Paints a history: `seen` are the places in `all` of the snapshots that are in view, `x` and `base` are where a snapshot
// and a lane are, `top` is where the lanes begin, `most` the largest change.
export function paintHistory(
  c,
  colours,
  styles,
  { all, seen, x, base, most, top, width, height, measure, now, other, hovered },
) {
  const dense = width / seen.length < DENSE;
  c.clearRect(0, 0, width, height);
  if (other >= 0 && now >= 0) {
    drawPath(c, () => c.rect(Math.min(x(now), x(other)), top, Math.abs(x(now) - x(other)), height - top), {
      fill: colours.chosen,
      alpha: 0.5,
    });
  }
  if (other >= 0) pole(other, { stroke: colours.muted, dash: [3, 3] });
  if (now >= 0) pole(now, { stroke: colours.accent });
  links({ stroke: colours.muted, alpha: 0.55 }, true);
  links({ stroke: colours.muted, alpha: 0.55, dash: [2, 3] }, false);
  marks();
  for (const i of [hovered, other, now]) {
    if (i >= 0) {
      drawPath(c, () => c.arc(x(i), base(all[i].lane), 8, 0, 7), {
        stroke: i === other ? colours.muted : colours.accent,
        width: i === now ? 2 : 1.25,
      });
    }
  }
  flags();

  function pole(i, look, from = top, to = height) {
    const path = () => {
      c.moveTo(x(i), from);
      c.lineTo(x(i), to);
    };
    drawPath(c, path, look);
  }
  function links(look, reached) {
    const link = (s, i) => {
      if (s.parent < 0 || s.reached !== reached) return;
      const [from, to] = [x(s.parent), x(i)];
      if (Math.max(from, to) < 0 || Math.min(from, to) > width) return;
      const [top, bottom] = [base(all[s.parent].lane), base(s.lane)];
      c.moveTo(from, top);
      if (top === bottom) c.lineTo(to, bottom);
      else c.bezierCurveTo((from + to) / 2, top, from, bottom, to, bottom);
    };
    drawPath(c, () => all.forEach(link), look);
  }
  // Where they are too close: the largest changes in each few pixels.
  function marks() {
    const bin = (i) => Math.round(x(i) / BIN) * BIN;
    const largest = (i) => Math.max(...all[i][measure]);
    for (const near of Map.groupBy(seen, (i) => (dense ? `${bin(i)} ${all[i].lane}` : i)).values()) {
      const i = near.reduce((a, b) => (largest(b) > largest(a) ? b : a));
      const { operation, reached, lane } = all[i];
      const [px, y, wide] = dense ? [bin(i), base(lane), BIN - 1] : [x(i), base(lane), 6];
      for (const [side, mark, way, room] of [[0, "added", -1, lane ? 13 : 28], [1, "removed", 1, lane ? 9 : 15]]) {
        const n = Math.max(...near.map((one) => all[one][measure][side]));
        const high = n && way * Math.max(2, (room * Math.log1p(n)) / Math.log1p(most));
        drawPath(c, () => c.rect(px - wide / 2, y, wide, high), { fill: colours.tint("mark:" + mark), alpha: 0.5 });
      }
      const [name, r] = ["operation:" + operation, dense ? 1.5 : 4.5];
      const colour = colours.tint(name);
      const shape = () => {
        const { corners } = styles[name] ?? {};
        if (!corners) return c.arc(px, y, r * 0.9, 0, 7);
        for (const [dx, dy] of corners) c.lineTo(px + dx * r, y + dy * r);
        c.closePath();
      };
      drawPath(
        c,
        shape,
        dense
          ? { fill: colour }
          : { fill: reached && styles[name] ? colour : colours.paper, stroke: colour, width: 1.4 },
      );
    }
  }
  // The names of refs where there is room: main, branches, tags.
  function flags() {
    const named = seen.flatMap((i) =>
      all[i].refs.map((name, n) => ({ i, name, kind: n >= all[i].branches ? 2 : name === "main" ? 0 : 1 }))
    );
    named.sort((a, b) => a.kind - b.kind || b.i - a.i);
    const taken = [];
    const font = `11px ${colours.font}`;
    c.textBaseline = "middle";
    for (const { i, name, kind } of named.slice(0, 200)) {
      const { lane } = all[i];
      const text = fitText(c, name, 130, font);
      c.font = font;
      const wide = c.measureText(text).width + 12;
      const px = x(i);
      // Beside a mark of a lane, not on it; above one of main.
      const beside = px + 11 + wide < width ? px + 11 : px - 11 - wide;
      const left = clamp(1, lane ? beside : px - wide / 2, width - wide - 1);
      const top = lane ? base(lane) - 8 : 0;
      if (px < 0 || px > width || taken.some(([l, r, t]) => t === top && left < r + 4 && l < left + wide + 4)) continue;
      taken.push([left, left + wide, top]);
      if (!lane) pole(i, { stroke: colours.muted, alpha: 0.5 }, 16, base(0) - 7);
      const tag = kind === 2;
      drawPath(c, () => c.roundRect(left, top + 0.5, wide, 15, tag ? 2 : 7.5), {
        fill: colours.paper,
        stroke: colours.muted,
        dash: tag ? [3, 2] : [],
      });
      drawText(c, text, left + 6, top + 8.5, kind ? colours.muted : colours.ink, font);
    }
  }
}
