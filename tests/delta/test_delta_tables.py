"""Delta tables with a V4 tree: their versions as states of a table, and what is wrong with their logs."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import FileMissingError, MetadataNotFoundError, UnsupportedError
from tests.delta.delta_table import DeltaTable

JAN, FEB = "2026-01-01", "2026-02-01"


def state(t: ix.Table) -> dict[str, tuple[int, int]]:
    """Rows, and deleted rows, of each live data file by its name."""
    deleted = {r["referenced_data_file"]: r["record_count"] for r in t.inspect.delete_files.arrow().to_pylist()}
    return {
        r["file_path"].removeprefix(f"{t.location}/"): (r["record_count"], deleted.get(r["file_path"], 0))
        for r in t.inspect.data_files.arrow().to_pylist()
    }


def ids(t: ix.Table) -> list[int]:
    found: list[Any] = t.to_arrow()["id"].to_pylist()
    return sorted(found)


def root(t: ix.Table) -> list[dict[str, Any]]:
    """The entries of a state's root."""
    found = t.state.root()
    assert found is not None
    return found.entries.to_pylist()


def summary(t: ix.Table, version: int) -> dict[str, str]:
    return dict(t.snapshots[version].summary or {})


@pytest.fixture
def made(tmp_path: Path) -> tuple[DeltaTable, list[dict[str, Any]]]:
    """Versions 0 to 6: three appends; a tree of version 3 in commit 4; a file deleted; a vector; a tree with both."""
    d = DeltaTable(tmp_path / "trips")
    d.create()
    a = d.append("a%20b/1.parquet", range(10), JAN)
    d.commit(a)
    b, c = d.append("2.parquet", range(10, 20), FEB), d.append("3.parquet", range(20, 25), None)
    d.commit(b, c)
    e = d.append("4.parquet", range(25, 30), JAN)
    d.commit(e)
    leaf = d.leaf("m0", [d.entry(a), d.entry(b), d.entry(c)])
    d.commit(d.checkpoint("v3", [d.listed(leaf), d.entry(e)], 3), operation="OPTIMIZE CHECKPOINT")
    f = d.with_vector(b, [0, 1, 2])
    d.commit(d.remove(a, (leaf, 0)), d.remove(b, (leaf, 1)), f, operation="DELETE")
    d.commit(d.remove(e), operation="DELETE")  # in the root itself: no back reference
    return d, [a, b, c, e, f]


def test_each_version_has_its_files_and_rows(made: Any) -> None:
    d, _ = made
    t = ix.open(d.folder)
    one = {"a%20b/1.parquet": (10, 0)}
    two = {**one, "2.parquet": (10, 0), "3.parquet": (5, 0)}
    three = {**two, "4.parquet": (5, 0)}
    five = {"2.parquet": (10, 3), "3.parquet": (5, 0), "4.parquet": (5, 0)}
    assert [state(t.at(v)) for v in range(7)] == [
        {}, one, two, three, three, five, {k: v for k, v in five.items() if k != "4.parquet"},
    ]  # fmt: skip
    assert [t.at(version=v).count() for v in range(7)] == [0, 10, 25, 30, 30, 17, 12]
    assert ids(t) == [*range(13, 20), *range(20, 25)]
    assert ids(t.at(5)) == [*range(13, 30)]
    assert list(t.problems) == []


def test_a_version_is_a_snapshot(made: Any) -> None:
    d, _ = made
    t = ix.open(d.folder)
    assert [s.snapshot_id for s in t.snapshots] == [*range(7)]
    assert [s.sequence_number for s in t.snapshots] == [*range(7)]
    assert [s.operation for s in t.snapshots] == [
        "replace",
        "append",
        "append",
        "append",
        "replace",
        "delete",
        "delete",
    ]
    assert t.snapshots[4].root_location == f"{d.folder}/metadata/v3.parquet"
    assert t.snapshots[5].root_location == f"{d.folder}/_delta_log/{5:020}.json"
    assert t.snapshots[5].timestamp_ms == 1_790_000_000_005
    totals = {k: int(v) for k, v in summary(t, 6).items() if k.startswith("total-")}
    assert totals["total-data-files"] == 2
    assert totals["total-records"] == 15
    assert (totals["total-delete-files"], totals["total-position-deletes"]) == (1, 3)
    assert t.properties["delta.columnMapping.maxColumnId"] == "3"
    assert [str(f.transform) for f in t.state.metadata.partition_specs[0].fields] == ["identity"]


