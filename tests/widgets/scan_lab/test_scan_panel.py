"""The scan lab's Python side: its plan equals that of `Table.plan`, in plain traits."""

from __future__ import annotations

import gzip
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
import iceexplore.planning
from iceexplore.planning import node_evidence
from iceexplore.widgets import ScanLab
from iceexplore.widgets.core._bundle import script
from iceexplore.widgets.rows._stories import find_files
from iceexplore.widgets.scan_lab._panel import PlanTables, ScanPanel
from iceexplore.widgets.scan_lab._texts import python_of
from iceexplore.widgets.scan_lab._typing import FilterBoxPanel
from tests.doctor.test_health import with_equality

FILTER = "started_at >= '2024-05-01' and rider = 'guest'"
SCHEMA = ix.empty({"c": "string"}).schema
HOSTILE = "<img src=x onerror=alert(1)>"
SCAN = (
    "scan_filter", "scan_columns", "scan_row_groups", "scan_plan", "scan_nodes", "scan_roots", "scan_expanded",
    "scan_why", "scan_draft", "scan_hint", "scan_ask", "scan_examples", "scan_advice", "scan_count", "scan_recent",
    "scan_tab", "scan_reasons", "scan_view", "scan_range_of", "scan_range", "scan_picture", "selection", "pages",
    "busy", "error",
)  # fmt: skip


@pytest.fixture(scope="module")
def table() -> ix.Table:
    return ix.sample("trips")


@pytest.fixture
def lab(table: ix.Table) -> Iterator[ScanLab]:
    made = ScanLab(table, scan_filter=FILTER)
    assert made.settle(60)
    yield made
    made.close()


def settled(lab: ScanLab) -> ScanLab:
    assert lab.settle(60)
    assert lab.busy == ""
    return lab


def ask(lab: ScanLab, want: str, **more: Any) -> ScanLab:
    lab.scan_ask = {"n": lab.scan_ask.get("n", 0) + 1, "want": want, **more}
    return settled(lab)


def words(blocks: Any) -> str:
    """Every word of what Python says, in order."""
    if isinstance(blocks, str):
        return blocks
    if isinstance(blocks, dict):
        return ""
    return " ".join(words(b) for b in blocks)


def record(name: str, size: int = 1000, **bounds: tuple[Any, Any]) -> dict[str, Any]:
    """A data file that is not there."""
    lower, upper = ({k: b[i] for k, b in bounds.items()} for i in (0, 1))
    about = {"location": f"mem:/d/{name}", "record_count": 1000, "file_size_in_bytes": size}
    counts = {"value_counts": dict.fromkeys(bounds, 1000), "null_value_counts": dict.fromkeys(bounds, 0)}
    return {**about, "lower_bounds": lower, "upper_bounds": upper, **counts}


def files(lab: ScanLab, *, skipped: bool) -> list[str]:
    nodes = lab.scan_nodes.items()
    return [i for i, n in nodes if n["kind"] == "data-file" and ("pruned" in n["marks"]) is skipped]


def test_the_plan_is_that_of_the_table(lab: ScanLab, table: ix.Table) -> None:
    plan = table.plan(FILTER)
    assert lab.error == {}
    assert lab.plan is not None
    assert lab.plan.tasks.equals(plan.tasks)
    assert lab.scan_plan["headline"].startswith(f"Reads {len(plan)} of 12 data files")
    assert lab.scan_plan["files"] == len(plan)
    assert eval(lab.scan_plan["python"], {"t": table}).tasks.equals(plan.tasks)
    chart = plan.waterfall().chart()
    kind, items = lab.scan_plan["blocks"][-1]
    assert kind == "list"
    assert [item[1][1] for item in items] == ["12 files", "6 files", "2 files", "132 rows"]
    for item, row in zip(items, chart.rows, strict=True):
        assert row.label == item[0][1]
        bars = dict(item[4][1])
        assert 0 < bars["left"] + bars["gone"] <= 1.000001


