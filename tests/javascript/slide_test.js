// Pictures for slides: what is recorded as SVG, and the page around it.

import { strict as assert } from "node:assert";

import { escapeXml, fileName, pictureOf, recorded, slide } from "../../iceexplore/widgets/static/slide.js";

/** @import { Colours } from "../../iceexplore/widgets/static/types.d.ts" */

const size = { width: 100, height: 50 };
/** Each letter is 10 px wide. */
const ruler = {
  font: "",
  measureText: (/** @type {string} */ text) => /** @type {TextMetrics} */ ({ width: 10 * text.length }),
};
const colours = /** @type {Colours} */ (/** @type {unknown} */ ({
  paper: "#fff",
  ink: "#000",
  muted: "#555",
  font: 'a, "b c"',
  tint: (/** @type {string} */ name) => `tint-of-${name}`,
}));

Deno.test("texts are escaped, and what XML cannot contain is replaced", () => {
  assert.equal(escapeXml('<a href="x">&'), "&#60;a href=&#34;x&#34;&#62;&#38;");
  assert.equal(escapeXml("a\u0000b\u001bc\ud800d\uffff"), "a\ufffdb\ufffdc\ufffdd\ufffd");
  assert.equal(escapeXml("naïve 😀\n"), "naïve 😀\n");
});

Deno.test("a painter's paths and texts become SVG, moved and scaled", () => {
  const { svg, width, height } = recorded(size, (paper) => {
    paper.setTransform(2, 0, 0, 2, 10, 20);
    paper.beginPath();
    paper.moveTo(0, 0);
    paper.bezierCurveTo(1, 0, 1, 2, 2, 2);
    paper.strokeStyle = "red";
    paper.lineWidth = 1.5;
    paper.setLineDash([4, 3]);
    paper.stroke();
    paper.setLineDash([]);
    paper.beginPath();
    paper.rect(1, 1, 3, 4);
    paper.globalAlpha = 0.5;
    paper.fillStyle = "blue";
    paper.fill();
    paper.globalAlpha = 1;
    paper.font = "bold 10px x";
    paper.fillText("a<b", 5, 6);
  });
  assert.deepEqual([width, height], [100, 50]);
  assert.deepEqual(svg.split("\n"), [
    '<path d="M10 20C12 20 12 24 14 24" transform="" fill="none" stroke="red" stroke-width="3" ' +
    'stroke-dasharray="8 6" opacity="1"></path>',
    '<path d="M12 22h6v8h-6Z" transform="" fill="blue" opacity="0.5"></path>',
    '<text transform="translate(20 32)" fill="blue" font-size="20" font-weight="bold" opacity="1">a&#60;b</text>',
  ]);
});

Deno.test("a path with coordinates of its own keeps them, and is drawn where the paper was moved", () => {
  const own = /** @type {Path2D} */ (/** @type {unknown} */ ({ d: "M0 0h16" }));
  const { svg } = recorded(size, (paper) => {
    paper.setTransform(0.5, 0, 0, 0.5, 0, 0);
    paper.translate(20, 40);
    paper.scale(2, 2);
    paper.fillStyle = "red";
    paper.fill(own);
    paper.beginPath();
    paper.arc(0, 0, 4, 0, 7);
    paper.fill();
  });
  const [icon, circle] = svg.split("\n");
  assert.equal(icon, '<path d="M0 0h16" transform="translate(10 20) scale(1)" fill="red" opacity="1"></path>');
  assert.equal(
    circle,
    '<path d="M10 16h0a4 4 0 0 1 4 4v0a4 4 0 0 1 -4 4h0a4 4 0 0 1 -4 -4v0a4 4 0 0 1 4 -4Z" transform="" fill="red" opacity="1"></path>',
  );
});

Deno.test("a picture of Python follows the widget's theme instead of the system's", () => {
  const source = '<svg xmlns="x" width="640" height="320.5" viewBox="0 0 1 1"><style>' +
    "@media (prefers-color-scheme:dark){.a{}}</style></svg>";
  const { svg, width, height } = pictureOf(source, { dark: true });
  assert.deepEqual([width, height], [640, 320.5]);
  assert.ok(svg.includes("@media all{.a{}}"));
  assert.ok(pictureOf(source, { dark: false }).svg.includes("@media not all{.a{}}"));
});

Deno.test("a page has 16 : 9, its title, caption and a legend in as many lines as it needs", () => {
  const styles = {
    kind: { light: "", dark: "", icon: /** @type {[string, string]} */ (["M1 1", "M2 2"]) },
    "mark:added": { light: "", dark: "", sign: "+" },
  };
  const model = { title: "<trips>", caption: "snapshot 7", styles };
  const picture = { svg: "<path/>", width: 300, height: 100 };
  const legend =
    /** @type {[string, string?][]} */ ([["Kind", "kind"], ["added", "mark:added"], ["", "kind"], ["only words"]]);
  const page = slide(model, picture, "Tree", legend, colours, ruler);
  assert.ok(
    page.startsWith(
      '<svg xmlns="http://www.w3.org/2000/svg" width="1920" height="1080" font-family="a, &#34;b c&#34;"',
    ),
  );
  assert.ok(page.includes("<title>Tree of &#60;trips&#62;, snapshot 7</title>"));
  assert.ok(page.includes(">snapshot 7</text>") && page.includes(">only words</text>"));
  assert.ok(page.includes('d="M1 1" fill="tint-of-kind"') && page.includes(">+</text>"));
  const room = (/** @type {string} */ text) =>
    Number(text.match(/<svg x="64" y="\d+" width="1792" height="(\d+)"/)?.[1]);
  assert.equal(room(page), 1080 - 32 - 202);
  const many = Array.from({ length: 30 }, (_, i) => /** @type {[string]} */ ([`${i}`.padStart(40, "x")]));
  assert.equal(room(slide(model, picture, "Tree", many, colours, ruler)), 1080 - 32 - 202 - 9 * 40);
  assert.equal(room(slide(model, picture, "Tree", [], colours, ruler)), 1080 - 32 - 202);
});

Deno.test("files have short names of plain letters", () => {
  assert.equal(fileName({ title: "a/b ü" }, "Deleted positions"), "a-b--deleted-positions");
  assert.equal(fileName({ title: "" }, "Tree"), "table-tree");
  assert.ok(fileName({ title: "x".repeat(500) }, "Tree").length < 80);
});
