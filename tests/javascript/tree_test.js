// The logic of trees: where cards are, which rows are visible, paths, and the search.

import { strict as assert } from "node:assert";

import { arrange, CARD } from "../../iceexplore/widgets/static/arrangement.js";
import { cellId } from "../../iceexplore/widgets/static/treeCanvas.js";
import { fewWords } from "../../iceexplore/widgets/static/treeCards.js";
import { findTyped } from "../../iceexplore/widgets/static/treeRows.js";
import { describeHits, matchingNodes } from "../../iceexplore/widgets/static/treeSearch.js";
import { parentsOf, pathTo } from "../../iceexplore/widgets/static/treeView.js";

/** @import { Nodes, TreeNode, TreeRow } from "../../iceexplore/widgets/static/types.d.ts" */

/**
 * @param {Partial<TreeNode>} [more]
 * @returns {TreeNode}
 */
function node(more) {
  return { kind: "data-file", label: "label", note: "", marks: [], leaf: true, children: null, ...more };
}

/**
 * @param {number} count
 * @returns {{ nodes: Nodes, ids: string[] }} A root `r` with so many leaves.
 */
function fan(count) {
  const ids = Array.from({ length: count }, (_, i) => `leaf${i}`);
  const leaves = Object.fromEntries(ids.map((id) => [id, node()]));
  return { nodes: { r: node({ leaf: false, children: ids }), ...leaves }, ids };
}

/** @param {TreeRow[]} rows */
function overlaps(rows) {
  return rows.some((a, i) =>
    rows.slice(i + 1).some((b) =>
      a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
    )
  );
}

Deno.test("only what is unfolded is visible, in the order of the tree", () => {
  const nodes = {
    a: node({ leaf: false, children: ["b", "c"] }),
    b: node({ leaf: false, children: ["d"] }),
    c: node(),
    d: node(),
    z: node(),
  };
  assert.deepEqual(arrange(nodes, ["a", "z"], []).rows.map(({ id }) => id), ["a", "z"]);
  const { rows, byId } = arrange(nodes, ["a", "z"], ["a", "b"]);
  assert.deepEqual(rows.map(({ id, level }) => [id, level]), [["a", 1], ["b", 2], ["d", 3], ["c", 2], ["z", 1]]);
  const c = byId.get("c");
  assert.deepEqual([c?.parent, c?.index, c?.of, c?.open], ["a", 1, 2, false]);
});

Deno.test("children are right of their parent, and no cards overlap", () => {
  for (const count of [1, 2, 8, 9, 30, 400]) {
    const { nodes } = fan(count);
    const { rows, byId, width, height } = arrange(nodes, ["r"], ["r"]);
    const root = byId.get("r");
    assert.ok(root);
    assert.ok(rows.every(({ id, x }) => id === "r" || x > root.x + root.width));
    assert.ok(!overlaps(rows), `${count} leaves`);
    assert.ok(rows.every((row) => row.x + row.width <= width && row.y + row.height <= height));
  }
});

Deno.test("nine leaves and more are a block of columns, which contains them", () => {
  assert.equal(arrange(fan(8).nodes, ["r"], ["r"]).blocks.length, 0);
  const { blocks, rows } = arrange(fan(9).nodes, ["r"], ["r"]);
  assert.equal(blocks.length, 1);
  const [block] = blocks;
  assert.equal(block.parent?.id, "r");
  for (const row of rows.filter(({ id }) => id !== "r")) {
    assert.ok(row.inBlock);
    assert.ok(row.x >= block.x && row.x + row.width <= block.x + block.width + 1e-6);
    assert.ok(row.y >= block.y && row.y + CARD.height <= block.y + block.height + 1e-6);
  }
});

Deno.test("of more than thirty leaves those that changed are cards first, and the others cells", () => {
  assert.ok(arrange(fan(30).nodes, ["r"], ["r"]).rows.every(({ isCell }) => !isCell));
  const { nodes, ids } = fan(110);
  nodes.leaf90.marks = ["added"];
  nodes.leaf80.marks = ["removed", "carried"];
  nodes["more:r"] = node({
    kind: "more",
    cells: {
      names: ["data-file", "data-manifest"],
      kinds: "01".repeat(50),
      shades: "3".repeat(100),
      changes: "0".repeat(100),
      below: "7",
      rows: Array.from({ length: 100 }, (_, i) => 100 + i),
    },
  });
  nodes.r.children = [...ids, "more:r"];
  const { rows, byId, width, height } = arrange(nodes, ["r"], ["r"]);
  const cards = rows.filter(({ isCell }) => !isCell).map(({ id }) => id);
  assert.deepEqual(cards, ["r", ...ids.slice(0, 11), "leaf90", "more:r"]);
  assert.ok(!overlaps(rows));
  assert.ok(height < 700 && rows.every((row) => row.x + row.width <= width && row.y + row.height <= height));
  const more = byId.get("more:r");
  assert.ok(more && more.height > 4 * CARD.height / 2);
  assert.deepEqual([cellId(more.node, 0), cellId(more.node, 1)], ["file:7:100", "manifest:7:101"]);
  for (const id of ids) nodes[id].marks = ["added"];
  assert.equal(arrange(nodes, ["r"], ["r"]).rows.filter(({ isCell }) => !isCell).length, 1 + 12 + 1);
});

