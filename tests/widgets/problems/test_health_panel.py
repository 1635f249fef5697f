"""The figures of the tab Health: when they are made, what their bars lead to, and what saved pages have of them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import IceexploreError
from iceexplore.widgets import Explorer, Problems
from iceexplore.widgets.detail._table_views import shown_columns
from iceexplore.widgets.grid._panel import GridPanel
from iceexplore.widgets.problems import _health_panel
from iceexplore.widgets.problems._health_blocks import health_blocks
from tests.doctor.test_health import with_positions
from tests.helpers.hostile import HOSTILE

#: The tabs of any saved page.
PARTS = [["tree", "Tree"], ["files", "Files"], ["rows", "Rows"], ["scan", "Scan"]]


def ask(widget: Any, do: str, **more: str) -> list[Any]:
    widget.health_asked = {"n": widget.health_asked.get("n", 0) + 1, "do": do, **more}
    assert widget.settle(60)
    blocks: list[Any] = widget.health.get("blocks", [])
    return blocks


def parts(blocks: Any, kind: str) -> list[list[Any]]:
    """Return all parts of a kind, wherever they are."""
    if not isinstance(blocks, list):
        return []
    own = [blocks] if blocks and blocks[0] == kind else []
    return own + [part for one in blocks for part in parts(one, kind)]


def click(widget: Any, part: list[Any]) -> None:
    """Set the traits of a link as the browser does."""
    traits = dict(part[2])
    with widget.hold_trait_notifications():
        if "selection" in traits:
            widget.selection = {**widget.selection, **traits.pop("selection")}
        if "query" in traits:
            n = max(2**40, widget.query.get("detail", {}).get("n", 0), widget.pages.get("detail", {}).get("n", 0)) + 1
            widget.query = {**widget.query, "detail": {**traits.pop("query"), "n": n}}
        for name, value in traits.items():
            setattr(widget, name, value)
    assert widget.settle(60)


def test_they_are_made_when_they_are_first_shown() -> None:
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)
    assert (widget.health, widget.table_health) == ({}, None)
    blocks = ask(widget, "look")
    assert blocks[0] == ["h3", ["1 figure needs attention"]]
    assert [b[1][-1] for b in blocks if b[0] == "h"][-1] == "Not checked"
    assert len(parts(blocks, "table")) == 5
    assert widget.table_health is not None
    assert widget.table_health.gain_known("sizes")
    made = widget.table_health
    ask(widget, "look")
    assert widget.table_health is made, "they are not made again"
    assert widget.busy == ""
    widget.close()


def test_figures_are_shown_before_gains_are_planned() -> None:
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)
    seen: list[tuple[list[Any], bool]] = []
    note = ["advice", ["Computing what a rewrite would gain …"]]

    def shown(change: Any) -> None:
        health = widget.table_health
        seen.append((change["new"]["blocks"], health is not None and health.gain_known("sizes")))

    widget.observe(shown, "health")
    last = ask(widget, "look")
    first, planned = seen[0]
    assert not planned
    assert first.count(note) == 4
    assert len(parts(first, "table")) == 5
    assert note not in last
    assert "CALL " in json.dumps(last)
    assert seen[-1] == (last, True)
    widget.close()


def test_gains_that_are_not_planned_any_more_are_offered() -> None:
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)

    widget.health_asked = {"n": 1, "do": "look"}
    while not widget.health:
        widget._host.work.deliver()
    assert "Computing" in json.dumps(widget.health["blocks"])
    widget.cancelled += 1
    assert widget.settle(60)
    blocks = widget.health["blocks"]
    offers = [part for part in parts(blocks, "set") if part[1] == "What would a rewrite gain?"]
    assert "Computing" not in json.dumps(blocks)
    assert offers
    click(widget, offers[0])
    assert "CALL " in json.dumps(widget.health["blocks"])
    assert "What would a rewrite gain?" not in json.dumps(widget.health["blocks"]), "the others are planned, too"
    widget.close()


def test_bars_lead_to_the_rows_they_count() -> None:
    widget = Explorer(ix.sample("trips"), tab="problems")
    blocks = ask(widget, "look")
    links = {part[1]: part for part in parts(blocks, "set")}
    click(widget, links["2 KiB to 4 KiB"])
    page = widget.pages["detail"]
    assert (widget.tab, page["table"], page["total"], page["whole"]) == ("tree", "files", 11, 22)
    assert len(widget.query["detail"]["filters"]) == 3
    click(widget, links["up to 10 % of rows deleted"])
    assert (widget.tab, widget.file_color) == ("files", "deletes")
    click(widget, links["trip_id"])
    assert (widget.tab, widget.scan_filter) == ("scan", "trip_id is not null")
    assert widget.scan_range["column"] == "trip_id"
    manifest = next(text for text in links if text.endswith("-m0.avro"))
    click(widget, links[manifest])
    assert str(widget.selected.location).endswith(manifest)
    there = [part for part in parts(blocks, "set") if part[1] == "Show them"]
    click(widget, there[2])
    assert (widget.pages["detail"]["table"], widget.pages["detail"]["total"]) == ("manifests", 4)
    click(widget, there[3])
    page = widget.pages["detail"]
    at = page["columns"].index(next(c for c in page["columns"] if c["name"] == "total_data_file_size_in_bytes"))
    assert (page["table"], page["sort"]) == ("partitions", [at, "desc"])
    widget.close()


def brute_force(label: str, task: Any, records: dict[str, int]) -> bool:
    """Return whether a task of a plan is in a group, by the group's name and the rows of delete files."""
    gone = sum(records[path] for path in task["position_deletes"])
    if isinstance(task["deletion_vector"], str):
        gone = task["deleted_rows"]
    share = gone / task["rows"]
    groups: dict[str, bool] = {
        "with a deletion vector": isinstance(task["deletion_vector"], str),
        "with position delete files": bool(len(task["position_deletes"])),
        "with equality delete files": bool(len(task["equality_deletes"])),
        "with 2 to 4 deletes": 2 <= task["deletes"] < 5,
        "with 5 deletes or more": task["deletes"] >= 5,
        "up to 10 % of rows deleted": task["deletes"] > 0 and share <= 0.1,
        "10 to 30 % of rows deleted": 0.1 < share < 0.3,
        "30 % of rows deleted or more": share >= 0.3,
    }
    return groups[label]


