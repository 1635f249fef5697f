// A saved page: the views of the explorer on a model that answers from what was saved, without Python.

import { explorerView } from "./explorer.js";
import { answer, whole } from "./pages.js";
import { shell } from "./shell.js";

// As much of a widget's model as the views use. Setting a trait tells who listens, then what is asked is answered.
function staticModel(saved) {
  const traits = { ...saved.traits };
  const heard = new Map();
  const set = (name, value) => {
    if (name === "selection") value = { ...value, against: "" }; // comparing takes Python
    if (JSON.stringify(traits[name]) === JSON.stringify(value)) return;
    const before = traits[name];
    traits[name] = value;
    for (const run of heard.get("change:" + name) ?? []) run();
    answers[name]?.(value, before);
  };

  function above(id) {
    const parent = Object.keys(traits.nodes).find((other) => traits.nodes[other].children?.includes(id));
    return parent ? [...above(parent), parent] : [];
  }

  const tableOf = ({ of, table }) => (saved.tables[of] ?? {})[table];

  function showTable(grid, asked) {
    const table = asked.table ?? Object.keys(saved.tables[asked.of] ?? {})[0];
    const found = tableOf({ of: asked.of, table });
    const { [grid]: _, ...others } = traits.pages;
    const page = found?.text === undefined ? found && answer(found, { ...asked, table }) : { n: asked.n ?? 0, of: asked.of, table, text: found.text };
    set("pages", page ? { ...others, [grid]: page } : others);
  }

  const answers = {
    selection(now, before) {
      if (now.snapshot !== before.snapshot) {
        const tree = saved.trees[now.snapshot];
        if (!tree) {
          set("error", { text: "This snapshot is not in this page.", advice: "Open the table itself to see it." });
          return set("selection", before);
        }
        set("error", {});
        for (const name of ["nodes", "roots", "expanded"]) set(name, tree[name]);
        if (now.node === before.node && !tree.nodes[now.node]) return set("selection", { ...now, node: `snapshot:${now.snapshot}` });
      }
      // what is selected is in sight: the way to it is unfolded
      if (now.node !== before.node) set("expanded", [...new Set([...traits.expanded, ...above(now.node)])]);
      const detail = saved.details[now.node];
      const node = traits.nodes[now.node];
      set("detail", detail ?? { id: now.node, kind: node?.kind ?? "", kind_title: "Not in this page", title: node?.label ?? now.node, facts: [], tables: [] });
      // a table in which the node is a row stays: its row was opened, or that of another of its nodes
      const page = traits.pages.detail;
      const opened = traits.query.detail?.node === now.node || (page && page.of !== before.node);
      const stays = opened && detail?.tables?.some(({ of, key }) => of !== now.node && of === page?.of && key === page.table);
      showTable("detail", stays && tableOf(page)?.nodes?.includes(now.node) ? { ...page, columns: page.shown, node: now.node } : { of: now.node });
    },
    query: (now, before) => Object.keys(now).filter((grid) => now[grid] !== before[grid]).forEach((grid) => showTable(grid, now[grid])),
  };
  return {
    get: (name) => traits[name],
    set,
    save_changes() {},
    on: (name, run) => heard.set(name, [...(heard.get(name) ?? []), run]),
    off: (name, run) => heard.set(name, (heard.get(name) ?? []).filter((other) => other !== run)),
    send(message) {
      const found = tableOf(message);
      const said = found ? whole(found, message) : { grid: message.grid, n: message.n, error: "This table is not in this page." };
      for (const run of heard.get("msg:custom") ?? []) run(said);
    },
    start: () => answers.selection(traits.selection, traits.selection),
  };
}

export function savedPage() {
  const saved = JSON.parse(document.getElementById("ice-data").textContent);
  const model = staticModel(saved);
  shell({ model, el: document.getElementById("ice-host") }, explorerView);
  model.start();
}
