"""Tables of widgets: sorted and filtered as pandas would, whatever the type; what leaves them; nonsense refused."""

from __future__ import annotations

import csv
import io
import json
import operator
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.graph import to_frame
from iceexplore.widgets.core._panel import Panel, PanelHost
from iceexplore.widgets.core._table_widget import TableWidget
from iceexplore.widgets.grid._cells import text_of, values_of
from iceexplore.widgets.grid._copy_export import MAX_TEXT, cell_text, csv_chunk, row_json
from iceexplore.widgets.grid._filter_sort import rows_in_order
from iceexplore.widgets.grid._page import page_of
from iceexplore.widgets.grid._panel import GridPanel, GridSource
from iceexplore.widgets.grid._query import Filter, GridQuery, Order
from iceexplore.widgets.grid._table import FrameTable, GridTable, ListTable
from iceexplore.widgets.grid._typed_values import FilterError, understood
from iceexplore.widgets.grid._view import Look

HOSTILE = "<img src=x onerror=alert(1)>\u202e</script>"


def rows(frame: pd.DataFrame, *filters: Filter, sort: Any = None) -> list[int]:
    found = rows_in_order(FrameTable(frame), Order(sort, filters))
    return list(range(len(frame))) if found is None else found.tolist()


def frame_of(**columns: Any) -> pd.DataFrame:
    return to_frame(pa.table(columns))


EVERY = frame_of(
    number=pa.array([3, None, 2**63 - 1, -5, 3], pa.int64()),
    real=pa.array([0.5, float("nan"), None, -1.0, 0.5]),
    text=pa.array(["b", "A", None, "a=1", "é"]),
    when=pa.array([0, 10**6, None, -1, 5], pa.timestamp("us", "UTC")),
    day=pa.array([0, 1, None, -1, 1], pa.date32()),
    yes=pa.array([True, False, None, True, False]),
    raw=pa.array([b"\x01", b"\xff\x00", None, b"", b"\x01\x02"]),
    money=pa.array(["1.10", "0.00", None, "-2.00", "1.10"]).cast(pa.decimal128(9, 2)),
    part=pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None, {"a": 1, "b": None}, {"a": 0, "b": "z"}]),
    offsets=pa.array([[4], [4, 8], None, [], [1]]),
    sizes=pa.array([[(1, 10)], [], None, [(2, 99)], [(1, 5)]], pa.map_(pa.int32(), pa.int64())),
    nothing=pa.nulls(5),
    uuid=pa.array([b"b" * 16, b"a" * 16, None, b"c" * 16, b"a" * 16], pa.binary(16)),
)


@given(
    st.lists(
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
        | st.one_of(st.none(), st.floats(allow_nan=False))
        | st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=3)),
        max_size=12,
    ),
    st.sampled_from(["asc", "desc"]),
)
def test_sorting_is_stable_and_nulls_are_last(values: list[Any], way: Any) -> None:
    kinds = {type(v) for v in values if v is not None}
    if len(kinds) > 1:
        values = [v for v in values if v is None or isinstance(v, next(iter(kinds)))]
    frame = frame_of(v=pa.array(values))
    there = [i for i, v in enumerate(values) if v is not None]
    # Python's sort is stable, and reverse= keeps the order of equals
    key = {i: values[i].encode() if isinstance(values[i], str) else values[i] for i in there}
    wanted = sorted(there, key=lambda i: key[i], reverse=way == "desc")
    assert rows(frame, sort=(0, way)) == wanted + [i for i, v in enumerate(values) if v is None]


@pytest.mark.parametrize("column", range(EVERY.shape[1]))
def test_every_type_sorts_and_pages(column: int) -> None:
    for way in ("asc", "desc"):
        assert sorted(rows(EVERY, sort=(column, way))) == [0, 1, 2, 3, 4]
    if EVERY.columns[column] != "nothing":
        last = rows(EVERY, sort=(column, "desc"))[-1]
        assert EVERY.iloc[:, column].isna().iloc[last]


def test_orders_of_nested_values() -> None:
    names = list(EVERY.columns)
    assert rows(EVERY, sort=(names.index("part"), "asc")) == [4, 0, 3, 1, 2], "field by field"
    assert rows(EVERY, sort=(names.index("offsets"), "asc")) == [4, 1, 0, 3, 2], "an empty list before null"
    assert rows(EVERY, sort=(names.index("uuid"), "asc")) == [1, 4, 0, 3, 2]


