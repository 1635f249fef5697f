"""Describe what happened to a row at one place: live, deleted (by which delete), or removed with its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from iceexplore.graph import format_ms
from iceexplore.metadata import TableMetadata

__all__ = [
    "Commit",
    "Fate",
    "FateKind",
    "Move",
    "RowDelete",
    "RowEvent",
    "Seen",
    "commit_of",
    "fate_of",
    "timeline",
    "with_move",
]

FateKind = Literal["live", "deleted", "moved", "removed", "unknown"]
EventKind = Literal["added", "updated", "deleted", "restored", "gone", "back"]
Presence = Literal["live", "deleted", "absent", "unknown"]

_DELETE_WORDS = {
    "deletion-vector": "deletion vector",
    "position-delete": "position delete file",
    "equality-delete": "equality delete file",
}


@dataclass(frozen=True)
class Commit:
    """What is known about a snapshot; for an expired one, only its id."""

    snapshot_id: int | None
    timestamp_ms: int | None = None
    operation: str | None = None
    known: bool = True

    @property
    def text(self) -> str:
        """The snapshot as text: ``snapshot 123 (overwrite, 2024-05-01 10:00:00.000 UTC)``."""
        if self.snapshot_id is None:
            return "an unknown snapshot"
        if not self.known:
            return f"snapshot {self.snapshot_id} (no longer in the metadata)"
        return f"snapshot {self.snapshot_id} ({self.operation or 'no operation'}, {format_ms(self.timestamp_ms)})"


@dataclass(frozen=True)
class RowDelete:
    """A delete file or deletion vector that deletes a row.

    Attributes
    ----------
    kind
        ``deletion-vector``, ``position-delete`` or ``equality-delete``.
    offset
        Offset of a deletion vector in its Puffin file.
    by
        The snapshot that added this delete, according to the delete's entry.
    live
        Whether the queried state still has it; False for a file that was replaced or removed.
    """

    kind: str
    location: str
    offset: int | None
    sequence_number: int | None
    by: Commit
    live: bool = True

    @property
    def text(self) -> str:
        """The delete as text: ``deletion vector s3://…/x.puffin at byte 4``."""
        at = "" if self.offset is None else f" at byte {self.offset}"
        return f"{_DELETE_WORDS[self.kind]} {self.location}{at}"


@dataclass(frozen=True)
class Seen:
    """Presence of a row in one snapshot, or in several consecutive ones.

    Attributes
    ----------
    at, until
        The first and the last snapshot with this presence, as indices in the line of snapshots (from 0, oldest first).
    deletes
        Numbers of the deletes that delete the row.
    """

    at: int
    until: int
    presence: Presence
    deletes: tuple[int, ...] = ()


@dataclass(frozen=True)
class RowEvent:
    """An event in the history of a row at a place.

    Attributes
    ----------
    kind
        ``added``, ``updated`` (by a column file of the V4 draft, the newest of its data file), ``deleted``,
        ``restored`` (a delete was removed), ``gone`` (the file was removed), ``back``.
    sure
        Whether the snapshot is known; if not, it was this one or an earlier one that could not be read.
    """

    kind: EventKind
    by: Commit
    deletes: tuple[RowDelete, ...] = ()
    sure: bool = True


@dataclass(frozen=True)
class Move:
    """The new place of a row.

    Attributes
    ----------
    guess
        Whether the rows are considered the same because their values or identifiers are equal; False if they have the
        same ``_row_id``.
    changed
        Whether the row's values changed, where that is known.
    """

    file: str
    position: int
    guess: bool
    changed: bool = False

    @property
    def text(self) -> str:
        """The new place as text: ``b.parquet, position 3 (the same _row_id)``."""
        how = f"a guess: equal {'identifiers' if self.changed else 'values'}" if self.guess else "the same _row_id"
        return f"{self.file}, position {self.position} ({how})"


@dataclass(frozen=True)
class Fate:
    """The final state of a row at a place.

    Attributes
    ----------
    kind
        ``live``; ``deleted``; ``moved`` (its file was removed, the row is elsewhere); ``removed`` (with its file);
        ``unknown``.
    by
        The snapshot that caused this state; None for a live row.
    deletes
        All deletes that delete the row; the first is the earliest, which is the cause. If a row was deleted and its
        file was removed later, the row is still ``deleted``.
    moved_to
        The new place of the row, if known; also for a row that was deleted, for example by an update.
    why
        The reason why more is not known.
    """

    kind: FateKind
    by: Commit | None = None
    deletes: tuple[RowDelete, ...] = ()
    moved_to: Move | None = None
    sure: bool = True
    why: str | None = None

    @property
    def cause(self) -> RowDelete | None:
        """Return the earliest delete."""
        return self.deletes[0] if self.deletes else None

    @property
    def text(self) -> str:
        """The fate as a sentence, without a full stop."""
        within = "" if self.by is None else f"in {'' if self.sure else 'or before '}{self.by.text}"
        goes_on = "" if self.moved_to is None else f"; continues in {self.moved_to.text}"
        match self.kind:
            case "live":
                out = "live"
            case "deleted" if self.cause is not None:
                more = len(self.deletes) - 1
                also = f" (and {more} more delete{'s it' if more == 1 else ' it'})" if more else ""
                out = f"deleted {within} by {self.cause.text}{also}{goes_on}"
            case "moved" if self.moved_to is not None:
                how = "by compaction, " if self.by is not None and self.by.operation == "replace" else ""
                out = f"moved {how}{within} to {self.moved_to.text}"
            case "removed":
                out = f"removed with its file {within}"
            case _:
                out = "not known"
        return f"{out}: {self.why}" if self.why else out


