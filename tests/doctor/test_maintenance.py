"""Maintenance plans: what the procedures would do, with sources, costs, statements and the table after them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.doctor import Maintenance, Threshold
from iceexplore.errors import FileMissingError, OptionError, OutsideRootsError, RuleError, UnsupportedError

DAY = 86_400_000


@pytest.fixture
def lab(tmp_path: Path) -> ix.Lab:
    """A lab with four snapshots, of which one is on a branch, and one tag."""
    lab = ix.create(tmp_path / "db" / "t", {"id": "long"}, format_version=2)
    lab.append({"id": [1, 2]})
    lab.tag("first")
    lab.append({"id": [3]})
    lab.branch("dev", min_snapshots_to_keep=2)
    lab.append({"id": [4]}, ref="dev")
    lab.overwrite({"id": [5]})
    return lab


def maintenance(table: ix.Table, days: float = 0) -> Maintenance[ix.Simulation]:
    """The maintenance of a table some days from now."""
    m = table.maintenance()
    m.now_ms += int(days * DAY)
    return m


def test_young_snapshots_stay(lab: ix.Lab) -> None:
    plan = lab.maintenance().expire_snapshots()
    assert plan.nothing
    assert plan.text == "no snapshot expires, 4 are kept"
    assert {k.reason for k in plan.snapshots.kept} == {
        "branch 'main' points to it",
        "branch 'dev' points to it",
        "tag 'first' points to it",
        "younger than 5 days, in branch 'main' (default of history.expire.max-snapshot-age-ms)",
    }


def test_each_reason_has_its_source(lab: ix.Lab) -> None:
    lab.set_properties({"history.expire.max-snapshot-age-ms": str(2 * DAY)})
    reasons = lab.maintenance().expire_snapshots(retain_last=2).reasons
    assert reasons == (
        Threshold("history.expire.max-snapshot-age-ms", str(2 * DAY), "table property", "2 days"),
        Threshold("history.expire.min-snapshots-to-keep", "2", "argument retain_last"),
        Threshold("history.expire.max-ref-age-ms", str(2**63 - 1), "default of Iceberg", "without limit"),
        Threshold("gc.enabled", "true", "default of Iceberg"),
        Threshold("min-snapshots-to-keep", "2", "branch dev"),
    )


def test_the_table_after_an_expiry_lacks_what_the_plan_names(lab: ix.Lab) -> None:
    lab.remove_ref("dev")
    plan = maintenance(lab, days=6).expire_snapshots()
    assert len(plan.snapshots) == 2
    after = plan.table
    assert {s.snapshot_id for s in after.snapshots} == {k.snapshot_id for k in plan.snapshots.kept}
    assert after.count() == lab.count()
    assert len(lab.snapshots) == 4  # the table itself is as it was
    assert plan.table is after


def test_files_that_a_lab_then_deletes_are_those_of_the_plan(lab: ix.Lab, tmp_path: Path) -> None:
    lab.remove_ref("dev")
    lab.remove_ref("first")
    folder = tmp_path / "db" / "t"

    def files() -> set[str]:
        return {str(p) for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".metadata.json")}

    before = files()
    plan = lab.maintenance().expire(older_than="0s")
    planned = {lab.state.storage.resolve(place): size for place, size in _files(plan.files)}
    assert {place: Path(place).stat().st_size for place in planned} == planned
    lab.expire_snapshots(older_than=plan.older_than_ms)
    assert before - files() == planned.keys()
    assert plan.counts == {
        "deleted_data_files_count": 3,
        "deleted_position_delete_files_count": 0,
        "deleted_equality_delete_files_count": 0,
        "deleted_manifest_files_count": 3,
        "deleted_manifest_lists_count": 3,
        "deleted_statistics_files_count": 0,
    }
    assert (plan.cost.files_freed, plan.cost.bytes_freed) == (9, sum(planned.values()))


def _files(files: object) -> list[tuple[str, int]]:
    rows = files.to_pylist()  # type: ignore[attr-defined]
    return [(row["location"], row["bytes"]) for row in rows]


def test_a_time_travelled_table_has_the_plans_of_the_newest_snapshot(lab: ix.Lab) -> None:
    old = lab.at("first").maintenance().expire("0s")
    new = lab.maintenance().expire("0s")
    assert set(old.snapshots) == set(new.snapshots)
    assert old.table.snapshot == lab.snapshot


def test_statements_name_the_table_and_the_arguments(lab: ix.Lab) -> None:
    plan = lab.maintenance().expire(older_than="2024-01-31T12:00:00.5", retain_last=3)
    calls = {call.engine: call.code for call in plan.calls}
    assert calls["Spark SQL"] == (
        "CALL catalog_name.system.expire_snapshots(table => 'db.t', "
        "older_than => TIMESTAMP '2024-01-31 12:00:00.500Z', retain_last => 3)"
    )
    assert calls["iceexplore"] == f"lab.expire_snapshots(older_than={plan.older_than_ms}, retain_last=3)"
    assert "PyIceberg" not in calls  # nothing expires
    lab.remove_ref("dev")
    expired = lab.maintenance().expire("0s")
    assert len(expired.snapshots) == 2
    ids = ", ".join(map(str, expired.snapshots))
    assert expired.calls[1].code == f"table.maintenance.expire_snapshots().by_ids([{ids}]).commit()"


def test_engines_refuse_without_garbage_collection(lab: ix.Lab) -> None:
    lab.set_properties({"gc.enabled": "false"})
    m = lab.maintenance()
    with pytest.raises(RuleError, match="expire-gc"):
        m.expire_snapshots()
    assert "gc.enabled is false" in m.refused["expire_snapshots"]
    assert "gc.enabled is false" in repr(m)


def test_a_plan_is_not_guessed_where_a_manifest_list_is_missing(lab: ix.Lab) -> None:
    lab.remove_ref("dev")
    snapshot = lab.snapshot
    assert snapshot is not None
    Path(lab.state.storage.resolve(snapshot.root_location or "")).unlink()
    table = ix.open(lab.location)
    assert table.maintenance().expire_snapshots().nothing  # no list is needed to know it
    with pytest.raises(FileMissingError):
        maintenance(table, days=6).expire_snapshots()


@pytest.mark.parametrize(("given", "match"), [("soon", "older_than='soon'"), (object(), "older_than=")])
def test_times_that_are_none_are_refused(lab: ix.Lab, given: object, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        lab.maintenance().expire_snapshots(older_than=given)
    with pytest.raises(OptionError, match="retain_last"):
        lab.maintenance().expire_snapshots(retain_last=0)


def test_the_card_and_the_json_have_every_plan(lab: ix.Lab) -> None:
    m = maintenance(lab, days=6)
    text, page, frame = repr(m), m._repr_html_(), m.to_pandas()
    for name in m.plans:
        assert name in text
        assert name in page
        assert name in set(frame["procedure"])
    values = json.loads(m.to_json())
    assert "average depth" in text and "average depth" in page
    assert values["clustering"]["columns"][0]["column"] == "id"
    assert values["version"] == 1
    assert values["plans"].keys() == m.plans.keys()
    for name, plan in m.plans.items():
        assert values["plans"][name] == json.loads(plan.to_json())
        assert plan.title in repr(plan)
        assert plan.title in plan._repr_html_()
        assert len(plan.to_pandas()) >= 0


# Orphan files ---------------------------------------------------------------------------------------------------------


def put(lab: ix.Lab, name: str, *, days: float = 10) -> str:
    """Write a file under the table's folder that is some days old; return its location."""
    path = Path(lab.state.storage.folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 7)
    old = time.time() - days * 86_400
    os.utime(path, (old, old))
    return f"{lab.location}/{name}"