@pytest.mark.parametrize("name", ["trips", "delta", "positions"])
def test_bars_of_deletes_lead_to_exactly_their_files(tmp_path: Path, name: str) -> None:
    t = with_positions(tmp_path, 5, 7) if name == "positions" else ix.sample(name)
    widget = Explorer(t, tab="problems")
    links = {part[1]: part for part in parts(ask(widget, "look"), "set")}
    tasks = t.plan().tasks.to_dict("records")
    records = {row["file_path"]: row["record_count"] for row in t.inspect.files.arrow().to_pylist()}
    bars = t.health()["deletes"].bars
    assert len(bars) >= 3
    for bar in bars:
        click(widget, links[bar.label])
        found = widget.file_map
        assert (widget.tab, found["filter"], found["of"]) == ("files", bar.label, widget.selection["snapshot"])
        places = [
            f"{manifest}:{row}" if manifest >= 0 else str(row)
            for manifest, row in zip(found["manifest"], found["row"], strict=True)
        ]
        paths = {t.tree().node(f"file:{found['of']}:{place}").location for place in places}
        assert paths == {task["file_path"] for task in tasks if brute_force(bar.label, task, records)}
        assert {label for label, _, cells in found["groups"] if not cells} == set(), "no empty partitions"
    widget.file_filter = ""
    assert widget.settle(60)
    assert len(widget.file_map["kinds"]) > len(places), "all files again"
    widget.file_filter = "with luck"
    assert widget.settle(60)
    assert "choose one of with deletes" in widget.error["text"]
    widget.close()


