"""V4's content_stats: a struct per column with typed bounds, and the partition values in them.

V4 proposal, "How do we remove partition tuple and represent them in columnar stats?".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from iceexplore.arrow import AnyArray
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
from iceexplore.metadata import PartitionField, TableMetadata

__all__ = ["content_stats"]

_int32, _int64 = pa.int32(), pa.int64()

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
    (9, "derived_value", "derived", None),
    # Layout (b) does not define ids for the bounds of derived values in manifests' statistics: these are our choice.
    (20, "derived_lower_bound", "derived_lower", None),
    (21, "derived_upper_bound", "derived_upper", None),
    (22, "derived_null_count", "derived_nulls", _int64),
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
        lower bounds of the source columns, replacing bounds in the statistics, which may be truncated. The upper
        bound is equal and omitted. ``source``: values of other transforms are ``derived_value`` in the source column's
        struct. ``tuple``: no partition values. For a null value both bounds are null and ``null_count`` is set; void
        transforms have no value.

    Raises
    ------
    UnsupportedError
        ``source`` has no place for a value: a transform of several columns, or a second transform of one column.
    """
    columns = given_columns(batch, metadata)
    names = {i: name for i, (name, _) in metadata.all_fields().items()}
    names |= {e.expr_id: e.name or f"expression_{e.expr_id}" for e in metadata.expressions}
    fields = partition_fields(batch, metadata)
    files = file_rows(batch)
    partition_expressions = {
        found.expr_id: f
        for spec in metadata.partition_specs
        for f in spec.fields
        if derives(f) and (found := find_expression(metadata, f)) is not None
    }
    for expr_id in partition_expressions:
        if expr_id in columns:  # for files, partition tuples take precedence
            columns[expr_id] = {n: blanked(a, files) for n, a in columns[expr_id].items()}
    if storage != "tuple":
        for f, rows in fields:
            if is_identity(f):
                put_identity(columns, batch, metadata, f, rows)
                names.setdefault(f.source_id, f.name)
            elif storage == "source":
                _in_source(columns, batch, metadata, f, rows)
            else:
                expr_id = expression_of(metadata, f).expr_id
                names[expr_id] = metadata_name(metadata, expr_id, f)
                put_derived(columns.setdefault(expr_id, {}), batch, metadata, f, rows)
    if storage == "source":
        for expr_id, f in partition_expressions.items():
            if expr_id in columns:
                _aggregates_in_source(columns, expr_id, f)
    return _column(columns, names, len(batch), field_id, _DRAFT if draft else _PROPOSAL)


def metadata_name(metadata: TableMetadata, expr_id: int, partition_field: PartitionField) -> str:
    """Return the name of an expression's struct; readers match by id, the name is informative."""
    found = next((e.name for e in metadata.expressions if e.expr_id == expr_id), None)
    return found or partition_field.name


def _in_source(
    columns: dict[int, Parts], batch: EntryBatch, metadata: TableMetadata, f: PartitionField, rows: pa.BooleanArray
) -> None:
    _refuse_without_home(columns, f, "derived")
    values = tuple_column(batch, f, field_type(f, metadata))
    parts = columns.setdefault(f.source_id, {})
    parts["derived"] = pc.if_else(rows, values, pa.scalar(None, values.type))
    # A null value is recorded by its own null count, as a missing bound alone would mean unknown.
    nulls = pc.if_else(values.is_null(), at_least_one(batch), pa.scalar(None, _int64))
    parts["derived_nulls"] = pc.if_else(rows, nulls, pa.scalar(None, _int64))


def _aggregates_in_source(columns: dict[int, Parts], expr_id: int, f: PartitionField) -> None:
    given = columns.pop(expr_id)
    if all(a.null_count == len(a) for a in given.values()):
        return
    _refuse_without_home(columns, f, "derived_lower")
    parts = columns.setdefault(f.source_id, {})
    parts["derived_lower"], parts["derived_upper"] = given["lower"], given["upper"]
    held = parts.get("derived_nulls", given["null_count"])
    parts["derived_nulls"] = pc.coalesce(held, given["null_count"])


def _refuse_without_home(columns: Mapping[int, Parts], f: PartitionField, part: str) -> None:
    if len(f.source_ids) != 1:
        raise UnsupportedError(
            f"partition field {f.name} is a transform of several columns ({', '.join(map(str, f.source_ids))}): its "
            "value cannot be stored in the struct of one of them; use partition_storage='derived'"
        )
    if base_id(f.source_id) is None:
        raise UnsupportedError(f"column {f.source_id} cannot have statistics in V4; use partition_storage='derived'")
    if part in columns.get(f.source_id, {}):
        raise UnsupportedError(
            f"column {f.source_id} is the source of two partition fields, the second of which is {f.name}: its struct "
            "has room for one derived value; use partition_storage='derived'"
        )


def _column(
    columns: Mapping[int, Parts], names: Mapping[int, str], rows: int, field_id: int, shape: Shape
) -> Pair | None:
    structs: list[Pair] = []
    taken: set[str] = set()
    for column_id in sorted(columns):
        base = base_id(column_id)
        made = None if base is None else _struct(columns[column_id], base, rows, shape)
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


def _struct(parts: Parts, base: int, rows: int, shape: Shape) -> pa.StructArray | None:
    pairs: list[Pair] = []
    for offset, name, part, kind in shape:
        array = parts.get(part)
        if array is None or array.null_count == rows:
            continue
        if kind is not None and array.type != kind:
            array = pc.min_element_wise(array, pa.scalar(2**31 - 1, array.type), skip_nulls=False).cast(kind)
        pairs.append((field(base + offset, name, array.type), array))
    return nested(pairs, rows, _all_null([a for _, a in pairs])) if pairs else None


def _all_null(arrays: list[AnyArray]) -> pa.BooleanArray:
    absent = arrays[0].is_null()
    for array in arrays[1:]:
        absent = pc.and_(absent, array.is_null())
    return absent
