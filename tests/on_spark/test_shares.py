"""Splits shared out: whatever their size, every row is read once; no Spark is needed for it."""

from __future__ import annotations

import gc
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import UnsupportedError
from iceexplore.on_spark import SessionInfo, SparkColumns, check_reach, ship
from iceexplore.on_spark.transport import _splits as _shares
from iceexplore.on_spark.transport._splits import fitted, read_share, row_groups_in, shares
from iceexplore.planning import FileTasks, SplitOptions, plan_scan
from iceexplore.reading import arrow_field, outputs_of

ROWS = 4_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Files of many row groups and of one, with equality, position and vector deletes, in two partitions."""
    folder = Path(tmp_path_factory.mktemp("shares"))
    s = ix.empty({"id": "long", "p": "string", "text": "string"}, partition_by=["p"], format_version=2)
    frame = pd.DataFrame({"id": range(ROWS), "p": ["a", "b"] * (ROWS // 2), "text": [f"{i:040d}" for i in range(ROWS)]})
    s.append(frame)
    s.append(pd.DataFrame({"id": [-1, -2], "p": ["a", "c"], "text": ["x", "y"]}))
    files = s.inspect.files()["file_path"].tolist()
    big = next(f for f in files if s.to_arrow(columns=["_file"])["_file"].to_pylist().count(f) > 100)
    s.row_delta(deletes={big: [0, 5, 1_999]}, equality=pd.DataFrame({"id": [7, 8], "p": ["b", "a"]}))
    saved = s.save(folder / "t", data="copy")
    path = Path(saved.location if hasattr(saved, "location") else folder / "t")
    for file in path.rglob("*.parquet"):  # cut into row groups, as a writer of large files would
        if "/data/" in str(file) and pq.ParquetFile(file).metadata.num_rows > 1_000:
            held = pq.read_table(file)
            pq.write_table(held, file, row_group_size=150, store_schema=False)
    return ix.open(path)


def ids(state: Any, parts: list[Any]) -> list[int]:
    shipped = ship(state)
    outputs = outputs_of(state, ["id"])
    return [
        i for part in parts for rows in read_share(shipped.open(), part, outputs) for i in build.to_pylist(rows["id"])
    ]


def with_offsets(tasks: FileTasks, offsets: list[int] | None) -> FileTasks:
    """Tasks whose entries have other split offsets."""
    n = len(tasks)
    kind = pa.list_(pa.int64())
    lists = pa.nulls(n, kind) if offsets is None else pa.array([offsets] * n, kind)
    return replace(tasks, files=tasks.files.with_columns(split_offsets=lists))


@settings(max_examples=12)
@given(
    size=st.integers(2_000, 200_000),
    cost=st.integers(0, 50_000),
    where=st.sampled_from([None, "id > 100", "p = 'a'"]),
    offsets=st.none() | st.lists(st.integers(0, 8_000), min_size=1, max_size=5, unique=True).map(sorted),
)
def test_every_row_is_read_once(
    table: ix.Table, size: int, cost: int, where: str | None, offsets: list[int] | None
) -> None:
    tasks = with_offsets(plan_scan(table._state, where).files, offsets)
    parts = shares(tasks, SplitOptions(size=size, open_file_cost=cost))
    assert sorted(ids(table._state, parts)) == sorted(build.to_pylist(table.to_arrow(where, ["id"])["id"]))


def test_large_files_are_cut(table: ix.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = table.plan()
    assert len(shares(with_offsets(plan.files, None), SplitOptions(size=2_000, open_file_cost=0))) > 5
    assert len(shares(plan.files, SplitOptions())) == 1
    # Never more than a plan of Spark should have.
    monkeypatch.setattr(_shares, "_MOST_SHARES", 3)
    few = shares(with_offsets(plan.files, None), SplitOptions(size=2_000, open_file_cost=0))
    assert len(few) == 3
    assert sorted(ids(table._state, few)) == sorted(build.to_pylist(table.to_arrow(columns=["id"])["id"]))
    # As many as there are workers, but none below 16 MiB or the size asked for.
    assert fitted(plan.files, SplitOptions(), 8).size == 16 << 20
    assert fitted(plan.files, SplitOptions(size=1_000), 8).size == 1_000


def test_row_groups_belong_to_the_range_in_which_they_begin(table: ix.Table) -> None:
    state = table._state
    entries = table.plan().files.files.entries
    location, size = next(
        (e["location"], e["file_size_in_bytes"]) for e in entries.to_pylist() if e["record_count"] > 1_000
    )
    every = row_groups_in(state, location, (0, None))
    assert every is not None and len(every) > 5
    cut = [row_groups_in(state, location, (low, low + 7_000)) for low in range(0, 9 * size, 7_000)]
    assert [g for part in cut for g in part or []] == every


def test_what_is_no_parquet_is_read_whole_by_the_first(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=2)
    s.append(pd.DataFrame({"id": [1, 2]}))
    s.save(tmp_path / "t", data="copy")
    t = ix.open(tmp_path / "t")
    [file] = (tmp_path / "t").rglob("data/**/*.parquet")
    file.write_bytes(b"Obj\x01 not much of an Avro file")
    location = t.plan().files.files.entries["location"][0].as_py()
    assert row_groups_in(t._state, location, (0, 100)) is None
    assert row_groups_in(t._state, location, (100, None)) == []


def test_a_state_goes_to_workers_without_its_history(table: ix.Table) -> None:
    s = table.simulate()
    for i in range(20):
        s.append(pd.DataFrame({"id": [10_000 + i], "p": ["a"], "text": ["z"]}))
    shipped = ship(s._state)
    state = shipped.open()
    assert len(shipped.data) < 10_000  # a simulation's own files are named in it
    assert [x.snapshot_id for x in state.metadata.snapshots] == [s._state.snapshot.snapshot_id]  # type: ignore[union-attr]
    found = ids(s._state, shares(s.plan().files, SplitOptions()))
    assert sorted(found) == sorted(build.to_pylist(s.to_arrow(columns=["id"])["id"]))


def test_files_in_a_temporary_folder_stay_on_this_machine(table: ix.Table, tmp_path: Path) -> None:
    zipped = tmp_path / "z"  # recognized by its content
    Path(shutil.make_archive(str(zipped), "zip", table.state.storage.folder)).rename(zipped)
    z, s = ix.open(zipped), table.simulate()
    here, elsewhere = (SessionInfo((4, 1), False, local, None) for local in (True, False))
    check_reach(s._state, here)
    check_reach(table._state, elsewhere)  # a folder that was given may be shared
    with pytest.raises(UnsupportedError, match=r"other machines.*s\.save"):
        check_reach(s._state, elsewhere)
    with pytest.raises(UnsupportedError, match=r"other machines.*extract the zip"):
        check_reach(z._state, elsewhere)
    # A data frame is run when the table may be gone.
    check_reach(z._state, here)
    folder = Path(z.state.storage.folder)
    del z
    gc.collect()
    assert folder.is_dir()


def test_the_data_source_takes_no_zips(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.datasource")
    from iceexplore.on_spark.data_source._reader import state_of_options

    ix.create(tmp_path / "t", {"id": "long"})
    zipped = shutil.make_archive(str(tmp_path / "z"), "zip", tmp_path / "t")
    with pytest.raises(UnsupportedError, match="load the folder"):
        state_of_options({"path": zipped})


def test_the_data_source_warns_of_counts_that_differ(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.datasource")
    from iceexplore.on_spark.data_source._reader import IceexploreReader, state_of_options

    lab = ix.create(tmp_path / "t", {"id": "long"})
    lab.append({"id": [1, 2]})
    metadata = Path(lab.metadata_location.removeprefix("file://"))
    metadata.write_text(metadata.read_text().replace('"total-records":"2"', '"total-records":"5"'))
    assert '"total-records":"5"' in metadata.read_text()
    state = state_of_options({"path": str(tmp_path / "t")})
    reader = IceexploreReader(state, SparkColumns(outputs_of(state, None), (4, 1)), {})
    with pytest.warns(UserWarning, match="summary has 5 rows") as ours:
        parts = reader.partitions()
    assert len(parts) == 1
    with pytest.warns(UserWarning, match="summary has 5 rows") as theirs:
        ix.open(tmp_path / "t").to_arrow()
    assert [str(w.message) for w in ours] == [str(w.message) for w in theirs]


def test_columns_in_spark_types() -> None:
    s = ix.empty(
        {"u": "uuid", "f": "fixed[3]", "t": "time", "n": "timestamp_ns", "l": "list<uuid>", "m": "map<string, time>",
         "st": "struct<a: uuid, b: list<struct<c: fixed[2]>>>"},
        format_version=3,
    )  # fmt: skip
    columns = SparkColumns(outputs_of(s._state, None), (4, 1))
    read = pa.schema([arrow_field(o.field) for o in columns.outputs])
    u = bytes(range(16))
    rows = [
        {"u": u, "f": b"abc", "t": 5, "n": 7, "l": [u, None], "m": [("k", 9)], "st": {"a": u, "b": [{"c": b"xy"}]}},
        dict.fromkeys(read.names),
        {"u": u, "f": b"abc", "t": 5, "n": 7, "l": [], "m": [], "st": {"a": None, "b": None}},
    ]
    table = pa.Table.from_pylist(rows, schema=read)
    text = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    wanted = [
        {"u": text, "f": b"abc", "t": 5, "n": 7, "l": [text, None], "m": [("k", 9)],
         "st": {"a": text, "b": [{"c": b"xy"}]}},
        dict.fromkeys(read.names),
        {"u": text, "f": b"abc", "t": 5, "n": 7, "l": [], "m": [], "st": {"a": None, "b": None}},
    ]  # fmt: skip
    assert columns.of(table).to_pylist() == wanted
    assert columns.of(table.slice(1)).to_pylist() == wanted[1:]
