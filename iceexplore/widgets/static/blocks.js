// What Python says, as `iceexplore.widgets._blocks` has it, in blocks: ["h" | "p" | "div", parts], ["list", [parts, ...]],
// ["table", heads, rows, kind, label], ["code", text]. A text is made of parts: words, or ["go", words, selection],
// ["bars", [[kind, from 0 to 1], ...]], ["code" | "note" | "yes" | ..., words, tip], the first being its style.

import { copier } from "./controls.js";
import { choose, el, svg } from "./dom.js";

export function blocks(model, list = []) {
  const part = (of) => {
    if (typeof of === "string") return of;
    const [kind, words, more] = of;
    if (kind === "go") return el("button.ice-link", { onclick: () => choose(model, more) }, words);
    if (kind === "bars") return bars(words);
    return el(kind === "code" ? "code" : "span", { class: `ice-${kind}`, title: more }, words);
  };
  const head = (scope, parts) => el("th", { scope }, parts.map(part));
  const row = ([first, ...cells]) => el("tr", head("row", first), cells.map((cell) => el("td", cell.map(part))));
  const draw = {
    list: (items) => el("ul", items.map((item) => el("li", item.map(part)))),
    table: (heads, rows, kind = "terms", label) => el(`table.ice-${kind}`, { ariaLabel: label }, el("thead", el("tr", heads.map((parts) => head("col", parts)))), el("tbody", rows.map(row))),
    code: (text) => el("div.ice-statement", el("pre", text), copier("Copy", () => text)),
  };
  return list.map(([kind, ...rest]) => draw[kind]?.(...rest) ?? el(kind === "h" ? "h4" : kind, rest[0].map(part)));
}

// Lengths after one another; the numbers stand beside them as text.
export function bars(parts) {
  let x = 0;
  const one = ([kind, long]) => svg("rect.ice-" + kind, { x: (x += long) - long, width: long && Math.max(0.6, long), height: 6 });
  return svg("svg.ice-bars", { viewBox: "0 0 100 6", preserveAspectRatio: "none", ariaHidden: true }, parts.map(([kind, share]) => one([kind, share * 100])));
}
