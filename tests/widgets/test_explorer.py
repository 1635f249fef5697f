"""The explorer's Python side: plain traits that say everything, and no error passed over in silence."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.storage import CACHE, progress
from iceexplore.widgets import Explorer, explore
from iceexplore.widgets.core._bundle import LOADER, script, style_sheet
from iceexplore.widgets.core._worker import Work
from iceexplore.widgets.grid._cells import cell
from iceexplore.widgets.grid._page import page_of
from iceexplore.widgets.grid._table import FrameTable
from iceexplore.widgets.tree._forest import short
from iceexplore.widgets.tree._panel import TreePanel

SYNCED = (
    "title", "badges", "styles", "snapshots", "selection", "nodes", "roots", "expanded",
    "detail", "query", "pages", "busy", "error", "answered", "cancelled",
)  # fmt: skip


@pytest.fixture
def table() -> ix.Table:
    return ix.sample("trips")


@pytest.fixture
def widget(table: ix.Table) -> Iterator[Explorer]:
    made = explore(table)
    assert made.settle(60)
    yield made
    made.close()


def state_of(widget: Explorer) -> dict[str, Any]:
    return {name: getattr(widget, name) for name in SYNCED}


def manifest(widget: Explorer, kind: str = "data-manifest") -> str:
    found: str = next(i for i, node in widget.nodes.items() if node["kind"] == kind)
    return found


def test_starts_at_the_current_snapshot(table: ix.Table, widget: Explorer) -> None:
    assert table.snapshot is not None
    assert widget.selection["snapshot"] == str(table.snapshot.snapshot_id)
    assert widget.selection["node"] == f"snapshot:{table.snapshot.snapshot_id}"
    assert widget.selected.kind == "snapshot"
    assert [s["id"] for s in widget.snapshots] == [str(s.snapshot_id) for s in table.snapshots]
    kinds = [node["kind"] for node in widget.nodes.values()]
    assert kinds.count("snapshot") == 1
    assert "data-manifest" in kinds
    assert not any(kind.endswith("file") and kind != "metadata" for kind in kinds)
    assert widget.busy == ""
    assert widget.error == {}


def test_state_is_plain_json(widget: Explorer) -> None:
    for node in (manifest(widget), "table"):
        widget.select(node)
        assert widget.settle(60)
        text = json.dumps(state_of(widget), allow_nan=False)
        assert json.loads(text) == state_of(widget)
        numbers: list[int] = []
        json.loads(text, parse_int=lambda digits: numbers.append(int(digits)))
        assert max(map(abs, numbers)) < 2**53, "JavaScript would lose digits"


def test_opening_reads_the_manifests_of_the_last_commit_alone(table: ix.Table) -> None:
    CACHE.clear()
    made = Explorer(table)
    assert made.settle(60)
    assert made.pages["detail"]["table"] == "changes"
    read = {read.location for read in table.reads if read.kind == "manifest"}
    made.close()
    assert table.snapshot is not None and table.snapshot.parent_snapshot_id is not None
    changed = table.diff(table.snapshot.parent_snapshot_id).manifests
    assert read == set(changed.loc[changed["change"] != "carried over", "location"])


def test_opening_reads_no_manifest_of_a_commit_with_many_files(
    table: ix.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iceexplore.widgets.changes._counted._MOST_ENTRIES", 1)
    made = Explorer(table)
    assert made.settle(60)
    assert made.pages["detail"]["table"] == "manifests"
    first = {read.kind for read in table.reads}
    assert first <= {"metadata", "manifest-list", "stat", "list"}
    made.query = {"detail": {"of": made.selection["node"], "table": "changes", "n": 1}}
    assert made.settle(60)
    assert made.pages["detail"]["table"] == "changes", "on request"
    made.close()


def test_unfolding_a_manifest_shows_its_files(widget: Explorer) -> None:
    chosen = manifest(widget)
    assert widget.nodes[chosen]["children"] is None
    widget.expanded = [*widget.expanded, chosen]
    assert widget.settle(60)
    children = widget.nodes[chosen]["children"]
    assert children
    assert {widget.nodes[c]["kind"] for c in children} == {"data-file"}
    assert all(widget.nodes[c]["leaf"] for c in children)
    before = widget.nodes
    widget.expanded = [i for i in widget.expanded if i != chosen]
    assert widget.settle(60)
    assert widget.nodes == before, "what has been read stays, so folding and unfolding again asks for nothing"


def test_the_entries_of_a_manifest(widget: Explorer) -> None:
    widget.select(manifest(widget))
    assert widget.settle(60)
    assert widget.error == {}
    assert widget.pages["detail"]["table"] == "leaf"
    frame = widget.selected_table
    assert frame is not None
    assert widget.pages["detail"]["total"] == len(frame) > 0
    columns = [c["name"] for c in widget.pages["detail"]["columns"]]
    assert columns[:5] == ["file", "status", "content", "partition", "record_count"]
    assert "location" in columns[len(widget.pages["detail"]["shown"]) :], "under Columns"
    assert [row[0] for row in widget.pages["detail"]["rows"]] == [path.rsplit("/")[-1] for path in frame["location"]]
    assert set(frame["status"]) <= {"ADDED", "EXISTING", "DELETED"}


def test_the_columns_of_a_file(widget: Explorer) -> None:
    chosen = manifest(widget)
    widget.expanded = [*widget.expanded, chosen]
    assert widget.settle(60)
    widget.select(widget.nodes[chosen]["children"][0])
    assert widget.settle(60)
    frame = widget.selected_table
    assert frame is not None
    trip = frame[frame["column"] == "trip_id"].iloc[0]
    assert trip["type"] == "long"
    assert trip["lower"] <= trip["upper"]
    assert trip["value_count"] == dict(widget.detail["facts"])["record_count"] or trip["value_count"] > 0


@pytest.mark.parametrize("kind", ["snapshot", "table", "metadata", "manifest-list"])
def test_every_table_of_every_kind(widget: Explorer, kind: str) -> None:
    widget.select(next(i for i, node in widget.nodes.items() if node["kind"] == kind))
    assert widget.settle(60)
    assert widget.detail["tables"]
    for number, tab in enumerate(widget.detail["tables"], 1):
        widget.query = {"detail": {"n": number, "of": tab["of"], "table": tab["key"], "page": 0}}
        assert widget.settle(60)
        assert widget.error == {}, tab
        assert (widget.pages["detail"]["n"], widget.pages["detail"]["table"]) == (number, tab["key"])
        if tab["key"] == "json":
            json.loads(widget.pages["detail"]["text"])
            continue
        frame = widget.selected_table
        assert frame is not None
        assert widget.pages["detail"]["total"] == len(frame)


def test_another_snapshot(widget: Explorer) -> None:
    first = widget.snapshots[0]["id"]
    widget.select(next(i for i in widget.nodes if i.startswith("root:")))
    assert widget.settle(60)
    widget.select(snapshot=first)
    assert widget.settle(60)
    assert widget.error == {}
    assert widget.selection["node"] == f"root:{first}"
    assert {i.split(":")[1] for i in widget.nodes if i.startswith("manifest:")} == {first}
    assert widget.pages["detail"]["of"] == f"root:{first}"


def test_a_carried_manifest_stays_selected(widget: Explorer) -> None:
    carried = next(
        i for i, node in widget.nodes.items() if node["kind"] == "data-manifest" and "carried" in node["marks"]
    )
    widget.select(carried)
    location = widget.selected.location
    widget.select(snapshot=widget.snapshots[-2]["id"])
    assert widget.settle(60)
    assert widget.selection["node"] != carried
    assert widget.selected.location == location


def test_the_newest_request_wins(widget: Explorer) -> None:
    for snapshot in widget.snapshots:
        widget.select(snapshot=snapshot["id"])
    assert widget.settle(60)
    assert {i.split(":")[1] for i in widget.nodes if i.startswith("root:")} == {widget.snapshots[-1]["id"]}


def test_earlier_metadata_files_unfold(widget: Explorer, table: ix.Table) -> None:
    assert "more:log" in widget.nodes
    widget.expanded = [*widget.expanded, "more:log"]
    assert widget.settle(60)
    assert sum(n["kind"] == "metadata" for n in widget.nodes.values()) == 1 + len(table.metadata.metadata_log)
    assert "more:log" not in widget.expanded


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("selection", {"snapshot": "17", "node": "table"}),
        ("selection", {"snapshot": "x"}),
        ("selection", {"node": "manifest:1:2"}),
        ("selection", {"node": "<img src=x onerror=alert(1)>"}),
        ("query", {"detail": {"n": 1, "of": "table", "table": "no such table", "page": 0}}),
        ("query", {"detail": {"n": 1, "of": "table", "table": ["files"], "page": 0}}),
        ("query", {"detail": {"n": 1, "of": "table", "table": "files", "page": "0"}}),
    ],
)
def test_nonsense_from_the_browser_is_shown(widget: Explorer, trait: str, value: Any) -> None:
    answered = widget.answered
    setattr(widget, trait, {**widget.selection, **value} if trait == "selection" else value)
    assert widget.settle(60)
    assert widget.error["text"]
    assert "bug in iceexplore" not in widget.error["advice"]
    assert widget.busy == ""
    assert widget.answered > answered
    widget.select("table")
    assert widget.settle(60)
    assert widget.error == {}, "the next answer takes the error away"


def test_an_error_while_reading_is_shown(widget: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("iceexplore.widgets.detail._node_of_state.load_table", broken)
    widget.select(manifest(widget))
    assert widget.settle(60)
    assert widget.error["text"] == "ZeroDivisionError: on purpose"
    assert "bug in iceexplore" in widget.error["advice"]
    assert widget.detail["kind"] == "data-manifest", "what could be read is shown"


def test_a_missing_manifest_is_a_problem_in_the_pane(tmp_path: Path) -> None:
    import shutil

    from iceexplore._samples import sample_path

    source = Path(sample_path("trips"))
    folder = tmp_path / "trips"
    if source.is_dir():
        shutil.copytree(source, folder)
    else:
        shutil.unpack_archive(source, folder)
    whole = Explorer(ix.open(folder))
    wanted = Path(whole._panel(TreePanel).forest.node(manifest(whole)).location or "").name
    whole.close()
    for path in folder.rglob(wanted):
        path.unlink()
    widget = Explorer(ix.open(folder))
    words = [words for _, words in widget.parts]
    assert words == ["Tree", "Files", "Rows", "Scan", "Simulate", "Health", "Deletes"]
    chosen = manifest(widget)
    widget.expanded = [*widget.expanded, chosen]
    widget.select(chosen)
    assert widget.settle(60)
    assert [p["severity"] for p in widget.detail["problems"]] == ["error"]
    assert "missing" in widget.detail["problems"][0]["title"]
    assert ["problems", "Health (1)"] in widget.parts
    widget.close()


def test_without_a_kernel_there_is_html(widget: Explorer, table: ix.Table) -> None:
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "trips" in data["text/html"]
    first, _, card = data["text/plain"].partition("\n\n")  # what a terminal shows
    assert first.startswith("Explorer is a widget") and "JupyterLab" in first
    assert card == repr(table)
    for stripped in ("<style", "<script", "<svg", "onclick"):
        assert stripped not in data["text/html"]


def test_only_tables(table: ix.Table) -> None:
    made = Explorer(table.state)
    assert made.title == "trips"
    made.close()
    with pytest.raises(ix.OptionError, match=r"ix\.open"):
        Explorer("trips")


def test_assets_are_small_and_fetch_nothing() -> None:
    module = gzip.decompress(Explorer.view_script).decode()
    css = style_sheet()
    assert module.startswith(script("explorer.explorerView").partition("\nexport default")[0])
    assert "http" not in LOADER
    assert "import{" not in module
    assert "//" not in module.replace("http://www.w3.org/2000/svg", "")
    assert module.count("export") == 1
    assert module.count("await import(") == 1  # of a part's script, which is a trait's text: nothing is fetched
    module = module.replace("import(URL.createObjectURL(", "")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "import("):
        assert word not in module
    assert "http" not in module.replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in css
    assert "@import" not in css


def test_cells_lose_nothing() -> None:
    frame = pd.DataFrame(
        {
            "id": pd.array([2**63 - 1, None], dtype="Int64"),
            "when": pd.to_datetime(pd.Series(["2024-01-01T00:00:00Z", None])),
            "blob": pd.Series([b"\x00\xff", None], dtype=object),
            "nested": pd.Series([{"a": [1, 2**60]}, None], dtype=object),
            "text": pd.Series(["\ud800<b>", ""], dtype=object),
        }
    )
    page = page_of(FrameTable(frame), 0)
    assert page["rows"] == [
        [str(2**63 - 1), "2024-01-01 00:00:00+00:00", "0x00ff", f'{{"a": [1, "{2**60}"]}}', "\\ud800<b>"],
        [None, None, None, None, ""],
    ]
    assert [c["right"] for c in page["columns"]] == [True, False, False, False, False]
    json.dumps(page).encode()


def test_pages() -> None:
    frame = pd.DataFrame({"n": range(120)})
    assert [page_of(FrameTable(frame), p, 50)["rows"][0] for p in (0, 1, 2)] == [["0"], ["50"], ["100"]]
    assert page_of(FrameTable(frame), 99, 50)["page"] == 2
    assert page_of(FrameTable(frame), -1, 50)["page"] == 0
    assert page_of(FrameTable(frame.head(0)), 0)["pages"] == 1
    assert cell("x" * 1000) == "x" * 299 + "…"


def test_short_labels_keep_what_tells_them_apart() -> None:
    assert short("ee1b7b11-de7c-4ec7-917e-5981d58b8cd6-m0.avro") == "ee1b…-m0.avro"
    assert short("Snapshot 7137812319701696493") == "Snapshot 7137…6493"
    assert short("v23.metadata.json") == "v23.metadata.json"


def test_work_delivers_on_its_owners_thread() -> None:
    failures: list[Exception] = []
    threads: dict[str, threading.Thread] = {}
    work = Work(failures.append, lambda: None)
    done = []

    def run() -> int:
        threads["run"] = threading.current_thread()
        return 7

    def show(value: int) -> None:
        threads["show"] = threading.current_thread()
        done.append(value)

    work.submit("a", run, show)
    assert work.settle(10)
    assert done == [7]
    assert threads["run"] is not threads["show"] is threading.current_thread()
    work.submit("a", lambda: 1 // 0, done.append)
    assert work.settle(10)
    assert [type(e) for e in failures] == [ZeroDivisionError]
    work.submit("a", run, lambda _: done.append(1 // 0))
    assert work.settle(10)
    assert len(failures) == 2, "an error while showing is reported as well"
    work.close()


def test_what_is_counted_while_reading_is_shown(widget: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.storage._progress.INTERVAL", 0)
    shown: list[str] = []
    widget.observe(lambda change: shown.append(change["new"]), "busy")

    def read() -> int:
        with progress(110, "manifests") as step:
            for _ in range(37):
                step()
        return 37

    widget._host.run("a", "Reading", read, lambda _: None)
    assert widget.settle(60)
    assert (shown[0], shown[37], shown[-1]) == ("Reading …", "Reading: 37 of 110 manifests …", "")
    widget._host.run("b", "Reading manifests", read, lambda _: None)
    assert widget.settle(60)
    assert "Reading manifests: 37 of 110 …" in shown


def test_work_drops_what_is_out_of_date() -> None:
    gate = threading.Event()
    work = Work(lambda error: pytest.fail(str(error)), lambda: None)
    shown: list[int] = []
    work.submit("a", lambda: gate.wait(10), lambda _: shown.append(0))
    work.submit("a", lambda: -1, shown.append)
    work.submit("a", lambda: 2, shown.append)
    gate.set()
    assert work.settle(10)
    assert shown == [2]
    work.close()


def test_work_in_a_running_loop_delivers_by_itself() -> None:
    import asyncio

    async def notebook() -> list[int]:
        shown: list[int] = []
        work = Work(lambda error: pytest.fail(str(error)), lambda: None)
        work.submit("a", lambda: 5, shown.append)
        for _ in range(200):
            if shown:
                break
            await asyncio.sleep(0.01)
        work.close()
        return shown

    assert asyncio.run(notebook()) == [5]
