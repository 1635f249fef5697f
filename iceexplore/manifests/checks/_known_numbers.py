"""Numbers that decide how an entry is read, and that nothing is known of: content types, statuses, spec ids.

Such an entry is neither data nor a delete to a reader, or belongs to a partition that it cannot tell: whatever is left
out for it changes the rows. So these are errors, as a manifest is that cannot be read.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._arrow import bool_array, whole
from iceexplore.manifests.model._content_entry import ContentType, Status, live

__all__ = ["leaf_number_problems", "list_number_problems", "spec_problems", "status_problems"]

_MANIFESTS = (int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST))
_FILES = (int(ContentType.DATA), int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE))


def list_number_problems(location: str, entries: pa.Table, specs: Collection[int]) -> list[Problem]:
    """517 ``content`` and 502 ``partition_spec_id`` of a v1 to v3 manifest list that mean nothing."""
    kinds = _strange(entries, "content_type", _MANIFESTS)
    text = "of a content that is neither data (0) nor deletes (1): what is in them is not read."
    # The list's own numbers, from which those of the entries were made.
    found = _first(kinds, entries, location, "manifests are", "manifest is", text, "517 content", "content_type", 3)
    return [*found, *spec_problems(location, entries, specs, "502 partition_spec_id")]


def leaf_number_problems(location: str, entries: pa.Table) -> list[Problem]:
    """0 ``status`` and 134 ``content`` of a v1 to v3 manifest's entries that mean nothing."""
    kinds = _strange(entries, "content_type", _FILES)
    text = "of a content that is no data (0), position deletes (1) or equality deletes (2): they are not read."
    out = _first(kinds, entries, location, "entries are", "entry is", text, "134 content", "content_type")
    states = _strange(entries, "status", (int(Status.EXISTING), int(Status.ADDED), int(Status.DELETED)))
    text = "of a status that is none of 0 to 2: nobody can tell whether the file is live."
    return [*out, *_first(states, entries, location, "entries are", "entry is", text, "0 status", "status")]


def status_problems(location: str, entries: pa.Table) -> list[Problem]:
    """Statuses of V4 entries that mean nothing."""
    known = [int(status) for status in Status]
    text = f"of a status that is none of {min(known)} to {max(known)}: nobody can tell whether it is live."
    strange = _strange(entries, "status", known)
    return _first(strange, entries, location, "entries are", "entry is", text, "0 status", "status")


def spec_problems(location: str, entries: pa.Table, specs: Collection[int], field: str) -> list[Problem]:
    """Live entries of a partition spec that the table does not have."""
    if not specs:  # the metadata could not be read, or (loose files) there is none
        return []
    strange = _strange(entries, "partition_spec_id", sorted(specs)) & bool_array(live(entries))
    text = "of a partition spec that the table does not have: which filter and which deletes concern it is not known."
    return _first(strange, entries, location, "entries are", "entry is", text, field, "partition_spec_id")


def _strange(entries: pa.Table, name: str, known: Collection[int]) -> npt.NDArray[np.bool_]:
    """Which numbers are not among those known; null means unknown, and is judged elsewhere."""
    column = whole(entries[name])
    # Compared in numpy: `pc.is_in` takes a set of the column's type, which cannot hold every id.
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
    """One problem for all, on the first entry where the mask is true."""
    rows = np.flatnonzero(mask)
    if not len(rows):
        return []
    have = f"An {one}" if one.startswith("e") else f"A {one}"
    have = have if len(rows) == 1 else f"{len(rows)} {several}"
    row = int(rows[0])
    place = f"{location}#entry {entries['ordinal'][row].as_py()}"
    return [problem("file-corrupt", place, f"{have} {what}", field=field, found=entries[column][row].as_py() - less)]