def test_reasons_are_summed_up_and_lead_to_their_files(lab: ScanLab, table: ix.Table) -> None:
    plan = table.plan(FILTER)
    assert lab.scan_reasons["of"] == lab.scan_plan["of"]
    counted = {"tasks": 0, "skipped": 0}
    for number, (text, shown, filters) in enumerate(lab.scan_reasons["reasons"], 1):
        query = {"n": number, "of": lab.scan_plan["of"], "table": shown, "filters": filters}
        lab.query = {**lab.query, "scan": query}
        page = settled(lab).pages["scan"]
        assert page["n"] == number
        assert text.split()[1] == f"{page['total']:,}"
        counted[shown] += page["total"]
    assert counted == {"tasks": len(plan), "skipped": len(plan.skipped)}


def test_manifests_that_cannot_be_read_are_not_pruned(trips: Path, tmp_path: Path) -> None:
    shutil.copytree(trips, tmp_path / "t")
    state = ix.open(tmp_path / "t").state
    leaf = next(iter(state.leaves())).location
    Path(state.storage.resolve(leaf)).write_bytes(b"not Avro")
    broken = ScanLab(ix.open(tmp_path / "t"), scan_filter="fare > 1")
    try:
        items = settled(broken).scan_plan["blocks"][-1][1]
        assert all(item[1][1].startswith("≥ ") for item in items), "the files of one are unknown"
        assert all("1 unreadable" in item[3][1] for item in items)
        assert all("2 manifests" in item[3][1] for item in items[:3])
        assert all("skipped" not in shown for _, shown, _ in broken.scan_reasons["reasons"])
        assert "1 manifest cannot be read in full: some files are not shown." in broken.scan_range["notes"][0]
    finally:
        broken.close()


def test_the_tree_has_what_is_read_and_what_is_skipped(lab: ScanLab, table: ix.Table) -> None:
    tree = table.tree()
    plan = table.plan(FILTER)
    read = {tree.node(i).location for i in files(lab, skipped=False)}
    assert read == set(plan.tasks["file_path"])
    skipped = plan.skipped
    manifest = next(i for i, n in lab.scan_nodes.items() if n["kind"] == "data-manifest" and "pruned" in n["marks"])
    assert tree.node(manifest).location == skipped[skipped["kind"] == "manifest"]["name"].item()
    assert lab.scan_nodes[manifest]["reason"].startswith("partition: started_at_day is 2024-03-01")
    gone = {tree.node(i).location for i in files(lab, skipped=True)}
    assert gone == set(skipped[skipped["kind"] == "data file"]["name"])
    assert lab.scan_roots == [f"root:{table.snapshot.snapshot_id}"]  # type: ignore[union-attr]


def deletes_and_files(table: ix.Table, filter_: str) -> set[tuple[str, str]]:
    """Return the pairs of deletes and the files that they apply to, of a plan's own tasks."""
    pairs: set[tuple[str, str]] = set()
    for task in table.plan(filter_).tasks.to_dict("records"):
        vector = [task["deletion_vector"]] if isinstance(task["deletion_vector"], str) else []
        for delete in (*vector, *task["position_deletes"], *task["equality_deletes"]):
            pairs.add((delete, task["file_path"]))
    return pairs


def of_sample(_: Path) -> ix.Table:
    return ix.sample("trips")


def of_delta(_: Path) -> ix.Table:
    return ix.sample("delta")


def of_v4(_: Path) -> ix.Table:
    t = ix.sample("trips").simulate(format_version=4)
    t.row_delta(deletes={t.plan().tasks["file_path"][0]: [1, 2]})
    return t


def of_equality(folder: Path) -> ix.Table:
    made: ix.Table = with_equality(folder, 2)
    return made


@pytest.mark.parametrize("make", [of_sample, of_delta, of_v4, of_equality])
def test_arrows_lead_from_deletes_to_their_files(tmp_path: Path, make: Callable[[Path], ix.Table]) -> None:
    t = make(tmp_path)
    made = settled(ScanLab(t, scan_filter="true"))
    made.scan_expanded = list(made.scan_nodes)
    settled(made)
    tree = t.tree()
    arrows = {
        (tree.node(i).location, tree.node(target).location)
        for i, node in made.scan_nodes.items()
        for target in node.get("applies", ())
    }
    assert arrows and arrows == deletes_and_files(t, "true")
    for i, node in made.scan_nodes.items():
        if node.get("applies"):
            assert tree.node(i).kind == node["kind"], "the node is the table's own"
            assert any(i in (other["children"] or ()) for other in made.scan_nodes.values())
    some = next(i for i, node in made.scan_nodes.items() if node.get("applies"))
    made.select(some)
    settled(made)
    assert "its arrows lead to" in words(made.scan_why["blocks"])
    made.close()


