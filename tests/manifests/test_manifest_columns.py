"""Partition tuples and statistics: typed, by id, equal to a plain reading of the rows."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
import uuid
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.manifests.column_stats import _maps as _stats
from iceexplore.manifests.column_stats._partition import typed_partition
from iceexplore.manifests.model._reader_schema import reader_schema_of
from iceexplore.metadata import PartitionField, PartitionSpec, PrimitiveType, decode_values
from iceexplore.storage import CACHE

ID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
DAY = datetime.date(2022, 1, 8)
MOMENT = datetime.datetime(2022, 1, 8, 10, 11, 12, 345678)
MICROS = int((MOMENT - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1))


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "fx", "size": size, **more}


def micros(adjust: bool) -> dict[str, Any]:
    return {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": adjust}


CASES: dict[str, tuple[Any, pa.DataType, Any, str, str | None, pa.DataType, Any]] = {
    # name: Avro type, raw Arrow type, raw value, transform, source type, expected type, expected value
    "long": ("long", pa.int64(), 5, "identity", "long", pa.int64(), 5),
    "promoted": ("int", pa.int32(), 5, "identity", "long", pa.int64(), 5),
    "string": ("string", pa.binary(), b"\xc3\xa9", "identity", "string", pa.string(), "é"),
    "day as date": ({"type": "int", "logicalType": "date"}, pa.int32(), 19_000, "day", "timestamp", pa.date32(), DAY),
    "day as int": ("int", pa.int32(), 19_000, "day", "timestamp", pa.date32(), DAY),
    "month": ("int", pa.int32(), 624, "month", "date", pa.int32(), 624),
    "bucket": ("int", pa.int32(), 3, "bucket[16]", "string", pa.int32(), 3),
    "decimal": (
        fixed(4, logicalType="decimal", precision=9, scale=2),
        pa.binary(4),
        (-12345).to_bytes(4, "big", signed=True),
        "identity",
        "decimal(9,2)",
        pa.decimal128(9, 2),
        decimal.Decimal("-123.45"),
    ),
    "decimal promoted": (
        fixed(4, logicalType="decimal", precision=9, scale=2),
        pa.binary(4),
        (12345).to_bytes(4, "big"),
        "identity",
        "decimal(12,2)",
        pa.decimal128(12, 2),
        decimal.Decimal("123.45"),
    ),
    "decimal without its logical type": (
        "bytes",
        pa.binary(),
        b"\x30\x39",
        "identity",
        "decimal(9,2)",
        pa.decimal128(9, 2),
        decimal.Decimal("123.45"),
    ),
    "uuid": (fixed(16, logicalType="uuid"), pa.binary(16), ID.bytes, "identity", "uuid", pa.binary(16), ID.bytes),
    "uuid as text": ("string", pa.binary(), str(ID).encode(), "identity", "uuid", pa.binary(16), ID.bytes),
    "fixed": (fixed(3), pa.binary(3), b"abc", "identity", "fixed[3]", pa.binary(), b"abc"),
    "time": (
        {"type": "long", "logicalType": "time-micros"},
        pa.int64(),
        1_000_000,
        "identity",
        "time",
        pa.time64("us"),
        datetime.time(0, 0, 1),
    ),
    "timestamp": (micros(False), pa.int64(), MICROS, "identity", "timestamp", pa.timestamp("us"), MOMENT),
    "timestamptz": (
        micros(True),
        pa.int64(),
        MICROS,
        "identity",
        "timestamptz",
        pa.timestamp("us", "UTC"),
        MOMENT.replace(tzinfo=datetime.UTC),
    ),
    "timestamptz without the flag": (
        micros(False),
        pa.int64(),
        MICROS,
        "identity",
        "timestamptz",
        pa.timestamp("us", "UTC"),
        MOMENT.replace(tzinfo=datetime.UTC),
    ),
    "source is gone": ("long", pa.int64(), 5, "identity", None, pa.int64(), 5),
    "unknown transform": ("int", pa.int32(), 5, "zorder", "string", pa.int32(), 5),
}


def partition(avro: Any, raw: pa.Array, spec: PartitionSpec | None, types: dict[int, Any]) -> Any:
    data = {"type": "record", "name": "p", "fields": [{"name": "p", "type": ["null", avro], "field-id": 1000}]}
    file = {"type": "record", "name": "d", "fields": [{"name": "partition", "type": data, "field-id": 102}]}
    entry = {"type": "record", "name": "e", "fields": [{"name": "data_file", "type": file, "field-id": 2}]}
    return typed_partition(pa.table({"p1000": raw}), reader_schema_of(entry, "f"), spec, types, "f")


@pytest.mark.parametrize("name", CASES)
def test_partition_values_have_the_type_of_the_spec(name: str) -> None:
    avro, stored, value, transform, source, kind, expected = CASES[name]
    spec = PartitionSpec(0, (PartitionField(1000, "p", transform, (1,)),))
    types = {} if source is None else {1: PrimitiveType(source)}
    made, problems = partition(avro, pa.array([value, None], stored), spec, types)
    assert problems == []
    assert made.type == pa.struct([pa.field("1000", kind)])
    assert made.field(0).to_pylist() == [expected, None]


def test_partition_without_a_spec_has_the_file_s_types() -> None:
    for name in ("day as date", "decimal", "timestamp", "string"):
        avro, stored, value, _, _, kind, expected = CASES[name]
        made, _ = partition(avro, pa.array([value], stored), None, {})
        assert made.field(0).type == kind
        assert made.field(0).to_pylist() == [expected]


def test_partition_value_that_does_not_fit_is_a_problem_and_stays() -> None:
    spec = PartitionSpec(0, (PartitionField(1000, "p", "identity", (1,)),))
    made, problems = partition("string", pa.array([b"abc"]), spec, {1: PrimitiveType("long")})
    assert made.field(0).to_pylist() == ["abc"]
    assert [(p.code, p.field, p.found, p.expected) for p in problems] == [
        ("value-undecodable", "1000", "string", "int64")
    ]


def test_partition_field_that_the_file_does_not_have_is_null_and_a_problem() -> None:
    spec = PartitionSpec(0, (PartitionField(1001, "q", "bucket[4]", (1,)),))
    made, problems = partition("long", pa.array([5]), spec, {1: PrimitiveType("long")})
    assert made.to_pylist() == [{"1001": None}]
    assert made.type.field("1001").type == pa.int32()
    [problem] = problems
    assert (problem.severity, problem.found, problem.expected) == ("warning", "p (1000)", "q (1001)")


def test_names_as_java_writes_them() -> None:
    from iceexplore.manifests.column_stats._partition import _avro_name

    assert _avro_name("redpanda.timestamp_hour") == "redpanda_x2Etimestamp_hour"
    assert _avro_name("9x") == "_9x"


PAIRS = st.lists(
    st.none() | st.lists(st.tuples(st.integers(1, 5), st.binary(max_size=3)), max_size=6),
    max_size=12,
)


@given(PAIRS, st.integers(0, 3), st.booleans())
def test_one_column_s_values_equal_a_plain_lookup(rows: list[Any], skip: int, same: bool) -> None:
    """Also where a key is twice (the last counts), a map is null, and the array is a slice of a longer one."""
    if same:
        rows = [rows[-1] for _ in rows]  # the same keys in every row
    kind = pa.list_(pa.struct([pa.field("key", pa.int32()), pa.field("value", pa.binary())]))
    lists = [None if r is None else [{"key": k, "value": v} for k, v in r] for r in rows]
    keyed = _stats._Keyed(pa.array(lists, kind)[skip:])  # type: ignore[arg-type]
    for field_id in (*range(7), *range(7), *range(7), 2**40):  # few of a table's columns, and many
        wanted = [None if r is None else dict(r).get(field_id) for r in rows[skip:]]
        assert keyed.one(field_id).to_pylist() == wanted
    assert same or keyed._width is not None or keyed._in_order is not None


def maps(rows: int, **columns: list[Any]) -> pa.Table:
    ids = {"value_counts": ("f109", pa.int64()), "lower_bounds": ("f125", pa.binary())}
    arrays = {
        ids[name][0]: pa.array(
            [None if v is None else [{"key": k, "value": x} for k, x in v.items()] for v in values],
            pa.list_(pa.struct([pa.field("key", pa.int32()), pa.field("value", ids[name][1])])),
        )
        for name, values in columns.items()
    }
    return _stats.pairs_of(pa.table(arrays))


def test_column_statistics_are_typed_and_damage_is_marked() -> None:
    good, short = (7).to_bytes(8, "little"), b"\x01"
    pairs = maps(3, value_counts=[{1: 5}, {}, None], lower_bounds=[{1: good, 12: b"x"}, {1: short}, None])
    stats = _stats.MapStats(pairs).column(1, PrimitiveType("long"))
    assert stats.lower.type == pa.int64()
    assert stats.lower.to_pylist() == [7, None, None]
    assert stats.lower_raw.to_pylist() == [good, short, None]
    assert stats.lower_damaged.to_pylist() == [False, True, False]
    assert stats.upper.to_pylist() == [None] * 3
    assert stats.value_count.to_pylist() == [5, None, None]
    unknown = _stats.MapStats(pairs).column(12, None)
    assert unknown.lower.to_pylist() == [b"x", None, None]
    assert _stats.field_ids(pairs) == [1, 12]


def test_many_columns_are_decoded_together_and_are_what_each_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide table has few values in each of its columns: a call for each would cost seconds."""

    def bounds(n: int) -> dict[int, bytes]:
        return {i: (n * i).to_bytes(8, "little") if i % 2 else f"{n}-{i}".encode() for i in range(1, 400)}

    pairs = maps(
        4,
        value_counts=[{i: n + i for i in range(1, 400)} for n in range(3)] + [{}],
        lower_bounds=[bounds(1), {**bounds(2), 7: b"\x01"}, None, {5: (9).to_bytes(8, "little"), 500: b"x"}],
    )
    kinds: dict[int, Any] = {i: PrimitiveType("long" if i % 2 else "string") for i in range(1, 400)}
    kinds |= {500: None, 501: PrimitiveType("double")}
    alone = {i: _stats.MapStats(pairs).column(i, kind) for i, kind in kinds.items()}
    decode = Mock(wraps=decode_values)
    monkeypatch.setattr(_stats, "decode_values", decode)
    found = list(_stats.MapStats(pairs).columns(kinds))
    assert decode.call_count == 6, "both bounds of three types"
    assert sorted(one.field_id for one in found) == sorted(kinds)
    for one in found:
        for field in dataclasses.fields(one):
            given, wanted = getattr(one, field.name), getattr(alone[one.field_id], field.name)
            assert given == wanted or given.equals(wanted), (one.field_id, field.name)
    assert alone[7].lower_damaged.to_pylist() == [False, True, False, False]
    monkeypatch.setattr(_stats, "_AT_ONCE", 40)
    again = {one.field_id: one.lower for one in _stats.MapStats(pairs).columns(kinds)}
    assert all(again[i].equals(alone[i].lower) for i in kinds), "in blocks of ten columns"


