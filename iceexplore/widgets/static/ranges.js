/**
 * The range map: each file as a bar from its lower to its upper bound of a column, and the range that the filter
 * selects. The edges of that range can be moved, with a pointer or keys, from one stop to another; stops are the values
 * at which an edge can be. While an edge is moved, the map highlights the files that a plan of the range would read;
 * afterwards, the range becomes the filter.
 *
 * @module
 */

/** @import { Colours, Model, RangeAnswer, RangeCells, SlidePicture } from "./types.d.ts" */

import {
  clamp,
  consumeEvent,
  el,
  fill,
  formatBytes,
  formatCount,
  linkButton,
  listen,
  options,
  plural,
  selectBox,
  timer,
} from "./dom.js";
import { selectNode } from "./grid.js";
import { canvasColours, drawPath, drawText, fitText, inNextFrame, onResize, resizeCanvas } from "./painting.js";
import { pictureOf, slideButtons } from "./slide.js";

/** In px: the height of the axis below the picture, and how far from an edge a pointer can drag that edge. */
const AXIS = 20;
const EDGE_REACH = 12;
/** In px: the minimum length of a bar, and the maximum height of a row. */
const LEAST = 2;
const MOST_ROW = 20;
/** The number of stops by which Page Up and Page Down move an edge. */
const PAGE_STEP = 10;
/** The time, in ms, from the last key press until the new range is planned. */
const KEY_DELAY = 900;
/** The heights of bars, as shares of a row, and their colours, by verdict (an index in `VERDICTS` in Python). */
const HEIGHTS = [1, 1, 0.3, 0.45, 0.6];
const LIGHT_TINTS = ["#0b5c94", "#2f86c5", "#a8793a", "#7a9a4c", "#98a3b0"];
const DARK_TINTS = ["#7cc7f5", "#3f97d3", "#c79a5e", "#93b565", "#76828f"];
const ORDERS = { range: "Order: range", partition: "Order: partition", snapshot: "Order: snapshot" };

/** @typedef {[lower: number | null, upper: number | null]} Edges The indexes of stops; null for an open edge. */

/**
 * Return whether a plan of a range would read the files of a cell.
 *
 * @param {RangeCells} cells
 * @param {number} i
 * @param {Edges} edges
 */
export function isLit(cells, i, [lower, upper]) {
  return cells.open[i] > 0 && (lower === null || cells.last[i] > lower) && (upper === null || cells.first[i] <= upper);
}

/**
 * Return the number and bytes of the files that a plan of a range would read.
 *
 * @param {RangeAnswer} range
 * @param {Edges} edges
 * @returns {[files: number, bytes: number]}
 */
export function litSum({ cells: drawn, exact: cells = drawn, strips }, edges) {
  let [files, bytes] = [0, 0];
  for (let i = 0; i < cells.row.length; i++) {
    if (!isLit(cells, i, edges)) continue;
    files += cells.count[i];
    bytes += cells.size[i];
  }
  for (const [, , count, size] of strips) {
    files += count;
    bytes += size;
  }
  return [files, bytes];
}

/**
 * Return the filter of a range.
 *
 * @param {RangeAnswer} range
 * @param {Edges} edges
 */
export function rangeFilter({ rest, lows, highs }, [lower, upper]) {
  // The conditions of the edges come first, because the next map shows the filter's first column.
  const parts = [lower === null ? "" : lows[lower], upper === null ? "" : highs[upper], rest];
  return parts.filter(Boolean).join(" and ") || "true";
}

/**
 * Return the left and right end of a cell's range, from 0 to 1. A range between two stops is shown as their midpoint.
 *
 * @param {number[]} positions
 * @param {number} first
 * @param {number} last
 */
export function cellSpan(positions, first, last) {
  const low = positions[first] ?? 1;
  const high = positions[last - 1] ?? 0;
  return low <= high ? [low, high] : [(low + high) / 2, (low + high) / 2];
}