def test_delete_manifests_that_are_skipped_have_a_reason(table: ix.Table) -> None:
    made = settled(ScanLab(table, scan_filter="started_at < '2024-03-02'"))
    skipped = {i: n for i, n in made.scan_nodes.items() if n["kind"] == "delete-manifest" and "pruned" in n["marks"]}
    plan = table.plan("started_at < '2024-03-02'")
    listed = table.inspect.manifests.arrow().to_pylist()
    read = set(plan.reads["location"])
    shown = {table.tree().node(i).location for i in skipped}
    assert {m["path"] for m in listed if m["content"] == 1 and m["path"] not in read} <= shown
    assert not any(node.get("applies") for node in made.scan_nodes.values()), "no delete applies to these files"
    assert plan.tasks["deletes"].sum() == 0
    assert skipped and all(node["reason"] for node in skipped.values())
    made.close()


def test_state_is_plain_json(lab: ScanLab) -> None:
    lab.select(files(lab, skipped=True)[0])
    ask(lab, "rows", column="trip_id", value="95", history=True)
    ask(lab, "advice")
    lab.scan_draft = {"n": 1, "text": "rider = ", "at": 8}
    settled(lab)
    state = {name: getattr(lab, name) for name in SCAN}
    text = json.dumps(state, allow_nan=False)
    assert json.loads(text) == state
    numbers: list[int] = []
    json.loads(text, parse_int=lambda digits: numbers.append(int(digits)))
    assert max(map(abs, numbers)) < 2**53, "JavaScript would lose digits"


def test_another_filter_and_none(lab: ScanLab, table: ix.Table) -> None:
    first = lab.scan_plan["of"]
    lab.scan_filter = " trip_id = 95 "
    settled(lab)
    assert lab.scan_plan["of"] != first
    assert lab.scan_plan["filter"] == "trip_id = 95"
    assert lab.scan_recent == ["trip_id = 95", FILTER]
    plans = [lab.plan]
    assert plans[0] is not None and len(plans[0]) == len(table.plan("trip_id = 95")) == 1
    lab.scan_filter = ""
    settled(lab)
    plans.append(lab.plan)
    assert plans[1] is None
    assert [*lab.scan_plan, *lab.scan_nodes, *lab.scan_roots] == []
    assert "No plan yet" in words(lab.scan_why["blocks"])
    lab.scan_filter = "true"
    settled(lab)
    assert lab.scan_plan["files"] == 12


def test_errors_appear_under_the_box(lab: ScanLab) -> None:
    lab.scan_filter = "ridr = 'guest'"
    settled(lab)
    assert lab.error == {}
    shown = lab.scan_plan["error"].split("\n")
    assert "nearest: rider" in shown[0]
    assert shown[1].index("ridr") == shown[2].index("^^^^")
    assert lab.scan_nodes == {}
    assert lab.scan_recent == [FILTER]
    with pytest.raises(ix.OptionError, match="ridr"):
        _ = lab.plan
    with pytest.raises(ix.OptionError, match="no plan"):
        lab._panel(ScanPanel)._current()
    lab.scan_filter = FILTER
    settled(lab)
    assert lab.scan_plan["error"] == ""


def test_columns_and_row_groups(lab: ScanLab, table: ix.Table) -> None:
    lab.scan_columns = ["trip_id", "fare"]
    settled(lab)
    assert lab.plan is not None and lab.plan.columns == ("trip_id", "fare")
    assert "columns=['trip_id', 'fare']" in lab.scan_plan["python"]
    lab.query = {"scan": {"of": lab.scan_plan["of"], "table": "head"}}
    settled(lab)
    assert [c["name"] for c in lab.pages["scan"]["columns"]] == ["trip_id", "fare"]
    assert lab.pages["scan"]["total"] == 20 < int(table.count(FILTER))
    assert lab.pages["scan"]["preview"] == "preview: the first 20 that match"
    lab.scan_columns = ["no such"]
    settled(lab)
    assert "no such" in lab.scan_plan["error"]


