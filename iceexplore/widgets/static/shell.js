// What every widget stands in: its theme, what it is busy with, errors, and a kernel that does not answer.

import { el, followTheme, listen } from "./dom.js";

const PATIENCE = 8000; // ms without an answer until we say so
const ASKS = ["selection", "query", "expanded", "commit_asked"]; // Python answers when one of these is set, and counts in `answered`

export function shell({ model, el: host }, views) {
  const title = el("span", { class: "ice-table-name" });
  const badges = el("span", { class: "ice-badges" });
  const busy = el("span", { class: "ice-busy-text", role: "status", "aria-live": "polite" });
  const stop = el("button", { type: "button", class: "ice-button", hidden: true, onclick: cancel }, "Cancel");
  const error = el("div", { class: "ice-error", role: "alert", hidden: true });
  const root = el(
    "div",
    // JupyterLab would take arrows and Enter for its own shortcuts
    { class: "ice-widget", "data-lm-suppress-shortcuts": "true" },
    el("header", { class: "ice-top" }, el("div", { class: "ice-line-one" }, title, badges, el("div", { class: "ice-busy" }, busy, stop))),
    error,
  );
  const shown = views.map((view) => view(model));
  root.append(...shown.map((view) => view.element));
  let waiting = null;

  function drawTop() {
    title.textContent = model.get("title");
    badges.replaceChildren(...model.get("badges").map((text) => el("span", { class: "ice-badge" }, text)));
  }
  function drawBusy() {
    const text = model.get("busy");
    busy.textContent = text;
    stop.hidden = text === "";
    root.classList.toggle("ice-working", text !== "");
    root.setAttribute("aria-busy", text !== "");
  }
  function drawError(silent) {
    const { text, advice } = silent ? { text: "Python does not answer.", advice: "Is the kernel running? Run the cell again." } : model.get("error");
    error.hidden = !text;
    error.replaceChildren(...(text ? [el("strong", {}, text), el("div", {}, advice ?? "")] : []));
  }
  function cancel() {
    model.set("cancelled", model.get("cancelled") + 1);
    model.save_changes();
  }
  function asked() {
    clearTimeout(waiting);
    waiting = setTimeout(() => model.get("busy") === "" && drawError(true), PATIENCE);
  }
  function answered() {
    clearTimeout(waiting);
    drawError(false);
  }
  const ends = [
    listen(model, ["title", "badges"], drawTop),
    listen(model, ["busy"], drawBusy),
    listen(model, ["error", "answered"], answered),
    listen(model, ASKS, asked),
    ...shown.map((view) => view.end),
    followTheme(root),
  ];
  drawTop();
  drawBusy();
  drawError(false);
  host.append(root);
  return () => {
    clearTimeout(waiting);
    for (const end of ends) end();
  };
}
