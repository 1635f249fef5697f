"""Selection of the nodes to show: level by level within a budget, with the rest folded into summary nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.graph._root import bools, left_out, removed_rows, row_keys
from iceexplore.graph.tree._applies import applies_edges
from iceexplore.graph.tree._entries import ProblemIndex, Rows
from iceexplore.graph.tree._folded_cells import MOST_STRIP_CELLS, folded_cells
from iceexplore.graph.tree._folds import summary
from iceexplore.graph.tree._labels import amount
from iceexplore.graph.tree._nodes import TreeNode
from iceexplore.graph.tree._source import NodeSource
from iceexplore.manifests import Manifest
from iceexplore.metadata import Snapshot
from iceexplore.render import CellBlock, Mark, SceneEdge, share
from iceexplore.storage import in_order

__all__ = ["Depth", "Shown", "TreeOptions", "shown_nodes"]

Depth = Literal["snapshots", "manifests", "files"]
#: Number of files assumed for a manifest without counts (possible in v1) when the budget is divided.
_ASSUMED_FILES = 10


@dataclass(frozen=True)
class TreeOptions:
    """The nodes to show. ``snapshots`` are ids, oldest first."""

    snapshots: tuple[int, ...]
    depth: Depth
    max_nodes: int


@dataclass
class Shown:
    """The shown part of a tree: nodes (parents before children), edges, and functions that build folded nodes."""

    nodes: dict[str, TreeNode] = field(default_factory=dict)
    edges: list[SceneEdge] = field(default_factory=list)
    hidden: dict[str, Callable[[int, int], list[TreeNode]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)  # children shown, by parent


def shown_nodes(source: NodeSource, options: TreeOptions, expanded: Mapping[str, int]) -> Shown:
    """Choose and build the nodes; ``expanded`` gives, by node id, a minimum number of children to show."""
    return _Builder(source, options, expanded).run()


class _Builder:
    def __init__(self, source: NodeSource, options: TreeOptions, expanded: Mapping[str, int]) -> None:
        self.source = source
        self.options = options
        self.expanded = expanded
        self.shown = Shown()
        self.paths: dict[int, list[str]] = {}  # by snapshot, the data files to which the shown deletes refer

    def run(self) -> Shown:
        self.add([self.source.table(), self.source.metadata()])
        self.log()
        opened = self.snapshots()
        roots = self.roots(opened)
        manifests = self.manifests(roots)
        self.files(roots, manifests)
        self.shown.edges += applies_edges(self.shown.nodes.values(), self.source.state.metadata)
        return self.shown

    # Helpers ---------------------------------------------------------------------------------------------------------

    def add(self, nodes: Iterable[TreeNode]) -> None:
        for node in nodes:
            self.shown.nodes[node.id] = node
            if node.parent is not None:
                self.shown.counts[node.parent] = self.shown.counts.get(node.parent, 0) + 1

    def open(self, node_id: str) -> None:
        """Mark a node as unfolded, once its children are shown."""
        node = self.shown.nodes[node_id]
        self.shown.nodes[node_id] = replace(node, marks=node.marks - {"folded"})

    def room(self) -> int:
        return max(1, self.options.max_nodes - len(self.shown.nodes))

    def fold(
        self,
        parent: str,
        count: int,
        label: str,
        level: int,
        lines: Iterable[str] = (),
        fields: Mapping[str, Any] | None = None,
        *,
        make: Callable[[int, int], list[TreeNode]],
        node_id: str | None = None,
        marks: Iterable[Mark] = (),
        cells: CellBlock | None = None,
    ) -> None:
        node = TreeNode(
            id=node_id or f"more:{parent}",
            kind="more",
            label=label,
            level=level,
            parent=parent,
            lines=tuple(filter(None, lines)),
            marks=frozenset({"folded", *marks}),
            fields={"folded": count, **(fields or {})},
            child_count=count,
            cells=cells,
        )
        self.shown.nodes[node.id] = node
        self.shown.hidden[node.id] = make

    # Metadata files, snapshots and refs ------------------------------------------------------------------------------

    def log(self) -> None:
        total = len(self.source.state.metadata.metadata_log)
        wanted = min(total, self.expanded.get("table", 0))
        indexes = list(range(total - 1, -1, -1))
        self.add(self.source.logged(i) for i in indexes[:wanted])
        if rest := indexes[wanted:]:
            self.fold(
                "table",
                len(rest),
                f"+{amount(len(rest), 'earlier metadata file')}",
                1,
                make=lambda offset, limit: [self.source.logged(i) for i in rest[offset : offset + limit]],
            )

    def snapshots(self) -> list[Snapshot]:
        """Add snapshots and refs; return the snapshots whose roots to show."""
        deep = self.options.depth != "snapshots"
        every = self.source.snapshots
        wanted = set(self.options.snapshots)
        chosen = [s for s in every if s.snapshot_id in wanted]
        # A snapshot with its root takes two nodes, and most of the budget is for the nodes below.
        cap = max(1, self.room() // (6 if deep and len(chosen) > 1 else 2))
        chosen = chosen[-cap:]
        more = self.expanded.get("metadata", 0)
        ids = {s.snapshot_id for s in chosen}
        extra = {s.snapshot_id for s in [s for s in every if s.snapshot_id not in ids][-more:]} if more else set()
        ids |= extra
        refs = self.source.refs
        here = [r for r in refs if r.snapshot_id in ids][: max(12, self.options.max_nodes // 6, more)]
        names = {r.name for r in here}
        for snapshot in every:
            if snapshot.snapshot_id not in ids:
                continue
            node = self.source.snapshot(snapshot)
            mine = [self.source.ref(r) for r in here if r.snapshot_id == snapshot.snapshot_id]
            self.add([*mine, node])
            self.shown.edges.extend(SceneEdge(ref.id, node.id, "ref") for ref in mine)
        self.rest(every, ids, names)
        opened = []
        for s in every:
            ways = (f"snapshot:{s.snapshot_id}", f"root:{s.snapshot_id}")
            inside = deep and s.snapshot_id in ids and s.snapshot_id not in extra
            if inside or (s.snapshot_id in ids and any(w in self.expanded for w in ways)):
                opened.append(s)
        return opened

    def rest(self, every: list[Snapshot], ids: set[int], names: set[str]) -> None:
        """Fold the snapshots and refs that are not shown."""
        snapshots = [s for s in every if s.snapshot_id not in ids]
        refs = [r for r in self.source.refs if r.name not in names]
        if not snapshots and not refs:
            return
        words = [amount(len(snapshots), "snapshot")] if snapshots else []
        words += [amount(len(refs), "ref")] if refs else []
        kinds = [0] * len(snapshots) + [1 if r.type == "branch" else 2 for r in refs]
        few = kinds[:: max(1, -(-len(kinds) // MOST_STRIP_CELLS))]
        cells = CellBlock(bytes([2]) * len(few), bytes(few), bytes(len(few)), ("snapshot", "branch", "tag"))
        makers: list[Callable[[], TreeNode]] = [lambda s=s: self.source.snapshot(s) for s in reversed(snapshots)]  # type: ignore[misc]
        makers += [lambda r=r: self.source.ref(r) for r in refs]  # type: ignore[misc]
        self.fold(
            "metadata",
            len(makers),
            f"+{words[0]}",
            2,
            words[1:],
            make=lambda offset, limit: [make() for make in makers[offset : offset + limit]],
            cells=cells,
        )

    # Roots and manifests ---------------------------------------------------------------------------------------------

    def roots(self, opened: list[Snapshot]) -> list[tuple[Snapshot, Manifest]]:
        state = self.source.state
        if len(opened) > 1:
            width = min(len(opened), max(8, state.storage.readers))
            read = list(in_order(state.root, opened, width=width, name="iceexplore-roots"))
        else:
            read = [state.root(s) for s in opened]
        out = []
        by_id = {s.snapshot_id: m for s, m in zip(opened, read, strict=True)}
        for snapshot, manifest in zip(opened, read, strict=True):
            node = self.source.root(snapshot, manifest)
            if manifest is not None:
                out.append((snapshot, manifest))
                parent = by_id.get(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id is not None else None
                if parent is not None and (dropped := left_out(parent, manifest)):
                    lines = (
                        [f"−{amount(dropped['manifest'], 'manifest')} of its parent"] if "manifest" in dropped else []
                    )
                    if "file" in dropped:  # its entry may have moved to a leaf, or the root may have lost it
                        lines.append(f"{amount(dropped['file'], 'file')} of its parent's root not in this one")
                    fields = {**node.fields, "dropped": sum(dropped.values())}
                    node = replace(node, lines=(*node.lines, *lines), fields=fields)
            self.open(f"snapshot:{snapshot.snapshot_id}")
            self.add([node, *self.source.statistics(snapshot)])
            self.open(node.id)
        return out

    def manifests(self, roots: list[tuple[Snapshot, Manifest]]) -> list[TreeNode]:
        problems = self.source.problems()
        seen: AnyArray = pa.array([], pa.string())
        groups: list[tuple[Snapshot, Manifest, Rows, Rows]] = []
        for snapshot, manifest in roots:
            order = self.source.entries.rank(manifest, snapshot, problems)
            keys = row_keys(manifest.entries)
            # A removal is a change by this snapshot, even if an earlier snapshot's root shows the same entry.
            met = bools(pc.is_in(keys, value_set=seen)) & ~removed_rows(manifest)
            here = met[order]
            groups.append((snapshot, manifest, order[~here], order[here]))
            seen = pa.concat_arrays([seen, keys])
        room = max(1, self.room() - sum(len(old) > 0 for _, _, _, old in groups))
        if self.options.depth == "files":
            room = max(1, room // 3)
        shares = share([len(fresh) for _, _, fresh, _ in groups], room)
        out: list[TreeNode] = []
        for (snapshot, manifest, fresh, old), n in zip(groups, shares, strict=True):
            root = f"root:{snapshot.snapshot_id}"
            n = max(n, self.expanded.get(root, 0), self.expanded.get(f"snapshot:{snapshot.snapshot_id}", 0))
            out += self.rows(root, manifest, snapshot, fresh, n, problems, (snapshot.snapshot_id,), 4)
            if len(old):
                out += self.carried(root, manifest, snapshot, old, problems)
        return [node for node in out if node.id.startswith("manifest:")]

    def carried(
        self, root: str, manifest: Manifest, snapshot: Snapshot, rows: Rows, problems: ProblemIndex
    ) -> list[TreeNode]:
        fold_id = f"carried:{snapshot.snapshot_id}"
        n = self.expanded.get(fold_id, 0)
        at = (snapshot.snapshot_id,)
        nodes = self.source.entries.nodes(root, manifest, snapshot, np.sort(rows[:n]), problems, at)
        self.add(nodes)
        if len(rest := rows[n:]):
            lines, fields = summary(manifest, rest, snapshot)
            entries = self.source.entries
            self.fold(
                root,
                len(rest),
                f"{len(rest):,} carried over",
                4,
                lines,
                fields,
                make=lambda o, limit: entries.nodes(root, manifest, snapshot, rest[o : o + limit], problems, at),
                node_id=fold_id,
                marks=("carried", *self.damage(manifest, rest, problems)),
                cells=folded_cells(manifest, rest, snapshot)[0],
            )
        return nodes

    def damage(self, manifest: Manifest, rows: Rows, problems: ProblemIndex) -> tuple[Mark, ...]:
        """Return the mark ``problem`` if a fold hides a row with a problem."""
        return ("problem",) if self.source.entries.damaged(manifest, problems)[rows].any() else ()

    def rows(
        self,
        parent: str,
        manifest: Manifest,
        snapshot: Snapshot,
        order: Rows,
        n: int,
        problems: ProblemIndex,
        at: tuple[int, ...],
        level: int,
    ) -> list[TreeNode]:
        """Add the first ``n`` rows of ``order`` in file order, and fold the rest."""
        entries = self.source.entries
        nodes = entries.nodes(parent, manifest, snapshot, np.sort(order[:n]), problems, at)
        self.add(nodes)
        if len(rest := np.sort(order[n:])):
            lines, fields = summary(manifest, rest, snapshot)
            self.fold(
                parent,
                len(rest),
                f"+{len(rest):,} more",
                level,
                lines,
                fields,
                make=lambda o, limit: entries.nodes(parent, manifest, snapshot, rest[o : o + limit], problems, at),
                marks=self.damage(manifest, rest, problems),
                cells=folded_cells(manifest, rest, snapshot)[0],
            )
        return nodes

    # Files -----------------------------------------------------------------------------------------------------------

    def files(self, roots: list[tuple[Snapshot, Manifest]], manifests: list[TreeNode]) -> None:
        every = self.options.depth == "files"
        # Do not show the files of a removed manifest: they are in another manifest now, or removed too.
        wanted = [m for m in manifests if (every and "removed" not in m.marks) or m.id in self.expanded]
        counts = [_ASSUMED_FILES if m.child_count is None else m.child_count for m in wanted]
        shares = share(counts, self.room()) if every else [0] * len(wanted)
        limits = {m.id: max(n, self.expanded.get(m.id, 0)) for m, n in zip(wanted, shares, strict=True)}
        # Delete manifests first, so that data manifests preferably show the data files to which these deletes refer.
        wanted.sort(key=lambda m: m.kind != "delete-manifest")
        for kind in ("delete-manifest", "data-manifest"):
            for snapshot, root in roots:
                mine = [
                    m
                    for m in wanted
                    if m.kind == kind and m.parent == f"root:{snapshot.snapshot_id}" and limits[m.id] > 0
                ]
                self.leaves(snapshot, root, mine, limits)

    def leaves(self, snapshot: Snapshot, root: Manifest, nodes: list[TreeNode], limits: dict[str, int]) -> None:
        rows = [int(node.id.rpartition(":")[2]) for node in nodes]
        parts = frozenset({"entries", "partition"})
        leaves = list(self.source.state.reader.leaves(root, rows, parts=parts)) if rows else []
        if not leaves:
            return
        problems = self.source.problems()  # reading the leaves may have added some
        referenced = pa.array(self.paths.get(snapshot.snapshot_id, []), pa.string())
        for node, row, leaf in zip(nodes, rows, leaves, strict=True):
            order = self.source.entries.rank(leaf, snapshot, problems, referenced)
            at = (snapshot.snapshot_id, row)
            files = self.rows(node.id, leaf, snapshot, order, limits[node.id], problems, at, 5)
            self.open(node.id)
            if found := problems.at(node.location):
                now = self.shown.nodes[node.id]
                self.shown.nodes[node.id] = replace(now, problems=found, marks=now.marks | {"problem"})
            named = [f.fields["referenced_file"] for f in files if f.fields.get("referenced_file")]
            self.paths.setdefault(snapshot.snapshot_id, []).extend(named)
