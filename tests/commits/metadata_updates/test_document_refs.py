"""Branches and tags, rollbacks, fast-forwards, cherry-picks: Java's rules."""

from __future__ import annotations

from typing import Any

import pytest

from iceexplore.commits import (
    RULES,
    cherry_pick_summary,
    fast_forward,
    remove_ref,
    rollback,
    set_current_snapshot,
    set_ref,
)
from iceexplore.errors import OptionError, RuleError, SnapshotNotFoundError
from tests.commits.metadata_updates.document_table import START_MS, checked, committed, history, old_v1, pure, table


def refused(rule: str) -> Any:
    assert rule in RULES
    return pytest.raises(RuleError, match=rf"\[rule {rule}\]")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_refs_are_made_moved_and_removed(version: int) -> None:
    document = history(version)
    document = checked(pure(set_ref, document, name="b", snapshot_id=1, min_snapshots_to_keep=2))
    document = checked(pure(set_ref, document, name="t", snapshot_id=2, type="tag", max_ref_age_ms=9))
    assert document["refs"] == {
        "main": {"snapshot-id": 3, "type": "branch"},
        "b": {"snapshot-id": 1, "type": "branch", "min-snapshots-to-keep": 2},
        "t": {"snapshot-id": 2, "type": "tag", "max-ref-age-ms": 9},
    }
    moved = checked(set_ref(document, name="b", snapshot_id=3, max_snapshot_age_ms=7))
    assert moved["refs"]["b"] == {
        "snapshot-id": 3, "type": "branch", "min-snapshots-to-keep": 2, "max-snapshot-age-ms": 7
    }  # fmt: skip
    assert moved["snapshot-log"] == document["snapshot-log"]
    gone = checked(pure(remove_ref, document, name="b"))
    assert list(gone["refs"]) == ["main", "t"]


def test_retention_of_main_does_not_move_it() -> None:
    document = checked(set_ref(history(2), name="main", snapshot_id=3, min_snapshots_to_keep=5))
    assert document["refs"]["main"]["min-snapshots-to-keep"] == 5
    assert len(document["snapshot-log"]) == 3
    after = committed(document, 4)
    assert after["refs"]["main"] == {"snapshot-id": 4, "type": "branch", "min-snapshots-to-keep": 5}


def test_refused_refs() -> None:
    document = set_ref(history(2), name="t", snapshot_id=1, type="tag")
    with refused("main-branch"):
        set_ref(document, name="main", snapshot_id=1, type="tag")
    with refused("main-branch"):
        remove_ref(document, name="main")
    with refused("ref-type"):
        set_ref(document, name="t", snapshot_id=2)
    with refused("ref-retention"):
        set_ref(document, name="t", snapshot_id=1, type="tag", min_snapshots_to_keep=1)
    with refused("ref-retention"):
        set_ref(document, name="b", snapshot_id=1, max_snapshot_age_ms=0)
    with pytest.raises(SnapshotNotFoundError, match="the newest are 1, 2, 3"):
        set_ref(document, name="b", snapshot_id=77)
    with pytest.raises(SnapshotNotFoundError, match="main, t"):
        remove_ref(document, name="b")
    with pytest.raises(OptionError):
        set_ref(document, name="b", snapshot_id=1, type="twig")  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_rollback_goes_to_an_ancestor(version: int) -> None:
    document = history(version)
    after = checked(pure(rollback, document, snapshot_id=1, timestamp_ms=START_MS + 9_000))
    assert after["current-snapshot-id"] == after["refs"]["main"]["snapshot-id"] == 1
    assert after["snapshot-log"][-1] == {"timestamp-ms": START_MS + 9_000, "snapshot-id": 1}
    assert after["snapshots"] is document["snapshots"]
    with refused("rollback-ancestor"):
        rollback(after, snapshot_id=3)
    back = checked(pure(set_current_snapshot, after, snapshot_id=3, timestamp_ms=START_MS + 10_000))
    assert [e["snapshot-id"] for e in back["snapshot-log"]] == [1, 2, 3, 1, 3]
    assert set_current_snapshot(back, snapshot_id=3) == back


