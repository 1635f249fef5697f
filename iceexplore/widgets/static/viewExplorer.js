/**
 * The explorer of an Iceberg view: its versions in a row, and tabs about the selected one. Python creates the content
 * of the tabs.
 *
 * @module
 */

/** @import { Block, Model, Part, ViewBlock, ViewModel } from "./types.d.ts" */

import { blocks } from "./blocks.js";
import { copyButton, markTab, tabRow } from "./controls.js";
import { el, fill, options, randomId, selectBox } from "./dom.js";
import { canvasColours } from "./painting.js";
import { pictureOf, slideButtons } from "./slide.js";

/** The signs of lines in a comparison, with their meaning for screen readers. */
const LINE_SIGNS = /** @type {Record<string, [sign: string, words: string]>} */ ({
  "!": ["≠", "changed"],
  "-": ["−", "removed"],
  "+": ["+", "added"],
});

/**
 * Return what the content of a tab depends on; `ViewExplorer._key` in Python computes the same.
 *
 * @param {{ tab: string, entry: number, against: number, dialect: string }} state
 * @returns {string}
 */
export function contentKey({ tab, entry, against, dialect }) {
  if (tab === "compare") return `${entry} ${against}`;
  return tab === "sql" ? `${entry} ${dialect}` : String(entry);
}

/**
 * Return the elements of blocks: of all kinds that `blocks` draws, and of SQL, comparisons of lines, and pictures.
 *
 * @param {ViewModel} model
 * @param {ViewBlock[]} list
 * @returns {(HTMLElement | HTMLElement[])[]}
 */
function viewBlocks(model, list) {
  /**
   * @param {string} sign
   * @param {string | null} before
   * @param {string | null} after
   */
  function drawLine(sign, before, after) {
    const [text, words] = LINE_SIGNS[sign] ?? ["", ""];
    const cell = (/** @type {string} */ kind, /** @type {string | null} */ line) =>
      el("td", { class: words && line !== null && kind }, line ?? "");
    return el(
      "tr",
      el("th", { scope: "row", ariaLabel: words || null }, text),
      cell("old", before),
      cell("new", after),
    );
  }
  return list.map((block) => {
    switch (block[0]) {
      case "sql": {
        const [, pieces, text] = block;
        const parts = pieces.map((piece) =>
          typeof piece === "string" ? piece : el("span", { class: `sql-${piece[0]}` }, piece[1])
        );
        return el("div.statement", el("pre.sql", parts), copyButton("Copy", () => text));
      }
      case "diff": {
        const [, titles, rows] = block;
        const heads = ["±", ...titles].map((title) => el("th", { scope: "col" }, title));
        const body = rows.map((row) => drawLine(...row));
        return el(
          "table.line-diff",
          { ariaLabel: "SQL side by side" },
          el("thead", el("tr", heads)),
          el("tbody", body),
        );
      }
      case "picture": {
        const [, light, dark, alt] = block;
        const image = (/** @type {string} */ theme, /** @type {string} */ source) =>
          el(`img.on-${theme}`, { src: `data:image/svg+xml,${encodeURIComponent(source)}`, alt });
        const own = /** @type {Model} */ (/** @type {unknown} */ (model));
        const box = el("div");
        const colours = canvasColours(own, box);
        const picture = () => pictureOf(colours.dark ? dark : light, colours);
        box.append(
          slideButtons(own, "Picture", { colours, picture, legend: () => [[alt]] }),
          el(
            "div.drawing",
            { tabindex: 0, role: "group", ariaLabel: alt },
            image("light", light),
            image("dark", dark),
          ),
        );
        return box;
      }
      case "fold":
        return el("details.rest", el("summary", block[1]), viewBlocks(model, block[2]));
      default: {
        const made = blocks(/** @type {Model} */ (/** @type {unknown} */ (model)), [/** @type {Block} */ (block)]);
        // These headings are one level below the view's name, which is an `h2`.
        return block[0] === "h" ? el("h3", [...made[0].childNodes]) : made;
      }
    }
  });
}

/**
 * Return the explorer of an Iceberg view.
 *
 * @param {ViewModel} model
 */
