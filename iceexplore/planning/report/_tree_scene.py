"""Build the nodes and edges of a drawn plan.

The number of nodes is limited, so that large plans can be drawn, too. If there are too many manifests, files or deletes
to give each a node, only some of them get one, and further nodes show the number of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.graph import human_bytes
from iceexplore.planning.report._skipped import skipped_files, skipped_manifests
from iceexplore.planning.report._tables import task_records
from iceexplore.planning.report._tree_deletes import draw_deletes
from iceexplore.planning.report._tree_folds import Cut, cuts, evidence
from iceexplore.planning.report._tree_labels import amount, basename, damage, file_lines, leaf_lines, root_lines
from iceexplore.planning.scan._files import LeafScan, leaves_of, parts_of
from iceexplore.render import Mark, Scene, SceneNode, share

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["plan_scene"]

#: If a root (manifest list or V4 root manifest) has at most this many skipped manifests, each of them has its own node.
#: If it has more, manifests that are skipped for the same reason share a node, which shows how many they are. The same
#: limit applies to the skipped files of each manifest; but if there is little room in the picture, it is 1 for files.
_SINGLE = 2
_TERMS = 4


@dataclass(frozen=True)
class _Leaf:
    """A manifest that has a node in the drawing, or the files that a V4 root manifest lists itself.

    Attributes
    ----------
    leaf
        How many files the manifest or root manifest lists, and how many of them the plan reads.
    node
        The node of the manifest; None for files that a V4 root manifest lists itself.
    parent, level
        The id of the node below which the files are drawn, and the level of their nodes in the tree; the level of the
        table is 0.
    cuts
        The nodes for files that the plan skips. A node may represent several files.
    """

    leaf: LeafScan
    node: SceneNode | None
    parent: str
    level: int
    cuts: list[Cut]


@dataclass(frozen=True)
class _Root:
    """A root (manifest list or V4 root manifest) that has a node in the drawing.

    Attributes
    ----------
    node
        The node of the root.
    leaves
        The manifests that were read and get a node each, and the files that a V4 root manifest lists itself.
    folded
        The other manifests that were read. A single node shows their number.
    cuts
        The nodes for manifests that the plan skips. A node may represent several manifests.
    """

    node: SceneNode
    leaves: list[_Leaf]
    folded: list[LeafScan]
    cuts: list[Cut]

    @property
    def count(self) -> int:
        """Count the nodes of the manifest list or V4 root manifest and of everything below it, except files to read.

        How many of the data files that the plan reads get a node is decided later: the number of nodes in the drawing
        is limited, and these files get those that the other items do not need.
        """
        return 1 + len(self.cuts) + bool(self.folded) + sum(bool(f.node) + len(f.cuts) for f in self.leaves)


def plan_scene(plan: PlannedScan, max_nodes: int) -> Scene:
    """Draw a plan as a tree of nodes, with edges from deletes to the data files to which they apply.

    Parameters
    ----------
    max_nodes
        Approximate maximum number of nodes. If there are too many roots (manifest lists or V4 root manifests),
        manifests, files or deletes, only some get nodes of their own, and one more node shows the number of the others.
        There may be somewhat more nodes than ``max_nodes``, because each manifest that is shown has at least one node
        for the files that are read and one for the files that are skipped, if it has such files.
    """
    return _Drawing(plan, max_nodes).scene()


class _Drawing:
    def __init__(self, plan: PlannedScan, budget: int) -> None:
        self.plan = plan
        self.budget = budget
        self.nodes: list[SceneNode] = []
        ends = np.cumsum([0, *(leaf.kept_files for leaf in plan.leaves)])
        self.starts = {id(leaf): int(start) for leaf, start in zip(plan.leaves, ends, strict=False)}
        self.shown: dict[int, str] = {}  # key: row of a shown file in `tasks_table`; value: node id
        self.read = [0] * len(plan.roots)
        for leaf in plan.leaves:
            self.read[leaf.scan] += leaf.kept_files

    def scene(self) -> Scene:
        """Return the drawing of the plan: all nodes, and edges from deletes to the data files to which they apply.

        For an incremental plan, there are no edges.
        """
        plan = self.plan
        self.nodes.append(self.table())
        shown, folded = self.chosen()
        roots = [self.root(index, len(shown)) for index in shown]
        groups = [leaf for root in roots for leaf in root.leaves]
        applied = len(plan.files.matched.deletes)
        reserved = len(self.nodes) + sum(root.count for root in roots) + min(applied + 2 * bool(applied), self.room(5))
        counts = share([g.leaf.kept_files for g in groups], max(0, self.budget - reserved))
        files = iter(counts)
        for root in roots:
            self.nodes.append(root.node)
            for group in root.leaves:
                self.leaf(group, next(files))
            self.rest(root)
        if folded:
            self.other_roots(folded)
        edges = draw_deletes(plan, self.shown, self.nodes, self.room(4)) if plan.appends is None and plan.roots else []
        return Scene(f"{plan.state.name}: {plan.filter.text}", self.summary(), tuple(self.nodes), tuple(edges), wrap=3)

    def room(self, part: int) -> int:
        """Return how many nodes may be used for one kind of item, such as manifest lists or deletes.

        This is the maximum number of nodes in the drawing divided by ``part``: if the drawing may have 60 nodes,
        ``room(4)`` is 15. It is at least 2, for one item and the node that shows the number of the others.
        """
        return max(2, self.budget // part)

    def summary(self) -> str:
        """Summarize the plan in a phrase, such as ``reads 3 of 12 data files in 2 manifests, 2.4 KiB of data``."""
        plan = self.plan
        if not plan.roots and plan.appends is None:
            return "the table has no snapshot: there is nothing to read"
        size = pc.sum(plan.files.files.entries["file_size_in_bytes"]).as_py() or 0
        met = sum(leaf.files for leaf in plan.leaves)
        opened, rows = sum(len(s.kept) for s in plan.roots), sum(len(s.rows) for s in plan.roots)
        of = f"{len(plan):,} of {amount(met, 'data file')}" if met else "no data file"
        within = f" in {amount(opened, 'manifest')}" if opened else ""
        text = f"reads {of}{within}, {human_bytes(size)} of data"
        rest = f"; {amount(rows - opened, 'manifest')} not opened" if rows > opened else ""
        return text + rest + damage(plan)

    def table(self) -> SceneNode:
        """Return the node of the table, which shows the id of the planned snapshot.

        For an incremental plan, it shows the range of snapshots whose appended files are planned: the lines are
        ``appends after 3`` and ``up to 7`` if 3 is the id of the last snapshot before the range, and 7 that of the last
        snapshot in it.
        """
        plan = self.plan
        snapshot, appends = plan.state.snapshot, plan.appends
        if appends is not None:
            start = "from the oldest snapshot" if appends.after is None else f"after {appends.after}"
            lines = [f"appends {start}", f"up to {appends.last.snapshot_id}"]
        else:
            lines = ["no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}"]
        version = f"v{plan.state.metadata.format_version}"
        return SceneNode("table", "table", plan.state.name, tuple(lines), version)

    def chosen(self) -> tuple[list[int], list[int]]:
        """Choose the roots (manifest lists or V4 root manifests) that get a node each.

        Only an incremental plan has several roots, one per planned snapshot. If there are too many to give each a node,
        roots with a file that the plan reads are preferred.

        The result is two lists of indices in ``plan.roots``: those of the roots that get a node, and those of all other
        roots.
        """
        every = list(range(len(self.plan.roots)))
        room = self.room(8)
        if len(every) <= room:
            return every, []
        picked = set(sorted(every, key=lambda i: self.read[i] == 0)[: room - 1])
        return [i for i in every if i in picked], [i for i in every if i not in picked]

    def root(self, index: int, roots: int) -> _Root:
        """Return the nodes of a root, of its manifests (read or skipped), and of skipped files in the manifests read.

        A root is a manifest list or V4 root manifest. The nodes of data files that are read are not included. If more
        manifests were read than can get a node each, manifests with a file that the plan reads are preferred.

        Parameters
        ----------
        index
            The index of the root in ``plan.roots``.
        roots
            The number of roots that are shown. The more roots, the fewer manifests of each are shown.
        """
        plan, scan = self.plan, self.plan.roots[index]
        mine = [leaf for leaf in plan.leaves if leaf.scan == index]
        own = next((leaf for leaf in mine if leaf.root_row is None), None)
        rest = sorted((leaf for leaf in mine if leaf.root_row is not None), key=lambda f: f.kept_files == 0)
        room = max(1, self.room(4) // roots)
        shown, folded = (rest, []) if len(rest) <= room else (rest[: max(1, room - 1)], rest[max(1, room - 1) :])
        kind = "root-manifest" if scan.root.dialect.has_root_manifest else "manifest-list"
        marks: frozenset[Mark] = frozenset()
        if any(p.severity == "error" for p in scan.root.problems):
            marks = frozenset({"problem"})
        lines, place = root_lines(scan, own, plan.appends is not None), scan.root.location
        node = SceneNode(f"root:{index}", kind, basename(place), lines, None, marks, "table", 1, place)
        few = max(1, _TERMS // roots) if len(shown) > 3 else _TERMS
        single = _SINGLE if roots * (len(shown) + 1) * 3 <= self.budget else 1
        reasons = self.reasons(index, [*([own] if own is not None else []), *shown])
        leaves = []
        for leaf in [own, *shown]:
            if leaf is None:
                continue
            why = reasons.get(leaf.root_row)
            gone = [] if why is None else cuts(why, "file", single=single, most=few)
            if leaf.root_row is None:
                leaves.append(_Leaf(leaf, None, node.id, 2, gone))
            else:
                leaves.append(_Leaf(leaf, _manifest(leaf, index), f"manifest:{index}:{leaf.root_row}", 3, gone))
        gone = cuts(skipped_manifests(plan, scan), "manifest", single=_SINGLE, most=few) if len(scan.pruned) else []
        return _Root(node, leaves, folded, gone)

    def reasons(self, index: int, leaves: Sequence[LeafScan]) -> dict[int | None, pa.Table]:
        """Explain, for each of the given manifests of a root, why its skipped files are skipped.

        A root is a manifest list or V4 root manifest. A plan keeps only the files that it reads, so the manifests are
        read again to find the skipped files. Usually they are still in the cache.

        Parameters
        ----------
        index
            The index of the root in ``plan.roots``.
        leaves
            The manifests. If a V4 root lists data files itself, one more element, whose ``root_row`` is None, is for
            these files.

        Returns
        -------
        dict
            The key is the row of the manifest in the root, or None for the files that a V4 root lists itself. The value
            is a table of `SKIPPED_SCHEMA` with the skipped files. Manifests without skipped files are left out.
        """
        plan, scan = self.plan, self.plan.roots[index]
        wanted = {leaf.root_row for leaf in leaves if leaf.kept_files < leaf.files}
        if not wanted:
            return {}
        rows = [row for row in wanted if row is not None]
        found = leaves_of(plan.state, scan, parts_of(plan.filter.stats_ids), rows)
        return {leaf.root_row: skipped_files(plan, scan, leaf) for leaf in found if leaf.root_row in wanted}

    def leaf(self, group: _Leaf, count: int) -> None:
        """Add the nodes of a manifest, of its first ``count`` files that are read, and of its skipped files.

        If more than ``count`` files are read, one node shows the number of the others.
        """
        if group.node is not None:
            self.nodes.append(group.node)
        start = self.starts[id(group.leaf)]
        tasks = np.arange(start, start + count)
        for task, record in zip(tasks.tolist(), task_records(self.plan, tasks), strict=True):
            self.file(task, record, group)
        rest = group.leaf.kept_files - count
        if rest > 0:
            self.more(group.parent, group.level, f"{amount(rest, 'file')} read" if not count else f"{rest:,} more read")
        for cut in group.cuts:
            self.cut(group.parent, group.level, "data-file", cut)

    def rest(self, root: _Root) -> None:
        """Add the last nodes below a manifest list or V4 root manifest.

        These are one node for all manifests in ``root.folded``, and the nodes in ``root.cuts``. The manifests in
        ``root.folded`` were read, but the drawing has no room for a node for each, so one node shows their number. The
        nodes in ``root.cuts`` are for manifests that the plan skips.
        """
        if root.folded:
            kept, files = (sum(getattr(leaf, n) for leaf in root.folded) for n in ("kept_files", "files"))
            lines = [f"{kept:,} of {amount(files, 'file')} read"]
            if kept < files:
                lines.append("the plan's .skipped shows why the others are skipped")
            self.more(root.node.id, 2, f"{amount(len(root.folded), 'more manifest')} read", *lines)
        for cut in root.cuts:
            self.cut(root.node.id, 2, "data-manifest", cut)

    def other_roots(self, folded: Sequence[int]) -> None:
        """Add one node that represents all append snapshots that have no node of their own in an incremental plan.

        Parameters
        ----------
        folded
            The indices, in ``plan.roots``, of the manifest lists (V4: root manifests) of these snapshots.
        """
        scans = [self.plan.roots[i] for i in folded]
        opened, rows = sum(len(s.kept) for s in scans), sum(len(s.rows) for s in scans)
        within = set(folded)
        files = sum(leaf.files for leaf in self.plan.leaves if leaf.scan in within)
        lines = [f"{opened:,} of {amount(rows, 'manifest')} read"]
        lines.append(f"in the manifests read: {sum(self.read[i] for i in folded):,} of {amount(files, 'file')} read")
        self.more("table", 1, f"{len(folded):,} more appends", *lines)

    def file(self, task: int, record: dict[str, Any], group: _Leaf) -> None:
        """Add the node of a data file of the plan; the node is gray if the plan skips all row groups of the file.

        Parameters
        ----------
        task
            The row of the file in `tasks_table`.
        record
            The dictionary that `task_records` returns for the file.
        group
            The manifest, or V4 root manifest, that lists the file. The new node is drawn below its node.
        """
        name = f"file:{task}"
        self.shown[task] = name
        badge = "all match" if record["whole"] and self.plan.filter.stats_ids else None
        lines = list(file_lines(record))
        marks: frozenset[Mark] = frozenset()
        why = record["why"]
        if why is not None:
            gone = record["row_groups"] - record["row_groups_read"]
            lines += [
                f"row groups skipped: {gone:,}; the first by {why['term']}"
                if why["term"]
                else f"row groups skipped: {gone:,}",
                evidence(why),
            ]
            marks = frozenset({"pruned"}) if not record["row_groups_read"] else marks
        path = record["file_path"]
        self.nodes.append(
            SceneNode(name, "data-file", basename(path), tuple(lines), badge, marks, group.parent, group.level, path)
        )

    def cut(self, parent: str, level: int, kind: str, cut: Cut) -> None:
        """Add a node for one or several skipped manifests or files.

        Parameters
        ----------
        parent
            The id of the node below which the new node is drawn.
        level
            The level of the new node in the tree; the level of the table is 0.
        kind
            The kind of the new node: ``data-manifest`` or ``data-file``.
        cut
            The label, lines and tooltip of the new node, and the number of items that it represents.
        """
        marks: set[Mark] = {"pruned"} if cut.count == 1 else {"pruned", "folded"}
        name = f"skipped:{len(self.nodes)}"
        self.nodes.append(
            SceneNode(name, kind, cut.label, cut.lines, None, frozenset(marks), parent, level, cut.tooltip)
        )

    def more(self, parent: str, level: int, label: str, *lines: str) -> None:
        """Add one node for several roots, manifests or files that are read but have no nodes of their own.

        A root is a manifest list or V4 root manifest.

        Parameters
        ----------
        parent
            The id of the node below which the new node is drawn.
        level
            The level of the new node in the tree; the level of the table is 0.
        label, lines
            The title of the new node, such as ``3 more manifests read``, and the texts below the title.
        """
        marks: frozenset[Mark] = frozenset({"folded"})
        self.nodes.append(SceneNode(f"more:{len(self.nodes)}", "more", label, lines, None, marks, parent, level))


def _manifest(leaf: LeafScan, index: int) -> SceneNode:
    marks: frozenset[Mark] = frozenset() if leaf.readable else frozenset({"problem"})
    name, place = f"manifest:{index}:{leaf.root_row}", leaf.location
    return SceneNode(name, "data-manifest", basename(place), leaf_lines(leaf), None, marks, f"root:{index}", 2, place)
