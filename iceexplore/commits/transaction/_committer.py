"""Build, publish and retry commits to a table."""

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

from iceexplore.arrow import compute as pc
from iceexplore.commits.layouts._draft_root import apply_to_draft_root
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
from iceexplore.metadata import Snapshot, parse_version, relative_location, schema_at
from iceexplore.reading import SYNTHETIC_FOLDER
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
#: A function that builds the file changes of a commit. It is called once per commit, not once per attempt. Its argument
#: is a `CommitWriter`: the function reads the table's state from its attribute ``base``, and writes new data and delete
#: files through it.
MakeChange = Callable[[CommitWriter], Change]
#: A function that changes a table's metadata document, the JSON of its metadata file. Its arguments are the document
#: and the commit's time in milliseconds since the epoch; it returns the changed document.
DocumentChange = Callable[[Mapping[str, Any], int], Mapping[str, Any]]
Layout = Callable[[Change, CommitWriter], Applied]
#: Java's default for ``commit.retry.num-retries``: the number of attempts after the first.
_RETRIES = 4
#: The largest value of Iceberg's ``long``.
_LONG_MAX = 2**63 - 1


@dataclass(frozen=True)
class CommitRecord:
    """The record of one commit.

    Attributes
    ----------
    number
        The commit's number, from 1. Writers that were made from each other with `Committer.fork` count their commits
        together. The storage's log of written files has this number, as ``commit``, for each file of the commit.
    what
        The operation of the new snapshot, such as ``append``. For a commit without file changes: a description, by
        default ``metadata``.
    snapshot_id
        Id of the snapshot that the commit created, or would have created if it had succeeded; None for a commit without
        file changes.
    attempts
        The number of attempts that were made to publish the commit.
    metadata_location
        The location of the metadata file that the commit published; None if the commit failed.
    reads
        One tuple for each attempt, with the attempt's read requests to the storage. Files that were already in a cache
        were not requested again, and are not included.
    """

    number: int
    what: str
    snapshot_id: int | None
    attempts: int
    metadata_location: str | None
    reads: tuple[tuple[Read, ...], ...] = ()