def test_another_snapshot_is_planned_when_it_is_selected(lab: ScanLab, table: ix.Table) -> None:
    lab.scan_filter = "true"
    first = table.snapshots[0].snapshot_id
    lab.select(snapshot=first)
    settled(lab)
    expected = table.at(snapshot=first).plan("true")
    assert lab.plan is not None and lab.plan.tasks.equals(expected.tasks)
    assert lab.scan_plan["snapshot"] == str(first)
    assert lab.scan_plan["python"] == f't.at(snapshot={first}).plan("true")'
    assert lab.scan_roots == [f"root:{first}"]
    ask(lab, "examples")
    old = lab.scan_examples["names"]
    lab.select(snapshot=table.snapshots[-1].snapshot_id)
    settled(lab)
    assert lab.scan_examples["names"] != old, "columns are those of the snapshot"
    assert lab.scan_plan["files"] == 12


def test_an_explorer_plans_what_is_looked_at(table: ix.Table) -> None:
    made = table.explore()
    made.tab = "scan"
    made.scan_filter = "true"
    assert made.settle(60)
    assert made.scan_plan["files"] == 12
    made.tab = "tree"
    first = str(table.snapshots[0].snapshot_id)
    made.select(snapshot=first)
    assert made.settle(60)
    assert made.scan_plan["snapshot"] != first, "nobody looks at it"
    made.tab = "scan"
    assert made.settle(60)
    assert made.scan_plan["snapshot"] == first
    made.close()


def test_why(lab: ScanLab) -> None:
    for skipped in (False, True):
        node = files(lab, skipped=skipped)[0]
        lab.select(node)
        settled(lab)
        assert lab.scan_why["id"] == node
        assert lab.scan_why["read"] is not skipped
        found = node_evidence(lab._panel(ScanPanel)._current().nodes, node)
        assert found is not None
        shown = words(lab.scan_why["blocks"])
        assert found.why in shown
        assert all(term.term in shown and term.known in shown for term in found.terms)
    lab.select("table")
    settled(lab)
    assert lab.scan_why["id"] == "table" and "read" not in lab.scan_why
    assert "Select a manifest or a file" in words(lab.scan_why["blocks"])


def test_a_file_that_is_selected_comes_into_the_tree(lab: ScanLab) -> None:
    lab.scan_filter = "trip_id = 95"
    settled(lab)
    closed = next(i for i, n in lab.scan_nodes.items() if i.startswith("manifest:") and n["children"] is None)
    node = closed.replace("manifest:", "file:") + ":2"
    assert node not in lab.scan_nodes
    lab.select(node)
    settled(lab)
    assert closed in lab.scan_expanded and "pruned" in lab.scan_nodes[node]["marks"]
    assert lab.scan_why["read"] is False
    heading = next(block for block in lab.scan_why["blocks"] if block[0] == "h")
    assert heading[1][-1] == lab.scan_nodes[node]["label"], "the file's name, not the id of its node"


def test_unfolding_shows_more(table: ix.Table) -> None:
    data = ix.empty({"id": "long"}, format_version=2, seed=3)
    data.append([record(f"f{i}.parquet", id=(i, i)) for i in range(300)])
    made = settled(ScanLab(data, scan_filter="id >= 100"))
    manifest = next(i for i in made.scan_nodes if i.startswith("manifest:"))
    made.scan_expanded = [i for i in made.scan_expanded if i != manifest]
    made.scan_expanded = [*made.scan_expanded, manifest]
    settled(made)
    assert (len(files(made, skipped=False)), len(files(made, skipped=True))) == (25, 10)
    assert made.scan_nodes[f"more:read:{manifest}"]["label"] == "+175 more read"
    more = made.scan_nodes[f"more:skipped:{manifest}"]
    assert (more["label"], more["marks"]) == ("+90 more skipped", ["pruned"])
    made.scan_expanded = [*made.scan_expanded, f"more:skipped:{manifest}"]
    settled(made)
    assert (len(files(made, skipped=False)), len(files(made, skipped=True))) == (25, 100)
    assert f"more:skipped:{manifest}" not in made.scan_nodes
    assert made.error == {}
    made.close()


