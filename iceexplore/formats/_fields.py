"""Read the field ids of Arrow fields, and convert Arrow types that Iceberg lacks to plain ones."""

from __future__ import annotations

import pyarrow as pa

from iceexplore.arrow import AnyField, build

__all__ = ["FIELD_ID", "ORC_FIELD_ID", "children_of", "field_id", "plain_field"]

#: The metadata key under which Arrow stores a Parquet field's id. iceexplore stores the ids of Avro files there, too.
FIELD_ID = b"PARQUET:field_id"
#: The attribute with a field's id in ORC (spec, "ORC").
ORC_FIELD_ID = b"iceberg.id"


def field_id(field: AnyField) -> int | None:
    """Return the field id of an Arrow field, None if it has none."""
    metadata = field.metadata or {}
    raw = metadata.get(FIELD_ID, metadata.get(ORC_FIELD_ID))
    try:
        return None if raw is None else int(raw)
    except ValueError:
        return None


def plain_field(field: AnyField) -> AnyField:
    """Return a field with its id under `FIELD_ID` and, at every depth, without other metadata.

    Extension and dictionary types, and Arrow's other list layouts, are replaced by plain types.
    """
    number = field_id(field)
    metadata = None if number is None else {FIELD_ID: str(number)}
    return pa.field(field.name, _plain(field.type), field.nullable, metadata)


def _plain(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if pa.types.is_struct(kind):
        return pa.struct([plain_field(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return build.map_(plain_field(kind.key_field), plain_field(kind.item_field))
    if hasattr(kind, "value_field"):  # lists of any layout
        return pa.list_(plain_field(kind.value_field))
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return kind


def children_of(kind: pa.DataType) -> list[AnyField]:
    """Return the fields inside a type, such as a map's key and value."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(i) for i in range(kind.num_fields)]
