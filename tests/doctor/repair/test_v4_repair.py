"""Repair plans of V4 trees: each damage is mended, and the repaired tree has the files of the healthy one, exactly."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.doctor import RepairPlan
from tests.doctor.damages import document_path, edit_json, local, root_path
from tests.doctor.repair.repairs import HOPELESS, V4_ROWS
from tests.doctor.v4_damages import (
    ADDED,
    DATA,
    DATA_LEAF,
    DELETE_LEAF,
    DELETED,
    EXISTING,
    MANIFEST_DV,
    POSITION,
    V4_DAMAGES,
    Row,
    V4Damage,
    edit_leaf,
    edit_parquet,
    edit_root,
    find,
    healthy_v4,
    inline,
    leaf_paths,
    one,
    simulated,
    tracking,
    write_as_draft,
)
from tests.helpers.sampling import one_of

#: The trees are a simulation's, whose synthetic files are nowhere, and outside of the folder that it is saved to.
NOWHERE = ("outside-roots",)
#: The columns of files that have to be those of the healthy tree; `_files` adds the commit that added each file.
FILES = ("content", "file_path", "partition", "record_count", "file_size_in_bytes", "lower_bounds", "first_row_id",
         "referenced_data_file", "content_offset", "equality_ids", "sort_order_id", "split_offsets")  # fmt: skip
#: This damage removes a file on its way, as a commit could.
REMOVES = "vector_of_a_removed_file"


def _files(table: Any) -> list[dict[str, Any]]:
    """Return the live files with their values, and the snapshots that added them, in no particular layout."""
    found = table.inspect.files.arrow()
    rows = found.select([n for n in FILES if n in found.column_names]).to_pylist()
    commits = {
        (r["data_file"]["file_path"], r["data_file"].get("content_offset")): (r["snapshot_id"], r["sequence_number"])
        for r in table.inspect.entries.arrow().to_pylist()
        if r["status"] != 2
    }
    for row in rows:
        row["commit"] = commits[row["file_path"], row.get("content_offset")]
    return sorted(rows, key=str)


def _bytes(folder: Path) -> dict[Path, bytes]:
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def _mended(folder: Path, **how: Any) -> RepairPlan:
    """Plan the repair of a table, save it, and check the copy; the table itself is not written."""
    before = _bytes(folder)
    plan = ix.open(folder).check(skip=NOWHERE, **how).repair()
    assert plan.steps and plan.is_complete, repr(plan)
    copy = folder.with_name("fixed")
    plan.save(copy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing contradicts itself any more
        mended = ix.open(copy)
        assert mended.count() == plan.rows_after
        report = mended.check(skip=NOWHERE, **how)
    assert [str(f) for f in report if f.severity != "untidy"] == []
    assert dict(report.unknown) == {}
    assert _bytes(folder) == before, "the damaged table was written to"
    return plan


#: Each once, although some are of two modes.
DAMAGES = {d.name: d for d in V4_DAMAGES if d.name not in HOPELESS}


@pytest.mark.parametrize("damage", one_of(4, DAMAGES.values()), ids=lambda d: f"{d.mode}-{d.name}")
def test_a_damage_is_mended(damage: V4Damage, tmp_path: Path) -> None:
    folder = damage.healthy(tmp_path)
    table = ix.open(folder)
    files, rows = _files(table), table.count()
    damage.damage(folder)
    if damage.name == REMOVES:
        rows = ix.open(folder).count()
    plan = _mended(folder)
    assert plan.rows_after == V4_ROWS.get(damage.name, rows)
    if damage.name not in (*V4_ROWS, REMOVES):
        assert _files(plan.table) == files
    assert not any(step.sql or step.python for step in plan), "no engine has statements for trees"


def test_every_damage_with_other_rows_is_a_damage() -> None:
    assert {d.name for d in V4_DAMAGES} >= {REMOVES, *V4_ROWS}


# Rows that are lost with their files ----------------------------------------------------------------------------------

IN_LEAVES: dict[str, Any] = {"flush_data_files": 0, "flush_delete_files": 0, "leaf_entries": 4}


def _lab(folder: Path, deleted: str = "id = 3", **layout: Any) -> Path:
    """Return a table with real rows: two appends, a delete, and an append."""
    lab = ix.create(
        folder / "t", {"id": "long", "k": "string"}, partition_by="k",
        properties={"write.delete.mode": "merge-on-read"}, **{"format_version": 4, **layout},
    )  # fmt: skip
    lab.append({"id": list(range(10)), "k": ["a"] * 5 + ["b"] * 5})
    lab.append({"id": [10, 11, 12], "k": ["a"] * 3})
    if deleted:
        lab.delete(deleted)
    lab.append({"id": [20, 21], "k": ["a", "b"]})
    return folder / "t"


def _file_with(folder: Path, row: int) -> Path:
    files = ix.open(folder).inspect.data_files.arrow().to_pylist()
    return next(p for f in files if row in pq.read_table(p := local(f["file_path"]), columns=["id"])["id"].to_pylist())


def _ids(table: Any) -> set[int]:
    return set(table.to_arrow(columns=["id"])["id"].to_pylist())


ALL = set(range(13)) - {3} | {20, 21}


@pytest.mark.parametrize(
    ("kind", "number", "layout", "snapshots", "rows", "rows_lost"),
    one_of(
        2,
        [
            ("data file", 11, {}, "current", ALL - {10, 11, 12}, 3),
            ("data file", 11, IN_LEAVES, "all", ALL - {10, 11, 12}, 3),
            ("vector", 0, {}, "all", ALL | {3}, 0),
            ("vector", 0, IN_LEAVES, "current", ALL | {3}, 0),
            ("manifest", 0, IN_LEAVES, "all", ALL - set(range(10)), 10),
            ("manifest", 1, IN_LEAVES, "current", ALL - {10, 11, 12}, 3),
            ("cut manifest", 0, IN_LEAVES, "current", ALL - set(range(10)), 10),
            ("delete manifest", 0, IN_LEAVES, "all", ALL | {3}, 0),
            ("root", 0, IN_LEAVES, "current", ALL - {20, 21}, None),
        ],
    ),
)
def test_what_is_lost_is_left_out(
    kind: str, number: int, layout: dict[str, Any], snapshots: str, rows: set[int], rows_lost: int, tmp_path: Path
) -> None:
    folder = _lab(tmp_path, **layout)
    if kind == "data file":
        _file_with(folder, number).unlink()
    elif kind == "vector":
        local(ix.open(folder).inspect.delete_files.arrow()["file_path"][number].as_py()).unlink()
    elif kind == "root":
        root_path(folder, number).unlink()
    else:
        leaf = leaf_paths(folder, DELETE_LEAF if kind == "delete manifest" else DATA_LEAF)[number]
        leaf.unlink() if kind != "cut manifest" else leaf.write_bytes(leaf.read_bytes()[:300])
    plan = _mended(folder, snapshots=snapshots)
    assert _ids(plan.table) == _ids(ix.open(folder.with_name("fixed"))) == rows
    assert plan.steps[0].rows_lost == rows_lost
    assert plan.steps[0].rows_back == (0 if rows <= ALL and kind != "root" else None)


def _live_leaf(folder: Path, kind: int = DATA_LEAF) -> Path:
    rows = pq.read_table(root_path(folder)).to_pylist()
    return local(next(r for r in rows if r["content_type"] == kind and tracking(r)["status"] != DELETED)["location"])


def test_what_a_lost_manifest_merged_is_taken_from_the_parent(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=4, seed=3, flush_data_files=0, flush_delete_files=0)
    for rows in (300, 20):
        s.append(files=2, rows=rows)
    first = s.inspect.data_files.arrow()["file_path"].to_pylist()
    s.row_delta(deletes={first[0]: [1]})
    s.delete_files(first[2:3])
    s.rewrite_manifests()
    s.append(files=1, rows=5)
    s.save(tmp_path / "healthy" / "t")
    files = _files(ix.open(tmp_path / "healthy" / "t"))
    s.save(tmp_path / "t")
    _live_leaf(tmp_path / "t").unlink()
    plan = _mended(tmp_path / "t")
    here, there = str(tmp_path / "t"), str(tmp_path / "healthy" / "t")
    assert str(_files(plan.table)) == str(files).replace(there, here)
    assert [(step.title, step.rows_lost, step.rows_back) for step in plan] == [("Remove lost manifests", 0, 0)]


def test_two_lost_manifests_are_left_out_together(tmp_path: Path) -> None:
    folder = _lab(tmp_path, **IN_LEAVES)
    _live_leaf(folder).unlink()
    _live_leaf(folder, DELETE_LEAF).unlink()
    assert _ids(_mended(folder).table) == ALL - set(range(10))


def test_an_expired_parent_is_not_needed(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    s = simulated().copy()
    s.expire_snapshots(older_than="2090-01-01", retain_last=1)
    s.save(folder)
    files = _files(ix.open(folder))

    def change(rows: list[dict[str, Any]]) -> None:
        one(DATA_LEAF, manifest_stats=None)(rows)
        one(MANIFEST_DV, ADDED, record_count=9)(rows)
        tracking(find(rows, DATA, EXISTING))["status"] = 9
        one(DATA, content_type=7)(rows)

    edit_root(folder, change)
    edit_leaf(folder, lambda rows: rows[1].update(content_type=DATA_LEAF))
    plan = _mended(folder)
    assert _files(plan.table) == files


def test_a_fault_that_older_snapshots_share_is_mended_in_all(tmp_path: Path) -> None:
    folder = healthy_v4(tmp_path)
    files = _files(ix.open(folder))
    counts = {"added_files_count": 7}
    for back in range(5):
        edit_parquet(root_path(folder, back), lambda rows: find(rows, DATA_LEAF)["manifest_stats"].update(counts))
    plan = _mended(folder)
    assert _files(plan.table) == files
    assert plan.table.check(snapshots="all", skip=NOWHERE).ok


def test_a_value_that_is_nowhere_is_named_and_the_rest_is_mended(tmp_path: Path) -> None:
    folder = healthy_v4(tmp_path)
    edit_leaf(folder, lambda rows: rows[0].update(file_size_in_bytes=None))
    edit_json(document_path(folder), lambda document: document.update({"last-updated-ms": 1}))
    plan = ix.open(folder).check(skip=NOWHERE).repair()
    assert [s.title for s in plan] == ["Raise last-updated-ms"]
    (left,) = [u for u in plan.unrepaired if u.finding.severity != "untidy"]
    assert left.finding.code == "entry-invalid" and "the size of" in left.reason


def test_wrong_counts_of_a_file_are_corrected_in_every_snapshot_that_has_them(tmp_path: Path) -> None:
    folder = _lab(tmp_path)
    name = str(_file_with(folder, 11))

    def change(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["content_type"] == DATA and local(row["location"]) == Path(name):
                row.update(record_count=9, file_size_in_bytes=None)

    for back in range(3):
        edit_parquet(root_path(folder, back), change)
    plan = _mended(folder, level="files")
    assert _ids(plan.table) == ALL
    for snapshot in plan.table.metadata.snapshots[1:]:
        files = plan.table.at(snapshot.snapshot_id).inspect.data_files.arrow().to_pylist()
        row = next(f for f in files if local(f["file_path"]) == Path(name))
        assert (row["record_count"], row["file_size_in_bytes"]) == (3, Path(name).stat().st_size)


def test_a_lost_file_of_before_the_upgrade_is_left_out_of_lists_and_trees(tmp_path: Path) -> None:
    folder = _lab(tmp_path, format_version=2)
    lab = ix.lab(folder)
    lab.upgrade(4, manifest_format="avro")
    lab.append({"id": [30], "k": ["a"]})
    lab.delete("id = 11")
    _file_with(folder, 1).unlink()
    plan = _mended(folder, snapshots="all")
    assert _ids(plan.table) == ALL - set(range(5)) - {11} | {30}
    assert {bool(plan.table._state.root(s).dialect.has_root_manifest) for s in plan.table.metadata.snapshots} == {
        False,
        True,
    }


def test_the_trees_of_branches_are_mended_from_their_own_parents(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=4, seed=3, leaf_entries=3, flush_data_files=2)
    s.append(files=4, rows=400)
    s.branch("dev")
    first = s.inspect.data_files.arrow()["file_path"][0].as_py()
    s.delete_files([first], ref="dev")
    s.append(files=1, rows=7)
    s.save(tmp_path / "t")
    table = ix.open(tmp_path / "t")
    files = [_files(table), _files(table.at("dev"))]
    edit_leaf(tmp_path / "t", lambda rows: rows[1].update(split_offsets=[9, 4]))
    plan = _mended(tmp_path / "t")
    assert [_files(plan.table), _files(plan.table.at("dev"))] == files
    assert plan.table.check(snapshots="all", skip=NOWHERE).ok


def test_an_inline_vector_gets_a_puffin_file(tmp_path: Path) -> None:
    folder = _lab(tmp_path)
    for back in (0, 1):
        edit_parquet(root_path(folder, back), one(POSITION, deletion_vector=inline(3)))
    plan = _mended(folder)
    assert _ids(plan.table) == ALL


def test_a_vector_that_names_no_file_is_pointed_at_the_one_that_its_puffin_file_names(tmp_path: Path) -> None:
    folder = _lab(tmp_path)
    for back in (0, 1):
        edit_parquet(root_path(folder, back), one(POSITION, referenced_file=None))
    plan = _mended(folder)
    assert _ids(plan.table) == ALL
    assert [s.title for s in plan] == ["Restore the values of entries"]


@pytest.mark.parametrize("in_leaves", [False, True])
def test_a_lost_file_of_a_draft_goes_with_its_vector(in_leaves: bool, tmp_path: Path) -> None:
    # a manifest of the draft lists vectors with their files, so the leaves are of a table without any
    folder = write_as_draft(_lab(tmp_path, flush_data_files=0, deleted="") if in_leaves else _lab(tmp_path))
    rows = _ids(ix.open(folder))
    _file_with(folder, 1).unlink()
    plan = _mended(folder)
    assert plan.table._state.root().dialect == "v4-draft"
    assert _ids(plan.table) == rows - set(range(5))


# Random histories -----------------------------------------------------------------------------------------------------


def _random_tree(rng: random.Random, folder: Path) -> Path:
    """Save a table with a random layout and a random history, of which the oldest snapshots may have expired."""
    s = ix.empty(
        {"id": "long", "k": "string"}, partition_by=rng.choice([[], ["k"], ["k", "bucket(4, id)"]]), format_version=4,
        seed=rng.randrange(10**6), leaf_entries=rng.choice([2, 3, 5]), flush_data_files=rng.choice([0, 1, 50]),
        flush_delete_files=rng.choice([0, 1, 50]), affinity=rng.choice(["all", "some", "none"]),
        dv_encoding=rng.choice(["removed", "replace", "delta"]), dv_attached=rng.random() < 0.2,
        compact_leaves=rng.choice([0, 3]), partition_storage=rng.choice(["derived", "source", "tuple"]),
        inline_dv_bytes=rng.choice([0, 4096]),
    )  # fmt: skip
    s.append(files=rng.randint(2, 5), rows=200)
    for number in range(rng.randint(2, 4)):
        files = [row["file_path"] for row in s.inspect.data_files.arrow().to_pylist()]
        match rng.choice(["append", "delete", "rows", "merge"]):
            case "delete" if len(files) > 2:
                s.delete_files(rng.sample(files, 2))
            case "rows":
                s.row_delta(deletes={file: [number] for file in rng.sample(files[:3], 2)})
            case "merge" if len(files) > 2:
                s.rewrite_manifests()
            case _:
                s.append(files=rng.randint(1, 4), rows=40)
    if rng.random() < 0.3:
        s.expire_snapshots(older_than="2090-01-01", retain_last=rng.choice([1, 2]))
    s.save(folder / "t")
    return folder / "t"


def _same(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["content_type"], row["location"], (row["deletion_vector"] or {}).get("offset")


#: Damages of a live row of a root: content types that have it, and its change.
FAULTS: dict[str, tuple[tuple[int, ...], Any]] = {
    "content type": (tuple(range(4)), lambda row: row.update(content_type=7)),
    "status": (tuple(range(4)), lambda row: tracking(row).update(status=9)),
    "recorded change": (tuple(range(5)), lambda row: tracking(row).update(status=1 - tracking(row)["status"])),
    "split offsets": ((DATA,), lambda row: row.update(split_offsets=[200, 4])),
    "vector": ((DATA,), lambda row: row.update(deletion_vector={**inline(1), "offset": 4, "size_in_bytes": 9})),
    "affiliation": ((DATA_LEAF, DELETE_LEAF), lambda row: row.update(referenced_file="/w/none.parquet")),
    "counts": ((DATA_LEAF, DELETE_LEAF), lambda row: row["manifest_stats"].update(added_files_count=7)),
    "no counts": ((DATA_LEAF, DELETE_LEAF), lambda row: row.update(manifest_stats=None)),
    "removed count": ((MANIFEST_DV,), lambda row: row.update(record_count=9)),
}


@pytest.mark.parametrize("seed", one_of(2, range(4)))
def test_a_random_tree_is_mended(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    folder = _random_tree(rng, tmp_path)
    files = _files(ix.open(folder))
    newest = [r for r in pq.read_table(root_path(folder)).to_pylist() if tracking(r)["status"] in (EXISTING, ADDED)]
    fault, row = rng.choice([(f, r) for f, (kinds, _) in FAULTS.items() for r in newest if r["content_type"] in kinds])
    everywhere = rng.random() < 0.4 and fault != "recorded change"  # in the roots of all snapshots that list the row

    def change(rows: list[dict[str, Any]]) -> None:
        for other in rows:
            if _same(other) == _same(row) and tracking(other)["status"] in (EXISTING, ADDED):
                FAULTS[fault][1](other)

    for back in range(len(ix.open(folder).metadata.snapshots) if everywhere else 1):
        edit_parquet(root_path(folder, back), change)
    if ix.open(folder).check(skip=NOWHERE).ok:
        assert fault in ("recorded change", "affiliation"), "a status may be right after expiry, and draft has affinity"
        return
    assert _files(_mended(folder, snapshots=rng.choice(["current", "all"])).table) == files


def test_partitions_are_derived_by_the_spec_of_the_entry(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "k": "string"}, partition_by=["k"], format_version=4)
    lab.append({"id": [1, 2], "k": ["a", "a"]})
    lab.evolve_spec(remove=["k"], add=["bucket(4, id)"])
    lab.append({"id": [3], "k": ["b"]})
    before = ix.open(tmp_path / "t")
    columns = ["file_path", "spec_id", "partition"]
    expected = before.inspect.files.arrow().select(columns).to_pylist()

    def change(rows: list[Row]) -> None:
        for row in rows:
            if row["partition_spec_id"] == 0:
                row["content_stats"]["k"].update(lower_bound=None, upper_bound=None)

    for snapshot in before.snapshots:  # the parent's entry has no partition either
        edit_parquet(local(str(snapshot.root_location)), change)
    report = ix.open(tmp_path / "t").check(snapshots="all")
    assert [f.code for f in report] == ["partition-unknown"]
    mended = report.repair().table
    assert mended.inspect.files.arrow().select(columns).to_pylist() == expected
