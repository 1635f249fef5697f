"""The commit lab's Python side: what is asked through traits does what the same calls of a simulation do."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import iceexplore as ix
from iceexplore import commits
from iceexplore.commits import plan_cost
from iceexplore.errors import OPEN_POINTS, CommitConflictError, OptionError, RuleError
from iceexplore.simulation import Simulation
from iceexplore.widgets import CommitLab
from iceexplore.widgets.commit_lab._file_operations import OPERATIONS, RIVALS
from iceexplore.widgets.commit_lab._form import Call, Field, checked_values
from iceexplore.widgets.commit_lab._layout_form import layout_fields
from iceexplore.widgets.commit_lab._panel import CommitPanel
from iceexplore.widgets.commit_lab._report import bars
from iceexplore.widgets.commit_lab._step_panel import StepPanel
from iceexplore.widgets.core._ids import ref_id
from iceexplore.widgets.tree._side_tree import SideTree
from tests.helpers.hostile import HOSTILE
from tests.helpers.sampling import one_of

SYNCED = [name for name in CommitLab.class_trait_names(sync=True) if name.startswith("commit_")]
SCHEMA = {"id": "long", "region": "string", "amount": "int"}
SEED = 1  # of the lab's simulations


def empty(version: int, **more: Any) -> Simulation:
    """Two manifests of data files, in regions of their own."""
    made = ix.empty(SCHEMA, format_version=version, partition_by="region", seed=7, **more)
    made.append(3, rows=100, partitions=[{"region": "eu"}])
    made.append(2, rows=50, partitions=[{"region": "us"}])
    return made


@pytest.fixture
def lab() -> Iterator[Callable[..., CommitLab]]:
    made: list[CommitLab] = []

    def make(table: Any) -> CommitLab:
        made.append(CommitLab(table))
        return made[-1]

    yield make
    for widget in made:
        widget.close()


def ask(widget: CommitLab, what: str, **more: Any) -> None:
    """What a browser does: one trait, and the answer comes."""
    widget.commit_asked = {"n": widget.commit_asked.get("n", 0) + 1, "do": what, **more}
    assert widget.settle(60)
    assert widget.error == {}
    assert widget.busy == ""


def apply(widget: CommitLab, operation: str, values: dict[str, Any] | None = None, **more: Any) -> None:
    ask(widget, "apply", operation=operation, values=values or {}, **{"layout": {}, "rival": "", **more})


def document(table: Any) -> Any:
    return table.state.opened.document


def data_files(table: Any) -> list[str]:
    return [str(p) for p in table.inspect.data_files()["file_path"]]


def traits(widget: CommitLab) -> dict[str, Any]:
    return {name: getattr(widget, name) for name in SYNCED}


def words(blocks: Any) -> str:
    """Every word of what Python says, in order."""
    return blocks if isinstance(blocks, str) else " ".join(map(words, blocks)) if isinstance(blocks, list) else ""


def layouts(widget: CommitLab) -> list[str]:
    """Return the labels of the layouts whose costs are shown."""
    _, _, rows, _ = widget.commit_report["costs"][0]
    return [label for ((label,), *_) in rows]


#: What a rewrite that found nothing to do is taken for: in a notebook it returns None, in the widget it is refused.
NOTHING = object()


def refusal(call: Callable[[], Any]) -> str | None:
    """The rule by which a call is refused; None where it is not."""
    try:
        found = call()
    except RuleError as error:
        return error.rule
    except OptionError:
        return ""
    return "" if found is NOTHING else None


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what is only shown: rules and costs."""
    monkeypatch.setattr(StepPanel, "_more", lambda self, session, line, step: None)


#: Per operation the form's values, and the same by hand.
STEPS: list[tuple[str, dict[str, Any], Callable[[Simulation], Any]]] = [
    ("append", {"files": 2, "rows": 10}, lambda s: s.append(2, rows=10)),
    (
        "append",
        {"files": 1, "partitions": '{"region": "eu"}'},
        lambda s: s.append(1, rows=1000, partitions=[{"region": "eu"}]),
    ),
    (
        "row_delta",
        {"of": 2, "positions": "0, 3-4"},
        lambda s: s.row_delta(deletes={path: [0, 3, 4] for path in data_files(s)[:2]}),
    ),
    (
        "row_delta",
        {"by": "values", "values": '{"region": ["us"], "id": [5]}', "files": 1, "rows": 3},
        lambda s: s.row_delta(1, equality={"region": ["us"], "id": [5]}, rows=3),
    ),
    ("overwrite", {"of": 1, "files": 2}, lambda s: s.overwrite(2, delete=data_files(s)[:1], rows=1000)),
    (
        "overwrite",
        {"by": "filter", "where": "region = 'us'", "isolation": "snapshot"},
        lambda s: s.overwrite(1, where="region = 'us'", rows=1000, isolation="snapshot"),
    ),
    ("delete", {"of": 1}, lambda s: s.delete_files(data_files(s)[:1])),
    ("compact", {"where": "region = 'eu'"}, lambda s: s.compact(where="region = 'eu'") or NOTHING),
    ("rewrite_manifests", {}, lambda s: s.rewrite_manifests() or NOTHING),
    ("evolve_schema", {"name": "note"}, lambda s: s.evolve_schema(add={"note": "string"})),
    (
        "evolve_schema",
        {"change": "rename", "column": "amount", "to": "total"},
        lambda s: s.evolve_schema(rename={"amount": "total"}),
    ),
    (
        "evolve_schema",
        {"change": "update", "column": "total", "type": "long"},
        lambda s: s.evolve_schema(update={"total": "long"}),
    ),
    ("evolve_schema", {"change": "drop", "column": "note"}, lambda s: s.evolve_schema(drop=["note"])),
    ("evolve_spec", {"term": "bucket(4, id)"}, lambda s: s.evolve_spec(add=["bucket(4, id)"])),
    (
        "evolve_spec",
        {"change": "rename", "field": "id_bucket_4", "to": "b"},
        lambda s: s.evolve_spec(rename={"id_bucket_4": "b"}),
    ),
    ("evolve_spec", {"change": "remove", "field": "b"}, lambda s: s.evolve_spec(remove=["b"])),
    ("set_properties", {"name": "a.b", "value": "c"}, lambda s: s.set_properties({"a.b": "c"})),
    ("set_properties", {"name": "a.b", "remove": True}, lambda s: s.set_properties(remove=["a.b"])),
    ("ref", {"name": "audit"}, lambda s: s.branch("audit")),
    ("append", {"files": 1, "ref": "audit"}, lambda s: s.append(1, rows=1000, ref="audit")),
    ("ref", {"change": "tag", "name": "t"}, lambda s: s.tag("t")),
    ("ref", {"change": "remove_ref", "ref": "audit"}, lambda s: s.remove_ref("audit")),
    (
        "rollback",
        {},
        lambda s: s.rollback(s.state.metadata.snapshot(s.snapshot.parent_snapshot_id).snapshot_id),  # type: ignore[union-attr]
    ),
    (
        "expire_snapshots",
        {"retain_last": 2},
        lambda s: s.expire_snapshots(older_than="9999-12-31", retain_last=2),
    ),
    ("delete", {"by": "filter", "where": "true"}, lambda s: s.delete_where("true")),
]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("version", one_of(2, [1, 2, 3, 4], 1))
def test_every_operation_does_what_its_calls_do(lab: Any, version: int) -> None:
    """Step by step the same metadata, to the last id; what one refuses by a rule, the other does, too."""
    table = empty(version)
    before = document(table)
    widget, alone = lab(table), table.simulate(seed=SEED)
    done, refused = [], set()
    for name, values, by_hand in STEPS:
        apply(widget, name, values)
        trial = alone.copy()  # what is refused takes no number
        rule = refusal(lambda: by_hand(trial))
        assert widget.commit_refused.get("rule") == rule, (name, values)
        if rule is None:
            alone = trial
            done.append(name)
            assert document(widget.simulation) == document(alone), (name, values)
        else:
            assert widget.commit_refused["text"]
            assert (commits.RULES[rule].text if rule else "") in words(widget.commit_refused["blocks"])
            refused.add(rule)
    assert [step["title"] for step in widget.commit_line["steps"]] == [OPERATIONS[name].title for name in done]
    assert refused == {1: {"deletes-need-v2"}, 4: {""}}.get(version, set())
    assert document(table) == before
    namespace = {"t": table}
    exec(widget.commit_line["code"], namespace)
    assert document(namespace["s"]) == document(alone)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("start", "to"), [(1, 2), (2, 3), (3, 4), (1, 4)])
