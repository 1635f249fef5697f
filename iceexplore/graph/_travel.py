"""Time travel: find the snapshot, its schema, and the time at which it was current."""

from __future__ import annotations

import difflib
from operator import itemgetter
from typing import TypeAlias

from iceexplore.errors import OptionError, SnapshotNotFoundError, problem
from iceexplore.graph._state import TableState, state_of
from iceexplore.metadata import Ref, Snapshot, TableMetadata, ancestry, format_ms, in_order, schema_at, to_ms
from iceexplore.storage import open_version, same_location

__all__ = ["SnapshotLike", "clock", "format_ms", "resolve_state", "snapshot_of", "to_ms", "travel"]

#: What selects a state of a table: a snapshot, a snapshot id (also as text), a ref, a ref's name, or a state itself.
SnapshotLike: TypeAlias = TableState | Snapshot | Ref | int | str


def clock(metadata: TableMetadata) -> tuple[list[tuple[int, int]], bool]:
    """Return when each snapshot became current (time and id, oldest first), and whether a snapshot-log was the source.

    Time travel uses the snapshot-log (spec, "Table Metadata": ``snapshot-log``). For a table without one, it uses the
    timestamps of the current snapshot and its ancestors.
    """
    if metadata.snapshot_log:
        # The sort is stable: of entries with the same time, the later one wins, as in Java.
        return sorted(((e.timestamp_ms, e.snapshot_id) for e in metadata.snapshot_log), key=itemgetter(0)), True
    known = in_order(ancestry(metadata, metadata.snapshot()))
    return [(s.timestamp_ms, s.snapshot_id) for s in known], False


def travel(
    state: TableState,
    *,
    snapshot: int | str | None = None,
    timestamp: object = None,
    ref: str | None = None,
    version: int | str | None = None,
) -> TableState:
    """Return the table as of a snapshot, time, branch or tag, or metadata file. Give exactly one of them.

    Raises
    ------
    OptionError
        None or more than one of them is given, or the given one is not of an accepted form.
    SnapshotNotFoundError
        The snapshot, ref or version does not exist, or the table had no snapshot at that time; the message lists the
        nearest ones.
    """
    every = {"snapshot": snapshot, "timestamp": timestamp, "ref": ref, "version": version}
    given = [name for name, value in every.items() if value is not None]
    if len(given) != 1:
        raise OptionError(
            "at() takes exactly one of snapshot=, timestamp=, ref=, version=; got " + (", ".join(given) or "none")
        )
    if version is not None and state.opened.is_delta:
        found = _snapshot(state, version)  # a snapshot of a Delta table has its version as its id
        return _showing(state, found, travel=f"version {found.snapshot_id}")
    if version is not None:
        opened = open_version(state.opened, version)
        other = state_of(opened, strict=state.problems.strict, travel=f"metadata version {version}")
        _compare_uuids(state, other)
        return other
    if ref is not None:
        return _at_ref(state, ref)
    if timestamp is not None:
        return _at_time(state, to_ms(timestamp))
    assert snapshot is not None
    found = _snapshot(state, snapshot)
    return _showing(state, found, travel=f"snapshot {found.snapshot_id}")


def _compare_uuids(state: TableState, other: TableState) -> None:
    """Add a problem to each of two metadata files, one of which was found through the other, if their tables differ."""
    for one, two in ((state, other), (other, state)):
        mine, its = one.metadata.table_uuid, two.metadata.table_uuid
        if not mine or not its or mine.lower() == its.lower():
            return
        logged = any(same_location(e.metadata_file, two.metadata_location) for e in one.metadata.metadata_log)
        why = "which is in its metadata-log" if logged else "in the same folder"
        name = two.metadata_location.rpartition("/")[2]
        text = (
            f"This metadata file and {name}, {why}, have different table-uuids: two tables share the folder, or the "
            "table was dropped and created again."
        )
        where, field = one.metadata_location, "table-uuid"
        one.problems.add(problem("table-uuid-differs", where, text, field=field, found=mine, expected=its))


def resolve_state(state: TableState, at: SnapshotLike) -> TableState:
    """Return the state that ``at`` selects: a snapshot, its id, a ref, its name, or a state (even of another table)."""
    if isinstance(at, TableState):
        return at
    if isinstance(at, Snapshot):
        return travel(state, snapshot=at.snapshot_id)
    if isinstance(at, Ref):
        return travel(state, ref=at.name)
    if isinstance(at, str) and (at in state.metadata.refs or not at.lstrip("-").isdigit()):
        return travel(state, ref=at)
    return travel(state, snapshot=at)


