// How a canvas is moved and zoomed: a pointer drags it, two fingers on a screen or a trackpad and the wheel zoom it.

import { listen } from "./dom.js";

// `pan(dx, dy)` and `zoom(by, px, py)` say whether that moved anything. `hold()` is called when a pointer comes; what it
// returns takes back what moved since. `wheels(dx, dy)`: whether a wheel without Ctrl is the canvas's, not the page's.
// A pointer that moves nothing hovers (nowhere, once it leaves), and taps where it is let go.
export function gestures(canvas, { pan, zoom, hold, wheels, hover, tap }) {
  const pointers = new Map();
  let dragged = false;
  let restore;
  // Of two fingers on a trackpad in Safari, how far apart they are.
  let apart = 1;
  listen(canvas, {
    pointerdown({ button, pointerId, offsetX, offsetY }) {
      if (button) return;
      if (!pointers.size) restore = hold();
      pointers.set(pointerId, [offsetX, offsetY]);
      // Two fingers pick nothing.
      dragged = pointers.size > 1;
    },
    pointermove(event) {
      const [x, y] = [event.offsetX, event.offsetY];
      const last = pointers.get(event.pointerId);
      if (!last) return hover(event);
      if (!dragged && Math.hypot(x - last[0], y - last[1]) < 4) return;
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      const far = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      const moved = other
        ? zoom(far([x, y]) / far(last), (x + other[0]) / 2, (y + other[1]) / 2)
        : pan(x - last[0], y - last[1]);
      pointers.set(event.pointerId, [x, y]);
      if (!moved && !dragged) return hover(event);
      if (!dragged) canvas.setPointerCapture(event.pointerId);
      dragged = true;
    },
    pointerup: (event) => pointers.delete(event.pointerId) && !dragged && tap(event),
    // The finger scrolls the page after all.
    pointercancel: ({ pointerId }) => pointers.delete(pointerId) && restore(),
    pointerleave({ pointerId }) {
      pointers.delete(pointerId);
      hover();
    },
    // The wheel is the page's, unless it or Ctrl says that the canvas is meant; at the end it is the page's again.
    wheel(event) {
      const unit = event.deltaMode ? 24 : 1;
      // Shift turns it sideways: where the browser does not say so itself, as Firefox, here.
      const [dx, dy] = event.shiftKey && !event.deltaX ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
      if (event.ctrlKey) zoom(Math.exp(-event.deltaY * unit * 0.004), event.offsetX, event.offsetY);
      else if (!wheels(dx, dy) || !pan(-dx * unit, -dy * unit)) return;
      event.preventDefault();
    },
    // Two fingers on a trackpad, as Safari tells of them; elsewhere they are a wheel with Ctrl.
    gesturestart(event) {
      event.preventDefault();
      apart = 1;
    },
    gesturechange(event) {
      event.preventDefault();
      const { left, top } = canvas.getBoundingClientRect();
      // Fingers on a screen are pointers.
      if (!pointers.size) zoom(event.scale / apart, event.clientX - left, event.clientY - top);
      apart = event.scale;
    },
  });
}
