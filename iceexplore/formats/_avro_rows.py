"""Read the rows of an Avro data or delete file as Arrow batches with field ids (Iceberg specification, appendix A)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceexplore.arrow import AnyField, PlainValue, build
from iceexplore.errors import FormatError, IceexploreError, MemoryLimitError, UnsupportedError
from iceexplore.formats._avro import decompress_block, index_blocks, read_header
from iceexplore.storage import DATA_RATIO, JsonValue, allowed

__all__ = ["AVRO_LOGICAL_TYPES", "Records", "avro_batches", "record_limit"]

_BATCH_ROWS = 10_000
#: A batch ends after this many bytes of records; as Python objects they take many times as much memory.
_BATCH_BYTES = 4 << 20
#: Expansion of a record when it is decoded into Python objects: a number of one or two bytes becomes 40 bytes.
_RECORD_SHARE = 32
_MAX_DEPTH = 64
_MAX_FIELDS = 50_000

_PRIMITIVES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
#: Arrow types by Avro type and logical type.
AVRO_LOGICAL_TYPES: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms"),
    ("long", "timestamp-micros"): pa.timestamp("us"),
    ("long", "timestamp-nanos"): pa.timestamp("ns"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


def record_limit(stored: int) -> int:
    """Return the maximum size in bytes of a decompressed record in a file of ``stored`` bytes."""
    return allowed(stored, DATA_RATIO) // _RECORD_SHARE


@dataclass(frozen=True)
class _Node:
    """A type for fastavro and for Arrow, with the conversion of decoded values (None if none is needed)."""

    avro: Any
    arrow: pa.DataType
    convert: Callable[[Any], Any] | None
    nullable: bool = False
    empty: bool = False  # values take no bytes, so a file can claim any number of them


class Records:
    """Reads the records of a block one after another, and refuses records that are longer than a limit.

    fastavro trusts the length that an array claims, and creates items until the bytes end. So it only gets a window of
    the block, which limits a record's length.

    Attributes
    ----------
    at
        The number of bytes of the block read so far.
    """

    def __init__(self, plain: bytes, schema: JsonValue, most: int, location: str) -> None:
        import fastavro

        self._read: Any = fastavro.schemaless_reader
        self._plain = plain
        self._schema = schema
        self._most = most
        self._location = location
        self._begin = 0
        self._stream = io.BytesIO(plain if len(plain) <= most else plain[:most])
        self.at = 0

    def read(self) -> PlainValue:
        """Return the next record.

        Raises
        ------
        MemoryLimitError
            The record is longer than the limit. For bytes that are not a valid record, fastavro's errors pass through.
        """
        try:
            record = self._read(self._stream, self._schema)
        except Exception:
            end = self._begin + self._most
            if end >= len(self._plain):
                raise
            if self.at == self._begin:
                text = (
                    f"a record of more than {self._most >> 20} MiB is not decoded; iceexplore.memory_limit('8 GiB') "
                    "allows longer ones"
                )
                raise MemoryLimitError(f"{text} · in {self._location}") from None
            self._begin = self.at
            self._stream = io.BytesIO(self._plain[self.at : self.at + self._most])
            return self.read()
        self.at = self._begin + self._stream.tell()
        return record


def avro_batches(data: bytes, location: str, batch_rows: int = _BATCH_ROWS) -> Iterator[Any]:
    """Yield the Arrow schema of an Avro file, then its rows in batches.

    Field ids are stored under ``PARQUET:field_id``, where Arrow keeps those of Parquet. Nothing is salvaged from a
    damaged file: half a delete file has a different meaning than the whole.

    Raises
    ------
    FormatError
        The header, a block or a record is damaged.
    UnsupportedError
        An unknown codec, or a type that Iceberg does not write: unions of several types, recursive records.
    """
    import fastavro

    header = read_header(data, location)
    root = _Translator(location).node(header.schema, 0)
    if not isinstance(root.avro, dict) or root.avro["type"] != "record":
        raise FormatError("the Avro schema is not a record", location=location, field="avro.schema")
    index = index_blocks(data, header, location)
    if index.faults:
        raise index.faults[0]
    schema = pa.schema([root.arrow.field(i) for i in range(root.arrow.num_fields)])
    yield schema
    parsed: Any = fastavro.parse_schema(root.avro)
    for block in index.blocks:
        plain = decompress_block(data, block, header.codec, location)
        if block.count > len(plain):
            raise FormatError(f"{block.count} records in {len(plain)} bytes", location=location, offset=block.start)
        stream = Records(plain, parsed, record_limit(len(data)), location)
        left = block.count
        while left:
            records: list[Any] = []
            begun = stream.at
            try:
                while left and len(records) < batch_rows and stream.at - begun < _BATCH_BYTES:
                    records.append(stream.read())
                    left -= 1
                if root.convert is not None:
                    records = [root.convert(r) for r in records]
                columns = [pa.array([r[f"f{i}"] for r in records], f.type) for i, f in enumerate(schema)]
                batch = pa.RecordBatch.from_arrays(columns, schema=schema)
            except IceexploreError:
                raise
            except Exception as error:  # fastavro raises EOFError, IndexError, ValueError, OverflowError, ...
                text = f"a record does not decode: {type(error).__name__}: {error}"
                raise FormatError(text, location=location, offset=block.start) from None
            yield batch
        if stream.at != len(plain):
            raise FormatError("bytes are left over in a block", location=location, offset=block.start)


class _Translator:
    """Translates a file's Avro schema to Arrow types, and to an equivalent schema with generated names for fastavro."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.named: dict[str, _Node | None] = {}  # None while being translated: if used then, it is recursive
        self.count = 0

    def wrong(self, text: str) -> FormatError:
        return FormatError(text, location=self.location, field="avro.schema")

    def node(self, schema: JsonValue, depth: int) -> _Node:
        self.count += 1
        if depth > _MAX_DEPTH or self.count > _MAX_FIELDS:
            raise UnsupportedError(f"the Avro schema of {self.location} is too deep or too large")
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return _Node(schema, _PRIMITIVES[schema], None, empty=schema == "null")
            if schema not in self.named:
                raise self.wrong(f"unknown Avro type {schema[:80]!r}")
            known = self.named[schema]
            if known is None:
                raise UnsupportedError(f"the Avro schema of {self.location} is recursive at {schema[:80]!r}")
            return known
        if isinstance(schema, list):
            return self.union(schema, depth)
        if not isinstance(schema, dict):
            raise self.wrong(f"{str(schema)[:80]!r} is not an Avro type")
        kind = schema.get("type")
        match kind:
            case "record" | "error":
                return self.record(schema, depth)
            case "array":
                return self.array(schema, depth)
            case "map":
                value = self.node(schema.get("values"), depth + 1)
                self.no_empty(value)
                item = _field("value", value, schema.get("value-id"))
                arrow = build.map_(_with_id(pa.field("key", pa.string(), nullable=False), schema.get("key-id")), item)
                return _Node({"type": "map", "values": value.avro}, arrow, _map_pairs(value.convert))
            case "fixed":
                size = schema.get("size")
                if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= 1 << 20:
                    raise self.wrong(f"a fixed type of {str(size)[:40]} bytes")
                avro = {"type": "fixed", "name": f"x{self.count}", "size": size}
                return self.name(schema, self.decimal(schema, avro) or _Node(avro, pa.binary(size), None))
            case "enum":
                symbols = schema.get("symbols")
                if not isinstance(symbols, list) or not symbols or not all(isinstance(s, str) for s in symbols):
                    raise self.wrong("an enum without symbols")
                names: list[str] = symbols
                clean = {"type": "enum", "name": f"e{self.count}", "symbols": [f"s{i}" for i in range(len(names))]}
                return self.name(schema, _Node(clean, pa.string(), lambda v: names[int(v[1:])]))
        if isinstance(kind, str) and kind in _PRIMITIVES:
            logical = schema.get("logicalType")
            found = AVRO_LOGICAL_TYPES.get((kind, logical)) if isinstance(logical, str) else None
            if found is not None:
                if pa.types.is_timestamp(found) and schema.get("adjust-to-utc") is True:
                    found = pa.timestamp(found.unit, tz="UTC")
                return _Node(kind, found, None)
            if kind == "bytes":
                return self.decimal(schema, {"type": "bytes"}) or _Node(kind, _PRIMITIVES[kind], None)
        return self.node(kind, depth + 1)

    def name(self, schema: dict[str, Any], node: _Node) -> _Node:
        name = schema.get("name")
        if isinstance(name, str):
            space = schema.get("namespace")
            # fastavro accepts only one definition of a named type: wherever else it is used, only its name may appear.
            used = _Node(node.avro["name"], node.arrow, node.convert, node.nullable, node.empty)
            self.named[name] = used
            if isinstance(space, str) and space:
                self.named[f"{space}.{name}"] = used
        return node

    def decimal(self, schema: dict[str, Any], avro: dict[str, Any]) -> _Node | None:
        precision, scale = schema.get("precision"), schema.get("scale", 0)
        if schema.get("logicalType") != "decimal":
            return None
        if not isinstance(precision, int) or not isinstance(scale, int):
            return None
        if not 0 < precision <= 38 or not 0 <= scale <= precision:
            return None
        return _Node({**avro, "logicalType": "decimal", "precision": precision, "scale": scale},
                     pa.decimal128(precision, scale), None)  # fmt: skip

    def union(self, branches: list[Any], depth: int) -> _Node:
        real = [b for b in branches if b != "null"]
        if not branches or len(real) > 1:
            raise UnsupportedError(f"{self.location} has an Avro union of {len(real)} types; Iceberg allows one")
        if not real:
            return self.node("null", depth + 1)
        inner = self.node(real[0], depth + 1)
        if len(real) == len(branches):
            return inner
        convert = inner.convert
        avro = [inner.avro if b != "null" else "null" for b in branches[:2]]
        return _Node(avro, inner.arrow, convert and (lambda v: None if v is None else convert(v)), nullable=True)

    def record(self, schema: dict[str, Any], depth: int) -> _Node:
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(isinstance(f, dict) for f in fields):
            raise self.wrong("a record without a list of fields")
        if not all(isinstance(f.get("name"), str) for f in fields):
            raise self.wrong("a field without a name")
        own = f"r{self.count}"
        name = schema.get("name")
        if isinstance(name, str):
            self.named[name] = None
        nodes = [self.node(f.get("type"), depth + 1) for f in fields]
        children = [_field(f["name"], n, f.get("field-id")) for f, n in zip(fields, nodes, strict=True)]
        avro = {
            "type": "record",
            "name": own,
            "fields": [{"name": f"f{i}", "type": n.avro} for i, n in enumerate(nodes)],
        }
        converts = [(f"f{i}", n.convert) for i, n in enumerate(nodes) if n.convert]
        names = [f["name"] for f in fields]
        top = depth == 0

        def convert(record: dict[str, Any]) -> object:
            for key, step in converts:
                record[key] = step(record[key])
            # Nested structs are passed to Arrow as pairs, so that fields with equal names stay separate.
            return record if top else [(n, record[f"f{i}"]) for i, n in enumerate(names)]

        empty = all(n.empty for n in nodes)
        step = None if top and not converts else convert
        return self.name(schema, _Node(avro, pa.struct(children), step, empty=empty))

    def array(self, schema: dict[str, Any], depth: int) -> _Node:
        item = self.node(schema.get("items"), depth + 1)
        self.no_empty(item)
        avro = {"type": "array", "items": item.avro}
        step = item.convert
        if schema.get("logicalType") == "map" and pa.types.is_struct(item.arrow) and item.arrow.num_fields == 2:
            key, value = item.arrow.field(0), item.arrow.field(1)
            assert step is not None  # nested records always have a conversion
            pairs = step
            return _Node(avro, build.map_(key.with_nullable(False), value),
                         lambda v: [tuple(x for _, x in pairs(i)) for i in v])  # fmt: skip
        arrow = pa.list_(_field("element", item, schema.get("element-id")))
        return _Node(avro, arrow, step and (lambda v: [step(i) for i in v]))

    def no_empty(self, item: _Node) -> None:
        if item.empty:  # a list of a few bytes may claim any number of such values
            raise UnsupportedError(f"{self.location} has Avro lists whose values take no bytes")


def _map_pairs(step: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    return lambda v: [(k, x if step is None else step(x)) for k, x in v.items()]


def _field(name: str, node: _Node, number: object) -> AnyField:
    nullable = node.nullable or pa.types.is_null(node.arrow)
    return _with_id(pa.field(name, node.arrow, nullable=nullable), number)


def _with_id(field: AnyField, number: object) -> AnyField:
    known = isinstance(number, int) and not isinstance(number, bool)
    return field.with_metadata({b"PARQUET:field_id": str(number)}) if known else field
