"""Replay a table's history: commit its snapshots once more in a different layout, and compare the metadata.

Two things are measured for each snapshot, both in the table and in the replay: the metadata (files and bytes) that its
commit wrote, and the metadata that a scan of the snapshot must read.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, TypeVar

from iceexplore.commits._cost import ancestors
from iceexplore.commits.metadata_updates._document import Json
from iceexplore.commits.metadata_updates._new_table import no_history
from iceexplore.commits.metadata_updates._upgrade import with_lists
from iceexplore.commits.model._change import Change
from iceexplore.commits.model._options import LayoutOptions
from iceexplore.commits.replaying._changes import Moves, moves_between
from iceexplore.commits.replaying._check import differences_of
from iceexplore.commits.replaying._result import LEFT_OUT, NO_EFFECT, REWRITTEN, START, Replay, ReplayedSnapshot, Side
from iceexplore.commits.replaying._step import Plan, Planner
from iceexplore.commits.saving._reachable import MetadataFile, tree_files
from iceexplore.commits.transaction._committer import MakeChange
from iceexplore.commits.transaction._sandbox import Sandbox
from iceexplore.delta import CURRENT_SPECS, DELTA_LOG
from iceexplore.errors import IceexploreError, OptionError, renamed_arguments, whole_number
from iceexplore.graph import TableState
from iceexplore.metadata import Snapshot, schema_at
from iceexplore.storage import progress

__all__ = ["replay"]

T = TypeVar("T")
Key = tuple[str, int]


@renamed_arguments(face="wrap")
def replay(
    state: TableState,
    format_version: int = 4,
    *,
    wrap: Callable[[Sandbox], T],
    last: int | None = None,
    seed: int | str | None = 0,
    overlay: str | PathLike[str] | None = None,
    **layout: Any,
) -> Replay[T]:
    """Commit a table's history once more in a chosen layout, oldest snapshot first, up to the state's snapshot.

    The changes of each snapshot are found by comparing its root with its parent's, so that tables by any writer can be
    replayed. The same files are added and removed, with their statistics and partitions, and timestamps are kept.
    Snapshot ids and row ids are new. If the parent of the oldest snapshot has expired, the replay starts with one
    commit that adds all live files of the oldest snapshot. A snapshot that changed only manifests becomes a rewrite of
    manifests; one that changed nothing is left out.

    A replay in version 3 or later writes no position delete files: it reads those of the table, and writes deletion
    vectors instead. If a position delete file cannot be read, the number of rows that it deletes in each data file is
    estimated (`ReplayedSnapshot.estimated`).

    The replay leaves out deletion vectors of data files that are not live, and delete files that apply to no data file.
    It also leaves out position deletes that spell the location of their data file differently from the data file's
    entry, for example with ``s3a://`` instead of ``s3://``: for Java, these are locations of two different files.

    Some writers store locations relative to their working directory. In V4, a relative location is relative to the
    table's location, so the replay refers to different files: `Replay.differences` lists these.

    Parameters
    ----------
    state
        The table. Its history is replayed up to the state's snapshot.
    format_version
        The format version to commit in: the table's or a higher one.
    wrap
        A function that takes the sandbox and returns the `Replay.simulation`.
    last
        Replay only this many of the newest snapshots; the replay starts with all live files of the snapshot before
        them.
    seed
        Makes ids and file names repeatable.
    overlay
        An empty local folder for the files; a temporary one by default.
    **layout
        Options of the layout, which are the attributes of `LayoutOptions`.

    Returns
    -------
    Replay
        The newest snapshot is already compared with the table (`Replay.differences`); `Replay.check` compares all
        snapshots.

    Raises
    ------
    OptionError
        The table has no snapshot, ``last`` is below 1, an option is unknown, or the version is below the table's.
    FormatError
        A manifest of the history cannot be read; ``last`` may exclude that part of the history.
    RuleError
        A commit of the replay would break a rule of the chosen layout.
    UnsupportedError
        Data files have column files (V4 draft), which other layouts cannot store.
    """
    history = list(ancestors(state))
    if not history:
        raise OptionError("nothing to replay: the table has no snapshot")
    last = None if last is None else min(whole_number("last", last, least=1), sys.maxsize - 1)
    history = history[: None if last is None else last + 1][::-1]
    options = LayoutOptions.of(format_version, **layout)
    run = _Run.begin(state, history, options, overlay=overlay, seed=seed)
    try:
        with progress(len(history), "snapshots") as step:
            for snapshot in history:
                run.step(snapshot)
                step()
        run.finish()
    except BaseException:
        run.sandbox.close()
        raise
    return Replay(state, run.sandbox, tuple(run.rows), wrap(run.sandbox), run.differences)


@dataclass
class _Seen:
    """A running total of the metadata files that snapshots reference, from the oldest snapshot on.

    A replay has two totals: one of the files of the table's snapshots, and one of the files of the replayed snapshots.

    Attributes
    ----------
    files
        The keys of all metadata files counted so far (`MetadataFile.key`).
    bytes
        The size of these files in total.
    tree
        The metadata files of the snapshot that was counted last.
    """

    files: set[Key] = field(default_factory=set)
    bytes: int = 0
    tree: tuple[MetadataFile, ...] = ()

    def next(self, state: TableState, snapshot: Snapshot, json_bytes: int | None) -> Side:
        """Count the metadata files of the next snapshot, and return the snapshot's `Side`.

        Parameters
        ----------
        state
            A state of the table, or of the replay, that has the snapshot.
        json_bytes
            The value for `Side.json_bytes`.
        """
        tree = tree_files(state, snapshot)
        written = [f for f in tree if f.key not in self.files]
        self.files |= {f.key for f in written}
        self.bytes += sum(f.size for f in written)
        known = {f.key for f in self.tree}
        left = {f.key for f in tree}
        warm = [f for f in tree if f.key not in known]
        rewritten = sum(f.kind == "manifest" and f.key not in left for f in self.tree)
        self.tree = tree
        return Side(
            files=len(written),
            bytes=sum(f.size for f in written),
            manifests_rewritten=rewritten,
            plan_cold_files=len(tree),
            plan_cold_bytes=sum(f.size for f in tree),
            plan_warm_files=len(warm),
            plan_warm_bytes=sum(f.size for f in warm),
            retained_bytes=self.bytes,
            json_bytes=json_bytes,
        )


@dataclass
class _Run:
    """A replay in progress."""

    state: TableState
    sandbox: Sandbox
    planner: Planner
    clock: list[int]
    start: Snapshot
    rows: list[ReplayedSnapshot] = field(default_factory=list)
    before: _Seen = field(default_factory=_Seen)
    after: _Seen = field(default_factory=_Seen)
    parent: Snapshot | None = None
    differences: tuple[str, ...] = ()

    @classmethod
    def begin(
        cls,
        state: TableState,
        history: list[Snapshot],
        options: LayoutOptions,
        *,
        overlay: str | PathLike[str] | None,
        seed: int | str | None,
    ) -> _Run:
        first = history[0]
        document = _empty_document(state, first)
        folder = state.metadata_location.rpartition("/")[0]
        name = uuid.uuid5(uuid.NAMESPACE_URL, f"{state.metadata.table_uuid} {seed}")
        location = f"{folder}/00000-{name}.metadata.json"
        opened = replace(
            state.opened, document=document, metadata_location=location, version=0, catalog_table=None, notes=()
        )
        clock = [first.timestamp_ms]
        sandbox = Sandbox(
            replace(state, opened=opened),
            options,
            overlay=overlay,
            seed=seed,
            clock=lambda: clock[0],
            max_attempts=1,
        )
        sandbox.storage.write(location, json.dumps(document).encode(), kind="metadata")
        return cls(state, sandbox, Planner(options.format_version), clock, first)

    def step(self, snapshot: Snapshot) -> None:
        """Commit to the replay what one snapshot changed in the table, and append its `ReplayedSnapshot` to `rows`.

        If the snapshot only wrote new manifests for the same files, a rewrite of manifests is committed. Nothing is
        committed for a snapshot that changed nothing, or whose changes the replay does not store (such as position
        delete files that apply to no live data file). Its `ReplayedSnapshot` has a note that it was left out.
        """
        starts = snapshot is self.start and snapshot.parent_snapshot_id is not None
        moves = moves_between(self.state, self.parent, snapshot)
        at = self.state.showing(snapshot, schema_at(self.state.metadata, snapshot), ref=None, travel=None)
        plan = self.planner.plan(moves, snapshot, at, self.sandbox.state)
        self.clock[0] = snapshot.timestamp_ms
        unchanged = plan.is_empty and self.parent is not None
        rewrites = unchanged and not len(moves.added) and not len(moves.removed) and moves.new_manifests
        made: Snapshot | None = None
        if rewrites:
            change = Change("replace", rewrite_manifests=True, isolation="snapshot", summary=plan.change.summary)
            made = self._commit(snapshot, lambda _: change)
        elif not unchanged:
            made = self._commit(snapshot, plan.make)
        left_out = NO_EFFECT if len(moves.added) or len(moves.removed) else LEFT_OUT
        note = START if starts else REWRITTEN if rewrites else left_out if made is None else ""
        self._note(snapshot, made, moves, note, plan)
        self.parent = snapshot

    def _commit(self, snapshot: Snapshot, make: MakeChange | None) -> Snapshot | None:
        metadata = self.sandbox.state.metadata
        known = {s.schema_id for s in metadata.schemas}
        wanted = snapshot.schema_id

        def with_schema(document: Mapping[str, Any], _: int) -> Json:
            return {**document, "current-schema-id": wanted}

        fits = wanted in known and self.planner.version > 1 and wanted != metadata.current_schema_id
        made = self.sandbox.commit(make, document_change=with_schema if fits else None)
        assert made is not None
        self.planner.numbering.add(snapshot, made.sequence_number or 0)
        return made

    def _note(self, snapshot: Snapshot, made: Snapshot | None, moves: Moves, note: str, plan: Plan) -> None:
        before = self.before.next(self.state, snapshot, _json_bytes(self.state, snapshot))
        after = None
        if made is not None:
            state = self.sandbox.state
            after = self.after.next(state, made, state.storage.stat(state.metadata_location).size)
        row = ReplayedSnapshot.of(snapshot, made, moves, note, (plan.estimated, plan.unapplied), before, after)
        self.rows.append(row)

    def finish(self) -> None:
        """Make the table's current schema current in the replay, and compare the newest snapshot with its replay."""
        current = self.state.metadata.current_schema_id
        if self.sandbox.state.metadata.current_schema_id != current:
            self.sandbox.commit(document_change=lambda d, _: {**d, "current-schema-id": current}, what="schema")
        self.sandbox.shared.clock = None
        pairs = [(r.snapshot, r.replayed) for r in self.rows if r.replayed is not None]
        if pairs:
            self.differences = differences_of(self.state, self.sandbox.state, pairs[-1:])


