// The explorer: timeline above, its parts below, one tab each. Everything shown is in the model's traits, the tab too;
// how the panes share the room and what is full screen is a view's own.

import { chooseTab, tabRow } from "./controls.js";
import { detailView } from "./detail.js";
import { clamp, count, el, fill, keepFocus, listen, ours, random } from "./dom.js";
import { mapView } from "./map.js";
import { timelineView } from "./timeline.js";

export const PARTS = [
  { key: "tree", title: "Tree", trait: "nodes", view: treeView },
  { key: "scan", title: "Scan", trait: "scan_plan" },
  { key: "commit", title: "Commit", trait: "commit_form" },
  { key: "problems", title: "Problems", trait: "problems", count: ({ counts = {} }) => Object.values(counts).reduce((a, b) => a + b, 0) },
  { key: "deletes", title: "Deletes", trait: "vector" },
];
// The scripts of parts that came later: text -> what it becomes.
const loaded = new Map();

// The view of a part that has none here: its script is in the trait `scripts` once Python has seen the tab.
function later(text) {
  if (!loaded.has(text)) {
    const at = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    // $given: what this script has for them.
    loaded.set(text, import(at).then((module) => module.default($given)));
  }
  return loaded.get(text);
}
// Percent that either pane keeps.
const NARROWEST = 25;

// The tree, and the details of what is selected beside it.
function treeView(model) {
  const bar = el("div.ice-splitter", { role: "separator", tabindex: 0, ariaLabel: "Width of the tree", ariaOrientation: "vertical", ariaValueMin: NARROWEST, ariaValueMax: 100 - NARROWEST });
  const panes = el("div.ice-panes", mapView(model), bar, detailView(model));
  const first = 54;
  let share = first;
  function setShare(percent) {
    share = clamp(NARROWEST, percent, 100 - NARROWEST);
    panes.style.setProperty("--share", `${share}%`);
    bar.ariaValueNow = Math.round(share);
  }
  listen(bar, {
    pointerdown(event) {
      event.preventDefault();
      bar.setPointerCapture(event.pointerId);
      bar.focus();
    },
    pointermove(event) {
      if (!bar.hasPointerCapture(event.pointerId)) return;
      const { left, width } = panes.getBoundingClientRect();
      setShare(((event.clientX - left) / width) * 100);
    },
    dblclick: () => setShare(first),
    keydown(event) {
      const to = { ArrowLeft: share - 3, ArrowRight: share + 3, Home: NARROWEST, End: 100 - NARROWEST, Enter: first }[event.key];
      if (to === undefined) return;
      ours(event);
      setShare(to);
    },
  });
  setShare(first);
  return panes;
}

// A page without Python shows only some of the parts.
export function explorerView(model, every = PARTS) {
  const parts = every.filter(({ trait }) => model.get(trait) !== undefined);
  const id = `ice-${random()}`;
  let ended = false;
  // The keys of the parts that have been looked at.
  const shown = new Set();
  const buttons = parts.map(({ key, title }) => el("button.ice-part", { role: "tab", id: `${id}-${key}`, "aria-controls": `${id}-panel-${key}`, "data-part": key, onclick: () => model.put("tab", key) }, title));
  const panels = parts.map(({ key }) => el("div.ice-part-panel", { role: "tabpanel", id: `${id}-panel-${key}`, "aria-labelledby": `${id}-${key}`, hidden: true }));
  const full = el("button.ice-button.ice-end", { ariaPressed: false, hidden: !document.fullscreenEnabled, onclick: fullScreen }, "Full screen");
  const element = el("div.ice-explorer", timelineView(model), el("div.ice-bar", tabRow("div.ice-parts", "Parts of the explorer", buttons), full), panels);

  function draw() {
    const wanted = model.get("tab");
    const now = parts.some(({ key }) => key === wanted) ? wanted : parts[0].key;
    const chosen = buttons[parts.findIndex(({ key }) => key === now)];
    parts.forEach((part, i) => {
      const here = part.key === now;
      const found = part.count?.(model.get(part.trait));
      buttons[i].textContent = found ? `${part.title} (${count(found)})` : part.title;
      if (here) chooseTab(buttons, chosen);
      // Whoever chose it need not be at the tabs: a problem leads to its node, and Python sets the tab.
      keepFocus(panels[i], () => (panels[i].hidden = !here), chosen);
      const script = model.get("scripts")?.[part.key];
      if (!here || shown.has(part.key)) return;
      if (part.view) mount(part.key, panels[i], part.view);
      else if (script) later(script).then((view) => mount(part.key, panels[i], view));
      else fill(panels[i], el("div.ice-empty", el("span.ice-awaited", "Loading …"), el("span.ice-missed", "Not loaded: the kernel has ended.")));
    });
  }
  function mount(key, panel, make) {
    if (ended || shown.has(key)) return;
    const view = make(model);
    shown.add(key);
    fill(panel, view);
  }
  function fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else element.closest(".ice-widget").requestFullscreen();
  }
  const screened = () => {
    const { fullscreenElement: screen } = document;
    const yes = screen !== null && screen === element.closest(".ice-widget");
    full.ariaPressed = yes;
    full.textContent = yes ? "Leave full screen" : "Full screen";
  };
  document.addEventListener("fullscreenchange", screened);
  model.listen(["tab", "problems", "scripts"], draw);
  model.end(() => {
    ended = true;
    document.removeEventListener("fullscreenchange", screened);
  });
  draw();
  return element;
}
