"""What became of a row at one place: live, deleted by what, or gone with its file; and the sentences that say so."""

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
EventKind = Literal["added", "deleted", "restored", "gone", "back"]
Presence = Literal["live", "deleted", "absent", "unknown"]

_DELETE_WORDS = {
    "deletion-vector": "deletion vector",
    "position-delete": "position delete file",
    "equality-delete": "equality delete file",
}


@dataclass(frozen=True)
class Commit:
    """A snapshot as far as it is known: of one that has expired, the id alone."""

    snapshot_id: int | None
    timestamp_ms: int | None = None
    operation: str | None = None
    known: bool = True

    @property
    def text(self) -> str:
        """``snapshot 123 (overwrite, 2024-05-01 10:00:00.000 UTC)``."""
        if self.snapshot_id is None:
            return "a snapshot that is not named"
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
        Of a deletion vector, where it begins in its Puffin file.
    by
        The snapshot that added it, as its entry says.
    live
        Whether the state that was asked still has it; of a file that was replaced or removed, False.
    """

    kind: str
    location: str
    offset: int | None
    sequence_number: int | None
    by: Commit
    live: bool = True

    @property
    def text(self) -> str:
        """``deletion vector s3://…/x.puffin at byte 4``."""
        at = "" if self.offset is None else f" at byte {self.offset}"
        return f"{_DELETE_WORDS[self.kind]} {self.location}{at}"


@dataclass(frozen=True)
class Seen:
    """How a row stood in one snapshot, or in several on end.

    Attributes
    ----------
    at, until
        The place of the snapshot in its line, from 0, oldest first; and the last one in which it stood the same.
    deletes
        Numbers of the deletes that delete it there.
    """

    at: int
    until: int
    presence: Presence
    deletes: tuple[int, ...] = ()


@dataclass(frozen=True)
class RowEvent:
    """Something that happened to a row at a place.

    Attributes
    ----------
    kind
        ``added``, ``deleted``, ``restored`` (a delete was taken back), ``gone`` (the file was removed), ``back``.
    sure
        Whether the snapshot is known; if not, it happened in this one or in one before that could not be read.
    """

    kind: EventKind
    by: Commit
    deletes: tuple[RowDelete, ...] = ()
    sure: bool = True


@dataclass(frozen=True)
class Move:
    """Where a row went on.

    Attributes
    ----------
    guess
        The rows are taken for one because their values are equal, or their identifiers; False where it is the same
        ``_row_id``.
    changed
        Whether its values changed on the way, as far as is known.
    """

    file: str
    position: int
    guess: bool
    changed: bool = False

    @property
    def text(self) -> str:
        """``b.parquet, position 3 (the same _row_id)``."""
        how = f"a guess: equal {'identifiers' if self.changed else 'values'}" if self.guess else "the same _row_id"
        return f"{self.file}, position {self.position} ({how})"


@dataclass(frozen=True)
class Fate:
    """What became of a row at a place.

    Attributes
    ----------
    kind
        ``live``; ``deleted``; ``moved`` (its file went, the row is elsewhere); ``removed`` (with its file);
        ``unknown``.
    by
        The snapshot that brought it about; None for a live row.
    deletes
        Every delete that deletes the row, the first in time first: that one is the cause. A row can be deleted, and
        its file be removed later: it is ``deleted`` all the same.
    moved_to
        Where the row went on, where that is known; also of a row that was deleted, by an update say.
    why
        What is in the way of knowing more.
    """

    kind: FateKind
    by: Commit | None = None
    deletes: tuple[RowDelete, ...] = ()
    moved_to: Move | None = None
    sure: bool = True
    why: str | None = None

    @property
    def cause(self) -> RowDelete | None:
        """The delete that came first."""
        return self.deletes[0] if self.deletes else None

    @property
    def text(self) -> str:
        """The fate as a sentence, without a full stop."""
        within = "" if self.by is None else f"in {'' if self.sure else 'or before '}{self.by.text}"
        goes_on = "" if self.moved_to is None else f"; goes on in {self.moved_to.text}"
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
                out = f"gone with its file, which was removed {within}"
            case _:
                out = "not known"
        return f"{out}: {self.why}" if self.why else out


def commit_of(metadata: TableMetadata, snapshot_id: int | None) -> Commit:
    """What the metadata says of a snapshot."""
    found = None if snapshot_id is None else metadata.snapshot(snapshot_id)
    if found is None:
        return Commit(snapshot_id, known=False)
    return Commit(snapshot_id, found.timestamp_ms, found.operation)


def timeline(
    seen: Sequence[Seen], commits: Sequence[Commit], deletes: Mapping[int, RowDelete], added_by: Commit
) -> list[RowEvent]:
    """What happened to a row, from how it stood in some snapshots of a line.

    Parameters
    ----------
    seen
        Oldest first; snapshots may be missing between them.
    commits
        The snapshots of the line.
    deletes
        What the numbers in `seen` mean.
    added_by
        The snapshot that added its file, as the entry says.
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
                told = (
                    before is not None and now.at == after + 1 and added_by.snapshot_id != commits[now.at].snapshot_id
                )
                out.append(RowEvent("added", commits[now.at] if told else added_by))
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
    # The entries say which snapshot added each delete. A delete that was there before the row was last seen live is a
    # rewritten one, whose entry kept the snapshot: it did not delete the row then.
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
    """The fate of a row from its events.

    Parameters
    ----------
    last
        How it stands in the newest snapshot of the line.
    every
        Every delete that deletes it in some snapshot of the line.
    why
        Why `last` is unknown.
    """
    if last == "live":
        return Fate("live")
    if last == "unknown":
        return Fate("unknown", why=why)
    # What first took the row away, since it was last there.
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
    """The fate of a row of which it is known where it went on."""
    return replace(fate, kind="moved" if fate.kind == "removed" else fate.kind, moved_to=move)
