"""What labs do to rows, by a plain model and by PyIceberg; what they refuse; what they leave alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules
from iceexplore.labs import LAB_PROPERTY
from tests.helpers.folders import local
from tests.helpers.sampling import one_of
from tests.labs.writers import sql_catalog

SCHEMA = {"id": "long", "city": "string", "x": "double", "day": "date"}
MODES = ("copy-on-write", "merge-on-read")
Row = dict[str, Any]


def new(path: Path, version: int = 2, mode: str = "copy-on-write", **how: Any) -> ix.Lab:
    properties = {f"write.{o}.mode": mode for o in ("delete", "update", "merge")} | how.pop("properties", {})
    return ix.create(path, how.pop("schema", SCHEMA), format_version=version, properties=properties, **how)


def rows_of(table: ix.Table) -> list[Row]:
    found: list[Row] = table.to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def some(first: int, count: int) -> dict[str, list[Any]]:
    ids = range(first, first + count)
    days = pa.array([i % 3 for i in ids], pa.int32()).cast(pa.date32())
    return {
        "id": list(ids),
        "city": [None if i % 7 == 0 else f"c{i % 4}" for i in ids],
        "x": [i / 2 for i in ids],
        "day": days.to_pylist(),
    }


class Model:
    """The same operations on a list of rows."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def append(self, columns: dict[str, list[Any]]) -> Model:
        self.rows += pa.table(columns).to_pylist()
        return self

    def delete(self, matches: Callable[[Row], bool]) -> Model:
        self.rows = [row for row in self.rows if not matches(row)]
        return self

    def update(self, change: Callable[[Row], Row], matches: Callable[[Row], bool]) -> Model:
        self.rows = [row | change(row) if matches(row) else row for row in self.rows]
        return self

    @property
    def sorted(self) -> list[Row]:
        return sorted(self.rows, key=lambda row: row["id"])


@pytest.mark.parametrize(
    ("version", "mode"), one_of(3, [(version, mode) for version in (1, 4, 2, 3) for mode in MODES])
)
def test_operations_do_what_they_say(tmp_path: Path, version: int, mode: str) -> None:
    lab, model = (
        new(tmp_path / "t", version, mode, partition_by="city" if version % 2 else "bucket(2, id)", sort_by="x desc"),
        Model(),
    )
    for first in (0, 30):
        lab.append(some(first, 30))
        model.append(some(first, 30))
    steps: list[tuple[Callable[[], Any], Callable[[], Any], str]] = [
        (lambda: lab.delete("id < 9"), lambda: model.delete(lambda r: r["id"] < 9), "delete"),
        (lambda: lab.delete("city = 'c1'"), lambda: model.delete(lambda r: r["city"] == "c1"), "delete"),
        (
            lambda: lab.update({"city": "c9", "x": lambda rows: pc.add(rows["x"], 1000)}, "id between 20 and 30"),
            lambda: model.update(lambda r: {"city": "c9", "x": r["x"] + 1000}, lambda r: 20 <= r["id"] <= 30),
            "overwrite",
        ),
        (
            lambda: lab.merge({"id": [40, 42, 200], "city": ["m", None, "n"]}, on="id"),
            lambda: (
                model.update(lambda r: {"city": {40: "m", 42: None}[r["id"]]}, lambda r: r["id"] in (40, 42)),
                model.append({"id": [200], "city": ["n"], "x": [None], "day": [None]}),
            ),
            "overwrite",
        ),
        (
            lambda: lab.merge({"id": [43, 46, 7777]}, on="id", matched="delete", not_matched=None),
            lambda: model.delete(lambda r: r["id"] in (43, 46)),
            "delete",
        ),
        (
            lambda: lab.overwrite(some(300, 5), "city = 'c2' and id > 40"),
            lambda: (model.delete(lambda r: r["city"] == "c2" and r["id"] > 40), model.append(some(300, 5))),
            "overwrite",
        ),
        (lambda: lab.compact(), lambda: None, "replace"),
        (lambda: lab.update({"x": None}), lambda: model.update(lambda r: {"x": None}, lambda r: True), "overwrite"),
    ]
    for step, same, operation in steps:
        before = len(lab.snapshots)
        made = step()
        same()
        # What is rewritten is added, too.
        assert made.operation in (operation, "overwrite" if mode == MODES[0] or version == 1 else operation)
        assert len(lab.snapshots) == before + 1
        assert rows_of(lab) == model.sorted
        assert lab.count() == len(model.rows)
        assert not check_rules(lab.state)
    assert rows_of(ix.open(tmp_path / "t")) == model.sorted
    assert lab.delete("id = 123456") is None and lab.update({"x": 1.0}, "id < 0") is None
    assert lab.merge({"id": [9999]}, on="id", not_matched=None) is None
    assert not len(lab.orphan_files(running=True))
    assert_pyiceberg_reads(lab, version)


