/**
 * Copying and downloading from a table: a cell, a row, or all rows as CSV. What the page does not have is requested
 * from Python, which answers with a message.
 *
 * @module
 */

/** @import { GridAnswer, Model, TablePage, Want } from "./types.d.ts" */

import { copyText, formatCount, plural, randomId, saveFile } from "./dom.js";

/** Python may have shortened a cell that has this many characters or more. */
const SHORTENED = 300;
/** Visible signs, with which Python may have replaced control characters for display. */
const SIGN = /[\u2400-\u2421\u27e8]/;
/** In CSV, a cell that Python prefixed with an apostrophe, because a spreadsheet would treat it as a formula. */
const DISARMED = /(?:^|[,\n])"?'[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
/** The maximum number of characters in a file's name, without its extension. */
const MOST_NAME = 80;

/**
 * Return whether the text shown in a cell is complete, so that it can be copied as it is.
 *
 * @param {string} text
 */
export function isComplete(text) {
  return text.length < SHORTENED && !SIGN.test(text);
}

/**
 * Return whether CSV has cells that were prefixed with an apostrophe.
 *
 * @param {string} text
 */
export function hasDisarmed(text) {
  return DISARMED.test(text);
}

/**
 * Return the functions that copy and download from a grid.
 *
 * @param {Model} model
 * @param {object} options
 * @param {string} options.grid
 * @param {() => TablePage} options.page Return the page that is shown.
 * @param {() => [row: number, place: number]} options.cell Return the position of the chosen cell in that page.
 * @param {(text: string) => void} options.say Show what was done.
 */
export function gridExport(model, { grid, page, cell, say }) {
  /**
   * The requests that have no answer yet, by their number.
   *
   * @type {Map<number, { resolve: (answer: GridAnswer) => void, reject: (error: Error) => void }>}
   */
  const waiting = new Map();

  /**
   * Ask Python for something that the page does not have.
   *
   * @param {Want} want
   * @param {{ row: number, column?: number }} what
   * @param {TablePage} [shown]
   * @returns {Promise<GridAnswer>}
   */
  function ask(want, what, { of, table, sort, filters } = page()) {
    return new Promise((resolve, reject) => {
      const n = randomId();
      waiting.set(n, { resolve, reject });
      model.send({ grid, n, want, of, table, sort, filters, ...what });
    });
  }
  model.on("msg:custom", (/** @type {GridAnswer} */ message) => {
    const request = message.grid === grid && waiting.get(message.n);
    if (!request) return;
    waiting.delete(message.n);
    if (message.error) request.reject(new Error(message.error));
    else request.resolve(message);
  });

  /**
   * Request the complete text of a cell or row of the page that is shown.
   *
   * @param {Want} want
   * @param {number} row The row's index in the page.
   * @param {number} [column]
   */
  async function textOf(want, row, column) {
    const shown = page();
    const { text } = await ask(want, { row: shown.page * shown.size + row, column }, shown);
    return text;
  }
  /**
   * Copy a text.
   *
   * @param {string | Promise<string>} text
   */
  async function copy(text) {
    const done = await copyText(text);
    say(done ? `Copied ${plural((await text).length, "character")}` : "The browser blocked copying");
  }
  async function copyCell() {
    const [row, place] = cell();
    const shown = page();
    const text = shown.rows[row]?.[place] ?? "";
    await copy(isComplete(text) ? text : textOf("cell", row, shown.shown[place]));
  }
  async function copyRow() {
    await copy(textOf("row", cell()[0]));
  }
  async function download() {
    // Remember the current page: a different one may be shown before the answers arrive.
    const shown = page();
    const name = [model.title, shown.table].join("-").replace(/[^\w.-]+/g, "_").slice(0, MOST_NAME);
    /** @type {string[]} */
    const parts = [];
    let length = 0;
    /** @type {GridAnswer} */
    let part;
    /** @type {number | null} */
    let next = 0;
    do {
      part = await ask("csv", { row: next }, shown);
      parts.push(part.text);
      length += part.text.length;
      next = part.next ?? null;
      say(`${formatCount(next ?? part.total ?? 0)} of ${formatCount(part.total ?? 0)} rows`);
    } while (next !== null && length <= (part.most ?? Infinity));
    // The byte order mark lets Excel recognize UTF-8.
    saveFile(model, new Blob(["\ufeff", ...parts], { type: "text/csv;charset=utf-8" }), `${name}.csv`);
    if (next !== null) {
      say(`Saved ${formatCount(next)} of ${formatCount(part.total ?? 0)} rows, the most that a browser can hold`);
    } else {
      say(parts.some(hasDisarmed) ? "Saved; formulas begin with an apostrophe" : "Saved");
    }
  }

  /**
   * @param {() => Promise<void>} run
   * @returns {() => Promise<void>} The same function, which also shows errors.
   */
  function attempt(run) {
    return () => run().catch((error) => say(error.message));
  }
  return { copy, copyCell: attempt(copyCell), copyRow: attempt(copyRow), download: attempt(download) };
}