def test_partitions_are_typed_and_prune(made: Any) -> None:
    d, _ = made
    t = ix.open(d.folder)
    days = {r["partition"]["day"]: r["record_count"] for r in t.at(3).inspect.data_files.arrow().to_pylist()}
    assert days == {dt.date(2026, 1, 1): 5, dt.date(2026, 2, 1): 10, None: 5}
    read = t.at(3).plan(f"day = '{FEB}'").files.files.entries["location"].to_pylist()
    assert [str(place).rpartition("/")[2] for place in read] == ["2.parquet"]
    assert t.at(3).count("day is null") == 5


def test_statistics_of_the_log_prune(made: Any) -> None:
    """A tree of Delta Lake 4.4 has none; the log has them for each file."""
    d, _ = made
    t = ix.open(d.folder).at(2)
    assert len(t.plan("id >= 20").files.files) == 1
    assert len(t.plan("name = 'n3'").files.files) == 1
    assert t.count("id >= 20") == 5


def test_what_a_commit_did_is_marked(made: Any) -> None:
    d, _ = made
    t = ix.open(d.folder)
    entries = root(t.at(6))
    gone = [e for e in entries if e["status"] == 2]
    assert [e["location"].rpartition("/")[2] for e in gone] == ["4.parquet"]
    assert gone[0]["snapshot_id"] == 6
    vectors = [e for e in root(t.at(5)) if e["content_type"] == 5]
    assert [(e["status"], e["record_count"], e["snapshot_id"]) for e in vectors] == [(1, 2, 5)]
    assert [e["status"] for e in root(t.at(6)) if e["content_type"] == 5] == [0]


def test_the_tree_says_what_is_in_the_log_only(made: Any) -> None:
    d, _ = made
    text = str(ix.open(d.folder).at(6).tree())
    assert "composed from a tree and the Delta log" in text
    logged = [line for line in text.splitlines() if "in the Delta log, not in the tree yet" in line]
    assert len(logged) == 2  # the file with its new vector
    assert "2.parquet" in logged[0]


def test_diff_lists_files_and_vectors(made: Any) -> None:
    d, _ = made
    difference = ix.open(d.folder).diff(3, 6)
    assert difference.rows == (0, 18)
    rows = difference.files[["change", "content", "location"]].to_dict("records")
    assert {(r["change"], r["content"], str(r["location"]).rpartition("/")[2]) for r in rows} == {
        ("removed", "data file", "1.parquet"), ("removed", "data file", "4.parquet"),
        ("added", "deletion vector", "dv.bin"),
    }  # fmt: skip


def test_row_ids_are_those_of_the_log(made: Any) -> None:
    d, _ = made
    t = ix.open(d.folder).at(3)
    rows = t.to_arrow(columns=["id", "_row_id"]).to_pylist()
    assert all(row["id"] == row["_row_id"] for row in rows)


def test_a_remove_without_a_back_reference_is_found_by_path(made: Any) -> None:
    d, (_, _, c, _, _) = made
    d.commit(d.remove(c), operation="DELETE")
    assert state(ix.open(d.folder)) == {"2.parquet": (10, 3)}


def test_a_readded_file_replaces_its_entry(made: Any) -> None:
    """Such as a backfill of statistics: an ``add`` alone, with the back reference."""
    d, (_, _, c, _, _) = made
    d.commit({"add": {**c["add"], "backReference": {"manifest": "metadata/m0.parquet", "pos": 2}}})
    t = ix.open(d.folder)
    assert state(t) == {"2.parquet": (10, 3), "3.parquet": (5, 0)}
    assert t.count() == 12


