/**
 * The timeline's arithmetic: positions of snapshots, dates on the axis, bins, and the search for a snapshot by a text.
 *
 * @module
 */

/** @import { Measure, Snapshot } from "./types.d.ts" */

import { formatCount, plural } from "./dom.js";

const SECOND = 1000;
const DAY = 86_400_000;
/** The possible distances between dates on the axis: `STEPS` in ms, and larger ones, `MONTHS`, in months. */
const STEPS = [
  ...[1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200].map((s) => s * SECOND),
  ...[1, 2, 7, 14].map((d) => d * DAY),
];
const MONTHS = [1, 3, 6, 12, 24, 60, 120, 600, 1200, 12_000];
/** The mean length of a month in ms. */
const MONTH = 30.44 * DAY;
/** A date, or the beginning of one. */
const DATE = /^\d{4}(-\d\d(-\d\d([ T]\d\d(:\d\d(:\d\d)?)?)?)?)?$/;
/** The duration, in ms, of the period that a date of reduced precision covers, by the length of its text. */
const PERIODS = /** @type {Record<number, number>} */ ({ 10: DAY, 13: 3600 * SECOND, 16: 60 * SECOND, 19: SECOND });
const UNITS = /** @type {const} */ ({ rows: "row", files: "file", bytes: "byte" });

/**
 * Return where snapshots are on the timeline, from 0 to 1, in ascending order.
 *
 * @param {Snapshot[]} all
 * @param {"steps" | "time"} scale
 * @returns {number[]}
 */
export function snapshotPositions(all, scale) {
  const last = all.length - 1;
  const start = all[0].ms;
  const duration = all[last].ms - start;
  if (scale === "time" && duration > 0) return all.map(({ ms }) => (ms - start) / duration);
  return all.map((_, i) => (last ? i / last : 0.5));
}

/**
 * Return the range of indexes, from and to, whose positions are within two limits.
 *
 * @param {number[]} positions In ascending order.
 * @param {number} low
 * @param {number} high
 * @returns {[from: number, to: number]} `to` is not in it.
 */
export function visibleRange(positions, low, high) {
  const first = (/** @type {(position: number) => boolean} */ test) => {
    let [from, to] = [0, positions.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (test(positions[middle])) to = middle;
      else from = middle + 1;
    }
    return from;
  };
  return [first((position) => position >= low), first((position) => position > high)];
}

/** @param {number} ms */
function isoTime(ms) {
  return new Date(ms).toISOString().replace("T", " ");
}

/**
 * Return the dates on the axis.
 *
 * @param {Snapshot[]} all
 * @param {number[]} positions
 * @param {"steps" | "time"} scale
 * @param {{ start: number, span: number }} view The part of the positions in view.
 * @param {number} most The maximum number of dates.
 * @returns {{ at: number, text: string }[]} `at` is a position.
 */
export function dateTicks(all, positions, scale, { start, span }, most) {
  const begin = all[0].ms;
  const duration = all[all.length - 1].ms - begin;
  if (scale === "time" && duration > 0) {
    const from = begin + start * duration;
    return timeTicks(from, from + span * duration, most)
      .map(({ ms, text }) => ({ at: (ms - begin) / duration, text }));
  }
  const [first, end] = visibleRange(positions, start, start + span);
  const stride = Math.max(1, Math.ceil((end - first) / most));
  const ticks = [];
  let before = "";
  for (let i = Math.ceil(first / stride) * stride; i < end; i += stride) {
    const time = isoTime(all[i].ms);
    const date = time.slice(0, -14);
    // Show the time instead of the date if the previous tick has the same date.
    ticks.push({ at: positions[i], text: date === before ? time.slice(-13, -5) : date });
    before = date;
  }
  return ticks;
}

/**
 * Return round times, with their texts, between two times in ms.
 *
 * @param {number} from
 * @param {number} to
 * @param {number} most
 */
export function timeTicks(from, to, most) {
  const wanted = (to - from) / most;
  const ticks = [];
  const step = STEPS.find((one) => one >= wanted);
  if (step) {
    const end = step < 60 * SECOND ? -5 : -8;
    for (let ms = Math.ceil(from / step) * step; ms <= to; ms += step) {
      const time = isoTime(ms);
      const isMidnight = ms % DAY === 0;
      const clock = time.slice(-13, end);
      ticks.push({ ms, text: isMidnight || step >= DAY ? time.slice(0, -14) : clock });
    }
    // The first tick also shows its date, from which the dates of the others follow.
    if (ticks.length && step < DAY) ticks[0].text = isoTime(ticks[0].ms).slice(0, end);
    return ticks;
  }
  const months = MONTHS.find((one) => one * MONTH >= wanted) ?? MONTHS[MONTHS.length - 1];
  const first = new Date(from);
  let month = first.getUTCFullYear() * 12 + first.getUTCMonth();
  month = Math.ceil(month / months) * months;
  for (; ticks.length <= most; month += months) {
    // Date.UTC treats years below 100 as years of the 20th century.
    const ms = new Date(0).setUTCFullYear(Math.floor(month / 12), month % 12, 1);
    if (!(ms <= to)) break;
    if (ms >= from) ticks.push({ ms, text: isoTime(ms).slice(0, months % 12 ? -17 : -20) });
  }
  return ticks;
}

