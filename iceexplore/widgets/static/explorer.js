/**
 * The explorer: the timeline at the top, and below it the explorer's parts, each in a tab. What is shown, including the
 * chosen tab, is in the model's traits; only the widths of panes and the full screen belong to a single view of it.
 *
 * @module
 */

/** @import { Model, View } from "./types.d.ts" */

import { markTab, tabRow } from "./controls.js";
import { detailView } from "./detail.js";
import {
  changeSelection,
  clamp,
  consumeEvent,
  el,
  fill,
  focusedIn,
  keepFocus,
  listen,
  randomId,
  setEnabled,
  smallButton,
} from "./dom.js";
import { omnibox } from "./omnibox.js";
import { choose, chosen, takesKeys } from "./room.js";
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
 * Return the text of a compressed script that Python sent (`iceexplore.widgets.core._bundle.sent_later`).
 *
 * @param {DataView<ArrayBuffer>} sent
 * @returns {Promise<string>}
 */
export function unpackScript(sent) {
  return new Response(new Blob([sent]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/**
 * Return the view of a tab whose code is not in this script: Python sends it, in the trait `scripts`, when the tab is
 * first selected.
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
      // @ts-expect-error: `$given` is declared when the modules are joined into one script; it contains what later
      // scripts need from this one
      return module.default($given);
    });
    loadedViews.set(checksum, view);
  }
  return view;
}

/**
 * Return the first tab: the tree and, beside it, the details of the selected node.
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
  const tree = treeView(model);
  const details = detailView(model);
  details.id = `ice-${randomId()}`;
  // In a narrow widget, the details are a drawer over the tree, and this is its handle.
  const handle = el("button.handle", { "aria-controls": details.id, onclick: turn });
  const drawer = el("div.drawer", handle, details);
  const panes = el("div.panes", tree, splitter, drawer);
  let node = model.selection.node;
  /** @returns {boolean} */
  function isOpen() {
    return panes.classList.contains("ice-drawn");
  }
  function turn() {
    setOpen(!isOpen());
  }
  /** @param {boolean} on */
  function setOpen(on) {
    const focused = focusedIn(panes);
    panes.classList.toggle("ice-drawn", on);
    drawHandle();
    if (!focused || !handle.checkVisibility()) return;
    const to = on ? details.querySelector(".ice-head") : tree.querySelector("[role=treeitem][tabindex='0']");
    /** @type {HTMLElement | null} */ (to)?.focus();
  }
  function drawHandle() {
    const { kind_title, title } = model.detail;
    handle.ariaExpanded = String(isOpen());
    handle.textContent = isOpen()
      ? "▾ Close the details"
      : `▴ Details: ${title?.startsWith(kind_title ?? "") ? title : [kind_title, title].join(" ")}`;
  }
  /** Open the drawer if a node was selected in this tab, but not if it changed because of the timeline. */
  function selected() {
    if (node !== model.selection.node && focusedIn(panes)) setOpen(true);
    node = model.selection.node;
  }
  panes.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen() || !handle.checkVisibility()) return;
    consumeEvent(event);
    setOpen(false);
  });
  model.onChange("selection", selected);
  model.follow("detail", drawHandle);
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
 * Focus the element that the user most likely wants in a part of the explorer: the tree, the snapshots or the selected
 * tab; if the part has none of them, its first control.
 *
 * @param {HTMLElement} [part]
 */
function focusFirst(part) {
  const main = part?.matches(".ice-grid")
    ? part.querySelector("table [tabindex='0']")
    : part?.querySelector(":is([role=treeitem][tabindex='0'], .ice-axis, .ice-part[aria-selected=true])");
  const controls = part?.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']") ?? [];
  const first = [main, ...controls].find((one) => one?.checkVisibility() && !one.matches(":disabled"));
  /** @type {HTMLElement | undefined} */ (first)?.focus();
}

/**
 * Return the explorer.
 *
 * @param {Model} model
 * @param {HTMLElement} root The widget's root element.
 * @param {Record<string, View>} [given] Views by the keys of their tabs; others are loaded when they are first shown.
 */
