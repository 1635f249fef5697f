/**
 * The timeline's picture: snapshots in lanes, what each changed, and the names of refs.
 *
 * @module
 */

/** @import { Colours, Look, Measure, Snapshot, Styles } from "./types.d.ts" */

import { clamp } from "./dom.js";
import { drawPath, drawText, fitText } from "./painting.js";

/** The distance between snapshots, in px, below which they are drawn together. */
const DENSE = 7;
/** The width, in px, over which changes are drawn together. */
const BIN = 3;
/** The maximum height of a snapshot's bars in px, depending on whether it is in the main lane. */
const BAR_HEIGHTS = { main: { added: 28, removed: 15 }, side: { added: 13, removed: 9 } };
/** The maximum number of ref names for which the painter looks for room. */
const MOST_FLAGS = 200;

/**
 * What is painted.
 *
 * @typedef {object} TimelinePicture
 * @property {Snapshot[]} all
 * @property {number[]} seen The indexes of the snapshots that are in view.
 * @property {(index: number) => number} x Where a snapshot is, in px.
 * @property {(lane: number) => number} laneY Where a lane is, in px.
 * @property {number} most The largest change.
 * @property {number} top Where the lanes begin, in px.
 * @property {number} width
 * @property {number} height
 * @property {Measure} measure
 * @property {number} now The index of the selected snapshot, or -1.
 * @property {number} other That of the snapshot compared with, or -1.
 * @property {number} hovered That of the snapshot under the pointer, or -1.
 */

/**
 * Return the height of a bar, on a logarithmic scale.
 *
 * @param {number} n
 * @param {number} most The number of the highest bar.
 * @param {number} room The height of the highest bar, in px.
 * @returns {number} In px; at least 2 for what is not 0.
 */
export function barHeight(n, most, room) {
  if (!n) return 0;
  return Math.max(2, (room * Math.log1p(n)) / Math.log1p(most));
}

/**
 * Return at most `most` items, evenly spread over a list; the first is kept.
 *
 * @template T
 * @param {T[]} items
 * @param {number} most
 * @returns {T[]}
 */
export function thinned(items, most) {
  const step = Math.max(1, Math.ceil(items.length / most));
  return items.filter((_, i) => i % step === 0);
}

/**
 * Paint the timeline.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Colours} colours
 * @param {Styles} styles
 * @param {TimelinePicture} picture
 */
