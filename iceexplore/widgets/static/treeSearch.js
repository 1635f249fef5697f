// Search in a forest: what the browser has at once, the rest by Python, which reads manifests until it is cancelled.

import { el, formatCount, listen, smallButton, timer } from "./dom.js";

const SEARCHED = 250; // ms after the last letter

// `on` has nodes(), go(id), back() (where the focus goes on Escape), found(set of ids), python.
export function findBar(model, on) {
  const input = el("input.find", {
    type: "search",
    placeholder: "Find path, id, partition",
    ariaLabel: "Find in the tree: path, id or partition value",
    spellcheck: "false",
    autocomplete: "off",
  });
  const answerLine = el("span.count-found", { role: "status" });
  const steps = [smallButton("‹", "Previous match", () => move(-1)), smallButton("›", "Next match", () => move(1))];
  const box = el(
    "div.finder",
    { role: "search", ariaLabel: on.label && `Find: ${on.label}` },
    input,
    answerLine,
    steps,
  );
  const wait = timer(model);
  let own = {}; // what is searched where Python does not
  let hits = [];
  let at = -1; // the current match

  const search = () => (on.python ? model.search : own);
  const text = () => search().text ?? "";
  // What Python has found so far.
  const found = () => {
    const answer = on.python ? model.found : {};
    return answer.n === search().n ? answer : { busy: true };
  };

  function send(next) {
    wait();
    if (next === text()) return;
    if (on.python) return model.request("search", { text: next });
    own = { text: next };
    begin();
  }
  function begin() {
    at = -1;
    look();
  }
  // Finds anew in what is there; keeps the current match.
  function look() {
    const words = text().trim().toLowerCase();
    if (!words && !hits.length) return draw();
    const here = hits[at];
    const holds = ([id, { kind, label, note, tooltip }]) =>
      kind !== "more" && [id, label, note, tooltip].join("\n").toLowerCase().includes(words);
    const there = Object.entries(on.nodes()).filter(holds).map(([id]) => id);
    hits = words ? [...new Set([...there, ...(found().hits ?? [])])] : [];
    at = hits.indexOf(here);
    on.found(new Set(hits));
    draw();
  }
  function draw() {
    const { busy, more } = found();
    const all = formatCount(hits.length) + (more ? "+" : "");
    const answer = hits.length ? (at < 0 ? `${all} found` : `${at + 1} of ${all}`) : busy ? "" : "nothing found";
    answerLine.textContent = text().trim() && answer + (busy ? " …" : "");
    for (const button of steps) button.hidden = !hits.length;
    if (document.activeElement !== input) input.value = text();
  }
  function move(by) {
    if (!hits.length) return;
    if (at < 0 && by < 0) at = 0;
    at = (at + by + hits.length) % hits.length;
    on.go(hits[at]);
    draw();
  }

  listen(input, {
    input: () => wait(() => send(input.value), SEARCHED),
    // Somebody who goes on before that is done typing.
    change: () => send(input.value),
    keydown(event) {
      event.stopPropagation();
      if (event.key === "Enter") {
        send(input.value);
        move(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        event.preventDefault();
        input.value = "";
        send("");
        on.back();
      }
    },
  });
  if (on.python) {
    model.onChange("search", begin);
    model.onChange("found", look);
  }
  draw();
  return { element: box, look, focus: () => input.focus() };
}
