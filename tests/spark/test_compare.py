"""The comparison with Spark can fail: any one value, type, name or row that differs is seen."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from iceexplore.arrow import build
from tests.spark.compare import differences

SCHEMA = build.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
        ("m", pa.map_(pa.int32(), pa.binary())),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
        ("d", pa.decimal128(5, 2)),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "i": 2**60 + 1,
        "f": 0.0,
        "at": datetime(2024, 1, 1, tzinfo=UTC),
        "m": [(1, b"x"), (2, b"y")],
        "s": {"a": 1, "b": ["x"]},
        "d": Decimal("1.50"),
    },
    {"i": None, "f": float("nan"), "at": None, "m": [], "s": {"a": None, "b": None}, "d": None},
]


def table(rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def test_equal_in_any_order_of_rows_and_of_map_keys() -> None:
    turned = [ROWS[1], {**ROWS[0], "m": ROWS[0]["m"][::-1]}]
    assert differences(table(ROWS), table(turned)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"i": 2**60},
        {"i": None},
        {"f": -0.0},
        {"f": None},
        {"at": datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)},
        {"m": [(1, b"x")]},
        {"m": None},
        {"m": [(1, b"x"), (2, b"z")]},
        {"s": {"a": 1, "b": []}},
        {"s": {"a": 2, "b": ["x"]}},
        {"s": None},
        {"d": Decimal("1.51")},
    ],
    ids=str,
)
def test_one_changed_value_is_seen_with_its_path(change: dict[str, Any]) -> None:
    found = differences(table(ROWS), table([{**ROWS[0], **change}, ROWS[1]]))
    assert len(found) == 1
    assert found[0].startswith("." + next(iter(change)))


def test_an_empty_map_is_not_null() -> None:
    assert differences(table(ROWS), table([ROWS[0], {**ROWS[1], "m": None}]))


def test_rows_more_or_fewer() -> None:
    assert differences(table(ROWS), table(ROWS[:1]))
    assert differences(table(ROWS), table([*ROWS, ROWS[0]]))
    assert differences(table([*ROWS, ROWS[0]]), table([*ROWS, ROWS[1]]))


def test_names_order_and_types() -> None:
    ours = table(ROWS)
    assert differences(ours, ours.select(["f", "i", "at", "m", "s", "d"]))
    assert differences(ours, ours.rename_columns(["x", "f", "at", "m", "s", "d"]))
    assert differences(ours, ours.set_column(0, "i", pa.array([1, None], pa.int32())))
    turned = build.schema(
        [*list(SCHEMA)[:4], ("s", pa.struct([("b", pa.list_(pa.string())), ("a", pa.int32())])), SCHEMA[5]]  # type: ignore[index]
    )
    assert differences(ours, table(ROWS, turned))
    other = build.schema([*list(SCHEMA)[:5], ("d", pa.decimal128(6, 2))])
    assert differences(ours, table(ROWS, other))
