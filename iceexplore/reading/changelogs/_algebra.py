"""Turn removed and added rows into a changelog: drop carry-overs, pair updates, compute net changes.

The rules are those of Iceberg's Spark runtime: ``RemoveCarryoverIterator``, ``ComputeUpdateIterator`` and
``RemoveNetCarryoverIterator``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.reading.row_history._codes import row_codes

__all__ = [
    "CHANGE_COLUMNS",
    "CHANGE_FIELDS",
    "CHANGE_ORDINAL",
    "CHANGE_TYPE",
    "COMMIT_SNAPSHOT_ID",
    "net_of",
    "with_updates",
    "without_carryovers",
]

#: Reserved columns (Java: ``MetadataColumns``).
CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID = "_change_type", "_change_ordinal", "_commit_snapshot_id"
CHANGE_COLUMNS = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)
CHANGE_FIELDS = tuple(map(pa.field, CHANGE_COLUMNS, (pa.string(), pa.int32(), pa.int64())))

_INSERT, _DELETE, _BEFORE, _AFTER = "INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"


def without_carryovers(table: pa.Table) -> pa.Table:
    """Drop rows that the same snapshot removed and added again with equal values in every column.

    Equal rows are dropped in pairs of a removed and an added row until only one kind is left; it does not matter which
    rows form a pair, since they are equal.

    Parameters
    ----------
    table
        Rows with `CHANGE_COLUMNS`; the change types are INSERT and DELETE.
    """
    if not table.num_rows:
        return table
    code = row_codes([table[c] for c in table.column_names if c != CHANGE_TYPE], table.num_rows)
    inserted = _is(table, _INSERT)
    size = int(code.max()) + 1
    pairs = np.minimum(np.bincount(code[inserted], minlength=size), np.bincount(code[~inserted], minlength=size))
    if not pairs.any():
        return table
    keep = np.ones(table.num_rows, dtype=bool)
    for side in (inserted, ~inserted):
        rows = np.flatnonzero(side)
        keep[rows] = _nth(code[rows]) >= pairs[code[rows]]
    return table.filter(pa.array(keep))


def with_updates(table: pa.Table, identifiers: Mapping[str, AnyArray]) -> pa.Table:
    """Mark removed and added rows with the same identifier in one snapshot as UPDATE_BEFORE and UPDATE_AFTER.

    Parameters
    ----------
    table
        Rows with `CHANGE_COLUMNS`, without carry-overs.
    identifiers
        The columns that identify a row, by name.

    Returns
    -------
    pyarrow.Table
        The rows with their new change types. If any were paired, they are in the order of the snapshots, and each
        UPDATE_AFTER comes directly after its UPDATE_BEFORE.

    Raises
    ------
    OptionError
        One snapshot removed several rows with the same identifier, so pairs are ambiguous.
    """
    if not table.num_rows:
        return table
    code = row_codes([*identifiers.values(), table[CHANGE_ORDINAL]], table.num_rows)
    inserted = _is(table, _INSERT)
    size = int(code.max()) + 1
    gone, come = np.bincount(code[~inserted], minlength=size), np.bincount(code[inserted], minlength=size)
    if (gone > 1).any():
        row = int(np.flatnonzero((gone > 1)[code] & ~inserted)[0])
        identifier = ", ".join(f"{name} = {array[row].as_py()!r}" for name, array in identifiers.items())
        raise OptionError(
            f"updates are ambiguous: snapshot {table[COMMIT_SNAPSHOT_ID][row].as_py()} removed several rows with "
            f"{identifier}. Give identifier_columns that identify a row, or omit compute_updates"
        )
    paired = ((gone == 1) & (come >= 1))[code]
    first = np.zeros(table.num_rows, dtype=bool)
    rows = np.flatnonzero(inserted)
    first[rows] = _nth(code[rows]) == 0
    kinds = np.where(inserted, np.where(paired & first, _AFTER, _INSERT), np.where(paired, _BEFORE, _DELETE))
    # A pair is placed where the first of its two rows was; rows of a snapshot stay together.
    ordinal = np.asarray(table[CHANGE_ORDINAL])
    place = np.arange(table.num_rows)
    earliest = np.full(size, table.num_rows)
    np.minimum.at(earliest, code, place)
    mine = paired & (first | ~inserted)
    anchor = np.where(mine, earliest[code], place)
    order = np.lexsort((np.where(inserted, 1, 0), anchor, ordinal))
    at = table.schema.get_field_index(CHANGE_TYPE)
    made = table.set_column(at, table.schema.field(at), pa.array(kinds.tolist(), pa.string()))
    return made.take(build.array(order))


def net_of(table: pa.Table) -> pa.Table:
    """Remove changes of several snapshots that cancel each other.

    The changes of equal rows are followed in the order of snapshots, and dropped up to the last point at which there
    were as many removals as additions. What remains has the ordinal and the snapshot of the next change, as in Java.
    """
    if not table.num_rows:
        return table
    code = row_codes([table[c] for c in table.column_names if c not in CHANGE_COLUMNS], table.num_rows)
    inserted = _is(table, _INSERT)
    # Within a snapshot, DELETE comes before INSERT, as if the change types were sorted as text.
    order = np.lexsort((inserted, np.asarray(table[CHANGE_ORDINAL]), code))
    code, sign = code[order], np.where(inserted[order], 1, -1)
    starts = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]]))
    ends = np.concatenate([starts[1:], [len(code)]])
    running = np.cumsum(sign)
    before = np.repeat(np.concatenate([[0], running])[starts], ends - starts)
    level = running - before
    left = level[ends - 1]
    # The first remaining change of each group: the row after the last one at which the level is 0, or the group's first
    # row if the level is never 0.
    even = np.where(level == 0, np.arange(len(code)), -1)
    last_even = np.maximum.reduceat(even, starts)
    chosen = np.where(last_even < 0, starts, last_even + 1)[left != 0]
    picked = np.repeat(order[chosen], np.abs(left[left != 0]))
    ordinal = np.asarray(table[CHANGE_ORDINAL])[picked]
    return table.take(pa.array(picked[np.lexsort((picked, ordinal))]))


def _is(table: pa.Table, kind: str) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.equal(table[CHANGE_TYPE], kind)).astype(bool)


def _nth(code: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each row how many rows with the same code precede it."""
    order = np.argsort(code, kind="stable")
    inner = code[order]
    starts = np.flatnonzero(np.concatenate([[True], inner[1:] != inner[:-1]])) if len(inner) else np.empty(0, np.int64)
    nth = np.arange(len(inner)) - np.repeat(starts, np.diff(np.concatenate([starts, [len(inner)]])))
    out = np.empty(len(code), dtype=np.int64)
    out[order] = nth
    return out
