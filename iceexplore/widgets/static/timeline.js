// The history: snapshots in lanes by branch, one step each or by time. Pick one to travel, two to compare; play through.

import { blocks } from "./blocks.js";
import { choose, clamp, count, el, enable, fill, keepFocus, listen, onPinch, options, ours, signButton, timer } from "./dom.js";
import { paintHistory } from "./history.js";
import { framed, inks, stretch } from "./theme.js";

// Px: the flags' row, lanes, room left and right.
const [FLAGS, MAIN, SIDE, LEFT, RIGHT] = [18, 46, 25, 16, 30];
// ms without a key until we travel.
const TRAVEL = 150;
// px apart: nearer ones are drawn together.
const DENSE = 7;
const SCALES = [["steps", "One step each"], ["time", "By time"]];
const MEASURES = [["rows", "Rows"], ["files", "Files"], ["bytes", "Bytes"]];
const SPEEDS = [[2400, "½×"], [1200, "1×"], [600, "2×"], [300, "4×"]];

export function timelineView(model) {
  const styles = model.get("styles");
  const canvas = el("canvas.ice-line-canvas", { ariaHidden: true });
  const line = el("div.ice-axis", { role: "slider", tabindex: 0, ariaLabel: "Snapshot", ariaValueMin: 1, onkeydown: keys }, canvas);
  const select = (label, pairs, onchange) => el("select.ice-select", { ariaLabel: label, title: label, onchange }, options(pairs));
  const back = signButton("‹", "Earlier snapshot", () => go(at() - 1, true));
  const player = signButton("▶", "Play through the history", () => play(playing === null));
  const next = signButton("›", "Later snapshot", () => go(at() + 1, true));
  const speed = select("Speed", SPEEDS, () => {});
  const said = el("div.ice-when");
  const comparing = signButton("Compare", "Compare with another snapshot (Shift and click)", () => setCompare(!compare), { ariaPressed: false });
  const scale = select("Scale", SCALES, () => model.put("scale", scale.value));
  const measure = select("Height", MEASURES, () => model.put("measure", measure.value));
  const zooms = el("span.ice-group", signButton("−", "Zoom out", () => zoom(2)), signButton("+", "Zoom in", () => zoom(0.5)), signButton("Fit", "Fit: show all of it", () => zoom(Infinity)));
  const legend = el("div.ice-line-legend");
  const result = el("div.ice-compared", { role: "status" });
  const clear = signButton("×", "End the comparison", () => choose(model, { against: "" }));
  const foot = el("div.ice-line-foot", legend, result, clear);
  const tools = el("div.ice-line-tools", back, player, next, speed, said, el("span.ice-group.ice-end", zooms, comparing, scale, measure));
  const none = el("div.ice-empty", "No snapshots yet: nothing has been committed.");
  const box = el("section.ice-timeline", { ariaLabel: "Timeline" }, none, tools, line, foot);
  speed.value = 1200;

  let all = [];
  let places = new Map();
  // Where each stands, from 0 to 1, ascending.
  let units = [];
  let lanes = 1;
  // Of the measure.
  let most = 0;
  // The part of the units in view: where it begins, and its size.
  let [start, span] = [0, 1];
  let width = 0;
  // Where the keys have gone, until we travel there.
  let moved = null;
  let hovered = -1;
  let compare = false;
  let playing = null;
  const wait = timer(model);
  // What was chosen when we looked last.
  let last;
  let context = null;
  const redraw = framed(model, paint);
  const colours = inks(model, line, draw, resize);

  const picked = (key) => places.get(model.get("selection")[key]) ?? -1;
  const at = () => moved ?? picked("snapshot");
  const height = () => FLAGS + MAIN + SIDE * (lanes - 1) + 4;
  const base = (lane) => FLAGS + (lane ? MAIN + SIDE * (lane - 1) + 15 : 31);
  const room = () => Math.max(1, width - LEFT - RIGHT);
  const x = (i) => LEFT + ((units[i] - start) / span) * room();

  // Data and theme -----------------------------------------------------------------------------------------------------

  function load() {
    all = model.get("snapshots");
    places = new Map(all.map((s, i) => [s.id, i]));
    lanes = 1 + Math.max(0, ...new Set(all.map((s) => s.lane)));
    scaled();
    line.style.height = `${height()}px`;
    for (const part of [tools, line, foot]) part.hidden = all.length === 0;
    none.hidden = all.length > 0;
    zooms.hidden = all.length < 24;
    resize();
  }
  function scaled() {
    const [first, last] = [all[0]?.ms, all.at(-1)?.ms];
    scale.value = model.get("scale");
    measure.value = model.get("measure");
    const byTime = scale.value === "time" && last > first;
    units = all.map((s, i) => (byTime ? (s.ms - first) / (last - first) : all.length > 1 ? i / (all.length - 1) : 0.5));
    most = all.reduce((m, s) => Math.max(m, ...s[measure.value]), 0);
    [start, span] = [0, 1];
    draw();
  }
  function resize() {
    if (!line.clientWidth) return;
    width = line.clientWidth;
    context = stretch(canvas, width, height());
    paint();
  }

  // Drawing ------------------------------------------------------------------------------------------------------------

  function paint() {
    if (!width || !all.length || !colours.ink) return;
    context.clearRect(0, 0, width, height());
    const [low, high] = [place(-LEFT), place(width + RIGHT)];
    const dense = room() / Math.max(1, high - low) < DENSE;
    paintHistory(context, colours, styles, { all, x, base, low, high, dense, most, top: FLAGS, width, height: height(), measure: measure.value, now: at(), other: picked("against"), hovered });
  }
  // The first snapshot that stands right of a place.
  function place(px) {
    const unit = start + ((px - LEFT) / room()) * span;
    let [low, high] = [0, units.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (units[middle] < unit) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  // Words --------------------------------------------------------------------------------------------------------------

  function describe() {
    const i = hovered >= 0 ? hovered : at();
    said.classList.toggle("ice-hovered", hovered >= 0);
    if (!all[i]) return fill(said);
    const { id, refs, words } = all[i];
    const badge = (text) => el("span.ice-badge", { title: text }, text);
    said.title = [words, id, ...refs].join("\n");
    fill(said, el("span.ice-count", `${count(i + 1)}/${count(all.length)}`), refs.slice(0, 3).map(badge), refs.length > 3 && badge(`+${refs.length - 3}`), el("span.ice-words-line", words));
  }
  function draw() {
    const [now, other] = [at(), picked("against")];
    enable(back, now > 0);
    enable(next, now < all.length - 1);
    for (const one of [player, comparing]) enable(one, all.length > 1);
    line.ariaValueMax = Math.max(1, all.length);
    line.ariaValueNow = Math.max(1, now + 1);
    const versus = other >= 0 ? `, compared with ${other + 1}: ${all[other].words}` : "";
    line.ariaValueText = now < 0 ? "none selected" : `${now + 1} of ${all.length}: ${[all[now].words, ...all[now].refs].join(", ")}${versus}`;
    describe();
    drawFoot(other);
    redraw();
  }
  // Another node of the same snapshot is nothing new here.
  function chosen() {
    const now = [at(), picked("against")].join();
    if (now !== last) draw((last = now));
  }
  // What the signs mean, or what differs from the other snapshot.
  function drawFoot(other) {
    const versus = all[other];
    keepFocus(foot, () => ((legend.hidden = Boolean(versus)), (result.hidden = clear.hidden = !versus)), line);
    fill(legend, blocks(model, model.get("legend")[measure.value]));
    if (!versus) return fill(result);
    const { against, snapshot, said } = model.get("comparison");
    const ready = against === versus.id && snapshot === model.get("selection").snapshot;
    const differs = other === at() ? "the same snapshot" : ready ? blocks(model, said) : "…";
    fill(result, el("span", { title: versus.words }, `Since ${other + 1}/${all.length}:`), differs);
  }

  // Where to -----------------------------------------------------------------------------------------------------------

  function go(to, now = false) {
    to = clamp(0, to, all.length - 1);
    if (!all.length) return;
    // What could not be read is asked for again, as a node: it is selected already.
    if (to === at() && moved === null) return void (model.get("error").text && choose(model, { node: `snapshot:${all[to].id}` }));
    moved = to;
    reveal(to);
    draw();
    wait(!now && send, TRAVEL);
    if (now) send();
  }
  function send() {
    const to = moved;
    moved = null;
    if (all[to] && all[to].id !== model.get("selection").snapshot) choose(model, { snapshot: all[to].id });
    draw();
  }
  function against(to) {
    to = clamp(0, to, all.length - 1);
    setCompare(false);
    reveal(to);
    if (all[to].id !== model.get("selection").against) choose(model, { against: to === at() ? "" : all[to].id });
  }
  function setCompare(on) {
    compare = on;
    comparing.ariaPressed = on;
    box.classList.toggle("ice-picking", on);
    if (on) line.focus();
  }
  function play(on) {
    clearTimeout(playing);
    playing = null;
    const last = all.length - 1;
    if (on && at() >= last) go(0, true);
    if (on) playing = setTimeout(tick, speed.value);
    player.textContent = on ? "❚❚" : "▶";
    player.title = player.ariaLabel = on ? "Pause" : "Play through the history";
  }
  function tick() {
    // The tree keeps up.
    if (model.get("busy") !== "") return void (playing = setTimeout(tick, 100));
    const from = at();
    go(from + 1, true);
    if (at() === from || at() >= all.length - 1) play(false);
    else playing = setTimeout(tick, speed.value);
  }
  function zoom(by, px = null) {
    const size = clamp(8 / Math.max(8, all.length), span * by, 1);
    const kept = px === null ? clamp(0, (units[at()] ?? 0.5) - start, 1) / span : clamp(0, (px - LEFT) / room(), 1);
    shift(start + kept * (span - size), size);
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
    if (event.ctrlKey || event.metaKey || event.altKey || !all.length) return;
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[event.key];
    const other = picked("against");
    const acts = { " ": () => play(playing === null), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => zoom(Infinity), Escape: escape };
    const act = by === undefined ? acts[event.key] : event.shiftKey || compare ? () => against((other < 0 ? at() : other) + by) : () => (play(false), go(at() + by));
    if (!act) return;
    ours(event);
    act();
  }
  function escape() {
    play(false);
    setCompare(false);
    if (model.get("selection").against) choose(model, { against: "" });
  }
  function nearest({ offsetX, offsetY }) {
    let [best, least] = [-1, 24 ** 2];
    for (let i = place(offsetX - 24); i < all.length && x(i) <= offsetX + 24; i++) {
      const apart = (x(i) - offsetX) ** 2 + ((base(all[i].lane) - offsetY) / 2) ** 2;
      if (apart < least) [best, least] = [i, apart];
    }
    return best;
  }
  let held = null;
  let dragged = false;
  listen(canvas, {
    pointerdown(event) {
      if (event.button) return;
      // Two fingers pick nothing.
      held = event.isPrimary ? event.offsetX : null;
      dragged = false;
    },
    pointermove(event) {
      if (held !== null && (dragged || Math.abs(event.offsetX - held) > 4) && span < 1) {
        if (!dragged) canvas.setPointerCapture(event.pointerId);
        dragged = true;
        shift(start + ((held - event.offsetX) / room()) * span);
        held = event.offsetX;
        return;
      }
      const found = nearest(event);
      canvas.style.cursor = found >= 0 ? "pointer" : "";
      if (found === hovered) return;
      hovered = found;
      describe();
      redraw();
    },
    pointerup(event) {
      const found = held !== null && !dragged ? nearest(event) : -1;
      held = null;
      if (found < 0) return;
      play(false);
      if (event.shiftKey || compare) against(found);
      else go(found, true);
    },
    pointercancel: () => (held = null),
    pointerleave() {
      hovered = -1;
      describe();
      redraw();
    },
    // The wheel is the page's, unless Ctrl says that it is meant, or it goes sideways.
    wheel(event) {
      // Shift turns it sideways: where the browser does not say so itself, as Firefox, here.
      const [dx, dy] = event.shiftKey && !event.deltaX ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
      if (event.ctrlKey) zoom(Math.exp(event.deltaY * 0.004), event.offsetX);
      else if (Math.abs(dx) <= Math.abs(dy) || !shift(start + (dx / room()) * span)) return;
      event.preventDefault();
    },
  });

  onPinch(canvas, (by, px) => zoom(1 / by, px));

  model.listen(["snapshots"], load);
  model.listen(["scale", "measure"], scaled);
  model.listen(["selection"], chosen);
  model.listen(["comparison"], draw);
  model.listen(["cancelled"], () => play(false));
  model.end(() => clearTimeout(playing));
  load();
  return box;
}
