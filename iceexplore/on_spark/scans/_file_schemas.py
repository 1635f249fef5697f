"""The physical columns of Parquet and ORC files, and whether plain Spark reads them correctly by Iceberg's rules.

Files are grouped by the schemas in their footers, and each group is read by name, with an explicit schema of the
*file's* columns in the file's types. Reading by field id would be shorter, but Spark evaluates
``spark.sql.parquet.fieldId.read.enabled`` when a query runs, so a later change of the setting would silently give wrong
columns, and Spark Connect offers no separate session in which to set it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any, cast

import pyarrow as pa

from iceexplore.arrow import AnyField, build
from iceexplore.errors import FormatError, IceexploreError
from iceexplore.formats import (
    HEAD_BYTES,
    Orc,
    Parquet,
    children_of,
    field_id,
    foreign,
    format_named,
    read_orc_footer,
    sniff,
)
from iceexplore.graph import TableState
from iceexplore.on_spark.scans._nodes import ORC, Node
from iceexplore.storage import CACHE, progress

if TYPE_CHECKING:
    import pyarrow.parquet as pq

__all__ = [
    "Footer",
    "Footers",
    "footers_of",
    "keep_footers",
    "known_footers",
    "orc_nodes",
]

#: If all columns have names with this prefix, Spark matches them by position (``OrcUtils.requestedColumnIds``).
_PLACED = "_col"
#: Names that need no quotes in ORC's schema text, in which Spark passes the columns to read.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def orc_nodes(schema: pa.Schema) -> tuple[Node, ...] | None:
    """Return the columns of an ORC file; None if plain Spark does not read it correctly."""
    nodes = tuple(_orc_node(f) for f in schema)
    if not nodes or all(n.name.startswith(_PLACED) for n in nodes) or not all(_is_plain(n) for n in nodes):
        return None
    return nodes


def _orc_node(f: AnyField) -> Node:
    children = tuple(_orc_node(c) for c in children_of(f.type))
    if pa.types.is_struct(f.type):
        kind: pa.DataType = pa.struct([n.field() for n in children])
    elif pa.types.is_map(f.type):
        kind = build.map_(children[0].field().with_nullable(False), children[1].field())
    elif pa.types.is_list(f.type):
        kind = pa.list_(children[0].field())
    else:
        kind = f.type
    return Node(f.name, kind, "" if children else ORC, children, field_id(f))


def _is_plain(node: Node, *, named: bool = True) -> bool:
    """Return whether Spark can parse the type and name of a column and all fields in it.

    Elements of lists and maps have no name.
    """
    if pa.types.is_timestamp(node.kind) and node.kind.tz is not None:
        return False
    if named and not _PLAIN.fullmatch(node.name):
        return False
    return all(_is_plain(c, named=pa.types.is_struct(node.kind)) for c in node.children)


_THREADS = 16
_MOST_SEEN = 64
#: Number of bytes read from a file's end; most footers are smaller.
_TAIL = 64 * 1024
_MAGIC = Parquet.magic
#: The assumed size of a cached footer.
_KEPT = 512
#: Writers in whose files Spark, unlike Iceberg, would rebase dates before 1582.
_OLD_SPARK = re.compile(r"[0-2]\.")


@dataclass(frozen=True)
class Footer:
    """The contents of a file's footer.

    Attributes
    ----------
    nodes
        The columns; None if plain Spark would not read them as Iceberg does.
    rows
        The number of rows.
    format
        The name of the file's format.
    """

    nodes: tuple[Node, ...] | None
    rows: int
    format: str = Parquet.name


#: A function that reads footers, given a state, locations and sizes.
Footers = Callable[[TableState, Sequence[str], Sequence[int | None]], list["Footer | IceexploreError"]]


def footers_of(
    state: TableState, locations: Sequence[str], sizes: Sequence[int | None] | None = None
) -> list[Footer | IceexploreError]:
    """Return the footers of files, or the error where one cannot be read. They are read in threads and cached.

    Parameters
    ----------
    sizes
        The file sizes in the manifest entries; if they are correct, a footer takes one request.
    """
    seen = _Seen()
    recorded = dict(zip(locations, sizes, strict=True)) if sizes is not None else {}

    def one(location: str) -> Footer | IceexploreError:
        try:
            return CACHE.get_or_load(
                _key(state, location), lambda: _read(state, location, recorded.get(location), seen), lambda found: _KEPT
            )
        except IceexploreError as e:
            return e

    out: list[Footer | IceexploreError] = []
    width = max(_THREADS, state.storage.readers)
    with ThreadPoolExecutor(width, "iceexplore-footer") as pool, progress(len(locations), "footers") as step:
        for found in pool.map(one, locations):
            out.append(found)
            step()
    return out


def known_footers(state: TableState, locations: Sequence[str]) -> list[Footer | None]:
    """Return the cached footers; None for files whose footer is not cached."""

    def lost() -> Footer:
        raise KeyError

    out: list[Footer | None] = []
    for location in locations:
        try:
            key = _key(state, location)
            out.append(CACHE.get_or_load(key, lost, lambda found: _KEPT) if key in CACHE else None)
        except (KeyError, IceexploreError):  # just evicted, or an error that reading the footer will report anyway
            out.append(None)
    return out


def keep_footers(state: TableState, found: Mapping[str, Footer]) -> None:
    """Cache footers that other processes have read."""
    for location, footer in found.items():
        CACHE.get_or_load(_key(state, location), partial(_same, footer), lambda found: _KEPT)


def _same(footer: Footer) -> Footer:
    return footer


def _key(state: TableState, location: str) -> tuple[Any, ...]:
    storage = state.storage
    return storage.key(location), location, storage.fingerprint(location), "physical-schema"


class _Seen:
    """A cache of converted schemas: a table's files share a few, and conversion is the most expensive step."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes | None], tuple[Node, ...] | None] = {}

    def nodes(self, metadata: pq.FileMetaData) -> tuple[Node, ...] | None:
        """Return the columns; None if plain Spark would not read them as Iceberg does."""
        schema = metadata.schema
        # The text includes field ids; ParquetSchema.equals ignores those of groups. Its first line is a memory address.
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


