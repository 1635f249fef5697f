"""Checks of V4 content entries for fields that are required or forbidden for their content type.

They use columns that are read anyway. DELETED entries are not checked, as readers ignore them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._arrow import bool_array, whole
from iceexplore.manifests.model._content_entry import CONTENT_NAMES, ContentType, live
from iceexplore.storage import canonical

__all__ = ["FILE_TYPES", "affinity_problems", "leaf_problems", "root_problems"]

#: Content types allowed in a leaf.
FILE_TYPES = pa.array(
    [int(ContentType.DATA), int(ContentType.POSITION_DELETE), int(ContentType.EQUALITY_DELETE)], pa.int32()
)
#: Content types allowed in a root.
KNOWN_TYPES = pa.array([int(t) for t in ContentType], pa.int32())

_VECTOR = "147 deletion_vector"
_STATS = "521 manifest_stats"
_REFERENCED = "143 referenced_file"


def root_problems(location: str, entries: pa.Table, dialect: str) -> list[Problem]:
    """Check the rows of a root, each on its own."""
    return [*_type_problems(entries, location, KNOWN_TYPES), *_field_problems(location, entries, dialect)]


def affinity_problems(location: str, entries: pa.Table) -> list[Problem]:
    """Check the delete manifests of a root (with absolute locations) whose referenced data manifest is not in it."""
    kind, alive = _ints(entries, "content_type"), bool_array(live(entries))
    named = bool_array(whole(entries["referenced_file"]).is_valid())
    rows = np.flatnonzero((kind == ContentType.DELETE_MANIFEST) & alive & named)
    if not len(rows):
        return []
    leaves = entries["location"].filter(pa.array((kind == ContentType.DATA_MANIFEST) & alive))
    known = {canonical(leaf) for leaf in leaves.to_pylist() if leaf}
    owners = entries["referenced_file"].take(pa.array(rows)).to_pylist()
    lost = [(int(row), owner) for row, owner in zip(rows, owners, strict=True) if canonical(owner) not in known]
    if not lost:
        return []
    row, owner = lost[0]
    what = "A delete manifest is" if len(lost) == 1 else f"{len(lost)} delete manifests are"
    text = f"{what} affiliated to a data manifest that is not in this root: readers that use affinity skip the deletes."
    place = f"{location}#entry {entries['ordinal'][row].as_py()}"
    return [problem("entry-invalid", place, text, field=_REFERENCED, found=owner)]


def leaf_problems(location: str, stated: int, entries: pa.Table, dialect: str) -> list[Problem]:
    """Check the entries of a leaf; ``stated`` is its content type in the root."""
    return [
        *_type_problems(entries, location, FILE_TYPES),
        *_kind_problems(location, stated, entries),
        *_field_problems(location, entries, dialect),
    ]


def _type_problems(entries: pa.Table, location: str, types: pa.Array) -> list[Problem]:
    """Check for content types that are not allowed in this kind of file."""
    known = bool_array(pc.is_in(entries["content_type"], types))
    rows = np.flatnonzero(~known)
    if not len(rows):
        return []
    row = int(rows[0])
    text = f"{len(rows)} entries have a content type that is not allowed in this file."
    place, found = f"{location}#entry {entries['ordinal'][row].as_py()}", entries["content_type"][row].as_py()
    return [problem("file-corrupt", place, text, field="134 content_type", found=found)]


def _kind_problems(location: str, stated: int, entries: pa.Table) -> list[Problem]:
    """Check for entries that do not fit the leaf's content type in the root: deletes among data, or the reverse."""
    kind, carried = _ints(entries, "content_type"), _carried(entries)
    data = kind == ContentType.DATA
    if stated == ContentType.DELETE_MANIFEST:
        wrong, listed = data, "delete"
    else:
        deletes = (kind == ContentType.POSITION_DELETE) | (kind == ContentType.EQUALITY_DELETE)
        wrong, listed = deletes & ~carried, "data"
    rows = np.flatnonzero(wrong)
    if not len(rows):
        return []
    row = int(rows[0])
    found = CONTENT_NAMES[int(kind[row])]
    text = (
        f"In the root this is a {listed} manifest, but {len(rows)} of its entries do not belong in one: readers that "
        "trust the root do not see them."
    )
    place = f"{location}#entry {entries['ordinal'][row].as_py()}"
    return [problem("entry-invalid", place, text, field="134 content_type", found=found)]


