"""The transform bucket: a hash modulo the number of buckets (spec, "Appendix B: 32-bit Hash Requirements")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from iceexplore.arrow import AnyArray, PlainValue, build
from iceexplore.errors import OptionError
from iceexplore.metadata.transforms._projection import Op, Projection, distinct
from iceexplore.metadata.transforms._transform import Transform, WidthTransform, base_in, whole_number
from iceexplore.metadata.types._parameters import decimal_parameters
from iceexplore.metadata.types._types import PrimitiveType, Type
from iceexplore.metadata.values._decimals import unscaled
from iceexplore.metadata.values._human import format_value
from iceexplore.metadata.values._stored_integers import by_unique, integers_of

__all__ = ["BucketTransform"]

_INT = PrimitiveType("int")
#: Types whose stored integer is hashed as a long (spec, "Appendix B"); for nanosecond types, the microseconds are
#: hashed.
_HASHED_AS_LONG = frozenset(("int", "long", "date", "time", "timestamp", "timestamptz"))
#: Types whose bytes are hashed as they are; for a string, these are its UTF-8 bytes.
_BYTES = frozenset(("string", "binary"))
_SOURCES = _HASHED_AS_LONG | {
    "binary", "decimal", "fixed", "string", "timestamp_ns", "timestamptz_ns", "uuid"
}  # fmt: skip


@dataclass(frozen=True)
class BucketTransform(WidthTransform):
    """The hash of a value, modulo the number of buckets."""

    name: ClassVar[str] = "bucket"
    width_name: ClassVar[str | None] = "count"
    takes_several: ClassVar[bool] = True

    def accepts(self, source: Type) -> bool:
        """Return whether the spec defines a hash for the type."""
        return base_in(source, _SOURCES)

    def result_type(self, source: Type | None) -> Type:
        """Return int."""
        return _INT

    def _apply(self, source: Type, values: AnyArray) -> AnyArray:
        if not self.width:
            return super()._apply(source, values)
        if base_in(source, _HASHED_AS_LONG):
            return build.array(_hashes(integers_of(values)) % self.width, mask=np.asarray(values.is_null()))
        temporal = pa.types.is_temporal(values.type)
        plain = build.array(integers_of(values), mask=np.asarray(values.is_null())) if temporal else values
        hashed = _hash_function(self.width, source)
        if hashed is None:
            raise OptionError(f"bucket of {source}: the spec defines no hash for this type")
        return by_unique(plain, hashed, pa.int32())

    def apply_several(self, sources: Sequence[Type], values: Sequence[AnyArray]) -> AnyArray:
        """Return the bucket of the columns' hashes, combined: h = 31 h + hash, where the hash of null is 0.

        Null where all columns are. Neither the spec nor the V4 proposal, which has ``bucket16(a, b)`` as an example,
        defines how hashes are combined: this is our choice, and another engine may put a row into a different bucket.
        """
        if len(values) == 1:
            return self.apply(sources[0], values[0])
        if not self.width:
            return super().apply_several(sources, values)
        combined = np.zeros(len(values[0]), np.uint32)
        null = np.ones(len(values[0]), np.bool_)
        for source, column in zip(sources, values, strict=True):
            hashed = BucketTransform(2**31 - 1).apply(source, column)
            combined = combined * np.uint32(31) + np.asarray(hashed.fill_null(0)).astype(np.uint32)
            null &= np.asarray(hashed.is_null())
        buckets = ((combined & np.uint32(0x7FFF_FFFF)) % np.uint32(self.width)).astype(np.int32)
        return build.array(buckets, mask=null)

    def scalar_function(self, source: Type) -> Callable[[Any], Any] | None:
        """Return the function from a value to its bucket; it hashes decimals at the column's scale."""
        if not self.width:
            return None
        parameters = decimal_parameters(source)
        if parameters is None:
            return _hash_function(self.width, source)
        scale, hashed = parameters[1], _hash_function(self.width, PrimitiveType("binary"))
        assert hashed is not None

        def of_decimal(value: Decimal) -> PlainValue:
            # The unscaled value's minimal bytes are hashed.
            number = unscaled(value, scale)
            bits = (number if number >= 0 else ~number).bit_length()
            return hashed(number.to_bytes(bits // 8 + 1, "big", signed=True))

        return of_decimal

    def _project(
        self, op: Op, literals: tuple[Any, ...], source: Type, apply: Callable[[Any], Any], *, strict: bool
    ) -> Projection | None:
        wanted = ("!=", "not-in") if strict else ("=", "in")
        return Projection(op, distinct(map(apply, literals)), _INT) if op in wanted else None

    def to_human_string(self, type_: Type, value: PlainValue) -> str:
        """Format the number of a bucket, whatever the type of the source."""
        return format_value(_INT, value)

    def parse_value(self, value: PlainValue) -> PlainValue:
        """Return a bucket number given by a user as an int; check that there is such a bucket."""
        number = whole_number(value)
        if not 0 <= number < self.width:
            raise ValueError(f"buckets are 0 to {self.width - 1}")
        return number

    def default_name(self, column: str) -> str:
        """Return ``<column>_bucket_<count>``."""
        return f"{column}_bucket_{self.width}"

    def refines(self, other: Transform, source: Type) -> bool:
        """Return True for a bucket transform whose number of buckets is a proper divisor of this one's."""
        return isinstance(other, BucketTransform) and 0 < other.width < self.width and self.width % other.width == 0


def _hashes(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the hashes of longs, without the sign bit: Murmur3 (x86, 32 bits, seed 0) of 8 little-endian bytes."""
    plain = numbers.astype(np.int64).view(np.uint64)
    found = np.zeros(len(plain), np.uint32)
    for part in (plain & np.uint64(0xFFFF_FFFF), plain >> np.uint64(32)):
        block = part.astype(np.uint32) * np.uint32(0xCC9E_2D51)
        block = ((block << np.uint32(15)) | (block >> np.uint32(17))) * np.uint32(0x1B87_3593)
        found ^= block
        found = ((found << np.uint32(13)) | (found >> np.uint32(19))) * np.uint32(5) + np.uint32(0xE654_6B64)
    found ^= np.uint32(8)
    found = (found ^ (found >> np.uint32(16))) * np.uint32(0x85EB_CA6B)
    found = (found ^ (found >> np.uint32(13))) * np.uint32(0xC2B2_AE35)
    found ^= found >> np.uint32(16)
    return (found & np.uint32(0x7FFF_FFFF)).astype(np.int64)


@lru_cache(maxsize=256)
def _hash_function(width: int, source: Type) -> Callable[[Any], int | None] | None:
    """Return the bucket function for single values (mostly PyIceberg's); dates and times are stored integers.

    None for a type for which the spec defines no hash.
    """
    if str(source) in _BYTES:  # frequent, and PyIceberg's module takes a quarter of a second to import
        from mmh3 import hash as murmur3

        return lambda value: None if value is None else (murmur3(value) & 0x7FFF_FFFF) % width
    from pyiceberg.transforms import BucketTransform as Theirs
    from pyiceberg.types import NestedField

    transform: Theirs[Any] = Theirs(width)
    try:
        field = {"id": 1, "name": "x", "required": False, "type": str(source)}
        found: Callable[[Any], int | None] = transform.transform(NestedField.model_validate(field).field_type)
    except ValueError:
        return None
    return found
