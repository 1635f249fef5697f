"""Typed partition tuples: the file's values, converted to the result types of the table's spec."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from iceexplore.arrow import AnyArray, build
from iceexplore.errors import Problem, problem
from iceexplore.formats import AVRO_LOGICAL_TYPES
from iceexplore.manifests.model._arrow import to_text, whole
from iceexplore.manifests.model._reader_schema import PartitionColumn, ReaderSchema
from iceexplore.metadata import (
    PartitionField,
    PartitionSpec,
    PrimitiveType,
    Type,
    arrow_type,
    decode_values,
    is_known_transform,
    parse_transform,
    result_type,
)
from iceexplore.storage import JsonValue

__all__ = ["conform", "find_column", "from_file", "typed_partition"]

_REFUSED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError)


def typed_partition(
    table: pa.Table, reader_schema: ReaderSchema, spec: PartitionSpec | None, types: Mapping[int, Type], location: str
) -> tuple[pa.StructArray | None, list[Problem]]:
    """Return the partition tuples as a struct whose children are named by partition field id.

    Parameters
    ----------
    table
        The part "partition" of a decoded file.
    spec
        The table's spec; None if it is unknown, to use the file's own fields and types.
    types
        The types of source columns by id.

    Returns
    -------
    tuple
        The struct (None if unpartitioned), and problems with values that do not fit.
    """
    problems: list[Problem] = []
    arrays: list[AnyArray] = []
    names: list[str] = []
    if spec is None:
        for column in reader_schema.partition:
            arrays.append(from_file(whole(table.column(column.column)), column.logical))
            names.append(column.name if column.field_id is None else str(column.field_id))
    else:
        for field in spec.fields:
            array, trouble = _one(table, reader_schema, field, types, location)
            arrays.append(array)
            names.append(str(field.field_id))
            problems += trouble
    if not arrays:
        return None, problems
    return pa.StructArray.from_arrays(arrays, names=names), problems


def _one(
    table: pa.Table, reader_schema: ReaderSchema, field: PartitionField, types: Mapping[int, Type], location: str
) -> tuple[AnyArray, list[Problem]]:
    target: pa.DataType = pa.null()
    if is_known_transform(field.transform):
        source = types.get(field.source_ids[0]) if field.source_ids else None
        target = arrow_type(result_type(field.transform, source))
    found = find_column(reader_schema, field)
    if found is None:
        return build.nulls(table.num_rows, target), _lacking(table, reader_schema, field, location)
    array = from_file(whole(table.column(found.column)), found.logical)
    if pa.types.is_null(target):  # dropped source column or unknown transform: keep the file's type
        return array, []
    try:
        return conform(array, target), []
    except _REFUSED:
        item = problem(
            "value-undecodable",
            location,
            f"Partition values of {field.name!r} do not fit the partition field's type.",
            field=str(field.field_id),
            found=array.type,
            expected=target,
        )
        return array, [item]


def _lacking(table: pa.Table, reader_schema: ReaderSchema, field: PartitionField, location: str) -> list[Problem]:
    """Return a problem for a manifest that lacks a field of its spec; a void field may be missing, as it is null."""
    if not table.num_rows or parse_transform(field.transform).is_void:
        return []
    text = f"The manifest has no partition field {field.name!r} of its spec: filters and deletes may miss its files."
    found = ", ".join(f"{column.name} ({column.field_id})" for column in reader_schema.partition) or "none"
    expected = f"{field.name} ({field.field_id})"
    item = problem(
        "file-corrupt", location, text, field="102 partition", found=found, expected=expected, severity="warning"
    )
    return [item]


def find_column(reader_schema: ReaderSchema, field: PartitionField) -> PartitionColumn | None:
    for column in reader_schema.partition:
        if column.field_id == field.field_id:
            return column
    names = {field.name, _avro_name(field.name)}
    return next((c for c in reader_schema.partition if c.field_id is None and c.name in names), None)


def _avro_name(name: str) -> str:
    """Return a field name as Java writes it to Avro (``AvroSchemaUtil.sanitize``)."""
    text = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_x{ord(m[0]):X}", name)
    return f"_{text}" if text[:1].isdigit() else text


def from_file(array: AnyArray, logical: JsonValue) -> AnyArray:
    """Convert values by their Avro type (spec, Appendix A); from Parquet, only text is converted."""
    kind = logical.get("type") if isinstance(logical, dict) else logical
    name = logical.get("logicalType") if isinstance(logical, dict) else None
    try:
        if kind == "string":
            return to_text(array)[0]
        if name == "decimal" and isinstance(logical, dict):
            kind = PrimitiveType(f"decimal({int(logical['precision'])},{int(logical.get('scale', 0))})")
            return decode_values(kind, array.cast(pa.binary()))[0]
        target = AVRO_LOGICAL_TYPES.get((str(kind), str(name)))
        if target is None:
            return array
        if pa.types.is_timestamp(target) and logical.get("adjust-to-utc") is True:
            target = pa.timestamp(target.unit, "UTC")
        return array.cast(target)
    except (*_REFUSED, KeyError, TypeError):
        return array


def conform(array: AnyArray, target: pa.DataType) -> AnyArray:
    if array.type == target:
        return array
    if target == pa.binary(16) and pa.types.is_string(array.type):  # some writers store uuid as text
        import uuid

        return pa.array([None if v is None else uuid.UUID(v).bytes for v in array.to_pylist()], target)
    if pa.types.is_binary(array.type) and pa.types.is_decimal(target):  # a decimal written without its logical type
        made, bad = decode_values(PrimitiveType(f"decimal({target.precision},{target.scale})"), array)
        if bad.true_count:
            raise ValueError("no decimals")
        return made
    return array.cast(target)