def assert_pyiceberg_reads(lab: ix.Lab, version: int) -> None:
    """PyIceberg reads the same rows: of the last snapshot, and of every third before it."""
    if version > 3:
        return  # it knows no version 4
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(lab.metadata_location)
    for snapshot in list(lab.snapshots)[::-3]:
        theirs = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
        assert sorted(theirs, key=lambda row: row["id"]) == rows_of(lab.at(snapshot=snapshot.snapshot_id))


@pytest.mark.parametrize("mode", MODES)
def test_modes_write_what_they_are_named_for(tmp_path: Path, mode: str) -> None:
    for version in (2, 3, 4):
        lab = new(tmp_path / f"v{version}", version, mode)
        lab.append(some(0, 10))
        lab.delete("id = 3")
        lab.update({"city": "z"}, "id = 4")
        files = lab.inspect.files()
        kinds = files["content"].value_counts().to_dict()
        assert (kinds.get(1, 0) > 0) == (mode == "merge-on-read")
        if mode == "merge-on-read":
            formats = set(files["file_format"][files["content"] == 1].str.lower())
            assert formats == ({"parquet"} if version == 2 else {"puffin"})
        lab.delete("true")
        assert lab.count() == 0 and not len(lab.inspect.files())


@pytest.mark.parametrize("mode", MODES)
def test_rows_keep_their_ids(tmp_path: Path, mode: str) -> None:
    lab = new(tmp_path / "t", 3, mode, partition_by=["city"])
    lab.append({"id": [1, 2, 3], "city": ["a", "a", "a"]})
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    first = {r["id"]: r["_row_id"] for r in lab.to_arrow(columns=columns).to_pylist()}
    lab.update({"city": "b"}, "id = 2")
    lab.merge({"id": [3, 4], "city": ["c", "c"]}, on=["id"])
    lab.delete("id = 1")
    lab.compact(read=True, paths=lab.inspect.data_files()["file_path"].tolist())
    found = {r["id"]: (r[columns[1]], r[columns[2]]) for r in lab.to_arrow(columns=columns).to_pylist()}
    assert found.keys() == {2, 3, 4}
    assert found[2] == (first[2], 2) and found[3] == (first[3], 3)
    assert found[4][0] not in first.values() and found[4][1] == 3


def test_files_are_sorted(tmp_path: Path) -> None:
    lab = new(tmp_path / "t", sort_by=["x desc nulls first", "id"], partition_by=["city"])
    nan, inf = float("nan"), float("inf")
    x = [0.0, -0.0, nan, None, 1.5, -inf, -nan, inf, 0.0]
    lab.append({"id": [9, *range(1, len(x))], "city": ["a"] * len(x), "x": x})
    (file,) = lab.inspect.data_files().to_dict("records")
    assert file["sort_order_id"] == 1
    found = lab.to_arrow(columns=["id", "x"]).to_pylist()
    assert [str(r["x"]) for r in found] == ["None", "nan", "inf", "1.5", "0.0", "0.0", "-0.0", "-inf", "nan"]
    assert [r["id"] for r in found][4:6] == [8, 9]


