/**
 * A tree as rows: for the keyboard, for screen readers, and as a list. One row has the tab stop, which the arrow keys
 * move (WAI-ARIA tree pattern). If there are many rows, only those in view and the one with the tab stop are in the
 * page.
 *
 * @module
 */

/** @import { Model, Properties, Styles, TreeNode, TreeRow } from "./types.d.ts" */

import { applyColours, clamp, consumeEvent, el, fill, focusedIn, icon, listen, NO_TAB_STOP, timer } from "./dom.js";

/** The height of a row in px, as in the style sheet. */
const ROW_HEIGHT = 36;
/** The number of rows that are in the page although they are above or below the visible ones. */
const ROWS_BEYOND = 5;
/** The number of rows up to which all of them are in the page. */
const MOST_ROWS_IN_PAGE = 200;
/** The time, in ms, after which a typed letter begins a new word. */
const TYPING_PAUSE = 700;
/** The words that screen readers use for those marks whose names are less clear. */
const SPOKEN_MARKS = /** @type {Record<string, string>} */ ({ carried: "carried over", pruned: "skipped" });

/**
 * Return the sign of a mark, in its colour.
 *
 * @param {Styles} styles
 * @param {string} mark
 * @param {Properties} properties
 */
export function markSign(styles, mark, properties) {
  const style = styles[`mark:${mark}`];
  return applyColours(el("span.mark", { title: style.title, ...properties }, style.sign), style);
}

/**
 * Return the row to go to when a letter is typed: the next one whose label begins with what was typed.
 *
 * @param {TreeRow[]} rows
 * @param {number} at The index of the row that has the focus.
 * @param {string} typed In lower case.
 * @returns {TreeRow | undefined}
 */
export function findTyped(rows, at, typed) {
  // A single letter moves on to a later row; a longer text may also match the current row.
  const from = at + (typed.length > 1 ? 0 : 1);
  const inOrder = [...rows.slice(from), ...rows.slice(0, from)];
  return inOrder.find(({ node }) => node.label.toLowerCase().startsWith(typed));
}

/**
 * The handlers of a tree's rows.
 *
 * @typedef {object} RowHandlers
 * @property {(row: TreeRow) => void} select
 * @property {(row: TreeRow) => void} toggle Unfold or fold.
 * @property {(id: string | null) => void} focus A row has got the focus, or all have lost it.
 * @property {(event: KeyboardEvent) => boolean} key Handle a key; return whether it was used.
 */

/**
 * Return the element that shows a tree as rows, and functions that control it.
 *
 * @param {Model} model
 * @param {object} options
 * @param {Styles} options.styles
 * @param {string} options.label
 * @param {RowHandlers} options.on
 */
