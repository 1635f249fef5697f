"""A column of every type, with values of rows and literals as SQL text, and what both compare as in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from iceexplore.metadata import Schema, arrow_type, parse_schema

Row = dict[str, Any]

DAY = 86_400 * 10**9
NOON = 1_704_110_400 * 10**9  # 2024-01-01T12:00:00
MIDNIGHT = NOON - DAY // 2


@dataclass(frozen=True)
class Kind:
    """A type: stored values of rows, what they compare as, and literals as texts with what they compare as."""

    type: str
    values: list[Any]
    literals: list[tuple[str, Any]]
    key: Callable[[Any], Any] = lambda v: v


def single(x: float) -> float:
    return float(np.float32(x))


NUMBERS = [
    ("5", 5),
    ("-1", -1),
    ("1.5", Fraction(3, 2)),
    ("-1.5", Fraction(-3, 2)),
    ("1e2", 100),
    ("'5'", 5),
    ("1e30", 10**30),
    ("-1e30", -(10**30)),
    ("(7)", 7),
    ("cast(5 as int)", 5),
    ("7::bigint", 7),
]
INSTANTS = [
    ("'2024-01-01 12:00:00'", NOON),
    ("timestamp '2024-01-01T12:00:00.000001'", NOON + 1000),
    ("'2024-01-01'", MIDNIGHT),
    ("'2024-01-01 12:00:00.000000500'", NOON + 500),
    ("date '2024-01-01'", MIDNIGHT),
    ("'1969-12-31 23:59:59.999999'", -1000),
    ("'9999-12-31 23:59:59'", 253_402_300_799 * 10**9),
]
ZONED = [
    ("'2024-01-01T14:00:00+02:00'", NOON),
    ("timestamp '2024-01-01 12:00:00Z'", NOON),
    ("'2024-01-01T13:00:00.000001 Europe/Berlin'", NOON + 1000),
    ("'2024-01-01 06:30:00-0530'", NOON),
]
MICROS = [n // 1000 for _, n in INSTANTS] + [2**63 - 1, -(2**63)]
NANOS = [NOON, NOON + 1, NOON + 500, MIDNIGHT, -1000, 2**63 - 1]

KINDS = {
    "i": Kind(
        "int", [5, -1, 1, 2, 7, 2**31 - 1, -(2**31)], [*NUMBERS, ("3000000000", 3 * 10**9), ("2147483647", 2**31 - 1)]
    ),
    "l": Kind(
        "long",
        [5, -1, 1, 100, 2**63 - 1, -(2**63)],
        [
            *NUMBERS,
            ("9223372036854775808", 2**63),
            ("-9223372036854775808", -(2**63)),
            ("9223372036854775807L", 2**63 - 1),
        ],
    ),
    "f": Kind(
        "float",
        [0.5, single(0.1), -0.0, 0.0, float("nan"), float("inf"), float("-inf"), 16777216.0, single(3.4028235e38)],
        [
            ("0.5", 0.5),
            ("0.1", 0.1),
            ("0.1F", single(0.1)),
            ("1e39", 1e39),
            ("-1e39", -1e39),
            ("16777217", 16777217.0),
            ("-0.0", 0.0),
            ("cast('inf' as double)", float("inf")),
            ("cast(0.1 as float)", single(0.1)),
            ("1e400", 10**400),
        ],
    ),
    "d": Kind(
        "double",
        [0.1, 0.5, -0.0, 0.0, float("nan"), float("inf"), float("-inf"), 1.7976931348623157e308],
        [
            ("0.1", 0.1),
            ("5e-1", 0.5),
            ("0", 0.0),
            ("1e400", 10**400),
            ("-1e400", -(10**400)),
            ("'Infinity'", float("inf")),
            ("0.1D", 0.1),
        ],
    ),
    "c": Kind(
        "decimal(9,2)",
        [Decimal(x) for x in ("1.00", "1.01", "-0.01", "0.00", "9999999.99", "-9999999.99")],
        [
            ("1", 1),
            ("1.005", Decimal("1.005")),
            ("1.01", Decimal("1.01")),
            ("1.010", Decimal("1.01")),
            ("-0.001", Decimal("-0.001")),
            ("99999999999", 99999999999),
            ("1e-30", Decimal("1e-30")),
            ("'1.01'", Decimal("1.01")),
            ("-1e7", -(10**7)),
            ("1.01BD", Decimal("1.01")),
        ],
    ),
    "w": Kind(
        "decimal(38,10)",
        [Decimal("1.0000000001"), Decimal("9" * 28 + "." + "9" * 10), Decimal("-1E-10")],
        [
            ("1", 1),
            ("1.00000000005", Decimal("1.00000000005")),
            ("9999999999999999999999999999.99999999985", Decimal("9" * 28 + ".99999999985")),
        ],
    ),
    "day": Kind(
        "date",
        [19723, 19722, 0, -1, 2**31 - 1],
        [
            ("date '2024-01-01'", MIDNIGHT),
            ("'2024-01-01'", MIDNIGHT),
            ("timestamp '2024-01-01 12:00:00'", NOON),
            ("date('1969-12-31')", -DAY),
            ("timestamp '2024-01-01'", MIDNIGHT),
        ],
        lambda v: v * DAY,
    ),
    "clock": Kind(
        "time",
        [0, 1, 43_200_000_000, 86_399_999_999],
        [("'12:00'", DAY // 2), ("time '00:00:00.0000005'", 500), ("'23:59:59.999999999'", DAY - 1)],
        lambda v: v * 1000,
    ),
    "t": Kind("timestamp", MICROS, INSTANTS, lambda v: v * 1000),
    "tz": Kind("timestamptz", MICROS, INSTANTS + ZONED, lambda v: v * 1000),
    "n": Kind("timestamp_ns", NANOS, INSTANTS),
    "nz": Kind("timestamptz_ns", NANOS, INSTANTS + ZONED),
    "s": Kind(
        "string",
        ["", "a", "ab", "a%b", "it's", "日本", "a\\b", "A"],
        [
            ("'a'", "a"),
            ("'it''s'", "it's"),
            ("''", ""),
            ("'日本'", "日本"),
            ("'a\\b'", "a\\b"),
            ("cast('ab' as string)", "ab"),
        ],
    ),
    "y": Kind(
        "binary",
        [b"", b"\0", b"\0\xff", b"ab"],
        [("x'00FF'", b"\0\xff"), ("X''", b""), ("cast('ab' as binary)", b"ab")],
    ),
    "x": Kind("fixed[2]", [b"\0\0", b"\0\xff", b"ab"], [("x'00FF'", b"\0\xff"), ("x'6162'", b"ab")]),
    "u": Kind(
        "uuid",
        [bytes(16), bytes(range(16)), b"\xff" * 16],
        [
            ("'00010203-0405-0607-0809-0a0b0c0d0e0f'", bytes(range(16))),
            ("uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff'", b"\xff" * 16),
            ("x'00000000000000000000000000000000'", bytes(16)),
        ],
    ),
    "b": Kind("boolean", [True, False], [("true", True), ("FALSE", False), ("'true'", True)]),
}
NAMES = [*KINDS, "p.i", "p.q.s", "odd.name"]


def kind_of(name: str) -> Kind:
    return KINDS["s" if name == "odd.name" else name.rpartition(".")[2]]


def field(number: int, name: str, kind: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind, "required": False}


INNER = {"type": "struct", "fields": [field(101, "s", "string")]}
FIELDS = [field(i, name, kind.type) for i, (name, kind) in enumerate(KINDS.items(), start=1)]
FIELDS += [field(90, "odd.name", "string")]
FIELDS += [field(99, "p", {"type": "struct", "fields": [field(98, "i", "int"), field(100, "q", INNER)]})]
SCHEMA: Schema = parse_schema({"type": "struct", "schema-id": 0, "fields": FIELDS})


def _rows(count: int) -> list[Row]:
    random = Random(20_240_229)
    return [{n: random.choice([None, *kind_of(n).values]) for n in NAMES} for _ in range(count)]


#: Enough rows that every value of a column occurs together with most others.
ROWS = _rows(40)


def table_of(rows: list[Row]) -> pa.Table:
    """The rows with field ids; ``p`` is a null struct where both of its columns are null."""

    def tagged(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    def column(name: str, number: int) -> tuple[pa.Array, pa.Field]:
        kind = arrow_type(next(f for n, f in SCHEMA.walk() if f.field_id == number).type)
        values = [r[name] for r in rows]
        temporal = pa.types.is_temporal(kind)
        raw = pa.array(values, pa.int32() if kind == pa.date32() else pa.int64() if temporal else kind)
        return raw.cast(kind) if temporal else raw, tagged(name.rpartition(".")[2], kind, number)

    arrays, fields = [], []
    for i, name in enumerate(KINDS, start=1):
        array, of = column(name, i)
        arrays.append(array)
        fields.append(of)
    odd, _ = column("odd.name", 90)
    i, i_field = column("p.i", 98)  # type: ignore[assignment]
    s, s_field = column("p.q.s", 101)
    q = pa.StructArray.from_arrays([s], fields=[s_field], mask=s.is_null())
    gone = pa.array([r["p.i"] is None and r["p.q.s"] is None for r in rows], pa.bool_())
    p = pa.StructArray.from_arrays([i, q], fields=[i_field, tagged("q", q.type, 100)], mask=gone)  # type: ignore[list-item]
    fields += [tagged("odd.name", odd.type, 90), tagged("p", p.type, 99)]
    return pa.Table.from_arrays([*arrays, odd, p], schema=pa.schema(fields))