def test_a_back_reference_into_an_older_tree_is_followed_by_path(made: Any) -> None:
    """The tree was rewritten while the commit was made: its leaf is no longer listed."""
    d, (_, _, c, _, f) = made
    new = d.leaf("m1", [d.entry(f), d.entry(c)])
    d.commit(d.checkpoint("v6", [d.listed(new)], 6), operation="OPTIMIZE CHECKPOINT")
    d.commit(d.remove(c, ("metadata/m0.parquet", 2)), operation="DELETE")
    assert state(ix.open(d.folder)) == {"2.parquet": (10, 3)}


def test_a_manifest_commit_covers_itself(made: Any) -> None:
    """In the RFC a commit may write the tree of its own version."""
    d, (_, _, c, _, f) = made
    g = d.append("5.parquet", range(30, 33), FEB)
    leaf = d.leaf("m2", [d.entry(f), d.entry(c)])
    tree = d.checkpoint("v7", [d.listed(leaf), d.entry(g, status=1)], 7)
    d.commit(g, tree)
    t = ix.open(d.folder)
    assert t.snapshots[7].root_location == f"{d.folder}/metadata/v7.parquet"
    assert t.count() == 15
    direct = [e for e in root(t) if e["content_type"] == 0]
    assert [(e["status"], e["snapshot_id"]) for e in direct] == [(1, 7)]


def test_a_cleaned_up_log_begins_at_a_standalone_checkpoint(made: Any) -> None:
    d, (a, b, _, _, f) = made
    root = json.loads((d.log / f"{4:020}.json").read_text().splitlines()[1])
    leaf = "metadata/m0.parquet"
    d.standalone(5, root, [d.remove(a, (leaf, 0)), d.remove(b, (leaf, 1)), f])
    t = ix.open(d.folder)
    assert [s.snapshot_id for s in t.snapshots] == [6]
    assert state(t) == {"2.parquet": (10, 3), "3.parquet": (5, 0)}
    assert t.count() == 12
    assert "total-records" not in summary(t, 0)


def test_a_cleaned_up_log_begins_at_a_tree(made: Any) -> None:
    d, _ = made
    for version in range(4):
        (d.log / f"{version:020}.json").unlink()
    t = ix.open(d.folder)
    assert [s.snapshot_id for s in t.snapshots] == [4, 5, 6]
    assert [t.at(v).count() for v in (4, 5, 6)] == [30, 17, 12]


def test_a_moved_table_and_a_zip(made: Any, tmp_path: Path) -> None:
    d, _ = made
    shutil.copytree(d.folder, tmp_path / "far away" / "copy")
    shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "trips")
    for place in (tmp_path / "far away" / "copy", tmp_path / "far away", tmp_path / "packed.zip"):
        t = ix.open(place)
        assert t.count() == 12
        assert ids(t) == [*range(13, 25)]


def test_refresh_finds_new_versions(made: Any) -> None:
    d, _ = made
    t = ix.open(d.folder)
    d.commit(d.append("6.parquet", range(40, 42), JAN))
    assert t.refresh().snapshots[-1].snapshot_id == 7
    assert t.refresh().count() == 14


def test_a_simulation_continues_the_table(made: Any) -> None:
    d, _ = made
    before = {p: p.stat().st_mtime_ns for p in d.folder.rglob("*")}
    s = ix.open(d.folder).simulate()
    s.append(files=1, rows=7)
    assert s.count() == 19
    assert [p.code for p in s.problems if p.severity == "error"] == []
    assert s.at(5).count() == 17
    assert {p: p.stat().st_mtime_ns for p in d.folder.rglob("*")} == before


