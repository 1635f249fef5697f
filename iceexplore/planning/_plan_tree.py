"""The plan as a tree: what is read, what is skipped and why, and which deletes apply to which file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.graph import ROOT_DIALECTS, human_bytes
from iceexplore.planning._plan_tree_words import amount, basename, file_lines, leaf_lines, said
from iceexplore.render import (
    Html,
    Mark,
    Mermaid,
    Scene,
    SceneEdge,
    SceneNode,
    Svg,
    Theme,
    details,
    escape,
    graphviz,
    mermaid,
    share,
    svg,
    svg_image,
    text,
)

if TYPE_CHECKING:
    from iceexplore.planning._plan_leaves import LeafScan
    from iceexplore.planning._scan_plan import ScanPlan

__all__ = ["PlanTree"]

#: So many skipped things stand for themselves; more are folded into one node per term.
_SINGLE = 2
#: Where more was skipped, nobody asks for each one's reason.
_EXPLAINED = 100_000
_TERMS = 4


@dataclass(frozen=True, repr=False)
class PlanTree:
    """A plan drawn: the table, its root, manifests, data files and their deletes; what is skipped is grey.

    Attributes
    ----------
    plan
        What is drawn.
    max_nodes
        About so many nodes; the rest is folded into nodes that say how many they hold.
    """

    plan: ScanPlan
    max_nodes: int = 60

    def __post_init__(self) -> None:
        if self.max_nodes < 8:
            raise OptionError(f"max_nodes={self.max_nodes!r}: give a whole number from 8")

    @cached_property
    def _scene(self) -> Scene:
        return _Drawing(self.plan, self.max_nodes).scene()

    def scene(self) -> Scene:
        """The nodes and edges as renderers take them."""
        return self._scene

    def to_text(self) -> str:
        """The tree as lines; what is skipped has the sign ⊘."""
        return text(self._scene)

    def to_svg(self, theme: Theme = "auto") -> Svg:
        """The tree as a standalone SVG. ``theme``: ``auto`` follows the viewer, or ``light``, ``dark``."""
        return svg(self._scene, theme=theme)

    def to_mermaid(self, max_nodes: int = 150) -> Mermaid:
        """The tree as a Mermaid flowchart, within Mermaid's limits."""
        return mermaid(self._scene, max_nodes=max_nodes)

    def to_graphviz(self) -> Any:
        """The tree as a ``graphviz.Digraph``; ``.source`` is its DOT text, ``.render()`` needs the program dot."""
        return graphviz(self._scene)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        plain = self.to_text()
        image = svg_image(self.to_svg(), f"{self._scene.title}: {self._scene.description}")
        lines = "\n".join(escape.html(line) for line in plain.split("\n"))
        pre = Html(f'<pre style="overflow-x:auto;line-height:1.35">{lines}</pre>')
        return {"text/plain": plain, "text/html": image + details("The plan as text", pre)}


