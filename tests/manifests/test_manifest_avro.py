"""Avro headers, blocks and codecs, healthy and damaged."""

from __future__ import annotations

import bz2
import contextlib
import io
import lzma
import struct
from collections.abc import Callable
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.errors import FormatError, MemoryLimitError, UnsupportedError
from iceexplore.formats._avro import AvroHeader, Block, decompress_block, index_blocks, read_header

Written = Callable[..., bytes]
SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}
ROWS = [{"a": i, "b": f"value {i}"} for i in range(1000)]


@pytest.fixture(scope="module")
def written(make: Any) -> Callable[..., bytes]:
    def write(codec: str = "null") -> bytes:
        data: bytes = make("avro")(SCHEMA, ROWS, codec=codec, interval=500, format_version="2", x="ü")
        return data

    return write


def test_header_is_read_as_written(written: Written) -> None:
    data = written("deflate")
    header = read_header(data, "f")
    assert header.codec == "deflate"
    assert dict(header.metadata) == {"format-version": "2", "x": "ü"}
    assert [f["name"] for f in header.schema["fields"]] == ["a", "b"]
    assert data[header.end - 16 : header.end] == header.sync


def test_header_map_may_have_negative_counts() -> None:
    """ "Maps": a block with a negative count is followed by its size in bytes."""

    def text(value: bytes) -> bytes:
        return bytes([len(value) * 2]) + value

    pairs = text(b"avro.schema") + text(b'"int"'), text(b"k") + text(b"v")
    data = b"Obj\x01" + b"\x01" + bytes([len(pairs[0]) * 2]) + pairs[0] + b"\x01\x00" + pairs[1] + b"\x00" + bytes(16)
    header = read_header(data, "f")
    assert header.schema == "int"
    assert dict(header.metadata) == {"k": "v"}
    assert header.end == len(data)
    assert header.codec == "null"


def test_every_truncation_of_the_header_says_so(written: Written) -> None:
    data = written()
    end = read_header(data, "f").end
    for length in range(end):
        with pytest.raises(FormatError) as caught:
            read_header(data[:length], "f")
        assert caught.value.code == "file-truncated", length


def test_another_format_is_reported_with_its_first_bytes() -> None:
    with pytest.raises(FormatError, match="PAR1") as caught:
        read_header(b"PAR1" + bytes(100), "f")
    assert (caught.value.code, caught.value.location, caught.value.offset) == ("file-corrupt", "f", 0)


