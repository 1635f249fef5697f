"""Manifests that are lost completely or in part, and the counts that manifest lists state for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.doctor.recovery._choose import Counts
from iceexplore.doctor.recovery._history import PARTS, is_whole
from iceexplore.errors import Problems
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, ManifestReader, Status
from iceexplore.storage import canonical

__all__ = ["LostManifest", "counts_of", "lost_manifests"]

_COLUMNS = [
    "location", "content_type", "snapshot_id", "sequence_number", "partition_spec_id", "first_row_id", "manifest_stats",
    "partition_summaries",
]  # fmt: skip
_COUNTED = (("added", Status.ADDED), ("existing", Status.EXISTING), ("deleted", Status.DELETED))


@dataclass(frozen=True)
class LostManifest:
    """One lost manifest, or several that one commit wrote and that the same snapshots list.

    Of several manifests, it is unknown which of them listed which files, so they are recovered together.

    Attributes
    ----------
    names
        The canonical locations of the manifests.
    snapshots
        The ids of the snapshots that list them.
    deletes
        Whether the manifests list delete files and deletion vectors, not data files.
    spec_id, snapshot_id, sequence_number
        The values in the manifest list; ``snapshot_id`` is the snapshot whose commit wrote the manifests.
    least_number
        The lowest sequence number of the manifests' entries, as the manifest list states it.
    first_row_id, has_row_ids
        ``first_row_id``: the manifest's ``first_row_id`` in the manifest list; None for several manifests.
        ``has_row_ids``: True if the manifest list has a ``first_row_id`` for at least one of the manifests. Then the
        table is of version 3 or later, and the manifests' data files have row ids.
    added, existing, deleted
        The counts that the manifest list states, minus those of the entries that can still be read; None if unknown.
    summaries
        The partition summaries of each of the manifests.
    kept
        The entries that can still be read.
    """

    names: tuple[str, ...]
    snapshots: frozenset[int]
    deletes: bool
    spec_id: int
    snapshot_id: int
    sequence_number: int
    least_number: int
    first_row_id: int | None
    has_row_ids: bool
    added: Counts | None
    existing: Counts | None
    deleted: Counts | None
    summaries: tuple[list[dict[str, Any]] | None, ...]
    kept: EntryBatch = field(repr=False)

    @property
    def live(self) -> Counts | None:
        """The counts of the live entries (ADDED or EXISTING) that can no longer be read; None if unknown."""
        return None if self.added is None or self.existing is None else self.added + self.existing


def lost_manifests(state: TableState, names: Collection[str]) -> tuple[LostManifest, ...]:
    """Return the manifests, among those in ``names``, that cannot be read completely.

    Data manifests come before delete manifests; both are sorted by sequence number. Manifests of V4 trees are left
    out. Damaged manifests are left out if no entry is lost: the manifest list states how many entries a manifest has,
    and at least as many can be read. Several manifests that are lost completely become one `LostManifest` if one commit
    wrote them and the same snapshots list them.

    Parameters
    ----------
    names
        Canonical locations of the manifests to examine.
    """
    rows: dict[str, dict[str, Any]] = {}
    listed: dict[str, set[int]] = {}
    kept: dict[str, EntryBatch] = {}
    for snapshot in state.metadata.snapshots:
        root = state.reader.root(snapshot)
        if root.dialect.has_root_manifest:
            continue
        for number, location in enumerate(build.to_pylist(root.entries["location"])):
            name = canonical(location or "")
            if name not in names:
                continue
            listed.setdefault(name, set()).add(snapshot.snapshot_id)
            if name not in rows:
                rows[name] = build.to_pylist(root.entries.select(_COLUMNS).slice(number, 1))[0]
                reader = ManifestReader(state.storage, state.metadata, Problems())
                leaf = reader.leaf(root, number, PARTS)
                if not is_whole(leaf):
                    kept[name] = EntryBatch.of(leaf) if leaf.dialect else EntryBatch.empty()
    found = [_lost(name, rows[name], frozenset(listed[name]), kept[name]) for name in kept]
    groups: dict[tuple[Any, ...], list[LostManifest]] = {}
    for one in found:
        if len(one.kept) and _is_complete(one):
            continue
        alone = one.names if len(one.kept) else ()  # a manifest that is readable in part is not merged with others
        key = (one.snapshots, one.deletes, one.spec_id, one.snapshot_id, one.sequence_number, alone)
        groups.setdefault(key, []).append(one)
    merged = [_merged(group) for group in groups.values()]
    return tuple(sorted(merged, key=lambda one: (one.deletes, one.sequence_number)))


def _is_complete(one: LostManifest) -> bool:
    """Return whether all entries of a damaged manifest can still be read.

    The manifest list states how many ADDED, EXISTING and DELETED entries the manifest has. All entries can be read if
    at least as many of each status can be read. A number that the manifest list does not state is not checked.
    """
    return all(counts is None or counts.files <= 0 for counts in (one.added, one.existing, one.deleted))


def _lost(name: str, row: dict[str, Any], snapshots: frozenset[int], kept: EntryBatch) -> LostManifest:
    stats = row["manifest_stats"] or {}
    number = row["sequence_number"] or 0
    stated: dict[str, Counts | None] = {}
    for kind, status in _COUNTED:
        files, records = stats.get(f"{kind}_files_count"), stats.get(f"{kind}_rows_count")
        stated[kind] = None
        if files is not None and records is not None:
            stated[kind] = Counts(files, records) - counts_of(kept, status)
    least = stats.get("min_sequence_number")
    return LostManifest(
        names=(name,),
        snapshots=snapshots,
        deletes=row["content_type"] == ContentType.DELETE_MANIFEST,
        spec_id=row["partition_spec_id"] or 0,
        snapshot_id=row["snapshot_id"] or 0,
        sequence_number=number,
        least_number=number if least is None else least,
        first_row_id=row["first_row_id"],
        has_row_ids=row["first_row_id"] is not None,
        **stated,
        summaries=(row["partition_summaries"],),
        kept=kept,
    )


def counts_of(batch: EntryBatch, *statuses: Status) -> Counts:
    """Count the files and rows of the entries with one of these statuses; without statuses, of all entries."""
    records = np.asarray(pc.fill_null(batch.entries["record_count"], 0))
    status = np.asarray(pc.fill_null(batch.entries["status"], int(Status.EXISTING)))
    mask = np.isin(status, [int(s) for s in statuses]) if statuses else np.ones(len(batch), bool)
    return Counts(int(mask.sum()), int(records[mask].sum()))


def _merged(group: list[LostManifest]) -> LostManifest:
    first = group[0]
    if len(group) == 1:
        return first
    return replace(
        first,
        names=tuple(name for one in group for name in one.names),
        least_number=min(one.least_number for one in group),
        first_row_id=None,
        has_row_ids=any(one.has_row_ids for one in group),
        added=_sum(one.added for one in group),
        existing=_sum(one.existing for one in group),
        deleted=_sum(one.deleted for one in group),
        summaries=tuple(summary for one in group for summary in one.summaries),
    )


def _sum(counts: Iterable[Counts | None]) -> Counts | None:
    total = Counts(0, 0)
    for one in counts:
        if one is None:
            return None
        total += one
    return total
