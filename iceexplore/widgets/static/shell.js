// What every widget stands in: its theme, what it is busy with, errors, and a kernel that does not answer.

import { el, fill, followTheme, keepFocus, listen } from "./dom.js";

// ms without an answer until we ask whether somebody is there, and again until we say that nobody is.
const PATIENCE = 3000;
// ms without a sign of Python after which whoever comes to the widget is reason to ask.
const REST = 20000;
const LOST = { text: "The kernel has ended, or was restarted.", advice: "What has been read stays here to look at. Run the cell again to go on." };
const SILENT = { text: "Python does not answer.", advice: "Another cell is running, or the kernel has ended. What has been read stays here; after a restart, run the cell again." };

export function shell({ model, el: host }, views) {
  const title = el("h2.ice-table-name", { tabindex: -1 });
  const badges = el("span.ice-badges");
  const busy = el("span.ice-busy-text", { role: "status", ariaLive: "polite" });
  const stop = el("button.ice-button", { hidden: true, onclick: cancel }, "Cancel");
  const error = el("div.ice-error", { role: "alert", hidden: true });
  const root = el(
    "div.ice-widget",
    // JupyterLab would take arrows and Enter for its own shortcuts; paths, numbers and pictures go from left to right.
    { dir: "ltr", "data-lm-suppress-shortcuts": "true" },
    el("header.ice-top", el("div.ice-line-one", title, badges, el("div.ice-busy", busy, stop))),
    error,
  );
  let waiting = null;
  // The selection that was answered last, while another is asked for.
  let before = null;
  // Why nobody answers.
  let silent = null;
  // Of Python, the last.
  let sign = Date.now();
  const asking = {
    get: (name) => model.get(name),
    set,
    on: (name, run) => model.on(name, run),
    off: (name, run) => model.off(name, run),
    send: (...message) => (wait(), silent === LOST || model.send(...message)),
    save_changes: () => (wait(), silent === LOST || model.save_changes()),
  };
  const shown = views.map((view) => view(asking));
  root.append(...shown.map((view) => view.element));
  function drawTop() {
    title.textContent = model.get("title");
    fill(badges, model.get("badges").map((text) => el("span.ice-badge", text)));
  }
  function drawBusy() {
    const text = silent ? "" : model.get("busy");
    busy.textContent = text;
    keepFocus(stop, () => (stop.hidden = text === ""), title);
    root.classList.toggle("ice-working", text !== "");
    root.ariaBusy = text !== "";
  }
  function drawError() {
    const { text, advice } = silent ?? model.get("error");
    error.hidden = !text;
    fill(error, text && [el("strong", text), el("div", advice)]);
  }
  function cancel() {
    model.set("cancelled", model.get("cancelled") + 1);
    asking.save_changes();
  }
  // Nobody answers a selection once the kernel has ended: then all goes on to show what was read.
  function set(name, value) {
    const selects = name === "selection";
    if (selects && silent === LOST) return;
    if (selects) before ??= model.get(name);
    model.set(name, value);
  }
  function say(why) {
    if (silent === why) return;
    silent = why;
    root.classList.toggle("ice-lost", why === LOST);
    if (why === LOST && before) model.set("selection", before);
    drawError();
    drawBusy();
  }
  // Something was asked: an answer of any kind must come, if not to this then to the question whether somebody is there.
  function wait() {
    // A page made of what a notebook has kept: no model has a line to Python, and what is sent is lost without a word.
    if (model.get("layout")?.comm_live === false) say(LOST);
    if (silent !== LOST) waiting ??= setTimeout(ping, PATIENCE);
  }
  function ping() {
    // Before we ask: a saved page answers at once.
    waiting = setTimeout(() => ((waiting = null), say(SILENT)), PATIENCE);
    try {
      model.send({ ping: true });
    } catch {
      // The notebook knows that there is nobody to send to.
      clearTimeout(waiting);
      say(LOST);
    }
  }
  function answered() {
    clearTimeout(waiting);
    waiting = before = null;
    sign = Date.now();
    if (silent === SILENT) say(null);
  }
  function visited() {
    if (waiting === null && silent !== LOST && Date.now() - sign > REST) ping();
  }
  // Something happened to the line to Python: is somebody there?
  const gone = () => setTimeout(() => waiting === null && silent !== LOST && ping());
  const ends = [
    listen(model, ["title", "badges"], drawTop),
    listen(model, ["busy"], () => (answered(), drawBusy())),
    listen(model, ["error", "answered"], () => (answered(), drawError())),
    ...shown.map((view) => view.end),
    followTheme(root),
  ];
  for (const [name, run] of [["msg:custom", answered], ["comm_live_update", gone]]) {
    model.on(name, run);
    ends.push(() => model.off(name, run));
  }
  for (const name of ["pointerenter", "focusin"]) root.addEventListener(name, visited);
  drawTop();
  drawBusy();
  drawError();
  host.classList.add("ice-host");
  host.append(root);
  return () => {
    clearTimeout(waiting);
    for (const end of ends) end();
  };
}