def snapshot_of(metadata: TableMetadata, snapshot_id: int, where: str) -> Snapshot:
    """Return the snapshot with this id.

    Raises
    ------
    SnapshotNotFoundError
        No such snapshot; the message lists the nearest ids.
    """
    found = metadata.snapshot(snapshot_id)
    if found is not None:
        return found
    ids = [s.snapshot_id for s in metadata.snapshots]
    if not ids:
        raise SnapshotNotFoundError(f"{where} has no snapshot {snapshot_id}: it has no snapshots at all")
    similar = difflib.get_close_matches(str(snapshot_id), [str(i) for i in ids], n=3, cutoff=0.5)
    near = [int(i) for i in similar] or sorted(ids, key=lambda i: abs(i - snapshot_id))[:3]
    listed = "; ".join(f"{i} ({format_ms(s.timestamp_ms)})" for i in near if (s := metadata.snapshot(i)) is not None)
    expired = next((e for e in metadata.snapshot_log if e.snapshot_id == snapshot_id), None)
    gone = "" if expired is None else f" (it was current from {format_ms(expired.timestamp_ms)} and has expired)"
    raise SnapshotNotFoundError(
        f"{where} has no snapshot {snapshot_id}{gone}; the nearest of its {len(ids)}: {listed}. "
        "For all of them see t.snapshots"
    )


def _snapshot(state: TableState, snapshot: object) -> Snapshot:
    try:
        if isinstance(snapshot, bool | float):
            raise ValueError
        wanted = int(snapshot)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise OptionError(
            f"snapshot={snapshot!r} is not a snapshot id (an integer); for a branch or tag use ref="
        ) from None
    return snapshot_of(state.metadata, wanted, state.name)


def _showing(state: TableState, found: Snapshot, *, travel: str, ref: str | None = None) -> TableState:
    return state.showing(found, schema_at(state.metadata, found, ref), ref=ref, travel=travel)


def _at_ref(state: TableState, name: str) -> TableState:
    if not isinstance(name, str):
        raise OptionError(f"ref={name!r}: give the name of a branch or tag; for a snapshot id use snapshot=")
    refs = state.metadata.refs
    ref = refs.get(name)
    if ref is None:
        near = difflib.get_close_matches(name, list(refs), n=3, cutoff=0.4) or list(refs)[:5]
        listed = ", ".join(f"{n} ({refs[n].type})" for n in near) or "none"
        raise SnapshotNotFoundError(
            f"{state.name} has no branch or tag {name!r}; the nearest of its {len(refs)}: {listed}"
        )
    found = state.metadata.snapshot(ref.snapshot_id)
    if found is None:
        raise SnapshotNotFoundError(
            f"{ref.type} {name!r} of {state.name} points to snapshot {ref.snapshot_id}, which is not in the metadata; "
            "t.snapshots lists the existing ones"
        )
    return _showing(state, found, ref=name, travel=f"{ref.type} {name}")


def _at_time(state: TableState, ms: int) -> TableState:
    entries, _ = clock(state.metadata)
    past = [e for e in entries if e[0] <= ms]
    if not past:
        first = "it has no snapshots"
        if entries:
            first = f"its history begins at {format_ms(entries[0][0])} (snapshot {entries[0][1]})"
        raise SnapshotNotFoundError(f"{state.name} had no snapshot at {format_ms(ms)}: {first}")
    when, snapshot_id = past[-1]
    found = state.metadata.snapshot(snapshot_id)
    if found is None:
        kept = [e for e in entries if state.metadata.snapshot(e[1]) is not None]
        near = sorted(kept, key=lambda e: abs(e[0] - ms))[:3]
        listed = "; ".join(f"{i} (from {format_ms(t)})" for t, i in near) or "none"
        raise SnapshotNotFoundError(
            f"at {format_ms(ms)} snapshot {snapshot_id} was current (from {format_ms(when)}), but it has expired; "
            f"the nearest that still exist: {listed}"
        )
    return _showing(state, found, travel=f"as of {format_ms(ms)}")
