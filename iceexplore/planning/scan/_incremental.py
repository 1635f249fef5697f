"""Find the appends between two snapshots for an incremental plan, as Java's ``IncrementalAppendScan`` does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import cast

from iceexplore.errors import OptionError, SnapshotNotFoundError
from iceexplore.graph import SnapshotLike, TableState, resolve_state
from iceexplore.metadata import Snapshot

__all__ = ["Appends", "appends_between"]


@dataclass(frozen=True)
class Appends:
    """The append snapshots in a range of snapshots.

    Attributes
    ----------
    after
        Id of the snapshot after which the range begins; None if it begins with the oldest ancestor of `last` that is in
        the table metadata.
    last
        The last snapshot of the range.
    snapshots
        The snapshots of the range whose operation is ``append``, oldest first.
    notes
        Sentences for the user: on expired snapshots, and on snapshots of the range that are skipped because their
        operation is not ``append``. Snapshots with the operation ``replace`` are skipped without a note, because they
        do not change the rows of the table.
    """

    after: int | None
    last: Snapshot
    snapshots: tuple[Snapshot, ...]
    notes: tuple[str, ...] = ()


def appends_between(state: TableState, after: SnapshotLike | None, upto: SnapshotLike | None) -> Appends | None:
    """Find the snapshots with the operation ``append`` after one snapshot, up to and including another.

    Parameters
    ----------
    after
        The snapshot after which the range begins: an id, a ref, a ref name, a Snapshot or a state of this table. The id
        of an expired snapshot is accepted if this snapshot is the parent of the oldest ancestor of ``upto`` that is
        still in the table metadata. None to begin with this oldest ancestor, which is included.
    upto
        The last snapshot of the range, given in the same way; None for the snapshot of ``state``.

    Returns
    -------
    Appends or None
        None for a table without a snapshot.

    Raises
    ------
    OptionError
        ``after`` is not an ancestor of ``upto``, or one of them is a state of another table.
    SnapshotNotFoundError
        There is no such snapshot or ref, or one was given although the table has no snapshot.
    """
    last = state.snapshot if upto is None else _state(state, upto, "to_snapshot").snapshot
    if last is None:
        if after is not None or upto is not None:
            raise SnapshotNotFoundError(f"{state.name} has no snapshot yet, so there are no appends to plan")
        return None
    first = None if after is None else _first(state, after)
    line: list[Snapshot] = []
    # In a damaged table, the parents of snapshots may form a cycle. The loop ends at a snapshot that it has seen
    # before.
    seen: set[int] = set()
    at: Snapshot | None = last
    parent: int | None = last.snapshot_id
    while at is not None and at.snapshot_id != first and at.snapshot_id not in seen:
        seen.add(at.snapshot_id)
        line.append(at)
        parent = at.parent_snapshot_id
        at = None if parent is None else state.metadata.snapshot(parent)
    if first is not None and first not in (parent, last.snapshot_id):
        raise OptionError(
            f"from_snapshot: snapshot {first} is not an ancestor of snapshot {last.snapshot_id}, so there are no "
            f"appends between them. {last.snapshot_id} and its ancestors: {_listed(line)}"
        )
    line.reverse()
    chosen = tuple(s for s in line if s.operation == "append")
    return Appends(first, last, chosen, _notes(line, first, parent))


def _first(state: TableState, after: SnapshotLike) -> int:
    if isinstance(after, int) and not isinstance(after, bool):
        # `after` is a snapshot id. Do not look up the snapshot: it may have expired. A plan can still begin after it
        # if its child, which has its id as ``parent-snapshot-id``, has not expired.
        return after
    digits = after.removeprefix("-") if isinstance(after, str) and after not in state.metadata.refs else ""
    if digits.isdecimal() and len(digits) < 20:
        return int(cast(str, after))
    found = _state(state, after, "from_snapshot").snapshot
    if found is None:
        raise SnapshotNotFoundError(
            "from_snapshot: the table had no snapshot at that time; omit from_snapshot to begin with the oldest one"
        )
    return found.snapshot_id


def _state(state: TableState, at: SnapshotLike, what: str) -> TableState:
    found = resolve_state(state, at)
    ours, theirs = state.metadata.table_uuid, found.metadata.table_uuid
    if ours and theirs and ours != theirs:
        raise OptionError(f"{what} belongs to another table: its table-uuid is {theirs}, but this table's is {ours}")
    if found.snapshot is not None and state.metadata.snapshot(found.snapshot.snapshot_id) is None:
        raise SnapshotNotFoundError(
            f"{what}: snapshot {found.snapshot.snapshot_id} is not in the metadata file {state.metadata_location}"
        )
    return found


def _listed(line: list[Snapshot]) -> str:
    ids = [str(s.snapshot_id) for s in line[:5]]
    return ", ".join(ids) + (f" and {len(line) - 5} more" if len(line) > 5 else "")


def _notes(line: list[Snapshot], first: int | None, parent: int | None) -> tuple[str, ...]:
    out = []
    passed = Counter(s.operation or "no operation" for s in line if s.operation not in ("append", "replace"))
    if passed:
        words = ", ".join(f"{count} {name}" for name, count in sorted(passed.items()))
        out.append(
            f"Only appends are planned: snapshots of the range with other operations ({words}) are skipped, with the "
            "files that they added and removed. To see what happened to the rows between two snapshots a and b, call "
            "changes(a, b, rows=True) of the table."
        )
    if first is None and parent is not None:
        out.append(
            f"Snapshot {parent} and those before it have expired: the files that they appended are not in the plan."
        )
    return tuple(out)
