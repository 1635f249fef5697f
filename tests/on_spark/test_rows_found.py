"""Positions that workers find, tasks with further rows deleted, and files rewritten by workers: without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import compact
from iceexplore.manifests import EntryBatch, concat_batches
from iceexplore.on_spark import only_rows, ship
from iceexplore.on_spark.transport._splits import shares
from iceexplore.on_spark.write._compact import _Compactor
from iceexplore.on_spark.write._find_rows import _Finder, _gathered, _parts, without_rows
from iceexplore.on_spark.write._workers import unpacked
from iceexplore.planning import FileTasks, SplitOptions, plan_scan
from iceexplore.reading import read_tasks


def lab_of(folder: Path, version: int, **how: Any) -> ix.Lab:
    """Sixty rows in several files, with deletes of the version's kind."""
    properties = {"write.delete.mode": "merge-on-read"} | how.pop("properties", {})
    schema = {"id": "long", "kind": "string", "x": "double"}
    lab = ix.create(folder / "t", schema, format_version=version, properties=properties, **how)
    for first in (0, 30):
        ids = list(range(first, first + 30))
        lab.append({"id": ids, "kind": [f"k{i % 3}" for i in ids], "x": [i % 7 / 2 for i in ids]})
    lab.delete("id in (1, 2, 3, 40)")
    return lab


def found_by(lab: ix.Lab, tasks: FileTasks) -> dict[int, Any]:
    """What workers find, put together as the driver does it."""
    names = tasks.files.entries["location"].to_pylist()
    run = _Finder(ship(lab.state))
    out: dict[int, Any] = {}
    for share in shares(tasks, SplitOptions(size=100)):
        for table in run(share):
            for location, data in zip(*table.to_pydict().values(), strict=True):
                row = names.index(location)
                out[row] = out.get(row, BitMap64()) | BitMap64.deserialize(data)
    return out


def ids_of(lab: ix.Lab, tasks: FileTasks) -> list[int]:
    return sorted(i for table in read_tasks(lab.state, tasks, columns="id") for i in build.to_pylist(table["id"]))


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_rows_are_found_and_taken_out(tmp_path: Path, version: int) -> None:
    lab = lab_of(tmp_path, version, partition_by="kind")
    tasks = plan_scan(lab.state, "id > 20 and x > 0.5").files
    names = set(tasks.files.entries["location"].to_pylist())
    found = found_by(lab, tasks)
    live = [r for r in lab.to_arrow(columns=["id", "x", "_file"]).to_pylist() if r["_file"] in names]
    matching = sorted(r["id"] for r in live if r["id"] > 20 and r["x"] > 0.5)
    assert matching and ids_of(lab, only_rows(tasks, found)) == matching
    assert ids_of(lab, without_rows(lab.state, tasks, found)) == sorted({r["id"] for r in live} - set(matching))
    # Of tasks that have no deletes at all, too.
    bare = FileTasks(tasks.files, tasks.root_row, tasks.whole, tasks.residual)
    assert ids_of(lab, only_rows(bare, found)) == matching


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 70_000)), max_size=80), st.integers(1, 40))
def test_positions_are_gathered(rows: list[tuple[int, int]], size: int) -> None:
    pairs = rows or [(0, 0)]
    table = pa.table({"task": pa.array([t for t, _ in pairs], pa.int32()), "position": [p for _, p in pairs]})
    halves = [table.slice(0, len(pairs) // 2), table.slice(len(pairs) // 2)]
    parts = [batch for half in halves for batch in _parts(iter(half.to_batches(max_chunksize=size)))]
    made = pa.Table.from_batches(list(_gathered(iter(parts)))).to_pylist()
    assert {row["task"] for row in made} == {t for t, _ in pairs}
    for row in made:
        mine = [p for t, p in pairs if t == row["task"]]
        assert row["rows"] == len(mine) and list(BitMap64.deserialize(row["positions"])) == sorted(set(mine))


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_files_are_rewritten_and_sorted(tmp_path: Path, version: int, files: int) -> None:
    lab = lab_of(tmp_path, version, partition_by="kind", sort_by=["x desc", "id"])
    lineage = ["_row_id", "_last_updated_sequence_number"] if version > 2 else []
    before = lab.to_arrow(columns=["*", *lineage]).sort_by("id")
    state = ship(lab.state)

    def rewrite(groups: Sequence[FileTasks], wanted: int, number: int | None) -> EntryBatch:
        made = []
        for group in groups:
            parts = shares(group, SplitOptions(open_file_cost=0), parts=wanted)
            assert len(parts) == min(wanted, len(group))
            tables = _Compactor(state, number)(list(enumerate(parts)))
            made += [unpacked(data) for table in tables for data in build.to_pylist(table["files"])]
        return concat_batches(made)

    paths = lab.inspect.data_files()["file_path"].tolist()
    compacting = ix.commits.operation("compact")
    lab._commit_files(compacting, lambda w: compact(w.base, w, paths, files=files, rewrite=rewrite), "main")
    assert lab.to_arrow(columns=["*", *lineage]).sort_by("id").equals(before)
    data = lab.inspect.data_files()
    assert len(data) == (5 if files == 2 and version == 1 else 3 * files)  # copy-on-write has put two together
    assert set(data["sort_order_id"]) == {1} and not len(lab.inspect.delete_files())
    for location in data["file_path"]:
        rows = [r for r in lab.to_arrow(columns=["id", "x", "_file", "_pos"]).to_pylist() if r["_file"] == location]
        ordered = sorted(rows, key=lambda r: r["_pos"])
        assert ordered == sorted(rows, key=lambda r: (-r["x"], r["id"]))
    assert not len(lab.verify(level="data")) and not len(lab.orphan_files(running=True))
    assert (lab.snapshots[-1].summary or {})["operation"] == "replace" == lab.snapshots[-1].operation
    with pytest.raises(ix.OptionError, match="read=False"):
        lab._commit_files(compacting, lambda w: compact(w.base, w, files=1, read=False, rewrite=rewrite), "main")


def test_a_table_in_memory_makes_large_positions_small() -> None:
    positions = np.arange(0, 200_000, dtype=np.int64)
    table = build.table({"task": pa.array(np.zeros(200_000), pa.int32()), "position": positions})
    [batch] = _parts(iter(table.to_batches(max_chunksize=10_000)))
    assert len(batch.column(2)[0].as_py()) < 50_000
