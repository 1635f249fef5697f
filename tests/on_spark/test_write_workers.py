"""What Spark's workers do when they write data files, without Spark: keyed, shuffled by hand, written, packed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import Change, CommitWriter, append
from iceexplore.errors import OptionError
from iceexplore.manifests import EntryBatch, concat_batches
from iceexplore.on_spark import ship
from iceexplore.on_spark.transport._arrow_schema import for_spark
from iceexplore.on_spark.write._workers import FileWriter, Keys, chunks, packed, unpacked
from iceexplore.writing import files_of_frame
from tests.spark.labs.test_labs import PARTITIONS, SCHEMA, some

KEY = "key"
TASKS = 3


def batches(table: pa.Table, rows: int = 7) -> Iterator[pa.RecordBatch]:
    return iter(table.to_batches(max_chunksize=rows))


def keyed(lab: ix.Table, table: pa.Table) -> pa.Table:
    return pa.Table.from_batches(list(Keys(ship(lab.state), KEY)(batches(table))))


def written(lab: ix.Table, table: pa.Table) -> EntryBatch:
    """As Spark does it: keys in one pass, rows of a key in one of some tasks, there by key."""
    table, made = keyed(lab, table), []
    numbers = table[KEY].to_pylist()
    for task in range(TASKS):
        mine = table.filter(pa.array([n % TASKS == task for n in numbers])).sort_by(KEY)  # type: ignore[operator]
        made += [unpacked(b.column(0)[0].as_py()) for b in FileWriter(ship(lab.state), KEY)(batches(mine))]
    return concat_batches(made)


def by_partition(made: EntryBatch) -> dict[str | None, Any]:
    """Return the entry of each file, by its partition, without its name."""
    skipped = {"location", "ordinal"}
    rows = made.entries.to_pylist()
    partition = [None] * len(made) if made.partition is None else [str(p) for p in made.partition]
    stats = {i: [str(s) for s in array] for i, array in made.stats.items()}
    out: dict[str | None, Any] = {
        p: ({k: v for k, v in row.items() if k not in skipped}, {i: s[n] for i, s in stats.items()})
        for n, (p, row) in enumerate(zip(partition, rows, strict=True))
    }
    assert len(out) == len(made)
    return out


@pytest.mark.parametrize(
    ("partition_by", "version"),
    [(PARTITIONS[0::3], 1), (PARTITIONS[1::3], 2), (PARTITIONS[2::3], 3), ("void(s)", 2), ("truncate(2, at.name)", 4)],
)
def test_entries_are_those_of_rows_written_here(tmp_path: Path, partition_by: Any, version: int) -> None:
    how: dict[str, Any] = {"partition_by": partition_by, "sort_by": ["x desc", "id"], "format_version": version}
    lab, rows = ix.create(tmp_path / "t", SCHEMA, **how), some(0, 60)
    made = written(lab, for_spark(rows))
    here = EntryBatch.empty()

    def note(writer: CommitWriter) -> Change:
        nonlocal here
        here = files_of_frame(writer.base, rows, writer)
        return append(writer.base, writer, here)

    other = ix.create(tmp_path / "other", SCHEMA, **how)
    other._sandbox.commit(note)
    assert by_partition(made) == by_partition(here)
    assert sum(build.to_pylist(made.entries["record_count"])) == 60


def test_what_is_written_is_committed_and_read(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", SCHEMA, partition_by=["bucket(2, id)", "i"], sort_by="x", format_version=3)
    rows = some(0, 30)
    lab._sandbox.commit(lambda w: append(w.base, w, written(lab, for_spark(rows))))
    lab.refresh()
    found = lab.to_arrow().sort_by("id")
    assert list(map(str, found.to_pylist())) == list(map(str, rows.cast(found.schema).to_pylist()))
    assert not len(lab.verify(level="data")) and not len(lab.orphan_files(running=True))


def test_files_hold_floats_in_the_total_order(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"x": "double"}, sort_by="x nulls last")
    nan, inf = float("nan"), float("inf")
    given = pa.table({"x": [0.0, nan, None, -0.0, inf, -inf, 0.0, -0.0, 1.5]})
    [out] = FileWriter(ship(lab.state), None)(batches(given, 4))
    [location] = build.to_pylist(unpacked(out.column(0)[0].as_py()).entries["location"])
    table = pq.read_table(location)
    assert [str(x) for x in build.to_pylist(table["x"])] == [
        "-inf", "-0.0", "-0.0", "0.0", "0.0", "1.5", "inf", "nan", "None",
    ]  # fmt: skip


@pytest.mark.parametrize("order", ["x", "x desc"])
def test_zeros_of_either_sign_are_found_in_order(tmp_path: Path, order: str) -> None:
    lab = ix.create(tmp_path / "t", {"x": "double", "id": "long"}, sort_by=[order, "id"])
    lab.append({"x": [0.0, -0.0, 0.0, -0.0, 1.0, float("nan")], "id": [1, 2, 3, 4, 0, 0]})
    assert not len(lab.verify(level="data"))


def test_keys_are_the_same_in_every_process_and_tell_partitions_apart(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"x": "double", "s": "string"}, partition_by=["x", "truncate(1, s)"])
    xs = [None, 0.0, float("nan"), 1.0]
    table = pa.table({"x": [x for x in xs for _ in range(3)], "s": ["ab", "ac", None] * 4})
    numbers = keyed(lab, table)[KEY].to_pylist()
    assert len(set(numbers)) == 8
    assert all(numbers[i] == numbers[i + 1] for i in range(0, 12, 3))
    assert numbers[:3] == keyed(lab, table.slice(0, 3))[KEY].to_pylist()
    assert numbers[0] == KNOWN


#: Of (null, "a"). Python's own hash would be another one in each process.
KNOWN = 7_007_933_600_726_831_298


def test_partition_columns_that_are_not_given_have_their_default(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "kind": "string"}, partition_by="kind")
    made = written(lab, pa.table({"id": [1, 2]}))
    assert made.partition is not None and build.to_pylist(made.partition) == [{"1000": None}]
    with pytest.raises(OptionError, match="no column 'ID'"):
        written(lab, pa.table({"ID": [1]}))


def test_chunks_hold_one_key_and_no_more_than_is_asked_for() -> None:
    table = pa.table({"n": range(100), KEY: pa.array([0] * 41 + [1] * 9 + [2] * 50)})
    made = list(chunks(batches(table, 10), KEY, 160))
    assert [t.num_rows for t in made] == [20, 20, 1, 9, 20, 20, 10]
    assert pa.concat_tables(made)["n"].to_pylist() == list(range(100))
    assert all(t.column_names == ["n"] for t in made)
    assert [t.num_rows for t in chunks(batches(table.drop_columns([KEY]), 10), None, 1 << 20)] == [100]
    assert not list(chunks(batches(table.slice(0, 0)), KEY, 100))


def test_files_are_no_larger_than_the_target(tmp_path: Path) -> None:
    properties = {"write.target-file-size-bytes": "800"}
    lab = ix.create(tmp_path / "t", {"id": "long"}, properties=properties)
    [out] = FileWriter(ship(lab.state), None)(batches(pa.table({"id": range(1000)}), 250))
    made = unpacked(out.column(0)[0].as_py())
    counts = build.to_pylist(made.entries["record_count"])
    assert sum(counts) == 1000 and 60 < min(counts) <= max(counts) <= 100
    assert len(set(build.to_pylist(made.entries["location"]))) == len(made)


def test_entries_come_through_whole(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"a": "timestamp_ns", "b": "uuid"}, format_version=3)
    given = pa.table({"a": pa.array([1, None, 3], pa.int64()), "b": [None, bytes(range(16)), None]})
    [out] = FileWriter(ship(lab.state), None)(batches(given))
    made = unpacked(out.column(0)[0].as_py())
    again = unpacked(packed(made))
    assert again.partition is None and again.entries.equals(made.entries)
    assert {i: a.equals(again.stats[i]) for i, a in made.stats.items()} == {1: True, 2: True}
    assert made.stats[1][0]["lower"].value == 1 and made.stats[1][0]["upper"].value == 3  # type: ignore[attr-defined]
    assert made.stats[2][0]["lower"].as_py() == bytes(range(16))
    assert made.stats[1][0]["null_count"].as_py() == 1


def test_a_task_without_rows_gives_nothing(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"})
    assert not list(FileWriter(ship(lab.state), None)(iter([])))
    assert not len(lab.orphan_files(running=True))
