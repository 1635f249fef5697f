"""The refusal to read files outside a table's roots, with what admits all of a scan's files at once."""

from __future__ import annotations

from itertools import chain

from iceexplore.errors import OutsideRootsError
from iceexplore.planning import FileTasks
from iceexplore.storage import Storage, outside

__all__ = ["outside_error"]


def outside_error(error: OutsideRootsError, storage: Storage, tasks: FileTasks) -> OutsideRootsError:
    """Return the error for one file as one for all files of the scan that are outside: ``allow=`` is to be found once.

    An error that is not of such a file (a redirect) stays as it is.
    """
    files, deletes = tasks.files.entries["location"], tasks.matched.deletes.entries["location"]
    named = {location for location in chain(files.to_pylist(), deletes.to_pylist()) if location}
    count, allow = outside(storage, named)
    if count < 2:
        return error
    made = OutsideRootsError(
        f"{count:,} of the {len(named):,} files of this scan are outside the table, as add_files puts them there; the "
        f"first met: {error}. If you trust the table, open it with allow={list(allow)!r}, which admits all of them."
    )
    made.allow = allow
    return made
