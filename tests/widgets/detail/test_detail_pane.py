"""The detail pane: every field with its meaning and section, raw JSON as in the file, rows that are nodes and back."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore import Table
from iceexplore._samples import sample_path
from iceexplore.errors import OPEN_POINTS, problem
from iceexplore.graph import build_tree, human_bytes
from iceexplore.widgets import Explorer
from iceexplore.widgets.changes._tables import CHANGES
from iceexplore.widgets.detail._detail import detail_of
from iceexplore.widgets.detail._field_docs import PROPOSAL, SECTIONS, SPEC, Meaning, meaning
from iceexplore.widgets.detail._node_rows import nodes_of_rows, row_of_node
from iceexplore.widgets.detail._node_tables import load_table, parent_table, table_docs, tables_of, tabs_of
from iceexplore.widgets.detail._raw_json import MAX_JSON, raw_json
from iceexplore.widgets.detail._recorded import recorded_of
from iceexplore.widgets.detail._table_help import table_help
from iceexplore.widgets.grid._query import Filter, GridQuery, Order


@pytest.fixture(scope="module")
def trips() -> ix.Table:
    return ix.sample("trips")


def v4_table() -> ix.Table:
    s = ix.empty({"id": "long", "kind": "string"}, partition_by=["kind"], seed=5, flush_data_files=20)
    s.append(40, rows=100)
    s.row_delta(deletes={s.table.inspect.data_files()["file_path"].iloc[0]: [1, 2]})
    s.append(3, rows=10)
    return s.table


@pytest.fixture(scope="module")
def four() -> ix.Table:
    return v4_table()


@pytest.fixture
def widget(trips: ix.Table) -> Iterator[Explorer]:
    made = Explorer(trips)
    assert made.settle(60)
    yield made
    made.close()


def one_of_each_kind(table: ix.Table) -> list[Any]:
    """A node of every kind that the table has, of the present snapshot."""
    tree = build_tree(table.state, depth="snapshots")
    assert table.snapshot is not None
    snapshot = table.snapshot.snapshot_id
    found = [tree.node("table"), tree.node("metadata"), *tree.children("metadata")]
    found += [*tree.children(f"snapshot:{snapshot}"), *tree.children(f"root:{snapshot}")]
    for node in tree.children(f"root:{snapshot}"):
        found += tree.children(node.id)
    return list({node.kind: node for node in reversed(found)}.values())


def test_the_fields_say_what_they_mean(trips: ix.Table, four: ix.Table) -> None:
    kinds = set()
    for table in (trips, four):
        for node in one_of_each_kind(table):
            kinds.add(node.kind)
            detail = detail_of(node, table.state)
            names = [name for name, _ in (*detail["facts"], *detail["more"])]
            explained = [name for name in names if name in detail["help"]]
            unknown = {"iceberg-version", "app-id", "app-name", "spark.app.id", "iceexplore-version"}
            assert set(names) - set(explained) <= unknown, node.kind
            for text, section, link, *_ in detail["help"].values():
                assert text
                assert (section == "") == (link == "")
                assert link.startswith(f"{SPEC}#") or not link or (table is four and link == PROPOSAL)
            json.dumps(detail, allow_nan=False)
    assert {
        "table",
        "snapshot",
        "branch",
        "tag",
        "data-manifest",
        "data-file",
        "manifest-list",
        "root-manifest",
    } <= kinds


def test_sections_are_those_of_the_spec() -> None:
    links = {Meaning("", section).link for section in SECTIONS.values()}
    assert f"{SPEC}#table-metadata-fields" in links
    assert f"{SPEC}#version-4-metadata-structure-and-representation" in links
    assert all(re.fullmatch(r"[a-z0-9-]+", link.partition("#")[2]) for link in links - {PROPOSAL})
    assert Meaning("of ours").link == ""


def test_fields_are_called_as_the_format_version_does(trips: ix.Table, four: ix.Table) -> None:
    tree = build_tree(trips.state, depth="snapshots")
    assert trips.snapshot is not None
    manifest = tree.children(f"root:{trips.snapshot.snapshot_id}")[0]
    named = dict((detail := detail_of(manifest, trips.state))["facts"] + detail["more"])
    assert {"manifest_length", "added_snapshot_id", "min_sequence_number"} <= set(named)
    assert not {"file_size_in_bytes", "snapshot_id"} & set(named)
    assert detail["help"]["manifest_length"][1] == "Manifest Lists"
    file = detail_of(tree.children(manifest.id)[0], trips.state)
    assert file["help"]["record_count"][1:] == ["Data File Fields", f"{SPEC}#data-file-fields"]
    assert file["help"]["started_at_month"][1] == "Partitioning"
    assert four.snapshot is not None
    leaf = build_tree(four.state, depth="snapshots").children(f"root:{four.snapshot.snapshot_id}")[0]
    assert "manifest_length" not in {name for name, _ in detail_of(leaf, four.state)["facts"]}


def test_a_field_that_nobody_knows_has_no_help() -> None:
    assert meaning("snapshot", "my.own.key") is None
    assert meaning("data-file", "no_such_field") is None
    # V4 has one shape for all entries, and a field of it means another thing of a vector or a manifest
    counts = {
        kind: meaning(kind, "record_count", 4)
        for kind in ("data-file", "deletion-vector", "manifest-dv", "data-manifest")
    }
    assert [found and found.text.split(";")[0] for found in counts.values()] == [
        "number of rows", "positions that the vector deletes", "entries that the vector removes",
        "its number of entries",
    ]  # fmt: skip
    of_vector, of_manifest = (meaning(kind, "referenced_file", 4) for kind in ("manifest-dv", "delete-manifest"))
    assert of_vector and of_vector.text == "the manifest whose entries it removes"
    assert of_manifest and "null: to any" in of_manifest.text
    assert meaning("manifest-dv", "inline_content", 4)


def test_fields_of_the_proposal_lead_to_the_proposal(four: ix.Table) -> None:
    assert four.snapshot is not None
    tree = build_tree(four.state, depth="snapshots")
    found = [detail_of(node, four.state)["help"] for node in tree.children(f"root:{four.snapshot.snapshot_id}")]
    sections = {tuple(help_["record_count"][1:3]) for help_ in found if "record_count" in help_}
    assert sections == {("V4 proposal, V4 content entry structure", PROPOSAL)}
    draft = meaning("data-file", "record_count", 4)
    assert draft and draft.link == f"{SPEC}#version-4-metadata-structure-and-representation"


def test_fields_lead_to_what_the_proposal_leaves_open() -> None:
    """In a tree with every kind of entry, each point that names fields is found at one of these, and no other."""
    leaves: dict[str, Any] = {"flush_data_files": 2, "flush_delete_files": 1, "affinity": "all", "inline_dv_bytes": 0}
    s = ix.empty({"id": "long", "k": "string"}, partition_by=["k", "bucket(4, id)"], format_version=2, seed=1)
    s.append(pd.DataFrame({"id": range(6), "k": ["a", "b"] * 3}))
    paths = s.inspect.data_files()["file_path"].tolist()
    s.row_delta(deletes={paths[0]: [0]})  # a position delete file
    s.upgrade(4, **leaves)
    s.append(pd.DataFrame({"id": range(6), "k": ["c"] * 6}))
    paths = s.inspect.data_files()["file_path"].tolist()
    s.row_delta(deletes={paths[-1]: [0], paths[-2]: [0]})
    s.delete_files(paths[-3])
    s.set_layout(inline_dv_bytes=4096)
    s.delete_files(paths[1])
    found: dict[str, set[str]] = {}
    tree = build_tree(s.state, depth="snapshots")
    assert s.snapshot is not None
    root = tree.node(f"root:{s.snapshot.snapshot_id}")
    nodes = [root, *tree.children(root.id)]
    for node in [*nodes, *(child for node in nodes for child in tree.children(node.id))]:
        detail = detail_of(node, s.state)
        for name, (_, _, _, *points) in detail["help"].items():
            for point in points[0] if points else ():
                found.setdefault(point, set()).add(f"{node.kind}.{name}")
                title, says, answer = detail["open"][point]
                assert (title, tuple(says)) == (OPEN_POINTS[point].title, OPEN_POINTS[point].says)
                assert answer.startswith("Written: ") and OPEN_POINTS[point].read in answer
        json.dumps(detail, allow_nan=False)
    assert set(found) == {p.id for p in OPEN_POINTS.values() if p.fields}
    assert found["record-count"] == {"data-manifest.record_count", "delete-manifest.record_count"}
    assert found["referenced-by-5"] == {"manifest-dv.referenced_file"}
    assert found["thresholds"] == {"root-manifest.entries", "root-manifest.length"}
    assert {"data-manifest.k", "data-file.id_bucket_4"} <= found["several-columns"]


def test_only_trees_of_the_proposal_have_open_points(trips: ix.Table) -> None:
    draft = ix.empty({"id": "long"}, dialect="v4-draft", seed=1)
    draft.append(2, rows=1)
    for table in (trips, draft.table):
        for node in one_of_each_kind(table):
            detail = detail_of(node, table.state)
            assert "open" not in detail and all(len(help_) == 3 for help_ in detail["help"].values())


@pytest.mark.parametrize("which", ["trips", "four"])
def test_rows_lead_to_nodes_and_back(which: str, request: pytest.FixtureRequest) -> None:
    table: ix.Table = request.getfixturevalue(which)
    state = table.state
    tree = build_tree(state, depth="snapshots")
    met = set()
    for node in one_of_each_kind(table):
        for key in (t.key for t in tables_of(node) if t.key != CHANGES):
            shown = load_table(state, node, key)
            frame = shown.frame()
            assert set(table_docs(state, node, key)) <= set(frame.columns) | set(table_docs(state, node, key))
            rows = list(range(min(len(frame), 60)))
            for row, found in zip(rows, nodes_of_rows(state, node, key, shown, rows), strict=True):
                if found is None:
                    continue
                met.add(key)
                there = tree.node(found)
                again = row_of_node(state, node, key, shown, there)
                assert again is not None
                assert nodes_of_rows(state, node, key, shown, [again]) == [found]
                if key in ("leaf", "manifests", "snapshots", "refs"):
                    assert again == row
                if key == "leaf":
                    assert frame["location"].iloc[row] == there.fields["location"]
                if key == "files":
                    assert frame["file_path"].iloc[row] == there.location
    wanted = {"leaf", "manifests", "snapshots", "refs", "history", "files", "entries", "content_entries"}
    assert wanted <= met


def test_a_node_of_elsewhere_is_no_row(trips: ix.Table) -> None:
    tree = build_tree(trips.state, depth="snapshots")
    assert trips.snapshot is not None
    manifests = tree.children(f"root:{trips.snapshot.snapshot_id}")
    first, second = manifests[:2]
    frame = load_table(trips.state, first, "leaf")
    for other in (second, tree.children(second.id)[0], tree.node("table"), tree.node("metadata:0")):
        assert row_of_node(trips.state, first, "leaf", frame, other) is None
    assert (
        row_of_node(trips.state, tree.node("table"), "refs", load_table(trips.state, tree.node("table"), "refs"), first)
        is None
    )


def test_raw_json_is_what_the_file_says(trips: ix.Table) -> None:
    tree = build_tree(trips.state, depth="snapshots")
    raw = trips.metadata.raw
    assert trips.snapshot is not None
    snapshot = trips.snapshot.snapshot_id
    assert json.loads(raw_json(trips.state, tree.node(f"snapshot:{snapshot}"))) == trips.snapshot.raw
    assert json.loads(raw_json(trips.state, tree.node("ref:main"))) == raw["refs"]["main"]
    assert json.loads(raw_json(trips.state, tree.node("metadata")))["table-uuid"] == raw["table-uuid"]
    statistics = next(n for n in tree.children(f"snapshot:{snapshot}") if n.kind == "statistics")
    assert json.loads(raw_json(trips.state, statistics)) == raw["statistics"][0]
    manifest = tree.children(f"root:{snapshot}")[1]
    record = json.loads(raw_json(trips.state, manifest))
    assert record["manifest_path"] == manifest.location
    assert record["added_snapshot_id"] == manifest.fields["snapshot_id"], "all digits: it is text for people"
    file = tree.children(manifest.id)[0]
    entry = json.loads(raw_json(trips.state, file))
    assert entry["data_file"]["file_path"] == file.location
    assert entry["data_file"]["record_count"] == file.fields["record_count"]
    assert all(v.startswith("0x") for v in entry["data_file"]["lower_bounds"].values())


def test_raw_json_of_avro_agrees_with_fastavro(trips: ix.Table) -> None:
    import io

    import fastavro

    tree = build_tree(trips.state, depth="snapshots")
    assert trips.snapshot is not None
    for manifest in tree.children(f"root:{trips.snapshot.snapshot_id}"):
        data = trips.state.storage.read(manifest.location or "", kind="manifest")
        records = list(fastavro.reader(io.BytesIO(data)))
        for node, wanted in zip(tree.children(manifest.id), records, strict=True):
            own = json.loads(raw_json(trips.state, node))
            assert own["data_file"]["file_path"] == wanted["data_file"]["file_path"]
            assert own["status"] == wanted["status"]
            assert own["sequence_number"] == wanted["sequence_number"]
            counts = wanted["data_file"]["value_counts"] or []
            assert (own["data_file"]["value_counts"] or {}) == {str(c["key"]): c["value"] for c in counts}


def test_raw_json_of_version_4(four: ix.Table) -> None:
    for node in one_of_each_kind(four):
        assert json.loads(raw_json(four.state, node)), node.kind


def test_raw_json_is_bounded() -> None:
    s = ix.empty({"id": "long"}, format_version=2, properties={f"k{i}": "v" * 1000 for i in range(300)})
    s.append(1, rows=1)
    tree = build_tree(s.table.state, depth="snapshots")
    text = raw_json(s.table.state, tree.node("table"))
    assert len(text) < MAX_JSON + 100
    assert text.endswith("more characters")
    with pytest.raises(ix.OptionError, match="no JSON"):
        raw_json(s.table.state, _gone(tree.node("table")))


def _gone(node: Any) -> Any:
    from dataclasses import replace

    return replace(node, id="snapshot:17")


def test_the_tab_in_which_a_node_is_a_row(trips: ix.Table) -> None:
    tree = build_tree(trips.state, depth="snapshots")
    assert trips.snapshot is not None
    root = tree.node(f"root:{trips.snapshot.snapshot_id}")
    manifest = tree.children(root.id)[0]
    file = tree.children(manifest.id)[0]
    assert [t.title for t in tabs_of(file, parent_table(file, manifest))] == ["Columns", "↑ Entries", "JSON"]
    tab = parent_table(manifest, root)
    assert tab is not None
    assert (tab.key, tab.of) == ("manifests", root.id)
    earlier = tree.node("metadata:0")
    assert [t.title for t in tabs_of(earlier, parent_table(earlier, None))] == ["↑ Metadata log"]


# In the widget --------------------------------------------------------------------------------------------------------


def opened(widget: Explorer, node: str) -> None:
    """What the browser sets when a row is opened."""
    page = widget.pages["detail"]
    kept = {key: page[key] for key in ("of", "table", "sort", "filters", "page")}
    widget.query = {**widget.query, "detail": {**kept, "node": node, "n": page["n"] + 1}}
    widget.select(node)
    assert widget.settle(60)
    assert widget.error == {}


def manifests_shown(widget: Explorer) -> None:
    of = widget.selection["node"]
    widget.query = {"detail": {"of": of, "table": "manifests", "n": 1}}
    assert widget.settle(60)


def test_an_opened_row_keeps_its_table(widget: Explorer) -> None:
    manifests_shown(widget)
    page = widget.pages["detail"]
    of, node = page["of"], page["nodes"][1]
    widget.query = {"detail": {"of": of, "table": "manifests", "sort": [1, "desc"], "n": 5}}
    assert widget.settle(60)
    opened(widget, node)
    assert widget.selected.id == node
    assert widget.detail["id"] == node
    page = widget.pages["detail"]
    assert (page["of"], page["table"], page["sort"]) == (of, "manifests", [1, "desc"])
    assert {"key": "manifests", "title": "↑ Manifests", "of": of} in widget.detail["tables"]
    assert widget.selected_table is not None
    assert len(widget.selected_table) == page["total"]
    # what the tree selects then is found in the same table
    other = next(n for n in page["nodes"] if n != node)
    widget.select(other)
    assert widget.settle(60)
    assert widget.pages["detail"]["of"] == of
    assert widget.pages["detail"]["sort"] == [1, "desc"]
    # and what is no row of it shows its own
    widget.select("table")
    assert widget.settle(60)
    assert (widget.pages["detail"]["of"], widget.pages["detail"]["table"]) == ("table", "snapshots")


def test_what_was_opened_from_a_row_once_is_selected_in_the_tree_later(widget: Explorer) -> None:
    manifests_shown(widget)
    snapshot = widget.selection["node"]
    node = widget.pages["detail"]["nodes"][0]
    opened(widget, node)
    widget.select(snapshot)
    assert widget.settle(60)
    assert widget.pages["detail"]["of"] == snapshot
    widget.select(node)
    assert widget.settle(60)
    assert (widget.pages["detail"]["of"], widget.pages["detail"]["table"]) == (node, "leaf")
    tabs = [(tab["of"], tab["key"]) for tab in widget.detail["tables"]]
    assert (node, "leaf") in tabs


def test_a_page_that_comes_before_the_selection_keeps_the_table_too(widget: Explorer) -> None:
    manifests_shown(widget)
    page = widget.pages["detail"]
    widget.query = {"detail": {"of": page["of"], "table": page["table"], "node": page["nodes"][1], "n": 4}}
    assert widget.settle(60)
    widget.select(page["nodes"][1])
    assert widget.settle(60)
    assert (widget.pages["detail"]["of"], widget.pages["detail"]["table"]) == (page["of"], "manifests")
    assert widget.pages["detail"]["n"] == 4


def test_a_snapshot_opened_from_its_row(widget: Explorer) -> None:
    widget.select("table")
    assert widget.settle(60)
    node = widget.pages["detail"]["nodes"][0]
    assert node == f"snapshot:{widget.snapshots[0]['id']}"
    page = widget.pages["detail"]
    widget.query = {"detail": {"of": "table", "table": "snapshots", "node": node, "n": page["n"] + 1}}
    widget.select(node, snapshot=widget.snapshots[0]["id"])
    assert widget.settle(60)
    assert widget.error == {}
    assert widget.detail["id"] == node
    assert widget.pages["detail"]["table"] == "snapshots"


def test_what_a_table_finds_wrong_is_shown_with_its_node(tmp_path: Path) -> None:
    source, folder = Path(sample_path("trips")), tmp_path / "trips"
    if source.is_dir():
        shutil.copytree(source, folder)
    else:
        shutil.unpack_archive(source, folder)
    for path in folder.rglob("optimized-m-*"):
        path.unlink()
    made = Explorer(ix.open(folder))
    made.select(next(i for i, node in made.nodes.items() if "optimized-m-" in (node["tooltip"] or "")))
    assert made.settle(60)
    assert made.pages["detail"]["total"] == 0
    assert [p["severity"] for p in made.detail["problems"]] == ["error"]
    assert made.detail["tables"][0]["title"] == "Entries"
    made.close()


def test_the_json_tab(widget: Explorer) -> None:
    node = widget.selection["node"]
    widget.query = {"detail": {"of": node, "table": "json", "n": 9}}
    assert widget.settle(60)
    assert widget.error == {}
    assert json.loads(widget.pages["detail"]["text"])["snapshot-id"]
    assert widget.selected_table is not None, "its first table is selected"


def test_selecting_an_earlier_metadata_file(widget: Explorer) -> None:
    widget.select("metadata:0")
    assert widget.settle(60)
    assert widget.error == {}
    assert [t["title"] for t in widget.detail["tables"]] == ["↑ Metadata log"]
    assert widget.selected_table is None


def test_tab_sort_and_filter_survive_another_snapshot(trips: ix.Table, widget: Explorer) -> None:
    ids = [s.snapshot_id for s in trips.snapshots]
    own = f"snapshot:{ids[-1]}"
    names = [c["name"] for c in ask(widget, own, "files")["columns"]]
    size, path, rows = (names.index(name) for name in ("file_size_in_bytes", "file_path", "record_count"))
    chosen = [{"column": rows, "op": ">", "value": "5"}]
    ask(widget, own, "files", sort=[size, "desc"], filters=chosen, columns=[path, rows, size])
    # The table of 2024's snapshots has another partition column, so that every column after it moves.
    widget.select(f"snapshot:{ids[0]}", snapshot=ids[0])
    assert widget.settle(60)
    page = widget.pages["detail"]
    assert (page["of"], page["table"]) == (f"snapshot:{ids[0]}", "files")
    assert page["sort"] == [[c["name"] for c in page["columns"]].index("file_size_in_bytes"), "desc"]
    assert [page["columns"][f["column"]]["name"] for f in page["filters"]] == ["record_count"]
    assert [page["columns"][i]["name"] for i in page["shown"]] == ["file_path", "record_count", "file_size_in_bytes"]
    assert widget.detail["id"] == page["of"]
    root = f"root:{ids[0]}"
    widget.select(root)
    assert widget.settle(60)
    assert widget.pages["detail"]["table"] == "manifests", "a node of another kind begins with its first table"
    widget.select(f"root:{ids[-1]}", snapshot=ids[-1])
    assert widget.settle(60)
    assert (widget.pages["detail"]["of"], widget.pages["detail"]["table"]) == (f"root:{ids[-1]}", "manifests")


def test_a_query_for_another_table_keeps_the_columns_that_it_has() -> None:
    query = GridQuery("a", "t", 1, 0, Order((2, "asc"), (Filter(0, "=", "x"), Filter(None, "contains", "y"))), (0, 2))
    there = query.renumbered(["one", "two", "three"], ["three", "one"])
    assert there.order == Order((0, "asc"), (Filter(1, "=", "x"), Filter(None, "contains", "y")))
    assert there.columns == (1, 0)
    gone = query.renumbered(["one", "two", "three"], ["four"])
    assert (gone.order, gone.columns) == (Order(None, (Filter(None, "contains", "y"),)), None)


@pytest.mark.parametrize("key", ["files", "entries", "content_entries"])
def test_rows_of_every_kind_of_file_lead_to_their_nodes(trips: ix.Table, key: str) -> None:
    assert trips.snapshot is not None
    tree = build_tree(trips.state, depth="snapshots")
    own = f"snapshot:{trips.snapshot.snapshot_id}" if key != "content_entries" else f"root:{trips.snapshot.snapshot_id}"
    node = tree.node(own)
    table = load_table(trips.state, node, key)
    found = nodes_of_rows(trips.state, node, key, table, range(len(table)))
    kinds = {tree.node(i).kind for i in found if i is not None}
    assert kinds >= {"data-file", "deletion-vector", "position-delete"}
    frame = trips.inspect.files()
    if key == "files":
        assert None not in found
        for i, path, count in zip(found, frame["file_path"], frame["record_count"], strict=True):
            assert i is not None
            assert (tree.node(i).location, tree.node(i).fields["record_count"]) == (path, count)
    for i in filter(None, set(found)):
        back = row_of_node(trips.state, node, key, table, tree.node(i))
        assert back is not None and found[back] == i, "vectors in one file have different offsets"


def test_rows_of_roots_and_puffin_files_lead_to_their_nodes_and_back(trips: ix.Table, four: ix.Table) -> None:
    kinds: set[str] = set()
    for table in (trips, four):
        assert table.snapshot is not None
        tree = build_tree(table.state, depth="files")
        owners = [f"root:{table.snapshot.snapshot_id}", *(n.id for n in tree.nodes if n.kind == "statistics")]
        for owner in owners:
            node = tree.node(owner)
            for key in {"content_entries", "puffin_blobs", "leaf"} & {t.key for t in tables_of(node)}:
                rows = load_table(table.state, node, key)
                found = nodes_of_rows(table.state, node, key, rows, range(len(rows)))
                assert None not in found, (owner, key)
                for i in filter(None, set(found)):
                    kinds.add(tree.node(i).kind)
                    back = row_of_node(table.state, node, key, rows, tree.node(i))
                    assert back is not None and found[back] == i
    assert kinds >= {
        "data-manifest",
        "delete-manifest",
        "data-file",
        "deletion-vector",
        "position-delete",
        "statistics",
    }


FIRST = {
    "files": ["file_path", "content", "partition", "record_count", "file_size_in_bytes", "deleted_rows", "snapshot_id"],
    "entries": ["file_path", "status", "content", "partition", "record_count", "file_size_in_bytes", "snapshot_id"],
}


@pytest.mark.parametrize("key", list(FIRST))
def test_essential_columns_come_first(trips: ix.Table, widget: Explorer, key: str) -> None:
    assert trips.snapshot is not None
    own = f"snapshot:{trips.snapshot.snapshot_id}"
    page = ask(widget, own, key)
    names = [column["name"] for column in page["columns"]]
    assert [names[i] for i in page["shown"]] == FIRST[key] == names[: len(FIRST[key])]
    assert [column["name"] for column in page["columns"] if column.get("head")] == ["file_path"]
    assert all(row[0] is not None and "/" in row[0] for row in page["rows"])
    assert set(names) > {*trips.inspect[key].columns}, "the others can be chosen"
    assert widget.selected_table is not None
    pd.testing.assert_frame_equal(widget.selected_table, trips.inspect[key]())
    few = ask(widget, own, key, columns=[0, 3])
    assert few["shown"] == [0, 3]


def test_what_a_row_shows_is_what_the_metadata_states(trips: ix.Table, widget: Explorer) -> None:
    """Sizes, kinds, partitions, deletes and snapshots, compared with the metadata tables."""
    assert trips.snapshot is not None
    page = ask(widget, f"snapshot:{trips.snapshot.snapshot_id}", "files")
    names = [column["name"] for column in page["columns"]]
    rows = [dict(zip((names[i] for i in page["shown"]), row, strict=True)) for row in page["rows"]]
    texts = {names[int(place)]: values for place, values in page["texts"].items()}
    files = trips.inspect.files()
    entries = trips.inspect.entries()
    live = entries[entries["status"] != 2]
    added = {(f["file_path"], f["content_offset"]): s for f, s in zip(live["data_file"], live["snapshot_id"])}
    deleted: dict[str, int] = {}
    vectors = {}
    wanted_columns = ["content", "record_count", "content_offset", "referenced_data_file"]
    wanted_columns += ["lower_bounds", "upper_bounds"]
    for content, count, offset, target, lower, upper in files[wanted_columns].itertuples(index=False):
        if pd.isna(target) and content == 1:  # earlier writers: equal bounds of the column file_path name the data file
            low, high = (dict(bounds).get(2147483546) for bounds in (lower, upper))
            target = low.decode() if low is not None and low == high else None
        if content == 1 and pd.notna(offset):
            vectors[target] = count
        elif content == 1 and pd.notna(target):
            deleted[target] = deleted.get(target, 0) + count
    deleted |= vectors  # a file with a vector ignores position delete files
    assert vectors and len(rows) == len(files)
    for i, (row, size, content, offset) in enumerate(
        zip(rows, files["file_size_in_bytes"], files["content"], files["content_offset"])
    ):
        assert row["file_size_in_bytes"] == str(size)
        assert texts["file_size_in_bytes"][i] == human_bytes(size)
        at = (row["file_path"], None if pd.isna(offset) else offset)
        assert row["snapshot_id"] == str(added[at])
        word = "deletion vector" if pd.notna(offset) else ("data", "position deletes", "equality deletes")[content]
        assert texts["content"][i] == word
        wanted = None if content else str(deleted.get(str(row["file_path"]), 0))
        assert row["deleted_rows"] == wanted, row["file_path"]
        for part in filter(None, texts["partition"][i].split(", ")):
            name, _, value = part.partition("=")
            raw = json.loads(row["partition"] or "{}")[name]
            assert (raw is None) == (value == "null") and (name != "started_at_day" or raw in (None, value))
    assert {"started_at_month=2024-04, start_station_bucket_2=0"} <= set(texts["partition"])
    largest = max(files["file_size_in_bytes"])
    place = str(names.index("file_size_in_bytes"))
    assert page["bars"][place] == [round(100 * size / largest) for size in files["file_size_in_bytes"]]


def test_chosen_columns_survive_another_snapshot_and_table(trips: ix.Table, widget: Explorer) -> None:
    last, before = (f"snapshot:{s.snapshot_id}" for s in (trips.snapshots[-1], trips.snapshots[-2]))
    page = ask(widget, last, "files")
    names = [column["name"] for column in page["columns"]]
    chosen = sorted([*page["shown"][1:], names.index("file_format")])
    assert ask(widget, last, "files", columns=chosen)["shown"] == chosen

    def names_of(found: dict[str, Any]) -> list[str]:
        return [found["columns"][i]["name"] for i in found["shown"]]

    wanted = [names[i] for i in chosen]
    widget.select(before)
    assert widget.settle(60)
    assert (widget.pages["detail"]["of"], widget.pages["detail"]["table"]) == (before, "files")
    assert names_of(widget.pages["detail"]) == wanted
    assert names_of(ask(widget, before, "entries")) == FIRST["entries"], "another table has its own"
    assert names_of(ask(widget, last, "files")) == wanted
    usual = [names.index(name) for name in FIRST["files"]]
    ask(widget, last, "files", columns=usual)
    assert names_of(ask(widget, before, "files")) == FIRST["files"]


def test_what_cells_show_can_be_found(trips: ix.Table, widget: Explorer) -> None:
    assert trips.snapshot is not None
    own = f"snapshot:{trips.snapshot.snapshot_id}"
    files = trips.inspect.files()
    names = [column["name"] for column in ask(widget, own, "files")["columns"]]

    def found(name: str, op: str, value: str) -> tuple[int, str]:
        page = ask(widget, own, "files", filters=[{"column": names.index(name), "op": op, "value": value}])
        return page["total"], page["understood"][0]

    sizes, content = files["file_size_in_bytes"], files["content"]
    assert found("file_size_in_bytes", "=", "< 2 KiB") == (sum(sizes < 2048), "file_size_in_bytes < 2,048 bytes")
    assert found("file_size_in_bytes", "<=", "2kb")[0] == sum(sizes <= 2000)
    assert found("record_count", "=", "10..0.1k") == (
        sum((files["record_count"] >= 10) & (files["record_count"] <= 100)), "record_count from 10 to 100",
    )  # fmt: skip
    vectors = sum((content == 1) & files["content_offset"].notna())
    assert found("content", "contains", "vector") == (vectors, 'content contains "vector"')
    assert found("content", "=", "data")[0] == found("content", "=", "0")[0] == sum(content == 0)
    assert found("content", "!=", "data")[0] == sum(content != 0)
    assert found("partition", "contains", "month=2024-04")[0] > 0
    assert found("partition", "=", "started_at_day=2024-03-06")[0] > 0
    page = ask(
        widget, own, "files", filters=[{"column": names.index("file_size_in_bytes"), "op": "<", "value": "1 km"}]
    )
    assert page["refused"].startswith("'km' is not a unit here: use one of k, m, g")


def ask(widget: Explorer, of: str, key: str, **query: Any) -> dict[str, Any]:
    n = widget.query.get("detail", {}).get("n", 0) + 1
    widget.query = {"detail": {"of": of, "table": key, "n": n, **query}}
    assert widget.settle(60)
    page: dict[str, Any] = widget.pages["detail"]
    assert page["n"] == n, widget.error
    return page


def test_recorded_totals_are_shown_beside_counted_ones(tmp_path: Path) -> None:
    folder = tmp_path / "trips"
    shutil.copytree(Path(sample_path("trips")), folder)
    table = ix.open(folder)
    file = next(folder.rglob(table.metadata_location.rpartition("/")[2]))
    document = json.loads(gzip.decompress(file.read_bytes()))
    summary = document["snapshots"][-1]["summary"]
    records, size = int(summary["total-records"]), int(summary["total-files-size"])
    summary |= {"total-records": "0", "total-files-size": "1"}
    file.write_bytes(gzip.compress(json.dumps(document).encode()))
    widget = Explorer(ix.open(folder))
    assert widget.settle(60) and widget.error == {}

    def facts() -> dict[str, str]:
        return {fact[0]: fact[1] for part in ("facts", "more") for fact in widget.detail[part]}

    assert facts()["total-records"] == f"0 recorded, {records:,} counted"
    assert facts()["total-files-size"] == "1 B", "the manifest list does not have it"
    assert widget.detail["counted"].startswith("Compared with the manifest list; entries not counted yet (")
    (found,) = widget.detail["problems"]
    assert found["go"] == {"node": f"root:{widget.selection['snapshot']}"}, "a link to where the problem is"
    widget.read_all += 1
    assert widget.settle(60)
    assert widget.detail["counted"] == "Counted in all 4 manifests."
    assert facts()["total-files-size"] == f"1 B recorded, {size / 1024:.1f} KiB counted"
    assert facts()["total-data-files"] == summary["total-data-files"]
    assert f"0 recorded, {records:,} counted" in repr(Table(widget._host.state))
    widget.close()


def test_counts_of_a_manifest_are_compared_once_it_is_read(trips: ix.Table) -> None:
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)
    state = widget._host.state
    node = next(i for i in widget.nodes if i.startswith("manifest:") and widget.nodes[i]["children"] is None)
    tree = build_tree(state, depth="snapshots")
    made = tree.node(node)
    if made.location not in state.reader.seen:
        assert recorded_of(state, made).text == "Recorded in the manifest list; not counted yet."
    widget.select(node)
    assert widget.settle(60)
    assert widget.detail["counted"] == "Compared with the manifest's entries."
    wrong = problem("count-mismatch", str(made.location), "x", field="504 added_files_count", found=3, expected=2)
    assert recorded_of(state, replace(made, problems=(wrong,))).counted == {"added_files_count": 2}
    fields = {**made.fields, "manifest_stats": {"added_files_count": 3}}
    sent = detail_of(replace(made, problems=(wrong,), fields=fields), state)
    assert ["added_files_count", "3 recorded, 2 counted"] in [fact[:2] for fact in sent["facts"]] or any(
        fact[1] == "3 recorded, 2 counted" for fact in [*sent["facts"], *sent["more"]]
    )
    widget.close()


def help_of(table: Table, node: str, key: str) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    return table_help(table.state, next(n for n in one_of_each_kind(table) if n.kind == node), key)


def test_the_columns_of_entries_name_the_fields_that_they_show(trips: ix.Table, four: ix.Table) -> None:
    listed, _ = help_of(trips, "manifest-list", "manifests")
    assert listed["added_data_files_count"][0].endswith("; field id 504")
    assert listed["length"][1] == SECTIONS["manifest list"]
    assert listed["length"][2] == f"{SPEC}#manifest-lists"
    files, _ = help_of(trips, "snapshot", "files")
    assert files["file_path"][0].endswith("; field id 100") and files["file_path"][1] == SECTIONS["file"]
    assert files["deleted_rows"][1:] == ["", ""]  # a column of ours is no field
    entries, opened = help_of(four, "root-manifest", "leaf")
    assert entries["content"][0].endswith("; field id 134") and entries["content"][2] == PROPOSAL
    assert "inheritance" in entries["snapshot_id"][3] and opened["inheritance"][0]
    assert "field id" not in entries["partition"][0]  # the proposal has none
    assert help_of(trips, "table", "snapshots") == ({}, {})


def test_an_older_leaf_below_a_v4_root_has_the_fields_of_its_own_version(trips: ix.Table) -> None:
    s = trips.simulate(format_version=4, seed=1)
    s.append(1, rows=1)
    below = next(n for n in build_tree(s.table.state, depth="files").nodes if n.kind == "data-manifest")
    helped, _ = table_help(s.table.state, below, "leaf")
    assert helped["status"][1] == SECTIONS["entry"]
    assert helped["location"][1] == SECTIONS["file"]


def test_a_page_has_the_help_of_the_columns_that_it_shows(widget: Explorer) -> None:
    widget.select(next(i for i in widget.nodes if i.startswith("manifest:")))
    assert widget.settle(60)
    page = widget.pages["detail"]
    assert page["table"] == "leaf"
    assert sorted(map(int, page["help"])) == sorted(page["shown"])
    place = [column["name"] for column in page["columns"]].index("record_count")
    assert page["help"][str(place)] == ["number of rows; field id 103", "Data File Fields", f"{SPEC}#data-file-fields"]
