// The tree as rows, for the keyboard, for screen readers and as a list: one tab stop, arrows to walk (WAI-ARIA tree
// pattern). Of many rows only those in view are in the page, and the one that has the tab stop.

import { applyColours, clamp, consumeEvent, el, fill, focusedIn, icon, listen, NO_TAB_STOP, timer } from "./dom.js";

// Px, as in the style sheet.
const ROW = 36;
// So many rows above and below what is in view are in the page too.
const BEYOND = 5;
// So many rows are in the page without further ado.
const ALL = 200;
const SPEAK = { carried: "carried over", pruned: "skipped" };

// The sign of a mark, in its colour.
export function markSign(styles, mark, props) {
  const style = styles["mark:" + mark];
  return applyColours(el("span.mark", { title: style.title, ...props }, style.sign), style);
}

// `on` has select(row), toggle(row), focus(id or null), key(event) -> whether it was used.
export function rowsView(model, { styles, label, on }) {
  const sheet = el("div.sheet", { role: "none" });
  const box = el("div.tree", { role: "tree", ariaLabel: label, ...NO_TAB_STOP }, sheet);
  // Id -> what is in the page: { element, content, looked }.
  const drawn = new Map();
  const state = { rows: [], selected: null, hits: new Set() };
  // Id -> its place in the rows.
  let at = new Map();
  // The node that has the tab stop.
  let focus;
  let typed = "";
  const wait = timer(model);

  // What is to be shown: { rows, selected, hits }, or what of it has changed.
  function show(next = {}) {
    Object.assign(state, next);
    if (next.rows) at = new Map(next.rows.map(({ id }, i) => [id, i]));
    // The tab stop is where somebody walks, else at what is selected.
    if (!focusedIn(sheet) || !at.has(focus)) {
      focus = [state.selected, focus, state.rows[0]?.id].find((id) => at.has(id));
    }
    draw();
    if (next.rows) sheet.style.height = `${next.rows.length * ROW}px`;
  }

  function draw() {
    const { rows } = state;
    const held = focusedIn(sheet);
    let [first, end] = [0, ALL];
    if (rows.length > ALL) {
      // Asked before anything changes: the browser need not lay out twice.
      const tall = box.clientHeight || 400;
      const top = clamp(0, box.scrollTop, rows.length * ROW - tall);
      [first, end] = [top / ROW - BEYOND, (top + tall) / ROW + BEYOND];
    }
    box.classList.toggle("ice-whole", rows.length <= ALL);
    const wanted = new Set(rows.filter(({ id }, i) => (i >= first && i < end) || id === focus).map(drawRow));
    const gone = [...sheet.children].filter((element) => !wanted.has(element));
    // In the page they are in the order of the tree.
    let next = sheet.firstChild;
    for (const element of wanted) {
      while (gone.includes(next)) next = next.nextSibling;
      if (element === next) next = next.nextSibling;
      else sheet.insertBefore(element, next);
    }
    // Before the row that has it goes.
    if (held) drawn.get(focus)?.element.focus({ preventScroll: true });
    for (const element of gone) {
      element.remove();
      drawn.delete(element.dataset.id);
    }
  }

  function drawRow({ id, node, level, index, of, open }) {
    const { kind, label, note, reason, marks, leaf, children, tooltip } = node;
    const one = drawn.get(id) ?? { element: el("div", { role: "treeitem", "data-id": id }) };
    const content = JSON.stringify([kind, label, note, reason, marks]);
    if (one.content !== content) fill(one.element, words(node));
    const looks = {
      className: state.hits.has(id) ? "ice-row ice-hit" : "ice-row",
      style: `--level:${level - 1};top:${at.get(id) * ROW}px`,
      tabIndex: id === focus ? 0 : -1,
      title: tooltip ?? "",
      ariaLevel: level,
      ariaPosInSet: index + 1,
      ariaSetSize: of,
      ariaSelected: id === state.selected,
      ariaBusy: (open && !children) || null,
      ariaExpanded: leaf ? null : open, // a leaf is neither open nor closed
    };
    const looked = JSON.stringify(looks);
    if (one.looked !== looked) Object.assign(one.element, looks);
    drawn.set(id, { ...one, content, looked });
    return one.element;
  }
  function words({ kind, label, note, reason, marks }) {
    const notes = [note, reason].filter(Boolean).join(" · ");
    const pale = marks.includes("carried") || marks.includes("pruned");
    return [
      el("span.twisty", { ariaHidden: true }),
      icon(styles, kind),
      el(
        "span.words",
        el("span.label", { class: kind === "more" ? "more" : pale && "carried" }, label),
        notes && el("span.note", notes),
      ),
      ...marks.map((mark) => markSign(styles, mark, { role: "img", ariaLabel: SPEAK[mark] ?? mark })),
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
  const rowOf = ({ target }) => state.rows[at.get(target.closest(".ice-row")?.dataset.id)];
  const step = (by) => moveTo(state.rows[clamp(0, at.get(focus) + by, at.size - 1)].id);

  function type(letter) {
    wait(() => (typed = ""), 700);
    typed += letter.toLowerCase();
    const from = at.get(focus) + (typed.length > 1 ? 0 : 1);
    const found = [...state.rows.slice(from), ...state.rows.slice(0, from)].find(({ node }) =>
      node.label.toLowerCase().startsWith(typed)
    );
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
    scroll: () => at.size > ALL && draw(),
    keydown(event) {
      const row = state.rows[at.get(focus)];
      if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
      const { node, open, kids, parent } = row;
      const page = Math.max(1, Math.floor(box.parentElement.clientHeight / ROW) - 1);
      const acts = {
        ArrowDown: () => step(1),
        ArrowUp: () => step(-1),
        PageDown: () => step(page),
        PageUp: () => step(-page),
        Home: () => step(-at.size),
        End: () => step(at.size),
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
      consumeEvent(event);
    },
  });

  return { element: box, show, reveal, focus: moveTo };
}
