"""Conversion of a writer's Avro schema to one that every decoder reads alike, with columns named by field id.

Avro data has no names, field ids or record boundaries, so a schema can be replaced by any other that takes the same
bytes. The schema built here is flat (``data_file`` and ``partition`` are spliced into their parent, so that a column
can be projected) and named by field id (``f100``, partition fields ``p1000``). It has no logical types (ints stay ints,
decimals stay bytes, so that all decoders agree and this package converts them), bytes instead of strings (invalid
UTF-8 is damage, not an exception), and no defaults (some writers give a long a null default). It leaves out what takes
no bytes: the empty ``partition`` record of an unpartitioned table, on which datafusion 54 and later fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceexplore.errors import FormatError, UnsupportedError
from iceexplore.manifests.model._field_ids import STAT_COLUMNS
from iceexplore.manifests.model._record_shape import TOP, Peek, Shape, shape_of
from iceexplore.storage import JsonValue

__all__ = ["PartitionColumn", "ReaderSchema", "StatsColumn", "reader_schema_of"]

#: Limits of a schema: real manifests have about 60 nodes, but a small schema that reuses named types can explode.
MAX_NODES = 20_000
MAX_DEPTH = 32

_PRIMITIVES: dict[str, tuple[str, pa.DataType]] = {
    "boolean": ("boolean", pa.bool_()),
    "int": ("int", pa.int32()),
    "long": ("long", pa.int64()),
    "float": ("float", pa.float32()),
    "double": ("double", pa.float64()),
    "bytes": ("bytes", pa.binary()),
    "string": ("bytes", pa.binary()),
    "enum": ("int", pa.int32()),
}


@dataclass(frozen=True)
class PartitionColumn:
    """A field of the partition tuple as stored in the file.

    ``logical`` is the JSON of the Avro type, which has its ``logicalType``. For Parquet, whose columns have types, it
    is ``string`` for text, else None.
    """

    column: str
    field_id: int | None
    name: str
    logical: Any


@dataclass(frozen=True)
class StatsColumn:
    """One statistic of one column in a V4 file; ``offset`` is that of its field id (`_field_ids.STATS_OFFSETS`).

    ``logical`` is as in `PartitionColumn`.
    """

    column: str
    field_id: int
    offset: int
    logical: Any


@dataclass(frozen=True)
class ReaderSchema:
    """The columns of a file's records.

    Attributes
    ----------
    avro
        The equivalent flat Avro schema; None for Parquet.
    arrow
        The Arrow schema of the decoded data. A struct column named ``s…`` is a nullable record, whose children become
        columns when it is unnested.
    columns
        Names of all columns after unnesting.
    partition
        The fields of the partition tuple, in the file's order.
    has_ids
        True if the file has any field id.
    parents
        Field ids of the records found (2 ``data_file``, 147, …).
    shape
        The name of the `Shape`: ``list``, ``entry``, ``v4-proposal``, ``v4-draft``, or empty.
    stats
        The statistics of columns (V4).
    """

    avro: Any
    arrow: pa.Schema
    columns: frozenset[str]
    partition: tuple[PartitionColumn, ...]
    has_ids: bool
    parents: frozenset[int]
    shape: str = ""
    stats: tuple[StatsColumn, ...] = ()

    def has(self, field_id: int) -> bool:
        """Return whether there is a column with this id (at the top or in ``data_file``)."""
        return f"f{field_id}" in self.columns


def reader_schema_of(schema: JsonValue, location: str) -> ReaderSchema:
    """Build the reader schema of a writer's Avro schema.

    Raises
    ------
    FormatError
        The schema is not a record, is damaged or recursive, or has arrays whose items take no bytes.
    UnsupportedError
        The schema has a union of several types.
    """
    builder = _Builder(location)
    if not (isinstance(schema, dict) and isinstance(schema.get("fields"), list)):
        raise builder.error("the Avro schema is not a record")
    builder.has_ids = _carries_ids(schema)
    return builder.build(schema)


def _carries_ids(schema: JsonValue) -> bool:
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if any(isinstance(node.get(k), int) for k in ("field-id", "element-id", "key-id")):
                return True
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return False


def _number(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class _Builder:
    def __init__(self, location: str) -> None:
        self.location = location
        self.named: dict[str, Any] = {}
        self.open: set[int] = set()
        self.nodes = 0
        self.names: set[str] = set()
        self.partition: list[PartitionColumn] = []
        self.stats: list[StatsColumn] = []
        self.parents: set[int] = set()
        self.has_ids = True
        self.shape = Shape("")

    def error(self, message: str) -> FormatError:
        return FormatError(message, location=self.location, field="avro.schema")

    def build(self, schema: dict[str, Any]) -> ReaderSchema:
        self.define(schema)
        self.shape = shape_of([self.peek(f) for f in schema["fields"] if isinstance(f, dict)], self.has_ids)
        fields = list(self.record(schema, parent=TOP, depth=0))
        if not fields:
            raise self.error("the records of the Avro schema are empty")
        avro = {"type": "record", "name": "row", "fields": [{"name": n, "type": t} for n, t, _ in fields]}
        arrow = pa.schema([pa.field(n, t) for n, _, t in fields])
        columns = frozenset(n for n in self.names if n[0] != "s")
        return ReaderSchema(
            avro,
            arrow,
            columns,
            tuple(self.partition),
            self.has_ids,
            frozenset(self.parents),
            self.shape.name,
            tuple(self.stats),
        )

    def peek(self, field: dict[str, Any]) -> Peek:
        """Return what `shape_of` needs to know of a field; faults are ignored here, as `field` raises them later."""
        field_id, name = _number(field.get("field-id")), str(field.get("name"))
        children = self.children(field.get("type"))
        if children is None:
            return Peek(field_id, name)
        ids = frozenset(i for i in (_number(c.get("field-id")) for c in children) if i is not None)
        names = frozenset(str(c.get("name")) for c in children)
        return Peek(field_id, name, True, ids, names, any(self.children(c.get("type")) is not None for c in children))

    def children(self, node: JsonValue) -> list[dict[str, Any]] | None:
        """Return the fields of a (nullable) record; None for any other type."""
        try:
            inner = self.split_union(node)[2]
        except (FormatError, UnsupportedError):
            return None
        fields = inner.get("fields") if isinstance(inner, dict) and inner.get("type") == "record" else None
        return [f for f in fields if isinstance(f, dict)] if isinstance(fields, list) else None

    def define(self, node: dict[str, Any]) -> None:
        name = node.get("name")
        if isinstance(name, str):
            namespace = node.get("namespace")
            self.named[name] = node
            if isinstance(namespace, str):
                self.named[f"{namespace}.{name}"] = node

    def resolve(self, node: JsonValue) -> JsonValue:
        """Return a type's definition: follow references by name, and unwrap ``{"type": {...}}``."""
        for _ in range(MAX_DEPTH):
            if isinstance(node, str) and node not in _PRIMITIVES and node != "null":
                if node not in self.named:
                    raise self.error(f"the Avro type {node!r} is not defined")
                return self.named[node]
            if isinstance(node, dict) and isinstance(node.get("type"), (dict, list)):
                node = node["type"]
                continue
            if isinstance(node, dict) and node.get("type") in ("record", "fixed", "enum"):
                self.define(node)
            return node
        raise self.error("the Avro schema is nested too deeply")

    def unique(self, name: str) -> str:
        while name in self.names:
            name += "x"  # a duplicate id: the first field is used, the others are skipped
        self.names.add(name)
        return name

    def record(self, node: dict[str, Any], parent: str, depth: int) -> Iterator[tuple[str, Any, pa.DataType]]:
        """Yield the flat fields of a record: name, Avro type, Arrow type."""
        if id(node) in self.open or depth > MAX_DEPTH:
            raise self.error("the Avro schema is recursive or nested too deeply")
        self.open.add(id(node))
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise self.error("a record of the Avro schema has no fields")
        for position, field in enumerate(fields):
            if not isinstance(field, dict) or "type" not in field:
                raise self.error("a field of the Avro schema has no type")
            yield from self.field(field, position, parent, depth)
        self.open.discard(id(node))

    def field(
        self, field: dict[str, Any], position: int, parent: str, depth: int
    ) -> Iterator[tuple[str, Any, pa.DataType]]:
        name = str(field.get("name"))
        field_id = _number(field.get("field-id"))
        if field_id is None and not self.has_ids:
            field_id = self.shape.names.get(parent, {}).get(name)
        nullable, null_first, inner = self.split_union(field["type"])
        is_record = isinstance(inner, dict) and inner.get("type") == "record"
        opened = None
        if is_record:
            if field_id is not None:
                self.parents.add(field_id)
            holds_structs = any(self.children(c.get("type")) is not None for c in self.children(inner) or ())
            opened = self.shape.opened(parent, field_id, holds_structs)
        if opened is not None and not nullable:
            yield from self.record(inner, opened, depth + 1)
            return
        named = f"s{opened.replace(':', '_')}" if opened else self.shape.column(parent, field_id, position)
        column = self.unique(named)
        self.note(column, parent, field_id, name, inner)
        if opened is not None:
            made = self.struct(inner, opened, depth + 1)
        else:
            made = self.convert(inner, field_id or 0, depth + 1)
        if made is None:
            self.names.discard(column)
            if nullable:  # null and a type without bytes: only the branch number is stored, which is an int
                yield self.unique(f"x{parent}_{position}".replace(":", "_")), "int", pa.int32()
            return
        avro, arrow = made
        if nullable:
            avro = ["null", avro] if null_first else [avro, "null"]
        yield column, avro, arrow

    def note(self, column: str, parent: str, field_id: int | None, name: str, inner: JsonValue) -> None:
        """Record a partition or statistics column, whose name alone does not identify its field."""
        if column[0] == "p":
            self.partition.append(PartitionColumn(column, field_id, name, inner))
        elif column[0] == "c" and column[-1] != "x":
            number, offset = column[1:].split("_")
            self.stats.append(StatsColumn(column, int(number), int(offset), inner))

    def split_union(self, node: JsonValue) -> tuple[bool, bool, Any]:
        node = self.resolve(node)
        if not isinstance(node, list):
            return False, False, node
        others = [branch for branch in node if branch not in ("null", {"type": "null"})]
        if len(others) > 1 or len(node) > 2:
            raise UnsupportedError(f"the Avro schema of {self.location} has a union of several types")
        if not others or len(node) == 1:
            raise self.error("a union of the Avro schema has one branch only")
        return True, others[0] is not node[0], self.resolve(others[0])

    def struct(self, node: dict[str, Any], parent: str, depth: int) -> tuple[Any, pa.DataType] | None:
        fields = list(self.record(node, parent, depth))
        if not fields:
            return None
        self.nodes += 1
        avro = {"type": "record", "name": f"r{self.nodes}", "fields": [{"name": n, "type": t} for n, t, _ in fields]}
        return avro, pa.struct([pa.field(n, t) for n, _, t in fields])

    def convert(self, node: JsonValue, field_id: int, depth: int) -> tuple[Any, pa.DataType] | None:
        """Return the Avro and Arrow type of a value; None if it takes no bytes."""
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            raise self.error("the Avro schema is too large or nested too deeply")
        kind = node.get("type") if isinstance(node, dict) else node
        if kind == "null":
            return None
        if isinstance(kind, str) and kind in _PRIMITIVES:
            return _PRIMITIVES[kind]
        if kind == "fixed":
            size = node.get("size")
            if not isinstance(size, int) or not 0 < size <= 1 << 20:
                raise self.error(f"the Avro schema has a fixed type of {size} bytes")
            return {"type": "fixed", "name": f"x{self.nodes}", "size": size}, pa.binary(size)
        if kind == "record":
            inner = _Builder(self.location)  # names need to be unique within a record only
            inner.named, inner.has_ids, inner.nodes, inner.open = self.named, self.has_ids, self.nodes, self.open
            inner.shape = Shape("", {}, self.shape.names)  # children become columns only in structs at the top
            made = inner.struct(node, str(field_id), depth)
            self.nodes = inner.nodes
            return made
        if kind in ("array", "map"):
            return self.many(node, kind, field_id, depth)
        raise self.error(f"unknown Avro type {kind!r}")

    def many(self, node: dict[str, Any], kind: str, field_id: int, depth: int) -> tuple[Any, pa.DataType]:
        nullable, null_first, inner = self.split_union(node.get("items" if kind == "array" else "values"))
        if kind == "array" and f"f{field_id}" in STAT_COLUMNS and isinstance(inner, dict):
            made = self.pair(inner, depth + 1)
        else:
            made = self.convert(inner, field_id, depth + 1)
        if made is None:
            raise self.error("an array of the Avro schema has items that take no bytes")
        avro, arrow = made
        if nullable:
            avro = ["null", avro] if null_first else [avro, "null"]
        if kind == "array":
            return {"type": "array", "items": avro}, pa.list_(arrow)
        return {"type": "map", "values": avro}, pa.map_(pa.string(), arrow)

    def pair(self, node: dict[str, Any], depth: int) -> tuple[Any, pa.DataType] | None:
        """Return the key and value types of a statistics map by position, as the ids differ from map to map."""
        fields = node.get("fields")
        typed = [f for f in fields if isinstance(f, dict) and "type" in f] if isinstance(fields, list) else []
        if len(typed) != 2 or typed != fields:
            raise self.error("a map of the Avro schema is not an array of pairs")
        avro, arrow = [], []
        for name, field in zip(("key", "value"), typed, strict=True):
            nullable, null_first, inner = self.split_union(field["type"])
            made = self.convert(inner, 0, depth + 1)
            if made is None:
                raise self.error("a map of the Avro schema has keys or values that take no bytes")
            kind = (["null", made[0]] if null_first else [made[0], "null"]) if nullable else made[0]
            avro.append({"name": name, "type": kind})
            arrow.append(pa.field(name, made[1]))
        return {"type": "record", "name": f"r{self.nodes}", "fields": avro}, pa.struct(arrow)
