// Search in a forest: what the browser has at once, the rest by Python, which reads manifests until it is told to stop.

import { count, el, listen, signButton } from "./dom.js";

const SEARCHED = 250; // ms after the last letter

// `on` has nodes(), go(id), back() (where the focus goes on Escape), found(set of ids), python.
export function findBar(model, on) {
  const input = el("input.ice-find", { type: "search", placeholder: "Find path, id, partition", ariaLabel: "Find in the tree: path, id or partition value", spellcheck: "false", autocomplete: "off" });
  const said = el("span.ice-count-found", { role: "status" });
  const steps = [signButton("‹", "Previous match", () => move(-1)), signButton("›", "Next match", () => move(1))];
  const box = el("div.ice-finder", { role: "search", ariaLabel: on.label && `Find: ${on.label}` }, input, said, steps);
  let own = ""; // what is searched where Python does not
  let hits = [];
  let at = -1;
  let before = "";
  let timer = null;

  const text = () => (on.python ? model.get("search").text ?? "" : own);
  const found = () => {
    const answer = on.python ? model.get("found") : {};
    return answer.n === model.get("search")?.n ? answer : {};
  };

  function send(next) {
    clearTimeout(timer);
    timer = null;
    if (next === text()) return;
    own = next;
    if (!on.python) return look();
    model.ask("search", { text: next });
    look();
  }
  // Finds anew in what is there; keeps the match that we stand on.
  function look() {
    const words = text().trim().toLowerCase();
    if (!words && !before) return draw();
    if (words !== before) at = -1;
    before = words;
    const here = hits[at];
    hits = [];
    if (words) {
      for (const [id, node] of Object.entries(on.nodes()))
        if (node.kind !== "more" && [node.label, node.note, node.tooltip, id].some((t) => t?.toLowerCase().includes(words))) hits.push(id);
      hits = [...new Set([...hits, ...(found().hits ?? [])])];
    }
    at = hits.indexOf(here);
    on.found(new Set(hits));
    draw();
  }
  function draw() {
    const { busy, more } = found();
    const asking = on.python && text() && model.get("found").n !== model.get("search").n;
    const all = count(hits.length) + (more ? "+" : "");
    said.textContent = !text().trim() ? "" : (hits.length ? (at < 0 ? `${all} found` : `${at + 1} of ${all}`) : busy || asking ? "" : "nothing found") + (busy || asking ? " …" : "");
    for (const button of steps) button.hidden = hits.length === 0;
    if (document.activeElement !== input && timer === null) input.value = text();
  }
  function move(by) {
    if (!hits.length) return;
    at = at < 0 ? (by > 0 ? 0 : hits.length - 1) : (at + by + hits.length) % hits.length;
    on.go(hits[at]);
    draw();
  }

  listen(input, {
    input() {
      clearTimeout(timer);
      timer = setTimeout(() => send(input.value), SEARCHED);
    },
    keydown(event) {
      event.stopPropagation();
      if (event.key === "Enter") {
        const changed = input.value !== text();
        send(input.value);
        if (!changed || hits.length) move(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        event.preventDefault();
        input.value = "";
        send("");
        on.back();
      }
    },
  });
  if (on.python) model.listen(["search", "found"], look);
  model.end(() => clearTimeout(timer));
  draw();
  return { element: box, look, focus: () => input.focus() };
}
