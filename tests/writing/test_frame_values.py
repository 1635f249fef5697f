"""Arrow's values below null parents, and types that no file could hold."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from iceexplore.arrow import build
from iceexplore.errors import OptionError
from iceexplore.metadata import (
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    Schema,
    StructType,
    arrow_type,
    human_value,
)
from iceexplore.reading._equality_deletes import columns_of
from iceexplore.writing._fit_schema import fit_columns, fitted
from iceexplore.writing._frames import arrow_frame
from iceexplore.writing._required_fields import with_required
from iceexplore.writing._type_strings import type_of
from tests.helpers.hangs import ends

BAD_TIME = pa.array([5, -1, 6], pa.int64()).cast(pa.time64("us"))
OFFSETS = pa.array([0, 1, 2, 3], pa.int32())
KEYS = pa.array([1, 2, 3])
HIDDEN = pa.array([False, True, False])
UNSEEN: list[tuple[str, pa.Array, pa.Array]] = [
    ("struct<c:time>", pa.StructArray.from_arrays([BAD_TIME], names=["c"], mask=HIDDEN),
     pa.StructArray.from_arrays([BAD_TIME], names=["c"])),
    ("list<time>", pa.ListArray.from_arrays(OFFSETS, BAD_TIME, mask=HIDDEN),
     pa.ListArray.from_arrays(OFFSETS, BAD_TIME)),
    ("map<int,time>", build.map_array(OFFSETS, KEYS, BAD_TIME, mask=HIDDEN),
     build.map_array(OFFSETS, KEYS, BAD_TIME)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "unseen", "seen"), UNSEEN, ids=[kind for kind, _, _ in UNSEEN])
def test_what_is_under_null_parents_does_not_matter(kind: str, unseen: pa.Array, seen: pa.Array) -> None:
    """A value that fits nothing, but that nobody reads."""
    typed = type_of(kind)
    for part in (unseen, unseen[1:], unseen[:2]):
        made = fitted(part, typed, arrow_type(typed), "x")
        assert made.to_pylist() == part.to_pylist()
    with pytest.raises(OptionError, match=r"column 'x\.(c|element|value)': .*not a time of day"):
        fitted(seen, typed, arrow_type(typed), "x")


STRUCT = StructType((NestedField(1, "a", PrimitiveType("string"), True),))
NESTED: list[tuple[Any, Any]] = [
    (STRUCT, [{"a": "x"}, None, {"a": "y"}]),
    (ListType(NestedField(2, "element", STRUCT)), [[{"a": "x"}], None, [None, {"a": "y"}]]),
    (MapType(NestedField(2, "key", STRUCT, True), NestedField(3, "value", STRUCT)),
     [[({"a": "k"}, {"a": "x"})], None, [({"a": "l"}, None)]]),
    (StructType((NestedField(2, "s", STRUCT, True),)), [{"s": {"a": "x"}}, None, {"s": {"a": "y"}}]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "rows"), NESTED)
@pytest.mark.parametrize("first", [0, 1])
def test_required_fields_are_null_nowhere(kind: Any, rows: list[Any], first: int) -> None:
    target = arrow_type(kind)
    made = with_required(pa.array(rows, target)[first:], kind, "x")
    assert made.to_pylist() == rows[first:]
    made.validate(full=True)
    assert made.cast(target).equals(made)  # Arrow's cast looks at every field without its parents


@pytest.mark.parametrize("given", ["fixed[0]", "struct<>", "list<fixed[0]>", {"type": "struct", "fields": []}])
def test_types_that_no_file_holds(given: Any) -> None:
    with pytest.raises(OptionError, match="Parquet has no"):
        type_of(given)


def test_the_lowest_instant_is_no_time_at_all() -> None:
    nat = pa.array([-(2**63)], pa.int64()).cast(pa.timestamp("ns"))[0]
    for value in (nat.as_py(), np.datetime64(-(2**63), "ns"), -(2**63)):
        text = human_value(PrimitiveType("timestamp_ns"), "identity", value)
        assert text == "1677-09-21T00:12:43.145224192"
    assert human_value(PrimitiveType("timestamp"), "identity", dt.datetime(2024, 1, 1)) == "2024-01-01T00:00:00"


NULLS = [None, pd.NaT, pd.NA, np.datetime64("NaT"), np.datetime64("NaT", "us"), np.timedelta64("NaT")]
GIVEN: list[tuple[str, Any, Any]] = [
    ("long", 1, 1),
    ("string", "x", "x"),
    ("double", 1.5, 1.5),
    ("timestamp", pd.Timestamp("2024-01-01"), dt.datetime(2024, 1, 1)),
    ("timestamp", np.datetime64("2024-01-01", "us"), dt.datetime(2024, 1, 1)),
    ("date", dt.date(2024, 1, 1), dt.date(2024, 1, 1)),
    ("list<int>", [1], [1]),
    ("struct<a:int>", {"a": 1}, {"a": 1}),
    ("map<string,int>", {"a": 1}, [("a", 1)]),
]


@pytest.mark.parametrize(("kind", "value", "seen"), GIVEN)
def test_every_null_of_pandas_and_numpy_is_null(kind: str, value: Any, seen: Any) -> None:
    """Among Python's values, and in pandas' and NumPy's columns of objects."""
    typed = type_of(kind)
    schema = Schema(0, (NestedField(1, "x", typed),))
    for null in NULLS:
        held = np.empty(2, object)
        held[:] = [value, null]
        series = pd.Series(held, dtype=object)
        frames = [{"x": column} for column in ([value, null], (null, value), held, series)]
        for frame in (*frames, pd.DataFrame({"x": series})):
            given = arrow_frame(frame, schema)["x"].combine_chunks()
            made = fitted(given, typed, arrow_type(typed), "x").to_pylist()
            assert made in ([seen, None], [None, seen]), (null, frame)
        assert arrow_frame({"x": [null, null]}, schema)["x"].null_count == 2