@pytest.mark.parametrize("name", ["trips", "delta", "alike"])
def test_bars_of_partitions_lead_to_exactly_their_rows(tmp_path: Path, name: str) -> None:
    if name == "alike":
        t: Any = ix.create(tmp_path / "t", {"id": "long", "k": "string"}, partition_by="k").simulate()
        values = ["a", "A", None, 'say "x"', "< 5"]
        t.append(
            [
                {"location": f"{n}.parquet", "record_count": 1, "file_size_in_bytes": 9 + n, "partition": {"k": value}}
                for n, value in enumerate(values)
            ]
        )
    else:
        t = ix.sample(name)
    widget = Explorer(t, tab="problems")
    links = [part for part in parts(ask(widget, "look"), "set") if part[1] == "show"]
    bars = t.health()["partitions"].bars
    assert len(links) == len(bars) > 1
    for bar, link in zip(bars, links, strict=True):
        click(widget, link)
        page = widget.pages["detail"]
        assert (page["table"], page["total"]) == ("partitions", 1), bar.label
        row = dict(zip((column["name"] for column in page["columns"]), page["rows"][0], strict=False))
        numbers = (row["total_data_file_size_in_bytes"], row["file_count"])
        assert [float(str(n).replace(",", "")) for n in numbers] == [v[0] for v in bar.values if v]
    widget.close()


def test_filters_name_the_columns_that_the_grid_has() -> None:
    widget = Explorer(ix.sample("trips"))
    assert widget.settle(60)
    assert widget.snapshot is not None
    node = f"snapshot:{widget.snapshot.snapshot_id}"
    for key in ("files", "manifests", "partitions"):
        table = widget._panel(GridPanel).table("detail", node, key)
        assert tuple(shown_columns(widget._host.state, key)) == table.names
    widget.close()


def test_a_table_of_its_own_asks_first_and_has_no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_health_panel, "_CHEAP_BYTES", 10)
    widget = Problems(ix.sample("trips"))
    assert widget.settle(60)
    before = len(widget._host.state.storage.reads)
    blocks = ask(widget, "look")
    ((_, text, traits),) = parts(blocks, "set")
    assert text == "Read 4 manifests (35.0 KiB)"
    assert len(widget._host.state.storage.reads) == before
    widget.health_asked = traits["health_asked"]
    assert widget.settle(60)
    assert len(parts(widget.health["blocks"], "table")) == 5
    assert parts(widget.health["blocks"], "set") == []
    widget.close()


def test_a_large_table_has_its_gains_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.doctor.figures._health.FEW_FILES", 3)
    widget = Explorer(ix.sample("trips"), tab="problems")
    blocks = ask(widget, "look")
    asks = [part for part in parts(blocks, "set") if "health_asked" in part[2]]
    assert [part[1] for part in asks] == ["What would a rewrite gain?"] * 3 + ["Measure clustering"]
    assert parts(blocks, "code") == []
    click(widget, asks[0])
    assert len(parts(widget.health["blocks"], "code")) == 1
    click(widget, next(p for p in parts(widget.health["blocks"], "set") if p[1] == "Measure clustering"))
    assert "Clustering" in [b[1][-1] for b in widget.health["blocks"] if b[0] == "h"]
    assert not [p for p in parts(widget.health["blocks"], "set") if p[1] == "Measure clustering"]
    widget.close()


def test_manifests_are_counted_while_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.storage._progress.INTERVAL", 0.0)
    monkeypatch.setattr("iceexplore.manifests._reader._FEW", 0)  # small manifests are read without counting
    lab = ix.create(tmp_path / "t", {"id": "long"}).simulate()
    for number in range(20):
        lab.append([{"location": f"data/{number}.parquet", "record_count": 1, "file_size_in_bytes": 9}])
    widget = Problems(lab)
    assert widget.settle(60)
    steps: list[str] = []
    widget.observe(lambda change: steps.append(change["new"]), "busy")
    ask(widget, "look")
    assert "Reading the manifests: 20 of 20 …" in steps
    assert "Measuring clustering …" in steps
    widget.close()