def test_tables_lead_to_nodes(lab: ScanLab, table: ix.Table) -> None:
    tree = table.tree()
    plan = table.plan(FILTER)
    for name, column, frame in (("tasks", "file_path", plan.tasks), ("skipped", "name", plan.skipped)):
        lab.query = {"scan": {"of": lab.scan_plan["of"], "table": name}}
        settled(lab)
        page = lab.pages["scan"]
        assert (page["of"], page["total"]) == (lab.scan_plan["of"], len(frame))
        assert [tree.node(n).location for n in page["nodes"]] == frame[column].tolist()
    node = lab.pages["scan"]["nodes"][1]
    tables = PlanTables(lab._panel(ScanPanel)._plans)
    row = tables.row(lab.scan_plan["of"], "tasks", files(lab, skipped=False)[0])
    assert row is not None
    assert tables.row(lab.scan_plan["of"], "tasks", node) is None, "a file that is skipped is no task"
    lab.query = {"scan": {"of": lab.scan_plan["of"], "table": "deletes"}}
    settled(lab)
    assert lab.pages["scan"]["total"] == len(plan.deletes)


@pytest.mark.parametrize("query", [{"of": "99", "table": "tasks"}, {"of": "1", "table": "no such"}])
def test_tables_that_are_not_there(lab: ScanLab, query: dict[str, str]) -> None:
    lab.query = {"scan": query}
    assert lab.settle(60)
    assert lab.error["text"]
    assert "bug in iceexplore" not in lab.error["advice"]


def test_what_would_help(table: ix.Table) -> None:
    data = ix.empty({"id": "long", "rider": "long"}, format_version=3, seed=5)
    for n in range(4):
        data.append([record(f"{n}.parquet", size=1 << 30, rider=(0, 500))])
    made = settled(ScanLab(data, scan_filter="rider = 42"))
    ask(made, "advice")
    advice = data.plan("rider = 42").advice()
    assert made.scan_advice["of"] == made.scan_plan["of"]
    shown = words(made.scan_advice["blocks"])
    for suggestion in advice.suggestions:
        assert suggestion.title in shown and suggestion.why in shown
        assert all(f"{s};" in shown for s in suggestion.statements)
    assert len(advice.suggestions) > 0
    made.close()


def test_what_would_help_is_looked_for_where_it_is_seen(lab: ScanLab) -> None:
    assert lab.scan_advice == {}
    lab.scan_tab = "advice"
    settled(lab)
    assert (lab.scan_advice["of"], "blocks" in lab.scan_advice) == (lab.scan_plan["of"], True)
    lab.scan_filter = "trip_id > 5"
    settled(lab)
    assert (lab.scan_advice["of"], "blocks" in lab.scan_advice) == (lab.scan_plan["of"], True)


@pytest.mark.parametrize(
    ("text", "at", "choice", "put"),
    [
        ("", 0, "trip_id", "trip_id "),
        ("rid = 5", 3, "rider", "rider"),  # what follows has its space
        ("rider =", 7, "'guest'", " 'guest' "),
        ("(rid", 4, "rider", "rider "),
        ("rider ", 6, "in (", "in ("),
    ],
)
def test_an_accepted_completion_is_separated(lab: ScanLab, text: str, at: int, choice: str, put: str) -> None:
    lab.scan_draft = {"n": 1, "text": text, "at": at}
    settled(lab)
    puts = {shown: what for shown, _, what in lab.scan_hint["choices"]}
    assert puts.get(choice) == put, puts


def test_counting(lab: ScanLab, table: ix.Table) -> None:
    ask(lab, "count")
    assert lab.scan_count == {"of": lab.scan_plan["of"], "text": table.count(FILTER).explain()}


def test_what_is_typed(lab: ScanLab) -> None:
    lab.scan_draft = {"n": 7, "text": "start", "at": 5}
    settled(lab)
    hint = lab.scan_hint
    assert (hint["n"], hint["text"], hint["start"], hint["end"]) == (7, "start", 0, 5)
    assert [[c[0], c[2]] for c in hint["choices"]] == [
        ["started_at", "started_at "],
        ["start_station", "start_station "],
    ]
    assert "nearest" in hint["error"]
    lab.scan_draft = {"n": 8, "text": "start_station = ", "at": 16}
    settled(lab)
    values = [c[0] for c in lab.scan_hint["choices"]]
    assert "'Harbour'" in values
    assert lab.scan_hint["unfinished"]
    lab.scan_draft = {"n": 9, "text": f"start_station = {values[0]}", "at": 0}
    settled(lab)
    assert lab.scan_hint["error"] == ""
    assert lab.scan_filter == FILTER, "what is typed is not planned"
    text = "start_station = '😀😀' and tri > 5"  # the cursor is behind "tri", as a browser counts
    lab.scan_draft = {"n": 10, "text": text, "at": 30}
    settled(lab)
    hint = lab.scan_hint
    assert [hint[key] for key in ("at", "start", "end")] == [30, 27, 30]
    assert ["trip_id", "long", "trip_id"] in hint["choices"]


