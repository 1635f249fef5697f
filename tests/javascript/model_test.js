// The models: what the shell adds to anywidget's, and the one of a saved page, which answers without Python.

import { strict as assert } from "node:assert";

import { savedModel } from "../../iceexplore/widgets/static/saved.js";
import { createModel } from "../../iceexplore/widgets/static/shell.js";

/** @import { AnyModel, Detail, SavedPage, TreeNode } from "../../iceexplore/widgets/static/types.d.ts" */

/**
 * @param {Record<string, unknown>} traits
 * @returns {AnyModel & { sent: unknown[], heard: string[], saves: number }} anywidget's model, recorded.
 */
function recordedModel(traits) {
  return {
    sent: [],
    heard: [],
    saves: 0,
    get: (name) => traits[name],
    set(name, value) {
      traits[name] = value;
    },
    save_changes() {
      this.saves++;
    },
    send(message) {
      this.sent.push(message);
    },
    on(event) {
      this.heard.push(event);
    },
    off(event) {
      this.heard.splice(this.heard.indexOf(event), 1);
    },
  };
}

/** @param {AnyModel} anyModel */
function modelOf(anyModel) {
  /** @type {(() => void)[]} */
  const cleanups = [];
  const set = (/** @type {string} */ name, /** @type {unknown} */ value) => anyModel.set(name, value);
  return { model: createModel(anyModel, { set, toPython: (send) => send() }, cleanups), cleanups };
}

Deno.test("traits are properties of the model, and saving sends them", () => {
  const anyModel = recordedModel({ title: "trips", scan_filter: "" });
  const { model } = modelOf(anyModel);
  assert.equal(model.title, "trips");
  model.set("scan_filter", "a");
  assert.equal(anyModel.saves, 0);
  model.save("scan_filter", "b");
  assert.deepEqual([model.scan_filter, anyModel.saves], ["b", 1]);
});

Deno.test("requests are numbered, and repeat the earlier ones if each must be carried out", () => {
  const anyModel = recordedModel({ search: {}, commit_asked: {} });
  const { model } = modelOf(anyModel);
  assert.deepEqual([model.request("search", { text: "a" }), model.request("search", { text: "b" })], [1, 2]);
  assert.deepEqual(model.search, { text: "b", n: 2 });
  for (let i = 0; i < 30; i++) model.requestEach("commit_asked", { do: `step ${i}` });
  const { earlier, ...last } = anyModel.get("commit_asked");
  assert.deepEqual(last, { do: "step 29", n: 30 });
  assert.equal(earlier.length, 20);
  assert.deepEqual(earlier[19], { do: "step 28", n: 29 });
  assert.ok(!("earlier" in earlier[19]), "they are not nested");
});

Deno.test("listeners end with the widget", () => {
  const anyModel = recordedModel({});
  const { model, cleanups } = modelOf(anyModel);
  let runs = 0;
  model.follow(["title", "badges"], () => runs++);
  model.on("msg:custom", () => {});
  assert.deepEqual([runs, anyModel.heard], [1, ["change:title", "change:badges", "msg:custom"]]);
  for (const cleanup of cleanups) cleanup();
  assert.deepEqual(anyModel.heard, []);
});

/**
 * @param {Partial<TreeNode>} more
 * @returns {TreeNode}
 */
function node(more) {
  return { kind: "", label: "", note: "", marks: [], leaf: false, children: [], ...more };
}

/** @returns {SavedPage} A page with one snapshot of a manifest and a file, which is a row of the manifest's table. */
function page() {
  const nodes = {
    "snapshot:1": node({ children: ["manifest:1:0"] }),
    "manifest:1:0": node({ children: ["file:1:0:0"] }),
    "file:1:0:0": node({ label: "a.parquet", leaf: true }),
  };
  const tables = [{ of: "manifest:1:0", key: "entries", title: "Entries" }];
  /** @type {Detail} */
  const detail = { kind: "data-file", kind_title: "Data file", title: "a.parquet", tables };
  const traits = {
    selection: { snapshot: "1", against: "", node: "manifest:1:0" },
    nodes,
    roots: ["snapshot:1"],
    expanded: [],
    pages: {},
    query: {},
    error: {},
    detail: {},
  };
  return {
    traits: /** @type {SavedPage["traits"]} */ (/** @type {unknown} */ (traits)),
    trees: { 1: { nodes, roots: ["snapshot:1"], expanded: [], compared: {} } },
    details: {
      "manifest:1:0": { id: "manifest:1:0", kind: "data-manifest", kind_title: "Manifest", title: "m", tables },
      "file:1:0:0": { ...detail, id: "file:1:0:0" },
    },
    tables: {
      "manifest:1:0": {
        entries: { columns: [{ name: "path" }], rows: [["a.parquet"]], nodes: ["file:1:0:0"], total: 1 },
      },
      "file:1:0:0": { columns: { columns: [{ name: "column" }], rows: [["id"]], total: 1 } },
    },
    files: {},
  };
}

Deno.test("a saved page selects: details, the path in the tree, and the node's first table", () => {
  const model = savedModel(page());
  assert.equal(model.get("pages").detail.table, "entries");
  /** @type {string[]} */
  const changes = [];
  for (const name of ["detail", "expanded", "pages"]) model.on(`change:${name}`, () => changes.push(name));
  model.set("selection", { snapshot: "1", against: "7", node: "file:1:0:0" });
  assert.equal(model.get("selection").against, "", "comparing takes Python");
  assert.equal(model.get("detail").title, "a.parquet");
  assert.deepEqual(model.get("expanded"), ["snapshot:1", "manifest:1:0"]);
  assert.equal(model.get("pages").detail.table, "columns");
  assert.deepEqual(changes, ["expanded", "detail", "pages"]);
});

Deno.test("in a saved page the table of a row that was opened stays", () => {
  const model = savedModel(page());
  model.set("query", { detail: { n: 1, of: "manifest:1:0", table: "entries", node: "file:1:0:0" } });
  model.set("selection", { snapshot: "1", against: "", node: "file:1:0:0" });
  assert.equal(model.get("pages").detail.table, "entries");
});

Deno.test("a snapshot that was not saved is refused, and the selection stays", () => {
  const model = savedModel(page());
  model.set("selection", { snapshot: "2", against: "", node: "snapshot:2" });
  assert.equal(model.get("error").text, "This page does not include this snapshot.");
  assert.equal(model.get("selection").snapshot, "1");
});

Deno.test("a node that was not saved has its label and no table", () => {
  const model = savedModel(page());
  model.set("selection", { snapshot: "1", against: "", node: "snapshot:1" });
  assert.equal(model.get("detail").kind_title, "Not in this page");
  assert.equal(model.get("pages").detail, undefined);
});

Deno.test("messages are answered, pings too", () => {
  const model = savedModel(page());
  /** @type {unknown[]} */
  const answers = [];
  model.on("msg:custom", (answer) => answers.push(answer));
  model.send({ ping: true });
  model.send({ grid: "detail", n: 5, want: "cell", of: "manifest:1:0", table: "entries", row: 0, column: 0 });
  assert.deepEqual(answers, [{}, { grid: "detail", n: 5, text: "a.parquet" }]);
});
