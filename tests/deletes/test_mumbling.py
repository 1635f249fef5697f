"""Mumbling bitmaps: the specification's examples, round trips, and damage."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from pyroaring import BitMap

from iceexplore.deletes import MUMBLING_POSITIONS, decode_mumbling, encode_bitmap32, encode_mumbling, read_bitmap32
from iceexplore.errors import FormatError, OptionError


def _every(first: int, count: int, step: int) -> set[int]:
    return set(range(first, first + count * step, step))


# Positions that lie close together and far apart: sparse, dense and empty containers.
POSITIONS = st.one_of(
    st.sets(st.integers(0, 600), max_size=500),
    st.sets(st.integers(0, MUMBLING_POSITIONS - 1), max_size=60),
    st.builds(_every, st.integers(0, 9000), st.integers(0, 900), st.integers(1, 9)),
)


def of(cardinality: int, descriptors: str, containers: str, count: int) -> bytes:
    head = b"\x01" + cardinality.to_bytes(3, "little") + count.to_bytes(2, "little")
    return head + bytes.fromhex(descriptors) + bytes.fromhex(containers)


# Specification, "Sparse containers", "Dense containers", "Encoding" (Appendix A): the tables of examples.
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (of(0, "", "", 0), []),
        (of(0, "000000", "", 256), []),
        (of(3, "000003", "0022FF", 1), [0, 34, 255]),
        (of(31, "00001F", bytes(range(31)).hex(), 1), list(range(31))),
        (of(32, "000020", "FFFFFFFF" + "00" * 28, 1), list(range(32))),
        (of(33, "000020", "FFFFFFFF80" + "00" * 27, 1), list(range(33))),
        (of(32, "000020", "FFFF" + "00" * 28 + "FFFF", 1), [*range(16), *range(240, 256)]),
        (of(128, "000020", "AA" * 32, 1), list(range(0, 256, 2))),
        (of(32, "000025", "FFFFFFFF" + "00" * 28, 1), list(range(32))),  # other bits of a dense descriptor: ignored
        # [6, 7, 8] with 2 bits each: three sparse containers
        (of(21, "02000618", bytes(range(6)).hex() + bytes(range(7)).hex() + bytes(range(8)).hex(), 3),
         [*range(6), *range(256, 263), *range(512, 520)]),
        # [6, 34, 8, 7] with an exception (a dense one)
        (of(53, "3201060901E0", bytes(range(6)).hex() + "FFFFFFFF" + "00" * 28 + bytes(range(8)).hex()
            + bytes(range(7)).hex(), 4),
         [*range(6), *range(256, 288), *range(512, 520), *range(768, 775)]),
    ],
)  # fmt: skip
def test_the_examples_of_the_specification(data: bytes, expected: list[int]) -> None:
    assert list(decode_mumbling(data)) == expected


def test_what_is_written_is_what_the_specification_says() -> None:
    assert encode_mumbling(BitMap()) == of(0, "", "", 0)
    assert encode_mumbling(BitMap([0, 34, 255])) == of(3, "000003", "0022FF", 1)
    assert encode_mumbling(BitMap(range(0, 256, 2))) == of(128, "000020", "AA" * 32, 1)
    assert encode_mumbling(BitMap([*range(6), *range(256, 263), *range(512, 520)]))[6:10].hex() == "02000618"


@given(POSITIONS)
@example(set(range(0, MUMBLING_POSITIONS, 256)))
@example(set(range(70_000)))
def test_round_trip(positions: set[int]) -> None:
    bitmap = BitMap(positions)
    assert decode_mumbling(encode_mumbling(bitmap)) == bitmap
    assert read_bitmap32(encode_bitmap32(bitmap)) == bitmap


@given(POSITIONS, st.data())
def test_changed_bytes_raise_our_errors_or_give_another_bitmap(positions: set[int], data: st.DataObject) -> None:
    for encode, decode in ((encode_mumbling, decode_mumbling), (encode_bitmap32, read_bitmap32)):
        good = encode(BitMap(positions))
        bad = bytearray(good)
        for _ in range(data.draw(st.integers(1, 3))):
            bad[data.draw(st.integers(0, len(bad) - 1))] ^= data.draw(st.integers(1, 255))
        cut = data.draw(st.integers(0, len(bad)))
        for damaged in (bytes(bad), bytes(bad[:cut]), good + bytes(bad[:cut])):
            try:
                found = decode(damaged)
            except FormatError:
                continue
            assert len(found) <= max(MUMBLING_POSITIONS, 1 << 32)


@given(POSITIONS)
def test_the_two_forms_are_never_mistaken_for_each_other(positions: set[int]) -> None:
    with pytest.raises(FormatError):
        read_bitmap32(encode_mumbling(BitMap(positions)))
    with pytest.raises(FormatError):
        decode_mumbling(encode_bitmap32(BitMap(positions)))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x01\x00", "header"),
        (b"\x02" + bytes(5), "version 2"),
        (of(0, "", "", 8193), "8193 containers"),
        (of(0, "", "", 8192), "descriptor array"),
        (of(1, "000040", "", 1), "reserved"),
        (of(1, "990000", "", 1), "bit widths"),
        (of(1, "000200", "00", 1), "exceptions"),
        (of(2, "000002", "0505", 1), "ascend"),
        (of(9, "000002", "0506", 1), "cardinality"),
        (of(2, "000002", "050607", 1), "3 remain"),
        (of(2, "000002", "05", 1), "1 remain"),
        (of(1, "800100" + "05" + "01", "05", 1), "outside its chunk"),
        (of(0, "0800FF01", "", 1), "larger than a byte"),
    ],
)
def test_false_claims(data: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        decode_mumbling(data, location="here")


def test_a_position_too_high_is_refused() -> None:
    with pytest.raises(OptionError, match="2097151"):
        encode_mumbling(BitMap([MUMBLING_POSITIONS]))
