/**
 * Two trees beside each other: the table before and after a change.
 *
 * @module
 */

/** @import { Model, Nodes } from "./types.d.ts" */

import { el, fill, linkButton } from "./dom.js";
import { treeView } from "./treeView.js";

/**
 * Return the trees before and after a change, which draw themselves, and a function that draws what is around them.
 *
 * @param {Model} model
 * @param {object} options
 * @param {"commit" | "repair"} options.prefix The prefix of the traits, as in `commit_before_nodes`.
 * @param {string} options.change What the change is, for screen readers, such as "the step".
 * @param {"commit_draft" | "repair_draft"} options.draft The trait with the selected node of each side.
 * @param {(side: "before" | "after", node: string) => void} options.select
 * @param {(side: "before" | "after") => string | undefined} options.caption
 * @param {(side: "before" | "after", node: string) => void} [options.open] Shows the tables of an item.
 * @param {boolean} [options.list] Whether lists are shown at first, not pictures.
 * @returns {{ element: HTMLElement, draw: () => void }}
 */
export function sidesView(model, { prefix, change, draft, select, caption, open, list }) {
  /** @param {"before" | "after"} side */
  function makeSide(side) {
    const nodes = () => model[`${prefix}_${side}_nodes`];
    /** Return the selected node; at first the root, from which everything of the snapshot can be seen. */
    function selected() {
      const chosen = /** @type {string} */ (model[draft][side] ?? "");
      return chosen in nodes() ? chosen : Object.keys(nodes()).find((id) => id.startsWith("root:")) ?? "";
    }
    const tree = treeView(model, {
      prefix: `${prefix}_${side}_`,
      label: `Tree ${side} ${change}`,
      list,
      watch: [draft],
      selected,
      select: (node) => select(side, node),
    });
    const title = el("figcaption");
    const description = el("div.path", { tabindex: 0 });
    const element = el("figure.side", title, tree, description);
    function draw() {
      element.hidden = !model[`${prefix}_${side}_roots`].length;
      title.textContent = caption(side) ?? "";
      const node = selected();
      const item = nodes()[node];
      fill(
        description,
        open && item && el("div", linkButton("Show in Details", () => open(side, node))),
        item?.tooltip ?? "Select an item to see what it is and where.",
      );
    }
    return { element, draw };
  }
  const sides = [makeSide("before"), makeSide("after")];
  return {
    element: el("div.sides", sides.map(({ element }) => element)),
    draw() {
      for (const { draw } of sides) draw();
    },
  };
}
