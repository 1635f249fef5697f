"""The layout of the V4 draft, case by case: what a commit writes in the root and in leaves, and what it refuses."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules
from iceexplore.deletes import decode_mumbling
from iceexplore.errors import OptionError, RuleError, UnsupportedError
from iceexplore.graph import TableState
from tests.helpers.tables.root_table import (
    BY_KIND_AND_BUCKET,
    RootLab,
    data_file,
    dv,
    equality,
    live_files,
    path,
    short,
)

STATUS = ("EXISTING", "ADDED", "DELETED", "REPLACED", "MODIFIED")


def made(folder: Path, **options: Any) -> RootLab:
    return RootLab(folder / "t", options={"dialect": "v4-draft", **options})


def right(state: TableState) -> TableState:
    """The state, after a look at the rules."""
    assert check_rules(state) == []
    assert list(state.problems) == []
    return state


def written(state: TableState) -> list[dict[str, Any]]:
    """The rows of the root as plain pyarrow reads them."""
    root = state.root()
    assert root is not None
    return pq.read_table(io.BytesIO(state.storage.read(root.location, kind="manifest-list"))).to_pylist()


def rows(state: TableState) -> list[tuple[int, str, str, str]]:
    """The root: content type, name, status, name of the vector."""
    out = []
    for row in written(state):
        vector = (row.get("deletion_vector") or {}).get("location")
        about = short(row["location"]) if row["content_type"] < 3 else ""
        out.append((row["content_type"], about, STATUS[row["tracking"]["status"]], short(vector)))
    return out


def test_a_vector_of_a_file_in_the_root(tmp_path: Path) -> None:
    lab = made(tmp_path)
    first = lab.commit(add=[data_file("A"), data_file("B")]).snapshot
    state = right(lab.commit("delete", add=[dv("V", "A")]))
    assert first is not None and state.snapshot is not None
    now = state.snapshot.snapshot_id
    assert rows(state) == [(0, "A", "REPLACED", ""), (0, "B", "EXISTING", ""), (0, "A", "MODIFIED", "V")]
    replaced, _, modified = (row["tracking"] for row in written(state))
    assert (replaced["snapshot_id"], replaced["dv_snapshot_id"]) == (now, None)
    assert (modified["snapshot_id"], modified["dv_snapshot_id"]) == (first.snapshot_id, now)
    assert modified["sequence_number"] == modified["file_sequence_number"] == 1
    assert modified["first_row_id"] == replaced["first_row_id"] == 0
    state = right(lab.commit("delete", add=[dv("W", "A", rows=2)], replace_dvs=path("A")))
    assert rows(state) == [(0, "B", "EXISTING", ""), (0, "A", "REPLACED", "V"), (0, "A", "MODIFIED", "W")]
    assert written(state)[1]["tracking"]["dv_snapshot_id"] == now  # that of the vector that is replaced
    state = right(lab.commit(add=[data_file("C")]))
    assert rows(state) == [(0, "B", "EXISTING", ""), (0, "A", "EXISTING", "W"), (0, "C", "ADDED", "")]
    state = right(lab.commit("delete", remove_data=path("A")))
    assert rows(state)[1] == (0, "A", "DELETED", "W")
    assert sorted(live_files(state)) == ["B", "C"]


def test_files_of_a_leaf(tmp_path: Path) -> None:
    lab = made(tmp_path, flush_data_files=2)
    lab.commit(add=[data_file(n) for n in "ABCD"])
    assert rows(lab.state) == [(3, "", "ADDED", "")]
    state = right(lab.commit("overwrite", add=[dv("V", "B")], remove_data=path("C")))
    assert rows(state) == [(3, "", "MODIFIED", ""), (0, "B", "MODIFIED", "V")]
    leaf = written(state)[0]
    assert state.snapshot is not None
    assert decode_mumbling(leaf["manifest_info"]["dv"]) == BitMap([1, 2])
    assert decode_mumbling(leaf["tracking"]["deleted_positions"]) == BitMap([2])
    assert decode_mumbling(leaf["tracking"]["replaced_positions"]) == BitMap([1])
    assert leaf["tracking"]["dv_snapshot_id"] == state.snapshot.snapshot_id
    state = right(lab.commit("delete", remove_data=path("D")))
    leaf = written(state)[0]
    assert decode_mumbling(leaf["manifest_info"]["dv"]) == BitMap([1, 2, 3])
    assert (leaf["tracking"]["status"], leaf["tracking"]["replaced_positions"]) == (4, None)
    assert decode_mumbling(leaf["tracking"]["deleted_positions"]) == BitMap([3])
    state = right(lab.commit(add=[data_file("E")]))
    leaf = written(state)[0]
    assert (leaf["tracking"]["status"], leaf["tracking"]["deleted_positions"]) == (0, None)
    assert decode_mumbling(leaf["manifest_info"]["dv"]) == BitMap([1, 2, 3])


def test_flushed_files_keep_their_vectors(tmp_path: Path) -> None:
    lab = made(tmp_path, flush_data_files=3)
    lab.commit(add=[data_file("A"), data_file("B")])
    lab.commit("delete", add=[dv("V", "A")])
    state = right(lab.commit(add=[data_file("C"), data_file("D")]))
    assert rows(state) == [(3, "", "ADDED", ""), (0, "C", "ADDED", ""), (0, "D", "ADDED", "")]
    info = written(state)[0]
    assert (info["record_count"], info["manifest_info"]["existing_files_count"]) == (2, 2)
    assert sorted(live_files(state)) == ["A", "B", "C", "D", "V"]


def test_many_changed_files_are_a_leaf(tmp_path: Path) -> None:
    lab = made(tmp_path, flush_data_files=2)
    lab.commit(add=[data_file(n) for n in "ABCD"])
    state = right(lab.commit("delete", add=[dv(f"V{n}", n) for n in "ABC"]))
    assert [row[:3] for row in rows(state)] == [(3, "", "MODIFIED"), (3, "", "ADDED")]
    leaf = state.reader.leaf(state.root(), 2)  # type: ignore[arg-type]
    assert [r["status"] for r in leaf.entries.to_pylist() if r["content_type"] == 0] == [4, 4, 4]
    assert sorted(live_files(state)) == ["A", "B", "C", "D", "VA", "VB", "VC"]


@pytest.mark.parametrize("flush", [9, 0])
def test_a_vector_to_replace_must_exist(tmp_path: Path, flush: int) -> None:
    lab = made(tmp_path, flush_data_files=flush)
    lab.commit(add=[data_file("A"), data_file("B")])
    with pytest.raises(RuleError, match=r"no live deletion vectors to replace exist for: .*B") as caught:
        lab.commit("delete", add=[dv("V", "B")], replace_dvs=path("B"))
    assert caught.value.rule == "files-exist"
    right(lab.commit("delete", add=[dv("V", "B")]))
    right(lab.commit("delete", add=[dv("W", "B", rows=2)], replace_dvs=path("B")))


def test_missing_files_are_ignored_in_an_empty_table_too(tmp_path: Path) -> None:
    gone: dict[str, Any] = {"remove_data": path("A"), "remove_deletes": path("D")}
    with pytest.raises(RuleError, match="files to remove are not live"):
        made(tmp_path / "a").commit("delete", **gone)
    state = right(made(tmp_path / "b").commit("delete", **gone, ignore_missing=True))
    assert state.snapshot is not None and not live_files(state)


def test_equality_deletes_are_refused(tmp_path: Path) -> None:
    lab = made(tmp_path)
    lab.commit(add=[data_file("A")])
    before = len(lab.box.storage.writes)
    with pytest.raises(RuleError, match="no new equality deletes") as caught:
        lab.commit("delete", add=[equality("Q")])
    assert caught.value.rule == "no-new-equality-deletes"
    assert len(lab.box.storage.writes) == before


@pytest.mark.parametrize("rule", ["files-exist", "duplicate-file", "one-dv", "orphan-dv"])
def test_refusals_leave_nothing_behind(tmp_path: Path, rule: str) -> None:
    lab = made(tmp_path, flush_data_files=2)
    lab.commit(add=[data_file(n) for n in "ABC"])
    lab.commit(add=[data_file("D"), dv("V", "D")])
    changes: dict[str, dict[str, Any]] = {
        "files-exist": {"remove_data": path("X")},
        "duplicate-file": {"add": [data_file("D")]},
        "one-dv": {"add": [dv("W", "D")]},
        "orphan-dv": {"add": [dv("W", "A")], "remove_data": path("A")},
    }
    before = len(lab.box.storage.writes)
    with pytest.raises(RuleError) as caught:
        lab.commit("overwrite", **changes[rule])
    assert caught.value.rule == rule
    assert len(lab.box.storage.writes) == before


def upgraded(folder: Path, **options: Any) -> tuple[RootLab, TableState]:
    """A table of version 3 with a vector and an equality delete, continued in the draft."""
    old = RootLab(folder / "t", version=3)
    old.commit(add=[data_file(n) for n in "ABC"])
    old.commit("delete", add=[dv("V", "A"), dv("W", "B"), equality("Q")])
    return old.upgraded(dialect="v4-draft", **options), old.state


def test_manifests_from_before_v4_are_carried(tmp_path: Path) -> None:
    lab, _ = upgraded(tmp_path)
    state = right(lab.commit(add=[data_file("D")]))
    assert [(r["content_type"], r["format_version"]) for r in written(state)] == [(3, 0), (4, 0), (0, 4)]
    assert "expressions" not in state.opened.document
    assert sorted(live_files(state)) == ["A", "B", "C", "D", "Q", "V", "W"]


def test_an_old_vector_that_is_replaced(tmp_path: Path) -> None:
    lab, _ = upgraded(tmp_path)
    state = right(lab.commit("delete", add=[dv("X", "A", rows=2)], replace_dvs=path("A")))
    assert rows(state) == [(3, "", "MODIFIED", ""), (4, "", "MODIFIED", ""), (0, "A", "MODIFIED", "X")]
    assert [r["format_version"] for r in written(state)] == [0, 0, 0]  # A was written before V4
    assert sorted(live_files(state)) == ["A", "B", "C", "Q", "W", "X"]


def test_a_rewrite_moves_old_vectors_to_their_files(tmp_path: Path) -> None:
    lab, _ = upgraded(tmp_path)
    state = right(lab.commit("replace", rewrite_manifests=True))
    # the delete manifest is kept for its equality delete
    assert [row[:3] for row in rows(state)] == [(3, "", "DELETED"), (4, "", "MODIFIED"), (3, "", "ADDED")]
    found = live_files(state)
    assert sorted(found) == ["A", "B", "C", "Q", "V", "W"]
    root = state.root()
    assert root is not None
    leaf = next(v for v in state.reader.leaves(root) if v.dialect == "v4-draft" and v.root_row is not None)
    assert [r["content_type"] for r in leaf.entries.to_pylist()] == [0, 1, 0, 1, 0]
    assert {r["format_version"] for r in leaf.entries.to_pylist() if r["content_type"] == 0} == {0}
    state = right(lab.commit("delete", remove_deletes=path("Q")))
    state = right(lab.commit("replace", rewrite_manifests=True))
    assert 4 not in {row[0] for row in rows(state) if row[2] != "DELETED"}
    assert sorted(live_files(state)) == ["A", "B", "C", "V", "W"]


def test_a_root_of_the_proposal_is_not_continued(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=4)
    s.append(1, rows=2)
    with pytest.raises(UnsupportedError, match="v4-proposal"):
        ix.open(s.save(tmp_path / "t").metadata_location).simulate(dialect="v4-draft").append(1, rows=2)


def test_options_that_the_draft_has_not() -> None:
    with pytest.raises(OptionError, match="dv_encoding"):
        ix.empty({"id": "long"}, format_version=4, dialect="v4-draft", dv_encoding="delta")
    with pytest.raises(OptionError, match="v4-proposal, v4-draft and v4-java"):
        ix.empty({"id": "long"}, format_version=4, dialect="v5")


def test_a_saved_table_goes_on_in_the_draft(tmp_path: Path) -> None:
    s = ix.empty({"id": "long", "kind": "string"}, partition_by=["kind"], format_version=4, dialect="v4-draft")
    s.append(3, rows=5)
    s.row_delta(deletes={s.inspect.data_files()["file_path"][0]: [1]})
    t = ix.open(s.save(tmp_path / "t").metadata_location)
    assert t.state.root().dialect == "v4-draft"  # type: ignore[union-attr]
    on = t.simulate()
    on.append(1, rows=5)
    assert on.state.root().dialect == "v4-draft"  # type: ignore[union-attr]
    assert (on.count(), on.rules().ok) == (19, True)


@pytest.mark.parametrize("ahead_ms", [0, 5_000_000])
def test_a_snapshot_is_later_than_its_parent(tmp_path: Path, ahead_ms: int) -> None:
    """Also where the parent's time lies after the time of the table's last change."""
    clock = 1_700_000_000_000
    lab = made(tmp_path)
    lab.box.shared.clock = lambda: clock + ahead_ms
    lab.commit(add=[data_file("A")])
    lab.box.shared.clock = lambda: clock
    lab.commit(add=[data_file("B")])
    first, second = (s.timestamp_ms for s in lab.state.metadata.snapshots)
    assert second > first


#: The draft's tables: field id, name, and whether it is required (apache/iceberg#16025, without 523 by #18138).
TRACKED_FILE = {
    (147, "tracking", True), (134, "content_type", True), (157, "format_version", True), (100, "location", True),
    (101, "file_format", True), (103, "record_count", True), (104, "file_size_in_bytes", True), (141, "spec_id", False),
    (102, "partition", False), (146, "content_stats", False), (140, "sort_order_id", False),
    (148, "deletion_vector", False), (150, "manifest_info", False), (131, "key_metadata", False),
    (132, "split_offsets", False), (135, "equality_ids", False),
}  # fmt: skip
INSIDE = {
    "tracking": {
        (0, "status", True), (1, "snapshot_id", False), (3, "sequence_number", False),
        (4, "file_sequence_number", False),
        (5, "dv_snapshot_id", False), (142, "first_row_id", False), (6, "deleted_positions", False),
        (7, "replaced_positions", False),
    },
    "deletion_vector": {
        (155, "location", True), (144, "offset", True), (145, "size_in_bytes", True), (156, "cardinality", True),
        (149, "key_metadata", False),
    },
    "manifest_info": {
        (504, "added_files_count", True), (505, "existing_files_count", True), (506, "deleted_files_count", True),
        (520, "replaced_files_count", True), (512, "added_rows_count", True), (513, "existing_rows_count", True),
        (514, "deleted_rows_count", True), (521, "replaced_rows_count", True), (516, "min_sequence_number", True),
        (522, "dv", False),
    },
    "partition": {(1000, "kind", False), (1001, "id_bucket", False)},
    "content_stats": {(10_200, "id", False), (10_400, "kind", False)},
}  # fmt: skip


def fields_of(struct: Any) -> set[tuple[int, str, bool]]:
    return {(int(f.metadata[b"PARQUET:field_id"]), f.name, not f.nullable) for f in struct}


def test_the_fields_of_a_root_in_plain_pyarrow(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t", options={"dialect": "v4-draft", "flush_data_files": 2}, spec=BY_KIND_AND_BUCKET)
    lab.commit(add=[data_file(n) for n in "ABCD"])
    state = right(lab.commit("delete", add=[dv("V", "B")]))
    root = state.root()
    assert root is not None
    schema = pq.ParquetFile(io.BytesIO(state.storage.read(root.location, kind="manifest-list"))).schema_arrow
    assert fields_of(schema) == TRACKED_FILE
    for name, wanted in INSIDE.items():
        assert fields_of(schema.field(name).type) == wanted
    leaf, file = written(state)
    assert (leaf["location"].startswith("metadata/"), file["location"]) == (True, path("B")[0])  # outside: absolute
    assert file["partition"] == {"kind": "a", "id_bucket": sum(map(ord, "B")) % 4}


def test_empty_partitions_and_statistics_are_not_stored(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t", options={"dialect": "v4-draft"}, spec=())
    bare = {k: v for k, v in data_file("A").items() if k not in ("low", "high")}
    state = lab.commit(add=[bare])
    (row,) = written(state)
    assert not row.keys() & {"partition", "deletion_vector", "manifest_info"}
    assert row["spec_id"] is None  # unpartitioned
    assert [r["partition_spec_id"] for r in live_files(state).values()] == [0]


def ids(t: ix.Table) -> list[int]:
    return sorted(build.to_pylist(t.to_arrow()["id"]))


def test_a_table_without_a_location(tmp_path: Path) -> None:
    """The location is optional in V4: the table is where it was opened, and what it lists is relative to that."""
    s = ix.empty({"id": "long"}, format_version=4, dialect="v4-draft", flush_data_files=0)
    s.append(pa.table({"id": [1, 2, 3]}))
    s.row_delta(deletes={s.inspect.data_files()["file_path"][0]: [1]})
    here = Path(s.save(tmp_path / "one").metadata_location)
    document = json.loads(here.read_text())
    assert all(snapshot["root-manifest"].startswith("metadata/") for snapshot in document["snapshots"])
    del document["location"], document["metadata-log"]
    here.write_text(json.dumps(document))
    for other in here.parent.glob("*.metadata.json"):
        if other != here:
            other.unlink()
    shutil.move(tmp_path / "one", tmp_path / "two")
    t = ix.open(tmp_path / "two")
    assert (t.location, ids(t)) == (str(tmp_path / "two"), [1, 3])
    on = t.simulate()
    on.append(pa.table({"id": [4]}))
    assert "location" not in on.metadata.raw
    again = ix.open(on.save(tmp_path / "three").metadata_location)
    assert "location" not in again.metadata.raw
    assert ids(again) == [1, 3, 4]
    assert list(again.problems) == []