def test_upgrades(lab: Any, start: int, to: int) -> None:
    table = empty(start)
    widget, alone = lab(table), table.simulate(seed=SEED)
    apply(widget, "upgrade", {"to": str(to)})
    alone.upgrade(to)
    apply(widget, "append", {"files": 1})
    alone.append(1, rows=1000)
    assert document(widget.simulation) == document(alone)
    assert widget.simulation.format_version == to
    # the same by the layout: the first commit upgrades
    other, second = lab(table), table.simulate(to, seed=SEED)
    apply(other, "append", {"files": 1}, layout={"format_version": str(to)})
    second.append(1, rows=1000)
    assert document(other.simulation) == document(second)
    assert f"format version changed from {start} to {to}." in " ".join(other.commit_report["text"])


LAYOUTS: list[dict[str, Any]] = [
    {"dialect": "v4-java"},
    {"dialect": "v4-java", "manifest_format": "parquet"},
    {"flush_data_files": 2, "flush_delete_files": 0, "affinity": "all", "inline_dv_bytes": 0},
    {"dv_encoding": "delta", "partition_storage": "tuple", "manifest_format": "avro"},
    {"dv_attached": True, "partition_storage": "source", "compact_leaves": 2, "leaf_entries": 2},
    {"rewrite_leaf_at": 0.5, "flush_data_files": 0, "affinity": "none"},
]


@pytest.mark.parametrize("layout", one_of(2, LAYOUTS), ids=str)
def test_layouts(lab: Any, layout: dict[str, Any]) -> None:
    """The form's options are those of the simulation, from its start and when they are changed later."""
    table = empty(3)
    widget, alone = lab(table), table.simulate(4, seed=SEED, **layout)
    asked = {"format_version": "4", **layout}
    for name, values, by_hand in STEPS[:3]:
        apply(widget, name, values, layout=asked)
        by_hand(alone)
        assert document(widget.simulation) == document(alone)
    assert widget.simulation.options == alone.options
    assert "none broken" in widget.commit_report["checked"]
    later = {**asked, "flush_data_files": 1}
    apply(widget, "delete", {"of": 2}, layout=later)
    if layout.get("dialect") != "v4-java":
        assert widget.simulation.options == alone.options.replace(flush_data_files=1)
        assert "s.set_layout(flush_data_files=1)" in widget.commit_line["code"]
    namespace = {"t": table}
    exec(widget.commit_line["code"], namespace)
    assert document(namespace["s"]) == document(widget.simulation)


def test_flushing_for_one_commit(lab: Any) -> None:
    widget = lab(empty(3))
    layout = {"format_version": "4"}
    apply(widget, "append", layout=layout)
    apply(widget, "rewrite_manifests", {"flush": True}, layout=layout)
    root = widget.simulation.state.root()
    assert root is not None and widget.simulation.state.reader.direct(root) is None
    apply(widget, "append", layout=layout)
    assert "s.set_layout(flush_data_files=4000, flush_delete_files=8000)" in widget.commit_line["code"]


