// The snapshot slider: one step per snapshot, oldest first, a tick for each while there is room.

import { choose, colour, el, listen } from "./dom.js";

const MAX_TICKS = 120;
const DELAY = 150; // ms to wait while the handle is dragged

export function timelineView(model) {
  const range = el("input", { type: "range", class: "ice-range-input", min: 0, step: 1, "aria-label": "Snapshot" });
  const ticks = el("div", { class: "ice-ticks", "aria-hidden": "true" });
  const label = el("div", { class: "ice-when" });
  const back = el("button", { type: "button", class: "ice-button", "aria-label": "Earlier snapshot", onclick: () => step(-1) }, "‹");
  const next = el("button", { type: "button", class: "ice-button", "aria-label": "Later snapshot", onclick: () => step(1) }, "›");
  const box = el("div", { class: "ice-timeline" }, back, el("div", { class: "ice-track" }, ticks, range), next, label);
  let timer = null;

  const all = () => model.get("snapshots");
  const step = (by) => {
    range.value = Number(range.value) + by;
    describe();
    send();
  };

  function send() {
    clearTimeout(timer);
    timer = null;
    const snapshot = all()[Number(range.value)];
    if (!snapshot || snapshot.id === model.get("selection").snapshot) return;
    choose(model, { snapshot: snapshot.id });
  }

  function describe() {
    const at = Number(range.value);
    const snapshot = all()[at];
    if (!snapshot) return;
    const text = [snapshot.time, snapshot.operation].filter(Boolean).join(" · ");
    range.setAttribute("aria-valuetext", `${at + 1} of ${all().length}: ${[text, ...snapshot.refs].join(", ")}`);
    label.replaceChildren(
      el("span", { class: "ice-count" }, `${at + 1}/${all().length}`),
      el("span", {}, text),
      ...snapshot.refs.slice(0, 3).map((ref) => el("span", { class: "ice-badge", title: ref }, ref)),
      ...(snapshot.refs.length > 3 ? [el("span", { class: "ice-badge" }, `+${snapshot.refs.length - 3}`)] : []),
    );
    back.disabled = at === 0;
    next.disabled = at === all().length - 1;
  }

  function draw() {
    const list = all();
    box.hidden = list.length === 0;
    range.max = Math.max(0, list.length - 1);
    const at = list.findIndex((s) => s.id === model.get("selection").snapshot);
    if (timer === null && at >= 0) range.value = at;
    range.disabled = list.length < 2;
    const shown = list.length <= MAX_TICKS ? list : [];
    ticks.replaceChildren(
      ...shown.map((snapshot, i) => {
        const tick = el("span", { class: "ice-tick" + (snapshot.refs.length ? " ice-tick-ref" : "") });
        tick.style.setProperty("--at", list.length > 1 ? i / (list.length - 1) : 0);
        colour(tick, model.get("styles")["operation:" + snapshot.operation] ?? {});
        return tick;
      }),
    );
    describe();
  }

  range.addEventListener("input", () => {
    describe();
    clearTimeout(timer);
    timer = setTimeout(send, DELAY);
  });
  range.addEventListener("change", send);
  range.addEventListener("keydown", (event) => event.stopPropagation());
  const end = listen(model, ["snapshots", "selection"], draw);
  draw();
  return {
    element: box,
    end: () => {
      clearTimeout(timer);
      end();
    },
  };
}
