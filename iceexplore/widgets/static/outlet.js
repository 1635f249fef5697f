// What leaves a table: a cell, a row, all of it as CSV. What no page has is asked of Python; the answer is a message.

import { copyText, count, plural, random, saveFile } from "./dom.js";

const LONGEST = 300; // characters after which Python shortens a cell
const SIGN = /[\u2400-\u2421\u27e8]/; // may stand for what Python does not send to be seen
const ANSWERED = 120_000; // ms to wait for what is to be copied
// In CSV: a cell that Python put ' before, as a spreadsheet would calculate it.
const DEFUSED = /(?:^|[,\n])"?'[=+\-@\t\r]/;

// `page` and `cell` return the page that is shown and the cell that was chosen in it; `say` tells what was done.
export function outlet(model, { grid, page, cell, say }) {
  const wants = new Map(); // what waits for an answer, by its number

  // Asks Python for what no page has; the answer is a message.
  function whole(want, more) {
    const { of, table, sort, filters } = page();
    const n = random();
    return new Promise((resolve, reject) => {
      wants.set(n, { resolve, reject });
      setTimeout(() => wants.delete(n) && reject(new Error("Python does not answer.")), ANSWERED);
      model.send({ grid, n, want, of, table, sort, filters, ...more });
    });
  }
  function heard(message) {
    const wait = message.grid === grid && wants.get(message.n);
    if (!wait) return;
    wants.delete(message.n);
    if (message.error) wait.reject(new Error(message.error));
    else wait.resolve(message);
  }
  // Copies a text, or what a promise will be.
  async function copied(value) {
    const done = await copyText(value);
    say(done ? `Copied ${plural((await value).length, "character")}` : "The browser does not let us copy");
  }
  const inTable = (row) => page().page * page().size + row;
  async function attempt(run) {
    try {
      await run();
    } catch (error) {
      say(error.message);
    }
  }
  const copyCell = () =>
    attempt(async () => {
      const [row, i] = cell();
      const value = page().rows[row]?.[i] ?? "";
      if (value.length < LONGEST && !SIGN.test(value)) return copied(value);
      await copied(whole("cell", { row: inTable(row), column: page().shown[i] }).then(({ text }) => text));
    });
  const copyRow = () => attempt(() => copied(whole("row", { row: inTable(cell()[0]) }).then(({ text }) => text)));
  const download = () =>
    attempt(async () => {
      const parts = [];
      let length = 0;
      let row = 0;
      while (row !== null) {
        const part = await whole("csv", { row });
        parts.push(part.text);
        length += part.text.length;
        row = part.next;
        say(row === null ? "" : `${count(row)} of ${count(part.total)} rows`);
        if (length > part.most && row !== null) {
          say(`Saved ${count(row)} of ${count(part.total)} rows: a browser takes no more`);
          break;
        }
      }
      const name = [model.get("title"), page().table].join("-").replace(/[^\w.-]+/g, "_").slice(0, 80);
      saveFile(new Blob(["\ufeff", ...parts], { type: "text/csv;charset=utf-8" }), `${name}.csv`);
      if (row === null) say(parts.some((part) => DEFUSED.test(part)) ? "Saved, ' before formulas" : "Saved");
    });

  model.on("msg:custom", heard);
  return { copied, copyCell, copyRow, download };
}
