"""Statistics by column and part, with partition values filled in: the content of V4's content_stats."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, UnsupportedError
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests.encode._partition_tuple import field_type, tuple_column
from iceexplore.manifests.model._arrow import whole
from iceexplore.manifests.model._content_entry import ContentType
from iceexplore.metadata import (
    Expression,
    PartitionField,
    PartitionSpec,
    TableMetadata,
    arrow_type,
    is_variable_length,
    parse_transform,
)

__all__ = [
    "Parts",
    "at_least_one",
    "base_id",
    "blanked",
    "derives",
    "expression_of",
    "file_rows",
    "find_expression",
    "given_columns",
    "is_identity",
    "partition_fields",
    "put_derived",
    "put_identity",
    "specs_of",
]

#: Ids of the statistics' structs of the reserved columns _last_updated_sequence_number and _row_id: spec on Iceberg's
#: main branch, "Content Stats".
_RESERVED = {2147483539: 9000, 2147483540: 9200}


def base_id(column_id: int) -> int | None:
    """Return the id of a column's struct in content_stats, 10,000 + 200 × id; None if it cannot have one."""
    return 10_000 + 200 * column_id if 0 <= column_id < 999_950 else _RESERVED.get(column_id)


def is_identity(field: PartitionField) -> bool:
    """Return whether the partition value is the source column's own value, and so equals the column's bounds."""
    return parse_transform(field.transform).is_identity


def derives(field: PartitionField) -> bool:
    """Return whether the partition value needs a derived column: not identity, and not void (which is always null)."""
    transform = parse_transform(field.transform)
    return not (transform.is_identity or transform.is_void)


def find_expression(metadata: TableMetadata, field: PartitionField) -> Expression | None:
    """Return a partition field's expression, with the same transform and sources; None if there is none.

    If there are several, the one with the field's id is preferred. The id alone is not enough, as v1 numbered fields
    from 1000 in every spec.
    """
    same = [e for e in metadata.expressions if (e.transform, e.source_ids) == (field.transform, field.source_ids)]
    by_id = [e for e in same if e.partition_field_id == field.field_id]
    return next(iter(by_id or same), None)


def expression_of(metadata: TableMetadata, field: PartitionField) -> Expression:
    """Return a partition field's expression, like `find_expression`; raise if there is none.

    Raises
    ------
    OptionError
        The table has no such expression: its metadata has not been upgraded to V4.
    """
    found = find_expression(metadata, field)
    if found is None:
        sources = ", ".join(map(str, field.source_ids))
        raise OptionError(
            f"the table has no expression for partition field {field.field_id} ({field.name}, {field.transform} of "
            f"{sources}), whose id its derived column needs: upgrade the metadata to version 4 first"
        )
    return found


_int32, _int64 = pa.int32(), pa.int64()
#: Arrays by name: the children of `stats_type`, and statistics that only V4's layouts have.
Parts: TypeAlias = "dict[str, AnyArray]"


def file_rows(batch: EntryBatch) -> pa.BooleanArray:
    """Return a mask of the rows that are files: DATA, POSITION_DELETE, EQUALITY_DELETE."""
    return pc.less(whole(batch.entries["content_type"]), int(ContentType.DATA_MANIFEST))


def specs_of(batch: EntryBatch, metadata: TableMetadata) -> list[PartitionSpec]:
    """Return the specs of a batch's files, by id.

    Raises
    ------
    OptionError
        The table does not have one of the specs.
    """
    ids = whole(batch.entries["partition_spec_id"]).filter(file_rows(batch)).unique()
    found = []
    for spec_id in sorted(build.to_pylist(ids.drop_null())):
        spec = metadata.spec(spec_id)
        if spec is None:
            raise OptionError(f"the table has no partition spec {spec_id}")
        found.append(spec)
    return found


def given_columns(batch: EntryBatch, metadata: TableMetadata) -> dict[int, Parts]:
    """Return a batch's statistics by column and part, with bounds converted to the column's current type."""
    columns: dict[int, Parts] = {}
    known = metadata.all_fields()
    expressions = {e.expr_id for e in metadata.expressions}
    for column_id, array in batch.stats.items():
        if (column_id not in known and column_id not in expressions) or base_id(column_id) is None:
            continue
        parts = dict(zip((child.name for child in array.type), array.flatten(), strict=True))
        if column_id in known and column_id not in expressions:
            target = arrow_type(known[column_id][1].type)
            for name in ("lower", "upper"):
                if parts[name].type != target and not pa.types.is_null(target):
                    parts[name] = _cast(parts[name], target, column_id)
            if not is_variable_length(known[column_id][1].type):
                # Proposal: "generated for variable length types". The length of other values follows from the type.
                parts = {name: array for name, array in parts.items() if name not in ("average_length", "max_length")}
        columns[column_id] = parts
    return columns