class CommitAttempts:
    """One commit: its change, and the attempts to publish it."""

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
        """Attempt the commit until an attempt is published.

        If another commit was published first, the commit is attempted again on the new state of the table, up to the
        maximum number of attempts and while `Committer.may_retry` allows it. An error ends the attempts. The return
        value and the errors are those of `Committer.commit`.
        """
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
            f"another commit was published first in each of {self.attempt} attempts; try again, or set "
            "commit.retry.num-retries and commit.retry.total-timeout-ms higher",
        )

    def note(self) -> CommitRecord | None:
        """Add the record of this commit to the records that all forks share, and return it.

        If the commit neither wrote a file nor was published, no record is added, and None is returned.
        """
        shared, writes = self.committer.shared, self.committer.storage.writes
        if self.published is None and not any(w.commit == self.number for w in writes):
            return None
        record = CommitRecord(self.number, self.what, self.snapshot_id, self.attempt, self.published, tuple(self.reads))
        with shared.lock:
            shared.records.append(record)
        return record

    def _check_expired(self, known: TableState, error: Exception) -> None:
        """Raise a conflict if the snapshot on which this commit is based has expired in the meantime.

        This is called after an attempt could not read a file, which may be because the snapshot expired and its files
        were deleted.

        Parameters
        ----------
        known
            The state of the table on which the attempt was based.
        error
            The error from reading the file.
        """
        heads = [_head(state, self.ref) for state in (self.start, known)]
        now = self.committer.newest().metadata
        gone = [str(head.snapshot_id) for head in heads if head is not None and now.snapshot(head.snapshot_id) is None]
        if gone:
            raise CommitConflictError(
                "files-exist",
                f"snapshot {gone[-1]}, on which this commit is based, has expired, and files that the commit "
                f"reads were deleted; run the operation again ({error})",
            ) from error

    def _try(self, known: TableState) -> TableState | None:
        """Make one attempt at the commit, based on the table's state ``known``.

        Returns the state after the commit, or None if another commit was published first. If the commit would change
        nothing, ``known`` is returned and nothing is published.
        """
        committer = self.committer
        old = known.opened.document
        if self.attempt > 1:
            committer.check_retry(self.start, known)
            self._check_pins(known)
        timestamp_ms = committer.shared.time_after(known.metadata.last_updated_ms or 0)
        if committer.options.deletion_vectors_on_entries and (head := _head(known, self.ref)) is not None:
            timestamp_ms = max(timestamp_ms, head.timestamp_ms + 1)  # as the rule timestamp-order requires
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
        java4 = options.uses_expressions and not uses_expressions(document)
        if java4 or known.metadata.format_version < options.format_version:
            document = dict(upgrade(document, options.format_version, expressions=options.uses_expressions))
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
            self.change = self.change if self.change.reapply is None else self.change.reapply(base)
        applied = (self.layout or layout_of(committer.options))(self.change, writer)
        snapshot = snapshot_json(
            format_version=version,
            snapshot_id=self.snapshot_id,
            timestamp_ms=timestamp_ms,
            operation=self.change.operation,
            root_location=(
                relative_location(applied.root_location, base.metadata.location)
                if committer.options.deletion_vectors_on_entries
                else applied.root_location
            ),
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
        self.in_doubt = True  # an exception while publishing leaves the outcome unknown
        if not publish(files, committer.pointer, known.metadata_location, location, data):
            self.in_doubt = False
            return None
        self.published = location
        if self.change is not None:
            synthetic = pc.match_substring(self.change.added.entries["location"], f"/{SYNTHETIC_FOLDER}/")
            with committer.shared.lock:
                committer.shared.synthetic += pc.sum(synthetic).as_py() or 0
        return state_of(committer.opened_at(location, document), strict=known.problems.strict, before=known)

    def _check_pins(self, known: TableState) -> None:
        before, now = self.start.opened.document, known.opened.document
        changed = [key for key in self.pins if before.get(key) != now.get(key)]
        if changed:
            raise CommitConflictError(
                "schema-unchanged",
                f"another commit changed {', '.join(changed)}; check the table and run the operation again",
            )

    def _max_attempts(self) -> int:
        if self.committer.max_attempts is not None:
            return self.committer.max_attempts
        text = self.start.metadata.properties.get("commit.retry.num-retries", str(_RETRIES))
        return 1 + (int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else _RETRIES)


def layout_of(options: LayoutOptions) -> Layout:
    """Return the function that writes the manifests, and the manifest list or root, of a table with these options."""
    if options.deletion_vectors_on_entries:
        return apply_to_draft_root
    return apply_to_root if options.has_root_manifest else apply_to_list


def _with_document(state: TableState, document: Document) -> TableState:
    return state_of(replace(state.opened, document=document), strict=state.problems.strict, before=state)


def _on_branch(state: TableState, ref: str) -> TableState:
    """Return the state that shows the newest snapshot of branch ``ref``.

    If the table has no snapshot yet, the given state is returned. A missing branch or a tag raises an error.
    """
    head = _head(state, ref)
    return state.showing(head, schema_at(state.metadata, head, ref), ref=ref, travel=None) if head else state


def _head(state: TableState, ref: str) -> Snapshot | None:
    found = state.metadata.refs.get(ref)
    if found is None:
        if ref == "main":
            return state.metadata.snapshot()
        branches = [name for name, r in state.metadata.refs.items() if r.type == "branch"]
        raise SnapshotNotFoundError(
            f"{state.name} has no branch {ref!r}; it has {', '.join(branches) or 'none'}. branch({ref!r}) creates it"
        )
    if found.type == "tag":
        raise RuleError("ref-type", f"{ref!r} is a tag: commit to a branch")
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
    """Refuse a table whose next sequence number or row id would exceed Iceberg's ``long`` and overflow in Arrow."""
    metadata = base.metadata
    for name, found in (
        ("last-sequence-number", metadata.last_sequence_number),
        ("next-row-id", metadata.next_row_id or 0),
    ):
        if not 0 <= found < _LONG_MAX:
            raise FormatError(
                f"{base.name}: {name} is {found}: a commit needs a value from 0 to {_LONG_MAX - 1:,}",
                field=name,
                code="metadata-invalid",
            )


@dataclass
class Shared:
    """The state that a writer, such as a `Committer`, shares with its forks.

    Attributes
    ----------
    pointer
        The pointer to the table's current metadata file.
    start
        The location of the metadata file that was the current one when the first writer was created.
    seed
        The seed for snapshot ids and file names; None for random ones.
    clock
        A function that returns milliseconds since the epoch; None to use the system clock, or the times that
        `time_after` derives if there is a seed.
    lock
        Held while one of the following attributes changes.
    records
        The records of the commits that ended, in this order; see `Committer.records`.
    begun
        The number of commits begun so far.
    synthetic
        The number of synthetic data files (files without rows) that commits have added.
    """

    pointer: Pointer
    start: str
    seed: int | str | None
    clock: Callable[[], int] | None
    lock: threading.Lock = field(default_factory=threading.Lock)
    records: list[CommitRecord] = field(default_factory=list)
    begun: int = 0
    synthetic: int = 0

    def begin(self) -> tuple[int, Random]:
        """Return the number of a new commit, and the random number generator for its ids and file names."""
        with self.lock:
            self.begun += 1
            number = self.begun
        # These random numbers are for names and ids, not for secrets.
        return number, Random(  # noqa: S311
            secrets.randbits(128) if self.seed is None else f"{self.seed}/{number}"
        )

    def time_after(self, last_ms: int) -> int:
        """Return the time of a commit in milliseconds, always later than the table's last one.

        With a seed and no clock, each commit is one second after the previous one, so that a simulation can be
        repeated.
        """
        if self.clock is not None:
            return max(self.clock(), last_ms + 1)
        return last_ms + 1000 if self.seed is not None else max(time.time_ns() // 1_000_000, last_ms + 1)


class Committer:
    """A writer of commits to a table: to a simulation's overlay, or to a real folder.

    Parameters
    ----------
    state
        The state of the table on which the first commit is based.
    options
        The format version and layout of the metadata that commits write. If this version is above the table's, the
        first commit also upgrades the table, in the same metadata file (V4 proposal: "the first commit to a V4 table
        must perform this migration").
    storage
        The storage from which the table is read and to which new files are written.
    pointer
        Holds the location of the current metadata file; each commit replaces this location.
    seed
        A seed for random numbers: the same commits with the same seed get the same snapshot ids and file names, and,
        without ``clock``, also the same times. None, the default, for random ids and names.
    clock
        A function that returns milliseconds since the epoch. By default, the system clock is used, or, with a seed, a
        clock that advances by one second with each commit.
    max_attempts
        The maximum number of attempts of a commit; by default one more than the table property
        ``commit.retry.num-retries``, or 5 if the property is not set, as in Java.

    Attributes
    ----------
    state
        The table as of this writer's last commit or `refresh`.
    shared
        The state that this writer shares with its forks, such as the pointer, the records and the clock.

    Raises
    ------
    OptionError
        The format version is below the table's, or ``max_attempts`` is below 1.
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
            # The table may be a simulation that was saved, and may have had the same seed. Add the newest snapshot's id
            # to the seed, so that the new commits do not get the names of files that already exist.
            seed = f"{seed}/{state.metadata.snapshots[-1].snapshot_id}"
        self.shared = Shared(pointer, state.metadata_location, seed, clock)
        self._lock = threading.RLock()
        self._first_notes = state.notes
        self.state = self._shown(state.opened, strict=state.problems.strict)

    def fork(self) -> Self:
        """Return a second writer for the same table, which starts with this one's state.

        The two share the files and the pointer. A writer's state includes the other's commits only after the writer
        commits or is refreshed. The one that commits second finds that the pointer has moved, and retries its change on
        the new state.
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
        """The pointer to the table's current metadata file, which this writer shares with its forks."""
        return self.shared.pointer

    @property
    def records(self) -> tuple[CommitRecord, ...]:
        """The commits of this writer and its forks, in the order in which they ended.

        Failed commits are listed only if they wrote files.
        """
        with self.shared.lock:
            return tuple(self.shared.records)

    @property
    def start_location(self) -> str:
        """The location of the metadata file from which the writer started."""
        return self.shared.start

    def newest(self) -> TableState:
        """Return the table as of the last commit of any writer; this writer's own state does not change."""
        if self.pointer.location == self.state.metadata_location:
            return self.state
        return state_of(self._newest_opened(), strict=self.state.problems.strict, before=self.state)

    def refresh(self) -> TableState:
        """Update this writer's state to the last commit of any writer, and return it."""
        with self._lock:
            self.state = self.newest()
            return self.state

    def close(self) -> None:
        """Close this writer's storage and that of all its forks; a simulation's temporary folder is removed."""
        self.storage.close()

    # Hooks for subclasses
    # ----------------------------------------------------------------------------------------------

    def notes(self, location: object) -> tuple[str, ...]:
        """Return sentences to show when the table is displayed, for example that it is a simulation.

        By default, these are the notes of the state that was given to the constructor.

        Parameters
        ----------
        location
            The table's location, as its metadata has it; None if the metadata has no location.
        """
        return self._first_notes

    def is_taken(self, location: str) -> bool:
        """Return whether another program has already written a metadata file at this location.

        If so, the commit tries the next version number.
        """
        return False

    def codec_of(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
        """Return the compression codec of the metadata file to write, such as ``none`` or ``gzip``.

        Parameters
        ----------
        old
            The document in the current metadata file. This class does not use it; subclasses may.
        new
            The document to write. Its property ``write.metadata.compression-codec`` gives the codec.
        """
        return str((new.get("properties") or {}).get("write.metadata.compression-codec", "none"))

    def check_retry(self, start: TableState, newest: TableState) -> None:
        """Raise an error if a commit must not be attempted again; this class allows every retry.

        Parameters
        ----------
        start
            The state of the table on which the first attempt was based.
        newest
            The state of the table on which the next attempt would be based.
        """

    def may_retry(self, attempt: int, seconds: float) -> bool:
        """Return whether to make another attempt; this class always allows it.

        Subclasses may wait before they return, so that the next attempt begins later.

        Parameters
        ----------
        attempt
            The number of attempts made so far, at least 1.
        seconds
            The time in seconds since the first attempt began.
        """
        return True

    def on_commit_failed(self, record: CommitRecord) -> None:
        """Clean up after a commit that failed and is known not to be published.

        This class does nothing. A subclass may delete the files that the commit wrote.
        """

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
        """Commit a change of the table's files, of its metadata document (the JSON of the metadata file), or of both.

        Parameters
        ----------
        make_change
            A function that builds the change of files. It is called once: a retry validates the same change against the
            newer state and applies it there. If None, no files change and no snapshot is created.
        ref
            The branch to commit to. A table's first commit creates ``main``; other branches must exist.
        document_change
            A function that returns the changed document. Each attempt calls it with the document of the state on which
            the attempt is based, and then applies the change of files.
        pins
            Keys of the document whose values the commit depends on, such as ``current-schema-id``. If a concurrent
            commit has changed one of these values, this commit is not retried (spec, "Commit Conflict Resolution and
            Retry").
        what
            The description of a commit without file changes, for its `CommitRecord`.
        layout
            A function that writes the manifests and the manifest list or root; by default the function that `layout_of`
            returns for this writer's options.

        Returns
        -------
        The new snapshot. If no files change: the branch's snapshot, or None if the branch has none. No commit is made
        if the document does not change either.

        Raises
        ------
        RuleError
            The commit would break a rule; nothing was published.
        CommitConflictError
            A concurrent commit conflicts with this one (the error's rule says why), attempts ran out
            (``table-unchanged``), or the snapshot on which this commit is based has expired (``files-exist``). The
            files that this commit wrote remain as orphan files unless the subclass removes them (`on_commit_failed`).
        SnapshotNotFoundError
            The branch does not exist.
        FormatError
            ``last-sequence-number`` or ``next-row-id`` is at its limit.
        """
        with self._lock:
            trial = CommitAttempts(self, make_change, ref, document_change, pins, what, layout)
            try:
                return trial.run()
            except OverflowError as error:
                # Catch overflows: the numbers that a commit increments are read from the table's files and may have any
                # value.
                raise FormatError(
                    f"a number in the table's metadata is too large for any further commit: {error}",
                    code="metadata-invalid",
                ) from error
            finally:
                record = trial.note()
                if record is not None and trial.published is None and not trial.in_doubt:
                    self.on_commit_failed(record)

    # ------------------------------------------------------------------------------------------------------------------

    def _shown(self, opened: Opened, *, strict: bool) -> TableState:
        """Return the state of an opened table; the state reads its files from this writer's storage.

        With ``strict``, the state raises an error for a fault in the metadata. Otherwise, it adds the fault to its
        `Problems` and continues, if this is possible.
        """
        source = replace(opened.source, newest=self._newest_opened)
        shown = replace(opened, storage=self.storage, source=source, catalog_table=None)
        return state_of(replace(shown, notes=self.notes(opened.document.get("location"))), strict=strict)

    def _newest_opened(self) -> Opened:
        location = self.pointer.location
        document, _ = parse_document(self.storage.read(location, kind="metadata"), location)
        return self.opened_at(location, document)

    def opened_at(self, location: str, document: Mapping[str, Any]) -> Opened:
        """Return this writer's table as if it had been opened with another metadata file.

        Parameters
        ----------
        location
            The location of the metadata file.
        document
            The content of the metadata file, as parsed JSON.
        """
        return replace(
            self.state.opened,
            metadata_location=location,
            document=dict(document),
            version=parse_version(location),
            notes=self.notes(document.get("location")),
        )


def check_options(state: TableState, options: LayoutOptions, max_attempts: int | None) -> None:
    """Refuse a state to which nothing can be committed with these options. Raises as `Committer` does."""
    if options.format_version < state.metadata.format_version:
        raise OptionError(
            f"format_version={options.format_version}: the table has format version {state.metadata.format_version}, "
            "and a table cannot be downgraded"
        )
    if max_attempts is not None and max_attempts < 1:
        raise OptionError(f"max_attempts={max_attempts}: expected at least 1")
    if state.metadata.encryption_keys or "encryption.key-id" in state.metadata.properties:
        raise UnsupportedError(f"{state.name} is encrypted: commits to encrypted tables are not supported")
