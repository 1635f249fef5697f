"""Select the manifests that a plan has to read, by what the root (manifest list or V4 root manifest) states about them.

A manifest is selected if both are true: according to the root's file counts, it may have a live file; and according to
the root's partition summaries or (V4) column metrics, it may have a file that matches the filter.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.graph import Removals, TableState, live_manifests
from iceexplore.manifests import ContentType, Manifest, bool_array, live, whole
from iceexplore.metadata import Snapshot
from iceexplore.planning.evaluators._filter import Filter
from iceexplore.planning.evaluators._manifest_evaluator import may_hold
from iceexplore.storage import canonical

__all__ = ["RootScan", "candidates", "scan_root"]

_DATA = {int(ContentType.DATA_MANIFEST)}
_DELETES = {int(ContentType.DELETE_MANIFEST)}


@dataclass(frozen=True, eq=False)
class RootScan:
    """The data manifests in one manifest list or V4 root manifest, and which of them a plan reads.

    A manifest is read if both `filled` and `may` are True for it.

    Attributes
    ----------
    snapshot, root
        The snapshot, and its root: the manifest list or V4 root manifest.
    rows
        The row numbers, in the root, of the live data manifests. An incremental plan has only those that a planned
        snapshot added.
    filled
        One boolean per element of `rows`: whether the manifest may have a live file, according to the root's counts.
    may
        One boolean per element of `rows`: whether the manifest may have a file that matches the filter, according to
        the root's partition summaries or column metrics.
    added_by
        For an incremental plan, the ids of the snapshots whose added files are planned. None for any other plan, which
        plans all live files.
    """

    snapshot: Snapshot
    root: Manifest
    rows: npt.NDArray[np.int64]
    filled: npt.NDArray[np.bool_]
    may: npt.NDArray[np.bool_]
    added_by: frozenset[int] | None = None

    @cached_property
    def kept(self) -> npt.NDArray[np.int64]:
        """Row numbers, in the manifest list (V4: in the root manifest), of the data manifests that the plan reads."""
        return self.rows[self.filled & self.may]

    @cached_property
    def pruned(self) -> npt.NDArray[np.int64]:
        """Row numbers, in the root (manifest list or V4 root manifest), of the data manifests that the plan skips.

        Each of these manifests is empty, or the filter excludes it.
        """
        return self.rows[~(self.filled & self.may)]

    def only(self, rows: Collection[int]) -> RootScan:
        """Return a copy with only the data manifests whose row numbers in the root are in ``rows``.

        Files that a V4 root lists itself are still planned.
        """
        mask = np.isin(self.rows, np.array(sorted(rows), dtype=np.int64))
        return replace(self, rows=self.rows[mask], filled=self.filled[mask], may=self.may[mask])

    def delete_rows(self, state: TableState, wanted: Filter, read: npt.NDArray[np.int64]) -> list[int]:
        """Find the delete manifests that may hold deletes for files of the data manifests in ``read``.

        The root is the manifest list or V4 root manifest. The result has its delete manifests (in V4, only those
        that it does not mark as removed), except in three cases:

        - It has no live deletes, according to the file counts in the root.
        - All its deletes are in partitions that the filter excludes. For example, the filter is ``day = 3``, where
          ``day`` is a partition field, and the manifest has only deletes of day 5. The manifests of global equality
          deletes are not left out for this reason, because these deletes apply to every partition.
        - It has deletes only for the files of one data manifest, and this data manifest is live but not in ``read``. A
          V4 root names this data manifest in the field ``referenced_file`` of the delete manifest's entry.

        Parameters
        ----------
        state
            The planned state of the table.
        wanted
            The filter.
        read
            Row numbers, in the root, of the data manifests for whose files deletes are wanted.

        Returns
        -------
        list of int
            Row numbers, in the root, of the delete manifests.
        """
        rows = np.array(live_manifests(self.root, _DELETES), dtype=np.int64)
        if not len(rows):
            return []
        keep = _filled(self.root, rows) & np.asarray(may_hold(state, self.root, rows, wanted, files="deletes"))
        owner = whole(self.root.entries["referenced_file"])
        if owner.null_count < len(owner):
            names = whole(self.root.entries["location"])
            held = {canonical(n) for n in names.take(build.array(read)).to_pylist() if n}
            known = {
                canonical(n)
                for n in names.take(pa.array(live_manifests(self.root, _DATA), pa.int64())).to_pylist()
                if n
            }
            for i, name in enumerate(owner.take(build.array(rows)).to_pylist()):
                place = canonical(name) if name else None
                if place in known and place not in held:
                    keep[i] = False
        return [int(r) for r in rows[keep]]


def scan_root(
    state: TableState,
    snapshot: Snapshot,
    root: Manifest,
    wanted: Filter,
    added_by: frozenset[int] | None = None,
    seen: set[str] | None = None,
) -> RootScan:
    """Decide, from the content of a root alone, which of its data manifests a plan has to read.

    Parameters
    ----------
    state, snapshot, root
        The planned state of the table, a snapshot, and this snapshot's root: its manifest list (V4: root manifest).
    wanted
        The filter.
    added_by
        Only for an incremental plan: the ids of the snapshots whose added files are planned. A manifest that any other
        snapshot added is left out. A manifest is kept if the root does not state which snapshot added it.
    seen
        Only for an incremental plan, which calls this function once per root: the locations of the manifests that are
        in the results for earlier roots. These manifests are left out, so that none is planned twice. The function adds
        the manifests of its own result to this set.
    """
    rows = np.array(live_manifests(root, _DATA), dtype=np.int64)
    if added_by is not None and seen is not None and len(rows):
        by = whole(root.entries["snapshot_id"]).take(build.array(rows))
        rows = rows[bool_array(pc.or_(pc.is_in(by, build.array(sorted(added_by), pa.int64())), by.is_null()))]
        names = [canonical(n or "") for n in root.entries["location"].take(pa.array(rows)).to_pylist()]
        rows = rows[np.array([n not in seen for n in names], dtype=np.bool_)]
        seen.update(names)
    may = np.asarray(may_hold(state, root, rows, wanted)) if len(rows) else np.zeros(0, dtype=np.bool_)
    return RootScan(snapshot, root, rows, _filled(root, rows), may, added_by)


def candidates(scan: RootScan, leaf: Manifest) -> pa.BooleanArray:
    """Return, for each entry of a manifest, whether it is a data file that the plan would read without a filter.

    Such a file is live. For an incremental plan, one of the snapshots in ``scan.added_by`` must also have added it.

    Parameters
    ----------
    scan
        The manifest list or V4 root manifest that lists the manifest. Only the attribute `added_by` is used.
    leaf
        A manifest, or those entries of a V4 root manifest that are files, not manifests.
    """
    mask = pc.and_(live(leaf.entries), whole(pc.fill_null(pc.equal(leaf.entries["content_type"], 0), False)))
    if scan.added_by is not None:
        ids = pa.array(sorted(scan.added_by), pa.int64())
        added = pc.and_(whole(pc.equal(leaf.entries["status"], 1)), whole(pc.is_in(leaf.entries["snapshot_id"], ids)))
        mask = pc.and_(mask, pc.fill_null(added, False))
    return mask


def _filled(root: Manifest, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return a mask of the data or delete manifests in some rows of the root: True if a manifest may have a live file.

    The root is the manifest list or V4 root manifest. The mask depends on the root's counts of added, existing and
    deleted files (spec, "Manifest Lists", field ids 504 to 506). A count of null means unknown, not zero. A manifest is
    also without live files if manifest DVs (V4 draft) remove all of its entries.

    Counts may be wrong. A count of 0 live files is used only if it is credible: to skip a manifest wrongly could lose
    rows, whereas to read it in vain costs only one read. The count is not credible in three cases:

    - The totals in the root contradict the summary of its snapshot.
    - The root counts live rows in the manifest.
    - The root is in the format of the V4 draft, where a count of 0 may be wrong: Delta Lake 4.4, which writes this
      format for Delta tables, records 0 in all counts of the manifests of a full rewrite, even if they list live files.
    """
    if not len(rows):
        return np.zeros(0, dtype=np.bool_)
    if any(p.code == "totals-differ" for p in root.problems):
        return np.ones(len(rows), dtype=np.bool_)
    stats = whole(root.entries["manifest_stats"]).take(build.array(rows))
    counts: dict[str, Any] = {
        name: pc.struct_field(stats, f"{name}_files_count") for name in ("added", "existing", "deleted")
    }
    held = pc.add(counts["added"], counts["existing"])
    empty = bool_array(pc.equal(held, 0)) & (not root.dialect.deletion_vectors_on_entries)
    for unit in ("added", "existing"):
        empty &= ~bool_array(pc.greater(pc.struct_field(stats, f"{unit}_rows_count"), 0))
    removals = Removals(root)
    if removals:
        # Find manifests that have no live files, because manifest DVs (deletion vectors that remove entries from a
        # manifest, V4 draft) remove all their entries. For this, compare two numbers that the root states: how many
        # entries a manifest has, and how many of them the DVs remove. To find out which entries are removed would
        # require reading files. If fewer are removed, or an unknown number, a live file may remain: keep the manifest.
        stored = pc.add(held, counts["deleted"]).to_pylist()
        names = whole(root.entries["location"]).take(build.array(rows)).to_pylist()
        counted = bool_array(pc.greater(held, 0)) | (not root.dialect.deletion_vectors_on_entries)
        for i, (name, all_of_it) in enumerate(zip(names, stored, strict=True)):
            gone = removals.of(name).entries
            empty[i] |= counted[i] and gone is not None and all_of_it is not None and gone >= all_of_it
    return ~empty
