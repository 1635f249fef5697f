// The range map: what is lit, counted and planned while the edges of a filter are dragged.

import { strict as assert } from "node:assert";

import { cellSpan, isLit, litSum, rangeFilter } from "../../iceexplore/widgets/static/ranges.js";

/** @import { RangeAnswer } from "../../iceexplore/widgets/static/types.d.ts" */

/** Stops 10, 20 and 30: files of 10 to 15, of 15 to 16, of 20 to 30, and one that another condition rules out. */
const range = /** @type {RangeAnswer} */ (/** @type {Partial<RangeAnswer>} */ ({
  positions: [0.1, 0.5, 0.9],
  rest: "b = 'x'",
  lows: ["a >= 10", "a >= 20", "a >= 30"],
  highs: ["a <= 10", "a <= 20", "a <= 30"],
  cells: {
    rows: 4,
    row: [0, 1, 2, 3],
    first: [0, 1, 1, 0],
    last: [1, 1, 3, 3],
    state: [1, 1, 1, 4],
    open: [1, 1, 1, 0],
    count: [1, 2, 1, 5],
    size: [10, 20, 30, 500],
  },
  strips: [["No bounds", [0, 3], 3, 7]],
}));

Deno.test("a file is lit where neither edge rules it out", () => {
  /** @type {(lower: number | null, upper: number | null) => boolean[]} */
  const lit = (lower, upper) => range.cells.row.map((_, i) => isLit(range.cells, i, [lower, upper]));
  assert.deepEqual(lit(null, null), [true, true, true, false]);
  assert.deepEqual(lit(0, 0), [true, false, false, false]);
  assert.deepEqual(lit(1, null), [false, false, true, false]);
  assert.deepEqual(lit(null, 1), [true, true, true, false]);
});

Deno.test("files without bounds count wherever the edges are", () => {
  assert.deepEqual(litSum(range, [null, null]), [7, 67]);
  assert.deepEqual(litSum(range, [2, 2]), [4, 37]);
});

Deno.test("the edges come before the other conditions, and no condition is true", () => {
  assert.equal(rangeFilter(range, [0, 2]), "a >= 10 and a <= 30 and b = 'x'");
  assert.equal(rangeFilter(range, [null, 1]), "a <= 20 and b = 'x'");
  assert.equal(rangeFilter({ ...range, rest: "" }, [null, null]), "true");
});

Deno.test("a range between two stops is drawn between them, and touches the filter's only if it is lit", () => {
  assert.deepEqual(cellSpan(range.positions, 1, 3), [0.5, 0.9]);
  assert.deepEqual(cellSpan(range.positions, 0, 1), [0.1, 0.1]);
  assert.deepEqual(cellSpan(range.positions, 1, 1), [0.3, 0.3]);
});
