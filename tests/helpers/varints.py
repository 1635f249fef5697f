"""Variable-length integers, as Thrift, Protocol Buffers and Avro encode them."""

from __future__ import annotations

__all__ = ["varint", "zigzag"]


def varint(number: int) -> bytes:
    """An unsigned number, seven bits a byte, the lowest first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def zigzag(number: int) -> bytes:
    """A signed number of 64 bits."""
    return varint(number << 1 ^ number >> 63)
