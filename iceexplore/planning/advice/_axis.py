"""Map the values of a column to a number line, for estimates (not for pruning)."""

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

#: Maximum number of bits of the number that represents a text; a float can hold 53 bits exactly.
_BITS = 50
#: Classes of characters. If some characters of a class occur in bounds, all characters from the lowest to the highest
#: of these are assumed to occur in values: for example, from ``0`` to ``4`` if only ``0`` and ``4`` occur in bounds.
_CLASSES = (b"0123456789", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
#: Number of bytes that are examined in each bound, after the beginning that all bounds share. More are not needed,
#: because a number represents at most `_BITS` bytes of a text.
_LOOKED_AT = 64
#: Bounds with fewer characters are taken as complete, because writers hardly ever truncate to so few (the default of
#: ``write.metadata.metrics.default`` is 16).
_SHORTEST_CUT = 4


@dataclass(frozen=True)
class Axis:
    """An order-preserving mapping of one column's values to numbers.

    Attributes
    ----------
    step
        Distance between adjacent values: 1 for integers, dates and times, one unit of the last digit for decimals, and
        0 for other types.
    shared
        For texts and bytes: the leading bytes that all bounds share. The number that represents a value leaves
        them out. The number of a value that begins otherwise is below or above those of all bounds.
    ranks
        For texts and bytes: the rank of each byte (0 to 255) among the bytes that may occur; empty for other types.
        The number that represents a text has the ranks of the text's bytes as its digits. Only bytes that may occur are
        counted, so that no large gap separates the numbers of ``user-09`` and ``user-10``. Any other byte has the rank
        of the next higher byte that may occur.
    digits
        For texts and bytes: the number of digits of the number that represents a value.
    plain
        Whether the bytes of all bounds after ``shared`` are ASCII, so that each of these bytes is a character.
    cut
        For texts: the number of characters to which bounds seem to be truncated, as by Iceberg's ``truncate(16)``; None
        if they do not seem to be truncated.
    """

    step: float
    shared: bytes = b""
    ranks: tuple[int, ...] = ()
    digits: int = 0
    plain: bool = False
    cut: int | None = None

    @classmethod
    def of(cls, lower: AnyArray, upper: AnyArray) -> Axis | None:
        """Return the axis of a column with these bounds; None for types without order, or if no bound is known."""
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
        """Return the axis of a column of texts or bytes.

        Parameters
        ----------
        seen
            The byte values that occur in bounds after the bytes ``shared``.
        shared, cut
            See the attributes of `Axis`.
        text
            True for a column of texts. Only for texts, bytes that are not in ``seen`` are assumed not to occur; see
            `_CLASSES` for exceptions.
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
        # A byte that cannot occur has the rank of the next higher byte that may occur. If n bytes may occur, their
        # digits are 1 to n. The digit 0 marks the end of a text, and n + 1 is for bytes above all that may occur.
        ranks = np.cumsum(there) - there
        base = int(there.sum()) + 2
        digits = max(1, int(_BITS / np.log2(base)))
        return cls(0.0, shared, tuple((ranks + 1).tolist()), digits, bool((seen < 128).all()), cut)

    @property
    def base(self) -> float:
        """Return the base (radix) of the numbers that represent texts or bytes: the highest digit plus one."""
        return float(max(self.ranks) + 1)

    @property
    def skip(self) -> int:
        """Return the length in bytes of the prefix that all bounds share."""
        return len(self.shared)

    @property
    def shared_characters(self) -> int:
        """Return the length of `shared` in characters, for a column of texts.

        If `plain` is false, `shared` may end within a character.
        """
        return len(self.shared.decode("utf-8", "replace"))

    def numbers(self, values: AnyArray) -> Floats:
        """Return the number that represents each value; NaN for null and NaN."""
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
        """Return the number that represents one stored value.

        If a text does not begin with `shared`, its number is below those of all bounds (-1), or above all of them.
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
        """Return the lowest and the highest number that a value can have, as far as truncated bounds show.

        Bounds show only the first `cut` characters of a longer text. For such a text, the result is the range of the
        numbers of all texts that begin with these characters. For any other value, both numbers are the value's own.
        """
        if self.cut is not None and isinstance(value, str) and len(value) > self.cut:
            return self.prefix(value[: self.cut])
        return (self.number(value),) * 2

    def prefix(self, value: str) -> tuple[float, float]:
        """Return the numbers (see `number`) of the first and the last text with this prefix in the order of texts."""
        data, low = _encoded(value), self.number(value)
        if not data.startswith(self.shared):
            return (low, self.base**self.digits if self.shared.startswith(data) else low)
        room = self.digits - (len(data) - self.skip)
        return (low, low + (self.base**room - 1 if room > 0 else 0.0))


def cut_length(lower: Strings) -> int | None:
    """Return the length to which lower bounds seem to be truncated; None if they do not.

    Bounds seem to be truncated if at least half of them are as long as the longest one, and its length is at least
    `_SHORTEST_CUT`.
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
    """Convert texts to their UTF-8 bytes; other values must be binary already."""
    plain = comparable(values)
    return plain if pa.types.is_binary(plain.type) else plain.cast(pa.binary())
