// The tree: one row per visible node, a single tab stop, arrows to walk (WAI-ARIA tree pattern).

import { choose, colour, el, icon, listen } from "./dom.js";

const SPEAK = { added: "added", removed: "removed", carried: "carried over", problem: "problem", folded: "folded" };

export function rowsView(model) {
  const box = el("div", { class: "ice-tree", role: "tree", "aria-label": "Parts of the table" });
  let focus = null; // the node that has the tab stop
  let rows = []; // visible rows, in order: { id, node, parent, level, element }

  const nodes = () => model.get("nodes");
  const isOpen = (id) => model.get("expanded").includes(id);

  function visible() {
    const out = [];
    const seen = new Set(); // damaged data must not send us in circles
    const walk = (ids, parent, level) => {
      ids.forEach((id, index) => {
        const node = nodes()[id];
        if (!node || seen.has(id)) return;
        seen.add(id);
        out.push({ id, node, parent, level, index, of: ids.length });
        if (isOpen(id) && node.children) walk(node.children, id, level + 1);
      });
    };
    walk(model.get("roots"), null, 1);
    return out;
  }

  function draw() {
    const hadFocus = box.contains(document.activeElement);
    const top = box.scrollTop;
    rows = visible();
    if (!rows.some((row) => row.id === focus)) {
      const selected = model.get("selection").node;
      focus = rows.some((row) => row.id === selected) ? selected : rows[0]?.id ?? null;
    }
    for (const row of rows) row.element = drawRow(row);
    box.replaceChildren(...rows.map((row) => row.element));
    box.scrollTop = top;
    if (hadFocus) element(focus)?.focus({ preventScroll: true });
  }

  function drawRow({ id, node, level, index, of }) {
    const styles = model.get("styles");
    const selected = model.get("selection").node === id;
    const open = node.leaf ? null : isOpen(id);
    const marks = node.marks.map((mark) => {
      const style = styles["mark:" + mark] ?? {};
      const sign = el("span", { class: "ice-mark", title: style.title, "aria-label": SPEAK[mark] ?? mark }, style.sign ?? "");
      colour(sign, style);
      return sign;
    });
    const waiting = open && !node.children;
    return el(
      "div",
      {
        class: "ice-row" + (node.kind === "more" ? " ice-more" : "") + (node.marks.includes("carried") ? " ice-carried" : ""),
        role: "treeitem",
        tabindex: id === focus ? 0 : -1,
        title: node.tooltip,
        "aria-level": level,
        "aria-posinset": index + 1,
        "aria-setsize": of,
        "aria-selected": selected,
        "aria-expanded": open, // null for a leaf: no attribute
        "aria-busy": waiting || null,
        "data-id": id,
        style: { "--level": level - 1 },
      },
      el("span", { class: "ice-twisty", "aria-hidden": "true" }),
      icon(styles, node.kind),
      el(
        "span",
        { class: "ice-words" },
        el("span", { class: "ice-label" }, node.label),
        node.note ? el("span", { class: "ice-note" }, node.note) : null,
      ),
      marks,
    );
  }

  const element = (id) => rows.find((row) => row.id === id)?.element;

  function moveTo(id) {
    if (!id) return;
    if (element(focus)) element(focus).tabIndex = -1;
    focus = id;
    const target = element(id);
    target.tabIndex = 0;
    target.focus();
    target.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function setOpen(id, open) {
    const others = model.get("expanded").filter((other) => other !== id);
    model.set("expanded", open ? [...others, id] : others);
    model.save_changes();
  }

  function select(id) {
    const node = nodes()[id];
    if (node?.kind === "more") return setOpen(id, true); // Python answers with the next nodes in its place
    choose(model, { node: id });
  }

  box.addEventListener("click", (event) => {
    const id = event.target.closest?.(".ice-row")?.dataset.id;
    if (id === undefined) return;
    moveTo(id);
    if (event.target.closest(".ice-twisty") && !nodes()[id].leaf) setOpen(id, !isOpen(id));
    else select(id);
  });
  box.addEventListener("dblclick", (event) => {
    const id = event.target.closest?.(".ice-row")?.dataset.id;
    if (id !== undefined && !event.target.closest(".ice-twisty") && !nodes()[id]?.leaf) setOpen(id, !isOpen(id));
  });

  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = rows.findIndex((row) => row.id === focus);
    if (at < 0) return;
    const { id, node, parent } = rows[at];
    const open = !node.leaf && isOpen(id);
    const act = {
      ArrowDown: () => moveTo(rows[at + 1]?.id),
      ArrowUp: () => moveTo(rows[at - 1]?.id),
      Home: () => moveTo(rows[0].id),
      End: () => moveTo(rows.at(-1).id),
      ArrowRight: () => (node.leaf ? null : open ? moveTo(node.children?.[0]) : setOpen(id, true)),
      ArrowLeft: () => (open ? setOpen(id, false) : moveTo(parent)),
      Enter: () => select(id),
      " ": () => select(id),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation(); // or the notebook moves to another cell
    act();
  });

  const end = listen(model, ["nodes", "roots", "expanded", "selection"], draw);
  draw();
  return { element: box, end };
}
