"""Report all files of a scan that are outside the table's roots in one error."""

from __future__ import annotations

from itertools import chain

from iceexplore.errors import OutsideRootsError
from iceexplore.planning import FileTasks
from iceexplore.storage import Storage, outside

__all__ = ["outside_error"]


def outside_error(error: OutsideRootsError, storage: Storage, tasks: FileTasks) -> OutsideRootsError:
    """Return an error about all files of the scan that are outside the table, with an ``allow=`` that admits all.

    If fewer than two files are outside, return the given error, which is about one file or about a refused redirect.
    """
    files, deletes = tasks.files.entries["location"], tasks.matched.deletes.entries["location"]
    named = {location for location in chain(files.to_pylist(), deletes.to_pylist()) if location}
    count, allow = outside(storage, named)
    if count < 2:
        return error
    made = OutsideRootsError(
        f"{count:,} of the {len(named):,} files of this scan are outside the table, as add_files allows; the "
        f"first is: {error} To admit all of them: allow={list(allow)!r}."
    )
    made.allow = allow
    return made