export function viewExplorerView(model) {
  const id = `ice-${randomId()}`;
  const { entries } = model;
  const panel = el("div.view-panel", { role: "tabpanel", id: `${id}-panel`, tabindex: 0 });
  const versions = entries.map(({ id: version, time, mark, words }, i) =>
    el(
      "button.version",
      {
        role: "tab",
        id: `${id}-v${i}`,
        "aria-controls": panel.id,
        ariaLabel: words,
        title: words,
        class: mark && "odd",
        onclick: (/** @type {MouseEvent} */ event) => choose(i, event.shiftKey),
      },
      el("span.version-dot"),
      el("b", `v${version}`),
      mark && el("span", mark),
      el("span.version-time", time),
    )
  );
  const line = tabRow("div.versions", "Versions", versions);
  const description = el("div.view-words", { role: "status" });
  const tabs = model.parts.map(([key]) =>
    el("button.part", {
      role: "tab",
      id: `${id}-${key}`,
      "aria-controls": panel.id,
      "data-part": key,
      onclick: () => model.save("tab", key),
    })
  );
  const against = selectBox("Compare with", () => model.save("against", Number(against.value)), [
    [-1, "the change before"],
    ...entries.map(({ id: version, time }, i) => /** @type {const} */ ([i, `version ${version} · ${time}`])).reverse(),
  ]);
  const dialect = selectBox("Translate into", () => model.save("dialect", dialect.value));
  const bars = {
    compare: el("label.view-bar", "Compare with ", against),
    sql: el("label.view-bar", "Translate into ", dialect),
  };
  const content = el("div.view-content");
  panel.append(...Object.values(bars), content);

  /**
   * @param {number} i
   * @param {boolean} isCompared Whether it is the one to compare with, rather than the one to show.
   */
  function choose(i, isCompared) {
    if (isCompared) {
      model.set("against", i);
      model.save("tab", "compare");
    } else {
      model.save("entry", i);
    }
  }
  function drawVersions() {
    const chosen = versions[model.entry];
    markTab(versions, chosen ?? versions[0]);
    versions.forEach((one, i) => {
      // Mark all changes to the same version: a view may return to an earlier one.
      one.classList.toggle("ice-same", entries[i].id === entries[model.entry]?.id);
      one.classList.toggle("ice-other", i === model.against && i !== model.entry);
    });
    const earlier = model.left_out && `${model.left_out} earlier changes are left out`;
    fill(
      description,
      [entries[model.entry]?.words ?? "This view has no versions", earlier].filter(Boolean).join(" · "),
    );
    if (chosen) line.scrollLeft = chosen.offsetLeft - line.offsetLeft - (line.clientWidth - chosen.offsetWidth) / 2;
  }
  function drawTabs() {
    const chosen = tabs.find(({ dataset }) => dataset.part === model.tab) ?? tabs[0];
    markTab(tabs, chosen);
    model.parts.forEach(([, title], i) => {
      tabs[i].textContent = title;
    });
    panel.setAttribute("aria-labelledby", [chosen, versions[model.entry]].flatMap((tab) => tab?.id ?? []).join(" "));
    for (const [key, bar] of Object.entries(bars)) bar.hidden = key !== model.tab || !entries.length;
    against.value = String(model.against);
    const offered = new Set(["", ...model.dialects, model.dialect]);
    fill(dialect, options([...offered].map((name) => [name, name || "no other dialect"])));
    dialect.value = model.dialect;
  }
  function drawContent() {
    const { tab, key, blocks: list } = model.content;
    const isThis = tab === model.tab;
    content.classList.toggle("ice-stale", isThis && key !== contentKey(model));
    if (isThis && list) fill(content, viewBlocks(model, list));
    else {fill(
        content,
        el("div.empty", el("span.awaited", "Loading …"), el("span.missed", "Not loaded: the kernel has ended.")),
      );}
  }

  model.follow(["entry", "against"], drawVersions);
  model.follow(["parts", "tab", "entry", "against", "dialect", "dialects"], drawTabs);
  model.follow(["content", "tab", "entry", "against", "dialect"], drawContent);
  // The row has no width before the widget is in the page.
  requestAnimationFrame(drawVersions);
  return el(
    "div.view-explorer",
    line,
    description,
    el("div.bar", tabRow("div.parts", "Views of the explorer", tabs)),
    panel,
  );
}
