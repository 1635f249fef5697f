"""The files of a snapshot as cells, as the browser gets them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer, FileMap


@pytest.fixture
def table() -> ix.Table:
    return ix.sample("trips")


def test_cells_are_the_files_of_each_snapshot(table: ix.Table) -> None:
    widget = FileMap(table)
    for snapshot in table.snapshots:
        widget.select(snapshot=snapshot)
        assert widget.settle(60) and widget.error == {}
        found = widget.file_map
        assert found["of"] == str(snapshot.snapshot_id)
        assert found["parent"] == str(snapshot.parent_snapshot_id or "")
        at = table.at(snapshot=snapshot.snapshot_id)
        listed = at.inspect["files"].arrow()
        live = [i for i, change in enumerate(found["changes"]) if change != "2"]
        assert len(live) == listed.num_rows
        count = sum(cells for _, _, cells in found["groups"])
        names = ("kinds", "changes", "files", "size", "rows", "deleted", "age", "manifest", "row")
        assert {len(found[name]) for name in names} == {count}
        assert {len(shades) for shades in found["shades"].values()} == {count}
        # each cell is a node of the tree
        for i in (live[0], live[-1]):
            node = at.tree().node(f"file:{found['of']}:{found['manifest'][i]}:{found['row'][i]}")
            assert node.kind == found["names"][int(found["kinds"][i])]
            assert node.fields["record_count"] == found["rows"][i]
    gone = [i for i, change in enumerate(found["changes"]) if change == "2"]
    node = table.tree().node(f"file:{found['parent']}:{found['manifest'][gone[0]]}:{found['row'][gone[0]]}")
    assert node.kind == "data-file", "a removed file is found in the parent snapshot"
    json.dumps(widget.file_map)
    assert "22 files in 11 partitions" in widget._repr_mimebundle_()[0]["text/html"]
    widget.close()


def test_the_explorer_reads_files_when_the_tab_is_shown(table: ix.Table) -> None:
    explorer = Explorer(table)
    assert explorer.settle(60) and explorer.file_map == {}
    explorer.tab = "files"
    assert explorer.settle(60)
    assert explorer.file_map["of"] == explorer.selection["snapshot"]
    explorer.tab = "tree"
    explorer.select(snapshot=table.snapshots[0])
    assert explorer.settle(60)
    assert explorer.file_map["of"] != explorer.selection["snapshot"], "not while another tab is shown"
    explorer.tab = "files"
    assert explorer.settle(60)
    assert explorer.file_map["of"] == explorer.selection["snapshot"]
    explorer.close()


def test_what_could_not_be_read_is_stated_and_can_be_asked_for_again(trips: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trips, tmp_path / "trips"))
    table = ix.open(folder)
    for path in folder.rglob("*-m*.avro"):
        path.unlink()
    widget = FileMap(table)
    assert widget.settle(60)
    assert widget.file_map["title"] == "0 files"
    assert any("manifests cannot be read" in text for text in widget.file_map["legend"]["size"])
    widget.cancelled += 1
    widget.select(snapshot=table.snapshots[0])
    widget.cancelled += 1
    widget.select(snapshot=table.snapshots[1])
    assert widget.settle(60)
    assert widget.file_map["of"] == str(table.snapshots[1].snapshot_id)
    widget.close()
    empty = FileMap(ix.empty({"a": "long"}))
    assert empty.settle(10) and empty.file_map == {} and empty.error == {}
    empty.close()