@pytest.mark.parametrize(
    ("column", "op", "value", "wanted"),
    [
        ("number", "=", "3", [0, 4]),
        ("number", "=", " 9,223,372,036,854,775,807 ", [2]),
        ("number", "<", "2.5", [3]),
        ("number", ">", "-99999999999999999999", [0, 2, 3, 4]),
        ("number", ">", "99999999999999999999", []),
        ("number", "=", "99999999999999999999", []),
        ("number", "contains", "3", [0, 2, 4]),
        ("number", "null", "", [1]),
        ("number", "not null", "", [0, 2, 3, 4]),
        ("real", "<", "0.5", [3]),
        ("text", "=", "a", [1]),
        ("text", "contains", "A", [1, 3]),
        ("text", ">", "a", [0, 3, 4]),
        ("text", "contains", "É", [4]),
        ("text", "contains", ".*", []),
        ("when", "<", "1970-01-01T00:00:00.000005Z", [0, 3]),
        ("when", "contains", "1969-12-31", [3]),
        ("day", "=", "1970-01-02", [1, 4]),
        ("day", "contains", "-02", [1, 4]),
        ("yes", "=", "TRUE", [0, 3]),
        ("yes", "contains", "RU", [0, 3]),
        ("number", "contains", "3x", []),
        ("real", "contains", "5", [0, 4]),
        ("money", "contains", "2.", [3]),
        ("raw", "contains", "0x01", [0, 4]),
        ("raw", "contains", "zz", []),
        ("money", ">", "1", [0, 4]),
        ("part", "contains", "Y", [1]),
        ("part", "null", "", [2]),
        ("offsets", "contains", "8", [1]),
        ("sizes", "contains", "99", [3]),
        ("nothing", "=", "1", []),
        ("nothing", "null", "", [0, 1, 2, 3, 4]),
    ],
)
def test_filters(column: str, op: str, value: str, wanted: list[int]) -> None:
    assert rows(EVERY, Filter(list(EVERY.columns).index(column), op, value)) == wanted


def test_filters_hold_together_and_any_column_may_contain() -> None:
    assert rows(EVERY, Filter(None, "contains", "99")) == [3]
    assert rows(EVERY, Filter(0, "=", "3"), Filter(2, "=", "b")) == [0]
    assert rows(EVERY, Filter(0, "=", "3"), sort=(2, "desc")) == [4, 0]


def test_lists_are_shown_as_their_frame() -> None:
    bounds = [1.5, None, float("nan"), "a", b"\x01", date(2024, 1, 2), Decimal("1.20"), 2**60]
    table = ListTable({"lower": bounds, "count": [3, None, 2**62, -1, 0, 5, 6, 7], "none": [None] * 8}, {"count"})
    other = FrameTable(table.frame())
    assert (table.names, table.right, len(table)) == (other.names, other.right, len(other))
    orders = [Order(), Order((1, "asc")), Order((0, "desc")), Order(filters=(Filter(1, ">", "1"),))]
    for rows in (rows_in_order(other, order) for order in orders):
        for page, size in ((0, 50), (1, 3)):
            assert page_of(table, page, size, rows=rows) == page_of(other, page, size, rows=rows)
    for order in orders:
        one, two = rows_in_order(table, order), rows_in_order(other, order)
        assert (one is None and two is None) or one.tolist() == two.tolist()  # type: ignore[union-attr]
    for place in range(3):
        assert table.column(place).equals(other.column(place))


def test_digits_among_many_numbers() -> None:
    few = [None if i % 7 == 0 else i % 50 for i in range(20_000)]
    frame = frame_of(few=pa.array(few), all=pa.array(range(20_000)))
    assert rows(frame, Filter(0, "contains", "3")) == [i for i, n in enumerate(few) if n is not None and "3" in str(n)]
    assert rows(frame, Filter(1, "contains", "777")) == [i for i in range(20_000) if "777" in str(i)]


@pytest.mark.parametrize(
    "one",
    [
        Filter(0, "=", "three"),
        Filter(3, "<", "yesterdayish"),
        Filter(5, "=", "perhaps"),
        Filter(8, "=", "x"),
        Filter(6, "<", "x"),
        Filter(99, "null"),
    ],
)
def test_what_cannot_be_compared_is_refused(one: Filter) -> None:
    with pytest.raises(ix.OptionError):
        rows(EVERY, one)


def test_any_frame_will_do() -> None:
    frame = pd.DataFrame(
        {"a": [1, "x", None, {"k": 1}], "b": pd.Categorical(["u", "v", "u", None]), "c": [2.0, 1, 3, np.nan]}
    )
    assert rows(frame, Filter(0, "contains", "k")) == [3]
    assert rows(frame, sort=(1, "desc")) == [1, 0, 2, 3]
    assert rows(frame, sort=(2, "asc")) == [1, 0, 2, 3]
    assert rows(frame.head(0), Filter(None, "contains", "x"), sort=(0, "asc")) == []
    twice = pd.DataFrame([[1, 2], [0, 3]], columns=["same", "same"])
    assert rows(twice, sort=(0, "asc")) == [1, 0]
    assert rows(twice, sort=(1, "desc")) == [1, 0]


# As the cells show it -------------------------------------------------------------------------------------------------