def test_the_history_is_replayed_in_the_proposal(made: Any) -> None:
    """What Delta wrote, beside what the proposal's layout writes for the same history."""
    d, _ = made
    found = ix.open(d.folder).replay(4)
    assert found.check() == ()
    assert found.simulation.count() == 12
    frame = found.table
    assert list(frame["files_added"]) == [0, 1, 2, 1, 0, 0, 0]
    sizes = [(d.log / f"{v:020}.json").stat().st_size for v in range(4)]
    assert list(frame["before_bytes"])[:4] == sizes, "a commit of the log writes its own file alone"
    assert list(frame["before_plan_cold_bytes"])[3] == sum(sizes), "before the first tree, a reader reads the log"


def test_cards_and_captions_say_delta(made: Any) -> None:
    d, _ = made
    t = ix.open(d.folder)
    assert t.state.format_badges == ("Delta version 6", "adaptiveMetadata")
    assert t.at(version=3).state.format_badges[0] == "Delta version 3"
    assert "Delta version 6" in repr(t) and "Iceberg v" not in repr(t)
    assert "Delta version 6" in repr(t.plan()) and "Iceberg v" not in repr(t.plan())
    assert t.explore().badges[:2] == ["Delta version 6", "adaptiveMetadata"]
    assert "Delta (adaptiveMetadata)" in t.tree().to_svg()
    s = t.simulate()
    s.append(files=1, rows=7)
    assert s.state.format_badges == ("Iceberg v4", "from Delta version 6")
    assert s.at(2).state.format_badges == ("Delta version 2", "adaptiveMetadata")
    assert "Delta (adaptiveMetadata), then Iceberg v4" in s.tree().to_svg()
    assert t.replay(4).simulation.state.format_badges == ("Iceberg v4",)
    assert ix.empty({"id": "long"}, format_version=2).state.format_badges == ("Iceberg v2",)


def test_check_finds_nothing_wrong(made: Any) -> None:
    d, _ = made
    report = ix.open(d.folder).check(level="files", snapshots="all")
    assert {f.code for f in report if f.severity in ("fail", "wrong")} == set()


@pytest.mark.parametrize("call", ["maintenance", "bundle", "save"])
def test_what_a_delta_table_cannot_do_says_what_to_do(made: Any, tmp_path: Path, call: str) -> None:
    t = ix.open(made[0].folder)
    calls = {
        "maintenance": t.maintenance,
        "bundle": lambda: t.bundle(tmp_path / "b.zip"),
        "save": lambda: t.simulate().save(tmp_path / "saved"),
    }
    with pytest.raises(UnsupportedError, match="trips is a Delta table: " + (".*" if call != "save" else ".*s.replay")):
        calls[call]()
    assert not (tmp_path / "saved").exists()


# Damage ---------------------------------------------------------------------------------------------------------------


def test_a_table_without_the_feature_is_refused(tmp_path: Path) -> None:
    d = DeltaTable(tmp_path / "plain", features=["columnMapping"])
    d.create()
    with pytest.raises(MetadataNotFoundError, match=r"Delta Lake table .* without the table feature adaptiveMetadata"):
        ix.open(d.folder)


def test_a_log_without_commits_is_named(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "00.json").write_text("{}")
    with pytest.raises(MetadataNotFoundError, match="this is a Delta Lake table, but its _delta_log/ has no commit"):
        ix.open(tmp_path)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"add": ', "line 2 is not valid JSON"),
        ("[]", "line 2 is not an action"),
        ('{"add": {"size": 1}}', "the action 'add' has no path"),
        ('{"remove": {"path": "x", "backReference": {"manifest": "m", "pos": -1}}}', "backReference has no manifest"),
        ('{"add": {"path": "x", "deletionVector": {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, '
         '"cardinality": 1}}}', "inside the action, which adaptiveMetadata forbids"),
        ('{"add": {"path": "x", "deletionVector": {"storageType": "u", "pathOrInlineDv": "~", "sizeInBytes": 1, '
         '"cardinality": 1}}}', "is not an encoded UUID"),
        ('{"checkpoint": 3}', "neither an array nor an object"),
        ('{"checkpoint": []}', ""),
        ('{"checkpoint": {"version": 99, "contentRoot": {"path": "x"}}}', "describes the later version 99"),
    ],
)  # fmt: skip
def test_a_damaged_commit_is_a_problem_of_its_version(made: Any, line: str, text: str) -> None:
    d, _ = made
    path = d.log / f"{6:020}.json"
    path.write_text(path.read_text().splitlines()[0] + "\n" + line)
    t = ix.open(d.folder)
    assert t.at(5).count() == 17
    if text:
        assert [text in p.text for p in t.problems] == [True]
        assert [s.snapshot_id for s in t.snapshots] == [*range(6)]


