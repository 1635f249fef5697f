/**
 * The frame of every widget: the table's name, progress, errors, the theme, and the model that views get.
 *
 * It notices a kernel that does not answer: every message to Python should have an answer of some kind. If none arrives
 * for a while, a ping is sent, which Python always answers.
 *
 * @module
 */

/** @import { AnyModel, ErrorText, Model, ModelMethods, RenderContext, View } from "./types.d.ts" */

import { el, fill, keepFocus, timer } from "./dom.js";
import { headButton, widgetRoom } from "./room.js";
import { followTheme } from "./theme.js";

/** The time, in ms, to wait for an answer before a ping is sent, and then for an answer to the ping. */
const PATIENCE = 3000;
/** The time since Python's last sign of life after which a ping is sent when the user comes back to the widget. */
const REST = 20000;
/** How long, in ms, a message about a completed action is shown. */
const NOTE_TIME = 6000;
/** How many earlier requests each request of `requestEach` repeats. */
const MOST_EARLIER = 20;

/** @type {ErrorText} */
const LOST = {
  text: "The kernel has ended or was restarted.",
  advice: "What was read stays visible. Run the cell again to continue.",
};
/** @type {ErrorText} */
const SILENT = {
  text: "The kernel is not responding.",
  advice:
    "Another cell may be running, or the kernel has ended. What was read stays visible. After a restart, run the cell again.",
};

/**
 * Return a model for views: anywidget's model, with its traits as properties and the methods of `ModelMethods`.
 *
 * @param {AnyModel} model
 * @param {Pick<ModelMethods, "set"> & { toPython(send: () => void): void, say?: (text: string) => void, isShort?: () => boolean, roomRuns?: (() => void)[] }} connection
 * @param {(() => void)[]} cleanups The functions to call when the widget is removed; the model's methods add some.
 * @returns {Model}
 */
export function createModel(
  model,
  { set, toPython, say = () => {}, isShort = () => false, roomRuns = [] },
  cleanups,
) {
  /** @type {ModelMethods} */
  const methods = {
    set,
    save(name, value) {
      set(name, value);
      toPython(() => model.save_changes());
    },
    request(name, request) {
      const n = (model.get(name).n ?? 0) + 1;
      methods.save(name, { ...request, n });
      return n;
    },
    requestEach(name, request) {
      const { earlier = [], ...last } = model.get(name);
      return methods.request(name, { ...request, earlier: [...earlier, last].slice(-MOST_EARLIER) });
    },
    send(message) {
      toPython(() => model.send(message));
    },
    on(event, run) {
      model.on(event, run);
      cleanups.push(() => model.off(event, run));
    },
    onChange(names, run) {
      // A notebook passes the model and the value, which `run` must not get.
      const changed = () => run();
      for (const name of [names].flat()) methods.on("change:" + name, changed);
    },
    follow(names, run) {
      run();
      methods.onChange(names, run);
    },
    onEnd(run) {
      cleanups.push(run);
    },
    say,
    isShort,
    onRoom(run) {
      roomRuns.push(run);
    },
  };
  const get = (/** @type {any} */ target, /** @type {string} */ name) => target[name] ?? model.get(name);
  return /** @type {Model} */ (new Proxy(methods, { get }));
}

/**
 * Show a widget.
 *
 * @param {RenderContext} context The argument that anywidget passes.
 * @param {View} view
 * @returns {() => void} The function to call when the widget is removed.
 */
