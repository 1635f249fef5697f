"""Checks of entries against their manifest, their snapshot and each other, on columns that are read anyway.

They report only what no correct writer produces. Null means unknown and is accepted where the spec allows it. All
problems are warnings, even if their code is an error elsewhere: an error on a manifest means that some entries could
not be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyColumn
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._content_entry import ContentType, Status, live
from iceexplore.manifests.rules._counts import lowest_sequence_number
from iceexplore.manifests.rules._values import later_than, no_items, repeated

__all__ = ["added_problems", "entry_problems", "root_entry_problems", "snapshot_problems", "twice_problems"]

_SEQUENCE = "3 sequence_number"
_LATER = "The number is too high: deletes may apply to the wrong files."


def snapshot_problems(location: str, entries: pa.Table, sequence_number: int) -> list[Problem]:
    """Check entries of a root, after inheritance, against the snapshot's sequence number (0 if it has none)."""
    if not sequence_number:
        return []
    later = later_than(entries, sequence_number)
    field = "515 sequence_number"
    return _first(later, entries, location, field, f"a sequence number above the snapshot's. {_LATER}", sequence_number)


def added_problems(location: str, entries: pa.Table, numbers: Mapping[int, int], sequence_number: int) -> list[Problem]:
    """Compare 515 ``sequence_number`` in a manifest list with the snapshots that added the manifests.

    Entries inherit the manifest's number: if it is too low, deletes do not apply; if it is too high, they apply to too
    many files.

    Parameters
    ----------
    numbers
        The sequence number of each snapshot in the table, by snapshot id.
    sequence_number
        The number of the list's own snapshot; higher numbers are reported by `snapshot_problems`.
    """
    known = [(i, n) for i, n in numbers.items() if max(abs(i), abs(n)) < 2**63]
    ids, added = (pa.array([one[at] for one in known], pa.int64()) for at in (0, 1))
    due = added.take(pc.index_in(entries["snapshot_id"], ids))
    stated = entries["sequence_number"]
    field = "515 sequence_number"
    other = pc.and_(pc.not_equal(stated, due), pc.less_equal(stated, sequence_number))
    other = pc.fill_null(other, False)
    text = "a sequence number other than that of the snapshot that added it: deletes may apply to the wrong files."
    expected = due[pc.index(other, True).as_py()].as_py() if pc.any(other).as_py() else None
    return _first(other, entries, location, field, text, expected)


def entry_problems(
    location: str, entries: pa.Table, sequence_number: int | None, least: int | None, known_ids: Iterable[int]
) -> list[Problem]:
    """Check the entries of a leaf, after inheritance.

    Parameters
    ----------
    sequence_number, least
        515 ``sequence_number`` and 516 ``min_sequence_number`` of the manifest in its root.
    known_ids
        The ids of the columns in all schemas of the table.
    """
    alive = live(entries)
    out = _sequence_problems(location, entries, alive, sequence_number, least)
    for name, field in (("record_count", "103 record_count"), ("file_size_in_bytes", "104 file_size_in_bytes")):
        negative = pc.less(entries[name], 0)
        out += _first(negative, entries, location, field, f"a negative {name}.", 0, code="count-mismatch", column=name)
    out += _split_problems(location, entries)
    return out + _equality_problems(location, entries, alive, known_ids)


def root_entry_problems(location: str, entries: pa.Table, known_ids: Iterable[int]) -> list[Problem]:
    """Check the entries of a V4 root after inheritance: files as in a leaf, and manifests."""
    vectors = pc.equal(pc.fill_null(entries["content_type"], -1), int(ContentType.MANIFEST_DV))
    some = entries.filter(pc.invert(vectors))
    return entry_problems(location, some, 0, None, known_ids)


def _sequence_problems(
    location: str, entries: pa.Table, alive: pa.BooleanArray, stated: int | None, least: int | None
) -> list[Problem]:
    if stated is None:
        return []
    numbers = entries["sequence_number"]
    out: list[Problem] = []
    if stated:
        text = f"a sequence number above its manifest's. {_LATER}"
        out += _first(later_than(entries, stated), entries, location, _SEQUENCE, text, stated)
    if numbers.null_count:
        # By now, ADDED entries have inherited their sequence number; for MODIFIED entries, the V4 draft does not
        # specify it.
        existing = pc.equal(pc.fill_null(entries["status"], int(Status.EXISTING)), int(Status.EXISTING))
        lacking = pc.and_(numbers.is_null(), pc.and_(existing, alive))
        text = "no sequence number, which existing entries need: it is unknown which deletes apply."
        out += _first(lacking, entries, location, _SEQUENCE, text, None)
    lowest = lowest_sequence_number(entries)
    if least is not None and lowest is not None and lowest < least:
        text = "A live entry is older than the manifest list states: readers that trust the list skip deletes."
        field = "516 min_sequence_number"
        out.append(problem("sequence-number", location, text, field=field, found=least, expected=lowest))
    return out