/**
 * Return the buttons that copy and save a picture of the plan; Python draws the picture.
 *
 * @param {Model} model
 * @param {"Ranges" | "Waterfall"} name
 * @param {Colours} colours
 */
export function planSlides(model, name, colours) {
  /** @type {(picture: SlidePicture) => void} */
  let answer = () => {};
  let n = 0;
  model.onChange("scan_picture", () => {
    const { n: answered, svg = "" } = model.scan_picture;
    if (answered === n) answer(pictureOf(svg, colours));
  });
  function picture() {
    n = model.request("scan_picture_asked", { theme: colours.dark ? "dark" : "light", what: name.toLowerCase() });
    return new Promise((done) => (answer = done));
  }
  return slideButtons(model, name, { colours, picture, legend: () => [[`filter: ${model.scan_plan.filter}`]] });
}

/**
 * Return the range map of the scan lab.
 *
 * @param {Model} model
 */
export function rangesView(model) {
  const column = selectBox("Column", choose);
  const order = selectBox("Order of the files", choose, Object.entries(ORDERS));
  const status = el("div.range-status", { role: "status" });
  const canvas = el("canvas.range-canvas", { ariaHidden: true });
  const tip = el("div.tip", { hidden: true });
  const handles = ["Lower edge", "Upper edge"].map((label, side) =>
    el("div.range-edge", {
      role: "slider",
      tabindex: 0,
      ariaLabel: label,
      onkeydown: (/** @type {KeyboardEvent} */ event) => pressed(event, side),
      onblur: () => wait(commit),
    })
  );
  const stage = el("div.range-stage", canvas, handles, tip);
  const notes = el("div.range-notes");
  const tools = el("div.range-tools", column, order);
  const root = el(
    "div.ranges",
    tools,
    status,
    stage,
    notes,
  );
  const redraw = inNextFrame(model, draw);
  const wait = timer(model);
  const colours = canvasColours(model, stage, redraw, redraw);
  tools.append(planSlides(model, "Ranges", colours));
  /**
   * The edges while they are moved, and until the plan of their range arrives.
   *
   * @type {Edges | null}
   */
  let moved = null;
  /**
   * What a pointer drags: an edge or, with `from`, a new range that begins at this x.
   *
   * @type {{ side: number, from?: number } | null}
   */
  let dragged = null;
  let hovered = -1;
  /** Whether the range of `moved` is being planned. */
  let isSent = false;
  /** The number of the plan whose map is drawn. @type {string | undefined} */
  let drawnPlan;
  /** For each stop of that map, the condition of a lower edge there. @type {string[]} */
  let drawnLows = [];

  /** @returns {RangeAnswer | null} */
  function shown() {
    return model.scan_range.cells ? /** @type {RangeAnswer} */ (model.scan_range) : null;
  }
  /** @returns {Edges} */
  function edges() {
    const { lower = null, upper = null } = model.scan_range;
    return moved ?? [lower, upper];
  }
  function choose() {
    model.save("scan_range_of", { column: column.value, by: order.value });
  }

  // Moving the edges ---------------------------------------------------------------------------------------------------

  /** @param {Edges} to */
  function move(to) {
    const [lower, upper] = to;
    moved = lower !== null && upper !== null && lower > upper ? [upper, lower] : to;
    isSent = false;
    drawState();
    redraw();
  }
  function commit() {
    wait();
    const range = shown();
    if (!range || !moved || isSent) return;
    const before = [range.lower, range.upper];
    if (before[0] === moved[0] && before[1] === moved[1]) return revert();
    isSent = true;
    const text = rangeFilter(range, moved);
    // A filter without edges does not name the column, so choose it for the next map.
    if (moved[0] === null && moved[1] === null) model.save("scan_range_of", { column: range.column, by: order.value });
    model.save("scan_filter", text);
  }
  function revert() {
    wait();
    moved = null;
    drawState();
    redraw();
  }
  /**
   * @param {KeyboardEvent} event
   * @param {number} side
   */
  function pressed(event, side) {
    const count = shown()?.positions.length ?? 0;
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: 1,
      ArrowUp: 1,
      ArrowLeft: -1,
      ArrowDown: -1,
      PageUp: PAGE_STEP,
      PageDown: -PAGE_STEP,
      Home: -Infinity,
      End: Infinity,
    };
    const by = steps[event.key];
    if (by === undefined && !["Enter", "Escape", "Delete", "Backspace"].includes(event.key)) return;
    if (!count || event.ctrlKey || event.metaKey || event.altKey) return;
    consumeEvent(event);
    if (event.key === "Enter") return commit();
    if (event.key === "Escape") return revert();
    const to = /** @type {Edges} */ ([...edges()]);
    if (by === undefined) {
      to[side] = null;
    } else {
      // An edge does not pass the other one, so that the names of the two handles stay true.
      const other = to[1 - side];
      const least = side && other !== null ? other : 0;
      const most = !side && other !== null ? other : count - 1;
      to[side] = clamp(least, (to[side] ?? (side ? count - 1 : 0)) + by, most);
    }
    move(to);
    wait(commit, KEY_DELAY);
  }
  function width() {
    return stage.clientWidth;
  }
  function height() {
    return Math.max(1, stage.clientHeight - AXIS);
  }
  /** @param {number} px */
  function nearestStop(px) {
    const { positions = [] } = model.scan_range;
    const at = px / width();
    let best = 0;
    positions.forEach((one, i) => {
      if (Math.abs(one - at) < Math.abs(positions[best] - at)) best = i;
    });
    return best;
  }
  /** @param {number} side */
  function edgePlace(side) {
    const at = edges()[side];
    const { positions = [] } = model.scan_range;
    return (at === null ? side : positions[at] ?? side) * width();
  }
  /** @param {PointerEvent} event */
  function place(event) {
    const { left, top } = stage.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }
  /**
   * Return the edge that a pointer can reach, or -1. If both are at one place, it is the one on the pointer's side.
   *
   * @param {number} x
   */
  function edgeAt(x) {
    const away = [0, 1].map((side) => Math.abs(edgePlace(side) - x));
    const best = away[0] < away[1] || (away[0] === away[1] && x < edgePlace(0)) ? 0 : 1;
    return away[best] <= EDGE_REACH ? best : -1;
  }
  listen(stage, {
    pointerdown(event) {
      if (event.button || !shown()?.positions.length) return;
      const [x] = place(event);
      const side = edgeAt(x);
      dragged = side < 0 ? { side, from: x } : { side };
      if (side >= 0) handles[side].focus();
      stage.setPointerCapture(event.pointerId);
    },
    pointermove(event) {
      const [x, y] = place(event);
      if (!dragged) return hover(x, y);
      const at = nearestStop(x);
      if (dragged.from !== undefined) {
        if (Math.abs(x - dragged.from) < EDGE_REACH) return;
        move([nearestStop(dragged.from), at]);
      } else {
        const to = /** @type {Edges} */ ([...edges()]);
        const other = to[1 - dragged.side];
        to[dragged.side] = at;
        // When the edge is dragged past the other one, the pointer drags the other one from then on.
        if (other !== null && (dragged.side ? at < other : at > other)) dragged.side = 1 - dragged.side;
        move(to);
      }
    },
    pointerup(event) {
      const [x, y] = place(event);
      const isTap = dragged?.from !== undefined && Math.abs(x - dragged.from) < EDGE_REACH;
      dragged = null;
      if (isTap) tapped(x, y);
      else commit();
    },
    pointercancel() {
      dragged = null;
      revert();
    },
    pointerleave: () => hover(-1, -1),
  });

  // What is under a pointer --------------------------------------------------------------------------------------------

  /**
   * Return the cell at a place, or -1.
   *
   * @param {number} x
   * @param {number} y
   */
  function cellAt(x, y) {
    const range = shown();
    if (!range?.cells.rows || x < 0) return -1;
    const { cells, positions } = range;
    const row = Math.floor(y / rowHeight(cells.rows));
    return cells.row.findIndex((one, i) => {
      if (one !== row) return false;
      const [low, high] = cellSpan(positions, cells.first[i], cells.last[i]);
      return x >= low * width() - LEAST && x <= high * width() + LEAST;
    });
  }
  /**
   * @param {number} x
   * @param {number} y
   */
  function hover(x, y) {
    const isEdge = x >= 0 && edgeAt(x) >= 0;
    hovered = isEdge ? -1 : cellAt(x, y);
    stage.style.cursor = isEdge ? "ew-resize" : hovered >= 0 && model.scan_range.nodes ? "pointer" : "crosshair";
    const range = shown();
    tip.hidden = hovered < 0 || !range;
    if (!range || hovered < 0) return;
    const { cells, labels, locations, classes } = range;
    const last = labels[cells.last[hovered] - 1] ?? labels[0];
    tip.textContent = [
      locations?.[hovered] ?? plural(cells.count[hovered], "file"),
      `${labels[cells.first[hovered]] ?? last} to ${last}`,
      `${classes[cells.state[hovered]]}, ${formatBytes(cells.size[hovered])}`,
    ].join("\n");
    tip.style.left = `${clamp(0, x + 12, Math.max(0, width() - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + 14 + tip.offsetHeight > height() ? y - tip.offsetHeight - 8 : y + 14}px`;
  }
  /**
   * @param {number} x
   * @param {number} y
   */
  function tapped(x, y) {
    const node = model.scan_range.nodes?.[cellAt(x, y)];
    if (!node) return;
    selectNode(model, node);
    model.save("scan_tab", "why");
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  /** @param {number} rows */
  function rowHeight(rows) {
    return Math.min(MOST_ROW, height() / rows);
  }
  /** @param {number} state */
  function tint(state) {
    return colours.plain ? colours.ink : (colours.dark ? DARK_TINTS : LIGHT_TINTS)[state];
  }
  function draw() {
    const context = resizeCanvas(canvas, width(), stage.clientHeight);
    const range = shown();
    if (!range || !colours.ink) return;
    const [wide, high] = [width(), height()];
    const [left, right] = [edgePlace(0), edgePlace(1)];
    const now = edges();
    const isOpen = now[0] === null && now[1] === null;
    const rect = (/** @type {number[]} */ [x, y, w, h], /** @type {import("./types.d.ts").Look} */ look) =>
      drawPath(context, () => context.rect(x, y, w, h), look);
    if (!isOpen) rect([left, 0, Math.max(1, right - left), high], { fill: colours.accent, alpha: 0.13 });
    if (range.nodes) drawBars(range, now, rect);
    else drawDensity(range, now, context);
    const font = `11px ${colours.font}`;
    let before = -AXIS;
    for (const [row, name] of range.names) {
      const y = row * rowHeight(range.cells.rows);
      if (y < before + AXIS * 0.7) continue;
      before = y;
      rect([0, y, wide, 0.5], { fill: colours.line });
      context.font = font;
      const text = fitText(context, name, wide * 0.4, font);
      rect([wide - context.measureText(text).width - 8, y + 1, wide, 13], { fill: colours.paper, alpha: 0.8 });
      drawText(context, text, wide - context.measureText(text).width - 4, y + 11, colours.muted, font);
    }
    [left, right].forEach((x, side) => {
      if (now[side] !== null) rect([x - 0.75, 0, 1.5, high], { fill: colours.accent });
      handles[side].style.left = `${x}px`;
    });
    drawAxis(context, range, now, font);
  }
  /**
   * @param {RangeAnswer} range
   * @param {Edges} now
   * @param {(place: number[], look: import("./types.d.ts").Look) => void} rect
   */
  function drawBars({ cells, positions, nodes }, now, rect) {
    const room = rowHeight(cells.rows);
    for (let i = 0; i < cells.row.length; i++) {
      const [low, top] = cellSpan(positions, cells.first[i], cells.last[i]);
      const lit = moved ? isLit(cells, i, now) : cells.state[i] < 2;
      const state = moved ? (lit ? 1 : 4) : cells.state[i];
      const tall = Math.max(0.6, room * (room > 3 ? 0.75 : 1) * HEIGHTS[state]);
      const long = Math.max(LEAST, (top - low) * width());
      const y = (cells.row[i] + 0.5) * room - tall / 2;
      rect([low * width() - (top > low ? 0 : LEAST / 2), y, long, tall], {
        fill: tint(state),
        alpha: lit || !moved ? 1 : 0.55,
        stroke: nodes?.[i] === model.selection.node ? colours.ink : undefined,
      });
    }
  }
  /**
   * @param {RangeAnswer} range
   * @param {Edges} now
   * @param {CanvasRenderingContext2D} context
   */
  function drawDensity({ cells, positions }, now, context) {
    const wide = width();
    const room = rowHeight(cells.rows);
    const columns = positions.length;
    // For each stop, the number of files that begin there minus the number that end there: one array for the files that
    // are not read, and one for the files that are.
    const sums = [0, 1].map(() => new Float64Array(cells.rows * (columns + 1)));
    for (let i = 0; i < cells.row.length; i++) {
      const lit = moved ? isLit(cells, i, now) : cells.state[i] < 2;
      const from = Math.min(cells.first[i], Math.max(0, cells.last[i] - 1));
      const sum = sums[Number(lit)];
      sum[cells.row[i] * (columns + 1) + from] += cells.count[i];
      sum[cells.row[i] * (columns + 1) + Math.max(from + 1, cells.last[i])] -= cells.count[i];
    }
    let most = 1;
    for (const sum of sums) {
      for (let i = 1; i < sum.length; i++) {
        if (i % (columns + 1)) sum[i] += sum[i - 1];
        most = Math.max(most, sum[i]);
      }
    }
    const ends = positions.map((one, i) => (one + (positions[i + 1] ?? 1)) / 2);
    sums.forEach((sum, lit) => {
      context.fillStyle = tint(lit ? 1 : 4);
      for (let i = 0; i < sum.length; i++) {
        const at = i % (columns + 1);
        if (sum[i] < 0.5 || at === columns) continue;
        const x = (at ? ends[at - 1] : 0) * wide;
        const y = Math.floor(i / (columns + 1)) * room;
        const alpha = 0.2 + 0.8 * (Math.log1p(sum[i]) / Math.log1p(most));
        context.globalAlpha = alpha;
        context.fillRect(x, y, ends[at] * wide - x + 0.3, room + 0.3);
      }
    });
    context.globalAlpha = 1;
  }
  /**
   * @param {CanvasRenderingContext2D} context
   * @param {RangeAnswer} range
   * @param {Edges} now
   * @param {string} font
   */
  function drawAxis(context, { positions, labels }, now, font) {
    const [wide, y] = [width(), height()];
    drawPath(context, () => context.rect(0, y, wide, 1), { fill: colours.line });
    const places = [0, 0.2, 0.4, 0.6, 0.8, 1].map((part) => nearestStop(part * wide));
    /** @type {number[][]} */
    const taken = [];
    for (const at of [now[0], now[1], ...places]) {
      if (at === null || !positions.length) continue;
      const bold = at === now[0] || at === now[1];
      const face = bold ? `600 ${font}` : font;
      const text = fitText(context, labels[at], wide * 0.3, face);
      context.font = face;
      const half = context.measureText(text).width / 2;
      const x = clamp(half + 1, positions[at] * wide, wide - half - 1);
      if (taken.some(([a, b]) => x - half < b + 8 && a - 8 < x + half)) continue;
      taken.push([x - half, x + half]);
      drawText(context, text, x - half, y + 14, bold ? colours.ink : colours.muted, face);
    }
  }
  function drawState() {
    const range = shown();
    const now = edges();
    const { missed = "" } = model.scan_range;
    stage.hidden = !range;
    if (!range) {
      const again = linkButton("Try again", () => model.save("scan_range_of", { ...model.scan_range_of }));
      fill(status, missed ? [missed, " ", again] : `${model.busy || "Reading bounds …"}`);
      return;
    }
    const [files, bytes] = litSum(range, now);
    const what = moved ? `${rangeFilter(range, now)}: ` : "";
    const share = `${formatCount(files)} of ${plural(range.files, "file")}, ${formatBytes(bytes)}`;
    fill(status, what && el("code", what), moved ? el("b", share) : "Drag the edges of the filter, or across files.");
    handles.forEach((handle, side) => {
      const at = now[side];
      const count = range.positions.length;
      handle.hidden = !count;
      handle.ariaValueMin = "0";
      handle.ariaValueMax = String(Math.max(0, count - 1));
      handle.ariaValueNow = String(at ?? (side ? count - 1 : 0));
      handle.ariaValueText = `${at === null ? "open" : range.labels[at]}, ${share}`;
    });
  }
  /**
   * Return the moved edges as stops of a new map; null if the map lacks one of these stops.
   *
   * @param {RangeAnswer | null} range
   * @returns {Edges | null}
   */
  function sameEdges(range) {
    if (!moved || !range) return null;
    const [lower, upper] = moved.map((at) => at === null ? null : range.lows.indexOf(drawnLows[at]));
    return lower === -1 || upper === -1 ? null : [lower, upper];
  }
  function drawRange() {
    const { columns = [], column: chosen = "", strips = [], notes: texts = [], even } = model.scan_range;
    const range = shown();
    fill(column, options(columns.map((/** @type {string} */ name) => [name, `Column: ${name}`])));
    column.value = chosen;
    order.value = model.scan_range_of.by ?? "range";
    if (drawnPlan !== model.scan_range.of) {
      // A new plan has arrived: if it was requested for the moved edges, drop them; otherwise keep them if possible.
      drawnPlan = model.scan_range.of;
      moved = isSent ? null : sameEdges(range);
      isSent = false;
    }
    drawnLows = range?.lows ?? [];
    const totals = range ? range.classes.map(() => 0) : [];
    range?.cells.state.forEach((state, i) => totals[state] += range.cells.count[i]);
    for (const [, counts] of strips) {
      counts.forEach((/** @type {number} */ n, /** @type {number} */ i) => totals[i] += n);
    }
    const legend = totals.map((n, state) => n > 0 && swatch(state, `${formatCount(n)} ${range?.classes[state]}`));
    const bare = strips.map(([name, counts]) =>
      el("div.range-strip", el("b", `${name}:`), counts.map((n, state) => n > 0 && swatch(state, formatCount(n))))
    );
    fill(
      notes,
      bare,
      el("div.range-legend", legend),
      texts.map((/** @type {string} */ text) => el("div.note", text)),
      even && el("div.note", "The values that occur are evenly spaced on the axis."),
    );
    drawState();
    redraw();
  }
  /**
   * @param {number} state
   * @param {string} words
   */
  function swatch(state, words) {
    const style = {
      "--light": LIGHT_TINTS[state],
      "--dark": DARK_TINTS[state],
      height: `${Math.round(10 * HEIGHTS[state])}px`,
    };
    return el("span.range-class", el("i", { style }), words);
  }

  onResize(model, stage, redraw);
  model.follow(["scan_range", "scan_range_of"], drawRange);
  model.onChange("selection", redraw);
  model.onChange("busy", drawState);
  model.onChange("error", () => {
    // The new filter was refused: move the edges back to where they were.
    if (isSent && model.error.text) revert();
  });
  return root;
}
