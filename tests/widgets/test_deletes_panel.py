"""Deleted positions: pictures and measures against sets, nodes of every kind against the metadata tables."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

import iceexplore as ix
from iceexplore.deletes import MAX_POSITION, bitmap_of, decode_deletion_vector, encode_deletion_vector
from iceexplore.widgets import DeletionVectors, Explorer
from iceexplore.widgets.deletes._panel import all_deletes
from iceexplore.widgets.deletes._positions import (
    MAX_CELLS,
    MAX_LISTED,
    containers,
    encodings,
    groups,
    listed,
    picture,
    run_count,
    vector_texts,
)
from iceexplore.widgets.grid._panel import GridPanel


def nodes_of(table: ix.Table, kind: str) -> list[Any]:
    """Every live node of a kind below the present snapshot."""
    tree = table.tree()
    assert table.snapshot is not None
    found, left = [], [f"root:{table.snapshot.snapshot_id}"]
    while left:
        for child in tree.children(left.pop(), limit=1000):
            left += [child.id] if child.kind.endswith("manifest") else []
            found += [child] if child.kind == kind and "removed" not in child.marks else []
    return found


positions = st.lists(st.integers(0, 70_000) | st.integers(0, 40), unique=True, max_size=60)


@given(positions, st.integers(0, 100_000))
def test_pictures_and_runs_of_any_positions(values: list[int], more: int) -> None:
    bitmap = bitmap_of(np.array(sorted(values), dtype=np.int64))
    size = max(values, default=-1) + 1 + more
    found = picture(bitmap, size)
    assert len(found["cells"]) <= MAX_CELLS
    assert len(found["cells"]) * found["width"] >= size
    assert sum(found["cells"]) == len(values)
    for i, n in enumerate(found["cells"]):
        if n:
            assert n == sum(i * found["width"] <= v < (i + 1) * found["width"] for v in values)
    there = set(values)
    assert run_count(bitmap) == sum(v - 1 not in there for v in there)
    runs = listed(bitmap, "runs", [])
    assert len(runs) == run_count(bitmap)
    spans = zip(runs["first"].tolist(), runs["last"].tolist(), strict=True)
    assert [v for first, last in spans for v in range(first, last + 1)] == sorted(values)
    assert listed(bitmap, "positions", [])["position"].tolist() == sorted(values)
    starts = [0, size // 3, size // 2]
    assert [sum(part) for part in zip(*groups(bitmap, starts, size), strict=True)] == [size, len(values)]


def test_bytes_are_those_of_the_encodings() -> None:
    bitmap = bitmap_of(np.arange(0, 60_000, 3))
    found = {e["name"]: e["bytes"] for e in encodings(bitmap, 60_000, "s3://a/b.parquet")}
    assert found["Deletion vector"] == len(encode_deletion_vector(bitmap))
    assert found["Bitset"] == 7_500
    assert 0 < found["Mumbling"] < 20_000
    assert found["Position delete file"] > 1_000
    far = {e["name"]: e["bytes"] for e in encodings(BitMap64([3_000_000]), 3_000_001, "x")}
    assert far["Mumbling"] is None
    assert containers(bitmap) == {"array": 0, "bitmap": 1, "run": 0}
    assert containers(bitmap_of(np.arange(1000))) == {"array": 0, "bitmap": 0, "run": 1}


def test_a_hundred_million_positions_are_sent_in_little() -> None:
    kinds = 3_800  # bitmap containers, as RoaringFormatSpec has them, of random words
    words = np.random.default_rng(1).integers(0, 2**64, (kinds, 1024), dtype=np.uint64)
    bits = np.unpackbits(words.view(np.uint8).reshape(kinds, -1), axis=1).sum(axis=1, dtype=np.int64)
    header = np.stack([np.arange(kinds), bits - 1], axis=1).astype("<u2")
    offsets = 8 + 8 * kinds + 8192 * np.arange(kinds)
    data = struct.pack("<QIII", 1, 0, 12346, kinds) + header.tobytes() + offsets.astype("<u4").tobytes()
    bitmap = BitMap64.deserialize(data + words.tobytes())
    assert len(bitmap) > 100_000_000
    found = {**picture(bitmap, 250_000_000), "runs": run_count(bitmap), "kinds": containers(bitmap)}
    found["encodings"] = encodings(bitmap, 250_000_000, "s3://a/b.parquet")
    assert len(json.dumps(found)) < 100_000
    assert sum(found["cells"]) == len(bitmap)


def test_a_run_is_listed_to_its_end_however_long() -> None:
    bitmap = BitMap64()
    bitmap.add_range(0, 2_000_000_000)
    bitmap.remove(5)
    assert listed(bitmap, "runs", []).to_numpy().tolist() == [[0, 4, 5], [6, 1_999_999_999, 1_999_999_994]]
    assert len(listed(bitmap, "positions", [])) == MAX_LISTED
    every_other = bitmap_of(np.arange(0, 2_400_000, 2))
    runs = listed(every_other, "runs", [])
    assert (len(runs), runs["first"].tolist()) == (MAX_LISTED, list(range(0, 2 * MAX_LISTED, 2)))


def test_the_highest_positions() -> None:
    bitmap = BitMap64([0, MAX_POSITION])
    found = {**picture(bitmap, MAX_POSITION + 1), "encodings": encodings(bitmap, MAX_POSITION + 1, "x")}
    numbers: list[int] = []
    json.loads(json.dumps(found), parse_int=lambda digits: numbers.append(int(digits)))
    assert max(numbers) < 2**53
    assert sum(found["cells"]) == 2


def test_a_deletion_vector(show: Any) -> None:
    table = ix.sample("trips")
    entries = table.inspect.position_deletes()
    for node in nodes_of(table, "deletion-vector"):
        widget = show(DeletionVectors, table, selection={"node": node.id})
        assert widget.error == {}
        vector = widget.vector
        expected = sorted(entries.loc[entries["file_path"] == vector["of"], "pos"].tolist())
        assert vector["cardinality"] == node.fields["record_count"] == len(expected)
        assert widget.selected["position"].tolist() == expected
        assert (int(vector["first"]), int(vector["last"])) == (expected[0], expected[-1])
        assert vector["encodings"][0]["bytes"] == vector["encodings"][1]["bytes"], "Java writes what we write"
        files = table.inspect.files()
        rows = files.loc[files["file_path"] == vector["of"], "record_count"].tolist()
        assert [vector["rows"]] == rows
        assert [i for i, n in enumerate(vector["picture"]["cells"]) if n] == expected
        json.dumps(widget.get_state()["vector"], allow_nan=False)


def test_a_data_file_shows_what_is_deleted_in_it(show: Any) -> None:
    table = ix.sample("trips")
    entries = table.inspect.position_deletes()
    hit = 0
    for node in nodes_of(table, "data-file"):
        widget = show(DeletionVectors, table, selection={"node": node.id})
        expected = sorted(set(entries.loc[entries["file_path"] == node.location, "pos"].tolist()))
        assert widget.vector["cardinality"] == len(expected)
        assert widget.selected["position"].tolist() == expected
        hit += bool(expected)
    assert hit >= 2


def test_row_groups_come_from_the_footer_when_asked(show: Any) -> None:
    table = ix.sample("trips")
    node = nodes_of(table, "data-file")[0]
    widget = show(DeletionVectors, table, selection={"node": node.id})
    assert widget.vector["borders_from"] != "footer"
    assert not table.reads.of_kind("data-footer")
    widget.vector_of = {**widget.vector_of, "footer": True}
    assert widget.settle(60)
    assert widget.vector["borders_from"] == "footer"
    assert sum(rows for rows, _ in widget.vector["groups"]) == widget.vector["rows"]
    assert widget.vector["borders"][0] == 0


def test_many_row_groups_and_a_manifest_that_counts_others(show: Any, trips: Path, tmp_path: Path) -> None:
    table = ix.open(shutil.copytree(trips, tmp_path / "trips"))
    node = max(nodes_of(table, "data-file"), key=lambda n: n.fields["record_count"])
    rows = node.fields["record_count"]
    values = pa.table({"x": range(rows + 1_200)})
    pq.write_table(values, table.state.storage.resolve(node.location), row_group_size=2)
    widget = show(DeletionVectors, table, selection={"node": node.id})
    widget.vector_of = {**widget.vector_of, "footer": True}
    assert widget.settle(60)
    count = -(-(rows + 1_200) // 2)
    assert [g[0] for g in widget.vector["groups"]] == [2] * 500
    assert f"Of {count:,} row groups the first 500 are listed." in widget.vector["notes"]
    expected = f"The file has {rows + 1_200:,} rows by its footer, {rows:,} by its manifest."
    assert expected in widget.vector["notes"]


def test_the_description_of_deleted_positions(show: Any, v4: Any) -> None:
    table = ix.sample("trips")
    node = max(nodes_of(table, "deletion-vector"), key=lambda n: n.fields["record_count"])
    widget = show(DeletionVectors, table, selection={"node": node.id})
    vector = widget.vector
    n, runs = vector["cardinality"], vector["runs"]
    span = f"positions {vector['first']} to {vector['last']}"
    assert vector["headline"] == f"{n} deleted of 78 rows (21 %) · {runs} ranges · {span}"
    assert vector["label"] == f"{n} of 78 positions deleted, listed in the table below"
    assert vector["legend"] == "Each square is one position; 78 positions in total."
    kind, heads, rows, look = vector["facts"][0]
    assert (kind, heads, look["caption"], len(look["columns"])) == ("table", [], "Bytes by encoding", 4)
    assert [row[0][0] for row in rows] == [e["name"] for e in vector["encodings"]]
    most = max(e["bytes"] for e in vector["encodings"])
    bars = [["bars", [["bytes", e["bytes"] / most]]] for e in vector["encodings"]]
    assert [row[2] for row in rows] == [[bar] for bar in bars]
    assert vector["facts"][1:] == [["evidence", ["Roaring containers: 1 array, 0 bitmap, 0 run."]]]
    assert vector["unread"] == "Read row groups from the data file's footer"
    widget.vector_of = {**widget.vector_of, "footer": True}
    assert widget.settle(60)
    assert widget.vector["unread"] == ""
    kind, words, ((_, heads, rows, _),) = widget.vector["facts"][2]
    assert (kind, words, heads[3], rows) == ("fold", ["1 row group"], ["Share"], [[["0"], ["78"], [f"{n}"], ["21 %"]]])
    whole = next(n for n in nodes_of(table, "data-file") if not show_of(show, table, n)["cardinality"])
    assert show_of(show, table, whole)["headline"] == "Nothing is deleted by position"
    v4.delete_files(v4.inspect.files()["file_path"].tolist()[3:9])
    (entries,) = nodes_of(v4.table, "manifest-dv")
    vector = show_of(show, v4.table, entries)
    assert vector["headline"] == "6 deleted of 40 entries (15 %) · 1 range · positions 3 to 8"
    assert vector["unread"] == "", "a manifest has no row groups"
    assert show(DeletionVectors, ix.empty({"a": "long"})).vector["notes"] == [
        "The table has no snapshot, so nothing is deleted."
    ]


def show_of(show: Any, table: ix.Table, node: Any) -> dict[str, Any]:
    """What is sent of a node."""
    sent: dict[str, Any] = show(DeletionVectors, table, selection={"node": node.id}).vector
    return sent


def test_shares_and_squares_of_many_positions() -> None:
    bitmap = bitmap_of(np.array([5]))
    vector = {
        "kind": "data-file", "cardinality": 1, "rows": 10_000, "runs": 1, "first": "5", "last": "5",
        "picture": picture(bitmap, 10_000), "borders": [0, 5_000], "borders_from": "split offsets", "groups": [],
        "containers": containers(bitmap), "encodings": [{"name": "Mumbling", "bytes": None, "note": "far"}],
    }  # fmt: skip
    expected = vector_texts(vector)
    assert expected["headline"] == "1 deleted of 10,000 rows (< 0.1 %) · 1 range · positions 5 to 5"
    squares = "Each square is 3 positions; the darker, the more are deleted"
    assert expected["legend"] == f"{squares}; 10,000 positions in total; lines mark the start of row groups."
    assert expected["facts"][0][2] == [[["Mumbling"], ["–"], [["bars", [["bytes", 0]]]], ["far"]]]
    assert expected["facts"][1][1][0].endswith("The positions of row groups are estimated from the split offsets.")
    far = {**vector, "rows": None, "picture": picture(bitmap, MAX_POSITION + 1), "last": str(MAX_POSITION)}
    assert f"positions 5 to {MAX_POSITION:,}" in vector_texts(far)["headline"]


def test_the_list_of_all_leads_to_nodes(show: Any) -> None:
    table = ix.sample("trips")
    assert table.snapshot is not None
    widget = show(DeletionVectors, table)
    assert "Select" in widget.vector["notes"][0]
    of = str(table.snapshot.snapshot_id)
    widget.query = {"deletes": {"n": 1, "of": of, "table": "all"}}
    assert widget.settle(60)
    page = widget.pages["deletes"]
    kinds = ("deletion-vector", "position-delete", "equality-delete")
    expected = sorted(n.id for kind in kinds for n in nodes_of(table, kind))
    assert sorted(page["nodes"]) == expected
    at = page["shown"].index(next(i for i, column in enumerate(page["columns"]) if column["name"] == "deletes"))
    counts = [int(row[at]) for row in page["rows"]]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1], "those that delete the most come first"
    widget.select(page["nodes"][0])
    assert widget.settle(60)
    assert widget.error == {}


def test_tables_of_positions_and_runs(show: Any) -> None:
    table = ix.sample("trips")
    node = max(nodes_of(table, "deletion-vector"), key=lambda n: n.fields["record_count"])
    widget = show(DeletionVectors, table, selection={"node": node.id})
    for n, name in enumerate(("positions", "runs"), 1):
        widget.query = {"positions": {"n": n, "of": f"{node.id}\n", "table": name}}
        assert widget.settle(60)
        assert widget.error == {}
        total = widget.vector["cardinality" if name == "positions" else "runs"]
        assert widget.pages["positions"]["total"] == total


@pytest.fixture
def v4() -> Any:
    s = ix.empty({"a": "long"}, format_version=4, flush_data_files=0)
    files = [f"data/{i}.parquet" for i in range(40)]
    s.append([{"location": f, "record_count": 100, "file_size_in_bytes": 1000} for f in files])
    return s


def test_v4_manifest_vectors_show_ordinals(show: Any, v4: Any) -> None:
    paths = v4.inspect.files()["file_path"].tolist()
    v4.delete_files(paths[3:9])
    table = v4.table
    found = nodes_of(table, "manifest-dv")
    assert found, "the leaf is kept, a vector removes its entries"
    widget = show(DeletionVectors, table, selection={"node": found[0].id})
    assert widget.error == {}
    assert widget.vector["cardinality"] == 6
    assert widget.vector["rows"] >= 40
    assert sum(widget.vector["picture"]["cells"]) == 6


def test_v4_deletes_of_rows(show: Any, v4: Any) -> None:
    path = v4.inspect.files()["file_path"].tolist()[0]
    v4.row_delta(deletes={path: [0, 5, 6, 7]})
    table = v4.table
    for kind in ("deletion-vector", "data-file"):
        node = next(n for n in nodes_of(table, kind) if path in (n.location, n.fields.get("referenced_file")))
        widget = show(DeletionVectors, table, selection={"node": node.id})
        assert widget.error == {}
        assert widget.selected["position"].tolist() == [0, 5, 6, 7]
        assert (widget.vector["rows"], widget.vector["runs"]) == (100, 2)


def test_position_delete_files_by_data_file(show: Any) -> None:
    s = ix.empty({"a": "long"}, format_version=2)
    s.append(files=2, rows=50)
    paths = s.inspect.files()["file_path"].tolist()
    s.row_delta(deletes={paths[0]: [1, 2], paths[1]: [7, 8, 9]})
    table = s.table
    seen: dict[str, list[int]] = {}
    for node in nodes_of(table, "position-delete"):
        widget = show(DeletionVectors, table, selection={"node": node.id})
        assert widget.error == {}
        for path in [p for p, _, _ in widget.vector["paths"]] or [widget.vector["of"]]:
            widget.vector_of = {"node": node.id, "path": path, "footer": False}
            assert widget.settle(60)
            page = widget._panel(GridPanel).frame("positions", f"{node.id}\n{path}", "positions")
            seen[path] = page["position"].tolist()
    assert seen == {paths[0]: [1, 2], paths[1]: [7, 8, 9]}


def test_of_many_data_files_only_the_first_are_listed(show: Any, tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=2, properties={"write.delete.mode": "merge-on-read"})
    lab.append({"id": list(range(10))})
    lab.delete("id = 3")
    (place,) = (tmp_path / "t" / "data").glob("*deletes.parquet")
    schema = pq.read_schema(place)
    files = [f"/data/{i:03}-\u202egpj.parquet" for i in range(250)]
    pq.write_table(pa.table({"file_path": files, "pos": [0] * 250}, schema=schema), place)
    table = ix.open(tmp_path / "t")
    (node,) = nodes_of(table, "position-delete")
    vector = show(DeletionVectors, table, selection={"node": node.id}).vector
    assert len(vector["paths"]) == 200
    assert vector["paths"][7] == ["/data/007-\u202egpj.parquet", 1, "/data/007-⟨U+202E⟩gpj.parquet"]
    assert any(note.startswith("The 200 of 250 data files") for note in vector["notes"])


def test_what_is_cancelled_is_reported_and_can_be_requested_again(show: Any) -> None:
    table = ix.sample("trips")
    node, other = nodes_of(table, "deletion-vector")[:2]
    widget = show(DeletionVectors, table, selection={"node": node.id})
    asked = {"node": node.id, "path": "", "footer": False}
    widget.vector_of = {**asked, "footer": True}
    widget.cancelled += 1
    assert widget.settle(60)
    assert (widget.vector_of, widget.vector["footer"]) == (asked, False), "what is shown"
    widget.select(other)
    widget.cancelled += 1
    assert widget.settle(60)
    assert widget.vector_of == {**asked, "node": other.id, "missed": "Cancelled."}
    assert widget.vector["node"] == node.id
    widget.vector_of = {**asked, "node": other.id}
    assert widget.settle(60)
    assert widget.vector["node"] == other.id


def test_the_explorer_reads_deletes_only_when_asked(show: Any) -> None:
    table = ix.sample("trips")
    node = nodes_of(table, "deletion-vector")[0]
    before = len(table.reads)
    widget = show(Explorer, table)
    widget.select(node)
    assert widget.settle(60)
    assert widget.vector == {}
    assert not [r for r in list(table.reads)[before:] if r.kind == "puffin"]
    widget.vector_of = {"node": node.id, "path": "", "footer": False}
    assert widget.settle(60)
    assert widget.vector["cardinality"] == node.fields["record_count"]


@pytest.mark.parametrize("asked", [{"node": 3}, {"node": "file:1:2:3"}, {"node": "x", "path": None}, {"node": "<b>"}])
def test_nonsense_is_reported(show: Any, asked: dict[str, Any]) -> None:
    widget = show(DeletionVectors, ix.sample("trips"))
    widget.vector_of = asked
    assert widget.settle(60)
    assert widget.error["text"]
    assert "bug in iceexplore" not in widget.error["advice"]


def test_a_damaged_vector_is_reported(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ix.IceexploreError):
        decode_deletion_vector(b"\x00" * 30)
    table = ix.sample("trips")
    node = nodes_of(table, "deletion-vector")[0]
    monkeypatch.setattr("iceexplore.reading.read_vector", lambda *_: decode_deletion_vector(b"\x00" * 30, "x"))
    widget = show(DeletionVectors, table, selection={"node": node.id})
    assert "x" in widget.error["text"]
    widget.cancelled += 1
    assert widget.settle(60)
    assert not widget.error, "which is of what was asked last"
    assert widget.vector_of["missed"] == "It could not be read."
    assert widget.vector == {}


def test_a_vector_that_contradicts_the_manifest_is_reported(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ix.sample("trips")
    node = nodes_of(table, "deletion-vector")[0]
    expected = node.fields["record_count"]
    monkeypatch.setattr("iceexplore.reading.read_vector", lambda *_: BitMap64(range(expected + 2)))
    widget = show(DeletionVectors, table, selection={"node": node.id})
    assert (
        f"The vector deletes {expected + 2} positions, but the manifest records {expected}." in widget.vector["notes"]
    )


def test_deletes_are_named_by_their_files(show: Any) -> None:
    table = ix.sample("trips")
    widget = show(DeletionVectors, table)
    nodes = {node.id: node for kind in ("deletion-vector", "position-delete") for node in nodes_of(table, kind)}
    widget.query = {"deletes": {"n": 1, "of": widget.selection["snapshot"], "table": "all", "sort": [2, "desc"]}}
    assert widget.settle(60)
    page = widget.pages["deletes"]
    names = [column["name"] for column in page["columns"]]
    assert names[0] == "file" and "node" not in names
    assert len(page["rows"]) == len(nodes)
    for row, node in zip(page["rows"], page["nodes"], strict=True):
        assert str(nodes[node].location).endswith(f"/{row[0]}")
        assert row[names.index("deletes")] == str(nodes[node].fields["record_count"])
    node = page["nodes"][3]
    widget.query = {"deletes": {**widget.query["deletes"], "n": 2, "node": node}}
    assert widget.settle(60) and node in widget.pages["deletes"]["nodes"]


def test_a_manifest_that_cannot_be_read_is_not_nothing(show: Callable[..., Any], trips: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trips, tmp_path / "trips"))
    whole = show(DeletionVectors, ix.open(folder))
    snapshot = whole.selection["snapshot"]
    listed = all_deletes(whole._host.state, int(snapshot))
    names = {row["node"].split(":")[2] for row in listed.to_pylist()}
    gone = [p for p in folder.rglob("*.avro") if not p.name.startswith("snap-")]
    for path in gone:
        path.unlink()
    widget = show(DeletionVectors, ix.open(folder))
    rows = all_deletes(widget._host.state, int(snapshot)).to_pylist()
    assert {row["kind"] for row in rows} == {"unreadable manifest"}
    assert {row["node"] for row in rows} == {f"manifest:{snapshot}:{n}" for n in names}
    assert {Path(row["delete_file"]).name for row in rows} <= {p.name for p in gone}


def test_without_a_manifest_list_no_rows_are_not_nothing(show: Callable[..., Any], trips: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trips, tmp_path / "trips"))
    manifests = [p for p in folder.rglob("*.avro") if not p.name.startswith("snap-")]
    lists = list(folder.rglob("snap-*.avro"))
    for gone, expected in (
        (manifests, {"manifests": None, "files": "4 of the files listed in the manifest list cannot be read"}),
        (lists, dict.fromkeys(("manifests", "files"), "the manifest list cannot be read")),
    ):
        for path in gone:
            path.unlink()
        explorer = show(Explorer, ix.open(folder))
        of = f"snapshot:{explorer.selection['snapshot']}"
        marked = {i for i, node in explorer.nodes.items() if "problem" in node["marks"]}
        of_commit = [i for i, node in explorer.nodes.items() if i.startswith("manifest:") and "added" in node["marks"]]
        assert {i for i in marked if i.startswith("manifest:")} <= set(of_commit), "others have not been read"
        unfolded = explorer.expanded
        for table, words in expected.items():
            explorer.query = {**explorer.query, "detail": {"n": 1, "of": of, "table": table}}
            assert explorer.settle(60)
            assert explorer.pages["detail"].get("none") == (words and f"No rows: {words}.")
        manifests_shown = [node for i, node in explorer.nodes.items() if i.startswith("manifest:")]
        assert all("problem" in node["marks"] for node in manifests_shown), "what a table met is marked in the tree"
        if manifests_shown:
            explorer.select(next(i for i in explorer.nodes if i.startswith("manifest:")))
            assert explorer.settle(60)
            page = explorer.pages["detail"]
            assert (page["rows"], page["none"]) == ([], "No rows: the manifest cannot be read.")
        assert bool(manifests_shown) == (gone is manifests) and explorer.expanded == unfolded
    widget = show(DeletionVectors, ix.open(folder))
    widget.query = {"deletes": {"n": 1, "of": widget.selection["snapshot"], "table": "all"}}
    assert widget.settle(60)
    page = widget.pages["deletes"]
    assert (page["rows"], page["none"]) == ([], "No rows: the manifest list cannot be read.")
    explorer.save_html(tmp_path / "page.html")
    assert "No rows: the manifest list cannot be read." in (tmp_path / "page.html").read_text()