export function treeRows(model, { styles, label, on }) {
  const sheet = el("div.sheet", { role: "none" });
  const box = el("div.tree", { role: "tree", ariaLabel: label, ...NO_TAB_STOP }, sheet);
  /**
   * The rows that are in the page, by id, with their drawn content as JSON.
   *
   * @type {Map<string, { element: HTMLElement, words?: string, looks?: string }>}
   */
  const drawn = new Map();
  /** @type {{ rows: TreeRow[], selected: string | null, hits: Set<string> }} */
  const state = { rows: [], selected: null, hits: new Set() };
  /**
   * The index of each row, by its id.
   *
   * @type {Map<string, number>}
   */
  let places = new Map();
  /** The id of the row that has the tab stop. */
  let focus = "";
  /** The id of a row that was selected elsewhere, as in the omnibox, and may still have to be read. */
  let awaited = "";
  let typed = "";
  const wait = timer(model);

  /**
   * Change what is shown.
   *
   * @param {Partial<typeof state>} [next]
   */
  function show(next = {}) {
    if (next.selected !== undefined && next.selected !== state.selected) awaited = next.selected ?? "";
    Object.assign(state, next);
    if (next.rows) places = new Map(next.rows.map(({ id }, i) => [id, i]));
    const before = focus;
    const isFocused = focusedIn(sheet);
    // The tab stop is at the row reached by keys since the last selection, else at the selected row.
    if (!isFocused || !places.has(focus) || places.has(awaited)) {
      const candidates = [state.selected, focus, state.rows[0]?.id];
      focus = candidates.find((id) => typeof id === "string" && places.has(id)) ?? "";
      if (focus === awaited) awaited = "";
    }
    draw();
    if (isFocused && focus !== before) on.focus(focus);
    if (next.rows) sheet.style.height = `${next.rows.length * ROW_HEIGHT}px`;
  }

  /** @param {string} id */
  function placeOf(id) {
    return places.get(id) ?? 0;
  }

  function draw() {
    const { rows } = state;
    const held = focusedIn(sheet);
    const areAllInPage = rows.length <= MOST_ROWS_IN_PAGE;
    let first = 0;
    let end = MOST_ROWS_IN_PAGE;
    if (!areAllInPage) {
      // Measure before anything changes, so that the browser need not compute the layout twice.
      const height = box.clientHeight || 400;
      const top = clamp(0, box.scrollTop, rows.length * ROW_HEIGHT - height);
      first = top / ROW_HEIGHT - ROWS_BEYOND;
      end = (top + height) / ROW_HEIGHT + ROWS_BEYOND;
    }
    box.classList.toggle("ice-whole", areAllInPage);
    const wanted = new Set(rows.filter(({ id }, i) => (i >= first && i < end) || id === focus).map(drawRow));
    const old = new Set(/** @type {HTMLElement[]} */ ([...sheet.children]).filter((element) => !wanted.has(element)));
    // Put the elements in the page into the order of the tree.
    let next = sheet.firstChild;
    for (const element of wanted) {
      while (next && old.has(/** @type {HTMLElement} */ (next))) next = next.nextSibling;
      if (element === next) next = next.nextSibling;
      else sheet.insertBefore(element, next);
    }
    // Move the focus before the row that has it is removed.
    if (held) drawn.get(focus)?.element.focus({ preventScroll: true });
    for (const element of old) {
      element.remove();
      drawn.delete(element.dataset.id ?? "");
    }
  }

  /** @param {TreeRow} row */
  function drawRow({ id, node, level, index, of, open }) {
    const { kind, label, title, note, reason, marks, leaf, children, tooltip } = node;
    const one = drawn.get(id) ?? { element: el("div", { role: "treeitem", "data-id": id }) };
    const words = JSON.stringify([kind, label, title, note, reason, marks]);
    if (one.words !== words) fill(one.element, wordsOf(node));
    const properties = {
      className: state.hits.has(id) ? "ice-row ice-hit" : "ice-row",
      style: `--level:${level - 1};top:${placeOf(id) * ROW_HEIGHT}px`,
      tabIndex: id === focus ? 0 : -1,
      title: tooltip ?? "",
      ariaLevel: level,
      ariaPosInSet: index + 1,
      ariaSetSize: of,
      ariaSelected: id === state.selected,
      ariaBusy: (open && !children) || null,
      ariaExpanded: leaf ? null : open, // a leaf is neither open nor closed
    };
    const looks = JSON.stringify(properties);
    if (one.looks !== looks) Object.assign(one.element, properties);
    drawn.set(id, { element: one.element, words, looks });
    return one.element;
  }
  /** @param {TreeNode} node */
  function wordsOf({ kind, label, title, note, reason, marks }) {
    const notes = [title, note, reason].filter(Boolean).join(" · ");
    const isPale = marks.includes("carried") || marks.includes("pruned");
    const look = kind === "more" ? "more" : isPale && "carried";
    return [
      el("span.twisty", { ariaHidden: true }),
      icon(styles, kind),
      el("span.words", el("span.label", { class: look }, label), notes && el("span.note", notes)),
      ...marks.map((mark) => markSign(styles, mark, { role: "img", ariaLabel: SPOKEN_MARKS[mark] ?? mark })),
    ];
  }

  /**
   * Scroll to a row without moving the focus.
   *
   * @param {string} id
   */
  function reveal(id) {
    if (!places.has(id)) return;
    const top = placeOf(id) * ROW_HEIGHT;
    box.scrollTop = clamp(top + ROW_HEIGHT - box.clientHeight, box.scrollTop, top);
  }
  /**
   * Give the tab stop and the focus to a row.
   *
   * @param {string} [id]
   */
  function moveTo(id = focus) {
    if (!places.has(id)) return;
    focus = id;
    awaited = "";
    reveal(id);
    draw();
    drawn.get(id)?.element.focus({ preventScroll: true });
    on.focus(id);
  }
  /** @param {Event} event */
  function rowOf({ target }) {
    const element = /** @type {Element} */ (target).closest(".ice-row");
    const place = element instanceof HTMLElement ? places.get(element.dataset.id ?? "") : undefined;
    return place === undefined ? undefined : state.rows[place];
  }
  /** @param {Event} event */
  function isOnTwisty({ target }) {
    return /** @type {Element} */ (target).closest(".ice-twisty") !== null;
  }
  /** @param {number} by */
  function step(by) {
    moveTo(state.rows[clamp(0, placeOf(focus) + by, places.size - 1)].id);
  }
  /** @param {string} letter */
  function type(letter) {
    wait(() => (typed = ""), TYPING_PAUSE);
    typed += letter.toLowerCase();
    const found = findTyped(state.rows, placeOf(focus), typed);
    if (found) moveTo(found.id);
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    const row = places.has(focus) ? state.rows[placeOf(focus)] : undefined;
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const { node, open, children, parent } = row;
    const page = Math.max(1, Math.floor((box.parentElement?.clientHeight ?? 0) / ROW_HEIGHT) - 1);
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      PageDown: () => step(page),
      PageUp: () => step(-page),
      Home: () => step(-places.size),
      End: () => step(places.size),
      ArrowRight() {
        if (node.leaf) return;
        if (open) moveTo(children[0]?.id);
        else on.toggle(row);
      },
      ArrowLeft() {
        if (open) on.toggle(row);
        else moveTo(parent ?? focus);
      },
      Enter: () => on.select(row),
      " ": () => on.select(row),
    };
    if (!on.key(event)) {
      const action = event.shiftKey ? null : actions[event.key];
      if (action) action();
      else if (event.key.length === 1) type(event.key);
      else return;
    }
    consumeEvent(event);
  }

  listen(box, {
    click(event) {
      const row = rowOf(event);
      if (!row) return;
      moveTo(row.id);
      if (isOnTwisty(event) && !row.node.leaf) on.toggle(row);
      else on.select(row);
    },
    dblclick(event) {
      const row = rowOf(event);
      if (row && !isOnTwisty(event) && !row.node.leaf) on.toggle(row);
    },
    focusin: () => on.focus(focus),
    focusout: () => on.focus(null),
    scroll() {
      if (places.size > MOST_ROWS_IN_PAGE) draw();
    },
    keydown: pressed,
  });

  return { element: box, show, reveal, focus: moveTo };
}