def commit_of(metadata: TableMetadata, snapshot_id: int | None) -> Commit:
    """Return the metadata's information about a snapshot."""
    found = None if snapshot_id is None else metadata.snapshot(snapshot_id)
    if found is None:
        return Commit(snapshot_id, known=False)
    return Commit(snapshot_id, found.timestamp_ms, found.operation)


def timeline(
    seen: Sequence[Seen], commits: Sequence[Commit], deletes: Mapping[int, RowDelete], added_by: Commit
) -> list[RowEvent]:
    """Derive the events of a row from its presence in some snapshots of a line.

    Parameters
    ----------
    seen
        Oldest first; snapshots in between may be missing.
    commits
        The snapshots of the line.
    deletes
        The deletes by the numbers in `seen`.
    added_by
        The snapshot that added the row's file, according to the entry.
    """
    places = {c.snapshot_id: i for i, c in enumerate(commits)}
    out: list[RowEvent] = []
    before: Seen | None = None
    for now in seen:
        if now.presence == "unknown":
            continue
        was = before.presence if before is not None else "absent"
        after = before.until if before is not None else -1
        if now.presence == "absent":
            if was in ("live", "deleted"):
                out.append(RowEvent("gone", commits[now.at], sure=now.at == after + 1))
            elif before is None:
                before = now
                continue
        elif was == "absent":
            if out:
                out.append(RowEvent("back", commits[now.at], sure=now.at == after + 1))
            else:
                is_known = (
                    before is not None and now.at == after + 1 and added_by.snapshot_id != commits[now.at].snapshot_id
                )
                out.append(RowEvent("added", commits[now.at] if is_known else added_by))
        if now.presence == "deleted" and was != "deleted":
            out.append(_deleted(now, after if before is not None else None, commits, deletes, places))
        elif now.presence == "live" and was == "deleted":
            out.append(RowEvent("restored", commits[now.at], sure=now.at == after + 1))
        before = now
    return out


def _deleted(
    now: Seen,
    after: int | None,
    commits: Sequence[Commit],
    deletes: Mapping[int, RowDelete],
    places: Mapping[int | None, int],
) -> RowEvent:
    mine = tuple(sorted((deletes[i] for i in now.deletes), key=_order))
    # An entry names the snapshot that added the delete. If that snapshot is older than one in which the row was live,
    # the delete was rewritten later and its entry kept the old snapshot, so it did not delete the row back then.
    for cause in mine:
        at = places.get(cause.by.snapshot_id)
        if after is None and (at is None or at <= now.at):
            return RowEvent("deleted", cause.by, mine)
        if after is not None and at is not None and after < at <= now.at:
            return RowEvent("deleted", cause.by, (cause, *(d for d in mine if d is not cause)))
    return RowEvent("deleted", commits[now.at], mine, sure=after is not None and now.at == after + 1)


def _order(delete: RowDelete) -> tuple[int, str, int]:
    return delete.sequence_number or 0, delete.location, delete.offset or 0


def fate_of(events: Sequence[RowEvent], last: Presence, every: Iterable[RowDelete], why: str | None = None) -> Fate:
    """Derive the fate of a row from its events.

    Parameters
    ----------
    last
        The row's presence in the newest of the examined snapshots.
    every
        All deletes that delete the row in any of these snapshots.
    why
        Why `last` is unknown.
    """
    if last == "live":
        return Fate("live")
    if last == "unknown":
        return Fate("unknown", why=why)
    # Find the first event that removed the row since it was last present.
    ended: RowEvent | None = None
    for event in events:
        if event.kind in ("restored", "back", "added"):
            ended = None
        elif ended is None:
            ended = event
    if ended is None:
        return Fate("unknown", why=why)
    if ended.kind == "gone":
        return Fate("removed", ended.by, sure=ended.sure)
    first = ended.deletes[:1]
    rest = sorted((d for d in {*every, *ended.deletes} if d not in first), key=_order)
    return Fate("deleted", ended.by, (*first, *rest), sure=ended.sure)


def with_move(fate: Fate, move: Move) -> Fate:
    """Add the new place of a row to its fate."""
    return replace(fate, kind="moved" if fate.kind == "removed" else fate.kind, moved_to=move)
