"""One manifest file as bytes: its dialect and header, and its parts, decoded on demand and cached by location.

A file has three parts: "entries" (the fixed core schema, before inheritance), "partition" (the tuple's columns as
stored) and "stats" (the six maps, or V4's typed columns). Each is cached separately; columns that several parts need
are decoded once.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from iceexplore.errors import IceexploreError, MemoryLimitError, Problem, Problems, UnsupportedError, problem
from iceexplore.formats import AvroHeader, Parquet, read_header
from iceexplore.manifests.checks._entries import twice_problems
from iceexplore.manifests.column_stats._maps import pairs_of
from iceexplore.manifests.decode._avro import BULK_BYTES, decode
from iceexplore.manifests.decode._dialects import dialect_of
from iceexplore.manifests.decode._parquet import ParquetManifest
from iceexplore.manifests.decode._v1_v3 import leaf_entries, root_entries
from iceexplore.manifests.decode._v4_draft import draft_entries
from iceexplore.manifests.decode._v4_proposal import proposal_entries
from iceexplore.manifests.model._arrow import HAS_TUPLE, unnest
from iceexplore.manifests.model._field_ids import STAT_COLUMNS
from iceexplore.manifests.model._header import ManifestHeader
from iceexplore.manifests.model._reader_schema import ReaderSchema, reader_schema_of
from iceexplore.metadata import Dialect
from iceexplore.storage import CACHE, JsonValue, Storage, allowed

__all__ = ["Composition", "Head", "Loader", "PARTS", "Part", "Source"]

PARTS = frozenset({"entries", "partition", "stats"})


@dataclass(frozen=True)
class Composition:
    """How a root was composed from a Delta table's tree and log.

    Attributes
    ----------
    logged_from
        The first ordinal of the entries that are in the log and not in the tree.
    files
        Location and size in bytes of the tree's root, if there is one, and of the commits after it.
    """

    logged_from: int
    files: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Head:
    """Facts about a file: its header, size in bytes and number of rows; ``whole`` is false if some records are lost.

    ``composed`` is set for a root that was composed from several files of a Delta table; None for all other files.
    """

    header: ManifestHeader
    reader_schema: ReaderSchema
    dialect: Dialect
    is_root: bool
    length: int
    whole: bool = True
    rows: int = 0
    composed: Composition | None = None


@dataclass(frozen=True)
class Part:
    """One part of a file, with the head and the problems found while decoding it."""

    head: Head
    table: pa.Table
    problems: tuple[Problem, ...]

    @property
    def nbytes(self) -> int:
        """The part's approximate memory, for the cache.

        In a small file, Arrow's objects take several times as much memory as the values: see `_ARRAY_BYTES`.
        """
        arrays = sum(_arrays(column.type) * max(1, column.num_chunks) for column in self.table.columns)
        return int(self.table.get_total_buffer_size()) + arrays * _ARRAY_BYTES + _HEAD_BYTES


#: Bytes that an array takes besides its values (measured): objects for it, its type, its buffers and the table column.
_ARRAY_BYTES = 640
#: Bytes that a part takes besides its table: the head (shared by the parts of a file) and the cache's own items.
_HEAD_BYTES = 4096


def _arrays(kind: pa.DataType) -> int:
    """Return the number of arrays in an array of this type: itself and its children at every depth."""
    return 1 + sum(_arrays(kind.field(i).type) for i in range(kind.num_fields))


#: The maximum length of texts that files share.
_MOST_SHARED = 1 << 16


@lru_cache(maxsize=256)
def _shared(text: str) -> str:
    """Return the same object for equal texts, because most manifests of a table have the same headers."""
    return text


class _SchemaText(str):
    """The text of an Avro schema, with the parsed schema and the location of the file that has it."""

    __slots__ = ("location", "schema")

    schema: JsonValue
    location: str


@lru_cache(maxsize=64)
def _shared_schema(text: _SchemaText) -> ReaderSchema:
    return reader_schema_of(text.schema, text.location)


def _reader_schema(file: AvroHeader, location: str) -> ReaderSchema:
    """Return a file's reader schema, shared by files with the same schema: building one can take longer than decoding.

    Raises the same errors as `reader_schema_of`; errors are not shared.
    """
    if len(file.schema_text) > _MOST_SHARED:
        return reader_schema_of(file.schema, location)
    text = _SchemaText(file.schema_text)
    text.schema, text.location = file.schema, location
    return _shared_schema(text)


#: Many files may be fetched at once, because fetching mostly waits; decoding is limited, because it takes memory and
#: CPU time.
_DECODING = threading.BoundedSemaphore(min(4, max(2, os.cpu_count() or 2)))

#: A function that returns a part of one file by the part's name.
Loader = Callable[[str], Part]


class Source:
    """A file at a location; reads nothing before `parts` is called.

    Parameters
    ----------
    kind
        The kind of read for the storage's log: ``manifest`` or ``manifest-list``.
    version
        Distinguishes versions of the file at one location (a size or an etag). None is enough where files are
        immutable.
    """

    def __init__(self, storage: Storage, location: str, *, kind: str, version: object = None) -> None:
        self.storage = storage
        self.location = location
        self.kind = kind
        #: Identifies the file's content in the cache.
        self.key = ("manifest", storage.key(location), location, version, storage.fingerprint(location))

    def parts(self, names: Iterable[str], unkept: Collection[str] = ()) -> dict[str, Part]:
        """Return the named parts: from the cache, or decoded together from one read.

        Parameters
        ----------
        unkept
            Parts that are not added to the cache.

        Raises
        ------
        IceexploreError
            The file is missing, or cannot be read at all.
        """
        wanted = sorted(names)
        fresh: dict[str, Part] = {}

        def load(name: str) -> Part:
            if name not in fresh:
                fresh.update(self._decode({n for n in wanted if n not in out} | {name}, name))
            return fresh[name]

        def kept(name: str) -> Part:
            if name in unkept and (*self.key, name) not in CACHE:
                return load(name)
            return CACHE.get_or_load((*self.key, name), lambda: load(name), lambda part: part.nbytes)

        out: dict[str, Part] = {}
        refused = (*self.key, "refused", allowed(None), *wanted)
        why = CACHE.get_or_load(refused, str, len) if refused in CACHE else ""
        if why:  # known to exceed the memory limit: trying again would take as long
            raise MemoryLimitError(why)
        try:
            for name in wanted:
                out[name] = kept(name)
        except MemoryLimitError as error:
            text = str(error)
            CACHE.get_or_load(refused, lambda: text, len)
            raise
        for name in fresh.keys() - out.keys() - set(unkept):  # also cache the parts that were not asked for
            kept(name)
        return out

    def _decode(self, names: set[str], least: str) -> dict[str, Part]:
        """Decode the parts; for a damaged file, those that can be read, at least the part `least`."""
        data = self.storage.read(self.location, kind=self.kind)
        if len(data) < BULK_BYTES:
            names = set(PARTS)  # for a small file, decoding all parts costs no more than one
        with _DECODING:
            return self._all_of(data, names, least)

    def _all_of(self, data: bytes, names: set[str], least: str) -> dict[str, Part]:
        try:
            together = self._decoded(data, names)
        except MemoryLimitError:
            if names == {least} or len(data) < BULK_BYTES:
                raise
            return {least: self._decoded(data, {least})[least]}  # maybe only the other parts are too large
        except IceexploreError:
            together = {}
        if together and all(part.head.whole for part in together.values()):
            return together
        # A part may still be readable on its own if the damage is in another part.
        alone = {least: self._decoded(data, {least})[least]}
        if together and together[least].head.rows >= alone[least].head.rows:
            return together
        for name in sorted(names - {least}):
            with contextlib.suppress(IceexploreError):
                alone |= self._decoded(data, {name})
        return alone

    def _decoded(self, data: bytes, names: set[str]) -> dict[str, Part]:
        """Decode the file's bytes once, into all of these parts."""
        file: AvroHeader | ParquetManifest
        keys: Mapping[str, str]
        if data.startswith(Parquet.magic):
            file = ParquetManifest(data, self.location)
            reader_schema, keys, schema = file.reader_schema, file.metadata, file.schema_text
            kind, codec = "parquet", file.codec
        else:
            _refuse_encrypted(data, self.location)
            file = read_header(data, self.location)
            reader_schema = _reader_schema(file, self.location)
            keys, schema, kind, codec = file.metadata, file.schema_text, "avro", file.codec
            if len(schema) <= _MOST_SHARED:
                keys, schema = {key: _shared(value) for key, value in keys.items()}, _shared(schema)
        dialect, is_root = dialect_of(reader_schema, keys, kind, self.location)
        header = ManifestHeader.of(schema, keys, codec, kind)
        columns = [c for c in reader_schema.arrow.names if c[0] != "x" and _part_of(c) in (None, *names)]
        columns = columns or reader_schema.arrow.names[:1]  # at least one column, for the number of rows
        problems: list[Problem] = []
        if not reader_schema.has_ids:
            text = "The file has no field ids; fields are matched by name."
            problems.append(problem("avro-no-field-ids", self.location, text))
        whole = True
        if isinstance(file, ParquetManifest):
            table = file.read(columns)
        else:
            decoded = decode(data, file, reader_schema, columns, self.location)
            table, whole = unnest(decoded.table), not decoded.faults
            problems += _fault_problems(decoded.faults, decoded.lost, table.num_rows, self.location)
        head = Head(header, reader_schema, dialect, is_root, len(data), whole, table.num_rows)
        out: dict[str, Part] = {}
        for name in sorted(names):
            made, more = _make(name, table, head, self.location)
            if name == "entries":  # checked here, as it is slow and the result is cached with the part
                more = [*more, *twice_problems(self.location, made)]
            out[name] = Part(head, made, (*problems, *more))
        return out


