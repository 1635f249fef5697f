// The timeline's arithmetic: dates on the axis, bins, the jump box and the filter.

import { strict as assert } from "node:assert";

import { totalWords } from "../../iceexplore/widgets/static/timeline.js";

import {
  binsOf,
  binWords,
  dateTicks,
  findSnapshot,
  matchesFilter,
  snapshotPositions,
  timeTicks,
  visibleRange,
} from "../../iceexplore/widgets/static/timelineScale.js";

/** @import { Snapshot } from "../../iceexplore/widgets/static/types.d.ts" */

/**
 * @param {Partial<Snapshot>} [more]
 * @returns {Snapshot}
 */
function snapshot(more) {
  return {
    id: "1",
    time: "",
    ms: 0,
    operation: "append",
    refs: [],
    branches: 0,
    lane: 0,
    parent: -1,
    reached: true,
    rows: [1, 0],
    files: [1, 0],
    bytes: [1, 0],
    totals: [1, 1, 0, 1, 1],
    by: 0,
    words: "",
    ...more,
  };
}
const DAYS = Array.from(
  { length: 100 },
  (_, i) => snapshot({ id: `7${String(i).padStart(18, "0")}`, ms: Date.UTC(2026, 0, 1 + i, 12) }),
);
DAYS[40].refs = ["Release"];
DAYS[99].refs = ["main"];

Deno.test("the jump box knows ids, refs, dates, numbers and words", () => {
  const cases = /** @type {[string, number][]} */ ([
    ["latest", 99],
    [" First ", 0],
    ["main", 99],
    ["release", 40],
    ["17", 16],
    ["#100", 99],
    ["101", -1],
    [DAYS[5].id, 5],
    [DAYS[5].id.slice(0, 18), -1], // ten ids begin like this
    ["2026-01-03", 2],
    ["2026-02", 31],
    ["2026-01-03 11", 1], // nothing in that hour: the last one before it
    ["2026-01-03T12:00", 2],
    ["2026-01-03 12:00:00", 2],
    ["2026", 0],
    ["2027", 99],
    ["2025", -1],
    ["2026-13", -1],
    ["2026-02-31x", -1],
    ["no such ref", -1],
    ["", -1],
    ["constructor", -1],
  ]);
  for (const [text, expected] of cases) assert.equal(findSnapshot(DAYS, text), expected, text);
  assert.equal(findSnapshot([snapshot({ id: "123456789" })], "1234"), 0, "the only id that begins like this");
});

Deno.test("dates by time are round, by step those of the snapshots", () => {
  const positions = snapshotPositions(DAYS, "time");
  const whole = { start: 0, span: 1 };
  const byTime = dateTicks(DAYS, positions, "time", whole, 8);
  assert.deepEqual(byTime.map(({ text }) => text).slice(0, 2), ["2026-01-15", "2026-01-29"]);
  assert.ok(byTime.every(({ at }) => at >= 0 && at <= 1) && byTime.length <= 8);
  const steps = dateTicks(DAYS, snapshotPositions(DAYS, "steps"), "steps", whole, 5);
  assert.deepEqual(steps.map(({ text }) => text), [
    "2026-01-01",
    "2026-01-21",
    "2026-02-10",
    "2026-03-02",
    "2026-03-22",
  ]);
  const sameDay = Array.from({ length: 4 }, (_, i) => snapshot({ ms: Date.UTC(2026, 0, 1, i, 30) }));
  const clock = dateTicks(sameDay, [0, 0.3, 0.6, 1], "steps", whole, 4).map(({ text }) => text);
  assert.deepEqual(clock, ["2026-01-01", "01:30:00", "02:30:00", "03:30:00"]);
});

Deno.test("times of all sizes have dates, and never too many", () => {
  const begin = Date.UTC(2026, 0, 31, 23, 59, 58);
  for (const length of [3e3, 6e4, 36e5, 864e5, 864e6, 864e7, 864e8, 864e9, 864e10, 8e14]) {
    const ticks = timeTicks(begin, begin + length, 6);
    assert.ok(ticks.length >= 1 && ticks.length <= 8, `${length}: ${ticks.length}`);
    assert.ok(ticks.every(({ ms }) => ms >= begin && ms <= begin + length));
    assert.equal(new Set(ticks.map(({ text }) => text)).size, ticks.length, `${length}`);
  }
  assert.deepEqual(timeTicks(Date.UTC(2024, 4, 5), Date.UTC(2026, 4, 5), 3).map(({ text }) => text), ["2025", "2026"]);
  assert.ok(timeTicks(-62_135_596_800_000, 8_640_000_000_000_000, 5).length <= 7);
});

Deno.test("bins count the commits that match, by operation", () => {
  const all = DAYS.map((one, i) => ({ ...one, operation: i % 4 ? "append" : "delete", lane: i === 7 ? 1 : 0 }));
  const bins = binsOf(all, [0, 40], (i) => Math.floor(i / 20), "rows", (i) => i !== 1, { [all[25].id]: "1 error" });
  assert.equal(bins.size, 3);
  const [first, side, second] = bins.values();
  assert.deepEqual([first.count, side.count, second.count], [18, 1, 20]);
  assert.deepEqual([first.first, first.last, second.isBroken, first.isBroken], [0, 19, true, false]);
  assert.equal(binWords(first, "rows"), "18 commits · 13 append, 5 delete · +18 rows");
  assert.equal(binWords(side, "files"), "1 commit · 1 append · +1 file");
});

Deno.test("a filter looks at the operation, the words, the refs and who wrote it", () => {
  const one = snapshot({ words: "12:00 · append · +3 rows", refs: ["Audit"], by: 1 });
  const matches = (/** @type {string | null} */ operation, /** @type {string} */ text) =>
    matchesFilter(one, ["", "spark · Etl-7"], { operation, text });
  assert.ok(matches(null, "") && matches("append", "etl") && matches(null, "audit") && matches(null, "+3 rows"));
  assert.ok(!matches("delete", "") && !matches(null, "trino"));
});

Deno.test("the visible range is found by bisection", () => {
  const positions = [0, 0.1, 0.1, 0.5, 1];
  assert.deepEqual(visibleRange(positions, 0.1, 0.5), [1, 4]);
  assert.deepEqual(visibleRange(positions, -1, 2), [0, 5]);
  assert.deepEqual(visibleRange(positions, 0.6, 0.9), [4, 4]);
});

Deno.test("the totals of a snapshot are those that its summary states", () => {
  assert.equal(totalWords({ totals: [718, 12, 10, 35_328, 643] }, "rows"), "718, 643");
  assert.equal(totalWords({ totals: [718, 12, 0, 35_328, 718] }, "rows"), "718 rows");
  assert.equal(totalWords({ totals: [718, 12, 10, 35_328, -1] }, "rows"), "718 rows");
  assert.equal(totalWords({ totals: [718, 1, 10, 35_328, -1] }, "files"), "1 data file, 10 delete files");
  assert.equal(totalWords({ totals: [718, 12, 10, 35_328, -1] }, "bytes"), "34.5 KiB");
  assert.equal(totalWords({ totals: [-1, -1, -1, -1, -1] }, "files"), "");
});

Deno.test("the first round time has its date, and seconds where the others have them", () => {
  const from = Date.UTC(2026, 10, 21, 6, 7, 39);
  assert.deepEqual(timeTicks(from, from + 12_000, 4).map(({ text }) => text), [
    "2026-11-21 06:07:40",
    "06:07:45",
    "06:07:50",
  ]);
});
