"""Check content types, statuses and spec ids, which decide how an entry is read, for unknown values.

A reader cannot tell if such an entry is data or a delete, or to which partition it belongs. Ignoring it would change
the rows of the table, so these problems are errors, like a manifest that cannot be read.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._arrow import bool_array, whole
from iceexplore.manifests.model._content_entry import ContentType, Status, live
from iceexplore.metadata import Dialect

__all__ = ["leaf_number_problems", "list_number_problems", "spec_problems", "status_problems"]

_MANIFESTS = (int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST))
_FILES = (int(ContentType.DATA), int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE))


def list_number_problems(location: str, entries: pa.Table, specs: Collection[int]) -> list[Problem]:
    """Check 517 ``content`` and 502 ``partition_spec_id`` of a v1 to v3 manifest list for unknown values."""
    kinds = _strange(entries, "content_type", _MANIFESTS)
    text = "of a content that is neither data (0) nor deletes (1): entries of such manifests are not read."
    # Report the number in the list: the entries' content types are 3 higher.
    found = _first(kinds, entries, location, "manifests are", "manifest is", text, "517 content", "content_type", 3)
    return [*found, *spec_problems(location, entries, specs, "502 partition_spec_id")]


def leaf_number_problems(location: str, entries: pa.Table) -> list[Problem]:
    """Check 0 ``status`` and 134 ``content`` of a v1 to v3 manifest's entries for unknown values."""
    kinds = _strange(entries, "content_type", _FILES)
    text = "of a content other than data (0), position deletes (1) and equality deletes (2): such entries are not read."
    out = _first(kinds, entries, location, "entries are", "entry is", text, "134 content", "content_type")
    states = _strange(entries, "status", (int(Status.EXISTING), int(Status.ADDED), int(Status.DELETED)))
    text = "of an unknown status (not 0 to 2): it is undefined whether the file is live."
    return [*out, *_first(states, entries, location, "entries are", "entry is", text, "0 status", "status")]


def status_problems(location: str, entries: pa.Table, dialect: Dialect) -> list[Problem]:
    """Check V4 entries for statuses that their dialect does not have; only the draft has REPLACED and MODIFIED."""
    last = Status.MODIFIED if dialect.deletion_vectors_on_entries else Status.DELETED
    known = [int(status) for status in Status if status <= last]
    text = f"of an unknown status (not {min(known)} to {max(known)}): it is undefined whether the entry is live."
    strange = _strange(entries, "status", known)
    return _first(strange, entries, location, "entries are", "entry is", text, "0 status", "status")


def spec_problems(location: str, entries: pa.Table, specs: Collection[int], field: str) -> list[Problem]:
    """Check that the table has the partition specs of live entries."""
    if not specs:  # the metadata is unreadable, or the file was opened without its table
        return []
    strange = _strange(entries, "partition_spec_id", sorted(specs)) & bool_array(live(entries))
    text = "of a partition spec that the table does not have: it is unknown which filters and deletes apply."
    return _first(strange, entries, location, "entries are", "entry is", text, field, "partition_spec_id")


def _strange(entries: pa.Table, name: str, known: Collection[int]) -> npt.NDArray[np.bool_]:
    """Return a mask of the values that are not among the known ones; nulls are checked elsewhere."""
    column = whole(entries[name])
    # Compare in numpy: `pc.is_in` needs a set of the column's type, into which some spec ids may not fit.
    values = np.asarray(column.fill_null(0)).astype(np.int64)
    strange: npt.NDArray[np.bool_] = ~np.isin(values, np.array(list(known), dtype=np.int64))
    strange &= ~bool_array(column.is_null())
    return strange


def _first(
    mask: npt.NDArray[np.bool_],
    entries: pa.Table,
    location: str,
    several: str,
    one: str,
    what: str,
    field: str,
    column: str,
    less: int = 0,
) -> list[Problem]:
    """Return one problem for all entries where the mask is true, placed on the first of them."""
    rows = np.flatnonzero(mask)
    if not len(rows):
        return []
    have = f"An {one}" if one.startswith("e") else f"A {one}"
    have = have if len(rows) == 1 else f"{len(rows)} {several}"
    at = np.asarray(entries["ordinal"])[rows]
    found = entries[column][int(rows[0])].as_py() - less
    place = f"{location}#entry {at[0]}"
    return [problem("file-corrupt", place, f"{have} {what}", field=field, found=found, entries=at)]
