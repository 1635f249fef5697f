"""Convert one snapshot of a table's history to a change that can be committed in a different layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.commits.live_files._find import find_files
from iceexplore.commits.live_files._locate import locate
from iceexplore.commits.model._change import Change, Operation
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.operations._row_delta import vector_entries
from iceexplore.commits.replaying._changes import Moves
from iceexplore.commits.replaying._position_deletes import Deleted, Positions, estimated_entries
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, concat_batches, whole
from iceexplore.metadata import Snapshot

__all__ = ["Numbering", "Plan", "Planner"]

_DVS_FROM = 3


@dataclass
class Numbering:
    """A mapping from the table's sequence numbers to those of the replay.

    A compaction may give a new file the data sequence number of an earlier commit, so that newer equality deletes still
    apply to the file. In the replay, the file gets the sequence number that this earlier commit has in the replay. If
    that commit was not replayed, the number of the last replayed commit before it is used.
    """

    known: dict[int, int] = field(default_factory=dict)

    def add(self, snapshot: Snapshot, number: int) -> None:
        """Record the sequence number that a snapshot of the table has in the replay."""
        if snapshot.sequence_number:
            self.known[snapshot.sequence_number] = number

    def of(self, batch: EntryBatch, snapshot: Snapshot) -> AnyArray:
        """Return the data sequence numbers that the entries added by ``snapshot`` get in the replay.

        A null means that an entry gets the sequence number of the commit that adds it to the replay.
        """
        column = whole(batch.entries["sequence_number"])
        wanted = [n for n in column.unique().to_pylist() if n is not None]
        given = {n: None if n >= (snapshot.sequence_number or 0) else self._of(n) for n in wanted}
        at = pc.index_in(column, value_set=pa.array(list(given), pa.int64()))
        return pa.array(list(given.values()), pa.int64()).take(at)

    def _of(self, number: int) -> int:
        below = [n for n in self.known if n <= number]
        return self.known[max(below)] if below else number if not self.known else min(number, min(self.known.values()))


@dataclass(frozen=True)
class Plan:
    """The changes of one snapshot, ready to be committed to the replay.

    Attributes
    ----------
    change
        The change, without the entries of the deletion vectors that `make` writes.
    targets
        Entries of the data files whose deletes the snapshot changes.
    vectors
        By location of a data file: the rows that position delete files of the table delete. `make` writes a deletion
        vector for them, because the replay has no position delete files.
    unapplied
        Number of added position delete files and deletion vectors for which no live data file has the location that
        they reference (in exactly this spelling).
    """

    change: Change
    targets: EntryBatch = field(default_factory=EntryBatch.empty)
    vectors: Mapping[str, Deleted] = field(default_factory=dict)
    unapplied: int = 0

    @property
    def estimated(self) -> int:
        """The number of deletion vectors in ``vectors`` whose row count is estimated."""
        return sum(d.bitmap is None for d in self.vectors.values())

    @property
    def is_empty(self) -> bool:
        """Whether the snapshot changes no file."""
        c = self.change
        return not (len(c.added) or c.remove_data or c.remove_deletes or c.replace_dvs or self.vectors)

    def make(self, writer: CommitWriter) -> Change:
        """Write the deletion vectors in ``vectors``, and return the change with their entries."""
        real = {name: d.bitmap for name, d in self.vectors.items() if d.bitmap is not None}
        guessed = {name: d.count for name, d in self.vectors.items() if d.bitmap is None}
        added = [self.change.added]
        if real:
            added.append(vector_entries(writer, self.targets, real))
        if guessed:
            added.append(estimated_entries(writer, self.targets, guessed))
        base = writer.base.snapshot
        return replace(
            self.change, added=concat_batches(added), base_snapshot_id=None if base is None else base.snapshot_id
        )


@dataclass
class Planner:
    """Converts the snapshots of a table, one after the other, to plans for its replay.

    Attributes
    ----------
    version
        Format version of the replay.
    positions
        The rows that the table's position delete files delete in the snapshot for which `plan` was called last.
    made
        By location of a data file: the deleted rows in the deletion vector that was last written instead of position
        delete files.
    """

    version: int
    numbering: Numbering = field(default_factory=Numbering)
    positions: Positions = field(default_factory=Positions)
    made: dict[str, Deleted] = field(default_factory=dict)

    def plan(self, moves: Moves, snapshot: Snapshot, at: TableState, target: TableState) -> Plan:
        """Return the changes to commit to the replay for one snapshot of the table.

        Call this for the snapshots in their order, because the result depends on the earlier calls.

        Parameters
        ----------
        moves
            The files that the snapshot added and removed.
        at
            The table's state at ``snapshot``.
        target
            The current state of the replay.
        """
        gone = build.to_pylist(moves.of(ContentType.DATA, removed=True).entries["location"])
        deletes = [moves.of(ContentType.EQUALITY_DELETE, removed=True)]
        parts = [moves.of(ContentType.DATA), moves.of(ContentType.EQUALITY_DELETE)]
        concerned: set[str] = set()
        came = moves.of(ContentType.POSITION_DELETE, vectors=False)
        went = moves.of(ContentType.POSITION_DELETE, removed=True, vectors=False)
        if self.version >= _DVS_FROM:
            concerned = self.positions.remove(went) | self.positions.add(came, at)
        else:
            parts.append(came)
            deletes.append(went)
        vectors, kept, targets, written = self._vectors(moves, concerned, gone, at, target)
        added = self._anew(concat_batches([*parts, vectors]), snapshot)
        change = Change(
            _operation(snapshot, added, gone or deletes[0].entries.num_rows or kept or written),
            added,
            remove_data=tuple(gone),
            remove_deletes=tuple(n for b in deletes for n in build.to_pylist(b.entries["location"])),
            replace_dvs=tuple(kept),
            # A commit to the replay also drops delete files that can no longer apply to any data file. A delete file
            # that the table's snapshot removes may therefore already be gone from the replay.
            ignore_missing=True,
            isolation="snapshot",
            summary={"replayed-snapshot-id": str(snapshot.snapshot_id)},
        )
        unapplied = len(moves.of(ContentType.POSITION_DELETE, vectors=True)) - len(vectors)
        if self.version >= _DVS_FROM:
            unapplied += self.positions.unapplied(came, set(build.to_pylist(targets.entries["location"])))
        return Plan(change, targets, written, unapplied)

    def _vectors(
        self, moves: Moves, concerned: set[str], gone: list[str], at: TableState, target: TableState
    ) -> tuple[EntryBatch, list[str], EntryBatch, dict[str, Deleted]]:
        """Return how a snapshot changes the deletion vectors of the replay.

        Parameters
        ----------
        concerned
            Data files with added or removed position delete files, which the replay replaces by deletion vectors.
        gone
            Data files that the snapshot removed.
        moves, at, target
            As for `plan`.

        Returns
        -------
        Four values:

        - The entries of deletion vectors to add: those that the table's snapshot added for live data files.
        - The locations of data files whose present deletion vector in the replay is replaced or removed.
        - The entries of all data files whose deletes change.
        - By location of a data file: the deleted rows for which a new deletion vector must be written.
        """
        came = moves.of(ContentType.POSITION_DELETE, vectors=True)
        went = moves.of(ContentType.POSITION_DELETE, removed=True, vectors=True)
        names = {n for b in (came, went) for n in build.to_pylist(b.entries["referenced_file"]) if n} | concerned
        names -= set(gone)
        if not names:
            return EntryBatch.empty(), [], EntryBatch.empty(), {}
        targets, _ = find_files(at, names)
        rows = dict(
            zip(
                build.to_pylist(targets.entries["location"]),
                build.to_pylist(targets.entries["record_count"]),
                strict=True,
            )
        )
        has = pc.is_in(whole(came.entries["referenced_file"]), value_set=pa.array(list(rows), pa.string()))
        came = came.filter(has)  # leave out deletion vectors of data files that are not live
        new = set(build.to_pylist(came.entries["referenced_file"]))
        native, standing = _with_vector(at, rows), _with_vector(target, rows)
        kept, written = [], {}
        for name in sorted(rows):
            if name not in new and name in native:
                continue
            want = None if name in new else self.positions.of(name, rows[name] or 0)
            if want is not None:
                if name in standing and self.made.get(name) == want:
                    continue
                self.made[name] = written[name] = want
            if name in standing:
                kept.append(name)
        return came, kept, targets, written

    def _anew(self, added: EntryBatch, snapshot: Snapshot) -> EntryBatch:
        """Return the entries of files that the snapshot added, without values that the replay's commit assigns itself.

        These are, for example, the snapshot id and the first row id. Data sequence numbers of the table are replaced by
        those of the replay (see `Numbering`). Values that the content type of an entry does not allow are also removed,
        such as the equality ids of a data file.
        """
        if not len(added):
            return added
        is_equality = pc.equal(whole(added.entries["content_type"]), int(ContentType.EQUALITY_DELETE))
        ids = whole(added.entries["equality_ids"])  # some writers store an empty list, not null, for data files
        order = whole(added.entries["sort_order_id"])
        if self.version >= 4:  # V4 allows sort orders only on data files
            is_data = pc.equal(whole(added.entries["content_type"]), int(ContentType.DATA))
            order = pc.if_else(is_data, order, pa.scalar(None, pa.int32()))
        return added.with_columns(
            status=None,
            snapshot_id=None,
            sequence_number=self.numbering.of(added, snapshot) if self.version > 1 else None,
            file_sequence_number=None,
            first_row_id=None,
            manifest_dv=None,
            sort_order_id=order,
            equality_ids=pc.if_else(is_equality, ids, pa.scalar(None, ids.type)),
        )


def _with_vector(state: TableState, names: Mapping[str, Any]) -> set[str]:
    """Return which of the named data files have a deletion vector."""
    if state.snapshot is None or not names:
        return set()
    found = locate(state, (), contents=(ContentType.POSITION_DELETE,), referenced=names)
    return set(build.to_pylist(found["referenced_file"]))


def _operation(snapshot: Snapshot, added: EntryBatch, removes: object) -> Operation:
    operation = snapshot.operation
    for known in get_args(Operation):
        if operation == known:
            return known  # type: ignore[no-any-return]
    return "overwrite" if removes and len(added) else "delete" if removes else "append"
