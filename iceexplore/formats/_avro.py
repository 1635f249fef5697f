"""Avro container files: header, blocks and codecs, read from untrusted bytes.

No library is used for this, because iceexplore needs details that libraries hide: the header as written (even if
fastavro refuses its schema because of an invalid null default), the offset of every block, and the blocks before and
after damage. Rules: Avro specification 1.11, "Object Container Files" and "Binary Encoding".
"""

from __future__ import annotations

import bz2
import json
import lzma
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iceexplore.errors import FormatError, MemoryLimitError, UnsupportedError
from iceexplore.storage import Budget, JsonValue, load_json

__all__ = [
    "AVRO_MAGIC",
    "AvroHeader",
    "Block",
    "BlockIndex",
    "block_bytes",
    "container",
    "decompress_block",
    "header_bytes",
    "index_blocks",
    "is_bare",
    "json_texts",
    "read_header",
]

AVRO_MAGIC = b"Obj\x01"

#: Maximum size in bytes of a decompressed block. Before compression, the blocks of common writers have about 64 kB, and
#: at most 2 MB; far larger ones are decompression bombs.
MAX_BLOCK_BYTES = 1 << 28
#: Maximum number of header entries of a file; real ones have about ten.
MAX_HEADER_ENTRIES = 10_000
#: Memory limit for the objects of a schema: enough for about 300,000 fields.
_MOST_SCHEMA = 1 << 28
#: Maximum number of blocks: a writer that starts a block for each entry writes a million into the largest manifests.
_MOST_BLOCKS = 2_000_000
#: Maximum number of damaged places in a file; after that many, the rest is not read.
_MOST_FAULTS = 100
#: Greatest expansion of a deflate stream (zlib's technical details); raw snappy expands far less.
_DEFLATE_RATIO = 1032
#: Memory limit of the xz decoder in bytes.
_XZ_MEMORY = 1 << 28
#: Codecs whose expansion has no upper limit; their output is limited only by `MAX_BLOCK_BYTES`.
_UNBOUNDED = frozenset(("zstandard", "bzip2", "xz"))


@dataclass(frozen=True)
class AvroHeader:
    """The header of a container file.

    Attributes
    ----------
    schema
        ``avro.schema``, parsed.
    schema_text
        ``avro.schema`` as written.
    codec
        ``avro.codec``; ``null`` where the key is absent.
    metadata
        The other keys with their values, as text (undecodable bytes are replaced).
    sync
        The 16-byte marker after every block.
    end
        Offset of the first block, in bytes.
    """

    schema: Any
    schema_text: str
    codec: str
    metadata: Mapping[str, str]
    sync: bytes
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """One block: ``count`` records in the (compressed) bytes from ``start`` to ``stop``."""

    count: int
    start: int
    stop: int


@dataclass(frozen=True)
class BlockIndex:
    """The blocks of a file, and the faults between them (empty for a healthy file)."""

    blocks: tuple[Block, ...]
    faults: tuple[FormatError, ...]

    @property
    def rows(self) -> int:
        """The number of records in all blocks."""
        return sum(b.count for b in self.blocks)


class _TruncatedError(Exception):
    """The data ends too early: inside a number, a byte string, a block or a sync marker."""


def _read_long(data: bytes, at: int) -> tuple[int, int]:
    """Read a zig-zag variable-length long at ``at``; return its value and the offset after it."""
    shift = value = 0
    while True:
        if at >= len(data):
            raise _TruncatedError
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise ValueError("a number has more than ten bytes")


