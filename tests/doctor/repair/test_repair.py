"""Repair plans: each repairable damage is mended, checks clean, reads anywhere, and has the promised rows."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.doctor import Report
from iceexplore.doctor.repair import _entry_repairs
from iceexplore.errors import OptionError
from tests.doctor import file_damages, manifest_damages  # noqa: F401 (they register their damages)
from tests.doctor.damages import (
    DAMAGES,
    Damage,
    Record,
    document_path,
    edit_avro,
    edit_json,
    edit_manifest,
    healthy,
    local,
    manifest_paths,
    records,
    root_path,
)
from tests.doctor.repair.repairs import HOPELESS, ROWS
from tests.doctor.v4_damages import healthy_v4
from tests.helpers.sampling import one_of


def _checked(folder: Path, one: Damage) -> Report:
    table = ix.open(folder if folder.name == "moved" else folder / one.opens)
    return table.check(level=one.level, snapshots=one.snapshots)  # type: ignore[arg-type]


def test_lost_refs_are_dropped_by_their_kind(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    lost = {"b0": {"snapshot-id": 5, "type": "branch"}}
    lost |= {f"t{i}": {"snapshot-id": 5, "type": "tag"} for i in range(22)}
    edit_json(document_path(folder), lambda d: d["refs"].update(lost))
    (step,) = ix.open(folder).check(level="metadata").repair().steps
    assert step.sql[:2] == (
        "ALTER TABLE <table> DROP BRANCH IF EXISTS `b0`",
        "ALTER TABLE <table> DROP TAG IF EXISTS `t0`",
    )
    assert len(step.sql) == 21 and step.sql[-1] == "-- and 3 more"


def test_snapshots_that_the_statement_leaves_out_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = healthy(tmp_path)
    ids = [s.snapshot_id for s in ix.open(folder).snapshots][:2]
    for back in (3, 2):
        root_path(folder, back).unlink()
    report = ix.open(folder).check(level="metadata", snapshots="all")
    (step,) = (s for s in report.repair().steps if "snapshots" in s.title)
    assert step.sql[-1].endswith(f"ARRAY({', '.join(map(str, sorted(ids)))}))")
    monkeypatch.setattr(_entry_repairs, "_MOST_IDS", 1)
    (step,) = (s for s in report.repair().steps if "snapshots" in s.title)
    assert step.sql[-2].endswith(f"ARRAY({min(ids)}))") and step.sql[-1] == "-- and 1 more snapshot"


def _bytes(folder: Path) -> dict[Path, bytes]:
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "one", one_of(4, [d for d in DAMAGES if d.name not in HOPELESS]), ids=lambda d: f"{d.mode}-{d.name}"
)
def test_a_damage_is_mended(one: Damage, tmp_path: Path) -> None:
    folder = healthy(tmp_path, one.version)
    one.damage(folder)
    folder = folder if folder.exists() else tmp_path / "moved"
    before = _bytes(folder)
    report = _checked(folder, one)
    plan = report.repair()
    rows = ROWS.get(one.name, 17)
    assert plan.steps or report.ok
    assert plan.table.check(level=one.level).ok
    assert plan.table.count() == plan.rows_after == rows
    plan.save(tmp_path / "fixed")
    folder.rename(tmp_path / "away")  # the copy does not need the damaged table
    (tmp_path / "fixed").rename(tmp_path / "elsewhere")
    mended = ix.open(tmp_path / "elsewhere")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing contradicts itself any more
        assert mended.count() == mended.to_arrow().num_rows == rows
        assert mended.head(3).shape[0] == min(rows, 3)
    assert [f for f in _checked(tmp_path / "elsewhere", replace(one, opens="")) if f.severity != "untidy"] == []
    assert _bytes(tmp_path / "away") == before, "the damaged table was written to"


@pytest.mark.parametrize(
    "one", one_of(2, [d for d in DAMAGES if d.name in HOPELESS]), ids=lambda d: f"{d.mode}-{d.name}"
)
def test_what_cannot_be_mended_is_named_with_the_reason(one: Damage, tmp_path: Path) -> None:
    folder = healthy(tmp_path, one.version)
    one.damage(folder)
    plan = _checked(folder, one).repair()
    left = [u for u in plan.unrepaired if u.finding.code == one.code]
    assert left
    assert left[0].reason.endswith(".")


def test_every_damage_that_is_left_is_a_damage() -> None:
    assert {d.name for d in DAMAGES} >= HOPELESS | ROWS.keys()


def test_two_faults_are_mended_together(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    by_name = {d.name: d for d in DAMAGES}
    by_name["data_file_gone"].damage(folder)
    by_name["summary_totals_wrong"].damage(folder)
    plan = ix.open(folder).check().repair()
    assert [s.title for s in plan] == ["Recompute manifest lists", "Remove entries of missing files"]
    assert plan.table.check().ok
    assert plan.rows_after == 16
    assert list(plan.to_pandas()["rows_lost"]) == [0, 1]


def _with_metadata_elsewhere(folder: Path, place: Path) -> Path:
    """Move a table's metadata to the folder that ``write.metadata.path`` names, as catalogs place it."""
    old, new = f"file://{folder}/metadata", f"file://{place}"

    def moved(rows: list[Record], header: dict[str, str]) -> None:
        for row in rows:
            row["manifest_path"] = row["manifest_path"].replace(old, new)

    for path in (folder / "metadata").glob("snap-*.avro"):
        edit_avro(path, moved)
    for path in (folder / "metadata").glob("*-snap-*.avro"):
        edit_avro(path, moved)
    (folder / "metadata").rename(place)
    for path in place.glob("*.json"):
        text = path.read_text().replace(old, new)
        path.write_text(text.replace('"properties":{', f'"properties":{{"write.metadata.path":"{new}",'))
    return place / document_path(place).name


