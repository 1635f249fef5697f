"""Snapshot ids of the other half of int64: some writers draw them from all of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.errors import problem
from iceexplore.widgets import DeletionVectors, Explorer, ScanLab, Timeline
from iceexplore.widgets.core._ids import id_of, snapshot_of_node
from iceexplore.widgets.tree._side_tree import SideTree


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two snapshots, a delete and a tag, whose metadata file has every snapshot id negated."""
    s = ix.empty({"id": "long"}, format_version=2)
    s.append(pd.DataFrame({"id": [1, 2, 3]}))
    s.row_delta(deletes={s.table.inspect.files()["file_path"].iloc[0]: [1]})
    s.tag("old", s.table.snapshots[0].snapshot_id)
    target: Path = tmp_path_factory.mktemp("negative") / "t"
    s.save(target)
    newest = max((target / "metadata").glob("*.metadata.json"))
    text = newest.read_text(encoding="utf-8")
    text = re.sub(r'("(?:current-|parent-)?snapshot-id"\s*:\s*)(\d+)', r"\1-\2", text)
    newest.write_text(text, encoding="utf-8")
    return target


@pytest.fixture
def table(folder: Path) -> ix.Table:
    return ix.open(folder)


def ids(table: ix.Table) -> list[str]:
    out = [str(s.snapshot_id) for s in table.snapshots]
    assert len(out) == 2
    assert all(i.startswith("-") for i in out)
    return out


@pytest.mark.parametrize("text", ["", "-", "x", "+5", "1_0", " 1", "07", "-0", "--1", "1.0", "٣", "9" * 21])
def test_what_is_no_id(text: str) -> None:
    assert id_of(text) is None
    assert snapshot_of_node(f"file:{text}:1") is None


def test_an_id_has_one_spelling() -> None:
    assert [id_of("0"), id_of("-17"), id_of(str(-(2**63)))] == [0, -17, -(2**63)]
    assert [snapshot_of_node(i) for i in ("root:-17", "file:-17:1:2", "table", "ref:-17")] == [-17, -17, None, None]


def test_the_explorer(table: ix.Table) -> None:
    first, last = ids(table)
    widget = Explorer(table)
    assert widget.settle(60)
    assert widget.error == {}
    assert f"root:{last}" in widget.nodes
    manifests = [i for i in widget.nodes if i.startswith(f"manifest:{last}:")]
    widget.expanded = [*widget.expanded, *manifests]
    assert widget.settle(60)
    files = [i for i in widget.nodes if i.startswith("file:")]
    assert files
    for node in [i for i in widget.nodes if not i.startswith("more:")]:
        widget.select(node)
        assert widget.settle(60)
        assert (widget.error, widget.detail["id"]) == ({}, node)
    widget.select(f"file:{first}:0:0")  # of another snapshot: goes there
    assert widget.settle(60)
    assert (widget.error, widget.selection["snapshot"]) == ({}, first)
    widget.select(snapshot=last, against=first)
    assert widget.settle(60)
    assert widget.error == {}
    assert widget.compared["against"] == first
    assert {"manifest"} <= {i.partition(":")[0] for i, n in widget.nodes.items() if "added" in n["marks"]}
    widget.search = {"n": 1, "text": first}
    assert widget.settle(60)
    assert f"snapshot:{first}" in widget.found["hits"]
    widget.close()


def test_timeline_and_problems(table: ix.Table) -> None:
    first, last = ids(table)
    widget = Timeline(table, selection={"snapshot": last, "against": first})
    assert widget.settle(60)
    assert [s["id"] for s in widget.snapshots] == [first, last]
    assert (widget.error, widget.comparison["against"]) == ({}, first)
    widget.close()
    where = f"{table.metadata.location}#snapshot {first}"
    table.state.problems.add(problem("file-corrupt", where, "made up"))
    problems = Explorer(table)
    assert problems.settle(60)
    (item,) = [i for g in problems.problems["groups"] for i in g["items"] if i["text"] == "made up"]
    assert item["actions"][0]["selection"] == {"node": f"snapshot:{first}", "snapshot": first}
    problems.close()


def test_deletes(table: ix.Table) -> None:
    _, last = ids(table)
    delete = next(n for n in table.tree(depth="files").nodes if n.kind == "position-delete")
    assert delete.id.startswith(f"file:{last}:")
    widget = DeletionVectors(table, selection={"node": delete.id})
    assert widget.settle(60)
    assert (widget.error, widget.vector["cardinality"]) == ({}, 1)
    widget.query = {"deletes": {"n": 1, "of": last, "table": "deletes", "page": 0}}
    assert widget.settle(60)
    assert (widget.error, widget.pages["deletes"]["nodes"]) == ({}, [delete.id])
    widget.close()


def test_the_scan_lab(table: ix.Table) -> None:
    _, last = ids(table)
    lab = ScanLab(table, scan_filter="id < 3")
    assert lab.settle(60)
    assert (lab.error, lab.scan_plan["error"], lab.scan_plan["snapshot"]) == ({}, "", last)
    lab.select(next(i for i in lab.scan_nodes if i.startswith("file:")))
    assert lab.settle(60)
    assert lab.scan_why["read"] is True
    query = {"n": 1, "of": lab.scan_plan["of"], "table": "tasks", "node": lab.selection["node"]}
    lab.query = {"scan": query}
    assert lab.settle(60)
    assert (lab.error, lab.pages["scan"]["nodes"]) == ({}, [lab.selection["node"]])
    lab.close()


def test_both_sides_of_a_step(table: ix.Table) -> None:
    first, last = ids(table)
    before = table.at(snapshot=int(first)).state
    from dataclasses import replace

    alone = replace(before, metadata=replace(before.metadata, snapshots=before.metadata.snapshots[:1]))
    nodes = SideTree(table.state, alone, None, "after").first()["nodes"]
    assert [nodes[f"{kind}:{last}"]["marks"] for kind in ("snapshot", "root")] == [["added"], ["added"]]
    assert nodes[f"snapshot:{first}"]["marks"] == []


def test_a_saved_page(table: ix.Table, tmp_path: Path) -> None:
    widget = Explorer(table)
    text = widget.save_html(tmp_path / "a.html").path.read_text()
    found = re.search(r'<script type="application/json" id="ice-data">(.*?)</script>', text, re.DOTALL)
    assert found
    saved: dict[str, Any] = json.loads(found[1])
    assert set(saved["trees"]) == set(ids(table))
    assert set(saved["trees"][ids(table)[0]]["nodes"]) <= set(saved["details"]) | {"more:log"}
    widget.close()
