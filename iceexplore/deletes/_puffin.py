"""Puffin files: read the footer, which lists the blobs (Puffin specification, "Footer structure")."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from iceexplore.deletes._codec import CODECS, decompress
from iceexplore.deletes._vector import read_range
from iceexplore.errors import FormatError, Problem, problem
from iceexplore.formats import PUFFIN
from iceexplore.storage import Budget, JsonValue, load_json

if TYPE_CHECKING:
    from iceexplore.storage import Storage

__all__ = [
    "DELETION_VECTOR",
    "PUFFIN_MAGIC",
    "PuffinBlob",
    "PuffinFile",
    "THETA_SKETCH",
    "read_puffin_blob",
    "read_puffin_footer",
]

PUFFIN_MAGIC = PUFFIN.magic
DELETION_VECTOR = "deletion-vector-v1"
THETA_SKETCH = "apache-datasketches-theta-v1"

#: Maximum size of the footer's JSON in bytes: enough for 400,000 deletion vectors in one file, since each blob's
#: description takes about 300 bytes.
MAX_FOOTER_BYTES = 1 << 27
#: Maximum size of a decompressed blob in bytes. Deletion vectors are never compressed; a sketch takes about 100 kB.
MAX_BLOB_BYTES = 1 << 28

#: Memory limit for the objects of the footer's JSON, lower than the general limit.
_MOST_OBJECTS = 1 << 30

_TRAILER = struct.Struct("<i4s4s")  # payload size, flags, magic
_FRAME = len(PUFFIN_MAGIC) + _TRAILER.size
_SMALLEST = len(PUFFIN_MAGIC) + _FRAME
_FIRST_READ = 8192
_LONG = range(-(1 << 63), 1 << 63)
_INT = range(-(1 << 31), 1 << 31)


@dataclass(frozen=True)
class PuffinBlob:
    """A blob as described in the footer.

    ``offset`` and ``length`` refer to the bytes in the file, which may be compressed. A number that the footer does not
    state is -1.
    """

    ordinal: int
    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None
    properties: Mapping[str, str]

    @property
    def ndv(self) -> int | None:
        """The number of distinct values from the property ``ndv``; None if missing or not a number."""
        return _digits(self.properties.get("ndv"))

    @property
    def cardinality(self) -> int | None:
        """The number of deleted rows from a deletion vector's property ``cardinality``; None if missing or invalid."""
        return _digits(self.properties.get("cardinality"))

    @property
    def referenced_data_file(self) -> str | None:
        """The data file that a deletion vector applies to, from the property of this name; None if missing."""
        return self.properties.get("referenced-data-file")


@dataclass(frozen=True)
class PuffinFile:
    """The footer of a Puffin file.

    Attributes
    ----------
    footer_size
        Size of the footer in bytes with both magics, as in ``file-footer-size-in-bytes`` of table metadata.
    file_size
        Size of the file in bytes.
    footer_compressed
        True if the payload is LZ4-compressed.
    problems
        Violations of the specification. A blob that cannot be parsed is left out of ``blobs``.
    payload
        The footer's JSON as text, decompressed but not changed otherwise.
    """

    location: str
    blobs: tuple[PuffinBlob, ...]
    properties: Mapping[str, str]
    footer_size: int
    file_size: int
    footer_compressed: bool = False
    problems: tuple[Problem, ...] = ()
    payload: str = field(default="", repr=False, compare=False)


def read_puffin_footer(storage: Storage, location: str, size: int | None = None) -> PuffinFile:
    """Read the footer of a Puffin file and the magic at the file's start. Blobs are not decoded.

    Parameters
    ----------
    size
        The file's size in bytes, if known (saves a request). If reading fails because it is wrong, the error says so.

    Raises
    ------
    FormatError
        Not a Puffin file, or its footer is damaged, too large or truncated.
    """
    known = size
    if size is None:
        size = storage.stat(location).size
        if size is None:
            size = len(storage.read(location, kind="puffin"))
    try:
        return _read_footer(storage, location, size)
    except FormatError as error:
        actual = storage.stat(location).size if known is not None else None
        if actual is None or actual == known:
            raise
        raise FormatError(
            f"{error.reason}; the file has {actual} bytes, not {known} as recorded",
            location=location,
            offset=error.offset,
            field=error.field,
            code=error.code,
        ) from None


def read_puffin_blob(storage: Storage, location: str, blob: PuffinBlob, *, limit: int = MAX_BLOB_BYTES) -> bytes:
    """Return the decompressed bytes of a blob, at most ``limit``.

    Raises
    ------
    FormatError
        The blob is outside the file, or does not decompress to at most ``limit`` bytes.
    UnsupportedError
        The codec is unknown.
    """
    stored = read_range(storage, location, blob.offset, blob.length)
    return decompress(stored, blob.compression_codec, limit=limit, location=location, offset=blob.offset)


