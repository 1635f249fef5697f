"""V4's content_stats: a struct per column with typed bounds, and the partition values in them.

V4 proposal, "How do we remove partition tuple and represent them in columnar stats?".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import UnsupportedError
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests.encode._fields import Pair, field, nested, retyped
from iceexplore.manifests.encode._partition_tuple import field_type, tuple_column
from iceexplore.manifests.encode._stat_columns import (
    Parts,
    at_least_one,
    base_id,
    blanked,
    derives,
    expression_of,
    file_rows,
    find_expression,
    given_columns,
    is_identity,
    partition_fields,
    put_derived,
    put_identity,
)
from iceexplore.manifests.model._field_ids import partition_offset
from iceexplore.metadata import PartitionField, TableMetadata, point_of, type_base

__all__ = ["content_stats"]

_int32, _int64 = pa.int32(), pa.int64()

#: Layout (b): the values of partition fields in a source column's struct, as name and values by offset.
InSource: TypeAlias = "dict[int, tuple[str, AnyArray]]"
_SUFFIXES = {"value": "", "lower": "_lower_bound", "upper": "_upper_bound", "null_count": "_null_count"}
Shape = tuple[tuple[int, str, str, pa.DataType | None], ...]
#: Offset within the column's range of ids; name; key in `Parts`; type (None: that of the column).
_PROPOSAL: Shape = (
    (1, "lower_bound", "lower", None),
    (2, "upper_bound", "upper", None),
    (3, "tight_bounds", "tight_bounds", pa.bool_()),
    (4, "value_count", "value_count", _int64),
    (5, "null_count", "null_count", _int64),
    (6, "nan_count", "nan_count", _int64),
    (7, "average_uncompressed_length", "average_length", _int32),
    (8, "max_uncompressed_length", "max_length", _int32),
)
_DRAFT: Shape = (
    *_PROPOSAL[:4],
    (5, "null_value_count", "null_count", _int64),
    (6, "nan_value_count", "nan_count", _int64),
    (7, "avg_value_size_in_bytes", "average_length", _int32),
)


def content_stats(
    batch: EntryBatch, metadata: TableMetadata, storage: str, *, field_id: int = 149, draft: bool = False
) -> Pair | None:
    """Return the column ``content_stats``; None if no row has statistics or a partition.

    Columns and statistics that no row has are omitted. Statistics of columns in no schema of the table, and of reserved
    columns (positions, file paths), are not written, as readers could not know their types.

    Parameters
    ----------
    storage
        ``derived``: a file's partition values are lower bounds of derived columns; those of identity transforms are
        lower bounds of the source columns, replacing bounds in the statistics, because these may be truncated. The
        upper bound is equal and omitted. ``source``: values of other transforms are in the source column's struct,
        under ``partition_<field id>_<name>`` for files, and with ``_lower_bound`` and ``_upper_bound`` for manifests.
        ``tuple``: no partition values. With ``derived`` and ``source``, a null value has null bounds and a null count;
        void transforms have no value.

    Raises
    ------
    UnsupportedError
        ``source`` has no place for a value: a transform of several columns, or a partition field id above 1039.
    """
    columns = given_columns(batch, metadata)
    if draft:  # table metadata of the draft has no expressions, so ids of expressions mean nothing
        columns = {i: parts for i, parts in columns.items() if i in metadata.all_fields()}
    names = {i: name for i, (name, _) in metadata.all_fields().items()}
    names |= {e.expr_id: e.name or f"expression_{e.expr_id}" for e in metadata.expressions}
    fields = partition_fields(batch, metadata)
    files = file_rows(batch)
    partition_expressions: dict[int, PartitionField] = {}
    for f in (f for spec in metadata.partition_specs for f in spec.fields if derives(f)):
        found = find_expression(metadata, f)
        if found is not None and (found.expr_id not in partition_expressions or found.partition_field_id == f.field_id):
            partition_expressions[found.expr_id] = f
    for expr_id in partition_expressions:
        if expr_id in columns:  # for files, partition tuples take precedence
            columns[expr_id] = {n: blanked(a, files) for n, a in columns[expr_id].items()}
    in_source: dict[int, InSource] = {}
    if storage != "tuple":
        for f, rows in fields:
            if is_identity(f):
                put_identity(columns, batch, metadata, f, rows)
                names.setdefault(f.source_id, f.name)
            elif storage == "source":
                _in_source(in_source, batch, metadata, f, rows)
            else:
                expr_id = expression_of(metadata, f).expr_id
                names[expr_id] = metadata_name(metadata, expr_id, f)
                put_derived(columns.setdefault(expr_id, {}), batch, metadata, f, rows)
    if storage == "source":
        for expr_id, f in partition_expressions.items():
            if expr_id in columns:
                _aggregates_in_source(in_source, columns.pop(expr_id), f)
        for source_id in in_source:
            columns.setdefault(source_id, {})
    if draft:
        for column_id, (_, held) in metadata.all_fields().items():
            if column_id in columns and type_base(held.type) in ("geometry", "geography"):
                columns[column_id] = _of_box(columns[column_id], base_id(column_id))
    return _column(columns, in_source, names, len(batch), field_id, _DRAFT if draft else _PROPOSAL)


def _of_box(parts: Parts, base: int | None) -> Parts:
    """Return the statistics of a geometry with bounds as structs of coordinates, as the V4 draft has them."""
    out = {name: array for name, array in parts.items() if name != "tight_bounds"}
    for name, first in (("lower", 10), ("upper", 14)):
        if base is None or name not in parts or not pa.types.is_binary(parts[name].type):
            continue
        points = [None if raw is None else point_of(raw) for raw in build.to_pylist(parts[name])]
        children: list[Pair] = []
        for i, ordinate in enumerate("xyzm"):
            values = [None if p is None or i >= len(p) or math.isnan(p[i]) else p[i] for p in points]
            array = pa.array(values, pa.float64())
            if i < 2 or array.null_count < len(array):
                children.append((field(base + first + i, ordinate, array.type, required=i < 2), array))
        absent = pa.array([p is None or math.isnan(p[0]) or math.isnan(p[1]) for p in points])
        out[name] = nested(children, len(points), absent)
    return out


def metadata_name(metadata: TableMetadata, expr_id: int, partition_field: PartitionField) -> str:
    """Return the name of an expression's struct; readers match by id, the name is informative."""
    found = next((e.name for e in metadata.expressions if e.expr_id == expr_id), None)
    return found or partition_field.name


