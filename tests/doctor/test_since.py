"""Findings are dated to the commit that introduced them, although only the current snapshot is examined."""

from __future__ import annotations

from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.doctor import Finding, Since, finding_lines
from iceexplore.metadata import Snapshot
from tests.doctor.damages import Record, edit_avro, edit_json, healthy, local, records, root_path

_LOGGED = ("/v4.metadata.json", "/v5.metadata.json")


def _snapshots(folder: Path) -> list[Snapshot]:
    return sorted(ix.open(folder).metadata.snapshots, key=lambda s: s.sequence_number or 0)


def _found(folder: Path, code: str) -> Finding:
    return next(f for f in ix.open(folder).check() if f.code == code)


def _manifest_of(folder: Path, snapshot: Snapshot) -> Path:
    rows = ix.open(folder).inspect.manifests.arrow().to_pylist()
    return next(local(r["path"]) for r in rows if r["added_snapshot_id"] == snapshot.snapshot_id)


def test_a_fault_of_a_manifest_dates_to_the_snapshot_that_added_it(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    second = _snapshots(folder)[1]
    path = _manifest_of(folder, second)
    change = records(lambda r: r["data_file"].update(split_offsets=[4, 10**9]))
    edit_avro(path, change, list_path=root_path(folder))
    since = _found(folder, "split-offsets-invalid").since
    assert since == Since(second.snapshot_id, second.timestamp_ms, "append", since.engine if since else None)
    report = ix.open(folder).check()
    begun = report.timeline().set_index("snapshot_id")["begins"]
    assert "split-offsets-invalid" in begun[second.snapshot_id]
    assert f"Since    snapshot {second.snapshot_id}" in repr(report)


def test_a_row_of_a_list_dates_to_the_first_list_that_has_it(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    line = _snapshots(folder)
    name = str(_manifest_of(folder, line[0]))

    def wrong(row: Record) -> None:
        row["added_files_count"] = 0

    for back in (0, 1):  # the two newest lists of four: the row became wrong in the third
        edit_avro(root_path(folder, back), records(wrong, lambda r: str(local(r["manifest_path"])) == name))
    since = _found(folder, "count-mismatch").since
    assert since is not None and since.snapshot_id == line[2].snapshot_id
    assert since.operation == "delete"


def test_a_fault_of_the_metadata_file_dates_to_the_first_file_that_has_it(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    for number in (5, 6):
        change = lambda d: d["refs"].update(lost={"snapshot-id": 1, "type": "tag"})  # noqa: E731
        edit_json(folder / "metadata" / f"v{number}.metadata.json", change)
    since = _found(folder, "metadata-invalid").since
    assert since is not None and str(since.metadata_file).endswith("/v5.metadata.json")
    assert "Since    v5.metadata.json" in repr(ix.open(folder).check())


def test_the_time_at_which_a_file_was_deleted_is_unknown(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    local(ix.open(folder).inspect.files()["file_path"][0]).unlink()
    assert _found(folder, "file-missing").since is None


def test_a_missing_manifest_dates_to_the_first_snapshot_that_lists_it(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    line = _snapshots(folder)
    _manifest_of(folder, line[1]).unlink()
    one = _found(folder, "file-missing")
    assert one.since is not None and one.since.snapshot_id == line[1].snapshot_id
    listing = [s.snapshot_id for s in line[1:]]
    report = ix.open(folder).check(snapshots="all")
    one = next(f for f in report if f.code == "file-missing")
    assert list(one.snapshots) == listing, "oldest first"
    lines = dict(finding_lines(one))
    assert lines["Since"].startswith(f"snapshot {listing[0]} of ")
    assert lines["Since"].endswith("append, the first that lists it")
    assert lines["Affects"].startswith(f"{len(listing)} snapshots, {listing[0]} to {listing[-1]} (main, audited)")


def test_a_fault_of_older_snapshots_affects_no_branch(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    root_path(folder, 3).unlink()
    one = next(f for f in ix.open(folder).check(snapshots="all") if f.code == "file-missing")
    assert dict(finding_lines(one))["Affects"] == f"snapshot {_snapshots(folder)[0].snapshot_id} (no branch or tag)"


def test_a_fault_older_than_all_snapshots(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    first = _snapshots(folder)[0]
    path = _manifest_of(folder, first)
    edit_avro(path, records(lambda r: r["data_file"].update(split_offsets=[4, 10**9])), list_path=root_path(folder))
    lab = ix.lab(folder, on_error="skip")
    lab.expire_snapshots([first.snapshot_id], files=False)
    assert _found(folder, "split-offsets-invalid").since == Since()
    assert "a snapshot that has expired" in repr(ix.open(folder).check())


def test_a_manifest_of_an_unknown_snapshot_dates_to_the_first_list_that_has_it(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    second = _snapshots(folder)[1]
    path = _manifest_of(folder, second)
    edit_avro(path, records(lambda r: r["data_file"].update(split_offsets=[4, 10**9])), list_path=root_path(folder))
    wrong = records(lambda r: r.update(added_snapshot_id=7), lambda r: local(r["manifest_path"]) == path)
    edit_avro(root_path(folder), wrong)
    since = _found(folder, "split-offsets-invalid").since
    assert since is not None and since.snapshot_id == second.snapshot_id, "its history is complete"


def test_what_a_lost_list_hides_is_named(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    line = _snapshots(folder)
    name = _manifest_of(folder, line[0])
    edit_avro(
        root_path(folder),
        records(lambda r: r.update(added_files_count=0), lambda r: local(r["manifest_path"]) == name),
    )
    root_path(folder, 1).unlink()
    root_path(folder, 2).unlink()
    report = ix.open(folder).check()
    since = next(f for f in report if f.code == "count-mismatch").since
    assert since is not None and since.at_latest and since.snapshot_id == line[-1].snapshot_id
    assert ", at the latest" in repr(report) and ", at the latest" in report.to_html()


def test_a_row_that_the_oldest_kept_list_has_may_be_older(tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    line = _snapshots(folder)
    name = _manifest_of(folder, line[0])
    for back in (0, 1, 2):
        edit_avro(
            root_path(folder, back),
            records(lambda r: r.update(added_files_count=0), lambda r: local(r["manifest_path"]) == name),
        )
    ix.lab(folder, on_error="skip").expire_snapshots([line[0].snapshot_id], files=False)
    assert _found(folder, "count-mismatch").since == Since()


def test_a_trimmed_metadata_log_gives_the_latest_date(tmp_path: Path) -> None:
    folder = healthy(tmp_path)

    def change(document: Record) -> None:
        document["refs"]["lost"] = {"snapshot-id": 1, "type": "tag"}
        log = document["metadata-log"]
        document["metadata-log"] = [e for e in log if e["metadata-file"].endswith(_LOGGED)]

    for number in (4, 5, 6):
        edit_json(folder / "metadata" / f"v{number}.metadata.json", change)
    since = _found(folder, "metadata-invalid").since
    assert since is not None and str(since.metadata_file).endswith("/v4.metadata.json") and since.at_latest


@pytest.mark.parametrize("snapshots", [40])
def test_few_lists_are_read(snapshots: int, tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=2)
    s.set_properties({"commit.manifest-merge.enabled": "false"})
    for _ in range(snapshots):
        s.append(files=1, rows=1)
    s.save(tmp_path / "t")
    table = ix.open(tmp_path / "t")
    rows = table.inspect.manifests.arrow().to_pylist()
    oldest = min(rows, key=lambda r: r["path"] and next(
        i for i, x in enumerate(_snapshots(tmp_path / "t")) if x.snapshot_id == r["added_snapshot_id"]
    ))  # fmt: skip

    def wrong(row: Record) -> None:
        row["added_files_count"] = 7

    for back in range(10):
        where = lambda r: r["manifest_path"] == oldest["path"]  # noqa: E731
        edit_avro(root_path(tmp_path / "t", back), records(wrong, where))
    table = ix.open(tmp_path / "t")
    found = next(f for f in table.check() if f.code == "count-mismatch")
    assert found.since is not None
    assert found.since.snapshot_id == _snapshots(tmp_path / "t")[snapshots - 10].snapshot_id
    lists = {r.location for r in table.reads if r.kind == "manifest-list"}
    assert len(lists) <= 1 + 7
