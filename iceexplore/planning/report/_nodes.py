"""Show the manifests and files of a plan a few at a time.

Manifests and files that the plan skips are shown too, with the reason. This is for displays in which users expand
nodes. `iceexplore.planning.PlanTree` draws the whole plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.graph import human_bytes, live_manifests
from iceexplore.manifests import ContentType, Manifest, whole
from iceexplore.planning.evaluators._explain import explain_files
from iceexplore.planning.report._skipped import skipped_manifests
from iceexplore.planning.report._tables import task_records
from iceexplore.planning.report._tree_deletes import MOST_OF_A_FILE, skipped_deletes
from iceexplore.planning.report._tree_folds import evidence
from iceexplore.planning.report._tree_labels import amount, basename, file_lines, held, leaf_lines, root_lines
from iceexplore.planning.scan._files import LeafScan, leaves_of, parts_of, pruned_of
from iceexplore.render import Mark, SceneNode

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["Group", "PlanNodes", "PlannedDelete"]

#: Names of the groups into which the children of a node in the tree of a plan are divided. ``read`` and ``skipped`` are
#: data files that the plan reads or skips; ``manifests`` and ``skipped-manifests`` are data manifests that the plan
#: reads or skips.
GroupName: TypeAlias = Literal["read", "manifests", "skipped-manifests", "skipped"]


@dataclass(frozen=True)
class PlannedDelete:
    """A delete in the tree of a plan that applies to some of the data files shown there.

    Attributes
    ----------
    node
        The tree node of the delete file or deletion vector.
    row
        The manifest that lists the delete, as its row in the entries of the root (the manifest list or root manifest).
        None if a V4 root manifest lists the delete itself.
    targets
        The ids of the nodes of the shown data files to which the delete applies.
    """

    node: SceneNode
    row: int | None
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """The number of children of one kind that a node has in the tree of a plan.

    Attributes
    ----------
    name
        What the children are: ``read`` or ``skipped`` for data files that the plan reads or skips, ``manifests`` or
        ``skipped-manifests`` for data manifests that the plan reads or skips.
    count
        The number of these children.
    """

    name: GroupName
    count: int


class PlanNodes:
    """The nodes of a tree that shows a plan's root, manifests and files; a node is found by its id.

    The root is the manifest list or, in V4, the root manifest. Its id is ``root:<snapshot>``, with the id of the
    snapshot. Its children are manifests, such as ``manifest:<snapshot>:2`` for row 2 of the root, and, in V4, files
    that the root lists itself, such as ``file:<snapshot>:5`` for row 5 of the root. The children of a manifest are its
    files: ``file:<snapshot>:2:0`` is the file in row 0 of the manifest ``manifest:<snapshot>:2``.
    `iceexplore.graph.Tree` uses the same ids.

    The node of a skipped manifest or file has ``pruned`` among its ``marks``, and the first of its ``lines`` is the
    reason. To find the reason for a file, the filter is evaluated again on the manifest that lists it. The manifest is
    usually still in the cache, so it is not read again.

    Parameters
    ----------
    plan
        A plan of one snapshot, not an incremental one.

    Raises
    ------
    OptionError
        The plan covers several snapshots.
    """

    def __init__(self, plan: PlannedScan) -> None:
        if plan.appends is not None:
            raise OptionError("an incremental plan covers several snapshots: plan a single one, or use plan.tree()")
        self.plan = plan
        self._scan = plan.roots[0] if plan.roots else None
        ends = np.cumsum([0, *(leaf.kept_files for leaf in plan.leaves)])
        self._starts = {leaf.root_row: int(start) for leaf, start in zip(plan.leaves, ends, strict=False)}
        self._leaves = {leaf.root_row: leaf for leaf in plan.leaves}
        named = [leaf for leaf in plan.leaves if leaf.root_row is not None]
        #: The data manifests that the plan reads: first those with at least one data file that the plan reads, then
        #: the others. Within each of these two parts, the order is that of ``plan.leaves``.
        self._read = sorted(named, key=lambda leaf: leaf.kept_files == 0)

    @property
    def root(self) -> SceneNode | None:
        """The node of the manifest list or root manifest; None if the table has no snapshot."""
        if self._scan is None:
            return None
        scan = self._scan
        kind = "root-manifest" if scan.root.dialect.has_root_manifest else "manifest-list"
        node_id, place = f"root:{scan.snapshot.snapshot_id}", scan.root.location
        own = self._leaves.get(None)
        return SceneNode(node_id, kind, basename(place), root_lines(scan, own, False), level=0, tooltip=place)

    def groups(self, node_id: str) -> tuple[Group, ...]:
        """Return the groups into which the children of a node are divided, in display order.

        A group contains either manifests or data files, and either those that the plan reads or those that it skips.
        Groups without children are left out, so the result is empty for a file, which has no children.

        Parameters
        ----------
        node_id
            The id of the root (the manifest list or V4 root manifest), of a manifest or of a file.

        Raises
        ------
        OptionError
            ``node_id`` is the id of another kind of node, or of a root or manifest in another snapshot.
        """
        if self._scan is None or node_id.startswith("file:"):
            return ()
        row = self._row(node_id)
        leaf = self._leaves.get(row)
        found = []
        if leaf is not None:
            found.append(Group("read", leaf.kept_files))
        if row is None:
            found += [Group("manifests", len(self._read)), Group("skipped-manifests", len(self._scan.pruned))]
        if leaf is not None:
            found.append(Group("skipped", leaf.files - leaf.kept_files))
        return tuple(g for g in found if g.count)

    def nodes(self, node_id: str, group: GroupName, start: int, count: int) -> list[SceneNode]:
        """Return some of a node's children, in display order.

        The children of a node are shown in groups, such as the files that the plan reads and those that it skips. All
        children that this method returns are in the same group.

        Parameters
        ----------
        node_id
            The id of a manifest, or of the root (the manifest list or V4 root manifest).
        group
            The name of the group: one of those that `groups` returns for this node.
        start
            The number of children to leave out at the beginning; 0 starts with the first child.
        count
            The maximum number of children to return.

        Raises
        ------
        OptionError
            ``node_id`` is not the id of a manifest or of the root, or it belongs to another snapshot.
        """
        row = self._row(node_id)
        if group == "manifests":
            return [self._manifest(leaf) for leaf in self._read[start : start + count]]
        if group == "skipped-manifests":
            return self._skipped_manifests(start, count)
        leaf = self._leaves.get(row)
        if leaf is None:
            return []
        return self._files(leaf, start, count) if group == "read" else self._skipped(leaf, start, count)

    def first_task(self, node_id: str) -> int:
        """Return the row of `tasks_table`, counted from 0, at which the data files of a manifest begin.

        The table has only the data files that the plan reads; files of the same manifest are in consecutive rows. If
        the plan reads no file of the manifest, the result has no meaning.

        Parameters
        ----------
        node_id
            The id of the manifest; the id of the V4 root manifest for the files that it lists itself.
        """
        return self._starts.get(self._row(node_id), 0)

    def deletes(self, shown: Mapping[int, str], most: int) -> tuple[list[PlannedDelete], int]:
        """Return deletes that apply to the shown data files, and the number of the others that apply to these files.

        At most ``most`` deletes are returned. A data file can have very many delete files, so not all of them are
        considered, but only the deletion vector of each data file, its first N position delete files and its first N
        equality delete files. N is ``max(most, MOST_OF_A_FILE)``.

        To find the node ids of the deletes, the manifests that list them are searched. A delete that is not found is
        not returned. The manifests are usually still in the cache, so they are not read again.

        The number counts all deletes that apply to the shown files but are not returned: those above ``most``, those
        that are not considered, and those that are not found.

        Parameters
        ----------
        shown
            The data files that are shown. The key is the row of the file in `tasks_table`; the value is its node id.
        most
            The maximum number of deletes to return.
        """
        if self._scan is None:
            return [], 0
        matched = self.plan.files.matched
        targets: dict[int, list[str]] = {}
        kinds: dict[int, str] = {}
        listed = [build.array([], pa.int64())]
        for task, node in shown.items():
            vector = matched.vector[task].as_py()
            if vector is not None:
                kinds[vector] = "deletion-vector"
                targets.setdefault(vector, []).append(node)
            for kind, lists in (("position-delete", matched.positions), ("equality-delete", matched.equality)):
                listed.append(lists[task].values.cast(pa.int64()))
                for delete in build.to_pylist(lists[task].values.slice(0, max(MOST_OF_A_FILE, most))):
                    kinds[delete] = kind
                    targets.setdefault(delete, []).append(node)
        picked = sorted(targets)[:most]
        entries = matched.deletes.take(build.array(picked)).entries if picked else matched.deletes.entries.slice(0, 0)
        columns = ["location", "deletion_vector", "record_count", "file_size_in_bytes"]
        places = self._delete_places(entries)
        out = []
        for delete, entry in zip(picked, entries.select(columns).to_pylist(), strict=True):
            place = places.get(_blob(entry))
            if place is None:
                continue
            row, at = place
            rows, size = entry["record_count"], (entry["deletion_vector"] or {}).get("size_in_bytes")
            removed = (
                "deletes by equality" if kinds[delete] == "equality-delete" else f"{amount(rows or 0, 'row')} deleted"
            )
            label = f"{removed} · {human_bytes(size or entry['file_size_in_bytes'] or 0)}"
            name = entry["location"]
            snapshot = self._scan.snapshot.snapshot_id
            node_id = ":".join(["file", str(snapshot), *([] if row is None else [str(row)]), str(at)])
            made = SceneNode(node_id, kinds[delete], label, (basename(name),), level=2, tooltip=name)
            out.append(PlannedDelete(made, row, tuple(targets[delete])))
        vectors = sum(kind == "deletion-vector" for kind in kinds.values())
        return out, vectors + len(pc.unique(pa.concat_arrays(listed))) - len(out)

    def _delete_places(self, entries: pa.Table) -> dict[tuple[str, int | None], tuple[int | None, int]]:
        """Find the manifest that lists each delete, and the row of the delete in the manifest's entries.

        Below, the root is the manifest list or, in V4, the root manifest. A V4 root manifest may list deletes itself.

        Parameters
        ----------
        entries
            The entries of the deletes to find, with the columns ``location`` and ``deletion_vector``.

        Returns
        -------
        dict
            The key is a pair that identifies a delete: for a delete file, its location and None; for a deletion vector,
            the location of its Puffin file, and its offset in this file. The value is a pair, too: the row of the
            manifest in the root, and the row of the delete in the manifest. If the root lists the delete itself, this
            pair is None and the row of the delete in the root. Deletes that are not found are left out.
        """
        if not len(entries) or self._scan is None:
            return {}
        state, root = self.plan.state, self._scan.root
        rows = list(self.plan.read_delete_rows)
        if root.dialect.deletion_vectors_on_entries:
            rows = sorted({*rows, *(leaf.root_row for leaf in self.plan.leaves if leaf.root_row is not None)})
        wanted = whole(entries["location"])
        found: dict[tuple[str, int | None], tuple[int | None, int]] = {}
        leaves = zip(rows, state.reader.leaves(root, rows) if rows else (), strict=True)
        for row, manifest in ((None, root), *leaves):
            is_delete = pc.is_in(manifest.entries["content_type"], value_set=_DELETES)
            named = pc.is_in(manifest.entries["location"], value_set=wanted)
            at = np.flatnonzero(np.asarray(pc.fill_null(whole(pc.and_(is_delete, named)), False)))
            some = manifest.entries.select(["location", "deletion_vector"]).take(build.array(at))
            for place, entry in zip(at.tolist(), some.to_pylist(), strict=True):
                found.setdefault(_blob(entry), (row, place))
        return found

    def delete_manifest(self, row: int, count: int, *, more: bool = False) -> SceneNode:
        """Return the node of a delete manifest, with a text such as ``3 deletes for the files shown``.

        Parameters
        ----------
        row
            The row number of the manifest in the entries of the root (the manifest list or V4 root manifest).
        count
            The number of deletes that are listed in this manifest and shown in the tree. Each of them applies to a data
            file that is shown in the tree.
        more
            True if more deletes apply to these data files, but are not shown. Some of them may be in this manifest, so
            the text begins with ``at least``.
        """
        assert self._scan is not None
        place = str(self._scan.root.entries["location"][row].as_py())
        lines = (f"{'at least ' if more else ''}{amount(count, 'delete')} for the files shown",)
        return SceneNode(self.manifest_id(row), "delete-manifest", basename(place), lines, level=1, tooltip=place)

    @cached_property
    def skipped_deletes(self) -> list[SceneNode]:
        """The nodes of the delete manifests that the plan skips; the text below each label is the reason."""
        if self._scan is None:
            return []
        root, plan = self._scan.root, self.plan
        every = live_manifests(root, {int(ContentType.DELETE_MANIFEST)})
        out = []
        for reason, rows in skipped_deletes(plan, every, set(plan.read_delete_rows)).items():
            for row in rows:
                place = str(root.entries["location"][row].as_py())
                marks: frozenset[Mark] = frozenset({"pruned"})
                name = basename(place)
                out.append(
                    SceneNode(
                        self.manifest_id(row), "delete-manifest", name, (reason,), None, marks, level=1, tooltip=place
                    )
                )
        return out

    def manifest(self, row: int | None) -> Manifest | None:
        """Return one manifest, which is read unless it is in the cache; None if there is no such manifest.

        Parameters
        ----------
        row
            The row of the manifest in the root (the manifest list or V4 root manifest). If it is None, the files that
            a V4 root manifest lists itself are returned, in the form of a `Manifest`.
        """
        assert self._scan is not None
        rows = [] if row is None else [row]
        found = leaves_of(self.plan.state, self._scan, parts_of(self.plan.filter.stats_ids), rows)
        return next((leaf for leaf in found if leaf.root_row == row), None)

    def manifest_id(self, row: int) -> str:
        """Return the node id of a manifest, given its row in the root (the manifest list or V4 root manifest)."""
        assert self._scan is not None
        return f"manifest:{self._scan.snapshot.snapshot_id}:{row}"

    def file_id(self, row: int | None, ordinal: int) -> str:
        """Return the node id of a data file.

        Parameters
        ----------
        row
            The row, in the manifest list or V4 root manifest, of the manifest that lists the file; None if a V4 root
            manifest lists the file itself.
        ordinal
            The position, from 0, of the file's entry among all entries as they are stored in the manifest (or in the
            V4 root manifest, if ``row`` is None).
        """
        return self._file_ids(row, [ordinal])[0]

    def leaf_scan(self, row: int | None) -> LeafScan | None:
        """Return how many data files a manifest lists, and how many of them the plan reads.

        The result is None if the plan did not read the manifest.

        Parameters
        ----------
        row
            The row of the manifest in the root (the manifest list or V4 root manifest). None for the data files that a
            V4 root manifest lists itself.
        """
        return self._leaves.get(row)

    def ordinal(self, row: int | None, at: int) -> int:
        """Return the ordinal of one entry: its position, from 0, among the entries in the stored manifest.

        Two variants of V4 are supported, called the draft and the proposal. In the draft, a stored entry can hold a
        data file together with its deletion vector, and becomes two rows of ``Manifest.entries``. So the ordinal can be
        less than ``at``, and the manifest is read to find it. The result is -1 if ``Manifest.entries`` has no row
        ``at``, or if the manifest cannot be read. In the proposal and in versions 1 to 3, a stored entry is always one
        row. So the ordinal is ``at``, and the manifest is not read.

        Parameters
        ----------
        row
            The row number of the manifest in the entries of the root (the manifest list or V4 root manifest). None if
            the entry is in the root itself.
        at
            The row of the entry in ``Manifest.entries``: the last number in the id of its node.
        """
        assert self._scan is not None
        if not self._scan.root.dialect.deletion_vectors_on_entries:
            return at
        manifest = self._scan.root if row is None else self.manifest(row)
        if manifest is None or at >= len(manifest.entries):
            return -1
        return int(manifest.entries["ordinal"][at].as_py())

    def file_rows(self, row: int | None, ordinals: Iterable[Any]) -> list[int]:
        """Convert ordinals of data files to row numbers in ``Manifest.entries``, for use in node ids.

        The ordinal of a data file is its position, from 0, among the stored rows of its manifest. In most formats, each
        stored row becomes one row of ``Manifest.entries``, so both numbers are equal.

        In the V4 draft, one stored row can contain a data file and its deletion vector. It becomes two rows of
        ``Manifest.entries``, both with the same ordinal. If the first stored row is such a row, the data file with
        ordinal 1 is in row 2. An ordinal for which no data file is found is returned unchanged.

        Parameters
        ----------
        row
            The row of the manifest in the manifest list or V4 root manifest; None for the files that a V4 root manifest
            lists itself.
        ordinals
            The ordinals of data files in that manifest.
        """
        numbers = [int(n) for n in ordinals]
        assert self._scan is not None
        if not self._scan.root.dialect.deletion_vectors_on_entries:
            return numbers
        manifest = self._scan.root if row is None else self.manifest(row)
        if manifest is None:
            return numbers
        data = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(manifest.entries["content_type"], 0), False)))
        known = dict(zip(np.asarray(manifest.entries["ordinal"])[data].tolist(), data.tolist(), strict=True))
        return [known.get(n, n) for n in numbers]

    def _row(self, node_id: str) -> int | None:
        """Return the row number of a manifest in the root, which is the manifest list or V4 root manifest.

        The result is None if ``node_id`` is the id of the root itself.

        Raises
        ------
        OptionError
            ``node_id`` is not the id of a manifest or of the root, or it belongs to another snapshot.
        """
        kind, _, rest = node_id.partition(":")
        snapshot, *rows = rest.split(":")
        scan = self._scan
        # The id of the manifest in row 2 of the root is ``manifest:<snapshot id>:2``. `rows` has the parts after the
        # snapshot id, here "2". They are row numbers, so refuse the id if they contain anything but digits. The
        # snapshot id may have a minus sign, so do not check it for digits, but compare it as text.
        if scan is None or snapshot != str(scan.snapshot.snapshot_id) or not all(map(str.isdecimal, rows)):
            raise OptionError(f"node {node_id[:80]!r} is not part of this plan")
        if kind == "manifest" and len(rows) == 1:
            return int(rows[0])
        if kind == "root" and not rows:
            return None
        raise OptionError(f"node {node_id[:80]!r} is not a manifest, manifest list or root manifest of this plan")

    def _manifest(self, leaf: LeafScan) -> SceneNode:
        assert self._scan is not None
        marks: Any = frozenset() if leaf.readable else frozenset({"problem"})
        assert leaf.root_row is not None
        node_id, place, lines = self.manifest_id(leaf.root_row), leaf.location, leaf_lines(leaf)
        return SceneNode(node_id, "data-manifest", basename(place), lines, None, marks, level=1, tooltip=place)

    @cached_property
    def _pruned(self) -> pa.Table:
        assert self._scan is not None
        return skipped_manifests(self.plan, self._scan)

    def _skipped_manifests(self, start: int, count: int) -> list[SceneNode]:
        assert self._scan is not None
        if not len(self._scan.pruned):
            return []
        records = self._pruned.slice(start, count).to_pylist()
        return [_cut(self.manifest_id(r["root_row"]), "data-manifest", r, "manifest") for r in records]

    def _file_ids(self, row: int | None, ordinals: Iterable[Any]) -> list[str]:
        assert self._scan is not None
        at = [str(self._scan.snapshot.snapshot_id), *([] if row is None else [str(row)])]
        return [":".join(("file", *at, str(n))) for n in self.file_rows(row, ordinals)]

    def _files(self, leaf: LeafScan, start: int, count: int) -> list[SceneNode]:
        first = self._starts[leaf.root_row]
        tasks = np.arange(first + start, first + min(start + count, leaf.kept_files))
        records = task_records(self.plan, tasks)
        ids = self._file_ids(leaf.root_row, (r["ordinal"] for r in records))
        out = []
        for node_id, record in zip(ids, records, strict=True):
            path = record["file_path"]
            badge = "all match" if record["whole"] and self.plan.filter.stats_ids else None
            why = record["why"]  # why the file's first skipped row group is skipped; None if no row group is skipped
            marks: Any = frozenset({"pruned"} if why is not None and not record["row_groups_read"] else ())
            lines = (*file_lines(record), *([evidence(why)] if why is not None else []))
            out.append(SceneNode(node_id, "data-file", basename(path), lines, badge, marks, level=2, tooltip=path))
        return out

    def task(self, row: int | None, ordinal: int) -> int | None:
        """Return the row of a data file in `tasks_table`; None if the plan does not read the file.

        Parameters
        ----------
        row
            The row, in the root (the manifest list or V4 root manifest), of the manifest that lists the file. None if
            a V4 root manifest lists the file itself.
        ordinal
            The position, from 0, of the file's entry among all entries as they are stored in that manifest (or in the
            V4 root manifest, if ``row`` is None).
        """
        leaf = self._leaves.get(row)
        if leaf is None or not leaf.kept_files:
            return None
        first = self._starts[row]
        mine = whole(self.plan.files.files.entries["ordinal"]).slice(first, leaf.kept_files)
        at = pc.index(mine, ordinal).as_py()
        return None if at < 0 else first + int(at)

    def _skipped(self, leaf: LeafScan, start: int, count: int) -> list[SceneNode]:
        manifest = self.manifest(leaf.root_row)
        if manifest is None or self._scan is None:
            return []
        plan = self.plan
        batch, rows = pruned_of(plan.state, self._scan, manifest, plan.filter)
        picked = rows.slice(start, count)
        why = explain_files(plan.filter, batch, plan.state.metadata, picked).to_pylist()
        entries = batch.entries.select(["ordinal", "location", "record_count", "file_size_in_bytes"]).take(picked)
        ids = self._file_ids(leaf.root_row, entries["ordinal"].to_pylist())
        out = []
        for node_id, entry, record in zip(ids, entries.to_pylist(), why, strict=True):
            sizes = {"name": entry["location"], "rows": entry["record_count"], "bytes": entry["file_size_in_bytes"]}
            out.append(_cut(node_id, "data-file", {**record, **sizes, "files": 1}, "file"))
        return out


_DELETES = pa.array([int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE)], pa.int32())


def _blob(entry: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return a pair that identifies a delete.

    For a position or equality delete file, the pair is its location and None. For a deletion vector, the pair is the
    location of the Puffin file that contains it, and its offset there in bytes.

    Parameters
    ----------
    entry
        The delete's entry in a manifest, with the columns ``location`` and ``deletion_vector``.
    """
    return entry["location"], (entry["deletion_vector"] or {}).get("offset")


def _cut(node_id: str, kind: str, record: dict[str, Any], what: str) -> SceneNode:
    """Return the node of a skipped manifest or data file; it shows why the item is skipped and, if known, its size.

    Parameters
    ----------
    kind
        The kind of the node: ``data-manifest`` or ``data-file``.
    record
        The skipped item, as a dictionary with these columns of `SKIPPED_SCHEMA`: ``name``, ``files``, ``rows``,
        ``bytes``, and those that explain why the item is skipped, such as ``term`` (the comparison in the filter that
        no row matches) and ``why`` (the full explanation).
    what
        ``manifest`` or ``file``. A manifest's node also shows the number of its files, and has level 1 instead of 2.
    """
    size = held(record["rows"], record["bytes"], record["files"] if what == "manifest" else None)
    lines = tuple(line for line in (evidence(record), size) if line)
    tooltip = "\n".join(filter(None, (record["name"], record["why"])))
    level = 1 if what == "manifest" else 2
    marks: frozenset[Mark] = frozenset({"pruned"})
    return SceneNode(node_id, kind, basename(record["name"]), lines, None, marks, level=level, tooltip=tooltip)
