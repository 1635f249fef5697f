// The logic of grids: filters that are typed, sorting, page ranges, and what is copied.

import { strict as assert } from "node:assert";

import { hasDisarmed, isComplete } from "../../iceexplore/widgets/static/export.js";
import { exactText, nextSort, rangeText } from "../../iceexplore/widgets/static/grid.js";
import { filterText, operatorText } from "../../iceexplore/widgets/static/gridFilters.js";

Deno.test("a filter is shown with its column and operator", () => {
  const columns = [{ name: "id" }, { name: "city" }];
  assert.equal(filterText({ column: 1, op: "contains", value: "Oslo" }, columns), "city contains Oslo");
  assert.equal(filterText({ column: 0, op: "not null", value: "ignored" }, columns), "id is not null");
  assert.equal(filterText({ column: null, op: "contains", value: "x" }, columns), "any column contains x");
  assert.equal(filterText({ column: 9, op: "=", value: "x" }, columns), "= x");
  assert.equal(operatorText("null"), "is null");
});

Deno.test("clicks on a column sort ascending, descending, not at all", () => {
  assert.deepEqual(nextSort(null, 2), [2, "asc"]);
  assert.deepEqual(nextSort([2, "asc"], 2), [2, "desc"]);
  assert.equal(nextSort([2, "desc"], 2), null);
  assert.deepEqual(nextSort([1, "desc"], 2), [2, "asc"]);
});

Deno.test("the range names rows of several pages, and rows that filters hide", () => {
  const page = { page: 0, pages: 1, size: 50, total: 1, whole: 1, rows: [["a"]] };
  assert.equal(rangeText(page), "1 row");
  const last = { page: 20, pages: 21, size: 50, total: 1003, whole: 5000, rows: [["a"], ["b"], ["c"]] };
  assert.equal(rangeText(last), "1,001–1,003 of 1,003 rows (of 5,000)");
  const first = { ...page, preview: "preview: the first that match" };
  assert.equal(rangeText(first), "1 row, preview: the first that match");
});

Deno.test("a cell is copied as it is only if it is complete and has no signs for control characters", () => {
  assert.ok(isComplete("plain"));
  assert.ok(!isComplete("x".repeat(300)));
  assert.ok(!isComplete("line\u240afeed"));
  assert.ok(!isComplete("\u27e8U+202E\u27e9"));
});

Deno.test("disarmed formulas are recognized in CSV, apostrophes in texts are not", () => {
  assert.ok(hasDisarmed("id,name\r\n1,'=cmd\r\n"));
  assert.ok(hasDisarmed('"\'=a,b"'));
  assert.ok(!hasDisarmed("id,name\r\n1,it's\r\n2,'quoted'\r\n"));
});

Deno.test("a cell that does not show its exact value has it as a tooltip", () => {
  assert.equal(exactText("2268", "2.2 KiB", "bytes"), "2,268 bytes");
  assert.equal(exactText("9223372036854775807", "8,388,608.0 TiB", "bytes"), "9,223,372,036,854,775,807 bytes");
  assert.equal(exactText("-1500", "-1.5 s", "ms"), "-1,500 ms");
  assert.equal(exactText("1234", "1,234"), "");
  assert.equal(exactText("0", "data"), "0");
  assert.equal(exactText("short", "short"), "");
  assert.equal(exactText("x".repeat(21), "x".repeat(21)), "x".repeat(21), "it may not fit");
});
