// A forest to look at: a picture that pans, zooms and folds, and the same as rows for the keyboard and screen readers;
// search, the way to what is selected, a legend, and files of it.

import { canvasView } from "./canvas.js";
import { choose, colour, el, fill, focusedIn, keepFocus, saveFile, signButton } from "./dom.js";
import { findBar } from "./find.js";
import { layout, seen } from "./layout.js";
import { rowsView } from "./rows.js";

const SAVED = [["png", "PNG"], ["svg", "SVG"], ["mermaid", "Mermaid"], ["dot", "DOT"]];
const TYPES = { svg: ["svg", "image/svg+xml"], mermaid: ["mmd", "text/plain"], dot: ["gv", "text/vnd.graphviz"] };

// Options, all of them optional:
//   nodes, roots, expanded   names of the traits: {id: node}, [id], [id]; a node is {kind, label, note, marks, tooltip,
//                            leaf, children: [id] or null while it is not read, reason: why it is skipped}
//   label                    what it is, for those who hear it
//   selected()               the id of the selected node; watch: names of other traits that this depends on
//   select(id)               what a click does
//   list                     whether the rows are shown at first, not the picture
export function mapView(model, options = {}) {
  const names = { nodes: "nodes", roots: "roots", expanded: "expanded", ...options };
  // Whether Python searches (traits search, found) and writes files (traits wanted, written).
  const python = names.nodes === "nodes" && model.get("search") !== undefined;
  const selected = options.selected ?? (() => model.get("selection").node);
  const select = options.select ?? ((id) => choose(model, { node: id }));
  const styles = model.get("styles");
  const nodes = () => model.get(names.nodes);
  // The traits' values that were laid out last.
  let drawn = [];
  let placed = null;
  // The card that keeps its place.
  let toggled = null;
  // What was selected when we looked last.
  let last = null;
  // What is to be shown once it is there.
  let coming = null;
  let waiting = false;
  // The file that this view asked Python for.
  let asked = null;

  const on = {
    select: (row) => (row.node.kind === "more" ? toggle({ ...row, open: false }) : select(row.id)),
    toggle,
    focus(id) {
      picture.mark(id === null ? { hasFocus: false } : { focus: id, hasFocus: true });
      if (id !== null && !list()) picture.reveal(id);
    },
    key,
  };
  const rows = rowsView(model, { styles, label: options.label ?? "Parts of the table", on });
  const picture = canvasView(model, {
    styles,
    onSelect: (row) => (rows.focus(row.id), on.select(row)),
    onToggle: (row) => (rows.focus(row.id), toggle(row)),
  });
  const nearer = () => picture.zoom(1.3);
  const farther = () => picture.zoom(1 / 1.3);
  const way = el("ol.ice-trail");
  const path = el("nav.ice-crumbs", { ariaLabel: "Path" }, way);
  const legend = el("div.ice-legend", { hidden: true });
  const asList = signButton("List", "Show as a list", () => setList(!list()), { ariaPressed: false });
  const zooms = el("span.ice-group", signButton("−", "Zoom out of the tree", farther), signButton("+", "Zoom into the tree", nearer), signButton("Fit", "Fit the tree", picture.fit));
  const formats = el("span.ice-group", { hidden: true }, SAVED.filter(([format]) => python || format === "png").map(([format, title]) => signButton(title, `Save as ${title}`, () => save(format))));
  const saver = signButton("Save…", "Save the picture", () => setSaving(formats.hidden), { ariaExpanded: false });
  const find = findBar(model, { python, label: options.label, nodes, go, back: () => rows.focus(), found: (hits) => (picture.mark({ hits }), rows.mark({ hits })) });
  const tools = el("div.ice-tools", find.element, el("span.ice-group.ice-end", zooms, asList, saver, formats));
  const stage = el("div.ice-stage", rows.element, picture.element);
  const box = el("div.ice-map", tools, path, legend, stage);

  // The picture's own keys: Shift and arrows move it, + - 0 zoom, / goes to the search.
  function key(event) {
    const far = 60;
    const move = { ArrowLeft: [far, 0], ArrowRight: [-far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] }[event.key];
    const acts = { "+": nearer, "=": nearer, "-": farther, 0: picture.fit, Escape: picture.hideTip };
    const act = event.key === "/" ? find.focus : list() ? null : event.shiftKey && move ? () => picture.pan(...move) : acts[event.key];
    act?.();
    return Boolean(act);
  }
  const list = () => box.classList.contains("ice-as-list");
  function setList(yes) {
    box.classList.toggle("ice-as-list", yes);
    asList.ariaPressed = yes;
    zooms.hidden = yes;
    rows.mark({});
    rows.reveal(selected());
  }

  function toggle({ id, node, open, parent }) {
    toggled = node.kind === "more" ? parent : id;
    const others = model.get(names.expanded).filter((other) => other !== id);
    model.put(names.expanded, open ? others : [...others, id]);
  }
  // Shows a node, and selects it.
  function go(id) {
    if (id === selected()) picture.reveal(id), rows.reveal(id);
    else select(id);
  }

  // What is drawn is what the traits say; several that change in one message are drawn once.
  function changed() {
    if (waiting) return;
    waiting = true;
    queueMicrotask(() => {
      waiting = false;
      update();
    });
  }
  function update() {
    const now = selected();
    const next = [nodes(), model.get(names.roots), model.get(names.expanded)];
    picture.mark({ selected: now });
    if (next.some((value, i) => value !== drawn[i])) {
      drawn = next;
      placed = layout(seen(...next));
      picture.show(placed, toggled ?? now);
      rows.show(placed.rows, { selected: now });
      find.look();
    } else rows.mark({ selected: now });
    // Its children are there.
    if (nodes()[toggled]?.children || !model.get(names.expanded).includes(toggled)) toggled = null;
    if (now !== last) coming = now;
    last = now;
    if (coming !== null && placed.byId.has(coming)) {
      picture.reveal(coming);
      rows.reveal(coming);
      coming = null;
    }
    drawWay(now);
    drawLegend();
  }
  function drawWay(id) {
    const steps = [];
    const above = (at) => (placed.byId.has(at) ? placed.byId.get(at).parent : Object.entries(nodes()).find(([, node]) => node.children?.includes(at))?.[0]);
    for (let at = id; at && nodes()[at] && !steps.includes(at); at = above(at)) steps.unshift(at);
    const items = steps.map((step, i) => {
      const { label } = nodes()[step];
      return el("li", i + 1 < steps.length ? signButton(label, `Go to ${label}`, () => go(step)) : el("span", { ariaCurrent: "location", tabindex: -1 }, label));
    });
    keepFocus(way, () => fill(way, items), here);
  }
  const here = () => way.querySelector("[aria-current]");
  function drawLegend() {
    const parts = python ? compared() : null;
    keepFocus(legend, () => ((legend.hidden = !parts), fill(legend, parts)), here);
  }
  // Of a comparison: with what, and how much of the tree differs.
  function compared() {
    const { against, text, counts } = model.get("compared") ?? {};
    if (!against) return null;
    const signs = Object.entries(counts).map(([mark, words]) => {
      const style = styles["mark:" + mark];
      return el("span.ice-counted", colour(el("span.ice-mark", { ariaHidden: true }, style.sign), style), words);
    });
    return [el("span", text), ...signs, signButton("×", "Stop comparing", () => choose(model, { against: "" }), { class: "ice-end" })];
  }

  // Files ------------------------------------------------------------------------------------------------------------

  function setSaving(yes) {
    keepFocus(formats, () => (formats.hidden = !yes), saver);
    saver.ariaExpanded = yes;
  }
  async function save(format) {
    setSaving(false);
    if (format === "png") return hand(await picture.png(), "png");
    asked = model.ask("wanted", { format });
  }
  function saved() {
    const { n, format, text } = model.get("written");
    if (n === undefined || n !== asked) return;
    asked = null;
    const [ending, type] = TYPES[format];
    hand(new Blob([text], { type }), ending);
    model.put("written", {});
  }
  function hand(blob, ending) {
    const name = (model.get("title") || "table").replace(/[^\w.-]+/g, "-").slice(0, 80);
    saveFile(blob, `${name}-tree.${ending}`);
  }

  // The page does not lose the focus when the picture is dragged: then the wheel is the picture's.
  picture.element.addEventListener("mousedown", (event) => {
    event.preventDefault();
    if (!focusedIn(stage)) rows.focus();
  });

  model.listen([names.nodes, names.roots, names.expanded, "selection", ...(options.watch ?? [])], changed);
  if (python) {
    model.listen(["compared"], changed);
    model.listen(["written"], saved);
  }
  update();
  if (options.list) setList(true);
  box.where = picture.where;
  return box;
}