def test_a_missing_commit_leaves_the_others(made: Any) -> None:
    d, _ = made
    (d.log / f"{5:020}.json").unlink()
    t = ix.open(d.folder)
    assert t.at(4).count() == 30
    assert len(t.inspect.data_files.arrow()) == 0
    assert any("is missing, and there is no tree of this or a later version" in p.text for p in t.problems)
    with pytest.raises(FileMissingError):
        ix.open(d.folder, strict=True).inspect.data_files()


def test_hostile_paths_stay_inside(made: Any) -> None:
    d, _ = made
    add = {"path": "../../../../etc/passwd", "partitionValues": {"col-day": "x" * 100}, "size": -1,
           "stats": "{" * 10_000, "defaultRowCommitVersion": 1 << 70}  # fmt: skip
    d.commit({"add": add})
    t = ix.open(d.folder)
    t.inspect.data_files()
    with pytest.raises(ix.errors.IceexploreError):
        t.to_arrow()
    assert any(p.code == "value-undecodable" for p in t.problems)


@pytest.mark.parametrize(
    ("kind", "error"),
    [("interval", "Iceberg has no type"), ({"type": "array"}, "Iceberg has no type"), (7, "Iceberg has no type")],
)
def test_a_type_without_a_counterpart_is_named(tmp_path: Path, kind: Any, error: str) -> None:
    d = DeltaTable(tmp_path / "t", columns=[("id", kind, 1), ("day", "date", 2)])
    d.create()
    with pytest.raises(ix.errors.IceexploreError, match=r"metaData|Iceberg"):
        ix.open(d.folder)


def test_nested_types_have_ids(tmp_path: Path) -> None:
    inner = {"name": "x", "type": "short", "nullable": False,
             "metadata": {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-x"}}  # fmt: skip
    array = {"type": "array", "elementType": {"type": "struct", "fields": [inner]}, "containsNull": False}
    pairs = {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": True}
    d = DeltaTable(tmp_path / "t", columns=[("m", pairs, 1), ("day", "date", 2), ("d", "decimal(9,2)", 3)])
    d.create()
    t = ix.open(d.folder)
    assert str(t.schema.fields[2].type) == "decimal(9,2)"
    found = set(t._state.metadata.all_fields())
    assert {1, 2, 3, 9} <= found
    assert len(found) == 7


def test_a_changed_schema_and_partitioning(made: Any) -> None:
    d, _ = made
    d.about = {**d.about, "partitionColumns": []}
    d.commit({"metaData": d.about}, operation="REPLACE TABLE")
    d.commit(d.append("7.parquet", [50], None))
    t = ix.open(d.folder)
    assert t.spec is not None
    assert t.spec.is_unpartitioned
    assert {r["spec_id"] for r in t.inspect.data_files.arrow().to_pylist()} == {0, 1}


def test_two_versions_compose_the_same_tree_once(made: Any) -> None:
    """A commit and a tree never change, so that going back reads nothing again."""
    d, _ = made
    t = ix.open(d.folder)
    t.at(5).inspect.data_files()
    read = len(t._state.storage.reads)
    t.at(5).inspect.data_files()
    assert len(t._state.storage.reads) == read