def test_examples(lab: ScanLab, table: ix.Table) -> None:
    ask(lab, "examples")
    assert lab.scan_examples["names"] == [f.name for f in table.schema.fields]
    for text in lab.scan_examples["filters"]:
        lab.scan_filter = text
        settled(lab)
        assert lab.scan_plan["error"] == "" and lab.scan_plan["files"] > 0


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("scan_draft", {"n": 1, "text": 5, "at": 0}),
        ("scan_draft", {"n": 1, "text": "x", "at": "0"}),
        ("scan_draft", {"text": "x", "at": 0}),
        ("scan_ask", {"want": "everything"}),
        ("scan_ask", {"want": ["rows"]}),
    ],
)
def test_nonsense_from_the_browser_is_shown(lab: ScanLab, trait: str, value: Any) -> None:
    setattr(lab, trait, value)
    settled(lab)
    assert lab.error["text"]
    assert "bug in iceexplore" not in lab.error["advice"]


@pytest.mark.parametrize("unfolded", [["more:x"], ["file:1:2:3"], ["<img>"], ["more:skipped:manifest:1:2"]])
def test_unknown_nodes_unfold_nothing(lab: ScanLab, unfolded: list[str]) -> None:
    before = set(lab.scan_nodes)
    lab.scan_expanded = [*lab.scan_expanded, *unfolded]
    settled(lab)
    assert set(lab.scan_nodes) == before
    assert lab.error == {}


