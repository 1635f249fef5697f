// The tree as rows, for the keyboard, for screen readers and as a list: one tab stop, arrows to walk (WAI-ARIA tree
// pattern). Of many rows only those in view are in the page, and the one that has the tab stop.

import { clamp, colour, el, fill, icon, listen, timer, UNSTOPPED } from "./dom.js";

// Px, as in the style sheet.
const ROW = 36;
// So many rows above and below what is in view are in the page too.
const BEYOND = 5;
// So many rows are in the page without further ado.
const ALL = 200;
const SPEAK = { added: "added", removed: "removed", carried: "carried over", problem: "problem", pruned: "skipped" };

// `on` has select(row), toggle(row), focus(id or null), key(event) -> whether it was used.
export function rowsView(model, { styles, label, on }) {
  const sheet = el("div.ice-sheet", { role: "none" });
  const box = el("div.ice-tree", { role: "tree", ariaLabel: label, ...UNSTOPPED }, sheet);
  // Id -> { element, key }.
  const drawn = new Map();
  let rows = [];
  // Id -> its place in rows.
  let at = new Map();
  // The node that has the tab stop.
  let focus = null;
  let state = { selected: null, hits: new Set() };
  let typed = "";
  const wait = timer(model);

  function show(next, marks) {
    Object.assign(state, marks);
    rows = next;
    at = new Map(rows.map((row, i) => [row.id, i]));
    if (!at.has(focus)) focus = at.has(state.selected) ? state.selected : rows[0]?.id ?? null;
    draw();
  }

  function draw() {
    const had = document.activeElement?.parentElement === sheet;
    let [first, last] = [0, rows.length];
    if (rows.length > ALL) {
      // Asked before anything changes: the browser need not lay out twice.
      const tall = box.clientHeight || 400;
      const top = clamp(0, box.scrollTop, rows.length * ROW - tall);
      first = Math.max(0, Math.floor(top / ROW) - BEYOND);
      last = Math.min(rows.length, Math.ceil((top + tall) / ROW) + BEYOND);
    }
    box.classList.toggle("ice-whole", rows.length <= ALL);
    const height = `${rows.length * ROW}px`;
    if (sheet.style.height !== height) sheet.style.height = height;
    const wanted = new Set();
    for (let i = first; i < last; i++) wanted.add(i);
    if (at.has(focus)) wanted.add(at.get(focus));
    const keep = new Set();
    // In the page they stand in the order of the tree.
    let before = null;
    for (const i of [...wanted].sort((a, b) => a - b)) {
      const element = drawRow(rows[i], i);
      keep.add(rows[i].id);
      const there = before ? before.nextSibling : sheet.firstChild;
      if (there !== element) sheet.insertBefore(element, there);
      before = element;
    }
    // Before the row that has it goes.
    if (had) drawn.get(focus)?.element.focus({ preventScroll: true });
    for (const [id, { element }] of drawn)
      if (!keep.has(id)) {
        element.remove();
        drawn.delete(id);
      }
  }

  function drawRow(row, i) {
    const { id, node, level, index, of, open } = row;
    const key = JSON.stringify([node.kind, node.label, node.note, node.reason, node.marks]);
    let one = drawn.get(id);
    if (!one) drawn.set(id, (one = { element: el("div", { role: "treeitem", "data-id": id }) }));
    const { element } = one;
    const marks = node.marks ?? [];
    const busy = open && !node.children;
    const how = [i, level, index, of, open, busy, id === focus, id === state.selected, state.hits.has(id), node.tooltip].join();
    if (one.key === key && one.how === how) return element;
    if (one.key !== key) fill(element, words(node));
    Object.assign(one, { key, how });
    element.className = "ice-row" + (node.kind === "more" ? " ice-more" : "") + (marks.includes("carried") || marks.includes("pruned") ? " ice-carried" : "") + (state.hits.has(id) ? " ice-hit" : "");
    element.style.cssText = `--level:${level - 1};top:${i * ROW}px`;
    element.tabIndex = id === focus ? 0 : -1;
    element.title = node.tooltip ?? "";
    Object.assign(element, { ariaLevel: level, ariaPosInSet: index + 1, ariaSetSize: of, ariaSelected: id === state.selected, ariaBusy: busy || null });
    element.ariaExpanded = node.leaf ? null : open; // a leaf is neither open nor closed
    return element;
  }
  function words(node) {
    const note = [node.note, node.reason].filter(Boolean).join(" · ");
    return [
      el("span.ice-twisty", { ariaHidden: true }),
      icon(styles, node.kind),
      el("span.ice-words", el("span.ice-label", node.label), note && el("span.ice-note", note)),
      ...(node.marks ?? []).map((mark) => {
        const style = styles["mark:" + mark] ?? {};
        return colour(el("span.ice-mark", { role: "img", title: style.title, ariaLabel: SPEAK[mark] ?? mark }, style.sign), style);
      }),
    ];
  }

  // Scrolls to a row, without the focus.
  function reveal(id) {
    if (!at.has(id)) return;
    const top = at.get(id) * ROW;
    box.scrollTop = clamp(top + ROW - box.clientHeight, box.scrollTop, top);
  }
  // Gives the tab stop and the focus to a row.
  function moveTo(id = focus) {
    if (!at.has(id)) return;
    focus = id;
    reveal(id);
    draw();
    drawn.get(id).element.focus({ preventScroll: true });
    on.focus(id);
  }
  const rowOf = ({ target }) => rows[at.get(target.closest(".ice-row")?.dataset.id)];
  const step = (by) => moveTo(rows[clamp(0, at.get(focus) + by, rows.length - 1)]?.id);

  function type(letter) {
    wait(() => (typed = ""), 700);
    typed += letter.toLowerCase();
    const from = at.get(focus) + (typed.length > 1 ? 0 : 1);
    const found = [...rows.slice(from), ...rows.slice(0, from)].find(({ node }) => node.label.toLowerCase().startsWith(typed));
    if (found) moveTo(found.id);
  }

  listen(box, {
    click(event) {
      const row = rowOf(event);
      if (!row) return;
      moveTo(row.id);
      if (event.target.closest(".ice-twisty") && !row.node.leaf) on.toggle(row);
      else on.select(row);
    },
    dblclick(event) {
      const row = rowOf(event);
      if (row && !event.target.closest(".ice-twisty") && !row.node.leaf) on.toggle(row);
    },
    focusin: () => on.focus(focus),
    focusout: () => on.focus(null),
    scroll: () => rows.length > ALL && draw(),
    keydown(event) {
      const row = rows[at.get(focus)];
      if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
      const { node, open, kids, parent } = row;
      const page = Math.max(1, Math.floor(box.parentElement.clientHeight / ROW) - 1);
      const acts = {
        ArrowDown: () => step(1),
        ArrowUp: () => step(-1),
        PageDown: () => step(page),
        PageUp: () => step(-page),
        Home: () => step(-rows.length),
        End: () => step(rows.length),
        ArrowRight: () => (node.leaf ? null : open ? moveTo(kids[0]?.id) : on.toggle(row)),
        ArrowLeft: () => (open ? on.toggle(row) : moveTo(parent ?? focus)),
        Enter: () => on.select(row),
        " ": () => on.select(row),
      };
      if (!on.key(event)) {
        const act = event.shiftKey ? null : acts[event.key];
        if (act) act();
        else if (event.key.length === 1) type(event.key);
        else return;
      }
      event.preventDefault();
      // Or the notebook moves to another cell.
      event.stopPropagation();
    },
  });

  return {
    element: box,
    show,
    reveal,
    focus: moveTo,
    mark(next) {
      Object.assign(state, next);
      if (next.selected !== undefined && document.activeElement?.parentElement !== sheet && at.has(next.selected)) focus = next.selected;
      draw();
    },
  };
}
