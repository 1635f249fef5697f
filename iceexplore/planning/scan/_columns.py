"""Check the column names of a scan, and find in manifests how many bytes these columns occupy in data files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, Int64s, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, nearest
from iceexplore.expressions import METADATA_COLUMNS
from iceexplore.manifests import Manifest, bool_array, whole
from iceexplore.metadata import NestedField, Schema
from iceexplore.planning.scan._files import leaves_of

if TYPE_CHECKING:
    from iceexplore.planning.scan._result import PlannedScan

__all__ = ["checked_columns", "column_bytes", "leaf_ids"]


def checked_columns(schema: Schema, columns: Iterable[str] | None) -> tuple[str, ...] | None:
    """Check the names of the columns that a scan reads, and return them without duplicates.

    Parameters
    ----------
    columns
        One name or several. The name of a field in a struct has dots, such as ``a.b``. Metadata columns (``_file``,
        ``_pos``, ...) are allowed. None means all columns; the result is then None, too.

    Raises
    ------
    OptionError
        ``columns`` contains no name, or a name is unknown; the message lists the nearest names.
    """
    if columns is None:
        return None
    if not isinstance(columns, Iterable):
        raise OptionError(f"columns={columns!r}: give column names")
    given = [columns] if isinstance(columns, str) else list(columns)
    if not given:
        raise OptionError("columns=[]: name at least one column, or omit columns to read all of them")
    known = [name for name, _ in schema.walk()]
    for name in given:
        if not isinstance(name, str):
            raise OptionError(f"columns: {name!r} is not a column name")
        if name not in known and name not in METADATA_COLUMNS:
            raise OptionError(f"no column {name!r}; {nearest(name, [*known, *METADATA_COLUMNS])}")
    return tuple(dict.fromkeys(given))


def leaf_ids(schema: Schema, columns: tuple[str, ...]) -> list[int]:
    """Return the field ids of the named columns and of all fields inside them, such as the fields of a struct."""

    def wanted(name: str, field: NestedField) -> bool:
        return any(name == c or name.startswith(f"{c}.") for c in columns)

    return [f.field_id for name, f in schema.walk() if wanted(name, f)]


def column_bytes(plan: PlannedScan) -> Int64s:
    """Return, for each data file of the plan, how many bytes the columns that the plan reads occupy in the file.

    The sizes of the columns are in the entries of manifests (``column_sizes``, field id 108). The manifests are read
    again, if possible from the cache. The result is null for a file if none of these sizes is known (V4 has no column
    sizes), and for all files if ``plan.columns`` is None.
    """
    tasks = plan.files
    ids = leaf_ids(plan.state.schema, plan.columns or ())
    out = np.zeros(len(tasks), dtype=np.int64)
    known = np.zeros(len(tasks), dtype=np.bool_)
    at = 0
    for index, scan in enumerate(plan.roots):
        counts = {leaf.root_row: leaf.kept_files for leaf in plan.leaves if leaf.scan == index and leaf.kept_files}
        rows = [row for row in counts if row is not None]
        for leaf in leaves_of(plan.state, scan, frozenset({"entries", "stats"}), rows):
            count = counts.get(leaf.root_row, 0)
            ordinals = whole(tasks.files.entries["ordinal"]).slice(at, count)
            sizes = _sizes(leaf, ids)
            places = pc.index_in(ordinals, value_set=_data_ordinals(leaf))
            mine = sizes.take(pc.fill_null(places, 0)) if len(sizes) else pa.nulls(count, pa.int64())
            out[at : at + count] = np.asarray(pc.fill_null(mine, 0))
            known[at : at + count] = np.asarray(mine.is_valid())
            at += count
    return build.array(out, mask=~known)


def _data_ordinals(leaf: Manifest) -> AnyArray:
    """Return the ordinal of each entry that is a data file; null for other entries.

    The ordinal is an entry's position in the stored manifest. In the V4 draft, a stored entry may have a data file and
    its deletion vector; after reading, these are two entries with the same ordinal. The result has null for the
    deletion vector, so that a search for the ordinal finds the data file.
    """
    is_data = pc.fill_null(pc.equal(whole(leaf.entries["content_type"]), 0), False)
    return pc.if_else(is_data, whole(leaf.entries["ordinal"]), pa.scalar(None, pa.int64()))


def _sizes(leaf: Manifest, ids: list[int]) -> AnyArray:
    """Return, for each entry of a manifest, the total size in bytes of the columns whose field ids are in ``ids``.

    A column whose size is unknown adds nothing. The result is null for an entry if all the sizes are unknown.
    """
    total: AnyArray = pa.nulls(len(leaf), pa.int64())
    for field_id in ids:
        size = leaf.stats(field_id).column_size
        both = pc.add(pc.fill_null(total, 0), pc.fill_null(size, 0))
        there = pa.array(bool_array(pc.or_(total.is_valid(), size.is_valid())))
        total = pc.if_else(there, both, pa.scalar(None, pa.int64()))
    return total
