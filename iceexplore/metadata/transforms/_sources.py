"""Check the source columns of partition fields and sort fields (spec, "Partitioning", "Sorting")."""

from __future__ import annotations

from collections.abc import Iterable

from iceexplore.errors import RuleError
from iceexplore.metadata.document._model import PartitionField, PartitionSpec, SortOrder
from iceexplore.metadata.transforms._names import is_known_transform, transform_parts
from iceexplore.metadata.types._parameters import type_base
from iceexplore.metadata.types._types import ListType, MapType, NestedField, PrimitiveType, Schema, StructType, Type

__all__ = ["check_names", "check_sources", "column_names", "reachable", "transform_fits"]

_TIMESTAMPS = frozenset(("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"))
_BUCKET = _TIMESTAMPS | {"binary", "date", "decimal", "fixed", "int", "long", "string", "time", "uuid"}
_SOURCES = {
    "bucket": _BUCKET,
    "truncate": frozenset(("binary", "decimal", "int", "long", "string")),
    "year": _TIMESTAMPS | {"date"},
    "month": _TIMESTAMPS | {"date"},
    "day": _TIMESTAMPS | {"date"},
    "hour": _TIMESTAMPS,
}


def transform_fits(transform: str, type_: Type) -> bool:
    """Return whether a transform accepts a type (spec, "Partition Transforms"); True for unknown transforms."""
    name, _ = transform_parts(transform)
    if name == "void" or not is_known_transform(transform):
        return True
    if not isinstance(type_, PrimitiveType):
        return False
    base = type_base(type_)
    return base in _SOURCES[name] if name in _SOURCES else base not in ("geography", "geometry", "variant")


def reachable(schema: Schema) -> dict[int, tuple[str, NestedField]]:
    """Return full name and field by id of each column that is not inside a list or map."""
    out: dict[int, tuple[str, NestedField]] = {}

    def collect(prefix: str, fields: Iterable[NestedField]) -> None:
        for field in fields:
            name = f"{prefix}{field.name}"
            out[field.field_id] = (name, field)
            if isinstance(field.type, StructType):
                collect(f"{name}.", field.type.fields)

    collect("", schema.fields)
    return out


def column_names(schema: Schema) -> dict[str, int]:
    """Return the id of every column by its full name."""
    return {name: field.field_id for name, field in schema.walk()}


def check_sources(schema: Schema, of: PartitionSpec | SortOrder) -> None:
    """Refuse a spec or sort order with an invalid source: dropped, in a list or map, or of a wrong type.

    Fields with the transform ``void`` may have lost their source (v1).

    Raises
    ------
    RuleError
        ``partition-source`` or ``sort-source``.
    """
    rule = "partition-source" if isinstance(of, PartitionSpec) else "sort-source"
    columns, everything = reachable(schema), schema.by_id()
    for field in of.fields:
        what = f"partition field {field.name!r}" if isinstance(field, PartitionField) else "a sort field"
        if transform_parts(field.transform)[0] == "void":
            continue
        for source_id in field.source_ids:
            if source_id not in everything:
                raise RuleError(
                    rule,
                    f"{what} uses column {source_id}, which would no longer exist: change the "
                    f"{'partition spec' if rule == 'partition-source' else 'sort order'} first",
                )
            name, column = everything[source_id]
            if source_id not in columns or isinstance(column.type, (ListType, MapType, StructType)):
                raise RuleError(rule, f"{what}: {name!r} must be a primitive outside lists and maps")
            if not transform_fits(field.transform, column.type):
                raise RuleError(rule, f"{what}: {field.transform} does not accept {column.type} ({name!r})")


def check_names(schema: Schema, spec: PartitionSpec) -> None:
    """Refuse partition fields that have the name of a column other than their source.

    As in Java, a field may have the name of its own source (an identity field does, and the void field that replaces
    it in v1); if its source was dropped, it may have any name.

    Raises
    ------
    RuleError
        ``partition-names``.
    """
    names = column_names(schema)
    ids = set(names.values())
    for field in spec.fields:
        column = names.get(field.name)
        if column is not None and column not in field.source_ids and ids.intersection(field.source_ids):
            raise RuleError(
                "partition-names",
                f"partition field {field.name!r} of spec {spec.spec_id} would have the name "
                f"of a column that is not its source",
            )
