"""What the driver does when Spark writes data files, on a data frame of Arrow tables in place of Spark's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import OptionError, StorageError
from iceexplore.on_spark import SessionInfo, write_files
from iceexplore.on_spark.transport._arrow_schema import spark_schema

Batches = Iterator[pa.RecordBatch]


class Settings(dict[str, str]):
    """A session's ``conf``."""


class Frame:
    """Partitions of rows, and what was asked of them. Functions are pickled on their way, as Spark does it."""

    isStreaming = False

    def __init__(self, parts: Sequence[pa.Table], schema: Any = None, asked: list[str] | None = None) -> None:
        self.parts = list(parts)
        self.schema = schema or spark_schema(parts[0].schema)
        self.asked = [] if asked is None else asked

    @property
    def columns(self) -> list[str]:
        return [f.name for f in self.schema.fields]

    def toDF(self, *names: str) -> Frame:
        parts = [part.rename_columns(list(names)) for part in self.parts]
        schema = type(self.schema)([type(f)(n, f.dataType) for f, n in zip(self.schema.fields, names, strict=True)])
        return Frame(parts, schema, self.asked)

    def mapInArrow(self, run: Callable[[Batches], Batches], schema: Any) -> Frame:
        from pyspark import cloudpickle

        assert not {".", "`"} & set("".join(self.columns)), "PySpark takes names for paths"
        run = cloudpickle.loads(cloudpickle.dumps(run))
        made = [list(run(iter(p.to_batches(max_chunksize=3)))) for p in self.parts]
        return Frame([pa.Table.from_batches(batches) for batches in made if batches], schema, self.asked)

    def hint(self, name: str, key: str) -> Frame:
        return self._dealt(name, key)

    def repartition(self, key: str) -> Frame:
        return self._dealt("repartition", key)

    def _dealt(self, how: str, key: str) -> Frame:
        self.asked.append(how)
        rows = pa.concat_tables(self.parts)
        keys = rows[key].to_pylist()
        return Frame([rows.filter(pa.array([k % 2 == i for k in keys])) for i in range(2)], self.schema, self.asked)  # type: ignore[operator]

    def sortWithinPartitions(self, key: str) -> Frame:
        return Frame([p.sort_by(key) for p in self.parts], self.schema, self.asked)

    def collect(self) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for part in self.parts for row in part.to_pylist()]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("pyspark")
    info = SimpleNamespace(local=True, connect=False, version=(4, 1))
    monkeypatch.setattr(SessionInfo, "of", staticmethod(lambda _session: info))
    return SimpleNamespace(conf=Settings())


ROWS = pa.table({"id": range(20), "kind": [f"k{i % 4}" for i in range(20)]})


def lab_of(folder: Path, **how: Any) -> ix.Lab:
    return ix.create(folder / "t", {"id": "long", "kind": "string"}, **how)


@pytest.mark.parametrize(
    ("settings", "properties", "asked", "files"),
    [
        ({}, {}, ["rebalance"], 4),
        ({"spark.sql.adaptive.enabled": "false"}, {}, ["repartition"], 4),
        ({}, {"write.distribution-mode": "none"}, [], 8),
    ],
)
def test_rows_of_a_partition_come_together(
    session: Any, tmp_path: Path, settings: Any, properties: Any, asked: list[str], files: int
) -> None:
    session.conf.update(settings)
    lab = lab_of(tmp_path, partition_by="kind", properties=properties)
    frame = Frame([ROWS.slice(0, 10), ROWS.slice(10)])
    made = write_files(session, frame, lab.state)
    assert frame.asked == asked and len(made) == files
    assert sum(build.to_pylist(made.entries["record_count"])) == 20
    assert made.entries["ordinal"].to_pylist() == list(range(files))