Deno.test("columns have the heading of most of their nodes, and span their blocks", () => {
  const looks = { "data-file": "Files", "data-manifest": "Manifests", "root-manifest": "Root", more: "" };
  const styles = Object.fromEntries(
    Object.entries(looks).map(([kind, layer]) => [kind, { light: "", dark: "", layer }]),
  );
  const { nodes, ids } = fan(9);
  nodes.r.kind = "root-manifest";
  nodes.leaf1.kind = "more";
  const titles = () => arrange(nodes, ["r"], ["r"], styles).columns.map(({ title }) => title);
  assert.deepEqual(titles(), ["Root", "Files"]);
  const { columns, byId, width } = arrange(nodes, ["r"], ["r"], styles);
  assert.deepEqual([columns[1].x, columns[1].x + columns[1].width], [byId.get("leaf0")?.x, width]);
  nodes.leaf2.kind = "data-manifest";
  assert.deepEqual(titles(), ["Root", "Manifests and files"]);
  for (const id of ids) nodes[id].kind = "more";
  assert.deepEqual(titles(), ["Root", ""]);
});

Deno.test("where there is little room, a card has the words that tell it apart", () => {
  assert.equal(fewWords(node({ label: "Snapshot 7137…6493" })), "7137…6493");
  const file = node({ label: "a.parquet", title: "60 rows · 4 deleted", note: "day=2024-03-06, city=Oslo" });
  assert.equal(fewWords(file), "2024-03-06, Oslo · 60 rows · 4 deleted");
  assert.equal(fewWords({ ...file, note: "" }), "60 rows · 4 deleted");
  const vector = { ...file, kind: "deletion-vector", title: "1,004 deleted in a.parquet" };
  assert.equal(fewWords(vector), "−1,004 · 2024-03-06, Oslo");
  assert.equal(fewWords({ ...vector, note: "" }), "1,004 deleted in a.parquet");
  assert.equal(fewWords({ ...file, kind: "data-manifest" }), "60 rows · 4 deleted");
});

Deno.test("damaged data that goes in circles, or names what is missing, is shown once", () => {
  const nodes = { a: node({ leaf: false, children: ["b", "gone"] }), b: node({ leaf: false, children: ["a", "b"] }) };
  const { rows } = arrange(nodes, ["a", "gone"], ["a", "b"]);
  assert.deepEqual(rows.map(({ id, of }) => [id, of]), [["a", 1], ["b", 1]]);
});

Deno.test("a card is as wide as its texts need, within limits", () => {
  const widthOf = (/** @type {string} */ label) => arrange({ a: node({ label }) }, ["a"], []).rows[0].width;
  assert.equal(widthOf(""), CARD.narrowest);
  assert.equal(widthOf("x".repeat(500)), CARD.widest);
  assert.ok(widthOf("x".repeat(15)) > CARD.narrowest && widthOf("x".repeat(15)) < CARD.widest);
});

Deno.test("the path to a node begins at its root, and ends in circles", () => {
  const nodes = { a: node({ children: ["b"] }), b: node({ children: ["c"] }), c: node() };
  const parents = parentsOf(nodes);
  assert.deepEqual(pathTo("c", nodes, parents), ["a", "b", "c"]);
  assert.deepEqual(pathTo("gone", nodes, parents), []);
  const circle = { a: node({ children: ["b"] }), b: node({ children: ["a"] }) };
  assert.deepEqual(pathTo("a", circle, parentsOf(circle)), ["b", "a"]);
});

Deno.test("a letter goes on to the next row, a longer word may be that of the row itself", () => {
  const rows = arrange(
    { a: node({ label: "Apple" }), b: node({ label: "Bean" }), c: node({ label: "apricot" }) },
    ["a", "b", "c"],
    [],
  ).rows;
  assert.equal(findTyped(rows, 0, "a")?.id, "c");
  assert.equal(findTyped(rows, 2, "a")?.id, "a");
  assert.equal(findTyped(rows, 0, "ap")?.id, "a");
  assert.equal(findTyped(rows, 0, "apr")?.id, "c");
  assert.equal(findTyped(rows, 0, "x"), undefined);
});

Deno.test("a search looks at id, label, note and tooltip, not at nodes that only offer more", () => {
  const nodes = {
    "file:1": node({ label: "one" }),
    "file:2": node({ note: "ONE row" }),
    "file:3": node({ tooltip: "s3://one" }),
    "more:1": node({ kind: "more", label: "one more" }),
    "file:4": node(),
  };
  assert.deepEqual(matchingNodes(nodes, "one"), ["file:1", "file:2", "file:3"]);
  assert.deepEqual(matchingNodes(nodes, "file:4"), ["file:4"]);
});

Deno.test("a search says how many matches there are, which one is shown, and whether it goes on", () => {
  assert.equal(describeHits(0, -1, {}), "no matches");
  assert.equal(describeHits(0, -1, { busy: true }), " …");
  assert.equal(describeHits(1200, -1, { more: true }), "1,200+ found");
  assert.equal(describeHits(3, 1, { busy: true }), "2 of 3 …");
});