def _read(state: TableState, location: str, size: int | None, seen: _Seen) -> Footer:
    import pyarrow.parquet as pq

    tail = _tail(state, location, size)
    if tail is not None:
        with foreign("the Parquet footer", location):
            return _parquet(pq.read_metadata(pa.BufferReader(tail)), seen)
    with state.storage.open(location, kind="footer") as file:
        known = format_named(sniff(file.read(HEAD_BYTES)))
        if known is not None and not isinstance(known, Parquet):
            read = _FOOTERS.get(known.name)
            return Footer(None, 0) if read is None else read(state, location)
        file.seek(0)
        with foreign("the Parquet file", location):
            return _parquet(pq.read_metadata(cast("IO[bytes]", file)), seen)


def _orc(state: TableState, location: str) -> Footer:
    found = read_orc_footer(state.storage, location)
    return Footer(orc_nodes(found.schema), found.rows, Orc.name)


#: Readers of footers by format, in addition to Parquet's. Files of other formats are left to the workers.
_FOOTERS: dict[str, Callable[[TableState, str], Footer]] = {Orc.name: _orc}


def _tail(state: TableState, location: str, size: int | None) -> bytes | None:
    """Return the end of a Parquet file with its whole footer, which can be read like the file.

    None if the footer is larger than what was read, or the file is not Parquet or not of this size.
    """
    if size is None or size < 3 * len(_MAGIC):
        return None
    near = min(size, _TAIL)
    try:
        data = state.storage.read(location, kind="footer", offset=size - near, length=near)
    except FormatError:
        return None  # the file's size differs from its entry
    length = int.from_bytes(data[-8:-4], "little")
    return data if data.endswith(_MAGIC) and length <= near - 2 * len(_MAGIC) else None


def _parquet(metadata: pq.FileMetaData, seen: _Seen) -> Footer:
    rows = int(metadata.num_rows)
    about = metadata.metadata or {}
    written = about.get(b"org.apache.spark.version", b"").decode("utf-8", "replace")
    if b"org.apache.spark.legacyDateTime" in about or _OLD_SPARK.match(written):
        return Footer(None, rows)
    return Footer(seen.nodes(metadata), rows)


def _node(f: AnyField, leaves: Iterator[Any], path: str) -> Node | None:
    """Return a field with its leaves; None for legacy structures of lists or maps, on which readers disagree."""
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
        rebuilt = build.map_(children[0].field().with_nullable(False), children[1].field())
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        rebuilt = pa.list_(children[0].field())
    else:
        return None
    return Node(f.name, rebuilt, "", children, field_id(f))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind
