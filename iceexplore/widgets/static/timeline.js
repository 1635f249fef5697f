/**
 * The timeline: snapshots in one lane per branch, evenly spaced or by time. The user can pick one to travel to or two
 * to compare, play through the history, find and filter snapshots, and zoom into thousands with an overview.
 *
 * @module
 */

/** @import { LegendItem, Model } from "./types.d.ts" */
/** @import { Bin } from "./timelineScale.js" */

import { blocks } from "./blocks.js";
import {
  changeSelection,
  clamp,
  consumeEvent,
  el,
  fill,
  formatBytes,
  formatCount,
  keepFocus,
  linkButton,
  listen,
  plural,
  selectBox,
  setEnabled,
  smallButton,
  timer,
} from "./dom.js";
import { gestures } from "./gestures.js";
import { canvasColours, inNextFrame, resizeCanvas } from "./painting.js";
import { chosen, collapseButton } from "./room.js";
import { recorded, slideButtons } from "./slide.js";
import { BIN_WIDTH, GHOST_STEP, paintTimeline } from "./timelinePainter.js";
import {
  binsOf,
  binWords,
  dateTicks,
  findSnapshot,
  matchesFilter,
  snapshotPositions,
  visibleRange,
} from "./timelineScale.js";

/** In px: the heights of the row of flags (ref names), the main lane, other lanes, and the dates; the side margins. */
const SIZE = { flags: 18, main: 46, side: 25, dates: 18, left: 16, right: 30 };
/** The distance in px around a snapshot within which a click selects it. */
const REACH = 24;
/** The time without a key press, in ms, after which the snapshot reached by arrow keys is selected. */
const TRAVEL_DELAY = 150;
/** The interval, in ms, at which playback checks whether the tree has caught up. */
const BUSY_DELAY = 100;
/** The minimum number of snapshots for which there are zoom buttons, an overview, and the search. */
const ZOOMABLE = 24;
/** The minimum number of snapshots in view. */
const FEWEST_SEEN = 8;
/** If more snapshots than this are in view, they are drawn as bins. */
const MOST_SINGLE = 300;
/** The number of snapshots by which PageUp and PageDown move. */
const PAGE = 10;
/** The minimum distance, in px, between dates on the axis. */
const DATE_WIDTH = 110;
/** In px: the overview's height, the distance between its bars, and how near to its window's edges a drag moves them. */
const BRUSH = { height: 18, bar: 3, edge: 7 };
/** The maximum number of simulated commits that are drawn. */
const MOST_GHOSTS = 12;
const SCALES = /** @type {const} */ ([["steps", "Even spacing"], ["time", "By time"]]);
const MEASURES = /** @type {const} */ ([["rows", "Rows"], ["files", "Files"], ["bytes", "Bytes"]]);
const SPEEDS = /** @type {const} */ ([[2400, "½×"], [1200, "1×"], [600, "2×"], [300, "4×"]]);
const FIRST_SPEED = "1200";
const EVERY_OPERATION = "*";
const COMPARE_PROMPT = "Pick the other snapshot: click it, or use the arrow keys. Escape cancels.";
/** What the curves show, by measure. */
const CURVE_WORDS = {
  rows: "line: rows in data files",
  files: "line: data files; dashed: delete files",
  bytes: "line: total size",
};
/** The same for rows if any are deleted. The dashed curve has gaps where there are equality deletes. */
const LIVE_ROWS = "line: rows; dashed: live";

/**
 * Return, as text, the totals in a snapshot's summary that the curves of a measure show; "" if the summary has none.
 *
 * @param {{ totals: number[] }} snapshot
 * @param {"rows" | "files" | "bytes"} measure
 */
export function totalWords({ totals: [rows, files, deletes, bytes, left] }, measure) {
  const words = {
    rows: left >= 0 && left < rows ? [formatCount(rows), formatCount(left)] : [rows >= 0 && plural(rows, "row")],
    files: [files >= 0 && plural(files, "data file"), deletes >= 0 && plural(deletes, "delete file")],
    bytes: [bytes >= 0 && formatBytes(bytes)],
  };
  return words[measure].filter(Boolean).join(", ");
}

/**
 * Return the timeline.
 *
 * @param {Model} model
 */
