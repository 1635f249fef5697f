// The history: snapshots in lanes by branch, one step each or by time. Pick one to travel, two to compare; play through.

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
import { paintHistory } from "./timelinePainter.js";
import { canvasColours, inNextFrame, resizeCanvas } from "./painting.js";

// Px: the flags' row, lanes, room left and right.
const [FLAGS, MAIN, SIDE, LEFT, RIGHT] = [18, 46, 25, 16, 30];
// ms without a key until we travel.
const TRAVEL = 150;
const SCALES = [["steps", "One step each"], ["time", "By time"]];
const MEASURES = [["rows", "Rows"], ["files", "Files"], ["bytes", "Bytes"]];
const SPEEDS = [[2400, "½×"], [1200, "1×"], [600, "2×"], [300, "4×"]];

export function timelineView(model) {
  const section = (...parts) => el("section.timeline", { ariaLabel: "Timeline" }, parts);
  const all = model.snapshots;
  if (!all.length) return section(el("div.empty", "No snapshots yet: nothing has been committed."));
  const styles = model.styles;
  const final = all.length - 1;
  const height = FLAGS + MAIN + SIDE * Math.max(0, ...new Set(all.map((s) => s.lane))) + 4;

  const canvas = el("canvas.line-canvas", { ariaHidden: true });
  const line = el("div.axis", {
    role: "slider",
    tabindex: 0,
    ariaLabel: "Snapshot",
    ariaValueMin: 1,
    ariaValueMax: all.length,
    style: { height: `${height}px` },
    onkeydown: keys,
  }, canvas);
  const back = smallButton("‹", "Earlier snapshot", () => go(at() - 1, true));
  const player = smallButton("▶", "Play through the history", () => play(!playing));
  const next = smallButton("›", "Later snapshot", () => go(at() + 1, true));
  const speed = selectBox("Speed", null, SPEEDS);
  const caption = el("div.when");
  const comparing = smallButton(
    "Compare",
    "Compare with another snapshot (Shift and click)",
    () => setCompare(!picking()),
    { ariaPressed: false },
  );
  const scale = selectBox("Scale", () => model.save("scale", scale.value), SCALES);
  const measure = selectBox("Height", () => model.save("measure", measure.value), MEASURES);
  const zooms = el(
    "span.group",
    { hidden: all.length < 24 },
    smallButton("−", "Zoom out", () => zoom(0.5)),
    smallButton("+", "Zoom in", () => zoom(2)),
    smallButton("Fit", "Fit: show all of it", () => zoom(0)),
  );
  const legend = el("div.line-legend");
  const result = el("div.compared", { role: "status" });
  const clear = smallButton("×", "End the comparison", () => changeSelection(model, { against: "" }));
  const foot = el("div.line-foot", legend, result, clear);
  const tools = el(
    "div.line-tools",
    back,
    player,
    next,
    speed,
    caption,
    el("span.group.end", zooms, comparing, scale, measure),
  );
  speed.value = 1200;
  for (const one of [player, comparing]) setEnabled(one, final > 0);

  // The position of each, from 0 to 1, ascending.
  let units = [];
  // Of the measure.
  let most = 0;
  // The part of the units in view: where it begins, and its size.
  let [start, span] = [0, 1];
  let width = 0;
  // Where the keys have gone, until we travel there.
  let moved = null;
  let hovered = -1;
  let playing = false;
  const wait = timer(model);
  const beat = timer(model);
  // What was chosen when we looked last.
  let last;
  let context = null;
  const redraw = inNextFrame(model, paint);
  const colours = canvasColours(model, line, redraw, resize);

  const picked = (key) => all.findIndex(({ id }) => id === model.selection[key]);
  const at = () => moved ?? picked("snapshot");
  const base = (lane) => FLAGS + (lane ? MAIN + SIDE * (lane - 1) + 15 : 31);
  const room = () => Math.max(1, width - LEFT - RIGHT);
  const x = (i) => LEFT + ((units[i] - start) / span) * room();

  // Data and theme -----------------------------------------------------------------------------------------------------

  function scaled() {
    scale.value = model.scale;
    measure.value = model.measure;
    const first = all[0].ms;
    const long = all[final].ms - first;
    units = all.map((s, i) => (scale.value === "time" && long > 0 ? (s.ms - first) / long : final ? i / final : 0.5));
    most = all.reduce((m, s) => Math.max(m, ...s[measure.value]), 0);
    [start, span] = [0, 1];
    fill(legend, blocks(model, model.legend[measure.value]));
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
    const seen = [...all.keys()].filter((i) => x(i) >= -LEFT && x(i) <= width + RIGHT);
    paintHistory(context, colours, styles, {
      all,
      seen,
      x,
      base,
      most,
      top: FLAGS,
      width,
      height,
      measure: measure.value,
      now: at(),
      other: picked("against"),
      hovered,
    });
  }
  function describe() {
    const i = hovered >= 0 ? hovered : at();
    caption.classList.toggle("ice-hovered", hovered >= 0);
    if (!all[i]) return fill(caption);
    const { id, refs, words } = all[i];
    const badge = (text) => el("span.badge", { title: text }, text);
    caption.title = [words, id, ...refs].join("\n");
    fill(
      caption,
      el("span.count", `${formatCount(i + 1)}/${formatCount(all.length)}`),
      refs.slice(0, 3).map(badge),
      refs.length > 3 && badge(`+${refs.length - 3}`),
      el("span.words-line", words),
    );
  }
  function draw() {
    const [now, other] = [at(), picked("against")];
    setEnabled(back, now > 0);
    setEnabled(next, now < final);
    line.ariaValueNow = Math.max(1, now + 1);
    const versus = other >= 0 ? `, compared with ${other + 1}: ${all[other].words}` : "";
    line.ariaValueText = now < 0
      ? "none selected"
      : `${now + 1} of ${all.length}: ${[all[now].words, ...all[now].refs].join(", ")}${versus}`;
    describe();
    drawFoot(other);
    redraw();
  }
  // Another node of the same snapshot is nothing new here.
  function chosen() {
    const now = [at(), picked("against")].join();
    if (now !== last) draw(last = now);
  }
  // What the signs mean, or what differs between the two snapshots, from the older to the newer one.
  function drawFoot(other) {
    const versus = all[other];
    keepFocus(foot, () => ((legend.hidden = Boolean(versus)), (result.hidden = clear.hidden = !versus)), line);
    if (!versus) return fill(result);
    const { against, snapshot, differences } = model.comparison;
    const ready = against === versus.id && snapshot === model.selection.snapshot;
    const differs = other === at() ? "the same snapshot" : ready ? blocks(model, differences) : "…";
    const [older, newer] = [at(), other].sort((a, b) => a - b);
    const title = `${all[older]?.words ?? ""} → ${all[newer].words}`;
    fill(result, el("span", { title }, `${older + 1} → ${newer + 1} of ${all.length}:`), differs);
  }

  // Where to -----------------------------------------------------------------------------------------------------------

  function go(to, now = false) {
    to = clamp(0, to, final);
    // What could not be read is asked for again, as a node: it is selected already.
    if (to === at() && moved === null) {
      return void (model.error.text && changeSelection(model, { node: `snapshot:${all[to].id}` }));
    }
    moved = to;
    reveal(to);
    draw();
    wait(!now && send, TRAVEL);
    if (now) send();
  }
  function send() {
    const { id } = all[moved];
    moved = null;
    if (id !== model.selection.snapshot) changeSelection(model, { snapshot: id });
    draw();
  }
  function against(to) {
    to = clamp(0, to, final);
    setCompare(false);
    reveal(to);
    if (all[to].id !== model.selection.against) changeSelection(model, { against: to === at() ? "" : all[to].id });
  }
  const picking = () => comparing.ariaPressed === "true";
  function setCompare(on) {
    comparing.ariaPressed = on;
    if (on) line.focus();
  }
  function play(on) {
    playing = on;
    if (on && at() >= final) go(0, true);
    beat(on && tick, speed.value);
    player.textContent = on ? "❚❚" : "▶";
    player.title = player.ariaLabel = on ? "Pause" : "Play through the history";
  }
  function tick() {
    // The tree keeps up.
    if (model.busy) return beat(tick, 100);
    const from = at();
    go(from + 1, true);
    play(at() > from && at() < final);
  }
  // At a place, else at the snapshot that is shown.
  function zoom(by, px) {
    const size = clamp(8 / Math.max(8, all.length), span / by, 1);
    const kept = px === undefined ? units[at()] ?? 0.5 : start + ((px - LEFT) / room()) * span;
    return shift(kept - (kept - start) * (size / span), size);
  }
  function shift(to, size = span) {
    const before = [start, span].join();
    [start, span] = [clamp(0, to, 1 - size), size];
    redraw();
    return [start, span].join() !== before;
  }
  function reveal(i) {
    if (units[i] < start || units[i] > start + span) shift(units[i] - span / 2);
  }

  // Keys and pointer ---------------------------------------------------------------------------------------------------

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = {
      ArrowRight: 1,
      ArrowUp: 1,
      ArrowLeft: -1,
      ArrowDown: -1,
      PageUp: 10,
      PageDown: -10,
      Home: -Infinity,
      End: Infinity,
    }[event.key];
    const other = picked("against");
    const acts = {
      " ": () => play(!playing),
      "+": () => zoom(2),
      "=": () => zoom(2),
      "-": () => zoom(0.5),
      0: () => zoom(0),
      Escape: escape,
    };
    const act = by === undefined
      ? acts[event.key]
      : event.shiftKey || picking()
      ? () => against((other < 0 ? at() : other) + by)
      : () => (play(false), go(at() + by));
    if (!act) return;
    consumeEvent(event);
    act();
  }
  function escape() {
    play(false);
    setCompare(false);
    if (model.selection.against) changeSelection(model, { against: "" });
  }
  function nearest({ offsetX, offsetY }) {
    let [best, least] = [-1, 24 ** 2];
    all.forEach(({ lane }, i) => {
      const apart = (x(i) - offsetX) ** 2 + ((base(lane) - offsetY) / 2) ** 2;
      if (apart < least) [best, least] = [i, apart];
    });
    return best;
  }
  gestures(canvas, {
    pan: (dx) => shift(start - (dx / room()) * span),
    zoom,
    hold() {
      const before = [start, span];
      return () => shift(...before);
    },
    wheels: (dx, dy) => Math.abs(dx) > Math.abs(dy),
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
      if (event.shiftKey || picking()) against(found);
      else go(found, true);
    },
  });

  model.follow(["scale", "measure"], scaled);
  model.onChange("selection", chosen);
  model.onChange("comparison", draw);
  model.onChange("cancelled", () => play(false));
  return section(tools, line, foot);
}
