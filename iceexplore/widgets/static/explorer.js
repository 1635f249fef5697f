// The explorer: timeline above, tree and details side by side. Everything shown is in the model's traits.

import { el } from "./dom.js";
import { detailView } from "./detail.js";
import { rowsView } from "./rows.js";
import { timelineView } from "./timeline.js";

export function explorerView(model) {
  const views = [timelineView(model), rowsView(model), detailView(model)];
  const [timeline, tree, detail] = views.map((view) => view.element);
  return {
    element: el("div", { class: "ice-explorer" }, timeline, el("div", { class: "ice-panes" }, tree, detail)),
    end: () => views.forEach((view) => view.end()),
  };
}
