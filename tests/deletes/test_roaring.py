"""Roaring bitmaps: what is written reads back, golden files agree, and no lie gets past the checks."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyroaring import BitMap64

from iceexplore.deletes import MAX_KEY, MAX_POSITION, _roaring, encode_bitmap64, read_bitmap64
from iceexplore.errors import FormatError, OptionError

NO_RUNS = 12346
RUNS = 12347

positions = st.integers(0, MAX_POSITION) | st.integers(0, 1 << 17) | st.integers((1 << 32) - 5, (1 << 32) + 5)
ranges = st.tuples(st.integers(0, 1 << 34), st.integers(1, 70_000))


def bitmap32(containers: list[tuple[int, int, bytes]], *, offsets: list[int] | None = None) -> bytes:
    """A 32-bit bitmap without runs, by hand: (key, cardinality, bytes)."""
    head = struct.pack("<II", NO_RUNS, len(containers))
    head += b"".join(struct.pack("<HH", k, c - 1) for k, c, _ in containers)
    at = len(head) + 4 * len(containers)
    right = []
    for _, _, body in containers:
        right.append(at)
        at += len(body)
    return head + b"".join(struct.pack("<I", o) for o in offsets or right) + b"".join(b for _, _, b in containers)


def run32(key: int, cardinality: int, runs: list[tuple[int, int]]) -> bytes:
    body = struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", a, b) for a, b in runs)
    return struct.pack("<I", RUNS) + b"\x01" + struct.pack("<HH", key, cardinality - 1) + body


def vector(*bitmaps: tuple[int, bytes], count: int | None = None) -> bytes:
    head = struct.pack("<Q", len(bitmaps) if count is None else count)
    return head + b"".join(struct.pack("<I", key) + body for key, body in bitmaps)


def u16(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


@given(st.sets(positions, max_size=300), st.lists(ranges, max_size=3))
@example(set(range(0, 20_000, 2)), [])  # a bitmap container
@example(set(), [])
def test_round_trip(single: set[int], runs: list[tuple[int, int]]) -> None:
    bitmap = BitMap64(single)
    for start, length in runs:
        bitmap.add_range(start, start + length)
    before = bitmap.copy()
    data = encode_bitmap64(bitmap)
    assert read_bitmap64(data) == before
    assert bitmap == before  # encoding leaves the argument alone
    assert encode_bitmap64(read_bitmap64(data)) == data


def test_hand_made_containers() -> None:
    words = bytearray(8192)
    words[:625] = b"\xff" * 625
    data = vector((0, bitmap32([(0, 3, u16(1, 5, 9)), (2, 5000, bytes(words))])), (7, run32(1, 11, [(10, 9), (30, 0)])))
    expected = {1, 5, 9} | {(2 << 16) + i for i in range(5000)}
    expected |= {(7 << 32) + (1 << 16) + i for i in [*range(10, 20), 30]}
    assert set(read_bitmap64(data)) == expected


def test_empty_bitmaps_in_gaps_are_read() -> None:
    """Iceberg's Java writes one for every key that it skips."""
    data = vector((0, bitmap32([])), (1, bitmap32([(0, 1, u16(3))])))
    assert set(read_bitmap64(data)) == {(1 << 32) + 3}


ONE = bitmap32([(0, 1, u16(3))])
LIES = {
    "no count": (b"\x01\x00", "takes 8 bytes"),
    "more bitmaps than bytes": (vector((0, ONE), count=1 << 62), "bitmaps do not fit"),
    "one bitmap too many": (vector((0, bitmap32([(0, 8, u16(*range(8)))])), count=2), "end before"),
    "left over": (vector((0, ONE)) + b"\x00", "follow the last bitmap"),
    "key too high": (vector((MAX_KEY + 1, ONE)), "above"),
    "keys fall": (vector((1, ONE), (0, ONE)), "keys must ascend"),
    "keys repeat": (vector((1, ONE), (1, ONE)), "keys must ascend"),
    "cookie": (vector((0, struct.pack("<II", 99, 0))), "cookie"),
    "too many containers": (vector((0, struct.pack("<II", NO_RUNS, 65537))), "claims 65537 containers"),
    "containers past the end": (vector((0, struct.pack("<II", NO_RUNS, 60000))), "remain"),
    "container keys fall": (vector((0, bitmap32([(2, 1, u16(3)), (1, 1, u16(3))]))), "do not ascend"),
    "offset": (vector((0, bitmap32([(0, 1, u16(3))], offsets=[17]))), "its offset is"),
    "array falls": (vector((0, bitmap32([(0, 2, u16(5, 4))]))), "do not ascend"),
    "array repeats": (vector((0, bitmap32([(0, 2, u16(4, 4))]))), "do not ascend"),
    "array cut": (vector((0, bitmap32([(0, 4000, u16(4))]))), "remain"),
    "bitmap cut": (vector((0, bitmap32([(0, 5000, b"\xff" * 100)]))), "remain"),
    "bitmap cardinality": (vector((0, bitmap32([(0, 5000, bytes(8192))]))), "0 bits set"),
    "no runs": (vector((0, run32(0, 1, []))), "empty"),
    "runs overlap": (vector((0, run32(0, 6, [(0, 3), (2, 1)]))), "out of order"),
    "runs touch": (vector((0, run32(0, 4, [(0, 1), (2, 1)]))), "touching"),
    "run too long": (vector((0, run32(0, 9, [(65530, 8)]))), "too long"),
    "run cardinality": (vector((0, run32(0, 5, [(0, 3)]))), "4 values"),
    "runs past the end": (vector((0, run32(0, 5, [(0, 3)])[:-4])), "remain"),
}


