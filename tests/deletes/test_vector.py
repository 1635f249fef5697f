"""Deletion vectors: Java's golden files byte for byte, and every check of length, magic and CRC."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from iceexplore.deletes import bare_vector_problem, decode_deletion_vector, encode_deletion_vector, read_deletion_vector
from iceexplore.errors import FormatError
from iceexplore.storage import Storage

BLOB = encode_deletion_vector(BitMap64([1, 2, 3, 500, 70_000, 1 << 33]))


def sealed(body: bytes) -> bytes:
    """Any body with a right length and a right CRC."""
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


@given(st.sets(st.integers(0, 1 << 36), max_size=200))
def test_round_trip(positions: set[int]) -> None:
    blob = encode_deletion_vector(BitMap64(positions))
    assert set(decode_deletion_vector(blob)) == positions
    assert struct.unpack(">I", blob[:4])[0] == len(blob) - 8


@pytest.mark.parametrize(
    ("blob", "message", "at"),
    [
        (BLOB[:15], "at least 20 bytes", 0),
        (BLOB[:-1], "length field is", 0),
        (BLOB + b"\x00", "length field is", 0),
        (b"\xff\xff\xff\xff" + BLOB[4:], "length field is -1", 0),
        (BLOB[:4] + b"\xd1\xd3\x39\x65" + BLOB[8:], "magic is d1 d3 39 65", 4),
        (BLOB[:-4] + b"\x00\x00\x00\x00", "CRC-32", len(BLOB) - 4),
        (sealed(b"\xd1\xd3\x39\x64" + b"\xff" * 8), "bitmaps do not fit", 8),
    ],
)
def test_checks(blob: bytes, message: str, at: int) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        decode_deletion_vector(blob, "x.puffin", 100)
    assert caught.value.offset == 100 + at


@given(st.integers(0, len(BLOB) * 8 - 1))
def test_no_flipped_bit_goes_unseen(bit: int) -> None:
    changed = bytearray(BLOB)
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(FormatError):
        decode_deletion_vector(bytes(changed))


@given(st.binary(max_size=120))
def test_random_vectors_under_a_right_crc(vector: bytes) -> None:
    try:
        found = decode_deletion_vector(sealed(b"\xd1\xd3\x39\x64" + vector))
    except FormatError:
        return
    assert decode_deletion_vector(encode_deletion_vector(found)) == found


def test_claims_cost_no_memory() -> None:
    """Sixteen bytes that set 65,536 positions stay a few bytes, and a claim of 2**60 bitmaps is refused at once."""
    full = b"".join(
        struct.pack("<I", key) + struct.pack("<I", 12347) + b"\x01" + struct.pack("<HHHHH", 0, 65535, 1, 0, 65535)
        for key in range(1000)
    )
    tracemalloc.start()
    try:
        found = decode_deletion_vector(sealed(b"\xd1\xd3\x39\x64" + struct.pack("<Q", 1000) + full))
        with pytest.raises(FormatError):
            decode_deletion_vector(sealed(b"\xd1\xd3\x39\x64" + struct.pack("<Q", 1 << 60) + full))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == 65_536_000
    assert peak < 2_000_000


def test_only_the_vector_is_read(tmp_path: Path) -> None:
    path = tmp_path / "many.puffin"
    path.write_bytes(b"PFA1" + b"x" * 100_000 + BLOB + b"y" * 100_000)
    storage = Storage(str(tmp_path))
    assert len(read_deletion_vector(storage, str(path), 100_004, len(BLOB))) == 6
    assert [(r.kind, r.offset, r.length) for r in storage.reads] == [("puffin", 100_004, len(BLOB))]


@pytest.mark.parametrize(
    ("offset", "size"), [(-1, 20), (0, -5), (0, 1 << 31), (0, 1_500_000_000), (50, 100), (10**12, 20)]
)
def test_ranges_that_are_not_there(tmp_path: Path, offset: int, size: int) -> None:
    path = tmp_path / "x.puffin"
    path.write_bytes(b"PFA1" + BLOB)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError):
            read_deletion_vector(Storage(str(tmp_path)), str(path), offset, size)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_bare_vectors_are_reported() -> None:
    found = bare_vector_problem("x.puffin", 0)
    assert found is not None
    assert found.code == "puffin-bare-vector"
    assert bare_vector_problem("x.puffin", 4) is None


@pytest.mark.corpus
def test_golden_vectors(corpus: Path) -> None:
    expected = {
        "empty-position-index.bin": set(),
        "small-alternating-values-position-index.bin": {1, 3, 5, 7, 9},
        "small-and-large-values-position-index.bin": {100, 101, 2147483747, 2147483748},
    }
    folder = corpus / "apache-iceberg/core_resources/org/apache/iceberg/deletes"
    files = sorted(folder.glob("*-position-index.bin"))
    assert len(files) == 4
    for file in files:
        blob = file.read_bytes()
        found = decode_deletion_vector(blob)
        assert encode_deletion_vector(found) == blob, file.name
        if file.name in expected:
            assert set(found) == expected[file.name], file.name
    # TestBitmapPositionDeleteIndex.testAllContainerTypes: an array, a bitmap and runs, under two keys
    assert len(decode_deletion_vector((folder / "all-container-types-position-index.bin").read_bytes())) == 132_561


@pytest.mark.corpus
def test_legacy_bare_vector(corpus: Path) -> None:
    folder = corpus / "duckdb/legacy_bare_deletion_vector"
    (path,) = folder.rglob("legacy-bare-deletion-vector.puffin")
    found = read_deletion_vector(Storage(str(folder)), str(path), 0, path.stat().st_size)
    assert len(found) == 1
