"""Problems as they are met, each with its node."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore._samples import sample_path
from iceexplore.errors import problem
from iceexplore.widgets import Explorer, Problems
from tests.helpers.hostile import HOSTILE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the sample, to be damaged."""
    path = tmp_path / "trips"
    shutil.copytree(Path(sample_path("trips")), path)
    return path


def manifests(table: ix.Table) -> list[str]:
    root = table.state.root()
    assert root is not None
    return [str(place) for place in root.entries["location"].to_pylist()]


def file_of(folder: Path, location: str) -> Path:
    return next(folder.rglob(location.rpartition("/")[2]))


WORDS = {"error": "error", "warning": "warning", "info": "note"}


def items(widget: Problems) -> list[dict[str, Any]]:
    return [item for group in widget.problems["groups"] for item in group["items"]]


def test_nothing_is_wrong_in_what_has_been_read(show: Any) -> None:
    table = ix.sample("trips")
    widget = show(Problems, table)
    total = len(manifests(table))
    assert widget.problems == {
        "counts": {"error": 0, "warning": 0, "info": 0}, "groups": [], "read": 0, "manifests": total,
        "covered": f"0 of {total} manifests of this snapshot read", "left": "Read all",
        "nothing": f"Not checked yet: 0 of {total} manifests read.",
        "sums": {name: f"{word}s: not checked" for name, word in WORDS.items()},
    }  # fmt: skip
    widget.read_all += 1
    assert widget.settle(60)
    assert (widget.problems["read"], widget.problems["groups"]) == (total, [])
    assert widget.problems["sums"] == {name: f"0 {word}s" for name, word in WORDS.items()}, "now it is known"
    assert widget.problems["nothing"].startswith("No problems in this snapshot's metadata, which has been read")
    assert widget.problems["left"] == ""
    assert widget.busy == ""


def test_a_missing_manifest_list_is_reported_at_once(folder: Path, show: Any) -> None:
    """Listing the problems reads the list: what that meets is among them."""
    snapshot = ix.open(folder).snapshot
    assert snapshot is not None
    file_of(folder, str(snapshot.root_location)).unlink()
    widget = show(Problems, ix.open(folder))
    assert widget.problems["counts"]["error"] == 1
    assert (widget.problems["read"], widget.problems["manifests"]) == (0, None)
    assert widget.problems["covered"] == "this snapshot's list of manifests cannot be read"
    assert widget.problems["left"] == ""
    [item] = items(widget)
    assert item["actions"][0]["selection"]["node"] == f"root:{snapshot.snapshot_id}"
    assert "cannot be read" in widget._repr_mimebundle_()[0]["text/html"]
    widget.read_all += 1
    assert widget.settle(60)
    assert items(widget) == [item]


def test_a_missing_manifest_has_its_node(folder: Path, show: Any) -> None:
    gone = manifests(ix.open(folder))[1]
    file_of(folder, gone).unlink()
    table = ix.open(folder)
    widget = show(Problems, table)
    assert widget.problems["groups"] == [], "nobody has looked yet"
    widget.read_all += 1
    assert widget.settle(60)
    (item,) = items(widget)
    assert widget.problems["counts"]["error"] == 1
    assert widget.problems["groups"][0]["code"] == "file-missing"
    assert item["where"] == gone
    (action,) = item["actions"]
    assert table.tree().node(action["selection"]["node"]).location == gone
    root = table.state.root()
    assert root is not None
    since = table.metadata.snapshot(root.entries["snapshot_id"][1].as_py())
    assert since is not None
    assert item["since"].startswith(f"First referenced by snapshot {since.snapshot_id} ({since.operation}, 2026-")
    widget.selection = {**widget.selection, **action["selection"]}
    assert widget.settle(60)
    assert widget.selected["where"].tolist() == [gone]
    assert widget.found_problems["node"].tolist() == [action["selection"]["node"]]
    again = show(Problems, table)
    assert [i["id"] for i in items(again)] == [item["id"]], "the id is of the problem, not of the widget"


