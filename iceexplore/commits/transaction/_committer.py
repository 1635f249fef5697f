"""Commits to a table: made, published, and tried again when another came first."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Self

from iceexplore.commits.model._options import LayoutOptions
from iceexplore.commits.transaction._attempts import CommitRecord, DocumentChange, Layout, MakeChange, Trial
from iceexplore.commits.transaction._pointer import Pointer
from iceexplore.errors import FormatError, OptionError, UnsupportedError
from iceexplore.graph import TableState, state_of
from iceexplore.metadata import Snapshot, parse_version
from iceexplore.storage import CommitStorage, Opened, Source, parse_document

__all__ = ["Committer", "Shared", "check_options"]


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


@dataclass(frozen=True)
class _CommitterSource(Source):
    """Where a state came from: refreshing it gives the newest that was committed."""

    newest: Callable[[], Opened] | None = field(default=None, repr=False)

    def reopen(self) -> Opened:
        """The newest state."""
        if self.newest is None:
            return super().reopen()
        return self.newest()


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
        source = _CommitterSource(
            **{name: getattr(opened.source, name) for name in Source.__dataclass_fields__},
            newest=self._newest_opened,
        )
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