def places(files: pa.Table) -> set[str]:
    return {str(place) for place in files["location"].to_pylist()}


def age(lab: ix.Lab, days: float = 10) -> None:
    """Make all files of a table some days old."""
    old = time.time() - days * 86_400
    for path in Path(lab.state.storage.folder).rglob("*"):
        os.utime(path, (old, old))


def test_a_healthy_table_has_no_orphans(lab: ix.Lab) -> None:
    age(lab)
    plan = lab.maintenance().orphan_files()
    assert plan.nothing
    assert plan.text == "0 orphan files"
    assert not len(plan.young) and not len(plan.missing)
    assert plan.notes == ()


def test_orphans_are_old_enough_and_not_hidden(lab: ix.Lab) -> None:
    orphans = {
        put(lab, n)
        for n in ("data/a.parquet", "metadata/b.avro", "data/x/y/c.puffin", "d", "metadata/v0.metadata.json")
    }
    young = put(lab, "data/young.parquet", days=2)
    for hidden in ("data/.a.parquet", "_tmp/a.parquet", "data/.x/a.parquet", "_a", "data/a/_b=1/c.parquet"):
        put(lab, hidden)
    plan = lab.maintenance().orphan_files()
    assert places(plan.files) == orphans
    assert places(plan.young) == {young}
    assert plan.hidden >= 5
    assert {r["location"].rpartition("/")[2]: r["kind"] for r in plan.files.to_pylist()} == {
        "a.parquet": "data",
        "b.avro": "manifest",
        "c.puffin": "puffin",
        "d": "other",
        "v0.metadata.json": "metadata",
    }
    assert (plan.cost.files_freed, plan.cost.bytes_freed) == (5, 35)
    assert plan.text == "5 orphan files (35 B), 1 too young"
    assert places(lab.maintenance().orphan_files("1d").files) == {*orphans, young}
    assert plan.table.count() == lab.count()


