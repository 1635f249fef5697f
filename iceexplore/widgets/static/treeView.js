/**
 * The view of a forest (one tree or several): a picture that pans, zooms and folds, and the same nodes as rows for the
 * keyboard and screen readers; also a search, the path to the selected node, the legend of a comparison, and files to
 * save.
 *
 * @module
 */

/** @import { Arrangement, FileFormat, LegendItem, Model, Nodes, Traits, TreeRow, TreeState } from "./types.d.ts" */

import { arrange } from "./arrangement.js";
import { changeSelection, el, fill, focusedIn, keepFocus, saveFile, smallButton } from "./dom.js";
import { fileName, slideButtons } from "./slide.js";
import { treeCanvas } from "./treeCanvas.js";
import { markSign, treeRows } from "./treeRows.js";
import { treeSearch } from "./treeSearch.js";

/**
 * The files that Python creates: the title, the ending of the name, and the media type of each.
 *
 * @type {Record<FileFormat, { title: string, ending: string, type: string }>}
 */
const FILES = {
  mermaid: { title: "Mermaid", ending: "mmd", type: "text/plain" },
  dot: { title: "DOT", ending: "gv", type: "text/vnd.graphviz" },
};
/** The factor by which the zoom buttons change the scale. */
const ZOOM_STEP = 1.3;
/** The distance, in px, by which Shift and an arrow key move the picture. */
const PAN_STEP = 60;

/**
 * Return the parent of each node, including nodes that are folded.
 *
 * @param {Nodes} nodes
 * @returns {Map<string, string>}
 */
export function parentsOf(nodes) {
  const parents = new Map();
  for (const [id, { children }] of Object.entries(nodes)) {
    for (const child of children ?? []) parents.set(child, id);
  }
  return parents;
}

/**
 * Return the path to a node, from its root on. It ends if damaged data contains a cycle.
 *
 * @param {string} id
 * @param {Nodes} nodes
 * @param {Map<string, string>} parents
 * @returns {string[]}
 */
export function pathTo(id, nodes, parents) {
  /** @type {string[]} */
  const path = [];
  /** @type {string | undefined} */
  let at = id;
  while (at !== undefined && nodes[at] && !path.includes(at)) {
    path.unshift(at);
    at = parents.get(at);
  }
  return path;
}

/**
 * Return a view of a forest.
 *
 * @param {Model} model
 * @param {object} [options]
 * @param {"" | "scan_" | "commit_before_" | "commit_after_" | "repair_before_" | "repair_after_"} [options.prefix] The
 *   prefix of the traits `nodes`, `roots` and `expanded`. Without one, the view also has what only the table's own tree
 *   has: Python's search, the files that Python creates, and a comparison.
 * @param {string} [options.label] The name of the forest, for screen readers.
 * @param {string[]} [options.watch] Names of other traits on which `selected` depends.
 * @param {() => string} [options.selected] Return the id of the selected node.
 * @param {(id: string) => void} [options.select] Select a node.
 * @param {boolean} [options.list] Whether rows are shown at first, instead of the picture.
 */
