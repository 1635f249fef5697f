"""Select columns: resolve names to fields, add metadata columns, and reduce schemas to what is needed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from iceexplore.errors import OptionError, nearest
from iceexplore.metadata import (
    LINEAGE_FIELDS,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    Schema,
    StructType,
    TableMetadata,
)
from iceexplore.planning import partition_columns

__all__ = [
    "DELETED",
    "FILE",
    "LAST_UPDATED",
    "METADATA_COLUMNS",
    "Output",
    "PARTITION",
    "POS",
    "ROW_ID",
    "SPEC_ID",
    "chosen_columns",
    "pruned",
    "with_ancestors",
]

_LONG = PrimitiveType("long")

#: Metadata columns (spec, "Reserved Field IDs"). The type of ``_partition`` depends on the table, see
#: `partition_field`.
FILE = NestedField(2147483646, "_file", PrimitiveType("string"), required=True)
POS = NestedField(2147483645, "_pos", _LONG, required=True)
DELETED = NestedField(2147483644, "_deleted", PrimitiveType("boolean"), required=True)
SPEC_ID = NestedField(2147483643, "_spec_id", PrimitiveType("int"), required=True)
PARTITION = NestedField(2147483642, "_partition", StructType(()))
ROW_ID, LAST_UPDATED = (NestedField(number, name, _LONG) for number, name in LINEAGE_FIELDS.items())
METADATA_COLUMNS = (FILE, POS, DELETED, SPEC_ID, PARTITION, ROW_ID, LAST_UPDATED)


@dataclass(frozen=True)
class Output:
    """A column of a result.

    Attributes
    ----------
    name
        The name as requested: of a column, of a nested field with dots, or of a metadata column.
    path
        The fields from the top level of the schema to the selected one.
    """

    name: str
    path: tuple[NestedField, ...]

    @property
    def field(self) -> NestedField:
        """Return the selected field."""
        return self.path[-1]


def chosen_columns(metadata: TableMetadata, schema: Schema, columns: str | Iterable[str] | None = None) -> list[Output]:
    """Resolve the columns of a result by name.

    Parameters
    ----------
    columns
        None or ``"*"`` selects all columns of the schema. Otherwise a name or several: columns, fields of structs with
        dots, metadata columns, ``"*"`` for all columns of the schema. Names are case-sensitive, unless only one column
        matches without regard to case.

    Raises
    ------
    OptionError
        A name does not exist (the nearest are listed), or is inside a list or map.
    """
    everything = [Output(f.name, (f,)) for f in schema.fields]
    if columns is None:
        return everything
    names = [columns] if isinstance(columns, str) else columns
    if isinstance(names, (bytes, dict)) or not isinstance(names, Iterable):
        raise OptionError(f"columns={columns!r}: give column names")
    known = {".".join(f.name for f in path): path for path in _paths((), schema.fields)}
    extra = {f.name: (f,) for f in _metadata_columns(metadata)}
    out: dict[str, Output] = {}
    for name in names:
        if name == "*":
            for one in everything:
                out.setdefault(one.name, one)
            continue
        if not isinstance(name, str):
            raise OptionError(f"columns: {name!r} is not a column name")
        path = known.get(name) or extra.get(name) or _loose(name, known)
        if path is None:
            raise OptionError(f"columns: {_unknown(name, schema, [*known, *extra])}")
        out.setdefault(name, Output(name, path))
    return list(out.values())


def _loose(name: str, known: dict[str, tuple[NestedField, ...]]) -> tuple[NestedField, ...] | None:
    found = [path for key, path in known.items() if key.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def _unknown(name: str, schema: Schema, names: Sequence[str]) -> str:
    if any(name == full for full, _ in schema.walk()):
        return f"{name!r} is inside a list or map; select the whole column {name.partition('.')[0]!r}"
    return f"no column {name!r}; {nearest(name, names)}"


def _paths(prefix: tuple[NestedField, ...], fields: Iterable[NestedField]) -> Iterator[tuple[NestedField, ...]]:
    """Yield the paths of fields that have one value per row."""
    for f in fields:
        path = (*prefix, f)
        yield path
        if isinstance(f.type, StructType):
            yield from _paths(path, f.type.fields)


def _metadata_columns(metadata: TableMetadata) -> Iterator[NestedField]:
    for f in METADATA_COLUMNS:
        yield partition_field(metadata) if f is PARTITION else f


def partition_field(metadata: TableMetadata) -> NestedField:
    """Return ``_partition``: a struct of every partition field of every spec (Java: ``Partitioning.partitionType``).

    Each field has its newest name and type. If a field with a lower id has the same name, the field's id is appended.
    """
    found: dict[int, NestedField] = {}
    for spec in sorted(metadata.partition_specs, key=lambda s: (s.spec_id != metadata.default_spec_id, -s.spec_id)):
        for column in partition_columns(metadata, spec):
            number = column.field.field_id
            if not column.transform.is_void:
                found.setdefault(number, NestedField(number, column.field.name, column.type))
    taken: set[str] = set()
    fields = []
    for f in sorted(found.values(), key=lambda f: f.field_id):
        name = f"{f.name}_{f.field_id}" if f.name in taken else f.name
        taken.add(name)
        fields.append(NestedField(f.field_id, name, f.type))
    return NestedField(PARTITION.field_id, PARTITION.name, StructType(tuple(fields)))


def pruned(fields: Iterable[NestedField], wanted: Collection[int]) -> list[NestedField]:
    """Return the wanted fields completely, and structs that contain some of them reduced to these."""
    out = []
    for f in fields:
        if f.field_id in wanted:
            out.append(f)
        elif isinstance(f.type, StructType):
            children = pruned(f.type.fields, wanted)
            if children:
                out.append(_with_type(f, StructType(tuple(children))))
    return out


def _with_type(f: NestedField, kind: StructType) -> NestedField:
    return NestedField(f.field_id, f.name, kind, f.required, f.doc, f.initial_default, f.write_default)


def with_ancestors(fields: Iterable[NestedField], field_id: int) -> tuple[NestedField, ...] | None:
    """Return the path to a field by its id; None if it is missing, or inside a list or map."""
    for f in fields:
        if f.field_id == field_id:
            return (f,)
        match f.type:
            case StructType(children):
                found = with_ancestors(children, field_id)
                if found is not None:
                    return (f, *found)
            case ListType() | MapType():
                continue
    return None
