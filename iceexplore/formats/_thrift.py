"""Parse structs of Thrift's compact protocol, as in Parquet footers, page headers and Bloom filters.

Source: Apache Thrift, "Thrift Compact protocol encoding".
"""

from __future__ import annotations

from typing import Any, TypeAlias

from iceexplore.errors import FormatError

__all__ = ["ThriftStruct", "read_struct"]

#: Values by field number: int, bool, a struct or a list of structs; other types are skipped (None).
ThriftStruct: TypeAlias = dict[int, Any]
#: A value of any wire type: bool, int, bytes, a list of values, or a `ThriftStruct`.
ThriftValue: TypeAlias = Any

_MAX_DEPTH = 8
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


def read_struct(
    data: bytes | memoryview, *, what: str = "a struct", location: str | None = None, offset: int = 0
) -> tuple[ThriftStruct, int]:
    """Return the struct at the start of ``data``, and its size in bytes.

    Parameters
    ----------
    what
        The struct's name, for errors.
    location, offset
        The file and the byte at which ``data`` begins, for errors.

    Raises
    ------
    FormatError
        The struct is truncated, nested too deeply, or invalid.
    """
    reader = _Reader(data, what, location, offset)
    try:
        return reader.struct(0), reader.at
    except IndexError:
        raise reader.truncated() from None


class _Reader:
    def __init__(self, data: bytes | memoryview, what: str, location: str | None, offset: int) -> None:
        self.data, self.what, self.location, self.offset = data, what, location, offset
        self.at, self.end = 0, len(data)

    def fail(self, what: str) -> FormatError:
        return FormatError(what, location=self.location, offset=self.offset + self.at, field=self.what)

    def skip(self, count: int) -> None:
        if not 0 <= count <= self.end - self.at:
            raise self.fail(f"a Thrift value of {count:,} bytes, but {self.end - self.at:,} remain")
        self.at += count

    def truncated(self) -> FormatError:
        self.at = self.end
        return self.fail("a Thrift value of 1 bytes, but 0 remain")

    # The following methods are written for speed, because they read the tens of thousands of bytes of a footer: they
    # read without comparing with the end (`read_struct` catches the IndexError), and short numbers and texts without a
    # call.

    def byte(self) -> int:
        at = self.at
        self.at = at + 1
        return self.data[at]

    def varint(self) -> int:
        data, at, value = self.data, self.at, 0
        for shift in range(0, 70, 7):
            byte = data[at]
            at += 1
            if byte < 0x80:
                self.at = at
                return value | byte << shift
            value |= (byte & 0x7F) << shift
        self.at = at
        raise self.fail("a Thrift number has more than 10 bytes")

    def number(self) -> int:
        zigzag = self.varint()
        return zigzag >> 1 ^ -(zigzag & 1)

    def struct(self, depth: int) -> ThriftStruct:
        if depth > _MAX_DEPTH:
            raise self.fail("Thrift structs are nested too deeply")
        out: ThriftStruct = {}
        data, at, field = self.data, self.at, 0
        while head := data[at]:
            at += 1
            kind = head & 15
            if head >> 4:
                field += head >> 4
                short = data[at]
                if short < 0x80 and 4 <= kind <= 6:  # a number of one byte
                    out[field] = short >> 1 ^ -(short & 1)
                    at += 1
                    continue
                if kind == 8 and short < 0x80 and at + short < self.end:  # a short text, which is skipped
                    out[field] = None
                    at += 1 + short
                    continue
                self.at = at
            else:
                self.at = at
                field = self.number()
            out[field] = self.value(kind, depth)
            at = self.at
        self.at = at + 1
        return out

    def value(self, kind: int, depth: int) -> ThriftValue:
        match kind:  # the most frequent ones first
            case 4 | 5 | 6:
                return self.number()
            case 8:
                return self.skip(self.varint())
            case 12:
                return self.struct(depth + 1)
            case 9 | 10:
                return self.elements(depth + 1)
            case 1 | 2:  # a boolean field has no bytes: its type is true or false (`elements` skips lists of booleans)
                return kind == _TRUE
            case 3:
                return self.byte()
            case 7:
                return self.skip(8)
        raise self.fail(f"unknown Thrift type {kind}")

    def elements(self, depth: int) -> list[ThriftStruct] | None:
        head = self.byte()
        count = self.varint() if head >> 4 == 15 else head >> 4
        if count > self.end - self.at or depth > _MAX_DEPTH:
            raise self.fail(f"a Thrift list of {count:,} elements, but {self.end - self.at:,} bytes remain")
        if head & 15 == _STRUCT:
            return [self.struct(depth) for _ in range(count)]
        data, at, kind = self.data, self.at, head & 15
        for _ in range(count):
            short = data[at]
            if short < 0x80 and 4 <= kind <= 6:
                at += 1
            elif short < 0x80 and kind == 8 and at + short < self.end:
                at += 1 + short
            else:
                self.at = at
                if kind in (_TRUE, _FALSE):
                    self.skip(1)
                else:
                    self.value(kind, depth)
                at = self.at
        self.at = at
        return None