def _field_problems(location: str, entries: pa.Table, dialect: str) -> list[Problem]:
    """Check for vectors, counts and references that an entry's content type requires or forbids."""
    kind, alive = _ints(entries, "content_type"), bool_array(live(entries))
    vector = whole(entries["deletion_vector"])
    has_vector = bool_array(vector.is_valid())
    inline, offset, size = (
        bool_array(pc.struct_field(vector, n).is_valid()) for n in ("inline_content", "offset", "size_in_bytes")
    )
    data_dv, leaf_dv = kind == ContentType.POSITION_DELETE, kind == ContentType.MANIFEST_DV
    data_manifests = kind == ContentType.DATA_MANIFEST
    manifests = data_manifests | (kind == ContentType.DELETE_MANIFEST)
    counted = bool_array(whole(entries["manifest_stats"]).is_valid())
    unnamed = bool_array(whole(entries["referenced_file"]).is_null())
    # In the draft a vector is part of its file's row; such a row was decoded into two entries with the same ordinal.
    carried = _carried(entries)
    elsewhere = has_vector & ((kind == ContentType.DATA) | (kind == ContentType.EQUALITY_DELETE))
    if dialect == "v4-draft":
        elsewhere |= carried & data_dv & ~np.roll(kind == ContentType.DATA, 1)
        elsewhere |= carried & leaf_dv & ~np.roll(manifests, 1)
    checks: list[tuple[npt.NDArray[np.bool_], str, str]] = [
        (data_dv & ~has_vector, _VECTOR, "no deletion_vector, which a position delete must have in V4."),
        (elsewhere, _VECTOR, "a deletion_vector, though neither position delete nor manifest DV: it is not applied."),
        (data_dv & inline, _VECTOR, "an inline deletion vector of a data file, which only manifest DVs may have."),
        (
            has_vector & inline & (offset | size),
            _VECTOR,
            "a deletion_vector that is both inline and in a file: readers may use either.",
        ),
        ((data_dv | leaf_dv) & unnamed, _REFERENCED, "no referenced_file: it is unknown what to delete from."),
        (
            ~unnamed & ((kind == ContentType.DATA) | (kind == ContentType.EQUALITY_DELETE) | data_manifests),
            _REFERENCED,
            "a referenced_file, which only vectors and delete manifests may have: affinity is one-way.",
        ),
        (manifests & ~counted, _STATS, "no manifest_stats, which manifests must have: their counts are unknown."),
        (counted & ~manifests, _STATS, "manifest_stats, which only manifests have."),
    ]
    return [p for mask, field, text in checks for p in _said(location, entries, mask & alive, field, text)]


def _said(location: str, entries: pa.Table, mask: npt.NDArray[np.bool_], field: str, what: str) -> list[Problem]:
    """Return one problem for all entries where the mask is true, placed on the first of them."""
    rows = np.flatnonzero(mask)
    if not len(rows):
        return []
    row = int(rows[0])
    have = "An entry has" if len(rows) == 1 else f"{len(rows)} entries have"
    how: dict[str, Any] = {"field": field, "found": CONTENT_NAMES.get(entries["content_type"][row].as_py())}
    place = f"{location}#entry {entries['ordinal'][row].as_py()}"
    return [problem("entry-invalid", place, f"{have} {what}", **how)]


def _ints(entries: pa.Table, name: str) -> npt.NDArray[np.int64]:
    return np.asarray(whole(pc.fill_null(entries[name], -1)), np.int64)


def _carried(entries: pa.Table) -> npt.NDArray[np.bool_]:
    """Return a mask of the entries from the same row as the entry before them."""
    ordinals = _ints(entries, "ordinal")
    out: npt.NDArray[np.bool_] = np.zeros(len(ordinals), np.bool_)
    out[1:] = ordinals[1:] == ordinals[:-1]
    return out
