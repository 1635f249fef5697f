/**
 * The files of a snapshot as small squares (cells), grouped by partition and shaded by size, age or deleted rows. Cells
 * of files that the snapshot added or removed are marked. The view follows the selected snapshot, so the timeline's
 * playback shows how files appear, age and vanish.
 *
 * @module
 */

/** @import { FileColor, FileCells, LegendItem, Model } from "./types.d.ts" */

import { applyColours, changeSelection, clamp, consumeEvent, el, fill, formatBytes, plural, selectBox } from "./dom.js";
import { canvasColours, drawPath, drawText, fitText, inNextFrame, resizeCanvas, SHADES } from "./painting.js";
import { recorded, slideButtons } from "./slide.js";

/** Sizes in px: cells and the distance between them, the gaps between groups, lines, label widths, and margins. */
const GRID = { pitch: 13, size: 10.5, gap: 12, line: 15, least: 96, most: 270, left: 10, top: 6 };
/** How long, in ms, new and removed files take to appear and fade. */
const FADE = 450;
const ADDED = "1";
const REMOVED = "2";
const COLORS = /** @type {const} */ ([["size", "Size"], ["age", "Age"], ["deletes", "Deleted rows"]]);

/**
 * Return the words that describe a cell.
 *
 * @param {FileCells} cells
 * @param {number} i
 */
export function cellWords({ names, kinds, changes, files, size, rows, deleted, age }, i) {
  const kind = names[Number(kinds[i])].replaceAll("-", " ");
  const words = [
    files[i] > 1 ? plural(files[i], kind) : kind,
    `${formatBytes(size[i])}${files[i] > 1 ? " on average" : ""}`,
    plural(rows[i], "row"),
  ];
  if (deleted[i]) words.push(deleted[i] < 0 ? "some rows deleted" : `${(deleted[i] / 10).toFixed(1)} % deleted`);
  if (changes[i] === ADDED) words.push("added by this snapshot");
  else if (changes[i] === REMOVED) words.push("removed by this snapshot");
  else words.push(`added ${plural(age[i], "snapshot")} ago`);
  return words.join(" · ");
}

/**
 * Return a label as one line or two; it is only divided between its parts.
 *
 * @param {string} label
 * @param {number} letters About how many letters fit into a line.
 * @returns {string[]}
 */
export function labelLines(label, letters) {
  if (label.length <= letters) return [label];
  // If the label names the first and the last of several partitions, each gets a line.
  const range = label.indexOf(" … ");
  const parts = range > 0 ? [label.slice(0, range), label.slice(range)] : label.split(/(?<=, )/);
  let first = 1;
  const length = (/** @type {number} */ n) => parts.slice(0, n).join("").trim().length;
  while (first < parts.length - 1 && length(first + 1) <= Math.max(letters, label.length / 2)) first++;
  return [parts.slice(0, first), parts.slice(first)].map((some) => some.join("").trim()).filter(Boolean);
}

/**
 * Return the positions, in px, of the cells and of the groups' labels.
 *
 * @param {FileCells["groups"]} groups
 * @param {string[][]} labels The lines of each group's label.
 * @param {number} left The x at which the cells begin.
 * @param {number} width
 * @returns {{ cells: [x: number, y: number][], tops: number[], height: number }}
 */
export function placeCells(groups, labels, left, width) {
  const columns = Math.max(1, Math.floor((width - left) / GRID.pitch));
  /** @type {number[]} */
  const tops = [];
  /** @type {[number, number][]} */
  const cells = [];
  let top = GRID.top;
  groups.forEach(([, , count], group) => {
    tops.push(top);
    for (let i = 0; i < count; i++) {
      cells.push([left + (i % columns) * GRID.pitch, top + Math.floor(i / columns) * GRID.pitch]);
    }
    top += Math.max((labels[group].length + 1) * GRID.line, Math.ceil(count / columns) * GRID.pitch) + GRID.gap;
  });
  return { cells, tops, height: top };
}

/**
 * Return the view of the files.
 *
 * @param {Model} model
 */