export function timelineView(model) {
  const section = el("section.timeline", { ariaLabel: "Timeline" });
  const all = model.snapshots;
  if (!all.length) {
    fill(section, el("div.empty", "No snapshots yet: nothing has been committed."));
    return section;
  }
  const styles = model.styles;
  const last = all.length - 1;
  const lanes = Math.max(...new Set(all.map(({ lane }) => lane)), 0);
  const bottom = SIZE.flags + SIZE.main + SIZE.side * lanes + 4;
  const height = bottom + SIZE.dates;
  const isLong = all.length >= ZOOMABLE;
  const hasDeletes = all.some(({ totals: [rows, , , , left] }) => left >= 0 && left < rows);

  const canvas = el("canvas.line-canvas", { ariaHidden: true });
  const line = el(
    "div.axis",
    {
      role: "slider",
      tabindex: 0,
      ariaLabel: "Snapshot",
      ariaValueMin: 1,
      ariaValueMax: all.length,
      style: { height: `${height}px` },
      onkeydown: pressed,
    },
    canvas,
  );
  const back = smallButton("‹", "Earlier snapshot", () => go(stepped(current(), -1), true));
  const player = smallButton("▶", "Play through the history", () => play(!isPlaying));
  const next = smallButton("›", "Later snapshot", () => go(stepped(current(), 1), true));
  const speed = selectBox("Speed", null, SPEEDS);
  const description = el("div.when");
  /** The totals of the described snapshot, in the legend of the curves. */
  const total = el("span");
  const compareButton = smallButton(
    "Compare",
    "Compare with another snapshot (Shift-click)",
    () => setComparing(!isComparing()),
    { ariaPressed: false },
  );
  const scale = selectBox("Spacing", () => model.save("scale", /** @type {Model["scale"]} */ (scale.value)), SCALES);
  const measure = selectBox(
    "Bar height",
    () => model.save("measure", /** @type {Model["measure"]} */ (measure.value)),
    MEASURES,
  );
  const totalsButton = smallButton(
    "Totals",
    "Draw the totals that the summaries state",
    () => model.save("totals", !model.totals),
    { ariaPressed: false },
  );
  const zooms = el(
    "span.group",
    { hidden: !isLong },
    smallButton("−", "Zoom out", () => zoom(0.5)),
    smallButton("+", "Zoom in", () => zoom(2)),
    smallButton("Fit", "Fit: show all snapshots", () => zoom(0)),
  );
  const legend = el("div.line-legend");
  const result = el("div.compared", { role: "status" });
  const prompt = el("div.line-prompt", { role: "status" });
  const clear = smallButton("×", "End the comparison", () => changeSelection(model, { against: "" }));
  const swap = smallButton("⇄", "Swap: show the other snapshot, compared with this one", () => {
    const { snapshot, against } = model.selection;
    changeSelection(model, { snapshot: against, against: snapshot });
  });
  const foot = el("div.line-foot", prompt, legend, result, swap, clear);
  const settings = el("span.group.end", zooms, compareButton, scale, measure, totalsButton);
  const isCollapsed = () => chosen(model, "collapsed", all.length < 2 || model.isShort());
  const collapser = collapseButton(model, "collapsed", "timeline", isCollapsed);
  const tools = el("div.line-tools", collapser, back, player, next, speed, description, !isLong && settings);

  const jump = el("input.input.line-input", {
    placeholder: "Go to id, ref, date, number …",
    ariaLabel: "Go to a snapshot: id, ref, date, number, or latest",
    onkeydown: jumpOnEnter,
  });
  const counts = Object.entries(Object.groupBy(all, ({ operation }) => operation)).map((
    [name, some],
  ) => /** @type {const} */ ([name, `${name || "no operation"} (${formatCount(some?.length ?? 0)})`]));
  const operations = selectBox("Operation", refilter, [[EVERY_OPERATION, "All operations"], ...counts]);
  const words = el("input.input.line-input", {
    placeholder: "Filter by engine, user, ref …",
    ariaLabel: "Filter by text: engine, application, user, ref, id",
    oninput: refilter,
    onkeydown: (/** @type {KeyboardEvent} */ event) => event.stopPropagation(),
  });
  const found = el("span.line-found", { role: "status" });
  const finder = el("div.line-find", { hidden: !isLong }, jump, operations, words, found, isLong && settings);
  const density = el("canvas.line-canvas");
  const frame = el("div.line-frame");
  const overview = el(
    "div.line-overview",
    { ariaHidden: true, hidden: !isLong, style: { height: `${BRUSH.height}px` } },
    density,
    frame,
  );
  speed.value = FIRST_SPEED;
  for (const button of [player, compareButton]) setEnabled(button, last > 0);

  /**
   * The position of each snapshot, from 0 to 1, in ascending order.
   *
   * @type {number[]}
   */
  let positions = [];
  /** The largest number that a snapshot added or removed, in the chosen measure. */
  let largest = 0;
  /** The part of the timeline in view: the position at which it begins, and its size. */
  let start = 0;
  let span = 1;
  let width = 0;
  /**
   * The index reached by arrow keys, until it is selected.
   *
   * @type {number | null}
   */
  let moved = null;
  let hovered = -1;
  let isPlaying = false;
  const waitToTravel = timer(model);
  const waitToPlay = timer(model);
  /** The selection at the last drawing. */
  let drawn = "";
  /** Whether each snapshot matches the filter, and whether there is a filter. */
  let isMatching = all.map(() => true);
  let isFiltered = false;
  /**
   * What is drawn in place of snapshots that are too near one another.
   *
   * @type {Map<string, Bin> | null}
   */
  let bins = null;
  /** @type {CanvasRenderingContext2D | null} */
  let context = null;
  const redraw = inNextFrame(model, paint);
  const colours = canvasColours(model, line, redraw, resize);
  foot.append(slideButtons(model, "Timeline", {
    colours,
    picture: () => recorded({ width, height }, paint),
    legend: legendOfLine,
  }));

  /**
   * Return the index of a selected snapshot, or -1.
   *
   * @param {"snapshot" | "against"} key
   */
  function selectedIndex(key) {
    return all.findIndex(({ id }) => id === model.selection[key]);
  }
  function current() {
    return moved ?? selectedIndex("snapshot");
  }
  /** @param {number} lane */
  function laneY(lane) {
    return SIZE.flags + (lane ? SIZE.main + SIZE.side * (lane - 1) + 15 : 31);
  }
  function ghosts() {
    return Math.min(model.commit_line?.at ?? 0, MOST_GHOSTS);
  }
  function room() {
    return Math.max(1, width - SIZE.left - SIZE.right - ghosts() * GHOST_STEP);
  }
  /** @param {number} px */
  function positionAt(px) {
    return start + ((px - SIZE.left) / room()) * span;
  }
  function visible() {
    const margin = (SIZE.left / room()) * span;
    return visibleRange(positions, start - margin, start + span + margin);
  }
  /** @param {number} i */
  function x(i) {
    return SIZE.left + ((positions[i] - start) / span) * room();
  }

  // Data and theme -----------------------------------------------------------------------------------------------------

  function rescale() {
    scale.value = model.scale;
    measure.value = model.measure;
    positions = snapshotPositions(all, model.scale);
    largest = all.reduce((most, snapshot) => Math.max(most, ...snapshot[model.measure]), 0);
    start = 0;
    span = 1;
    drawLegend();
    drawOverview();
    draw();
  }
  function drawLegend() {
    totalsButton.ariaPressed = String(model.totals);
    const count = model.commit_line?.at ?? 0;
    fill(
      legend,
      blocks(model, model.legend[model.measure]),
      all.length > MOST_SINGLE && el("div", "band: commits by operation, where they are too close to draw one by one"),
      model.totals && el("div", curveWords(), total),
      count > 0 &&
        el("div", "dashed: ", linkButton(plural(count, "simulated commit"), () => model.save("tab", "commit"))),
    );
    redraw();
  }
  function curveWords() {
    const { measure } = model;
    return measure === "rows" && hasDeletes ? LIVE_ROWS : CURVE_WORDS[measure];
  }
  /** @returns {LegendItem[]} */
  function legendOfLine() {
    const shown = [...new Set(all.map(({ operation }) => operation))].filter(Boolean);
    const curves = model.totals ? curveWords() : "";
    const operations = shown.map((name) => /** @type {LegendItem} */ ([name, `operation:${name}`]));
    return [...operations, [`bars: ${model.measure} added ↑, removed ↓`], [curves]];
  }
  function resize() {
    if (!line.clientWidth) return;
    width = line.clientWidth;
    context = resizeCanvas(canvas, width, height);
    drawOverview();
    paint();
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  function paint(paper = context) {
    if (!paper) return;
    const range = visible();
    const isBinned = range[1] - range[0] > MOST_SINGLE;
    const place = (/** @type {number} */ i) => Math.floor(x(i) / BIN_WIDTH);
    bins = isBinned ? binsOf(all, range, place, model.measure, (i) => isMatching[i], model.broken) : null;
    const most = Math.max(2, Math.floor(width / DATE_WIDTH));
    paintTimeline(paper, colours, styles, {
      all,
      range,
      bins,
      x,
      laneY,
      most: largest,
      top: SIZE.flags,
      bottom,
      width,
      height,
      measure: model.measure,
      ticks: dateTicks(all, positions, model.scale, { start, span }, most)
        .map(({ at, text }) => ({ x: SIZE.left + ((at - start) / span) * room(), text })),
      totals: model.totals,
      matches: (i) => isMatching[i],
      broken: model.broken,
      ghosts: range[1] > last ? ghosts() : 0,
      now: current(),
      other: selectedIndex("against"),
      hovered,
    });
    frame.style.left = `${start * 100}%`;
    frame.style.width = `${span * 100}%`;
    frame.hidden = span === 1;
  }
  /** Draw the overview: at each place, the largest change by a commit that matches the filter. */
  function drawOverview() {
    const { clientWidth } = overview;
    if (!isLong || !clientWidth) return;
    const paper = resizeCanvas(density, clientWidth, BRUSH.height);
    /** @type {Map<number, number>} */
    const changes = new Map();
    positions.forEach((position, i) => {
      // Changes that are only a few px apart share a bar.
      const px = Math.round((position * (clientWidth - BRUSH.bar)) / BRUSH.bar) * BRUSH.bar;
      const [added, removed] = all[i][model.measure];
      if (isMatching[i]) changes.set(px, Math.max(changes.get(px) ?? 0, 1 + added + removed));
    });
    const highest = Math.log1p(Math.max(...changes.values(), 1));
    const barWidth = clamp(2, clientWidth / all.length - 4, 8);
    paper.fillStyle = colours.muted;
    for (const [px, n] of changes) {
      const size = Math.max(2, (BRUSH.height * Math.log1p(n)) / highest);
      paper.fillRect(px - barWidth / 2 + 1, BRUSH.height - size, barWidth, size);
    }
  }
  /** Describe the snapshot under the pointer, or the selected one. */
  function describe() {
    const i = hovered >= 0 ? hovered : current();
    const stated = all[i] ? totalWords(all[i], model.measure) : "";
    total.textContent = stated && ` (${stated})`;
    description.classList.toggle("ice-hovered", hovered >= 0);
    if (!all[i]) return fill(description);
    const bin = hovered >= 0 && binOf(hovered);
    if (bin) {
      const count = `${formatCount(bin.first + 1)}–${formatCount(bin.last + 1)}`;
      description.title = "";
      fill(
        description,
        el("span.count", count),
        el("span.words-line", binWords(bin, model.measure), " · click to zoom in"),
      );
      return;
    }
    const { id, refs, words, by } = all[i];
    const badge = (/** @type {string} */ text) => el("span.badge", { title: text }, text);
    const broken = model.broken[id];
    description.title = [words, broken, id, ...refs, model.writers[by]].filter(Boolean).join("\n");
    fill(
      description,
      el("span.count", `${formatCount(i + 1)}/${formatCount(all.length)}`),
      refs.slice(0, 3).map(badge),
      refs.length > 3 && badge(`+${refs.length - 3}`),
      broken && el("span.line-broken", `▲ ${broken}`),
      el("span.words-line", words),
    );
  }
  function draw() {
    const now = current();
    const other = selectedIndex("against");
    setEnabled(back, stepped(now, -1) < now);
    setEnabled(next, stepped(now, 1) > now);
    line.ariaValueNow = String(Math.max(1, now + 1));
    line.ariaValueText = spokenValue(now, other);
    describe();
    drawFoot(other);
    redraw();
  }
  /**
   * @param {number} now
   * @param {number} other
   */
  function spokenValue(now, other) {
    if (now < 0) return "none selected";
    const { id, words, refs } = all[now];
    const value = `${now + 1} of ${all.length}: ${[words, ...refs, model.broken[id]].filter(Boolean).join(", ")}`;
    return other < 0 ? value : `${value}, compared with ${other + 1}: ${all[other].words}`;
  }
  /** @param {number} i */
  function binOf(i) {
    return bins?.get(`${Math.floor(x(i) / BIN_WIDTH)} ${all[i].lane}`);
  }
  /** Draw only if a different snapshot is selected: another node of the same snapshot changes nothing here. */
  function selectionChanged() {
    const now = [current(), selectedIndex("against")].join();
    if (now === drawn) return;
    drawn = now;
    draw();
  }
  /**
   * Draw the legend or, when comparing, the changes from the older to the newer snapshot.
   *
   * @param {number} other
   */
  function drawFoot(other) {
    const compared = all[other];
    const isPrompted = isComparing();
    prompt.textContent = isPrompted ? COMPARE_PROMPT : "";
    const show = () => {
      prompt.hidden = !isPrompted;
      legend.hidden = isPrompted || Boolean(compared);
      result.hidden = isPrompted || !compared;
      clear.hidden = !compared;
      swap.hidden = !compared || other === current();
    };
    keepFocus(foot, show, isCollapsed() ? collapser : line);
    foot.hidden = isCollapsed() && !compared;
    if (!compared) return fill(result);
    const { against, snapshot, differences: found } = model.comparison;
    const isReady = against === compared.id && snapshot === model.selection.snapshot;
    /** @type {(Node | string)[]} */
    let differences = ["…"];
    if (other === current()) differences = ["the same snapshot"];
    else if (isReady) differences = blocks(model, found);
    const [older, newer] = [current(), other].sort((a, b) => a - b);
    const title = `${all[older]?.words ?? ""} → ${all[newer].words}`;
    fill(result, el("span", { title }, `${older + 1} → ${newer + 1} of ${all.length}:`), differences);
  }

  // Room, search and filter ----------------------------------------------------------------------------------------------

  function collapse() {
    const on = isCollapsed();
    const hide = () => {
      for (const part of [line, settings]) part.hidden = on;
      for (const part of [finder, overview]) part.hidden = on || !isLong;
      foot.hidden = on && !all[selectedIndex("against")];
    };
    keepFocus(section, hide, collapser);
    if (!on) resize();
  }
  function refilter() {
    const operation = operations.value === EVERY_OPERATION ? null : operations.value;
    const filter = { operation, text: words.value.trim().toLowerCase() };
    isFiltered = operation !== null || filter.text !== "";
    isMatching = all.map((snapshot) => matchesFilter(snapshot, model.writers, filter));
    const count = isMatching.filter(Boolean).length;
    found.textContent = isFiltered ? `${formatCount(count)} of ${formatCount(all.length)}` : "";
    drawOverview();
    draw();
  }
  /** @param {KeyboardEvent} event */
  function jumpOnEnter(event) {
    event.stopPropagation();
    if (event.key !== "Enter") return;
    const to = findSnapshot(all, jump.value);
    jump.ariaInvalid = String(to < 0);
    found.textContent = to < 0 && jump.value ? `No snapshot found for “${jump.value.slice(0, 60)}”` : "";
    if (to < 0) return;
    play(false);
    go(to, true);
    shift(positions[to] - span / 2);
  }
  /**
   * Return the index after a number of steps through the snapshots that match the filter, at most to the last one.
   *
   * @param {number} from
   * @param {number} by
   */
  function stepped(from, by) {
    if (!isFiltered) return clamp(0, from + by, last);
    let to = from;
    const way = Math.sign(by);
    for (let i = from + way, left = Math.abs(by); i >= 0 && i <= last && left > 0; i += way) {
      if (!isMatching[i]) continue;
      to = i;
      left--;
    }
    return to;
  }
  /**
   * Return the index that a key reaches; `by` is infinite for Home and End.
   *
   * @param {number} from
   * @param {number} by
   */
  function reached(from, by) {
    return Number.isFinite(by)
      ? stepped(from, by)
      : stepped(by < 0 ? last + 1 : -1, -by && (by < 0 ? -all.length : all.length));
  }

  // Navigation ---------------------------------------------------------------------------------------------------------

  /**
   * Travel to a snapshot.
   *
   * @param {number} to
   * @param {boolean} [isNow] Whether to select it at once, instead of waiting for further keys.
   */
  function go(to, isNow = false) {
    to = clamp(0, to, last);
    if (to === current() && moved === null) {
      // It is already selected. Request its node again in case it could not be read.
      if (model.error.text) changeSelection(model, { node: `snapshot:${all[to].id}` });
      return;
    }
    moved = to;
    reveal(to);
    draw();
    waitToTravel(!isNow && travel, TRAVEL_DELAY);
    if (isNow) travel();
  }
  function travel() {
    if (moved === null) return;
    const { id } = all[moved];
    moved = null;
    if (id !== model.selection.snapshot) changeSelection(model, { snapshot: id });
    draw();
  }
  /** @param {number} to */
  function compareWith(to) {
    to = clamp(0, to, last);
    setComparing(false);
    reveal(to);
    if (all[to].id !== model.selection.against) {
      const against = to === current() ? "" : all[to].id;
      // Select the snapshot's node, because the comparison is its first table.
      changeSelection(model, against ? { against, node: `snapshot:${model.selection.snapshot}` } : { against });
    }
  }
  /** Return whether the next snapshot that is picked becomes the one to compare with. */
  function isComparing() {
    return compareButton.ariaPressed === "true";
  }
  /** @param {boolean} on */
  function setComparing(on) {
    compareButton.ariaPressed = String(on);
    line.classList.toggle("ice-comparing", on);
    drawFoot(selectedIndex("against"));
    if (on) line.focus();
  }
  /** @param {boolean} on */
  function play(on) {
    isPlaying = on;
    if (on && stepped(current(), 1) <= current()) go(stepped(-1, 1), true);
    waitToPlay(on && playOn, Number(speed.value));
    const label = on ? "Pause" : "Play through the history";
    player.textContent = on ? "❚❚" : "▶";
    player.title = label;
    player.ariaLabel = label;
  }
  function playOn() {
    // Wait until the tree has caught up.
    if (model.busy) return waitToPlay(playOn, BUSY_DELAY);
    const from = current();
    go(stepped(from, 1), true);
    play(current() > from && stepped(current(), 1) > current());
  }
  /**
   * Zoom around a place in px or, without one, around the selected snapshot.
   *
   * @param {number} by
   * @param {number} [px]
   * @returns {boolean} Whether that changed anything.
   */
  function zoom(by, px) {
    const size = clamp(FEWEST_SEEN / Math.max(FEWEST_SEEN, all.length), span / by, 1);
    let kept = positions[current()] ?? 0.5;
    if (px !== undefined) kept = positionAt(px);
    return shift(kept - (kept - start) * (size / span), size);
  }
  /**
   * @param {number} to
   * @param {number} [size]
   * @returns {boolean} Whether that changed anything.
   */
  function shift(to, size = span) {
    const [startBefore, spanBefore] = [start, span];
    start = clamp(0, to, 1 - size);
    span = size;
    redraw();
    return start !== startBefore || span !== spanBefore;
  }
  /** @param {number} i */
  function reveal(i) {
    if (positions[i] < start || positions[i] > start + span) shift(positions[i] - span / 2);
  }

  // Keys and pointer ---------------------------------------------------------------------------------------------------

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, number>} */
    const steps = {
      ArrowRight: 1,
      ArrowUp: 1,
      ArrowLeft: -1,
      ArrowDown: -1,
      PageUp: PAGE,
      PageDown: -PAGE,
      Home: -Infinity,
      End: Infinity,
    };
    /** @type {Record<string, () => void>} */
    const actions = {
      " ": () => play(!isPlaying),
      "+": () => zoom(2),
      "=": () => zoom(2),
      "-": () => zoom(0.5),
      0: () => zoom(0),
      Escape: stop,
    };
    const by = steps[event.key];
    if (by !== undefined) {
      consumeEvent(event);
      if (event.shiftKey || isComparing()) {
        const other = selectedIndex("against");
        compareWith(reached(other < 0 ? current() : other, by));
      } else {
        play(false);
        go(reached(current(), by));
      }
    } else if (actions[event.key]) {
      consumeEvent(event);
      actions[event.key]();
    }
  }
  function stop() {
    play(false);
    setComparing(false);
    if (model.selection.against) changeSelection(model, { against: "" });
  }
  /**
   * Return the index of the snapshot that is nearest to the pointer, or -1.
   *
   * @param {PointerEvent} event
   */
  function nearest({ offsetX, offsetY }) {
    let best = -1;
    let least = REACH ** 2;
    const [from, to] = visible();
    for (let i = from; i < to; i++) {
      const distance = (x(i) - offsetX) ** 2 + ((laneY(all[i].lane) - offsetY) / 2) ** 2;
      if (distance >= least) continue;
      best = i;
      least = distance;
    }
    return best;
  }
  /**
   * Return whether the pointer is on a simulated commit.
   *
   * @param {PointerEvent} event
   */
  function isOnGhost({ offsetX, offsetY }) {
    const beyond = offsetX - x(last);
    return ghosts() > 0 && beyond > GHOST_STEP / 2 && Math.abs(offsetY - laneY(0)) < REACH / 2;
  }
  /** @param {Bin} bin */
  function zoomTo({ first, last: end }) {
    const size = positions[end] - positions[first];
    const middle = (positions[end] + positions[first]) / 2;
    const least = clamp(FEWEST_SEEN / Math.max(FEWEST_SEEN, all.length), size * 1.4, span / 2);
    shift(middle - least / 2, least);
  }
  gestures(canvas, {
    pan: (dx) => shift(start - (dx / room()) * span),
    zoom,
    hold() {
      const [startBefore, spanBefore] = [start, span];
      return () => shift(startBefore, spanBefore);
    },
    takesWheel: (dx, dy) => Math.abs(dx) > Math.abs(dy),
    hover(event) {
      const found = event ? nearest(event) : -1;
      canvas.style.cursor = found >= 0 || (event && isOnGhost(event)) ? "pointer" : "";
      if (found === hovered) return;
      hovered = found;
      describe();
      redraw();
    },
    tap(event) {
      if (isOnGhost(event)) return model.save("tab", "commit");
      const found = nearest(event);
      if (found < 0) return;
      play(false);
      const bin = binOf(found);
      if (bin && bin.first < bin.last && !event.shiftKey && !isComparing()) return zoomTo(bin);
      if (event.shiftKey || isComparing()) compareWith(found);
      else go(found, true);
    },
  });

  /**
   * What dragging in the overview does: it moves the window or one of its edges, or opens a new window.
   *
   * @type {null | ((position: number) => void)}
   */
  let dragging = null;
  /** @param {MouseEvent} event */
  function overviewPosition({ clientX }) {
    const box = overview.getBoundingClientRect();
    return clamp(0, (clientX - box.left) / box.width, 1);
  }
  /**
   * @param {number} a
   * @param {number} b
   */
  function brush(a, b) {
    const least = FEWEST_SEEN / Math.max(FEWEST_SEEN, all.length);
    shift(Math.min(a, b), clamp(least, Math.abs(a - b), 1));
  }
  listen(overview, {
    pointerdown(event) {
      if (event.button) return;
      event.preventDefault();
      overview.setPointerCapture(event.pointerId);
      const begun = overviewPosition(event);
      const edge = BRUSH.edge / overview.clientWidth;
      const [left, right] = [start, start + span];
      if (span < 1 && Math.abs(begun - left) < edge) dragging = (at) => brush(at, right);
      else if (span < 1 && Math.abs(begun - right) < edge) dragging = (at) => brush(left, at);
      else if (span < 1 && begun > left && begun < right) dragging = (at) => shift(left + at - begun);
      else dragging = (at) => Math.abs(at - begun) > edge / 2 && brush(begun, at);
    },
    pointermove(event) {
      dragging?.(overviewPosition(event));
    },
    pointerup(event) {
      // A click outside the window moves the window there.
      const at = overviewPosition(event);
      if (dragging && (at < start || at > start + span)) shift(at - span / 2);
      dragging = null;
    },
    pointercancel: () => (dragging = null),
    dblclick: () => zoom(0),
    wheel(event) {
      event.preventDefault();
      const centre = overviewPosition(event);
      const size = clamp(FEWEST_SEEN / Math.max(FEWEST_SEEN, all.length), span * Math.exp(event.deltaY * 0.004), 1);
      shift(centre - (centre - start) * (size / span), size);
    },
  });

  model.follow(["scale", "measure"], rescale);
  model.onChange(["totals", "commit_line"], drawLegend);
  model.onChange("broken", draw);
  model.onChange("selection", selectionChanged);
  model.onChange("comparison", draw);
  model.onChange("cancelled", () => play(false));
  section.append(tools, finder, line, overview, foot);
  model.onRoom(collapse);
  model.follow("collapsed", collapse);
  return section;
}
