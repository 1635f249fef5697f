/**
 * The answers to a grid's queries in a saved page, computed from all rows of the table as Python would.
 *
 * @module
 */

/** @import { Column, Filter, GridAnswer, GridMessage, Operator, Page, Query, SavedTable } from "./types.d.ts" */

import { clamp } from "./dom.js";

/** The maximum number of columns that are shown at first. */
const MOST_COLUMNS = 60;
/** Spreadsheets treat a cell that begins with one of these as a formula. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** An operator at the beginning of a typed text; `SAME_OPERATORS` are other ways to write some operators. */
const LEADING_OPERATOR = /^\s*(<=|>=|!=|<>|==|=|<|>|≤|≥|≠)\s*(\S.*)$/s;
/** @type {Record<string, Operator>} */
const SAME_OPERATORS = { "<>": "!=", "==": "=", "≤": "<=", "≥": ">=", "≠": "!=" };
const NUMBER_WITH_UNIT = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([kmgtp]?)(i?)(?:b|bytes?)?$/i;
const UNIT_PREFIXES = "kmgtp";
/** A text that may become a number when the user types more. */
const BEGUN = /^[+-]?(\d*\.?\d*(e[+-]?)?)$/i;
/** The number of characters of a text that an error quotes. */
const MOST_QUOTED = 20;

/**
 * Return a text as a number: a BigInt if it is whole, so that no digit of an id is lost; NaN if it is not a number. The
 * text may have a unit, as in `1 MB` and `64 MiB`.
 *
 * @param {string} text
 * @returns {number | bigint}
 */
function parseNumber(text) {
  const plain = text.replaceAll(",", "").trim();
  if (/^[+-]?\d+$/.test(plain)) return BigInt(plain);
  const found = NUMBER_WITH_UNIT.exec(plain);
  if (!found) return plain === "" ? NaN : Number(plain);
  const [, digits, prefix, binary] = found;
  const power = prefix && UNIT_PREFIXES.indexOf(prefix.toLowerCase()) + 1;
  return Number(digits) * (binary ? 1024 : 1000) ** Number(power);
}

/**
 * Return a filter with the operator that its text begins with, and without quotes, as Python understands it.
 *
 * @param {Filter} filter
 * @returns {Filter & { isExact: boolean }} `isExact`: whether the text cannot be a range such as `1..10`.
 */
