// Small functions of the views: formats, paths, keys, and what is shown of the timeline, the labs and deletes.

import { strict as assert } from "node:assert";

import { fieldValue, fieldValues, isFieldHidden } from "../../iceexplore/widgets/static/commit.js";
import { nextTab } from "../../iceexplore/widgets/static/controls.js";
import { isCopied } from "../../iceexplore/widgets/static/detail.js";
import { clamp, classesOf, formatCount, plural, sameJson, shortenPath } from "../../iceexplore/widgets/static/dom.js";
import { fitText } from "../../iceexplore/widgets/static/painting.js";
import { errorToShow, nextChoice } from "../../iceexplore/widgets/static/filterBox.js";
import { snapshotPositions } from "../../iceexplore/widgets/static/timelineScale.js";
import { barHeight, thinned } from "../../iceexplore/widgets/static/timelinePainter.js";
import { describeSquare, squareSize } from "../../iceexplore/widgets/static/vectors.js";

/** @import { FormField, Snapshot } from "../../iceexplore/widgets/static/types.d.ts" */

Deno.test("classes get a prefix, wherever they are given", () => {
  assert.equal(classesOf("div", null), "");
  assert.equal(classesOf("div.wide.pale", "on end"), "ice-wide ice-pale ice-on ice-end");
  assert.equal(classesOf("span", false), "");
});

Deno.test("counts have commas, and a noun in the plural", () => {
  assert.equal(formatCount(1234567), "1,234,567");
  assert.equal(formatCount(9007199254740993n), "9,007,199,254,740,993");
  assert.deepEqual([plural(0, "row"), plural(1, "row"), plural(1n, "row"), plural(2000, "row")], [
    "0 rows",
    "1 row",
    "1 row",
    "2,000 rows",
  ]);
});

Deno.test("a number is clamped, and where there is no room the lower end counts", () => {
  assert.deepEqual([clamp(0, -1, 9), clamp(0, 10, 9), clamp(0, 5, 9), clamp(4, 5, -2)], [0, 9, 5, 4]);
});

Deno.test("long locations lose their beginning, other texts nothing", () => {
  const location = "s3://bucket/warehouse/db/table/data/00000-0-abc.parquet";
  const shortened = shortenPath(location);
  assert.equal(shortened.length, 33);
  assert.ok(shortened.startsWith("…") && location.endsWith(shortened.slice(1)));
  const sentence = "a sentence / with a slash that is longer than thirty-three characters";
  assert.equal(shortenPath(sentence), sentence);
  assert.equal(shortenPath("s3://short"), "s3://short");
});

Deno.test("JSON values are compared as a whole", () => {
  assert.ok(sameJson({ a: [1, null] }, { a: [1, null] }));
  assert.ok(!sameJson([1], ["1"]));
});

Deno.test("arrows go round the tabs, Home and End to the ends", () => {
  assert.deepEqual([nextTab("ArrowRight", 2, 3), nextTab("ArrowLeft", 0, 3)], [0, 2]);
  assert.deepEqual([nextTab("Home", 2, 3), nextTab("End", 0, 3), nextTab("x", 0, 3)], [0, 2, undefined]);
});

Deno.test("ids and locations can be copied, other fields need not", () => {
  assert.ok(isCopied("snapshot-id", "17"));
  assert.ok(isCopied("location", ""));
  assert.ok(isCopied("anything", "/tmp/table"));
  assert.ok(!isCopied("record_count", "17"));
  assert.ok(!isCopied("identifier", "a / b"));
});

Deno.test("a text that does not fit is cut to the longest beginning that does", () => {
  const context = {
    font: "",
    /** @param {string} text */
    measureText: (text) => /** @type {TextMetrics} */ ({ width: 10 * text.length }),
  };
  assert.equal(fitText(context, "abc", 30, "f"), "abc");
  assert.equal(fitText(context, "abcdef", 45, "f"), "abc…");
  assert.equal(fitText(context, "abcdef", 5, "f"), "…");
});

Deno.test("snapshots are evenly apart by steps, and by their time otherwise", () => {
  const at = (/** @type {number[]} */ ...times) => /** @type {Snapshot[]} */ (times.map((ms) => ({ ms })));
  assert.deepEqual(snapshotPositions(at(0, 10, 100), "steps"), [0, 0.5, 1]);
  assert.deepEqual(snapshotPositions(at(0, 10, 100), "time"), [0, 0.1, 1]);
  assert.deepEqual(snapshotPositions(at(5), "time"), [0.5]);
  assert.deepEqual(snapshotPositions(at(5, 5), "time"), [0, 1]);
});

