"""Row groups that footers rule out: never one with a matching row, whatever the file's types; and why."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Context, Decimal
from functools import cache
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.expressions._model import NEVER, Expression, Op, Predicate, all_of, any_of
from iceexplore.graph import TableState
from iceexplore.planning import ROW_GROUP_SCHEMA, row_groups_of
from tests.planning.row_groups.parquet_files import put, state_of, tasks_of

EPOCH = dt.date(1970, 1, 1)
NUMBERS = itertools.count()
#: Many types: of the examples that a profile asks for each has its share.
few = settings(max_examples=max(20, settings().max_examples // 4))
table_of = cache(lambda name: state_of({"x": name}, format_version=3))


def written(columns: dict[str, pa.Array], ids: dict[str, int] | None = None, **how: Any) -> bytes:
    fields = []
    for number, (name, array) in enumerate(columns.items(), 1):
        wanted = number if ids is None else ids.get(name)
        fields.append(
            pa.field(name, array.type, metadata=None if wanted is None else {"PARQUET:field_id": str(wanted)})
        )
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields)), sink, **how)
    return sink.getvalue().to_pybytes()


def judged(state: TableState, data: bytes, residual: Expression, **how: Any) -> list[dict[str, Any]]:
    location = put(state, data, str(next(NUMBERS)))
    found = row_groups_of(state, tasks_of([location], residual), **how)
    assert found.schema == ROW_GROUP_SCHEMA
    return found.to_pylist()


# Types: column, Arrow type of the file, values, stored value -> literal's form, how it is written

days = st.integers(-1000, 1000)
texts = st.text("ab\u00e9\u6587\U0001f600", max_size=6).map(lambda x: "common prefix " + x)
same: Callable[[Any], Any] = lambda x: x  # noqa: E731 - a table of functions


def cents(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    top = 10**precision - 1
    return st.integers(-top, top).map(lambda n: Decimal(n).scaleb(-scale, Context(prec=60)))


TYPES: dict[str, tuple[str, pa.DataType, st.SearchStrategy[Any], Callable[[Any], Any], dict[str, Any]]] = {
    "boolean": ("boolean", pa.bool_(), st.booleans(), same, {}),
    "int": ("int", pa.int32(), st.integers(-5, 5), same, {}),
    "promoted int": ("long", pa.int32(), st.integers(-(2**31), 2**31 - 1), same, {}),
    "long": ("long", pa.int64(), st.integers(-(2**63), 2**63 - 1), same, {}),
    "unsigned": ("long", pa.uint32(), st.integers(0, 2**32 - 1), same, {}),
    "float": ("float", pa.float32(), st.floats(width=32), same, {}),
    "promoted float": ("double", pa.float32(), st.floats(width=32), same, {}),
    "half": ("float", pa.float16(), st.floats(width=16), same, {}),
    "double": ("double", pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, math.nan]), same, {}),
    "date": ("date", pa.date32(), days.map(lambda n: EPOCH + dt.timedelta(n)), lambda d: (d - EPOCH).days, {}),
    "day of timestamp": (
        "timestamp", pa.date32(), days.map(lambda n: EPOCH + dt.timedelta(n)),
        lambda d: (d - EPOCH).days * 86_400_000_000, {},
    ),
    "time": ("time", pa.time64("us"), st.integers(0, 86_399_999_999), same, {}),
    "time in ms": ("time", pa.time32("ms"), st.integers(0, 86_399_999), lambda n: n * 1000, {}),
    "timestamp": ("timestamp", pa.timestamp("us"), st.integers(-(10**15), 10**15), same, {}),
    "timestamp in ms": (
        "timestamptz", pa.timestamp("ms", "UTC"), st.integers(-(10**12), 10**12), lambda n: n * 1000, {},
    ),
    "timestamp in ns": ("timestamp", pa.timestamp("ns"), st.integers(-5000, 5000), lambda n: int(n / 1000), {}),
    "timestamp of ns": ("timestamp_ns", pa.timestamp("ns"), st.integers(-(10**18), 10**18), same, {}),
    "int96": (
        "timestamp", pa.timestamp("ns"), st.integers(-(10**12), 10**12).map(lambda n: n * 1000),
        lambda n: n // 1000, {"use_deprecated_int96_timestamps": True},
    ),
    "decimal": ("decimal(9,2)", pa.decimal128(9, 2), cents(9, 2), same, {}),
    "decimal of int": ("decimal(9,2)", pa.decimal128(9, 2), cents(9, 2), same, {"store_decimal_as_integer": True}),
    "decimal of long": ("decimal(18,4)", pa.decimal128(18, 4), cents(18, 4), same, {"store_decimal_as_integer": True}),
    "wide decimal": ("decimal(38,10)", pa.decimal128(38, 10), cents(38, 10), same, {}),
    "promoted decimal": ("decimal(20,2)", pa.decimal128(9, 2), cents(9, 2), same, {}),
    "string": ("string", pa.string(), texts, same, {}),
    "binary": ("binary", pa.binary(), st.binary(max_size=4), same, {}),
    "uuid": ("uuid", pa.binary(16), st.binary(min_size=16, max_size=16), same, {}),
    "fixed": ("fixed[2]", pa.binary(2), st.binary(min_size=2, max_size=2), same, {}),
}  # fmt: skip
OPS: tuple[Op, ...] = ("<", "<=", ">", ">=", "=", "!=", "in", "not-in", "is-null", "not-null")


def holds(op: Op, value: Any, literals: tuple[Any, ...]) -> bool:
    """A predicate of one value, by the words of SQL and IEEE 754."""
    if op in ("is-null", "not-null"):
        return (value is None) == (op == "is-null")
    if value is None:
        return False
    match op:
        case "=" | "in":
            return any(value == x for x in literals)
        case "!=" | "not-in":
            return all(value != x for x in literals)
        case "starts-with":
            return cast(bool, value.startswith(literals[0]))
        case "not-starts-with":
            return not value.startswith(literals[0])
        case "is-nan":
            return bool(value != value)
        case "not-nan":
            return bool(value == value)
        case "<":
            return bool(value < literals[0])
        case "<=":
            return bool(value <= literals[0])
        case ">":
            return bool(value > literals[0])
    return bool(value >= literals[0])


@pytest.mark.parametrize("case", TYPES)
@few
@given(data=st.data())
def test_no_row_group_with_a_matching_row_is_out(case: str, data: st.DataObject) -> None:
    name, arrow, values, form, how = TYPES[case]
    column = data.draw(st.lists(st.none() | values, min_size=1, max_size=12))
    stored = pa.array([None if v is None else pa.scalar(v, arrow) for v in column], arrow)
    ops = OPS
    if name == "string":
        ops = (*OPS, "starts-with", "not-starts-with")
    if name in ("float", "double"):
        ops = (*OPS, "is-nan", "not-nan")
    op: Op = data.draw(st.sampled_from(ops))
    near = (
        st.sampled_from([v for v in column if v is not None]) | values if any(v is not None for v in column) else values
    )
    drawn = near.map(form).filter(lambda x: x == x)
    count = 0 if op in ("is-null", "not-null", "is-nan", "not-nan") else 3 if op in ("in", "not-in") else 1
    literals = tuple(data.draw(st.lists(drawn, min_size=count, max_size=count)))
    if op.endswith("starts-with"):
        literals = (literals[0][: data.draw(st.integers(0, 20))],)
    state = table_of(name)
    kind = state.schema.fields[0].type
    size = data.draw(st.integers(1, 5))
    raw = written(
        {"x": stored}, row_group_size=size, write_statistics=data.draw(st.booleans()),
        bloom_filter_options=None if case in ("boolean", "int96") else {"x": {"ndv": 16, "fpp": 0.1}}, **how,
    )  # fmt: skip
    found = judged(state, raw, Predicate(1, op, literals, "x", kind), bloom=True)
    assert not list(state.problems)
    assert [r["row_group"] for r in found] == list(range(math.ceil(len(column) / size)))
    for row in found:
        at = row["row_group"] * size
        rows = [None if v is None else form(v) for v in column[at : at + size]]
        assert row["rows"] == len(rows)
        if any(holds(op, v, literals) for v in rows):
            assert row["may"], (op, literals, rows, row)
        elif not row["may"]:
            assert row["why"]
            assert row["by"] in ("row-group bounds", "bloom filter")


@pytest.mark.parametrize("case", [c for c in TYPES if c not in ("int96", "boolean")])
def test_bounds_do_rule_out(case: str) -> None:
    """Each type, once, with values that a literal is far from: bounds alone must tell."""
    name, arrow, _values, form, how = TYPES[case]
    value = {
        "float": 1.5, "double": 1.5, "decimal": Decimal(1), "string": "b", "date": EPOCH, "binary": b"b",
        "fixed": b"bb", "uuid": b"b" * 16,
    }.get(name.split("(")[0].split("[")[0], 1_000)  # fmt: skip
    if pa.types.is_date(arrow):
        value = EPOCH
    if isinstance(value, Decimal):
        value = value.quantize(Decimal(1).scaleb(-cast(pa.Decimal128Type, arrow).scale))
    stored = pa.array([pa.scalar(value, arrow)] * 3, arrow)
    literal = {str: "c", bytes: b"c" * 16, Decimal: Decimal(2), float: 2.0}.get(type(form(value)), 10**17)
    if name.startswith("fixed"):
        literal = b"cc"
    state = table_of(name)
    kind = state.schema.fields[0].type
    equal: Op = "="
    for op in (equal, OPS[2]):
        (row,) = judged(state, written({"x": stored}, **how), Predicate(1, op, (literal,), "x", kind, "x?"))
        assert (row["may"], row["by"], row["term"], row["column"]) == (False, "row-group bounds", "x?", "x")
        assert row["null_count"] == 0
        assert row["lower"]
        assert "x is " in row["why"]


LONG = state_of({"x": "long"}).schema.fields[0].type


def asks(number: int, op: Op, *literals: Any, name: str = "x") -> Predicate:
    return Predicate(number, op, literals, name, LONG, f"{name} {op} {literals}")


def test_columns_are_found_by_id_also_in_structs() -> None:
    state = state_of({"a": "long", "st": "struct<b: long, a: long>"})
    path, inner = dict(state.schema.walk())["st.b"], dict(state.schema.walk())["st.a"]
    assert (path.field_id, inner.field_id) == (3, 4)
    kind = pa.struct(
        [
            pa.field("renamed", pa.int64(), metadata={"PARQUET:field_id": "4"}),
            pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "3"}),
        ]
    )
    data = written({"st": pa.array([{"renamed": 1, "a": 100}, None], kind)}, {"st": 2})
    assert judged(state, data, asks(3, "=", 1))[0]["may"] is False
    assert judged(state, data, asks(3, "=", 100))[0]["may"] is True
    assert judged(state, data, asks(4, "=", 100))[0]["may"] is False
    assert judged(state, data, asks(3, "is-null"))[0]["may"] is True
    (row,) = judged(state, data, asks(1, "not-null", name="a"))
    assert row["may"] is False
    assert "a is null in every row, as the file has no such column" in row["why"]
    assert judged(state, data, asks(1, "is-null"))[0]["may"] is True


def test_defaults_and_tuples_replace_columns_that_a_file_lacks() -> None:
    table = ix.empty({"x": "long", "p": "long"}, partition_by=["p"], format_version=3)
    table.evolve_schema(add={"y": "long"}, initial_default={"y": 7})
    state = table._state
    location = put(state, written({"x": pa.array([1, 2])}), "lacks")
    p = pa.StructArray.from_arrays([pa.array([5], pa.int64())], names=["1000"])

    def may(residual: Expression, partition: pa.StructArray | None = p) -> dict[str, Any]:
        tasks = tasks_of([location], residual)
        files = replace(tasks.files, partition=partition)
        (row,) = row_groups_of(state, replace(tasks, files=files)).to_pylist()
        return row

    assert may(asks(3, "=", 7, name="y"))["may"] is True
    why = "y is 7, its initial default, in every row, as the file has no such column"
    assert why in may(asks(3, "<", 7, name="y"))["why"]
    assert may(asks(2, "=", 5, name="p"))["may"] is True
    assert may(asks(2, "=", 6, name="p"))["may"] is False
    assert may(asks(2, "is-null", name="p"))["may"] is False
    null = pa.StructArray.from_arrays([pa.nulls(1, pa.int64())], names=["1000"])
    assert may(asks(2, "=", 6, name="p"), null)["may"] is False
    assert may(asks(2, "is-null", name="p"), null)["may"] is True


def test_a_name_mapping_gives_ids() -> None:
    mapping = [
        {"field-id": 1, "names": ["x", "old"]},
        {"field-id": 2, "names": ["st"], "fields": [{"field-id": 3, "names": ["was"]}]},
    ]
    state = state_of(
        {"x": "long", "st": "struct<b: long>"}, properties={"schema.name-mapping.default": json.dumps(mapping)}
    )
    data = written({"other": pa.array([5]), "st": pa.array([{"was": 1}]), "old": pa.array([2])}, {})
    assert judged(state, data, asks(1, "=", 5))[0]["may"] is False
    assert judged(state, data, asks(1, "=", 2))[0]["may"] is True
    assert judged(state, data, asks(3, "=", 2))[0]["may"] is False
    assert judged(state, data, asks(3, "=", 1))[0]["may"] is True


def test_without_ids_and_mapping_a_column_is_taken_where_readers_agree() -> None:
    state = state_of({"x": "long", "y": "long"})
    there = written({"x": pa.array([5]), "y": pa.array([6])}, {})
    assert judged(state, there, asks(2, "=", 5))[0]["may"] is False
    turned = written({"y": pa.array([5]), "x": pa.array([6])}, {})
    assert judged(state, turned, asks(2, "=", 7))[0]["may"] is True


def test_a_file_with_ids_here_and_there_is_read_differently() -> None:
    state = state_of({"x": "long", "y": "long"})
    data = written({"x": pa.array([5]), "y": pa.array([6])}, {"x": 1})
    assert judged(state, data, asks(1, "=", 6))[0]["may"] is False
    assert judged(state, data, asks(2, "=", 7))[0]["may"] is True


def test_what_a_type_cannot_represent_is_not_judged() -> None:
    state = state_of({"x": "long"})
    assert judged(state, written({"x": pa.array(["1"])}), asks(1, "=", 7))[0]["may"] is True
    assert judged(state, written({"x": pa.array([[1]])}), asks(1, "=", 7))[0]["may"] is True


def test_and_takes_the_first_reason_or_needs_all() -> None:
    state = state_of({"x": "long", "y": "long"})
    data = written({"x": pa.array([1, 2, 3, 4]), "y": pa.array([10, 20, 30, 40])}, row_group_size=2)
    one, other = asks(1, ">", 2), asks(2, "<", 30, name="y")
    first, second = judged(state, data, all_of(one, other))
    assert (first["may"], first["term"], first["column"]) == (False, one.text, "x")
    assert (second["may"], second["term"], second["column"]) == (False, other.text, "y")
    assert [r["may"] for r in judged(state, data, any_of(one, other))] == [True, True]
    first, second = judged(state, data, any_of(asks(1, ">", 9), asks(2, ">", 90, name="y")))
    assert first["term"] == f"{asks(1, '>', 9).text} or {asks(2, '>', 90, name='y').text}"
    assert first["why"] == "x is 1 to 2 in the row group; y is 10 to 20 in the row group"
    assert first["column"] is None
    assert [r["may"] for r in judged(state, data, NEVER)] == [False, False]


def test_places_and_sizes_are_those_of_the_footer() -> None:
    state = state_of({"x": "long", "y": "string"})
    data = written({"x": pa.array(range(100)), "y": pa.array(["a"] * 100)}, row_group_size=30)
    found = judged(state, data, asks(1, "<", 35))
    footer = pq.read_metadata(pa.BufferReader(data))
    assert [r["rows"] for r in found] == [30, 30, 30, 10]
    assert [r["may"] for r in found] == [True, True, False, False]
    for i, row in enumerate(found):
        group = footer.row_group(i)
        assert row["bytes"] == group.total_byte_size
        assert row["offset"] == min(group.column(0).dictionary_page_offset, group.column(0).data_page_offset)  # type: ignore[type-var]


def test_bloom_filters_are_read_only_where_they_can_tell() -> None:
    state = state_of({"x": "long"})
    evens = pa.array(range(0, 2000, 2))
    data = written({"x": evens}, row_group_size=250, bloom_filter_options={"x": {"ndv": 250, "fpp": 0.001}})
    plain = judged(state, data, asks(1, "=", 1001))
    assert sum(r["may"] for r in plain) == 1
    before = len(state.storage.reads)
    verdicts = judged(state, data, asks(1, "=", 1001), bloom=True)
    assert sum(r["may"] for r in verdicts) == 0
    assert [r["by"] for r in verdicts].count("bloom filter") == 1
    assert "rules out 1001" in next(r["why"] for r in verdicts if r["by"] == "bloom filter")
    assert sum(r.offset > 0 and r.length < len(data) for r in list(state.storage.reads)[before:]) <= 2
    assert sum(r["may"] for r in judged(state, data, asks(1, "in", 1001, 1002), bloom=True)) == 1


def test_orc_and_avro_are_one_row_that_says_so() -> None:
    state = state_of({"x": "long"})
    tasks = tasks_of(["/warehouse/db/events/data/1.orc"], asks(1, "=", 1), file_format="orc", file_size_in_bytes=9)
    (row,) = row_groups_of(state, tasks).to_pylist()
    assert (row["may"], row["row_group"], row["rows"], row["bytes"]) == (True, None, 10, 9)
    assert row["why"] == "ORC files are read whole: only row groups of Parquet files can be pruned"


def test_damage_is_a_problem_and_rules_nothing_out() -> None:
    good = written({"x": pa.array(range(10))})
    for name, data in {"cut": good[:-20], "none": b"", "text": b"no Parquet file at all, but long enough"}.items():
        state = state_of({"x": "long"})
        locations = [put(state, data, name), put(state, good, "good")]
        found = row_groups_of(state, tasks_of(locations, asks(1, "=", 99))).to_pylist()
        assert [r["may"] for r in found] == [True, False]
        assert "the footer cannot be read" in found[0]["why"]
        assert [p.where for p in state.problems] == locations[:1]
    state = state_of({"x": "long"})
    (row,) = row_groups_of(state, tasks_of(["/warehouse/db/events/data/none.parquet"], asks(1, "=", 9))).to_pylist()
    assert row["may"] is True
    assert [p.code for p in state.problems] == ["file-missing"]


@given(st.data())
def test_changed_footers_end_in_problems_not_in_crashes(data: st.DataObject) -> None:
    good = bytearray(written({"x": pa.array([1, 2, 3]), "y": pa.array(["a", "b", None])}, row_group_size=2))
    footer = int.from_bytes(good[-8:-4], "little") + 8
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(len(good) - footer, len(good) - 1))] = data.draw(st.integers(0, 255))
    state = state_of({"x": "long", "y": "string"})
    found = judged(state, bytes(good), any_of(asks(1, "<", 0), asks(2, "is-null")), bloom=True)
    for row in found:
        assert row["may"] or row["why"]


def test_many_files_in_their_order() -> None:
    state = state_of({"x": "long"})
    locations = [put(state, written({"x": pa.array([i])}), str(i)) for i in range(40)]
    found = row_groups_of(state, tasks_of(locations, asks(1, "=", 17)))
    assert found["file"].to_pylist() == list(range(40))
    assert [i for i, may in enumerate(found["may"].to_pylist()) if may] == [17]