export function treeView(model, options = {}) {
  const { prefix = "", label, watch = [], list: startAsList } = options;
  const selected = options.selected ?? (() => model.selection.node);
  const select = options.select ?? ((/** @type {string} */ id) => changeSelection(model, { node: id }));
  // A saved page has no Python.
  const python = !prefix && model.search !== undefined;
  const styles = model.styles;
  const names = {
    nodes: /** @type {"nodes"} */ (`${prefix}nodes`),
    roots: /** @type {"roots"} */ (`${prefix}roots`),
    expanded: /** @type {"expanded"} */ (`${prefix}expanded`),
  };
  const nodes = () => model[names.nodes];
  /**
   * The values of the traits that were drawn last.
   *
   * @type {Partial<Pick<Traits, "nodes" | "roots" | "expanded">>}
   */
  let drawn = {};
  /** @type {Arrangement} */
  let arrangement;
  /** @type {Map<string, string>} */
  let parents = new Map();
  /** The node that was folded or unfolded last: its card stays where it is on the screen. */
  let toggled = "";
  /** The selected node that was last brought into view; a newly selected one may still have to be read. */
  let revealed = "";
  let isUpdatePlanned = false;
  /** Whether the node that gets the focus was clicked: then its card must not move away from the pointer. */
  let isPointed = false;
  /** The number of this view's last request for a file. */
  let requestedFile = 0;

  const rows = treeRows(model, {
    styles,
    label: label ?? "Parts of the table",
    on: {
      select: selectRow,
      toggle,
      focus(id) {
        picture.mark({ focus: id });
        if (id !== null && !isPointed && !isList()) picture.reveal(id);
      },
      key: pressed,
    },
  });
  const picture = treeCanvas(model, {
    styles,
    onSelect(row) {
      point(row.id);
      selectRow(row);
    },
    onToggle(row) {
      point(row.id);
      toggle(row);
    },
    onCell: go,
  });
  const zoomIn = () => picture.zoom(ZOOM_STEP);
  const zoomOut = () => picture.zoom(1 / ZOOM_STEP);
  const path = el("ol.trail");
  const legend = el("div.legend");
  const listButton = smallButton("List", "Show as a list", () => setList(!isList()), { ariaPressed: false });
  const zooms = el(
    "span.group.zooms",
    smallButton("−", "Zoom out of the tree", zoomOut),
    smallButton("+", "Zoom into the tree", zoomIn),
    smallButton("Fit", "Fit the tree", picture.fit),
  );
  const slides = slideButtons(model, "Tree", {
    colours: picture.colours,
    picture: picture.picture,
    legend: legendOfTree,
    done: () => setSaving(false),
  });
  // The formats are below the button, so that no button moves under the pointer.
  const formats = el("span.group.menu-list", { hidden: true }, slides, formatButtons());
  const saveButton = smallButton("Save…", "Save the picture", () => setSaving(formats.hidden === true), {
    ariaExpanded: false,
  });
  const search = treeSearch(model, {
    python,
    label,
    nodes,
    go,
    back: () => rows.focus(),
    found: (hits) => mark({ hits }),
  });
  const tools = el("div.tools", search.element, el("span.group.end", zooms, listButton, saveButton), formats);
  const stage = el("div.stage", rows.element, picture.element);
  const box = el("div.map", tools, el("nav.crumbs", { ariaLabel: "Path" }, path), legend, stage);

  /**
   * Handle the picture's own keys: Shift and arrows move it, + - 0 zoom, / goes to the search.
   *
   * @param {KeyboardEvent} event
   * @returns {boolean} Whether the key was used.
   */
  function pressed(event) {
    if (event.key === "/") {
      search.focus();
      return true;
    }
    // Go on after Escape, because other handlers may need it, too.
    if (event.key === "Escape") picture.hideTip();
    if (isList()) return false;
    const moves = /** @type {Record<string, [number, number]>} */ ({
      ArrowLeft: [PAN_STEP, 0],
      ArrowRight: [-PAN_STEP, 0],
      ArrowUp: [0, PAN_STEP],
      ArrowDown: [0, -PAN_STEP],
    });
    /** @type {Record<string, () => void>} */
    const actions = { "+": zoomIn, "=": zoomIn, "-": zoomOut, 0: picture.fit };
    const move = moves[event.key];
    if (event.shiftKey && move) {
      picture.pan(...move);
      return true;
    }
    actions[event.key]?.();
    return event.key in actions;
  }
  function isList() {
    return box.classList.contains("ice-as-list");
  }
  /** @param {boolean} on */
  function setList(on) {
    box.classList.toggle("ice-as-list", on);
    listButton.ariaPressed = String(on);
    rows.show();
    rows.reveal(selected());
  }

  /** @param {string} id */
  function point(id) {
    isPointed = true;
    rows.focus(id);
    isPointed = false;
  }
  /** @param {TreeRow} row */
  function selectRow(row) {
    if (row.node.kind === "more") toggle(row);
    else select(row.id);
  }
  /** @param {TreeRow} row */
  function toggle({ id, node, open, parent }) {
    toggled = node.kind === "more" ? parent ?? "" : id;
    const others = model[names.expanded].filter((other) => other !== id);
    model.save(names.expanded, open ? others : [...others, id]);
  }
  /** @param {string} id */
  function reveal(id) {
    picture.reveal(id);
    rows.reveal(id);
    revealed = id;
  }
  /**
   * Show a node, and select it.
   *
   * @param {string} id
   */
  function go(id) {
    if (id === selected()) reveal(id);
    else select(id);
  }
  /**
   * Show which node is selected, or which nodes were found.
   *
   * @param {Partial<TreeState>} next
   */
  function mark(next) {
    picture.mark(next);
    rows.show(next);
  }

  /** Draw the values of the traits; changes in one message are drawn together. */
  function changed() {
    if (!isUpdatePlanned) queueMicrotask(update);
    isUpdatePlanned = true;
  }
  function update() {
    isUpdatePlanned = false;
    const now = selected();
    const next = { nodes: nodes(), roots: model[names.roots], expanded: model[names.expanded] };
    mark({ selected: now });
    if (next.nodes !== drawn.nodes) parents = parentsOf(next.nodes);
    if (next.nodes !== drawn.nodes || next.roots !== drawn.roots || next.expanded !== drawn.expanded) {
      drawn = next;
      arrangement = arrange(next.nodes, next.roots, next.expanded, styles);
      picture.show(arrangement, arrangement.byId.has(toggled) ? toggled : now);
      rows.show({ rows: arrangement.rows });
      search.look();
    }
    if (now !== revealed && arrangement.byId.has(now)) reveal(now);
    drawPathTo(now);
  }
  /** @param {string} id */
  function drawPathTo(id) {
    const items = pathTo(id, nodes(), parents).map((step) => {
      const { label } = nodes()[step];
      if (step === id) return el("li", el("span", { ariaCurrent: "location", tabindex: -1 }, label));
      return el("li", smallButton(label, `Go to ${label}`, () => go(step)));
    });
    keepFocus(path, () => fill(path, items), currentStep);
  }
  function currentStep() {
    return /** @type {HTMLElement | null} */ (path.querySelector("[aria-current]"));
  }
  /** Show what the tree is compared with, and how many nodes differ. */
  function drawLegend() {
    const { against, text, counts = {} } = model.compared;
    const signs = Object.entries(counts).map(([mark, words]) =>
      el("span.counted", markSign(styles, mark, { ariaHidden: true }), words)
    );
    const stop = () => changeSelection(model, { against: "" });
    const parts = against && [el("span", text), ...signs, smallButton("×", "Stop comparing", stop, { class: "end" })];
    keepFocus(legend, () => fill(legend, parts), currentStep);
  }

  // Files --------------------------------------------------------------------------------------------------------------

  function formatButtons() {
    const entries = /** @type {[FileFormat, { title: string }][]} */ (Object.entries(FILES));
    return python && entries.map(([format, { title }]) => smallButton(title, `Save as ${title}`, () => save(format)));
  }
  /** @param {boolean} on */
  function setSaving(on) {
    keepFocus(formats, () => (formats.hidden = !on), saveButton);
    saveButton.ariaExpanded = String(on);
  }
  /** @param {FileFormat} format */
  function save(format) {
    setSaving(false);
    requestedFile = model.request("wanted", { format });
  }
  /**
   * Return the legend of what is drawn: kinds, then marks.
   *
   * @returns {LegendItem[]}
   */
  function legendOfTree() {
    const shown = arrangement.rows.map(({ node }) => node);
    const seen = new Set(shown.flatMap(({ kind, marks }) => [kind, ...marks.map((mark) => `mark:${mark}`)]));
    seen.delete("more");
    const looks = Object.keys(styles).filter((look) => seen.has(look));
    const applies = shown.some((node) => node.applies) ? "arrow: applies to" : "";
    return [...looks.map((look) => /** @type {LegendItem} */ ([styles[look].title, look])), [applies]];
  }
  function written() {
    const { n, format, text } = model.written;
    if (n !== requestedFile || !format || text === undefined) return;
    const { ending, type } = FILES[format];
    saveFile(model, new Blob([text], { type }), `${fileName(model, "tree")}.${ending}`);
    model.save("written", {});
  }

  // A click on the picture gives it the focus, and the wheel then belongs to the picture.
  picture.element.addEventListener("mousedown", (event) => {
    event.preventDefault();
    if (!focusedIn(stage)) rows.focus();
  });

  model.onChange([...Object.values(names), "selection", ...watch], changed);
  update();
  if (python) {
    model.follow("compared", drawLegend);
    model.onChange("written", written);
  }
  if (startAsList) setList(true);
  // `where` is for the browser tests.
  return Object.assign(box, { where: picture.placeOf });
}