export function explorerView(model, root, given = {}) {
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
  const ways = /** @type {const} */ ([["back", "←", -1], ["forward", "→", 1]]).map(([way, sign, by]) => {
    const button = smallButton(sign, way === "back" ? "Back" : "Forward", () => go(by), { hidden: !model.history });
    model.follow("history", () => {
      const words = model.history?.[way];
      setEnabled(button, words);
      button.title = [button.ariaLabel, words].filter(Boolean).join(": ");
    });
    return button;
  });
  // Other parts than the timeline and the tree do not show which snapshots are compared, so this button does.
  const comparison = el("button.button.framed.comparing", { hidden: true, onclick: showComparison });
  // A saved page has no Python to search with.
  const find = model.history && omnibox(model, root);
  const detailsButton = smallButton("Details", "Hide or show the details beside the tree (.)", turnDetails, {
    class: "details-button",
  });
  const fullScreenButton = el(
    "button.button",
    { ariaPressed: false, hidden: !document.fullscreenEnabled, onclick: toggleFullScreen },
    "Full screen",
  );
  const timeline = timelineView(model);
  const bar = el(
    "div.bar",
    tabRow("div.parts", "Views of the explorer", tabs),
    el("div.moves", comparison, ways, find?.element, detailsButton, fullScreenButton),
  );
  const element = el("div.explorer", timeline, bar, parts.map(({ panel }) => panel));
  root.prepend(
    el("button.button.framed.skip", { onclick: () => focusFirst(shownPanel()) }, "Skip the timeline and the tabs"),
  );

  function draw() {
    const now = parts.find(({ key }) => key === model.tab) ?? parts[0];
    markTab(tabs, now.tab);
    detailsButton.hidden = now.key !== "tree";
    model.parts.forEach(([, title], i) => {
      tabs[i].textContent = title;
    });
    for (const { panel } of parts) {
      // Something else may have selected the tab: a link from a problem to its node, or Python.
      keepFocus(panel, () => (panel.hidden = panel !== now.panel), now.tab);
    }
    if (now.isMade) return;
    const script = model.scripts?.[now.key]; // undefined in a saved page
    if (now.key === "tree") {
      make(now, treeTab);
    } else if (given[now.key]) {
      make(now, given[now.key]);
    } else if (script) {
      loadView(script).then((view) => make(now, view));
    } else {
      const waiting = el("span.awaited", "Loading …");
      const missing = el("span.missed", "Not loaded: the kernel has ended.");
      fill(now.panel, el("div.empty", waiting, missing));
    }
  }
  /**
   * @param {typeof parts[number]} part
   * @param {View} view
   */
  function make(part, view) {
    if (isRemoved || part.isMade) return;
    fill(part.panel, view(model, root));
    part.isMade = true;
  }

  function areDetailsHidden() {
    return chosen(model, "details_hidden", false);
  }
  function turnDetails() {
    choose(model, "details_hidden", !areDetailsHidden());
  }
  function drawDetails() {
    const on = areDetailsHidden();
    detailsButton.ariaPressed = String(!on);
    keepFocus(element, () => element.classList.toggle("ice-no-details", on), detailsButton);
  }
  function drawComparison() {
    const { snapshot, against } = model.selection;
    const [older, newer] = [snapshot, against].map((id) => model.snapshots.findIndex((one) => one.id === id) + 1)
      .sort((a, b) => a - b);
    const words = `Snapshots ${older} and ${newer} are compared. Show the changes`;
    keepFocus(element, () => (comparison.hidden = !older || older === newer), tabs[0]);
    Object.assign(comparison, { textContent: `Comparing ${older} → ${newer}`, ariaLabel: words, title: words });
  }
  function showComparison() {
    model.set("tab", "tree");
    changeSelection(model, { node: `snapshot:${model.selection.snapshot}` });
  }
  /** @param {number} by */
  function go(by) {
    model.requestEach("history_asked", { by });
  }
  function shownPanel() {
    return parts.find(({ panel }) => !panel.hidden)?.panel;
  }
  /**
   * Move the focus to the next or the previous part of the explorer, from top to bottom.
   *
   * @param {1 | -1} by
   */
  function goToPart(by) {
    const panel = shownPanel();
    const details = [".ice-detail", ".ice-detail .ice-grid"].map((name) => panel?.querySelector(name));
    const stops =
      /** @type {HTMLElement[]} */ ([timeline, bar, panel, ...details].filter((one) => one?.checkVisibility()));
    const at = stops.findLastIndex(focusedIn);
    focusFirst(stops[(Math.max(at, by > 0 ? -1 : 0) + by + stops.length) % stops.length]);
  }
  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const { key, altKey, ctrlKey, metaKey, shiftKey } = event;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const isControl = ctrlKey || metaKey;
    const isText = takesKeys(event.target);
    if (key === "F6" && !altKey && !isControl) goToPart(shiftKey ? -1 : 1);
    else if (!model.history) return; // a saved page has no Python, which these keys need
    else if (by && altKey && !isControl && !shiftKey && !isText) go(by);
    else if (key === "." && !isControl && !isText && model.tab === "tree") turnDetails();
    else if (isControl ? key === "k" && !altKey : key === "/" && !isText) find?.open();
    else return;
    consumeEvent(event);
  }
  // Listen in the capture phase, before the parts of the widget handle the keys that they use themselves.
  root.addEventListener("keydown", pressed, true);
  function toggleFullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else root.requestFullscreen();
  }
  function fullScreenChanged() {
    const isFull = document.fullscreenElement === root;
    fullScreenButton.ariaPressed = String(isFull);
    fullScreenButton.textContent = isFull ? "Leave full screen" : "Full screen";
  }
  document.addEventListener("fullscreenchange", fullScreenChanged);
  model.follow(["parts", "tab", "scripts"], draw);
  model.follow("selection", drawComparison);
  model.follow("details_hidden", drawDetails);
  model.onEnd(() => {
    isRemoved = true;
    document.removeEventListener("fullscreenchange", fullScreenChanged);
  });
  return element;
}
