"""Expiration, against the retention policy as the spec words it, and PyIceberg's removal of snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.commits import (
    RULES,
    add_snapshot,
    expire_snapshots,
    rollback,
    set_current_snapshot,
    set_properties,
    set_ref,
)
from iceexplore.errors import FormatError, OptionError, RuleError, SnapshotNotFoundError
from tests.commits.metadata_updates.document_table import (
    START_MS,
    checked,
    history,
    metadata_of,
    old_v1,
    pure,
    pyiceberg_of,
    snapshot,
    table,
)

Json = dict[str, Any]
NOW = START_MS + 1_000_000


def refused(rule: str) -> Any:
    assert rule in RULES
    return pytest.raises(RuleError, match=rf"\[rule {rule}\]")


def statistics(snapshot_id: int) -> Json:
    return {
        "snapshot-id": snapshot_id, "statistics-path": "s3://x/s.puffin", "file-size-in-bytes": 9,
        "file-footer-size-in-bytes": 5, "blob-metadata": [],
    }  # fmt: skip


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_old_snapshots_go_with_their_log_and_statistics(version: int) -> None:
    document = history(version, 5)
    document["statistics"] = [statistics(i) for i in (1, 2, 5)]
    document["partition-statistics"] = [
        {"snapshot-id": i, "statistics-path": "s3://x/p.parquet", "file-size-in-bytes": 9} for i in (2, 4)
    ]
    after, gone = pure(expire_snapshots, document, older_than_ms=START_MS + 3_000, now_ms=NOW)
    metadata = metadata_of(checked(after))
    assert gone == (1, 2)
    assert [s.snapshot_id for s in metadata.snapshots] == [3, 4, 5]
    assert [e.snapshot_id for e in metadata.snapshot_log] == [3, 4, 5]
    assert [s.snapshot_id for s in metadata.statistics] == [5]
    assert [s.snapshot_id for s in metadata.partition_statistics] == [4]
    assert after["snapshots"][0] is document["snapshots"][2]


def test_the_log_is_cut_at_a_gap() -> None:
    document = rollback(history(2, 4), snapshot_id=2, timestamp_ms=START_MS + 9_000)
    document = set_current_snapshot(document, snapshot_id=4, timestamp_ms=START_MS + 10_000)
    assert [e["snapshot-id"] for e in document["snapshot-log"]] == [1, 2, 3, 4, 2, 4]
    after, gone = expire_snapshots(document, ids=[2], older_than_ms=0, now_ms=NOW)
    assert gone == (2,)
    assert after["snapshot-log"] == [{"timestamp-ms": START_MS + 10_000, "snapshot-id": 4}]
    assert metadata_of(checked(after)).refs["main"].snapshot_id == 4


def test_refs_decide() -> None:
    document = history(2, 6)
    document = set_ref(document, name="old", snapshot_id=2, type="tag", max_ref_age_ms=1)
    document = set_ref(document, name="kept", snapshot_id=3, type="tag")
    document = set_ref(document, name="b", snapshot_id=5, min_snapshots_to_keep=2)
    after, gone = expire_snapshots(document, older_than_ms=NOW, now_ms=NOW)
    assert gone == (1, 2)  # 3: tag; 5 and 4: branch b; 6: main
    assert set(after["refs"]) == {"main", "kept", "b"}
    checked(after)
    young = set_ref(document, name="main", snapshot_id=6, max_snapshot_age_ms=NOW - START_MS - 1_500)
    assert expire_snapshots(young, older_than_ms=NOW, now_ms=NOW)[1] == (1,)


def test_properties_and_arguments() -> None:
    document = history(2, 4)
    assert expire_snapshots(document, now_ms=NOW)[1] == ()  # five days
    later = NOW + 5 * 86_400_000
    assert expire_snapshots(document, now_ms=later)[1] == (1, 2, 3)
    assert expire_snapshots(document, retain_last=3, now_ms=later)[1] == (1,)
    settings = {"history.expire.max-snapshot-age-ms": "0", "history.expire.min-snapshots-to-keep": "2"}
    tuned = set_properties(document, set=settings)
    assert expire_snapshots(tuned, now_ms=NOW)[1] == (1, 2)
    assert expire_snapshots(tuned, now_ms=NOW, older_than_ms=0)[1] == ()
    tagged = set_ref(
        set_properties(document, set={"history.expire.max-ref-age-ms": "10"}), name="t", snapshot_id=1, type="tag"
    )
    assert list(expire_snapshots(tagged, now_ms=NOW, older_than_ms=0)[0]["refs"]) == ["main"]
    with pytest.raises(FormatError, match="min-snapshots-to-keep"):
        expire_snapshots(set_properties(document, set={"history.expire.min-snapshots-to-keep": "x"}))


def test_refused_expirations() -> None:
    document = set_ref(history(2), name="t", snapshot_id=1, type="tag")
    with refused("expire-referenced"):
        expire_snapshots(document, ids=[1])
    with refused("expire-gc"):
        expire_snapshots(set_properties(document, set={"gc.enabled": "false"}))
    with pytest.raises(SnapshotNotFoundError):
        expire_snapshots(document, ids=[9])
    with pytest.raises(OptionError):
        expire_snapshots(document, retain_last=0)


def test_an_old_v1_table_keeps_its_current_snapshot() -> None:
    document = old_v1()
    for snapshot_id in (1, 2):
        document = add_snapshot(document, snapshot=snapshot(document, snapshot_id))
    after, gone = expire_snapshots(document, older_than_ms=NOW, now_ms=NOW)
    assert gone == (1,)
    assert "refs" not in checked(after)


REFS = st.sampled_from(["main", "main", "b", "c", None])


@st.composite
def histories(draw: st.DrawFn) -> Json:
    """Branches, tags and staged snapshots, with retention of their own."""
    document = table(2)
    count = draw(st.integers(0, 8))
    for number in range(1, count + 1):
        ref = draw(REFS)
        parents: list[int | None] = [None, *range(1, number)]
        tip = (document["refs"] or {}).get(ref or "main", {}).get("snapshot-id")
        parent = draw(st.sampled_from([tip, tip, tip, *parents]))
        stamp = START_MS + number * 1_000
        new = snapshot(document, number, parent_snapshot_id=parent, timestamp_ms=stamp)
        document = add_snapshot(document, snapshot=new, ref=ref)
    for name in draw(st.sets(st.sampled_from(["t1", "t2"]))) if count else ():
        document = set_ref(document, name=name, snapshot_id=draw(st.integers(1, count)), type="tag")
    age = st.one_of(st.none(), st.integers(1, 12_000))
    for name, ref in document["refs"].items():
        more: Json = {"max_ref_age_ms": draw(age)}
        if ref["type"] == "branch":
            more |= {
                "max_snapshot_age_ms": draw(age),
                "min_snapshots_to_keep": draw(st.one_of(st.none(), st.integers(1, 4))),
            }
        document = set_ref(document, name=name, snapshot_id=ref["snapshot-id"], type=ref["type"], **more)
    return document


def policy(document: Json, older_than: int, retain: int, now: int) -> tuple[set[int], set[str]]:
    """Spec, "Snapshot Retention Policy", in its five steps; snapshots of no branch stay while young, as in Java."""
    time_of = {s["snapshot-id"]: s["timestamp-ms"] for s in document["snapshots"]}
    parent_of = {s["snapshot-id"]: s.get("parent-snapshot-id") for s in document["snapshots"]}
    refs = {
        name: ref for name, ref in document["refs"].items()
        if name == "main" or now - time_of[ref["snapshot-id"]] <= ref.get("max-ref-age-ms", 2**63)
    }  # fmt: skip
    retained = {ref["snapshot-id"] for ref in refs.values()}
    in_a_ref = set(retained)
    for ref in refs.values():
        position, at = 0, ref["snapshot-id"]
        stopped = ref["type"] == "tag"
        while ref["type"] == "branch" and at is not None:
            in_a_ref.add(at)
            age = ref.get("max-snapshot-age-ms")
            old = time_of[at] < (older_than if age is None else now - age)
            stopped = stopped or (old and position >= ref.get("min-snapshots-to-keep", retain))
            if not stopped:
                retained.add(at)
            position, at = position + 1, parent_of[at]
    retained |= {i for i, t in time_of.items() if i not in in_a_ref and t >= older_than}
    return set(time_of) - retained, set(refs)


@given(histories(), st.integers(-1, 12), st.integers(1, 3), st.integers(8, 14))
def test_the_retention_policy(document: Json, older: int, retain: int, now: int) -> None:
    older_than, now_ms = START_MS + older * 1_000, START_MS + now * 1_000
    after, gone = pure(expire_snapshots, document, older_than_ms=older_than, retain_last=retain, now_ms=now_ms)
    expected, refs = policy(document, older_than, retain, now_ms)
    assert set(gone) == expected
    assert set(after["refs"]) == refs
    metadata = metadata_of(checked(after))
    left = {s.snapshot_id for s in metadata.snapshots}
    assert left.isdisjoint(gone)
    assert {e.snapshot_id for e in metadata.snapshot_log} <= left
    if metadata.current_snapshot_id is not None:
        assert metadata.snapshot_log[-1].snapshot_id == metadata.current_snapshot_id
    # Once more finds nothing.
    assert expire_snapshots(after, older_than_ms=older_than, retain_last=retain, now_ms=now_ms) == (after, ())


@given(histories(), st.data())
def test_named_snapshots_go_as_with_pyiceberg(document: Json, data: st.DataObject) -> None:
    from pyiceberg.table.update import RemoveSnapshotsUpdate, update_table_metadata

    named = {ref["snapshot-id"] for ref in document["refs"].values()}
    free = [s["snapshot-id"] for s in document["snapshots"] if s["snapshot-id"] not in named]
    ids = data.draw(st.lists(st.sampled_from(free), unique=True)) if free else []
    document = {**document, "statistics": [statistics(s["snapshot-id"]) for s in document["snapshots"]]}
    # Refs as old as the table, and branches without retention of their own: nothing but `ids` goes.
    document["refs"] = {n: {"snapshot-id": r["snapshot-id"], "type": r["type"]} for n, r in document["refs"].items()}
    after, gone = expire_snapshots(document, ids=ids, older_than_ms=0, now_ms=START_MS)
    assert set(gone) == set(ids)
    if not ids:
        return
    theirs = update_table_metadata(pyiceberg_of(document), (RemoveSnapshotsUpdate(snapshot_ids=ids),))
    ours = pyiceberg_of(checked(after))
    # PyIceberg forgets who the parent was, and only takes entries out of the log: the spec cuts what is before them.
    assert [s.snapshot_id for s in ours.snapshots] == [s.snapshot_id for s in theirs.snapshots]
    assert ours.statistics == theirs.statistics
    assert ours.refs == theirs.refs
    if ours.snapshot_log:
        assert theirs.snapshot_log[-len(ours.snapshot_log) :] == ours.snapshot_log