def test_each_task_writes_its_rows_where_nothing_is_partitioned(session: Any, tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    frame = Frame([ROWS.slice(0, 13), ROWS.slice(0, 0), ROWS.slice(13)])
    made = write_files(session, frame, lab.state)
    assert made.entries["record_count"].to_pylist() == [13, 7] and not frame.asked


@pytest.mark.parametrize("by", [(), "kind"])
def test_columns_have_any_names(session: Any, tmp_path: Path, by: Any) -> None:
    lab = ix.create(tmp_path / "t", {"a`b": "long", "kind": "string", "`": "long"}, partition_by=by)
    rows = pa.table({"a`b": [1, 2], "kind": ["x", "y"], "`": [3, 4]})
    made = write_files(session, Frame([rows]), lab.state)
    files = [pq.read_table(location) for location in build.to_pylist(made.entries["location"])]
    assert [file.column_names for file in files] == [rows.column_names] * (2 if by else 1)
    assert sorted(map(str, pa.concat_tables(files).to_pylist())) == sorted(map(str, rows.to_pylist()))


def test_a_column_of_the_name_of_the_key_stays(session: Any, tmp_path: Path) -> None:
    name = "Iceexplore_Partition_Key"
    lab = ix.create(tmp_path / "t", {"id": "long", name: "string"}, partition_by=name)
    made = write_files(session, Frame([ROWS.rename_columns(["id", name])]), lab.state)
    assert made.partition is not None
    assert sorted(p["1000"] for p in build.to_pylist(made.partition)) == ["k0", "k1", "k2", "k3"]


def test_files_that_are_not_here_are_refused(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_of(tmp_path)
    frame = Frame([ROWS])
    collect = Frame.collect

    def elsewhere(self: Frame) -> Any:
        rows = collect(self)
        for file in (tmp_path / "t" / "data").iterdir():
            os.unlink(file)
        return rows

    monkeypatch.setattr(Frame, "collect", elsewhere)
    with pytest.raises(StorageError, match=r"which a Spark worker wrote, does not exist on this machine.*share"):
        write_files(session, frame, lab.state)

    def shorter(self: Frame) -> Any:
        rows = collect(self)
        for file in (tmp_path / "t" / "data").iterdir():
            os.truncate(file, 5)
        return rows

    monkeypatch.setattr(Frame, "collect", shorter)
    with pytest.raises(StorageError, match="has 5 bytes on this machine"):
        write_files(session, frame, lab.state)


def test_workers_errors_about_rows_are_raised(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_of(tmp_path)
    text = (
        "[PYTHON_EXCEPTION] Job aborted: Traceback (most recent call last):\n  File 'x.py'\n"
        "iceexplore.errors.OptionError: column 'id': 0.5 does not fit long\n\n\tat org.apache.spark"
    )

    def failing(_self: Frame) -> Any:
        raise RuntimeError(text)

    monkeypatch.setattr(Frame, "collect", failing)
    with pytest.raises(OptionError, match=r"^column 'id': 0.5 does not fit long$"):
        write_files(session, Frame([ROWS]), lab.state)
    text = "executor lost"
    with pytest.raises(RuntimeError, match="lost"):
        write_files(session, Frame([ROWS]), lab.state)


def test_columns_are_checked_before_anything_is_run(session: Any, tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    for bad, message in (
        (ROWS.rename_columns(["id", "kinds"]), "no column 'kinds'.*kind"),
        (ROWS.rename_columns(["id", "id"]), "twice"),
        (pa.table({"id": ["1"]}), "string does not fit long"),
    ):
        with pytest.raises(OptionError, match=message):
            write_files(session, Frame([bad]), lab.state)
    with pytest.raises(OptionError, match="no rows"):
        write_files(session, Frame([ROWS.slice(0, 0)]), lab.state)
    assert not len(lab.orphan_files(running=True))


def test_streams_are_refused(session: Any, tmp_path: Path) -> None:
    stream = Frame([ROWS])
    stream.isStreaming = True
    with pytest.raises(OptionError, match="stream"):
        write_files(session, stream, lab_of(tmp_path).state)


def test_before_spark_4_rebalancing_takes_no_names(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = SimpleNamespace(local=True, connect=False, version=(3, 5))
    monkeypatch.setattr(SessionInfo, "of", lambda _: older)
    frame = Frame([ROWS.slice(0, 10), ROWS.slice(10)])
    made = write_files(session, frame, lab_of(tmp_path, partition_by="kind").state)
    assert frame.asked == ["repartition"] and len(made) == 4