TIMES = [0, 1, -1, 1_714_521_600_000_000, 253_402_214_400_000_000, -62_135_596_800_000_000, 1_500_000, None]
SHOWN = {
    "double": pa.array([1.0, float("nan"), None, 0.1, -0.0, 0.0, 1e22, 1e-5, 123456789012.5, 2.0**53, 1e10, -12.0]),
    "float": pa.array([0.1, 1e10, -0.0, float("inf"), None, 16777216.0, 1e-4], pa.float32()),
    "timestamp": pa.array(TIMES, pa.timestamp("us")),
    "timestamptz": pa.array(TIMES, pa.timestamp("us", "UTC")),
    "nanoseconds": pa.array([0, 1, 1000, 10**9, 1_500_000_000, -1, None], pa.timestamp("ns", "UTC")),
    "milliseconds": pa.array([0, 1, 1000, -1, None], pa.timestamp("ms")),
    "elsewhere": pa.array([0, 1, None], pa.timestamp("us", "America/New_York")),
    "time": pa.array([0, 1, 37_800_000_000, 86_399_999_999, None], pa.time64("us")),
    "date": pa.array([0, -719_162, 2_932_896, None], pa.date32()),
    "decimal": pa.array(["1.10", "0.00", "-20.05", None]).cast(pa.decimal128(30, 9)),
    "uuid": pa.array([b"a" * 16, bytes(range(16)), None], pa.uuid()),
    "fixed": pa.array([b"abcd", b"\x00\x01\x02\x03", None], pa.binary(4)),
    "bytes": pa.array([b"", b"\x01\xff", None, b"xyz"]),
    "flag": pa.array([True, False, None]),
    "long": pa.array([2**63 - 1, -5, None]),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_what_a_cell_shows_is_found(kind: str) -> None:
    # More than one, and not from the first on.
    values = pa.concat_arrays([SHOWN[kind].slice(1), SHOWN[kind]])  # type: ignore[attr-defined]
    frame = frame_of(v=values)
    cells = [row[0] for row in page_of(FrameTable(frame), 0)["rows"]]
    assert [i for i, text in enumerate(cells) if text is None] == rows(frame, Filter(0, "null"))
    for text in {text for text in cells if text is not None}:
        same = [i for i, other in enumerate(cells) if other == text]
        within = [i for i, other in enumerate(cells) if other is not None and text in other]
        assert rows(frame, Filter(0, "contains", text)) == within, text
        assert set(rows(frame, Filter(None, "contains", text))) == set(within), text
        found = rows(frame, Filter(0, "=", text))
        zero = {i for i, other in enumerate(cells) if text in ("0.0", "-0.0") and other in ("0.0", "-0.0")}
        assert set(found) == {*same, *zero}, text
        if text != "nan":
            less, more = (set(rows(frame, Filter(0, op, text))) for op in "<>")
            ordered = {i for i, other in enumerate(cells) if other not in (None, "nan")}
            assert less | more | set(found) == ordered and not less & more, text


@given(st.lists(st.floats() | st.integers(-(2**60), 2**60).map(float), min_size=1, max_size=8))
def test_numbers_are_found_as_they_are_written(values: list[float]) -> None:
    frame = frame_of(v=pa.array(values, pa.float64()))
    for text in map(str, values):
        assert rows(frame, Filter(0, "contains", text)) == [i for i, v in enumerate(values) if text in str(v)]


def test_text_within_nested_values_is_found_as_it_is_shown() -> None:
    uuids = pa.array([b"a" * 16, b"b" * 16, None], pa.uuid())
    parts = [pa.array([1.0, 10.5, None]), pa.array([0, 10**6, None], pa.timestamp("us", "UTC")), uuids]
    frame = frame_of(v=pa.StructArray.from_arrays(parts, ["n", "at", "u"], mask=pa.array([False, False, True])))  # type: ignore[arg-type]
    cells = [row[0] for row in page_of(FrameTable(frame), 0)["rows"]]
    for text, wanted in (("1.0", [0]), ("10.5", [1]), ("1970-01-01T00:00:01", [1]), ("62626262-6262", [1]), ("t", [])):
        assert rows(frame, Filter(0, "contains", text)) == wanted, text
        assert all(text in cells[row] for row in wanted), text
    assert rows(frame, sort=(0, "desc")) == [1, 0, 2]
    lists = frame_of(v=build.list_array(pa.array([0, 1, 2]), uuids.take(pa.array([1, 0]))))
    assert rows(lists, sort=(0, "asc")) == [1, 0]


@pytest.mark.parametrize(
    ("kind", "op", "value", "wanted"),
    [
        ("timestamp", "<", "0002-01-01", [5]),
        ("timestamp", ">", "9999-12-30", [4]),
        ("timestamp", "=", "1970-01-01T00:00:00.000000001", []),
        ("timestamp", "<", "1970-01-01T00:00:00.000000001", [0, 2, 5]),
        ("timestamptz", "=", "2024-05-01 02:00:00+02:00", [3]),
        ("time", ">", "9:00", [2, 3]),
        ("time", "=", "10:30", [2]),
        ("fixed", "=", "61626364", [0]),
        ("fixed", "<", "0x61", [1]),
        ("bytes", ">", "0x01", [1, 3]),
        ("bytes", "contains", "f", [1]),
        ("uuid", "=", "61616161616161616161616161616161", [0]),
        ("decimal", ">", "1,000.5", []),
        ("decimal", "<", "1.1000000001", [0, 1, 2]),
        ("double", ">", "1e9", [6, 8, 9, 10]),
        ("long", ">", "inf", []),
    ],
)
def test_values_are_compared_as_what_they_are(kind: str, op: str, value: str, wanted: list[int]) -> None:
    assert rows(frame_of(v=SHOWN[kind]), Filter(0, op, value)) == wanted


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("timestamp", "soon", "'soon' does not fit 'v', which has times, such as 2024-05-01 10:30:00"),
        ("timestamp", "NaT", "'NaT' does not fit 'v'"),
        ("date", "2024-13-01", "'2024-13-01' does not fit 'v', which has dates, such as 2024-05-01"),
        ("time", "25:00", "'25:00' does not fit 'v', which has times of day, such as 10:30:00"),
        ("uuid", "61616161-", "'61616161-' does not fit 'v', which has UUIDs, such as f79c3e09-677c-4bbd"),
        ("fixed", "0x1", "'0x1' does not fit 'v', which has bytes in hexadecimal, such as 0x01ff"),
        ("flag", "perhaps", "'perhaps' does not fit 'v', which has the values true and false"),
        ("long", "nan", "'nan' does not fit 'v', which has integers, such as 500 or 10k"),
        ("decimal", "inf", "'inf' does not fit 'v', which has numbers"),
    ],
)
def test_what_no_value_is_is_refused_in_words(kind: str, value: str, message: str) -> None:
    with pytest.raises(FilterError, match=re.escape(message)):
        rows(frame_of(v=SHOWN[kind]), Filter(0, "=", value))


