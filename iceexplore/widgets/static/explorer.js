/**
 * The explorer: the timeline above, its parts below, a tab each. The model's traits have everything that is shown,
 * including the tab. Each view has its own widths of panes and its own full screen.
 *
 * @module
 */

/** @import { Model, View } from "./types.d.ts" */

import { markTab, tabRow } from "./controls.js";
import { detailView } from "./detail.js";
import { clamp, consumeEvent, el, fill, keepFocus, listen, randomId } from "./dom.js";
import { timelineView } from "./timeline.js";
import { treeView } from "./treeView.js";

/** Percentages of the width: the minimum of each pane, the tree's at first, and the step of an arrow key. */
const SHARE = { least: 25, first: 54, step: 3 };

/**
 * The views whose scripts were loaded later, by the checksum of the script.
 *
 * @type {Map<number, Promise<View>>}
 */
const loadedViews = new Map();

/**
 * Return a script from what was sent (`iceexplore.widgets.core._bundle.sent_later`), which is compressed.
 *
 * @param {DataView<ArrayBuffer>} sent
 * @returns {Promise<string>}
 */
export function unpackScript(sent) {
  return new Response(new Blob([sent]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/**
 * Return the view of a tab that is not in this script. Its script is in the trait `scripts` once Python has seen the
 * tab.
 *
 * @param {DataView<ArrayBuffer>} sent
 * @returns {Promise<View>}
 */
function loadView(sent) {
  // Gzip ends with the CRC-32 and the length of what it compressed.
  const checksum = sent.getUint32(sent.byteLength - 8);
  let view = loadedViews.get(checksum);
  if (!view) {
    view = unpackScript(sent).then(async (text) => {
      const module = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
      // @ts-expect-error: `$given` is declared where the modules are joined; it has what this script shares with later
      // ones
      return module.default($given);
    });
    loadedViews.set(checksum, view);
  }
  return view;
}

/**
 * Return the first tab: the tree, and the details of what is selected beside it.
 *
 * @param {Model} model
 */
function treeTab(model) {
  const splitter = el("div.splitter", {
    role: "separator",
    tabindex: 0,
    ariaLabel: "Width of the tree",
    ariaOrientation: "vertical",
    ariaValueMin: SHARE.least,
    ariaValueMax: 100 - SHARE.least,
  });
  const panes = el("div.panes", treeView(model), splitter, detailView(model));
  let share = SHARE.first;
  /** @param {number} percent */
  function setShare(percent) {
    share = clamp(SHARE.least, percent, 100 - SHARE.least);
    panes.style.setProperty("--share", `${share}%`);
    splitter.ariaValueNow = String(Math.round(share));
  }
  listen(splitter, {
    pointerdown(event) {
      event.preventDefault();
      splitter.setPointerCapture(event.pointerId);
      splitter.focus();
    },
    pointermove(event) {
      if (!splitter.hasPointerCapture(event.pointerId)) return;
      const { left, width } = panes.getBoundingClientRect();
      setShare(((event.clientX - left) / width) * 100);
    },
    dblclick: () => setShare(SHARE.first),
    keydown(event) {
      /** @type {Record<string, number>} */
      const shares = {
        ArrowLeft: share - SHARE.step,
        ArrowRight: share + SHARE.step,
        Home: SHARE.least,
        End: 100 - SHARE.least,
        Enter: SHARE.first,
      };
      const to = shares[event.key];
      if (to === undefined) return;
      consumeEvent(event);
      setShare(to);
    },
  });
  setShare(SHARE.first);
  return panes;
}

/**
 * Return the explorer.
 *
 * @param {Model} model
 * @param {Record<string, View>} [given] Views of tabs, by their key; others are loaded when they are first shown.
 */
export function explorerView(model, given = {}) {
  const id = `ice-${randomId()}`;
  let isRemoved = false;
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
    return { key, tab, panel, isMade: false };
  });
  const tabs = parts.map(({ tab }) => tab);
  const fullScreenButton = el(
    "button.button.end",
    { ariaPressed: false, hidden: !document.fullscreenEnabled, onclick: toggleFullScreen },
    "Full screen",
  );
  const element = el(
    "div.explorer",
    timelineView(model),
    el("div.bar", tabRow("div.parts", "Views of the explorer", tabs), fullScreenButton),
    parts.map(({ panel }) => panel),
  );

  function draw() {
    const chosen = parts.find(({ key }) => key === model.tab) ?? parts[0];
    markTab(tabs, chosen.tab);
    model.parts.forEach(([, title], i) => {
      tabs[i].textContent = title;
    });
    for (const { panel } of parts) {
      // The tab may have been selected elsewhere: by a problem that links to its node, or by Python.
      keepFocus(panel, () => (panel.hidden = panel !== chosen.panel), chosen.tab);
    }
    if (chosen.isMade) return;
    const script = model.scripts[chosen.key];
    if (chosen.key === "tree") {
      make(chosen, treeTab);
    } else if (given[chosen.key]) {
      make(chosen, given[chosen.key]);
    } else if (script) {
      loadView(script).then((view) => make(chosen, view));
    } else {
      const waiting = el("span.awaited", "Loading …");
      const missing = el("span.missed", "Not loaded: the kernel has ended.");
      fill(chosen.panel, el("div.empty", waiting, missing));
    }
  }
  /**
   * @param {typeof parts[number]} part
   * @param {View} view
   */
  function make(part, view) {
    if (isRemoved || part.isMade) return;
    fill(part.panel, view(model));
    part.isMade = true;
  }

  function widget() {
    return element.closest(".ice-widget");
  }
  function toggleFullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else widget()?.requestFullscreen();
  }
  function fullScreenChanged() {
    const isFull = document.fullscreenElement !== null && document.fullscreenElement === widget();
    fullScreenButton.ariaPressed = String(isFull);
    fullScreenButton.textContent = isFull ? "Leave full screen" : "Full screen";
  }
  document.addEventListener("fullscreenchange", fullScreenChanged);
  model.follow(["parts", "tab", "scripts"], draw);
  model.onEnd(() => {
    isRemoved = true;
    document.removeEventListener("fullscreenchange", fullScreenChanged);
  });
  return element;
}
