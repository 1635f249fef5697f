"""Labs changed on Spark: after each operation the rows, ids and summary that the same operation here gives."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.commits import check_rules
from iceexplore.labs._spark_rows import write_moved
from iceexplore.storage import FolderStorage
from tests.helpers.folders import local
from tests.helpers.sampling import one_of
from tests.spark.conftest import Warehouse
from tests.spark.labs.test_lab_writes import frame_of
from tests.spark.labs.test_labs import PARTITIONS, SCHEMA, rows_of, some
from tests.spark.session import arrow

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

_COUNTS = ("operation", "total-records", "total-position-deletes")


def modes(mode: str) -> dict[str, str]:
    return {f"write.{operation}.mode": mode for operation in ("delete", "update", "merge")}


def lineage_of(lab: ix.Lab) -> dict[int, tuple[int, int]]:
    """Ids of rows, and when they were last changed, by the column ``id``."""
    names = ["id", "_row_id", "_last_updated_sequence_number"]
    return {row: (number, last) for row, number, last in zip(*lab.to_arrow(columns=names).to_pydict().values())}


def summary_of(lab: ix.Lab) -> dict[str, str | None]:
    """What the last snapshot's summary says of rows."""
    snapshot = lab.snapshots[-1]
    return {"operation": snapshot.operation} | {name: (snapshot.summary or {}).get(name) for name in _COUNTS[1:]}


def in_between(patch: pytest.MonkeyPatch, other: Callable[[], Any]) -> None:
    """Let another commit come first: after the next one's files are written, before it is published, once."""
    write = FolderStorage.write

    def writing(self: FolderStorage, location: str, data: bytes, **how: Any) -> None:
        if how["kind"] == "metadata" or "snap-" in location:
            patch.setattr(FolderStorage, "write", write)
            other()
        write(self, location, data, **how)

    patch.setattr(FolderStorage, "write", writing)


