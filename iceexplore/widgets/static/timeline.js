/**
 * The timeline: snapshots in lanes by branch, one step each or by time. Pick one to travel to, two to compare; play
 * through the history.
 *
 * @module
 */

/** @import { Model, Snapshot } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import {
  changeSelection,
  clamp,
  consumeEvent,
  el,
  fill,
  formatCount,
  keepFocus,
  selectBox,
  setEnabled,
  smallButton,
  timer,
} from "./dom.js";
import { gestures } from "./gestures.js";
import { canvasColours, inNextFrame, resizeCanvas } from "./painting.js";
import { paintTimeline } from "./timelinePainter.js";

/** Sizes in px: the row of flags, the main lane, the other lanes, and the margins on the left and right. */
const SIZE = { flags: 18, main: 46, side: 25, left: 16, right: 30 };
/** The distance in px around a snapshot within which a click selects it. */
const REACH = 24;
/** The time without a key, in ms, until the snapshot reached by arrow keys is selected. */
const TRAVEL_DELAY = 150;
/** The interval, in ms, at which playback checks whether the tree has caught up. */
const BUSY_DELAY = 100;
/** The minimum number of snapshots for which there are zoom buttons. */
const ZOOMABLE = 24;
/** The minimum number of snapshots in view. */
const FEWEST_SEEN = 8;
/** The number of snapshots by which PageUp and PageDown move. */
const PAGE = 10;
const SCALES = /** @type {const} */ ([["steps", "Even spacing"], ["time", "By time"]]);
const MEASURES = /** @type {const} */ ([["rows", "Rows"], ["files", "Files"], ["bytes", "Bytes"]]);
const SPEEDS = /** @type {const} */ ([[2400, "½×"], [1200, "1×"], [600, "2×"], [300, "4×"]]);
const FIRST_SPEED = "1200";

/**
 * Return where snapshots are on the timeline, from 0 to 1, in ascending order.
 *
 * @param {Snapshot[]} all
 * @param {"steps" | "time"} scale
 * @returns {number[]}
 */
