"""Check manifest lists and root manifests: problems while reading them, their schemas and partition summaries."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from iceexplore.arrow import compute as pc
from iceexplore.doctor.checks._avro_schema import schema_problems
from iceexplore.doctor.checks._leaves import plain_keys
from iceexplore.doctor.examination._examination import Examination
from iceexplore.errors import IceexploreError, Problem, problem
from iceexplore.graph import amount, live_manifests
from iceexplore.manifests import Manifest, whole
from iceexplore.metadata import Snapshot

__all__ = ["check_roots"]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def check_roots(examination: Examination) -> None:
    """Report faults of the examined snapshots' roots."""
    state = examination.state
    current = state.snapshot
    for snapshot in examination.snapshots:
        root = examination.roots[snapshot.snapshot_id]
        is_current = current is not None and snapshot.snapshot_id == current.snapshot_id
        for item in root.problems:
            gone = item.code == "file-missing" and item.where == root.location
            modes: tuple[int, ...] | None = None
            if gone:
                modes = (3,) if is_current else (4,)
                modes = (*modes, 6) if _cleaned_up(examination, snapshot, root.location) else modes
            examination.report(item, snapshots=(snapshot.snapshot_id,), modes=modes)
        for item in (
            *_summaries(examination, root),
            *schema_problems(root, state.metadata),
            *plain_keys(root),
        ):
            examination.report(item, snapshots=(snapshot.snapshot_id,))


def _cleaned_up(examination: Examination, snapshot: Snapshot, location: str) -> bool:
    """Return whether a missing manifest list was probably removed by the engine that wrote it.

    An engine that wrongly assumes that its commit failed removes the manifest list and the manifests of this commit
    (mode 6 in ``docs/doctor.md``). The names of these files contain the same UUID. This probably happened if the
    manifest list of the parent snapshot still exists, but no file in the missing list's folder has this UUID in its
    name.

    Return False if that cannot be determined: there is no parent, the name has no UUID, or the folder cannot be listed.

    Parameters
    ----------
    snapshot
        The snapshot whose manifest list is missing.
    location
        The location of this manifest list.
    """
    metadata, storage = examination.state.metadata, examination.state.storage
    parent = next((s for s in metadata.snapshots if s.snapshot_id == snapshot.parent_snapshot_id), None)
    name = _UUID.search(location.rpartition("/")[2])
    if parent is None or parent.root_location is None or name is None:
        return False
    try:
        storage.stat(parent.root_location)
        left = storage.entries(storage.resolve(location).rpartition("/")[0], details=False)
    except IceexploreError:
        return False
    return not any(name[0] in entry.real.rpartition("/")[2] for entry in left)


def _summaries(examination: Examination, root: Manifest) -> Iterator[Problem]:
    """Check for manifests of a partitioned spec without partition summaries (field id 507)."""
    if root.dialect.has_root_manifest or not len(root):
        return
    specs = {s.spec_id: len(s.fields) for s in examination.state.metadata.partition_specs if s.fields}
    rows = live_manifests(root)
    entries = root.entries.select(["ordinal", "partition_spec_id", "partition_summaries"]).take(
        pa.array(rows, pa.int64())
    )
    due = pc.is_in(entries["partition_spec_id"], pa.array(list(specs), pa.int32()))
    lengths = pc.fill_null(pc.list_value_length(whole(entries["partition_summaries"])), 0)
    lacking = np.flatnonzero(np.asarray(pc.and_(whole(due), pc.equal(lengths, 0))))
    if len(lacking) and examination.state.metadata.requires_snapshot_parts:
        have, these, them = ("has", "this manifest", "it") if len(lacking) == 1 else ("have", "these manifests", "them")
        text = (
            f"{len(lacking):,} of {amount(len(rows), 'manifest')} {have} no partition summaries in the manifest list: "
            f"every filter reads {these}, and commits that keep {them} do not add summaries."
        )
        at = np.asarray(entries["ordinal"])[lacking]
        yield problem("summary-missing", f"{root.location}#entry {at[0]}", text, field="507 partitions", entries=at)