def test_a_time_in_the_future_admits_all_orphans(lab: ix.Lab) -> None:
    put(lab, "data/a.parquet", days=0)
    m = lab.maintenance()
    spark, own = m.orphan_files(older_than=m.now_ms + DAY).calls
    assert spark.note == "refuses an older_than that is less than 24 hours ago; this one is in the future"
    assert own.code == "lab.remove_orphan_files(0)"
    assert len(lab.remove_orphan_files(0)) == 1
    spark, own = m.orphan_files("2h").calls
    assert spark.note == "refuses an older_than that is less than 24 hours ago; this one is 2 hours ago"
    assert own.code == "lab.remove_orphan_files(7200000)"


def test_folders_of_partition_fields_are_not_hidden(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"_k": "long"}, partition_by="_k", format_version=2)
    lab.append({"_k": [1]})
    seen = {put(lab, "data/_k=1/a.parquet"), put(lab, "data/_k=2/b.parquet")}
    put(lab, "data/_key=1/a.parquet")
    put(lab, "data/_k=1/_a.parquet")
    assert places(lab.maintenance().orphan_files().files) == seen


def test_what_snapshots_statistics_and_the_log_need_is_no_orphan(lab: ix.Lab) -> None:
    statistics, partitions = put(lab, "metadata/s.stats"), put(lab, "metadata/p.parquet")
    other = put(lab, "metadata/other.stats")
    path = Path(lab.state.storage.resolve(lab.metadata_location))
    document = json.loads(path.read_text())
    first = document["snapshots"][0]["snapshot-id"]
    file = {"snapshot-id": first, "file-size-in-bytes": 7}
    more = {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    document["statistics"] = [{**file, **more, "statistics-path": statistics}]
    document["partition-statistics"] = [{**file, "statistics-path": partitions}]
    log = [put(lab, "metadata/v0.metadata.json")]
    document["metadata-log"].insert(0, {"timestamp-ms": 1, "metadata-file": log[0]})
    path.write_text(json.dumps(document))
    age(lab)
    plan = ix.open(lab.location).maintenance().orphan_files()
    assert places(plan.files) == {other}
    assert not len(plan.missing)


def test_referenced_files_that_are_missing(lab: ix.Lab) -> None:
    data = lab.inspect.files().sort_values("file_path")["file_path"][0]
    path = Path(lab.state.storage.resolve(data))
    size = path.stat().st_size
    path.unlink()
    plan = lab.maintenance().orphan_files()
    assert plan.missing.to_pylist() == [{"location": data, "kind": "data file", "bytes": size}]
    assert plan.nothing
    assert plan.text == "0 orphan files; 1 referenced file is missing"
    assert "1 referenced file is missing" in repr(lab.maintenance())


def test_references_that_differ_in_scheme_only(lab: ix.Lab) -> None:
    """As Iceberg: an error, unless the schemes are equal; ignored; or orphans."""
    age(lab)
    orphan = put(lab, "data/a.parquet")
    path = Path(lab.state.storage.resolve(lab.metadata_location))
    lists = {s.root_location for s in lab.snapshots}
    text = path.read_text()
    for place in lists:
        assert place is not None
        text = text.replace(place, "viewfs://cluster" + place.removeprefix("file://"))
    path.write_text(text)
    moved = {f"viewfs://cluster{Path(lab.state.storage.folder)}": lab.state.storage.folder}
    m = ix.open(lab.location, moved=moved).maintenance()
    plan = m.orphan_files()
    assert plan.conflicts == (("viewfs://cluster", "file://"),)
    assert places(plan.files) == {orphan}
    assert any("refuses to delete" in note for note in plan.notes)
    for same in (
        m.orphan_files(prefix_mismatch_mode="ignore"),
        m.orphan_files(equal_schemes={"viewfs, hdfs": "file"}, equal_authorities={"cluster": ""}),
    ):
        assert (places(same.files), same.conflicts, same.notes) == ({orphan}, (), ())
    assert places(m.orphan_files(prefix_mismatch_mode="delete").files) == {orphan, *map(str, lists)}
    with pytest.raises(OptionError, match="prefix_mismatch_mode='all'"):
        m.orphan_files(prefix_mismatch_mode="all")  # type: ignore[arg-type]


def test_files_of_newer_commits_are_no_orphans(lab: ix.Lab) -> None:
    old = lab.table
    time.sleep(0.01)
    lab.append({"id": [9]})
    plan = old.maintenance().orphan_files(older_than="0s")
    assert plan.nothing
    assert len(plan.young) >= 3  # data file, manifest, manifest list
    assert "newer metadata file" in plan.notes[0]
    assert lab.maintenance().orphan_files(older_than="0s").notes == ()


def test_another_folder_can_be_listed(lab: ix.Lab) -> None:
    inside = put(lab, "data/a.parquet")
    put(lab, "metadata/b.avro")
    folder = Path(lab.state.storage.folder)
    plan = lab.maintenance().orphan_files(location=str(folder / "data"))
    assert {lab.state.storage.resolve(place) for place in places(plan.files)} == {lab.state.storage.resolve(inside)}
    assert not len(plan.missing)
    assert f"location => '{folder}/data'" in plan.calls[0].code
    with pytest.raises(FileMissingError):
        lab.maintenance().orphan_files(location=str(folder / "none"))
    with pytest.raises(OutsideRootsError):
        lab.maintenance().orphan_files(location="/etc")


def test_tables_below_the_table_are_noticed(lab: ix.Lab, tmp_path: Path) -> None:
    inner = ix.create(tmp_path / "db" / "t" / "inner", {"id": "long"})
    inner.append({"id": [1]})
    age(lab)
    assert any("another table" in note for note in lab.maintenance().orphan_files().notes)


def test_a_simulation_has_plans_too(lab: ix.Lab) -> None:
    s = lab.simulate(seed=1)
    s.append(files=1, rows=10)
    age(lab)
    orphan = put(lab, "data/a.parquet")
    plan = s.maintenance().orphan_files()
    assert places(plan.files) == {orphan}
    assert not len(plan.missing)
    s.rollback(lab.snapshot)
    s.expire_snapshots(older_than=time.time_ns() // 1_000_000 + DAY)
    later = maintenance(s, days=9).orphan_files()
    assert {place.rpartition(".")[2] for place in places(later.files) - {orphan}} == {"avro"}


def test_a_store_that_cannot_be_listed(lab: ix.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UnsupportedError("this store cannot list files")

    table = ix.open(lab.location)
    data = lab.inspect.files().sort_values("file_path")["file_path"][0]
    Path(lab.state.storage.resolve(data)).unlink()
    monkeypatch.setattr(table.state.storage, "entries", refuse)
    plan = table.maintenance().orphan_files()
    assert plan.nothing
    assert plan.missing["location"].to_pylist() == [data]
    assert any("cannot be listed" in note for note in plan.notes)


# Unused parts of the metadata file, and old metadata files ------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_unused_schemas_and_specs(tmp_path: Path, version: int) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=version)
    lab.append({"id": [1]})  # schema 0, spec 0
    lab.evolve_spec(add=["bucket(2, id)"])  # spec 1, unused
    lab.evolve_schema(add={"a": "int"})  # schema 1, unused
    lab.evolve_spec(add=["bucket(4, id)"], remove=["id_bucket_2"])  # spec 2
    lab.evolve_schema(add={"b": "int"})  # schema 2
    lab.append({"id": [2], "a": [1], "b": [1]})
    lab.evolve_spec(add=["truncate(10, id)"])  # spec 3, unused but the default
    lab.evolve_schema(add={"c": "int"})  # schema 3, unused but current
    m = lab.maintenance()
    plan = m.unused_schemas_and_specs()
    assert (plan.schemas, plan.specs) == ((1,), (1,))
    assert plan.text == "1 schema and 1 partition spec unused"
    after = plan.table
    assert {s.schema_id for s in after.metadata.schemas} == {0, 2, 3}
    assert {s.spec_id for s in after.metadata.partition_specs} == {0, 2, 3}
    assert after.maintenance().unused_schemas_and_specs().nothing
    assert after.to_arrow().sort_by("id").equals(lab.to_arrow().sort_by("id"))
    assert m.expire_snapshots("0s").schemas == ()
    more = m.expire_snapshots("0s", clean_expired_metadata=True)
    assert (more.schemas, more.specs) == ((0, 1), (1,))  # the first file is live, in spec 0
    assert {s.schema_id for s in more.table.metadata.schemas} == {2, 3}
    assert "clean_expired_metadata => true" in more.calls[0].code


def test_older_lists_are_read_only_while_a_spec_may_be_unused(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=2)
    lab.append({"id": [1]})
    oldest = str(lab.snapshots[0].root_location).removeprefix("file:")
    lab.evolve_spec(add=["bucket(2, id)"])
    lab.append({"id": [2]})  # its list has manifests of both specs
    Path(oldest).unlink()
    assert ix.open(lab.location).maintenance().unused_schemas_and_specs().nothing
    lab.evolve_spec(add=["truncate(10, id)"])
    lab.evolve_spec(add=["bucket(4, id)"])
    with pytest.raises(ix.FileMissingError):
        ix.open(lab.location).maintenance().unused_schemas_and_specs()


def test_a_spec_that_only_unused_schemas_explain_is_noted(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long", "k": "long"}, partition_by="k", format_version=2)
    lab.append({"id": [1], "k": [1]})
    lab.evolve_spec(remove=["k"])
    lab.evolve_schema(drop=["k"])
    lab.append({"id": [2]})
    assert lab.maintenance().unused_schemas_and_specs().nothing
    plan = lab.maintenance().expire_snapshots("0s", clean_expired_metadata=True)
    assert plan.schemas == (0,)
    assert plan.notes == (
        "Partition spec 0 is used, but the source column of its field k is only in unused schemas: if these are "
        "removed, engines may fail to read old manifests.",
    )


def test_metadata_files_beyond_the_log(lab: ix.Lab) -> None:
    plan = lab.maintenance().metadata_files()
    assert plan.nothing
    assert plan.text == "the metadata log lists 6 files"
    lab.set_properties({"write.metadata.previous-versions-max": "3"})
    plan = lab.maintenance().metadata_files()
    assert not plan.nothing
    assert places(plan.files) == {f"{lab.location}/metadata/v{n}.metadata.json" for n in range(1, 5)}
    assert places(plan.next_commit) == {f"{lab.location}/metadata/v5.metadata.json"}
    assert plan.text.startswith("the metadata log lists 3 files; 4 older metadata files (")
    assert plan.text.endswith("; the next commit drops 1 from the log, but deletes no file")
    assert plan.cost.bytes_freed == sum(
        Path(lab.state.storage.resolve(p)).stat().st_size for p in plan.to_pandas()["location"]
    )
    assert plan.table.properties["write.metadata.delete-after-commit.enabled"] == "true"
    assert [c.code.split("(")[0] for c in plan.calls] == [
        "ALTER TABLE catalog_name.db.t SET TBLPROPERTIES ",
        "CALL catalog_name.system.remove_orphan_files",
    ]
    for n in range(1, 5):
        Path(lab.state.storage.resolve(f"{lab.location}/metadata/v{n}.metadata.json")).unlink()
    lab.set_properties({"write.metadata.delete-after-commit.enabled": "true"})
    plan = lab.maintenance().metadata_files()
    assert "the next commit deletes 1" in plan.text


def test_a_live_file_that_is_spelled_differently_is_warned_of(tmp_path: Path) -> None:
    """The procedure would delete it: it compares locations as they are spelled."""
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=2)
    lab.append({"id": [1]})
    lab.append({"id": [2]})
    old, new = sorted(lab.snapshots, key=lambda s: s.timestamp_ms)
    path = Path(lab.state.storage.resolve(lab.metadata_location))
    assert old.root_location is not None and new.root_location is not None
    # Both snapshots have the older one's manifest list, under two spellings.
    text = path.read_text().replace(new.root_location, old.root_location.replace("file:///", "file:/"))
    path.write_text(text)
    plan = ix.open(tmp_path / "t").maintenance().expire_snapshots("0s")
    assert places(plan.files) == {old.root_location}
    needed = f"Do not run the procedure: it would delete {old.root_location}. Kept snapshots still use this file, "
    assert plan.notes[0].startswith(needed)


def test_contradictions_that_hide_no_file_are_noted(lab: ix.Lab) -> None:
    """Engines do not look at the totals of a summary."""
    lab.remove_ref("dev")
    path = Path(lab.state.storage.resolve(lab.metadata_location))
    text = path.read_text()
    path.write_text(text.replace('"total-data-files":"', '"total-data-files":"7'))
    assert path.read_text() != text
    m = ix.open(lab.location).maintenance()
    for plan in (m.expire_snapshots("0s"), m.orphan_files()):
        assert "The metadata contradicts itself" in plan.notes[0]
    assert m.expire_snapshots("0s").counts == lab.maintenance().expire_snapshots("0s").counts


def test_a_newer_file_that_the_catalog_does_not_point_to_is_an_orphan(tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("mine", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    try:
        catalog.create_namespace("db")
        lab = ix.create("db.t", {"id": "long"}, catalog=catalog)
        lab.append({"id": [1]})
        table = ix.open("db.t", catalog=catalog)
        failed = put(lab, "metadata/00009-0.metadata.json")
        plan = table.maintenance().orphan_files()
        assert places(plan.files) == {failed}
        assert plan.notes == ()
        assert plan.calls[0].code.startswith("CALL mine.system.remove_orphan_files(table => 'db.t', ")
        lab.append({"id": [2]})
        old = table.maintenance().orphan_files("0s")  # the catalog has moved on
        assert "newer metadata file" in old.notes[0]
        assert {place.rpartition("/")[2] for place in places(old.files)} == {"00009-0.metadata.json"}
    finally:
        catalog.close()


def test_names_are_quoted_for_spark(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "my db" / "it's `t`", {"id": "long"})
    lab.append({"id": [1]})
    code = lab.maintenance().expire_snapshots().calls[0].code
    assert code == r"CALL catalog_name.system.expire_snapshots(table => '`my db`.`it\'s ``t```')"


def test_a_table_at_the_root_of_a_bucket_has_no_conflict() -> None:
    s = ix.empty({"id": "long"}, location="memory://bucket", format_version=2)
    s.append(files=1, rows=1)
    plan = s.maintenance().orphan_files("0s")
    assert plan.conflicts == ()
    assert plan.text == "0 orphan files"


def test_a_table_in_an_object_store(lab: ix.Lab) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    try:
        store.put(lab.state.storage.folder, "/bucket/t", recursive=True)
        store.pipe("/bucket/t/data/lost.parquet", b"lost")
        store.pipe("/bucket/t/_tmp/hidden.parquet", b"hidden")
        data = next(place for place in store.find("/bucket/t/data") if not place.endswith("lost.parquet"))
        size = store.size(data)
        store.rm(data)
        plan = maintenance(ix.open("memory://bucket/t"), days=4).orphan_files()
        assert [place.rpartition("/")[2] for place in places(plan.files)] == ["lost.parquet"]
        assert [(r["kind"], r["bytes"]) for r in plan.missing.to_pylist()] == [("data file", size)]
        assert maintenance(ix.open("memory://bucket/t"), days=2).orphan_files().nothing
        expired = maintenance(ix.open("memory://bucket/t"), days=6).expire_snapshots(retain_last=1)
        assert expired.counts == maintenance(lab, days=6).expire_snapshots(retain_last=1).counts
    finally:
        store.rm("/bucket", recursive=True)


def test_folders_elsewhere_are_named(lab: ix.Lab) -> None:
    inside, outside = f"{lab.location}/files", "s3://bucket/files"
    lab.set_properties({"write.data.path": outside, "write.metadata.path": inside})
    note = f"write.data.path is {outside}, which was not listed: pass it as location= to find orphan files there."
    assert lab.maintenance().orphan_files().notes == (note,)
