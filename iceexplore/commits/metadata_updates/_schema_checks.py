"""Check the schema that results from an evolution (spec, "Schemas and Data Types", "Schema Evolution")."""

from __future__ import annotations

from iceexplore.arrow import PlainValue
from iceexplore.errors import FormatError, OptionError, RuleError
from iceexplore.graph import TableState
from iceexplore.metadata import (
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    Schema,
    StructType,
    TableMetadata,
    Type,
    check_names,
    check_sources,
    check_virtual_columns,
    default_from_json,
    default_to_json,
    is_promotion,
    parse_transform,
    type_base,
)
from iceexplore.reading import CHANGE_FIELDS, METADATA_COLUMNS
from iceexplore.storage import JsonValue

__all__ = [
    "check_promotion",
    "check_schema",
    "default_value",
    "promoted_default",
    "refuse_reserved_columns",
]

_RESERVED = frozenset([f.name for f in METADATA_COLUMNS] + [f.name for f in CHANGE_FIELDS])


def check_new_names(schema: Schema, old: Schema) -> None:
    """Refuse top-level columns with reserved names, except columns that already had this name in the old schema.

    Raises
    ------
    RuleError
        ``reserved-columns``: a column has a name that the spec reserves.
    """
    had = {(f.field_id, f.name) for f in old.fields}
    for field in schema.fields:
        if field.name in _RESERVED and (field.field_id, field.name) not in had:
            raise RuleError(
                "reserved-columns",
                f"a column cannot be called {field.name!r}: Iceberg reserves {', '.join(sorted(_RESERVED))}",
            )


def refuse_reserved_columns(state: TableState) -> None:
    """Refuse to rewrite or delete rows of a table in which another writer created a column with a reserved name.

    Raises
    ------
    OptionError
        The table has such a column.
    """
    for field in state.schema.fields:
        if field.name in _RESERVED:
            raise OptionError(
                f"column {field.name!r} of {state.name} has a name that Iceberg reserves, so rows of the table cannot "
                f"be rewritten or deleted: first rename the column with evolve_schema(rename={{{field.name!r}: ...}})"
            )


_SINCE_V3 = frozenset(("geography", "geometry", "timestamp_ns", "timestamptz_ns", "unknown", "variant"))


def check_schema(schema: Schema, metadata: TableMetadata, *, case_sensitive: bool) -> None:
    """Refuse a schema that is invalid for the table.

    Raises
    ------
    RuleError
        ``schema-names``, ``reserved-columns``, ``required-columns``, ``types-of-version``, ``default-values``,
        ``identifier-fields``, ``partition-source``, ``partition-names``, ``sort-source``, ``virtual-columns``.
    """
    seen: dict[str, str] = {}
    for name, field in schema.walk():
        key = name if case_sensitive else name.lower()
        if key in seen:
            raise RuleError("schema-names", f"two columns would be named {name!r}")
        if not field.name:
            raise RuleError("schema-names", "a column needs a name")
        seen[key] = name
        _check_field(name, field)
        if metadata.format_version < 3:
            _check_below_v3(name, field, metadata.format_version)
    check_new_names(schema, metadata.schema())
    _check_identifiers(schema)
    spec = metadata.spec()
    if spec is not None:
        check_sources(schema, spec)
    check_virtual_columns(schema, metadata)
    for spec in metadata.partition_specs:
        check_names(schema, spec)
    for order in metadata.sort_orders:
        if order.order_id == metadata.default_sort_order_id:
            check_sources(schema, order)


def _check_field(name: str, field: NestedField) -> None:
    if field.required and type_base(field.type) == "unknown":
        raise RuleError("required-columns", f"{name!r} has type unknown, so it is always null: make it optional")
    if isinstance(field.type, StructType) and (field.initial_default or field.write_default):
        raise RuleError(
            "default-values", f"{name!r} is a struct: its default must be null or {{}}; set the defaults of its fields"
        )