@pytest.mark.parametrize("data", ["copy", "refer"])
@pytest.mark.parametrize("is_inside", [False, True])
def test_metadata_in_another_folder_is_written_beside_it(
    tmp_path: Path, data: Literal["copy", "refer"], is_inside: bool
) -> None:
    folder = healthy(tmp_path)
    meta = (folder if is_inside else tmp_path) / "meta"
    document = _with_metadata_elsewhere(folder, meta)
    outside = [f"{folder}/", f"{meta}/"]
    sound = ix.open(document, allow=outside)
    assert sound.count() == 17
    assert sound.properties["write.metadata.path"] == f"file://{meta}"
    data_file = local(sound.inspect.files.arrow()["file_path"][0].as_py())
    data_file.unlink()
    plan = ix.open(document, allow=outside).check().repair()
    mended = plan.table
    places = [mended.metadata_location, *mended.inspect.manifests.arrow()["path"].to_pylist()]
    places += [s.root_location for s in mended.snapshots]
    assert {local(str(place)).parent for place in places} == {meta}
    appended = ix.open(document, allow=outside).simulate()
    appended.append(files=1, rows=1)
    assert {local(str(s.root_location)).parent for s in appended.snapshots} == {meta}
    assert plan.rows_after == 16
    saved = plan.save(tmp_path / "fixed", data=data)
    assert saved.metadata_location == f"{tmp_path}/fixed/metadata/{mended.metadata_location.rpartition('/')[2]}"
    meta.rename(tmp_path / "away")
    copy = ix.open(tmp_path / "fixed", allow=() if data == "copy" else outside)
    assert copy.count() == copy.to_arrow().num_rows == 16
    # later writers put their metadata into the copy, too
    assert "write.metadata.path" not in copy.properties
    names = [str(s.root_location).rpartition("/")[2] for s in mended.snapshots]
    assert [s.root_location for s in copy.snapshots] == [f"{tmp_path}/fixed/metadata/{name}" for name in names]


