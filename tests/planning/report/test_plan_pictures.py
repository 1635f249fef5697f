"""The tree and the waterfall of a plan show what the plan has: everything, once, with what decided."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import OptionError
from iceexplore.planning import PlanTree, Waterfall
from tests.helpers.tables.plan_table import filled, planned
from tests.planning.report.picture_checks import ROOMY, count_of, faces, greyed, lab, read_of

SHOWN = ("v1", "v2", "v3", "v4-root", "v4-leaves", "v4-java")
ASKED = ("id >= 25", "day >= date '2024-01-02' and region = 'a'", "amount > 20 or id in (1, 2)")


# The tree against the plan -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", SHOWN)
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_skipped_is_grey_where_it_was_skipped_and_says_what_decided(layout: str, asked: str) -> None:
    plan = lab(layout).plan(asked)
    tree = plan.tree(max_nodes=ROOMY)
    assert [n.tooltip for n in read_of(tree, "data-file")] == planned(plan)
    opened = [leaf.location for leaf in plan.leaves if leaf.root_row is not None]
    assert sorted(str(n.tooltip) for n in read_of(tree, "data-manifest")) == sorted(opened)
    skipped = plan.skipped_arrow.to_pylist()
    for kind, drawn in (("data file", "data-file"), ("manifest", "data-manifest")):
        assert sum(map(count_of, greyed(tree, drawn))) == sum(r["kind"] == kind for r in skipped)
    for node in [*greyed(tree, "data-file"), *greyed(tree, "data-manifest")]:
        mine = [r for r in skipped if r["kind"] == ("manifest" if node.kind == "data-manifest" else "data file")]
        if node.kind == "data-file":
            leaf = int(str(node.parent).rpartition(":")[2]) if str(node.parent).startswith("manifest:") else None
            mine = [r for r in mine if r["root_row"] == leaf]
        by_term = [r for r in mine if r["term"] == node.lines[0]]
        assert len(by_term) >= count_of(node) > 0
        if count_of(node) == 1:
            (record,) = [r for r in by_term if r["name"] == str(node.tooltip).partition("\n")[0]]
            assert node.tooltip == f"{record['name']}\n{record['why']}"
            for end in ("lower", "upper"):  # the values that decided can be read, not only pointed at
                assert record[end] is None or record[end] in node.lines[1]


def test_folds_say_the_rows_and_bytes_that_they_hold() -> None:
    plan = lab("v3").plan("id < 0")
    folds = greyed(plan.tree(), "data-file")
    assert len(folds) == 5
    rows = [int(m[1]) for n in folds if (m := re.search(r"(\d+) rows", n.lines[-1]))]
    assert sum(rows) == plan.skipped["rows"].sum() == 50
    assert folds[0].lines[1] == "bounds: id is 40 to 49 in the first of these; 2 other ranges not shown"


def test_a_null_a_range_and_one_value_of_a_partition_are_described() -> None:
    plan = lab("v2").plan("day >= date '2024-01-02' and region = 'a'")
    lines = {line for n in plan.tree().scene().nodes for line in n.lines}
    expected = {"partition: region is b", "region of the file's partition is null", "partition: day_day is 2024-01-01"}
    assert expected <= lines


@pytest.mark.parametrize("layout", ["v2", "v3", "v4-root", "v4-leaves"])
def test_edges_are_the_plans_deletes(layout: str) -> None:
    plan = lab(layout).plan()
    tree = plan.tree(max_nodes=ROOMY)
    names = {n.id: n.tooltip for n in tree.scene().nodes}
    edges = sorted((names[e.target], names[e.source]) for e in tree.scene().relations(("applies-to",)))
    expected = [
        (record["file_path"], name)
        for record in plan.tasks_arrow.to_pylist()
        for name in [record["deletion_vector"], *record["position_deletes"], *record["equality_deletes"]]
        if name
    ]
    assert edges == sorted(expected) and len(edges) == 2
    assert not [n for n in tree.scene().nodes if n.id == "deletes:idle"]


@pytest.mark.parametrize("layout", ["v2", "v3", "v4-root", "v4-leaves"])
def test_deletes_that_apply_to_nothing_are_grey(layout: str) -> None:
    plan = lab(layout).plan("id >= 25")  # one delete is of a file that is read, the other is not
    nodes = plan.tree().scene().nodes
    kinds = {"position-delete", "deletion-vector"}
    assert len([n for n in nodes if n.kind in kinds and "pruned" not in n.marks]) == 1
    grey = [n for n in nodes if n.id.startswith(("deletes:idle", "deletes:skipped"))]
    assert len(grey) == 1 and "pruned" in grey[0].marks
    nothing = [n.lines for n in lab(layout).plan("id < 0").tree().scene().nodes if n.kind == "delete-manifest"]
    assert nothing == ([] if layout == "v4-root" else [("no data file is read",)])  # in V4 they may be in the root


def test_equality_deletes_say_to_how_many_files_they_apply() -> None:
    table = filled("v2", partition_by=())
    table.row_delta(equality=pd.DataFrame({"id": [3]}))
    tree = table.plan().tree(max_nodes=ROOMY)
    (delete,) = read_of(tree, "equality-delete")
    targets = tree.scene().relations(("applies-to",))
    assert len(targets) == table.plan().deletes["tasks"].iloc[0]
    assert delete.lines[0].startswith("deletes by equality")


def test_a_file_says_what_is_left_to_check_and_where_all_rows_match() -> None:
    nodes = read_of(lab("v3").plan("region = 'b' and amount > 20").tree(max_nodes=ROOMY), "data-file")
    (left,) = {n.lines[-1] for n in nodes if n.badge is None}
    assert left.startswith("to check: amount > 20")
    assert {n.badge for n in nodes} == {None, "all match"}


def test_files_whose_row_groups_are_all_skipped_are_grey() -> None:
    table = filled("v3", partition_by=(), appends=1)
    plan = table.plan("id > 3 and id < 5 and amount > 9", row_groups=True)
    left = plan.tasks["row_groups_read"].tolist()
    nodes = [n for n in plan.tree().scene().nodes if n.kind == "data-file"]
    assert [("pruned" in n.marks) for n in nodes] == [not n for n in left]
    assert all(f"{n:,} of 1 row group read" in node.lines for n, node in zip(left, nodes, strict=True))


# Many, few, none -----------------------------------------------------------------------------------------------------


@cache
def many() -> ix.Simulation:
    table = ix.empty({"id": "long", "ts": "timestamp"}, seed=3, flush_data_files=1, leaf_entries=20)
    table.append([made(n) for n in range(400)], check_duplicates=False)
    return table


def made(n: int) -> dict[str, Any]:
    """A file of ids 10 n to 10 n + 9; nobody reads it."""
    return {
        "location": f"data/made-up/{n:05}.parquet", "record_count": 10, "file_size_in_bytes": 1000,
        "lower_bounds": {"id": 10 * n}, "upper_bounds": {"id": 10 * n + 9}, "value_counts": {"id": 10},
    }  # fmt: skip


@pytest.mark.parametrize("nodes", [8, 60, 200])
@pytest.mark.parametrize("asked", ["id >= 2005", "id = 5", "id >= 0", "id in (5, 2005, 3995)"])
def test_pictures_stay_small_and_lose_nothing(nodes: int, asked: str) -> None:
    plan = many().plan(asked)
    scene = plan.tree(max_nodes=nodes).scene()
    assert len(scene.nodes) <= max(20, 1.5 * nodes)
    read = len([n for n in scene.nodes if n.kind == "data-file" and "pruned" not in n.marks])
    for node in scene.nodes:
        for line in (node.label, *node.lines) if node.kind == "more" else ():
            count = re.match(r"([\d,]+) (?:more |files? |of [\d,]+ files? )read", line)
            read += int(count[1].replace(",", "")) if count else 0
    assert read == len(plan)
    assert str(plan.tree(max_nodes=nodes).to_mermaid()).count("\n") < 500


def test_many_appends_are_folded() -> None:
    table = ix.empty({"id": "long"}, format_version=2, seed=3)
    for n in range(12):
        table.append([made(n)])
    plan = table.plan("id >= 55", from_snapshot=table.snapshots[0], to_snapshot=table.snapshots[11])
    assert len(plan.roots) == 11
    scene = plan.tree(max_nodes=20).scene()
    (rest,) = [n for n in scene.nodes if n.parent == "table" and n.kind == "more"]
    assert (rest.label, rest.lines) == (
        "10 more appends",
        ("10 of 10 manifests read", "in the manifests read: 6 of 10 files read"),
    )
    whole = plan.tree(max_nodes=ROOMY).scene()
    assert [n.lines[0] for n in whole.nodes if n.kind == "manifest-list"] == [
        f"snapshot {s.snapshot_id}" for s in table.snapshots[1:]
    ]
    assert [n.tooltip for n in whole.nodes if n.kind == "data-file" and "pruned" not in n.marks] == planned(plan)
    assert sum(map(count_of, greyed(plan.tree(max_nodes=ROOMY), "data-file"))) == len(plan.skipped)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_table_without_a_snapshot(version: int) -> None:
    plan = ix.empty({"id": "long"}, format_version=version).plan("id = 1")
    assert [n.id for n in plan.tree().scene().nodes] == ["table"]
    assert "nothing to read" in plan.tree().scene().description and "nothing to read" in plan.waterfall().to_text()
    faces(plan)


@pytest.mark.parametrize("layout", ["v2", "v4-root", "v4-leaves"])
def test_a_table_whose_files_are_gone(layout: str) -> None:
    table = filled(layout, appends=1)
    table.delete_where("true")
    plan = table.plan("id = 1")
    assert len(plan) == 0 and not read_of(plan.tree(), "data-file")
    assert [row.label for row in plan.waterfall().chart().rows] == ["whole table"]
    faces(plan)


@pytest.mark.parametrize("layout", ["v2", "v4-leaves"])
def test_what_cannot_be_read_is_marked_and_not_called_skipped(layout: str, tmp_path: Path) -> None:
    filled(layout, appends=2).save(tmp_path / "t")
    plan = ix.open(tmp_path / "t").plan("id >= 0")
    location = next(leaf.location for leaf in plan.leaves if leaf.root_row is not None)
    Path(plan.state.storage.resolve(location)).unlink()
    damaged = ix.open(tmp_path / "t").plan("id >= 0")
    (node,) = [n for n in damaged.tree().scene().nodes if "problem" in n.marks]
    assert node.tooltip == location and "only partly readable" in node.lines
    assert not greyed(damaged.tree(), "data-manifest")
    Path(plan.state.storage.resolve(plan.roots[0].root.location)).unlink()
    nothing = ix.open(tmp_path / "t").plan("id >= 0")
    for lost in (damaged, nothing):
        assert "incomplete" in lost.tree().scene().description and "incomplete" in lost.waterfall().to_text()
        faces(lost)
    assert "incomplete" not in plan.tree().scene().description + plan.waterfall().to_text()


@pytest.mark.parametrize("given", [7, 0, -1, 8.0, True, None, "60"])
def test_too_few_nodes_are_refused(given: Any) -> None:
    with pytest.raises(OptionError, match="max_nodes"):
        lab("v2").plan().tree(max_nodes=given)


# The waterfall -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", SHOWN)
@pytest.mark.parametrize("asked", ["id >= 25", "id < 0"])
def test_bars_are_the_plans_levels(layout: str, asked: str) -> None:
    plan = lab(layout).plan(asked)
    chart = plan.waterfall().chart()
    levels = {r["level"]: r for r in plan.levels().to_dict("records")}
    before: dict[str, float] = {}
    for row in chart.rows:
        for name, bar in zip(chart.columns, row.bars, strict=True):
            if bar is None:
                continue
            if row.label in levels:
                value = levels[row.label][name.replace(" ", "_")]
                assert bar.text == "not known" if value != value else bar.value == value
            if bar.text != "not known":
                assert bar.value + bar.rest == before.get(name, bar.value), (row.label, name)
                before[name] = bar.value
    assert before["files"] == len(plan)
    if asked != "id < 0" and not plan.files.matched.deletes.entries.num_rows:
        assert before["rows"] == plan.tasks["rows"].sum()


@pytest.mark.parametrize("layout", ["v2", "v3", "v4-root", "v4-leaves"])
def test_after_deletes_are_the_rows_that_a_reader_finds(layout: str) -> None:
    plan = lab(layout).plan()
    fall = plan.waterfall().levels.to_pylist()
    assert fall[-1]["level"] == "after deletes"
    assert fall[-1]["rows"] == len(lab(layout).to_arrow()) == 48


def test_rows_that_equality_deletes_leave_are_an_upper_limit() -> None:
    table = filled("v2", partition_by=(), appends=1)
    table.row_delta(equality=pd.DataFrame({"id": [3]}))
    assert [b.text for b in table.plan().waterfall().chart().rows[-1].bars if b][-1] == "up to 10"


def test_rows_that_shared_delete_files_leave_are_estimated_if_files_are_skipped() -> None:
    """Only the rows of the delete file show how many of them belong to the files that the plan reads."""
    table = filled("v2", partition_by=(), appends=2)
    table.set_properties({"write.delete.granularity": "partition"})
    first, second = table.inspect.data_files()["file_path"]
    table.row_delta(deletes={first: [0, 1, 2], second: [0]})
    whole = table.plan().waterfall()
    assert whole.levels["rows"].to_pylist()[-1] == len(table.to_arrow())
    assert "record counts" in build.to_pylist(whole.levels["known"])[-1]
    part = table.plan("id < 10").waterfall()
    assert "are estimated" in build.to_pylist(part.levels["known"])[-1]
    assert [b.text for b in part.chart().rows[-1].bars if b][-1].startswith("about ")


def test_levels_and_measures_that_there_are_none_of_are_left_out() -> None:
    rooted = lab("v4-root").plan("id >= 25").waterfall()
    labels = [r.label for r in rooted.chart().rows]
    assert labels == ["whole table", "after pruning in the root manifest", "after deletes"]
    assert rooted.chart().columns == ("files", "bytes", "rows")
    leafy = lab("v4-leaves").plan("id >= 25").waterfall()
    assert leafy.chart().columns == ("manifests", "files", "bytes", "rows")
    assert "after pruning data files" in [r.label for r in leafy.chart().rows]


def test_notes_count_what_each_term_skipped() -> None:
    plan = lab("v3").plan("region <> 'a' and amount > 20")
    notes = {r["level"]: r["note"] for r in plan.waterfall().levels.to_pylist()}
    assert notes["after pruning data files"] == "10 files skipped by region <> 'a'; 1 file skipped by amount > 20"


def test_bytes_with_those_of_delete_files_are_an_upper_limit() -> None:
    first, second, *_ = lab("v2").plan("day >= date '2024-01-02'").waterfall().chart().rows
    assert str(first.bars[2] and first.bars[2].text).startswith("up to ")
    assert "%" not in str(second.bars[2] and second.bars[2].text)  # of what is not known there is no share


def test_a_small_part_is_described_as_neither_none_nor_all() -> None:
    text = many().plan("id = 5").waterfall().to_text()
    assert "1 (< 1 %)" in text or "1 (5 %)" in text
    assert "> 99 %" in many().plan("id >= 10").waterfall().to_text()


def test_where_every_file_is_small_bars_are_solid() -> None:
    chart = lab("v3").plan().distribution("snapshot").chart()
    assert (chart.solid, chart.pale) == ("", "") and "small file" in chart.description
    assert all(bar is None or bar.rest == 0 for row in chart.rows for bar in row.bars)
    assert [bar.text for row in chart.rows if (bar := row.bars[0])] == ["3 (all small)"] * 5


def test_pictures_show_themselves_in_a_notebook() -> None:
    plan = lab("v3").plan("id >= 25")
    for picture in (plan.tree(), plan.waterfall()):
        bundle = picture._repr_mimebundle_()
        assert bundle["text/plain"] == repr(picture) == picture.to_text()
        assert 'src="data:image/svg+xml;base64,' in bundle["text/html"] and "<details" in bundle["text/html"]
        assert isinstance(picture, (PlanTree, Waterfall))
