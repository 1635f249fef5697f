"""Virtual columns: the expressions of a table that no partition spec uses (V4 proposal, "global field ID space")."""

from __future__ import annotations

from iceexplore.errors import RuleError
from iceexplore.metadata._partitioning import reachable_columns
from iceexplore.metadata.document._model import Expression, TableMetadata
from iceexplore.metadata.transforms._functions import function_type
from iceexplore.metadata.types._types import ListType, MapType, Schema, StructType

__all__ = ["check_virtual_columns", "check_virtual_source", "virtual_expressions"]

_RULE = "virtual-columns"


def virtual_expressions(metadata: TableMetadata) -> list[Expression]:
    """Return the expressions of one column that belong to no partition field, in the order of the metadata.

    An expression that has the id of a column is left out, because statistics under this id are the column's.
    """
    columns = metadata.all_fields()
    of_specs = {(f.transform, f.source_ids) for spec in metadata.partition_specs for f in spec.fields}
    return [
        e
        for e in metadata.expressions
        if e.partition_field_id is None
        and len(e.source_ids) == 1
        and e.expr_id not in columns
        and (e.transform, e.source_ids) not in of_specs
    ]


def check_virtual_source(schema: Schema, function: str, source_id: int, what: str) -> None:
    """Refuse a function whose column does not exist, is in a list or map, or has a type that it does not accept.

    Raises
    ------
    RuleError
        ``virtual-columns``.
    """
    everything = schema.by_id()
    if source_id not in everything:
        text = f"{what} uses column {source_id}, which would no longer exist: remove the virtual column first"
        raise RuleError(_RULE, text)
    name, column = everything[source_id]
    if source_id not in reachable_columns(schema) or isinstance(column.type, (ListType, MapType, StructType)):
        raise RuleError(_RULE, f"{what}: {name!r} must be a primitive outside lists and maps")
    if function_type(function, [column.type]) is None:
        raise RuleError(_RULE, f"{what}: {function} does not accept {column.type} ({name!r})")


def check_virtual_columns(schema: Schema, metadata: TableMetadata) -> None:
    """Refuse a new schema in which a virtual column would lose its source.

    Virtual columns that are already invalid, for example with functions that only other writers know, are not checked.

    Raises
    ------
    RuleError
        ``virtual-columns``.
    """
    for e in virtual_expressions(metadata):
        what = f"virtual column {e.name!r}" if e.name else f"expression {e.expr_id}"
        try:
            check_virtual_source(metadata.schema(), e.transform, e.source_ids[0], what)
        except RuleError:
            continue
        check_virtual_source(schema, e.transform, e.source_ids[0], what)