def test_undo_redo_and_fork_restore_equal_states(lab: Any) -> None:
    widget = lab(empty(3))
    ask(widget, "show")
    seen = [(document(widget.simulation), traits(widget))]
    layout = {"format_version": "4", "flush_data_files": 2}
    for name, values in (("append", {}), ("row_delta", {}), ("delete", {"of": 2})):
        apply(widget, name, values, layout=layout)
        seen.append((document(widget.simulation), traits(widget)))

    def compare(at: int) -> None:
        then, now = seen[at][1], traits(widget)
        for name in ("commit_report", "commit_before_nodes", "commit_after_nodes", "commit_after_expanded"):
            assert now[name] == then[name], name
        assert now["commit_line"]["at"] == at

    for at in (2, 1):
        ask(widget, "undo")
        compare(at)
        assert document(widget.simulation) == seen[at][0]
    ask(widget, "redo")
    compare(2)
    ask(widget, "fork")
    assert widget.commit_line["lines"] == ["main", "fork 1"]
    assert (widget.commit_line["current"], len(widget.commit_line["steps"])) == (1, 2)
    apply(widget, "compact", layout=layout)
    forked = document(widget.simulation)
    ask(widget, "go", line=0, at=3)
    compare(3)
    assert document(widget.simulation) == seen[3][0]
    ask(widget, "go", line=1, at=3)
    assert document(widget.simulation) == forked
    ask(widget, "go", line=0, at=0)
    compare(0)
    assert widget.commit_before_nodes == {} and widget.commit_after_nodes
    ask(widget, "undo")
    assert "nothing to undo" in widget.commit_refused["text"]
    apply(widget, "append", {"files": 9})
    assert len(widget.commit_line["steps"]) == 1, "what was undone is gone once something else is done"
    ask(widget, "redo")
    assert "nothing to redo" in widget.commit_refused["text"]


def test_in_a_notebook(lab: Any) -> None:
    widget = lab(empty(3))
    widget.apply("append", files=2, rows=5, partitions=[{"region": "eu"}], layout={"format_version": 4})
    widget.apply("row_delta", positions="1")
    widget.undo()
    widget.redo()
    widget.fork("mine")
    assert widget.settle(60)
    assert widget.commit_line["at"] == 2 and widget.commit_line["lines"] == ["main", "mine"]
    assert widget.simulation.format_version == 4
    given = widget.simulation
    given.append(1, rows=1)
    assert widget.simulation is given
    widget.apply("append", files=1)
    assert len(data_files(widget.simulation)) == 8, "what is committed to the simulation given does not count here"
    with pytest.raises(RuleError, match="schema-names"):
        widget.apply("evolve_schema", change="rename", column="amount", to="id")
    with pytest.raises(OptionError, match="no field 'fils'"):
        widget.apply("append", fils=3)
    with pytest.raises(OptionError, match="no operation 'apend'"):
        widget.apply("apend")
    with pytest.raises(OptionError, match="give an unused name"):
        widget.fork("mine")
    assert widget.settle(60) and widget.commit_line["at"] == 3


RIVALRY = [
    ("append", {}, "append", None),
    ("append", {}, "compact", None),
    ("delete", {"by": "filter", "where": "region = 'eu'"}, "append", None),
    ("row_delta", {}, "rows", "no-concurrent-dv"),
    ("row_delta", {}, "delete", "data-files-still-there"),
    ("delete", {"of": 1}, "delete", "files-exist"),
    ("overwrite", {}, "append", "no-new-conflicting-files"),
    ("overwrite", {"isolation": "snapshot"}, "append", None),
    ("evolve_schema", {}, "schema", "schema-unchanged"),
]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("operation", "values", "rival", "rule"), RIVALRY)
def test_a_second_writer(lab: Any, operation: str, values: dict[str, Any], rival: str, rule: str | None) -> None:
    table = empty(3)
    widget = lab(table)
    apply(widget, operation, values, rival=rival)
    if rule is None:
        assert widget.commit_refused == {}
        assert any("Another writer had committed first" in line for line in widget.commit_report["text"])
        assert "other = s.fork()\nother." in widget.commit_line["code"]
        namespace = {"t": table}
        exec(widget.commit_line["code"], namespace)
        assert document(namespace["s"]) == document(widget.simulation)
        return
    assert widget.commit_line["at"] == 0
    refused = widget.commit_refused
    assert refused["rule"] == rule
    assert ["strong", [f"Refused: {rule}"]] == refused["blocks"][0]
    assert ["advice", [f"{commits.RULES[rule].text} ({commits.RULES[rule].source})"]] == refused["blocks"][2]
    with pytest.raises(CommitConflictError) as caught:
        widget.apply(operation, rival=rival, **values)
    assert caught.value.rule == rule
    assert ("attempts left" in words(refused["blocks"][-1])) == (operation != "evolve_schema")


@pytest.mark.usefixtures("quick")
def test_marks_are_what_changed(lab: Any) -> None:
    widget = lab(empty(3))
    layout = {"format_version": "4", "flush_data_files": 2}
    for name, values in (("append", {}), ("delete", {"of": 2}), ("compact", {}), ("rewrite_manifests", {})):
        before = widget.simulation
        apply(widget, name, values, layout=layout)
        diff = widget.simulation.diff(before)
        for side, change, mark in (("before", "removed", "removed"), ("after", "added", "added")):
            ask(widget, "show")
            nodes = getattr(widget, f"commit_{side}_nodes")
            folded = [i for i, n in nodes.items() if n["kind"].endswith("manifest") and n["children"] is None]
            setattr(widget, f"commit_{side}_expanded", [*getattr(widget, f"commit_{side}_expanded"), *folded])
            assert widget.settle(60)
            nodes = getattr(widget, f"commit_{side}_nodes")
            shown = {
                n["tooltip"].split("\n")[0] for n in nodes.values() if n["kind"] == "data-file" and n["marks"] == [mark]
            }
            assert shown == set(diff.files[diff.files["change"] == change]["location"]), (name, side)
            manifests = diff.manifests[diff.manifests["content"] == "data"]
            shown = {
                n["tooltip"].split("\n")[0]
                for n in nodes.values()
                if n["kind"] == "data-manifest" and n["marks"] == [mark]
            }
            assert shown == set(manifests[manifests["change"] == change]["location"]), (name, side)


@pytest.mark.usefixtures("quick")
def test_more_of_a_leaf(lab: Any) -> None:
    table = ix.empty({"id": "long"}, format_version=3, seed=2)
    table.append(70, rows=1)
    widget = lab(table)
    ask(widget, "show")
    leaf = next(i for i, n in widget.commit_after_nodes.items() if n["kind"] == "data-manifest")
    seen = []
    for more in (leaf, f"more:{leaf}", f"more:{leaf}"):
        widget.commit_after_expanded = [*widget.commit_after_expanded, more]
        assert widget.settle(60)
        seen.append(len(widget.commit_after_nodes[leaf]["children"]))
    assert seen == [31, 61, 70]