export function paintTimeline(context, colours, styles, picture) {
  const { all, seen, x, laneY, most, top, width, height, measure, now, other, hovered } = picture;
  const isDense = width / seen.length < DENSE;

  context.clearRect(0, 0, width, height);
  if (other >= 0 && now >= 0) {
    const left = Math.min(x(now), x(other));
    const between = () => context.rect(left, top, Math.abs(x(now) - x(other)), height - top);
    drawPath(context, between, { fill: colours.chosen, alpha: 0.5 });
  }
  if (other >= 0) pole(other, { stroke: colours.muted, dash: [3, 3] });
  if (now >= 0) pole(now, { stroke: colours.accent });
  links({ stroke: colours.muted, alpha: 0.55 }, true);
  links({ stroke: colours.muted, alpha: 0.55, dash: [2, 3] }, false);
  marks();
  for (const i of [hovered, other, now]) {
    if (i < 0) continue;
    const ring = () => context.arc(x(i), laneY(all[i].lane), 8, 0, 7);
    drawPath(context, ring, { stroke: i === other ? colours.muted : colours.accent, width: i === now ? 2 : 1.25 });
  }
  flags();

  /**
   * Draw a vertical line at a snapshot.
   *
   * @param {number} i
   * @param {Look} look
   * @param {number} [from]
   * @param {number} [to]
   */
  function pole(i, look, from = top, to = height) {
    const path = () => {
      context.moveTo(x(i), from);
      context.lineTo(x(i), to);
    };
    drawPath(context, path, look);
  }

  /**
   * Draw the lines from snapshots to their parents.
   *
   * @param {Look} look
   * @param {boolean} reached Whether to draw the lines of snapshots that a ref reaches, or those of the others.
   */
  function links(look, reached) {
    const path = () => {
      all.forEach((snapshot, i) => {
        if (snapshot.parent < 0 || snapshot.reached !== reached) return;
        const fromX = x(snapshot.parent);
        const toX = x(i);
        if (Math.max(fromX, toX) < 0 || Math.min(fromX, toX) > width) return;
        const fromY = laneY(all[snapshot.parent].lane);
        const toY = laneY(snapshot.lane);
        context.moveTo(fromX, fromY);
        if (fromY === toY) context.lineTo(toX, toY);
        else context.bezierCurveTo((fromX + toX) / 2, fromY, fromX, toY, toX, toY);
      });
    };
    drawPath(context, path, look);
  }

  /** Draw snapshots and their changes. Where snapshots are too close, draw the largest changes within a few px. */
  function marks() {
    const bin = (/** @type {number} */ i) => Math.round(x(i) / BIN) * BIN;
    const largest = (/** @type {number} */ i) => Math.max(...all[i][measure]);
    const groups = Map.groupBy(seen, (i) => (isDense ? `${bin(i)} ${all[i].lane}` : i));
    for (const near of groups.values()) {
      const i = near.reduce((a, b) => (largest(b) > largest(a) ? b : a));
      const centreX = isDense ? bin(i) : x(i);
      const centreY = laneY(all[i].lane);
      bars(near, all[i], centreX, centreY);
      shape(all[i], centreX, centreY);
    }
  }

  /**
   * @param {number[]} near The snapshots that are drawn together.
   * @param {Snapshot} snapshot
   * @param {number} centreX
   * @param {number} centreY
   */
  function bars(near, { lane }, centreX, centreY) {
    const barWidth = isDense ? BIN - 1 : 6;
    const rooms = lane ? BAR_HEIGHTS.side : BAR_HEIGHTS.main;
    const [added, removed] = [0, 1].map((side) => Math.max(...near.map((i) => all[i][measure][side])));
    const up = () => context.rect(centreX - barWidth / 2, centreY, barWidth, -barHeight(added, most, rooms.added));
    const down = () => context.rect(centreX - barWidth / 2, centreY, barWidth, barHeight(removed, most, rooms.removed));
    drawPath(context, up, { fill: colours.tint("mark:added"), alpha: 0.5 });
    drawPath(context, down, { fill: colours.tint("mark:removed"), alpha: 0.5 });
  }

  /**
   * @param {Snapshot} snapshot
   * @param {number} centreX
   * @param {number} centreY
   */
  function shape({ operation, reached }, centreX, centreY) {
    const name = `operation:${operation}`;
    const radius = isDense ? 1.5 : 4.5;
    const colour = colours.tint(name);
    const path = () => {
      const { corners } = styles[name] ?? {};
      if (!corners) return context.arc(centreX, centreY, radius * 0.9, 0, 7);
      for (const [dx, dy] of corners) context.lineTo(centreX + dx * radius, centreY + dy * radius);
      context.closePath();
    };
    if (isDense) {
      drawPath(context, path, { fill: colour });
    } else {
      // Hollow: a snapshot that no ref reaches, or an operation that has no style.
      drawPath(context, path, { fill: reached && styles[name] ? colour : colours.paper, stroke: colour, width: 1.4 });
    }
  }

  /** Draw the names of refs where there is room: first main, then branches, then tags. */
  function flags() {
    const MAIN = 0;
    const BRANCH = 1;
    const TAG = 2;
    const named = seen.flatMap((i) =>
      all[i].refs.map((name, n) => {
        const kind = name === "main" ? MAIN : BRANCH;
        return { i, name, kind: n >= all[i].branches ? TAG : kind };
      })
    );
    named.sort((a, b) => a.kind - b.kind || b.i - a.i);
    /** @type {{ left: number, right: number, top: number }[]} */
    const taken = [];
    const font = `11px ${colours.font}`;
    context.textBaseline = "middle";
    for (const { i, name, kind } of thinned(named, MOST_FLAGS)) {
      const { lane } = all[i];
      const text = fitText(context, name, 130, font);
      context.font = font;
      const flagWidth = context.measureText(text).width + 12;
      const centre = x(i);
      // In a side lane beside the snapshot, not on it; in the main lane above it.
      const beside = centre + 11 + flagWidth < width ? centre + 11 : centre - 11 - flagWidth;
      const left = clamp(1, lane ? beside : centre - flagWidth / 2, width - flagWidth - 1);
      const right = left + flagWidth;
      const flagTop = lane ? laneY(lane) - 8 : 0;
      const isTaken = taken.some((box) => box.top === flagTop && left < box.right + 4 && box.left < right + 4);
      if (centre < 0 || centre > width || isTaken) continue;
      taken.push({ left, right, top: flagTop });
      if (!lane) pole(i, { stroke: colours.muted, alpha: 0.5 }, 16, laneY(0) - 7);
      const isTag = kind === TAG;
      const outline = () => context.roundRect(left, flagTop + 0.5, flagWidth, 15, isTag ? 2 : 7.5);
      drawPath(context, outline, { fill: colours.paper, stroke: colours.muted, dash: isTag ? [3, 2] : [] });
      drawText(context, text, left + 6, flagTop + 8.5, kind === MAIN ? colours.ink : colours.muted, font);
    }
  }
}
