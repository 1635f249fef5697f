// What is wrong in what has been read: by severity and kind, each with the way to its node.

import { button, changeSelection, el, fill, formatCount, keepFocus, setEnabled } from "./dom.js";

const SEVERITIES = { error: "error", warning: "warning", info: "note" };

export function problemsView(model) {
  const sums = el("span.group", { role: "group", ariaLabel: "Severities shown" });
  const covered = el("span.covered", { role: "status" });
  const all = button("", () => model.save("read_all", model.read_all + 1));
  const list = el("div.findings", { tabindex: -1 });
  const folded = new Set(); // codes of the groups that are shut

  const sign = (severity) => el(`span.sign.is-${severity}`, { role: "img", ariaLabel: SEVERITIES[severity] });

  function drawBar() {
    const { counts = {}, sums: totals = {}, covered: words, left } = model.problems;
    const shown = model.severities;
    const sum = ([severity, word]) => {
      const others = shown.filter((one) => one !== severity);
      const on = others.length < shown.length;
      const toggle = () => model.save("severities", on ? others : [...shown, severity]);
      return setEnabled(
        button([sign(severity), " " + (totals[severity] ?? `${word}s: not checked`)], toggle, {
          "data-key": severity,
          ariaPressed: on,
        }),
        counts[severity],
      );
    };
    fill(sums, Object.entries(SEVERITIES).map(sum));
    fill(covered, words);
    keepFocus(all, () => (all.textContent = left), list);
    setEnabled(all, model.busy === "");
  }

  function drawItem({ id, text, evidence, where, since, actions }) {
    const { node } = model.selection;
    const act = ({ title, selection }) =>
      button(title, () => go(selection), { "data-key": title + id, ariaLabel: `${title}: ${where}` });
    return el(
      "li.finding",
      { ariaCurrent: actions.some(({ selection }) => selection.node === node) || null },
      el("div", text),
      el("div.evidence", evidence),
      el("div.where", where),
      el("div.evidence", since && `since ${since}`),
      el("div.acts", actions.map(act)),
    );
  }
  function go(selection) {
    if (model.tab !== undefined) model.set("tab", "tree"); // where the explorer shows nodes
    changeSelection(model, selection);
  }

  function drawGroup({ code, severity, title, advice, items, more, count: all }) {
    const shown = model.severities;
    const seen = items.filter((item) => shown.includes(item.severity));
    if (!seen.length && !shown.includes(severity)) return [];
    const group = el(
      "details.finding-group",
      { open: !folded.has(code), ontoggle: () => (group.open ? folded.delete(code) : folded.add(code)) },
      el("summary", { "data-key": code }, sign(severity), el("strong", title), el("span.badge", formatCount(all))),
      el("div.advice", advice),
      el("ul", seen.map(drawItem)),
      el("div.advice", more),
    );
    return group;
  }
  // It stays scrolled as it is, as all of it comes at once.
  function drawList() {
    const { groups = [], nothing = "Looking …" } = model.problems;
    const parts = groups.flatMap(drawGroup);
    fill(list, parts[0] ? parts : el("div.empty", nothing));
  }
  function follow() {
    drawList();
    const here = list.querySelector("[aria-current]")?.getBoundingClientRect();
    const view = list.getBoundingClientRect();
    if (here && (here.bottom > view.bottom || here.top < view.top)) list.scrollTop += here.top - view.top; // the list alone, not the page
  }

  model.follow(["problems", "severities", "busy"], drawBar);
  model.follow(["problems", "severities"], drawList);
  model.onChange("selection", follow);
  return el("section.problems", { ariaLabel: "Problems" }, el("div.problem-bar", sums, covered, all), list);
}
