"""Find out which files the lost manifests of a compaction listed, from the manifests of the parent snapshot.

A compaction that merges manifests keeps all files that they list. So if manifests that it wrote are lost, it can still
be found out which files they listed: the live files of the parent snapshot, without the files that the compaction's
snapshot lists in other manifests, and without those that it records as removed. The result is certain if these are as
many files as the root manifest states for the lost manifests.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits import keys_of
from iceexplore.doctor.repair._draft import Draft
from iceexplore.doctor.repair._sound_values import with_sound_types
from iceexplore.doctor.repair._tree_entries import live_files, sound_files
from iceexplore.errors import IceexploreError
from iceexplore.graph import live_manifests
from iceexplore.manifests import EntryBatch, Manifest, ManifestReader, Status, whole
from iceexplore.manifests.rules import FILES, Rows
from iceexplore.metadata import Snapshot
from iceexplore.storage import canonical

__all__ = ["compacted_files", "lost_manifests", "without_keys"]


def lost_manifests(draft: Draft, root: Manifest) -> dict[str, int]:
    """Return the lost manifests of a root: its live manifests that the repair (``draft``) leaves out.

    The result has the row number of each manifest in the root, by the manifest's canonical location.
    """
    names = build.to_pylist(root.entries["location"])
    rows = {canonical(names[row] or ""): row for row in live_manifests(root)}
    return {name: row for name, row in rows.items() if name in draft.dropped_leaves}


def compacted_files(draft: Draft, reader: ManifestReader, snapshot: Snapshot) -> EntryBatch:
    """Return the entries of files that a snapshot's lost manifests listed, if a compaction wrote these manifests.

    The result is empty if these files cannot be determined with certainty, or if the snapshot has no V4 tree.
    """
    parent = draft.state.metadata.snapshot(snapshot.parent_snapshot_id or -1)
    root, nothing = with_sound_types(reader.root(snapshot)), EntryBatch.empty()
    lost = lost_manifests(draft, root)
    if parent is None or not lost or not root.dialect.has_root_manifest:
        return nothing
    before = reader.root(parent)
    known = {canonical(n or "") for n in build.to_pylist(before.entries["location"])}
    rows = [row for name, row in lost.items() if name not in known]
    counts = build.to_pylist(root.entries["manifest_stats"].take(build.array(rows, pa.int64())))
    statuses = Rows(root.entries).status[rows]
    if not rows or None in counts or (statuses != Status.EXISTING).any():
        return nothing
    try:
        files = sound_files(draft.state, reader, before, draft.dropped_leaves)
        here = live_files(reader, root, draft.dropped_leaves)
    except IceexploreError:
        return nothing
    found = without_keys(without_keys(files, keys_of(here.entries)), _removed_keys(draft, reader, root))
    stated = sum(c["existing_files_count"] or 0 for c in counts)
    return found if len(found) == stated else nothing


def _removed_keys(draft: Draft, reader: ManifestReader, root: Manifest) -> AnyArray:
    """Return the keys (`keys_of`) of the files that a V4 root records as removed.

    These are the files of the root's own DELETED entries, and the files of entries of leaf manifests that a manifest
    DV removes.
    """
    r = Rows(root.entries)
    parts = [keys_of(root.entries.filter(pa.array(r.is_kind(*FILES) & (r.status == Status.DELETED))))]
    names = build.to_pylist(root.entries["location"])
    rows = [row for row in live_manifests(root) if canonical(names[row] or "") not in draft.dropped_leaves]
    for leaf in reader.leaves(root, rows) if rows else ():
        parts.append(keys_of(leaf.entries.filter(whole(leaf.entries["manifest_dv"].is_valid()))))
    return pa.concat_arrays(parts)


def without_keys(batch: EntryBatch, keys: AnyArray) -> EntryBatch:
    """Return a batch without the entries whose keys (`keys_of`) are among ``keys``."""
    known = np.asarray(pc.is_in(keys_of(batch.entries), value_set=keys))
    return batch if not known.any() else batch.filter(pa.array(~known))
