/**
 * Pictures, for slides, of the bar charts that Python describes and that a widget shows as tables.
 *
 * @module
 */

/** @import { Block, Colours, Model, Part, SlidePicture } from "./types.d.ts" */

import { drawPath, drawText, fitText } from "./painting.js";
import { recorded, slideButtons } from "./slide.js";

/** Sizes in px: the widths of a chart and its names, the gap between columns, the heights of rows, bars and letters. */
const CHART = { width: 900, names: 310, gap: 24, row: 50, bar: 9, letters: 13, small: 11 };

/**
 * Return parts as one text, without links, signs and bars.
 *
 * @param {Part[]} parts
 */
export function plainText(parts) {
  const texts = parts.map((part) => {
    if (typeof part === "string") return part;
    return ["set", "bars", "sign"].includes(part[0]) ? "" : String(part[1]);
  });
  return texts.join("").trim();
}

/**
 * Return a table of bars as a picture: a row's first cell has a name and a note, and the others have a text and a bar.
 *
 * @param {Part[][]} heads
 * @param {Part[][][]} rows
 * @param {Colours} colours
 * @returns {SlidePicture}
 */
export function barsPicture(heads, rows, colours) {
  const { width, names, gap, row, bar, letters, small } = CHART;
  const column = (width - names) / (heads.length - 1);
  const [large, notes] = [`600 ${letters}px ${colours.font}`, `${small}px ${colours.font}`];
  return recorded({ width, height: (rows.length + 0.5) * row }, (paper) => {
    paper.textBaseline = "alphabetic";
    /** @type {(text: string, x: number, y: number, room: number, colour: string, font: string) => void} */
    const write = (text, x, y, room, colour, font) =>
      drawText(paper, fitText(paper, text, room, font), x, y, colour, font);
    heads.forEach((parts, i) => {
      const x = i && names + (i - 1) * column;
      write(plainText(parts), x, 14, (i ? column : names) - gap, colours.muted, notes);
    });
    rows.forEach(([[name, ...more], ...cells], i) => {
      const top = (i + 0.5) * row;
      drawPath(paper, () => paper.rect(0, top, width, 1), { fill: colours.line });
      // A long name continues on a second line, because names may differ only at their ends.
      const label = String(typeof name === "string" ? name : name[1]);
      const first = fitText(paper, label, names - gap, large);
      const comma = first.lastIndexOf(", ");
      const at = first === label ? label.length : comma > 0 ? comma + 2 : first.length - 1;
      const lines = [label.slice(0, at), label.slice(at)].filter(Boolean);
      lines.forEach((text, k) => write(text, 0, top + 16 + 14 * k, names - gap, colours.ink, large));
      write(plainText(more), 0, top + 16 + 14 * lines.length, names - gap, colours.muted, notes);
      cells.forEach((parts, j) => {
        if (!parts.length) return;
        const x = names + j * column;
        write(plainText(parts), x, top + 16, column - gap, colours.ink, notes);
        const [, [[, share]]] = /** @type {[string, [string, number][]]} */ (/** @type {unknown} */ (parts[1]));
        const length = share && Math.max(2, share * (column - gap));
        drawPath(paper, () => paper.rect(x, top + 22, length, bar), { fill: colours.accent });
      });
    });
  });
}

/**
 * Return the buttons that copy or save a chart as a picture; a slide's legend is the sentence above the table.
 *
 * @param {Model} model
 * @param {Block} table
 * @param {Part[]} sentence
 * @param {string} caption
 * @param {Colours} colours
 */
export function barSlides(model, [, heads, rows, { label }], sentence, caption, colours) {
  return slideButtons(model, label, {
    colours,
    caption,
    picture: () => barsPicture(heads, rows, colours),
    legend: () => [[plainText(sentence)]],
  });
}
