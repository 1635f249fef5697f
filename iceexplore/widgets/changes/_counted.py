"""Count what a snapshot changed against its parent, or what changed between two snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.graph import (
    Diff,
    SnapshotChange,
    TableState,
    diff,
    files_change,
    live_manifests,
    snapshot_change,
    snapshot_of,
    travel,
)
from iceexplore.manifests import Manifest
from iceexplore.metadata import Snapshot
from iceexplore.storage import is_local

__all__ = ["Counted", "costs_much", "count_changes", "recorded_otherwise"]

#: Maximum number of manifest entries to read without the user's request; 100,000 entries take less than a second.
_MOST_ENTRIES = 200_000
#: Maximum number of manifests of a remote table to read without the user's request.
_MOST_REMOTE = 20
#: The number of bytes per entry assumed for a manifest without counts.
_ENTRY_BYTES = 100
#: For each measure of a change, the summary keys that record what was added, and those that record what was removed.
_RECORDED = {
    "data_files": (("added-data-files",), ("deleted-data-files",)),
    "delete_files": (("added-delete-files",), ("removed-delete-files",)),
    "rows": (("added-records",), ("deleted-records", "added-position-deletes", "added-equality-deletes")),
    "bytes": (("added-files-size",), ("removed-files-size",)),
}
_PLACES = ("root_row", "row", "partition")


@dataclass(frozen=True, eq=False)
class Counted:
    """What changed from one snapshot to another, counted from the manifests.

    Attributes
    ----------
    before
        The older snapshot; None if there is none, as for a table's first commit, or if the parent has expired.
    commit
        Whether this is the change of one commit against its parent.
    files
        A row per file that was added or removed: the columns of `iceexplore.graph.Diff.files_arrow`; and ``root_row``,
        ``row`` and ``partition`` of `Diff.places_arrow`, which are null if the parent has expired.
    change
        The sums of files, rows and bytes that were added and removed.
    schema
        The changes of the schema by field id, as sentences.
    unread
        The manifests that cannot be read, which makes the sums doubtful.
    doubts
        Other reasons to doubt the sums, as sentences.
    manifests
        How many manifests and manifest DVs were added, removed and carried over, as a sentence; empty if not known.
    """

    before: Snapshot | None
    after: Snapshot
    commit: bool
    files: pa.Table
    change: SnapshotChange
    schema: tuple[str, ...]
    unread: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    manifests: str = ""

    def nodes(self, rows: Sequence[int]) -> list[str | None]:
        """Return the ids of the tree nodes of files, given by row. A removed file's node is in the older snapshot."""
        picked = self.files.select(["change", "root_row", "row"]).take(pa.array(rows, pa.int64()))
        out: list[str | None] = []
        for r in build.to_pylist(picked.to_struct_array()):
            of = self.before if r["change"] == "removed" else self.after
            if of is None or r["row"] is None:
                out.append(None)
            else:
                inside = "" if r["root_row"] < 0 else f"{r['root_row']}:"
                out.append(f"file:{of.snapshot_id}:{inside}{r['row']}")
        return out

    def row_of(self, node: str) -> int | None:
        """Return the row of ``files`` with the file of a node; None if that file did not change."""
        kind, _, rest = node.partition(":")
        try:
            snapshot, *at = [int(part) for part in rest.split(":")]
        except ValueError:
            return None
        if kind != "file" or len(at) not in (1, 2):
            return None
        sides = {"added": self.after, "removed": self.before}
        for change, of in sides.items():
            if of is not None and of.snapshot_id == snapshot:
                files = self.files
                mask = pc.and_(pc.equal(files["change"], change), pc.equal(files["row"], at[-1]))
                mask = pc.and_(mask, pc.equal(files["root_row"], at[0] if len(at) == 2 else -1))
                found = np.flatnonzero(np.asarray(pc.fill_null(mask, False)))
                if len(found):
                    return int(found[0])
        return None


def count_changes(state: TableState, after: int, before: int | None = None) -> Counted:
    """Read and count what changed from one snapshot to another, by default from its parent to it.

    Only manifests that are listed by exactly one of the snapshots are read (`iceexplore.graph.diff`). If the parent
    has expired, the statuses of the entries say what the commit changed (`iceexplore.Table.changes`).
    """
    later = snapshot_of(state.metadata, after, state.name)
    now = travel(state, snapshot=after)
    if before is not None:
        found = diff(travel(state, snapshot=before), now, partitions=True)
        return _of_diff(found, snapshot_of(state.metadata, before, state.name), later, commit=False)
    parent = later.parent_snapshot_id
    earlier = None if parent is None else state.metadata.snapshot(parent)
    if parent is not None and earlier is None:
        return _without_parent(now, later)
    old = state.showing(None, now.schema, ref=None, travel=None) if earlier is None else travel(state, snapshot=parent)
    return _of_diff(diff(old, now, partitions=True), earlier, later, commit=True)