@pytest.mark.parametrize("make", [healthy, healthy_v4])
def test_of_two_snapshots_with_one_id_the_readable_one_is_kept(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    folder = make(tmp_path)
    before = ix.open(folder)
    count, roots = before.count(), [s.root_location for s in before.snapshots]

    def double(document: Record) -> None:
        newest = document["snapshots"][-1]
        key = "root-manifest" if "root-manifest" in newest else "manifest-list"
        document["snapshots"].insert(0, {**newest, key: f"{newest[key]}.lost"})

    edit_json(document_path(folder), double)
    mended = ix.open(folder).check().repair().table
    assert sorted(map(str, roots)) == sorted(str(s.root_location) for s in mended.snapshots)
    assert mended.count() == count


def test_a_data_file_without_a_required_column_stays_a_data_file(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    files = []

    def relabel(entry: Record) -> None:
        entry["data_file"]["content"] = 1
        files.append(entry["data_file"]["file_path"])

    edit_manifest(folder, records(relabel))

    def require(document: Record) -> None:
        document["schemas"][-1]["fields"].append({"id": 9, "name": "x", "required": True, "type": "long"})
        document["last-column-id"] = 9

    edit_json(document_path(folder), require)
    plan = ix.open(folder).check().repair()
    mended = plan.table.inspect.data_files.arrow()["file_path"].to_pylist()
    assert len(files) == 1
    assert set(files) < set(mended)
    # a file that cannot be read keeps its content type
    local(files[0]).write_bytes(b"PAR1")
    plan = ix.open(folder).check().repair()
    assert files[0] not in plan.table.inspect.data_files.arrow()["file_path"].to_pylist()


def test_a_plan_shows_its_steps(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    next(d for d in DAMAGES if d.name == "data_file_gone").damage(folder)
    plan = ix.open(folder).check().repair()
    text = repr(plan)
    assert text.startswith("Repair of t: 1 step. Rows of the current snapshot: 17 before, 16 after.")
    assert "1. Remove entries of missing files  [file-missing]" in text
    assert "rows that are no longer listed: 1" in text
    assert "Java: table.newDelete().deleteFile(path).commit()" in text
    assert "<b>Remove entries of missing files</b>" in plan._repr_html_()


def test_a_healthy_table_needs_no_step(tmp_path: Path) -> None:
    plan = ix.open(healthy(tmp_path)).check().repair()
    assert (len(plan), plan.unrepaired, bool(plan)) == (0, (), True)
    assert "nothing can be mended" not in repr(plan)


def test_a_report_from_json_has_no_table_to_repair(tmp_path: Path) -> None:
    report = ix.open(healthy(tmp_path)).check()
    with pytest.raises(OptionError, match="call check"):
        Report.from_dict(report.to_dict()).repair()


def test_vectors_without_a_data_file_are_not_looked_for(tmp_path: Path) -> None:
    folder = healthy(tmp_path, 3)
    by_name = {d.name: d for d in DAMAGES}
    by_name["vector_without_an_offset"].damage(folder)
    by_name["vector_names_no_file"].damage(folder)
    plan = ix.open(folder).check().repair()
    assert {u.finding.code for u in plan.unrepaired} == {"entry-invalid", "delete-scope"}


def test_new_row_ids_fit_in_64_bits(tmp_path: Path) -> None:
    folder = healthy(tmp_path, 3)
    edit_json(document_path(folder), lambda d: d.update({"next-row-id": 2**63 - 1}))
    edit_manifest(folder, records(lambda r: r["data_file"].update({"first_row_id": 2**63 - 1})))
    report = ix.open(folder).check()
    assert [f.code for f in report if f.severity == "wrong"] == ["row-ids-beyond"]
    next(d for d in DAMAGES if d.name == "row_ids_negative").damage(folder)
    plan = ix.open(folder).check().repair()
    assert plan.is_complete and plan.table.check("rows").ok
    assert plan.table.metadata.next_row_id == 19


def test_frames_have_exact_numbers_beside_unknown_ones(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    for name in ("data_file_gone", "summary_totals_wrong"):
        next(d for d in DAMAGES if d.name == name).damage(folder)
    report = ix.open(folder).check(skip="health")
    since = [None if f.since is None else f.since.snapshot_id for f in report]
    assert None in since and any(since)
    found = report.to_pandas()
    assert found[found["caused_by"].isna()]["since_snapshot_id"].astype(object).replace({pd.NA: None}).tolist() == since
    plan = report.repair()
    steps = [replace(plan.steps[0], rows_lost=n) for n in (2**62 + 1, None, 2**70)]
    assert replace(plan, steps=tuple(steps)).to_pandas()["rows_lost"].tolist() == [2**62 + 1, pd.NA, pd.NA]


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_that_spell_another_scheme_apply_in_the_copy(version: int, tmp_path: Path) -> None:
    folder = healthy(tmp_path, version)
    if version == 2:
        next(d for d in DAMAGES if d.name == "deletes_spell_another_scheme").damage(folder)
    else:

        def change(record: Record) -> None:
            named = record["data_file"]["referenced_data_file"]
            assert named.startswith("file://")
            record["data_file"]["referenced_data_file"] = named.removeprefix("file://")

        edit_manifest(folder, records(change), 1)
    table = ix.open(folder)
    assert table.count() == 17
    table.simulate().save(tmp_path / "fixed")
    shutil.rmtree(folder)
    copy = ix.open(tmp_path / "fixed")
    assert copy.count() == 17
    (named,) = copy.inspect.delete_files()["referenced_data_file"]
    assert named in set(copy.inspect.data_files()["file_path"])


def test_an_old_metadata_file_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    old = folder / "metadata" / "v2.metadata.json"
    old.write_bytes(old.read_bytes()[:300])
    plan = ix.open(folder).check().repair()
    assert [step.title for step in plan] == ["Leave out unreadable metadata files"]
    assert plan.unrepaired == ()
    plan.save(tmp_path / "fixed")
    mended = ix.open(tmp_path / "fixed")
    assert list(map(str, mended.check(skip="health"))) == []
    assert mended.count() == 17


def test_a_table_goes_back_to_its_last_good_metadata(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    newest = folder / "metadata" / "v6.metadata.json"
    newest.write_bytes(newest.read_bytes()[:700])
    plan = ix.check(folder).repair()
    (step,) = plan
    assert step.title == "Restore the last good metadata" and step.codes == ("file-truncated",)
    good = ix.open(folder / "metadata" / "v5.metadata.json")
    assert good.metadata_location in step.sql[0] and repr(good.metadata_location) in step.python[0]
    assert plan.is_complete and plan.rows_after == good.count() == 15
    plan.save(tmp_path / "fixed")
    mended = ix.open(tmp_path / "fixed")
    assert mended.to_arrow(columns=["id"]).sort_by("id") == good.to_arrow(columns=["id"]).sort_by("id")
    assert mended.check("rows").ok and newest.stat().st_size == 700


def test_faults_that_older_snapshots_keep_are_unrepaired(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    older, path = ix.open(folder).snapshot, manifest_paths(folder)[0]
    ix.lab(folder).rewrite_manifests()  # from here on, only older snapshots have this manifest
    with_key = records(lambda r: r["data_file"].update({"key_metadata": b"key"}))
    edit_avro(path, with_key, list_path=root_path(folder, 1))
    edit_avro(root_path(folder, 1), records(lambda r: r.update({"added_files_count": 0}), lambda r: r["content"] == 0))
    report = ix.open(folder).check(snapshots=[older])
    assert {f.code for f in report} == {"count-mismatch", "key-metadata-plain"}
    plan = report.repair()
    assert [code for step in plan for code in step.codes] == ["count-mismatch"]
    assert {one.finding.code for one in plan.unrepaired} == {"key-metadata-plain"}
    assert {f.code for f in plan.table.check(snapshots=[older])} == {"key-metadata-plain"}
