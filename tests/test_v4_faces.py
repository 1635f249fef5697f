"""What a person meets of a V4 table: words, marks, reads, travel across the upgrade, bundles, loose files, explorer."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.widgets import Explorer
from tests.helpers.tables.root_table import BY_KIND_AND_BUCKET, RootLab, data_file, dv, equality, path, short
from tests.helpers.v4_oracle import entries_of, live_of, root_of


def made(folder: Path, **options: Any) -> RootLab:
    """Six files in a leaf, two of them removed from it one after the other, two files and a DV in the root."""
    lab = RootLab(folder, spec=BY_KIND_AND_BUCKET, options={"flush_data_files": 4, "flush_delete_files": 4, **options})
    lab.commit("append", [data_file(f"D{i}", kind="ab"[i % 2], low=10 * i) for i in range(6)])
    lab.commit("delete", remove_data=path("D1"))
    lab.commit("append", [data_file("D6", low=100), data_file("D7", kind=None)])
    lab.commit("overwrite", [dv("V0", "D0"), equality("Q0")])
    lab.commit("delete", remove_data=path("D3", "D7"))
    return lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> RootLab:
    return made(tmp_path_factory.mktemp("v4") / "t")


@pytest.fixture(scope="module")
def t(lab: RootLab) -> ix.Table:
    return ix.Table(lab.state)


def _saved(lab: RootLab, folder: Path, **how: Any) -> Path:
    """A table that opens by itself: its bundle."""
    ix.Table(lab.state).bundle(folder / "t.zip", **how)
    return folder / "t.zip"


# Words and marks ----------------------------------------------------------------------------------------------------


def test_the_card_shows_what_is_in_the_root(t: ix.Table) -> None:
    facts = dict(t_card(t))
    assert facts["Data files"] == "5"
    assert facts["Root manifest"].startswith("1 manifest, 1 data file, 2 deletes, 1 manifest DV, 2 removals")
    assert facts["Root manifest"].endswith("2 entries of 1 leaf removed by manifest DVs")
    assert "Root manifest" in repr(t)
    assert "Root manifest" not in dict(t_card(ix.sample("trips")))


def t_card(t: ix.Table) -> tuple[tuple[str, str], ...]:
    from iceexplore.graph import table_card

    return table_card(t.state).facts


def test_the_tree_in_words(t: ix.Table) -> None:
    tree = t.tree(depth="files")
    kinds = [n.kind for n in tree.nodes if n.level == 4]
    assert sorted(kinds) == sorted(
        ["data-manifest", "manifest-dv", "manifest-dv", "deletion-vector", "equality-delete", "data-file", "data-file"]
    )
    by_label = {n.label.partition(".")[0]: n for n in tree.nodes}
    assert by_label["D6"].marks == {"carried"}
    assert by_label["D7"].marks == {"removed"}
    assert by_label["D1"].marks == {"removed", "carried"}
    assert by_label["D3"].marks == {"removed"}
    assert by_label["D0"].marks == {"carried"}
    assert by_label["D6"].lines[0].startswith("kind=a, id_bucket=")
    vectors = {"".join(sorted(n.marks)): n for n in tree.nodes if n.kind == "manifest-dv"}
    assert set(vectors) == {"added", "removed"}
    assert vectors["added"].label == "Inline manifest DV"
    assert vectors["added"].lines[0].startswith("2 entries removed · ")
    assert vectors["added"].lines[0].endswith(" B inline")
    assert vectors["removed"].lines[0].startswith("1 entry removed")
    leaf = next(n for n in tree.nodes if n.kind == "data-manifest")
    assert "2 of 6 entries removed by a manifest DV" in leaf.lines
    assert any(line.startswith("kind a – b") for line in leaf.lines)
    edges = {
        (tree.node(e.source).label.partition(".")[0], tree.node(e.target).label.partition(".")[0]) for e in tree.edges
    }
    assert ("V0", "D0") in edges
    assert ("Inline manifest DV", leaf.label.partition(".")[0]) in edges


def test_all_snapshots_at_once_fold_what_is_carried_over_and_keep_what_is_removed(t: ix.Table) -> None:
    tree = t.tree(snapshots="all", depth="files", max_nodes=400)
    labels = [
        (n.label.partition(".")[0], min(n.marks - {"carried"}, default="carried")) for n in tree.nodes if n.level > 3
    ]
    assert labels.count(("D7", "added")) == 1
    assert labels.count(("D7", "removed")) == 1
    assert labels.count(("D6", "added")) == 1
    assert len([n for n in tree.nodes if n.kind == "data-manifest"]) == 1
    assert sum(n.id.startswith("carried:") for n in tree.nodes) == 4


def test_a_flush_is_no_change(tmp_path: Path) -> None:
    lab = made(tmp_path / "t")
    before = ix.Table(lab.state)
    lab.commit("append", [data_file(f"E{i}") for i in range(4)])
    after = ix.Table(lab.state)
    assert after.snapshot is not None
    now = after.snapshot.snapshot_id
    d = after.diff(before)
    assert [short(r["location"]) for r in d.files_arrow.to_pylist()] == ["E0", "E1", "E2", "E3"]
    assert not [r for r in root_of(after, now) if r["location"] == path("D6")[0] and r["status"] < 2]
    root = next(n for n in after.tree(snapshots=2).nodes if n.id == f"root:{now}")
    assert "1 file of its parent's root not in this one" in root.lines


# What is read -------------------------------------------------------------------------------------------------------


def _reads(t: ix.Table) -> list[tuple[str, str]]:
    return [(r.kind, r.location) for r in t.reads if r.kind not in ("metadata", "list", "stat")]


def test_card_and_tree_read_one_root(lab: RootLab, tmp_path: Path) -> None:
    t = ix.open(_saved(lab, tmp_path))
    repr(t)
    str(t.tree())
    assert t.snapshot is not None
    assert {location for _, location in _reads(t)} == {t.snapshot.root_location}
    t.inspect.manifest_deletion_vectors.arrow()
    t.inspect.manifests.arrow()
    t.inspect.expressions.arrow()
    assert len({location for _, location in _reads(t)}) == 1
    t.close()


def test_a_leaf_with_the_same_vector_on_both_sides_is_not_read(lab: RootLab, tmp_path: Path) -> None:
    t = ix.open(_saved(lab, tmp_path))
    ids = [s.snapshot_id for s in t.snapshots]
    d = t.diff(ids[2], ids[3])
    assert [short(r["location"]) for r in d.files_arrow.to_pylist()] == ["V0", "Q0"]
    roots = {t.metadata.snapshot(i).root_location for i in ids}  # type: ignore[union-attr]
    assert {location for _, location in _reads(t)} <= roots
    d = t.diff(ids[3], ids[4])
    assert sorted((r["change"], short(r["location"])) for r in d.files_arrow.to_pylist()) == [
        ("removed", "D3"),
        ("removed", "D7"),
    ]
    assert len({location for _, location in _reads(t)} - roots) == 1
    t.close()


def test_a_vector_attached_to_its_manifest_is_shown_like_a_separate_one(tmp_path: Path) -> None:
    t = ix.Table(made(tmp_path / "t", dv_attached=True).state)
    assert t.snapshot is not None
    now = t.snapshot.snapshot_id
    leaf = next(n for n in t.tree(depth="files").nodes if n.kind == "data-manifest")
    assert "2 of 6 entries removed by a manifest DV" in leaf.lines
    vector = t.inspect.manifest_deletion_vectors.arrow().to_pylist()
    assert [(r["manifest"], r["cardinality"], r["storage"]) for r in vector if r["status"] != 2] == [
        (leaf.location, 2, "inline")
    ]
    assert sorted(short(p) for p in t.inspect.data_files.arrow()["file_path"].to_pylist()) == [
        "D0",
        "D2",
        "D4",
        "D5",
        "D6",
    ]
    assert dict(t_card(t))["Data files"] == "5"
    d = t.diff(t.snapshots[3].snapshot_id, now)
    assert sorted(short(r["location"]) for r in d.files_arrow.to_pylist()) == ["D3", "D7"]


# Travel -------------------------------------------------------------------------------------------------------------


def test_travel_across_the_upgrade(tmp_path: Path) -> None:
    old = RootLab(tmp_path / "t", version=3, spec=BY_KIND_AND_BUCKET)
    old.commit("append", [data_file(f"D{i}", kind="ab"[i % 2], low=i) for i in range(4)])
    old.commit("delete", remove_data=path("D0"))
    new = old.upgraded(flush_data_files=3)
    new.commit("append", [data_file("D4")])
    new.commit("delete", remove_data=path("D1"))
    t = ix.Table(new.state)
    ids = [s.snapshot_id for s in t.snapshots]
    assert t.format_version == 4
    for i in ids:
        at = t.at(snapshot=i)
        want = {k[1] for k in live_of(t, i)}
        assert set(at.inspect.files.arrow()["file_path"].to_pylist()) == want
        assert at.tree().nodes
    kinds = [t.at(snapshot=i).tree().node(f"root:{i}").kind for i in ids]
    assert kinds == ["manifest-list", "manifest-list", "root-manifest", "root-manifest"]
    for a in ids:
        for b in ids:
            got = {(r["change"], r["location"]) for r in t.diff(a, b).files_arrow.to_pylist()}
            gone, come = ({k[1] for k in live_of(t, i)} for i in (a, b))
            assert got == {("added", x) for x in come - gone} | {("removed", x) for x in gone - come}, (a, b)
    everything = t.inspect.all_files.arrow()["file_path"].to_pylist()
    assert set(everything) == {k[1] for i in ids for k in live_of(t, i)}
    assert {r["partition"]["kind"] for r in t.inspect.files.arrow().to_pylist()} == {"a", "b"}
    assert not list(t.problems)


# Bundles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inline", [0, 4096])
def test_a_bundle_has_roots_leaves_and_vectors(tmp_path: Path, inline: int) -> None:
    lab = made(tmp_path / "t", inline_dv_bytes=inline)
    t = ix.Table(lab.state)
    bundle = t.bundle(tmp_path / "x.zip")
    assert not bundle.missing
    names = zipfile.ZipFile(tmp_path / "x.zip").namelist()
    assert any(n.endswith(".puffin") for n in names) == (inline == 0)
    assert not any("D0" in n for n in names)
    again = ix.open(tmp_path / "x.zip")
    assert again.inspect.files.arrow().equals(t.inspect.files.arrow())
    assert again.inspect.content_entries.arrow().equals(t.inspect.content_entries.arrow())
    assert not list(again.problems)
    again.close()


def test_a_redacted_bundle_has_roots_and_leaves_too(lab: RootLab, tmp_path: Path) -> None:
    t = ix.Table(lab.state)
    bundle = t.bundle(tmp_path / "x.zip", redact="values")
    assert not bundle.missing
    again = ix.open(tmp_path / "x.zip")
    for s in t.snapshots:
        ours, theirs = root_of(again, s.snapshot_id), root_of(t, s.snapshot_id)
        assert [r["type"] for r in ours] == [r["type"] for r in theirs]
        assert not {r["location"] for r in ours} & {r["location"] for r in theirs}
    assert again.inspect.files.arrow().num_rows == t.inspect.files.arrow().num_rows
    assert not list(again.problems)
    again.close()


# Loose files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifest_format", ["parquet", "avro"])
def test_loose_root_and_leaf(tmp_path: Path, manifest_format: str) -> None:
    lab = made(tmp_path / "t", manifest_format=manifest_format)
    t = ix.Table(lab.state)
    assert t.snapshot is not None
    root = t.state.root()
    assert root is not None
    for location, kind, count in (
        (str(t.snapshot.root_location), "root manifest", len(root)),
        (next(r["location"] for r in root.entries.to_pylist() if r["content_type"] == 3), "manifest", 6),
    ):
        data = t.state.storage.read(location, kind="other")
        (tmp_path / "some.bin").write_bytes(data)
        loose = ix.open_file(tmp_path / "some.bin")
        assert loose.kind == kind
        assert loose.header["dialect"] == "v4-proposal"
        assert loose.header["format"] == manifest_format
        assert loose.arrow().num_rows == loose.content_entries().num_rows == count
        assert kind in repr(loose)
        if manifest_format == "parquet":
            assert loose.arrow().schema.names == pq.read_schema(io.BytesIO(data)).names


# The explorer -------------------------------------------------------------------------------------------------------


@pytest.fixture
def widget(t: ix.Table) -> Iterator[Explorer]:
    shown = t.explore()
    assert shown.settle(60)
    yield shown
    shown.close()


def _select(widget: Explorer, node_id: str) -> None:
    widget.select(node_id)
    assert widget.settle(60)
    assert widget.error == {}


def test_the_explorer_of_a_v4_table(t: ix.Table, widget: Explorer) -> None:
    kinds = [node["kind"] for node in widget.nodes.values()]
    assert kinds.count("root-manifest") == 1
    assert "manifest-list" not in kinds
    assert {"data-manifest", "manifest-dv", "data-file", "deletion-vector", "equality-delete"} <= set(kinds)
    asked = 0
    for node_id, node in list(widget.nodes.items()):
        if node["kind"] == "more":
            continue
        _select(widget, node_id)
        assert widget.detail["id"] == node_id
        for table in widget.detail["tables"]:
            asked += 1
            widget.query = {"detail": {"n": asked, "of": table["of"], "table": table["key"], "page": 0}}
            assert widget.settle(60)
            assert widget.error == {}, (node, table)
            assert widget.pages["detail"]["table"] == table["key"]
        json.dumps({"nodes": widget.nodes, "detail": widget.detail, "pages": widget.pages}, allow_nan=False)


def test_a_vector_lists_what_it_removes(t: ix.Table, widget: Explorer) -> None:
    vectors = [i for i, n in widget.nodes.items() if n["kind"] == "manifest-dv" and "added" in n["marks"]]
    _select(widget, vectors[0])
    frame = widget.selected_table
    assert frame is not None
    assert frame["ordinal"].tolist() == [1, 3]
    assert frame["file"].tolist() == ["D1.parquet", "D3.parquet"]
    facts = dict(widget.detail["facts"])
    assert facts["record_count"] == "2"
    replaced = [i for i, n in widget.nodes.items() if n["kind"] == "manifest-dv" and "removed" in n["marks"]]
    _select(widget, replaced[0])
    assert widget.selected_table is not None
    assert widget.selected_table["file"].tolist() == ["D1.parquet"]


def test_a_leaf_says_which_vector_removes_an_entry(t: ix.Table, widget: Explorer) -> None:
    leaf = next(i for i, n in widget.nodes.items() if n["kind"] == "data-manifest")
    _select(widget, leaf)
    assert dict(widget.detail["facts"])["removed_entries"] == "2"
    frame = widget.selected_table
    assert frame is not None
    assert np.flatnonzero(frame["removed_by"].notna()).tolist() == [1, 3]
    assert t.snapshot is not None
    vector = frame["removed_by"].dropna().unique().tolist()
    root = root_of(t, t.snapshot.snapshot_id)
    assert [root[v]["type"] for v in vector] == [5]


def test_the_columns_of_a_file_in_the_root(t: ix.Table, widget: Explorer) -> None:
    assert t.snapshot is not None
    root = root_of(t, t.snapshot.snapshot_id)
    at = next(i for i, r in enumerate(root) if r["type"] == 0 and r["status"] == 0)
    _select(widget, f"file:{t.snapshot.snapshot_id}:{at}")
    frame = widget.selected_table
    assert frame is not None
    shown = frame.set_index("column")
    assert (shown.loc["id", "lower"], shown.loc["id", "upper"]) == (100, 110)
    assert "bucket(4, id)" in shown.index
    assert shown.loc["kind", "lower"] == "a"


# At length ----------------------------------------------------------------------------------------------------------


def test_entries_agree_with_a_plain_reading(t: ix.Table) -> None:
    assert t.snapshot is not None
    want = sorted((e["location"], e["gone"]) for e in entries_of(t, t.snapshot.snapshot_id))
    got = t.inspect.content_entries.arrow().to_pylist()
    mine = sorted((r["location"], r["manifest_dv"] is not None) for r in got if r["content_type"] < 3)
    assert mine == want


def test_what_is_shown_as_text_keeps_its_lines() -> None:
    t = ix.sample("trips")
    for made in (t.tree(), t.tree(style="proposal"), t.rows("trip_id = 95", history=True).story()):
        html = made._repr_mimebundle_()["text/html"]
        shown = html.partition("<pre")[2].partition("</pre>")[0]
        assert "\u240a" not in shown and shown.count("\n") == made.to_text().rstrip("\n").count("\n")
