"""Maintenance plans are what Iceberg's procedures do: the same counts, the same files, table by table.

A procedure changes its table, which other tests read: its folder is copied before and restored afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.doctor import Maintenance
from tests.helpers.sampling import one_of
from tests.spark import tables as registered  # noqa: F401 (the warehouse writes what it registers)
from tests.spark.conftest import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

#: Tables of the warehouse: every version, kind of delete, ref, evolution and statistics file.
SPARK = (
    "v1_plain", "v2_pos_file", "v3_dv", "upgraded", "refs", "expired", "rewritten", "statistics", "emptied",
    "equality_deletes", "dropped_source", "evolved", "v4_java", "hostile_names",
)  # fmt: skip
LABS = ("lab_v1", "lab_retention", "lab_refs", "lab_specs", "lab_log", "lab_dvs")
#: Files that no table references, by the place that Iceberg's rules give them: seen or hidden.
SEEN = ("data/lost.parquet", "data/kind=zz/a/b.parquet", "metadata/lost.avro", "metadata/v0.metadata.json", "lost")
HIDDEN = ("data/_lost.parquet", "data/.lost.parquet", "_tmp/lost.parquet", "data/_x=1/lost.parquet")
DAY = 86_400
#: Tables and options of rewrites of data: small files, too many deletes, a sort, other specs, dangling deletes.
DATA: tuple[tuple[str, dict[str, Any]], ...] = (
    ("v2_pos_file", {}),
    ("v2_pos_partition", {"min_input_files": 2, "delete_file_threshold": 1}),
    ("v3_dv", {"delete_ratio_threshold": 0.1}),
    ("upgraded", {"rewrite_all": True, "remove_dangling_deletes": True}),
    ("equality_deletes", {"rewrite_all": True, "remove_dangling_deletes": True}),
    ("hostile_names", {"rewrite_all": True, "strategy": "sort", "sort_order": "`tick``s`"}),
    ("v1_plain", {"rewrite_all": True, "max_file_group_size_bytes": 1000}),
    ("transforms", {"min_input_files": 2}),
    ("dropped_source", {"rewrite_all": True}),
)
#: Tables and options of rewrites of deletes: per data file, per partition, unpartitioned, into vectors, not at all.
DELETES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("v2_pos_file", {"rewrite_all": True}),
    ("v2_pos_partition", {"min_input_files": 2}),
    ("v2_pos_unpartitioned", {"rewrite_all": True}),
    ("upgraded", {"rewrite_all": True}),
    ("v3_dv", {"rewrite_all": True}),
)
#: Tables whose manifests are rewritten, and whether into several.
MANIFESTS = (("v2_pos_file", False), ("upgraded", False), ("rewritten", False), ("equality_deletes", False),
             ("refs", True), ("v1_plain", True))  # fmt: skip


@pytest.fixture(scope="module")
def tables(warehouse: Warehouse) -> Warehouse:
    """The warehouse with tables of labs, which Spark's procedures take as any others."""
    folder = warehouse.folder / "labs"  # another namespace: other tests list the first one
    lab = ix.create(folder / "lab_v1", {"id": "long"}, format_version=1)
    lab.append({"id": [1, 2]})
    lab.append({"id": [3]})
    lab.delete("id = 1")

    lab = ix.create(folder / "lab_retention", {"id": "long"}, format_version=2)
    lab.set_properties({"history.expire.max-snapshot-age-ms": "1", "history.expire.min-snapshots-to-keep": "2"})
    for i in range(4):
        lab.append({"id": [i]})
    lab.overwrite({"id": [9]})

    lab = ix.create(folder / "lab_refs", {"id": "long"}, format_version=3)
    lab.set_properties({"history.expire.max-snapshot-age-ms": "1", "history.expire.max-ref-age-ms": str(DAY * 1000)})
    lab.append({"id": [1, 2]})
    lab.tag("old", max_ref_age_ms=1)
    lab.tag("kept")
    lab.branch("dev", min_snapshots_to_keep=2)
    for i in range(4):
        lab.append({"id": [10 + i]}, ref="dev")
    lab.branch("audit", max_snapshot_age_ms=DAY * 1000)
    first = lab.append({"id": [3]})
    lab.append({"id": [4]}, ref="audit")
    lab.append({"id": [5]})
    lab.rollback(first)
    lab.delete("id = 3")

    lab = ix.create(folder / "lab_specs", {"id": "long", "k": "string"}, partition_by="k", format_version=2)
    lab.append({"id": [1, 2], "k": ["a", "b"]})
    lab.evolve_spec(add=["bucket(2, id)"])
    lab.evolve_schema(add={"more": "int"})
    lab.evolve_spec(add=["bucket(4, id)"], remove=["id_bucket_2"])
    lab.append({"id": [3], "k": ["a"]})
    lab.evolve_schema(add={"most": "int"})
    lab.overwrite({"id": [4], "k": ["c"]})

    lab = ix.create(folder / "lab_log", {"id": "long"}, format_version=2)
    lab.set_properties({"write.metadata.previous-versions-max": "2"})
    for i in range(4):
        lab.append({"id": [i]})
    lab.set_properties({"write.metadata.delete-after-commit.enabled": "true"})

    lab = ix.create(folder / "lab_dvs", {"id": "long"}, format_version=3)
    lab.set_properties({"write.delete.mode": "merge-on-read"})
    lab.append({"id": list(range(9))})
    lab.delete("id = 1")
    lab.delete("id = 2")
    lab.compact()
    return warehouse


