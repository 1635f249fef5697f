"""Puffin footers: only the end is read, compressed or not, and no size in them is believed."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iceexplore.deletes import THETA_SKETCH, read_puffin_blob, read_puffin_footer, theta_ndv
from iceexplore.errors import FormatError, IceexploreError, UnsupportedError
from iceexplore.storage import Storage


def lz4(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="lz4", asbytes=True))


def blob(offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {
        "type": "x",
        "fields": [1],
        "snapshot-id": 2,
        "sequence-number": 3,
        "offset": offset,
        "length": length,
        **more,
    }


def puffin(bodies: bytes = b"", footer: Any = None, *, compress: bool = False, flags: bytes | None = None) -> bytes:
    payload = footer if isinstance(footer, bytes) else json.dumps(footer or {"blobs": []}).encode()
    if compress:
        payload = lz4(payload)
    mask = flags if flags is not None else bytes([compress, 0, 0, 0])
    return b"PFA1" + bodies + b"PFA1" + payload + struct.pack("<i", len(payload)) + mask + b"PFA1"


def write(folder: Path, data: bytes) -> tuple[Storage, str]:
    path = folder / "f.puffin"
    path.write_bytes(data)
    return Storage(str(folder)), str(path)


@pytest.mark.parametrize("compress", [False, True])
def test_blobs_of_every_codec(tmp_path: Path, compress: bool) -> None:
    plain = b"some bytes " * 50
    parts = [plain, lz4(plain), bytes(pa.compress(plain, codec="zstd", asbytes=True))]
    at, blobs = 4, []
    for part, codec in zip(parts, [None, "lz4", "zstd"], strict=True):
        more = {"compression-codec": codec} if codec else {}
        blobs.append(blob(at, len(part), properties={"ndv": "42"}, **more))
        at += len(part)
    data = puffin(b"".join(parts), {"blobs": blobs, "properties": {"created-by": "me"}}, compress=compress)
    storage, location = write(tmp_path, data)
    file = read_puffin_footer(storage, location)
    assert file.problems == ()
    assert file.footer_compressed is compress
    assert file.footer_size == len(data) - at
    assert file.properties == {"created-by": "me"}
    assert [b.ndv for b in file.blobs] == [42, 42, 42]
    assert [read_puffin_blob(storage, location, b) for b in file.blobs] == [plain] * 3


def test_only_the_footer_is_read(tmp_path: Path) -> None:
    bodies = bytes(1_000_000)
    storage, location = write(tmp_path, puffin(bodies, {"blobs": [blob(4, len(bodies))]}))
    file = read_puffin_footer(storage, location)
    assert len(file.blobs) == 1
    read = [(r.offset, r.length) for r in storage.reads if r.kind == "puffin"]
    assert sum(length for _, length in read) <= 8192 + 4
    assert {r.kind for r in storage.reads} <= {"puffin", "stat"}


def test_a_large_footer_is_read_whole(tmp_path: Path) -> None:
    many = [blob(4, 1, properties={"referenced-data-file": f"s3://b/{i}", "cardinality": "1"}) for i in range(500)]
    storage, location = write(tmp_path, puffin(b"x" * 100_000, {"blobs": many}))
    assert len(read_puffin_footer(storage, location).blobs) == 500
    assert min(r.offset for r in storage.reads if r.kind == "puffin" and r.length > 4) > 100_000


def test_a_wrong_size_is_named(tmp_path: Path) -> None:
    data = puffin()
    storage, location = write(tmp_path, data)
    assert read_puffin_footer(storage, location, len(data)).blobs == ()
    for wrong in (len(data) - 1, len(data) + 100):
        with pytest.raises(FormatError, match=f"the file has {len(data)} bytes, not {wrong}"):
            read_puffin_footer(storage, location, wrong)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "at least"),
        (b"PFA1" * 4, "at least"),
        (b"XXXX" + puffin()[4:], "not a Puffin file"),
        (puffin()[:-1] + b"2", "it ends with"),
        (puffin(footer=b"{}")[:-12] + struct.pack("<i", -1) + bytes(4) + b"PFA1", "-1 bytes"),
        (puffin(footer=b"{}")[:-12] + struct.pack("<i", 1 << 30) + bytes(4) + b"PFA1", "1073741824 bytes"),
        (puffin(footer=b'{"blobs": []}')[:-12] + struct.pack("<i", 5) + bytes(4) + b"PFA1", "its size is wrong"),
        (puffin(flags=b"\x02\x00\x00\x00"), "unknown footer flags"),
        (puffin(flags=b"\x00\x00\x01\x00"), "unknown footer flags"),
        (puffin(flags=b"\x01\x00\x00\x00"), "does not decompress"),
        (puffin(footer=b"\xff\xfe"), "is not JSON"),
        (puffin(footer=b"[" * 100_000), "is not JSON"),
        (puffin(footer=b"[]"), "no list of blobs"),
        (puffin(footer=b'{"blobs": {}}'), "no list of blobs"),
        (puffin(footer=b'{"blobs": ' + b"9" * 5000 + b"}"), "is not JSON"),
    ],
)
def test_damaged_footers(tmp_path: Path, data: bytes, message: str) -> None:
    storage, location = write(tmp_path, data)
    with pytest.raises(FormatError, match=message):
        read_puffin_footer(storage, location)


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (7, "blobs"),
        ({**blob(4, 1), "type": None}, "type"),
        ({**blob(4, 1), "offset": "4"}, "offset"),
        ({**blob(4, 1), "snapshot-id": True}, "snapshot-id"),
        ({**blob(4, 1), "sequence-number": 1 << 70}, "sequence-number"),
        ({**blob(4, 1), "fields": [1 << 40]}, "fields"),
        ({**blob(4, 1), "fields": "1"}, "fields"),
        (blob(0, 1), "offset"),
        (blob(4, 1000), "offset"),
        (blob(4, -1), "offset"),
        (blob(4, 1, **{"compression-codec": "gzip"}), "compression-codec"),
        (blob(4, 1, properties=[]), "properties"),
        (blob(4, 1, **{"compression-codec": []}), "compression-codec"),
        (blob(4, 1, **{"compression-codec": {}}), "compression-codec"),
        (blob(4, 1, **{"compression-codec": [[1]]}), "compression-codec"),
        (blob(4, 1, **{"compression-codec": 7}), "compression-codec"),
        (blob(4, 1, type="deletion-vector-v1", properties={"cardinality": "1"}), "referenced-data-file"),
    ],
)
def test_a_wrong_blob_is_a_problem_and_the_rest_is_shown(tmp_path: Path, item: Any, field: str) -> None:
    storage, location = write(tmp_path, puffin(b"ab", {"blobs": [item, blob(5, 1)]}))
    file = read_puffin_footer(storage, location)
    assert [p.field for p in file.problems] == [field]
    assert file.problems[0].code == "puffin-blob-invalid"
    assert file.blobs[-1].offset == 5
    assert file.blobs[-1].ordinal == 1


def test_bombs_are_stopped(tmp_path: Path) -> None:
    bomb = bytes(pa.compress(bytes(64 << 20), codec="zstd", asbytes=True))
    footer = {"blobs": [blob(4, len(bomb), **{"compression-codec": "zstd"})]}
    storage, location = write(tmp_path, puffin(bomb, footer))
    (found,) = read_puffin_footer(storage, location).blobs
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="decompress to more than"):
            read_puffin_blob(storage, location, found, limit=1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert pool.bytes_allocated() - before < 8 << 20


def test_unknown_codec(tmp_path: Path) -> None:
    storage, location = write(tmp_path, puffin(b"ab", {"blobs": [blob(4, 1, **{"compression-codec": "gzip"})]}))
    (found,) = read_puffin_footer(storage, location).blobs
    with pytest.raises(UnsupportedError, match="gzip"):
        read_puffin_blob(storage, location, found)


def test_ndv_that_no_long_holds(tmp_path: Path) -> None:
    values = ["12", "9223372036854775807", "9223372036854775808", "-1", " 1", "1.0", "١", "9" * 5000]
    blobs = [blob(4, 1, properties={"ndv": v}) for v in values]
    storage, location = write(tmp_path, puffin(b"ab", {"blobs": blobs}))
    assert [b.ndv for b in read_puffin_footer(storage, location).blobs] == [12, (1 << 63) - 1, *[None] * 6]


GOOD = puffin(b"abcdef", {"blobs": [blob(4, 3), blob(7, 3)], "properties": {"k": "v"}}, compress=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=100)
    | st.integers(0, len(GOOD)).map(lambda n: GOOD[:n])
    | st.binary(max_size=80).map(lambda b: puffin(footer=b))
    | st.binary(max_size=80).map(lambda b: puffin(footer=b, flags=b"\x01\x00\x00\x00"))
)
def test_random_files(tmp_path: Path, data: bytes) -> None:
    storage, location = write(tmp_path, data)
    try:
        read_puffin_footer(storage, location)
    except IceexploreError:
        return


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(GOOD) * 8 - 1))
def test_flipped_bits(tmp_path: Path, bit: int) -> None:
    changed = bytearray(GOOD)
    changed[bit // 8] ^= 1 << bit % 8
    storage, location = write(tmp_path, bytes(changed))
    try:
        file = read_puffin_footer(storage, location)
        for b in file.blobs:
            read_puffin_blob(storage, location, b)
    except IceexploreError:
        return


def sketch(preamble: int, flags: int, *rest: bytes, version: int = 3, family: int = 3) -> bytes:
    return bytes([preamble, version, family, 0, 0, flags, 0x93, 0xCC]) + b"".join(rest)


def test_theta() -> None:
    assert theta_ndv(sketch(1, 0b11110)) == 0
    assert theta_ndv(sketch(1, 0b111010, bytes(8))) == 1
    assert theta_ndv(sketch(2, 0b11010, struct.pack("<if", 3, 1.0), bytes(24))) == 3
    half = struct.pack("<ifq", 4, 1.0, (1 << 63) // 2)
    assert theta_ndv(sketch(3, 0b11010, half, bytes(32))) == pytest.approx(8)
    assert theta_ndv(sketch(3, 0, half, bytes(32), version=9)) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01\x03\x03",
        sketch(1, 0, family=5),
        sketch(3, 0, bytes(8)),
        sketch(2, 0, struct.pack("<if", 1 << 30, 1.0)),
        sketch(1, 0),
        sketch(3, 0, struct.pack("<ifq", 1, 1.0, -5), bytes(8)),
        sketch(9, 0, bytes(100)),
    ],
)
def test_theta_lies(data: bytes) -> None:
    with pytest.raises(FormatError):
        theta_ndv(data)


@given(st.binary(max_size=64))
def test_theta_random(data: bytes) -> None:
    try:
        found = theta_ndv(data)
    except FormatError:
        return
    assert found is None or found >= 0


@pytest.mark.corpus
def test_golden_puffin(corpus: Path) -> None:
    folder = corpus / "apache-iceberg/core_resources/org/apache/iceberg/puffin/v1"
    storage = Storage(str(folder))
    assert read_puffin_footer(storage, str(folder / "empty-puffin-uncompressed.bin")).blobs == ()
    for name, codec in (("uncompressed", None), ("compressed-zstd", "zstd")):
        location = str(folder / f"sample-metric-data-{name}.bin")
        file = read_puffin_footer(storage, location)
        assert file.properties == {"created-by": "Test 1234"}
        assert [(b.type, b.fields, b.snapshot_id, b.sequence_number) for b in file.blobs] == [
            ("some-blob", (1,), 2, 1),
            ("some-other-blob", (2,), 2, 1),
        ]
        assert {b.compression_codec for b in file.blobs} == {codec}
        assert [read_puffin_blob(storage, location, b) for b in file.blobs] == [
            b"abcdefghi",
            "some blob \x00 binary data 🤯 that is not very very very very very very long, is it?".encode(),
        ]


@pytest.mark.corpus
def test_every_real_sketch_estimates_its_ndv(corpus: Path) -> None:
    """Trino wrote both the sketch and the property: the estimate, cut to a whole number, is the property."""
    compared = 0
    storage = Storage(str(corpus))
    for path in sorted((corpus / "trino").rglob("*.stats")):
        file = read_puffin_footer(storage, str(path))
        assert file.problems == ()
        for b in file.blobs:
            if b.type == THETA_SKETCH and b.ndv is not None:
                estimate = theta_ndv(read_puffin_blob(storage, str(path), b))
                assert estimate is not None
                assert int(estimate) == b.ndv, (path.name, b.fields)
                compared += 1
    assert compared > 100


@pytest.mark.corpus
def test_footer_sizes_are_those_of_table_metadata(corpus: Path) -> None:
    compared = 0
    for path in sorted((corpus / "trino").rglob("*.metadata.json")):
        for item in json.loads(path.read_text()).get("statistics", []):
            file = path.parent / item["statistics-path"].rpartition("/")[2]
            if file.exists():
                found = read_puffin_footer(Storage(str(path.parent)), str(file), item["file-size-in-bytes"])
                assert found.footer_size == item["file-footer-size-in-bytes"]
                compared += 1
    assert compared