def assert_pyiceberg_reads(lab: ix.Lab) -> None:
    from pyiceberg.table import StaticTable

    names = ("id", "i", "s", "x", "b", "ts", "n", "w")
    theirs = StaticTable.from_metadata(lab.metadata_location).scan(selected_fields=names).to_arrow()
    ours = lab.to_arrow(columns=list(names))
    assert sorted(map(str, theirs.select(names).to_pylist())) == sorted(map(str, ours.to_pylist()))


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        (4, "merge-on-read"),
        pytest.param(3, "copy-on-write", marks=pytest.mark.long),
        pytest.param(2, "merge-on-read", marks=pytest.mark.long),
        pytest.param(1, "copy-on-write", marks=pytest.mark.long),
    ],
)
def test_operations_do_what_they_do_here(warehouse: Warehouse, tmp_path: Path, version: int, mode: str) -> None:
    from pyspark.sql import functions as f

    spark = warehouse.session
    by = {
        1: ("b", "year(d)"),
        2: "bucket(2, u)",
        3: ("month(ts)", "bucket(2, n)"),
        4: ("void(s)", "truncate(2, at.name)"),
    }
    how: dict[str, Any] = {"sort_by": ["x desc nulls last", "id"], "format_version": version, "properties": modes(mode)}
    lab, here = (ix.create(tmp_path / name, SCHEMA, partition_by=by[version], **how) for name in ("spark", "here"))
    steps: dict[str, Any] = {
        "append": (lambda: lab.append(some(0, 40)), lambda: here.append(some(0, 40))),
        "delete": (
            lambda: lab.delete("id between 5 and 12 or s like 'naïve-1%'", spark=spark),
            lambda: here.delete("id between 5 and 12 or s like 'naïve-1%'"),
        ),
        "update": (
            lambda: lab.update(
                {"x": lambda rows: rows["x"] + 1.0, "i": f.col("id") * 2, "b": None, "tags": ["z"], "k": b"upd"},
                "id > 30 or u is null",
                spark=spark,
            ),
            lambda: here.update(
                {
                    "x": lambda rows: pc.add(rows["x"], 1.0),
                    "i": lambda rows: pc.multiply(rows["id"], 2),
                    "b": None,
                    "tags": ["z"],
                    "k": b"upd",
                },
                "id > 30 or u is null",
            ),
        ),
        "merge": (
            lambda: lab.merge(frame_of(spark, some(35, 12).drop_columns(["m", "ts"])), on=["id"]),
            lambda: here.merge(some(35, 12).drop_columns(["m", "ts"]), on=["id"]),
        ),
        "merge that deletes": (
            lambda: lab.merge(
                frame_of(spark, some(0, 20).select(["id", "n"])),
                ["id", "n"],
                matched="delete",
                not_matched=None,
                where="id > 3",
            ),
            lambda: here.merge(
                some(0, 20).select(["id", "n"]), ["id", "n"], matched="delete", not_matched=None, where="id > 3"
            ),
        ),
        "compact": (
            lambda: lab.compact(paths=lab.inspect.data_files()["file_path"].tolist(), spark=spark),
            lambda: here.compact(paths=here.inspect.data_files()["file_path"].tolist()),
        ),
        "overwrite": (
            lambda: lab.overwrite(frame_of(spark, some(200, 3)), "b or id = 44"),
            lambda: here.overwrite(some(200, 3), "b or id = 44"),
        ),
        "delete of whole files": (
            lambda: lab.delete("b is null", spark=spark),
            lambda: here.delete("b is null"),
        ),
    }
    old: set[int] = set()
    for name, (on_spark, plain) in steps.items():
        on_spark(), plain()
        assert rows_of(lab.to_arrow()) == rows_of(here.to_arrow()), name
        assert summary_of(lab) == summary_of(here), name
        if version > 2:
            mine, theirs = lineage_of(lab), lineage_of(here)
            assert {i: last for i, (_, last) in mine.items()} == {i: last for i, (_, last) in theirs.items()}, name
            assert {i: mine[i] for i in mine if i in old} == {i: theirs[i] for i in theirs if i in old}, name
            assert len({number for number, _ in mine.values()}) == len(mine)
            old = {i for i in mine if mine[i] == theirs[i]}
        if version < 4 and name in ("merge that deletes", "compact", "delete of whole files"):
            found = spark.read.format("iceberg").load(lab.metadata_location)
            assert rows_of(arrow(found)) == rows_of(lab.to_arrow()), name
            assert_pyiceberg_reads(lab)
        if name == "compact":
            assert set(lab.inspect.data_files()["sort_order_id"]) == {1} and not len(lab.inspect.delete_files())
    assert not len(lab.verify(level="data")) and not check_rules(lab.state)
    assert not len(lab.orphan_files(running=True))
    # Nothing matches, and nothing is committed.
    assert lab.delete("id = 99999", spark=spark) is None and lab.update({"x": 1.0}, "id < 0", spark=spark) is None
    assert lab.merge(frame_of(spark, some(9000, 3)), "id", not_matched=None) is None
    assert len(lab.snapshots) == len(steps)