def children(widget: CommitLab, side: str) -> list[dict[str, Any]]:
    """The nodes below the root of the snapshot shown."""
    assert widget.settle(60)
    nodes = getattr(widget, f"commit_{side}_nodes")
    root = next(n for i, n in nodes.items() if i.startswith("root:") and n["children"])
    assert root["children"][-1].startswith("more:") or len(root["children"]) <= 30
    return [nodes[i] for i in root["children"]]


@pytest.mark.usefixtures("quick")
def test_what_changed_comes_first_in_a_large_root(lab: Any) -> None:
    table = ix.empty({"id": "long"}, format_version=4, seed=2, leaf_entries=1, flush_data_files=0)
    table.append(40, rows=1)
    widget = lab(table)
    ask(widget, "show")
    assert sum(n["kind"] == "data-manifest" for n in widget.commit_after_nodes.values()) == 30
    widget.commit_after_expanded = [*widget.commit_after_expanded, f"more:root:{table.snapshot.snapshot_id}"]  # type: ignore[union-attr]
    assert widget.settle(60)
    assert sum(n["kind"] == "data-manifest" for n in widget.commit_after_nodes.values()) == 40
    gone = data_files(table)[-1]
    widget.apply("append", files=2)
    assert [n["kind"] for n in children(widget, "after")[:3]] == ["data-file", "data-file", "data-manifest"]
    alone = widget.simulation.copy()
    widget.apply("delete", by="filter", where="true")
    assert [n["marks"] for n in children(widget, "before")[:3]] == [["removed"], ["removed"], ["carried"]]
    assert widget.commit_before_nodes[widget.commit_before_expanded[-1]]["kind"] == "data-manifest"
    assert gone in data_files(alone)


def test_costs_are_those_of_the_commit_and_of_the_same_elsewhere(lab: Any) -> None:
    table = empty(3)
    widget = lab(table)
    apply(widget, "append", layout={"format_version": "4"})
    apply(widget, "row_delta", layout={"format_version": "4"})
    report = widget._panel(StepPanel)._reports[widget.commit_report["id"]]
    session = widget._panel(CommitPanel)._session
    made = bars(report, session.twin(session.line, report.step))
    found = {bar["title"]: {r["label"]: sum(p["value"] for p in r["parts"]) for r in bar["rows"]} for bar in made}
    for (_, heads, rows, look), bar in zip(widget.commit_report["costs"], made, strict=True):
        assert look["kind"] == "cost" and heads[1] == [look["label"]] == [bar["title"]]
        assert [label for ((label,), *_) in rows] == [row["label"] for row in bar["rows"]]
        assert [total for *_, (total,) in rows] == [row["total"] for row in bar["rows"]]
        lengths = [[length for _, length in drawn[1]] for _, (drawn, _), _ in rows]
        assert max(map(sum, lengths)) == pytest.approx(1)
        for mine, row in zip(lengths, bar["rows"], strict=True):
            most = max(found[bar["title"]].values())
            assert mine == pytest.approx([part["value"] / most for part in row["parts"]])
            assert all(part["text"] in words(rows) for part in row["parts"])
    other = table.simulate(3, seed=SEED)
    other.append(3, rows=1000)
    other.row_delta(deletes={path: [0] for path in data_files(other)[:2]})
    for name, s in (("V4", widget.simulation), ("v3", other)):
        last = s.cost().commits.iloc[-1]
        plan = s.cost().plan.cold
        assert found["Files written (one PUT each)"][name] == last["files"]
        assert found["Bytes written"][name] == last["bytes"]
        assert found["Files then read by planning (one GET each)"][name] == len(plan)
        assert found["Bytes then read by planning"][name] == sum(f.size for f in plan)
    assert "Written: V4 " in widget.commit_report["compared"]
    widget.apply("row_delta", by="values", values={"id": [1], "region": ["eu"]})
    apply(widget, "upgrade", {"to": "4"})
    assert "not possible in the table's present state" in widget.commit_refused["text"]


@pytest.mark.parametrize(("version", "labels"), [(2, ["v2", "V4"]), (3, ["v3", "V4"]), (4, ["V4"])])
def test_what_is_compared(lab: Any, version: int, labels: list[str]) -> None:
    table = empty(version)
    widget = lab(table)
    apply(widget, "append")
    assert layouts(widget) == labels
    assert json.loads(json.dumps(traits(widget), allow_nan=False)) == traits(widget)


def test_a_root_beside_the_list_of_java(lab: Any) -> None:
    widget = lab(empty(4, dialect="v4-java"))
    apply(widget, "append")
    assert layouts(widget) == ["V4, list", "V4"]
    ask(widget, "undo")
    apply(widget, "append", layout={"dialect": "v4-proposal"})
    assert layouts(widget) == ["V4", "V4, list"]


def test_an_operation_that_the_other_layout_refuses(lab: Any) -> None:
    widget = lab(empty(2))
    apply(widget, "row_delta")
    apply(widget, "rewrite_position_deletes", layout={"format_version": "4"})
    assert widget.commit_refused == {}
    assert "In v3 the operation was refused" in widget.commit_report["compared"]
    assert [len(rows) for _, _, rows, _ in widget.commit_report["costs"]] == [1] * 4


def test_the_tables_of_a_step(lab: Any) -> None:
    widget = lab(empty(3))
    apply(widget, "append", layout={"format_version": "4"})
    step = widget.commit_report["id"]
    sizes = {}
    for n, table in enumerate(("files", "manifests", "rules", "written", "plan")):
        widget.query = {"commit": {"n": n, "of": step, "table": table}}
        assert widget.settle(60) and widget.error == {}
        page = widget.pages["commit"]
        assert (page["of"], page["table"]) == (step, table)
        sizes[table] = page["total"]
        if table == "written":
            assert "root-manifest" in [row[1] for row in page["rows"]], "V4 has no manifest list"
    checked = commits.checked_rules(widget.simulation.state)
    rules = len(checked) + len(OPEN_POINTS)
    assert sizes == {"files": 3, "manifests": 2, "rules": rules, "written": 2, "plan": 4}
    more = f"The proposal leaves {len(OPEN_POINTS)} points open (tab Rules)."
    assert widget.commit_report["checked"] == f"{len(checked)} rules checked, none broken. {more}"
    for of, table in (("99", "files"), (step, "nothing")):
        widget.query = {"commit": {"n": 50, "of": of, "table": table}}
        assert widget.settle(60) and widget.error["text"]