@contextmanager
def restored(folder: Path) -> Iterator[None]:
    """Put a table's folder back as it was, afterwards."""
    copy = folder.with_name(folder.name + ".copy")
    shutil.copytree(folder, copy)
    try:
        yield
    finally:
        shutil.rmtree(folder)
        copy.rename(folder)


def files_of(folder: Path) -> set[str]:
    """The files under a folder, without the checksums that Hadoop writes beside them."""
    return {str(p) for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".crc")}


def call(tables: Warehouse, code: str) -> list[Any]:
    """Run a plan's own statement."""
    found: list[Any] = tables.session.sql(code.replace("catalog_name.", "cat.")).collect()
    return found


def reals(table: ix.Table, locations: Any) -> set[str]:
    return {table.state.storage.resolve(place) for place in locations.to_pylist()}


@pytest.mark.parametrize("name", one_of(3, [*SPARK, *LABS]))
def test_procedures_do_what_the_plans_say(tables: Warehouse, name: str) -> None:
    folder = tables.folder / "labs" / name if name in LABS else tables.path(name)
    with restored(folder):
        m = ix.open(folder).maintenance()
        _compare_orphans(tables, folder, m)
        _compare_expiry(tables, folder)


def _compare_orphans(tables: Warehouse, folder: Path, m: Maintenance[Any]) -> None:
    for place in (*SEEN, *HIDDEN):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(b"lost")
    old = time.time() - 10 * DAY
    for path in folder.rglob("*"):
        os.utime(path, (old, old))
    (folder / "data" / "young.parquet").write_bytes(b"young")
    plan = m.orphan_files()
    assert not len(plan.missing)
    assert {str(folder / place) for place in SEEN} <= reals(ix.open(folder), plan.files["location"])
    rows = call(tables, plan.calls[0].code.replace("older_than =>", "dry_run => true, older_than =>"))
    assert {row[0].removeprefix("file:") for row in rows} == reals(ix.open(folder), plan.files["location"])
    for place in (*SEEN, *HIDDEN, "data/young.parquet"):
        (folder / place).unlink()


def _compare_expiry(tables: Warehouse, folder: Path) -> None:
    table = ix.open(folder)
    retains = any(name.startswith("history.expire.") for name in table.properties)
    m = table.maintenance()
    plan = m.expire_snapshots(None if retains else "0s", clean_expired_metadata=True)
    after_commit = m.metadata_files()
    before, snapshots = files_of(folder), {s.snapshot_id for s in table.snapshots}
    counts = call(tables, plan.calls[0].code)[0].asDict()
    assert counts == plan.counts
    assert sum(counts.values()) == plan.cost.files_freed

    new = table.refresh()
    assert snapshots - {s.snapshot_id for s in new.snapshots} == set(plan.snapshots)
    assert set(table.refs) - set(new.refs) == set(plan.snapshots.refs)
    expected = reals(table, plan.files["location"])
    if after_commit.deletes and new.metadata_location != table.metadata_location:
        expected |= reals(table, after_commit.next_commit["location"])
    assert before - files_of(folder) == expected

    simulated, written = (json.loads(json.dumps(t.metadata.raw)) for t in (plan.table, new))
    for key in ("snapshots", "refs", "schemas", "partition-specs", "snapshot-log", "statistics", "current-snapshot-id"):
        assert _plain(simulated.get(key)) == _plain(written.get(key)), key


def _plain(value: Any) -> Any:
    """A list of objects in one order, as sorted texts; what is missing or empty is the same."""
    if isinstance(value, list):
        return sorted(json.dumps(item, sort_keys=True) for item in value) or None
    return value or None


@pytest.mark.parametrize("retain", [None, 2])
def test_the_oldest_time_that_keeps_a_snapshot(tables: Warehouse, retain: int | None) -> None:
    """A snapshot as old as ``older_than`` stays; ``retain_last`` keeps more."""
    folder = tables.folder / "labs" / "lab_log"
    with restored(folder):
        table = ix.open(folder)
        when = sorted(s.timestamp_ms for s in table.snapshots)
        plan = table.maintenance().expire_snapshots(when[3 if retain else 2], retain)
        assert len(plan.snapshots) == 2
        assert call(tables, plan.calls[0].code)[0].asDict() == plan.counts
        left = {s.snapshot_id for s in table.refresh().snapshots}
        assert left == {k.snapshot_id for k in plan.snapshots.kept}


def _live(table: ix.Table) -> dict[str, int]:
    """The number of live files by kind, and the rows that data files have."""
    files = table.inspect.files()
    counts = {f"content {kind}": int(n) for kind, n in files["content"].value_counts().items()}
    return counts | {"rows": int(files.loc[files["content"] == 0, "record_count"].sum())}


