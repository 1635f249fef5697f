// What the content of a tab of the explorer of views depends on.

import { strict as assert } from "node:assert";

import { contentKey } from "../../iceexplore/widgets/static/viewExplorer.js";

Deno.test("a tab's content is of an entry, and of the other version or the dialect where it shows them", () => {
  const state = { entry: 3, against: 1, dialect: "trino" };
  assert.equal(contentKey({ ...state, tab: "compare" }), "3 1");
  assert.equal(contentKey({ ...state, tab: "sql" }), "3 trino");
  assert.equal(contentKey({ ...state, tab: "lineage" }), "3");
});
