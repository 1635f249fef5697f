"""Commits that violate rules: the rows are written exactly as given, and only the listed rules may be broken."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceexplore.arrow import compute as pc
from iceexplore.commits import (
    VIOLATED_RULES,
    LayoutOptions,
    Sandbox,
    ViolatingLeaf,
    check_rules,
    commit_violating_rules,
    manifest_dv_entry,
    root_rows,
)
from iceexplore.errors import CommitConflictError, OptionError, RuleError
from iceexplore.graph import open_state
from iceexplore.manifests import ContentType, EntryBatch, Status, concat_batches, live
from tests.helpers.tables.root_table import BY_KIND_AND_BUCKET, RootLab, data_file, entries, live_files, path
from tests.helpers.tables.root_table import root_rows as drawn

SMALL = {"flush_data_files": 2, "flush_delete_files": 2}


@pytest.fixture
def lab(tmp_path: Path) -> RootLab:
    """A leaf of three files, of which the first is removed, and one in the root."""
    lab = RootLab(tmp_path / "t", spec=BY_KIND_AND_BUCKET, options=SMALL)
    lab.commit(add=[data_file(f"L{i}", low=10 * i) for i in range(3)])
    lab.commit(add=[data_file("R1", kind="b")])
    lab.commit("delete", remove_data=path("L0"))
    return lab


def leaf_of(lab: RootLab) -> str:
    root = lab.state.root()
    assert root is not None
    at = root.entries["content_type"].to_pylist().index(ContentType.DATA_MANIFEST)
    return str(root.entries["location"][at].as_py())


def existing(lab: RootLab) -> EntryBatch:
    return root_rows(lab.state).with_columns(status=int(Status.EXISTING))


def test_the_rows_that_are_there_break_nothing(lab: RootLab) -> None:
    before = live_files(lab.state)
    made = commit_violating_rules(lab.box, [existing(lab)], relaxed=(), operation="replace")
    assert made.summary == {"operation": "replace"} and made.operation == "replace"
    after = live_files(lab.state)
    assert after == before  # statistics, tuples and row ids too
    assert lab.state.metadata.snapshot() == made


def test_a_rule_that_is_broken_and_not_named_is_refused_before_anything_is_written(lab: RootLab) -> None:
    writes, was = len(list(lab.box.storage.writes)), lab.state.metadata_location
    dropped = root_rows(lab.state).with_columns(status=int(Status.DELETED), snapshot_id=None)
    with pytest.raises(RuleError, match="list the rule in relaxed=") as refused:
        commit_violating_rules(lab.box, [dropped], relaxed=("one-dv", "orphan-dv"))
    assert refused.value.rule == "leaf-change-by-dv"
    assert len(list(lab.box.storage.writes)) == writes
    assert lab.state.metadata_location == was == lab.box.pointer.location
    assert len(lab.box.records) == 3


def test_the_summary_names_the_rules_that_are_broken_and_no_others(lab: RootLab) -> None:
    dropped = root_rows(lab.state).with_columns(status=int(Status.DELETED), snapshot_id=None)
    relaxed = ("leaf-change-by-dv", "one-dv")
    made = commit_violating_rules(lab.box, [dropped], relaxed=relaxed, operation="delete", summary={"why": "a test"})
    assert made.summary == {"operation": "delete", "why": "a test", VIOLATED_RULES: "leaf-change-by-dv"}
    assert {b.rule for b in check_rules(lab.state)} == {"leaf-change-by-dv"}
    assert check_rules(lab.state, relaxed=relaxed) == []
    assert live_files(lab.state) == {}
    assert {status for _, _, status in drawn(lab.state)} == {"DELETED"}


def test_leaves_are_where_they_are_given_with_statuses_as_given(lab: RootLab) -> None:
    root = lab.state.root()
    assert root is not None
    leaf = lab.state.reader.leaf(root, 0, frozenset({"entries", "stats", "partition"}))
    left = EntryBatch.of(leaf).filter(live(leaf.entries))
    statuses = [int(Status.EXISTING), int(Status.DELETED)]
    rows = concat_batches(
        [left.with_columns(status=pa.array(statuses, pa.int32()), manifest_dv=None), added("N0", "N1")]
    )
    location = f"{lab.folder}/metadata/by-hand.parquet"
    kept = existing(lab).filter(pc.equal(existing(lab).entries["content_type"], 0).combine_chunks())
    commit_violating_rules(
        lab.box,
        [ViolatingLeaf(location, rows), kept],
        relaxed=("added-is-change", "leaf-change-by-dv"),
        operation="overwrite",
    )
    assert drawn(lab.state) == [("DATA_MANIFEST", "", "ADDED"), ("DATA", "R1", "EXISTING")]
    assert leaf_of(lab) == location
    root = lab.state.root()
    assert root is not None
    stats = root.entries["manifest_stats"][0].as_py()
    assert [stats[f"{n}_files_count"] for n in ("added", "existing", "deleted")] == [2, 1, 1]
    written = lab.state.reader.leaf(root, 0).entries
    assert written["status"].to_pylist() == [0, 2, 1, 1]
    files = live_files(lab.state)
    assert set(files) == {"L1", "N0", "N1", "R1"}
    ids = sorted((f["first_row_id"], f["record_count"]) for f in files.values())
    assert all(a + n <= b for (a, n), (b, _) in pairwise(ids))
    assert lab.state.metadata.next_row_id == ids[-1][0] + ids[-1][1]
    now = lab.state.snapshot
    assert now is not None
    assert files["N0"]["snapshot_id"] == now.snapshot_id and files["N0"]["sequence_number"] == now.sequence_number


def added(*names: str) -> EntryBatch:
    return entries([{**data_file(n), "status": int(Status.ADDED)} for n in names])


def test_files_in_the_root_are_given_row_ids(lab: RootLab) -> None:
    before = lab.state.metadata.next_row_id
    assert before is not None
    commit_violating_rules(lab.box, [existing(lab), added("N0", "N1")], relaxed=(), operation="append")
    files = live_files(lab.state)
    assert [files[n]["first_row_id"] for n in ("N0", "N1")] == [before, before + 10]
    assert lab.state.metadata.next_row_id == before + 20


def test_a_manifest_dv_by_hand_removes_entries(lab: RootLab) -> None:
    vectors = manifest_dv_entry(leaf_of(lab), [1, 2])
    commit_violating_rules(lab.box, [existing(lab), vectors], relaxed=(), operation="delete")
    assert set(live_files(lab.state)) == {"R1"}


def test_another_commit_came_first(lab: RootLab) -> None:
    other = lab.box.fork()
    lab.commit(add=[data_file("R2")])
    with pytest.raises(CommitConflictError) as failed:
        commit_violating_rules(other, [root_rows(other.state).with_columns(status=int(Status.EXISTING))], relaxed=())
    assert failed.value.rule == "table-unchanged"
    assert set(live_files(lab.state)) == {"L1", "L2", "R1", "R2"}


def test_later_commits_go_on_from_it(lab: RootLab) -> None:
    dropped = root_rows(lab.state).with_columns(status=int(Status.DELETED), snapshot_id=None)
    commit_violating_rules(lab.box, [dropped], relaxed=("leaf-change-by-dv",), operation="delete")
    lab.commit(add=[data_file("R2")])
    assert set(live_files(lab.state)) == {"R2"}
    assert check_rules(lab.state) == []
    snapshot = lab.state.snapshot
    assert snapshot is not None
    summary = snapshot.summary or {}
    # a total goes on from the parent's, and one that was given by hand has none
    assert summary["added-data-files"] == "1" and "total-data-files" not in summary


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"relaxed": ("no-such-rule",)}, "unknown rule 'no-such-rule'"),
        ({"rows": [ViolatingLeaf("x", EntryBatch.empty())]}, "without entries"),
    ],
)
def test_what_makes_no_sense_is_refused(lab: RootLab, how: dict[str, Any], text: str) -> None:
    given = {"rows": [existing(lab)], "relaxed": (), **how}
    with pytest.raises(OptionError, match=text):
        commit_violating_rules(lab.box, given.pop("rows"), **given)


@pytest.mark.parametrize("how", [{"version": 3}, {"options": {"dialect": "v4-draft"}}])
def test_only_roots_of_the_proposal_are_written(tmp_path: Path, how: dict[str, Any]) -> None:
    lab = RootLab(tmp_path / "t", **how)
    with pytest.raises(OptionError, match="v4-proposal"):
        commit_violating_rules(lab.box, [], relaxed=())


def test_an_empty_root_is_a_root(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t")
    assert len(root_rows(lab.state)) == 0
    commit_violating_rules(lab.box, [], relaxed=(), operation="append")
    assert live_files(lab.state) == {}
    state = open_state(str(tmp_path / "t"))
    assert state.snapshot is None and Sandbox(state, LayoutOptions.of(4)).state.snapshot is None
