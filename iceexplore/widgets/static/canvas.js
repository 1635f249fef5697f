// The picture of a forest: cards on a canvas that pans and zooms, beside an overview.

import { cardPainter, ICONS, WORDS } from "./cards.js";
import { clamp, el, listen, onPinch, timer } from "./dom.js";
import { SIZE } from "./layout.js";
import { framed, inks, stretch } from "./theme.js";

const FARTHEST = 0.03;
const NEAREST = 2.5;
// px of paper beyond the outermost cards.
const EDGE = 40;
// ms until the tooltip comes.
const SLOW = 350;
// px of width from which on a minimap covers no card that is looked at.
const MINI = 450;

export function canvasView(model, { styles, onSelect, onToggle }) {
  const canvas = el("canvas.ice-canvas", { ariaHidden: true });
  const mini = el("canvas.ice-mini", { ariaHidden: true, hidden: true });
  const tip = el("div.ice-tip", { role: "tooltip", hidden: true });
  const box = el("div.ice-picture", canvas, mini, tip);
  const view = { x: 0, y: 0, scale: 1, width: 0, height: 0 };
  let map = { rows: [], byId: new Map(), blocks: [], width: 0, height: 0 };
  const state = { selected: null, focus: null, hasFocus: false, hits: new Set(), hovered: null };
  const wait = timer(model);
  // The minimap's cards.
  let dirty = true;
  let overview = null;

  // Colours and sizes ------------------------------------------------------------------------------------------------

  const redraw = framed(model, draw);
  const forget = () => {
    dirty = true;
    cards.forget();
    redraw();
  };
  const colours = inks(model, box, forget, resize);
  const cards = cardPainter(colours, styles);

  function resize() {
    const { clientWidth: w, clientHeight: h } = box;
    if (!w || !h) return;
    const first = view.width === 0;
    stretch(canvas, w, h);
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
  function reveal(id) {
    const row = map.byId.get(id);
    if (!row || !view.width) return;
    const scale = view.scale < WORDS ? 0.9 : view.scale;
    const [left, top] = [row.x * scale + view.x, row.y * scale + view.y];
    const room = 16;
    const inside = scale === view.scale && left >= room && top >= room && left + row.w * scale <= view.width - room - 20 && top + SIZE.height * scale <= view.height - room;
    if (inside) return;
    const near = (at, size, all) => clamp(room, at, all - size - room - 20);
    if (scale === view.scale && Math.abs(left - view.width / 2) < view.width && Math.abs(top - view.height / 2) < view.height)
      return void moveTo(view.x + near(left, row.w * scale, view.width) - left, view.y + near(top, SIZE.height * scale, view.height) - top);
    moveTo(view.width / 3 - row.x * scale, view.height / 2 - row.y * scale, scale);
  }
  // Another forest; the card `anchor` stays where it is on the screen.
  function show(next, anchor) {
    const [old, now] = [map.byId.get(anchor), next.byId.get(anchor)];
    const empty = map.rows.length === 0;
    map = next;
    dirty = true;
    if (old && now) Object.assign(view, { x: view.x + (old.x - now.x) * view.scale, y: view.y + (old.y - now.y) * view.scale });
    if (!view.width) return;
    if (empty) home();
    limit();
    redraw();
  }
  function hit(px, py) {
    const [x, y] = [(px - view.x) / view.scale, (py - view.y) / view.scale];
    return map.rows.find((row) => x >= row.x && x <= row.x + row.w + (row.node.leaf ? 0 : 13) && y >= row.y && y <= row.y + SIZE.height);
  }
  const onTwisty = (row, px) => !row.node.leaf && view.scale >= ICONS && (px - view.x) / view.scale > row.x + row.w - 12;

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
    const c = mini.getContext("2d");
    if (dirty) {
      mini.width = Math.max(28, map.width * k + 8);
      mini.height = Math.max(28, map.height * k + 8);
      overview = el("canvas", { width: mini.width, height: mini.height });
      const o = overview.getContext("2d");
      let [at, lowest, tone] = [0, 0, null];
      for (const { node, x, y, w } of map.rows) {
        const next = cards.toneOf(node);
        // The card above, alike, covers it.
        if (next === tone && x === at && y >= lowest && (y - lowest) * k < 0.5) continue;
        [at, lowest, tone] = [x, y, next];
        o.fillStyle = tone;
        o.fillRect(4 + x * k, 4 + y * k, Math.max(1, w * k), Math.max(1, (SIZE.height - 8) * k));
      }
      dirty = false;
    }
    c.fillStyle = colours.paper;
    c.fillRect(0, 0, mini.width, mini.height);
    c.drawImage(overview, 0, 0);
    c.strokeStyle = colours.accent;
    c.lineWidth = 1.5;
    const at = (p) => Math.max(1, 4 + (-p / view.scale) * k);
    const [x, y] = [at(view.x), at(view.y)];
    c.strokeRect(x, y, clamp(3, (view.width / view.scale) * k, mini.width - 1 - x), clamp(3, (view.height / view.scale) * k, mini.height - 1 - y));
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

  const pointers = new Map();
  let dragged = false;
  // Where the picture was when the first of them came.
  let held;
  listen(canvas, {
    pointerdown({ button, pointerId, offsetX, offsetY }) {
      if (button) return;
      if (!pointers.size) held = { ...view };
      pointers.set(pointerId, [offsetX, offsetY]);
      dragged = pointers.size > 1;
      hideTip();
    },
    pointermove(event) {
      const now = [event.offsetX, event.offsetY];
      const last = pointers.get(event.pointerId);
      if (!last) return hover(event);
      if (!dragged && Math.hypot(now[0] - last[0], now[1] - last[1]) < 4) return;
      if (!dragged) canvas.setPointerCapture(event.pointerId);
      dragged = true;
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      pointers.set(event.pointerId, now);
      if (other) {
        const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        zoom(apart(now) / apart(last), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      } else pan(now[0] - last[0], now[1] - last[1]);
    },
    pointerup({ pointerId, offsetX, offsetY }) {
      if (!pointers.delete(pointerId) || dragged) return;
      const row = hit(offsetX, offsetY);
      if (!row) return;
      if (onTwisty(row, offsetX)) onToggle(row);
      else onSelect(row);
    },
    // The finger scrolls the page after all.
    pointercancel: ({ pointerId }) => pointers.delete(pointerId) && moveTo(held.x, held.y, held.scale),
    dblclick({ offsetX, offsetY }) {
      const row = hit(offsetX, offsetY);
      if (row && !row.node.leaf && !onTwisty(row, offsetX)) onToggle(row);
    },
    // The wheel is the page's, unless the tree has the focus or Ctrl says that it is meant; at the end it is the page's again.
    wheel(event) {
      if (!event.ctrlKey && !state.hasFocus) return;
      const unit = event.deltaMode ? 24 : 1;
      const [dx, dy] = event.shiftKey && !event.deltaX ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
      const moved = event.ctrlKey ? zoom(Math.exp(-event.deltaY * unit * 0.004), event.offsetX, event.offsetY) : pan(-dx * unit, -dy * unit);
      if (moved || event.ctrlKey) event.preventDefault();
    },
    pointerleave() {
      hideTip();
      state.hovered = null;
      redraw();
    },
  });
  onPinch(canvas, (by, px, py) => pointers.size || zoom(by, px, py)); // fingers on a screen are pointers
  function hover({ offsetX, offsetY }) {
    const row = hit(offsetX, offsetY);
    canvas.style.cursor = row ? "pointer" : "grab";
    if (row?.id === state.hovered) return;
    hideTip();
    state.hovered = row?.id ?? null;
    redraw();
    if (row) wait(() => showTip(row, offsetX, offsetY), SLOW);
  }
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
    const scale = Math.min(2, 12000 / (map.width + 2 * EDGE), 12000 / (map.height + 2 * EDGE));
    const file = el("canvas", { width: Math.ceil((map.width + 2 * EDGE) * scale), height: Math.ceil((map.height + 2 * EDGE) * scale) });
    cards.paint(file, { x: EDGE * scale, y: EDGE * scale, scale, width: file.width, height: file.height }, { map, state });
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
    // The place of a card on the screen, for tests and for who points at it.
    where(id) {
      const row = map.byId.get(id);
      return row && { x: row.x * view.scale + view.x, y: row.y * view.scale + view.y, width: row.w * view.scale, height: SIZE.height * view.scale, scale: view.scale };
    },
  };
}
