/**
 * The answers to a grid's queries in a saved page, computed from all rows of the table as Python would.
 *
 * @module
 */

/** @import { Column, Filter, GridAnswer, GridMessage, Page, Query, SavedTable } from "./types.d.ts" */

import { clamp } from "./dom.js";

/** The number of columns that are shown at first. */
const MOST_COLUMNS = 60;
/** Spreadsheets treat a cell that begins with one of these as a formula. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/**
 * Return a text as a number: a BigInt if it is whole, so that no digit of an id is lost; NaN if it is none.
 *
 * @param {string} text
 * @returns {number | bigint}
 */
function parseNumber(text) {
  const plain = text.replaceAll(",", "").trim();
  if (/^[+-]?\d+$/.test(plain)) return BigInt(plain);
  return plain === "" ? NaN : Number(plain);
}

/**
 * Return whether a cell contains a text, ignoring case.
 *
 * @param {string | null} cell
 * @param {string} text
 */
function contains(cell, text) {
  return cell !== null && cell.toLowerCase().includes(text.toLowerCase());
}

/**
 * Compare two values: return a negative number, 0 or a positive number, as `Array.sort` requires.
 *
 * @template {string | number | bigint} T
 * @param {T} a
 * @param {T} b
 */
function compare(a, b) {
  if (a < b) return -1;
  return a > b ? 1 : 0;
}

/**
 * Return whether a row passes a filter.
 *
 * @param {(string | null)[]} row
 * @param {Filter} filter
 * @param {Column[]} columns
 * @returns {boolean}
 */
function passes(row, { column, op, value }, columns) {
  if (column === null) return row.some((cell) => contains(cell, value));
  const cell = row[column];
  if (op === "null") return cell === null;
  if (op === "not null") return cell !== null;
  if (op === "contains") return contains(cell, value);
  if (cell === null) return false;
  if (columns[column].right) {
    const [left, right] = [parseNumber(cell), parseNumber(value)];
    if (op === "<") return left < right;
    if (op === ">") return left > right;
    return left == right; // 1n == 1
  }
  if (op === "<") return cell < value;
  if (op === ">") return cell > value;
  return cell.toLowerCase() === value.toLowerCase();
}

/**
 * Return the indexes of the rows that pass a query's filters, in the query's order. Nulls come last.
 *
 * @param {SavedTable} table
 * @param {Pick<Query, "sort" | "filters">} query
 * @returns {number[]}
 */
function matchingRows({ columns, rows }, { sort, filters = [] }) {
  const found = [...rows.keys()].filter((i) => filters.every((filter) => passes(rows[i], filter, columns)));
  if (!sort) return found;
  const [column, direction] = sort;
  const sign = direction === "asc" ? 1 : -1;
  const read = columns[column].right ? parseNumber : String;
  return found.sort((i, j) => {
    const [a, b] = [rows[i][column], rows[j][column]];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return compare(read(a), read(b)) * sign;
  });
}

/**
 * Return the page that a query asks for, as `GridPanel` in Python documents it.
 *
 * @param {SavedTable} found The table.
 * @param {Query} query
 * @param {number} [size] Rows of a page.
 * @returns {Page}
 */
export function answerQuery(found, query, size = 50) {
  const { text, columns, rows, nodes = [], total, above, none, lacks } = found;
  const { n = 0, of = "", table = "", sort = null, filters = [], columns: wanted, node } = query;
  const request = { n, of, table, sort, filters };
  if (text !== undefined) return { ...request, text };
  const matching = matchingRows(found, query);
  const pages = Math.max(1, Math.ceil(matching.length / size));
  const rowOfNode = matching.findIndex((i) => node && nodes[i] === node);
  const page = clamp(0, rowOfNode < 0 ? query.page ?? 0 : Math.floor(rowOfNode / size), pages - 1);
  // The column that names the rows is shown first.
  const rank = (/** @type {number} */ place) => (columns[place].head ? -1 : place);
  const shown = [...wanted ?? [...columns.keys()].slice(0, MOST_COLUMNS)].sort((a, b) => rank(a) - rank(b));
  const inPage = matching.slice(page * size, (page + 1) * size);
  return {
    ...request,
    columns,
    shown,
    page,
    pages,
    size,
    total: matching.length,
    whole: total ?? rows.length,
    above,
    none,
    lacks,
    rows: inPage.map((i) => shown.map((column) => rows[i][column])),
    nodes: inPage.map((i) => nodes[i] ?? null),
  };
}

/**
 * Return a cell of CSV: quoted if necessary, and with an apostrophe before what spreadsheets treat as a formula.
 *
 * @param {string | null} text
 * @param {boolean} [isNumber]
 */
function csvCell(text, isNumber = false) {
  if (text === null) return "";
  const harmless = !isNumber && FORMULA.test(text) ? "'" + text : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/**
 * Return the answer to a grid's message, which wants a cell, a row as JSON, or all rows as CSV.
 *
 * @param {SavedTable} found The table.
 * @param {GridMessage} message
 * @returns {GridAnswer}
 */
export function answerMessage(found, { grid, n, want, row, column = 0, sort, filters }) {
  const { columns, rows } = found;
  const matching = matchingRows(found, { sort, filters });
  const cells = rows[matching[row]];
  if (want === "cell") return { grid, n, text: cells[column] ?? "" };
  if (want === "row") {
    const record = Object.fromEntries(columns.map(({ name }, i) => [name, cells[i]]));
    return { grid, n, text: JSON.stringify(record, null, 2) };
  }
  const lines = [
    columns.map(({ name }) => csvCell(name)),
    ...matching.map((i) => rows[i].map((text, c) => csvCell(text, columns[c].right))),
  ];
  const text = lines.map((line) => line.join(",") + "\r\n").join("");
  return { grid, n, text, next: null, total: matching.length, most: Infinity };
}