def test_nulls_inside_of_nested_values() -> None:
    rows = {"x": [{"l": [1, pd.NA]}, {"l": pd.NA}, {"l": [pd.NaT]}]}
    typed = type_of("struct<l:list<int>>")
    found = arrow_frame(rows, Schema(0, (NestedField(1, "x", typed),)))["x"].to_pylist()
    assert found == [{"l": [1, None]}, {"l": None}, {"l": [None]}]
    keyed = Schema(0, (NestedField(1, "x", type_of("map<string,int>")),))
    for null in NULLS:
        with pytest.raises(OptionError, match="column 'x' has a null key"):
            arrow_frame({"x": [[("a", 1), (null, 2)]]}, keyed)


def test_nan_is_no_null_among_pythons_values() -> None:
    schema = Schema(0, (NestedField(1, "x", PrimitiveType("double")),))
    assert str(arrow_frame({"x": [float("nan"), pd.NA]}, schema)["x"].to_pylist()) == "[nan, None]"
    with pytest.raises(OptionError, match="column 'x' has values that Arrow cannot represent"):
        arrow_frame({"x": ["a", float("nan")]}, Schema(0, (NestedField(1, "x", PrimitiveType("string")),)))


def test_many_columns_take_their_own_time() -> None:
    """Each column's name was looked for in a list of all, made anew: 8 seconds of 3,000, with the square."""
    fields = tuple(NestedField(i + 1, f"c{i}", PrimitiveType("long")) for i in range(20_000))
    table = pa.table({f.name: [1] for f in fields})
    with ends(30):
        assert fit_columns(table, Schema(0, fields), complete=True).num_columns == 20_000


def test_many_columns_are_found_in_their_own_time() -> None:
    """Each was looked for among all: 4 seconds of 3,000, with the square."""
    fields = tuple(NestedField(i + 1, f"c{i}", PrimitiveType("long")) for i in range(20_000))
    ids = [pa.field(f.name, pa.int64(), metadata={"PARQUET:field_id": str(f.field_id)}) for f in fields]
    table = pa.Table.from_arrays([pa.array([1])] * 20_000, schema=pa.schema(ids))
    with ends(30):
        found = columns_of(table, [(f,) for f in reversed(fields)])
    assert len(found) == 20_000