def test_typing_does_not_wait_for_a_plan(lab: ScanLab, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, started = threading.Event(), threading.Event()
    plan = iceexplore.planning.plan_scan

    def slow(*args: Any, **how: Any) -> Any:
        started.set()
        gate.wait(30)
        return plan(*args, **how)

    monkeypatch.setattr("iceexplore.planning.plan_scan", slow)
    lab.scan_filter = "trip_id > 5"
    assert started.wait(30)
    assert lab.busy == "Planning …"
    lab.scan_draft = {"n": 3, "text": "rid", "at": 3}
    assert lab._panel(FilterBoxPanel)._hints.settle(30)
    assert lab.scan_hint["choices"][0][0] == "rider"
    assert lab.scan_plan["filter"] == FILTER
    lab.cancelled += 1
    assert lab.busy == "", "cancelled at once"
    gate.set()
    settled(lab)
    assert lab.scan_plan["filter"] == FILTER, "what was cancelled is not shown"
    ask(lab, "plan")
    assert lab.scan_plan["filter"] == "trip_id > 5"
    lab.scan_ask = {"n": 99, "want": "advice"}
    lab.select(file := next(i for i in lab.scan_nodes if i.startswith("file:")))
    lab.cancelled += 1
    settled(lab)
    assert lab.scan_advice == {"of": lab.scan_plan["of"], "missed": "Cancelled."}
    assert lab.scan_why["id"] == file, "the explanation is about the selection"


def test_advice_that_cannot_be_read_says_so(lab: ScanLab, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any, **__: Any) -> Any:
        raise ix.FileMissingError("m.avro is not there")

    monkeypatch.setattr("iceexplore.widgets.scan_lab._panel.advice_sent", gone)
    lab.scan_tab = "advice"
    settled(lab)
    assert "m.avro" in lab.error["text"]
    missed = {"of": lab.scan_plan["of"], "missed": "The advice could not be computed."}
    assert lab.scan_advice == missed
    lab.scan_tab = "why"
    lab.scan_tab = "advice"
    settled(lab)
    assert lab.scan_advice == missed, "it is asked for again by whoever wants it"
    monkeypatch.undo()
    ask(lab, "advice")
    assert lab.scan_advice["blocks"]


def test_the_newest_filter_wins(lab: ScanLab) -> None:
    for n in range(5):
        lab.scan_filter = f"trip_id = {n}"
    settled(lab)
    assert lab.scan_plan["filter"] == "trip_id = 4"
    assert lab.scan_recent == ["trip_id = 4", FILTER]


def test_without_a_filter_nothing_is_read(table: ix.Table) -> None:
    opened = ix.sample("trips")
    made = ScanLab(opened)
    assert made.settle(60)
    assert {read.kind for read in opened.reads} <= {"metadata", "stat", "list"}
    assert made.plan is None
    made.close()


def test_hostile_names_filters_and_values() -> None:
    data = ix.empty({HOSTILE: "string", 'q"': "long"}, format_version=2, seed=1)
    bounds: Any = {HOSTILE: (HOSTILE, HOSTILE), 'q"': (1, 9)}
    data.append([record("<b>.parquet", **bounds)])
    made = settled(ScanLab(data))
    ask(made, "examples")
    text = f'"{HOSTILE}" = \'{HOSTILE}\' and "q""" > 3'
    made.scan_draft = {"n": 1, "text": text, "at": len(text)}
    made.scan_filter = text
    settled(made)
    assert made.scan_hint["error"] == made.scan_plan["error"] == ""
    assert eval(made.scan_plan["python"], {"t": data}).tasks.equals(data.plan(text).tasks)
    made.select(files(made, skipped=False)[0])
    settled(made)
    assert HOSTILE in words(made.scan_why["blocks"])
    html = made._no_kernel_html()
    assert HOSTILE not in html and "&lt;img" in html
    made.scan_filter = f"{HOSTILE}\u202e\x1b[31m"
    settled(made)
    assert "\x1b" not in made.scan_plan["error"] and "\u202e" not in made.scan_plan["error"]
    made.close()


@pytest.mark.parametrize("text", ["id = 'a\"b'", "id = 'a\\b'", "id\n= 5", "id = '\u202e'", "'; import os #", '"""'])
def test_python_is_one_literal(text: str, table: ix.Table) -> None:
    import ast

    call = ast.parse(python_of(table.plan(), text, False, None), mode="eval").body
    assert isinstance(call, ast.Call)
    assert [ast.literal_eval(argument) for argument in call.args] == [text]


def test_files_are_found_in_every_version(v: Callable[[int], ix.Table]) -> None:
    for version in (1, 3, 4):
        made = v(version)
        tree = made.tree()
        locations = made.inspect.files()["file_path"].tolist()
        found = find_files(made.state, [*locations, "nowhere.parquet"])
        assert {tree.node(node).location for node in found.values()} == set(found) == set(locations)
    assert find_files(ix.empty({"id": "long"}).state, ["x"]) == {}


@pytest.fixture
def v() -> Callable[[int], ix.Table]:
    def make(version: int) -> ix.Table:
        options: dict[str, Any] = {"flush_data_files": 2, "leaf_entries": 2} if version == 4 else {}
        data = ix.empty({"id": "long"}, format_version=version, seed=2, **options)
        for n in range(3):
            data.append([record(f"{n}.parquet", id=(n, n))])
        return data

    return make


def test_a_damaged_manifest_is_noted(tmp_path: Path) -> None:
    import shutil

    from iceexplore._samples import sample_path

    source, folder = Path(sample_path("trips")), tmp_path / "trips"
    shutil.copytree(source, folder) if source.is_dir() else shutil.unpack_archive(source, folder)
    next(iter(sorted(folder.rglob("optimized-m-*.avro")))).write_bytes(b"nothing")
    made = settled(ScanLab(ix.open(folder), scan_filter="trip_id > 5"))
    assert made.error == {}
    assert made.scan_plan["blocks"][0][0] == "problem"
    assert "cannot be read" in words(made.scan_plan["blocks"][0])
    assert any("problem" in n["marks"] for n in made.scan_nodes.values())
    made.close()
    for path in folder.rglob("snap-*.avro"):
        path.write_bytes(b"nothing")
    made = settled(ScanLab(ix.open(folder), scan_filter="trip_id > 5"))
    assert "the manifest list cannot be read in full" in made.scan_plan["blocks"][0][1][0]
    made.close()


def test_the_script_is_small_and_fetches_nothing() -> None:
    module = script("scan.scanView")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "import("):
        assert word not in module
    assert "http" not in module.replace("http://www.w3.org/2000/svg", "")
    assert gzip.decompress(ScanLab.view_script).decode() == module
