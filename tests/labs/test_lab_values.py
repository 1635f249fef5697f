"""Values that labs take, fill in and refuse, of every type and at every depth; what PyIceberg reads of them."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules
from tests.helpers.folders import local

NOON = dt.datetime(2024, 1, 1, 12)
MIDNIGHT = dt.datetime(2024, 1, 1)
NANO = pd.Timestamp("1969-12-31T23:59:59.999999999")
STRUCT = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "a", "required": True, "type": "int"},
        {"id": 2, "name": "s", "required": True, "type": "string"},
        {"id": 3, "name": "l", "required": True, "type": {
            "type": "list", "element-id": 4, "element": "long", "element-required": True}},
        {"id": 6, "name": "p", "required": True, "type": {"type": "struct", "fields": [
            {"id": 7, "name": "q", "required": True, "type": "boolean"}]}},
        {"id": 8, "name": "m", "required": True, "type": {
            "type": "map", "key-id": 9, "key": "string", "value-id": 10, "value": "int", "value-required": True}},
    ],
}  # fmt: skip
FULL = {"a": 1, "s": "x", "l": [1], "p": {"q": True}, "m": {"k": 1}}
LIST = {"type": "list", "element-id": 1, "element": "int", "element-required": True}
MAP = {"type": "map", "key-id": 1, "key": "string", "value-id": 2, "value": STRUCT, "value-required": False}
STRICT_MAP = {"type": "map", "key-id": 1, "key": "string", "value-id": 2, "value": "int", "value-required": True}


def lab_of(path: Path, **columns: Any) -> ix.Lab:
    return ix.create(path / "t", {"id": "long"} | columns, format_version=3)


def read(lab: ix.Lab, name: str) -> list[Any]:
    return [row[name] for row in sorted(lab.to_arrow().to_pylist(), key=lambda row: row["id"] or 0)]


def spans(numbers: list[int], kind: pa.DataType) -> pa.Array:
    return pa.array(numbers, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)


NOT_UTF8 = pa.StringArray.from_buffers(2, build.py_buffer(np.array([0, 1, 2], np.int32)), build.py_buffer(b"a\xff"))
IDS = {"type": "struct", "fields": [{"id": 1, "name": "u", "required": True, "type": "uuid"}]}
REFUSED: list[tuple[Any, Any, str]] = [
    ("float", [1.0, 1e300], r"does not fit float: 1e\+300 is out of range \(row 1, counted from 0\)"),
    ("float", [Decimal(10) ** 60] * 2, "out of range"),
    ("boolean", [0.5, 1.0], "double does not fit boolean"),
    ("boolean", [1, 0], "int64 does not fit boolean"),
    ("int", [True, False], "bool does not fit int"),
    ("int", [dt.date(2024, 1, 1)] * 2, "date32.* does not fit int"),
    ("long", [dt.time(3)] * 2, "time64.* does not fit long"),
    ("double", [dt.timedelta(3)] * 2, "duration.* does not fit double"),
    ("timestamp", [dt.timedelta(3)] * 2, "duration.* does not fit timestamp"),
    ("timestamp", [NOON, NANO], "would lose data"),
    ("time", [NOON] * 2, r"timestamp\[us\] does not fit time"),
    ("date", [MIDNIGHT, NOON], r"has a time of day \(row 1"),
    ("date", [dt.date(2024, 1, 1), NOON], "dates and timestamps"),
    ("date", pa.array([MIDNIGHT] * 2, pa.timestamp("us", "UTC")), "time zone"),
    ("timestamp", [NOON, NOON.replace(tzinfo=dt.UTC)], "with and without a time zone"),
    ("time", spans([-5, 0], pa.int64()), r"-5 .*is not a time of day: expected 0 to 86399999999 \(row 0"),
    ("time", spans([0, 86_400_000_000], pa.time64("us")), r"not a time of day.*row 1"),
    ("decimal(9,2)", [5, 10**7], r"precision 9 \(row 1"),
    ("decimal(9,2)", [1.25, 1e9], r"decimal.*row 1"),
    ("string", NOT_UTF8, r"column 'c': .*UTF8.*row 1"),
    ("string", [b"a", b"b"], "binary does not fit string"),
    ("list<float>", [[1.0], [2.0, 1e300]], r"column 'c.element': .*out of range \(row 1"),
    ("list<boolean>", [[1], []], "column 'c.element': int64 does not fit boolean"),
    ("list<string>", ["ab", "c"], "'ab' is of type str; expected a list"),
    ("struct<a:date>", [{"a": NOON}] * 2, r"column 'c.a': .*has a time of day \(row 0"),
    ("struct<a:date>", [{"b": 1}] * 2, "column 'c': no field 'b'"),
    ("struct<a:date>", [[1]] * 2, "expected a dictionary"),
    ("map<int,time>", [{1: 2}, {1: -2}], r"column 'c.value': .*not a time of day.*row 1"),
    ("map<string,int>", ["a", "b"], "expected a dictionary or a list of pairs"),
    ("map<string,int>", [{None: 1}, {}], "a null key"),
    (LIST, [[1], [1, None]], r"column 'c.element' is required but has 1 nulls \(row 1"),
    (STRICT_MAP, [{"a": None}, None], r"column 'c.value' is required but has 1 nulls \(row 0"),
    (STRUCT, [None, FULL | {"a": None}], r"column 'c.a' is required but has 1 nulls \(row 1"),
    (STRUCT, [None, {"a": 1}], r"column 'c.s' is required but missing \(row 1"),
    (MAP, [{"k": FULL}, {"k": FULL | {"l": [None]}}], r"column 'c.value.l.element' is required.*row 1"),
    ("string", "ab", "'ab', of type str: give a list of values, one for each row"),
    ("binary", b"ab", "of type bytes"),
    ("long", 1, "'1', of type int"),
    ("long", None, "of type NoneType"),
    ("long", np.array(1), "of type ndarray"),
    ("struct<a:int>", {"a": 1}, "of type dict"),
    ("long", {1, 2}, "of type set"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "message"), REFUSED)
def test_values_that_would_change_are_refused(tmp_path: Path, kind: Any, values: Any, message: str) -> None:
    lab = lab_of(tmp_path, c=kind)
    with pytest.raises(ix.OptionError, match=message):
        lab.append({"id": [1, 2], "c": values})
    assert not lab.snapshots and not list((tmp_path / "t").glob("data/*"))


TAKEN: list[tuple[Any, Any, list[Any] | None]] = [
    ("timestamp_ns", [NOON, NANO], None),
    ("timestamptz_ns", [NANO.tz_localize("UTC"), None], None),
    ("list<timestamp_ns>", [[NANO, None], None], None),
    ("list<string>", [None, None], None),
    ("struct<a:int>", [None, None], None),
    ("map<string,int>", [None, None], None),
    ("list<list<int>>", [[None], [[None], []]], None),
    ("struct<a:int,l:list<int>>", [{"a": 1, "l": None}, {"a": None, "l": []}], None),
    ("map<string,string>", [[("a", "b")], []], None),
    ("map<int,int>", [[(1, 2), (3, None)], None], None),
    ("map<string,string>", [{"a": "b"}, {}], [[("a", "b")], []]),
    ("map<string,string>", [{}, {}], [[], []]),
    ("list<map<string,int>>", [[{"a": 1}, {}], [None]], [[[("a", 1)], []], [None]]),
    ("map<string,struct<m:map<int,int>>>", [{"a": {"m": {1: 2}}}, None], [[("a", {"m": [(1, 2)]})], None]),
    (LIST, [[1], None], None),
    (STRICT_MAP, [None, [("a", 1)]], None),
    ("decimal(9,2)", [5, None], [Decimal("5.00"), None]),
    ("decimal(38,30)", [5, -7], [Decimal(5), Decimal(-7)]),
    ("decimal(38,0)", [10**30, 5], None),
    ("decimal(9,2)", [0.1, 1.25], [Decimal("0.10"), Decimal("1.25")]),
    ("decimal(9,2)", [7, Decimal("1.5")], [Decimal(7), Decimal("1.50")]),
    ("float", [0.5, float("inf")], None),
    ("date", [MIDNIGHT, None], [MIDNIGHT.date(), None]),
    ("date", ["2024-01-01", None], [MIDNIGHT.date(), None]),
    ("time", spans([0, 86_399_999_999], pa.int64()), [dt.time(), dt.time.max]),
    ("uuid", [UUID(int=1), None], [UUID(int=1).bytes, None]),
    ("uuid", [str(UUID(int=1)), None], [UUID(int=1).bytes, None]),
    (IDS, [{"u": UUID(int=1)}, None], [{"u": UUID(int=1).bytes}, None]),
    ("map<uuid,int>", [{UUID(int=1): 2}, {}], [[(UUID(int=1).bytes, 2)], []]),
    ("string", pa.array(["a", None], pa.string_view()), None),
    ("string", pa.array(["a", None], pa.large_string()), None),
    ("string", pa.array(["a", None]).dictionary_encode(), ["a", None]),
    ("binary", pa.array([b"a", None], pa.binary_view()), None),
    ("list<int>", pa.array([[9], None, [2, 3]], pa.list_view(pa.int64()))[1:], None),
    ("list<int>", pa.array([[9], None, [2, 3]], pa.large_list(pa.int64()))[1:], None),
    ("list<int>", pa.array([[9, 9], None, [2, 3]], pa.list_(pa.int64(), 2))[1:], None),
    ("list<string>", pa.array([["a"], [None]], pa.list_(pa.string_view())), None),
    ("list<double>", [np.array([1.0, 2.0]), np.array([3.0])], [[1.0, 2.0], [3.0]]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "expected"), TAKEN)
def test_values_that_fit(tmp_path: Path, kind: Any, values: Any, expected: list[Any] | None) -> None:
    lab = lab_of(tmp_path, c=kind)
    lab.append({"id": [1, 2], "c": values})
    given = values.to_pylist() if isinstance(values, pa.Array) else values
    assert read(lab, "c") == (given if expected is None else expected)
    lab.update({"c": None})
    assert read(lab, "c") == [None, None]


@pytest.mark.parametrize(("name", "value"), [("f", 1e300), ("b", 0.5), ("d", NOON), ("l", ["a", 1])])
def test_updates_refuse_them_too(tmp_path: Path, name: str, value: Any) -> None:
    lab = lab_of(tmp_path, f="float", b="boolean", d="date", l="list<string>")
    lab.append({"id": [1]})
    with pytest.raises(ix.OptionError, match=f"column '{name}"):
        lab.update({name: value})
    assert len(lab.snapshots) == 1


def test_what_is_read_can_be_appended(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, m="map<string,int>", s="struct<a:int,b:list<int>>", l="list<long>", x="list<map<int,date>>")
    lab.append({
        "id": [1, 2], "m": [{"a": 1, "b": None}, None], "s": [{"a": 1, "b": [1, None]}, None], "l": [[1, None], None],
        "x": [[{1: MIDNIGHT.date()}, None], None],
    })  # fmt: skip
    rows = lab.to_arrow().to_pylist()
    lab.append(lab.to_arrow().to_pandas())
    lab.append(lab.to_arrow().slice(0, 2).to_pydict())
    lab.append(lab.to_arrow().slice(1, 2))
    assert [sum(row == r for r in lab.to_arrow().to_pylist()) for row in rows] == [4, 4]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_required_fields_of_null_structs(tmp_path: Path, version: int, mode: str) -> None:
    """Rows are appended, moved and merged; the null structs stay null for PyIceberg, and are in no statistics."""
    from pyiceberg.table import StaticTable

    properties = {f"write.{o}.mode": mode for o in ("delete", "update", "merge")}
    columns = {"id": "long", "n": STRUCT, "m": MAP}
    lab = ix.create(tmp_path / "t", columns, format_version=version, properties=properties)
    lab.append({"id": [1]})
    lab.append({
        "id": [2, 3, 4], "n": [None, FULL, FULL | {"a": 7}],
        "m": [{"k": None, "l": FULL}, None, {"k": None}],
    })  # fmt: skip
    files = lab.inspect.files()["readable_metrics"]
    assert {(m["n.a"]["lower_bound"], m["n.a"]["upper_bound"]) for m in files} == {(None, None), (1, 7)}
    lab.delete("id = 4")
    lab.update({"id": 5}, "id = 3")
    lab.merge({"id": [2, 9], "n": [None, FULL]}, on="id")
    lab.merge({"id": [77]}, on="id")
    lab.overwrite({"id": [8], "m": [{"x": None}]}, "id = 9")
    lab.compact(read=True, paths=lab.inspect.data_files()["file_path"].tolist())
    full = FULL | {"m": [("k", 1)]}
    expected = {1: (None, None), 2: (None, [("k", None), ("l", full)]), 5: (full, None), 8: (None, [("x", None)]),
                77: (None, None)}  # fmt: skip
    found = lab.to_arrow().to_pylist()
    assert {r["id"]: (r["n"], r["m"]) for r in found} == expected
    assert not check_rules(lab.state)
    if version < 4:
        theirs = StaticTable.from_metadata(lab.metadata_location).scan().to_arrow().to_pylist()
        assert {r["id"]: r["n"] is None for r in theirs} == {i: n is None for i, (n, _) in expected.items()}


def test_write_defaults_of_nested_fields(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, st="struct<a:int>", l="list<struct<a:int>>", m="map<string,struct<a:int>>")
    for place in ("st", "l.element", "m.value"):
        lab.evolve_schema(add={f"{place}.z": "int"}, initial_default={f"{place}.z": 7})
    lab.evolve_schema(add={"st.u": "uuid"}, initial_default={"st.u": str(UUID(int=3))})
    lab.append({
        "id": [1, 2, 3], "st": [{"a": 2}, {"a": 4, "z": 5}, None],
        "l": [[{"a": 5}], [{"z": 1}, {"z": None}], None], "m": [{"k": {"a": 5}}, {}, None],
    })  # fmt: skip
    lab.append(pa.table({"id": [4], "st": [{"a": 2}], "l": [[{"a": 5}, None]]}))
    u = UUID(int=3).bytes
    assert read(lab, "st") == [{"a": 2, "z": 7, "u": u}, {"a": 4, "z": 5, "u": u}, None, {"a": 2, "z": 7, "u": u}]
    assert read(lab, "l") == [[{"a": 5, "z": 7}], [{"a": None, "z": 1}, {"a": None, "z": None}], None,
                              [{"a": 5, "z": 7}, None]]  # fmt: skip
    assert read(lab, "m") == [[("k", {"a": 5, "z": 7})], [], None, None]


LATE: list[tuple[str, pa.DataType, list[int]]] = [
    ("date", pa.date32(), [2_932_897, -800_000]),
    ("timestamp", pa.timestamp("us"), [2**62, -(2**62)]),
    ("timestamptz", pa.timestamp("us", "UTC"), [2**62, -(2**62)]),
    ("timestamp_ns", pa.timestamp("ns"), [-(2**63), 2**63 - 1]),
]


@pytest.mark.parametrize("transform", ["c", "day(c)", "month(c)", "year(c)", "bucket(4, c)"])
@pytest.mark.parametrize(("kind", "arrow", "numbers"), LATE, ids=[kind for kind, _, _ in LATE])
def test_partitions_beyond_pythons_years(
    tmp_path: Path, kind: str, arrow: pa.DataType, numbers: list[int], transform: str
) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "c": kind}, partition_by=transform, format_version=3)
    lab.append(pa.table({"id": [1, 2], "c": spans(numbers, arrow)}))
    lab.compact(read=True, paths=lab.inspect.data_files()["file_path"].tolist())
    found = lab.to_arrow().sort_by("id")["c"]
    assert found.cast(pa.int32() if kind == "date" else pa.int64()).to_pylist() == numbers


def test_pandas_nanoseconds_are_kept_by_updates(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, c="timestamp_ns")
    lab.append({"id": [1]})
    for value in (NANO, lambda rows: pd.Series([NANO] * len(rows), dtype=object)):
        lab.update({"c": None})
        lab.update({"c": value})
        assert read(lab, "c") == [NANO]


def test_hours_have_an_end(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"c": "timestamp"}, partition_by="hour(c)")
    edge = 2**31 * 3_600_000_000
    for number in (edge, -edge - 1):
        with pytest.raises(ix.OptionError, match="hour of a timestamp: hours since 1970 do not fit in an int"):
            lab.append(pa.table({"c": spans([number], pa.timestamp("us"))}))
    lab.append(pa.table({"c": spans([edge - 1, -edge], pa.timestamp("us"))}))
    assert lab.count() == 2


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("variant", None, None),
        ("struct<a:int,v:variant>", {"a": 1}, {"a": 1, "v": None}),
        ("struct<v:variant>", {}, {"v": None}),
        ("list<variant>", [None], [None]),
        ("map<int,variant>", {1: None}, [(1, None)]),
    ],
)
def test_variants_that_are_null(tmp_path: Path, kind: str, value: Any, expected: Any) -> None:
    lab = lab_of(tmp_path, v=kind)
    lab.append({"id": [1, 2], "v": [value, None]})
    lab.append({"id": [3]})
    lab.delete("id = 3")
    assert read(lab, "v") == [expected, None]
    with pytest.raises(ix.OptionError, match="writing values of this type is not supported"):
        lab.append({"id": [1], "v": pa.array([b"x"])} if kind == "variant" else {"id": [1], "v": _with(kind)})


def _with(kind: str) -> list[Any]:
    return [{"struct": {"v": 1}, "list": [1], "map": {1: 1}}[kind.partition("<")[0]]]


def test_made_up_rows_have_no_variants(tmp_path: Path) -> None:
    simulation = ix.empty({"id": "long", "v": "variant"}, format_version=3)
    simulation.append(2, rows=5, materialize=True)
    assert simulation.to_arrow()["v"].null_count == simulation.count()


def test_floats_are_rounded_to_decimals(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, fare="decimal(9,2)")
    lab.append({"id": [1, 2], "fare": [0.1, 21.989]})
    lab.update({"fare": lambda rows: float(rows["fare"][0].as_py()) * 1.1}, "id = 1")
    assert [row["fare"] for row in lab.to_arrow().sort_by("id").to_pylist()] == [Decimal("0.11"), Decimal("21.99")]


def test_uuids_inside_others_are_compacted(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, s="struct<u:uuid>", l="list<uuid>", m="map<string,uuid>")
    one = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    for number in (1, 2):
        lab.append({"id": [number], "s": [{"u": one}], "l": [[one, None]], "m": [{"k": one}]})
    before = lab.to_arrow().sort_by("id").to_pylist()
    lab.compact()
    assert len(lab.inspect.files()) == 1
    assert lab.to_arrow().sort_by("id").to_pylist() == before


@pytest.mark.parametrize("version", [2, 4])
def test_partition_values_that_no_folder_can_be_named_for(tmp_path: Path, version: int) -> None:
    """Two that begin alike go to folders of their own; by the path alone nobody takes a beginning for the value."""
    values = ["東京" * 40, "東京" * 40 + "x", "a" * 300, "b" * 253]
    lab = ix.create(tmp_path / "t", {"id": "long", "c": "string"}, partition_by="c", format_version=version)
    lab.append({"id": [1, 2, 3, 4], "c": values})
    lab.append({"id": [5], "c": values[:1]})
    lab.compact()
    lab.update({"id": 6}, "id = 3")
    assert sorted(build.to_pylist(lab.to_arrow()["c"])) == sorted([*values, values[0]]) and not check_rules(lab.state)
    paths = [local(path) for path in lab.inspect.data_files()["file_path"]]
    folders = {path.parent.name for path in paths}
    assert len(folders) == 4 and sum(name == "c=" + "b" * 253 for name in folders) == 1
    long = next(path for path in paths if path.parent.name.startswith("c-aaa"))
    empty = ix.create(tmp_path / "u", {"id": "long", "c": "string"}, partition_by="c")
    moved = shutil.copytree(long.parent, tmp_path / "u" / "data" / long.parent.name) / long.name
    other = empty.simulate()
    other.append([str(moved)])
    assert other.inspect.data_files()["partition"].tolist() == [{"c": values[2]}]


def test_parquet_has_no_bounds_of_columns_with_nan(tmp_path: Path) -> None:
    """Java's Parquet would take bounds without NaN for those of all values, and Spark miss rows."""
    nan = float("nan")
    lab = lab_of(
        tmp_path, x="double", y="double", f="float", s="struct<a:double,b:double>", l="list<double>",
        m="map<string,double>", u="uuid",
    )  # fmt: skip
    lab.append({
        "id": [1, 2], "x": [nan, 0.3], "y": [0.1, None], "f": [nan, None], "s": [{"a": nan, "b": 1.0}, None],
        "l": [[nan, 2.0], []], "m": [{"k": nan}, None], "u": [UUID(int=1).bytes] * 2,
    })  # fmt: skip
    [path] = lab.inspect.data_files()["file_path"]
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    without = [c.path_in_schema for c in chunks if not c.is_stats_set]
    assert without == ["x", "f", "s.a"] and len(chunks) == 10
    [metrics] = lab.inspect.files()["readable_metrics"]
    assert {k: metrics["x"][k] for k in ("lower_bound", "upper_bound", "nan_value_count", "null_value_count")} == {
        "lower_bound": 0.3, "upper_bound": 0.3, "nan_value_count": 1, "null_value_count": 0,
    }  # fmt: skip
    assert [metrics[k]["null_value_count"] for k in ("y", "f", "s.a", "s.b")] == [1, 1, 1, 1]
    assert not len(lab.verify(level="data"))
