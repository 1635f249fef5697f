"""Required columns, and those of NaN alone, prune as in PyIceberg's evaluator, and never a file with a matching row."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyiceberg import expressions as ex
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField

from iceexplore.errors import Problems
from iceexplore.manifests import EntryBatch, stats_type
from iceexplore.metadata import parse_table_metadata
from iceexplore.planning import Filter, make_filter

COLUMNS: dict[int, tuple[str, str, bool]] = {
    1: ("must", "long", True), 2: ("may", "long", False), 3: ("x", "double", True), 4: ("y", "double", False),
}  # fmt: skip
ARROW = {"long": pa.int64(), "double": pa.float64()}


def _metadata() -> Any:
    fields = [{"id": i, "name": n, "type": t, "required": r} for i, (n, t, r) in COLUMNS.items()]
    document = {
        "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
        "last-sequence-number": 1, "last-updated-ms": 1, "last-column-id": 4, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0, "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
    }  # fmt: skip
    return parse_table_metadata(document, "/t/metadata/v1.metadata.json", Problems())


METADATA = _metadata()
SCHEMA = Schema(*(
    NestedField(i, n, LongType() if t == "long" else DoubleType(), required=r) for i, (n, t, r) in COLUMNS.items()
))  # fmt: skip


def _kept(stats: dict[int, dict[str, Any]], rows: int, wanted: Filter) -> bool:
    entry = {"content_type": 0, "location": "a", "record_count": rows, "partition_spec_id": 0}
    held = {i: pa.array([s], stats_type(ARROW[COLUMNS[i][1]])) for i, s in stats.items()}  # type: ignore[arg-type]
    may, _ = wanted.evaluate(EntryBatch.of_rows([entry], stats=held), METADATA)
    return bool(may[0].as_py())


def _theirs(stats: dict[int, dict[str, Any]], rows: int, expression: Any) -> bool:
    kinds = {i: SCHEMA.find_field(i).field_type for i in stats}

    def of(name: str) -> dict[int, Any]:
        return {i: s[name] for i, s in stats.items() if s[name] is not None}

    bounds = {n: {i: to_bytes(kinds[i], v) for i, v in of(n).items()} for n in ("lower", "upper")}
    file = DataFile.from_args(
        file_path="a", record_count=rows, value_counts=of("value_count"), null_value_counts=of("null_count"),
        nan_value_counts=of("nan_count"), lower_bounds=bounds["lower"], upper_bounds=bounds["upper"],
    )  # fmt: skip
    return bool(_InclusiveMetricsEvaluator(SCHEMA, expression).eval(file))


def _questions(name: str, kind: str) -> list[tuple[Any, Any]]:
    made: list[tuple[Any, Any]] = [
        (ex.IsNull(name), lambda v: v is None),
        (ex.NotNull(name), lambda v: v is not None),
    ]
    if kind == "double":
        made += [
            (ex.IsNaN(name), lambda v: v is not None and math.isnan(v)),
            (ex.NotNaN(name), lambda v: v is None or not math.isnan(v)),
        ]
    for x in (-1, 0, 3):
        made += [
            (ex.LessThan(name, x), lambda v, x=x: v is not None and v < x),
            (ex.LessThanOrEqual(name, x), lambda v, x=x: v is not None and v <= x),
            (ex.GreaterThan(name, x), lambda v, x=x: v is not None and v > x),
            (ex.GreaterThanOrEqual(name, x), lambda v, x=x: v is not None and v >= x),
            (ex.EqualTo(name, x), lambda v, x=x: v is not None and v == x),
            (ex.NotEqualTo(name, x), lambda v, x=x: v is not None and v != x),
            (ex.In(name, {x, 9}), lambda v, x=x: v in (x, 9)),
            (ex.NotIn(name, {x, 9}), lambda v, x=x: v is not None and v not in (x, 9)),
        ]
    return made


ASKED = {
    i: [(q, make_filter(METADATA, METADATA.schema(), q), test) for q, test in _questions(n, t)]
    for i, (n, t, _) in COLUMNS.items()
}


def _stats(values: list[Any], absent: set[str]) -> dict[str, Any]:
    real = [v for v in values if v is not None and not math.isnan(v)]
    made = {
        "lower": min(real, default=None), "upper": max(real, default=None), "value_count": len(values),
        "null_count": sum(v is None for v in values), "nan_count": sum(v is not None and math.isnan(v) for v in values),
        "tight_bounds": None,
    }  # fmt: skip
    return {k: None if k in absent else v for k, v in made.items()}


LONGS = st.integers(-2, 4)
DOUBLES = st.one_of(st.integers(-2, 4).map(float), st.just(math.nan))


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_no_file_with_a_matching_row_is_pruned_and_none_is_kept_that_pyiceberg_prunes(data: Any) -> None:
    rows = data.draw(st.integers(1, 4))
    field = data.draw(st.sampled_from(sorted(COLUMNS)))
    _, kind, required = COLUMNS[field]
    some = LONGS if kind == "long" else DOUBLES
    values = data.draw(st.lists(some if required else st.none() | some, min_size=rows, max_size=rows))
    if kind == "double" and data.draw(st.booleans()):
        values = [math.nan] * rows
    absent = data.draw(st.sets(st.sampled_from(["lower", "upper", "null_count", "nan_count", "value_count"])))
    if kind == "long":
        absent |= {"nan_count"}
    stats = {field: _stats(values, absent)}
    there = any(v is not None for k, v in stats[field].items() if k not in ("null_count", "nan_count"))
    for question, wanted, test in ASKED[field]:
        kept = _kept(stats, rows, wanted)
        assert kept or not any(test(v) for v in values), (question, values, stats)
        if there and kept:  # of a file that shows no value of a required column it is not believed that it holds it
            assert _theirs(stats, rows, question), (question, values, stats)


@pytest.mark.parametrize(("field", "stats", "question"), [
    (1, {"lower": 1, "upper": 2}, "must is null"),
    (1, {"value_count": 2}, "must is null"),
    (3, {"value_count": 2, "nan_count": 2}, "x is null"),
    (3, {"value_count": 2, "nan_count": 2}, "x = 1"),
    (4, {"value_count": 2, "nan_count": 2}, "y is null"),
    (4, {"value_count": 2, "nan_count": 2}, "y is not nan"),
])  # fmt: skip
def test_what_required_and_nan_alone_prune(field: int, stats: dict[str, Any], question: str) -> None:
    full = dict.fromkeys(("lower", "upper", "value_count", "null_count", "nan_count", "tight_bounds")) | stats
    assert not _kept({field: full}, 2, make_filter(METADATA, METADATA.schema(), question))


def test_required_is_not_believed_where_the_entry_speaks_against_it() -> None:
    nothing = dict.fromkeys(("lower", "upper", "value_count", "null_count", "nan_count", "tight_bounds"))
    wanted = make_filter(METADATA, METADATA.schema(), "must is null")
    assert _kept({}, 2, wanted)  # the file may lack the column
    assert _kept({1: nothing}, 2, wanted)
    assert _kept({1: nothing | {"value_count": 2, "null_count": 1}}, 2, wanted)
    assert not _kept({1: SimpleNamespace(**nothing).__dict__ | {"lower": 1}}, 2, wanted)
