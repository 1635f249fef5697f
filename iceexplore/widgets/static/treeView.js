// A forest to look at: a picture that pans, zooms and folds, and the same as rows for the keyboard and screen readers;
// search, the way to what is selected, a legend, and files of it.

import { canvasView } from "./treeCanvas.js";
import { changeSelection, el, fill, focusedIn, keepFocus, saveFile, smallButton } from "./dom.js";
import { findBar } from "./treeSearch.js";
import { arrange } from "./arrangement.js";
import { markSign, rowsView } from "./treeRows.js";

// What they are called, how their names end, their type.
const FILES = {
  png: ["PNG", "png", "image/png"],
  svg: ["SVG", "svg", "image/svg+xml"],
  mermaid: ["Mermaid", "mmd", "text/plain"],
  dot: ["DOT", "gv", "text/vnd.graphviz"],
};

// Options, all of them optional:
//   prefix                   of the traits nodes, roots and expanded: {id: node}, [id], [id]; a node is {kind, label, note,
//                            marks, tooltip, leaf, children: [id] or null while it is not read, reason: why it is skipped}
//   label                    what it is, for those who hear it
//   selected()               the id of the selected node; watch: names of other traits that this depends on
//   select(id)               what a click does
//   list                     whether the rows are shown at first, not the picture
export function treeView(
  model,
  {
    prefix = "",
    label,
    watch = [],
    selected = () => model.selection.node,
    select = (id) => changeSelection(model, { node: id }),
    list: listed,
  } = {},
) {
  // Whether Python searches (traits search, found) and writes files (traits wanted, written).
  const python = !prefix && model.search !== undefined;
  const styles = model.styles;
  const traits = ["nodes", "roots", "expanded"].map((name) => prefix + name);
  const expanded = prefix + "expanded";
  const nodes = () => model[prefix + "nodes"];
  // The traits' values that were laid out last.
  let drawn = [];
  let placed = null;
  // Id -> its parent's, also of what is folded away.
  let parents = null;
  // The card that keeps its place: what was folded or unfolded last.
  let toggled = null;
  // What has been shown as selected; what is selected now may still be read.
  let revealed = null;
  let waiting = false;
  // The file that this view asked Python for.
  let asked = null;

  const on = {
    select: (row) => (row.node.kind === "more" ? toggle(row) : select(row.id)),
    toggle,
    focus(id) {
      picture.mark({ focus: id });
      if (id !== null && !list()) picture.reveal(id);
    },
    key,
  };
  const rows = rowsView(model, { styles, label: label ?? "Parts of the table", on });
  const picture = canvasView(model, {
    styles,
    onSelect: (row) => (rows.focus(row.id), on.select(row)),
    onToggle: (row) => (rows.focus(row.id), toggle(row)),
  });
  const nearer = () => picture.zoom(1.3);
  const farther = () => picture.zoom(1 / 1.3);
  const way = el("ol.trail");
  const legend = el("div.legend");
  const asList = smallButton("List", "Show as a list", () => setList(!list()), { ariaPressed: false });
  const zooms = el(
    "span.group.zooms",
    smallButton("−", "Zoom out of the tree", farther),
    smallButton("+", "Zoom into the tree", nearer),
    smallButton("Fit", "Fit the tree", picture.fit),
  );
  const formats = el(
    "span.group",
    { hidden: true },
    Object.entries(FILES).map(([format, [title]]) =>
      (python || format === "png") && smallButton(title, `Save as ${title}`, () => save(format))
    ),
  );
  const saver = smallButton("Save…", "Save the picture", () => setSaving(formats.hidden), { ariaExpanded: false });
  const find = findBar(model, { python, label, nodes, go, back: () => rows.focus(), found: (hits) => mark({ hits }) });
  const tools = el("div.tools", find.element, el("span.group.end", zooms, asList, saver, formats));
  const stage = el("div.stage", rows.element, picture.element);
  const box = el("div.map", tools, el("nav.crumbs", { ariaLabel: "Path" }, way), legend, stage);

  // The picture's own keys: Shift and arrows move it, + - 0 zoom, / goes to the search.
  function key(event) {
    const far = 60;
    const move = { ArrowLeft: [far, 0], ArrowRight: [-far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] }[event.key];
    const acts = { "+": nearer, "=": nearer, "-": farther, 0: picture.fit, Escape: picture.hideTip };
    const act = event.key === "/"
      ? find.focus
      : list()
      ? null
      : event.shiftKey && move
      ? () => picture.pan(...move)
      : acts[event.key];
    act?.();
    return Boolean(act);
  }
  const list = () => box.classList.contains("ice-as-list");
  function setList(yes) {
    box.classList.toggle("ice-as-list", yes);
    asList.ariaPressed = yes;
    rows.show();
    rows.reveal(selected());
  }

  function toggle({ id, node, open, parent }) {
    toggled = node.kind === "more" ? parent : id;
    const others = model[expanded].filter((other) => other !== id);
    model.save(expanded, open ? others : [...others, id]);
  }
  function reveal(id) {
    picture.reveal(id);
    rows.reveal(id);
    revealed = id;
  }
  // Shows a node, and selects it.
  function go(id) {
    if (id === selected()) reveal(id);
    else select(id);
  }

  // What is selected, or found.
  function mark(next) {
    picture.mark(next);
    rows.show(next);
  }
  // What is drawn is what the traits say; several that change in one message are drawn once.
  function changed() {
    if (!waiting) queueMicrotask(update);
    waiting = true;
  }
  function update() {
    waiting = false;
    const now = selected();
    const next = traits.map((name) => model[name]);
    mark({ selected: now });
    if (next[0] !== drawn[0]) {
      parents = new Map(
        Object.entries(next[0]).flatMap(([id, { children }]) => (children ?? []).map((child) => [child, id])),
      );
    }
    if (next.some((value, i) => value !== drawn[i])) {
      drawn = next;
      placed = arrange(...next);
      picture.show(placed, placed.byId.has(toggled) ? toggled : now);
      rows.show({ rows: placed.rows });
      find.look();
    }
    if (now !== revealed && placed.byId.has(now)) reveal(now);
    drawWay(now);
  }
  function drawWay(id) {
    const steps = [];
    for (let at = id; nodes()[at] && !steps.includes(at); at = parents.get(at)) steps.unshift(at);
    const items = steps.map((step) => {
      const { label } = nodes()[step];
      return el(
        "li",
        step === id
          ? el("span", { ariaCurrent: "location", tabindex: -1 }, label)
          : smallButton(label, `Go to ${label}`, () => go(step)),
      );
    });
    keepFocus(way, () => fill(way, items), here);
  }
  const here = () => way.querySelector("[aria-current]");
  // Of a comparison: with what, and how much of the tree differs.
  function drawLegend() {
    const { against, text, counts } = model.compared;
    const signs = ([mark, words]) => el("span.counted", markSign(styles, mark, { ariaHidden: true }), words);
    const parts = against &&
      [
        el("span", text),
        ...Object.entries(counts).map(signs),
        smallButton("×", "Stop comparing", () => changeSelection(model, { against: "" }), { class: "end" }),
      ];
    keepFocus(legend, () => fill(legend, parts), here);
  }

  // Files ------------------------------------------------------------------------------------------------------------

  function setSaving(yes) {
    keepFocus(formats, () => (formats.hidden = !yes), saver);
    saver.ariaExpanded = yes;
  }
  async function save(format) {
    setSaving(false);
    if (format === "png") hand(format, await picture.png());
    else asked = model.request("wanted", { format });
  }
  function saved() {
    const { n, format, text } = model.written;
    if (n !== asked) return;
    hand(format, text);
    model.save("written", {});
  }
  function hand(format, content) {
    const [, ending, type] = FILES[format];
    const name = (model.title || "table").replace(/[^\w.-]+/g, "-").slice(0, 80);
    saveFile(new Blob([content], { type }), `${name}-tree.${ending}`);
  }

  // The page does not lose the focus when the picture is dragged: then the wheel is the picture's.
  picture.element.addEventListener("mousedown", (event) => {
    event.preventDefault();
    if (!focusedIn(stage)) rows.focus();
  });

  model.onChange([...traits, "selection", ...watch], changed);
  update();
  if (python) {
    model.follow("compared", drawLegend);
    model.onChange("written", saved);
  }
  if (listed) setList(true);
  box.where = picture.where;
  return box;
}
