"""The files of snapshots as cells: the same files as the metadata tables list, the same changes as a diff."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.errors import OptionError
from iceexplore.graph import FILE_KINDS, LiveFiles, cell_shades, file_cells, live_files
from iceexplore.graph.file_map._live_files import ADDED, REMOVED, _first_of

SVG = "{http://www.w3.org/2000/svg}"


def _agrees(t: ix.Table) -> LiveFiles:
    """Check one snapshot against the metadata tables, and its cells against its files."""
    found = live_files(t.state)
    listed = t.inspect["files"].arrow()
    assert len(found) == listed.num_rows
    live = found.change != REMOVED
    content = Counter(listed["content"].to_pylist())
    assert [int((found.kind[live] == k).sum()) for k in (0, 2)] == [content[0], content[2]]
    assert int(np.isin(found.kind[live], (1, 3)).sum()) == content[1]
    assert found.rows[live].sum() == sum(max(n or 0, 0) for n in listed["record_count"].to_pylist())
    for most in (10_000, 3):
        cells = file_cells(found, most, 4)
        assert cells.total == listed.num_rows
        assert cells.files.sum() == len(found.kind)
        assert cells.files[cells.change != REMOVED].sum() == cells.total
        assert sum(g.files + g.deletes for g in cells.groups) == cells.total
        assert sum(g.cells for g in cells.groups) == len(cells.files)
        assert len(cells.groups) <= 4 and cells.files.max(initial=0) <= cells.most
        for color in ("size", "age", "deletes"):
            assert len(cell_shades(cells, color)) == len(cells.files)
    return found


def test_the_sample_in_every_snapshot() -> None:
    table = ix.sample("trips")
    for snapshot in table.snapshots:
        t = table.at(snapshot=snapshot.snapshot_id)
        found = _agrees(t)
        data = (found.kind == 0) & (found.change != REMOVED)
        assert found.shared_deletes == 0 and found.unread == 0
        assert found.rows[data].sum() - found.deleted[data].sum() == t.count(), "what a scan finds"
        if snapshot.parent_snapshot_id is not None:
            counts = table.diff(snapshot.parent_snapshot_id, snapshot.snapshot_id).counts
            assert (found.change == ADDED).sum() == counts["added_files"].sum()
            assert (found.change == REMOVED).sum() == counts["removed_files"].sum()
        for manifest, row, change in zip(found.manifest, found.row, found.change, strict=True):
            if change != REMOVED:
                node = t.tree().node(f"file:{snapshot.snapshot_id}:{manifest}:{row}")
                assert node.kind in FILE_KINDS and "removed" not in node.marks
    labels = found.labels(range(found.partitions))
    assert labels[0] == "started_at_day=2024-03-01"
    assert labels[-1] == "started_at_month=2024-05, start_station_bucket_2=1"


def test_v4_with_files_in_the_root_and_manifest_vectors() -> None:
    simulation = ix.sample("trips").simulate(format_version=4)
    simulation.append(files=3, rows=10)
    table = simulation.table
    path = table.inspect["data_files"].arrow()["file_path"].to_pylist()
    simulation.delete_files([path[0], path[-1]])
    for t in (table, simulation.table):
        found = _agrees(t)
        assert t.snapshot is not None
        for manifest, row, change in zip(found.manifest, found.row, found.change, strict=True):
            place = f"{row}" if manifest < 0 else f"{manifest}:{row}"
            if change != REMOVED:
                assert t.tree().node(f"file:{t.snapshot.snapshot_id}:{place}").kind in FILE_KINDS
    assert ((found.change == REMOVED) & (found.kind == 0)).sum() == 2
    simulation.close()


@pytest.mark.corpus
def test_every_snapshot_of_real_tables(corpus: Path) -> None:
    checked = 0
    for name, row in list(json.loads((corpus / "expected.json").read_text()).items())[::4]:
        try:
            table = ix.open(corpus / name / str(row["metadata"]))
        except ix.IceexploreError:
            continue  # tests/test_corpus.py says which and why
        for snapshot in table.snapshots[-4:]:
            _agrees(table.at(snapshot=snapshot.snapshot_id))
            checked += 1
    assert checked > 50


def _some(count: int, *, partitions: int = 1) -> LiveFiles:
    """Return files that no table has."""
    plain = live_files(ix.sample("trips").state)
    numbers = np.arange(count)
    columns = {name: np.zeros(count, np.int64) for name in ("kind", "change", "deleted", "manifest", "row")}
    columns |= {"partition": numbers * partitions // count, "rows": numbers * 0 + 10, "size": numbers + 1}
    columns["age"] = columns["ordinal"] = numbers
    return LiveFiles(**columns, shared_deletes=0, unread=0, _tuples=plain._tuples)


def test_many_files_share_cells() -> None:
    cells = file_cells(_some(1_000), 100)
    assert len(cells.files) == 100 and cells.most == 10
    assert set(cells.files) == {10}
    assert cells.size[0] == 5, "the mean of 1 to 10"
    shades = cell_shades(cells, "size")
    assert shades[0] == 0 and shades[-1] == 5 and list(shades) == sorted(shades)
    assert cell_shades(cells, "age")[0] == 5, "the newest is dark"
    changed = _some(100)
    changed.change[50] = ADDED
    changed.deleted[7] = 10
    cells = file_cells(changed, 10)
    assert cells.files[cells.change == ADDED] == [1], "a changed file is never in a cell with others"
    assert max(cells.deleted) == 100
    assert max(cell_shades(cells, "deletes")) == 1


def test_neighbouring_partitions_are_put_together() -> None:
    cells = file_cells(live_files(ix.sample("trips").state), groups=3)
    assert cells.groups[0].label == ("started_at_day=2024-03-01 … started_at_day=2024-03-04 (4 partitions)")
    assert cells.partitions == 11


def test_no_snapshot_and_no_partitions() -> None:
    empty = ix.empty({"a": "long"}).file_map(2)
    assert "no snapshot" in str(empty)
    assert len(empty.partitions) == 0
    ET.fromstring(empty.to_svg())
    simulation = ix.empty({"a": "long"}).simulate()
    simulation.append(files=2, rows=5)
    assert "unpartitioned  ++  2 files · 10 rows" in str(simulation.table.file_map())
    simulation.close()


def test_the_picture_of_several_snapshots() -> None:
    table = ix.sample("trips")
    found = table.file_map(4, color="age")
    assert len(found.snapshots) == 4 and found.snapshots[-1] == table.snapshot
    assert [*found.partitions.columns] == ["partition", "files", "rows", "size", "deletes", "added", "removed"]
    assert found.partitions["files"].sum() == table.inspect["data_files"].arrow().num_rows
    root = ET.fromstring(found.to_svg("dark"))
    texts = [node.text or "" for node in root.iter(f"{SVG}text")]
    assert any("11 snapshots (faint) to new (strong)" in text for text in texts)
    assert len([text for text in texts if text.startswith("started_at_day=2024-03-0")]) == 7
    drawn = "".join(path.attrib["d"] for path in root.iter(f"{SVG}path") if "ix-cell" in path.attrib.get("class", ""))
    legend = 5
    assert drawn.count("M") - legend == sum(len(cells.files) for cells in found.cells)
    assert "××" in str(found), "both files of the first partition have been removed"
    assert "text/html" in found._repr_mimebundle_()


def test_a_manifest_that_cannot_be_read_is_not_an_empty_one(trips: Path, tmp_path: Path) -> None:
    import shutil

    folder = Path(shutil.copytree(trips, tmp_path / "trips"))
    gone = sorted(path for path in folder.rglob("*-m0.avro"))[:2]
    for path in gone:
        path.unlink()
    found = [ix.open(folder).at(snapshot=s.snapshot_id).file_map() for s in ix.open(folder).snapshots]
    assert any(one.cells[0].unread for one in found)
    assert all(("Incomplete: " in str(one)) == bool(one.cells[0].unread) for one in found)


@pytest.mark.parametrize("wrong", [{"snapshots": 0}, {"snapshots": 99}, {"snapshots": True}, {"color": "red"}])
def test_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        ix.sample("trips").file_map(**wrong)


@given(st.lists(st.sampled_from("abcdef"), max_size=12), st.lists(st.sampled_from("abxy"), max_size=6))
def test_the_first_of_equal_places_is_found(places: list[str], wanted: list[str]) -> None:
    found = _first_of(pa.array(wanted, pa.string()), pa.array(places, pa.string()))
    assert found.to_pylist() == [places.index(one) if one in places else None for one in wanted]
