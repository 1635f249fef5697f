// What the tab Health shows of a report.

import { strict as assert } from "node:assert";

import { nothingFound, shownFindings } from "../../iceexplore/widgets/static/doctor.js";

/** @import { Effect, Finding } from "../../iceexplore/widgets/static/types.d.ts" */

/**
 * @param {string} id
 * @param {Effect} severity
 * @returns {Finding}
 */
function finding(id, severity) {
  const texts = { code: "file-missing", title: "", text: "", where: "", chain: "", more: "" };
  return { id, severity, ...texts, count: 1, lines: [], node: null, since: null, places: [], follows: [] };
}

Deno.test("findings are shown by severity, in their order", () => {
  const findings = [finding("a", "fail"), finding("b", "slow"), finding("c", "fail")];
  assert.deepEqual(shownFindings({ findings }, ["fail", "untidy"]).map(({ id }) => id), ["a", "c"]);
  assert.deepEqual(shownFindings({}, ["fail"]), []);
});

Deno.test("an empty list says whether anything was checked", () => {
  assert.match(nothingFound({}), /^Not checked yet/);
  assert.equal(nothingFound({ id: "1", findings: [] }), "Nothing found.");
  assert.equal(nothingFound({ id: "1", findings: [finding("a", "slow")] }), "No findings of these severities.");
});
