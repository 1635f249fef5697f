"""Map the values of a column to a number line, to estimate how many files a filter would read.

The numbers are not used for pruning, because they are not exact: different values may have the same number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from iceexplore.arrow import AnyArray, PlainValue, Strings, build
from iceexplore.arrow import compute as pc
from iceexplore.planning.evaluators._column_metrics import comparable

__all__ = ["Axis", "Floats", "cut_length"]

Floats: TypeAlias = npt.NDArray[np.float64]

#: Maximum number of bits of the integers to which strings and binary values are mapped, to estimate how many files a
#: scan with a filter would read. The integers are stored as floats, which represent integers of up to 53 bits exactly.
_BITS = 50
#: Classes of characters: digits, capital letters and small letters. Bounds contain only some of the characters that a
#: column's values contain. So if two characters of a class occur in bounds, values are assumed to contain all
#: characters between them, too. For example, if ``0`` and ``4`` are the only digits in bounds, values are assumed to
#: contain ``1``, ``2`` and ``3`` as well.
_CLASSES = (b"0123456789", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
#: Number of bytes of each bound, after the prefix that all bounds of a column share, that are examined to find out
#: which bytes occur in the column. 64 is more than enough: a bound is mapped to a number of at most `_BITS` (50) bits.
#: Each byte is one digit of it, and a digit takes at least one bit, so at most the first 50 bytes contribute.
_LOOKED_AT = 64
#: If all lower bounds of a string column have fewer characters than this, they are assumed not to be truncated, because
#: writers hardly ever truncate to so few (the default of ``write.metadata.metrics.default`` is ``truncate(16)``).
_SHORTEST_CUT = 4


@dataclass(frozen=True)
class Axis:
    """An order-preserving mapping of one column's values to numbers (floats).

    A numeric value is represented by itself. A date or time is represented by the integer with which Iceberg stores it,
    such as days since 1970. A string or binary value is represented by a number that has one digit for each byte. For
    example, suppose that all bounds of a column are strings from ``user-00`` to ``user-99``. Their common prefix
    ``user-`` is left out. The bytes ``0`` to ``9`` have the digits 1 to 10. The digit 0 fills the places after the end
    of a string, and the digit 11 represents any byte above ``9``. So the base of the number system is 12, and
    ``user-42`` has the digits 5, 3, 0, 0, and so on.

    Attributes
    ----------
    step
        Distance between adjacent values: 1 for integers, dates and times; one unit of the last digit for decimals; 0
        for other types.
    shared
        For strings and binary values: the longest prefix that all bounds have in common. It is left out of the digits.
        A value that does not begin with it has a number below or above those of all bounds: see `number`.
    ranks
        For strings and binary values: the digit for each of the 256 byte values; empty for other types. The bytes that
        may occur in values of the column have the digits 1, 2, 3, … in ascending order, so that no large gap separates
        the numbers of ``user-09`` and ``user-10``. Any other byte has the digit of the next higher byte that may occur
        or, if there is none, the highest of these digits plus one.
    digits
        For strings and binary values: how many bytes after ``shared`` are represented by digits. Further bytes are
        ignored, and a shorter value gets digits 0 at its end.
    plain
        Whether the bytes of all bounds after ``shared`` are ASCII, so that each of these bytes is a character.
    cut
        For strings: the number of characters to which bounds seem to be truncated, as by Iceberg's ``truncate(16)``;
        None if they do not seem to be truncated.
    """

    step: float
    shared: bytes = b""
    ranks: tuple[int, ...] = ()
    digits: int = 0
    plain: bool = False
    cut: int | None = None

    @classmethod
    def of(cls, lower: AnyArray, upper: AnyArray) -> Axis | None:
        """Return the mapping to numbers for a column with the given bounds; None if its values cannot be mapped.

        The values cannot be mapped if their type has no order. Strings and binary values cannot be mapped either if all
        their lower bounds, or all their upper bounds, are unknown.

        Parameters
        ----------
        lower, upper
            The column's bounds in each data file; null where unknown.
        """
        kind = comparable(lower).type
        if pa.types.is_integer(kind):
            return cls(1.0)
        if pa.types.is_decimal(kind):
            return cls(10.0**-kind.scale)
        if pa.types.is_floating(kind):
            return cls(0.0)
        if not _is_bytes(kind):
            return None
        lows, highs = _bytes(lower).drop_null(), _bytes(upper).drop_null()
        if not len(lows) or not len(highs):
            return None
        least, most = pc.min_max(lows)["min"].as_py(), pc.min_max(highs)["max"].as_py()
        shared = next(
            (i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), min(map(len, (least, most)))
        )
        cut = (pc.unique(pc.binary_slice(ends, shared, shared + _LOOKED_AT)) for ends in (lows, highs))
        seen = np.unique(np.frombuffer(b"".join(b"".join(build.to_pylist(texts)) for texts in cut), np.uint8))
        text = pa.types.is_string(lower.type)
        return cls._of_bytes(seen, least[:shared], cut_length(lower) if text else None, text=text)

    @classmethod
    def _of_bytes(cls, seen: npt.NDArray[np.uint8], shared: bytes, cut: int | None, *, text: bool) -> Axis:
        """Return the `Axis` (mapping of values to numbers) of a string or binary column.

        Parameters
        ----------
        seen
            The byte values that occur in the column's bounds, not counting the prefix ``shared``.
        shared, cut
            The prefix that all bounds have in common, and the number of characters to which bounds seem to be truncated
            (None if they do not): see the attributes of `Axis`.
        text
            True for a string column, False for a binary column. Values of a binary column may contain any byte. Values
            of a string column are assumed to contain only the bytes in ``seen``, with the gaps between digits and
            between letters filled: if ``0`` and ``4`` are in ``seen``, ``1``, ``2`` and ``3`` may occur, too (see
            `_CLASSES`).
        """
        there = np.zeros(256, dtype=np.int64)
        there[seen] = 1
        if text:
            for letters in _CLASSES:
                places = np.frombuffer(letters, np.uint8)
                own = places[there[places] > 0]
                if len(own):
                    there[own.min() : own.max() + 1] = 1
        else:
            there[:] = 1
        # Assign a digit to each byte value. `there` is 1 for each byte that may occur in values, and 0 for each other
        # byte. The digit of a byte is 1 plus `ranks`, the number of lower bytes that may occur (the ``return``
        # statement adds the 1). For example, if only ``a``, ``b`` and ``d`` may occur, their digits are 1, 2 and 3. A
        # byte that cannot occur has the digit of the next higher byte that may occur: 3 for ``c``. If there is none, it
        # has the highest of these digits plus one: 4 for ``e``. The digit 0 fills the places after the end of a short
        # value. So if n bytes may occur, the digits are 0 to n + 1, and the base of the numbers is n + 2. A number has
        # as many digits as fit in `_BITS` bits, but at least one.
        ranks = np.cumsum(there) - there
        base = int(there.sum()) + 2
        digits = max(1, int(_BITS / np.log2(base)))
        return cls(0.0, shared, tuple((ranks + 1).tolist()), digits, bool((seen < 128).all()), cut)

    @property
    def base(self) -> float:
        """Return the base (radix) of the numbers that represent texts or bytes.

        Each byte is one digit of such a number. The base is the highest possible digit plus one.
        """
        return float(max(self.ranks) + 1)

    @property
    def skip(self) -> int:
        """Return the length in bytes of the prefix that all bounds share and that conversion to numbers skips."""
        return len(self.shared)

    @property
    def shared_characters(self) -> int:
        """Return the length in characters of `shared`, the prefix that all bounds of a string column have in common.

        `shared` is bytes, so it may end within a UTF-8 character. The bytes of this incomplete character count as one
        character. This cannot happen if `plain` is true: then all bytes after `shared` are ASCII, so none of them
        continues a character.
        """
        return len(self.shared.decode("utf-8", "replace"))

    def numbers(self, values: AnyArray) -> Floats:
        """Return the numbers that represent a column's bounds; NaN for a bound that is null or NaN.

        For strings and binary values, `shared` is the prefix that all bounds have in common. So, unlike `number`, this
        method does not check that a value begins with it.
        """
        plain = comparable(values)
        if not self.ranks:
            return np.asarray(plain.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
        known = _bytes(plain)
        cut = pc.binary_slice(pc.fill_null(known, b""), self.skip, self.skip + self.digits)
        lengths = np.asarray(pc.binary_length(cut)).astype(np.int64)
        raw = np.asarray(cut.to_numpy(zero_copy_only=False).astype(f"S{self.digits}"))
        places = raw.view(np.uint8).reshape(-1, self.digits)
        ranks = np.where(np.arange(self.digits) < lengths[:, None], np.array(self.ranks)[places], 0)
        out = ranks.astype(np.float64) @ (self.base ** np.arange(self.digits - 1, -1, -1))
        return np.where(np.asarray(known.is_null()), np.nan, out)

    def number(self, value: PlainValue) -> float:
        """Return the number that represents a value of the column.

        For a string or binary column, `shared` is the longest prefix that all bounds have in common; it may be empty.
        If a value has this prefix, the `digits` bytes after it are read as the digits of a number with the base `base`,
        so the result is from 0 to ``base ** digits - 1``. A value without the prefix is either less than all bounds,
        and its number is -1, or greater than all bounds, and its number is ``base ** digits``.

        Parameters
        ----------
        value
            The value as Iceberg stores it, for example a date as days since 1970.
        """
        if not self.ranks:
            return float(value)
        data = _encoded(value)
        start = data[: self.skip]
        if start != self.shared:
            return -1.0 if start < self.shared else self.base**self.digits
        part = data[self.skip : self.skip + self.digits]
        return sum(self.ranks[b] * self.base ** (self.digits - 1 - i) for i, b in enumerate(part))

    def seen(self, value: PlainValue) -> tuple[float, float]:
        """Return the range of the numbers (see `number`) of all values with the same truncated bound as ``value``.

        The result is the lowest and the highest number of the range. For example, if bounds are truncated to 4
        characters (`cut` is 4), ``user-12`` and ``user-99`` both have the bound ``user``. So if ``value`` is
        ``user-12``, the range includes the numbers of all strings that begin with ``user``. If bounds are not
        truncated, or ``value`` is not a string of more than `cut` characters, both results are the `number` of
        ``value``.
        """
        if self.cut is not None and isinstance(value, str) and len(value) > self.cut:
            return self.prefix(value[: self.cut])
        return (self.number(value),) * 2

    def prefix(self, value: str) -> tuple[float, float]:
        """Return the lowest and the highest of the numbers that represent texts which begin with ``value``.

        All bounds begin with the same text, `shared`. A number has one digit for each byte after this text (see
        `Axis`). Let `shared` be ``user-``. Then there are three cases:

        - ``value`` begins with ``user-``, such as ``user-4``. Both results begin with the digits of the bytes after
          ``user-``, here of ``4``. All further digits are the lowest digit in the first result, and the highest digit
          in the second.
        - ``value`` is shorter than ``user-`` and is the beginning of it, such as ``us``. All bounds begin with
          ``value``, so the results enclose the numbers of all bounds.
        - ``value`` is any other text, such as ``admin``. No bound begins with it, so both results are what `number`
          returns for it: a number below or above those of all bounds.
        """
        data, low = _encoded(value), self.number(value)
        if not data.startswith(self.shared):
            return (low, self.base**self.digits if self.shared.startswith(data) else low)
        room = self.digits - (len(data) - self.skip)
        return (low, low + (self.base**room - 1 if room > 0 else 0.0))


def cut_length(lower: Strings) -> int | None:
    """Return the number of characters to which lower bounds seem to be truncated; None if they seem to be complete.

    Let n be the number of characters of the longest bound. The bounds seem to be truncated to n characters if at least
    half of the bounds (without nulls) have n characters, because truncation gives all longer values this length. If n
    is less than `_SHORTEST_CUT`, the bounds seem to be complete, because writers hardly ever truncate to so few.

    Parameters
    ----------
    lower
        The column's lower bound in each data file; null where unknown.
    """
    lengths = pc.utf8_length(lower)
    longest = pc.max(lengths).as_py()
    if longest is None or longest < _SHORTEST_CUT:
        return None
    full = pc.sum(pc.equal(lengths, longest)).as_py() or 0
    return int(longest) if full * 2 >= len(lower) - lower.null_count else None


def _encoded(value: PlainValue) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )  # fmt: skip


def _bytes(values: AnyArray) -> AnyArray:
    """Convert strings to their UTF-8 bytes; other values must be binary already."""
    plain = comparable(values)
    return plain if pa.types.is_binary(plain.type) else plain.cast(pa.binary())
