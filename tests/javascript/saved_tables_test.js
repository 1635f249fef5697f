// Queries in a saved page: what Python would answer, from all rows of a table.

import { strict as assert } from "node:assert";

import { answerMessage, answerQuery } from "../../iceexplore/widgets/static/savedTables.js";

/** @import { Filter, Operator, SavedTable, Sort, TablePage } from "../../iceexplore/widgets/static/types.d.ts" */

/** @type {SavedTable} */
const TABLE = {
  columns: [{ name: "id", right: true }, { name: "city" }],
  rows: [["9,007,199,254,740,993", "Oslo"], ["9,007,199,254,740,992", null], ["-5", "oslo"], [null, "Rome"]],
  nodes: ["a", "b", "c", null],
  total: 4,
};

/**
 * @param {import("../../iceexplore/widgets/static/types.d.ts").Query} query
 * @param {number} [size]
 */
function page(query, size) {
  return /** @type {TablePage} */ (answerQuery(TABLE, { of: "x", table: "t", ...query }, size));
}

/**
 * @param {number | null} column
 * @param {Operator} op
 * @param {string} value
 * @returns {(string | null)[]} The nodes of the rows that pass.
 */
function passing(column, op, value) {
  return page({ filters: [{ column, op, value }] }).nodes;
}

Deno.test("ids beyond 2 ** 53 are compared to the last digit", () => {
  assert.deepEqual(passing(0, "=", "9007199254740993"), ["a"]);
  assert.deepEqual(passing(0, ">", "9007199254740992"), ["a"]);
  assert.deepEqual(passing(0, "<", "-4.5"), ["c"]);
});

Deno.test("text is compared in any case by = and contains, and a null passes neither", () => {
  assert.deepEqual(passing(1, "=", "OSLO"), ["a", "c"]);
  assert.deepEqual(passing(1, "contains", "om"), [null]);
  assert.deepEqual(passing(null, "contains", "OS"), ["a", "c"]);
  assert.deepEqual(passing(1, "<", "Z"), ["a", null]);
});

Deno.test("nulls are found by their own operators", () => {
  assert.deepEqual(passing(1, "null", ""), ["b"]);
  assert.deepEqual(passing(0, "not null", ""), ["a", "b", "c"]);
});

Deno.test("nulls sort last in either direction", () => {
  assert.deepEqual(page({ sort: [0, "asc"] }).nodes, ["c", "b", "a", null]);
  assert.deepEqual(page({ sort: [0, "desc"] }).nodes, ["a", "b", "c", null]);
});

Deno.test("a page is clamped, and found by the node of a row", () => {
  const last = page({ page: 99 }, 3);
  assert.deepEqual([last.page, last.pages, last.nodes], [1, 2, [null]]);
  assert.deepEqual(page({ node: "c" }, 1).nodes, ["c"]);
  assert.equal(page({ node: "nowhere", page: 1 }, 1).page, 1);
  const none = page({ filters: [{ column: 1, op: "=", value: "Paris" }] });
  assert.deepEqual([none.page, none.pages, none.total, none.whole, none.rows], [0, 1, 0, 4, []]);
});

Deno.test("a table that may lack rows says so on every page", () => {
  const lacking = { ...TABLE, lacks: "Rows may be missing." };
  const shown = /** @type {TablePage} */ (answerQuery(lacking, { of: "x", table: "t", page: 1 }, 2));
  assert.equal(shown.lacks, "Rows may be missing.");
});

Deno.test("columns can be chosen", () => {
  assert.deepEqual(page({ columns: [1] }, 1).rows, [["Oslo"]]);
});

Deno.test("text that is no table is passed on", () => {
  const json = answerQuery({ columns: [], rows: [], text: "{}" }, { n: 3, of: "x", table: "json" });
  assert.deepEqual(json, { n: 3, of: "x", table: "json", sort: null, filters: [], text: "{}" });
});

Deno.test("a cell and a row are those of the order shown", () => {
  const shown = { grid: "g", n: 1, of: "x", table: "t", sort: /** @type {[number, "asc"]} */ ([0, "asc"]) };
  assert.equal(answerMessage(TABLE, { ...shown, want: "cell", row: 0, column: 1 }).text, "oslo");
  assert.deepEqual(JSON.parse(answerMessage(TABLE, { ...shown, want: "row", row: 3 }).text), {
    id: null,
    city: "Rome",
  });
});