def test_nan_is_no_null() -> None:
    table = FrameTable(frame_of(d=pa.array([float("nan"), 1.0, None]), l=pa.array([[float("nan"), None], [], None])))
    assert page_of(table, 0)["rows"] == [["nan", '["nan", null]'], ["1.0", "[]"], [None, None]]
    assert csv_chunk(table, None, 0)[0].splitlines()[1:] == ['nan,"[""nan"", null]"', "1.0,[]", ","]
    assert [cell_text(table, row, 0) for row in range(3)] == ["nan", "1.0", ""]
    assert [json.loads(row_json(table, row))["d"] for row in range(3)] == ["nan", 1.0, None]


def test_where_nan_is_what_null_is_it_stays_null() -> None:
    frame = pd.DataFrame({"n": [1.0, np.nan], "o": ["x", np.nan], "w": pd.to_datetime(pd.Series(["2024-05-01", None]))})
    table = FrameTable(frame)
    assert page_of(table, 0)["rows"] == [["1.0", "x", "2024-05-01 00:00:00"], [None, None, None]]
    assert csv_chunk(table, None, 0)[0].splitlines()[2] == ",,"
    assert cell_text(table, 1, 0) == ""
    assert json.loads(row_json(table, 1)) == {"n": None, "o": None, "w": None}
    mixed = pd.DataFrame({"a": [1, "x", np.nan]})
    assert rows(mixed, Filter(0, "null")) == [2]


# Queries --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {"of": "table"},
        {"of": 1, "table": "t"},
        {"of": "a", "table": "t", "page": True},
        {"of": "a", "table": "t", "page": -1},
        {"of": "a", "table": "t", "n": "1"},
        {"of": "a", "table": "t", "sort": ["name", "asc"]},
        {"of": "a", "table": "t", "sort": [0, "up"]},
        {"of": "a", "table": "t", "sort": 1},
        {"of": "a", "table": "t", "filters": {"column": 0}},
        {"of": "a", "table": "t", "filters": [{"column": 0, "op": "like", "value": ""}]},
        {"of": "a", "table": "t", "filters": [{"column": None, "op": "=", "value": ""}]},
        {"of": "a", "table": "t", "filters": [{"column": 0, "op": "=", "value": 3}]},
        {"of": "a", "table": "t", "filters": [{"column": 0, "op": "null"}] * 21},
        {"of": "a", "table": "t", "columns": []},
        {"of": "a", "table": "t", "columns": list(range(61))},
        {"of": "a", "table": "t", "node": 7},
        {"of": "a", "table": "t", "filters": [{"column": 0, "op": "=", "value": "x" * 10_001}]},
        {"of": "a", "table": "t", "code": "import os"},
    ],
)
def test_nonsense_is_no_query(raw: Any) -> None:
    with pytest.raises(ix.OptionError):
        GridQuery.parse(raw)


# What leaves a table --------------------------------------------------------------------------------------------------


def test_csv_reads_back_and_holds_no_formula() -> None:
    nasty = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "plain", 'quo"te, and\r\nlines', HOSTILE, "\r=1"]
    nasty += ["\n=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)"]
    frame = frame_of(**{"=cmd|' /C calc'!A0": pa.array(nasty), "n": pa.array([-1, *range(13)], pa.int64())})
    text, following = csv_chunk(FrameTable(frame), None, 0)
    assert following is None
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read[0] == ["'=cmd|' /C calc'!A0", "n"]
    assert [r[0] for r in read[1:]] == ["'" + v if v[0] in "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20" else v for v in nasty]
    assert read[1][1] == "-1", "a negative number is no formula"


