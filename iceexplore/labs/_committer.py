"""A lab's writer: commits to a real folder, published through the folder or a catalog."""

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
from iceexplore.labs._lost import remove_lost, remove_refused
from iceexplore.labs._running import Turn, running
from iceexplore.metadata import Snapshot
from iceexplore.storage import FolderStorage

__all__ = ["LAB_PROPERTY", "LabCommitter", "check_lab", "layout_text", "options_of"]

#: What marks a table as a lab; its value are the options of the layout, as JSON.
LAB_PROPERTY = "iceexplore.lab"
_NOTE = "A lab: commits are written to "
#: Java's ``TableProperties.COMMIT_MIN_RETRY_WAIT_MS`` and so on.
_LONGEST_TURN = 10.0
_WAITS = {"min-wait-ms": 100, "max-wait-ms": 60_000, "total-timeout-ms": 1_800_000}


class LabCommitter(Committer):
    """A writer of commits to a table that iceexplore has made.

    A commit that another one has come before waits for its turn among the writers of this machine (`Turn`). If that
    does not help, it waits between attempts as Java does: ``commit.retry.min-wait-ms``, doubled each time up to
    ``commit.retry.max-wait-ms``, with some jitter, and no longer than ``commit.retry.total-timeout-ms`` in all.
    """

    storage: FolderStorage
    #: Where rows may be missing: refuse to write anew what is left, or warn and go on.
    on_error: OnError = "raise"

    def __init__(
        self, state: TableState, options: LayoutOptions, pointer: Pointer, storage: FolderStorage, **how: Any
    ) -> None:
        check_lab(state)
        super().__init__(state, options, storage, pointer, **how)
        self._turn = Turn()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a lab does not go to another process: go on with it there by ix.lab(...), or read by ix.open")

    def fork(self) -> Self:
        """As `Committer.fork`."""
        other = super().fork()
        other._turn, other.on_error = Turn(), self.on_error
        return other

    @property
    def metadata_folder(self) -> str:
        """Where metadata files are written: a real path."""
        return os.path.dirname(self.storage.resolve(self.state.metadata_location))

    def newest(self) -> TableState:
        """As `Committer.newest`.

        Raises
        ------
        TableChangedError
            Another table is there now.
        OptionError
            The table is a lab no more.
        """
        state = super().newest()
        if state is not self.state:
            old, new = self.state.metadata.table_uuid, state.metadata.table_uuid
            if old != new:
                raise TableChangedError(
                    f"{state.name}: the table at {state.metadata_location} has table-uuid {new}, this lab has {old}: "
                    "it was dropped and created again. Go on with it by ix.lab(...)"
                )
            check_lab(state)
        return state

    def strict(self, state: TableState | None = None) -> TableState:
        """A state, by default its own, of which whatever cannot be read raises."""
        return state_of((state or self.state).opened, strict=True)

    def refresh(self) -> TableState:
        """As `Committer.refresh`; where another writer has upgraded the table, commits have its version from now on."""
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
        """As `Committer.commit`, on the newest state; while it lasts `leftovers` leaves its files alone.

        Parameters
        ----------
        adds_only
            The change does not go by what is in the table, so that rows which may be missing are no reason to refuse.

        Raises
        ------
        FormatError
            Counts contradict each other, so that rows may be missing (`careful`).
        OptionError
            The commit would take the lab's mark away, or put another in its place.
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
        """Remove what attempts of the commit just made have written for nothing."""
        published = self.state.metadata_location
        record = next((r for r in reversed(self.records) if r.metadata_location == published), None)
        if record is not None and record.attempts > 1:
            remove_lost(self.storage, record, self.state)

    def give_up(self, record: CommitRecord) -> None:
        """Remove what a commit has written that is refused."""
        with suppress(Exception):  # the commit fails for a reason of its own, which is to be told
            remove_refused(self.storage, record, self.newest())

    def notes(self, location: Any) -> tuple[str, ...]:
        """That it is a lab, and where it writes."""
        note = f"{_NOTE}{self.storage.folder}."
        return (note, *(n for n in self._first_notes if not n.startswith((_NOTE, "Metadata: "))))

    def codec_of(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
        """Of the file that is replaced: whoever replaces it must want the same name."""
        return super().codec_of(old, old)

    def check_retry(self, start: TableState, newest: TableState) -> None:
        """Files were written for a version; in another one their like may be forbidden."""
        if start.metadata.format_version != newest.metadata.format_version:
            raise CommitConflictError(
                "schema-unchanged",
                f"another commit upgraded the table to version {newest.metadata.format_version}; do it again",
            )

    def may_retry(self, attempt: int, seconds: float) -> bool:
        """Wait before another attempt; False if there is no time left."""
        waits = {name: _number(self.state, name, default) for name, default in _WAITS.items()}
        if seconds * 1000 >= waits["total-timeout-ms"]:
            return False
        if not self._turn.taken and self._turn.take(self.metadata_folder, _LONGEST_TURN):
            return True
        wait = min(waits["min-wait-ms"] * 2.0 ** min(attempt - 1, 30), waits["max-wait-ms"])
        time.sleep(wait * random.uniform(0.5, 1.1) / 1000)  # noqa: S311 (so that two writers do not wait in step)
        return True


def check_lab(state: TableState) -> None:
    """Refuse a table that iceexplore has not made.

    Raises
    ------
    OptionError
        The property is not there.
    """
    if LAB_PROPERTY not in state.metadata.properties:
        raise OptionError(
            f"{state.metadata.location} is no lab: it lacks the table property {LAB_PROPERTY}, and only tables made by "
            "ix.create(...) are ever written. t.simulate() commits to any table without writing it"
        )


def layout_text(options: LayoutOptions) -> str:
    """The value of a lab's mark: its layout as JSON, what is not the version's own, and the dialect."""
    plain = asdict(LayoutOptions.of(options.format_version))
    given = {k: v for k, v in asdict(options).items() if v != plain[k]}
    return json.dumps({"dialect": options.dialect, **given})


def options_of(state: TableState) -> LayoutOptions:
    """The layout that a lab's mark names; that of its version, if another engine has upgraded the table since.

    Raises
    ------
    OptionError
        The mark is no JSON object.
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
            raise OptionError(f"{LAB_PROPERTY} stays: without it the table would be no lab, and could not be written")
        if new != old and new != layout_text(options):
            raise OptionError(f"{LAB_PROPERTY} stays as it is: it keeps the lab's layout, which upgrade() changes")
        return made

    return keeping


def _number(state: TableState, name: str, default: int) -> int:
    text = state.metadata.properties.get(f"commit.retry.{name}", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else default
