"""The writer of a lab: it commits to a real folder and publishes through the folder or a catalog."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Self

from iceexplore.commits import CommitRecord, Committer, DocumentChange, LayoutOptions, MakeChange, Pointer, options_for
from iceexplore.errors import CommitConflictError, OptionError, TableChangedError
from iceexplore.graph import TableState, state_of
from iceexplore.labs._doubts import OnError, careful, refuse, warn
from iceexplore.labs._failed_commit_cleanup import remove_lost, remove_refused
from iceexplore.labs._running import Turn, running
from iceexplore.metadata import Snapshot
from iceexplore.storage import FolderStorage

__all__ = ["LAB_PROPERTY", "LabCommitter", "check_lab", "layout_text", "options_of"]

#: The table property that marks a lab; its value is the layout's options as JSON.
LAB_PROPERTY = "iceexplore.lab"
_NOTE = "A lab: commits are written to "
#: Maximum time in seconds that a writer waits for its turn.
_LONGEST_TURN = 10.0
#: The defaults of the table properties ``commit.retry.<name>``, as in Java's ``TableProperties``.
_WAITS = {"min-wait-ms": 100, "max-wait-ms": 60_000, "total-timeout-ms": 1_800_000}


class LabCommitter(Committer):
    """A writer of commits to a table that iceexplore has created.

    A commit that lost to another one waits for its turn among the writers of this machine (`Turn`). If that does not
    help, it waits between attempts as Java does: ``commit.retry.min-wait-ms``, doubled each time up to
    ``commit.retry.max-wait-ms``, with some jitter, and at most ``commit.retry.total-timeout-ms`` in total.
    """

    storage: FolderStorage
    #: What to do if rows may be missing: refuse to rewrite the remaining rows, or warn and continue.
    on_error: OnError = "raise"

    def __init__(
        self, state: TableState, options: LayoutOptions, pointer: Pointer, storage: FolderStorage, **how: Any
    ) -> None:
        check_lab(state)
        super().__init__(state, options, storage, pointer, **how)
        self._turn = Turn()

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        raise TypeError(
            "a lab cannot be pickled: open it in the other process with ix.lab(...), or read it with ix.open"
        )

    def fork(self) -> Self:
        """Return a second writer; see `Committer.fork`."""
        other = super().fork()
        other._turn, other.on_error = Turn(), self.on_error
        return other

    @property
    def metadata_folder(self) -> str:
        """The real path of the folder to which metadata files are written."""
        return os.path.dirname(self.storage.resolve(self.state.metadata_location))

    def newest(self) -> TableState:
        """Return the table as of the last commit by any writer; see `Committer.newest`.

        Raises
        ------
        TableChangedError
            A different table is now at the location.
        OptionError
            The table is no longer a lab.
        """
        state = super().newest()
        if state is not self.state:
            old, new = self.state.metadata.table_uuid, state.metadata.table_uuid
            if old != new:
                raise TableChangedError(
                    f"{state.name}: the table at {state.metadata_location} has table-uuid {new}, this lab has {old}: "
                    "it was dropped and created again. Open the new table with ix.lab(...)"
                )
            check_lab(state)
        return state

    def strict(self, state: TableState | None = None) -> TableState:
        """Return a strict copy of a state (default: this writer's): whatever cannot be read in it raises an error."""
        given = state or self.state
        return state_of(given.opened, strict=True, before=given)

    def refresh(self) -> TableState:
        """Update the state like `Committer.refresh`; if another writer upgraded the table, adopt its format version."""
        state = super().refresh()
        if state.metadata.format_version > self.options.format_version:
            self.options = options_of(state)
        return state

    def commit(
        self,
        make_change: MakeChange | None = None,
        *,
        document_change: DocumentChange | None = None,
        adds_only: bool = False,
        **how: Any,
    ) -> Snapshot | None:
        """Commit to the newest state, like `Committer.commit`; while it runs, `orphan_files` does not list its files.

        Parameters
        ----------
        adds_only
            True if the change does not depend on the table's rows, so that it need not be refused when rows may be
            missing.

        Raises
        ------
        FormatError
            Counts contradict each other, so rows may be missing (see `careful`).
        OptionError
            The commit would remove or change `LAB_PROPERTY`, the table property that marks a lab.
        """
        with self._lock:
            self.refresh()
            if make_change is not None and not adds_only:
                make_change = careful(make_change, refuse if self.on_error == "raise" else warn)
            change = None if document_change is None else _keeping_mark(document_change, self.options)
            with running(self.metadata_folder):
                try:
                    made = super().commit(make_change, document_change=change, **how)
                finally:
                    self._turn.end()
                self._remove_lost()
                return made

    def _remove_lost(self) -> None:
        """Remove the metadata and manifests of those attempts of the last commit that lost to other commits."""
        published = self.state.metadata_location
        record = next((r for r in reversed(self.records) if r.metadata_location == published), None)
        if record is not None and record.attempts > 1:
            remove_lost(self.storage, record, self.state)

    def on_commit_failed(self, record: CommitRecord) -> None:
        """Remove the files that a refused commit wrote."""
        with suppress(Exception):  # so that the caller gets the error of the commit, not one of the cleanup
            remove_refused(self.storage, record, self.newest())

    def notes(self, location: object) -> tuple[str, ...]:
        """Return notes which say that this is a lab, and where it writes."""
        note = f"{_NOTE}{self.storage.folder}."
        return (note, *(n for n in self._first_notes if not n.startswith((_NOTE, "Metadata: "))))

    def codec_of(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
        """Return the compression codec of the old metadata file: competing writers must choose the same file name."""
        return super().codec_of(old, old)

    def check_retry(self, start: TableState, newest: TableState) -> None:
        """Refuse a retry after an upgrade: files written for one version may be invalid in another."""
        if start.metadata.format_version != newest.metadata.format_version:
            raise CommitConflictError(
                "schema-unchanged",
                f"another commit upgraded the table to version {newest.metadata.format_version}; repeat the operation",
            )

    def may_retry(self, attempt: int, seconds: float) -> bool:
        """Return whether to make another attempt, after waiting; False if no time is left."""
        waits = {name: _number(self.state, name, default) for name, default in _WAITS.items()}
        if seconds * 1000 >= waits["total-timeout-ms"]:
            return False
        if not self._turn.taken and self._turn.take(self.metadata_folder, _LONGEST_TURN):
            return True
        wait = min(waits["min-wait-ms"] * 2.0 ** min(attempt - 1, 30), waits["max-wait-ms"])
        time.sleep(wait * random.uniform(0.5, 1.1) / 1000)  # noqa: S311 (so that two writers do not wait in step)
        return True


def check_lab(state: TableState) -> None:
    """Refuse a table that iceexplore has not created.

    Raises
    ------
    OptionError
        The table does not have the property `LAB_PROPERTY`.
    """
    if LAB_PROPERTY not in state.metadata.properties:
        raise OptionError(
            f"{state.metadata.location} is not a lab: it has no table property {LAB_PROPERTY}. iceexplore writes "
            "only to tables that ix.create(...) created. t.simulate() simulates commits to any table without writing"
        )


def layout_text(options: LayoutOptions) -> str:
    """Return the value of `LAB_PROPERTY` for a layout: its dialect and its non-default options, as JSON."""
    plain = asdict(LayoutOptions.of(options.format_version))
    given = {k: v for k, v in asdict(options).items() if v != plain[k]}
    return json.dumps({"dialect": options.dialect, **given})


def options_of(state: TableState) -> LayoutOptions:
    """Return the layout that `LAB_PROPERTY` stores.

    If the table's format version does not support it, because another engine has upgraded the table, return the default
    layout of that version.

    Raises
    ------
    OptionError
        The property is not a JSON object.
    """
    text = state.metadata.properties[LAB_PROPERTY]
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise OptionError(f"the property {LAB_PROPERTY} of {state.metadata.location} is damaged: {text[:80]!r}")
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if k != "format_version"}
    try:
        return options_for(state, None, given)
    except (OptionError, TypeError):
        return options_for(state, None, {})


def _keeping_mark(change: DocumentChange, options: LayoutOptions) -> DocumentChange:
    def keeping(document: Mapping[str, Any], timestamp_ms: int) -> Mapping[str, Any]:
        made = change(document, timestamp_ms)
        old, new = ((d.get("properties") or {}).get(LAB_PROPERTY) for d in (document, made))
        if new is None:
            raise OptionError(f"{LAB_PROPERTY} cannot be removed: without it the table would not be a lab")
        if new != old and new != layout_text(options):
            raise OptionError(f"{LAB_PROPERTY} cannot be changed: it stores the lab's layout; upgrade() changes it")
        return made

    return keeping


def _number(state: TableState, name: str, default: int) -> int:
    text = state.metadata.properties.get(f"commit.retry.{name}", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default