export function snapshotPositions(all, scale) {
  const last = all.length - 1;
  const start = all[0].ms;
  const duration = all[last].ms - start;
  if (scale === "time" && duration > 0) return all.map(({ ms }) => (ms - start) / duration);
  return all.map((_, i) => (last ? i / last : 0.5));
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
  const height = SIZE.flags + SIZE.main + SIZE.side * lanes + 4;

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
  const back = smallButton("‹", "Earlier snapshot", () => go(current() - 1, true));
  const player = smallButton("▶", "Play through the history", () => play(!isPlaying));
  const next = smallButton("›", "Later snapshot", () => go(current() + 1, true));
  const speed = selectBox("Speed", null, SPEEDS);
  const description = el("div.when");
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
  const zooms = el(
    "span.group",
    { hidden: all.length < ZOOMABLE },
    smallButton("−", "Zoom out", () => zoom(0.5)),
    smallButton("+", "Zoom in", () => zoom(2)),
    smallButton("Fit", "Fit: show all snapshots", () => zoom(0)),
  );
  const legend = el("div.line-legend");
  const result = el("div.compared", { role: "status" });
  const clear = smallButton("×", "End the comparison", () => changeSelection(model, { against: "" }));
  const swap = smallButton("⇄", "Swap: show the other snapshot, compared with this one", () => {
    const { snapshot, against } = model.selection;
    changeSelection(model, { snapshot: against, against: snapshot });
  });
  const foot = el("div.line-foot", legend, result, swap, clear);
  const settings = el("span.group.end", zooms, compareButton, scale, measure);
  const tools = el("div.line-tools", back, player, next, speed, description, settings);
  speed.value = FIRST_SPEED;
  for (const button of [player, compareButton]) setEnabled(button, last > 0);

  /**
   * The position of each snapshot, from 0 to 1, in ascending order.
   *
   * @type {number[]}
   */
  let positions = [];
  /** The largest change by the measure. */
  let most = 0;
  /** The part of the positions in view: where it begins, and its size. */
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
  /** @type {CanvasRenderingContext2D | null} */
  let context = null;
  const redraw = inNextFrame(model, paint);
  const colours = canvasColours(model, line, redraw, resize);

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
  function room() {
    return Math.max(1, width - SIZE.left - SIZE.right);
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
    most = all.reduce((largest, snapshot) => Math.max(largest, ...snapshot[model.measure]), 0);
    start = 0;
    span = 1;
    fill(legend, blocks(model, model.legend[model.measure]));
    draw();
  }
  function resize() {
    if (!line.clientWidth) return;
    width = line.clientWidth;
    context = resizeCanvas(canvas, width, height);
    paint();
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  function paint() {
    if (!context) return;
    const seen = [...all.keys()].filter((i) => x(i) >= -SIZE.left && x(i) <= width + SIZE.right);
    paintTimeline(context, colours, styles, {
      all,
      seen,
      x,
      laneY,
      most,
      top: SIZE.flags,
      width,
      height,
      measure: model.measure,
      now: current(),
      other: selectedIndex("against"),
      hovered,
    });
  }
  /** Describe the snapshot under the pointer, or the selected one. */
  function describe() {
    const i = hovered >= 0 ? hovered : current();
    description.classList.toggle("ice-hovered", hovered >= 0);
    if (!all[i]) return fill(description);
    const { id, refs, words } = all[i];
    const badge = (/** @type {string} */ text) => el("span.badge", { title: text }, text);
    description.title = [words, id, ...refs].join("\n");
    fill(
      description,
      el("span.count", `${formatCount(i + 1)}/${formatCount(all.length)}`),
      refs.slice(0, 3).map(badge),
      refs.length > 3 && badge(`+${refs.length - 3}`),
      el("span.words-line", words),
    );
  }
  function draw() {
    const now = current();
    const other = selectedIndex("against");
    setEnabled(back, now > 0);
    setEnabled(next, now < last);
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
    const { words, refs } = all[now];
    const value = `${now + 1} of ${all.length}: ${[words, ...refs].join(", ")}`;
    return other < 0 ? value : `${value}, compared with ${other + 1}: ${all[other].words}`;
  }
  /** Draw only if another snapshot is selected: another node of the same one changes nothing here. */
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
    const show = () => {
      legend.hidden = Boolean(compared);
      result.hidden = !compared;
      clear.hidden = !compared;
      swap.hidden = !compared || other === current();
    };
    keepFocus(foot, show, line);
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

  // Navigation ---------------------------------------------------------------------------------------------------------

  /**
   * Travel to a snapshot.
   *
   * @param {number} to
   * @param {boolean} [isNow] Without waiting for another key.
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
      // The comparison is the first table of the snapshot's node.
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
    if (on) line.focus();
  }
  /** @param {boolean} on */
  function play(on) {
    isPlaying = on;
    if (on && current() >= last) go(0, true);
    waitToPlay(on && playOn, Number(speed.value));
    const label = on ? "Pause" : "Play through the history";
    player.textContent = on ? "❚❚" : "▶";
    player.title = label;
    player.ariaLabel = label;
  }
  function playOn() {
    // The tree has caught up.
    if (model.busy) return waitToPlay(playOn, BUSY_DELAY);
    const from = current();
    go(from + 1, true);
    play(current() > from && current() < last);
  }
  /**
   * Zoom around a place, else around the selected snapshot.
   *
   * @param {number} by
   * @param {number} [px]
   * @returns {boolean} Whether that changed anything.
   */
  function zoom(by, px) {
    const size = clamp(FEWEST_SEEN / Math.max(FEWEST_SEEN, all.length), span / by, 1);
    let kept = positions[current()] ?? 0.5;
    if (px !== undefined) kept = start + ((px - SIZE.left) / room()) * span;
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
        compareWith((other < 0 ? current() : other) + by);
      } else {
        play(false);
        go(current() + by);
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
    all.forEach(({ lane }, i) => {
      const distance = (x(i) - offsetX) ** 2 + ((laneY(lane) - offsetY) / 2) ** 2;
      if (distance >= least) return;
      best = i;
      least = distance;
    });
    return best;
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
      canvas.style.cursor = found >= 0 ? "pointer" : "";
      if (found === hovered) return;
      hovered = found;
      describe();
      redraw();
    },
    tap(event) {
      const found = nearest(event);
      if (found < 0) return;
      play(false);
      if (event.shiftKey || isComparing()) compareWith(found);
      else go(found, true);
    },
  });

  model.follow(["scale", "measure"], rescale);
  model.onChange("selection", selectionChanged);
  model.onChange("comparison", draw);
  model.onChange("cancelled", () => play(false));
  section.append(tools, line, foot);
  return section;
}
