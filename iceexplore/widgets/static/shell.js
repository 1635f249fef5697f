// What every widget stands in: its theme, what it is busy with, errors, and a kernel that does not answer.

import { el, fill, keepFocus } from "./dom.js";
import { followTheme } from "./theme.js";

// ms without an answer until we ask whether somebody is there, and again until we say that nobody is.
const PATIENCE = 3000;
// ms without a sign of Python after which whoever comes to the widget is reason to ask.
const REST = 20000;
// Asks that the next one tells of.
const ALONG = 20;
const LOST = {
  text: "The kernel has ended, or was restarted.",
  advice: "What has been read stays here to look at. Run the cell again to go on.",
};
const SILENT = {
  text: "Python does not answer.",
  advice:
    "Another cell is running, or the kernel has ended. What has been read stays here; after a restart, run the cell again.",
};

export function shell({ model, el: host }, view) {
  const title = el("h2.table-name", { tabindex: -1 });
  const badges = el("span.badges");
  const busy = el("span.busy-text", { role: "status", ariaLive: "polite" });
  const stop = el("button.button", { onclick: () => shared.put("cancelled", shared.cancelled + 1) }, "Cancel");
  const error = el("div.error", { role: "alert" });
  const root = el(
    "div.widget",
    // JupyterLab would take arrows and Enter for its own shortcuts; paths, numbers and pictures go from left to right.
    { dir: "ltr", "data-lm-suppress-shortcuts": "true" },
    el("header.top", el("div.line-one", title, badges, el("div.busy", busy, stop))),
    error,
  );
  let waiting = null;
  // The selection that was answered last, while another is asked for.
  let before = null;
  // Why nobody answers.
  let silent = null;
  // Of Python, the last.
  let sign = Date.now();
  // What runs when the widget goes.
  const ends = [];
  // The model as a view has it: traits by their names, and these. What it hears of, and whatever it gives to `end`, ends
  // with the widget.
  const own = {
    set,
    // Sets a trait, and tells Python.
    put(name, value) {
      set(name, value);
      toPython("save_changes");
    },
    // Asks anew: what is asked has a number, which is given.
    ask(name, what) {
      const n = (model.get(name).n ?? 0) + 1;
      shared.put(name, { ...what, n });
      return n;
    },
    // Asks for what must be done each time: what a notebook joins into one change while Python is busy is told by the last.
    askEach(name, what) {
      const { earlier = [], ...last } = model.get(name);
      return shared.ask(name, { ...what, earlier: [...earlier, last].slice(-ALONG) });
    },
    send: (message) => toPython("send", message),
    on(event, run) {
      model.on(event, run);
      ends.push(() => model.off(event, run));
    },
    // Of one trait, or of several.
    listen: (names, run) => [names].flat().forEach((name) => shared.on("change:" + name, run)),
    // Runs now, and whenever one of them changes.
    follow(names, run) {
      run();
      shared.listen(names, run);
    },
    end: (run) => ends.push(run),
  };
  const shared = new Proxy(own, { get: (_, name) => own[name] ?? model.get(name) });
  function drawTop() {
    title.textContent = shared.title;
    fill(badges, shared.badges.map((text) => el("span.badge", text)));
  }
  function drawBusy() {
    const text = silent ? "" : shared.busy;
    busy.textContent = text;
    keepFocus(stop, () => (stop.hidden = text === ""), title);
    root.classList.toggle("ice-working", text !== "");
    root.ariaBusy = text !== "";
  }
  function drawError() {
    const { text, advice } = silent ?? shared.error;
    error.hidden = !text;
    fill(error, text && [el("strong", text), el("div", advice)]);
  }
  // Nobody answers a selection once the kernel has ended: then all goes on to show what was read.
  function set(name, value) {
    const selects = name === "selection";
    if (selects && silent === LOST) return;
    if (selects) before ??= model.get(name);
    model.set(name, value);
  }
  function toPython(how, ...what) {
    wait();
    if (silent !== LOST) model[how](...what);
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
    if (shared.layout?.comm_live === false) say(LOST);
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
  function seek() {
    if (waiting === null && silent !== LOST) ping();
  }
  const visited = () => Date.now() - sign > REST && seek();
  root.append(view(shared));
  shared.follow(["title", "badges"], drawTop);
  shared.follow("busy", drawBusy);
  shared.follow("error", drawError);
  shared.listen(["busy", "error", "answered"], answered);
  shared.on("msg:custom", answered);
  // Something happened to the line to Python: is somebody there?
  shared.on("comm_live_update", () => setTimeout(seek));
  shared.end(() => clearTimeout(waiting));
  followTheme(shared, root);
  for (const name of ["pointerenter", "focusin"]) root.addEventListener(name, visited);
  // Where the focus is must be seen once somebody walks by keys: Safari does not show it where a script moved it on from
  // what was clicked.
  for (const [name, keyed] of [["keydown", true], ["pointerdown", false]]) {
    root.addEventListener(name, () => root.classList.toggle("ice-keyed", keyed), true);
  }
  host.classList.add("ice-host");
  host.append(root);
  // JupyterLab keeps the element of an output that is gone: what stands in it need not stay with it.
  return () => (ends.forEach((end) => end()), root.remove());
}
