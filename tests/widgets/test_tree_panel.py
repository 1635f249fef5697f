"""The tree's Python side: the way to what is selected, comparisons, searches, files, and reading that is given up."""

from __future__ import annotations

import importlib
import itertools
import json
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore._samples import sample_path
from iceexplore.arrow import build
from iceexplore.errors import problem
from iceexplore.graph import diff, travel
from iceexplore.widgets import Explorer, Timeline
from iceexplore.widgets.tree._forest import Forest, View, first_expanded
from iceexplore.widgets.tree._panel import TreePanel
from iceexplore.widgets.tree._search import LIMIT, Search
from tests.test_v4_faces import made

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ix.Table]:
    """A table by day and region: 1,500 files in four manifests."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        generate = importlib.import_module("generate")
        shape = generate.Shape(files=1500, deletes=0, manifests=4, partitioned=True)
        yield ix.open(generate.generate(shape, tmp_path_factory.mktemp("large")))
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture
def opened() -> Iterator[Callable[[ix.Table], Explorer]]:
    widgets: list[Explorer] = []

    def make(table: ix.Table) -> Explorer:
        widgets.append(Explorer(table))
        assert widgets[-1].settle(60)
        return widgets[-1]

    yield make
    for widget in widgets:
        widget.close()


def unfold(widget: Explorer, *ids: str) -> None:
    widget.expanded = [*widget.expanded, *ids]
    assert widget.settle(60)
    assert widget.error == {}


def manifests(widget: Explorer) -> list[str]:
    return [i for i in widget.nodes if i.startswith("manifest:")]


def ask(widget: Explorer, text: str) -> dict[str, Any]:
    widget.search = {"n": widget.search.get("n", 0) + 1, "text": text}
    assert widget.settle(60)
    assert widget.found["n"] == widget.search["n"]
    found: dict[str, Any] = widget.found
    return found


# What is selected is in the tree --------------------------------------------------------------------------------------


def test_a_file_far_down_is_shown_on_its_way(opened: Callable[[ix.Table], Explorer], large: ix.Table) -> None:
    widget = opened(large)
    last = manifests(widget)[-1]
    snapshot = widget.selection["snapshot"]
    chosen = f"file:{snapshot}:{last.rpartition(':')[2]}:370"
    widget.expanded = ["table"]
    assert widget.settle(60)
    widget.select(chosen)
    assert widget.settle(60)
    assert widget.error == {}
    assert {"table", "metadata", f"snapshot:{snapshot}", f"root:{snapshot}", last} <= set(widget.expanded)
    children = widget.nodes[last]["children"]
    assert len(children) == 102, "a page, the selected node, and one node for the rest"
    assert children[-2:] == [chosen, f"more:{last}"]
    assert widget.nodes[f"more:{last}"]["label"] == "+274 more"
    unfold(widget, f"more:{last}")
    assert chosen in widget.nodes[last]["children"]


def test_what_is_selected_may_be_folded_away_again(opened: Callable[[ix.Table], Explorer], large: ix.Table) -> None:
    widget = opened(large)
    first = manifests(widget)[0]
    unfold(widget, first)
    widget.select(widget.nodes[first]["children"][0])
    assert widget.settle(60)
    widget.expanded = ["table"]
    assert widget.settle(60)
    assert widget.expanded == ["table"]


def test_a_node_of_another_snapshot_travels_there(opened: Callable[[ix.Table], Explorer]) -> None:
    widget = opened(ix.sample("trips"))
    earlier = widget.snapshots[3]["id"]
    widget.select(f"file:{earlier}:0:0")
    assert widget.settle(60)
    assert widget.error == {}
    assert widget.selection == {"snapshot": earlier, "against": "", "node": f"file:{earlier}:0:0"}
    assert f"file:{earlier}:0:0" in widget.nodes
    assert widget.detail["id"] == f"file:{earlier}:0:0"


# Comparisons ----------------------------------------------------------------------------------------------------------


def marks_by_place(widget: Explorer, kind: str) -> dict[tuple[str | None, Any], set[str]]:
    out: dict[tuple[str | None, Any], set[str]] = {}
    for node_id, node in widget.nodes.items():
        if node_id.startswith(kind):
            made_of = widget._panel(TreePanel).forest.node(node_id)
            offset = (made_of.fields.get("deletion_vector") or {}).get("offset")
            out.setdefault((made_of.location, offset), set()).update(node["marks"])
    return out


def test_a_comparison_says_what_the_difference_says(opened: Callable[[ix.Table], Explorer]) -> None:
    table = ix.sample("trips")
    widget = opened(table)
    ids = [s["id"] for s in widget.snapshots]
    for before, after in [(ids[0], ids[-1]), (ids[-1], ids[4]), *itertools.pairwise(ids[-4:])]:
        widget.select(snapshot=after, against=before)
        assert widget.settle(60)
        old, new = sorted((before, after), key=ids.index)  # whichever is shown
        oracle = diff(travel(table.state, snapshot=int(old)), travel(table.state, snapshot=int(new)))
        listed = oracle.manifests_arrow.select(["location", "change"]).to_pylist()
        marked = marks_by_place(widget, "manifest:")
        shown = {place: marks & {"added", "removed", "carried"} for (place, _), marks in marked.items()}
        assert shown == {row["location"]: {row["change"].replace("carried over", "carried")} for row in listed}
        unfold(widget, *manifests(widget))
        changed = oracle.files_arrow.select(["location", "content_offset", "change"]).to_pylist()
        wanted = {(row["location"], row["content_offset"]): row["change"] for row in changed}
        files_shown = marks_by_place(widget, "file:")
        assert set(wanted) <= set(files_shown), "removed ones are shown too"
        for place, marks in files_shown.items():
            assert wanted.get(place, "carried") in marks
            assert len(marks & {"added", "removed", "carried"}) == 1
        counts = widget.compared["counts"]
        added = sum(row["change"] == "added" for row in changed)
        assert counts["added"].endswith(f"{added:,} {'file' if added == 1 else 'files'} added")
    widget.select(against="")
    assert widget.settle(60)
    assert widget.compared == {}
    assert {i.split(":")[1] for i in manifests(widget)} == {widget.selection["snapshot"]}


def test_a_file_that_moved_into_a_leaf_is_no_change(opened: Callable[[ix.Table], Explorer], tmp_path: Path) -> None:
    lab = made(tmp_path / "t")
    widget = opened(ix.Table(lab.state))
    ids = [s["id"] for s in widget.snapshots]
    for before, after in itertools.combinations(ids, 2):
        widget.select(snapshot=after, against=before)
        assert widget.settle(60)
        oracle = diff(travel(lab.state, snapshot=int(before)), travel(lab.state, snapshot=int(after))).files_arrow
        of_root = {i: n for i, n in widget.nodes.items() if re.fullmatch(r"file:\d+:\d+", i)}
        direct = {i: n for i, n in of_root.items() if n["kind"] == "data-file"}
        wanted = dict(zip(oracle["location"].to_pylist(), oracle["change"].to_pylist(), strict=True))
        for node_id, node in direct.items():
            change = wanted.get(widget._panel(TreePanel).forest.node(node_id).location or "", "carried")
            assert change in node["marks"], (before, after, node)


# Searches -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["00000012", ".PARQUET", "manifest", "ts_day=2024-01-03", "region=eu", "not there"])
def test_a_search_finds_what_the_columns_hold(
    opened: Callable[[ix.Table], Explorer], large: ix.Table, text: str
) -> None:
    widget = opened(large)
    answer = ask(widget, text)
    state = large.state
    root = state.root()
    assert root is not None
    names = {str(f.field_id): f.name for spec in state.metadata.partition_specs for f in spec.fields}
    wanted = []
    snapshot = widget.selection["snapshot"]
    for row, place in enumerate(build.to_pylist(root.entries["location"])):
        wanted += [f"manifest:{snapshot}:{row}"] if text.lower() in place.lower() else []
    for row, leaf in enumerate(state.leaves(parts=frozenset({"entries", "partition"}))):
        partition = leaf.partition()
        assert partition is not None
        tuples = build.to_pylist(partition)
        for i, (place, values) in enumerate(zip(build.to_pylist(leaf.entries["location"]), tuples, strict=True)):
            texts = [place, *(f"{names[k]}={v}" for k, v in values.items())]
            wanted += [f"file:{snapshot}:{row}:{i}"] if any(text.lower() in t.lower() for t in texts) else []
    assert sorted(answer["hits"]) == sorted(wanted[:LIMIT])
    assert answer["more"] == (len(wanted) > LIMIT)
    assert not answer["busy"]


def test_a_search_by_id_finds_snapshots(opened: Callable[[ix.Table], Explorer]) -> None:
    widget = opened(ix.sample("trips"))
    other = widget.snapshots[0]["id"]
    assert f"snapshot:{other}" in ask(widget, other[:9])["hits"]
    assert ask(widget, "  ")["hits"] == []


def test_a_search_by_name_finds_refs_of_other_snapshots(opened: Callable[[ix.Table], Explorer]) -> None:
    table = ix.sample("trips")
    widget = opened(table)
    ref = next(r for r in table.metadata.refs.values() if str(r.snapshot_id) != widget.selection["snapshot"])
    node = f"ref:{ref.name}"
    assert node not in widget.nodes
    assert ask(widget, ref.name[1:].upper())["hits"][0] == node
    widget.select(node)
    assert widget.settle(60)
    assert widget.error == {}
    assert widget.selection == {"snapshot": str(ref.snapshot_id), "against": "", "node": node}
    assert node in widget.nodes
    assert widget.detail["id"] == node
    widget.select(snapshot=table.snapshots[0])
    assert widget.settle(60)
    assert widget.selection["node"] == f"snapshot:{table.snapshots[0].snapshot_id}", "which the ref does not name"


def test_a_search_goes_on_in_steps_and_is_given_up(large: ix.Table) -> None:
    assert large.snapshot is not None
    search = Search(large.state, large.snapshot.snapshot_id, "0000149")
    search.step(seconds=0)
    assert not search.done
    widget = Explorer(large)
    assert widget.settle(60)
    widget.search = {"n": 1, "text": "0000149"}
    widget.cancelled += 1
    assert widget.settle(60)
    assert (widget.busy, widget.found["n"], widget.found["busy"], widget.found["more"]) == ("", 1, False, True)
    widget.search = {"n": 2, "text": ""}
    assert widget.settle(60)
    assert widget.found == {"n": 2, "hits": [], "busy": False, "more": False}
    widget.close()


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("search", {"n": 1, "text": 17}),
        ("search", {"n": 1, "text": "x" * 5000}),
        ("wanted", {"n": 1, "format": "exe"}),
        ("wanted", {"n": 1}),
    ],
)
def test_nonsense_is_refused(opened: Callable[[ix.Table], Explorer], trait: str, value: Any) -> None:
    widget = opened(ix.sample("trips"))
    setattr(widget, trait, value)
    assert widget.settle(60)
    assert widget.error["text"].startswith(f"{trait}=")
    assert "bug in iceexplore" not in widget.error["advice"]


def test_cards_have_what_tells_them_apart_and_deletes_name_their_targets(
    opened: Callable[[ix.Table], Explorer],
) -> None:
    widget = opened(ix.sample("trips"))
    for manifest in manifests(widget):
        unfold(widget, manifest)
    nodes = widget.nodes
    for manifest in manifests(widget):
        siblings = [nodes[i] for i in nodes[manifest]["children"]]
        cards = {(n["title"], n["note"], n["label"]) for n in siblings}
        assert len(cards) == len({n["label"] for n in siblings}) or len(cards) == len(siblings)
        assert nodes[manifest]["title"] and "_" in nodes[manifest]["note"], "its partition ranges"
    assert "60 rows · 2.9 KiB · 4 deleted" in {n.get("title") for n in nodes.values()}
    live = {i: n for i, n in nodes.items() if n["kind"] == "deletion-vector" and "removed" not in n["marks"]}
    assert live
    for vector in live.values():
        (target,) = vector["applies"]
        count, _, name = vector["title"].partition(" deleted in ")
        assert nodes[target]["label"] == name
        assert nodes[target]["title"].endswith(f" · {count} deleted")
    assert not [n for n in nodes.values() if "removed" in n["marks"] and "applies" in n]


# Files of the picture -------------------------------------------------------------------------------------------------


def test_files_of_what_is_shown(opened: Callable[[ix.Table], Explorer]) -> None:
    widget = opened(ix.sample("trips"))
    chosen = manifests(widget)[0]
    unfold(widget, chosen)
    file = widget._panel(TreePanel).forest.node(widget.nodes[chosen]["children"][0]).label
    texts = {}
    for n, kind in enumerate(("mermaid", "dot"), 1):
        widget.wanted = {"n": n, "format": kind}
        assert widget.settle(60)
        assert (widget.written["n"], widget.written["format"]) == (n, kind)
        texts[kind] = widget.written["text"]
        assert file[:8] in texts[kind]
    assert texts["mermaid"].startswith("flowchart LR")
    assert texts["dot"].startswith("digraph")
    shown = sum(node["kind"] != "more" for node in widget.nodes.values())
    assert texts["mermaid"].count(" --> ") == shown - 1, "every node hangs on its parent, but the table"


# Reading that is given up, or fails -----------------------------------------------------------------------------------


def test_cancelled_reading_folds_again_and_keeps_nothing_waiting(
    opened: Callable[[ix.Table], Explorer], monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = opened(ix.sample("trips"))
    first, second = manifests(widget)[:2]
    before = widget.expanded
    gate, begun, grow = threading.Event(), threading.Event(), Forest.grow

    def slow(self: Forest, view: Any) -> Any:
        if first in view.expanded:
            begun.set()
            assert gate.wait(60)
        return grow(self, view)

    monkeypatch.setattr(Forest, "grow", slow)
    widget.expanded = [*before, first]
    assert begun.wait(60)
    assert widget.busy
    widget.cancelled += 1
    assert widget.busy == ""
    assert widget.expanded == before, "what was being unfolded folds again"
    unfold(widget, second)  # while the first is read still
    assert widget.nodes[second]["children"]
    gate.set()
    assert widget.settle(60)
    assert widget.nodes[first]["children"] is None, "nobody wants it any more"


def test_a_cancelled_move_to_another_snapshot_is_taken_back(
    opened: Callable[[ix.Table], Explorer], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ix.sample("trips")
    widget = opened(table)
    timeline = Timeline(table, selection=widget)
    manifest = manifests(widget)[0]
    widget.select(manifest)
    assert widget.settle(60)
    before, nodes, detail = dict(widget.selection), widget.nodes, widget.detail
    gate, begun, grow = threading.Event(), threading.Event(), Forest.grow

    def slow(self: Forest, view: Any) -> Any:
        begun.set()
        assert gate.wait(60)
        return grow(self, view)

    with monkeypatch.context() as patch:
        patch.setattr(Forest, "grow", slow)
        for other in (table.snapshots[-3], table.snapshots[-2]):
            widget.select(snapshot=other)
        assert begun.wait(60)
        widget.cancelled += 1
        assert widget.selection == timeline.selection == before
        gate.set()
        assert widget.settle(60)
    assert (widget.nodes, widget.detail) == (nodes, detail)
    assert (widget.busy, widget.error) == ("", {})
    widget.select(snapshot=table.snapshots[-2])  # can be asked for again
    assert widget.settle(60)
    assert f"root:{table.snapshots[-2].snapshot_id}" in widget.nodes
    widget.cancelled += 1
    assert widget.selection["snapshot"] == str(table.snapshots[-2].snapshot_id), "nothing was awaited"
    timeline.close()


def test_cancelled_details_take_the_selection_back(opened: Callable[[ix.Table], Explorer]) -> None:
    table = ix.sample("trips")
    widget = opened(table)
    before = dict(widget.selection)
    widget.select("table")  # already in the tree: only its details are read
    widget.cancelled += 1
    assert widget.settle(60)
    assert widget.selection == before
    assert widget.detail["id"] == before["node"]
    widget.select("table")
    assert widget.settle(60)
    assert widget.detail["id"] == "table"


def test_what_others_read_is_marked_though_somebody_cancelled(opened: Callable[[ix.Table], Explorer]) -> None:
    table = ix.sample("trips")
    widget = opened(table)
    chosen = manifests(widget)[0]
    row = int(chosen.rsplit(":", 1)[1])
    root = table.state.root()
    assert root is not None
    table.state.problems.add(problem("file-missing", root.entries["location"][row].as_py(), "It is not there."))
    widget.select("table")
    widget._panel(TreePanel).on_read()  # as when another widget of the table has met it
    widget.cancelled += 1
    assert widget.settle(60)
    assert "problem" in widget.nodes[chosen]["marks"]


def test_what_is_asked_of_a_table_while_its_row_is_selected_is_answered(opened: Callable[[ix.Table], Explorer]) -> None:
    widget = opened(ix.sample("trips"))
    first, second = manifests(widget)[:2]
    how = {"of": widget.pages["detail"]["of"], "table": "manifests"}
    widget.query = {"detail": {**how, "n": 1, "node": first}}  # a row is opened, and its table stays
    widget.select(first)
    assert widget.settle(60)
    widget.select(second)
    widget.query = {"detail": {**how, "n": 2, "sort": [2, "desc"]}}  # as whoever sorts before the details come
    assert widget.settle(60)
    assert (widget.detail["id"], widget.pages["detail"]["n"]) == (second, 2), "or the browser waits for ever"
    assert (widget.pages["detail"]["of"], widget.pages["detail"]["sort"]) == (how["of"], [2, "desc"])
    tab = next(tab["key"] for tab in widget.detail["tables"] if tab["of"] == second)
    widget.select(first)
    widget.query = {"detail": {"of": second, "table": tab, "n": 3}}  # another table, as by its tab
    assert widget.settle(60)
    assert [widget.pages["detail"][key] for key in ("of", "table", "n")] == [second, tab, 3]


def test_reading_that_fails_folds_again(
    opened: Callable[[ix.Table], Explorer], monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = opened(ix.sample("trips"))
    chosen = manifests(widget)[0]
    before = widget.expanded

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(Forest, "grow", broken)
        widget.expanded = [*before, chosen]
        assert widget.settle(60)
    assert widget.error["text"] == "ZeroDivisionError: on purpose"
    assert widget.expanded == before
    unfold(widget, chosen)
    assert widget.nodes[chosen]["children"]


def test_what_was_folded_while_reading_stays_folded(opened: Callable[[ix.Table], Explorer]) -> None:
    widget = opened(ix.sample("trips"))
    chosen = manifests(widget)[0]
    widget.expanded = [*widget.expanded, chosen]
    widget.expanded = [i for i in widget.expanded if i != chosen]
    assert widget.settle(60)
    assert chosen not in widget.expanded


def test_damage_is_marked_once_it_is_met(opened: Callable[[ix.Table], Explorer], tmp_path: Path) -> None:
    shutil.copytree(sample_path("trips"), tmp_path / "trips")
    whole = Forest(ix.open(tmp_path / "trips").state)
    snapshot = whole.state.snapshot
    assert snapshot is not None
    place = Path(whole.node(f"manifest:{snapshot.snapshot_id}:0").location or "").name
    next((tmp_path / "trips").rglob(place)).unlink()
    widget = opened(ix.open(tmp_path / "trips"))
    chosen = f"manifest:{snapshot.snapshot_id}:0"
    assert "problem" not in widget.nodes[chosen]["marks"]
    widget.expanded = [*widget.expanded, chosen]
    assert widget.settle(60)
    assert "problem" in widget.nodes[chosen]["marks"]
    assert widget.nodes[chosen]["children"] == []


# The message --------------------------------------------------------------------------------------------------------


def test_a_tree_of_thousands_is_a_small_message(large: ix.Table) -> None:
    forest = Forest(large.state)
    assert large.snapshot is not None
    snapshot = large.snapshot.snapshot_id
    rows = [f"manifest:{snapshot}:{i}" for i in range(4)]
    grown = forest.grow(View(snapshot, (*first_expanded(snapshot), *rows), limits=dict.fromkeys(rows, 1000)))
    assert len(grown.nodes) > 1500
    assert len(json.dumps(grown.nodes)) / len(grown.nodes) < 900, "so that 5,000 nodes stay below 5 MB"


def test_what_the_commit_changed_comes_first(opened: Callable[[ix.Table], Explorer]) -> None:
    s = ix.empty({"id": "long"}, seed=5, flush_data_files=200)
    s.append(files=104, rows=10)
    s.append(files=2, rows=10)
    widget = opened(s.table)
    assert s.table.snapshot is not None
    number = s.table.snapshot.snapshot_id
    children = widget.nodes[f"root:{number}"]["children"]
    assert children[-1] == f"more:root:{number}" and len(children) == 101
    assert children[:3] == [f"file:{number}:{row}" for row in (104, 105, 0)], "added ones, then the others in order"
    assert [widget.nodes[i]["marks"] for i in children[:3]] == [["added"], ["added"], ["carried"]]
    unfold(widget, f"more:root:{number}")
    every = widget.nodes[f"root:{number}"]["children"]
    assert (len(every), len(set(every))) == (106, 106), "each once"


def test_what_more_stands_for_is_cells_of_nodes() -> None:
    from dataclasses import replace

    from iceexplore.widgets.tree import _forest

    table = ix.sample("trips")
    assert table.snapshot is not None
    forest = _forest.Forest(table.state)
    at = f"root:{table.snapshot.snapshot_id}"
    every = forest.tree.children(at, changed_first=True)
    view = _forest.View(table.snapshot.snapshot_id, tuple(_forest.first_expanded(table.snapshot.snapshot_id)))
    more = forest.grow(replace(view, limits={at: 1})).nodes[f"more:{at}"]
    cells = more["cells"]
    assert more["label"] == f"+{len(every) - 1} more"
    for node, kind, row, shade in zip(every[1:], cells["kinds"], cells["rows"], cells["shades"], strict=True):
        assert cells["names"][int(kind)] == node.kind
        assert f"manifest:{cells['below']}:{row}" == node.id
        assert int(shade) == 0, "smaller than 10 kB"
    assert json.dumps(more)
