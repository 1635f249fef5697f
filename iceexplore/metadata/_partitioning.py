"""Check partition specs and sort orders against schemas (sources, names), and get the types of partition tuples."""

from __future__ import annotations

from collections.abc import Iterable

from iceexplore.errors import RuleError
from iceexplore.metadata.document._model import PartitionField, PartitionSpec, SortOrder, TableMetadata
from iceexplore.metadata.transforms._registry import parse_transform
from iceexplore.metadata.types._types import ListType, MapType, NestedField, Schema, StructType

__all__ = ["check_names", "check_sources", "partition_type", "reachable_columns"]


def partition_type(spec: PartitionSpec, metadata: TableMetadata) -> StructType:
    """Return the struct type of a spec's partition tuples, with the result types of its transforms.

    Source columns are looked up in every schema of the table, the current one first, because a spec may outlive its
    columns.
    """
    columns = metadata.all_fields()
    fields = []
    for f in spec.fields:
        column = columns.get(f.source_id) if f.source_ids else None
        kind = parse_transform(f.transform).result_type(column[1].type if column else None)
        fields.append(NestedField(f.field_id, f.name, kind))
    return StructType(tuple(fields))


def reachable_columns(schema: Schema) -> dict[int, tuple[str, NestedField]]:
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


def check_sources(schema: Schema, of: PartitionSpec | SortOrder) -> None:
    """Refuse a spec or sort order with an invalid source: dropped, in a list or map, or of a wrong type.

    Fields with the transform ``void`` may have lost their source (v1).

    Raises
    ------
    RuleError
        ``partition-source`` or ``sort-source``.
    """
    rule = "partition-source" if isinstance(of, PartitionSpec) else "sort-source"
    columns, everything = reachable_columns(schema), schema.by_id()
    for field in of.fields:
        what = f"partition field {field.name!r}" if isinstance(field, PartitionField) else "a sort field"
        transform = parse_transform(field.transform)
        if transform.is_void:
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
            if not transform.accepts(column.type):
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
    names = {name: field.field_id for name, field in schema.walk()}
    ids = set(names.values())
    for field in spec.fields:
        column = names.get(field.name)
        if column is not None and column not in field.source_ids and ids.intersection(field.source_ids):
            raise RuleError(
                "partition-names",
                f"partition field {field.name!r} of spec {spec.spec_id} would have the name "
                f"of a column that is not its source",
            )
