"""Incremental plans: what appends have added between two snapshots, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import OptionError, SnapshotNotFoundError
from tests.helpers.tables import plan_table as lab


def added_by(table: Any, *snapshots: int) -> list[str]:
    """Data files that entries of any snapshot say were added by these."""
    entries = table.inspect.all_entries()
    rows = zip(entries["status"], entries["snapshot_id"], entries["data_file"], strict=True)
    return sorted({f["file_path"] for status, by, f in rows if status == 1 and by in snapshots and f["content"] == 0})


@pytest.fixture(scope="module", params=list(lab.LAYOUTS))
def table(request: pytest.FixtureRequest) -> ix.Simulation:
    """Appends of days 0 and 1, one day removed, then appends of days 2 and 3, with manifests rewritten in between."""
    made = lab.filled(request.param, appends=2)
    made.delete_files([lab.live_files(made)[0]])
    made.append(lab.frame(lab.rows_of(2)))
    if request.param == "v4-root":  # it has no manifests to rewrite
        made.row_delta(deletes={lab.live_files(made)[0]: [0]})
    else:
        made.rewrite_manifests()
    made.append(lab.frame(lab.rows_of(3)))
    return made


def line(table: ix.Simulation) -> list[int]:
    """Ids of its snapshots, the oldest first."""
    return [s.snapshot_id for s in table.metadata.snapshots]


def test_appends_after_one_snapshot_up_to_another(table: ix.Simulation) -> None:
    first, second, _, third, _, fourth = line(table)
    for after, upto, wanted in (
        (first, None, (second, third, fourth)),
        (first, third, (second, third)),
        (third, fourth, (fourth,)),
        (second, third, (third,)),
    ):
        plan = table.plan(from_snapshot=after, to_snapshot=upto)
        assert sorted(lab.planned(plan)) == added_by(table, *wanted)


def test_files_that_were_removed_since_are_planned_as_java_does(table: ix.Simulation) -> None:
    first, second, *_ = line(table)
    plan = table.plan(to_snapshot=second)
    assert sorted(lab.planned(plan)) == added_by(table, first, second)
    assert len(plan) == 6


def test_without_a_start_it_begins_with_the_oldest(table: ix.Simulation) -> None:
    ids = line(table)
    plan = table.plan(to_snapshot=ids[-1])
    assert sorted(lab.planned(plan)) == added_by(table, *ids[:2], ids[3], ids[5])
    assert any("are skipped" in note for note in plan.notes)


def test_a_filter_prunes_as_ever(table: ix.Simulation) -> None:
    plan = table.plan("day = date '2024-01-03'", from_snapshot=line(table)[0])
    assert len(plan) == 3
    assert plan.totals["deletes"] == 0
    assert len(plan.skipped) > 0
    cheap = plan.levels()
    assert cheap["level"].tolist()[0] == "appended"
    if cheap["files"].isna()[0]:  # a manifest was pruned
        root = "manifest list" if cheap["level"].tolist()[1] == "after pruning manifests" else "root manifest"
        assert f"the counts in the {root}s do not show which snapshot added the files; " in cheap["known"][0]
    assert plan.levels(exact=True)["files"].tolist()[0] == 9


def test_between_a_snapshot_and_itself_there_is_nothing(table: ix.Simulation) -> None:
    last = line(table)[-1]
    assert len(table.plan(from_snapshot=last)) == 0


def test_refs_and_tables_name_snapshots() -> None:
    table = lab.filled("v2", appends=3)
    ids = line(table)
    table.tag("start", ids[0])
    wanted = added_by(table, *ids[1:])
    for after in ("start", table.at(snapshot=ids[0]), str(ids[0]), table.metadata.snapshots[0]):
        assert sorted(lab.planned(table.plan(from_snapshot=after, to_snapshot="main"))) == wanted


def test_what_is_no_ancestor_is_refused() -> None:
    table = lab.filled("v2", appends=2)
    first, second = line(table)
    table.branch("side", first)
    table.append(lab.frame(lab.rows_of(5)), ref="side")
    side = line(table)[-1]
    with pytest.raises(OptionError, match=f"{side} is not an ancestor of snapshot {second}"):
        table.plan(from_snapshot=side, to_snapshot=second)
    with pytest.raises(OptionError, match="not an ancestor"):
        table.plan(from_snapshot=second, to_snapshot=first)
    with pytest.raises(OptionError, match="not an ancestor"):
        table.plan(from_snapshot=12345)
    with pytest.raises(SnapshotNotFoundError):
        table.plan(from_snapshot="nowhere")
    with pytest.raises(SnapshotNotFoundError):
        table.plan(to_snapshot=12345)


def test_another_table_is_refused() -> None:
    table, other = (
        ix.empty(lab.SCHEMA, format_version=2, seed=seed, location=f"/warehouse/{seed}") for seed in ("a", "b")
    )
    for each in (table, other):
        each.append(lab.frame(lab.rows_of(0)))
    with pytest.raises((OptionError, SnapshotNotFoundError)):
        table.plan(from_snapshot=other.at(ref="main"))


def test_the_start_may_have_expired() -> None:
    table = lab.filled("v2", appends=3)
    ids = line(table)
    table.expire_snapshots(ids=[ids[0]])
    plan = table.plan(from_snapshot=ids[0])
    assert len(plan) == 6
    assert any("have expired" in note for note in table.plan(to_snapshot=ids[2]).notes)


def test_a_table_without_a_snapshot() -> None:
    table = ix.empty({"id": "long"}, format_version=2)
    with pytest.raises(SnapshotNotFoundError):
        table.plan(from_snapshot=1)
