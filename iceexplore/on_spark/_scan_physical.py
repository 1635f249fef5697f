"""What a Parquet file holds physically, and whether plain Spark reads it as Iceberg means it.

The schema that a DataFrame is read with names the *file's* columns, in the file's types, and says so itself. Spark's
own reading by field id would be shorter, but ``spark.sql.parquet.fieldId.read.enabled`` is looked up when a query runs,
so that another setting afterwards would silently give wrong columns; and Spark Connect has no session to hide it in.
So files are grouped by what their footers say, and each group is read by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.errors import IceexploreError
from iceexplore.formats import FIELD_ID, HEAD_BYTES, field_id, foreign, sniff
from iceexplore.graph import TableState
from iceexplore.storage import CACHE, progress

if TYPE_CHECKING:
    from pyspark.sql import types as spark_types

__all__ = ["Footer", "Node", "children_of", "collides", "footers_of", "read_type"]

_THREADS = 16
_MOST_SEEN = 64
#: Of files that these wrote, Spark would shift days before 1582 (and Iceberg would not).
_OLD_SPARK = re.compile(r"[0-2]\.")


@dataclass(frozen=True)
class Node:
    """A column of a file.

    Attributes
    ----------
    kind
        As Arrow reads it.
    physical
        Parquet's type of a leaf; empty for what has children.
    """

    name: str
    kind: pa.DataType
    physical: str = ""
    children: tuple[Node, ...] = ()
    number: int | None = None

    def field(self) -> pa.Field:
        """As Arrow has it, with the ids that the file has."""
        return pa.field(self.name, self.kind, metadata=None if self.number is None else {FIELD_ID: str(self.number)})


@dataclass(frozen=True)
class Footer:
    """What a file's footer says.

    Attributes
    ----------
    nodes
        The columns; None where plain Spark would not read them as Iceberg does.
    rows
        How many there are.
    """

    nodes: tuple[Node, ...] | None
    rows: int


def footers_of(state: TableState, locations: Sequence[str]) -> list[Footer | IceexploreError]:
    """The footers of files; where one cannot be read, why. They are read in threads, and kept."""
    seen = _Seen()

    def one(location: str) -> Footer | IceexploreError:
        storage = state.storage
        try:
            key = (storage.key(location), location, storage.fingerprint(location), "physical-schema")
            return CACHE.get_or_load(key, lambda: _read(state, location, seen), lambda found: 512)
        except IceexploreError as e:
            return e

    out: list[Footer | IceexploreError] = []
    with ThreadPoolExecutor(_THREADS, "iceexplore-footer") as pool, progress(len(locations), "footers") as step:
        for found in pool.map(one, locations):
            out.append(found)
            step()
    return out


class _Seen:
    """Schemas that were met: the files of a table share a few, and making nodes of one costs more than all the rest."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes | None], tuple[Node, ...] | None] = {}

    def nodes(self, metadata: Any) -> tuple[Node, ...] | None:
        """The columns; None where plain Spark would not read them as Iceberg does."""
        schema = metadata.schema
        # As text, that is with ids; ParquetSchema.equals overlooks those of groups. Its first line is an address.
        key = str(schema).partition("\n")[2], (metadata.metadata or {}).get(b"ARROW:schema")
        if key in self._known:
            return self._known[key]
        leaves = iter([schema.column(i) for i in range(len(schema))])
        made = [_node(f, leaves, f.name) for f in schema.to_arrow_schema()]
        whole = None not in made and next(leaves, None) is None
        found = tuple(n for n in made if n is not None) if whole else None
        if len(self._known) < _MOST_SEEN:
            self._known[key] = found
        return found


def _read(state: TableState, location: str, seen: _Seen) -> Footer:
    import pyarrow.parquet as pq

    with state.storage.open(location, kind="footer") as file:
        kind = sniff(file.read(HEAD_BYTES))
        if kind in ("avro", "orc"):
            return Footer(None, 0)
        file.seek(0)
        with foreign("the Parquet file", location):
            metadata = pq.read_metadata(file)
            rows = int(metadata.num_rows)
            about = metadata.metadata or {}
            written = about.get(b"org.apache.spark.version", b"").decode("utf-8", "replace")
            if b"org.apache.spark.legacyDateTime" in about or _OLD_SPARK.match(written):
                return Footer(None, rows)
            return Footer(seen.nodes(metadata), rows)


def _node(f: pa.Field, leaves: Iterator[Any], path: str) -> Node | None:
    """A field with its leaves; None where lists and maps are not built as the format has them today, since there
    readers differ."""
    kind = f.type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    inner = list(children_of(kind))
    if not inner:
        leaf = next(leaves, None)
        if leaf is None or leaf.path != path:
            return None
        return Node(f.name, _plain(kind), f"{leaf.physical_type}/{leaf.logical_type.type}", (), field_id(f))
    steps = [c.name for c in inner]
    if pa.types.is_map(kind):
        steps = ["key_value.key", "key_value.value"]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        steps = ["list.element"]
    nodes = [_node(c, leaves, f"{path}.{step}") for c, step in zip(inner, steps, strict=True)]
    children = tuple(n for n in nodes if n is not None)
    if len(children) < len(nodes):
        return None
    if pa.types.is_struct(kind):
        rebuilt: pa.DataType = pa.struct([n.field() for n in children])
    elif pa.types.is_map(kind):
        rebuilt = pa.map_(children[0].field().with_nullable(False), children[1].field())
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        rebuilt = pa.list_(children[0].field())
    else:
        return None
    return Node(f.name, rebuilt, "", children, field_id(f))


def children_of(kind: pa.DataType) -> list[pa.Field]:
    """The fields inside a type; a map's key and value."""
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(i) for i in range(kind.num_fields)]


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def collides(nodes: Sequence[Node], name: str) -> bool:
    """Whether a column is not the only one of its name, in a session to which case does not matter."""
    return sum(n.name.casefold() == name.casefold() for n in nodes) > 1


def read_type(node: Node) -> spark_types.DataType | None:
    """The Spark type in which a leaf is read, whatever the session says; None where only a worker can."""
    from pyspark.sql import types as t

    kind, stored = node.kind, node.physical.partition("/")[0]
    simple = {
        ("INT32", pa.int32()): t.IntegerType(),
        ("INT32", pa.int16()): t.IntegerType(),
        ("INT32", pa.int8()): t.IntegerType(),
        ("INT64", pa.int64()): t.LongType(),
        ("BOOLEAN", pa.bool_()): t.BooleanType(),
        ("FLOAT", pa.float32()): t.FloatType(),
        ("DOUBLE", pa.float64()): t.DoubleType(),
        ("BYTE_ARRAY", pa.string()): t.StringType(),
        ("BYTE_ARRAY", pa.binary()): t.BinaryType(),
        ("INT32", pa.date32()): t.DateType(),
        ("INT64", pa.time64("us")): t.LongType(),
    }
    found: spark_types.DataType | None = simple.get((stored, kind))
    if found is not None:
        return found
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return t.DecimalType(kind.precision, kind.scale)
    if pa.types.is_fixed_size_binary(kind):
        return t.BinaryType()
    if pa.types.is_timestamp(kind) and stored == "INT64":  # INT96 depends on a session's settings
        if kind.unit == "ns":
            return t.LongType()
        return t.TimestampNTZType() if kind.tz is None else t.TimestampType()
    return None
