// The picture of a forest: cards on a canvas that pans and zooms, beside an overview.

import { cardPainter, ICONS, WORDS } from "./treeCards.js";
import { clamp, el, listen, timer } from "./dom.js";
import { gestures } from "./gestures.js";
import { SIZE } from "./arrangement.js";
import { canvasColours, inNextFrame, resizeCanvas } from "./painting.js";

const FARTHEST = 0.03;
const NEAREST = 2.5;
// px of paper beyond the outermost cards.
const EDGE = 40;
// ms until the tooltip comes.
const SLOW = 350;
// px of width from which on a minimap covers no card that is looked at.
const MINI = 450;

export function canvasView(model, { styles, onSelect, onToggle }) {
  const canvas = el("canvas.canvas", { ariaHidden: true });
  // The overview: all cards, and a frame around those that are in view.
  const overview = el("canvas");
  const frame = el("div.frame");
  const mini = el("div.mini", { ariaHidden: true, hidden: true }, overview, frame);
  const tip = el("div.tip", { role: "tooltip", hidden: true });
  const box = el("div.picture", canvas, mini, tip);
  const view = { x: 0, y: 0, scale: 1, width: 0, height: 0 };
  let map = { rows: [], byId: new Map(), blocks: [], width: 0, height: 0 };
  const state = { selected: null, focus: null, hits: new Set() };
  const wait = timer(model);
  // Whether the overview shows other cards, or in other colours.
  let old = true;

  // Colours and sizes ------------------------------------------------------------------------------------------------

  const redraw = inNextFrame(model, draw);
  const colours = canvasColours(model, box, anew, resize);
  const cards = cardPainter(colours, styles);

  function anew() {
    old = true;
    redraw();
  }
  function resize() {
    const { clientWidth: w, clientHeight: h } = box;
    if (!w || !h) return;
    const first = view.width === 0;
    resizeCanvas(canvas, w, h);
    Object.assign(view, { width: w, height: h });
    if (first) home();
    else limit();
    // Now: a canvas that was resized is empty.
    draw();
  }

  // Where things are -------------------------------------------------------------------------------------------------

  function limit() {
    for (const [axis, side] of [["x", "width"], ["y", "height"]]) {
      // What is unfolded keeps its place, near the rim too.
      const edge = Math.max(EDGE, view[side] * 0.45);
      const slack = view[side] - map[side] * view.scale - edge;
      view[axis] = clamp(Math.min(edge, slack), view[axis], Math.max(edge, slack));
    }
  }
  function moveTo(x, y, scale = view.scale) {
    const before = [view.x, view.y, view.scale].join();
    Object.assign(view, { x, y, scale });
    limit();
    if ([view.x, view.y, view.scale].join() === before) return false;
    hideTip();
    redraw();
    return true;
  }
  const whole = () => Math.min((view.width - EDGE) / map.width, (view.height - EDGE) / map.height);
  const pan = (dx, dy) => moveTo(view.x + dx, view.y + dy);
  function zoom(by, px = view.width / 2, py = view.height / 2) {
    const scale = clamp(Math.min(FARTHEST, whole()), view.scale * by, NEAREST);
    const k = scale / view.scale;
    return moveTo(px - (px - view.x) * k, py - (py - view.y) * k, scale);
  }
  function fit() {
    // Then its width, from the top on.
    const tall = whole() < 0.1;
    const scale = Math.min(tall ? (view.width - EDGE) / map.width : whole(), 1.1);
    moveTo((view.width - map.width * scale) / 2, tall ? EDGE : (view.height - map.height * scale) / 2, scale);
  }
  // As it begins: all of it where that can be read, else what is selected and what hangs on it.
  function home() {
    if (whole() > 0.8) return fit();
    moveTo(EDGE / 2, EDGE / 2, 0.9);
    const row = map.byId.get(state.selected);
    if (row) moveTo(EDGE - row.x * 0.9, view.height / 2 - row.y * 0.9, 0.9);
  }
  // The place of a card on the screen.
  function where(id) {
    const row = map.byId.get(id);
    return row &&
      {
        x: row.x * view.scale + view.x,
        y: row.y * view.scale + view.y,
        width: row.w * view.scale,
        height: SIZE.height * view.scale,
        scale: view.scale,
      };
  }
  // Shows a card: with as little as moves it into view, or at a size at which it can be read.
  function reveal(id) {
    const at = where(id);
    if (!at || !view.width) return;
    const { width, height, scale } = view;
    const room = 16;
    const into = (start, size, all) => clamp(room, start, all - size - room - 20) - start;
    const near = Math.abs(at.x - width / 2) < width && Math.abs(at.y - height / 2) < height;
    if (near && scale >= WORDS) return void pan(into(at.x, at.width, width), into(at.y, at.height, height));
    const row = map.byId.get(id);
    const next = scale < WORDS ? 0.9 : scale;
    moveTo(width / 3 - row.x * next, height / 2 - row.y * next, next);
  }
  // Another forest; the card `anchor` stays where it is on the screen.
  function show(next, anchor) {
    const [was, now] = [map.byId.get(anchor), next.byId.get(anchor)];
    const empty = !map.rows.length;
    map = next;
    old = true;
    if (was && now) {
      Object.assign(view, { x: view.x + (was.x - now.x) * view.scale, y: view.y + (was.y - now.y) * view.scale });
    }
    if (!view.width) return;
    if (empty) home();
    limit();
    redraw();
  }
  function hit({ offsetX, offsetY }) {
    const [x, y] = [(offsetX - view.x) / view.scale, (offsetY - view.y) / view.scale];
    return map.rows.find((row) =>
      x >= row.x && x <= row.x + row.w + (row.node.leaf ? 0 : 13) && y >= row.y && y <= row.y + SIZE.height
    );
  }
  const onTwisty = (row, { offsetX }) =>
    !row.node.leaf && view.scale >= ICONS && (offsetX - view.x) / view.scale > row.x + row.w - 12;

  // Drawing ----------------------------------------------------------------------------------------------------------

  function draw() {
    if (!view.width) return;
    cards.paint(canvas, view, { map, state });
    drawMini();
  }
  // The overview -----------------------------------------------------------------------------------------------------

  const miniScale = () => Math.min(124 / map.width, 84 / map.height);
  function drawMini() {
    const larger = map.width * view.scale > view.width || map.height * view.scale > view.height;
    mini.hidden = !larger || view.width < MINI || view.height < 220;
    if (mini.hidden) return;
    const k = miniScale();
    if (old) drawOverview(k);
    old = false;
    const [left, top] = [4 - (view.x / view.scale) * k, 4 - (view.y / view.scale) * k];
    const [right, bottom] = [left + (view.width / view.scale) * k, top + (view.height / view.scale) * k];
    frame.style.inset = [top, overview.width - right, overview.height - bottom, left].map((px) => `max(0px, ${px}px)`)
      .join(" ");
  }
  function drawOverview(k) {
    overview.width = Math.max(28, map.width * k + 8);
    overview.height = Math.max(28, map.height * k + 8);
    const c = overview.getContext("2d");
    let [at, lowest, tone] = [0, 0, null];
    for (const { node, x, y, w } of map.rows) {
      const next = cards.toneOf(node);
      // The card above, alike, covers it.
      if (next === tone && x === at && y >= lowest && (y - lowest) * k < 0.5) continue;
      [at, lowest, tone] = [x, y, next];
      c.fillStyle = tone;
      c.fillRect(4 + x * k, 4 + y * k, Math.max(1, w * k), Math.max(1, (SIZE.height - 8) * k));
    }
  }
  function miniTo({ offsetX, offsetY }) {
    const k = miniScale() / view.scale;
    moveTo(view.width / 2 - (offsetX - 4) / k, view.height / 2 - (offsetY - 4) / k);
  }
  listen(mini, {
    pointerdown(event) {
      mini.setPointerCapture(event.pointerId);
      miniTo(event);
    },
    pointermove: (event) => event.buttons && miniTo(event),
  });

  // Pointer ----------------------------------------------------------------------------------------------------------

  gestures(canvas, {
    pan,
    zoom,
    hold() {
      hideTip();
      const { x, y, scale } = view;
      return () => moveTo(x, y, scale);
    },
    wheels: () => state.focus !== null,
    hover(event) {
      const row = event && hit(event);
      canvas.style.cursor = row ? "pointer" : "";
      if (row?.id === state.hovered) return;
      hideTip();
      state.hovered = row?.id;
      redraw();
      if (row) wait(() => showTip(row, event.offsetX, event.offsetY), SLOW);
    },
    tap(event) {
      const row = hit(event);
      if (!row) return;
      if (onTwisty(row, event)) onToggle(row);
      else onSelect(row);
    },
  });
  canvas.addEventListener("dblclick", (event) => {
    const row = hit(event);
    if (row && !row.node.leaf && !onTwisty(row, event)) onToggle(row);
  });
  function showTip({ node }, x, y) {
    tip.textContent = [node.tooltip || node.label, node.reason].filter(Boolean).join("\n");
    tip.hidden = false;
    tip.style.left = `${clamp(4, x + 12, view.width - tip.offsetWidth - 4)}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > view.height ? Math.max(4, y - tip.offsetHeight - 8) : y + 18}px`;
  }
  function hideTip() {
    wait();
    tip.hidden = true;
  }

  // The whole picture as a file: in detail as far as a canvas may be large.
  function png() {
    const [width, height] = [map.width + 2 * EDGE, map.height + 2 * EDGE];
    const scale = Math.min(2, 12000 / width, 12000 / height);
    const file = el("canvas", { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
    cards.paint(file, { x: EDGE * scale, y: EDGE * scale, scale, width: file.width, height: file.height }, {
      map,
      state,
    });
    return new Promise((done) => file.toBlob(done, "image/png"));
  }

  return {
    element: box,
    show,
    fit,
    zoom,
    pan,
    reveal,
    hideTip,
    png,
    // What is selected, focused and found; draws.
    mark(next) {
      Object.assign(state, next);
      redraw();
    },
    // For tests, and for who points at a card.
    where,
  };
}
