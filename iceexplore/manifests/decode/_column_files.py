"""Decode 158 ``column_files`` of the V4 draft: a list of records, whose children are matched by id.

V4 draft: ``ColumnFile``, apache/iceberg#16285. In its first form, field 161 was the list of ids, 163 the location and
164 the size; now 161 is a version. The two forms differ in the type of 161.
"""

from __future__ import annotations

from typing import cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyField, AnyListArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem
from iceexplore.formats import field_id
from iceexplore.manifests.model._arrow import Columns, offsets_of, whole
from iceexplore.manifests.model._content_entry import COLUMN_FILE
from iceexplore.manifests.model._field_ids import COLUMN_FILE_NAMES, OLD_COLUMN_FILE_NAMES

__all__ = ["column_files"]


def column_files(source: Columns) -> tuple[AnyArray, list[Problem]]:
    """Return the column files of each row; null where there are none."""
    kind = pa.list_(COLUMN_FILE)
    index = source.table.schema.get_field_index("f158")
    if index < 0:
        return pa.nulls(len(source), kind), []
    array = whole(source.table.column(index))
    if not (pa.types.is_list(array.type) and pa.types.is_struct(array.type.value_type)):
        return source.get(158, kind), source.problems
    given = cast(AnyListArray, array)
    items = given.values
    columns: dict[str, AnyArray] = {}
    for child, values in zip(items.type, cast(pa.StructArray, items).flatten(), strict=True):
        columns.setdefault(_name(child), values)
    first = columns.get("f161")
    old = first is not None and pa.types.is_list(first.type)
    inner = Columns(pa.table(columns) if columns else pa.table({"x": pa.nulls(len(items))}), source.location)
    ids = OLD_COLUMN_FILE_NAMES if old else COLUMN_FILE_NAMES
    arrays = [inner.get(ids.get(f.name, -1), f.type) for f in COLUMN_FILE]
    at = COLUMN_FILE.get_field_index("file_format")
    arrays[at] = pc.utf8_lower(arrays[at])
    made = pa.StructArray.from_arrays(arrays, fields=list(COLUMN_FILE))
    return build.list_array(offsets_of(given), made), inner.problems


def _name(child: AnyField) -> str:
    """Return a child's name by its id, as in a reader schema: in Parquet, children still have their real names."""
    number = field_id(child)
    number = COLUMN_FILE_NAMES.get(child.name) if number is None else number
    return child.name if number is None else f"f{number}"
