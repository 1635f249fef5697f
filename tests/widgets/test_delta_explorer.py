"""The explorer of Delta tables: tree, files, changes, timeline, rows and health; a healthy one has no findings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import UnsupportedError
from iceexplore.widgets import Explorer
from tests.delta.delta_table import DeltaTable

JAN, FEB = "2026-01-01", "2026-02-01"


def make(folder: Path) -> Path:
    """Versions 0 to 5: appends, a tree, a file removed from a leaf, a deletion vector, and a removal from the root."""
    d = DeltaTable(folder)
    d.create()
    a = d.append("a%20b/1.parquet", range(10), JAN)
    d.commit(a)
    b, c = d.append("2.parquet", range(10, 20), FEB), d.append("3.parquet", range(20, 25), None)
    d.commit(b, c)
    e = d.append("4.parquet", range(25, 30), JAN)
    leaf = d.leaf("m0", [d.entry(a), d.entry(b), d.entry(c)])
    d.commit(e)
    d.commit(d.checkpoint("v3", [d.listed(leaf), d.entry(e)], 3), operation="OPTIMIZE CHECKPOINT")
    d.commit(d.remove(a, (leaf, 0)), d.remove(b, (leaf, 1)), d.with_vector(b, [0, 1, 2]), operation="DELETE")
    return d.folder


@pytest.fixture(
    params=["made", pytest.param("small", marks=pytest.mark.corpus), pytest.param("parted", marks=pytest.mark.corpus)]
)
def table(request: Any, tmp_path: Path) -> ix.Table:
    if request.param == "made":
        return ix.open(make(tmp_path / "trips"))
    folder: Path = request.getfixturevalue("corpus")
    return ix.open(folder / "delta-amt" / request.param)


@pytest.fixture
def widget(table: ix.Table) -> Iterator[Explorer]:
    made = Explorer(table)
    yield settled(made)
    made.close()


def settled(widget: Explorer) -> Explorer:
    assert widget.settle(120)
    assert widget.error == {}
    return widget


def text_of(blocks: Any) -> str:
    return json.dumps(blocks, ensure_ascii=False)


def test_the_timeline_has_each_version(table: ix.Table, widget: Explorer) -> None:
    assert [int(s["id"]) for s in widget.snapshots] == [s.sequence_number for s in table.snapshots]
    assert {s["refs"][0] for s in widget.snapshots if s["refs"]} == {"main"}


def test_the_tree_shows_each_version_as_a_snapshot(table: ix.Table, widget: Explorer) -> None:
    tree = table.tree(snapshots=[s.snapshot_id for s in table.snapshots])
    kinds = [node.kind for node in tree.nodes]
    assert kinds.count("snapshot") == len(table.snapshots)
    assert kinds.count("root-manifest") >= 1
    for snapshot in table.snapshots:
        widget.select(f"snapshot:{snapshot.snapshot_id}", snapshot=snapshot)
        settled(widget)
        assert str(snapshot.snapshot_id) in widget.selected.label
    in_log = [n for n in tree.nodes if any("in the Delta log, not in the tree yet" in line for line in n.lines)]
    assert in_log, "the newest commits are not in a tree yet"


def test_files_are_those_of_each_version(table: ix.Table, widget: Explorer) -> None:
    widget.tab = "files"
    for snapshot in table.snapshots:
        widget.select(snapshot=snapshot)
        settled(widget)
        found = widget.file_map
        live = [i for i, change in enumerate(found.get("changes", "")) if change != "2"]
        at = table.at(snapshot=snapshot.snapshot_id)
        assert len(live) == at.inspect["files"].arrow().num_rows


def test_changes_are_those_between_versions(table: ix.Table, widget: Explorer) -> None:
    for snapshot in table.snapshots:
        widget.select(f"snapshot:{snapshot.snapshot_id}", snapshot=snapshot)
        page = settled(widget).pages["detail"]
        if page["table"] != "changes":
            widget.query = {**widget.query, "detail": {"table": "changes", "n": page["n"] + 1}}
            page = settled(widget).pages["detail"]
        found = table.changes(snapshot)
        assert page["total"] == found.files_arrow.num_rows


def test_rows_are_those_of_the_table(table: ix.Table, widget: Explorer) -> None:
    widget.tab = "rows"
    settled(widget)
    widget.rows_filter = "id < 1000"
    settled(widget)
    rows = len(table.to_arrow("id < 1000"))
    assert rows == table.count("id < 1000") > 0
    assert f"{rows} row" in text_of(widget.rows_answer) or f"{rows} live" in text_of(widget.rows_answer)


def test_there_is_nothing_to_find(table: ix.Table, widget: Explorer) -> None:
    """Delta writes neither Iceberg's key-value metadata nor column metrics into its trees: that is no fault."""
    assert widget.problems.get("counts", {}) == {} or not any(widget.problems["counts"].values())
    assert ["problems", "Health"] in widget.parts
    widget.doctor_asked = {"n": 1, "do": "check", "level": "files", "snapshots": "all"}
    settled(widget)
    assert widget.doctor_report["findings"] == []
    assert ["problems", "Health"] in widget.parts


def test_the_health_tab_names_what_maintains_a_delta_table(table: ix.Table, widget: Explorer) -> None:
    widget.tab = "problems"
    widget.health_asked = {"n": 1, "do": "look"}
    blocks = settled(widget).health["blocks"]
    assert blocks
    assert widget.table_health is not None
    assert "OPTIMIZE" in text_of(widget.table_health.gain("sizes")) or "OPTIMIZE" in text_of(blocks)


def test_the_card_and_saved_page(table: ix.Table, widget: Explorer, tmp_path: Path) -> None:
    html = widget._repr_mimebundle_()[0]["text/html"]
    assert "version" in html or "snapshot" in html
    page = widget.save_html(tmp_path / "page.html")
    assert Path(tmp_path / "page.html").stat().st_size > 1000, page


def test_a_simulation_is_kept_as_a_table_of_its_own(table: ix.Table, tmp_path: Path) -> None:
    """Saving it is refused, and what the error says to do instead works."""
    s = table.simulate()
    s.delete_files(s.inspect.data_files.arrow()["file_path"][0].as_py())
    with pytest.raises(UnsupportedError, match=r"ix\.create\('folder', s\.schema\)\.append\(s\.to_arrow\(\)\)"):
        s.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    kept = ix.create(tmp_path / "kept", s.schema)
    kept.append(s.to_arrow())
    assert sorted(map(str, kept.to_arrow().to_pylist())) == sorted(map(str, s.to_arrow().to_pylist()))