def _write_long(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = _read_long(data, at)
    if length < 0:
        raise ValueError(f"negative length {length}")
    if length > len(data) - at:
        raise _TruncatedError
    return data[at : at + length], at + length


def _read_pairs(data: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    pairs: dict[bytes, bytes] = {}
    while True:
        count, at = _read_long(data, at)
        if count == 0:
            return pairs, at
        if count < 0:  # "Maps": a negative count is followed by the block's size in bytes
            count = -count
            _, at = _read_long(data, at)
        if len(pairs) + count > MAX_HEADER_ENTRIES:
            raise ValueError(f"{count} header entries")
        for _ in range(count):
            key, at = _read_bytes(data, at)
            pairs[key], at = _read_bytes(data, at)


def read_header(data: bytes, location: str) -> AvroHeader:
    """Read the header of an Avro container file.

    Raises
    ------
    FormatError
        The file has another format or a damaged header (code ``file-corrupt``), the header ends too early (code
        ``file-truncated``), or its schema is missing or not JSON.
    """
    if data[:4] != AVRO_MAGIC:
        raise FormatError(
            f"not an Avro file: it begins with {data[:4]!r}" if data else "the file is empty",
            location=location,
            offset=0,
            code="file-truncated" if AVRO_MAGIC.startswith(data) else "file-corrupt",
        )
    try:
        pairs, at = _read_pairs(data, 4)
        if len(data) - at < 16:
            raise _TruncatedError
    except _TruncatedError:
        text = f"the Avro header does not end within the file's {len(data)} bytes"
        raise FormatError(text, location=location, offset=4, code="file-truncated") from None
    except ValueError as error:
        raise FormatError(f"the Avro header is damaged: {error}", location=location, offset=4) from None
    if b"avro.schema" not in pairs:
        raise FormatError("the Avro header has no schema", location=location, offset=4, field="avro.schema")
    texts = {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in pairs.items()}
    schema_text = texts.pop("avro.schema")
    try:
        schema = load_json(schema_text, Budget(location, len(data), most=_MOST_SCHEMA), "the Avro schema")
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the Avro schema is not JSON: {error}", location=location, field="avro.schema") from None
    codec = texts.pop("avro.codec", "null") or "null"
    return AvroHeader(schema, schema_text, codec, texts, data[at : at + 16], at + 16)


def index_blocks(data: bytes, header: AvroHeader, location: str) -> BlockIndex:
    """Find the blocks without decoding them; after damage continue at the next sync marker.

    A block is listed if it is complete: its size fits the file and the sync marker follows. So the list never promises
    more bytes than the file has, nor (if the codec limits the expansion) more records than its bytes can hold. After
    100 faults or two million blocks the rest is not read: a file with damage every few bytes is beyond repair, and each
    fault and block takes memory.
    """
    blocks: list[Block] = []
    faults: list[FormatError] = []
    at, end, sync = header.end, len(data), header.sync
    while at < end:
        begin = at
        if len(faults) >= _MOST_FAULTS or len(blocks) >= _MOST_BLOCKS:
            what = f"{len(faults)} damaged places" if faults else f"{len(blocks):,} blocks"
            faults.append(FormatError(f"after {what}, the rest is not read", location=location, offset=begin))
            break
        try:
            count, at = _read_long(data, at)
            size, at = _read_long(data, at)
            if count < 0 or size < 0:
                raise ValueError(f"a block of {count} records in {size} bytes")
            if size > end - at - 16:
                # Either the file ends here, or the size is wrong: a later sync marker means the latter.
                if data.find(sync, at) < 0:
                    raise _TruncatedError
                raise ValueError(f"a block of {size} bytes, but only {end - at} remain")
            stop = at + size
            if data[stop : stop + 16] != sync:
                raise ValueError("no sync marker after a block")
            if count > size * (1 if header.codec == "null" else _DEFLATE_RATIO) and header.codec not in _UNBOUNDED:
                raise ValueError(f"{count} records in {size} bytes")
        except _TruncatedError:
            faults.append(
                FormatError("the file ends inside a block", location=location, offset=begin, code="file-truncated")
            )
            break
        except ValueError as error:
            faults.append(FormatError(f"damaged block: {error}", location=location, offset=begin))
            found = data.find(sync, begin)
            if found < 0:
                break
            at = found + 16
            continue
        if count:
            blocks.append(Block(count, at, stop))
        at = stop + 16
    return BlockIndex(tuple(blocks), tuple(faults))


def decompress_block(data: bytes, block: Block, codec: str, location: str, most: int = MAX_BLOCK_BYTES) -> bytes:
    """Return the decompressed bytes of a block, at most ``most``.

    Raises
    ------
    FormatError
        The bytes do not decompress, fail their checksum, or decompress to more than ``most``.
    UnsupportedError
        The codec is unknown.
    MemoryLimitError
        The process cannot allocate memory for the decompressed bytes.
    """
    import pyarrow as pa

    body = data[block.start : block.stop]
    try:
        if codec == "null":
            if len(body) > most:
                raise ValueError(f"it has more than {most >> 20} MiB")
            return body
        if codec == "deflate":
            inflater = zlib.decompressobj(-15)
            plain = inflater.decompress(body, most)
            if not inflater.eof:
                bomb = bool(inflater.unconsumed_tail)
                raise ValueError(f"it exceeds {most >> 20} MiB" if bomb else "the deflate stream is truncated")
            return plain
        if codec == "snappy":
            return _snappy(body, most)
        if codec in ("bzip2", "xz"):
            # lzma's own limit keeps a hostile dictionary size from being allocated.
            unpacker: Any = bz2.BZ2Decompressor() if codec == "bzip2" else lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
            plain = unpacker.decompress(body, most + 1)
            if len(plain) > most:
                raise ValueError(f"it decompresses to more than {most >> 20} MiB")
            if not unpacker.eof:
                raise ValueError(f"the {codec} stream is truncated")
            return bytes(plain)
        if codec == "zstandard":
            with pa.CompressedInputStream(pa.BufferReader(body), "zstd") as stream:
                plain = stream.read(most + 1)
            if len(plain) > most:
                raise ValueError(f"it decompresses to more than {most >> 20} MiB")
            return bytes(plain)
    except (ValueError, OSError, EOFError, lzma.LZMAError, zlib.error, _TruncatedError, struct.error) as error:
        raise FormatError(
            f"a block does not decompress ({codec}): {error}", location=location, offset=block.start
        ) from None
    except MemoryError:  # Arrow's memory error is a MemoryError, too
        text = f"a block of {len(body):,} bytes decompresses to more memory than the process can allocate"
        raise MemoryLimitError(f"{text} · in {location}") from None
    known = "null, deflate, snappy, zstandard, bzip2 and xz"
    raise UnsupportedError(f"Avro codec {codec!r} in {location}; supported: {known}")


def _snappy(body: bytes, most: int) -> bytes:
    """Decompress raw snappy, followed by a big-endian CRC-32 of the plain bytes ("Required Codecs", snappy)."""
    import pyarrow as pa

    if len(body) < 5:
        raise ValueError("too short")
    size = shift = at = 0
    while True:  # the stream begins with the plain size, an unsigned variable-length integer
        byte = body[at]
        size |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            break
        shift += 7
        if shift > 28 or at >= len(body):
            raise ValueError("its length is damaged")
    if size > most or size > 64 * len(body):  # no element of a snappy stream expands to more than 64 times its size
        raise ValueError(f"{len(body)} bytes cannot hold {size}")
    plain: bytes = pa.decompress(body[:-4], size, codec="snappy", asbytes=True)
    if zlib.crc32(plain) != struct.unpack(">I", body[-4:])[0]:
        raise ValueError("the CRC-32 is wrong")
    return plain


def is_bare(data: bytes, header: AvroHeader, index: BlockIndex) -> bool:
    """Return whether a file has only a header as `header_bytes` writes it, and blocks with only records.

    Readers skip everything else, so it may contain anything: a duplicate key in the header or its schema, blocks
    without records, bytes after a compressed stream. If this cannot be determined, the result is False.
    """
    try:
        pairs, _ = _read_pairs(data, 4)
        same = header_bytes(pairs, header.sync) == data[: header.end]
        same = same and set(pairs) <= {b"avro.schema", b"avro.codec", *(k.encode() for k in header.metadata)}
    except (ValueError, _TruncatedError):
        return False
    plain = json.loads(header.schema_text)
    if not same or header.schema_text not in json_texts(plain):
        return False
    at = header.end
    for block in index.blocks:
        head = _write_long(block.count) + _write_long(block.stop - block.start)
        if data[at : at + len(head)] != head or block.start != at + len(head):
            return False
        if header.codec == "deflate" and _beyond(data[block.start : block.stop]):
            return False
        at = block.stop + len(header.sync)
    # Accept only these two codecs. With others, a block may consist of several streams, and readers may skip some.
    return at == len(data) and header.codec in ("null", "deflate")


def _beyond(body: bytes) -> bool:
    inflater = zlib.decompressobj(-15)
    rest = body
    while not inflater.eof and rest:
        inflater.decompress(rest, 1 << 20)
        rest = inflater.unconsumed_tail
    return bool(inflater.unused_data) or not inflater.eof


def json_texts(value: JsonValue) -> tuple[str, ...]:
    """Return a JSON value in each way that common writers format it: with or without spaces, ASCII only or not."""
    return tuple(
        json.dumps(value, ensure_ascii=ascii_only, separators=separators)
        for separators in ((",", ":"), None)
        for ascii_only in (False, True)
    )


def header_bytes(pairs: Mapping[bytes, bytes], sync: bytes) -> bytes:
    """Return the header of a container file: magic, key-value metadata, sync marker."""
    head = bytearray(AVRO_MAGIC + _write_long(len(pairs)))
    for key, value in pairs.items():
        head += _write_long(len(key)) + key + _write_long(len(value)) + value
    return bytes(head + b"\x00" + sync)


def block_bytes(count: int, plain: bytes, codec: str, sync: bytes) -> bytes:
    """Return a block of a container file. Only the codecs ``null`` and ``deflate`` are supported."""
    body = plain
    if codec == "deflate":
        packer = zlib.compressobj(wbits=-15)
        body = packer.compress(plain) + packer.flush()
    return _write_long(count) + _write_long(len(body)) + body + sync


def container(schema: JsonValue, count: int, plain: list[bytes]) -> list[bytes]:
    """Return an uncompressed container file of one block, as parts to be concatenated."""
    sync = bytes(16)
    head = header_bytes({b"avro.schema": json.dumps(schema).encode(), b"avro.codec": b"null"}, sync)
    return [head + _write_long(count) + _write_long(sum(map(len, plain))), *plain, sync]
