"""Commits to a manifest list: what each of them writes, carries and drops, read back by our reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceexplore.commits import Change, LayoutOptions, apply_to_list, apply_to_root
from iceexplore.errors import OptionError, RuleError, UnsupportedError
from iceexplore.manifests import ContentType, EntryBatch, Status
from tests.helpers.tables.list_table import ListLab, at, batch, entry, live_rows, spelled

VERSIONS = [1, 2, 3, 4]


def add(*names: str, kinds: list[str | None] | None = None, rows: int = 10, **more: Any) -> Change:
    made = batch([entry(n, rows, **more) for n in names], kinds or ["a"] * len(names))
    return Change("append", made)


def dv(name: str, puffin: str, rows: int = 2, offset: int = 4, **more: Any) -> dict[str, Any]:
    place = {"offset": offset, "size_in_bytes": 40}
    kind = int(ContentType.POSITION_DELETE)
    return entry(
        puffin, rows, content_type=kind, file_format="puffin", referenced_file=name, deletion_vector=place, **more
    )


def equality(name: str, **more: Any) -> dict[str, Any]:
    return entry(name, 1, content_type=int(ContentType.EQUALITY_DELETE), equality_ids=[1], **more)


def positions(name: str, **more: Any) -> dict[str, Any]:
    return entry(name, 1, content_type=int(ContentType.POSITION_DELETE), **more)


def names(lab: ListLab, *contents: ContentType) -> list[str]:
    return sorted(r["location"] for r in live_rows(lab.state, *contents))


def list_rows(lab: ListLab) -> list[dict[str, Any]]:
    root = lab.state.root()
    assert root is not None
    rows: list[dict[str, Any]] = root.entries.to_pylist()
    return rows


@pytest.mark.parametrize("version", VERSIONS)
def test_appends_write_one_manifest_and_carry_the_others(tmp_path: Path, version: int) -> None:
    lab = ListLab(tmp_path / "t", version)
    lab.commit(add("one", "two", kinds=["a", "b"]))
    before = list_rows(lab)
    state = lab.commit(add("three"))
    after = list_rows(lab)
    assert [r["location"] for r in after[1:]] == [r["location"] for r in before]
    same = [k for k in before[0] if k not in ("ordinal", "status")]
    assert [{k: r[k] for k in same} for r in after[1:]] == [{k: r[k] for k in same} for r in before]
    assert names(lab) == ["one", "three", "two"]
    numbers = {r["location"]: r["sequence_number"] for r in live_rows(state)}
    assert numbers == ({"one": 1, "two": 1, "three": 2} if version > 1 else dict.fromkeys(numbers, 0))
    assert state.snapshot is not None and state.snapshot.summary is not None
    assert {k: state.snapshot.summary[k] for k in ("added-data-files", "total-data-files", "total-records")} == {
        "added-data-files": "1",
        "total-data-files": "3",
        "total-records": "30",
    }
    assert len(state.problems) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_removed_file_is_deleted_once_and_then_forgotten(tmp_path: Path, version: int) -> None:
    lab = ListLab(tmp_path / "t", version)
    lab.commit(add("one", "two"))
    lab.commit(add("three"))
    untouched = list_rows(lab)[0]["location"]
    state = lab.commit(Change("delete", remove_data=("one",)))
    rows = list_rows(lab)
    assert rows[0]["location"] == untouched
    (leaf,) = state.leaves(rows=[1])
    found = {r["location"].rpartition("/")[2]: r for r in leaf.entries.to_pylist()}
    snapshot = state.snapshot
    assert snapshot is not None
    assert (found["one"]["status"], found["one"]["snapshot_id"]) == (Status.DELETED, snapshot.snapshot_id)
    first = 1 if version > 1 else 0
    assert (found["two"]["status"], found["two"]["sequence_number"]) == (Status.EXISTING, first)
    assert found["one"]["file_sequence_number"] == first
    assert rows[1]["manifest_stats"]["min_sequence_number"] == first
    assert snapshot.summary is not None
    assert snapshot.summary["deleted-data-files"] == "1" and snapshot.summary["manifests-replaced"] == "1"
    # the next commit to that manifest leaves the old DELETED entry out; when all is gone it stays for one snapshot
    state = lab.commit(Change("delete", remove_data=("two",)))
    (leaf,) = state.leaves(rows=[1])
    assert [(r["location"], r["status"]) for r in leaf.entries.to_pylist()] == [(at("two"), Status.DELETED)]
    state = lab.commit(add("four"))
    assert names(lab) == ["four", "three"]
    assert len(list_rows(lab)) == 2
    assert len(state.problems) == 0


def test_manifests_are_cut_at_leaf_entries_and_kept_apart_by_spec(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2, leaf_entries=2)
    lab.document["partition-specs"].append({"spec-id": 1, "fields": []})
    lab._publish(lab.document)
    rows = [entry(f"f{i}", 1, spec_id=i % 2) for i in range(6)]
    partition = pa.array([{"1000": "a"} if i % 2 == 0 else None for i in range(6)], pa.struct([("1000", pa.string())]))
    state = lab.commit(Change("append", EntryBatch.of_rows(rows, partition=partition)))
    counts = [(r["partition_spec_id"], r["manifest_stats"]["added_files_count"]) for r in list_rows(lab)]
    assert counts == [(0, 2), (0, 1), (1, 2), (1, 1)]
    assert {r["location"]: r["kind"] for r in live_rows(state)} == {
        f"f{i}": "a" if i % 2 == 0 else None for i in range(6)
    }
    assert state.snapshot is not None and state.snapshot.summary is not None
    assert state.snapshot.summary["changed-partition-count"] == "2"


def test_dvs_of_removed_files_go_with_them(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 3)
    lab.commit(add("one", "two"))
    vectors = [dv("one", "p", offset=4), dv("two", "p", offset=44)]
    lab.commit(Change("delete", batch(vectors, ["a", "a"])))
    state = lab.commit(Change("delete", remove_data=("one",)))
    left = live_rows(state, ContentType.POSITION_DELETE)
    assert [r["referenced_file"] for r in left] == ["two"]
    assert state.snapshot is not None and state.snapshot.summary is not None
    summary = state.snapshot.summary
    assert (summary["removed-dvs"], summary["removed-delete-files"], summary["removed-position-deletes"]) == (
        "1",
        "1",
        "2",
    )
    assert summary["removed-files-size"] == "1040"  # of the vector its own 40 bytes
    assert summary["total-delete-files"] == "1"


def test_a_dv_is_replaced_and_never_doubled(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 3)
    lab.commit(add("one", "two"))
    lab.commit(Change("delete", batch([dv("one", "p1"), dv("two", "p1", offset=44)], ["a", "a"])))
    second = batch([dv("one", "p2", rows=3)], ["a"])
    before = len(lab.disk.written)
    with pytest.raises(RuleError, match="one-dv"):
        lab.commit(Change("delete", second))
    assert len(lab.disk.written) == before
    lab.commit(Change("delete", second, replace_dvs=("one",)))
    left = {r["referenced_file"]: r["location"] for r in live_rows(lab.state, ContentType.POSITION_DELETE)}
    assert left == {"one": "p2", "two": "p1"}


def test_old_delete_files_are_dropped_when_no_data_is_as_old(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2)
    lab.commit(add("one"))
    lab.commit(Change("delete", batch([equality("eq"), positions("pos")], ["a", "a"])))
    lab.commit(add("two"))
    lab.commit(Change("overwrite", add("three").added, remove_data=("one",)))
    assert names(lab) == ["three", "two"]


def test_old_deletes_stay_in_manifests_without_a_named_one(tmp_path: Path) -> None:
    """Java: ``ManifestFilterManager.canTrustManifestReferences``."""
    deletes = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)

    def without_old(change: Change) -> list[str]:
        lab = ListLab(tmp_path / f"t{len(list(tmp_path.iterdir()))}", 3)
        lab.commit(add("old"))
        lab.commit(Change("delete", batch([equality("eq")], ["a"])))
        lab.commit(add("new"))
        lab.commit(Change("delete", batch([dv("new", "v1")], ["a"])))
        lab.commit(Change("delete", batch([equality("late")], ["a"])))
        lab.commit(change)
        return names(lab, *deletes)

    # the equality delete "eq" is older than "new", the only data file that remains; "v1" is in another manifest
    assert without_old(Change("delete", remove_data=("old",))) == ["late", "v1"]
    replaced = batch([dv("new", "v2")], ["a"])
    both = Change("overwrite", replaced, remove_data=("old",), replace_dvs=("new",))
    assert without_old(both) == ["eq", "late", "v2"]
    assert without_old(Change("delete", remove_data=("old",), remove_deletes=("late",))) == ["eq", "v1"]
    # a rewrite names the vectors of its files
    compacted = batch([entry("both", 20)], ["a"])
    assert without_old(Change("replace", compacted, remove_data=("old", "new"))) == ["eq", "late"]
    assert without_old(Change("replace", batch([entry("young", 10)], ["a"]), remove_data=("old",))) == ["late", "v1"]


def test_a_compaction_with_an_older_sequence_number_keeps_the_deletes_that_still_apply(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2)
    lab.commit(add("one", "two"))
    lab.commit(Change("delete", batch([equality("eq")], ["a"])))  # sequence number 2
    lab.commit(add("young"))
    compacted = batch([entry("both", 20, sequence_number=1)], ["a"])
    state = lab.commit(Change("replace", compacted, remove_data=("one", "two", "young")))
    found = {r["location"]: (r["sequence_number"], r["file_sequence_number"]) for r in live_rows(state)}
    assert found == {"both": (1, 4), "eq": (2, 2)}
    assert list_rows(lab)[0]["manifest_stats"]["min_sequence_number"] == 1


def test_files_that_are_not_there(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 3)
    with pytest.raises(RuleError, match="files-exist"):
        lab.commit(Change("delete", remove_data=("one",)))
    lab.commit(add("one"))
    for change in (
        Change("delete", remove_data=("one", "other")),
        Change("delete", remove_deletes=("one",)),
        Change("delete", replace_dvs=("one",)),
        Change("replace", rewrite_manifests=("nowhere",)),
    ):
        with pytest.raises(RuleError, match="files-exist"):
            lab.commit(change)
    lab.commit(Change("delete", remove_data=("one", "other"), ignore_missing=True))
    assert names(lab) == []


@pytest.mark.parametrize(
    ("version", "row"),
    [(1, equality("e")), (1, positions("p")), (2, dv("one", "p")), (3, positions("p")), (4, positions("p"))],
)
def test_delete_files_that_a_version_does_not_have(tmp_path: Path, version: int, row: dict[str, Any]) -> None:
    lab = ListLab(tmp_path / "t", version)
    with pytest.raises(RuleError, match="deletes-need-v2"):
        lab.commit(Change("delete", batch([row], ["a"])))


def test_what_is_refused(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2)
    with pytest.raises(RuleError, match="duplicate-file"):
        lab.commit(add("one", "one"))
    with pytest.raises(OptionError, match="needs a separate commit"):
        lab.commit(Change("replace", add("one").added, rewrite_manifests=True))


def test_row_ids_are_assigned_after_an_upgrade_and_stay(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2)
    lab.commit(add("one", "two", rows=10))
    lab.commit(add("three", rows=5))
    lab.upgrade(3)
    state = lab.commit(add("four", rows=7))
    first = {r["location"]: r["first_row_id"] for r in live_rows(state)}
    assert first == {"four": 0, "three": 7, "one": 12, "two": 22}
    assert state.metadata.next_row_id == 32
    state = lab.commit(Change("delete", remove_data=("one",)))
    assert {r["location"]: r["first_row_id"] for r in live_rows(state)} == {"four": 0, "three": 7, "two": 22}
    state = lab.commit(add("five", rows=1))
    five = next(r for r in live_rows(state) if r["location"] == "five")
    assert five["first_row_id"] >= 32
    header = state.root()
    assert header is not None and header.header.metadata["first-row-id"] == str(five["first_row_id"])


def test_a_removal_right_after_the_upgrade_assigns_row_ids_to_what_stays(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2)
    lab.commit(add("one", "two", rows=10))
    lab.upgrade(3)
    state = lab.commit(Change("delete", remove_data=("one",)))
    assert {r["location"]: r["first_row_id"] for r in live_rows(state)} == {"two": 0}
    assert state.metadata.next_row_id == 10


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_merged_without_a_change_of_the_data(tmp_path: Path, version: int) -> None:
    lab = ListLab(tmp_path / "t", version, leaf_entries=4)
    for i in range(6):
        lab.commit(add(f"f{i}"))
    lab.commit(Change("delete", remove_data=("f2",)))
    keys = ("location", "snapshot_id", "sequence_number", "file_sequence_number", "first_row_id", "kind")
    before = sorted([{k: r[k] for k in keys} for r in live_rows(lab.state)], key=str)
    state = lab.commit(Change("replace", rewrite_manifests=True))
    rows = live_rows(state)
    assert sorted([{k: r[k] for k in keys} for r in rows], key=str) == before
    assert {r["status"] for r in rows} == {Status.EXISTING}
    found = list_rows(lab)
    assert [r["manifest_stats"]["existing_files_count"] for r in found] == [4, 1]
    least = [min(r["sequence_number"] for r in rows if r["leaf"] == s["location"]) for s in found]
    assert [r["manifest_stats"]["min_sequence_number"] for r in found] == least
    assert state.snapshot is not None and state.snapshot.summary is not None
    shown = {k: v for k, v in state.snapshot.summary.items() if "manifests" in k or "entries" in k}
    assert shown == {
        "manifests-created": "2",
        "manifests-kept": "0",
        "manifests-replaced": "6",
        "entries-processed": "5",
    }
    assert state.snapshot.summary["total-data-files"] == "5"


def test_named_manifests_alone_are_merged(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2)
    for i in range(3):
        lab.commit(add(f"f{i}"))
    locations = [r["location"] for r in list_rows(lab)]
    lab.commit(Change("replace", rewrite_manifests=(locations[0], locations[2])))
    after = list_rows(lab)
    assert [r["manifest_stats"]["existing_files_count"] for r in after] == [2, 0]
    assert after[1]["location"] == locations[1]


def test_new_manifests_and_filtered_ones_are_used_again_on_a_retry(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 3)
    lab.commit(add("one", "two"))
    change = spelled(Change("overwrite", add("new").added, remove_data=("one",)))
    first = lab.writer()
    apply_to_list(change, first)
    lab.commit(add("between"))
    before = len(lab.disk.written)
    again = lab.writer(attempt=2, snapshot_id=first.snapshot_id, made=first.made)
    state = lab.publish(change, again, apply_to_list(change, again))
    assert [kind for kind, _ in lab.disk.written[before:]] == ["manifest-list"]
    assert names(lab) == ["between", "new", "two"]
    numbers = {r["location"]: r["sequence_number"] for r in live_rows(state)}
    assert numbers == {"two": 1, "between": 2, "new": 3}
    assert len(state.problems) == 0


def test_a_change_made_anew_for_a_retry_gets_manifests_of_its_own(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2)
    first = lab.writer()
    apply_to_list(spelled(add("one")), first)
    again = lab.writer(attempt=2, snapshot_id=first.snapshot_id, made=first.made)
    change = spelled(add("other"))
    lab.publish(change, again, apply_to_list(change, again))
    assert names(lab) == ["other"]


def test_nothing_is_committed_on_top_of_what_cannot_be_read(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2)
    lab.commit(add("one", "two"))
    leaf = Path(list_rows(lab)[0]["location"])
    state = lab.state
    state.problems.strict = False
    leaf.unlink()
    with pytest.raises(FileNotFoundError):
        apply_to_list(spelled(Change("delete", remove_data=("one",))), lab.writer(base=state))


def inlined(lab: ListLab) -> None:
    """Name the manifests in the snapshot itself, as early v1 writers did."""
    snapshot = lab.document["snapshots"][-1]
    snapshot["manifests"] = [r["location"] for r in list_rows(lab)]
    del snapshot["manifest-list"]
    lab._publish(lab.document)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_inline_manifests_become_a_list_with_counts(tmp_path: Path, version: int) -> None:
    lab = ListLab(tmp_path / "t", 1)
    lab.commit(add("one", "two", kinds=["a", "c"]))
    inlined(lab)
    assert lab.state.root() is not None and lab.state.root().dialect == "inline"  # type: ignore[union-attr]
    first = lab.state.snapshot
    for to in range(2, version + 1):
        lab.upgrade(to)
    lab.commit(add("three"))
    assert names(lab) == ["one", "three", "two"]
    row = list_rows(lab)[1]
    assert first is not None and row["snapshot_id"] == first.snapshot_id
    assert row["manifest_stats"] == {
        "added_files_count": 2,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": 20,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "min_sequence_number": 0,
    }
    (summary,) = row["partition_summaries"]
    assert (summary["lower_bound"], summary["upper_bound"]) == (b"a", b"c")
    lab.commit(Change("delete", remove_data=("one",)))
    assert names(lab) == ["three", "two"]


def test_a_v4_root_is_not_downgraded(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 4, dialect="v4-proposal")
    writer = lab.writer()
    change = spelled(add("one"))
    lab.publish(change, writer, apply_to_root(change, writer))
    lab.options = LayoutOptions.of(4, dialect="v4-java")
    with pytest.raises(UnsupportedError, match="downgraded"):
        lab.commit(add("two"))


def test_unpartitioned(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2, spec=[])
    state = lab.commit(Change("append", batch([entry("one", 3)])))
    lab.commit(Change("append", batch([entry("two", 3)])))
    state = lab.commit(Change("delete", remove_data=("one",)))
    assert names(lab) == ["two"]
    assert state.snapshot is not None and state.snapshot.summary is not None
    assert state.snapshot.summary["changed-partition-count"] == "1"


def test_partitions_are_summarised_up_to_the_limit(tmp_path: Path) -> None:
    lab = ListLab(tmp_path / "t", 2)
    lab.document["properties"]["write.summary.partition-limit"] = "2"
    lab._publish(lab.document)
    state = lab.commit(add("one", "two", kinds=["a/b c", None]))
    assert state.snapshot is not None and state.snapshot.summary is not None
    summary = state.snapshot.summary
    assert summary["partition-summaries-included"] == "true"
    assert summary["partitions.kind=a%2Fb+c"] == "added-data-files=1,added-records=10,added-files-size=1000"
    assert "partitions.kind=null" in summary
    state = lab.commit(add("x", "y", "z", kinds=["1", "2", "3"]))
    assert state.snapshot is not None and state.snapshot.summary is not None
    assert not [k for k in state.snapshot.summary if k.startswith("partition")]
