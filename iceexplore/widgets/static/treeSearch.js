/**
 * The search in a tree: the browser immediately searches the nodes that it has; Python searches the rest, and reads
 * manifests for that, until it has finished or is cancelled.
 *
 * @module
 */

/** @import { Model, Nodes, SearchAnswer } from "./types.d.ts" */

import { el, formatCount, listen, smallButton, timer } from "./dom.js";

/** The delay, in ms, between the last letter and the search. */
const SEARCH_DELAY = 250;

/**
 * The properties of a tree that its search needs.
 *
 * @typedef {object} SearchContext
 * @property {boolean} python Whether Python searches too, with the traits `search` and `found`.
 * @property {string} [label] What the tree is.
 * @property {() => Nodes} nodes
 * @property {(id: string) => void} go Show a match.
 * @property {() => void} back Take the focus back, after Escape.
 * @property {(hits: Set<string>) => void} found Show the matches.
 */

/**
 * Return the ids of the nodes that contain a text in their id, label, title, note or tooltip.
 *
 * @param {Nodes} nodes
 * @param {string} text In lower case.
 * @returns {string[]}
 */
export function matchingNodes(nodes, text) {
  const matches = Object.entries(nodes).filter(([id, { kind, label, title, note, tooltip }]) => {
    return kind !== "more" && [id, label, title, note, tooltip].join("\n").toLowerCase().includes(text);
  });
  return matches.map(([id]) => id);
}

/**
 * Return what a search has found, as text.
 *
 * @param {number} hits How many matches there are.
 * @param {number} at The index of the one that is shown, or -1.
 * @param {SearchAnswer} answer Python's answer.
 * @returns {string}
 */
export function describeHits(hits, at, { busy, more }) {
  const all = formatCount(hits) + (more ? "+" : "");
  let text = busy ? "" : "no matches";
  if (hits) text = at < 0 ? `${all} found` : `${at + 1} of ${all}`;
  return busy ? `${text} …` : text;
}

/**
 * Return a search: its `element`, `look`, which searches the loaded nodes again, and `focus`, which focuses its field.
 *
 * @param {Model} model
 * @param {SearchContext} context
 */
export function treeSearch(model, context) {
  const input = el("input.find", {
    type: "search",
    placeholder: "Find path, id, partition",
    ariaLabel: "Find in the tree: path, id or partition value",
    spellcheck: "false",
    autocomplete: "off",
  });
  const status = el("span.count-found", { role: "status" });
  // In the table's own tree, searches start from the omnibox, and this button ends them.
  const stop = smallButton("×", "End the search", () => search(""));
  const steps = [
    smallButton("‹", "Previous match", () => move(-1)),
    smallButton("›", "Next match", () => move(1)),
    ...(context.python ? [stop] : []),
  ];
  const label = context.label && `Find: ${context.label}`;
  const box = el(
    "div.finder",
    { role: context.python ? null : "search", ariaLabel: label },
    context.python ? null : input,
    status,
    steps,
  );
  const wait = timer(model);
  /** The text that is searched for, if Python does not search. */
  let ownText = "";
  /** @type {string[]} */
  let hits = [];
  /** The index of the match that is shown, or -1. */
  let at = -1;

  function searchedText() {
    return context.python ? model.search.text ?? "" : ownText;
  }
  /** Return the matches that Python has found so far. */
  function answer() {
    /** @type {SearchAnswer} */
    const found = context.python ? model.found : {};
    const request = context.python ? model.search : {};
    return found.n === request.n ? found : { busy: true };
  }

  /** @param {string} text */
  function search(text) {
    wait();
    if (text === searchedText()) return;
    if (context.python) {
      model.request("search", { text });
    } else {
      ownText = text;
      begin();
    }
  }
  function begin() {
    at = -1;
    look();
  }
  /** Search the browser's nodes again, and stay at the match that is shown. */
  function look() {
    const text = searchedText().trim().toLowerCase();
    if (!text && !hits.length) return draw();
    const shown = hits[at];
    hits = text ? [...new Set([...matchingNodes(context.nodes(), text), ...(answer().hits ?? [])])] : [];
    at = hits.indexOf(shown);
    context.found(new Set(hits));
    draw();
  }
  function draw() {
    status.textContent = searchedText().trim() && describeHits(hits.length, at, answer());
    for (const button of steps) button.hidden = !hits.length;
    if (document.activeElement !== input) input.value = searchedText();
  }
  /** @param {number} by */
  function move(by) {
    if (!hits.length) return;
    if (at < 0 && by < 0) at = 0;
    at = (at + by + hits.length) % hits.length;
    context.go(hits[at]);
    draw();
  }

  listen(input, {
    input: () => wait(() => search(input.value), SEARCH_DELAY),
    // The field has lost the focus, for example to the button for the next match, so its text is complete.
    change: () => search(input.value),
    keydown(event) {
      event.stopPropagation();
      if (event.key === "Enter") {
        search(input.value);
        move(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        event.preventDefault();
        input.value = "";
        search("");
        context.back();
      }
    },
  });
  if (context.python) {
    model.onChange("search", begin);
    model.onChange("found", look);
  }
  draw();
  return { element: box, look, focus: () => input.focus() };
}