@pytest.mark.parametrize(("name", "options"), one_of(2, DATA))
def test_data_files_are_rewritten_as_planned(tables: Warehouse, name: str, options: dict[str, Any]) -> None:
    folder = tables.path(name)
    with restored(folder):
        table = ix.open(folder)
        plan = table.maintenance().rewrite_data_files(**options)
        row = call(tables, plan.calls[0].code)[0].asDict()
        planned = {
            "rewritten_data_files_count": plan.rewritten_data_files,
            "rewritten_bytes_count": plan.rewritten_bytes,
            "removed_delete_files_count": plan.removed_delete_files,
            "failed_data_files_count": 0,
        }
        added = row.pop("added_data_files_count")
        assert row == planned
        assert plan.rewritten_data_files
        if plan.accuracy == "exactly":
            assert added == plan.added_data_files
        else:
            assert plan.accuracy != "at least" or added >= plan.added_data_files
            assert plan.accuracy != "at most" or added <= plan.added_data_files
        if plan.accuracy == "exactly" and name != "upgraded":  # a simulation drops dangling deletes at once
            assert _live(plan.table) == _live(table.refresh())
        assert table.refresh().count() == table.count()


@pytest.mark.parametrize("concurrent", [1, 5])
def test_groups_are_committed_as_planned(tables: Warehouse, concurrent: int) -> None:
    folder = tables.path("v1_plain")
    with restored(folder):
        table = ix.open(folder)
        least = int(table.inspect.files.arrow()["file_size_in_bytes"].to_numpy().min())
        plan = table.maintenance().rewrite_data_files(
            rewrite_all=True, max_file_group_size_bytes=least, partial_progress_enabled=True,
            partial_progress_max_commits=2, max_concurrent_file_group_rewrites=concurrent,
        )  # fmt: skip
        assert len(plan.groups) > 2
        assert len(plan.commits) == 2
        before = {s.snapshot_id for s in table.snapshots}
        row = call(tables, plan.calls[0].code)[0].asDict()
        assert row["rewritten_data_files_count"] == plan.rewritten_data_files
        new = table.refresh()
        made = [s for s in sorted(new.snapshots, key=lambda s: s.sequence_number) if s.snapshot_id not in before]
        made.sort(key=lambda s: s.timestamp_ms)
        assert len(made) == len(plan.commits)
        if concurrent > 1:  # the groups of the commits differ from run to run
            return
        summaries = [s.summary or {} for s in made]
        assert [int(s["deleted-data-files"]) for s in summaries] == plan.commits["files"].to_pylist()
        assert [int(s["added-data-files"]) for s in summaries] == plan.commits["added_files"].to_pylist()
        for done, snapshot in enumerate(made, 1):
            assert _live(plan.after(done)) == _live(new.at(snapshot.snapshot_id))


@pytest.mark.parametrize(("name", "options"), one_of(2, DELETES))
def test_deletes_are_rewritten_as_planned(tables: Warehouse, name: str, options: dict[str, Any]) -> None:
    folder = tables.path(name)
    with restored(folder):
        table = ix.open(folder)
        plan = table.maintenance().rewrite_position_delete_files(**options)
        row = call(tables, plan.calls[0].code)[0].asDict()
        written = row.pop("added_bytes_count")
        assert row == {
            "rewritten_delete_files_count": plan.rewritten_delete_files,
            "added_delete_files_count": plan.added_delete_files,
            "rewritten_bytes_count": plan.rewritten_bytes,
        }
        assert plan.accuracy == "exactly"
        assert plan.nothing == (name == "v3_dv")
        assert abs((plan.cost.bytes_written or 0) - written) <= written * 0.1
        new = table.refresh()
        assert _live(plan.table) == _live(new)
        assert new.count() == plan.table.count() == table.count()


@pytest.mark.parametrize(("name", "several"), one_of(2, MANIFESTS))
def test_manifests_are_rewritten_as_planned(tables: Warehouse, name: str, several: bool) -> None:
    folder = tables.path(name)
    with restored(folder):
        table = ix.open(folder)
        if several:
            size = int(table.inspect.manifests()["length"].max()) // 2 * 3
            call(tables, f"ALTER TABLE cat.db.{name} SET TBLPROPERTIES ('commit.manifest.target-size-bytes'='{size}')")
            table = table.refresh()
        plan = table.maintenance().rewrite_manifests()
        row = call(tables, plan.calls[0].code)[0].asDict()
        assert row["rewritten_manifests_count"] == plan.rewritten_manifests
        assert plan.nothing == (name == "rewritten")
        assert (plan.added_manifests > 1) == (several or name in ("v2_pos_file", "upgraded", "equality_deletes"))
        if plan.accuracy == "exactly":
            assert row["added_manifests_count"] == plan.added_manifests
            assert len(plan.table.inspect.manifests()) == len(table.refresh().inspect.manifests())
        else:
            assert row["added_manifests_count"] <= plan.added_manifests