@pytest.mark.parametrize("name", LIES)
def test_lies(name: str) -> None:
    data, message = LIES[name]
    with pytest.raises(FormatError, match=message) as caught:
        read_bitmap64(data, location="s3://b/x.puffin", offset=1000)
    assert caught.value.offset is not None
    assert 1000 <= caught.value.offset <= 1000 + len(data)
    assert "s3://b/x.puffin" in str(caught.value)


def test_the_highest_position() -> None:
    assert set(read_bitmap64(encode_bitmap64(BitMap64([MAX_POSITION])))) == {MAX_POSITION}
    with pytest.raises(OptionError, match="highest"):
        encode_bitmap64(BitMap64([MAX_POSITION + 1]))


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    try:
        found = read_bitmap64(data)
    except FormatError:
        return
    assert len(data) >= 8
    assert read_bitmap64(encode_bitmap64(found)) == found


GOOD = encode_bitmap64(BitMap64([*range(100), *range(70_000, 90_000, 3), *range(1 << 20, (1 << 20) + 5000), 1 << 40]))


@given(st.integers(0, len(GOOD) * 8 - 1), st.integers(0, len(GOOD)))
def test_flipped_and_cut(bit: int, end: int) -> None:
    changed = bytearray(GOOD)
    changed[bit // 8] ^= 1 << bit % 8
    for data in (bytes(changed), GOOD[:end]):
        try:
            found = read_bitmap64(data)
        except FormatError:
            continue
        assert read_bitmap64(encode_bitmap64(found)) == found  # whatever is accepted is a sound bitmap
    if end < len(GOOD):
        with pytest.raises(FormatError):
            read_bitmap64(GOOD[:end])


GOLDEN = {"64map32bitvals.bin": 10, "64mapempty.bin": 0, "64mapspreadvals.bin": 100}


@pytest.mark.corpus
def test_golden_bitmaps(corpus) -> None:
    folder = corpus / "apache-iceberg/core_resources/org/apache/iceberg/deletes"
    for name, cardinality in GOLDEN.items():
        data = (folder / name).read_bytes()
        found = read_bitmap64(data)
        assert len(found) == cardinality, name
        assert found.serialize() == data, name  # written without run-optimisation
    with pytest.raises(FormatError, match="above"):
        read_bitmap64((folder / "64maphighvals.bin").read_bytes())


def test_more_positions_than_any_file_has_rows_are_reported_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred megabytes of runs took five gigabytes and most of a minute."""
    assert _roaring._MOST_CONTAINERS << 16 > 17_000_000_000  # rows
    monkeypatch.setattr(_roaring, "_MOST_CONTAINERS", 4)
    full = BitMap64()
    full.add_range(0, 4 << 16)
    one = encode_bitmap64(full)[12:]
    assert len(read_bitmap64(vector((5, one)))) == 4 << 16
    for bitmaps, message in (
        ([one] * 2, "claims 524,288 positions between 0 and 4,295,229,439, in more than 4 containers"),
        ([one, one, bitmap32([(0, 3, u16(1, 2, 3)), (9, 1, u16(7))])], "claims 524,292 positions"),
        ([one, one, run32(4, 9, [(3, 9)])], "claims 524,297 positions between 0 and 8,590,262,271,"),
        ([one, one, one[:10]], "claims at least 524,288 positions"),
    ):
        with pytest.raises(FormatError, match=message):
            read_bitmap64(vector(*enumerate(bitmaps)))