def test_csv_comes_in_parts_that_make_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = frame_of(text=pa.array([f"{i:05d}" + "x" * 400 for i in range(10_000)]), i=pa.array(range(10_000)))
    table = FrameTable(frame)
    order = rows_in_order(table, Order((1, "desc")))
    parts: list[str] = []
    at: int | None = 0
    made = 0

    def rows(at: slice, order: Any = None) -> pd.DataFrame:
        nonlocal made
        made += at.stop - at.start
        return FrameTable.rows(table, at, order)

    monkeypatch.setattr(table, "rows", rows)
    while at is not None:
        text, at = csv_chunk(table, order, at)
        assert len(text.encode()) < 5_000_000
        parts.append(text)
    assert len(parts) > 2
    assert made < 10_000 + 70 * len(parts), "no row is made for a part that has no room for it"
    read = list(csv.DictReader(io.StringIO("".join(parts))))
    assert [r["i"] for r in read] == [str(i) for i in range(9_999, -1, -1)]


@pytest.mark.parametrize(
    ("kind", "far", "text"),
    [
        (pa.timestamp("us"), 253_402_300_800_000_000, "10000-01-01 00:00:00.000000"),
        (pa.timestamp("us", "UTC"), -62_135_596_800_000_001, "0000-12-31 23:59:59.999999+00:00"),
        (pa.timestamp("us"), -(2**63), str(-(2**63))),
        (pa.timestamp("s"), 2**62, "146138514283-06-19 07:45:04"),
        (pa.date32(), 2**31 - 1, "5881580-07-11"),
        (pa.time64("us"), 2**62, str(2**62)),
    ],
)
def test_times_beyond_python_s_calendar_are_text(kind: pa.DataType, far: int, text: str) -> None:
    numbers = pa.array([far, 0, None], pa.int32() if pa.types.is_date32(kind) else pa.int64())
    times = numbers.view(kind)
    near = text_of(values_of(frame_of(x=times.slice(1, 1))["x"])[0])
    rows = pa.array(range(4), pa.int32())
    nested = pa.StructArray.from_arrays([times, pa.ListArray.from_arrays(rows, times)], ["a", "b"])
    pairs = build.map_array(rows, pa.array(["k"] * 3), times)
    table = FrameTable(frame_of(x=times, nested=nested, pairs=pairs))
    page = page_of(table, 0)["rows"]
    assert [row[0] for row in page] == [text, near, None]
    assert page[0][1:] == [f'{{"a": "{text}", "b": ["{text}"]}}', f'{{"k": "{text}"}}']
    assert csv_chunk(table, None, 0)[0].splitlines()[1].lstrip("'").startswith(text)
    assert json.loads(row_json(table, 0))["x"] == text == cell_text(table, 0, 0)


def test_csv_of_nothing_is_its_header() -> None:
    assert csv_chunk(FrameTable(EVERY.head(0)), None, 0)[0].startswith("number,real,text")


def test_cells_and_rows_are_copied_whole() -> None:
    frame = frame_of(
        big=pa.array(["x" * 5000, None]),
        snapshot_id=pa.array([2**63 - 1, 1], pa.int64()),
        raw=pa.array([b"\x00" * 400, None]),
        nested=pa.array([{"ids": [2**60]}, None]),
    )
    assert cell_text(FrameTable(frame), 0, 0) == "x" * 5000
    assert cell_text(FrameTable(frame), 1, 0) == ""
    record = json.loads(row_json(FrameTable(frame), 0))
    assert record["snapshot_id"] == str(2**63 - 1)
    assert record["raw"] == "0x" + "00" * 400
    assert record["nested"] == {"ids": [str(2**60)]}
    assert json.loads(row_json(FrameTable(frame), 1))["nested"] is None
    huge = pd.DataFrame({"a": ["y" * (MAX_TEXT + 5)]})
    assert len(cell_text(FrameTable(huge), 0, 0)) == MAX_TEXT
    with pytest.raises(ix.OptionError, match="at most 1,000,000 can be copied"):
        row_json(FrameTable(huge), 0)
    for row, column in ((-1, 0), (2, 0), (0, 4)):
        with pytest.raises(ix.OptionError, match="no cell"):
            cell_text(FrameTable(frame), row, column)


# A widget with a table ------------------------------------------------------------------------------------------------


