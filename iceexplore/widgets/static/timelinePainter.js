/**
 * The timeline's picture: snapshots in lanes, what each changed, totals as curves, dates, and the names of refs.
 *
 * @module
 */

/** @import { Colours, Look, Measure, Snapshot, Styles } from "./types.d.ts" */
/** @import { Bin } from "./timelineScale.js" */

import { clamp } from "./dom.js";
import { drawPath, drawText, fitText } from "./painting.js";

/** The distance between snapshots, in px, below which they are drawn small. */
const DENSE = 7;
/** The maximum height of a snapshot's bars in px, depending on whether it is in the main lane. */
const BAR_HEIGHTS = { main: { added: 28, removed: 15 }, side: { added: 13, removed: 9 } };
/** The minimum and maximum height, in px, of the band that shows a bin's commits. */
const BIN_HEIGHTS = { least: 3, most: 13 };
/** The width of a bin in px. */
export const BIN_WIDTH = 8;
/** The maximum number of ref names for which the painter looks for room. */
const MOST_FLAGS = 200;
/** The distance between simulated commits in px. */
export const GHOST_STEP = 15;
/** The index, in `totals`, of the curves for a measure: the first is solid, the second dashed. */
const CURVES = /** @type {Record<Measure, number[]>} */ ({ rows: [0, 4], files: [1, 2], bytes: [3] });
/**
 * For each curve, by its index, the total whose largest value is the top of its scale. Rows that are left have the scale
 * of all rows, which they are a part of.
 */
const SCALED_BY = [0, 1, 2, 3, 0];

/**
 * What is painted.
 *
 * @typedef {object} TimelinePicture
 * @property {Snapshot[]} all
 * @property {[from: number, to: number]} range The indexes of the snapshots that are in view.
 * @property {Map<string, Bin> | null} bins They are drawn in place of snapshots.
 * @property {(index: number) => number} x Where a snapshot is, in px.
 * @property {(lane: number) => number} laneY Where a lane is, in px.
 * @property {number} most The largest change.
 * @property {number} top Where the lanes begin, in px.
 * @property {number} bottom Where they end.
 * @property {number} width
 * @property {number} height
 * @property {Measure} measure
 * @property {{ x: number, text: string }[]} ticks
 * @property {boolean} totals Whether curves are drawn.
 * @property {(index: number) => boolean} matches
 * @property {Record<string, string>} broken
 * @property {number} ghosts The number of simulated commits after the last snapshot.
 * @property {number} now The index of the selected snapshot, or -1.
 * @property {number} other The index of the snapshot compared with, or -1.
 * @property {number} hovered The index of the snapshot under the pointer, or -1.
 */

