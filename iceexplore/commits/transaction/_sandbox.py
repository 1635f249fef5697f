"""The writer of a simulation: commits to an overlay and never writes to the table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

from iceexplore.commits.metadata_updates._refs import set_current_snapshot
from iceexplore.commits.model._options import LayoutOptions
from iceexplore.commits.transaction._committer import Committer, check_options
from iceexplore.commits.transaction._pointer import Pointer
from iceexplore.graph import TableState
from iceexplore.metadata import Dialect
from iceexplore.storage import OverlayStorage

__all__ = ["Sandbox", "options_for", "start_sandbox"]

_NOTE = "A simulation: "


class Sandbox(Committer):
    """A writer of commits to an overlay in front of a table; it never writes to the table itself.

    Parameters
    ----------
    state
        The state, of any table, from which the simulation starts.
    overlay
        An empty local folder for the files; a temporary one by default.
    options, seed, clock, max_attempts
        As for `Committer`.

    Attributes
    ----------
    storage
        The overlay.

    Raises
    ------
    OptionError
        The format version is below the table's, or the folder cannot be used.
    UnsupportedError
        The table is encrypted.
    """

    storage: OverlayStorage

    def __init__(
        self,
        state: TableState,
        options: LayoutOptions,
        *,
        overlay: str | PathLike[str] | None = None,
        seed: int | str | None = None,
        clock: Callable[[], int] | None = None,
        max_attempts: int | None = None,
    ) -> None:
        check_options(state, options, max_attempts)  # check before a folder is created
        storage, pointer = OverlayStorage(state.storage, overlay), Pointer(state.metadata_location)
        super().__init__(state, options, storage, pointer, seed=seed, clock=clock, max_attempts=max_attempts)

    def copy(self) -> Sandbox:
        """Return an independent copy of this writer: later commits of either do not appear in the other.

        In contrast, a `fork` shares the files and the pointer. If the writer has a seed, the same commits to the
        original and to the copy write identical files.
        """
        other = self.fork()
        other.storage = self.storage.copy()
        shared = self.shared
        with shared.lock:
            pointer, records = Pointer(shared.pointer.location), list(shared.records)
            other.shared = replace(shared, pointer=pointer, lock=threading.Lock(), records=records)
        other.state = other._shown(self.state.opened, strict=self.state.problems.strict)
        return other

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        raise TypeError(
            "a simulation cannot be pickled: its files are in a folder of this process. Save it with "
            "s.save(folder) and open that folder in the other process; s.copy() makes a copy in this one"
        )

    def notes(self, location: object) -> tuple[str, ...]:
        """Return notes: that this is a simulation, where its files are, and how many data files are synthetic."""
        note = f"{_NOTE}nothing is written to {location}; new files are in {self.storage.overlay_folder}."
        synthetic = self.shared.synthetic
        if synthetic:
            note += f" {synthetic:,} synthetic data files were added; they have no data."
        return (note, *(n for n in self._first_notes if not n.startswith(_NOTE)))

    def is_taken(self, location: str) -> bool:
        """Return whether the table itself has a metadata file of this name, written after the simulation began."""
        return self.storage.base.exists(location)


def options_for(state: TableState, format_version: int | None, layout: Mapping[str, Any]) -> LayoutOptions:
    """Return the layout options for commits to a table, with the values that ``layout`` gives.

    The format version is by default that of the table. If a V4 table is not upgraded and ``layout`` has no ``dialect``,
    the dialect depends on the table's snapshot: a snapshot with a manifest list (Java) or with a root of the V4 draft
    keeps its dialect. A Delta table gets the dialect of the V4 proposal.

    Raises
    ------
    OptionError
        An option is unknown or its value is invalid.
    """
    version = state.metadata.format_version if format_version is None else format_version
    given = dict(layout)
    if version == 4 == state.metadata.format_version and "dialect" not in given:
        root = state.root()
        if root is not None and root.dialect not in (Dialect.V4_PROPOSAL, Dialect.V4_DRAFT, Dialect.UNKNOWN):
            given["dialect"] = "v4-java"
        elif root is not None and root.dialect is Dialect.V4_DRAFT and not state.opened.is_delta:
            given["dialect"] = "v4-draft"
    return LayoutOptions.of(version, **given)


def start_sandbox(
    state: TableState,
    format_version: int | None = None,
    layout: Mapping[str, Any] | None = None,
    *,
    overlay: str | PathLike[str] | None = None,
    seed: int | str | None = None,
) -> Sandbox:
    """Return a sandbox that starts from a state of a table.

    If the state shows a snapshot that is not the table's current one, a first commit makes this snapshot current.

    Raises the same errors as `Sandbox` and `options_for`.
    """
    sandbox = Sandbox(state, options_for(state, format_version, layout or {}), overlay=overlay, seed=seed)
    shown, current = state.snapshot, state.metadata.snapshot()
    if shown is not None and (current is None or shown.snapshot_id != current.snapshot_id):
        at = shown.snapshot_id
        sandbox.commit(
            document_change=lambda d, ms: set_current_snapshot(d, snapshot_id=at, timestamp_ms=ms),
            what="set_current_snapshot",
        )
    return sandbox
