"""The writer of a simulation: it commits to an overlay, a separate folder, and never writes to the table itself."""

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
    """A writer of simulated commits; it never writes to the table itself.

    New files are written to a local folder, the overlay. All other files are read from the table's own storage.

    Parameters
    ----------
    state
        The state of a table, from which the simulation starts. Write access to the table is not needed.
    overlay
        The local folder for new files, which must be empty or missing; by default a temporary folder.
    options, seed, clock, max_attempts
        As for `Committer`.

    Attributes
    ----------
    storage
        The storage that writes to the overlay, and reads from both the overlay and the table's own storage.

    Raises
    ------
    OptionError
        The format version in ``options`` is below the table's, ``max_attempts`` is below 1, or ``overlay`` cannot be
        used: it is remote, not empty, or inside the table.
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

        In contrast, a `fork` shares the files and the pointer to the current metadata file with this writer. If this
        writer has a seed, the same commits to the original and to the copy write identical files.
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
        """Return notes for the user; the first one states that this is a simulation, and where its files are.

        If synthetic data files, which have no data, were added, the first note also has their number. The other notes
        are those of the table from which the simulation started.

        Parameters
        ----------
        location
            The table's location, to be shown in the first note.
        """
        note = f"{_NOTE}nothing is written to {location}; new files are in {self.storage.overlay_folder}."
        synthetic = self.shared.synthetic
        if synthetic:
            note += f" {synthetic:,} synthetic data files were added; they have no data."
        return (note, *(n for n in self._first_notes if not n.startswith(_NOTE)))

    def is_taken(self, location: str) -> bool:
        """Return whether the table's own storage has a file at this location.

        For example, another program may have committed to the table after the simulation began. If so, the simulated
        commit tries the next version number for its metadata file.
        """
        return self.storage.base.exists(location)


def options_for(state: TableState, format_version: int | None, layout: Mapping[str, Any]) -> LayoutOptions:
    """Return the layout options for commits to a table: the options in ``layout``, and defaults for all others.

    Parameters
    ----------
    state
        The table's state, on which the default dialect depends.
    format_version
        The format version in which commits write; None for that of the table.
    layout
        The values of `LayoutOptions`, by name. If ``dialect`` is missing, and the table already has format version 4,
        the dialect depends on the snapshot that ``state`` shows: ``v4-java`` if it has a manifest list, ``v4-draft`` if
        it has a root manifest of the V4 draft. In all other cases with format version 4, the dialect is
        ``v4-proposal``: for a table that is upgraded to version 4, a table without a snapshot, or a Delta table.

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
    ``format_version`` and ``layout`` are described in `options_for`; ``overlay`` and ``seed``, in `Sandbox`. Raises the
    same errors as these two.
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