Deno.test("CSV quotes what must be quoted and disarms formulas, but not numbers", () => {
  const rows = [["-1", "=cmd"], ["2", 'say "hi", twice'], [null, "\uff1dwide"]];
  const columns = [{ name: "n", right: true }, { name: "+text" }];
  const { text, next, total } = answerMessage({ columns, rows }, {
    grid: "g",
    n: 1,
    want: "csv",
    of: "",
    table: "",
    row: 0,
  });
  assert.equal(text, 'n,\'+text\r\n-1,\'=cmd\r\n2,"say ""hi"", twice"\r\n,\'\uff1dwide\r\n');
  assert.deepEqual([next, total], [null, 3]);
});

/** A table whose sizes and codes are shown in other words. */
const FILES = {
  columns: [{ name: "path", head: true }, { name: "size", right: true, unit: "bytes" }, { name: "content" }],
  rows: [["b", "900000", "0"], ["a", "1000000", "1"], ["= c", "67108864", "0"], ["d", null, null]],
  texts: { 1: ["878.9 KiB", "976.6 KiB", "64.0 MiB", null], 2: ["data", "deletes", "data", null] },
  bars: { 1: [1, 1, 100, null] },
  first: [0, 1],
};

/** @type {(op: Operator, value: string, column?: number | null) => (string | null)[]} */
function pathsOf(op, value, column = 1) {
  const query = { of: "x", table: "t", filters: [{ column, op, value }] };
  return /** @type {TablePage} */ (answerQuery(FILES, query)).rows.map(([path]) => path);
}

Deno.test("essential columns are shown first, with the texts and bars of their rows", () => {
  const query = { of: "x", table: "t", sort: /** @type {Sort} */ ([0, "asc"]) };
  const shown = /** @type {TablePage} */ (answerQuery(FILES, query));
  assert.deepEqual(shown.shown, [0, 1]);
  assert.deepEqual(shown.rows.map(([path]) => path), ["= c", "a", "b", "d"]);
  assert.deepEqual(shown.texts?.[1], ["64.0 MiB", "976.6 KiB", "878.9 KiB", null]);
  assert.deepEqual(shown.bars?.[1], [100, 1, 1, null]);
  const chosen = /** @type {TablePage} */ (answerQuery(FILES, { ...query, columns: [2] }));
  assert.deepEqual(chosen.rows, [["0"], ["1"], ["0"], [null]]);
});

Deno.test("a saved page understands operators, units and ranges as Python does", () => {
  assert.deepEqual(pathsOf("=", "< 1 MB"), ["b"]);
  assert.deepEqual(pathsOf("contains", ">= 64 MiB"), ["= c"]);
  assert.deepEqual(pathsOf("=", "1000k"), ["a"]);
  assert.deepEqual(pathsOf("=", "900k..1M"), ["b", "a"]);
  assert.deepEqual(pathsOf("=", "..1M"), ["b", "a"]);
  assert.deepEqual(pathsOf("<=", "1 MB"), ["b", "a"]);
  assert.deepEqual(pathsOf("!=", "1000000"), ["b", "= c"]);
  assert.deepEqual(pathsOf("contains", "!= a", 0), ["b", "= c", "d"]);
  assert.deepEqual(pathsOf("contains", '"= c"', 0), ["= c"]);
  assert.deepEqual(pathsOf("=", "data", 2), ["b", "= c"]);
  assert.deepEqual(pathsOf("=", "0", 2), ["b", "= c"]);
  assert.deepEqual(pathsOf("contains", "deletes", null), ["a"]);
  for (
    const [value, refused, unfinished] of [["1x", "“1x” is not a number", false], [
      "1e-",
      "“1e-” is not a number",
      true,
    ]]
  ) {
    const query = {
      of: "x",
      table: "t",
      filters: [{ column: 1, op: /** @type {Operator} */ ("<"), value: String(value) }],
    };
    const page = /** @type {TablePage} */ (answerQuery(FILES, query));
    assert.deepEqual([page.refused, page.unfinished, page.filters, page.total], [refused, unfinished, [], 4]);
  }
});