def test_what_the_proposal_leaves_open_follows_the_rules_of_a_root_manifest(lab: Any) -> None:
    results: dict[int, list[str]] = {}
    for version in (3, 4):
        widget = lab(empty(version))
        apply(widget, "append")
        rows: list[Any] = []
        while not rows or len(rows) < widget.pages["commit"]["total"]:
            asked = {"n": 1 + len(rows), "of": widget.commit_report["id"], "table": "rules", "page": len(rows) // 50}
            widget.query = {"commit": asked}
            assert widget.settle(60) and widget.error == {}
            rows += widget.pages["commit"]["rows"]
        results[version] = [row[1] for row in rows]
        last = rows[-1]
    assert set(results[3]) == {"kept"}, "a manifest list follows the adopted spec"
    open_points = ["left open"] * len(OPEN_POINTS)
    assert results[4][-len(open_points) :] == open_points and results[4].count("left open") == len(open_points)
    point = list(OPEN_POINTS.values())[-1]
    assert last[0] == point.id and point.title in last[2] and point.written[:40] in last[2]


def test_broken_rules_are_reported(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = commits.RuleBreak("row-ids", "a.parquet", "row ids are also assigned to another file")
    monkeypatch.setattr("iceexplore.commits.check_rules", lambda state: [broken])
    widget = lab(empty(3))
    apply(widget, "append")
    assert widget.commit_report["checked"].endswith("1 broken: row-ids.")
    widget.query = {"commit": {"n": 1, "of": widget.commit_report["id"], "table": "rules"}}
    assert widget.settle(60)
    assert widget.pages["commit"]["rows"][0][:2] == ["row-ids", "broken"]


def test_for_a_damaged_table_the_report_names_what_could_not_be_checked(lab: Any, tmp_path: Path) -> None:
    empty(2).save(tmp_path / "table")
    leaf = str(ix.open(tmp_path / "table").inspect.manifests()["path"][0])
    Path(leaf).unlink()
    widget = lab(ix.open(tmp_path / "table"))
    apply(widget, "append")
    report = widget.commit_report
    assert report["checked"].startswith("Rules cannot be checked: ") and Path(leaf).name in report["checked"]
    assert "being" not in report["compared"]
    assert len(widget.commit_line["steps"]) == 1


def test_who_was_refused(lab: Any) -> None:
    widget = lab(empty(3))
    apply(widget, "append", {"files": 1, "rows": 1})
    apply(widget, "row_delta", {"of": 1, "positions": "0"}, rival="rows")
    refusal = widget.commit_refused["text"]
    assert refusal.startswith("The other writer's commit failed: position 1 is beyond the 1 rows of ")
    assert len(widget.commit_line["steps"]) == 1
    apply(widget, "row_delta", {"of": 1, "positions": "1"})
    assert widget.commit_refused["text"].startswith("position 1 is beyond the 1 rows of ")


def test_saving(lab: Any, tmp_path: Path) -> None:
    widget = lab(empty(3))
    apply(widget, "append", layout={"format_version": "4"})
    ask(widget, "save", path=str(tmp_path / "new"))
    assert widget.commit_saved["path"] == str(tmp_path / "new")
    opened = eval(widget.commit_saved["code"], {"ix": ix})
    assert document(opened)["snapshots"][-1]["snapshot-id"] == widget.simulation.snapshot.snapshot_id
    ask(widget, "save", path=str(tmp_path / "new"))
    assert "not an empty folder" in widget.commit_saved["error"]
    ask(widget, "save", path="/proc/nope/x")
    refusal = widget.commit_saved["error"]
    assert refusal.startswith("/proc/nope/x could not be written: ") and "Errno" not in refusal
    ask(widget, "save", path="nul\0")
    assert "invalid in a path: a NUL" in widget.commit_saved["error"]
    ask(widget, "save", path=str(tmp_path / ("n" * 300)))
    assert "could not be written: File name too long" in widget.commit_saved["error"]
    ask(widget, "save", path="s3://bucket/t")
    assert "is a remote URI, but the file is written to the local disk" in widget.commit_saved["error"]
    ask(widget, "save", path="  ")
    assert widget.commit_saved["error"] == "The folder is missing. Give one that does not exist yet."
    assert words(widget.commit_saved["blocks"]).endswith(
        "Not saved The folder is missing. Give one that does not exist yet."
    )
    assert widget.commit_refused == {}, "that is of what is committed"


@pytest.mark.usefixtures("quick")
def test_the_table_is_never_written(lab: Any, trips: Path) -> None:
    def hashes() -> dict[str, str]:
        return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(trips.rglob("*")) if p.is_file()}

    before = hashes()
    widget = lab(ix.open(trips))
    for name in OPERATIONS:
        apply(widget, name, layout={"format_version": "4"})
    assert widget.commit_line["at"] > 5
    assert hashes() == before


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["html", "newlines", "backtick", "terminal", "bidi"])
def test_hostile_names(lab: Any, name: str) -> None:
    """Names of everything are data: in traits they are JSON, in the code literals."""
    text = HOSTILE[name].replace(".", "·")  # a dot leads into a struct
    table = ix.empty({"id": "long", text: "string"}, format_version=3, partition_by="id", seed=1)
    table.append(1, rows=5)
    table.set_properties({text: text})
    table.tag(text)
    widget = lab(table)
    ask(widget, "show")
    apply(widget, "ref", {"name": text + "2"})
    apply(widget, "evolve_schema", {"change": "rename", "column": text, "to": text + "3"})
    assert widget.commit_refused == {} or widget.commit_refused["text"]
    apply(widget, "set_properties", {"name": text + "4", "value": text})
    apply(widget, "append", {"files": 1})
    assert widget.commit_line["at"] >= 3
    sent = json.dumps(traits(widget), allow_nan=False)
    sent.encode()
    namespace: dict[str, Any] = {"t": table}
    exec(widget.commit_line["code"], namespace)
    assert document(namespace["s"]) == document(widget.simulation)
    assert set(namespace) == {"t", "s", "ix", "__builtins__"}


