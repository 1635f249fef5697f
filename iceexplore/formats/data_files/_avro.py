"""Avro: blocks of records, read from the first to the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.errors import FormatError, IceexploreError
from iceexplore.formats._avro import AVRO_MAGIC, index_blocks, read_header
from iceexplore.formats._avro_rows import avro_batches
from iceexplore.formats._fields import plain_field
from iceexplore.formats._foreign import foreign
from iceexplore.formats._parquet_size import StreamLimit
from iceexplore.formats._rewrite_avro import read_avro, rewritten_avro
from iceexplore.formats._whole import whole_file
from iceexplore.formats.data_files._described import Described, Details, Shape
from iceexplore.formats.data_files._facts import FileFacts
from iceexplore.formats.data_files._format import DataFileFormat
from iceexplore.formats.data_files._paths import PathRewrite, Rewritten
from iceexplore.formats.data_files._reading import ColumnRequest, CountedRows, DataFile, plain_batch
from iceexplore.storage import DATA_RATIO, Budget, JsonValue

if TYPE_CHECKING:
    from iceexplore.storage import Storage

__all__ = ["Avro"]

_ID_KEYS = frozenset(("field-id", "element-id", "key-id", "value-id"))
#: Estimated memory in bytes of rows as Python objects: for each row, and for each byte that the rows take in Arrow.
_OBJECT, _OBJECTS_PER_BYTE = 500, 8
#: Limits for the decompressed size of a file that is rewritten, of which the greater applies: in bytes, and as a
#: multiple of its stored size. The multiple is high because repeated paths compress well.
_PLAIN_BYTES, _PLAIN_RATIO = 256 << 20, 16


class Avro(DataFileFormat):
    """Avro files."""

    name = "avro"
    title = "Avro"
    suffixes = (".avro",)
    magic = AVRO_MAGIC
    id_property = "field-id"
    splittable = True

    def batches(self, source: DataFile, budget: Budget, encoded: Sequence[str] = ()) -> Iterator[Any]:
        """Return an iterator over the schema, followed by the rows in batches."""
        return avro_batches(source.file.read(), source.location)

    def columns(self, source: DataFile, request: ColumnRequest) -> CountedRows:
        """Return the rows with all columns. Only batches that are consumed are decoded."""
        location = source.location
        data = source.file.read()
        limit = StreamLimit(Budget(location, len(data), ratio=DATA_RATIO))
        with foreign(self.what, location):
            count = index_blocks(data, read_header(data, location), location).rows

        def numbered() -> Iterator[tuple[int, pa.RecordBatch]]:
            with foreign(self.what, location):
                size = request.batch_rows
                found = avro_batches(data, location, size) if size else avro_batches(data, location)
                schema = pa.schema([plain_field(f) for f in next(found)])
                start = 0
                for batch in found:
                    limit.take(batch.nbytes, "the rows")
                    yield start, plain_batch(batch, schema)
                    start += batch.num_rows

        return CountedRows(count, numbered())

    def facts(self, source: DataFile) -> FileFacts:
        """Return the facts in the header of the file and in the headers of the blocks."""
        data = source.file.read()
        header = read_header(data, source.location)
        index = index_blocks(data, header, source.location)
        if index.faults:
            raise index.faults[0]
        return FileFacts(self.name, index.rows, None, frozenset(_ids(header.schema)), bool(header.schema))

    def describe(self, storage: Storage, location: str) -> Described:
        """Describe a file by its header and blocks; the records to show are its rows."""
        data = whole_file(storage, location, "manifest")
        header = read_header(data, location)
        fields = header.schema.get("fields") if isinstance(header.schema, dict) else None
        shapes = tuple(_shape(f) for f in _listed(fields) if isinstance(f, dict))

        def records() -> pa.Table:
            with (
                storage.open(location, kind="other") as file,
                Budget(location, file.size, ratio=DATA_RATIO) as budget,
            ):
                return self._table(DataFile(storage, location, file, "other"), budget)

        def details() -> Details:
            index = index_blocks(data, header, location)
            facts = {"codec": header.codec, "blocks": len(index.blocks), "rows": index.rows}
            return Details(facts, header.metadata, records, faults=tuple(index.faults))

        return Described(header.schema, details, shapes)

    def with_paths(self, storage: Storage, location: str, data: bytes, rewrite: PathRewrite) -> Rewritten | None:
        """Return a position delete file with new paths and the original's header; None if no path has moved."""
        try:
            # The limit can be generous, because a row has few but long values; `_check_objects` limits their number.
            work = Budget(location, len(data), most=max(_PLAIN_BYTES, _PLAIN_RATIO * len(data)))
            schema, metadata, records = read_avro(data, location, work)
            names = {f.get("field-id"): f["name"] for f in schema["fields"]}
            at, pos = (names.get(number, name) for number, name in (rewrite.path, rewrite.position))
            _check_objects(data, location)
            rows: list[Any] = list(records)
            moved = rewrite.moved({row[at] for row in rows})
            if not moved:
                return None
            for row in rows:
                row[at] = moved.get(row[at], row[at])
            rows.sort(key=lambda row: (row[at], row[pos]))
            return rewritten_avro(schema, metadata, rows), (rows[0][at], rows[-1][at])
        except IceexploreError:
            raise
        except Exception as error:  # fastavro raises arbitrary errors for damaged files
            text = f"the position delete file cannot be decoded: {type(error).__name__}: {error}"
            raise FormatError(text, location=location) from error


def _check_objects(data: bytes, location: str) -> None:
    """Refuse rows that would not fit in memory, before fastavro creates objects for all of them."""
    budget = Budget(location, len(data), ratio=DATA_RATIO)
    batches = avro_batches(data, location)
    next(batches)  # the schema comes first
    for batch in batches:
        budget.reserve(_OBJECT * batch.num_rows + _OBJECTS_PER_BYTE * batch.nbytes, "the rows")


def _ids(schema: JsonValue) -> Iterator[int]:
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield from (v for k, v in item.items() if k in _ID_KEYS and isinstance(v, int))
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _shape(found: dict[str, Any]) -> Shape:
    kind = found.get("type")
    if isinstance(kind, list):
        kind = next((k for k in kind if isinstance(k, dict)), None)
    inner = kind.get("fields") if isinstance(kind, dict) else None
    children = [(_whole_number(f.get("field-id")), str(f.get("name"))) for f in _listed(inner) if isinstance(f, dict)]
    return Shape(_whole_number(found.get("field-id")), str(found.get("name")), children)


def _listed(value: JsonValue) -> list[Any]:
    """Return a list in a header; an empty one if a damaged header has something else in its place."""
    return value if isinstance(value, list) else []


def _whole_number(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