def test_evolution_goes_on(tmp_path: Path) -> None:
    lab = new(tmp_path / "t", 2, "merge-on-read", partition_by=["city"])
    lab.append(some(0, 8))
    lab.evolve_schema(add={"extra": "int"}, rename={"x": "y"}, drop=["day"])
    lab.evolve_spec(remove=["city"], add=["bucket(4, id)"])
    lab.append({"id": [100], "city": ["k"], "y": [1.0], "extra": [5]})
    lab.update({"extra": 7}, "id < 3")
    lab.branch("audit")
    lab.delete("id = 100", ref="audit")
    assert lab.count() == 9 and lab.at(ref="audit").count() == 8
    assert {r["id"]: r["extra"] for r in rows_of(lab)} == {**dict.fromkeys(range(8)), 0: 7, 1: 7, 2: 7, 100: 5}
    lab.upgrade(3)
    lab.delete("id = 5")
    again = ix.lab(tmp_path / "t")
    assert again.format_version == again.options.format_version == 3
    again.delete("id = 6")
    assert lab.refresh().count() == 7
    assert_pyiceberg_reads(again, 3)


def test_frames_of_pandas(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    lab = new(tmp_path / "t", partition_by=["city"])
    lab.append(pd.DataFrame({"id": [1, 2], "city": ["a", "b"], "x": [1.5, float("nan")]}))
    lab.merge(pd.DataFrame({"id": [2, 3], "x": [7.0, 8.0]}), on="id")
    lab.append(pa.record_batch({"id": [4], "x": [float("nan")]}))  # type: ignore[arg-type]
    assert [(r["id"], r["city"], str(r["x"])) for r in rows_of(lab)] == [
        (1, "a", "1.5"), (2, "b", "7.0"), (3, None, "8.0"), (4, None, "nan"),
    ]  # fmt: skip


@pytest.mark.parametrize(("given", "dialect"), [({}, "v4-proposal"), ({"dialect": "v4-java"}, "v4-java")])
def test_a_lab_keeps_its_layout(tmp_path: Path, given: dict[str, Any], dialect: str) -> None:
    lab = new(tmp_path / "t", 2)
    lab.append(some(0, 3))
    lab.upgrade(4, flush_data_files=3, **given)
    again = ix.lab(tmp_path / "t")
    assert again.options == lab.options and again.options.dialect == dialect
    again.append(some(3, 3))
    root = again.state.root()
    assert root is not None and (root.dialect == "v4-proposal") == (dialect == "v4-proposal")
    made = new(tmp_path / "u", 4, leaf_entries=7, relaxed=(), **given)
    assert ix.lab(tmp_path / "u").options == made.options
    newest = local(again.metadata_location)  # as another engine can write it
    document = json.loads(newest.read_text())
    document["properties"][LAB_PROPERTY] = "[1"
    newest.write_text(json.dumps(document))
    with pytest.raises(ix.OptionError, match=r"is damaged: '\[1'"):
        ix.lab(tmp_path / "t")


# What is refused ------------------------------------------------------------------------------------------------------


def test_only_labs_are_written(tmp_path: Path) -> None:
    simulation = ix.empty({"id": "long"}, format_version=2)
    simulation.append(pa.table({"id": [1]}))
    simulation.save(tmp_path / "t", data="copy")
    with pytest.raises(ix.OptionError, match=r"is not a lab: it has no table property iceexplore.lab"):
        ix.lab(tmp_path / "t")
    lab = new(tmp_path / "lab")
    with pytest.raises(ix.OptionError, match=r"iceexplore.lab cannot be removed"):
        lab.set_properties(remove=[LAB_PROPERTY])
    # Another writer took the mark away.
    old = local(lab.metadata_location)
    document = json.loads(old.read_text())
    del document["properties"][LAB_PROPERTY]
    (old.parent / "v2.metadata.json").write_text(json.dumps(document))
    with pytest.raises(ix.OptionError, match=r"is not a lab"):
        lab.append(some(0, 1))


def test_a_folder_must_be_empty(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    with pytest.raises(ix.OptionError, match=r"is not empty \(notes.txt\)"):
        new(tmp_path / "mine")
    with pytest.raises(ix.OptionError, match=r"is a file"):
        new(tmp_path / "mine" / "notes.txt")
    new(tmp_path / "t")
    with pytest.raises(ix.OptionError, match=r"not empty.*ix.lab"):
        new(tmp_path / "t")
    assert sorted(p.name for p in (tmp_path / "mine").iterdir()) == ["notes.txt"]


@pytest.mark.parametrize("place", ["s3://bucket/t", "gs://bucket/t", "memory://x/t", "https://host/t"])
def test_object_stores_are_refused(place: str) -> None:
    with pytest.raises(ix.UnsupportedError, match=f"{place} is not a local folder"):
        ix.create(place, SCHEMA)


class _Streamed:
    """Gives itself as an Arrow stream and is nothing else, as data frames of other libraries do."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, wanted: object = None) -> object:
        return self._table.__arrow_c_stream__(wanted)


def test_rows_in_each_form(tmp_path: Path) -> None:
    records: list[Row] = [{"id": 1, "city": "a"}, {"x": 2.5, "id": 2}]
    whole = [{"id": 1, "city": "a", "x": None, "day": None}, {"id": 2, "city": None, "x": 2.5, "day": None}]
    schema = build.schema({"id": pa.int64(), "city": pa.large_utf8(), "x": pa.float64()})
    table = pa.Table.from_pylist(records, schema=schema)
    forms = {
        "dictionaries": lambda: records,
        "one after the other": lambda: iter(records),
        "a batch": lambda: table.to_batches()[0],
        "batches": lambda: table.to_batches(),
        "a reader": lambda: table.to_reader(),
        "another library": lambda: _Streamed(table),
        "pandas with a plain index": lambda: pd.DataFrame(records, index=[7, 7]),
    }
    lab = new(tmp_path / "t", partition_by=None, sort_by=None)
    for name, form in forms.items():
        lab.overwrite(form())
        assert rows_of(lab) == whole, name
    lab.merge([{"id": 2, "x": 7.0}, {"id": 3, "x": 1.0}], on="id")
    assert [row["x"] for row in rows_of(lab)] == [None, 7.0, 1.0]


def test_arguments_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(ix.OptionError, match=r"format_version=5"):
        new(tmp_path / "t", 5)
    with pytest.raises(ix.OptionError, match=r"a table needs at least one column"):
        new(tmp_path / "t", schema={})
    with pytest.raises(ix.OptionError, match=r"is set by ix.create"):
        new(tmp_path / "t", properties={LAB_PROPERTY: "x"})
    with pytest.raises(ix.OptionError, match=r"location= needs catalog="):
        new(tmp_path / "t", location="/x")
    assert not (tmp_path / "t").exists()
    lab = new(tmp_path / "t")
    with pytest.raises(ix.OptionError, match=r"no rows"):
        lab.append({"id": []})
    with pytest.raises(ix.OptionError, match=r"no column 'nme'"):
        lab.append({"nme": [1]})
    for rows in ([(1, "a")], [], "a.parquet", None, pd.Series([1], name="id"), pa.chunked_array([[1]])):
        with pytest.raises(ix.OptionError, match=r"rows must be a|cannot be converted to an Arrow table"):
            lab.append(rows)
    with pytest.raises(ix.OptionError, match=r"'id' is in the data frame's index.*reset_index"):
        lab.append(pd.DataFrame({"x": [1.0]}, index=pd.Index([5], name="id")))
    lab.append(some(0, 5))
    with pytest.raises(ix.OptionError, match=r"set: no column 'cty'.*city"):
        lab.update({"cty": 1})
    with pytest.raises(ix.OptionError, match=r"does not fit"):
        lab.update({"x": "text"})
    with pytest.raises(ix.OptionError, match=r"2 values of 'x' for 5 rows"):
        lab.update({"x": lambda rows: pa.array([1.0, 2.0])})
    with pytest.raises(ix.OptionError, match=r"set="):
        lab.update({})
    with pytest.raises(ix.OptionError, match=r"several of the given rows match one row.*'id': 1"):
        lab.merge({"id": [1, 1], "x": [1.0, 2.0]}, on="id")
    with pytest.raises(ix.OptionError, match=r"the rows have no column 'city'"):
        lab.merge({"id": [1]}, on=["id", "city"])
    with pytest.raises(ix.OptionError, match=r"give at least one column"):
        lab.merge({"id": [1]}, on=[])
    with pytest.raises(ix.OptionError, match=r"matched='drop'"):
        lab.merge({"id": [1]}, on="id", matched="drop")  # type: ignore[arg-type]
    lab.set_properties({"write.delete.mode": "sometimes"})
    with pytest.raises(ix.OptionError, match=r"write.delete.mode is 'sometimes'"):
        lab.delete("id = 1")
    assert lab.count() == 5 and not len(lab.orphan_files())


def test_null_keys_match_nothing(tmp_path: Path) -> None:
    lab = new(tmp_path / "t")
    lab.append({"id": [1, 2], "city": [None, "a"]})
    lab.merge({"id": [8, 9], "city": [None, "a"]}, on="city")
    assert [(r["id"], r["city"]) for r in rows_of(lab)] == [(1, None), (8, None), (9, "a")]


def test_floats_match_as_sql_has_them(tmp_path: Path) -> None:
    lab = new(tmp_path / "t")
    lab.append({"id": [1, 2, 3], "x": [0.0, -0.0, float("nan")]})
    lab.merge({"x": [-0.0, float("nan")], "city": ["zero", "nan"]}, on="x", not_matched=None)
    assert [r["city"] for r in rows_of(lab)] == ["zero", "zero", "nan"]
    with pytest.raises(ix.OptionError, match="several of the given rows match one row"):
        lab.merge({"x": [0.0, -0.0], "city": ["a", "b"]}, on="x")
    with pytest.raises(ix.OptionError, match="match only by primitive columns"):
        new(tmp_path / "u", schema={"id": "long", "at": "struct<a: int>"}).merge({"at": [{"a": 1}]}, on="at")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int", [1, 2]), ("string", ["a", "b"]), ("boolean", [True, False]), ("binary", [b"a", b"b"]),
        ("uuid", ["f79c3e09-677c-4bbd-a479-3f349cb785e7", "00000000-0000-0000-0000-000000000001"]),
        ("decimal(9, 2)", [1.5, 2.25]), ("fixed[2]", [b"ab", b"cd"]), ("double", [0.5, 1.5]),
        ("timestamp", ["2024-01-01T00:00:00", "2024-01-02T00:00:00"]),
        ("timestamptz", ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"]), ("date", ["2024-01-01", "2024-01-02"]),
    ],
)  # fmt: skip
def test_keys_of_every_type(tmp_path: Path, kind: str, values: list[Any]) -> None:
    lab = new(tmp_path / "t", schema={"id": "long", "k": kind}, partition_by=["id"])
    if kind.startswith("decimal"):
        values = pa.array(values).cast(pa.decimal128(9, 2)).to_pylist()
    lab.append({"id": [1, 2], "k": values})
    lab.merge({"id": [10, 30], "k": [values[1], values[0]]}, on="k", not_matched=None)
    found = {str(r["k"]): r["id"] for r in rows_of(lab)}
    assert sorted(found.values()) == [10, 30]
    lab.merge({"k": values[:1]}, on="k", matched="delete", not_matched=None)
    assert [r["id"] for r in rows_of(lab)] == [10]


# Other writers --------------------------------------------------------------------------------------------------------


def test_a_commit_starts_from_the_newest_state(tmp_path: Path) -> None:
    one, two = new(tmp_path / "t"), ix.lab(tmp_path / "t")
    one.append(some(0, 5))
    two.append(some(5, 5))
    one.delete("id = 7")
    assert one.count() == 9 and two.count() == 10 and two.refresh().count() == 9
    assert [s.sequence_number for s in one.snapshots] == [1, 2, 3]
    assert (tmp_path / "t" / "metadata" / "version-hint.text").read_text() == "4"


def in_between(lab: ix.Lab, other: Callable[[], Any]) -> None:
    """Let another commit come first: after this one's files are written, before it is published, once."""
    storage = lab._sandbox.storage
    write = storage.write

    def writing(location: str, data: bytes, **how: Any) -> None:
        if how["kind"] == "metadata" or "snap-" in location:
            storage.write = write  # type: ignore[method-assign]
            other()
        write(location, data, **how)

    storage.write = writing  # type: ignore[method-assign]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_commit_is_rebased_on_another(tmp_path: Path, version: int) -> None:
    one = new(tmp_path / "t", version, properties={"commit.retry.min-wait-ms": "1"})
    one.append(some(0, 5))
    two = ix.lab(tmp_path / "t")
    in_between(one, lambda: two.append(some(5, 5)))
    one.append(some(10, 5))
    assert one.count() == 15 and one._sandbox.records[-1].attempts == 2
    assert [s.operation for s in one.snapshots] == ["append"] * 3
    assert not check_rules(one.state)
    assert not len(one.orphan_files())
    assert rows_of(ix.open(tmp_path / "t")) == rows_of(one)


@pytest.mark.parametrize("mode", MODES)
def test_a_commit_that_no_longer_fits_is_refused(tmp_path: Path, mode: str) -> None:
    one = new(tmp_path / "t", 3, mode, properties={"commit.retry.min-wait-ms": "1"})
    one.append(some(0, 10))
    two = ix.lab(tmp_path / "t")
    in_between(one, lambda: two.delete("id = 4"))
    with pytest.raises(ix.CommitConflictError):
        one.update({"x": 0.0}, "id = 4")
    assert rows_of(one.refresh()) == rows_of(two)
    in_between(one, lambda: two.append(some(100, 1)))
    with pytest.raises(ix.CommitConflictError, match=r"no-new-conflicting-files"):
        one.delete("id > 8")
    in_between(one, lambda: two.append({"id": [-5]}))
    one.delete("id > 8")  # rows of -5 were not asked for
    assert [r["id"] for r in rows_of(one)] == [-5, 0, 1, 2, 3, 5, 6, 7, 8]
    in_between(one, lambda: two.upgrade(4))
    with pytest.raises(ix.CommitConflictError, match=r"upgraded the table to version 4"):
        one.append(some(1, 1))
    one.append(some(50, 1))
    assert one.count() == 10 and one.options.format_version == 4


def test_attempts_end(tmp_path: Path) -> None:
    one = new(tmp_path / "t", properties={"commit.retry.num-retries": "0"})
    two = ix.lab(tmp_path / "t")
    in_between(one, lambda: two.append(some(0, 1)))
    with pytest.raises(ix.CommitConflictError, match=r"another commit was published first in each of 1 attempts"):
        one.append(some(1, 1))


def test_another_table_in_its_place(tmp_path: Path) -> None:
    import shutil

    lab = new(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(ix.MetadataNotFoundError, match=r"no longer has a v<N>.metadata.json|does not exist"):
        lab.append(some(0, 1))
    other = new(tmp_path / "t")
    other.append(some(0, 1))
    with pytest.raises(ix.TableChangedError, match=r"dropped and created again"):
        lab.append(some(0, 1))


def test_a_moved_lab_stays_whole(tmp_path: Path) -> None:
    lab = new(tmp_path / "t")
    lab.append(some(0, 3))
    (tmp_path / "t").rename(tmp_path / "u")
    moved = ix.lab(tmp_path / "u")
    moved.append(some(3, 3))
    assert moved.count() == 6 and not (tmp_path / "t").exists() and not len(moved.orphan_files())


def test_compressed_metadata(tmp_path: Path) -> None:
    lab = new(tmp_path / "t")
    lab.set_properties({"write.metadata.compression-codec": "gzip"})
    lab.append(some(0, 1))
    assert local(lab.metadata_location).name == "v3.gz.metadata.json"
    assert ix.lab(tmp_path / "t").count() == 1


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_file_that_is_gone_costs_no_other_rows(tmp_path: Path) -> None:
    """A simulation would make files up for all of them."""
    lab = new(tmp_path / "t")
    for i in range(3):
        lab.append(some(i, 1))
    rows, before = rows_of(lab), lab.metadata_location
    gone = local(lab.inspect.data_files()["file_path"][0])
    gone.rename(tmp_path / "aside")
    with pytest.raises(ix.FileMissingError, match=gone.name):
        lab.compact(paths=lab.inspect.data_files()["file_path"].tolist())
    (tmp_path / "aside").rename(gone)
    assert ix.lab(tmp_path / "t").metadata_location == before and rows_of(lab.refresh()) == rows


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_damage_is_not_written_anew(tmp_path: Path, mode: str) -> None:
    """Under a checksum of its own it would pass for data; whoever reads the file as it is would find nothing wrong."""
    lab = new(tmp_path / "t", 3, mode)
    lab.append(some(0, 50))
    lab.append(some(50, 50))
    file = local(lab.inspect.data_files()["file_path"][0])
    whole, rows = file.read_bytes(), pq.read_table(file).to_pylist()
    for at in range(4, len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with suppress(OSError):
            if pq.read_table(file).to_pylist() != rows:
                break
    else:
        pytest.fail("no byte was found that makes other rows of a file that can be read")
    uses: list[Callable[[], Any]] = [
        lab.compact,
        lambda: lab.delete("x = 3.0 or id = 7 or city = 'c1' or day is null"),
        lambda: lab.update({"x": 0.0}, "id in (7, 70)"),
        lambda: lab.merge(some(8, 51), on=["id", "city", "x", "day"]),
    ]
    for use in uses:
        with pytest.raises(ix.FormatError, match=file.name):
            use()
    file.write_bytes(whole)
    assert len(lab.refresh().snapshots) == 2


def test_expire_removes_what_nobody_needs(tmp_path: Path) -> None:
    lab = new(tmp_path / "t", 3, "merge-on-read")
    lab.append(some(0, 10))
    lab.delete("id = 3")
    lab.tag("kept")
    lab.overwrite(some(20, 3))
    lab.append(some(30, 3))
    before, rows = rows_of(lab.at(ref="kept")), rows_of(lab)
    files = {p for p in (tmp_path / "t").rglob("*") if p.is_file()}
    gone = lab.expire_snapshots(older_than=time.time_ns() // 1_000_000 + 1, retain_last=1)
    assert len(gone) == 2
    removed = files - set((tmp_path / "t").rglob("*"))
    assert removed and not len(lab.orphan_files())
    assert rows_of(lab) == rows and rows_of(lab.at(ref="kept")) == before
    lab.remove_ref("kept")
    lab.expire_snapshots(older_than=time.time_ns() // 1_000_000 + 1, files=False)
    left = lab.orphan_files()
    assert {"data", "puffin", "manifest"} == set(left["kind"])
    assert set(lab.remove_orphan_files(0)["location"]) == set(left["location"]) and rows_of(lab) == rows


def test_leftovers_spare_commits_that_are_going_on(tmp_path: Path) -> None:
    one = new(tmp_path / "t")
    one.append(some(0, 1))
    old = tmp_path / "t" / "data" / "old.parquet"
    old.write_bytes(b"x")
    time.sleep(0.02)
    two = ix.lab(tmp_path / "t")
    seen: list[Any] = []
    in_between(one, lambda: seen.extend([two.orphan_files(), two.orphan_files(running=True)]))
    one.append(some(1, 1))
    assert [Path(p).name for p in seen[0]["location"]] == ["old.parquet"]
    assert {"data", "manifest", "mark"} <= set(seen[1]["kind"])
    assert [Path(p).name for p in two.orphan_files(running=True)["location"]] == ["old.parquet"]


def test_leftovers_of_damaged_tables_are_not_guessed(tmp_path: Path) -> None:
    lab = new(tmp_path / "t")
    lab.append(some(0, 1))
    lab.append(some(1, 1))
    path = lab.inspect.manifests()["path"][0]
    local(path).write_bytes(b"nothing of the kind")
    with pytest.raises(ix.FormatError):
        ix.lab(tmp_path / "t").remove_orphan_files(0)
    local(path).unlink()
    with pytest.raises((ix.FormatError, ix.FileMissingError)):
        ix.lab(tmp_path / "t").expire_snapshots(older_than=time.time_ns() // 1_000_000)
    assert (tmp_path / "t" / "data").exists()


def test_nothing_is_written_through_links(tmp_path: Path) -> None:
    lab = new(tmp_path / "t")
    (tmp_path / "outside").mkdir()
    (tmp_path / "t" / "data").symlink_to(tmp_path / "outside")
    with pytest.raises(ix.OutsideRootsError):
        lab.append(some(0, 1))
    assert not any((tmp_path / "outside").iterdir())


# Catalogs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_lab_in_a_catalog(tmp_path: Path, version: int) -> None:
    catalog = sql_catalog(tmp_path)
    catalog.create_namespace("db")
    lab = ix.create("db.t", SCHEMA, format_version=version, partition_by="city", catalog=catalog)
    lab.append(some(0, 10))
    two = ix.lab("db.t", catalog=catalog)
    in_between(lab, lambda: two.append(some(20, 2)))
    lab.delete("id < 3")
    assert lab.count() == 9
    assert local(lab.metadata_location).name.startswith("00003-")
    assert not (local(lab.location) / "metadata" / "version-hint.text").exists()
    assert not len(lab.orphan_files())
    if version < 4:
        table = catalog.load_table("db.t")
        assert table.metadata_location == lab.metadata_location
        assert table.scan().to_arrow().num_rows == 9
    if version == 2:  # PyIceberg commits to it, too
        table.append(pa.table(some(50, 2), schema=table.schema().as_arrow()))
        assert lab.refresh().count() == 11
        lab.delete("id = 50")
        assert catalog.load_table("db.t").scan().to_arrow().num_rows == 10
    with pytest.raises(ix.OptionError, match=r"in a catalog.*ix.lab\('db.table', catalog=...\)"):
        ix.lab(lab.location)


def test_catalogs_that_are_refused(tmp_path: Path) -> None:
    from pyiceberg.catalog.noop import NoopCatalog

    with pytest.raises(ix.UnsupportedError, match=r"NoopCatalog: the catalog has no check-and-put"):
        ix.create("db.t", SCHEMA, catalog=NoopCatalog("x"))
    catalog = sql_catalog(tmp_path)
    with pytest.raises(ix.CatalogError, match=r"no namespace db"):
        ix.create("db.t", SCHEMA, catalog=catalog)
    with pytest.raises(ix.OptionError, match=r"namespace and name"):
        ix.create("t", SCHEMA, catalog=catalog)
    catalog.create_namespace("db")
    ix.create("db.t", SCHEMA, catalog=catalog)
    with pytest.raises(ix.CatalogError, match=r"already has a table or view db.t"):
        ix.create("db.t", SCHEMA, catalog=catalog)
    with pytest.raises(ix.UnsupportedError, match=r"is not a local folder"):
        ix.create("db.u", SCHEMA, catalog=catalog, location="s3://bucket/u")
    with pytest.raises(ix.OptionError, match=r"db/u is relative.* absolute warehouse, or location='/"):
        ix.create("db.u", SCHEMA, catalog=catalog, location="db/u")
    theirs = catalog.create_table("db.theirs", pa.schema([("id", pa.int64())]))
    with pytest.raises(ix.OptionError, match=r"is not a lab"):
        ix.lab("db.theirs", catalog=catalog)
    assert catalog.load_table("db.theirs").metadata_location == theirs.metadata_location


def test_a_dropped_table(tmp_path: Path) -> None:
    catalog = sql_catalog(tmp_path)
    catalog.create_namespace("db")
    lab = ix.create("db.t", SCHEMA, catalog=catalog, location=f"file://{tmp_path}/elsewhere")
    lab.append(some(0, 2))
    lab.append(some(2, 2))
    assert lab.count() == 4 and catalog.load_table("db.t").scan().to_arrow().num_rows == 4
    catalog.drop_table("db.t")
    with pytest.raises(ix.CatalogError, match=r"no longer has a table db.t"):
        lab.append(some(2, 2))