def test_it_grows_while_others_read(folder: Path, show: Any) -> None:
    gone = manifests(ix.open(folder))[0]
    file_of(folder, gone).write_bytes(b"Obj\x01 no more")
    table = ix.open(folder)
    explorer = show(Explorer, table)
    widget = show(Problems, table, selection=explorer)
    chosen = next(i for i, node in explorer.nodes.items() if (node["tooltip"] or "").startswith(gone))
    explorer.expanded = [*explorer.expanded, chosen]
    assert explorer.settle(60)
    widget.select(chosen)
    assert widget.settle(60)
    assert items(widget)[0]["actions"][0]["selection"]["node"] == chosen


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("{metadata}", "metadata"),
        ("{table}#snapshot {snapshot}", "snapshot"),
        ("{table}#schema 3", "metadata"),
        ("{root}", "manifest-list"),
        ("{root}#entry 1", "manifest"),
        ("{manifest}", "manifest"),
        ("{manifest}#entry 0", "file"),
        ("{file}", "file"),
        ("{old}", "manifest-list"),
        ("s3://elsewhere/x.avro#entry 99999999999999", None),
    ],
)
def test_every_kind_of_place(show: Any, where: str, kind: str | None) -> None:
    table = ix.sample("trips")
    state = table.state
    root, old = state.root(), state.root(table.snapshots[0])
    assert root is not None
    assert old is not None
    leaf = state.reader.leaf(root, 0)
    file = leaf.entries["location"][0].as_py()
    named = {
        "metadata": state.metadata_location, "table": state.metadata.location, "root": root.location,
        "manifest": leaf.location, "file": file, "old": old.location, "snapshot": table.snapshots[3].snapshot_id,
    }  # fmt: skip
    state.problems.add(problem("file-corrupt", where.format(**named), "made up"))
    widget = show(Problems, table)
    (item,) = items(widget)
    if kind is None:
        assert item["actions"] == []
        return
    node = table.tree().node(item["actions"][0]["selection"]["node"])
    assert node.kind.endswith(kind)
    if kind in ("file", "manifest"):
        row = 1 if "root" in where else 0
        assert node.location == (file if kind == "file" else root.entries["location"][row].as_py())
    if where == "{old}":
        assert item["actions"][0]["selection"]["snapshot"] == str(table.snapshots[0].snapshot_id)
    widget.selection = {**widget.selection, **{k: v for k, v in item["actions"][0]["selection"].items() if v}}
    assert widget.settle(60)
    assert widget.error == {}


def test_v4_problems_have_nodes(show: Any) -> None:
    s = ix.empty({"a": "long"}, format_version=4)
    s.append(files=3, rows=10)
    table = s.table
    root = table.state.root()
    assert root is not None
    table.state.problems.add(problem("file-corrupt", f"{root.location}#entry 0", "made up"))
    table.state.problems.add(problem("file-missing", root.entries["location"][0].as_py(), "made up"))
    widget = show(Problems, table)
    for item in items(widget):
        node = table.tree().node(item["actions"][0]["selection"]["node"])
        assert node.id.startswith(("file:", "manifest:"))
        assert node.location == root.entries["location"][0].as_py()


def test_thousands_of_problems_and_names_that_would_be_code(show: Any) -> None:
    table = ix.sample("trips")
    for i in range(5_000):
        table.state.problems.add(problem("value-undecodable", f"s3://x/{i}", "text", found=i))
    for name in HOSTILE.values():
        table.state.problems.add(problem("file-missing", name, name, found=name, field=name))
    widget = show(Problems, table)
    assert widget.problems["counts"]["warning"] == 5_000
    sent = {g["code"]: (g["count"], len(g["items"])) for g in widget.problems["groups"]}
    assert sent["value-undecodable"] == (5_000, 50)
    more = {g["code"]: g["more"] for g in widget.problems["groups"]}
    assert more["value-undecodable"].startswith("and 4,950 more: ") and more["file-missing"] == ""
    assert widget.problems["groups"][0]["severity"] == "error"
    text = json.dumps(widget.problems)
    text.encode()
    assert len(text) < 500_000
    assert "\u202e" not in text
    assert len(widget.found_problems) == 5_000 + len(set(HOSTILE.values()))


def test_reading_all_can_be_cancelled(show: Any) -> None:
    s = ix.empty({"a": "long"}, format_version=2)
    for _ in range(12):
        s.append(files=1, rows=10)
    table = s.table
    widget = show(Problems, table)
    before = widget.answered
    widget.read_all += 1
    assert widget.busy.startswith("Reading manifests")
    widget.cancelled += 1
    assert widget.settle(60)
    assert widget.busy == ""
    assert widget.answered > before
    assert widget.problems["read"] < widget.problems["manifests"] == 12


def test_problems_are_listed_though_somebody_cancelled() -> None:
    widget = Problems(ix.sample("trips"))
    widget.cancelled += 1
    assert widget.settle(60)
    assert widget.problems["manifests"] == 4
    widget.close()


def test_no_snapshot(show: Any) -> None:
    widget = show(Problems, ix.empty({"a": "long"}))
    assert (widget.problems["manifests"], widget.problems["groups"]) == (0, [])
    assert (widget.problems["covered"], widget.problems["left"]) == ("there is no snapshot", "")
    assert widget.problems["nothing"].startswith("No problems in the table's metadata file")
    widget.read_all += 1
    assert widget.settle(60)
    assert widget.error == {}