NONSENSE: list[dict[str, Any]] = [
    {},
    {"do": "rm -rf"},
    {"do": "apply"},
    {"do": "apply", "operation": ["append"]},
    {"do": "apply", "operation": "append", "values": []},
    {"do": "apply", "operation": "append", "values": {"files": "3"}},
    {"do": "apply", "operation": "append", "values": {"files": -1}},
    {"do": "apply", "operation": "append", "values": {"files": True}},
    {"do": "apply", "operation": "append", "values": {"partitions": "{'a"}},
    {"do": "apply", "operation": "append", "values": {"partitions": "NaN"}},
    {"do": "apply", "operation": "append", "values": {"partitions": "[" * 20_000}},
    {"do": "apply", "operation": "append", "values": {"__class__": 1}},
    {"do": "apply", "operation": "append", "layout": {"format_version": "5"}},
    {"do": "apply", "operation": "append", "layout": {"format_version": "4", "leaf_entries": 0}},
    {"do": "apply", "operation": "append", "layout": {"format_version": "4", "rewrite_leaf_at": 2}},
    {"do": "apply", "operation": "append", "rival": "shark"},
    {"do": "apply", "operation": "row_delta", "values": {"positions": "1-99999999999"}},
    {"do": "apply", "operation": "row_delta", "values": {"positions": "x"}},
    {"do": "apply", "operation": "row_delta", "values": {"by": "values", "values": "3"}},
    {"do": "apply", "operation": "set_properties", "values": {"name": "x" * 200_000}},
    {"do": "go", "line": 7, "at": 0},
    {"do": "go", "line": 0, "at": "1"},
    {"do": "fork", "name": "x" * 100},
]


def test_nonsense_is_refused_beside_the_form(lab: Any) -> None:
    widget = lab(empty(3))
    ask(widget, "show")
    before = (widget.commit_line, widget.commit_after_nodes)
    for n, asked in enumerate(NONSENSE):
        widget.commit_asked = {**asked, "n": n + 100}
        assert widget.settle(60)
        assert widget.error == {}, asked
        assert widget.commit_refused["text"], asked
        assert (widget.commit_line, widget.commit_after_nodes) == before
    for n, earlier in enumerate([7, "abc", None, {"n": 1}, [1, "x", {"n": "y"}, {}]]):
        widget.commit_asked = {"do": "show", "n": n + 200, "earlier": earlier}
        assert widget.settle(60)
        assert (widget.error, widget.commit_refused, widget.commit_line) == ({}, {}, before[0]), earlier
    apply(widget, "append")
    assert widget.commit_refused == {} and widget.commit_line["at"] == 1


SENT = {"of", "name", "label", "wide", "default", "help", "more", "choices", "input", "when"}


def test_forms_say_all_that_a_browser_needs(lab: Any) -> None:
    widget = lab(ix.sample("trips"))
    form = widget.commit_form
    assert {o["name"] for o in form["operations"]} == set(OPERATIONS) - {"update_columns"}, "of the V4 draft only"
    draft = ix.empty({"id": "long", "x": "long"}, format_version=4, dialect="v4-draft", seed=1)
    draft.append(2, rows=10)
    assert "update_columns" in {o["name"] for o in lab(draft).commit_form["operations"]}
    assert [value for value, _ in form["choose"][1]["choices"]] == [name for name, _ in RIVALS]
    for fields in (form["layout"], form["choose"], *(o["fields"] for o in form["operations"])):
        seen: set[str] = set()
        for field in fields:
            assert set(field) == SENT
            assert field["label"] and field["input"].get("type") in ("number", "text", "checkbox", None)
            assert field["when"] is None or field["when"][0] in seen
            assert field["choices"] or field["input"] or field["when"]
            assert (field["choices"] is None) == bool(field["input"])
            seen.add(field["name"])
    options = {f["name"]: f for f in form["layout"][1:]}
    assert set(options) == {o.name for o in commits.option_docs(4)}
    assert all(f["help"] for f in options.values())
    assert options["flush_data_files"]["default"] == commits.LayoutOptions.of(4).flush_data_files
    for option in commits.option_docs(4):
        sent = options[option.name]
        assert [sent["input"].get(name) for name in ("min", "max")] == [option.least, option.most]
        assert sent["of"] == "layout"
    assert layout_fields(empty(4).state)[1].when == ("format_version", ("4", ""))


def test_fields_and_calls() -> None:
    fields = (
        Field("by", "By", "choice", "a", choices=(("a", "A"), ("b", "B"))),
        Field("n", "N", "int", 1, least=1, most=5, when=("by", ("b",))),
        Field("share", "Share", "number", None, least=0, most=1),
    )
    assert checked_values(fields, {"n": 99}) == {"by": "a", "n": 1, "share": None}
    assert checked_values(fields, {"by": "b", "n": 5, "share": 0.5}) == {"by": "b", "n": 5, "share": 0.5}
    for wrong in ({"by": "b", "n": 6}, {"by": "b", "n": 1.5}, {"share": 2}, {"by": "c"}, {"x": 1}):
        with pytest.raises(OptionError):
            checked_values(fields, wrong)
    long = Call("append", ([f"s3://b/{i}'\"\n.parquet" for i in range(40)],), {"x": {"a": None, "b": True}})
    got: dict[str, Any] = {}

    class Table:
        def append(self, *args: Any, **kwargs: Any) -> None:
            got.update(args=args, kwargs=kwargs)

    exec(long.code("t"), {"t": Table()})
    assert got == {"args": long.args, "kwargs": dict(long.kwargs)}
    assert "\n    " in long.code("t") and Call("compact").code("s") == "s.compact()"


