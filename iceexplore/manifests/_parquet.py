"""Parquet manifests, as Java writes them for format version 4: the same layout as Avro's, by the same field ids."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from iceexplore.errors import FormatError
from iceexplore.manifests._fields import SPLICED
from iceexplore.manifests._layout import Layout, PartitionColumn

__all__ = ["PARQUET_MAGIC", "ParquetManifest"]

PARQUET_MAGIC = b"PAR1"


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
            self.file: Any = pq.ParquetFile(pa.BufferReader(data))
            self.schema: pa.Schema = self.file.schema_arrow
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FormatError(f"not a Parquet file that can be read: {error}", location=location) from None
        self.paths: dict[str, tuple[str, ...]] = {}
        self.partition: list[PartitionColumn] = []
        self.parents: set[int] = set()
        self._walk(self.schema, 0, ())
        arrow = pa.schema([pa.field(column, self._field(path).type) for column, path in self.paths.items()])
        has_ids = any(_field_id(f) is not None for f in self.schema)
        self.layout = Layout(
            None, arrow, frozenset(self.paths), tuple(self.partition), has_ids, frozenset(self.parents)
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

    def read(self, columns: list[str]) -> pa.Table:
        """Decode the named columns of the layout, in file order."""
        wanted = {".".join(self.paths[c]) for c in columns}
        try:
            table = self.file.read(columns=sorted(wanted), use_threads=False)
            arrays = [self._column(table, self.paths[c]) for c in columns]
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise FormatError(f"a Parquet page does not decode: {error}", location=self.location) from None
        return pa.table(arrays, names=columns)

    def _walk(self, fields: Any, parent: int, path: tuple[str, ...]) -> None:
        for position, field in enumerate(fields):
            field_id = _field_id(field)
            here = (*path, field.name)
            if pa.types.is_struct(field.type) and field_id is not None:
                self.parents.add(field_id)
                if SPLICED.get(field_id) == parent:
                    self._walk(field.type, field_id, here)
                    continue
            if parent == 102:
                column = f"p{position if field_id is None else field_id}"
                self.partition.append(PartitionColumn(column, field_id, field.name, None))
            else:
                column = f"x{parent}_{position}" if field_id is None else f"f{field_id}"
            self.paths.setdefault(column, here)

    def _field(self, path: tuple[str, ...]) -> pa.Field:
        field = self.schema.field(path[0])
        for name in path[1:]:
            field = field.type.field(name)
        return field

    def _column(self, table: pa.Table, path: tuple[str, ...]) -> pa.Array:
        array = table.column(path[0]).combine_chunks()
        for name in path[1:]:
            array = array.flatten()[array.type.get_field_index(name)]
        return array


def _field_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(b"PARQUET:field_id")
    return int(text) if text is not None and text.lstrip(b"-").isdigit() else None


def _describe(field: pa.Field) -> dict[str, Any]:
    out: dict[str, Any] = {"name": field.name, "field-id": _field_id(field), "required": not field.nullable}
    if pa.types.is_struct(field.type):
        return out | {"type": "struct", "fields": [_describe(f) for f in field.type]}
    return out | {"type": str(field.type)}