def _check_below_v3(name: str, field: NestedField, version: int) -> None:
    if type_base(field.type) in _SINCE_V3:
        raise RuleError(
            "types-of-version", f"{name!r}: type {field.type} needs format version 3, this table has {version}"
        )
    if field.initial_default is not None or field.write_default is not None:
        raise RuleError("default-values", f"{name!r}: defaults need format version 3, this table has {version}")


def _check_identifiers(schema: Schema) -> None:
    fields = schema.by_id()
    parents = {c.field_id: f for _, f in schema.walk() for c in _children(f.type)}
    for field_id in schema.identifier_field_ids:
        if field_id not in fields:
            raise RuleError(
                "identifier-fields",
                f"column {field_id} is an identifier field and cannot be dropped: pass identifier= without it",
            )
        name, field = fields[field_id]
        if not isinstance(field.type, PrimitiveType) or type_base(field.type) in ("double", "float", "variant"):
            raise RuleError("identifier-fields", f"{name!r} cannot be an identifier field: its type is {field.type}")
        if not field.required:
            raise RuleError("identifier-fields", f"{name!r} cannot be an identifier field: it is optional")
        above = parents.get(field_id)
        while above is not None:
            if not isinstance(above.type, StructType) or not above.required:
                raise RuleError(
                    "identifier-fields",
                    f"{name!r} cannot be an identifier field: it is in {above.name!r}, which is not a required struct",
                )
            above = parents.get(above.field_id)


def _children(type_: Type) -> tuple[NestedField, ...]:
    match type_:
        case StructType(fields):
            return fields
        case ListType(element):
            return (element,)
        case MapType(key, value):
            return (key, value)
    return ()


def check_promotion(name: str, field: NestedField, new: Type, metadata: TableMetadata) -> None:
    """Refuse to change a column's type to ``new`` if the spec does not allow this for the table.

    Some changes need format version 3. A date column cannot become a timestamp column if this would change the values
    of a partition field.

    Parameters
    ----------
    name
        The column's full name, for the error message.
    field
        The column with its current type.
    metadata
        The table's metadata.

    Raises
    ------
    RuleError
        ``type-promotion``: the change is not allowed.
    """
    old = field.type
    by_v3 = type_base(old) in ("date", "unknown")
    if not is_promotion(old, new) or (by_v3 and metadata.format_version < 3):
        more = ", date to timestamp or timestamp_ns, unknown to any type" if metadata.format_version >= 3 else ""
        raise RuleError(
            "type-promotion",
            f"{name!r} cannot change from {old} to {new}: allowed are int to long, float to "
            f"double, a wider decimal{more}",
        )
    if type_base(old) != "date":
        return
    for spec in metadata.partition_specs:
        for part in spec.fields:
            if field.field_id in part.source_ids and not parse_transform(part.transform).same_for_timestamps:
                raise RuleError(
                    "type-promotion",
                    f"{name!r} cannot change from {old} to {new}: partition field {part.name!r} "
                    f"({part.transform}) would have different values",
                )


def default_value(name: str, type_: Type, json: JsonValue) -> PlainValue:
    """Parse the JSON of a default value (spec, Appendix D) and check that it fits the column's type.

    Raises
    ------
    RuleError
        ``default-values``: the value does not fit the type.
    """
    if isinstance(type_, StructType) and json:
        raise RuleError(
            "default-values", f"{name!r} is a struct: its default must be null or {{}}; set the defaults of its fields"
        )
    try:
        return default_from_json(type_, json)
    except FormatError as error:
        raise RuleError("default-values", f"{name!r}: {error.reason}") from None


def promoted_default(value: PlainValue, old: Type, new: Type) -> PlainValue:
    """Convert a column's default value when the column's type changes from ``old`` to ``new``.

    If a date column becomes a timestamp column, the value becomes the timestamp at the start of that day. Values of
    other types, and None (no default), are returned unchanged.
    """
    if value is None or type_base(old) != "date" or type_base(new) == "date":
        return value
    return default_from_json(new, f"{default_to_json(old, value)}T00:00:00")
