"""What labs refuse of what they are given, and what they no longer do in silence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from tests.labs.writers import sql_catalog

SCHEMA = {"id": "long", "k": "string", "x": "double"}
MODES = ("copy-on-write", "merge-on-read")
RESERVED = (
    "_change_ordinal", "_change_type", "_commit_snapshot_id", "_deleted", "_file", "_last_updated_sequence_number",
    "_partition", "_pos", "_row_id", "_spec_id",
)  # fmt: skip
LINEAGE = ["_row_id", "_last_updated_sequence_number"]
Use = Callable[[Any], Any]


def new(path: Path, version: int = 2, mode: str = "copy-on-write", schema: Any = None) -> ix.Lab:
    properties = {f"write.{o}.mode": mode for o in ("delete", "update", "merge")}
    return ix.create(path, SCHEMA if schema is None else schema, format_version=version, properties=properties)


def rows_of(table: ix.Table) -> list[Any]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


# Reserved names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_are_refused(tmp_path: Path, name: str) -> None:
    refused = pytest.raises(ix.RuleError, match=rf"cannot be called '{name}'.*_spec_id.*reserved-columns")
    with refused:
        ix.create(tmp_path / "t", {"id": "long", name: "long"})
    with refused:
        ix.empty({"id": "long", name: "long"})
    assert not (tmp_path / "t").exists()
    lab = new(tmp_path / "t")
    for changes in ({"add": {name: "int"}}, {"rename": {"x": name}}):
        with refused:
            lab.evolve_schema(**changes)
    lab.evolve_schema(add={"s": f"struct<{name}: int>"})  # within structs they are free


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("version", "name"), [(2, "_pos"), (2, LINEAGE[1]), (3, "_row_id"), (4, "_file")])
def test_rows_beside_a_reserved_name_stay(tmp_path: Path, version: int, name: str, mode: str) -> None:
    new(tmp_path / "t", version, mode, {"id": "long", "mine": "long"})
    for file in (tmp_path / "t" / "metadata").glob("*.json"):
        file.write_text(file.read_text().replace('"mine"', json.dumps(name)))
    lab = ix.lab(tmp_path / "t")
    for i in range(2):
        lab.append({"id": [i], name: [10 + i]})
    files = {p for p in (tmp_path / "t").rglob("*") if p.is_file()}
    operations: list[Use] = [
        lambda t: t.delete("id = 1"),
        lambda t: t.update({"id": 5}),
        lambda t: t.merge({"id": [1], name: [3]}, on="id"),
        lambda t: t.overwrite({"id": [1]}, "id = 0"),
        lambda t: t.compact(),
    ]
    for operation in operations:
        with pytest.raises(ix.OptionError, match=rf"column '{name}' of .* name that Iceberg reserves.*evolve_schema"):
            operation(lab)
    assert {p for p in (tmp_path / "t").rglob("*") if p.is_file()} == files
    lab.evolve_schema(rename={name: "mine"}, add={"more": "int"})
    lab.delete("id = 1")
    assert rows_of(lab) == [(0, 10, None)]


# Lineage --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("matched", ["update", "delete"])
@pytest.mark.parametrize("version", [3, 4])
def test_inserted_rows_have_no_columns_without_ids(tmp_path: Path, version: int, matched: Any, mode: str) -> None:
    import pyarrow.parquet as pq
    from pyiceberg.table import StaticTable

    lab = new(tmp_path / "t", version, mode)
    lab.append({"id": [1, 2], "k": ["a", "b"]})
    lab.merge({"id": [10], "k": ["z"]}, "id")
    lab.merge({"id": [1, 11], "k": ["A", "y"]}, "id", matched=matched)
    kept = [(1, "A", None)] if matched == "update" else []
    wanted = [*kept, (2, "b", None), (10, "z", None), (11, "y", None)]
    assert rows_of(lab) == wanted
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in pq.read_schema(_newest(tmp_path)) if f.metadata}
    assert ids.keys() >= set(pq.read_schema(_newest(tmp_path)).names)
    found = lab.to_arrow(columns=LINEAGE)
    assert len(set(found["_row_id"].to_pylist())) == len(wanted) and not found["_row_id"].null_count
    if version == 3:  # PyIceberg knows no version 4
        theirs = StaticTable.from_metadata(lab.metadata_location).scan().to_arrow()
        assert sorted(tuple(row.values()) for row in theirs.to_pylist()) == wanted


def _newest(folder: Path) -> Path:
    return max((folder / "t" / "data").rglob("*.parquet"), key=lambda p: p.stat().st_mtime_ns)


def test_a_users_rows_have_no_lineage(tmp_path: Path) -> None:
    lab = new(tmp_path / "t", 3)
    lab.append({"id": [1, 2]})
    with pytest.raises(ix.OptionError, match="no column '_row_id' in the table"):
        lab.append(lab.to_arrow(columns=["id", *LINEAGE]))


# Values ---------------------------------------------------------------------------------------------------------------


def test_nan_means_null_in_pandas_alone(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    lab = new(tmp_path / "t", schema={"id": "long", "x": "double"})
    lab.append({"id": [1]})
    nan = float("nan")
    for make, null in ((np.array, False), (pa.array, False), (pd.Series, True)):
        lab.update({"x": lambda rows, make=make: make([nan] * rows.num_rows)})
        assert lab.to_arrow()["x"].null_count == null


@pytest.mark.parametrize("values", [np.array([1.0, 2.0, 3.0]), np.array(3.0), pa.array([1.0, 2.0, 3.0])])
def test_arrays_belong_to_no_rows(tmp_path: Path, values: Any) -> None:
    lab = new(tmp_path / "t")
    lab.append({"id": [1, 2]})
    lab.append({"id": [3]})
    with pytest.raises(ix.OptionError, match=r"'x' is an array .*give a function of the rows, or merge rows by a key"):
        lab.update({"x": values})
    lab.merge({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]}, on="id")
    assert rows_of(lab) == [(1, None, 1.0), (2, None, 2.0), (3, None, 3.0)]


# Arguments ------------------------------------------------------------------------------------------------------------

LAB: list[tuple[Use, str]] = [
    (lambda t: t.delete(None), "where=None: give a filter for the rows to delete; 'true' deletes all"),
    (lambda t: t.update({"x": lambda rows: np.array(1)}), "an array of 0 dimensions: expected one value per row"),
    (lambda t: t.update({"x": lambda rows: np.array([object()])}), "'x' returns values that Arrow cannot represent"),
    (lambda t: t.merge({"id": [1]}, None), "on=None: expected, for example, 'id'"),
    (lambda t: t.merge({"id": [1]}, 5), "on=5: expected, for example, 'id'"),
    (lambda t: t.merge({"id": [1]}, [5]), "on: 5 is not a string"),
    (lambda t: t.compact(bogus=1), "compact has no argument 'bogus'; valid: where, spark, ref, paths, partition"),
    (lambda t: t.compact(read=False), "read=False creates files without rows"),
    (lambda t: t.compact(writer=1), "compact has no argument 'writer'"),
    (lambda t: t.compact(small_than="5"), "small_than='5': expected a whole number"),
    (lambda t: t.compact(files=True), "files=True: expected a whole number, at least 1"),
    (lambda t: t.compact(spark=5), "spark"),
    (lambda t: t.expire_snapshots(5), "ids=5: expected, for example, [1, 2]"),
    (lambda t: t.expire_snapshots("12"), "ids='12': expected a whole number"),
    (lambda t: t.expire_snapshots(retain_last="5"), "retain_last='5': expected a whole number, at least 1"),
    (lambda t: t.remove_orphan_files("a"), "older_than_ms='a': expected a whole number, at least 0"),
    (lambda t: t.remove_orphan_files(None), "older_than_ms=None"),
    (lambda t: t.upgrade("3"), "format_version='3': expected 1, 2, 3 or 4"),
    (lambda t: t.upgrade(None), "format_version=None"),
    (lambda t: t.branch(None), "name=None: expected the name of a branch or tag"),
    (lambda t: t.branch(5), "name=5"),
    (lambda t: t.branch(""), "name=''"),
    (lambda t: t.tag(""), "name=''"),
    (lambda t: t.fast_forward([], "main"), "name=[]"),
    (lambda t: t.append({"id": [1]}, ref=5), "ref=5: expected the name of a branch"),
    (lambda t: t.append({"id": [1]}, ref=[]), "ref=[]"),
    (lambda t: t.branch("b", bogus=1), "branch has no argument 'bogus'; valid: name, at, min_snapshots_to_keep"),
    (lambda t: t.branch("b", min_snapshots_to_keep="x"), "min-snapshots-to-keep='x': expected a whole number"),
    (lambda t: t.tag("b", max_ref_age_ms=1.5), "max-ref-age-ms=1.5"),
    (lambda t: t.rollback(), "rollback() takes either snapshot or timestamp"),
    (lambda t: t.rollback("main", timestamp="2024-01-01"), "rollback() takes either snapshot or timestamp"),
    (lambda t: t.rollback(1.5), "rollback(): snapshot=1.5 is not a snapshot id"),
    (lambda t: t.set_properties("a"), "properties is of type str: expected a dictionary"),
    (lambda t: t.set_properties(remove=5), "remove=5"),
    (lambda t: t.set_properties(remove=["iceexplore.lab"]), "iceexplore.lab cannot be removed: without it"),
    (lambda t: t.set_properties({"iceexplore.lab": "x"}), "iceexplore.lab cannot be changed"),
    (lambda t: t.set_sort_order(5), "fields: 5 is not a string"),
    (lambda t: t.evolve_spec(add=[5]), "5 is not a partition field"),
    (lambda t: t.evolve_spec(add=5), "add=5: expected, for example, ['day(ts)'"),
    (lambda t: t.evolve_spec(remove=5), "remove=5"),
    (lambda t: t.evolve_spec(rename=["a"]), "rename is of type list"),
    (lambda t: t.evolve_spec(ad=["id"]), "evolve_spec has no argument 'ad'; nearest: add"),
    (lambda t: t.evolve_schema(add="x"), "add is of type str: expected a dictionary"),
    (lambda t: t.evolve_schema(add={5: "int"}), "add: {5: 'int'} has a wrong type"),
    (lambda t: t.evolve_schema(rename={"x": 5}), "rename: {'x': 5} has a wrong type"),
    (lambda t: t.evolve_schema(move={"x": 1}), "move: {'x': 1}"),
    (lambda t: t.evolve_schema(doc={"x": 1}), "doc: {'x': 1}"),
    (lambda t: t.evolve_schema(drop=5), "drop=5"),
    (lambda t: t.evolve_schema(adds={}), "evolve_schema has no argument 'adds'; nearest: add"),
    (lambda t: t.evolve_schema(document={}), "evolve_schema has no argument 'document'"),
]  # fmt: skip


@pytest.fixture(scope="module")
def some_lab(tmp_path_factory: pytest.TempPathFactory) -> ix.Lab:
    lab = new(tmp_path_factory.mktemp("lab") / "t")
    lab.append({"id": [1], "k": ["a"], "x": [1.0]})
    lab.append({"id": [2], "k": ["b"], "x": [2.0]})
    return lab


@pytest.mark.parametrize(("use", "message"), LAB)
def test_arguments_are_refused_by_name(some_lab: ix.Lab, use: Use, message: str) -> None:
    before = some_lab.metadata_location
    with pytest.raises(ix.OptionError, match=re.escape(message)):
        use(some_lab)
    assert some_lab.refresh().metadata_location == before and some_lab.count() == 2
    assert "main" in repr(some_lab)


def test_a_name_alone_is_not_its_letters(tmp_path: Path) -> None:
    lab = new(tmp_path / "t", schema={"id": "long", "city": "string", "zip": "string"})
    lab.set_properties({"owner": "me"})
    lab.set_properties(remove="owner")
    lab.evolve_schema(drop="zip")
    lab.evolve_spec(add="city")
    lab.evolve_spec(remove="city")
    assert "owner" not in lab.metadata.properties and [f.name for f in lab.schema.fields] == ["id", "city"]
    assert not lab.metadata.spec().fields  # type: ignore[union-attr]


CREATE: list[tuple[dict[str, Any], str]] = [
    ({"schema": ["id long"]}, "schema is of type list: expected a dictionary such as {'id': 'long'"),
    ({"schema": "id long"}, "schema is of type str"),
    ({"schema": pa.array([1])}, "schema is of type pyarrow.lib.Int64Array"),
    ({"schema": {1: "long"}}, "schema: {1: 'long'} has a wrong type"),
    ({"partition_by": 5}, "partition_by=5: expected, for example, ['day(ts)'"),
    ({"partition_by": [5]}, "5 is not a partition field: give a string such as 'day(ts)'"),
    ({"sort_by": 5}, "sort_by=5: expected, for example, ['ts desc'"),
    ({"sort_by": [5]}, "sort_by: 5 is not a string"),
    ({"path": None}, "path=None: give a folder"),
    ({"path": 5}, "path=5"),
    ({"path": b"t"}, "path=b't'"),
    ({"properties": "a"}, "properties is of type str"),
    ({"format_version": True}, "format_version=True: expected 1, 2, 3 or 4"),
    ({"format_version": 2.0}, "format_version=2.0: expected 1, 2, 3 or 4"),
    ({"format_version": "2"}, "format_version='2'"),
    ({"format_version": 4, "rewrite_leaf_at": "x"}, "rewrite_leaf_at='x'"),
    ({"bogus": 1}, "unknown layout option 'bogus'"),
]


@pytest.mark.parametrize(("given", "message"), CREATE)
def test_arguments_of_create(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    wanted: dict[str, Any] = {"path": tmp_path / "t", "schema": SCHEMA}
    with pytest.raises(ix.OptionError, match=re.escape(message)):
        ix.create(**(wanted | given))
    assert not any(tmp_path.iterdir())


def columns_of(schema: Any) -> list[Any]:
    return [(f.field_id, name, str(f.type), f.required, f.doc) for name, f in schema.walk()]


def test_schemas_of_other_libraries(tmp_path: Path) -> None:
    from pyiceberg import types as py
    from pyiceberg.schema import Schema

    inside = py.StructType(py.NestedField(1, "x", py.DecimalType(9, 2), required=True))
    given = Schema(
        py.NestedField(5, "id", py.LongType(), required=True, doc="the id"),
        py.NestedField(7, "tags", py.ListType(8, py.StringType(), element_required=True)),
        py.NestedField(9, "a.b", inside, required=True),
        identifier_field_ids=[5, 1],
    )
    made = ix.create(tmp_path / "py", given, partition_by="bucket(4, id)").schema
    assert made is not None
    expected = [
        (1, "id", "long", True, "the id"), (2, "tags", "list<string>", False, None),
        (4, "tags.element", "string", True, None), (3, "a.b", "struct<x: decimal(9,2)>", True, None),
        (5, "a.b.x", "decimal(9,2)", True, None),
    ]  # fmt: skip
    assert columns_of(made) == expected
    assert made.identifier_field_ids == (1, 5)
    assert columns_of(ix.empty(made).table.schema) == expected

    coded = pa.dictionary(pa.int32(), pa.large_string())
    arrow = build.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"doc": "the id", "PARQUET:field_id": "77"}),
            ("m", pa.map_(pa.string(), pa.decimal128(5, 2))),
            ("s", pa.struct([("x", pa.uint32()), ("y", coded)])),
            ("u", pa.uuid()),
            ("f", pa.binary(4)),
            ("ts", pa.timestamp("us", "UTC")),
        ]
    )
    of_arrow = [
        (1, "id", "long", True, "the id"), (2, "m", "map<string, decimal(5,2)>", False, None),
        (7, "m.key", "string", True, None), (8, "m.value", "decimal(5,2)", False, None),
        (3, "s", "struct<x: long, y: string>", False, None), (9, "s.x", "long", False, None),
        (10, "s.y", "string", False, None), (4, "u", "uuid", False, None), (5, "f", "fixed[4]", False, None),
        (6, "ts", "timestamptz", False, None),
    ]  # fmt: skip
    lab = ix.create(tmp_path / "arrow", arrow)
    assert columns_of(lab.schema) == of_arrow
    rows = {"id": [1], "m": [[]], "s": [{"x": 2**32 - 1, "y": "y"}], "u": [bytes(16)], "f": [b"abcd"], "ts": [None]}
    lab.append(build.table(rows, schema=arrow))
    assert rows_of(lab) == [(1, [], {"x": 2**32 - 1, "y": "y"}, bytes(16), b"abcd", None)]
    assert columns_of(ix.empty({"a": py.ListType(3, py.LongType()), "b": pa.list_(pa.int8())}).table.schema) == [
        (1, "a", "list<long>", False, None), (2, "a.element", "long", True, None),
        (3, "b", "list<int>", False, None), (4, "b.element", "int", False, None),
    ]  # fmt: skip


def test_schemas_of_data_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1], "ts": np.array(["2024-01-01"], "datetime64[ns]"), "c": pd.Categorical(["x"])})
    for version, ts in ((2, "timestamp"), (3, "timestamp_ns")):
        lab = ix.create(tmp_path / str(version), frame, format_version=version)
        assert [str(f.type) for _, f in lab.schema.walk()] == ["long", ts, "string"]
        lab.append(frame)
        assert lab.to_pandas().values.tolist() == frame.values.tolist()
    with pytest.raises(ix.OptionError, match=r"'a' is in the data frame's index.*reset_index"):
        ix.empty(frame.set_index("a"))
    with pytest.raises(ix.OptionError, match=r"without an Arrow type"):
        ix.empty(pd.DataFrame({"a": [1, "x"]}))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (pa.uint64(), r"'s\.a': Iceberg has no type for Arrow's uint64; .*'long' or 'decimal\(20, 0\)'"),
        (pa.list_(pa.duration("s")), r"'s\.a\.element': Iceberg has no type for Arrow's duration\[s\]"),
        (pa.time64("ns"), r"time64\[ns\].*microseconds"),
        (pa.decimal256(50, 2), r"decimal256\(50, 2\)"),
        (pa.struct([]), r"a struct needs at least one field"),
        (pa.timestamp("ns"), r"type timestamp_ns needs format version 3"),
        (pa.null(), r"type unknown needs format version 3"),
    ],
    ids=str,
)
def test_types_that_iceberg_has_not(kind: pa.DataType, message: str) -> None:
    with pytest.raises(ix.IceexploreError, match=message):
        ix.empty(pa.schema([("s", pa.struct([("a", kind)]))]), format_version=2)


def test_places_in_a_catalog(tmp_path: Path) -> None:
    catalog = sql_catalog(tmp_path)
    catalog.create_namespace("db")
    with pytest.raises(ix.OptionError, match="location=5: give a folder"):
        ix.create("db.t", SCHEMA, catalog=catalog, location=5)  # type: ignore[arg-type]
    with pytest.raises(ix.OptionError, match="path=None: give the table's name"):
        ix.create(None, SCHEMA, catalog=catalog)  # type: ignore[arg-type]
    assert not catalog.list_tables("db")


def test_whole_numbers_of_numpy(tmp_path: Path) -> None:
    number: Any = np.int64
    lab = ix.create(tmp_path / "t", SCHEMA, format_version=number(2))
    lab.append({"id": [1]})
    lab.branch("b", min_snapshots_to_keep=number(2))
    lab.upgrade(number(3))
    assert ix.lab(tmp_path / "t").format_version == 3


def test_rollback_takes_what_branch_takes(tmp_path: Path) -> None:
    lab = new(tmp_path / "t")
    for i in range(2):
        lab.append({"id": [i]})
    one, two = (s.snapshot_id for s in lab.snapshots)
    for at, goes_to in ((lab.snapshots[0], one), (np.int64(one), one), ("newest", None), (str(one), one), (one, one)):
        lab.branch("main", two)
        lab.tag("newest", two)
        lab.rollback(at)  # type: ignore[arg-type]  # NumPy's integers too
        assert lab.snapshot is not None and lab.snapshot.snapshot_id == (goes_to or two)
