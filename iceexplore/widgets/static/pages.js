// Pages of a table that is all here: what Python answers to a grid's query, without Python.

import { clamp } from "./dom.js";

// Numbers as BigInt where they are whole, so that no digit of an id is lost.
function number(text) {
  const plain = text.replaceAll(",", "").trim();
  return /^[+-]?\d+$/.test(plain) ? BigInt(plain) : plain === "" ? NaN : Number(plain);
}
const lower = (text) => text.toLowerCase();
const contains = (cell, text) => cell !== null && lower(cell).includes(lower(text));
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

const tests = { "=": (a, b) => a == b, "<": (a, b) => a < b, ">": (a, b) => a > b };

function passes(row, { column, op, value }, columns) {
  if (column === null) return row.some((cell) => contains(cell, value));
  const cell = row[column];
  if (op.endsWith("null")) return (cell === null) === (op === "null");
  if (op === "contains") return contains(cell, value);
  const read = columns[column].right ? number : op === "=" ? lower : String;
  return cell !== null && tests[op](read(cell), read(value));
}

// The rows that pass a query's filters, by their places, in its order; null comes last.
function places({ columns, rows }, { sort, filters = [] }) {
  const found = [...rows.keys()].filter((i) => filters.every((filter) => passes(rows[i], filter, columns)));
  if (!sort) return found;
  const [column, way] = sort;
  const read = columns[column].right ? number : String;
  const compare = (a, b) => (a === null || b === null ? (a === null) - (b === null) : order(read(a), read(b)) * (way === "asc" ? 1 : -1));
  return found.sort((a, b) => compare(rows[a][column], rows[b][column]));
}

// The answer to a query, as `GridPart` documents it. `found`: `text`, or `columns` ({name, right, doc}), `rows` (text or
// null, all columns), `nodes` (a node or null for each row, may be left out), `total` (rows that the table has, if more
// than here), `none` (what is said where it has none).
export function answer(found, query, size = 50) {
  const { text, columns, rows, nodes = [], total, none } = found;
  const { n = 0, of, table, sort = null, filters = [], columns: wanted, node } = query;
  const asked = { n, of, table, sort, filters };
  if (text !== undefined) return { ...asked, text };
  const all = places(found, query);
  const pages = Math.max(1, Math.ceil(all.length / size));
  const row = all.findIndex((i) => node && nodes[i] === node);
  const page = clamp(0, row < 0 ? query.page ?? 0 : Math.floor(row / size), pages - 1);
  const shown = wanted ?? [...columns.keys()].slice(0, 60);
  const here = all.slice(page * size, (page + 1) * size);
  return {
    ...asked, columns, shown, page, pages, size, total: all.length, whole: total, none,
    rows: here.map((i) => shown.map((column) => rows[i][column])),
    nodes: here.map((i) => nodes[i] ?? null),
  };
}

// The answer to a grid's message, which wants a cell, a row as JSON, or all rows as CSV.
export function whole(found, { grid, n, want, row, column, ...query }) {
  const { columns, rows } = found;
  const all = places(found, query);
  const here = rows[all[row]];
  if (want === "cell") return { grid, n, text: here[column] };
  if (want === "row") return { grid, n, text: JSON.stringify(Object.fromEntries(columns.map(({ name }, i) => [name, here[i]])), null, 2) };
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (text, right) => quoted(text === null ? "" : !right && /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? "'" + text : text); // no formula
  const lines = [columns.map(({ name }) => cell(name)), ...all.map((i) => rows[i].map((text, c) => cell(text, columns[c].right)))];
  return { grid, n, text: lines.map((line) => line.join(",") + "\r\n").join(""), next: null, total: all.length, most: Infinity };
}
