// The files of a snapshot as cells: their places, and how they are described.

import { strict as assert } from "node:assert";

import { cellWords, labelLines, placeCells } from "../../iceexplore/widgets/static/fileMap.js";
import { formatBytes } from "../../iceexplore/widgets/static/dom.js";

/** @import { FileCells } from "../../iceexplore/widgets/static/types.d.ts" */

Deno.test("cells are in lines right of their group's label, and groups do not overlap", () => {
  const groups = /** @type {FileCells["groups"]} */ ([["a", "", 100], ["b", "", 0], ["c", "", 3]]);
  const { cells, tops, height } = placeCells(groups, [["a"], ["b", "b"], ["c"]], 100, 300);
  assert.equal(cells.length, 103);
  assert.equal(new Set(cells.map(String)).size, 103);
  assert.ok(cells.every(([x, y]) => x >= 100 && x < 300 && y >= tops[0] && y < height));
  assert.ok(cells.slice(0, 100).every(([, y]) => y < tops[1]) && cells[100][1] === tops[2]);
  assert.ok(tops[2] - tops[1] >= 45, "two lines of a label, and its numbers");
  assert.equal(placeCells(groups, [["a"], ["b"], ["c"]], 100, 50).cells.length, 103, "where there is no room");
});

Deno.test("a long label is divided between its parts", () => {
  assert.deepEqual(labelLines("day=1, city=Oslo", 40), ["day=1, city=Oslo"]);
  assert.deepEqual(labelLines("day=2024-01-01, city=Oslo", 20), ["day=2024-01-01,", "city=Oslo"]);
  assert.deepEqual(labelLines("day=1, c=a … day=9, c=b (9 partitions)", 20), [
    "day=1, c=a",
    "… day=9, c=b (9 partitions)",
  ]);
  assert.deepEqual(labelLines("nothing-to-divide-at", 5), ["nothing-to-divide-at"]);
});

Deno.test("a cell says what its files are", () => {
  const cells = /** @type {FileCells} */ ({
    names: ["data-file", "deletion-vector"],
    kinds: "001",
    changes: "012",
    files: [1, 40, 1],
    size: [1536, 10, 44],
    rows: [1, 4000, 2],
    deleted: [125, -1, 0],
    age: [1, 0, 3],
  });
  assert.equal(cellWords(cells, 0), "data file · 1.5 KiB · 1 row · 12.5 % deleted · added 1 snapshot ago");
  assert.equal(
    cellWords(cells, 1),
    "40 data files · 10 B on average · 4,000 rows · some rows deleted · added by this snapshot",
  );
  assert.equal(cellWords(cells, 2), "deletion vector · 44 B · 2 rows · removed by this snapshot");
  assert.deepEqual([0, 1023, 1024, 6348, 63.7 * 1024 ** 4].map(formatBytes), [
    "0 B",
    "1,023 B",
    "1.0 KiB",
    "6.2 KiB",
    "63.7 TiB",
  ]);
  assert.equal(formatBytes(5 * 1024 ** 6), "5242880.0 TiB");
});
