"""Snapshots, properties and the step to the next metadata file, against PyIceberg's own table updates."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.commits import (
    RULES,
    add_snapshot,
    new_table_document,
    next_document,
    set_properties,
    set_ref,
    snapshot_json,
)
from iceexplore.errors import FormatError, OptionError, RuleError
from tests.commits.metadata_updates.document_table import (
    LOCATION,
    SCHEMA,
    START_MS,
    checked,
    committed,
    history,
    metadata_of,
    old_v1,
    pure,
    pyiceberg_of,
    snapshot,
    table,
)

VERSIONS = (1, 2, 3, 4)


def refused(rule: str) -> Any:
    assert rule in RULES
    return pytest.raises(RuleError, match=rf"\[rule {rule}\]")


@pytest.mark.parametrize("version", VERSIONS)
def test_new_tables_are_valid_and_empty(version: int) -> None:
    document = checked(table(version, properties={"owner": "me"}))
    metadata = metadata_of(document)
    assert (metadata.format_version, metadata.location, metadata.current_snapshot_id) == (version, LOCATION, None)
    assert metadata.last_updated_ms == START_MS
    assert metadata.properties == {"owner": "me"}
    assert [(f.field_id, f.name, f.transform) for f in metadata.partition_specs[0].fields] == [(1000, "ts_day", "day")]
    # The expression of day(ts) shares the columns' id space.
    assert metadata.last_column_id == (4 if version == 4 else 3)


def test_new_tables_of_java_s_v4_have_no_expressions() -> None:
    document = checked(table(4, expressions=False))
    assert "expressions" not in document
    assert document["partition-specs"][0]["fields"][0]["transform"] == "day"


def test_new_tables_refuse_what_is_no_schema_and_no_version() -> None:
    with pytest.raises(FormatError):
        new_table_document(format_version=2, location=LOCATION, schema={"fields": [{"id": 1}]})
    with pytest.raises(OptionError):
        new_table_document(format_version=5, location=LOCATION, schema=SCHEMA)
    with refused("reserved-property"):
        table(2, properties={"format-version": "2"})


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_keeps_everything_in_step(version: int) -> None:
    document = history(version, 2)
    new = snapshot(document, 7, operation="overwrite", summary={"added-data-files": "1", "operation": "lie"})
    after = checked(pure(add_snapshot, document, snapshot=new))
    metadata = metadata_of(after)
    assert metadata.current_snapshot_id == 7
    assert metadata.refs["main"].snapshot_id == 7
    assert [s.snapshot_id for s in metadata.snapshots] == [1, 2, 7]
    assert [e.snapshot_id for e in metadata.snapshot_log] == [1, 2, 7]
    assert metadata.snapshot_log[-1].timestamp_ms == new["timestamp-ms"]
    assert metadata.snapshots[-1].parent_snapshot_id == 2
    assert metadata.snapshots[-1].summary == {"operation": "overwrite", "added-data-files": "1"}
    assert metadata.last_sequence_number == (0 if version == 1 else 3)
    assert ("sequence-number" in new) == (version > 1)
    assert metadata.next_row_id == (30 if version >= 3 else None)
    assert ("root-manifest" in new) == (version == 4)
    assert list(after)[: len(document)] == list(document)


def test_a_branch_commit_leaves_main_alone_and_assigns_row_ids() -> None:
    document = set_ref(history(3, 2), name="b", snapshot_id=1, max_ref_age_ms=5)
    after = checked(pure(add_snapshot, document, snapshot=snapshot(document, 9, parent_snapshot_id=1), ref="b"))
    assert after["refs"]["b"] == {"snapshot-id": 9, "type": "branch", "max-ref-age-ms": 5}
    assert (after["current-snapshot-id"], after["next-row-id"], len(after["snapshot-log"])) == (2, 30, 2)
    fresh = add_snapshot(document, snapshot=snapshot(document, 9), ref="new")
    assert fresh["refs"]["new"] == {"snapshot-id": 9, "type": "branch"}
    staged = checked(add_snapshot(document, snapshot=snapshot(document, 9), ref=None))
    assert staged["refs"] == document["refs"]
    assert staged["last-sequence-number"] == 3


def test_an_old_v1_document_gets_no_refs_and_keeps_what_nobody_knows() -> None:
    document = old_v1()
    after = checked(pure(add_snapshot, document, snapshot=snapshot(document, 5)))
    assert "refs" not in after
    assert after["x-vendor"] == {"a": 1}
    assert metadata_of(after).refs["main"].snapshot_id == 5
    # A second branch needs refs, and main is then among them.
    both = checked(add_snapshot(after, snapshot=snapshot(after, 6), ref="b"))
    assert {name: ref["snapshot-id"] for name, ref in both["refs"].items()} == {"main": 5, "b": 6}


def test_refused_snapshots() -> None:
    document = history(3, 2)
    with refused("snapshot-id-unique"):
        add_snapshot(document, snapshot=snapshot(document, 2))
    with refused("sequence-increases"):
        add_snapshot(document, snapshot=snapshot(document, 3, sequence_number=2))
    with refused("sequence-increases"):
        add_snapshot(history(1, 1), snapshot={**snapshot(history(1, 1), 3), "sequence-number": 2})
    for rows in ({"first_row_id": 19}, {"added_rows": -1}):
        with refused("row-ids-assigned"):
            add_snapshot(document, snapshot=snapshot(document, 3, **rows))
    with refused("snapshot-log-order"):
        add_snapshot(document, snapshot=snapshot(document, 3, timestamp_ms=START_MS - 60_000))
    tagged = set_ref(document, name="t", snapshot_id=1, type="tag")
    with refused("ref-type"):
        add_snapshot(tagged, snapshot=snapshot(tagged, 3), ref="t")
    with pytest.raises(OptionError, match="snapshot-id"):
        add_snapshot(document, snapshot={"snapshot-id": "3"})


def test_snapshot_objects_have_the_keys_of_their_version() -> None:
    common: dict[str, Any] = {"snapshot_id": 1, "timestamp_ms": 5, "root_location": "x"}
    assert snapshot_json(format_version=1, operation="append", sequence_number=4, first_row_id=1, **common) == {
        "snapshot-id": 1, "timestamp-ms": 5, "summary": {"operation": "append"}, "manifest-list": "x"
    }  # fmt: skip
    with pytest.raises(OptionError, match="operation"):
        snapshot_json(format_version=1, operation="merge", **common)
    with pytest.raises(OptionError, match="first_row_id"):
        snapshot_json(format_version=3, operation="append", **common)
    with pytest.raises(OptionError, match="manifest list"):
        snapshot_json(format_version=2, operation="append", root_manifest=True, **common)


def test_the_metadata_log_and_the_clock() -> None:
    document = set_properties(history(2, 4), set={"write.metadata.previous-versions-max": "3"})
    assert [e["metadata-file"][-6:] for e in document["metadata-log"]] == ["1.json", "2.json", "3.json", "4.json"]
    after = checked(pure(next_document, document, previous_location="s3://x/5.json", timestamp_ms=START_MS))
    assert [e["metadata-file"][-6:] for e in after["metadata-log"]] == ["3.json", "4.json", "5.json"]
    assert after["metadata-log"][-1]["timestamp-ms"] == document["last-updated-ms"]
    assert after["last-updated-ms"] == document["last-updated-ms"]
    later = next_document(document, previous_location=None, timestamp_ms=START_MS + 99_000)
    assert (later["last-updated-ms"], len(later["metadata-log"])) == (START_MS + 99_000, 4)
    ahead = add_snapshot(document, snapshot=snapshot(document, 9, timestamp_ms=START_MS + 500_000))
    assert next_document(ahead, previous_location=None, timestamp_ms=START_MS)["last-updated-ms"] == START_MS + 500_000
    for value, left in (("0", 1), ("-4", 1)):
        small = set_properties(document, set={"write.metadata.previous-versions-max": value})
        assert len(next_document(small, previous_location="s3://x/5.json", timestamp_ms=0)["metadata-log"]) == left
    with pytest.raises(FormatError, match="previous-versions-max"):
        next_document(
            set_properties(document, set={"write.metadata.previous-versions-max": "many"}),
            previous_location="s3://x/5.json",
            timestamp_ms=0,
        )


def test_properties() -> None:
    document = table(2, properties={"a": "1", "b": "2"})
    after = checked(pure(set_properties, document, set={"c": "3", "a": "9"}, remove=["b", "nothing"]))
    assert after["properties"] == {"a": "9", "c": "3"}
    for name in ("format-version", "uuid", "current-snapshot-id", "default-sort-order", "current-schema"):
        with refused("reserved-property"):
            set_properties(document, set={name: "2"})
    with refused("reserved-property"):
        set_properties(document, set={"n": 5})  # type: ignore[dict-item]
    with refused("reserved-property"):
        set_properties(document, set={"n": "5"}, remove=["n"])


@pytest.mark.parametrize(
    "broken",
    [
        {"format-version": 9}, {"format-version": None}, {"snapshots": {}}, {"snapshots": [1]}, {"snapshot-log": 3},
        {"last-sequence-number": "4"}, {"refs": []}, {"refs": {"main": 4}}, {"current-snapshot-id": "x"},
    ],
)  # fmt: skip
def test_damaged_documents_are_refused_not_made_worse(broken: dict[str, Any]) -> None:
    new = snapshot(history(2, 2), 9)
    document = history(2, 2) | broken
    if broken == {"refs": []}:
        assert add_snapshot(document, snapshot=new)["refs"]["main"]["snapshot-id"] == 9  # empty, however spelled
        return
    with pytest.raises(FormatError):
        add_snapshot(document, snapshot=new)


def test_a_long_history_is_shared_not_copied() -> None:
    document = table(2)
    document["snapshots"] = [
        {"sequence-number": i, "snapshot-id": i, "timestamp-ms": START_MS, "manifest-list": "x", "summary": {"a": "1"}}
        for i in range(1, 10_001)
    ]
    document["snapshot-log"] = [{"timestamp-ms": START_MS, "snapshot-id": i} for i in range(1, 10_001)]
    document |= {"current-snapshot-id": 10_000, "last-sequence-number": 10_000}
    document["refs"] = {"main": {"snapshot-id": 10_000, "type": "branch"}}
    after = next_document(
        add_snapshot(document, snapshot=snapshot(document, 10_001)), previous_location="s3://x", timestamp_ms=0
    )
    assert all(a is b for a, b in zip(document["snapshots"], after["snapshots"], strict=False))
    assert after["schemas"] is document["schemas"]


@given(
    st.sampled_from((1, 2, 3)),
    st.lists(
        st.tuples(st.sampled_from(["main", "main", "b", "c", None]), st.integers(-2_000, 90_000), st.integers(0, 50))
    ),
)
def test_commits_agree_with_pyiceberg(version: int, commits: list[tuple[str | None, int, int]]) -> None:
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate, TableUpdate, update_table_metadata

    document = table(version)
    theirs = pyiceberg_of(document)
    clock = START_MS
    for number, (ref, step, rows) in enumerate(commits, 1):
        clock += step
        refs = document.get("refs") or {}
        parent = refs.get(ref or "main", {}).get("snapshot-id")
        more = {"added_rows": rows} if version >= 3 else {}
        new = snapshot(document, number, parent_snapshot_id=parent, timestamp_ms=clock, **more)
        document = pure(add_snapshot, document, snapshot=new, ref=ref)
        document = next_document(document, previous_location=None, timestamp_ms=clock)
        model = pyiceberg_of({**document, "snapshots": [new]} | {"refs": {}, "current-snapshot-id": None}).snapshots[0]
        updates: tuple[TableUpdate, ...] = (AddSnapshotUpdate(snapshot=model),)
        if ref is not None:
            kind = SnapshotRefType.BRANCH
            updates += (SetSnapshotRefUpdate(ref_name=ref, type=kind, snapshot_id=number),)
        theirs = update_table_metadata(theirs, updates, enforce_validation=True)
    ours = pyiceberg_of(checked(document))
    assert ours.snapshots == theirs.snapshots
    assert ours.refs == theirs.refs
    assert ours.current_snapshot_id == theirs.current_snapshot_id
    assert ours.snapshot_log == theirs.snapshot_log
    if version >= 2:
        assert ours.last_sequence_number == theirs.last_sequence_number
    if version >= 3:
        assert ours.next_row_id == theirs.next_row_id


def test_documents_are_json() -> None:
    document = committed(history(4, 2), 9)
    assert json.loads(json.dumps(document)) == document
