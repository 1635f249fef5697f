"""Write partition tuples as records: below V4, in the V4 draft, and in those V4 layouts that store tuples."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError
from iceexplore.manifests._batch import EntryBatch
from iceexplore.manifests.encode._fields import Pair, field
from iceexplore.metadata import (
    PartitionField,
    TableMetadata,
    Type,
    arrow_type,
    fixed_length,
    is_known_transform,
    result_type,
    type_base,
)

__all__ = ["field_type", "tuple_column", "tuple_fields"]


def field_type(partition_field: PartitionField, metadata: TableMetadata) -> Type:
    """Return the type of a partition field's values (``unknown`` if the source column is in no schema)."""
    column = metadata.all_fields().get(partition_field.source_id) if partition_field.source_ids else None
    return result_type(partition_field.transform, column[1].type if column else None)


def tuple_column(batch: EntryBatch, partition_field: PartitionField, type_: Type) -> AnyArray:
    """Return the values of one partition field, null where a tuple has none.

    They have the field's Arrow type or, if that is unknown (a dropped source column, another engine's transform), the
    type that they have in the batch. A column of nulls without a type becomes one of ints.

    Raises
    ------
    OptionError
        Values that do not fit the field's type.
    """
    target = arrow_type(type_) if is_known_transform(partition_field.transform) else pa.null()
    column = None
    if batch.partition is not None:
        at = batch.partition.type.get_field_index(str(partition_field.field_id))
        column = None if at < 0 else pc.struct_field(batch.partition, [at])
    if column is None:
        column = build.nulls(len(batch), target)
    if pa.types.is_null(target):
        target = pa.int32() if pa.types.is_null(column.type) else column.type
    if column.type == target:
        return column
    try:
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise OptionError(
            f"values of partition field {partition_field.field_id} ({partition_field.name}) are {column.type}, "
            f"not {type_}: {error}"
        ) from None


def tuple_fields(batch: EntryBatch, fields: Iterable[PartitionField], metadata: TableMetadata) -> list[Pair]:
    """Return the children of the ``partition`` record; a field whose name is taken gets its id as a suffix."""
    pairs: list[Pair] = []
    names: set[str] = set()
    for f in fields:
        type_ = field_type(f, metadata)
        array = tuple_column(batch, f, type_)
        logical = "uuid" if type_base(type_) == "uuid" else ""
        length = fixed_length(type_)
        if length is not None and pa.types.is_binary(array.type):
            array = _fixed(array, length, f)
        name = f.name if f.name not in names else f"{f.name}_{f.field_id}"
        names.add(name)
        pairs.append((field(f.field_id, name, array.type, logical=logical), array))
    return pairs


def _fixed(array: AnyArray, length: int, partition_field: PartitionField) -> AnyArray:
    try:
        return array.cast(pa.binary(length))
    except pa.ArrowInvalid as error:
        raise OptionError(
            f"a value of partition field {partition_field.field_id} is not {length} bytes long: {error}"
        ) from None
