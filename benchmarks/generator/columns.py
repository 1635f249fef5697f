"""The columns of a generated table: type, marks in the template record, and bounds as a function of the file's number.

Everything about a file follows from its number, so a delete file knows the partition and path of the data file it
applies to, and two runs write the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .template import Bytes, digits, fixed, varint

__all__ = ["COLUMN_KINDS", "Column", "columns", "day", "region", "rows"]

FIRST_DAY = 19_723  # 2024-01-01
REGIONS = 16
ROWS_PER_FILE = 100_000
MICROS_PER_DAY = 86_400_000_000

Numbers = Any


def rows(file: Numbers) -> Numbers:
    """Rows of a data file: three bytes as a varint."""
    return ROWS_PER_FILE + file * 7919 % 400_000


def day(file: Numbers) -> Numbers:
    """The day of a file, as days since the epoch; files come in the order of their days, 100 a day."""
    return FIRST_DAY + file // 100 % 3650


def region(file: Numbers) -> Numbers:
    """The region of a file, 0 to 15."""
    return file % REGIONS


def _noise(file: Numbers, salt: int) -> Numbers:
    """Numbers in [0, 1) that look random: the bounds should not compress to nothing."""
    mixed = (np.asarray(file, dtype=np.uint64) + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


def _text(prefix: str, values: Numbers, width: int) -> Bytes:
    head = np.frombuffer(prefix.encode(), dtype=np.uint8)
    return np.hstack([np.tile(head, (len(values), 1)), digits(values, width)])


Bounds = Callable[[Numbers, int], tuple[Bytes, Bytes]]


def _decimal(values: Numbers) -> Bytes:
    # An unscaled decimal takes as few big-endian bytes as it can: from 2^23 on, four.
    return fixed(values, ">i4")


#: Name, Iceberg type and bounds of each kind of column; more columns than kinds go round again.
COLUMN_KINDS: list[tuple[str, str, Bounds]] = [
    ("id", "long", lambda f, s: (fixed(f * 1_000_000, "<i8"), fixed(f * 1_000_000 + rows(f) - 1, "<i8"))),
    (
        "ts",
        "timestamptz",
        lambda f, s: (
            fixed(day(f) * MICROS_PER_DAY + (_noise(f, s) * 1e9).astype("i8"), "<i8"),
            fixed((day(f) + 1) * MICROS_PER_DAY - 1 - (_noise(f, s + 1) * 1e9).astype("i8"), "<i8"),
        ),
    ),
    ("region", "string", lambda f, s: (_text("region-", region(f), 2), _text("region-", region(f), 2))),
    ("amount", "double", lambda f, s: (fixed(_noise(f, s) * 10, "<f8"), fixed(990 + _noise(f, s + 1) * 10, "<f8"))),
    ("quantity", "int", lambda f, s: (fixed(f % 10, "<i4"), fixed(1000 + f % 1000, "<i4"))),
    ("day", "date", lambda f, s: (fixed(day(f), "<i4"), fixed(day(f), "<i4"))),
    (
        "price",
        "decimal(9,2)",
        lambda f, s: (_decimal(10_000_000 + f % 50_000), _decimal(900_000_000 + f % 50_000)),
    ),
    ("returned", "boolean", lambda f, s: (fixed(f * 0, "u1"), fixed(f * 0 + 1, "u1"))),
    ("score", "float", lambda f, s: (fixed(_noise(f, s), "<f4"), fixed(1 + _noise(f, s + 1), "<f4"))),
    (
        "note",
        "string",
        lambda f, s: (
            _text("note-", (_noise(f, s) * 1e11).astype("i8"), 11),
            _text("notf-", (_noise(f, s + 1) * 1e11).astype("i8"), 11),
        ),
    ),
]


@dataclass(frozen=True)
class Column:
    """A column: its field id, name, type, and the statistics of each file."""

    field_id: int
    name: str
    type: str
    bounds: Bounds

    def statistics(self, file: Numbers) -> dict[str, Bytes]:
        """The variable parts of the statistics: size, nulls, lower and upper bound."""
        lower, upper = self.bounds(file, 31 * self.field_id)
        return {
            "size": varint(20_000 + (_noise(file, self.field_id) * 800_000).astype("i8"), 3),
            "nulls": varint(64 + (_noise(file, 7 * self.field_id) * 8_000).astype("i8"), 2),
            "lower": lower,
            "upper": upper,
        }


def columns(count: int) -> list[Column]:
    """The first ``count`` columns, with field ids from 1."""
    out = []
    for i in range(count):
        name, kind, bounds = COLUMN_KINDS[i % len(COLUMN_KINDS)]
        around = i // len(COLUMN_KINDS)
        out.append(Column(i + 1, name if around == 0 else f"{name}_{around + 1}", kind, bounds))
    return out
