"""``spark.read.format("iceexplore")`` against Iceberg's runtime, and against our own reading."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.errors import OptionError, SnapshotNotFoundError, UnsupportedError
from iceexplore.on_spark import SessionInfo, register
from tests.helpers.outside_lab import outside_lab
from tests.spark import tables
from tests.spark.compare import differences
from tests.spark.conftest import Warehouse
from tests.spark.scans.test_scan import plain

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open


@pytest.fixture(scope="module")
def spark(warehouse: Warehouse) -> Any:
    """The session, which knows the format."""
    assert tables.__name__  # importing it registers the tables
    register(warehouse.session)
    return warehouse.session


@pytest.mark.parametrize("name", ["equality_deletes", "evolved", "java_types", "types", "v3_new_types"])
def test_rows_and_types_are_iceberg_s(spark: Any, warehouse: Warehouse, name: str) -> None:
    ours = spark.read.format("iceexplore").load(str(warehouse.path(name)))
    theirs = spark.read.format("iceberg").load(str(warehouse.path(name)))
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    assert not differences(plain(ours).toArrow(), plain(theirs).toArrow())


def test_options_pick_a_state_columns_and_rows(spark: Any, warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("refs"))
    first = t.snapshots[0]
    states = {
        ("branch", "dev"): t.at(ref="dev"),
        ("tag", "the first"): t.at(ref="the first"),
        ("snapshot-id", str(first.snapshot_id)): t.at(snapshot=first.snapshot_id),
        ("as-of-timestamp", str(first.timestamp_ms)): t.at(snapshot=first.snapshot_id),
    }
    frames: Any = None
    for (option, value), _ in states.items():
        reader = spark.read.format("iceexplore").option(option, value).option("columns", " id,_file , _pos")
        frame = reader.option("filter", "id > 0").load(str(warehouse.path("refs"))).selectExpr("*", f"'{option}' as o")
        frames = frame if frames is None else frames.union(frame)
    found = sorted((r.o, r.id, r._file, r._pos) for r in frames.collect())
    expected = [
        (option, row["id"], row["_file"], row["_pos"])
        for (option, _), state in states.items()
        for row in state.to_arrow("id > 0", ["id", "_file", "_pos"]).to_pylist()
    ]
    assert found == sorted(expected)


def test_filters_are_pushed_down_where_the_session_lets_them(spark: Any, warehouse: Warehouse) -> None:
    path = str(warehouse.path("types"))
    frame = spark.read.format("iceexplore").option("columns", "id, d, li").option("split-size", "1").load(path)
    # Zero is left to Spark (-0.0 is another to us), and so is what we do not judge. NaN is above every number to Spark.
    asked = "id > 1 and id < 4 and d > 0 and size(li) >= 0"
    setting = "spark.sql.python.filterPushdown.enabled"
    plans = {}
    for on in ("false", "true"):
        spark.conf.set(setting, on)
        try:
            wanted = frame.where(asked).select("id")
            assert [r.id for r in wanted.collect()] == [3]
            plans[on] = (wanted._jdf.queryExecution().executedPlan().toString(), wanted.rdd.getNumPartitions())
        finally:
            spark.conf.unset(setting)
    assert all(word in plans["false"][0] for word in ("(id", "(d", "size(li"))
    assert all(word in plans["true"][0] for word in ("(d", "size(li"))
    assert "(id" not in plans["true"][0], "Spark asks again what was taken"
    assert plans["true"][1] < plans["false"][1], "files of other ids are pruned"


def test_a_simulated_v4_table_saved(spark: Any, tmp_path: Path) -> None:
    """What Spark has no type for, deletes of V4, a filter on what Iceberg's runtime cannot even show."""
    s = ix.empty({"id": "long", "u": "uuid", "t": "time", "n": "timestamp_ns", "v": "double"}, format_version=4)
    clock = pd.Timestamp("2024-01-01 10:00:00.000001")
    s.append(
        pd.DataFrame(
            {
                "id": range(5),
                "u": [uuid.UUID(int=i) for i in range(5)],
                "t": [clock.time()] * 5,
                "n": [pd.Timestamp(1_704_110_400_000_000_001)] * 5,
                "v": [float("nan")] * 5,
            }
        )
    )
    [file] = s.inspect.files()["file_path"]
    s.row_delta(deletes={file: [0, 3]})
    s.save(tmp_path / "t", data="copy")
    frame = spark.read.format("iceexplore").option("filter", "id < 4").load(str(tmp_path / "t"))
    assert frame.schema.simpleString() == "struct<id:bigint,u:string,t:bigint,n:bigint,v:double>"
    assert [(r.id, r.u, r.t, r.n) for r in frame.orderBy("id").collect()] == [
        (i, str(uuid.UUID(int=i)), 36_000_000_001, 1_704_110_400_000_000_001) for i in (1, 2)
    ]