def test_maps_as_written() -> None:
    made = _stats.map_columns(maps(2, value_counts=[{1: 5, 2: 6}, None]))
    assert made.schema.field("value_counts").type == pa.map_(pa.int32(), pa.int64())
    assert made.schema.field("lower_bounds").type == pa.map_(pa.int32(), pa.binary())
    assert made["value_counts"].to_pylist() == [[(1, 5), (2, 6)], None]
    assert made["lower_bounds"].to_pylist() == [None, None]
    assert np.all(np.asarray(made["column_sizes"].is_null()))


def test_partition_fields_of_type_null_are_null(tmp_path: Path) -> None:
    """Java writes the field of a dropped source column with the Avro type null, which takes no bytes."""
    lab = ix.create(tmp_path / "t", {"id": "long", "k": "string"}, partition_by="k", format_version=2)
    lab.append({"id": [1], "k": ["a"]})
    lab.evolve_spec(remove=["k"])
    lab.evolve_schema(drop=["k"])
    path = Path(lab.state.storage.resolve(lab.inspect.manifests()["path"][0]))
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows = list(reader)
        schema, metadata = json.loads(reader.metadata["avro.schema"]), dict(reader.metadata)
    data_file = next(f for f in schema["fields"] if f["name"] == "data_file")["type"]
    partition = next(f for f in data_file["fields"] if f["name"] == "partition")["type"]
    partition["fields"][0]["type"] = "null"
    for row in rows:
        row["data_file"]["partition"] = dict.fromkeys(row["data_file"]["partition"])
    metadata = {k: v for k, v in metadata.items() if not k.startswith("avro.")}
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, metadata=metadata)
    CACHE.clear()
    table = ix.open(tmp_path / "t")
    assert len(table.inspect.files()) == 1
    assert table.count() == 1
    assert not {"value-undecodable", "file-corrupt"} & {f.code for f in table.check()}