def _split_problems(location: str, entries: pa.Table) -> list[Problem]:
    """Check 132 ``split_offsets``: none may be at or past the end of its file."""
    lists, sizes = entries["split_offsets"], entries["file_size_in_bytes"]
    if lists.null_count == len(lists):
        return []
    sizes = sizes.take(pc.list_parent_indices(lists)) if len(sizes) else sizes
    past = pc.greater_equal(pc.list_flatten(lists), sizes)
    if not (count := pc.sum(past).as_py()):
        return []
    rows = np.unique(np.asarray(pc.list_parent_indices(lists).filter(past)))
    row = int(rows[0])
    text = f"{count} split offsets are at or past the end of their file."
    place = f"{location}#entry {entries['ordinal'][row].as_py()}"
    found, size = lists[row].as_py(), entries["file_size_in_bytes"][row].as_py()
    how: dict[str, Any] = {"field": "132 split_offsets", "found": found, "expected": f"< {size}"}
    return [problem("split-offsets-invalid", place, text, **how, entries=np.asarray(entries["ordinal"])[rows])]


def _equality_problems(
    location: str, entries: pa.Table, alive: pa.BooleanArray, known_ids: Iterable[int]
) -> list[Problem]:
    equality = pc.and_(alive, pc.fill_null(pc.equal(entries["content_type"], int(ContentType.EQUALITY_DELETE)), False))
    if not pc.any(equality).as_py():
        return []
    some = entries.filter(equality)
    ids = some["equality_ids"]
    empty = no_items(ids)
    how: dict[str, Any] = {"code": "equality-ids-invalid", "column": "equality_ids"}
    field = "135 equality_ids"
    out = _first(empty, some, location, field, "no equality_ids: there are no columns to compare.", None, **how)
    known = set(known_ids)
    strangers = [i for i in pc.list_flatten(ids).unique().to_pylist() if i is not None and i not in known]
    if strangers and known:
        hit = pc.list_parent_indices(ids).filter(pc.is_in(pc.list_flatten(ids), pa.array(strangers, pa.int32())))
        mask = pc.is_in(pa.array(range(len(some)), pa.int64()), hit.combine_chunks().cast(pa.int64()))
        out += _first(
            mask,
            some,
            location,
            field,
            "equality_ids of columns that are in no schema of the table.",
            sorted(known),
            **how,
        )
    return out


def twice_problems(location: str, entries: pa.Table) -> list[Problem]:
    """Check for data files that are live more than once in a manifest; works before and after inheritance."""
    data = pc.fill_null(pc.equal(entries["content_type"], int(ContentType.DATA)), True)
    mine = pc.and_(live(entries), data)
    again = repeated(entries["location"].filter(mine))
    if not len(again):
        return []
    first = again[0].as_py()
    which = "A data file is" if len(again) == 1 else f"{len(again)} data files are"
    text = f"{which} live more than once in this manifest: readers return the same rows repeatedly."
    twice = pc.and_(mine, pc.is_in(entries["location"], cast(pa.StructArray, again).field("values")))
    at = np.asarray(entries["ordinal"].filter(twice))
    how: dict[str, Any] = {"field": "100 file_path", "severity": "warning", "entries": at}
    return [problem("file-twice", location, text, found=first["values"], **how)]


def _first(
    mask: AnyColumn,
    entries: pa.Table,
    location: str,
    field: str,
    what: str,
    expected: object,
    *,
    code: str = "sequence-number",
    column: str = "sequence_number",
) -> list[Problem]:
    """Return one problem for all entries where the mask is true, placed on the first of them."""
    rows = np.flatnonzero(np.asarray(pc.fill_null(mask, False)))
    if not len(rows):
        return []
    have = "An entry has" if len(rows) == 1 else f"{len(rows)} entries have"
    at = np.asarray(entries["ordinal"])[rows]
    how: dict[str, Any] = {"field": field, "found": entries[column][int(rows[0])].as_py(), "expected": expected}
    return [problem(code, f"{location}#entry {at[0]}", f"{have} {what}", **how, severity="warning", entries=at)]
