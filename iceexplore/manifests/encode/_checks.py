"""Check rows before anything is written; errors name the row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import Status

__all__ = ["required", "sequence_numbers", "statuses"]


def required(entries: pa.Table, name: str) -> AnyArray:
    """Return a column that must not have nulls.

    Raises
    ------
    OptionError
        The column has nulls; the message names the first row.
    """
    column = whole(entries[name])
    if column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        where = entries["location"][row].as_py()
        raise OptionError(f"row {row} ({where}) has no {name}, which the format requires")
    return column


def statuses(entries: pa.Table, *, draft: bool = False) -> AnyArray:
    """Return the status column: EXISTING, ADDED, DELETED and, with ``draft``, the other statuses of the V4 draft.

    Raises
    ------
    OptionError
        A row without a status, or with one that the dialect does not have.
    """
    column = required(entries, "status")
    highest = max(build.to_pylist(column.unique()), default=0)
    if highest > (Status.MODIFIED if draft else Status.DELETED):
        raise OptionError(f"status {highest} ({Status(highest).name}) exists in the V4 draft only")
    return column


def sequence_numbers(entries: pa.Table) -> None:
    """Check that only ADDED entries lack a sequence number: only they inherit it (spec, "Sequence Number Inheritance").

    Raises
    ------
    OptionError
        An entry with another status has no sequence number; the message names the first such row.
    """
    added = pc.equal(entries["status"], int(Status.ADDED))
    lacking = pc.and_not(entries["sequence_number"].is_null(), added)
    if pc.any(lacking).as_py():
        row = int(np.flatnonzero(np.asarray(lacking))[0])
        where = entries["location"][row].as_py()
        raise OptionError(f"row {row} ({where}) has no sequence_number; only ADDED entries inherit one")
