"""Functions of columns in the text of a filter: rows by plain Python, the same as JSON, pruning, and errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.errors import OptionError
from iceexplore.expressions import Computed, bind_filter
from iceexplore.metadata import parse_schema
from iceexplore.planning import evaluate

FIELDS = [(1, "id", "long"), (2, "name", "string"), (3, "ts", "timestamp"), (4, "raw", "binary"), (5, "on", "date")]
SCHEMA = parse_schema(
    {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": n, "name": name, "type": kind, "required": False} for n, name, kind in FIELDS],
    }
)
ROWS: list[dict[str, Any]] = [
    {"id": 7, "name": "Ada", "ts": dt.datetime(2024, 5, 17, 14, 30), "raw": b"abc", "on": dt.date(2024, 5, 17)},
    {"id": -3, "name": "ADA ", "ts": dt.datetime(1969, 12, 31, 23), "raw": b"", "on": dt.date(1970, 1, 1)},
    {"id": 128, "name": "\u00c9va", "ts": dt.datetime(2024, 5, 18), "raw": b"\xff", "on": None},
    {"id": None, "name": None, "ts": None, "raw": None, "on": None},
]
TABLE = pa.table(
    {
        "id": pa.array([r["id"] for r in ROWS], pa.int64()),
        "name": pa.array([r["name"] for r in ROWS], pa.string()),
        "ts": pa.array([r["ts"] for r in ROWS], pa.timestamp("us")),
        "raw": pa.array([r["raw"] for r in ROWS], pa.binary()),
        "on": pa.array([r["on"] for r in ROWS], pa.date32()),
    }
)


def selected(where: Any) -> list[int]:
    table = TABLE.rename_columns([f.name for f in SCHEMA.fields])
    ids = {f.name: f.field_id for f in SCHEMA.fields}
    fields = [f.with_metadata({"PARQUET:field_id": str(ids[f.name])}) for f in table.schema]
    mask = evaluate(bind_filter(SCHEMA, where), table.cast(pa.schema(fields)))
    return [i for i, hit in enumerate(mask.to_pylist()) if hit]


#: A filter, and what it means for a row without nulls; a null is never selected, except by ``is null``.
FILTERS: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("lower(name) = 'ada'", lambda r: r["name"].lower() == "ada"),
    ("LOWER(NAME) = 'ada'", lambda r: r["name"].lower() == "ada"),
    ("lower(name) <> 'ada'", lambda r: r["name"].lower() != "ada"),
    ("not lower(name) = 'ada'", lambda r: r["name"].lower() != "ada"),
    ("'ADA ' = upper(`name`)", lambda r: r["name"].upper() == "ADA "),
    ("trim(name) = 'ADA'", lambda r: r["name"].strip() == "ADA"),
    ("lower(name) like 'ad%'", lambda r: r["name"].lower().startswith("ad")),
    ("not startswith(lower(name), 'ad')", lambda r: not r["name"].lower().startswith("ad")),
    ("upper(name) in ('ADA', '\u00c9VA')", lambda r: r["name"].upper() in ("ADA", "\u00c9VA")),
    ("upper(name) not in ('ADA', '\u00c9VA')", lambda r: r["name"].upper() not in ("ADA", "\u00c9VA")),
    ("char_length(name) between 4 and 9", lambda r: len(r["name"]) >= 4),
    ("character_length(name) < 4", lambda r: len(r["name"]) < 4),
    ("octet_length(raw) > 0 and octet_length(name) > 3", lambda r: len(r["raw"]) > 0 and len(r["name"].encode()) > 3),
    ("truncate(10, id) = 0", lambda r: r["id"] // 10 == 0),
    ("truncate(10, id) >= 100", lambda r: r["id"] >= 100),
    ("truncate(2, name) = 'AD'", lambda r: r["name"][:2] == "AD"),
    ("days(ts) = date '2024-05-17'", lambda r: r["ts"].date() == dt.date(2024, 5, 17)),
    ("days(ts) < '2024-05-18'", lambda r: r["ts"].date() < dt.date(2024, 5, 18)),
    ("years(ts) = 54", lambda r: r["ts"].year == 2024),
    ("years(ts) = -1", lambda r: r["ts"].year == 1969),
    ("months(ts) <= 0", lambda r: r["ts"].year < 1970 or (r["ts"].year, r["ts"].month) == (1970, 1)),
    ("hours(ts) = -1", lambda r: r["ts"] == dt.datetime(1969, 12, 31, 23)),
]


@pytest.mark.parametrize(("where", "meaning"), FILTERS)
def test_rows(where: str, meaning: Callable[[dict[str, Any]], bool]) -> None:
    assert selected(where) == [i for i, row in enumerate(ROWS[:-1]) if meaning(row)]
    assert selected(f"not ({where})") == [i for i, row in enumerate(ROWS[:-1]) if not meaning(row)]


def test_nulls() -> None:
    assert selected("lower(name) is null") == [3] == selected("bucket(16, id) <=> null")
    assert selected("lower(name) is not null") == [0, 1, 2] == selected("not days(ts) <=> null")
    assert selected("lower(name) <=> 'ada'") == [0]
    assert selected("not lower(name) <=> 'ada'") == [1, 2, 3]
    assert selected("lower(name) = null") == [] == selected("not lower(name) in ('x', null)")


@pytest.mark.parametrize(
    ("where", "function"),
    [
        ("lower(name) = 'ada'", {"catalog": "sql_functions", "identifier": ["lower"]}),
        ("bucket(16, id) = 3", {"catalog": "iceberg_functions", "identifier": ["bucket"]}),
    ],
)
def test_the_same_as_json(where: str, function: dict[str, Any]) -> None:
    name, width = ("name", []) if "name" in where else ("id", [16])
    value = {"type": "apply", "function": function, "arguments": [*width, {"type": "reference", "name": name}]}
    found = bind_filter(SCHEMA, where)
    other = bind_filter(SCHEMA, {"type": "eq", "left": value, "right": 3 if width else "ada"})
    assert isinstance(found, Computed) and isinstance(other, Computed)
    assert found.value == other.value and found.predicate.literals == other.predicate.literals
    assert found.predicate.text == where


def test_they_prune_by_virtual_columns_and_partitions() -> None:
    s = ix.empty({"name": "string"}, virtual_columns=["lower(name)"], flush_data_files=0)
    for name in ("Ada", "Grace", "Zoe"):
        s.append(pa.table({"name": [name.upper(), name]}))
    assert len(s.plan("lower(name) = 'grace'").files) == 1
    assert s.count("lower(name) = 'grace'") == 2
    b = ix.empty({"id": "long"}, partition_by=["bucket(16, id)"], format_version=2)
    b.append(pa.table({"id": range(100)}))
    (kept,) = b.plan("bucket(16, id) = 3").files.files.entries.select(["location", "record_count"]).to_pylist()
    assert "/id_bucket_16=3/" in kept["location"]
    assert b.count("bucket(16, id) = 3") == kept["record_count"]


ERRORS = {
    "day(ts) = 17": r"in SQL it extracts a part of a date or time\. .* is days\(x\): a date, or a number",
    "year(ts) = 2024": r"function year is not supported; in SQL it extracts .* is years\(x\)",
    "if_else(id = 1, 2, 3) = 2": r"or the JSON of an expression, which also has if_else and coalesce",
    "lowr(name) = 'a'": r"did you mean lower\?",
    "lower(id) = 'a'": r"lower\(id\) is not possible: column 'id' is long; it accepts one string",
    "days(name) = 3": r"days\(name\) is not possible: column 'name' is string",
    "lower(names) = 'a'": r"no column 'names'; nearest: name",
    "lower('A') = 'a'": r"lower takes a column here",
    "lower(trim(name)) = 'a'": r"lower takes a column here\. .* as the JSON of an expression",
    "lower(name)": r"lower\(name\) alone is not a condition",
    "lower(name) = upper(name)": r"two columns are compared",
    "lower(name) = 3": r"does not fit the schema",
    "lower(name, id) = 'a'": r"expected '\)' after the column",
    "bucket(id) = 3": r"expected a whole number above 0, as in bucket\(16, x\),",
    "bucket(0, id) = 3": r"expected a whole number above 0",
    "bucket(99999999999999, id) = 3": r"expected a whole number above 0",
    "bucket(16, 5) = 3": r"bucket takes a column here",
    "truncate(1.5, id) = 3": r"expected a whole number above 0",
    "cast(lower(name) as int) = 3": r"columns cannot be cast",
    "id in (lower(name))": r"expected a value, not a column",
}


@pytest.mark.parametrize("where", ERRORS)
def test_errors(where: str) -> None:
    with pytest.raises(OptionError, match=ERRORS[where]) as caught:
        bind_filter(SCHEMA, where)
    assert "\n  " in str(caught.value), "the text is shown with carets"