def _cast(array: AnyArray, target: pa.DataType, column_id: int) -> AnyArray:
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise OptionError(f"bounds of column {column_id} are {array.type}, not {target}: {error}") from None


def partition_fields(batch: EntryBatch, metadata: TableMetadata) -> list[tuple[PartitionField, pa.BooleanArray]]:
    """Return the batch's partition fields except void ones, each with a mask of the rows whose spec has the field."""
    spec_ids, files = whole(batch.entries["partition_spec_id"]), file_rows(batch)
    found: dict[PartitionField, list[int]] = {}  # keyed by field, not by field id: v1 numbered these anew in every spec
    for spec in specs_of(batch, metadata):
        for f in spec.fields:
            if is_identity(f) or derives(f):
                found.setdefault(f, []).append(spec.spec_id)
    return [(f, pc.and_(files, pc.is_in(spec_ids, pa.array(ids, _int32)))) for f, ids in found.items()]


def put_identity(
    columns: dict[int, Parts], batch: EntryBatch, metadata: TableMetadata, f: PartitionField, rows: pa.BooleanArray
) -> None:
    """Store an identity partition value as the lower bound of its source column, and update other statistics.

    All values of the column equal the partition value, so the counts of nulls and NaNs follow from it, whatever the
    statistics state.

    Raises
    ------
    UnsupportedError
        The column cannot have statistics.
    """
    if base_id(f.source_id) is None:
        raise UnsupportedError(f"column {f.source_id} cannot have statistics in V4, nor be a partition source")
    values = tuple_column(batch, f, field_type(f, metadata))
    parts = columns.setdefault(f.source_id, {})
    kind, count = values.type, len(batch)
    lower, upper = (parts.get(n, pa.nulls(count, kind)) for n in ("lower", "upper"))
    parts["lower"] = pc.if_else(rows, values, lower if lower.type == kind else pa.nulls(count, kind))
    parts["upper"] = blanked(upper if upper.type == kind else pa.nulls(count, kind), rows)
    held = pc.coalesce(parts.get("value_count", pa.nulls(count, _int64)), at_least_one(batch))
    nulls = parts.get("null_count", pa.nulls(count, _int64))
    parts["null_count"] = pc.if_else(rows, pc.if_else(values.is_null(), held, 0), nulls)
    if pa.types.is_floating(kind):
        nans = parts.get("nan_count", pa.nulls(count, _int64))
        is_nan = pc.fill_null(pc.is_nan(values), False)
        parts["nan_count"] = pc.if_else(rows, pc.if_else(is_nan, held, 0), nans)
    tight = parts.get("tight_bounds", pa.nulls(count, pa.bool_()))
    parts["tight_bounds"] = pc.if_else(pc.and_(rows, tight.is_valid()), True, tight)


def put_derived(
    parts: Parts, batch: EntryBatch, metadata: TableMetadata, f: PartitionField, rows: pa.BooleanArray
) -> None:
    """Store a partition value as the lower bound of a derived column or, if the value is null, as the null count."""
    values = tuple_column(batch, f, field_type(f, metadata))
    lower = parts.get("lower", pa.nulls(len(batch), values.type))
    parts["lower"] = pc.if_else(rows, values, lower if lower.type == values.type else lower.cast(values.type))
    nulls = pc.if_else(values.is_null(), at_least_one(batch), pa.scalar(0, _int64))
    parts["null_count"] = pc.if_else(rows, nulls, parts.get("null_count", pa.nulls(len(batch), _int64)))


def at_least_one(batch: EntryBatch) -> AnyArray:
    """Return each entry's number of rows, but at least 1, for use as the null count if a partition value is null."""
    return pc.max_element_wise(whole(batch.entries["record_count"]), pa.scalar(1, _int64))


def blanked(array: AnyArray, rows: pa.BooleanArray) -> AnyArray:
    """Return the array with nulls in these rows."""
    return pc.if_else(rows, build.scalar(None, array.type), array)
