"""The writer of a simulated view: it commits optimistically to an overlay and never writes to the view itself."""

from __future__ import annotations

import gzip
import json
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from random import Random
from typing import Any, Self

from iceexplore.commits.added_files._from_records import refuse_half_characters
from iceexplore.commits.transaction._committer import Shared
from iceexplore.commits.transaction._pointer import MetadataNames, Pointer, publish_by_rename, publish_by_swap
from iceexplore.commits.view_commits._document import (
    Json,
    committable_view,
    last_time_of,
    new_view_document,
    rollback_view,
)
from iceexplore.commits.view_commits._early_draft import adopted_form
from iceexplore.commits.view_commits._query import ViewQuery
from iceexplore.errors import (
    CommitConflictError,
    FormatError,
    IceexploreError,
    OptionError,
    RuleError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from iceexplore.metadata import format_ms, parse_version, to_ms
from iceexplore.storage import VIEW, Opened, OverlayStorage, TemporaryFolder, parse_document, temporary_room
from iceexplore.views import ViewMetadata, ViewState, open_view_state, view_state_of

__all__ = ["ViewChange", "ViewCommit", "ViewSandbox", "encode_metadata", "new_view_state", "start_view_sandbox"]

#: A function from a document and the commit's time in milliseconds to the new document.
ViewChange = Callable[[Mapping[str, Any], int], Json]
#: Java's default for ``commit.retry.num-retries``: the number of attempts after the first.
_RETRIES = 4
#: 2026-01-01, UTC; fixed, so that a new simulated view with a seed is identical each time.
_CREATED_MS = 1_767_225_600_000
_NOTE = "A simulation: "
#: The largest value of Iceberg's ``long``.
_LONG_MAX = 2**63 - 1
_GZIPPED = re.compile(r"\.gz\.metadata\.json$|\.metadata\.json\.gz$")
_CODEC = "write.metadata.compression-codec"


@dataclass(frozen=True)
class ViewCommit:
    """The record of one commit to a view.

    Attributes
    ----------
    number
        The commit's number, from 1. A writer and its forks have one count, which includes commits that failed or
        changed nothing.
    what
        The name of the operation, such as ``rollback``.
    version_id
        The id of the version that is current after the commit.
    attempts
        How many times the commit was tried; more than once if another writer committed first.
    metadata_location
        The metadata file that the commit published.
    """

    number: int
    what: str
    version_id: int | None
    attempts: int
    metadata_location: str


class ViewSandbox:
    """A writer of simulated commits to a view; it never writes to the view itself.

    New files are written to a local folder, the overlay. All other files are read from the view's own storage.

    Parameters
    ----------
    state
        The state of a view, from which the simulation starts. Write access to the view is not needed.
    overlay
        The local folder for new files, which must be empty or missing; by default a temporary folder.
    seed
        Makes UUIDs, file names and times repeatable.
    early_draft
        Keep the view in the form of the early draft of the view spec. By default, the first commit converts the view to
        the form of the adopted spec.

    Attributes
    ----------
    state
        The view as of this writer's last commit or `refresh`.
    storage
        The storage that writes to the overlay, and reads from both the overlay and the view's own storage.

    Raises
    ------
    FormatError
        The view's metadata is invalid in a way that makes commits impossible: for example, it has no current version.
    OptionError
        ``overlay`` cannot be used: it is remote, not empty, or inside the view's folder. Or ``early_draft`` is true,
        but the view has the form of the adopted spec.
    UnsupportedError
        The view's format version is not supported.
    """

    def __init__(
        self,
        state: ViewState,
        *,
        overlay: str | PathLike[str] | None = None,
        seed: int | str | None = None,
        early_draft: bool = False,
    ) -> None:
        metadata = committable_view(state.opened.document, state.metadata_location)
        if early_draft and not metadata.early_draft:
            raise OptionError("early_draft=True: the view has the form of the adopted spec")
        self.early_draft = early_draft
        self.storage = OverlayStorage(state.storage, overlay)
        if seed is not None:
            # A simulation may be saved, and the saved view simulated with the same seed. Make the seed depend on the
            # view's state, so that the new simulation does not generate the names of the saved files again.
            seed = f"{seed}/{metadata.view_uuid}/{len(metadata.version_log)}/{last_time_of(metadata)}"
        self.shared = Shared(Pointer(state.metadata_location), state.metadata_location, seed, None)
        self.records: list[ViewCommit] = []
        self._lock = threading.RLock()
        self._first_notes = state.notes
        self.state = self._shown(state.opened, strict=state.problems.strict)

    def fork(self) -> Self:
        """Return a second writer to the same simulated view, which starts with this one's state.

        The two share the overlay's files and the pointer to the current metadata file. A writer's state includes the
        other's commits only after the writer commits or is refreshed.
        """
        other = object.__new__(type(self))
        other.early_draft, other.shared, other.records = self.early_draft, self.shared, self.records
        other._first_notes, other._lock = self._first_notes, threading.RLock()
        other.storage = self.storage.view()
        other.state = other._shown(self.state.opened, strict=self.state.problems.strict)
        return other

    def copy(self) -> Self:
        """Return an independent copy of this writer: later commits of either do not appear in the other."""
        other = self.fork()
        other.storage = self.storage.copy()
        with self.shared.lock:
            other.shared = replace(self.shared, pointer=Pointer(self.shared.pointer.location), lock=threading.Lock())
            other.records = list(self.records)
        other.state = other._shown(self.state.opened, strict=self.state.problems.strict)
        return other

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        raise TypeError(
            "a simulated view cannot be pickled: its files are in a folder of this process. Save it with "
            "s.save(folder) and open that folder in the other process; s.copy() makes a copy in this one"
        )

    def newest(self) -> ViewState:
        """Return the view as of the last commit of any writer; this writer's own state does not change."""
        if self.shared.pointer.location == self.state.metadata_location:
            return self.state
        return view_state_of(self._newest_opened(), strict=self.state.problems.strict)

    def refresh(self) -> ViewState:
        """Update this writer's state to the last commit of any writer, and return it."""
        with self._lock:
            self.state = self.newest()
            return self.state

    def published(self) -> tuple[str, ...]:
        """Return the locations of the simulation's metadata files, oldest first.

        The first is the file from which the simulation started. The others were published by commits of this writer and
        its forks; they are sorted by the number in their names.
        """
        with self.shared.lock:
            locations = [record.metadata_location for record in self.records]
        # Sort, because writers in several threads may not record their commits in the order of publishing.
        return (self.shared.start, *sorted(locations, key=lambda one: parse_version(one) or 0))

    def close(self) -> None:
        """Remove the overlay's folder if it is temporary, for all writers that share it."""
        self.storage.close()

    def commit(self, change: ViewChange, what: str, *, timestamp: object = None, retry: bool = True) -> ViewState:
        """Commit a change of the view, and return the new state.

        If another commit was published first, the change is applied again, to the newest state. No metadata file is
        written if the change has no effect on the document.

        Parameters
        ----------
        change
            A function that gets the current metadata document and the time of the commit in milliseconds, and returns
            the new document. It is called once in each attempt.
        what
            The name of the operation, such as ``rollback``, for the commit's record.
        timestamp
            The time of the commit, which must not be before the view's last change; by default now, but always after
            that change.
        retry
            If false, a concurrent commit is a conflict, as for ``CREATE OR REPLACE VIEW``.

        Raises
        ------
        CommitConflictError
            Other writers committed first, and ``retry`` is false or no attempt is left (rule ``view-unchanged``). Or
            the change, which was possible in this writer's state, is refused in the newest state; if this is because
            of a rule, the error names the rule.
        RuleError, OptionError, SnapshotNotFoundError
            The change is refused in this writer's state. (OptionError: or ``timestamp`` is before the view's last
            change.)
        FormatError
            The view's metadata is invalid in a way that makes commits impossible, or the time of its last change is
            the largest that can be stored.
        UnsupportedError
            The view cannot be converted to the form of the adopted spec. Or the change gives the view a new location,
            although its metadata files have names such as ``v3.metadata.json``. Such a view has no catalog. Readers
            find the newest file by its number, so all files must stay in one folder.
        """
        given = None if timestamp is None else _given_time(timestamp)
        with self._lock:
            number, names = self.shared.begin()
            view_uuid = str(uuid.UUID(int=names.getrandbits(128), version=4))
            most = self._attempts() if retry else 1
            for attempt in range(1, most + 1):
                known = self.state if attempt == 1 else self.newest()
                metadata = committable_view(known.opened.document, known.metadata_location)
                timestamp_ms = self._time(metadata, given)
                old = known.opened.document if self.early_draft else adopted_form(known.opened.document, view_uuid)
                try:
                    new = change(old, timestamp_ms)
                except (RuleError, OptionError, SnapshotNotFoundError) as error:
                    if attempt == 1:
                        raise
                    raise _conflict(error, known) from error
                if new == known.opened.document:
                    if self.shared.pointer.location != known.metadata_location:
                        continue  # no effect on this state, but another writer has published a newer one: try again
                    self.state = known
                    return known
                published = self._publish(known, new, names, number, attempt)
                if published is not None:
                    self.state = published
                    done = ViewCommit(number, what, new["current-version-id"], attempt, published.metadata_location)
                    with self.shared.lock:
                        self.records.append(done)
                    return published
        advice = "refresh() shows it; then repeat the operation"
        if retry:
            advice = f"this happened in each of {most} attempts; try again, or set commit.retry.num-retries higher"
        raise CommitConflictError("view-unchanged", f"another commit was published first{_at(self.newest())}: {advice}")

    def notes(self, location: object) -> tuple[str, ...]:
        """Return notes for the user; the first one states that this is a simulation, and where its files are.

        The other notes are those of the view from which the simulation started.

        Parameters
        ----------
        location
            The view's location, to be shown in the first note.
        """
        note = f"{_NOTE}nothing is written to {location}; new files are in {self.storage.overlay_folder}."
        return (note, *(n for n in self._first_notes if not n.startswith(_NOTE)))

    def _attempts(self) -> int:
        text = self.state.metadata.properties.get("commit.retry.num-retries", str(_RETRIES))
        return 1 + (int(text) if text.isascii() and text.isdecimal() and len(text) < 5 else _RETRIES)

    def _time(self, metadata: ViewMetadata, given: int | None) -> int:
        last = last_time_of(metadata)
        if last >= _LONG_MAX:
            raise FormatError(f"the view's last change is at {last}: no later time can be stored", code="view-invalid")
        if given is None:
            return self.shared.time_after(last)
        if given < last:
            raise OptionError(f"timestamp={format_ms(given)} is before the view's last change, at {format_ms(last)}")
        return given

    def _publish(self, known: ViewState, document: Json, names: Random, number: int, attempt: int) -> ViewState | None:
        """Write a metadata file, make it current, and return the new state; None if another commit was published first.

        Parameters
        ----------
        known
            The state on which the commit builds.
        document
            The new metadata document.
        names
            The generator of random numbers for the UUID in the file's name.
        number, attempt
            The commit's number and the attempt's, from 1; the log of written files records both.

        Raises
        ------
        UnsupportedError
            The document has a new location, but the view's metadata files are numbered (see `commit`).
        """
        at = MetadataNames.of(known.metadata_location)
        properties = document.get("properties") or {}
        codec = str(properties.get(_CODEC, "gzip" if _GZIPPED.search(known.metadata_location) else "none"))
        if at.by_version and document["location"] != known.metadata.location:
            raise UnsupportedError(
                f"the metadata files of {known.metadata.location} are numbered, as in a folder without a catalog, and "
                "must stay together: save(folder, location=...) writes the view for another location"
            )
        if not at.by_version:  # Java: BaseViewOperations.metadataFileLocation
            base = str(document["location"]).rstrip("/") + "/metadata"
            at = replace(at, folder=str(properties.get("write.metadata.path", base)).rstrip("/"))
        sequence = (known.opened.version or 0) + 1
        location = at.location(sequence, names, codec)
        while at.by_version and self.storage.base.exists(location):
            sequence += 1
            location = at.location(sequence, names, codec)
        publish = publish_by_rename if at.by_version else publish_by_swap
        files = self.storage.for_commit(number, attempt)
        data = encode_metadata(document, location)
        if not publish(files, self.shared.pointer, known.metadata_location, location, data):
            return None
        return view_state_of(self._opened_at(location, document), strict=known.problems.strict)

    def _shown(self, opened: Opened, *, strict: bool) -> ViewState:
        """Return the state of the view as of one metadata file.

        The state reads files through this writer's storage, has the notes of the simulation, and finds the newest
        metadata file by this writer's pointer.

        Parameters
        ----------
        opened
            The metadata file, found and parsed.
        strict
            If true, an error in the metadata is raised; otherwise, it is added to the state's problems.
        """
        source = replace(opened.source, newest=self._newest_opened)
        notes = self.notes(opened.document.get("location"))
        return view_state_of(
            replace(opened, storage=self.storage, source=source, catalog_table=None, notes=notes), strict=strict
        )

    def _newest_opened(self) -> Opened:
        location = self.shared.pointer.location
        document, _ = parse_document(self.storage.read(location, kind="metadata"), location, kind=VIEW)
        return self._opened_at(location, document)

    def _opened_at(self, location: str, document: Mapping[str, Any]) -> Opened:
        """Return `Opened` for a metadata file at ``location`` with the content ``document``.

        The storage and the name are those of `state`. The problems of `state` are left out, because they were found in
        another metadata file.
        """
        return replace(
            self.state.opened,
            metadata_location=location,
            document=dict(document),
            problems=(),
            version=parse_version(location),
            notes=self.notes(document.get("location")),
        )


def _given_time(timestamp: object) -> int:
    """Return a time in milliseconds since the epoch; ``timestamp`` may have any form that `to_ms` accepts.

    Raises
    ------
    OptionError
        The form is not accepted, or the time is before 1970 or too large for Iceberg's ``long``.
    """
    found = to_ms(timestamp)
    if not 0 <= found <= _LONG_MAX:
        raise OptionError(f"timestamp={timestamp!r}: give a time from 1970 on, in milliseconds below 2^63")
    return found


def _conflict(error: IceexploreError, known: ViewState) -> CommitConflictError:
    """Return the error to raise if a retry of a commit is refused, although the first attempt was not.

    ``error`` explains why the change cannot be made on ``known``, the newest state of the view.
    """
    rule = error.rule if isinstance(error, RuleError) else "view-unchanged"
    reason = str(error).removesuffix(f" [rule {rule}]")
    text = f"another commit was published first{_at(known)}; on top of it, this change is refused: {reason}"
    return CommitConflictError(rule, text)


def _at(state: ViewState) -> str:
    return "" if state.version is None else f" (version {state.version.version_id} is current)"


def encode_metadata(document: Mapping[str, Any], name: str) -> bytes:
    """Return the bytes of a metadata file; they are compressed if the file ``name`` has the suffix for gzip."""
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return gzip.compress(data, mtime=0) if _GZIPPED.search(name) else data


def start_view_sandbox(state: ViewState, **how: Any) -> ViewSandbox:
    """Return a sandbox that starts from a state of a view.

    If the state shows a version that is not the view's current one, a first commit makes this version current.

    ``how`` has the keyword arguments of `ViewSandbox`. The errors are the same as those of `ViewSandbox` and, if there
    is a first commit, of `ViewSandbox.commit`.
    """
    sandbox = ViewSandbox(state, **how)
    version = state.version
    if version is not None and version.version_id != state.metadata.current_version_id:
        at = version.version_id
        sandbox.commit(lambda d, ms: rollback_view(d, at, timestamp_ms=ms), "rollback")
    return sandbox


def new_view_state(
    query: ViewQuery,
    *,
    location: str,
    properties: Mapping[str, str] | None = None,
    seed: int | str | None = None,
    timestamp: object = None,
    early_draft: bool = False,
) -> ViewState:
    """Create a view in a temporary folder and return its state.

    The folder is removed when the state's storage is no longer in use or the process exits.

    Parameters
    ----------
    query
        The query of the view's first version.
    location
        The view's location in its metadata. Nothing is written there.
    properties
        The view's properties.
    seed
        Makes the view's UUID repeatable and, without ``timestamp``, its time.
    timestamp
        The time of the first version; by default now or, with a seed, 2026-01-01 UTC.
    early_draft
        Write the form of the early draft of the view spec.

    Raises
    ------
    OptionError, RuleError
        The query, the location, a property or the timestamp is invalid.
    """
    refuse_half_characters(location, "location")
    if not location.strip("/ "):
        raise OptionError(f"location={location!r}: give the view's base location, such as '/warehouse/db/daily'")
    shared = Shared(Pointer(location), location, None if seed is None else f"{seed}/new", None)
    _, names = shared.begin()
    if timestamp is not None:
        created = _given_time(timestamp)
    else:
        created = _CREATED_MS if seed is not None else shared.time_after(0)
    document = new_view_document(
        query,
        location=location,
        view_uuid=str(uuid.UUID(int=names.getrandbits(128), version=4)),
        timestamp_ms=created,
        properties=properties,
        early_draft=early_draft,
    )
    what = "the new view"
    temporary = TemporaryFolder("view", what)
    folder = Path(temporary.path)
    try:
        with temporary_room(what):
            (folder / "metadata").mkdir()
            name = MetadataNames(str(folder / "metadata"), by_version=True).location(1, names, view_codec(document))
            Path(name).write_bytes(encode_metadata(document, name))
        state = open_view_state(folder, moved={str(document["location"]): str(folder)})
    except BaseException:
        temporary.remove()
        raise
    temporary.remove_with(state.storage)
    # Drop the opened view's name and notes, because they would show the temporary folder.
    return replace(state, opened=replace(state.opened, name=None, notes=()), notes=())


def view_codec(document: Mapping[str, Any]) -> str:
    """Return the compression codec for the metadata files of a new view, given its metadata document.

    It is the value of the property ``write.metadata.compression-codec``; by default ``gzip``, as in Java.
    """
    return str((document.get("properties") or {}).get(_CODEC, "gzip"))
