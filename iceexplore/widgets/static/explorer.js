// The explorer: timeline above, tree and details side by side. Everything shown is in the model's traits.

import { el, followTheme, listen } from "./dom.js";
import { detailView } from "./detail.js";
import { timelineView } from "./timeline.js";
import { treeView } from "./tree.js";

const PATIENCE = 8000; // ms without an answer until we say so

function render({ model, el: host }) {
  const title = el("span", { class: "ice-table-name" });
  const badges = el("span", { class: "ice-badges" });
  const busy = el("div", { class: "ice-busy", role: "status", "aria-live": "polite" });
  const error = el("div", { class: "ice-error", role: "alert", hidden: true });
  const views = [timelineView(model), treeView(model), detailView(model)];
  const [timeline, tree, detail] = views.map((view) => view.element);
  const root = el(
    "div",
    // JupyterLab would take arrows and Enter for its own shortcuts
    { class: "ice-explorer", "data-lm-suppress-shortcuts": "true" },
    el("header", { class: "ice-top" }, el("div", { class: "ice-line-one" }, title, badges, busy), timeline),
    error,
    el("div", { class: "ice-panes" }, tree, detail),
  );
  let waiting = null;

  function drawTop() {
    title.textContent = model.get("title");
    badges.replaceChildren(...model.get("badges").map((text) => el("span", { class: "ice-badge" }, text)));
  }
  function drawBusy() {
    busy.textContent = model.get("busy");
    root.classList.toggle("ice-working", model.get("busy") !== "");
    root.setAttribute("aria-busy", model.get("busy") !== "");
  }
  function drawError(silent) {
    const { text, advice } = silent ? { text: "Python does not answer.", advice: "Is the kernel running? Run the cell again." } : model.get("error");
    error.hidden = !text;
    error.replaceChildren(...(text ? [el("strong", {}, text), el("div", {}, advice ?? "")] : []));
  }
  // Each of these asks Python for something; Python counts its answers in `answered`.
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
    listen(model, ["selected_id", "snapshot_id", "query", "expanded"], asked),
    ...views.map((view) => view.end),
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

export default { render };