@pytest.mark.parametrize("length", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80\x80\x40"])
def test_a_length_from_the_file_allocates_nothing(length: bytes) -> None:
    with pytest.raises(FormatError):
        read_header(b"Obj\x01\x02" + length + b"avro.schema", "f")


def test_number_that_never_ends() -> None:
    with pytest.raises(FormatError, match="ten bytes"):
        read_header(b"Obj\x01" + b"\xff" * 100, "f")


def test_deeply_nested_schema_is_no_recursion_error() -> None:
    text = b"[" * 50_000
    out = bytearray(b"Obj\x01\x02\x16avro.schema")
    number = len(text) * 2
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    with pytest.raises(FormatError, match="is not JSON"):
        read_header(bytes(out) + text + b"\x00" + bytes(16), "f")


@given(st.binary(max_size=300))
def test_any_bytes_end_in_our_error(tail: bytes) -> None:
    for data in (tail, b"Obj\x01" + tail):
        with contextlib.suppress(FormatError):
            read_header(data, "f")


def test_index_lists_every_block(written: Written) -> None:
    data = written()
    index = index_blocks(data, read_header(data, "f"), "f")
    assert len(index.blocks) > 10
    assert index.rows == len(ROWS)
    assert index.faults == ()


def test_index_of_a_truncated_file_keeps_whole_blocks(written: Written) -> None:
    data = written()
    header = read_header(data, "f")
    whole = index_blocks(data, header, "f")
    cut = whole.blocks[5].start + 3
    index = index_blocks(data[:cut], header, "f")
    assert index.blocks == whole.blocks[:5]
    assert [f.code for f in index.faults] == ["file-truncated"]
    assert index.faults[0].offset == whole.blocks[4].stop + 16


def test_index_goes_on_behind_damage(written: Written) -> None:
    data = bytearray(written())
    header = read_header(bytes(data), "f")
    whole = index_blocks(bytes(data), header, "f")
    data[whole.blocks[3].stop + 4] ^= 0xFF  # in the sync marker after block 3
    index = index_blocks(bytes(data), header, "f")
    assert index.blocks == (*whole.blocks[:3], *whole.blocks[5:])  # block 4 begins where nobody knows
    assert len(index.faults) == 1


def test_a_count_that_its_bytes_cannot_hold_is_damage() -> None:
    header = AvroHeader(SCHEMA, "", "null", {}, b"s" * 16, 0)
    data = b"\xfe\xff\xff\xff\x0f" + b"\x04" + b"ab" + header.sync
    index = index_blocks(data, header, "f")
    assert index.blocks == ()
    assert "2147483647 records" in str(index.faults[0])


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"])
def test_codecs(written: Written, codec: str) -> None:
    data = written(codec)
    header = read_header(data, "f")
    index = index_blocks(data, header, "f")
    plain = b"".join(decompress_block(data, b, codec, "f") for b in index.blocks)
    stream = io.BytesIO(plain)
    assert [fastavro.schemaless_reader(stream, SCHEMA, None) for _ in ROWS] == ROWS
    assert stream.read() == b""


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard", "bzip2", "xz"])
@given(position=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_damaged_block_ends_in_our_error_or_bytes(written: Written, codec: str, position: float, flip: int) -> None:
    data = bytearray(written(codec))
    header = read_header(bytes(data), "f")
    block = index_blocks(bytes(data), header, "f").blocks[0]
    data[block.start + int(position * (block.stop - block.start))] ^= flip
    with contextlib.suppress(FormatError):
        decompress_block(bytes(data), block, codec, "f")


def test_snappy_checksum_is_checked(written: Written) -> None:
    data = bytearray(written("snappy"))
    header = read_header(bytes(data), "f")
    block = index_blocks(bytes(data), header, "f").blocks[0]
    data[block.stop - 1] ^= 1
    with pytest.raises(FormatError, match="CRC-32"):
        decompress_block(bytes(data), block, "snappy", "f")


@pytest.mark.parametrize(("codec", "pack"), [("bzip2", bz2.compress), ("xz", lzma.compress)])
def test_codecs_without_a_ratio_are_bounded(codec: str, pack: Any) -> None:
    most = 1 << 20
    body = pack(bytes(most))
    assert len(decompress_block(body, Block(1, 0, len(body)), codec, "f", most)) == most
    bomb = pack(bytes(most + 1))
    with pytest.raises(FormatError, match="decompresses to more than"):
        decompress_block(bomb, Block(1, 0, len(bomb)), codec, "f", most)
    with pytest.raises(FormatError, match=r"cut|does not decompress"):
        decompress_block(body, Block(1, 0, len(body) - 4), codec, "f", most)


class _Full:
    """A decompressor in a process that has no memory left."""

    def decompress(self, body: bytes, most: int) -> bytes:
        raise MemoryError("Unable to allocate output buffer.")


def test_memory_that_the_process_cannot_have_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    body = bytes(20)
    monkeypatch.setattr("iceexplore.formats._avro.zlib.decompressobj", lambda bits: _Full())
    with pytest.raises(MemoryLimitError, match=r"a block of 20 bytes decompresses to more memory.* in f"):
        decompress_block(body, Block(1, 0, len(body)), "deflate", "f")


def test_snappy_length_is_checked_before_it_is_allocated() -> None:
    body = b"\xff\xff\xff\x7f" + bytes(20) + struct.pack(">I", 0)
    with pytest.raises(FormatError, match="cannot hold"):
        decompress_block(body, Block(1, 0, len(body)), "snappy", "f")


def test_unknown_codec() -> None:
    with pytest.raises(UnsupportedError, match="lz9"):
        decompress_block(b"", Block(1, 0, 0), "lz9", "f")
