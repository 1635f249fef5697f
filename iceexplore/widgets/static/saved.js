// A saved page: the views of the explorer on a model that answers from what was saved, without Python.

import { sameJson } from "./dom.js";
import { explorerView } from "./explorer.js";
import { answerMessage, answerQuery } from "./savedTables.js";
import { shell } from "./shell.js";

// As much of a widget's model as the views use. Setting a trait tells who listens, then what is asked is answered.
function staticModel(saved) {
  const { traits } = saved;
  const heard = {};
  const tell = (event, message) => heard[event]?.forEach((run) => run(message));
  function set(name, value) {
    if (name === "selection") value = { ...value, against: "" }; // comparing takes Python
    if (sameJson(traits[name], value)) return;
    const before = traits[name];
    traits[name] = value;
    tell("change:" + name);
    answers[name]?.(value, before);
  }

  function above(id) {
    const parent = Object.keys(traits.nodes).find((other) => traits.nodes[other].children?.includes(id));
    return parent ? [...above(parent), parent] : [];
  }

  const tablesOf = (node) => saved.tables[node] ?? {};

  function showTable(grid, asked) {
    const tables = tablesOf(asked.of);
    const table = asked.table ?? Object.keys(tables)[0];
    const { [grid]: _, ...others } = traits.pages;
    set("pages", tables[table] ? { ...others, [grid]: answerQuery(tables[table], { ...asked, table }) } : others);
  }

  const answers = {
    selection(now, before) {
      set("error", {});
      if (now.snapshot !== before.snapshot) {
        const tree = saved.trees[now.snapshot];
        if (!tree) {
          traits.selection = before;
          tell("change:selection");
          return set("error", {
            text: "This snapshot is not in this page.",
            advice: "Open the table itself to see it.",
          });
        }
        for (const name in tree) set(name, tree[name]);
        if (now.node === before.node && !tree.nodes[now.node]) {
          return set("selection", { ...now, node: `snapshot:${now.snapshot}` });
        }
      }
      const id = now.node;
      // what is selected is in sight: the way to it is unfolded
      if (id !== before.node) set("expanded", [...new Set([...traits.expanded, ...above(id)])]);
      const detail = saved.details[id];
      const node = traits.nodes[id];
      set("detail", detail ?? { id, kind: node?.kind ?? "", kind_title: "Not in this page", title: node?.label ?? id });
      // a table in which the node is a row stays: its row was opened, or that of another of its nodes
      const { detail: page } = traits.pages;
      const opened = page && (traits.query.detail?.node === id || page.of !== before.node);
      const stays = opened && page.of !== id &&
        detail?.tables?.some(({ of, key }) => of === page.of && key === page.table);
      showTable(
        "detail",
        stays && tablesOf(page.of)[page.table].nodes?.includes(id)
          ? { ...page, columns: page.shown, node: id }
          : { of: id },
      );
    },
    query: (now, before) =>
      Object.keys(now).filter((grid) => now[grid] !== before[grid]).forEach((grid) => showTable(grid, now[grid])),
  };
  answers.selection(traits.selection, traits.selection);
  return {
    get: (name) => traits[name],
    set,
    save_changes() {},
    on: (event, run) => (heard[event] ??= []).push(run),
    send(message) {
      const found = tablesOf(message.of)[message.table];
      tell("msg:custom", found ? answerMessage(found, message) : {}); // somebody is there
    },
  };
}

export function savedPage() {
  const model = staticModel(JSON.parse(document.getElementById("ice-data").textContent));
  shell({ model, el: document.getElementById("ice-host") }, explorerView);
}
