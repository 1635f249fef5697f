// The explorer: timeline above, its parts below, one tab each. Everything shown is in the model's traits, the tab too;
// how the panes share the room and what is full screen is a view's own.

import { chooseTab, tabRow } from "./controls.js";
import { detailView } from "./detail.js";
import { clamp, consumeEvent, el, fill, keepFocus, listen, randomId } from "./dom.js";
import { treeView } from "./treeView.js";
import { timelineView } from "./timeline.js";

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
function treeTab(model) {
  const bar = el("div.splitter", {
    role: "separator",
    tabindex: 0,
    ariaLabel: "Width of the tree",
    ariaOrientation: "vertical",
    ariaValueMin: NARROWEST,
    ariaValueMax: 100 - NARROWEST,
  });
  const panes = el("div.panes", treeView(model), bar, detailView(model));
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
      const to =
        { ArrowLeft: share - 3, ArrowRight: share + 3, Home: NARROWEST, End: 100 - NARROWEST, Enter: first }[event.key];
      if (to === undefined) return;
      consumeEvent(event);
      setShare(to);
    },
  });
  setShare(first);
  return panes;
}

export function explorerView(model) {
  const id = `ice-${randomId()}`;
  let ended = false;
  const parts = model.parts.map(([key]) => {
    const panel = el("div.part-panel", {
      role: "tabpanel",
      id: `${id}-panel-${key}`,
      "aria-labelledby": `${id}-${key}`,
      hidden: true,
    });
    const tab = el("button.part", {
      role: "tab",
      id: `${id}-${key}`,
      "aria-controls": panel.id,
      "data-part": key,
      onclick: () => model.save("tab", key),
    });
    return { key, tab, panel, made: false };
  });
  const tabs = parts.map(({ tab }) => tab);
  const full = el(
    "button.button.end",
    { ariaPressed: false, hidden: !document.fullscreenEnabled, onclick: fullScreen },
    "Full screen",
  );
  const element = el(
    "div.explorer",
    timelineView(model),
    el("div.bar", tabRow("div.parts", "Parts of the explorer", tabs), full),
    parts.map(({ panel }) => panel),
  );

  function draw() {
    const chosen = parts.find(({ key }) => key === model.tab) ?? parts[0];
    chooseTab(tabs, chosen.tab);
    model.parts.forEach(([, title], i) => (tabs[i].textContent = title));
    // Whoever chose it need not be at the tabs: a problem leads to its node, and Python sets the tab.
    for (const { panel } of parts) keepFocus(panel, () => (panel.hidden = panel !== chosen.panel), chosen.tab);
    if (chosen.made) return;
    const script = model.scripts[chosen.key];
    if (chosen.key === "tree") mount(chosen, treeTab);
    else if (script) later(script).then((view) => mount(chosen, view));
    else {fill(
        chosen.panel,
        el("div.empty", el("span.awaited", "Loading …"), el("span.missed", "Not loaded: the kernel has ended.")),
      );}
  }
  function mount(part, view) {
    if (ended || part.made) return;
    fill(part.panel, view(model));
    part.made = true;
  }
  const whole = () => element.closest(".ice-widget");
  function fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else whole().requestFullscreen();
  }
  function screened() {
    const yes = document.fullscreenElement === whole();
    full.ariaPressed = yes;
    full.textContent = yes ? "Leave full screen" : "Full screen";
  }
  document.addEventListener("fullscreenchange", screened);
  model.follow(["parts", "tab", "scripts"], draw);
  model.onEnd(() => {
    ended = true;
    document.removeEventListener("fullscreenchange", screened);
  });
  return element;
}