export function shell({ model: anyModel, el: host }, view) {
  const title = el("h2.table-name", { tabindex: -1 });
  const badges = el("span.badges");
  const busy = el("span.busy-text", { role: "status", ariaLive: "polite" });
  const cancel = el("button.button", { onclick: () => model.save("cancelled", model.cancelled + 1) }, "Cancel");
  const error = el("div.error", { role: "alert" });
  const line = el("div.line-one", title, badges, el("div.busy", busy, cancel));
  const root = el(
    "div.widget",
    // Paths, numbers and pictures go from left to right. JupyterLab must not use arrows and Enter as its own shortcuts.
    { dir: "ltr", "data-lm-suppress-shortcuts": "true" },
    el("header.top", line),
    error,
  );
  /** @type {(() => void)[]} */
  const cleanups = [];
  /**
   * The timer that runs while an answer is awaited.
   *
   * @type {ReturnType<typeof setTimeout> | undefined}
   */
  let waiting;
  /**
   * The last selection that was answered, while another one is pending.
   *
   * @type {Model["selection"] | null}
   */
  let answeredSelection = null;
  /**
   * Why Python does not answer: LOST, SILENT, or null while it does.
   *
   * @type {ErrorText | null}
   */
  let silence = null;
  /** The time of Python's last sign of life. */
  let lastSign = Date.now();

  /** Whether the widget has a fixed height that is low. */
  let isShort = false;
  /** @type {(() => void)[]} */
  const roomRuns = [];

  const model = createModel(anyModel, { set, toPython, say, isShort: () => isShort, roomRuns }, cleanups);
  /** A message about a completed action, or "". */
  let note = "";
  const waitWithNote = timer(model);

  function drawTop() {
    title.textContent = model.title;
    fill(badges, model.badges.map((text) => el("span.badge", text)));
  }
  function drawBusy() {
    const text = silence ? "" : model.busy;
    busy.textContent = text || note;
    keepFocus(cancel, () => (cancel.hidden = text === ""), title);
    root.classList.toggle("ice-working", text !== "");
    root.ariaBusy = String(text !== "");
  }
  /** @param {string} text */
  function say(text) {
    note = text;
    drawBusy();
    waitWithNote(text !== "" && (() => say("")), NOTE_TIME);
  }
  function drawError() {
    const { text, advice } = silence ?? model.error;
    error.hidden = !text;
    error.classList.toggle("ice-silent", silence === SILENT);
    fill(error, text && [el("strong", text), el("div", advice)]);
  }

  /** @type {ModelMethods["set"]} */
  function set(name, value) {
    if (name === "selection") {
      // Once the kernel has ended, selections are not answered, so all views keep showing what was read.
      if (silence === LOST) return;
      answeredSelection ??= anyModel.get(name);
    }
    anyModel.set(name, value);
  }
  /** @param {() => void} send */
  function toPython(send) {
    awaitAnswer();
    if (silence !== LOST) send();
  }

  /** @param {ErrorText | null} why */
  function setSilence(why) {
    if (silence === why) return;
    silence = why;
    root.classList.toggle("ice-lost", why === LOST);
    if (why === LOST && answeredSelection) anyModel.set("selection", answeredSelection);
    drawError();
    drawBusy();
  }
  /** Expect an answer of any kind: to the message, or else to a ping. */
  function awaitAnswer() {
    // In a notebook that was opened without its kernel, models have no connection to Python, and messages are lost
    // without an error.
    if (model.layout?.comm_live === false) setSilence(LOST);
    if (silence !== LOST) waiting ??= setTimeout(ping, PATIENCE);
  }
  function ping() {
    // Start the timer before the ping is sent, because a saved page answers at once.
    waiting = setTimeout(() => {
      waiting = undefined;
      setSilence(SILENT);
    }, PATIENCE);
    try {
      anyModel.send({ ping: true });
    } catch {
      // The notebook reports that there is no kernel to send to.
      clearTimeout(waiting);
      setSilence(LOST);
    }
  }
  function answered() {
    clearTimeout(waiting);
    waiting = undefined;
    answeredSelection = null;
    lastSign = Date.now();
    if (silence === SILENT) setSilence(null);
  }
  function askIfThere() {
    if (waiting === undefined && silence !== LOST) ping();
  }
  function visited() {
    if (Date.now() - lastSign > REST) askIfThere();
  }

  const { controls, edge } = widgetRoom(model, root, (now) => {
    if (now === isShort) return;
    isShort = now;
    for (const run of roomRuns) run();
  });
  line.prepend(headButton(model));
  line.append(...controls);
  root.append(view(model, root), edge);
  model.follow(["title", "badges"], drawTop);
  model.follow("busy", drawBusy);
  model.follow("error", drawError);
  model.onChange(["busy", "error", "answered"], answered);
  model.on("msg:custom", answered);
  // The state of the connection has changed.
  model.on("comm_live_update", () => setTimeout(askIfThere));
  model.onEnd(() => clearTimeout(waiting));
  followTheme(model, root);
  for (const name of ["pointerenter", "focusin"]) root.addEventListener(name, visited);
  // Keys must make the focus visible: after a click, Safari hides a focus that a script has moved.
  root.addEventListener("keydown", () => root.classList.add("ice-keyed"), true);
  root.addEventListener("pointerdown", () => root.classList.remove("ice-keyed"), true);
  host.classList.add("ice-host");
  host.append(root);
  return () => {
    for (const cleanup of cleanups) cleanup();
    // JupyterLab keeps the elements of removed outputs. Without its content, such an element takes little memory.
    root.remove();
  };
}
