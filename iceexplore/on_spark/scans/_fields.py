"""The fields of a table that a scan needs, and facts about fields that follow from the metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iceexplore.expressions import columns_of
from iceexplore.graph import TableState
from iceexplore.metadata import ListType, MapType, NestedField, StructType, Type
from iceexplore.on_spark.scans._nodes import Node
from iceexplore.planning import FileTasks, partition_columns
from iceexplore.reading import Output, pruned

__all__ = ["RESERVED", "STORED", "identity_sources", "inside", "names_collide", "walked", "wanted_fields"]

#: Ids from this one on are reserved for metadata columns (spec, "Reserved Field IDs"). Of these columns, data files may
#: contain only two.
RESERVED = 2147483447
STORED = frozenset((2147483540, 2147483539))


def wanted_fields(
    state: TableState, outputs: Iterable[Output], tasks: FileTasks, paths: dict[int, tuple[NestedField, ...]]
) -> list[NestedField]:
    """Return the fields to read from the files: columns pruned to what is needed, and metadata columns.

    A struct occurs twice if an equality delete compares a field of it that was dropped.
    """
    asked = [tasks.residuals[0]] if tasks.residuals and not all(tasks.whole.to_pylist()) else []
    wanted = {o.field.field_id for o in outputs} | {i for e in asked for i in columns_of(e)} | set(paths)
    fields = pruned(state.schema.fields, wanted)
    known = {f.field_id for f in state.schema.fields}
    fields += [o.path[0] for o in outputs if o.path[0].field_id not in known]
    for path in paths.values():  # columns that were dropped since the delete was written
        if not pruned(state.schema.fields, {path[-1].field_id}):
            fields += pruned([path[0]], {path[-1].field_id})
    return fields


def walked(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield the columns of a file, nested ones at every depth included."""
    for n in nodes:
        yield n
        yield from walked(n.children)


def inside(kind: Type) -> Iterator[int]:
    """Yield the ids of the fields inside a type, at every depth."""
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
    """Return the ids of columns that are the source of an identity partition field in any spec."""
    return frozenset(
        c.source.field_id
        for spec in state.metadata.partition_specs
        for c in partition_columns(state.metadata, spec)
        if c.transform.is_identity and c.source is not None
    )


def names_collide(fields: Iterable[NestedField]) -> bool:
    """Return whether names at any level differ only in case, so that their meaning depends on the session."""
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