/**
 * Snapshots that are too near one another to be drawn one by one.
 *
 * @typedef {object} Bin
 * @property {number} first The index of its first snapshot.
 * @property {number} last The index of its last snapshot.
 * @property {number} lane
 * @property {number} count The number of its snapshots that match the filter.
 * @property {Map<string, number>} operations
 * @property {number} added
 * @property {number} removed
 * @property {boolean} isBroken
 */

/**
 * Return bins of the snapshots that have the same place and lane.
 *
 * @param {Snapshot[]} all
 * @param {[from: number, to: number]} range
 * @param {(index: number) => number} place
 * @param {Measure} measure
 * @param {(index: number) => boolean} matches
 * @param {Record<string, string>} broken
 * @returns {Map<string, Bin>} The bins, by place and lane.
 */
export function binsOf(all, [from, to], place, measure, matches, broken) {
  const bins = new Map();
  for (let i = from; i < to; i++) {
    const { lane, operation, id, [measure]: [added, removed] } = all[i];
    const key = `${place(i)} ${lane}`;
    let bin = bins.get(key);
    if (!bin) {
      bin = { first: i, last: i, lane, count: 0, operations: new Map(), added: 0, removed: 0, isBroken: false };
      bins.set(key, bin);
    }
    bin.last = i;
    bin.isBroken ||= id in broken;
    if (!matches(i)) continue;
    bin.count++;
    bin.operations.set(operation, (bin.operations.get(operation) ?? 0) + 1);
    bin.added += added;
    bin.removed += removed;
  }
  return bins;
}

/**
 * Describe a bin.
 *
 * @param {Bin} bin
 * @param {Measure} measure
 */
export function binWords({ count, operations, added, removed }, measure) {
  const sorted = [...operations].sort((a, b) => b[1] - a[1]);
  const kinds = sorted.map(([name, n]) => `${formatCount(n)} ${name || "no operation"}`);
  const changes = [added && `+${formatCount(added)}`, removed && `−${formatCount(removed)}`].filter(Boolean).join(" ");
  const unit = UNITS[measure] + (added + removed === 1 ? "" : "s");
  return [plural(count, "commit"), kinds.join(", "), changes && `${changes} ${unit}`].filter(Boolean).join(" · ");
}

/**
 * Return the index of the snapshot that a text means, or -1: "latest", "first", a ref, an id or the beginning of one, a
 * number from 1, or a date (its first snapshot, else the last one before it).
 *
 * @param {Snapshot[]} all
 * @param {string} text
 */
export function findSnapshot(all, text) {
  const wanted = text.trim();
  const last = all.length - 1;
  if (!wanted) return -1;
  const ref = all.findIndex(({ refs }) => refs.includes(wanted));
  if (ref >= 0) return ref;
  const lower = wanted.toLowerCase();
  if (["latest", "last", "newest"].includes(lower)) return last;
  if (["first", "oldest", "earliest"].includes(lower)) return 0;
  const id = all.findIndex((one) => one.id === wanted);
  if (id >= 0) return id;
  const number = /^#?\d{1,9}$/.test(wanted) ? Number(wanted.replace("#", "")) : 0;
  if (number >= 1 && number <= all.length) return number - 1;
  const dated = DATE.test(wanted) ? onDate(all, wanted.replace(" ", "T")) : -1;
  if (dated >= 0) return dated;
  const begun = /^-?\d{3,}$/.test(wanted) ? all.filter((one) => one.id.startsWith(wanted)) : [];
  if (begun.length === 1) return all.indexOf(begun[0]);
  return all.findIndex(({ refs }) => refs.some((name) => name.toLowerCase() === lower));
}

/**
 * @param {Snapshot[]} all
 * @param {string} date Checked by `DATE`.
 */
function onDate(all, date) {
  const [year, month = "1"] = date.split("-");
  const begin = Date.parse(date.length > 10 ? `${date.padEnd(16, ":00")}Z` : date);
  if (Number.isNaN(begin)) return -1;
  let end = begin + (PERIODS[date.length] ?? 0);
  if (date.length < 10) {
    end = Date.UTC(Number(year) + (date.length === 4 ? 1 : 0), date.length === 4 ? 0 : Number(month));
  }
  const first = all.findIndex(({ ms }) => ms >= begin && ms < end);
  return first >= 0 ? first : all.findLastIndex(({ ms }) => ms < begin);
}

/**
 * Return whether a snapshot matches a filter.
 *
 * @param {Snapshot} snapshot
 * @param {string[]} writers
 * @param {{ operation: string | null, text: string }} filter `text` in lower case.
 */
export function matchesFilter({ operation, words, refs, id, by }, writers, filter) {
  if (filter.operation !== null && operation !== filter.operation) return false;
  if (!filter.text) return true;
  return [words, writers[by], id, ...refs].join("\n").toLowerCase().includes(filter.text);
}
