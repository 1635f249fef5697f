// What is wrong in what has been read: by severity and kind, each with the way to its node.

import { button, choose, count, el, enable, fill, focusedIn, keepFocus, plural } from "./dom.js";

const SEVERITIES = { error: ["✕", "error"], warning: ["▲", "warning"], info: ["●", "note"] };

export function problemsView(model) {
  const sums = el("span.ice-group", { role: "group", ariaLabel: "Severities shown" });
  const covered = el("span.ice-covered", { role: "status" });
  const all = button("", () => model.put("read_all", model.get("read_all") + 1));
  const list = el("div.ice-findings", { tabindex: -1 });
  const box = el("section.ice-problems", { ariaLabel: "Problems" }, el("div.ice-problem-bar", sums, covered, all), list);
  const folded = new Set(); // codes of the groups that are shut

  const said = () => model.get("problems");
  const bare = () => !model.get("selection").snapshot;
  function go({ snapshot, node }) {
    if (model.get("tab") !== undefined) model.set("tab", "tree"); // where the explorer shows nodes
    choose(model, snapshot ? { snapshot, node } : { node });
  }
  function toggle(severity) {
    const now = model.get("severities");
    model.put("severities", now.includes(severity) ? now.filter((one) => one !== severity) : [...now, severity]);
  }
  const sign = (severity) => el(`span.ice-sign.ice-is-${severity}`, { role: "img", ariaLabel: SEVERITIES[severity][1] }, SEVERITIES[severity][0]);

  function drawBar() {
    const { counts = {}, read, manifests } = said();
    const held = [...sums.children].indexOf(document.activeElement);
    fill(
      sums,
      Object.entries(SEVERITIES).map(([severity, [, word]]) =>
        enable(button([sign(severity), " " + plural(counts[severity] ?? 0, word)], () => toggle(severity), { ariaPressed: model.get("severities").includes(severity) }), counts[severity]),
      ),
    );
    sums.children[held]?.focus();
    const left = manifests - read;
    covered.textContent = read === undefined ? "" : bare() ? "the table has no snapshot" : manifests === null ? "which manifests this snapshot has cannot be read" : manifests ? `${count(read)} of ${plural(manifests, "manifest")} of this snapshot read` : "this snapshot has no manifests";
    keepFocus(all, () => (all.hidden = !(left > 0)), list);
    enable(all, model.get("busy") === "");
    all.textContent = read ? `Read the other ${left === 1 ? "one" : count(left)}` : `Read ${manifests === 1 ? "it" : "all"}`;
  }

  function drawItem(item) {
    const here = item.actions.some(({ selection }) => selection.node === model.get("selection").node);
    return el(
      "li.ice-finding",
      { "data-id": item.id, ariaCurrent: here || null },
      el("div.ice-finding-text", item.text),
      item.evidence && el("div.ice-evidence", item.evidence),
      el("div.ice-where", item.where),
      item.since && el("div.ice-evidence", `since ${item.since}`),
      el(
        "div.ice-acts",
        item.actions.map(({ title, selection }) => button(title, () => go(selection), { ariaLabel: `${title}: ${item.where}` })),
      ),
    );
  }
  function drawList() {
    const { groups, read, manifests } = said();
    const shown = model.get("severities");
    const held = focusedIn(list);
    const focus = held && [held.closest("li, details")?.dataset.id, held.tagName];
    const top = list.scrollTop;
    const parts = (groups ?? []).flatMap((group) => {
      const items = group.items.filter((item) => shown.includes(item.severity));
      if (!items.length && !shown.includes(group.severity)) return [];
      const more = group.count - group.items.length;
      const details = el(
        "details.ice-finding-group",
        { "data-id": group.code, open: !folded.has(group.code), ontoggle: () => (details.open ? folded.delete(group.code) : folded.add(group.code)) },
        el("summary", sign(group.severity), el("strong", group.title), el("span.ice-badge", count(group.count))),
        el("div.ice-advice", group.advice),
        el("ul", items.map(drawItem)),
        more > 0 && el("div.ice-advice", `and ${count(more)} more: found_problems in Python has them all`),
      );
      return details;
    });
    const clean = bare() ? "Nothing is wrong in the table's metadata file: it has no snapshot to look into." : read < manifests ? (read ? "Nothing is wrong in what has been read." : "None of the manifests has been looked at yet.") : "Nothing is wrong in this snapshot's metadata, all of which has been read. Data files are not opened for it: t.verify() does that.";
    const nothing = !groups ? "Looking …" : groups.length ? "Nothing of these severities." : clean;
    fill(list, parts[0] ? parts : el("div.ice-empty", nothing));
    list.scrollTop = top;
    if (focus?.[0]) list.querySelector(`[data-id="${CSS.escape(focus[0])}"]`)?.querySelector(focus[1].toLowerCase())?.focus();
  }
  function draw() {
    drawBar();
    drawList();
  }
  function follow() {
    drawList();
    const here = list.querySelector("[aria-current]")?.getBoundingClientRect();
    const view = list.getBoundingClientRect();
    if (here && (here.bottom > view.bottom || here.top < view.top)) list.scrollTop += here.top - view.top; // the list alone, not the page
  }

  model.listen(["problems", "severities"], draw);
  model.listen(["busy"], drawBar);
  model.listen(["selection"], follow);
  draw();
  return box;
}