def test_what_is_refused_is_refused_as_here(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import functions as f

    spark = warehouse.session
    how: dict[str, Any] = {
        "format_version": 3,
        "properties": modes("merge-on-read") | {"commit.retry.min-wait-ms": "1"},
    }
    lab = ix.create(tmp_path / "t", {"id": "long", "x": "double", "i": "int", "at": "struct<a: int>"}, **how)
    lab.append({"id": [1, 2, 3, 4], "x": [0.0, -0.0, float("nan"), None], "i": [1, 2, 3, 4]})
    before = lab.metadata_location

    def frame(rows: list[tuple[Any, ...]], schema: str) -> Any:
        return spark.createDataFrame(rows, schema)

    twice = frame([(2, 1.0), (2, 2.0)], "id long, x double")
    for refused, words in {
        (lambda: lab.delete("nme = 1", spark=spark)): "no column 'nme'",
        (lambda: lab.delete("id = 1", spark="local")): "is not a Spark session",
        (lambda: lab.update({"y": 1}, spark=spark)): "no column 'y'",
        (lambda: lab.update({"x": "text"}, spark=spark)): "does not fit",
        (lambda: lab.update({"i": f.col("id") * 0.5}, spark=spark)): "column 'i': double does not fit int",
        (lambda: lab.update({"i": f.col("nme")}, spark=spark)): "'i': Spark does not accept this.*nme",
        (lambda: lab.update({"i": [1, 2]}, "id < 3", spark=spark)): "column 'i'",
        (lambda: lab.update({"i": lambda rows: 1}, spark=spark)): "'i' is of type int",
        (lambda: lab.merge(twice, "id")): r"several source rows match one row of the table, \{'id': 2\}",
        (lambda: lab.merge(twice, "id", matched=None)): "several source rows",
        (lambda: lab.merge(frame([(0.0,), (-0.0,)], "x double"), "x")): "several source rows",
        (lambda: lab.merge(frame([("a",)], "id string"), "id")): "'id': string does not fit",
        (lambda: lab.merge(frame([(1,)], "nme int"), "id")): "no column 'nme'",
        (lambda: lab.merge(frame([(1,)], "i int"), "id")): "the rows have no column 'id'",
        (lambda: lab.merge(frame([((1,),)], "at struct<a: int>"), "at")): "match only by primitive columns",
    }.items():
        with pytest.raises(ix.OptionError, match=words):
            refused()
    assert lab.compact(spark=spark) is None
    assert lab.metadata_location == before == ix.open(tmp_path / "t").metadata_location
    # Values as SQL compares them: -0.0 is 0.0, NaN is NaN, null nothing.
    here = lab.fork()
    lab.merge(frame([(float("nan"), 8), (None, 9)], "x double, i int"), "x")
    found = {r["id"]: r["i"] for r in lab.to_arrow().to_pylist()}
    lab.rollback(lab.snapshots[0].snapshot_id)
    here.refresh()
    here.merge({"x": pa.array([float("nan"), None]), "i": [8, 9]}, "x")
    assert found == {r["id"]: r["i"] for r in here.to_arrow().to_pylist()} == {1: 1, 2: 2, 3: 8, 4: 4, None: 9}
    # Another writer comes first.
    lab.refresh()
    two = ix.lab(tmp_path / "t")
    in_between(monkeypatch, lambda: two.delete("id = 1"))
    with pytest.raises(ix.CommitConflictError):
        lab.update({"i": 0}, "id = 1", spark=spark)
    in_between(monkeypatch, lambda: two.append({"id": [9]}))
    with pytest.raises(ix.CommitConflictError, match="no-new-conflicting-files"):
        lab.delete("id > 2", spark=spark)
    in_between(monkeypatch, lambda: two.append({"id": [-9]}))
    lab.delete("id > 2", spark=spark)
    in_between(monkeypatch, lambda: two.append({"id": [10]}))
    with pytest.raises(ix.CommitConflictError, match="no-new-conflicting-files"):
        lab.merge(frame([(10, 1)], "id long, i int"), "id")

    # And expires what is read, after Spark has received its tasks.
    def late(*how: Any) -> Any:
        two.compact(paths=two.inspect.data_files()["file_path"].tolist())
        two.expire_snapshots(older_than=2**60, retain_last=1)
        return write_moved(*how)

    with monkeypatch.context() as patch:
        patch.setattr("iceexplore.labs._write.write_moved", late)
        with pytest.raises(ix.CommitConflictError, match=r"parquet does not exist.*files-exist"):
            lab.update({"i": 0}, "id = 2", spark=spark)
    lab.set_properties({"write.merge.isolation-level": "snapshot"})
    in_between(monkeypatch, lambda: two.append({"id": [11]}))
    lab.merge(frame([(11, 1)], "id long, i int"), "id")
    assert sorted(r["id"] or 0 for r in lab.to_arrow().to_pylist()) == [-9, 0, 2, 10, 11, 11]


def test_damage_is_not_written_anew(warehouse: Warehouse, tmp_path: Path) -> None:
    """Under a checksum of its own it would pass for data: each place that reads for it, with pyarrow and with Spark."""
    spark = warehouse.session
    schema = {"id": "long", "x": "double"}
    lab = ix.create(tmp_path / "t", schema, format_version=3, properties=modes("copy-on-write"))
    for first in (0, 50):
        lab.append({"id": list(range(first, first + 50)), "x": [i * 1.5 for i in range(50)]})
    file = local(lab.inspect.data_files()["file_path"][0])
    whole, rows = file.read_bytes(), pq.read_table(file)
    for at in range(4, len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with suppress(OSError, pa.ArrowInvalid):
            if (other := pq.read_table(file))["id"] == rows["id"] and other["x"] != rows["x"]:
                break
    else:
        pytest.fail("no byte was found that makes other values of x")
    uses: list[Callable[[], Any]] = [
        lambda: lab.compact(spark=spark),
        lambda: lab.delete("x > 1.0", spark=spark),
        lambda: lab.update({"id": 3}, "id in (7, 57)", spark=spark),
        lambda: lab.merge(spark.createDataFrame([(i, 2.0) for i in range(8, 90)], "id long, x double"), "id"),
    ]
    for use in uses:
        with pytest.raises(ix.FormatError, match=rf"CRC checksum verification failed[\s\S]*{file.name}"):
            use()
    assert len(lab.refresh().snapshots) == 2


@pytest.mark.parametrize("version", one_of(2, [3, 2]))
def test_each_row_that_is_updated_stays_one(warehouse: Warehouse, tmp_path: Path, version: int) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    spark = warehouse.session
    mode = modes("copy-on-write" if version < 3 else "merge-on-read")
    lab = ix.create(tmp_path / "t", {"id": "long", "x": "double"}, format_version=version, properties=mode)
    lab.append({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
    before = lab.metadata_location
    for given, words in (
        ({"x": f.explode(f.array(f.lit(1.0), f.lit(2.0)))}, "'x'.*a value for each row.*generator"),
        ({"x": f.explode(f.array().cast("array<double>"))}, "'x'.*generator"),
        ({"x": f.expr("stack(2, 1d, 2d)")}, "'x'.*generator"),
        ({"x": lambda rows: f.posexplode(f.array(rows["x"]))}, "'x'.*generator"),
        ({"x": f.sum("x")}, "'x'.*GROUP BY"),
        ({"x": f.sum("x"), "id": f.max("id")}, "'x', 'id'.*GROUP BY"),
        ({"x": f.sum("x"), "id": 7}, "'x'.*GROUP BY"),
        ({"x": f.col("*")}, "'x'"),
    ):
        with pytest.raises(ix.OptionError, match=words):
            lab.update(given, "id < 3", spark=spark)
    with pytest.raises(ix.OptionError, match="'x' is given as a Spark Column: pass the session"):
        lab.update({"x": f.col("x") + 1}, "id = 1")
    assert lab.metadata_location == before
    # Over the rows that match.
    lab.update({"x": f.sum("x").over(Window.partitionBy()), "id": f.col("id") + 10}, "id < 3", spark=spark)
    assert sorted((r["id"], r["x"]) for r in lab.to_arrow().to_pylist()) == [(3, 3.0), (11, 3.0), (12, 3.0)]
    if version > 2:
        assert sorted(number for number, _ in lineage_of(lab).values()) == [0, 1, 2]


FILTERS = (
    "id < {n}", "id between {n} and 60", "x > 1.5", "x != 0", "s like 'naïve-1%'", "s is null or i > -20", "b", "not b",
    "u is null", "n < -10", "d < '1970-01-10'", "ts is not null and k = '007'", "f >= -0.5", "at.lat > {n}",
    "tz < '1970-01-05T00:00:00Z'", "w is null", "not (id in ({n}, 3, 5))",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_random_operations_on_random_tables(warehouse: Warehouse, tmp_path: Path, seed: int) -> None:
    spark, rng = warehouse.session, Random(seed)
    version = rng.randint(1, 4)
    how: dict[str, Any] = {
        "format_version": version,
        "partition_by": rng.sample(PARTITIONS, rng.randint(0, 2)),
        "sort_by": rng.sample(["x desc", "truncate(2, s)", "ts nulls last", "id"], rng.randint(0, 2)),
        "properties": {
            f"write.{operation}.mode": rng.choice(["copy-on-write", "merge-on-read"])
            for operation in ("delete", "update", "merge")
        },
    }
    labs = [ix.create(tmp_path / name, SCHEMA, **how) for name in ("spark", "here")]
    done: list[Any] = [how]

    def rows() -> pa.Table:
        known = [name for name in some(0, 1).column_names if name in [f.name for f in labs[0].schema.fields]]
        wanted = ["id", *rng.sample(known[1:], rng.randint(1, len(known) - 1))]
        return some(rng.randint(0, 60), rng.randint(1, 15)).select(wanted)

    def both(name: str, *given: Any, frames: bool = False, **how: Any) -> None:
        done.append((name, given if not frames else ("rows", *given[1:]), how))
        engine = {} if frames else {"spark": spark}
        theirs = (frame_of(spark, given[0]), *given[1:]) if frames else given
        for lab, arguments, more in ((labs[0], theirs, engine), (labs[1], given, {})):
            with suppress(ix.OptionError):
                getattr(lab, name)(*arguments, **how, **more)

    def document(name: str, *given: Any, **how: Any) -> None:
        done.append((name, given, how))
        for lab in labs:
            getattr(lab, name)(*given, **how)

    document("append", some(0, 40))
    document("append", some(40, 30))
    for step in range(10):
        where = rng.choice(FILTERS).format(n=rng.randint(0, 70))
        match rng.randint(0, 7):
            case 0:
                both("delete", where)
            case 1:
                both("update", {"s": rng.choice([None, "new"]), "i": step, "at": {"lat": 1.5, "name": "n"}}, where)
            case 2:
                both("merge", rows(), "id", frames=True, where=rng.choice([None, where]))
            case 3:
                both("merge", rows(), ["id"], frames=True, matched="delete", not_matched=rng.choice([None, "insert"]))
            case 4:
                both("overwrite", rows(), where, frames=True)
            case 5:
                both("compact", rng.choice([None, where]), files=rng.randint(1, 2))
            case 6:
                names = {f.name for f in labs[0].schema.fields}
                change = {"add": {f"e{step}": "list<uuid>"}} if "m" not in names else {"rename": {"m": f"m{step}"}}
                document("evolve_schema", **rng.choice([change, {"add": {f"a{step}": "int"}}]))
                document("set_sort_order", *rng.sample(["id desc", "x"], rng.randint(0, 1)))
            case 7:
                document("evolve_spec", add=[f"truncate({step + 2}, id)"])
                if rng.random() < 0.3 and version < 4:
                    version += 1
                    document("upgrade", version)
        found, expected = (sorted(map(str, rows_of(lab.to_arrow()))) for lab in labs)  # ids are there twice, too
        assert found == expected, done
        assert summary_of(labs[0])["operation"] == summary_of(labs[1])["operation"], done
        # After a compaction other rows may share a file, and other files may go as wholes: what is left is the same.
        left = [int(summary_of(lab)[_COUNTS[1]] or 0) - int(summary_of(lab)[_COUNTS[2]] or 0) for lab in labs]
        assert left == [len(lab.to_arrow()) for lab in labs] == [left[0]] * 2, done
    assert not len(labs[0].verify(level="data")) and not check_rules(labs[0].state), done
    assert not len(labs[0].orphan_files(running=True)), done
