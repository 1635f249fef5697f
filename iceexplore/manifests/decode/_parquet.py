"""Parquet manifests, as Java writes them for format version 4: the same fields as in Avro, with the same field ids."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import IO, Any, cast

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyExtensionArray, AnyField
from iceexplore.errors import FormatError
from iceexplore.formats import FIELD_ID, KeptChunks, chunk_sizes, whole_bytes
from iceexplore.manifests.model._arrow import HAS_TUPLE, whole
from iceexplore.manifests.model._reader_schema import PartitionColumn, ReaderSchema, StatsColumn
from iceexplore.manifests.model._record_shape import PARTITION, TOP, Peek, shape_of
from iceexplore.storage import Budget

__all__ = ["ParquetManifest"]

#: Maximum plausible number of rows per byte of a file: every row has its own location, which takes some space even if
#: compressed.
MAX_ROWS_PER_BYTE = 64


class ParquetManifest:
    """An open Parquet manifest.

    Raises
    ------
    FormatError
        The footer or a page is damaged.
    """

    def __init__(self, data: bytes, location: str) -> None:
        import pyarrow.parquet as pq

        self.location = location
        try:
            self._kept = KeptChunks(io.BytesIO(data), location)
            self.file: Any = pq.ParquetFile(cast("IO[bytes]", self._kept), page_checksum_verification=True)
            self._kept.opened()
            self.schema: pa.Schema = self.file.schema_arrow
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FormatError(f"the Parquet file cannot be read: {error}", location=location) from None
        rows = self.file.metadata.num_rows
        if rows > len(data) * MAX_ROWS_PER_BYTE:
            raise FormatError(f"the footer claims {rows} rows in a file of {len(data)} bytes", location=location)
        self.paths: dict[str, tuple[str, ...]] = {}
        self.partition: list[PartitionColumn] = []
        self.stats: list[StatsColumn] = []
        self.parents: set[int] = set()
        self.has_ids = _carries_ids(self.schema)
        self.shape = shape_of([_peek(f) for f in self.schema], self.has_ids)
        self._walk(self.schema, TOP, ())
        kinds = {c: pa.bool_() if c == HAS_TUPLE else self._field(path).type for c, path in self.paths.items()}
        arrow = pa.schema([pa.field(column, kind) for column, kind in kinds.items()])
        self.reader_schema = ReaderSchema(
            None,
            arrow,
            frozenset(self.paths),
            tuple(self.partition),
            self.has_ids,
            frozenset(self.parents),
            self.shape.name,
            tuple(self.stats),
        )

    @property
    def metadata(self) -> dict[str, str]:
        """Key-value metadata of the footer."""
        pairs = self.file.metadata.metadata or {}
        return {
            k.decode("utf-8", "replace"): v.decode("utf-8", "replace") for k, v in pairs.items() if k != b"ARROW:schema"
        }

    @property
    def schema_text(self) -> str:
        """The columns as JSON: name, field id, type, children."""
        return json.dumps([_describe(f) for f in self.schema])

    @property
    def codec(self) -> str:
        """The compression of the first column chunk."""
        footer = self.file.metadata
        return str(footer.row_group(0).column(0).compression).lower() if footer.num_row_groups else "uncompressed"

    def group_size(self, group: int) -> tuple[int, int]:
        """Return the number of rows of a row group, and the maximum number of bytes to which they decode.

        Raises
        ------
        FormatError
            The row group's page headers are damaged.
        """
        about = self.file.metadata.row_group(group)
        rows, size = max(0, about.num_rows), int(about.total_byte_size)
        found = chunk_sizes(self._kept, [(group, size)], None, rows, self.location, nested=True)
        return rows, whole_bytes(found or ())

    def read(self, columns: list[str]) -> pa.Table:
        """Decode the named columns of the reader schema, in file order."""
        wanted = {".".join(self.paths[c]) for c in columns}
        try:
            with Budget(self.location, self._kept.size) as budget:  # refuses before Arrow runs out of memory
                about = self.file.metadata
                sizes = [(g, int(about.row_group(g).total_byte_size)) for g in range(about.num_row_groups)]
                paths = [self.file.schema.column(i).path for i in range(len(self.file.schema))]
                leaves = [i for i, path in enumerate(paths) if _among(path, wanted)]
                found = chunk_sizes(self._kept, sizes, leaves, max(0, about.num_rows), self.location, nested=True)
                budget.reserve(whole_bytes(found or ()), "the entries")
                table = self.file.read(columns=sorted(wanted), use_threads=False)
            opened: dict[tuple[str, ...], Any] = {}
            arrays = [self._column(table, self.paths[c], opened, c == HAS_TUPLE) for c in columns]
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise FormatError(f"a Parquet page cannot be decoded: {error}", location=self.location) from None
        return pa.table(arrays, names=columns)

    def _walk(self, fields: Iterable[AnyField], parent: str, path: tuple[str, ...]) -> None:
        for position, field in enumerate(fields):
            field_id = _field_id(field)
            if field_id is None and not self.has_ids:
                field_id = self.shape.names.get(parent, {}).get(field.name)
            here = (*path, field.name)
            if pa.types.is_struct(field.type):
                if field_id is not None:
                    self.parents.add(field_id)
                holds_structs = any(pa.types.is_struct(child.type) for child in field.type)
                opened = self.shape.opened(parent, field_id, holds_structs)
                if opened is not None:
                    if opened == PARTITION and self.shape.is_v4:
                        self.paths[HAS_TUPLE] = here
                    self._walk(field.type, opened, here)
                    continue
            column = self.shape.column(parent, field_id, position)
            if column in self.paths:
                continue  # of duplicate ids the first one counts
            self.paths[column] = here
            # Text is validated when it is used, as the Parquet reader does not validate UTF-8.
            logical = "string" if pa.types.is_string(field.type) else None
            if column[0] == "p":
                self.partition.append(PartitionColumn(column, field_id, field.name, logical))
            elif column[0] == "c":
                number, offset = column[1:].split("_")
                self.stats.append(StatsColumn(column, int(number), int(offset), logical))

    def _field(self, path: tuple[str, ...]) -> AnyField:
        field = self.schema.field(path[0])
        for name in path[1:]:
            field = field.type.field(name)
        return field

    def _column(
        self, table: pa.Table, path: tuple[str, ...], opened: dict[tuple[str, ...], Any], presence: bool
    ) -> AnyArray:
        """Return a column by its path or, with ``presence``, a mask of the rows that have it.

        ``opened`` caches the children of structs.
        """
        array = None
        for depth, name in enumerate(path):
            outer = path[:depth]
            if array is None:
                array = whole(table.column(name))
            else:
                index = array.type.get_field_index(name)
                if index < 0:
                    raise KeyError(name)  # several children have this name
                if outer not in opened:
                    opened[outer] = cast(pa.StructArray, array).flatten()
                array = opened[outer][index]
        assert array is not None
        if presence:
            return array.is_valid()
        if isinstance(array.type, pa.ExtensionType):
            array = cast(AnyExtensionArray, array).storage  # Arrow reads uuid columns as an extension type
        return array.cast(pa.binary()) if pa.types.is_string(array.type) else array


def _among(path: str, wanted: set[str]) -> bool:
    """Return whether a leaf column is one of the wanted columns, or inside one."""
    while path not in wanted:
        path, dot, _ = path.rpartition(".")
        if not dot:
            return False
    return True


def _carries_ids(schema: pa.Schema) -> bool:
    stack: list[Any] = list(schema)
    while stack:
        field = stack.pop()
        if _field_id(field) is not None:
            return True
        stack.extend(field.type if pa.types.is_struct(field.type) else ())
    return False


def _peek(field: AnyField) -> Peek:
    field_id = _field_id(field)
    if not pa.types.is_struct(field.type):
        return Peek(field_id, field.name)
    children = list(field.type)
    ids = frozenset(i for i in map(_field_id, children) if i is not None)
    names = frozenset(c.name for c in children)
    return Peek(field_id, field.name, True, ids, names, any(pa.types.is_struct(c.type) for c in children))


def _field_id(field: AnyField) -> int | None:
    text = (field.metadata or {}).get(FIELD_ID)
    return int(text) if text is not None and text.lstrip(b"-").isdigit() else None


def _describe(field: AnyField) -> dict[str, Any]:
    out: dict[str, Any] = {"name": field.name, "field-id": _field_id(field), "required": not field.nullable}
    if pa.types.is_struct(field.type):
        return out | {"type": "struct", "fields": [_describe(f) for f in field.type]}
    return out | {"type": str(field.type)}