def test_what_the_browser_may_not_ask() -> None:
    widget = Problems(ix.sample("trips"))
    ask(widget, "sweep")
    assert "choose 'look'" in widget.error["text"]
    ask(widget, "gain", of="rows")
    assert "choose 'look'" in widget.error["text"]
    widget.close()


def test_a_damaged_manifest_is_stated(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"})
    for value in range(3):
        lab.append([{"id": value}])
    path = Path(lab.inspect.manifests.arrow()["path"][0].as_py().removeprefix("file:"))
    os.truncate(path, 40)
    widget = Explorer(ix.open(tmp_path / "t"), tab="problems")
    blocks = ask(widget, "look")
    text = json.dumps(blocks)
    assert widget.error == {}
    assert text.count("Incomplete: 1 manifest cannot be read.") == 4
    assert "cannot be read" in text
    assert "No rewrite can be planned" in text
    assert blocks[2][0] == "advice" and "Files may be missing from the figures: " in json.dumps(blocks[2])
    assert "may be missing" not in json.dumps(blocks[-1]), "the list of what was not checked"
    widget.close()


@pytest.mark.parametrize("name", ["trips", "delta"])
def test_hostile_names_are_shown_as_text(tmp_path: Path, name: str) -> None:
    hostile = HOSTILE["bidi"] if "bidi" in HOSTILE else next(iter(HOSTILE.values()))
    lab = ix.create(tmp_path / "t", {"id": "long", "k": "string"}, partition_by="k")
    t = lab.simulate()
    t.append([{"location": "data/1.parquet", "record_count": 1, "file_size_in_bytes": 9, "partition": {"k": hostile}}])
    for table in (t, ix.sample(name)):
        text = json.dumps(health_blocks(table.health(), "all", 1), ensure_ascii=False)
        text.encode()
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08]", text)


def saved(page: Path) -> dict[str, Any]:
    block = re.search(r'<script type="application/json" id="ice-data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert block
    traits: dict[str, Any] = json.loads(block[1])["traits"]
    return traits


def test_a_saved_page_has_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = Explorer(ix.sample("trips"))
    traits = saved(widget.save_html(tmp_path / "a.html", redact=False).path)
    assert traits["parts"] == [*PARTS, ["problems", "Health"]]
    blocks = traits["health"]["blocks"]
    assert "health_asked" not in traits, "which would need Python"
    assert {part[2]["tab"] for part in parts(blocks, "set")} == {"tree"}, "the page has no other tab to go to"
    assert len(parts(blocks, "code")) == 2
    text = (tmp_path / "a.html").read_text()
    assert "start_station_bucket_2=1" in text
    for redact in (["values"], True):
        page = widget.save_html(tmp_path / "b.html", redact=redact, overwrite=True).path
        shown = json.dumps(saved(page)["health"]["blocks"])
        assert "12 of 12 data files are smaller" in shown
        assert "bucket_2=1" not in shown
        assert "2024-04" not in shown
        assert "bikes" not in shown
        assert "-m0.avro" not in shown
    monkeypatch.setattr(_health_panel, "_CHEAP_BYTES", 10)
    other = Explorer(ix.sample("trips"))
    assert saved(other.save_html(tmp_path / "c.html").path)["parts"] == PARTS, "not read for the page"
    ask(other, "read")
    assert saved(other.save_html(tmp_path / "c.html", overwrite=True).path)["health"]["blocks"]
    for one in (widget, other):
        one.close()


def test_without_a_kernel() -> None:
    widget = Problems(ix.sample("trips"))
    ask(widget, "look")
    html = widget._no_kernel_html()
    assert "12 of 12 data files are smaller" in html
    assert "<svg" not in html
    widget.close()
    assert widget.table_health is None


def test_an_error_leaves_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    widget = Problems(ix.sample("trips"))

    def fails(*_: object) -> None:
        raise IceexploreError("no root")

    monkeypatch.setattr("iceexplore.doctor.metadata_size", fails)
    ask(widget, "look")
    assert widget.error["text"] == "no root"
    monkeypatch.undo()
    assert ask(widget, "look")
    assert widget.error == {}
    widget.close()