def _in_source(
    in_source: dict[int, InSource],
    batch: EntryBatch,
    metadata: TableMetadata,
    f: PartitionField,
    rows: pa.BooleanArray,
) -> None:
    """Add the values of a partition field of files to the struct of its source column."""
    values = tuple_column(batch, f, field_type(f, metadata))
    _put_in_source(in_source, f, "value", pc.if_else(rows, values, build.scalar(None, values.type)))
    # A null value is recorded by its own null count, as a missing value alone would mean unknown.
    nulls = pc.if_else(values.is_null(), at_least_one(batch), pa.scalar(None, _int64))
    _put_in_source(in_source, f, "null_count", pc.if_else(rows, nulls, pa.scalar(None, _int64)))


def _aggregates_in_source(in_source: dict[int, InSource], given: Parts, f: PartitionField) -> None:
    """Add the bounds of a partition field in manifests to the struct of its source column."""
    for part in ("lower", "upper", "null_count"):
        if part in given and given[part].null_count < len(given[part]):
            _put_in_source(in_source, f, part, given[part])


def _put_in_source(in_source: dict[int, InSource], f: PartitionField, part: str, array: AnyArray) -> None:
    if len(f.source_ids) != 1:
        raise UnsupportedError(
            f"partition field {f.name} is a transform of several columns ({', '.join(map(str, f.source_ids))}): its "
            "value cannot be stored in the struct of one of them; use partition_storage='derived'"
        )
    offset = None if base_id(f.source_id) is None else partition_offset(f.field_id, part)
    if offset is None:
        raise UnsupportedError(
            f"partition field {f.name} (id {f.field_id}) of column {f.source_id} has no place in the column's struct, "
            "which holds fields 1000 to 1039; use partition_storage='derived'"
        )
    name = f"partition_{f.field_id}_{f.name}{_SUFFIXES[part]}"
    held = in_source.setdefault(f.source_id, {})
    if offset not in held:
        held[offset] = name, array
        return
    before = held[offset][1]
    if before.type != array.type:  # v1 numbers fields anew in every spec
        raise UnsupportedError(
            f"partition fields with the id {f.field_id} have values of two types ({before.type}, {array.type}), which "
            "one column's struct cannot hold; use partition_storage='derived'"
        )
    held[offset] = held[offset][0], pc.coalesce(before, array)


def _column(
    columns: Mapping[int, Parts],
    in_source: Mapping[int, InSource],
    names: Mapping[int, str],
    rows: int,
    field_id: int,
    shape: Shape,
) -> Pair | None:
    structs: list[Pair] = []
    taken: set[str] = set()
    for column_id in sorted(columns):
        base = base_id(column_id)
        made = None if base is None else _struct(columns[column_id], in_source.get(column_id, {}), base, rows, shape)
        if made is None or base is None:
            continue
        name = names.get(column_id) or str(column_id)
        name = f"{name}_{column_id}" if name in taken else name
        taken.add(name)
        structs.append(retyped(field(base, name, made.type), made))
    if not structs:
        return None
    absent = _all_null([a for _, a in structs])
    made = nested(structs, rows, absent)
    return retyped(field(field_id, "content_stats", made.type), made)


def _struct(parts: Parts, held: InSource, base: int, rows: int, shape: Shape) -> pa.StructArray | None:
    pairs: list[Pair] = []
    for offset, name, part, kind in shape:
        array = parts.get(part)
        if array is None or array.null_count == rows:
            continue
        if pa.types.is_struct(array.type):
            name = f"geo_{part}"
        if kind is not None and array.type != kind:
            array = pc.min_element_wise(array, pa.scalar(2**31 - 1, array.type), skip_nulls=False).cast(kind)
        pairs.append((field(base + offset, name, array.type), array))
    for offset, (name, array) in sorted(held.items()):
        if array.null_count < rows:
            pairs.append((field(base + offset, name, array.type), array))
    return nested(pairs, rows, _all_null([a for _, a in pairs])) if pairs else None


def _all_null(arrays: list[AnyArray]) -> pa.BooleanArray:
    absent = arrays[0].is_null()
    for array in arrays[1:]:
        absent = pc.and_(absent, array.is_null())
    return absent
