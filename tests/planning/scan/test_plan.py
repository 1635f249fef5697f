"""Plans read what may have a matching row, whatever the layout, and explain why the rest is skipped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import IceexploreError, OptionError
from iceexplore.planning import skip_reasons
from iceexplore.storage import CACHE
from tests.helpers.hostile import HOSTILE
from tests.helpers.tables import plan_table as lab


@pytest.fixture(scope="module", params=list(lab.LAYOUTS))
def table(request: pytest.FixtureRequest) -> ix.Simulation:
    return lab.with_deletes(request.param)


def test_without_a_filter_every_live_file_is_read_once(table: ix.Simulation) -> None:
    plan = table.plan()
    assert sorted(lab.planned(plan)) == sorted(lab.live_files(table))
    assert len(plan.skipped) == 0
    assert plan.totals["files"] == plan.totals["files_in_table"] == len(plan)


@pytest.mark.parametrize("where", list(lab.FILTERS))
def test_no_file_with_a_matching_row_is_pruned(table: ix.Simulation, where: str) -> None:
    plan = table.plan(where)
    matches = lab.FILTERS[where]
    read = set(lab.planned(plan))
    sure = dict(zip(lab.planned(plan), plan.files.whole.to_pylist(), strict=True))
    for name, rows in lab.contents(table).items():
        found = [matches(row) for row in rows]
        assert name in read or not any(found), f"{where} prunes {name}"
        if sure.get(name):
            assert all(found), f"{where} does not match all of {name}"


@pytest.mark.parametrize("where", ["region = 'b'", "day = date '2024-01-03'", "id < 0"])
def test_a_filter_of_partition_columns_reads_the_files_of_matching_rows_alone(table: ix.Simulation, where: str) -> None:
    wanted = {n for n, rows in lab.contents(table).items() if any(lab.FILTERS[where](r) for r in rows)}
    assert set(lab.planned(table.plan(where))) == wanted


@pytest.mark.parametrize("where", list(lab.FILTERS))
def test_everything_is_either_read_or_skipped_for_a_reason(table: ix.Simulation, where: str) -> None:
    plan = table.plan(where)
    skipped = plan.skipped
    files = skipped[skipped["kind"] == "data file"]
    assert not set(files["name"]) & set(lab.planned(plan))
    counted = len(plan) + int(skipped["files"].sum())
    assert counted == len(lab.live_files(table)) == plan.totals["files_in_table"]
    assert skipped["why"].notna().all()
    assert skipped["term"].notna().all()
    levels = plan.levels(exact=True)
    assert levels["files"].tolist()[0] == counted
    assert levels["files"].tolist()[-1] == len(plan)
    for column in ("files", "rows", "bytes"):
        assert np.all(np.diff(levels[column].to_numpy().astype(np.int64)) <= 0)


def test_levels_without_reading_say_what_is_not_known(table: ix.Simulation) -> None:
    plan = table.plan("day = date '2024-01-03'")
    cheap, exact = plan.levels(), plan.levels(exact=True)
    for column in ("files", "rows", "bytes"):
        for a, b, known in zip(cheap[column], exact[column], cheap["known"], strict=True):
            if "summary" not in known:
                assert a is pd.NA or a == b


def test_deletes_apply_to_the_files_that_they_name(table: ix.Simulation) -> None:
    plan = table.plan()
    version = table.format_version
    tasks = plan.tasks
    assert int((tasks["deletes"] > 0).sum()) == (0 if version == 1 else 2)
    assert plan.deletes["tasks"].tolist() == ([] if version == 1 else [1, 1])
    if version >= 3:
        assert set(plan.deletes["kind"]) == {"vector"}
        assert sorted(tasks["deleted_rows"].dropna().tolist()) == [1, 1]
    elif version == 2:
        assert set(plan.deletes["kind"]) == {"position"}


def test_a_filter_leaves_deletes_of_other_files_alone(table: ix.Simulation) -> None:
    plan = table.plan("day = date '2024-01-03'")
    assert len(plan.files.matched.deletes) == 0
    assert len(plan) > 0


def test_tasks_carry_what_is_left_of_the_filter(table: ix.Simulation) -> None:
    tasks = table.plan("day = date '2024-01-03' and id > 22").tasks
    assert set(tasks["residual"]) == {"id > 22"}  # the partition proves the day
    assert len(tasks) == 3


def test_partitions_are_planned_by_their_tuples(table: ix.Simulation) -> None:
    plan = table.plan(partition={"region": "a"})
    assert len(plan) == 5
    assert all("region=a" in text for text in plan.tasks["partition"])


def test_a_manifest_that_is_pruned_is_not_read() -> None:
    for layout in ("v2", "v3", "v4-java"):
        table = lab.filled(layout)
        saved = ix.Table(table.state)
        plan = saved.plan("day = date '2024-01-03'")
        assert plan.totals["manifests"] == 1
        assert plan.totals["manifests_in_table"] == 5
        assert list(plan.reads["kind"]).count("data manifest") == 1
        assert set(plan.skipped["level"]) >= {"manifest list"}


def test_affiliated_delete_manifests_of_pruned_leaves_are_not_read() -> None:
    table = lab.with_deletes("v4-leaves")
    every, none = table.plan(), table.plan("id < 0")
    assert every.totals["delete_manifests"]
    assert none.totals["delete_manifests"] == 0


def test_the_roots_own_files_are_pruned_at_the_root() -> None:
    table = lab.filled("v4-root")
    skipped = table.plan("day = date '2024-01-03'").skipped
    assert set(skipped["level"]) == {"root manifest"}
    assert set(skipped["kind"]) == {"data file"}


def test_reasons_are_counted_up_to_the_last_manifest() -> None:
    both = lab.filled("v4-leaves")
    both.set_layout(flush_data_files=5)
    both.append(lab.frame(lab.rows_of(5)))  # files in leaf manifests and in the root
    for table, start in ((lab.filled("v3"), 1), (both, 0)):
        texts = [*skip_reasons(table.plan("region = 'b'"))]
        assert texts == [f"Counting skipped files by reason: {done} of 5 manifests read" for done in range(start, 6)]
    assert [*skip_reasons(lab.filled("v4-root").plan("region = 'b'"))] == []


def test_columns_are_checked_and_counted() -> None:
    table = lab.filled("v2")
    tasks = table.plan(columns=["id", "_pos"]).tasks
    assert (tasks["column_bytes"] < tasks["bytes"]).all()
    with pytest.raises(OptionError, match="no column 'regin'; nearest: region"):
        table.plan(columns=["regin"])
    with pytest.raises(OptionError, match="at least one"):
        table.plan(columns=[])


def test_row_groups_are_judged_when_asked() -> None:
    table = lab.filled("v2", partition_by=())
    plan = table.plan("id >= 25", row_groups=True)
    assert plan.row_groups is not None
    assert plan.levels()["level"].tolist()[-1] == "after pruning row groups"
    assert (plan.tasks["row_groups_read"] <= plan.tasks["row_groups"]).all()


def test_a_table_without_a_snapshot_plans_nothing() -> None:
    plan = ix.empty({"id": "long"}, format_version=2).plan("id = 1")
    assert len(plan) == 0
    assert plan.totals["files"] == 0
    for made in (plan.tasks, plan.skipped, plan.deletes, plan.splits(), plan.splits(combined=True), plan.reads):
        assert len(made) == 0
    assert len(plan.levels()) == 3
    assert "every row" not in repr(plan)


def test_a_manifest_that_is_gone_leaves_the_rest_and_a_note(tmp_path: Path) -> None:
    table = lab.filled("v2")
    table.save(tmp_path / "t", data="copy")
    folder = tmp_path / "t"
    leaves = ix.open(folder).state
    root = leaves.root()
    assert root is not None
    gone = build.to_pylist(root.entries["location"])[0]
    Path(leaves.storage.resolve(gone)).unlink()
    opened = ix.open(folder)
    plan = opened.plan()
    assert len(plan) == 12
    assert any("missing from this plan" in note for note in plan.notes)
    assert any(p.code == "file-missing" for p in opened.problems)
    with pytest.raises(IceexploreError):
        ix.open(folder, strict=True).plan()


@pytest.mark.parametrize("text", list(HOSTILE.values()), ids=list(HOSTILE))
def test_hostile_partition_values_are_shown_and_never_markup(text: str) -> None:
    if "\ud800" in text:
        text = "lone surrogates cannot be written"
    table = ix.empty({"id": "long", "region": "string"}, partition_by="region", format_version=2)
    table.append([{"location": "/warehouse/db/events/data/x.parquet", "record_count": 1, "file_size_in_bytes": 9,
                   "partition": {"region": text}}])  # fmt: skip
    plan = table.plan("id = 1 or region = 'other'")
    shown = repr(plan) + repr(plan.compare(table.plan("region = 'none'")))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    html = plan._repr_html_() + plan.compare(table.plan("region = 'none'"))._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert len(plan.tasks) + len(plan.skipped) == 1


def test_a_plan_shows_itself() -> None:
    plan = lab.with_deletes("v3").plan("region = 'a'")
    text, html = repr(plan), plan._repr_html_()
    for words in ("region = 'a'", "Files read", "5 of 15", "after pruning manifests"):
        assert words in text
    assert "Files read" in html


def _pairs(tasks: Any) -> dict[str, list[str]]:
    return {t.file.file_path: sorted(d.file_path for d in t.delete_files) for t in tasks}


@pytest.mark.parametrize("layout", ["v1", "v2"])
@pytest.mark.parametrize("where", ["id >= 25", "region == 'b'", "id < 0", "amount > 20 and region == 'a'"])
def test_pyiceberg_plans_the_same_files_with_the_same_deletes(tmp_path: Path, layout: str, where: str) -> None:
    from pyiceberg.table import StaticTable

    lab.with_deletes(layout).save(tmp_path / "t", data="copy", location=str(tmp_path / "t"))
    table = ix.open(tmp_path / "t")
    theirs = _pairs(StaticTable.from_metadata(table.metadata_location).scan(row_filter=where).plan_files())
    tasks = table.plan(where.replace("==", "=")).tasks
    ours = dict(zip(tasks["file_path"], (sorted(x) for x in tasks["position_deletes"]), strict=True))
    assert ours == theirs


def _corpus_tables() -> list[str]:
    import json

    folder = os.environ.get("ICEEXPLORE_CORPUS")
    return sorted(json.loads((Path(folder) / "expected.json").read_text())) if folder else []


@pytest.mark.corpus
@pytest.mark.parametrize("name", _corpus_tables() or ["-"])
def test_real_tables_are_planned_as_their_entries_say(corpus: Path, name: str) -> None:
    import json

    about = json.loads((corpus / "expected.json").read_text())[name]
    try:
        table = ix.open(corpus / name / about["metadata"], allow=[str(corpus)])
    except IceexploreError:
        return  # test_corpus.py says which these are
    plan = table.plan()
    assert sorted(lab.planned(plan)) == sorted(lab.live_files(table))
    assert len(plan.tasks) == len(plan)
    assert len(plan.splits()) >= 0
    repr(plan)
    plan._repr_html_()


def test_nothing_is_read_twice() -> None:
    table = ix.Table(lab.with_deletes("v4-leaves").state)
    CACHE.max_bytes, limit = 0, CACHE.max_bytes
    CACHE.max_bytes = limit
    before = len(table.state.storage.reads)
    table.plan("id >= 25")
    names = [r.location for r in list(table.state.storage.reads)[before:] if not r.cached]
    assert len(names) == len(set(names))


def test_delete_manifests_that_are_not_read_are_not_counted_as_read() -> None:
    s = ix.empty({"id": "long", "kind": "string"}, format_version=3, partition_by="kind", seed=1)
    s.append(2, rows=100, partitions=[{"kind": "a"}, {"kind": "b"}])
    a, b = sorted(s.inspect.data_files().to_dict("records"), key=lambda f: str(f["partition"]["kind"]))
    s.row_delta(deletes={a["file_path"]: [0]})
    low, other = (f["readable_metrics"]["id"]["lower_bound"] for f in (b, a))
    assert low < other, "the filter below is for b alone"
    plan = s.table.plan(f"id = {low}")
    assert plan.tasks["file_path"].tolist() == [b["file_path"]]
    assert len(plan.delete_rows) == 1, "by the filter alone, the manifest may have deletes for the file"
    assert plan.read_delete_rows == ()
    assert plan.reads["kind"].tolist() == ["root", "data manifest"]
    assert plan.totals["delete_manifests"] == 0
    before = len(s.state.storage.reads)
    assert plan.doubts == ()
    assert len(s.state.storage.reads) == before, "nothing more is read for doubts"
    both = s.table.plan()
    assert both.totals["delete_manifests"] == 1
    assert both.reads["kind"].tolist() == ["root", "data manifest", "delete manifest"]