Deno.test("bars are logarithmic, and what is not 0 is visible", () => {
  assert.equal(barHeight(0, 100, 28), 0);
  assert.equal(barHeight(100, 100, 28), 28);
  assert.equal(barHeight(1, 1e12, 28), 2);
  assert.ok(barHeight(10, 100, 28) > 10);
});

Deno.test("the choices go round, with none of them between the last and the first", () => {
  assert.deepEqual([nextChoice(-1, 1, 2), nextChoice(0, 1, 2), nextChoice(1, 1, 2)], [0, 1, -1]);
  assert.deepEqual([nextChoice(-1, -1, 2), nextChoice(0, -1, 2)], [1, -1]);
});

Deno.test("an error is shown for what is in the box, not while it is completed, nor twice", () => {
  const hint = { text: "a <", error: "the text ends", unfinished: true, start: 3, end: 3 };
  assert.equal(errorToShow(hint, "a <", false, "true"), "the text ends");
  assert.equal(errorToShow(hint, "a < 1", false, "true"), "", "of another text");
  assert.equal(errorToShow(hint, "a <", true, "true"), "", "being completed");
  assert.equal(errorToShow(hint, "a <", false, "a <"), "", "shown as the plan's");
  assert.equal(errorToShow({ ...hint, text: " " }, " ", false, undefined), "", "nothing typed");
  const wrong = { text: "a ? 1", error: "unexpected", unfinished: false, start: 5, end: 5 };
  assert.equal(errorToShow(wrong, "a ? 1", true, undefined), "unexpected", "choices at the end do not mend it");
});

Deno.test("a field has the value that was chosen if it is still offered, else its default", () => {
  /** @type {FormField} */
  const field = { of: "append", name: "files", label: "Files", default: 3 };
  assert.equal(fieldValue(field, {}), 3);
  assert.equal(fieldValue(field, { append: { files: 5 } }), 5);
  /** @type {FormField} */
  const choice = { of: "", name: "operation", label: "Operation", default: "append", choices: [["append", "Append"]] };
  assert.equal(fieldValue(choice, { operation: "gone" }), "append");
  assert.deepEqual(fieldValues([field, choice], { append: { files: 0 } }), { files: 0, operation: "append" });
});

Deno.test("a field is hidden while the field that it depends on has another value", () => {
  /** @type {FormField} */
  const by = { of: "delete", name: "by", label: "By", default: "files" };
  /** @type {FormField} */
  const where = { of: "delete", name: "where", label: "Where", default: "", when: ["by", ["filter"]] };
  assert.ok(isFieldHidden(where, [by, where], {}));
  assert.ok(!isFieldHidden(where, [by, where], { delete: { by: "filter" } }));
  assert.ok(!isFieldHidden(by, [by, where], {}));
});

Deno.test("squares of the picture of deletes are described with their positions and row group", () => {
  const picture = { cells: [0, 1, 3], width: 4, size: 10 };
  assert.equal(describeSquare({ picture, borders: [] }, 0), "Positions 0 to 3: 0 deleted (0 %)");
  assert.equal(describeSquare({ picture, borders: [0, 6] }, 2), "Positions 8 to 9: 3 deleted (150 %), row group 1");
  assert.equal(describeSquare({ picture, borders: [] }, 3), undefined);
  const single = { cells: [1, 0], width: 1, size: 2 };
  assert.equal(describeSquare({ picture: single, borders: [0] }, 0), "Position 0: deleted, row group 0");
});

Deno.test("squares are as large as the room allows, within limits", () => {
  assert.deepEqual(squareSize(600, 10), { square: 12, columns: 50 });
  assert.deepEqual(squareSize(600, 1_000_000), { square: 3, columns: 200 });
  const { square, columns } = squareSize(600, 2000);
  assert.ok(square * columns <= 600 && Math.ceil(2000 / columns) * square <= 140);
});

Deno.test("of many flags those of all parts of the timeline are tried", () => {
  const all = [...Array(1000).keys()];
  const some = thinned(all, 200);
  assert.deepEqual([some.length, some[0], some[199]], [200, 0, 995]);
  assert.deepEqual(thinned([1, 2, 3], 200), [1, 2, 3]);
});
