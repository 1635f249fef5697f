"""Scans on Spark against Iceberg's runtime and against our own reading: every snapshot, every row."""

from __future__ import annotations

import gc
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.errors import FileMissingError, OptionError, UnsupportedError
from iceexplore.on_spark import SparkColumns
from iceexplore.on_spark.scans import _footers as _scan_footers
from iceexplore.on_spark.scans import _groups as _scan_groups
from iceexplore.on_spark.scans import _scan
from iceexplore.reading import outputs_of
from tests.helpers.sampling import one_of
from tests.spark import tables
from tests.spark.compare import differences
from tests.spark.conftest import Warehouse
from tests.spark.session import TABLES, arrow

pytestmark = pytest.mark.spark

assert tables.__name__  # importing it registers the tables
NAMES = sorted(TABLES)
METADATA = ["_file", "_pos", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"]


@pytest.fixture(autouse=True)
def loud() -> Iterator[None]:
    """A scan that leaves rows out warns; here none may, unless the test says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def own(t: ix.Table, where: Any = None, columns: Any = None) -> pa.Table:
    """The rows as our own reading has them, in Spark's types."""
    shown = SparkColumns(outputs_of(t.state, columns), (4, 1))
    return shown.of(t.to_arrow(where, columns))


def same(frame: Any, expected: pa.Table) -> None:
    """The same rows, whatever their order and the session's zone."""
    found = arrow(frame)
    for at, f in enumerate(found.schema):
        if pa.types.is_timestamp(f.type) and f.type.tz is not None:
            found = found.set_column(at, f.name, found.column(at).cast(pa.timestamp("us", "UTC")))
    assert not differences(found, expected)


def theirs(warehouse: Warehouse, t: ix.Table, snapshot: int) -> pa.Table:
    """The rows of a snapshot as Iceberg's runtime reads them."""
    where = t.state.storage.resolve(t.state.metadata_location)
    reader = warehouse.session.read.format("iceberg").option("versionAsOf", str(snapshot))
    return arrow(plain(reader.load(where)))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def plain(frame: Any) -> Any:
    """Variants as JSON: PySpark gives no Arrow of those that are null."""
    from pyspark.sql import functions as f

    kinds = {x.name: x.dataType.typeName() for x in frame.schema}
    return frame.select(
        *[f.to_json(f.col(quoted(n))).alias(n) if k == "variant" else f.col(quoted(n)) for n, k in kinds.items()]
    )


@pytest.mark.parametrize("name", one_of(3, NAMES))
def test_every_snapshot_as_icebergs_runtime(warehouse: Warehouse, name: str) -> None:
    t = ix.open(warehouse.path(name))
    for snapshot in t.snapshots:
        shown = t.at(snapshot=snapshot.snapshot_id)
        same(plain(shown.scan(warehouse.session, engine="spark")), theirs(warehouse, t, snapshot.snapshot_id))
    if not t.snapshots:
        assert t.scan(warehouse.session).count() == 0


@pytest.mark.parametrize(
    "name", one_of(2, ["v3_dv", "equality_deletes", "evolved", "orc_files", "transforms", "v4_java"])
)
def test_metadata_columns(warehouse: Warehouse, name: str) -> None:
    t = ix.open(warehouse.path(name))
    columns = [*METADATA, "*"]
    same(t.scan(warehouse.session, columns=columns), own(t, columns=columns))
    same(t.scan(warehouse.session, columns=["_deleted", "_pos"]), own(t, columns=["_deleted", "_pos"]))


FILTERS = [
    ("types", "f > 0"), ("types", "not (d < 1)"), ("types", "m9 >= -1 and day is not null"),
    ("types", "at >= '1969-12-31T23:59:59.999999+00:00'"), ("types", "local < '2025-01-01'"), ("types", "bin = X''"),
    ("types", "s like 'a%' or st.a is null"), ("types", "l in (9007199254740993, 5)"), ("types", "f is nan"),
    ("java_types", "uid > '00000000-0000-0000-0000-0000000000fe'"), ("evolved", "point.why = 2"),
    ("partition_types", "day < '1000-01-01' or s = '日本'"), ("avro_files", "id > 2"), ("orc_files", "kind = 'a'"),
    ("equality_deletes", "note is null"), ("v3_dv", "kind = 'b' and id <> 5"), ("hostile_names", "id = 1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "where"), one_of(2, FILTERS))
def test_filters(warehouse: Warehouse, name: str, where: str) -> None:
    t = ix.open(warehouse.path(name))
    same(t.scan(warehouse.session, where), own(t, where))


@pytest.mark.parametrize(
    "name", one_of(2, ["types", "evolved", "v3_new_types", "equality_deletes", "java_types", "v3_dv"], 1)
)
def test_workers_read_the_same(warehouse: Warehouse, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_scan_groups, "_MOST_GROUPS", 0)
    t = ix.open(warehouse.path(name))
    frame = t.scan(warehouse.session, engine="spark")
    assert "MapInArrow" in plan_of(frame)
    same(plain(frame), theirs(warehouse, t, t.state.snapshot.snapshot_id))  # type: ignore[union-attr]


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "America/Los_Angeles",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96TimestampConversion": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.parquet.int96AsTimestamp": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.sources.useV1SourceList": "",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "CODEGEN_ONLY",
    "spark.sql.adaptive.enabled": "true",
}


@contextmanager
def changed(session: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """A session with other settings."""
    before = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, was in before.items():
            session.conf.unset(key)
            if was is not None:
                session.conf.set(key, was)


@pytest.mark.parametrize(
    "name", one_of(2, ["types", "evolved", "v3_dv", "equality_deletes", "java_types", "avro_files"])
)
def test_settings_that_change_afterwards(warehouse: Warehouse, name: str) -> None:
    session = warehouse.session
    t = ix.open(warehouse.path(name))
    first = t.state.schema.fields[0].name
    expected = own(t, f"{first} is not null")
    frame = t.scan(session, f"{first} is not null", engine="spark")
    with changed(session, SETTINGS):
        same(frame.select("*"), expected)
        same(t.scan(session, f"{first} is not null", engine="spark"), expected)
    same(frame.select("*"), expected)


def test_each_setting_alone(warehouse: Warehouse) -> None:
    session = warehouse.session
    t = ix.open(warehouse.path("types"))
    expected = own(t)
    frame = t.scan(session, engine="spark")
    for key, value in SETTINGS.items():
        with changed(session, {key: value}):
            same(frame.select("*"), expected)


def test_missing_files_are_never_passed_over(warehouse: Warehouse, tmp_path: Path) -> None:
    session = warehouse.session
    folder = tmp_path / "v1_plain"
    shutil.copytree(warehouse.path("v1_plain"), folder)
    t = ix.open(folder)
    frame = t.scan(session, engine="spark")
    files = t.inspect.files()["file_path"].tolist()
    Path(t.state.storage.resolve(files[0])).unlink()
    with changed(session, {f"spark.sql.files.ignore{what}Files": "true" for what in ("Missing", "Corrupt")}):
        with pytest.raises(Exception, match=r"not exist|No such|FileNotFound|NOT_EXIST"):
            frame.collect()
        with pytest.warns(UserWarning, match="rows are left out; missing") as found:
            rest = t.scan(session)
        assert files[0] in str(found[0].message)
        same(rest, own_skipping(t))
        with pytest.raises(FileMissingError):
            t.scan(session, strict=True)
    Path(t.state.storage.resolve(files[1])).write_bytes(b"PAR1 no such thing")
    with pytest.warns(UserWarning, match="not exist|not readable") as found:
        t.scan(session)
    assert any("not readable" in str(one.message) for one in found)


def own_skipping(t: ix.Table) -> pa.Table:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparkColumns(outputs_of(t.state, None), (4, 1)).of(t.to_arrow(on_error="skip"))


def test_missing_deletes_leave_their_files_out(warehouse: Warehouse, tmp_path: Path) -> None:
    folder = tmp_path / "v2"
    shutil.copytree(warehouse.path("v2_pos_file"), folder)
    t = ix.open(folder)
    deletes = t.inspect.delete_files()["file_path"].tolist()
    Path(t.state.storage.resolve(deletes[0])).unlink()
    with pytest.warns(UserWarning, match="missing"):
        frame = t.scan(warehouse.session)
    same(frame, own_skipping(t))


@pytest.mark.parametrize("version", one_of(2, [2, 3, 4]))
def test_simulated(warehouse: Warehouse, version: int) -> None:
    import pandas as pd

    s = ix.empty(
        {"id": "long", "kind": "string", "at": "timestamptz", "t": "time", "u": "uuid"},
        partition_by=["kind"],
        format_version=version,
    )
    ids = list(range(200))
    rows = pd.DataFrame(
        {
            "id": ids,
            "kind": [f"k {i % 3}%/=" for i in ids],
            "at": pd.to_datetime([i * 10**9 for i in ids], utc=True),
            "t": pa.array([i * 1000 for i in ids], pa.time64("us")).to_pandas(),
            "u": [i.to_bytes(16, "big") for i in ids],
        }
    )
    s.append(rows)
    s.append(rows.head(50))
    files = s.inspect.files().sort_values("record_count")["file_path"].tolist()
    s.row_delta(deletes={files[-1]: [0, 7, 64], files[0]: [3]})
    same(s.scan(warehouse.session), own(s))
    same(
        s.scan(warehouse.session, "id < 40", ["id", "_file", "_pos"]),
        own(s, "id < 40", columns=["id", "_file", "_pos"]),
    )
    same(s.scan(warehouse.session, columns=["_deleted", "id"]), own(s, columns=["_deleted", "id"]))
    first = s.snapshots[0]
    same(s.scan(warehouse.session, snapshot=first.snapshot_id), own(s.at(snapshot=first.snapshot_id)))


def test_made_up_files_have_no_rows(warehouse: Warehouse) -> None:
    s = ix.empty({"id": "long"})
    s.append(files=2, rows=10)
    with pytest.raises(UnsupportedError, match="synthetic"):
        s.scan(warehouse.session)


def test_moved_and_zipped(warehouse: Warehouse, tmp_path: Path) -> None:
    expected = own(ix.open(warehouse.path("hostile_names")))
    moved = tmp_path / "else where"
    shutil.copytree(warehouse.path("hostile_names"), moved)
    t = ix.open(moved)
    same(t.scan(warehouse.session), expected)
    same(t.scan(warehouse.session, columns="_file"), own(t, columns="_file"))
    with pytest.raises(UnsupportedError, match="moved"):
        t.scan(warehouse.session, engine="iceberg")
    plain = ix.open(warehouse.path("v3_dv"))
    zipped = tmp_path / "z"  # recognized by its content
    Path(shutil.make_archive(str(zipped), "zip", warehouse.path("v3_dv"))).rename(zipped)
    # The tables are gone, and not what their frames read: the extracted zip, the overlay.
    files = ix.open(zipped).inspect.files(spark=warehouse.session)
    for opened in (lambda: ix.open(zipped), plain.simulate):
        frame = opened().scan(warehouse.session)
        gc.collect()
        same(frame, own(plain))
    assert files.count() == len(plain.inspect.files())


def test_columns_and_filters_reach_the_files(warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("types"))
    one = plan_of(t.scan(warehouse.session, columns=["id"]))
    assert "ReadSchema: struct<id:bigint>" in one
    later = t.scan(warehouse.session)
    plan = plan_of(later.filter("l > 3").select("id"))
    assert "ReadSchema: struct<id:bigint,l:bigint>" in plan
    assert "GreaterThan(l,3)" in plan
    given = ix.open(warehouse.path("v3_dv")).scan(warehouse.session, "id > 3 and id < 5", "kind")
    assert "GreaterThan(id,3)" in plan_of(given)  # of a file in which not every row matches
    nested = plan_of(later.select("st.b.c"))
    assert "ReadSchema: struct<st:struct<b:struct<c:string>>>" in nested
    deleted = ix.open(warehouse.path("v3_dv")).scan(warehouse.session).filter("id = 3").select("kind")
    assert "EqualTo(id,3)" in plan_of(deleted)


def test_very_many_files_make_a_small_plan(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pandas as pd

    monkeypatch.setattr(_scan, "MOST_LINKS", 600)
    s = ix.empty({"id": "long", "note": "string"})
    s.append(pd.DataFrame({"id": range(10), "note": [str(i) for i in range(10)]}))
    saved = tmp_path / "many"
    s.save(saved, data="copy")
    source = next((saved / "data").rglob("*.parquet"))
    t = ix.open(saved).simulate()
    folders = [source.parent, source.parent / "kind=a b%2Fc", source.parent / "$1"]
    copies = [folders[i % 3] / f"n={i} '(%41).parquet" for i in range(1000)]
    for place in copies:
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, place)
    size = source.stat().st_size
    t.append([{"location": str(place), "record_count": 10, "file_size_in_bytes": size} for place in copies])
    t.row_delta(deletes={str(place): [i % 10] for i, place in enumerate(copies[:999])})
    settings = [f"spark.sql.sources.{key}" for key in ("parallelPartitionDiscovery.parallelism", "ignoreDataLocality")]
    before = [warehouse.session.conf.get(key) for key in settings]
    frame = t.scan(warehouse.session, columns=["id"])
    assert [warehouse.session.conf.get(key) for key in settings] == before
    assert "MapInArrow" not in plan_of(frame)
    assert len(plan_of(frame)) < 20_000
    assert frame.count() == t.count() == 10_010 - 999


def test_footers_that_workers_read(warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_scan_footers, "_MOST_HERE", 0)
    folder = tmp_path / "v2"
    shutil.copytree(warehouse.path("v2_pos_file"), folder)
    t = ix.open(folder)
    frame = t.scan(warehouse.session, engine="spark")
    assert "MapInArrow" not in plan_of(frame)
    same(frame, own(t))
    Path(t.state.storage.resolve(t.inspect.files()["file_path"].tolist()[0])).unlink()
    with pytest.warns(UserWarning, match="missing"):
        t.scan(warehouse.session, engine="spark")


def test_engines(warehouse: Warehouse) -> None:
    session = warehouse.session
    t = ix.open(warehouse.path("v3_dv"))
    mine, iceberg = t.scan(session, "id > 2", engine="spark"), t.scan(session, "id > 2", engine="iceberg")
    assert "BatchScan" in plan_of(iceberg)
    assert "BatchScan" not in plan_of(mine)
    assert "BatchScan" not in plan_of(t.scan(session))
    same(iceberg, own(t, "id > 2"))
    avro = ix.open(warehouse.path("avro_files"))
    assert "BatchScan" in plan_of(avro.scan(session))
    assert "MapInArrow" in plan_of(avro.scan(session, engine="spark"))
    with pytest.raises(UnsupportedError, match="simulated"):
        t.simulate().scan(session, engine="iceberg")
    with pytest.raises(UnsupportedError, match="format version 4"):
        ix.open(warehouse.path("v4_java")).scan(session, engine="iceberg")
    with pytest.raises(OptionError, match="engine="):
        t.scan(session, engine="java")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="spark="):
        t.scan(None)


def test_a_plan_that_was_made_before(warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("v3_dv"))
    plan = t.plan("id > 2")
    same(t.scan(warehouse.session, plan=plan), own(t, "id > 2"))
    with pytest.raises(OptionError, match="plan="):
        t.scan(warehouse.session, "id > 3", plan=plan)
    with pytest.raises(OptionError, match="plan= is for"):
        ix.open(warehouse.path("types")).scan(warehouse.session, plan=plan)
    first, second = t.snapshots[:2]
    appended = t.plan(from_snapshot=first.snapshot_id, to_snapshot=second.snapshot_id)
    assert t.scan(warehouse.session, plan=appended).count() == 4
