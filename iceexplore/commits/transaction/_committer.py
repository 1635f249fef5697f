"""Commits to a table: made, published, and tried again when another came first."""

from __future__ import annotations

import gzip
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Self

import pyarrow.compute as pc

from iceexplore.commits.layouts._manifest_list import apply_to_list
from iceexplore.commits.layouts._root_manifest import apply_to_root
from iceexplore.commits.metadata_updates._document import next_document
from iceexplore.commits.metadata_updates._snapshots import add_snapshot, snapshot_json
from iceexplore.commits.metadata_updates._upgrade import upgrade, uses_expressions
from iceexplore.commits.model._change import Applied, Change
from iceexplore.commits.model._options import LayoutOptions
from iceexplore.commits.model._writer import CommitWriter
from iceexplore.commits.transaction._pointer import MetadataNames, Pointer, publish_by_rename, publish_by_swap
from iceexplore.commits.validation._conflicts import validate
from iceexplore.errors import (
    CommitConflictError,
    FileMissingError,
    FormatError,
    OptionError,
    RuleError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from iceexplore.graph import TableState, state_of
from iceexplore.metadata import Snapshot, parse_version, schema_at
from iceexplore.reading import MADE_UP_FOLDER
from iceexplore.storage import CommitStorage, Opened, Read, parse_document

__all__ = [
    "CommitRecord",
    "Committer",
    "DocumentChange",
    "MakeChange",
    "Shared",
    "check_options",
]

Document = dict[str, Any]
#: Makes the change, once; ``writer.base`` is the state that it reads, and files that it adds go through the writer.
MakeChange = Callable[[CommitWriter], Change]
#: A change of the document by itself: (document, time of the commit in milliseconds) to document.
DocumentChange = Callable[[Mapping[str, Any], int], Mapping[str, Any]]
Layout = Callable[[Change, CommitWriter], Applied]
#: Java's ``commit.retry.num-retries``: attempts after the first.
_RETRIES = 4
#: The largest of Iceberg's ``long``.
_LONG_MAX = 2**63 - 1


@dataclass(frozen=True)
class CommitRecord:
    """What became of one commit.

    Attributes
    ----------
    number
        From 1, over a writer and its forks; the ``commit`` of the storage's log of writes.
    what
        The operation, or what was changed besides files.
    snapshot_id
        Of the snapshot that it made, or would have made; None for a commit without files.
    attempts
        How often it was tried.
    metadata_location
        The metadata file that it published; None if it failed.
    reads
        What each attempt read from the storage; what the cache had is not among it.
    """

    number: int
    what: str
    snapshot_id: int | None
    attempts: int
    metadata_location: str | None
    reads: tuple[tuple[Read, ...], ...] = ()


class Trial:
    """One commit, over all its attempts."""

    def __init__(
        self,
        committer: Committer,
        make_change: MakeChange | None,
        ref: str,
        document_change: DocumentChange | None,
        pins: tuple[str, ...],
        what: str | None,
        layout: Layout | None = None,
    ) -> None:
        self.committer = committer
        self.make_change = make_change
        self.ref = ref
        self.document_change = document_change
        self.pins = pins
        self.layout = layout
        self.what = what or ("change" if make_change else "metadata")
        self.start = committer.state
        self.change: Change | None = None
        self.made: dict[str, object] = {}
        self.attempt = 0
        self.published: str | None = None
        self.in_doubt = False
        self.snapshot_id: int | None = None
        self.reads: list[tuple[Read, ...]] = []
        self.number, self.names = committer.shared.begin()

    def run(self) -> Snapshot | None:
        """Try until it is published, cannot be, or attempts run out. Raises as `Committer.commit`."""
        most = self._max_attempts()
        began = time.monotonic()
        while self.attempt < most:
            if self.attempt and not self.committer.may_retry(self.attempt, time.monotonic() - began):
                break
            self.attempt += 1
            log = self.committer.storage.reads
            before = len(log)
            known = self.start if self.attempt == 1 else self.committer.newest()
            try:
                state = self._try(known)
            except (FileMissingError, FormatError) as error:
                self._check_expired(known, error)
                raise
            finally:
                self.reads.append(tuple(log)[before:])
            if state is not None:
                self.committer.state = state
                made = self.snapshot_id
                return state.metadata.snapshot(made) if made is not None else _head(state, self.ref)
        raise CommitConflictError(
            "table-unchanged",
            f"in each of {self.attempt} attempts another commit came first; try again, or set "
            "commit.retry.num-retries and commit.retry.total-timeout-ms higher",
        )

    def note(self) -> CommitRecord | None:
        """Keep the record of this commit, if it left anything."""
        shared, writes = self.committer.shared, self.committer.storage.writes
        if self.published is None and not any(w.commit == self.number for w in writes):
            return None
        record = CommitRecord(self.number, self.what, self.snapshot_id, self.attempt, self.published, tuple(self.reads))
        with shared.lock:
            shared.records.append(record)
        return record

    def _check_expired(self, known: TableState, error: Exception) -> None:
        """Files may go while they are read, with a snapshot that another commit lets expire: no damage, a conflict."""
        heads = [_head(state, self.ref) for state in (self.start, known)]
        now = self.committer.newest().metadata
        gone = [str(head.snapshot_id) for head in heads if head is not None and now.snapshot(head.snapshot_id) is None]
        if gone:
            raise CommitConflictError(
                "files-exist",
                f"snapshot {gone[-1]}, on which this commit was being made, has expired since, and files that it reads "
                f"went with it; do it again ({error})",
            ) from error

    def _try(self, known: TableState) -> TableState | None:
        """One attempt on a state: the new state, or None if another commit was first."""
        committer = self.committer
        old = known.opened.document
        if self.attempt > 1:
            committer.check_retry(self.start, known)
            self._check_pins(known)
        timestamp_ms = committer.shared.time_after(known.metadata.last_updated_ms or 0)
        document = self._changed_document(known, timestamp_ms)
        if self.make_change is None:
            if document == old:
                return known
        else:
            document = self._with_snapshot(known, document, timestamp_ms)
        document = dict(next_document(document, previous_location=known.metadata_location, timestamp_ms=timestamp_ms))
        return self._publish(known, document)

    def _changed_document(self, known: TableState, timestamp_ms: int) -> Document:
        options, document = self.committer.options, known.opened.document
        java4 = options.has_root_manifest and not uses_expressions(document)
        if java4 or known.metadata.format_version < options.format_version:
            document = dict(upgrade(document, options.format_version, expressions=options.has_root_manifest))
        if self.document_change is not None:
            document = dict(self.document_change(document, timestamp_ms))
        return document

    def _with_snapshot(self, known: TableState, document: Document, timestamp_ms: int) -> Document:
        assert self.make_change is not None
        committer = self.committer
        base = known if document is known.opened.document else _with_document(known, document)
        base = _on_branch(base, self.ref)
        version = base.metadata.format_version
        _check_room(base)
        if self.snapshot_id is None:
            self.snapshot_id = _new_id(self.names, base)
        writer = CommitWriter(
            storage=committer.storage.for_commit(self.number, self.attempt),
            base=base,
            options=committer.options,
            snapshot_id=self.snapshot_id,
            sequence_number=0 if version < 2 else base.metadata.last_sequence_number + 1,
            first_row_id=None if version < 3 else base.metadata.next_row_id or 0,
            timestamp_ms=timestamp_ms,
            attempt=self.attempt,
            names=self.names,
            made=self.made,
        )
        if self.change is None:
            self.change = self.make_change(writer)
            self.what = self.change.operation
        else:
            validate(self.change, _on_branch(self.start, self.ref), base)
            self.change = self.change if self.change.renew is None else self.change.renew(base)
        applied = (self.layout or layout_of(committer.options))(self.change, writer)
        snapshot = snapshot_json(
            format_version=version,
            snapshot_id=self.snapshot_id,
            timestamp_ms=timestamp_ms,
            operation=self.change.operation,
            root_location=applied.root_location,
            summary=applied.summary,
            parent_snapshot_id=None if base.snapshot is None else base.snapshot.snapshot_id,
            sequence_number=writer.sequence_number,
            schema_id=base.metadata.current_schema_id,
            root_manifest=committer.options.has_root_manifest,
            first_row_id=writer.first_row_id,
            added_rows=applied.added_rows,
        )
        return dict(add_snapshot(document, snapshot=snapshot, ref=self.ref))

    def _publish(self, known: TableState, document: Document) -> TableState | None:
        committer = self.committer
        names = MetadataNames.of(known.metadata_location)
        codec = committer.codec_of(known.opened.document, document)
        number = (known.opened.version or 0) + 1
        location = names.location(number, self.names, codec)
        while names.by_version and committer.is_taken(location):
            number += 1
            location = names.location(number, self.names, codec)
        data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        if codec.lower() == "gzip":
            data = gzip.compress(data, mtime=0)
        publish = publish_by_rename if names.by_version else publish_by_swap
        files = committer.storage.for_commit(self.number, self.attempt)
        self.in_doubt = True  # what is raised in there leaves it open whether the table has moved on
        if not publish(files, committer.pointer, known.metadata_location, location, data):
            self.in_doubt = False
            return None
        self.published = location
        if self.change is not None:
            made_up = pc.match_substring(self.change.added.entries["location"], f"/{MADE_UP_FOLDER}/")
            with committer.shared.lock:
                committer.shared.made_up += pc.sum(made_up).as_py() or 0
        return state_of(committer.opened_at(location, document), strict=known.problems.strict)

    def _check_pins(self, known: TableState) -> None:
        before, now = self.start.opened.document, known.opened.document
        changed = [key for key in self.pins if before.get(key) != now.get(key)]
        if changed:
            raise CommitConflictError(
                "schema-unchanged",
                f"another commit changed {', '.join(changed)} since; look at the table as it is now, and do it again",
            )

    def _max_attempts(self) -> int:
        if self.committer.max_attempts is not None:
            return self.committer.max_attempts
        text = self.start.metadata.properties.get("commit.retry.num-retries", str(_RETRIES))
        return 1 + (int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else _RETRIES)


def layout_of(options: LayoutOptions) -> Layout:
    """The layout that writes manifests and the list, or the root."""
    return apply_to_root if options.has_root_manifest else apply_to_list


def _with_document(state: TableState, document: Document) -> TableState:
    return state_of(replace(state.opened, document=document), strict=state.problems.strict)


def _on_branch(state: TableState, ref: str) -> TableState:
    """The state with the branch's head as its snapshot."""
    head = _head(state, ref)
    return state.showing(head, schema_at(state.metadata, head, ref), ref=ref, travel=None) if head else state


def _head(state: TableState, ref: str) -> Snapshot | None:
    found = state.metadata.refs.get(ref)
    if found is None:
        if ref == "main":
            return state.metadata.snapshot()
        branches = [name for name, r in state.metadata.refs.items() if r.type == "branch"]
        raise SnapshotNotFoundError(
            f"{state.name} has no branch {ref!r}; it has {', '.join(branches) or 'none'}. branch({ref!r}) makes one"
        )
    if found.type == "tag":
        raise RuleError("ref-type", f"{ref!r} is a tag, and commits go to branches")
    head = state.metadata.snapshot(found.snapshot_id)
    if head is None:
        raise SnapshotNotFoundError(f"branch {ref!r} is at snapshot {found.snapshot_id}, which the table does not have")
    return head


def _new_id(names: Random, state: TableState) -> int:
    taken = {s.snapshot_id for s in state.metadata.snapshots}
    while True:
        made = names.getrandbits(63)
        if made > 0 and made not in taken:
            return made


def _check_room(base: TableState) -> None:
    """Refuse a table whose next sequence number or row id would be no long any more: columns of numbers wrap."""
    metadata = base.metadata
    for name, found in (
        ("last-sequence-number", metadata.last_sequence_number),
        ("next-row-id", metadata.next_row_id or 0),
    ):
        if not 0 <= found < _LONG_MAX:
            raise FormatError(
                f"{base.name}: {name} is {found}: a commit counts on from 0 to {_LONG_MAX - 1:,} only",
                field=name,
                code="metadata-invalid",
            )


@dataclass
class Shared:
    """What the writers of one process have in common."""

    pointer: Pointer
    start: str
    seed: int | str | None
    clock: Callable[[], int] | None
    lock: threading.Lock = field(default_factory=threading.Lock)
    records: list[CommitRecord] = field(default_factory=list)
    begun: int = 0
    made_up: int = 0

    def begin(self) -> tuple[int, Random]:
        """The number of a new commit, and where its ids and names come from."""
        with self.lock:
            self.begun += 1
            number = self.begun
        # Names and ids, no secrets.
        return number, Random(  # noqa: S311
            secrets.randbits(128) if self.seed is None else f"{self.seed}/{number}"
        )

    def time_after(self, last_ms: int) -> int:
        """The time of a commit in milliseconds: always later than the table's last one.

        With a seed and no clock each commit is a second after the one before, so that a simulation can be repeated.
        """
        if self.clock is not None:
            return max(self.clock(), last_ms + 1)
        return last_ms + 1000 if self.seed is not None else max(time.time_ns() // 1_000_000, last_ms + 1)


class Committer:
    """A writer of commits to a table: of a simulation's overlay, or of a real folder.

    Parameters
    ----------
    state
        The state from which it starts.
    options
        The layout. If its format version is above the table's, the first commit upgrades the table, in the same
        metadata file ("the first commit to a V4 table must perform this migration").
    storage
        Where new files go, and the table is read from.
    pointer
        What knows the current metadata file, and moves on to another.
    seed
        Makes snapshot ids, names of files and times repeatable.
    clock
        Milliseconds since the epoch; the system's by default.
    max_attempts
        How often a commit is tried; by default ``commit.retry.num-retries`` of the table (4 in Java) and one.

    Attributes
    ----------
    state
        The table as this writer knows it: as of its own last commit, or of the last `refresh`.
    shared
        What it and its forks have in common: pointer, records, clock.

    Raises
    ------
    OptionError
        The format version is below the table's, or ``max_attempts`` below 1.
    UnsupportedError
        The table is encrypted.
    """

    storage: CommitStorage

    def __init__(
        self,
        state: TableState,
        options: LayoutOptions,
        storage: CommitStorage,
        pointer: Pointer,
        *,
        seed: int | str | None = None,
        clock: Callable[[], int] | None = None,
        max_attempts: int | None = None,
    ) -> None:
        check_options(state, options, max_attempts)
        self.options = options
        self.storage = storage
        self.max_attempts = max_attempts
        if seed is not None and state.metadata.snapshots:
            # Names of a simulation that was saved: one on top of it with the same seed must not give them again.
            seed = f"{seed}/{state.metadata.snapshots[-1].snapshot_id}"
        self.shared = Shared(pointer, state.metadata_location, seed, clock)
        self._lock = threading.RLock()
        self._first_notes = state.notes
        self.state = self._shown(state.opened, strict=state.problems.strict)

    def fork(self) -> Self:
        """A second writer to the same table: it starts from this one's state, and knows nothing of later commits.

        Both share the files and the pointer. The one that commits second finds the pointer moved, and rebases.
        """
        other = object.__new__(type(self))
        other.options, other.max_attempts, other._first_notes = self.options, self.max_attempts, self._first_notes
        other.storage = self.storage.view()
        other.shared = self.shared
        other._lock = threading.RLock()
        other.state = other._shown(self.state.opened, strict=self.state.problems.strict)
        return other

    @property
    def pointer(self) -> Pointer:
        """What knows the current metadata file."""
        return self.shared.pointer

    @property
    def records(self) -> tuple[CommitRecord, ...]:
        """The commits of this writer and its forks, in the order in which they ended; failed ones if they wrote."""
        with self.shared.lock:
            return tuple(self.shared.records)

    @property
    def start_location(self) -> str:
        """The metadata file from which it started."""
        return self.shared.start

    def newest(self) -> TableState:
        """The table as of the last commit of any writer; this writer's own state stays what it is."""
        if self.pointer.location == self.state.metadata_location:
            return self.state
        return state_of(self._newest_opened(), strict=self.state.problems.strict)

    def refresh(self) -> TableState:
        """Go on from the last commit of any writer."""
        with self._lock:
            self.state = self.newest()
            return self.state

    def close(self) -> None:
        """Let go of what was taken for this writer, for all who use it."""
        self.storage.close()

    # What kinds of writers differ in ----------------------------------------------------------------------------------

    def notes(self, location: Any) -> tuple[str, ...]:
        """Sentences for the card of a state; ``location`` is the table's."""
        return self._first_notes

    def is_taken(self, location: str) -> bool:
        """Whether a metadata file of this name is there that is none of this table's history: the next number is."""
        return False

    def codec_of(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
        """How a metadata file is compressed: its name says so, and it may replace ``old``."""
        return str((new.get("properties") or {}).get("write.metadata.compression-codec", "none"))

    def check_retry(self, start: TableState, newest: TableState) -> None:
        """Asked before a commit that was begun on ``start`` is tried on a newer state; refuses by an error."""

    def may_retry(self, attempt: int, seconds: float) -> bool:
        """Asked before a further attempt, ``seconds`` after the first began: whether to go on; waits if it must."""
        return True

    def give_up(self, record: CommitRecord) -> None:
        """Told of a commit that has failed, and is known not to be published."""

    def commit(
        self,
        make_change: MakeChange | None = None,
        *,
        ref: str = "main",
        document_change: DocumentChange | None = None,
        pins: tuple[str, ...] = (),
        what: str | None = None,
        layout: Layout | None = None,
    ) -> Snapshot | None:
        """Commit: a change of files, of the document, or of both in one.

        Parameters
        ----------
        make_change
            Called once, with the writer; on a retry its change is validated and applied to the newer state. None: no
            file changes, and no snapshot is made.
        ref
            The branch that gets the snapshot. ``main`` is made by a table's first commit, others must be there.
        document_change
            Made before the files', on each state that the commit is tried on.
        pins
            Keys of the metadata that another commit must not have changed in between (spec, "Commit Conflict
            Resolution and Retry": of a schema update the schema).
        what
            What the record of the commit says, where no file changes.
        layout
            Writes the manifests and the list or root; by default the layout of the options.

        Returns
        -------
        The snapshot made; without files the branch's snapshot, None if there is none. A change of the document that
        changes nothing makes no commit.

        Raises
        ------
        RuleError
            It would break a rule; nothing was written.
        CommitConflictError
            Another commit came first and this one cannot be applied on top of it, or attempts ran out
            (``table-unchanged``), or let the snapshot expire that it reads (``files-exist``). What it wrote stays, as
            orphans, unless the kind of writer removes it (`give_up`).
        SnapshotNotFoundError
            There is no such branch.
        FormatError
            A number that the commit counts on from, ``last-sequence-number`` or ``next-row-id``, is at its limit.
        """
        with self._lock:
            trial = Trial(self, make_change, ref, document_change, pins, what, layout)
            try:
                return trial.run()
            except OverflowError as error:
                # Numbers that a commit counts on from stand in the table's files, where any number can be written.
                raise FormatError(
                    f"a number of the table's metadata is too large to commit on: {error}",
                    code="metadata-invalid",
                ) from error
            finally:
                record = trial.note()
                if record is not None and trial.published is None and not trial.in_doubt:
                    self.give_up(record)

    # ------------------------------------------------------------------------------------------------------------------

    def _shown(self, opened: Opened, *, strict: bool) -> TableState:
        """A state on this writer's storage, from a document of the table."""
        source = replace(opened.source, newest=self._newest_opened)
        shown = replace(opened, storage=self.storage, source=source, catalog_table=None)
        return state_of(replace(shown, notes=self.notes(opened.document.get("location"))), strict=strict)

    def _newest_opened(self) -> Opened:
        location = self.pointer.location
        document, _ = parse_document(self.storage.read(location, kind="metadata"), location)
        return self.opened_at(location, document)

    def opened_at(self, location: str, document: Mapping[str, Any]) -> Opened:
        """What was opened, at another of the table's metadata files."""
        return replace(
            self.state.opened,
            metadata_location=location,
            document=dict(document),
            version=parse_version(location),
            notes=self.notes(document.get("location")),
        )


def check_options(state: TableState, options: LayoutOptions, max_attempts: int | None) -> None:
    """Refuse what cannot be committed to. Raises as `Committer`."""
    if options.format_version < state.metadata.format_version:
        raise OptionError(
            f"format_version={options.format_version}: the table has {state.metadata.format_version}, "
            "and no table goes back to a lower one"
        )
    if max_attempts is not None and max_attempts < 1:
        raise OptionError(f"max_attempts={max_attempts}: at least 1")
    if state.metadata.encryption_keys or "encryption.key-id" in state.metadata.properties:
        raise UnsupportedError(f"{state.name} is encrypted: commits to encrypted tables cannot be made here")