def _read_footer(storage: Storage, location: str, size: int) -> PuffinFile:
    def wrong(text: str, at: int, code: str = "file-corrupt") -> FormatError:
        return FormatError(text, location=location, offset=at, code=code)

    if size < _SMALLEST:
        raise wrong(f"a Puffin file takes at least {_SMALLEST} bytes, this file has {size}", 0, "file-truncated")
    begin = max(0, size - _FIRST_READ)
    tail = storage.read(location, kind="puffin", offset=begin, length=size - begin)
    if len(tail) != size - begin:
        raise wrong(f"expected {size} bytes, found {begin + len(tail)}", begin + len(tail), "file-truncated")
    head = tail[:4] if begin == 0 else storage.read(location, kind="puffin", offset=0, length=4)
    if head != PUFFIN_MAGIC:
        raise wrong(f"not a Puffin file: it begins with {head!r}, not {PUFFIN_MAGIC!r}", 0)

    payload_size, flags, magic = _TRAILER.unpack_from(tail, len(tail) - _TRAILER.size)
    if magic != PUFFIN_MAGIC:
        raise wrong(f"it ends with {magic!r}, not {PUFFIN_MAGIC!r}: cut off or overwritten", size - 4, "file-truncated")
    footer_size = payload_size + _FRAME
    footer_at = size - footer_size
    if payload_size < 0 or footer_at < len(PUFFIN_MAGIC):
        raise wrong(f"a footer payload of {payload_size} bytes does not fit in a file of {size}", size - _TRAILER.size)
    if payload_size > MAX_FOOTER_BYTES:
        raise wrong(f"the footer payload has {payload_size} bytes, more than {MAX_FOOTER_BYTES}", size - _TRAILER.size)
    if footer_at < begin:
        more = storage.read(location, kind="puffin", offset=footer_at, length=begin - footer_at)
        if len(more) != begin - footer_at:
            raise wrong("the footer ends too early", footer_at, "file-truncated")
        begin, tail = footer_at, more + tail
    footer = tail[footer_at - begin :]
    if footer[:4] != PUFFIN_MAGIC:
        raise wrong(f"the footer begins with {footer[:4]!r}, not {PUFFIN_MAGIC!r}: its size is wrong", footer_at)
    # Refuse unknown flags, as Iceberg's Java does: they may change the payload's meaning.
    if flags[0] & 0xFE or any(flags[1:]):
        raise wrong(f"unknown footer flags {flags.hex(' ')}", size - _TRAILER.size + 4)
    payload = footer[4 : 4 + payload_size]
    compressed = bool(flags[0] & 1)
    if compressed:
        payload = decompress(payload, "lz4", limit=MAX_FOOTER_BYTES, location=location, offset=footer_at + 4)
    try:
        text = payload.decode("utf-8")
        budget = Budget(location, size, most=_MOST_OBJECTS)
        document = load_json(text, budget, "the footer's JSON")
        if "\\ud" in text.lower():
            # Replace lone surrogates, which JSON can express as escapes: neither Arrow nor UTF-8 files can store them.
            written = json.dumps(document, ensure_ascii=False)
            document = json.loads(written.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the footer payload is not JSON: {error}", location=location, offset=footer_at + 4) from None
    if not isinstance(document, dict) or not isinstance(document.get("blobs"), list):
        raise FormatError("the footer has no list of blobs", location=location, offset=footer_at + 4, field="blobs")
    problems: list[Problem] = []
    blobs = [_blob(item, i, location, footer_at, problems) for i, item in enumerate(document["blobs"])]
    properties = _strings(document.get("properties"), location, "properties", problems)
    found = tuple(b for b in blobs if b is not None)
    return PuffinFile(location, found, properties, footer_size, size, compressed, tuple(problems), text)


def _blob(item: JsonValue, ordinal: int, location: str, end: int, problems: list[Problem]) -> PuffinBlob | None:
    where = f"{location}#blob {ordinal}"

    def report(text: str, key: str, found: object, expected: object = None) -> None:
        problems.append(problem("puffin-blob-invalid", where, text, field=key, found=_short(found), expected=expected))

    if not isinstance(item, dict):
        report("a blob's description must be a JSON object", "blobs", item)
        return None
    kind = item.get("type")
    if not isinstance(kind, str):
        report("the blob has no type", "type", kind, "a string")
        kind = ""
    numbers: dict[str, int] = {}
    for key in ("snapshot-id", "sequence-number", "offset", "length"):
        value: Any = item.get(key)
        if not _is_long(value):
            report("a required number is missing or not a whole number", key, value, "a long")
            value = -1
        numbers[key] = value
    offset, length = numbers["offset"], numbers["length"]
    placed = _is_long(item.get("offset")) and _is_long(item.get("length"))
    if placed and (offset < len(PUFFIN_MAGIC) or length < 0 or offset + length > end):
        report("the blob is outside the part of the file that holds blobs", "offset", (offset, length), f"4 to {end}")
    ids = item.get("fields")
    if not isinstance(ids, list) or not all(_is_long(i) and i in _INT for i in ids):
        report("the blob's fields are not a list of whole numbers", "fields", ids, "a list of ints")
        ids = [i for i in ids if _is_long(i) and i in _INT] if isinstance(ids, list) else []
    codec = item.get("compression-codec")
    if codec is not None and not (isinstance(codec, str) and codec in CODECS):
        report("unknown compression codec", "compression-codec", codec, " or ".join(CODECS))
        codec = codec if isinstance(codec, str) else _short(codec)
    if kind == DELETION_VECTOR and codec is not None:
        report("a deletion vector must not be compressed", "compression-codec", codec, "absent")
    properties = _strings(item.get("properties"), where, "properties", problems)
    if kind == DELETION_VECTOR:
        for key in ("referenced-data-file", "cardinality"):
            if key not in properties:
                report("a deletion vector must have this property", key, None, "a value")
    return PuffinBlob(
        ordinal, kind, tuple(ids), numbers["snapshot-id"], numbers["sequence-number"], offset, length, codec, properties
    )


def _strings(value: JsonValue, where: str, key: str, problems: list[Problem]) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        text = "properties must be a JSON object"
        problems.append(problem("puffin-blob-invalid", where, text, field=key, found=_short(value)))
        return {}
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in value.items()}


def _is_long(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _LONG


def _digits(text: str | None) -> int | None:
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 19:
        return None
    value = int(text)
    return value if value in _LONG else None


def _short(value: object) -> str | None:
    if value is None:
        return None
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