export function fileMapView(model) {
  const canvas = el("canvas", { ariaHidden: true });
  const map = el(
    "div.file-cells",
    { role: "slider", tabindex: 0, ariaLabel: "File", ariaValueMin: 1, onkeydown: pressed },
    canvas,
  );
  const color = selectBox(
    "Shade by",
    () => model.save("file_color", /** @type {FileColor} */ (color.value)),
    COLORS,
  );
  const filter = selectBox("Show", () => model.save("file_filter", filter.value), []);
  const filterLabel = el("label.check", "Show ", filter);
  const title = el("strong");
  const about = el("span.cell-words", { role: "status" });
  const legend = el("div.cell-legend");
  const bar = el(
    "div.cell-bar",
    title,
    el("label.check", "Shade by ", color),
    filterLabel,
    about,
  );
  const nothing = el("div.empty", { hidden: true });
  const scroller = el("div.cell-scroll", nothing, map);
  const view = el("div.file-map", bar, scroller, legend);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  /** @type {FileCells} */
  let cells;
  let places = placeCells([], [], 0, 1);
  /** @type {LegendItem[]} */
  let legendItems = [];
  /** @type {string[][]} */
  let labels = [];
  let left = 0;
  let width = 0;
  let hovered = -1;
  let focus = 0;
  /** The time at which the snapshot was first shown: from then on, new files fade in. */
  let begun = 0;
  /** @type {CanvasRenderingContext2D | null} */
  let context = null;
  const redraw = inNextFrame(model, paint);
  const colours = canvasColours(model, map, redraw, resize);

  bar.append(slideButtons(model, "Files", {
    colours,
    picture() {
      // The picture is only as wide as the cells and the labels beside them.
      const right = places.cells.reduce((most, [x]) => Math.max(most, x), left + 80) + 2 * GRID.pitch;
      return cells?.of && recorded({ width: right, height: places.height }, paint);
    },
    legend: () => legendItems,
  }));

  function drawn() {
    const isOther = cells?.of !== model.file_map.of;
    cells = model.file_map;
    color.value = model.file_color;
    const { filters = [], filter: chosen, none = "No files are known in this snapshot." } = cells;
    filterLabel.hidden = filters.length === 0;
    fill(filter, ["all files", ...filters].map((name, i) => el("option", { value: i ? name : "" }, name)));
    filter.value = model.file_filter;
    fill(nothing, chosen ? `No data files ${chosen} in this snapshot.` : none);
    fill(title, cells.of ? cells.title : model.selection.snapshot ? "Reading …" : "No snapshot yet");
    const kinds = (cells.names ?? []).filter((_, kind) => cells.kinds.includes(String(kind)));
    const sign = (/** @type {string} */ look, /** @type {string} */ text, kind = "") =>
      el("span", applyColours(el(`i.cell-sign${kind}`), model.styles[look]), text);
    fill(
      legend,
      kinds.map((kind) => sign(kind, kind.replaceAll("-", " "))),
      cells.changes?.includes(ADDED) && sign("mark:added", "added", ".is-added"),
      cells.changes?.includes(REMOVED) && sign("mark:removed", "removed", ".is-removed"),
      (cells.legend?.[model.file_color] ?? []).map((text) => el("span", text)),
    );
    legendItems = [
      [chosen ? `data files ${chosen}` : ""],
      ...kinds.map((kind) => /** @type {LegendItem} */ ([kind.replaceAll("-", " "), kind])),
      [cells.changes?.includes(ADDED) ? "added" : "", "mark:added"],
      [cells.changes?.includes(REMOVED) ? "removed" : "", "mark:removed"],
      ...(cells.legend?.[model.file_color] ?? []).map((text) => /** @type {LegendItem} */ ([text])),
    ];
    if (isOther) {
      begun = performance.now();
      hovered = -1;
      focus = clamp(0, focus, count() - 1);
    }
    nothing.hidden = !cells.of || count() > 0;
    map.ariaValueMax = String(Math.max(1, count()));
    resize();
    describe();
  }
  function count() {
    return cells?.kinds?.length ?? 0;
  }
  function resize() {
    width = map.clientWidth;
    if (!width || !cells?.of) return;
    const wanted = cells.groups.map(([label, note]) => Math.max(label.length * 6.8, note.length * 6));
    const room = clamp(GRID.least, Math.max(...wanted, 0), Math.min(GRID.most, width * 0.4));
    labels = cells.groups.map(([label]) => labelLines(label, room / 6.8));
    left = GRID.left + room + GRID.gap;
    places = placeCells(cells.groups, labels, left, width - GRID.left);
    map.style.height = `${places.height}px`;
    context = resizeCanvas(canvas, width, places.height);
    paint();
  }

  function paint(paper = context) {
    if (!paper || !cells?.of) return;
    const shades = cells.shades[model.file_color];
    const fade = calm.matches ? 1 : clamp(0, (performance.now() - begun) / FADE, 1);
    paper.clearRect(0, 0, width, places.height);
    paper.textBaseline = "alphabetic";
    const room = left - GRID.left - GRID.gap;
    const [large, small] = [`600 12px ${colours.font}`, `11px ${colours.font}`];
    cells.groups.forEach(([, note], i) => {
      let y = places.tops[i] + 9;
      for (const text of labels[i]) {
        drawText(paper, fitText(paper, text, room, large), GRID.left, y, colours.ink, large);
        y += GRID.line;
      }
      drawText(paper, fitText(paper, note, room, small), GRID.left, y, colours.muted, small);
    });
    // All cells that look alike are drawn as one path.
    /** @type {Map<string, number[]>} */
    const groups = new Map();
    for (let i = 0; i < count(); i++) {
      const key = cells.kinds[i] + shades[i] + cells.changes[i];
      const group = groups.get(key);
      if (group) group.push(i);
      else groups.set(key, [i]);
    }
    for (const [[kind, shade, change], some] of groups) {
      const squares = () => {
        for (const i of some) paper.rect(...places.cells[i], GRID.size, GRID.size);
      };
      const tone = colours.tint(cells.names[Number(kind)]);
      const alpha = change === ADDED ? fade : 1;
      if (change !== REMOVED) {
        drawPath(paper, squares, { fill: tone, alpha: SHADES[Number(shade)] * alpha });
        const isNew = change === ADDED;
        drawPath(paper, squares, { stroke: isNew ? colours.tint("mark:added") : tone, width: isNew ? 2 : 0.7, alpha });
        continue;
      }
      const crosses = () => {
        squares();
        for (const i of some) {
          const [x, y] = places.cells[i];
          paper.moveTo(x, y);
          paper.lineTo(x + GRID.size, y + GRID.size);
        }
      };
      if (fade < 1) drawPath(paper, squares, { fill: tone, alpha: 1 - fade });
      drawPath(paper, crosses, { stroke: colours.tint("mark:removed"), width: 1.1 });
    }
    const at = hovered >= 0 ? hovered : document.activeElement === map ? focus : -1;
    if (at >= 0 && places.cells[at]) {
      const [x, y] = places.cells[at];
      const frame = () => paper.rect(x - 2.5, y - 2.5, GRID.size + 5, GRID.size + 5);
      drawPath(paper, frame, { stroke: colours.accent, width: 2 });
    }
    if (fade < 1) redraw();
  }

  /** @param {number} i */
  function wordsOf(i) {
    let [group, end] = [0, cells.groups[0][2]];
    while (i >= end) end += cells.groups[++group][2];
    return `${cells.groups[group][0]} · ${cellWords(cells, i)}`;
  }
  function describe() {
    const at = hovered >= 0 ? hovered : focus;
    const isShown = count() > 0 && (hovered >= 0 || document.activeElement === map);
    about.textContent = isShown ? wordsOf(at) : "";
    map.ariaValueNow = String(focus + 1);
    map.ariaValueText = count() ? wordsOf(focus) : "no files";
  }
  /** @param {number} i */
  function open(i) {
    if (!places.cells[i]) return;
    const snapshot = cells.changes[i] === REMOVED ? cells.parent : cells.of;
    const place = cells.manifest[i] < 0 ? [cells.row[i]] : [cells.manifest[i], cells.row[i]];
    changeSelection(model, { node: ["file", snapshot, ...place].join(":") });
    // Outside the explorer, the widget has no tabs.
    if (model.parts) model.save("tab", "tree");
  }
  /** @param {MouseEvent} event */
  function cellAt({ offsetX, offsetY }) {
    const isIn = (/** @type {[number, number]} */ [x, y]) =>
      offsetX >= x - 1 && offsetX < x + GRID.pitch && offsetY >= y - 1 && offsetY < y + GRID.pitch;
    return places.cells.findIndex(isIn);
  }
  /** @param {KeyboardEvent} event */
  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !count()) return;
    const columns = Math.max(1, Math.floor((width - GRID.left - left) / GRID.pitch));
    /** @type {Record<string, number>} */
    const moves = {
      ArrowRight: focus + 1,
      ArrowLeft: focus - 1,
      ArrowDown: focus + columns,
      ArrowUp: focus - columns,
      PageDown: focus + 10 * columns,
      PageUp: focus - 10 * columns,
      Home: 0,
      End: count() - 1,
    };
    const to = moves[event.key];
    if (event.key === "Enter" || event.key === " ") open(focus);
    else if (to === undefined) return;
    else focus = clamp(0, to, count() - 1);
    consumeEvent(event);
    hovered = -1;
    const y = places.cells[focus][1];
    scroller.scrollTop = clamp(y + 2 * GRID.pitch - scroller.clientHeight, scroller.scrollTop, y - GRID.pitch);
    describe();
    redraw();
  }
  canvas.addEventListener("pointermove", (event) => {
    const found = cellAt(event);
    canvas.style.cursor = found >= 0 ? "pointer" : "";
    if (found === hovered) return;
    hovered = found;
    describe();
    redraw();
  });
  canvas.addEventListener("pointerleave", () => {
    hovered = -1;
    describe();
    redraw();
  });
  canvas.addEventListener("click", (event) => open(cellAt(event)));
  for (const name of ["focus", "blur"]) {
    map.addEventListener(name, () => {
      describe();
      redraw();
    });
  }
  model.follow(["file_map", "file_color"], drawn);
  return view;
}
