"""Change one file of a table, as fits its format: the changes that `scripts.fuzz` makes.

Bytes changed at random mostly end at a checksum, a magic or a length. So JSON, Avro, Parquet, Puffin and deletion
vectors are also taken apart, changed in one value and put together again, with lengths and checksums made right.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["MARKUP", "NUMBERS", "VALUES", "change", "change_bytes", "read_thrift", "thrift_values", "write_thrift"]

#: Whole numbers that have broken readers: edges of 32, 63 and 64 bits, and beyond.
NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30)
#: Must be in no page as it is.
MARKUP = "<script>'\"</script>"
#: In the place of a JSON value: each type of JSON, nested and empty ones too.
VALUES: tuple[Any, ...] = (
    *NUMBERS, None, True, "", "x", "a\0b", "\ud800", 1.5, 1e308, [], {}, [[]], [None], {"x": []},
    f"{MARKUP}\x1b[31m\u202e", "y" * 5000,
)  # fmt: skip
_LONGS = tuple(n for n in NUMBERS if -(2**63) <= n < 2**63)
#: In the place of a value of an Avro or Parquet record.
_CELLS: tuple[Any, ...] = (*_LONGS, None, "", "a\0b", MARKUP, b"", b"\xff" * 40, [], 1e308)
_DV_MAGIC = bytes.fromhex("d1d33964")


def change(path: Path, data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Change a file as fits its format, or its bytes alone.

    Returns
    -------
    tuple of bytes and str
        The new content, and what was changed.
    """
    if rng.random() < 0.2:
        return change_bytes(data, rng)
    name = path.name
    if name.endswith(".json"):
        if data[:2] == b"\x1f\x8b":
            text, description = change_json(gzip.decompress(data), rng)
            return gzip.compress(text, mtime=0), description
        return change_json(data, rng)
    if name.endswith(".avro"):
        return change_avro(data, rng)
    if data[:4] == b"PFA1":
        way = rng.choice((change_puffin, change_vector, change_vector, change_positions))
        return way(data, rng)
    if data[:4] == b"PAR1":
        return rng.choice((change_footer, change_parquet))(data, rng)
    return change_bytes(data, rng)


def change_bytes(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Change some bytes, cut the file, or double or remove a piece."""
    if not data:
        return b"\0", "a byte"
    at = rng.randrange(len(data))
    match rng.randrange(5):
        case 0:
            return data[:at], f"cut at {at}"
        case 1:
            end = min(len(data), at + rng.randrange(1, 64))
            return data[:at] + data[end:], f"without {at}:{end}"
        case 2:
            end = min(len(data), at + rng.randrange(1, 64))
            return data[:end] + data[at:], f"{at}:{end} twice"
        case _:
            changed = bytearray(data)
            # The ends hold lengths, magics and footers: half of the changes go there.
            near = rng.choice((0, max(0, len(data) - 200), at))
            spots = [min(len(data) - 1, near + rng.randrange(200)) for _ in range(rng.choice((1, 1, 2, 8)))]
            for spot in spots:
                changed[spot] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            return bytes(changed), f"bytes {spots}"


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the path of every value in a JSON document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*path, key)
        yield from _places(inner, (*path, key))


def _put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        document = document[step]
    document[path[-1]] = value


def change_json(text: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Replace, or remove, one value of a JSON document."""
    document = json.loads(text)
    path = rng.choice(list(_places(document)) or [()])
    if not path:
        return b"null", "the document = null"
    if rng.random() < 0.15:
        holder = document
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]
        description = f"{path} removed"
    else:
        value = rng.choice(VALUES)
        _put(document, path, value)
        description = f"{path} = {value!r}"
    return json.dumps(document).encode(), description


def _change_records(records: list[Any], rng: random.Random) -> str:
    """Change one value of records, or remove one of them."""
    at = rng.randrange(len(records))
    if rng.random() < 0.1:
        del records[at]
        return f"record {at} removed"
    path, value = rng.choice(list(_places(records[at]))), rng.choice(_CELLS)
    _put(records[at], path, value)
    return f"record {at} {path} = {value!r}"