def _empty_document(state: TableState, first: Snapshot) -> Json:
    """Return the metadata document (JSON) with which the replay starts: that of the table, but without any history.

    Schemas, partition specs, sort orders and properties are kept. Snapshots, refs, statistics files and logs are left
    out.

    Parameters
    ----------
    first
        The oldest snapshot of the table to replay.
    """
    document = with_lists(state.opened.document)
    version = document.get("format-version") or 1
    if state.opened.is_delta:
        own = document.get("properties") or {}
        document["properties"] = {k: v for k, v in own.items() if k not in (DELTA_LOG, CURRENT_SPECS)}
    # If the first snapshot has a parent (which is not replayed), the first commit of the replay adds all live files of
    # the snapshot. The files keep their data sequence numbers, which must not be above the commit's sequence number.
    # Therefore, the commit must get the same sequence number as the snapshot: one above last-sequence-number.
    before = max(0, (first.sequence_number or 0) - 1) if first.parent_snapshot_id is not None else 0
    document |= {
        "last-updated-ms": first.timestamp_ms - 1,
        "current-snapshot-id": None if version >= 3 else -1,
        **no_history(),
    }
    if version >= 2:
        document["last-sequence-number"] = before
    if version >= 3:
        document["next-row-id"] = 0
    return document


def _json_bytes(state: TableState, snapshot: Snapshot) -> int | None:
    """Return the size of the metadata file that made a snapshot current, without reading it; None if not found."""
    # A Delta table has no metadata files; its commit files are already counted with the snapshots' metadata.
    if state.opened.is_delta:
        return None
    files = [(e.timestamp_ms, e.metadata_file) for e in state.metadata.metadata_log]
    files.append((state.metadata.last_updated_ms or 0, state.metadata_location))
    found = next((name for at, name in files if at == snapshot.timestamp_ms), None)
    if found is None:
        return None
    try:
        return state.storage.stat(found).size
    except IceexploreError:
        return None
