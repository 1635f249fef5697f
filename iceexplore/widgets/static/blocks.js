// What Python says, as `iceexplore.widgets.core._blocks` has it, in blocks: ["h" | "p" | "evidence" | ..., parts], ["list",
// [parts, ...]], ["table", heads, rows, look], ["fold", parts, blocks], ["code", text]. A text is made of parts: words, or
// ["go", words, selection], ["bars", [[kind, from 0 to 1], ...]], ["sign", sign, what of `styles` it has its colours of],
// ["b" | "code" | "note" | "yes" | ..., words, tip], the first being its style.

import { copier } from "./controls.js";
import { applyColours, changeSelection, el, linkButton, svg } from "./dom.js";

export function blocks(model, list = []) {
  const part = (of) => {
    if (typeof of === "string") return of;
    const [kind, words, more] = of;
    if (kind === "go") return linkButton(words, () => changeSelection(model, more));
    if (kind === "bars") return bars(words);
    if (kind === "sign") return applyColours(el("b.sign", { ariaHidden: true }, words), model.styles[more]);
    return el(["b", "code"].includes(kind) ? kind : "span", { class: kind, title: more }, words);
  };
  const draw = {
    list: (items) => el("ul", items.map((item) => el("li", item.map(part)))),
    table(heads, rows, { kind = "terms", label, caption, columns = [] } = {}) {
      const cell = (tag, scope, parts, i) => el(tag, { scope, class: columns[i] }, parts.map(part));
      const head = heads[0] && el("thead", el("tr", heads.map((parts, i) => cell("th", "col", parts, i))));
      // The first cell of a row is its head.
      const body = rows.map((cells) =>
        el("tr", cells.map((parts, i) => (i ? cell("td", null, parts, i) : cell("th", "row", parts, i))))
      );
      return el(`table.${kind}`, { ariaLabel: label }, caption && el("caption", caption), head, el("tbody", body));
    },
    fold: (summary, inside) => el("details.rest", el("summary", summary.map(part)), blocks(model, inside)),
    code: (text) => el("div.statement", el("pre", text), copier("Copy", () => text)),
  };
  return list.map(([kind, ...rest]) =>
    draw[kind]?.(...rest) ?? el({ h: "h4", p: "p" }[kind] ?? "div." + kind, rest[0].map(part))
  );
}

// Lengths after one another; the numbers are beside them as text.
function bars(parts) {
  let x = 0;
  const one = ([kind, long]) =>
    svg("rect." + kind, { x: (x += long) - long, width: long && Math.max(0.6, long), height: 6 });
  return svg(
    "svg.bars",
    { viewBox: "0 0 100 6", preserveAspectRatio: "none", ariaHidden: true },
    parts.map(([kind, share]) => one([kind, share * 100])),
  );
}