def change_avro(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Write the records of an Avro file anew with one value changed, or one record removed."""
    import fastavro

    reader = fastavro.reader(io.BytesIO(data))
    schema, header = reader.writer_schema, dict(reader.metadata)
    records: list[Any] = list(reader)
    if not isinstance(schema, dict) or not records:
        return change_bytes(data, rng)
    description = _change_records(records, rng)
    out = io.BytesIO()
    kept = {k: v for k, v in header.items() if not k.startswith("avro.")}
    try:
        fastavro.writer(out, schema, records, metadata=kept, sync_marker=data[-16:])
    except Exception:  # the value is none of the field's type: bytes are changed instead
        return change_bytes(data, rng)
    return out.getvalue(), description


def change_parquet(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Write the rows of a Parquet file anew with one value changed, or one row removed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(data))
    records = file.read().to_pylist()
    if not records:
        return change_footer(data, rng)
    description = _change_records(records, rng)
    out = io.BytesIO()
    try:
        pq.write_table(pa.Table.from_pylist(records, schema=file.schema_arrow), out, store_schema=False)
    except Exception:  # as above
        return change_footer(data, rng)
    return out.getvalue(), description


def change_puffin(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Change one field of a Puffin footer; the blobs stay."""
    start = _puffin_footer(data)
    if start is None:
        return change_bytes(data, rng)
    footer, description = change_json(data[start:-12], rng)
    return data[:start] + footer + len(footer).to_bytes(4, "little") + data[-8:], description


def _puffin_footer(data: bytes) -> int | None:
    """Return where the JSON of an uncompressed Puffin footer begins."""
    start = len(data) - 12 - int.from_bytes(data[-12:-8], "little")
    return None if data[-4:] != b"PFA1" or data[-8] & 1 or start < 8 else start


def _vector(data: bytes, rng: random.Random) -> tuple[int, int] | None:
    """Pick a deletion vector of a Puffin file: where its blob begins and ends, length and checksum included."""
    start = _puffin_footer(data)
    blobs = json.loads(data[start:-12])["blobs"] if start is not None else []
    spans = [(b["offset"], b["offset"] + b["length"]) for b in blobs if b["type"] == "deletion-vector-v1"]
    return rng.choice(spans) if spans else None


def _checked(magic_and_vector: bytes) -> bytes:
    """Frame a deletion vector: its length before it, its checksum behind it."""
    crc = zlib.crc32(magic_and_vector)
    return len(magic_and_vector).to_bytes(4, "big") + magic_and_vector + crc.to_bytes(4, "big")


def change_vector(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Change numbers in the headers or containers of a roaring bitmap, with the checksum made right."""
    span = _vector(data, rng)
    if span is None:
        return change_bytes(data, rng)
    begin, end = span
    vector = bytearray(data[begin + 4 : end - 4])
    # Magic; the count of 32-bit bitmaps (8 bytes); per bitmap its key (4), the cookie (4), the count of containers
    # (4), per container its key and its cardinality less one (2 each), offsets (4 each), values (2 each).
    fields = [("bitmaps", 4, "<q"), ("key", 12, "<I"), ("cookie", 16, "<I"), ("containers", 20, "<I"),
              ("container key", 24, "<H"), ("cardinality", 26, "<H"), ("offset", 28, "<I")]  # fmt: skip
    fields += [("value", at, "<H") for at in range(32, len(vector) - 1, 2)][:40]
    description = []
    for name, at, form in rng.choices(fields, k=rng.choice((1, 1, 1, 2))):
        size = struct.calcsize(form)
        if at + size <= len(vector):
            old = int.from_bytes(vector[at : at + size], "little")
            edges = (0, 1, 0x7F, 0xFFFF, 2**31 - 1, 2**31, -1, 12347)
            number = rng.choice((*edges, old + 1, old - 1, rng.randrange(2**16)))
            vector[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
            description.append(f"{name} at {at} = {number}")
    return data[:begin] + _checked(bytes(vector)) + data[end:], "vector: " + ", ".join(description)


def change_positions(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Change what a deletion vector deletes; length, checksum and the footer's numbers fit."""
    from pyroaring import BitMap64

    span = _vector(data, rng)
    if span is None:
        return change_bytes(data, rng)
    begin, end = span
    old = BitMap64.deserialize(data[begin + 8 : end - 4])
    positions = sorted(old)
    spot = rng.randrange(len(positions))
    moved = rng.choice((positions[spot] + 1, positions[spot] + 1000, 2**31, 2**32 + 5, 2**40, 2**62))
    match rng.randrange(3):
        case 0:
            positions[spot], description = moved, f"position {positions[spot]} = {moved}"
        case 1:
            description = f"position {positions.pop(spot)} removed"
        case _:
            positions.append(moved)
            description = f"position {moved} added"
    new = BitMap64(positions)
    blob = _checked(_DV_MAGIC + new.serialize())
    start = _puffin_footer(data)
    footer = json.loads(data[start:-12])
    for one in footer["blobs"]:
        if one["offset"] > begin:
            one["offset"] += len(blob) - (end - begin)
        elif one["offset"] == begin:
            one["length"] = len(blob)
            if rng.random() < 0.7:
                one["properties"]["cardinality"] = str(len(new))
    text = json.dumps(footer).encode()
    end_of_blobs = data[end:start]
    return data[:begin] + blob + end_of_blobs + text + len(text).to_bytes(4, "little") + data[-8:], description


# Thrift's compact protocol: enough to take the footer of a Parquet file apart and to put it together again.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


class _Thrift:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def number(self) -> int:
        coded = self.varint()
        return coded >> 1 ^ -(coded & 1)

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def struct(self) -> list[Any]:
        fields, field = [], 0
        while head := self.take(1)[0]:
            field = field + (head >> 4) if head >> 4 else self.number()
            fields.append([field, head & 15, self.value(head & 15)])
        return fields

    def value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self.take(1)
        if kind in (_I16, _I32, _I64):
            return self.number()
        if kind == _DOUBLE:
            return self.take(8)
        if kind == _BINARY:
            return self.take(self.varint())
        if kind == _STRUCT:
            return self.struct()
        head = self.take(1)[0]  # a list or set; the footer has no maps
        size = head >> 4 if head >> 4 < 15 else self.varint()
        inner = head & 15
        return [inner, [self.take(1) if inner in (_TRUE, _FALSE) else self.value(inner) for _ in range(size)]]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _zigzag(value: int) -> bytes:
    return _varint((value << 1 ^ value >> 63) & (1 << 64) - 1)


def _struct(fields: list[Any]) -> bytes:
    out, last = bytearray(), 0
    for field, kind, value in fields:
        head = (_TRUE if value else _FALSE) if kind in (_TRUE, _FALSE) else kind
        out += bytes((field - last << 4 | head,)) if 0 < field - last < 16 else bytes((head,)) + _zigzag(field)
        last = field
        if kind not in (_TRUE, _FALSE):
            out += _coded(kind, value)
    return bytes(out) + b"\0"


def _coded(kind: int, value: Any) -> bytes:
    if kind in (_I16, _I32, _I64):
        return _zigzag(value)
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == _STRUCT:
        return _struct(value)
    if kind in (_LIST, _SET):
        inner, values = value
        head = bytes((len(values) << 4 | inner,)) if len(values) < 15 else bytes((0xF0 | inner,)) + _varint(len(values))
        return head + b"".join(v if isinstance(v, bytes) and inner != _BINARY else _coded(inner, v) for v in values)
    return bytes(value)


def read_thrift(data: bytes) -> list[Any]:
    """Take a struct apart: a list of ``[field, type, value]``; lists as ``[type of the elements, values]``."""
    return _Thrift(data).struct()


def write_thrift(fields: list[Any]) -> bytes:
    """Put together what `read_thrift` gave."""
    return _struct(fields)


def thrift_values(fields: list[Any]) -> list[tuple[list[Any], int, str, int]]:
    """List each number, text and list of a struct: its holder, its place in it, its path, its type."""
    return list(_numbers(_STRUCT, fields, ""))


def _numbers(kind: int, value: Any, path: str) -> Iterator[tuple[list[Any], int, str, int]]:
    if kind == _STRUCT:
        for field in value:
            if field[1] in (_I16, _I32, _I64, _BINARY, _LIST):
                yield field, 2, f"{path}.{field[0]}", field[1]
            yield from _numbers(field[1], field[2], f"{path}.{field[0]}")
    elif kind in (_LIST, _SET):
        for at, inner in enumerate(value[1]):
            if value[0] in (_I16, _I32, _I64, _BINARY):
                yield value[1], at, f"{path}[{at}]", value[0]
            yield from _numbers(value[0], inner, f"{path}[{at}]")


def change_footer(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Change a number, a text or a list in the footer of a Parquet file: counts, sizes, offsets, types, statistics."""
    size = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - size
    if data[-4:] != b"PAR1" or start < 4:
        return change_bytes(data, rng)
    footer = read_thrift(data[start:-8])
    found = thrift_values(footer)
    # num_rows of the file (3) and of row groups (4[].3); numbers, offsets and statistics of chunks (4[].1[].3).
    counts = [one for one in found if one[2] == ".3" or one[2].startswith(".4[")]
    holder, at, path, kind = rng.choice(counts if counts and rng.random() < 0.6 else found)
    old = holder[at]
    if kind == _LIST:
        value: Any = [old[0], old[1][:-1] if rng.random() < 0.5 else old[1] * 2]
        shown = f"a list of {len(value[1])}"
    elif kind == _BINARY:
        value = rng.choice((b"", b"\xff" * 8, old[:-1], old + b"\0", bytes(8), b"\x80" * 20))
        shown = repr(value)
    else:
        value = rng.choice((*_LONGS, old + 1, old - 1, 7, 12))
        shown = str(value)
    holder[at] = value
    text = write_thrift(footer)
    return data[:start] + text + len(text).to_bytes(4, "little") + b"PAR1", f"footer {path} = {shown[:80]}"
