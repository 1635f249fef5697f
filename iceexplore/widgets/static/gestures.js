/**
 * Moving and zooming a canvas: a pointer drags it; two fingers on a screen or trackpad, and the wheel, zoom it.
 *
 * @module
 */

import { listen } from "./dom.js";

/** How far, in px, a pressed pointer must move before it starts to drag. */
const DRAG_DISTANCE = 4;
/** The height of a line in px, for wheels that report lines instead of px. */
const LINE = 24;
/** How fast a wheel zooms. */
const ZOOM_SPEED = 0.004;

/**
 * What a canvas does with gestures.
 *
 * @typedef {object} GestureHandlers
 * @property {(dx: number, dy: number) => boolean} pan Move; return whether that moved anything.
 * @property {(by: number, x: number, y: number) => boolean} zoom Zoom around a point; return whether that changed
 *   anything.
 * @property {() => () => void} hold A pointer was pressed; return a function that undoes all movements since then.
 * @property {(dx: number, dy: number) => boolean} takesWheel Return whether the wheel, without Ctrl, moves the canvas
 *   instead of scrolling the page.
 * @property {(event?: PointerEvent) => void} hover A pointer that drags nothing has moved or, without an event, has
 *   left.
 * @property {(event: PointerEvent) => void} tap A pointer that dragged nothing was released.
 */

/**
 * Return the distance between two points; 1 instead of 0, because it is used as a divisor.
 *
 * @param {number[]} a
 * @param {number[]} b
 */
function distance(a, b) {
  return Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
}

/**
 * Handle the gestures on a canvas.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {GestureHandlers} handlers
 */
export function gestures(canvas, { pan, zoom, hold, takesWheel, hover, tap }) {
  /**
   * The last position of each pressed pointer.
   *
   * @type {Map<number, [x: number, y: number]>}
   */
  const pointers = new Map();
  let dragged = false;
  let restore = () => {};
  /** The scale of a gesture in Safari, at its last event. */
  let lastScale = 1;

  /** @param {PointerEvent} event */
  function moved(event) {
    /** @type {[number, number]} */
    const here = [event.offsetX, event.offsetY];
    const last = pointers.get(event.pointerId);
    if (!last) return hover(event);
    if (!dragged && Math.hypot(here[0] - last[0], here[1] - last[1]) < DRAG_DISTANCE) return;
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    const changed = other
      ? zoom(distance(here, other) / distance(last, other), (here[0] + other[0]) / 2, (here[1] + other[1]) / 2)
      : pan(here[0] - last[0], here[1] - last[1]);
    pointers.set(event.pointerId, here);
    if (!changed && !dragged) return hover(event);
    if (!dragged) canvas.setPointerCapture(event.pointerId);
    dragged = true;
  }

  /** @param {WheelEvent} event */
  function wheeled(event) {
    const unit = event.deltaMode ? LINE : 1;
    let [dx, dy] = [event.deltaX, event.deltaY];
    // With Shift, the wheel scrolls sideways; Firefox and others leave that to the page.
    if (event.shiftKey && !dx) [dx, dy] = [dy, 0];
    if (event.ctrlKey) {
      zoom(Math.exp(-event.deltaY * unit * ZOOM_SPEED), event.offsetX, event.offsetY);
    } else if (!takesWheel(dx, dy) || !pan(-dx * unit, -dy * unit)) {
      // At the end of the canvas, the wheel scrolls the page.
      return;
    }
    event.preventDefault();
  }

  listen(canvas, {
    pointerdown({ button, pointerId, offsetX, offsetY }) {
      if (button) return;
      if (!pointers.size) restore = hold();
      pointers.set(pointerId, [offsetX, offsetY]);
      // With a second finger, it is a gesture and not a click.
      dragged = pointers.size > 1;
    },
    pointermove: moved,
    pointerup(event) {
      if (pointers.delete(event.pointerId) && !dragged) tap(event);
    },
    pointercancel({ pointerId }) {
      // The browser has taken over the gesture, to scroll the page.
      if (pointers.delete(pointerId)) restore();
    },
    pointerleave({ pointerId }) {
      pointers.delete(pointerId);
      hover();
    },
    wheel: wheeled,
    // Safari's events for two fingers on a trackpad; other browsers report a wheel with Ctrl.
    gesturestart(event) {
      event.preventDefault();
      lastScale = 1;
    },
    gesturechange(event) {
      event.preventDefault();
      const { left, top } = canvas.getBoundingClientRect();
      // Fingers on a screen are already handled as pointers.
      if (!pointers.size) zoom(event.scale / lastScale, event.clientX - left, event.clientY - top);
      lastScale = event.scale;
    },
  });
}