def _part_of(column: str) -> str | None:
    """Return the only part that needs a column; None if all parts need it or none does."""
    if column[0] == "c" or column.startswith("sstats"):
        return "stats"
    if column[0] == "s":
        return None
    return "stats" if column in STAT_COLUMNS else "partition" if column[0] == "p" else "entries"


_V4 = {"v4-proposal": proposal_entries, "v4-draft": draft_entries}


def _make(name: str, table: pa.Table, head: Head, location: str) -> tuple[pa.Table, list[Problem]]:
    if name == "entries":
        adapter = _V4.get(head.dialect) or (root_entries if head.is_root else leaf_entries)
        return adapter(table, head.reader_schema, location)
    if name == "stats" and head.dialect in _V4:
        return table.select([c.column for c in head.reader_schema.stats]), []
    if name == "stats":
        return pairs_of(table), []
    tuples = [c.column for c in head.reader_schema.partition]
    for column in tuples:
        if column not in table.column_names:  # of type null, as Java writes a field whose source column was dropped
            table = table.append_column(column, pa.nulls(table.num_rows))
    return table.select([*tuples, HAS_TUPLE] if head.dialect in _V4 and HAS_TUPLE in table.column_names else tuples), []


def _refuse_encrypted(data: bytes, location: str) -> None:
    if data[:4] == b"AGS1":
        raise UnsupportedError(f"{location} is encrypted (AES GCM stream) and its key is not known")
    if data.startswith(Parquet.encrypted_magic):
        raise UnsupportedError(f"{location} is Parquet with an encrypted footer and its key is not known")


def _fault_problems(faults: tuple[IceexploreError, ...], lost: int, rows: int, location: str) -> list[Problem]:
    collected = Problems()
    for fault in faults:
        collected.add_error(fault, location)
    if faults:
        missing = f"at least {lost} are lost" if lost else "an unknown number is lost"
        collected.add(problem("manifest-salvaged", location, f"{rows} entries could be read; {missing}."))
    return list(collected)