def test_rollback_by_time_takes_the_newest_older_ancestor() -> None:
    document = history(2)  # snapshots at 1, 2 and 3 s
    assert rollback(document, older_than_ms=START_MS + 3_000, timestamp_ms=0)["current-snapshot-id"] == 2
    assert rollback(document, older_than_ms=START_MS + 2_999, timestamp_ms=0)["current-snapshot-id"] == 2
    with refused("rollback-ancestor"):
        rollback(document, older_than_ms=START_MS + 1_000)
    with pytest.raises(OptionError):
        rollback(document)
    with pytest.raises(OptionError):
        rollback(document, snapshot_id=1, older_than_ms=5)
    with pytest.raises(SnapshotNotFoundError):
        rollback(document, snapshot_id=8)


def test_a_rollback_is_not_logged_before_what_it_undoes() -> None:
    after = rollback(history(2), snapshot_id=1, timestamp_ms=START_MS)
    assert after["snapshot-log"][-1] == {"timestamp-ms": START_MS + 3_000, "snapshot-id": 1}


def test_an_old_v1_table_rolls_back_without_refs() -> None:
    document = old_v1()
    for snapshot_id in (1, 2):
        document = committed(document, snapshot_id)
    after = checked(rollback(document, snapshot_id=1, timestamp_ms=START_MS))
    assert after["current-snapshot-id"] == 1
    assert "refs" not in after


def test_fast_forward() -> None:
    document = set_ref(history(2, 1), name="b", snapshot_id=1)
    ahead = committed(committed(document, 2, ref="b", parent_snapshot_id=1), 3, ref="b", parent_snapshot_id=2)
    after = checked(pure(fast_forward, ahead, name="main", to="b", timestamp_ms=START_MS + 99_000))
    assert after["current-snapshot-id"] == 3
    assert after["snapshot-log"][-1] == {"timestamp-ms": START_MS + 99_000, "snapshot-id": 3}
    assert fast_forward(ahead, name="new", to="b")["refs"]["new"]["snapshot-id"] == 3
    diverged = committed(ahead, 4)
    with refused("fast-forward-ancestor"):
        fast_forward(diverged, name="main", to="b")
    with refused("ref-type"):
        fast_forward(set_ref(ahead, name="t", snapshot_id=1, type="tag"), name="t", to="b")
    with pytest.raises(SnapshotNotFoundError):
        fast_forward(ahead, name="main", to="nobody")


def test_cherry_picks() -> None:
    base = history(2, 1)
    staged = committed(base, 2, ref=None, summary={"wap.id": "w"})
    assert pure(cherry_pick_summary, staged, snapshot_id=2) is None  # its parent is current: main can go there
    moved = committed(staged, 3)
    wanted = {"source-snapshot-id": "2", "published-wap-id": "w"}
    assert pure(cherry_pick_summary, moved, snapshot_id=2) == wanted
    picked = committed(moved, 4, summary=wanted)
    with refused("cherry-pick"):
        cherry_pick_summary(picked, snapshot_id=2)
    twice = committed(picked, 5, ref=None, parent_snapshot_id=1, summary={"wap.id": "w"})
    with pytest.raises(RuleError, match="'w' were already published"):
        cherry_pick_summary(twice, snapshot_id=5)
    with pytest.raises(RuleError, match="already an ancestor of the current one"):
        cherry_pick_summary(picked, snapshot_id=1)
    unnamed = committed(moved, 4, summary={"source-snapshot-id": "6"})
    again = committed(unnamed, 6, ref=None, parent_snapshot_id=1)
    with pytest.raises(RuleError, match="snapshot 6 was already picked, as snapshot"):
        cherry_pick_summary(again, snapshot_id=6)
    with pytest.raises(SnapshotNotFoundError):
        cherry_pick_summary(moved, snapshot_id=99)


def test_what_else_can_be_picked() -> None:
    document = history(2, 2)
    for operation, more, parent, good in (
        ("overwrite", {"replace-partitions": "true"}, 1, True),
        ("overwrite", {"replace-partitions": "true"}, 8, False),
        ("overwrite", {}, 1, False),
        ("delete", {}, 1, False),
        ("delete", {}, 2, None),
    ):
        staged = committed(document, 7, ref=None, parent_snapshot_id=parent, operation=operation, summary=more)
        if good is False:
            with refused("cherry-pick"):
                cherry_pick_summary(staged, snapshot_id=7)
        else:
            assert cherry_pick_summary(staged, snapshot_id=7) == ({"source-snapshot-id": "7"} if good else None)
    # On an empty table what has no parent is a fast-forward.
    first = committed(table(2), 1, ref=None)
    assert cherry_pick_summary(first, snapshot_id=1) is None
