"""Which fields of a table a scan needs, and what is known of them by the table's metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iceexplore.expressions import predicates
from iceexplore.graph import TableState
from iceexplore.metadata import ListType, MapType, NestedField, StructType, Type
from iceexplore.on_spark.scans._nodes import Node
from iceexplore.planning import FileTasks, partition_columns
from iceexplore.reading import Output, pruned

__all__ = ["RESERVED", "STORED", "identity_sources", "inside", "names_collide", "walked", "wanted_fields"]

#: Ids from here on are reserved for metadata columns (spec, "Reserved Field IDs"); of these, files may hold two.
RESERVED = 2147483447
STORED = frozenset((2147483540, 2147483539))


def wanted_fields(
    state: TableState, outputs: Iterable[Output], tasks: FileTasks, paths: dict[int, tuple[NestedField, ...]]
) -> list[NestedField]:
    """What is read of the files: columns, cut down to what is needed, and metadata columns.

    A struct is there twice where an equality delete goes by a field of it that was dropped.
    """
    asked = [tasks.residuals[0]] if tasks.residuals and not all(tasks.whole.to_pylist()) else []
    wanted = {o.field.field_id for o in outputs} | {p.field_id for e in asked for p in predicates(e)} | set(paths)
    fields = pruned(state.schema.fields, wanted)
    known = {f.field_id for f in state.schema.fields}
    fields += [o.path[0] for o in outputs if o.path[0].field_id not in known]
    for path in paths.values():  # of columns that were dropped since
        if not pruned(state.schema.fields, {path[-1].field_id}):
            fields += pruned([path[0]], {path[-1].field_id})
    return fields


def walked(nodes: Iterable[Node]) -> Iterator[Node]:
    """Columns of a file at every depth."""
    for n in nodes:
        yield n
        yield from walked(n.children)


def inside(kind: Type) -> Iterator[int]:
    """Ids of fields inside a type."""
    match kind:
        case StructType(fields):
            inner = fields
        case ListType(element):
            inner = (element,)
        case MapType(key, value):
            inner = (key, value)
        case _:
            return
    for f in inner:
        yield f.field_id
        yield from inside(f.type)


def identity_sources(state: TableState) -> frozenset[int]:
    """Columns that some spec partitions by as they are."""
    return frozenset(
        c.source.field_id
        for spec in state.metadata.partition_specs
        for c in partition_columns(state.metadata, spec)
        if c.field.transform == "identity" and c.source is not None
    )


def names_collide(fields: Iterable[NestedField]) -> bool:
    """Whether names of one level differ in case alone: then what they mean depends on the session."""
    fields = list(fields)
    if len({f.name.casefold() for f in fields}) < len(fields):
        return True
    inner: list[Type] = [f.type for f in fields]
    while inner:
        kind = inner.pop()
        match kind:
            case StructType(children):
                if names_collide(children):
                    return True
            case ListType(element):
                inner.append(element.type)
            case MapType(key, value):
                inner += [key.type, value.type]
    return False