/**
 * Return the height of a bar, on a logarithmic scale.
 *
 * @param {number} n
 * @param {number} most The largest number, which has the highest bar.
 * @param {number} room The height of the highest bar, in px.
 * @returns {number} In px; at least 2 unless `n` is 0.
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
  const { all, range, bins, x, laneY, top, bottom, width, height, measure, now, other, hovered, matches } = picture;
  const [from, to] = range;
  const isDense = width / (to - from) < DENSE;
  const font = `11px ${colours.font}`;

  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  dates();
  if (other >= 0 && now >= 0) {
    const left = Math.min(x(now), x(other));
    const between = () => context.rect(left, top, Math.abs(x(now) - x(other)), bottom - top);
    drawPath(context, between, { fill: colours.chosen, alpha: 0.5 });
  }
  if (picture.totals) curves();
  if (other >= 0) pole(other, { stroke: colours.muted, dash: [3, 3] });
  if (now >= 0) pole(now, { stroke: colours.accent });
  if (bins) {
    paintBins(bins);
  } else {
    links({ stroke: colours.muted, alpha: 0.55 }, true);
    links({ stroke: colours.muted, alpha: 0.55, dash: [2, 3] }, false);
    marks();
  }
  ghosts();
  for (const i of [hovered, other, now]) {
    if (i < 0 || (bins && i !== now && i !== other)) continue;
    const ring = () => context.arc(x(i), laneY(all[i].lane), 8, 0, 7);
    drawPath(context, ring, { stroke: i === other ? colours.muted : colours.accent, width: i === now ? 2 : 1.25 });
  }
  flags();

  function dates() {
    drawPath(context, () => {
      for (const tick of picture.ticks) {
        context.moveTo(tick.x, top);
        context.lineTo(tick.x, bottom + 3);
      }
    }, { stroke: colours.line });
    let free = 0;
    for (const tick of picture.ticks) {
      context.font = font;
      const textWidth = context.measureText(tick.text).width;
      const left = clamp(2, tick.x - textWidth / 2, width - textWidth - 2);
      if (left < free) continue;
      drawText(context, tick.text, left, bottom + 10, colours.muted, font);
      free = left + textWidth + 10;
    }
  }

  /** Draw the totals of the summaries as steps; where a summary has none, the curve has a gap. */
  function curves() {
    const [low, high] = [laneY(0) + BAR_HEIGHTS.main.removed, top + 2];
    CURVES[measure].forEach((which, n) => {
      const most = all.reduce((largest, { totals }) => Math.max(largest, totals[SCALED_BY[which]]), 1);
      const y = (/** @type {number} */ i) => low - ((low - high) * all[i].totals[which]) / most;
      // If there are many snapshots, one in each px is enough.
      const stride = Math.max(1, Math.floor((to - from) / width));
      const path = () => {
        let isDown = true;
        for (let i = Math.max(0, from - 1); i < Math.min(all.length, to + 1); i += stride) {
          const { lane, totals } = all[i];
          if (lane) continue;
          if (totals[which] < 0) {
            isDown = true;
          } else if (isDown) {
            context.moveTo(x(i), y(i));
            isDown = false;
          } else {
            // A total holds until the next commit.
            context.lineTo(x(i), lastY);
            context.lineTo(x(i), y(i));
          }
          if (totals[which] >= 0) lastY = y(i);
        }
      };
      let lastY = 0;
      drawPath(context, path, { stroke: colours.accent, width: 1.3, alpha: 0.65, dash: n ? [4, 3] : [] });
    });
  }

  /**
   * Draw a vertical line at a snapshot.
   *
   * @param {number} i
   * @param {Look} look
   * @param {number} [start]
   * @param {number} [end]
   */
  function pole(i, look, start = top, end = bottom) {
    const path = () => {
      context.moveTo(x(i), start);
      context.lineTo(x(i), end);
    };
    drawPath(context, path, look);
  }

  /**
   * Draw the lines from snapshots to their parents.
   *
   * @param {Look} look
   * @param {boolean} reached Whether to draw the lines of snapshots that a ref reaches; if not, those of the others.
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

  /** Draw snapshots and their changes. */
  function marks() {
    for (let i = from; i < to; i++) {
      const { lane, id, [measure]: [added, removed] } = all[i];
      const fade = matches(i) ? 1 : 0.2;
      bars(x(i), lane, added, removed, picture.most, isDense ? 2 : 6, 0.5 * fade);
      shape(all[i], x(i), laneY(lane), fade);
      if (id in picture.broken) warning(x(i), laneY(lane) - 9);
    }
  }

  /**
   * @param {number} centre
   * @param {number} lane
   * @param {number} added
   * @param {number} removed
   * @param {number} most
   * @param {number} barWidth
   * @param {number} alpha
   */
  function bars(centre, lane, added, removed, most, barWidth, alpha) {
    const rooms = lane ? BAR_HEIGHTS.side : BAR_HEIGHTS.main;
    const left = centre - barWidth / 2;
    const up = () => context.rect(left, laneY(lane), barWidth, -barHeight(added, most, rooms.added));
    const down = () => context.rect(left, laneY(lane), barWidth, barHeight(removed, most, rooms.removed));
    drawPath(context, up, { fill: colours.tint("mark:added"), alpha });
    drawPath(context, down, { fill: colours.tint("mark:removed"), alpha });
  }

  /**
   * Draw bins: each has a band, which shows the number of commits by operation, and bars for what they changed.
   *
   * @param {Map<string, Bin>} all
   */
  function paintBins(all) {
    let most = 1;
    let largest = 1;
    for (const { count, added, removed } of all.values()) {
      most = Math.max(most, count);
      largest = Math.max(largest, added, removed);
    }
    for (const bin of all.values()) {
      const left = Math.floor((x(bin.first) + x(bin.last)) / 2 / BIN_WIDTH) * BIN_WIDTH;
      const y = laneY(bin.lane);
      drawPath(context, () => context.rect(left, y - 0.5, BIN_WIDTH, 1), { fill: colours.muted, alpha: 0.55 });
      bars(left + BIN_WIDTH / 2, bin.lane, bin.added, bin.removed, largest, BIN_WIDTH - 2, 0.35);
      const full = bin.count && BIN_HEIGHTS.least + (BIN_HEIGHTS.most - BIN_HEIGHTS.least) * (bin.count / most);
      let at = y - full / 2;
      for (const [operation, n] of bin.operations) {
        const part = (full * n) / bin.count;
        const band = () => context.rect(left + 1, at, BIN_WIDTH - 2, part);
        drawPath(context, band, { fill: colours.tint(`operation:${operation}`) });
        at += part;
      }
      if (hovered >= bin.first && hovered <= bin.last && picture.all[hovered].lane === bin.lane) {
        const frame = () => context.rect(left - 1, y - 11, BIN_WIDTH + 2, 22);
        drawPath(context, frame, { stroke: colours.accent, width: 1.25 });
      }
      if (bin.isBroken) warning(left + BIN_WIDTH / 2, y - 13);
    }
  }

  /**
   * Draw the sign of a problem.
   *
   * @param {number} centre
   * @param {number} y
   */
  function warning(centre, y) {
    const path = () => {
      context.moveTo(centre, y - 6);
      context.lineTo(centre + 6, y + 4);
      context.lineTo(centre - 6, y + 4);
      context.closePath();
    };
    const colour = colours.tint("mark:problem");
    drawPath(context, path, { fill: colours.paper, stroke: colour, width: 1.5 });
    drawPath(context, () => context.rect(centre - 0.75, y - 2.5, 1.5, 3.5), { fill: colour });
    drawPath(context, () => context.rect(centre - 0.75, y + 1.7, 1.5, 1.3), { fill: colour });
  }

  /**
   * @param {Snapshot} snapshot
   * @param {number} centreX
   * @param {number} centreY
   * @param {number} alpha
   */
  function shape({ operation, reached }, centreX, centreY, alpha) {
    const name = `operation:${operation}`;
    const radius = isDense ? 1.8 : 4.5;
    const colour = colours.tint(name);
    const path = () => {
      const { corners } = styles[name] ?? {};
      if (!corners) return context.arc(centreX, centreY, radius * 0.9, 0, 7);
      for (const [dx, dy] of corners) context.lineTo(centreX + dx * radius, centreY + dy * radius);
      context.closePath();
    };
    if (isDense) {
      drawPath(context, path, { fill: colour, alpha });
    } else {
      // The shape is hollow if no ref reaches the snapshot, or if its operation has no style.
      const fill = reached && styles[name] ? colour : colours.paper;
      drawPath(context, path, { fill, stroke: colour, width: 1.4, alpha });
    }
  }

  /** Draw simulated commits, dashed and hollow, after the last snapshot. */
  function ghosts() {
    const last = all.length - 1;
    const y = laneY(0);
    for (let n = 1; n <= picture.ghosts; n++) {
      const centre = x(last) + n * GHOST_STEP;
      const line = () => {
        context.moveTo(centre - GHOST_STEP + (n > 1 ? 5 : 6), y);
        context.lineTo(centre - 5, y);
      };
      drawPath(context, line, { stroke: colours.muted, dash: [2, 2] });
      const ring = () => context.arc(centre, y, 4.5, 0, 7);
      drawPath(context, ring, { fill: colours.paper, stroke: colours.accent, dash: [2.5, 2], width: 1.4 });
    }
  }

  /** Draw the names of refs where there is room: first main, then branches, then tags. */
  function flags() {
    const MAIN = 0;
    const BRANCH = 1;
    const TAG = 2;
    /** @type {{ i: number, name: string, kind: number }[]} */
    const named = [];
    for (let i = from; i < to; i++) {
      all[i].refs.forEach((name, n) => {
        const kind = name === "main" ? MAIN : BRANCH;
        named.push({ i, name, kind: n >= all[i].branches ? TAG : kind });
      });
    }
    named.sort((a, b) => a.kind - b.kind || b.i - a.i);
    /** @type {{ left: number, right: number, top: number }[]} */
    const taken = [];
    for (const { i, name, kind } of thinned(named, MOST_FLAGS)) {
      const { lane } = all[i];
      const text = fitText(context, name, 130, font);
      context.font = font;
      const flagWidth = context.measureText(text).width + 12;
      const centre = x(i);
      const flagTop = lane ? laneY(lane) - 8 : 0;
      // In a side lane, the name is beside the snapshot if it covers no other one there; in the main lane, above it.
      const lefts = lane
        ? [centre + 11, centre - 11 - flagWidth]
        : [clamp(1, centre - flagWidth / 2, width - flagWidth - 1)];
      const left = lefts.find((one) => {
        const right = one + flagWidth;
        const isTaken = taken.some((box) => box.top === flagTop && one < box.right + 4 && box.left < right + 4);
        return one > 0 && right < width && !isTaken && !(lane && isOccupied(lane, one - 5, right + 5));
      });
      if (centre < 0 || centre > width || left === undefined) continue;
      taken.push({ left, right: left + flagWidth, top: flagTop });
      if (!lane) pole(i, { stroke: colours.muted, alpha: 0.5 }, 16, laneY(0) - 7);
      const isTag = kind === TAG;
      const outline = () => context.roundRect(left, flagTop + 0.5, flagWidth, 15, isTag ? 2 : 7.5);
      drawPath(context, outline, { fill: colours.paper, stroke: colours.muted, dash: isTag ? [3, 2] : [] });
      drawText(context, text, left + 6, flagTop + 8.5, kind === MAIN ? colours.ink : colours.muted, font);
    }
  }
  /**
   * Return whether there is a snapshot in a lane between two places.
   *
   * @param {number} lane
   * @param {number} left
   * @param {number} right
   */
  function isOccupied(lane, left, right) {
    const isIn = (/** @type {number} */ i) => all[i].lane === lane && x(i) > left && x(i) < right;
    if (bins) return [...bins.values()].some(({ first, last }) => isIn(first) || isIn(last));
    for (let i = from; i < to; i++) if (isIn(i)) return true;
    return false;
  }
}