function parseFilter({ column, op, value }) {
  const isQuoted = (/** @type {string} */ text) => /^".*"$/s.test(text) && text.length > 1;
  const typed = value.trim();
  if (column === null || op.endsWith("null")) return { column, op, value, isExact: true };
  if (isQuoted(typed)) return { column, op, value: typed.slice(1, -1), isExact: true };
  const found = LEADING_OPERATOR.exec(value);
  if (!found) return { column, op, value, isExact: op !== "contains" && op !== "=" };
  const [, operator, rest] = found;
  const text = isQuoted(rest.trim()) ? rest.trim().slice(1, -1) : rest;
  return {
    column,
    op: SAME_OPERATORS[operator] ?? /** @type {Operator} */ (operator),
    value: text,
    isExact: operator !== "=",
  };
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
 * Return the part of a filter's text that should be a number but is not; undefined if the filter is valid.
 *
 * @param {Filter} filter
 * @param {Column[]} columns
 */
function faultOf(filter, columns) {
  const { column, op, value, isExact } = parseFilter(filter);
  if (column === null || !columns[column].right || op === "contains" || op.endsWith("null")) return undefined;
  const ends = isExact ? [value] : value.split("..").filter((end, _, all) => end.trim() || all.length === 1);
  const wrong = ends.find((end) => !/^nan$/i.test(end.trim()) && Number.isNaN(parseNumber(end)));
  return wrong === undefined ? undefined : wrong.trim();
}

/**
 * Return whether a comparison is true for two values that are in a certain order.
 *
 * @param {Operator} op
 * @param {number} order Negative if the first value is less, positive if it is greater, NaN if they have no order.
 */
function holds(op, order) {
  if (op === "=") return order === 0;
  if (op === "!=") return order !== 0;
  if (op[0] === "<") return op === "<" ? order < 0 : order <= 0;
  return op === ">" ? order > 0 : order >= 0;
}

/**
 * Return how two numbers are ordered; NaN if one of them is NaN.
 *
 * @param {number | bigint} a
 * @param {number | bigint} b
 */
function numberOrder(a, b) {
  if (a < b) return -1;
  if (a > b) return 1;
  return a == b ? 0 : NaN; // `==`, not `===`, because 1n and 1 are equal
}

/**
 * Return whether a row passes a filter.
 *
 * @param {SavedTable} table
 * @param {number} at The index of the row.
 * @param {Filter} filter
 * @returns {boolean}
 */
function passes({ columns, rows, texts }, at, filter) {
  const { column, op, value, isExact } = parseFilter(filter);
  const row = rows[at];
  const shown = (/** @type {number} */ place) => texts?.[place]?.[at] ?? null;
  if (column === null) return row.some((cell, place) => contains(cell, value) || contains(shown(place), value));
  const cell = row[column];
  if (op === "null") return cell === null;
  if (op === "not null") return cell !== null;
  if (cell === null) return false;
  const isNumber = columns[column].right;
  const [low, high] = value.split("..");
  if (isNumber && !isExact && high !== undefined) {
    const number = parseNumber(cell);
    return (!low.trim() || holds(">=", numberOrder(number, parseNumber(low)))) &&
      (!high.trim() || holds("<=", numberOrder(number, parseNumber(high))));
  }
  if (op === "contains") return contains(cell, value) || contains(shown(column), value);
  if (isNumber) return holds(op, numberOrder(parseNumber(cell), parseNumber(value)));
  const isSame = [cell, shown(column)].some((text) => text?.toLowerCase() === value.toLowerCase());
  if (op === "=" || op === "!=") return isSame === (op === "=");
  return holds(op, compare(cell, value));
}

/**
 * Return the indexes of the rows that pass a query's filters, in the query's order. Nulls come last.
 *
 * @param {SavedTable} table
 * @param {Pick<Query, "sort" | "filters">} query
 * @returns {number[]}
 */
function matchingRows(table, { sort, filters = [] }) {
  const { columns, rows } = table;
  const found = [...rows.keys()].filter((i) => filters.every((filter) => passes(table, i, filter)));
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
 * @param {number} [size] The number of rows of a page.
 * @returns {Page}
 */
export function answerQuery(found, query, size = 50) {
  const { text, columns, rows, texts, bars, first, nodes = [], total, above, none, lacks } = found;
  const { n = 0, of = "", table = "", sort = null, filters: asked = [], columns: wanted, node } = query;
  if (text !== undefined) return { n, of, table, sort, filters: asked, text };
  const faults = asked.map((filter) => faultOf(filter, columns));
  const filters = asked.filter((_, i) => faults[i] === undefined);
  const fault = faults.find((one) => one !== undefined);
  const request = { n, of, table, sort, filters };
  const refused = fault === undefined
    ? {}
    : { refused: `“${fault.slice(0, MOST_QUOTED)}” is not a number`, unfinished: BEGUN.test(fault) };
  const matching = matchingRows(found, { sort, filters });
  const pages = Math.max(1, Math.ceil(matching.length / size));
  const rowOfNode = matching.findIndex((i) => node && nodes[i] === node);
  const page = clamp(0, rowOfNode < 0 ? query.page ?? 0 : Math.floor(rowOfNode / size), pages - 1);
  const shown = wanted ?? first ?? [...columns.keys()].slice(0, MOST_COLUMNS);
  const inPage = matching.slice(page * size, (page + 1) * size);
  /** @type {<T>(all?: Record<string, T[]>) => Record<string, T[]>} */
  const pick = (all = {}) =>
    Object.fromEntries(Object.entries(all).map(([place, values]) => [place, inPage.map((i) => values[i])]));
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
    ...refused,
    rows: inPage.map((i) => shown.map((column) => rows[i][column])),
    texts: pick(texts),
    bars: pick(bars),
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
