"""Order snapshots by commit time, and walk them from child to parent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iceexplore.metadata.document._model import Snapshot, TableMetadata

__all__ = ["ancestry", "in_order"]


def ancestry(metadata: TableMetadata, snapshot: Snapshot | None) -> Iterator[Snapshot]:
    """Yield a snapshot and its ancestors, up to the first one that the table no longer has; stop at a cycle."""
    by_id = {s.snapshot_id: s for s in reversed(metadata.snapshots)}  # of duplicate ids the first wins, as everywhere
    seen = set[int]()
    while snapshot is not None and snapshot.snapshot_id not in seen:
        seen.add(snapshot.snapshot_id)
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else by_id.get(parent)


def in_order(snapshots: Iterable[Snapshot], *, by_number: bool = False) -> list[Snapshot]:
    """Sort snapshots by time, then number (with ``by_number``, by number, then time), and parents before children.

    The numbers are sequence numbers; v1 has none, so the parent decides the order of two commits in one millisecond.
    """
    found = list(snapshots)
    place = {
        s.snapshot_id: (s.sequence_number, s.timestamp_ms) if by_number else (s.timestamp_ms, s.sequence_number)
        for s in found
    }
    parents = {s.snapshot_id: s.parent_snapshot_id for s in found}
    after: dict[int, int] = {}  # how many ancestors have the same time and number
    for snapshot_id in parents:
        way: dict[int, None] = {}
        at: int | None = snapshot_id
        while at is not None and at not in after and at not in way:
            way[at] = None
            parent = parents[at]
            at = parent if parent is not None and place.get(parent) == place[at] else None
        count = after[at] + 1 if at in after else 0
        for passed in reversed(way):
            after[passed] = count
            count += 1
    return sorted(found, key=lambda s: (*place[s.snapshot_id], after[s.snapshot_id]))