def test_it_reads_only(spark: Any, warehouse: Warehouse, tmp_path: Path) -> None:
    path = str(warehouse.path("refs"))
    stream = spark.readStream.format("iceexplore").load(path).writeStream.format("noop")
    rates = spark.readStream.format("rate").load().writeStream.format("iceexplore")
    for refused, words in {
        (lambda: spark.range(1).write.format("iceexplore").mode("append").save(path)): r"ix\.create .* lab\.append",
        (lambda: spark.range(1).write.format("iceexplore").mode("overwrite").save(path)): r"ix\.create .* lab\.append",
        (
            lambda: stream.option("checkpointLocation", str(tmp_path / "a")).start().awaitTermination()
        ): "does not support streams",
        (
            lambda: rates.option("checkpointLocation", str(tmp_path / "b")).start(path).awaitTermination()
        ): "foreachBatch",
    }.items():
        with pytest.raises(Exception, match=rf"iceexplore\.errors\.UnsupportedError: format iceexplore .*{words}"):
            refused()


def test_invalid_options_are_explained(warehouse: Warehouse) -> None:
    from pyspark.sql.datasource import DataSourceReader

    from iceexplore.on_spark.data_source._reader import IceexploreReader, IceexploreSource, state_of_options

    path = str(warehouse.path("refs"))
    for options, error, words in [
        ({"path": path, "snapshot": "1"}, OptionError, "no option 'snapshot'.*snapshot-id"),
        ({}, OptionError, r"load\("),
        ({"path": path, "branch": "dev", "tag": "last"}, OptionError, "one of them"),
        ({"path": path, "branch": "last"}, OptionError, "is a tag, not a branch"),
        ({"path": path, "branch": "nothing"}, SnapshotNotFoundError, "nothing"),
        ({"path": path, "as-of-timestamp": "someday"}, OptionError, "someday"),
        ({"path": path, "as-of-timestamp": "--5"}, OptionError, "'--5' is not an ISO date"),
        ({"path": path, "as-of-timestamp": "²"}, OptionError, "'²' is not an ISO date"),
        ({"path": path, "as-of-timestamp": "9" * 5000}, OptionError, "is not an ISO date"),
        ({"path": path, "snapshot-id": "dev"}, OptionError, "'dev' is not a snapshot id; .* option branch or tag"),
        ({"paths": f'["{path}", "{path}"]'}, OptionError, "load takes one table"),
        ({"location": path}, OptionError, r"CREATE TEMPORARY VIEW .* OPTIONS \(path"),
    ]:
        with pytest.raises(error, match=words):
            state_of_options(options)
    source = IceexploreSource({"path": path, "columns": "id, idd"})
    with pytest.raises(OptionError, match="idd"):
        source.schema()
    for nothing in ("", ",", " , "):
        with pytest.raises(OptionError, match=r"columns='.*names separated by commas"):
            IceexploreSource({"path": path, "columns": nothing}).schema()
    source = IceexploreSource({"path": path})
    with pytest.raises(OptionError, match=r"omit \.schema\(\.\.\.\)"):
        source.reader(IceexploreSource({"path": path, "columns": "_pos"}).schema())
    source = IceexploreSource({"path": path, "split-size": "big"})
    with pytest.raises(OptionError, match="split-size"):
        source.reader(source.schema())
    reader = IceexploreSource({"path": str(warehouse.path("empty"))}).reader(
        IceexploreSource({"path": str(warehouse.path("empty"))}).schema()
    )
    assert isinstance(reader, IceexploreReader)
    # What Spark asks, to refuse readers that insist on filters where the session has them off.
    assert reader.pushFilters.__func__ is DataSourceReader.pushFilters  # type: ignore[attr-defined]
    assert reader.partitions() == []
    assert list(reader.read(None)) == []


def test_spark_3_5_gets_an_error_about_what_it_lacks() -> None:
    info = SessionInfo((3, 5), False, True, None)
    with pytest.raises(UnsupportedError, match=r"needs Spark 4\.0 or later; this session is Spark 3\.5"):
        info.need((4, 0), "the data source")


def test_what_is_outside_the_table_is_read_where_it_is_allowed(spark: Any, tmp_path: Path) -> None:
    folder, other = outside_lab(tmp_path)
    reader = spark.read.format("iceexplore")
    with pytest.raises(Exception, match="allow"):
        reader.load(str(folder)).collect()
    for given in (str(other), json.dumps([str(other)])):
        found = reader.option("allow", given).load(str(folder)).collect()
        assert sorted(row.id for row in found) == [1, 2, 3]
