// Queries in a saved page: what Python would answer, from all rows of a table.

import { strict as assert } from "node:assert";

import { answerMessage, answerQuery } from "../../iceexplore/widgets/static/savedTables.js";

/** @import { Filter, Operator, SavedTable, TablePage } from "../../iceexplore/widgets/static/types.d.ts" */

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

Deno.test("the column that names the rows is shown first", () => {
  const named = { columns: [{ name: "content" }, { name: "path", head: true }], rows: [["0", "a"], ["1", "b"]] };
  const shown = /** @type {TablePage} */ (answerQuery(named, { of: "x", table: "t" }));
  assert.deepEqual([shown.shown, shown.rows], [[1, 0], [["a", "0"], ["b", "1"]]]);
  const chosen = /** @type {TablePage} */ (answerQuery(named, { of: "x", table: "t", columns: [0] }));
  assert.deepEqual(chosen.rows, [["0"], ["1"]]);
});
