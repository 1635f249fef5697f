"""Filters that Spark pushes down: those that are taken select what Spark itself selects."""

from __future__ import annotations

import datetime as dt
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iceexplore.metadata import parse_schema
from iceexplore.planning import evaluate
from iceexplore.reading import METADATA_COLUMNS, Output, arrow_fields
from tests.spark.conftest import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

NAN, INF = float("nan"), float("inf")
TYPES = {
    "b": "boolean", "i": "int", "l": "long", "f": "float", "d": "double", "m": "decimal(9,2)", "s": "string",
    "day": "date", "at": "timestamptz", "local": "timestamp", "bin": "binary", "w": "decimal(38,10)",
}  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "b": [True, False],
    "i": [-(2**31), 0, 5],
    "l": [-(2**63), 5, 2**53 + 1],
    "f": [NAN, -INF, -1.5, -0.0, 0.0, 0.5, INF],
    "d": [NAN, -0.0, 0.0, 0.1, 5e-324, INF],
    "m": [Decimal("-0.01"), Decimal("0.00"), Decimal("1.20"), Decimal("9999999.99")],
    "s": ["", "ab", "é", "\uffff", "\U0001f9ca"],
    "day": [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    "at": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
    "local": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 1, 1)],
    "bin": [b"", b"\x00", b"\xff"],
    "w": [Decimal(10**38 - 1).scaleb(-10, Context(prec=38)), Decimal("12345678901234567890.1234567890"), Decimal(0)],
}
SCHEMA = parse_schema(
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            *({"id": n, "name": k, "type": t, "required": False} for n, (k, t) in enumerate(TYPES.items(), 1)),
            {
                "id": 50, "name": "st", "required": False,
                "type": {"type": "struct", "fields": [{"id": 51, "name": "x", "type": "long", "required": False}]},
            },
        ],
    }
)  # fmt: skip
OUTPUTS = [Output(f.name, (f,)) for f in SCHEMA.fields] + [Output(f.name, (f,)) for f in METADATA_COLUMNS]


def rows() -> pa.Table:
    n = max(map(len, VALUES.values())) + 1
    columns = {k: [*v, *[None] * (n - len(v))] for k, v in VALUES.items()}
    columns["st"] = [{"x": 1}, {"x": None}, None, *[{"x": 5}] * (n - 3)]
    fields = arrow_fields(SCHEMA.fields)
    return pa.table([pa.array(columns[f.name], f.type) for f in fields], schema=pa.schema(fields))


def sql(name: str, value: Any) -> str:
    """A literal in Spark's words, of the column's own type."""
    if name in ("f", "d"):
        return f"{'float' if name == 'f' else 'double'}('{value!r}')"
    if name == "l":
        return "-9223372036854775807L - 1L" if value == -(2**63) else f"{value}L"
    if name in ("m", "w"):
        return f"cast('{value:f}' as {TYPES[name]})"
    if name == "day":
        return f"date'{value}'"
    if name in ("at", "local"):
        return f"timestamp'{value.isoformat(' ')}'" if name == "at" else f"timestamp_ntz'{value.isoformat(' ')}'"
    if name == "bin":
        return f"X'{value.hex()}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def pushes() -> list[tuple[Any, str]]:
    """Every kind of filter on every column and value, with what it means in SQL."""
    from pyspark.sql import datasource as ds

    signs = {
        ds.EqualTo: "=", ds.EqualNullSafe: "<=>", ds.GreaterThan: ">", ds.GreaterThanOrEqual: ">=", ds.LessThan: "<",
        ds.LessThanOrEqual: "<=",
    }  # fmt: skip
    out: list[tuple[Any, str]] = []
    for name, values in VALUES.items():
        out += [(ds.IsNull((name,)), f"{name} is null"), (ds.IsNotNull((name,)), f"{name} is not null")]
        for value in values:
            out += [(kind((name,), value), f"{name} {sign} ({sql(name, value)})") for kind, sign in signs.items()]
        some = tuple(values[1:3])
        out.append((ds.In((name,), some), f"{name} in ({', '.join(sql(name, v) for v in some)})"))
        out.append((ds.In((name,), (*some, None)), f"{name} in ({', '.join(sql(name, v) for v in some)}, null)"))
    for text in ("a", "", "é"):
        out.append((ds.StringStartsWith(("s",), text), f"startswith(s, '{text}')"))
        out.append((ds.StringEndsWith(("s",), text), f"endswith(s, '{text}')"))
        out.append((ds.StringContains(("s",), text), f"contains(s, '{text}')"))
    out += [(ds.EqualTo(("st", "x"), 5), "st.x = 5"), (ds.IsNull(("st", "x")), "st.x is null")]
    return out + [(ds.Not(pushed), f"not ({text})") for pushed, text in out]


def test_what_is_taken_selects_what_spark_selects(warehouse: Warehouse, tmp_path: Path) -> None:
    from iceexplore.on_spark.data_source._pushdown import taken_filter

    table = rows()
    pq.write_table(table.append_column("row", pa.array(range(table.num_rows))), tmp_path / "rows.parquet")
    taken = [(m, text) for pushed, text in pushes() if (m := taken_filter(pushed, OUTPUTS)) is not None]
    frame = warehouse.session.read.parquet(str(tmp_path / "rows.parquet"))
    asked = [f"coalesce({text}, false) as e{i}" for i, (_, text) in enumerate(taken)]
    found = frame.selectExpr("row", *asked).orderBy("row").drop("row").toArrow()
    for (meaning, text), column in zip(taken, found.columns, strict=True):
        assert evaluate(meaning, table).to_pylist() == column.to_pylist(), text
    # Most are: what is left is what compares otherwise, or is no filter of ours.
    left = [text for pushed, text in pushes() if taken_filter(pushed, OUTPUTS) is None]
    assert len(taken) > 180
    apart = ("bin", "'0.0'", "-0.0", "nan", "null)", "endswith", "contains")
    assert all(t.startswith(("not (", "b ")) or any(word in t for word in apart) for t in left), left


def test_what_is_no_column_of_ours_is_left(require_java: None) -> None:
    from pyspark.sql import datasource as ds

    from iceexplore.on_spark.data_source._pushdown import taken_filter

    for pushed in (
        ds.EqualTo(("_file",), "x"),  # judged by no metadata
        ds.EqualTo(("gone",), 1),
        ds.EqualTo(("st", "gone"), 1),
        ds.EqualTo(("i", "x"), 1),
        ds.EqualTo(("i",), 2**31),
        ds.EqualTo(("i",), True),
        ds.EqualTo(("m",), Decimal("1.005")),
        ds.EqualTo(("m",), Decimal("12345678.90")),
        ds.EqualTo(("at",), dt.datetime(2024, 1, 1)),
        ds.EqualTo(("local",), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ds.EqualTo(("day",), dt.datetime(2024, 1, 1)),
        ds.EqualTo(("s",), 5),
        ds.In(("i",), ()),
    ):
        assert taken_filter(pushed, OUTPUTS) is None, pushed