@pytest.mark.usefixtures("quick")
def test_a_very_wide_table(lab: Any) -> None:
    widget = lab(ix.empty({f"c{i}": "long" for i in range(1200)}, format_version=3, seed=1))
    fields = next(o["fields"] for o in widget.commit_form["operations"] if o["name"] == "evolve_schema")
    assert len(fields[2]["choices"]) == 1000
    widget.apply("evolve_schema", change="drop", column="c1199")
    assert len(widget.simulation.schema.fields) == 1199


def test_many_partition_fields_are_no_wall_of_names(lab: Any) -> None:
    names = ["x" * 10_000, *(f"c{i}" for i in range(300))]
    widget = lab(ix.empty(dict.fromkeys(names, "long"), partition_by=names, format_version=2, seed=1))
    fields = next(o["fields"] for o in widget.commit_form["operations"] if o["name"] == "append")
    field = next(f for f in fields if f["name"] == "partitions")
    assert len(field["help"] + field["more"]) < 300
    assert "and 295 more" in field["help"] + field["more"]


def test_what_is_cancelled_is_not_done(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = lab(empty(3))
    ask(widget, "show")
    begun, go_on = threading.Event(), threading.Event()
    original = Simulation.append

    def slow(self: Simulation, *args: Any, **how: Any) -> Any:
        begun.set()
        assert go_on.wait(30)
        return original(self, *args, **how)

    monkeypatch.setattr(Simulation, "append", slow)
    widget.commit_asked = {"n": 9, "do": "apply", "operation": "append", "values": {}, "layout": {}, "rival": ""}
    assert begun.wait(30) and widget.busy
    widget.cancelled += 1
    go_on.set()
    assert widget.settle(60) and widget.busy == ""
    assert widget.commit_line["at"] == 0
    monkeypatch.undo()
    apply(widget, "append")
    assert widget.commit_line["at"] == 1
    monkeypatch.setattr("iceexplore.commits.check_rules", lambda state: begun.wait(30) and [])
    begun.clear()
    widget.apply("append")
    widget.cancelled += 1
    begun.set()
    assert widget.settle(60)
    assert "was cancelled" in widget.commit_report["text"][0] and widget.commit_after_nodes == {}
    ask(widget, "go", line=0, at=2)
    assert "none broken" in widget.commit_report["checked"] and widget.commit_after_nodes


def test_the_figure_comes_before_the_trees_which_may_be_cancelled(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = lab(empty(3))
    apply(widget, "append")
    go_on = threading.Event()
    with monkeypatch.context() as patched:
        first = SideTree.first
        patched.setattr(SideTree, "first", lambda self: first(self) if go_on.wait(30) else {})
        widget.apply("append")
        assert not widget.settle(1)
        assert widget.commit_report["figure"] and widget.commit_report["headline"]
        assert widget.commit_report["id"] == widget.commit_line["steps"][1]["id"]
        assert widget.commit_before_nodes == widget.commit_after_nodes == {}, "not those of another step"
        widget.cancelled += 1
        go_on.set()
        assert widget.settle(60)
    assert "was cancelled" in widget.commit_report["text"][0] and widget.commit_after_nodes == {}
    ask(widget, "go", line=0, at=2)
    assert widget.commit_report["figure"] and widget.commit_after_nodes


def test_a_state_has_no_simulation(lab: Any) -> None:
    widget = lab(ix.sample("trips").state)
    assert "needs a table" in widget.commit_form["needs"]
    ask(widget, "show")
    assert "needs a table" in widget.commit_refused["text"]
    for call in (lambda: widget.apply("append"), widget.undo, lambda: widget.simulation):
        with pytest.raises(OptionError, match="CommitLab"):
            call()


def test_an_empty_table(lab: Any) -> None:
    table = ix.empty({"id": "long"}, format_version=4, seed=3)
    widget = lab(table)
    ask(widget, "show")
    assert [n["kind"] for n in widget.commit_after_nodes.values()] == ["metadata"]
    apply(widget, "row_delta")
    assert "append some first" in widget.commit_refused["text"]
    apply(widget, "append", {"files": 1})
    assert widget.commit_before_roots == ["metadata"]
    assert {"data-file", "root-manifest"} <= {n["kind"] for n in widget.commit_after_nodes.values()}


def test_a_simulation_that_goes_on_is_tried_as_it_was(lab: Any) -> None:
    table = empty(3)
    widget = lab(table)
    before = document(table)
    table.append(5, rows=5)
    apply(widget, "delete", {"by": "filter", "where": "true"})
    assert widget.commit_report["text"][1] == "Removed: 5 data files."
    assert document(table) != before


def test_without_a_kernel_the_steps_are_there_as_python(lab: Any) -> None:
    widget = lab(empty(3))
    assert "s.append" not in widget._no_kernel_html()
    apply(widget, "append")
    assert "s.append(3, rows=1000)" in widget._no_kernel_html()


def test_a_step_is_drawn_as_the_proposal_draws_it_with_its_cost_above(lab: Any) -> None:
    widget = lab(empty(3))
    ask(widget, "show")
    _, text, width = widget.commit_report["figure"]
    assert "Snapshot 2 (now)" in text, "numbered as in the timeline"
    assert width > 400
    apply(widget, "append", {"files": 2}, layout={"format_version": "4"})
    svg, text, _ = widget.commit_report["figure"]
    assert "Snapshot 2 (before)" in text
    assert "Snapshot 3 (after)" in text
    assert text.count("ADDED") >= 2
    ElementTree.fromstring(svg)
    written = list(widget.simulation.writes)
    cost = plan_cost(widget.simulation.state).cold
    shown = words(widget.commit_report["headline"])
    assert f"{len(written)} PUTs, " in shown
    assert f"next plan: {len(cost)} GETs, " in shown
    json.dumps(widget.commit_report, allow_nan=False)
    apply(widget, "append", {"files": 1}, rival="append")
    assert "(other commit)" in widget.commit_report["figure"][1]


def test_a_conflict_is_drawn_and_the_step_stays(lab: Any) -> None:
    widget = lab(empty(3))
    apply(widget, "append", {"files": 2})
    before = widget.commit_report
    apply(widget, "delete", {"of": 1}, rival="delete")
    svg, text, _ = widget.commit_refused["figure"]
    ElementTree.fromstring(svg)
    assert "deletes the same files first" in text
    assert "REFUSED: files-exist" in text
    assert ".parquet" in text
    assert widget.commit_report == before
    apply(widget, "append", {"files": -1})
    assert "figure" not in widget.commit_refused, "that is no conflict"


def test_figures_of_large_and_hostile_tables_stay_small(lab: Any) -> None:
    name = "<img src=x onerror=alert(1)>"
    table = ix.empty({name: "long"}, format_version=4, seed=1, flush_data_files=0)
    for _ in range(12):
        table.append(files=30, rows=10)
    widget = lab(table)
    apply(widget, "append", {"files": 40})
    svg, text, width = widget.commit_report["figure"]
    assert "more" in text
    assert "ADDED" in text, "what the commit wrote comes first"
    assert "<img" not in svg
    assert width < 4000
    assert len(svg) < 100_000


def test_a_simulation_that_will_upgrade_begins_with_its_version() -> None:
    pending = ix.sample("trips").simulate(format_version=4, seed=1, flush_data_files=3)
    widget = CommitLab(pending)
    assert "Simulation: writes v4" in widget.badges
    fields = {field["name"]: field for field in widget.commit_form["layout"]}
    assert fields["format_version"]["default"] == "4"
    assert dict(fields["format_version"]["choices"])["4"] == "4 (simulation's)"
    assert fields["flush_data_files"]["default"] == 3
    assert widget.simulation.options == pending.options
    widget.apply("append", layout={})
    assert widget.simulation.table.format_version == 4
    assert ".simulate(4, seed=1, flush_data_files=3)" in widget.commit_line["code"].replace("format_version=", "")
    widget.close()
    assert CommitLab(ix.sample("trips")).badges == ["Iceberg v3"]


# Details of an item ---------------------------------------------------------------------------------------------------


def look(widget: CommitLab, of: str, table: str = "") -> dict[str, Any]:
    """The page of a table of a step, or of an item of its trees."""
    widget.query = {"commit": {"of": of, "table": table, "n": widget.query.get("commit", {}).get("n", 0) + 1}}
    assert widget.settle(60)
    assert widget.error == {}
    return dict(widget.pages["commit"])


def column(page: dict[str, Any], name: str) -> list[Any]:
    place = page["shown"].index([one["name"] for one in page["columns"]].index(name))
    return [row[place] for row in page["rows"]]


def test_the_entries_of_a_simulated_root(lab: Callable[..., CommitLab]) -> None:
    widget = lab(empty(3).table)
    apply(widget, "append", {"files": 2}, layout={"format_version": "4"})
    step = widget.commit_report["id"]
    page = look(widget, f"{step} after ")
    assert column(page, "status") == ["EXISTING"] * 2 + ["ADDED"] * 2
    assert column(page, "content") == ["DATA_MANIFEST"] * 2 + ["DATA"] * 2
    text = words(page["above"])
    assert text.startswith("p b Root manifest , after the step")
    assert "-root." in text
    assert "1" in page["help"], "the heading of the status explains its field"
    # a row leads to its file, with its columns and its record as written
    node = page["nodes"][2]
    assert node.startswith("file:")
    columns = look(widget, f"{step} after {node}")
    assert "id" in [one["name"] for one in columns["columns"]]
    record = json.loads(look(widget, f"{step} after {node}", "json")["text"])
    assert "status" in json.dumps(record)
    assert words(widget.pages["commit"]["above"]).count("JSON") == 1
    # before the step there was a manifest list
    assert "Manifest list , before the step" in words(look(widget, f"{step} before ")["above"])


def test_an_item_that_a_side_lacks_is_its_root(lab: Callable[..., CommitLab]) -> None:
    widget = lab(empty(4).table)
    apply(widget, "append", {"files": 1})
    step = widget.commit_report["id"]
    new = widget.simulation.table.snapshots[-1].snapshot_id
    assert "Root manifest , before the step" in words(look(widget, f"{step} before root:{new}")["above"])
    widget.query = {"commit": {"of": f"{step} beside x", "table": "", "n": 99}}
    assert widget.settle(60)
    assert "the side must be" in widget.error["text"]


def test_written_files_lead_to_what_they_are(lab: Callable[..., CommitLab]) -> None:
    widget = lab(empty(3).table)
    apply(widget, "append", {"files": 1})
    page = look(widget, widget.commit_report["id"], "written")
    found = dict(zip(column(page, "kind"), page["nodes"], strict=True))
    new = widget.simulation.table.snapshots[-1].snapshot_id
    assert found["manifest-list"] == f"root:{new}"
    assert found["metadata"] == "metadata"
    assert found["manifest"].startswith(f"manifest:{new}:")


def test_another_step_shows_its_own_root(lab: Callable[..., CommitLab]) -> None:
    widget = lab(empty(4).table)
    apply(widget, "append", {"files": 1})
    widget.commit_item = {"side": "before", "node": "metadata"}
    apply(widget, "append", {"files": 1})
    assert widget.commit_item == {}


@pytest.mark.parametrize("name", ["html", "newlines", "backtick", "terminal", "bidi"])
def test_names_of_items_are_text(lab: Callable[..., CommitLab], name: str) -> None:
    widget = lab(empty(4).table)
    apply(widget, "ref", {"name": HOSTILE[name]})
    page = look(widget, f"{widget.commit_report['id']} after {ref_id(HOSTILE[name])}")
    json.dumps(page, ensure_ascii=False).encode()
    shown = words(page["above"])
    assert all(c.isprintable() for c in shown), shown


def test_a_flush_says_why(lab: Callable[..., CommitLab]) -> None:
    start = ix.empty(SCHEMA, format_version=4, seed=7)
    widget = lab(start.table)
    apply(widget, "append", {"files": 2}, layout={"flush_data_files": 3})
    assert "flushed" not in " ".join(widget.commit_report["text"])
    apply(widget, "append", {"files": 2}, layout={"flush_data_files": 3})
    assert "would have had more than 3 data files" in " ".join(widget.commit_report["text"])