class Tables(GridSource):
    """Two tables, as a panel would have them."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def frame(self, of: str, table: str) -> pd.DataFrame | GridTable:
        if table == "numbers":
            self.made.append(of)
            return frame_of(n=pa.array(range(1000)), text=pa.array([f"{HOSTILE}{i}" for i in range(1000)]))
        if table == "wide":
            return frame_of(**{f"c{i}": pa.array([i]) for i in range(70)})
        raise ix.OptionError(f"there is no table {table!r}")

    def nodes(self, of: str, table: str, rows: Any) -> Any:
        return [f"snapshot:{row}" if row % 2 else None for row in rows]

    def row(self, of: str, table: str, node: str) -> int | None:
        return int(node.partition(":")[2]) if node.startswith("snapshot:") else None

    def docs(self, of: str, table: str) -> dict[str, str]:
        return {"n": "a number"}


class ShelfPanel(Panel):
    """A panel with a grid."""

    def __init__(self, host: PanelHost) -> None:
        super().__init__(host)
        self.tables = Tables()
        host.panel(GridPanel).add("shelf", self.tables)


class Shelf(TableWidget):
    """A widget of that panel alone."""

    panels = (GridPanel, ShelfPanel)


def grid_of(widget: TableWidget) -> GridPanel:
    return widget._panel(GridPanel)


@pytest.fixture
def shelf() -> Iterator[Any]:
    made = Shelf(ix.sample("trips"))
    made.sent = []
    made.send = lambda content, buffers=None: made.sent.append(content)
    yield made
    made.close()


def page(shelf: Any, **query: Any) -> dict[str, Any]:
    shelf.query = {"shelf": {"of": "x", "table": "numbers", **query}}
    assert shelf.settle(60)
    assert shelf.error == {}
    found: dict[str, Any] = shelf.pages["shelf"]
    json.dumps(found, allow_nan=False)
    return found


def test_a_page_answers_its_query(shelf: Any) -> None:
    first = page(shelf, n=1)
    assert (first["page"], first["pages"], first["total"], first["whole"]) == (0, 20, 1000, 1000)
    assert [c["name"] for c in first["columns"]] == ["n", "text"]
    assert first["columns"][0] == {"name": "n", "right": True, "doc": "a number"}
    assert first["nodes"][:2] == [None, "snapshot:1"]
    filters = [{"column": 0, "op": ">", "value": "900"}]
    last = page(shelf, n=2, sort=[0, "desc"], filters=filters, columns=[1], page=99)
    assert (last["n"], last["sort"], last["filters"], last["shown"]) == (2, [0, "desc"], filters, [1])
    assert (last["page"], last["pages"], last["total"], last["whole"]) == (1, 2, 99, 1000)
    assert last["rows"][-1] == [HOSTILE.replace("\u202e", "⟨U+202E⟩") + "901"], "what would act is seen as a sign"
    assert last["nodes"][-1] == "snapshot:901"
    assert shelf._panel(ShelfPanel).tables.made == ["x"], "the frame is kept"


def test_a_filter_that_is_refused_leaves_the_page(shelf: Any) -> None:
    wrong = [{"column": 0, "op": "=", "value": "perhaps"}]
    shelf.query = {"shelf": {"of": "x", "table": "numbers", "filters": wrong}}
    assert shelf.settle(60)
    assert "'perhaps' does not fit 'n'" in shelf.error["text"], "there is no page yet that could show it"
    before = page(shelf, n=2, page=3)
    after = page(shelf, n=3, filters=wrong)
    refused = "'perhaps' does not fit 'n', which has integers, such as 500 or 10k"
    assert after == {**before, "n": 3, "refused": refused, "unfinished": False}
    half = page(shelf, n=4, filters=[{"column": 0, "op": "=", "value": "1e-"}])
    assert half["unfinished"], "it may become a number"
    assert "refused" not in page(shelf, n=5)


def test_the_page_of_a_node(shelf: Any) -> None:
    assert page(shelf, node="snapshot:333")["page"] == 6
    found = page(shelf, node="snapshot:333", sort=[0, "desc"])
    assert "snapshot:333" in found["nodes"]
    hidden = page(shelf, node="snapshot:333", filters=[{"column": 0, "op": "<", "value": "100"}], page=1)
    assert hidden["page"] == 1, "a row that a filter hides has no page: the one asked for is shown"


def test_many_columns_are_a_choice(shelf: Any) -> None:
    shelf.query = {"shelf": {"of": "", "table": "wide"}}
    assert shelf.settle(60)
    assert shelf.pages["shelf"]["shown"] == list(range(60))
    assert len(shelf.pages["shelf"]["columns"]) == 70
    shelf.query = {"shelf": {"of": "", "table": "wide", "columns": [69, 3]}}
    assert shelf.settle(60)
    assert shelf.pages["shelf"]["rows"] == [["3", "69"]]


def test_two_grids_asked_in_one_message(shelf: Any) -> None:
    shelf.query = {"shelf": {"of": "", "table": "wide", "n": 1}, "other": {"of": "", "table": "none", "n": 1}}
    assert shelf.settle(60)
    assert shelf.pages["shelf"]["n"] == 1
    assert "no table 'none'" in shelf.error["text"]


def ask(shelf: Any, **message: Any) -> dict[str, Any]:
    shelf.sent.clear()
    shelf._handle_custom_msg({"grid": "shelf", "n": 7, "of": "x", "table": "numbers", **message}, [])
    assert shelf.settle(60)
    (answer,) = shelf.sent
    json.dumps(answer, allow_nan=False)
    assert (answer["grid"], answer["n"]) == (message.get("grid", "shelf"), 7)
    found: dict[str, Any] = answer
    return found


def test_messages_are_answered(shelf: Any) -> None:
    page(shelf, sort=[0, "desc"])
    assert ask(shelf, want="cell", row=0, column=1, sort=[0, "desc"])["text"] == f"{HOSTILE}999"
    assert json.loads(ask(shelf, want="row", row=2, sort=[0, "desc"])["text"])["n"] == 997
    answer = ask(shelf, want="csv", row=0, filters=[{"column": 0, "op": "<", "value": "3"}])
    assert (answer["next"], answer["total"]) == (None, 3)
    assert len(answer["text"].splitlines()) == 4


@pytest.mark.parametrize(
    "message",
    [
        {"want": "cell", "row": 1000, "column": 0},
        {"want": "cell", "row": 10**30, "column": 0},
        {"want": "cell", "row": "0", "column": 0},
        {"want": "everything"},
        {"want": "row", "row": True},
        {"want": "row", "grid": "nowhere"},
        {"want": "csv", "table": "none"},
        {"want": ["csv"]},
    ],
)
def test_nonsense_in_a_message_gets_an_answer(shelf: Any, message: dict[str, Any]) -> None:
    assert ask(shelf, **message)["error"]


def test_frames_are_kept_by_their_size(shelf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    size = grid_of(shelf).table("shelf", "a", "numbers").nbytes
    monkeypatch.setattr("iceexplore.widgets.grid._panel._KEPT_BYTES", size * 3)
    for of in "bcdefg":
        grid_of(shelf).frame("shelf", of, "numbers")
    assert [at[1] for at in grid_of(shelf)._tables] == ["d", "e", "f", "g"]
    monkeypatch.setattr("iceexplore.widgets.grid._panel._KEPT_BYTES", 0)
    grid_of(shelf).frame("shelf", "h", "numbers")
    assert [at[1] for at in grid_of(shelf)._tables] == ["h"], "the newest stays, however large"
    grid_of(shelf).forget("shelf")
    assert not grid_of(shelf)._tables


class Empty(TableWidget):
    """A widget whose grids nobody has added."""

    panels = (GridPanel,)


def test_a_widget_without_tables_says_so() -> None:
    made = Empty(ix.sample("trips"))
    made.query = {"detail": {"of": "", "table": "none"}}
    assert made.settle(60)
    assert "no table" in made.error["text"]
    made.query = {"detail": "none"}
    assert made.settle(60)
    assert "query" in made.error["text"]
    made.close()


def test_text_keeps_what_is_shown() -> None:
    assert text_of(b"\x01" * 500) == "0x" + "01" * 500
    assert text_of([("k", 1)]) == '{"k": 1}'
    assert text_of({"a": [b"\x00"]}) == '{"a": ["0x00"]}'
    assert text_of("\ud800") == "\\ud800"
    assert text_of(float("nan")) == "nan", "a number that is none is not null"


# Filters with units ---------------------------------------------------------------------------------------------------

BYTES, DURATION = Look("bytes"), Look("ms")
INTEGERS = st.integers(-(2**63), 2**63 - 1)
SIZES = {"": 1, "k": 10**3, "M": 10**6, "GB": 10**9, "KiB": 2**10, "mib": 2**20, "Ti": 2**40, " bytes": 1, " kB": 10**3}
HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def passing(values: pa.Array, one: Filter, look: Look | None = None) -> list[bool]:
    condition = understood(one, "v", values.type, look)
    return [bool(v) for v in pc.fill_null(condition.mask(values, None), False).to_pylist()]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.none() | INTEGERS, max_size=12),
    st.decimals(-(10**13), 10**13, places=3),
    st.sampled_from(list(SIZES)),
    st.sampled_from(list(HOLDS)),
    st.sampled_from(["=", "contains", "<", ">="]),
)
def test_numbers_with_units_are_compared_exactly(
    values: list[int | None], number: Decimal, unit: str, op: str, chosen: str
) -> None:
    wanted = number * SIZES[unit]
    near = [int(wanted) + d for d in (-1, 0, 1) if -(2**63) <= int(wanted) + d < 2**63]
    every: list[int | None] = [*values, *near]
    expected = [v is not None and HOLDS[op](v, wanted) for v in every]
    for one in (Filter(0, op, f"{number}{unit}"), Filter(0, chosen, f" {op}{number:f}{unit}")):
        assert passing(pa.array(every, pa.int64()), one, BYTES) == expected, one


@settings(max_examples=100, deadline=None)
@given(st.lists(st.none() | INTEGERS, max_size=12), INTEGERS, INTEGERS)
def test_ranges_include_both_ends(values: list[int | None], low: int, high: int) -> None:
    every = [*values, low, high]
    for text, expected in (
        (f"{low}..{high}", lambda v: low <= v <= high),
        (f"{low}..", lambda v: low <= v),
        (f"= ..{high:,}", lambda v: v <= high),
    ):
        wanted = [v is not None and expected(v) for v in every]
        assert passing(pa.array(every, pa.int64()), Filter(0, "=", text)) == wanted, text


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.none() | st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), max_size=8),
    st.dates(date(1901, 1, 1), date(2199, 1, 1)),
    st.integers(0, 400),
)
def test_days_are_whole_days_in_ranges_and_equalities(values: list[Any], day: date, length: int) -> None:
    begin = datetime(day.year, day.month, day.day)
    after = begin + timedelta(days=1)
    last = day + timedelta(days=length)
    end = begin + timedelta(days=length + 1)
    every = [*values, begin, after, end, begin - timedelta(microseconds=1), end - timedelta(microseconds=1)]
    column = pa.array(every, pa.timestamp("us", "UTC"))
    for text, expected in (
        (f"= {day}", lambda v: begin <= v < after),
        (f"!= {day}", lambda v: not begin <= v < after),
        (f"{day}..{last}", lambda v: begin <= v < end),
        (f"> {day}", lambda v: v > begin),
        (f"< {day}", lambda v: v < begin),
    ):
        assert passing(column, Filter(0, "=", text)) == [v is not None and expected(v) for v in every], text


@pytest.mark.parametrize(
    ("kind", "look", "value", "text"),
    [
        (pa.int64(), BYTES, "< 1 MB", "v < 1,000,000 bytes"),
        (pa.int64(), BYTES, ">=64 MiB", "v >= 67,108,864 bytes"),
        (pa.int64(), BYTES, "1.5 KiB", "v = 1,536 bytes"),
        (pa.int64(), None, "1k..10k", "v from 1,000 to 10,000"),
        (pa.int64(), DURATION, "> 5 d", "v > 432,000,000 ms"),
        (pa.int64(), DURATION, "1.5 h", "v = 5,400,000 ms"),
        (pa.timestamp("us", "UTC"), None, "> 2026-01-01", "v > 2026-01-01 00:00:00 UTC"),
        (pa.timestamp("ns"), None, "2026-01-01T00:00:00.5", "v = 2026-01-01 00:00:00.5 UTC"),
        (pa.timestamp("us"), None, "..2026-01-02", "v to the end of 2026-01-02 (UTC)"),
        (pa.date32(), None, "≥ 2026-01-01", "v >= 2026-01-01"),
        (pa.string(), None, "!= x", 'v != "x"'),
        (pa.string(), None, '"!= x"', 'v = "!= x"'),
        (pa.string(), None, "a..b", 'v = "a..b"'),
        (pa.float64(), None, "< 1.5k", "v < 1500.0"),
        (pa.time64("us"), None, "> 10:30", "v > 10:30:00"),
        (pa.int32(), Look("code", words={0: "data", 1: "deletes"}), "data", "v = data"),
    ],
)  # fmt: skip
def test_a_filter_says_what_it_understood(kind: pa.DataType, look: Look | None, value: str, text: str) -> None:
    assert understood(Filter(0, "=", value), "v", kind, look).text == text


@pytest.mark.parametrize(
    ("kind", "look", "one", "message", "unfinished"),
    [
        (pa.int64(), BYTES, Filter(0, "=", "< 1 km"), "'km' is not a unit here: use one of k, m, g, t, p, ki", False),
        (pa.int64(), None, Filter(0, "=", "< 1 MB"), "'MB' is not a unit here: use one of k", False),
        (pa.int64(), BYTES, Filter(0, "=", "< "), "a value is missing after <", True),
        (pa.int64(), BYTES, Filter(0, "=", "-"), "'-' does not fit 'v', which has sizes, such as 500, 64 MiB", True),
        (pa.int64(), BYTES, Filter(0, "=", ".."), "a range has two ends, such as 1k..10k", True),
        (pa.int64(), BYTES, Filter(0, "=", "1..x"), "'x' does not fit 'v'", False),
        (pa.int64(), BYTES, Filter(0, "contains", "1 MB"), "'1 MB' is no part of a number: choose an operator", False),
        (pa.int64(), DURATION, Filter(0, "=", "5 MB"), "'MB' is not a unit here: use one of ms, s", False),
        (pa.int32(), Look("code", words={0: "data"}), Filter(0, "=", "date"), "which has the codes data", False),
        (pa.float64(), None, Filter(0, "<", "1e"), "'1e' does not fit 'v', which has numbers", True),
    ],
)
def test_a_filter_that_cannot_be_understood_says_why(
    kind: pa.DataType, look: Look | None, one: Filter, message: str, unfinished: bool
) -> None:
    with pytest.raises(FilterError, match=re.escape(message)) as caught:
        understood(one, "v", kind, look)
    assert caught.value.unfinished == unfinished


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=12), st.sampled_from([*HOLDS, "contains"]))
def test_any_text_is_understood_or_refused(value: str, op: str) -> None:
    for kind in (
        pa.int64(),
        pa.float64(),
        pa.decimal128(20, 2),
        pa.timestamp("us"),
        pa.date32(),
        pa.string(),
        pa.bool_(),
    ):
        for look in (None, BYTES) if kind == pa.int64() else (None,):
            try:
                found = understood(Filter(0, op, value), "v", kind, look)
            except FilterError:
                continue
            if not (pa.types.is_boolean(kind) and op[0] in "<>"):
                assert len(found.mask(pa.nulls(2, kind), None)) == 2