class _Drawing:
    """Makes the nodes of one plan. Only what is shown becomes objects."""

    def __init__(self, plan: ScanPlan, max_nodes: int) -> None:
        self.plan = plan
        self.budget = max_nodes
        self.nodes: list[SceneNode] = []
        self.edges: list[SceneEdge] = []
        ends = np.cumsum([0, *(leaf.kept_files for leaf in plan.leaves)])
        self.starts = {id(leaf): int(start) for leaf, start in zip(plan.leaves, ends, strict=False)}
        self.shown: dict[int, str] = {}  # task: node

    def scene(self) -> Scene:
        """Everything."""
        plan = self.plan
        snapshot = plan.state.snapshot
        lines = [f"snapshot {snapshot.snapshot_id}"] if snapshot is not None else ["no snapshot"]
        version = f"v{plan.state.metadata.format_version}"
        self.add(SceneNode("table", "table", plan.state.name, tuple(lines), version))
        skipped = self.skipped()
        for index, scan in enumerate(plan.roots):
            leaves = [leaf for leaf in plan.leaves if leaf.scan == index]
            kind = "root-manifest" if scan.root.dialect in ROOT_DIALECTS else "manifest-list"
            count, read = len(scan.rows), len(scan.kept)
            words = [f"{read:,} of {amount(count, 'manifest')} read"] if count else []
            own = [leaf for leaf in leaves if leaf.root_row is None]
            words += [f"{f.kept_files:,} of its own {amount(f.files, 'file')} read" for f in own if f.files]
            label = basename(scan.root.location)
            self.add(
                SceneNode(
                    f"root:{index}", kind, label, tuple(words), parent="table", level=1, tooltip=scan.root.location
                )
            )
            self.leaves(index, leaves, skipped)
            self.pruned(f"root:{index}", 2, "data-manifest", skipped.get(("root", index)), len(scan.pruned))
        self.deletes()
        read, of = len(plan), sum(f.files for f in plan.leaves)
        size = pc.sum(plan.files.files.entries["file_size_in_bytes"]).as_py() or 0
        seen = f"reads {read:,} data files, {human_bytes(size)}; {of:,} stand in the manifests that it opens"
        return Scene(f"{plan.state.name}: {plan.filter.text}", seen, tuple(self.nodes), tuple(self.edges))

    def add(self, node: SceneNode) -> None:
        self.nodes.append(node)

    def skipped(self) -> dict[tuple[str, int], pa.Table]:
        """What is skipped, with reasons: under each root, and in each of its manifests, by their place in the plan."""
        plan = self.plan
        total = sum(len(s.pruned) for s in plan.roots) + sum(f.files - f.kept_files for f in plan.leaves)
        if not 0 < total <= _EXPLAINED:
            return {}
        table, at = plan.skipped_arrow, 0
        out: dict[tuple[str, int], pa.Table] = {}
        for index, scan in enumerate(plan.roots):  # in this order they stand in the table
            out["root", index] = table.slice(at, len(scan.pruned))
            at += len(scan.pruned)
            for place, leaf in enumerate(plan.leaves):
                if leaf.scan == index and leaf.files > leaf.kept_files:
                    out["leaf", place] = table.slice(at, leaf.files - leaf.kept_files)
                    at += leaf.files - leaf.kept_files
        return out

    def leaves(self, index: int, leaves: Sequence[LeafScan], skipped: Mapping[tuple[str, int], pa.Table]) -> None:
        """Manifests that are read, those with files of the plan first, and what is in them."""
        own = [leaf for leaf in leaves if leaf.root_row is None]
        rest = sorted((leaf for leaf in leaves if leaf.root_row is not None), key=lambda f: f.kept_files == 0)
        places = {id(leaf): i for i, leaf in enumerate(self.plan.leaves)}
        room = max(2, self.budget // (3 * len(self.plan.roots)))
        shown, folded = (rest, []) if len(rest) <= room else (rest[: room - 1], rest[room - 1 :])
        groups = [*own, *shown]
        files = share(
            [leaf.kept_files for leaf in groups], max(len(groups), self.budget - len(self.nodes) - len(shown))
        )
        for leaf, count in zip(groups, files, strict=True):
            parent, level = f"root:{index}", 2
            if leaf.root_row is not None:
                name = f"manifest:{index}:{leaf.root_row}"
                marks: frozenset[Mark] = frozenset() if leaf.readable else frozenset({"problem"})
                self.add(
                    SceneNode(name, "data-manifest", basename(leaf.location), leaf_lines(leaf), None, marks, parent, 2,
                              leaf.location)
                )  # fmt: skip
                parent, level = name, 3
            self.files(leaf, parent, level, count)
            gone = leaf.files - leaf.kept_files
            self.pruned(parent, level, "data-file", skipped.get(("leaf", places[id(leaf)])), gone)
        if folded:
            kept = sum(leaf.kept_files for leaf in folded)
            lines = (f"{kept:,} of {amount(sum(leaf.files for leaf in folded), 'file')} read",)
            self.more(f"root:{index}", 2, f"{amount(len(folded), 'manifest')} more read", lines)

    def files(self, leaf: LeafScan, parent: str, level: int, count: int) -> None:
        """Data files that are read."""
        start = self.starts[id(leaf)]
        tasks = np.arange(start, start + count)
        for task, record in zip(tasks.tolist(), self.records(tasks), strict=True):
            name = f"file:{task}"
            self.shown[task] = name
            path = record["file_path"]
            badge = "all rows" if record["whole"] and self.plan.filter.field_ids else None
            self.add(
                SceneNode(
                    name, "data-file", basename(path), file_lines(record), badge, frozenset(), parent, level, path
                )
            )
        rest = leaf.kept_files - count
        if rest > 0:
            self.more(parent, level, f"{amount(rest, 'file')} more read", ())

    def records(self, tasks: Any) -> list[dict[str, Any]]:
        """The plan's table of tasks, of some of them."""
        if not len(tasks):
            return []
        part = replace(self.plan, files=self.plan.files.take(pa.array(tasks, pa.int64())), row_groups=None)
        return list(part.tasks_arrow.to_pylist())

    def pruned(self, parent: str, level: int, kind: str, why: pa.Table | None, count: int) -> None:
        """What is skipped under a node: a few by themselves, more as one node per term."""
        if not count:
            return
        what = "manifest" if kind == "data-manifest" else "file"
        if why is None:
            self.cut(parent, level, kind, f"{amount(count, what)} skipped", ("the plan's skipped says why",), None)
        elif count <= _SINGLE:
            for r in why.to_pylist():
                lines = said(r["term"], r["by"])
                self.cut(parent, level, kind, basename(r["name"]), lines, f"{r['name']}\n{r['why'] or ''}")
        else:
            for terms, number, example in _by_term(why):
                label = f"{amount(number, what)} skipped"
                self.cut(parent, level, kind, label, said(*terms), f"the first: {example}", folded=True)

    def cut(
        self, parent: str, level: int, kind: str, label: str, lines: tuple[str, ...], tooltip: str | None,
        *, folded: bool = False,
    ) -> None:  # fmt: skip
        marks: set[Mark] = {"pruned", "folded"} if folded else {"pruned"}
        name = f"skipped:{len(self.nodes)}"
        self.add(SceneNode(name, kind, label, lines, None, frozenset(marks), parent, level, tooltip))

    def more(self, parent: str, level: int, label: str, lines: tuple[str, ...]) -> None:
        """A fold of what is read."""
        marks: frozenset[Mark] = frozenset({"folded"})
        self.add(SceneNode(f"more:{len(self.nodes)}", "more", label, lines, None, marks, parent, level))

    def deletes(self) -> None:
        """The deletes of the files that are shown, and an edge for each."""
        matched = self.plan.files.matched
        if not len(matched.deletes) or not self.plan.roots:
            return
        pairs: dict[int, list[str]] = {}
        for task, node in self.shown.items():
            for delete in _deletes_of(matched, task):
                pairs.setdefault(delete, []).append(node)
        room = max(3, self.budget // 4)
        picked = sorted(pairs)[:room]
        rows = self.plan.delete_rows
        last = len(self.plan.roots) - 1
        parent, level = f"root:{last}", 2
        if rows and last == 0:
            places = self.plan.roots[0].root.entries["location"]
            label = basename(places[rows[0]].as_py()) if len(rows) == 1 else amount(len(rows), "delete manifest")
            lines = (amount(len(matched.deletes), "delete") + " apply",)
            self.add(SceneNode("deletes", "delete-manifest", label, lines, None, frozenset(), parent, 2))
            parent, level = "deletes", 3
        part = replace(
            self.plan, files=replace(self.plan.files, matched=replace(matched, deletes=matched.deletes.take(picked)))
        )
        for delete, record in zip(picked, _delete_records(part), strict=True):
            name = f"delete:{delete}"
            words = [
                f"{amount(record['rows'] or 0, 'row')} named" if record["kind"] != "equality" else "by equal values"
            ]
            words.append(human_bytes(record["bytes"] or 0))
            path = record["file_path"]
            self.add(
                SceneNode(
                    name, record["node"], basename(path), (" · ".join(words),), None, frozenset(), parent, level, path
                )
            )
            self.edges += [SceneEdge(name, node, "applies-to") for node in pairs[delete]]
        rest = len(matched.deletes) - len(picked)
        if rest:
            self.more(parent, level, f"{amount(rest, 'delete')} more", ("of files that are not shown",))


def _by_term(why: pa.Table) -> Iterator[tuple[tuple[str | None, str | None], int, str]]:
    """Terms with what they skip, the greatest first; beyond a few in one."""
    table = why.select(["term", "by"]).append_column("row", pa.array(np.arange(len(why))))
    groups = table.group_by(["term", "by"]).aggregate([("row", "min"), ("row", "count")]).to_pylist()
    groups.sort(key=lambda g: (-g["row_count"], g["row_min"]))
    for group in groups[:_TERMS]:
        yield (group["term"], group["by"]), group["row_count"], why["why"][group["row_min"]].as_py() or ""
    rest = groups[_TERMS:]
    if rest:
        example = why["why"][rest[0]["row_min"]].as_py() or ""
        yield (f"{len(rest):,} other terms", None), sum(g["row_count"] for g in rest), example


def _deletes_of(matched: Any, task: int) -> list[int]:
    vector = matched.vector[task].as_py()
    return [
        *([] if vector is None else [vector]), *matched.positions[task].as_py(), *matched.equality[task].as_py(),
    ]  # fmt: skip


_NODES = {"vector": "deletion-vector", "position": "position-delete", "equality": "equality-delete"}


def _delete_records(plan: ScanPlan) -> list[dict[str, Any]]:
    deletes = plan.files.matched.deletes
    vector = deletes.entries["deletion_vector"]
    out = []
    fields = ["location", "record_count", "file_size_in_bytes", "content_type", "file_format"]
    for record, place in zip(deletes.entries.select(fields).to_pylist(), vector.to_pylist(), strict=True):
        size = (place or {}).get("size_in_bytes")
        is_vector = record["content_type"] != 2 and (size is not None or record["file_format"] == "puffin")
        kind = "equality" if record["content_type"] == 2 else "vector" if is_vector else "position"
        out.append(
            {"file_path": record["location"], "rows": record["record_count"], "kind": kind, "node": _NODES[kind],
             "bytes": size if size is not None else record["file_size_in_bytes"]}
        )  # fmt: skip
    return out