def _of_diff(found: Diff, before: Snapshot | None, after: Snapshot, *, commit: bool) -> Counted:
    files = found.files_arrow
    for name in _PLACES:
        files = files.append_column(found.places_arrow.field(name), found.places_arrow[name])
    schema = tuple(f"{change.text} (field id {change.field_id})" for change in found.schema)
    grouped = found.manifests_arrow.group_by("change", use_threads=False).aggregate([("change", "count")])
    counts = {r["change"]: r["change_count"] for r in build.to_pylist(grouped.to_struct_array())}
    words = [f"{sign}{counts[kind]:,}" for sign, kind in (("+", "added"), ("−", "removed")) if kind in counts]
    kept = counts.get("carried over", 0)
    text = f"Manifests: {' '.join(words) or 'no change'}{f', {kept:,} carried over' if kept else ''}."
    return Counted(before, after, commit, files, found.change, schema, found.unread, manifests=text)


def _without_parent(now: TableState, after: Snapshot) -> Counted:
    from iceexplore.commits import changes_of

    found = changes_of(now, after)
    files = found.files_arrow
    kinds: tuple[pa.DataType, ...] = (pa.int32(), pa.int64(), pa.string())
    for name, kind in zip(_PLACES, kinds, strict=True):
        files = files.append_column(name, build.nulls(files.num_rows, kind))
    doubts = (
        "The parent snapshot has expired: the change is what the entries' statuses state, and changes of the schema "
        "are not known.",
        *found.doubts,
    )
    return Counted(None, after, True, files, files_change(found.files_arrow), (), (), doubts)


def costs_much(state: TableState, after: int) -> bool:
    """Return whether many entries must be read to count the changes of a commit.

    This itself reads only the manifest lists or root manifests of the commit and its parent.
    """
    later = snapshot_of(state.metadata, after, state.name)
    parent = later.parent_snapshot_id
    earlier = None if parent is None else state.metadata.snapshot(parent)
    roots = [state.root(later), None if earlier is None else state.root(earlier)]
    known = [_manifests(root) for root in roots]
    changed = {location: size for location, size in (*known[0].items(), *known[1].items())
               if location not in known[0] or location not in known[1]}  # fmt: skip
    entries = sum(changed.values()) + sum(0 if root is None else len(root) for root in roots)
    remote = not is_local(state.storage.folder)
    return entries > _MOST_ENTRIES or (remote and len(changed) > _MOST_REMOTE)


def _manifests(root: Manifest | None) -> dict[str, int]:
    """Return the approximate number of entries of each live manifest in a manifest list or root, by location."""
    if root is None:
        return {}
    rows = pa.array(live_manifests(root), pa.int64())
    columns = root.entries.select(["location", "manifest_stats", "file_size_in_bytes"]).take(rows)
    out = {}
    for r in build.to_pylist(columns.to_struct_array()):
        stats = r["manifest_stats"] or {}
        counts = [stats.get(f"{status}_files_count") for status in ("added", "existing", "deleted")]
        known = [n for n in counts if n is not None and n >= 0]
        out[r["location"]] = sum(known) if len(known) == len(counts) else (r["file_size_in_bytes"] or 0) // _ENTRY_BYTES
    return out


def recorded_otherwise(counted: Counted) -> list[tuple[str, str, int, int]]:
    """Return the summary's numbers that differ from counted ones: measure, side, recorded and counted number.

    A number that the summary does not record does not count as different, as the keys are optional.
    """
    summary = counted.after.summary or {}
    if not counted.commit or counted.unread or counted.doubts:
        return []
    recorded = snapshot_change(counted.after.operation, summary)
    out = []
    for measure, sides in _RECORDED.items():
        for side, keys, n, real in zip(
            ("added", "removed"), sides, getattr(recorded, measure), getattr(counted.change, measure), strict=True
        ):
            if n != real and any(key in summary for key in keys):
                out.append((measure, side, n, real))
    return out
