// What leaves a table: a cell, a row, all of it as CSV. What no page has is asked of Python; the answer is a message.

import { copyText, formatCount, plural, randomId, saveFile } from "./dom.js";

const LONGEST = 300; // characters after which Python shortens a cell
const SIGN = /[\u2400-\u2421\u27e8]/; // may replace characters that Python does not send for display
// In CSV: a cell that Python put ' before, as a spreadsheet would calculate it.
const DEFUSED = /(?:^|[,\n])"?'[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

// `page` and `cell` return the page that is shown and the cell that was chosen in it; `say` tells what was done.
export function gridExport(model, { grid, page, cell, say }) {
  const wants = new Map(); // what waits for an answer, by its number

  // Asks Python for what no page has; the answer is a message.
  const whole = (want, more, { of, table, sort, filters } = page()) =>
    new Promise((resolve, reject) => {
      const n = randomId();
      wants.set(n, { resolve, reject });
      model.send({ grid, n, want, of, table, sort, filters, ...more });
    });
  model.on("msg:custom", (message) => {
    const wait = message.grid === grid && wants.get(message.n);
    if (!wait) return;
    wants.delete(message.n);
    if (message.error) wait.reject(new Error(message.error));
    else wait.resolve(message);
  });
  const attempt = (run) => () => run().catch((error) => say(error.message));
  // Copies a text, or what a promise will be.
  async function copied(value) {
    const done = await copyText(value);
    say(done ? `Copied ${plural((await value).length, "character")}` : "The browser does not let us copy");
  }
  const text = async (want, row, column) => (await whole(want, { row: page().page * page().size + row, column })).text;
  async function copyCell() {
    const [row, i] = cell();
    const value = page().rows[row]?.[i] ?? "";
    await copied(value.length < LONGEST && !SIGN.test(value) ? value : text("cell", row, page().shown[i]));
  }
  const copyRow = () => copied(text("row", cell()[0]));
  async function download() {
    const shown = page(); // whatever is shown meanwhile
    const name = [model.title, shown.table].join("-").replace(/[^\w.-]+/g, "_").slice(0, 80);
    const parts = [];
    let length = 0;
    let part = { next: 0 };
    while (part.next !== null && !(length > part.most)) {
      part = await whole("csv", { row: part.next }, shown);
      parts.push(part.text);
      length += part.text.length;
      say(`${formatCount(part.next ?? part.total)} of ${formatCount(part.total)} rows`);
    }
    saveFile(new Blob(["\ufeff", ...parts], { type: "text/csv;charset=utf-8" }), `${name}.csv`);
    if (part.next !== null) {
      say(`Saved ${formatCount(part.next)} of ${formatCount(part.total)} rows: a browser takes no more`);
    } else say(parts.some((one) => DEFUSED.test(one)) ? "Saved, ' before formulas" : "Saved");
  }

  return { copied, copyCell: attempt(copyCell), copyRow: attempt(copyRow), download: attempt(download) };
}
